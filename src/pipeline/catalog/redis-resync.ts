import { isDeepStrictEqual } from 'node:util'
import type { SourceId } from '#model'
import { type Command, pipelined, type Redis, scanKeys } from '#redis'
import { sameDefinition } from './definition.ts'
import {
  ALL,
  DIGEST,
  documentKey,
  ENABLED,
  GENERATION,
  type Laid,
  noteKey,
  PATTERNS,
  parseDefinition,
} from './redis-layout.ts'

/** What lies under one key: a text, the fields of a hash, the members of a set, or something that does not belong here. */
export type Lying = string | Readonly<Record<string, string>> | ReadonlySet<string> | null

/** Keys read at once. */
const PAGE = 200

/** All that Redis holds of sources, by key, whatever it is; page by page, so that nobody waits long. */
export async function readEverything(redis: Redis): Promise<ReadonlyMap<string, Lying>> {
  const keys = new Set([ALL, ENABLED, GENERATION, DIGEST])
  for (const pattern of PATTERNS) {
    for await (const page of scanKeys(redis, pattern)) for (const key of page) keys.add(key)
  }
  const everything = new Map<string, Lying>()
  const all = [...keys]
  for (let from = 0; from < all.length; from += PAGE) {
    const page = all.slice(from, from + PAGE)
    const types = await pipelined(
      redis,
      page.map((key) => ['TYPE', key]),
    )
    const present = page.flatMap((key, i) => (types[i] === 'none' ? [] : [{ key, type: String(types[i]) }]))
    const values = await pipelined(
      redis,
      present.map(({ key, type }) => READS[type]?.(key) ?? ['TYPE', key]),
    )
    for (const [i, { key, type }] of present.entries()) everything.set(key, lying(type, values[i]))
  }
  return everything
}

const READS: Readonly<Record<string, (key: string) => Command>> = {
  string: (key) => ['GET', key],
  hash: (key) => ['HGETALL', key],
  set: (key) => ['SMEMBERS', key],
}

function lying(type: string, value: unknown): Lying {
  if (type === 'string') return String(value)
  if (type === 'hash') return { ...(value as Record<string, string>) }
  return type === 'set' ? new Set(value as string[]) : null
}

/** The commands that make Redis hold exactly these, and the ids of those that were not as they should be. */
export function differences(
  everything: ReadonlyMap<string, Lying>,
  wanted: readonly Laid[],
): {
  readonly commands: readonly Command[]
  readonly put: readonly SourceId[]
  readonly kept: ReadonlyMap<SourceId, string>
} {
  const commands: Command[] = []
  const put = new Set<SourceId>()
  const kept = new Map<SourceId, string>()
  // The seal is written over whatever lies there.
  const right = new Set<string>([GENERATION, DIGEST])
  const members = new Map<string, Set<SourceId>>([ALL, ENABLED].map((index) => [index, new Set()]))
  for (const { id, text, note, indexes } of wanted) {
    const [document, beside] = [documentKey(id), noteKey(id)]
    const stored = everything.get(document)
    right.add(document).add(beside)
    for (const index of indexes) members.set(index, (members.get(index) ?? new Set()).add(id))
    if (typeof stored === 'string' && holdsSame(stored, text)) {
      kept.set(id, stored)
      if (hasNote(everything.get(beside), note)) continue
    } else {
      commands.push(['DEL', document], ['SET', document, text])
    }
    commands.push(['DEL', beside], ['HSET', beside, ...Object.entries(note).flat()])
    put.add(id)
  }
  for (const [index, ids] of members) {
    right.add(index)
    if (isDeepStrictEqual(everything.get(index) ?? new Set(), ids)) continue
    commands.push(['DEL', index])
    if (ids.size > 0) commands.push(['SADD', index, ...ids])
    for (const id of ids) put.add(id)
  }
  for (const key of everything.keys()) if (!right.has(key)) commands.push(['DEL', key])
  return { commands, put: [...put], kept }
}

function holdsSame(stored: string, text: string): boolean {
  if (stored === text) return true
  const [before, after] = [parseDefinition(stored), parseDefinition(text)]
  return before !== undefined && after !== undefined && sameDefinition(before, after)
}

/** A note says when it was compiled, which a stored definition keeps. */
function hasNote(stored: Lying | undefined, note: Readonly<Record<string, string>>): boolean {
  if (typeof stored !== 'object' || stored === null || stored instanceof Set) return false
  return isDeepStrictEqual({ ...stored, compiledAt: '' }, { ...note, compiledAt: '' })
}
