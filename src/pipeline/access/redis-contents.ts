import { documentText } from '#model'
import { aHash, type Command, type Contents, textAt, type Value } from '#redis'
import {
  announce,
  type Entry,
  entriesOf,
  fieldsOf,
  hashKey,
  keyOf,
  keyOfHash,
  mergedStatus,
  readStatus,
  transitionOf,
} from './redis-layout.ts'
import type { PolicyDocument } from './types.ts'

export interface Policy {
  readonly document: PolicyDocument
  readonly status: Readonly<Record<string, unknown>>
}

/** What lies in Redis where these are all policies, by key. */
export function contentsOf(policies: readonly Policy[]): Contents {
  const contents = new Map<string, Value>()
  const indexes = new Map<string, Map<string, Entry['score']>>()
  for (const { document, status } of policies) {
    const hash = hashKey(keyOf(document))
    contents.set(hash, aHash({ ...fieldsOf(document), status: documentText(mergedStatus({}, status)) }))
    for (const { index, score } of entriesOf(document)) {
      const members = indexes.get(index) ?? new Map<string, Entry['score']>()
      indexes.set(index, members.set(hash, score))
    }
  }
  for (const [index, entries] of indexes)
    contents.set(index, { kind: [...entries.values()][0] === undefined ? 'set' : 'zset', entries })
  return contents
}

/**
 * What a resync is to tell of what it moved.
 * @returns `mended`: keys of policies that were not there, differed, stood in a wrong index, or did not belong there; sorted
 */
export function mendings(
  policies: readonly Policy[],
  {
    wanted,
    stored,
    moved,
  }: { readonly wanted: Contents; readonly stored: Contents; readonly moved: ReadonlyMap<string, readonly string[]> },
  now: number,
): { readonly announcements: readonly Command[]; readonly mended: readonly string[] } {
  const mended = new Set<string>()
  const announcements: Command[] = []
  for (const { document, status } of policies) {
    const key = keyOf(document)
    const before = stored.get(hashKey(key))
    const transition = transitionOf(readStatus(textAt(before, 'status')), mergedStatus({}, status))
    if (moved.get(hashKey(key))?.some((field) => field !== 'status')) {
      mended.add(key)
      announcements.push(...announce('compiled', key, now))
    }
    if (transition) announcements.push(...announce(transition, key, now))
  }
  for (const [key, names] of moved) {
    const kind = (wanted.get(key) ?? stored.get(key))?.kind
    if (kind === 'set' || kind === 'zset') for (const member of names) mended.add(keyOfHash(member))
    if (kind !== 'hash' || wanted.has(key)) continue
    mended.add(keyOfHash(key))
    announcements.push(...announce('deleted', keyOfHash(key), now))
  }
  return { announcements, mended: [...mended].sort() }
}
