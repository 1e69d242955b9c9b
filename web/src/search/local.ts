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
        : 2
    ranked.push({
      hit: { kind: 'cluster', cluster: name, name, detail: displayName === name ? '' : displayName, health },
      rank,
    })
  }
  ranked.sort((a, b) => a.rank - b.rank || (a.hit.name < b.hit.name ? -1 : 1))
  return ranked.slice(0, limit).map(({ hit }) => hit)
}

/** What the hub found last stays as far as it still fits, so that the list does not blink while one types. */
export function mergeHits(near: readonly SearchHit[], far: readonly SearchHit[], text: string): SearchHit[] {
  const words = wordsOf(text)
  const seen = new Set<string>()
  const fitting = far.filter(({ kind, cluster, name, detail, type = '', namespace = '' }) => {
    const known = `${kind} ${cluster} ${name} ${detail} ${type} ${namespace}`.toLowerCase()
    return words.every((word) => known.includes(word) || isNearIn(word, known))
  })
  return [...near, ...fitting].filter((hit) => {
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
