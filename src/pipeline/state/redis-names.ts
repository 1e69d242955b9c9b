import { createHash } from 'node:crypto'
import { type ClusterName, type OwnerPlace, ownerOf } from '#model'
import type { Command } from '#redis'
import { own } from './redis-keys.ts'
import type { Division } from './redis-owners.ts'

/*
 * Each owner says how many clusters it wrote, and the digest of their names, in the transaction that adds or removes one. Whoever
 * reads fewer, or others, has not the fleet: one that is lost from Redis is never taken for one that was removed.
 */

/** Says which clusters are the share of an owner. */
export const namesWrites = ({ index }: OwnerPlace, names: Iterable<string>): Command => [
  'HSET',
  own.owners,
  `names:${index}`,
  namesText(names),
]

/** The number of the names, and their digest. */
export function namesText(names: Iterable<string>): string {
  const sorted = [...names].sort()
  return `${sorted.length} ${createHash('sha1').update(sorted.join('\n')).digest('hex')}`
}

/** Whether these are the clusters that every owner wrote. A version that did not say so is believed. */
export function areAsWritten({ count, names: written }: Division, found: readonly ClusterName[]): boolean {
  return [...written].every(
    ([index, text]) => text === namesText(found.filter((name) => ownerOf(name, count ?? 1) === index)),
  )
}
