import type { ClusterView, SearchHit } from '../contract.ts'
import { isNearIn } from '../contract.ts'

/** Clusters by what this tab already knows, so that the first letters have an answer without the hub. */
export function localHits(clusters: Iterable<ClusterView>, text: string, limit: number): SearchHit[] {
  const words = wordsOf(text)
  const ranked: { hit: SearchHit; rank: number }[] = []
  for (const { name, displayName, labels, health } of clusters) {
    const called = `${name} ${displayName}`.toLowerCase()
    const known = `${called} ${Object.values(labels).join(' ').toLowerCase()}`
    if (!words.every((word) => known.includes(word) || isNearIn(word, called))) continue
    const rank = words.every((word) => name.toLowerCase().startsWith(word))
      ? 0
      : words.every((word) => called.includes(word))
        ? 1
        : words.every((word) => known.includes(word))
          ? 2
          : looseRank
    ranked.push({
      hit: { kind: 'cluster', cluster: name, name, detail: displayName === name ? '' : displayName, health },
      rank,
    })
  }
  ranked.sort((a, b) => a.rank - b.rank || (a.hit.name < b.hit.name ? -1 : 1))
  const exact = ranked.filter(({ rank }) => rank < looseRank)
  return (exact.length > 0 ? exact : ranked).slice(0, limit).map(({ hit }) => hit)
}

/** Found by a slip only: shown where nothing is called as it is typed. */
const looseRank = 3

/**
 * What the hub found last stays as far as it still fits, so that the list does not blink while one types. What has the words as
 * they are typed comes before what a slip found.
 */
export function mergeHits(near: readonly SearchHit[], far: readonly SearchHit[], text: string): SearchHit[] {
  const words = wordsOf(text)
  const seen = new Set<string>()
  const known = ({ kind, cluster, name, detail, type = '', namespace = '' }: SearchHit) =>
    `${kind} ${cluster} ${name} ${detail} ${type} ${namespace}`.toLowerCase()
  const isExact = (hit: SearchHit) => words.every((word) => known(hit).includes(word))
  const fitting = far.filter((hit) => words.every((word) => known(hit).includes(word) || isNearIn(word, known(hit))))
  const exact = fitting.filter(isExact)
  const loose = fitting.filter((hit) => !isExact(hit))
  return [...near, ...exact, ...loose].filter((hit) => {
    const key = hitKey(hit)
    return !seen.has(key) && seen.add(key)
  })
}

/** Rows of two types may have the same name. */
export const hitKey = ({ kind, cluster, name, type = '', namespace = '' }: SearchHit): string =>
  [kind, cluster, type, namespace, name].join(' ')

const wordsOf = (text: string): string[] =>
  text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '')
