import type { SearchHit } from '#http'
import { type ClusterState, type Health, hasPartsOf, isNearIn, type NodeSnapshot } from '#model'
import { Best } from './best.ts'
import { byText, type VisibleCluster } from './views.ts'
import type { VisibleType } from './visible-types.ts'

interface Entry {
  readonly text: string
  readonly hit: SearchHit
}

/** The searchable names of one cluster; `all` holds them at once, to pass over whole clusters in one look. */
interface ClusterIndex {
  readonly all: string
  /** its names, by which what is on it is found as well */
  readonly place: string
  readonly entries: readonly Entry[]
}

const kinds: Readonly<Record<SearchHit['kind'], number>> = { cluster: 0, node: 1, operator: 2, namespace: 3, custom: 4 }

/** Rows of types that one search looks at; a type on a cluster that does not fit in is passed over. */
export const maxSearchedRows = 200_000

/** Names that one search compares letter by letter, where nothing has them as they are typed: clusters first. */
export const maxNearNames = 10_000

interface Ranked {
  readonly hit: SearchHit
  readonly rank: number
}
const nodeHealth: Readonly<Record<NodeSnapshot['ready'], Health>> = {
  ready: 'healthy',
  notReady: 'unhealthy',
  unknown: 'unknown',
}

/**
 * Every word must occur in the name, the detail or a name of the cluster, and one of them in the first two; best first: the name itself, its beginning, the beginning of a word in
 * it, anywhere; where nothing has them, names a slip or two away. The index of a cluster lives as long as that state of the cluster, so a change rebuilds one cluster only.
 * @param types what is seen of types; that is no matter of the cluster's view, so it comes beside it
 * @returns the best `limit` hits, and how many there are in all
 */
export function searchFleet(
  clusters: readonly VisibleCluster[],
  types: Iterable<VisibleType>,
  text: string,
  limit: number,
): { items: SearchHit[]; total: number } {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean).slice(0, 10)
  if (words.length === 0) return { items: [], total: 0 }
  const best = new Best<Ranked>(limit, compareRanked)
  let total = 0
  const found = (hit: SearchHit, slack = 0): void => {
    total += 1
    best.add({ hit, rank: slack * 100 + rankOf(hit, words) })
  }
  for (const cluster of clusters) {
    const { all, place, entries } = cluster.memo('search', () => indexOf(cluster))
    if (!words.every((word) => all.includes(word))) continue
    const elsewhere = words.filter((word) => !place.includes(word))
    for (const { text, hit } of entries) {
      if (elsewhere.every((word) => text.includes(word)) && words.some((word) => text.includes(word))) found(hit)
    }
  }
  searchTypes(types, words, found)
  if (total === 0) searchNear(clusters, words, found)
  return { items: best.sorted().map(({ hit }) => hit), total }
}

/** What was probably meant: every word is in the text, in it part by part, or a slip or two away from a name in it. */
function searchNear(
  clusters: readonly VisibleCluster[],
  words: readonly string[],
  found: (hit: SearchHit, slack: number) => void,
): void {
  let left = maxNearNames
  const look = ({ text, hit }: Entry): void => {
    if (left-- <= 0) return
    let slack = 0
    for (const word of words) {
      const own = slackOf(word, text)
      if (own === undefined) return
      slack += own
    }
    found(hit, slack)
  }
  const indexes = clusters.map((cluster) => cluster.memo('search', () => indexOf(cluster)).entries)
  for (const [own] of indexes) if (own) look(own)
  for (const [, ...entries] of indexes) {
    if (left <= 0) return
    entries.forEach(look)
  }
}

/** 0: the word is in the text; more where it was meant otherwise; undefined: it was not meant. */
function slackOf(word: string, text: string): number | undefined {
  if (text.includes(word)) return 0
  if (hasPartsOf(word, text)) return 1
  return isNearIn(word, text) ? 2 : undefined
}

function searchTypes(types: Iterable<VisibleType>, words: readonly string[], found: (hit: SearchHit) => void): void {
  let left = maxSearchedRows
  for (const type of types) {
    const { count, places, rows, cluster, source, name: typeName } = type
    if (count === 0 || count > left) continue
    left -= count
    const title = typeName.toLowerCase()
    const place = placeOf(cluster)
    const elsewhere = words.filter((word) => !title.includes(word) && !place.includes(word))
    const isTitled = words.some((word) => title.includes(word))
    // No object is made for what does not match.
    for (let at = 0; at < count; at++) {
      const row = places ? (places[at] as number) : at // below its length
      const [name, namespace] = [rows.nameAt(row), rows.namespaceAt(row)]
      const has = (word: string) => holds(name, word) || holds(namespace, word)
      if (!elsewhere.every(has) || !(isTitled || words.some(has))) continue
      const detail = namespace === '' ? typeName : `${typeName} in ${namespace}`
      found({
        kind: 'custom',
        cluster: cluster.name,
        name: source.rowName(name),
        detail,
        health: 'unknown',
        type: typeName,
        namespace,
      })
    }
  }
}

const holds = (text: string, word: string): boolean => text.toLowerCase().includes(word)

const compareRanked = (left: Ranked, right: Ranked): number =>
  left.rank - right.rank || compareHits(left.hit, right.hit)

function compareHits(left: SearchHit, right: SearchHit): number {
  return (
    kinds[left.kind] - kinds[right.kind] ||
    left.name.length - right.name.length ||
    byText(left.name, right.name) ||
    byText(left.cluster, right.cluster) ||
    byText(left.detail, right.detail)
  )
}

function rankOf(hit: SearchHit, words: readonly string[]): number {
  const name = hit.name.toLowerCase()
  return words.reduce((sum, word) => sum + rankOfWord(name, word), 0)
}

function rankOfWord(name: string, word: string): number {
  const at = name.indexOf(word)
  if (at < 0) return 4 // in the detail only
  if (at === 0) return name.length === word.length ? 0 : 1
  return /[a-z0-9]/.test(name[at - 1] ?? '') ? 3 : 2
}

function indexOf({ state, visible, status }: VisibleCluster): ClusterIndex {
  const cluster: string = state.name
  const entries = [
    entry({ kind: 'cluster', cluster, name: cluster, detail: clusterDetail(state), health: status.health }),
  ]
  for (const { name, ready, roles } of visible('node')) {
    entries.push(entry({ kind: 'node', cluster, name, detail: roles.join(', '), health: nodeHealth[ready] }))
  }
  for (const { displayName, csv, status, namespace } of visible('operator')) {
    const health: Health = status === 'Succeeded' ? 'healthy' : status === 'Failed' ? 'unhealthy' : 'unknown'
    entries.push(
      entry({ kind: 'operator', cluster, name: displayName || csv, detail: `${csv} in ${namespace}`, health }),
    )
  }
  for (const { name, phase } of visible('namespace')) {
    entries.push(
      entry({ kind: 'namespace', cluster, name, detail: phase, health: phase === 'Active' ? 'healthy' : 'unknown' }),
    )
  }
  const place = placeOf(state)
  return { all: [place, ...entries.map(({ text }) => text)].join('\n'), place, entries }
}

const placeOf = ({ name, connection }: ClusterState): string => `${name} ${connection?.displayName ?? ''}`.toLowerCase()

const entry = (hit: SearchHit): Entry => ({ text: `${hit.name} ${hit.detail}`.toLowerCase(), hit })

function clusterDetail({ connection, name }: ClusterState): string {
  const labels = Object.entries(connection?.labels ?? {}).map(([key, value]) => `${key}=${value}`)
  return [connection?.displayName !== name ? connection?.displayName : '', ...labels].filter(Boolean).join(' ')
}
