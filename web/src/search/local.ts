import type { ClusterView, SearchHit } from '../contract.ts'
import { isNearIn } from '../contract.ts'
import { type Need, needOf } from '../model/cluster.ts'
import { isCurrent, type PartType, readAt } from '../model/current.ts'

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

/** What the hub found, for which text. */
export interface FarHits {
  readonly text: string
  readonly hits: readonly SearchHit[]
}

/**
 * The hub's answer as it came, in its order, once it is there: it knows more of a row than a hit tells. Until then clusters from
 * here, and of what was found last what still fits, so that the list does not blink while one types.
 */
export function mergeHits(near: readonly SearchHit[], far: FarHits, text: string): SearchHit[] {
  const isAnswer = far.text === text && far.hits.length > 0
  const words = wordsOf(text)
  const fits = (hit: SearchHit) => words.every((word) => knownOf(hit).includes(word) || isNearIn(word, knownOf(hit)))
  const seen = new Set<string>()
  return [...(isAnswer ? [] : near), ...(isAnswer ? far.hits : far.hits.filter(fits))].filter((hit) => {
    const key = hitKey(hit)
    return !seen.has(key) && seen.add(key)
  })
}

const knownOf = ({ kind, cluster, name, detail, type = '', namespace = '' }: SearchHit): string =>
  `${kind} ${cluster} ${name} ${detail} ${type} ${namespace}`.toLowerCase()

const partOfKind: Partial<Record<SearchHit['kind'], PartType>> = { namespace: 'namespace', operator: 'operator' }

/** When what was found was read, where that is of the past; null: it is current, or nothing is known of its cluster. */
export function pastOfHit({ kind }: SearchHit, cluster: ClusterView | undefined, now: number): number | null {
  const part = partOfKind[kind] ?? 'node'
  if (!cluster || kind === 'cluster' || isCurrent(cluster, part, now)) return null
  return readAt(cluster, part)
}

/** The health of what was found: what was well when it was read may not be so now. */
export function needOfHit(hit: SearchHit, cluster: ClusterView | undefined, now: number): Need {
  if (cluster && hit.kind === 'cluster') return needOf(cluster, now)
  return hit.health === 'healthy' && pastOfHit(hit, cluster, now) !== null ? 'stale' : hit.health
}

/** Rows of two types may have the same name. */
export const hitKey = ({ kind, cluster, name, type = '', namespace = '' }: SearchHit): string =>
  [kind, cluster, type, namespace, name].join(' ')

const wordsOf = (text: string): string[] =>
  text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '')
