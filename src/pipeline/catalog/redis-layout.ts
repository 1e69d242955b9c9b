import type { SourceDefinition } from '#metricsource'
import { documentText, documentTime, type SourceId } from '#model'
import { type Command, sealScripts } from '#redis'
import { idOf, typeNameOf } from './definition.ts'

/*
 * How sources lie in Redis (specification: state 5): a text and a note per source, two sets of all ids and one per type
 * name. Existing readers rely on it; the generation is ours, and rises with every change, and so is its seal.
 */

export const GENERATION = 'metricsources:generation'
/** Number and digest of all definitions of the generation. */
export const DIGEST = 'metricsources:digest'
export const SEAL_SCRIPTS = sealScripts("redis.pcall('GET', 'metricsource:' .. string.gsub(name, '/', ':', 1))")
export const ALL = 'metricsources:all'
export const ENABLED = 'metricsources:enabled'
export const EVENTS_CHANNEL = 'metricsource-events'
const BY_TYPE = 'metricsources:by:resourcetype:'
const DOCUMENT = 'metricsource:'

/** Every key of a source, and every index of a type name, as patterns. */
export const PATTERNS: readonly string[] = [`${DOCUMENT}*`, `${BY_TYPE}*`]

/** Neither part of an id can hold a colon. */
export const documentKey = (id: SourceId): string => DOCUMENT + id.replace('/', ':')
export const noteKey = (id: SourceId): string => `${documentKey(id)}:meta`
export const typeKey = (typeName: string): string => BY_TYPE + typeName

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
    indexes: indexesOf(typeName),
  }
}

/** Every set that a source with this type name stands in. */
export function indexesOf(typeName: string): readonly string[] {
  return [ALL, ENABLED, ...(typeName === '' ? [] : [typeKey(typeName)])]
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
