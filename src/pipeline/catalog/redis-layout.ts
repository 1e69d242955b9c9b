import { isDeepStrictEqual } from 'node:util'
import type { SourceDefinition } from '#metricsource'
import { documentText, documentTime, type SourceId } from '#model'
import { aHash, aSet, aString, type Command, type Contents, type SetLayout, textAt, type Value } from '#redis'
import { idOf, sameDefinition, typeNameOf } from './definition.ts'

/*
 * How sources lie in Redis (specification: state 5): a text and a note per source, two sets of all ids and one per type
 * name. Existing readers rely on it; the generation and its seal are ours.
 */

export const ALL = 'metricsources:all'
export const ENABLED = 'metricsources:enabled'
const EVENTS_CHANNEL = 'metricsource-events'
const BY_TYPE = 'metricsources:by:resourcetype:'
const DOCUMENT = 'metricsource:'

/** Every key of a source, and every index of a type name, as patterns. */
export const PATTERNS: readonly string[] = [`${DOCUMENT}*`, `${BY_TYPE}*`]

/** Neither part of an id can hold a colon. */
export const documentKey = (id: SourceId): string => DOCUMENT + id.replace('/', ':')
export const noteKey = (id: SourceId): string => `${documentKey(id)}:meta`

export const LAYOUT: SetLayout = {
  what: 'MetricSources',
  members: ENABLED,
  generation: 'metricsources:generation',
  seal: 'metricsources:digest',
  channel: EVENTS_CHANNEL,
  documentKey,
  script: "redis.pcall('GET', 'metricsource:' .. string.gsub(name, '/', ':', 1))",
}

/** What lies under each key of one source. */
export interface Laid {
  readonly id: SourceId
  readonly text: string
  readonly note: Readonly<Record<string, string>>
  /** sets it stands in */
  readonly indexes: readonly string[]
}

export function laid(definition: SourceDefinition): Laid {
  const id = idOf(definition)
  const typeName = typeNameOf(definition)
  const { source, compiledAt, hash } = definition as Readonly<Record<string, unknown>>
  const { kind, apiVersion } = (source ?? {}) as Readonly<Record<string, unknown>>
  const note = { compiledAt, hash, kind, apiVersion, resourceTypeName: typeName }
  return {
    id,
    text: documentText(definition),
    note: Object.fromEntries(Object.entries(note).map(([field, value]) => [field, String(value ?? '')])),
    indexes: indexesOf(definition),
  }
}

/** Every set that a source stands in; of one that is not known those of all sources. */
export function indexesOf(definition: SourceDefinition | undefined): readonly string[] {
  const typeName = definition ? typeNameOf(definition) : ''
  return [ALL, ENABLED, ...(typeName === '' ? [] : [BY_TYPE + typeName])]
}

/** What lies there where these are all. What is stored of the same source stays: it says when that was compiled. */
export function contentsOf(all: readonly Laid[], stored: Contents): Contents {
  const contents = new Map<string, Value>()
  const members = new Map<string, SourceId[]>([ALL, ENABLED].map((index) => [index, []]))
  for (const { id, text, note, indexes } of all) {
    const [document, beside] = [stored.get(documentKey(id)), stored.get(noteKey(id))]
    const isSame = document?.kind === 'string' && holdsSame(textAt(document), text)
    contents.set(documentKey(id), isSame ? document : aString(text))
    contents.set(noteKey(id), isSame && beside && hasNote(beside, note) ? beside : aHash(note))
    for (const index of indexes) members.set(index, [...(members.get(index) ?? []), id])
  }
  for (const [index, ids] of members) if (ids.length > 0) contents.set(index, aSet(ids))
  return contents
}

function holdsSame(stored: string, text: string): boolean {
  const [before, after] = [parseDefinition(stored), parseDefinition(text)]
  return before !== undefined && after !== undefined && sameDefinition(before, after)
}

function hasNote({ kind, entries }: Value, note: Readonly<Record<string, string>>): boolean {
  return (
    kind === 'hash' &&
    entries.has('compiledAt') &&
    isDeepStrictEqual({ ...Object.fromEntries(entries), compiledAt: '' }, { ...note, compiledAt: '' })
  )
}

/** The stored definition; undefined where it is no JSON object. */
export function parseDefinition(text: string): SourceDefinition | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as SourceDefinition)
      : undefined
  } catch {
    return undefined // the caller says so, once
  }
}

/** One event on the documented channel. @param now ms since the Unix epoch */
export function event(type: string, sourceId: SourceId, data: unknown, now: number): Command {
  return ['PUBLISH', EVENTS_CHANNEL, documentText({ type, sourceId, timestamp: documentTime(now), data })]
}
