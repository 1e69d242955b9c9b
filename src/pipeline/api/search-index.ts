import type { SearchHit } from '#http'
import type { ClusterState, Health, NodeSnapshot } from '#model'
import { byText, type VisibleCluster } from './views.ts'

interface Entry {
  readonly text: string
  readonly hit: SearchHit
}

/** The searchable names of one cluster; `all` holds them at once, to pass over whole clusters in one look. */
interface ClusterIndex {
  readonly all: string
  readonly entries: readonly Entry[]
}

const kinds: Readonly<Record<SearchHit['kind'], number>> = { cluster: 0, node: 1, operator: 2, namespace: 3 }
const nodeHealth: Readonly<Record<NodeSnapshot['ready'], Health>> = {
  ready: 'healthy',
  notReady: 'unhealthy',
  unknown: 'unknown',
}

/**
 * Every word must occur in the name (or the detail); best first: the name itself, its beginning, the beginning of a word in
 * it, anywhere. The index of a cluster lives as long as that state of the cluster, so a change rebuilds one cluster only.
 * @returns the best `limit` hits, and how many there are in all
 */
export function searchFleet(
  clusters: readonly VisibleCluster[],
  text: string,
  limit: number,
): { items: SearchHit[]; total: number } {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean).slice(0, 10)
  if (words.length === 0) return { items: [], total: 0 }
  const found: { readonly hit: SearchHit; readonly rank: number }[] = []
  for (const cluster of clusters) {
    const { all, entries } = cluster.memo('search', () => indexOf(cluster))
    if (!words.every((word) => all.includes(word))) continue
    for (const entry of entries) {
      if (words.every((word) => entry.text.includes(word))) found.push({ hit: entry.hit, rank: rankOf(entry, words) })
    }
  }
  found.sort((left, right) => left.rank - right.rank || compareHits(left.hit, right.hit))
  return { items: found.slice(0, limit).map(({ hit }) => hit), total: found.length }
}

function compareHits(left: SearchHit, right: SearchHit): number {
  return (
    kinds[left.kind] - kinds[right.kind] ||
    left.name.length - right.name.length ||
    byText(left.name, right.name) ||
    byText(left.cluster, right.cluster)
  )
}

function rankOf({ hit }: Entry, words: readonly string[]): number {
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
  return { all: entries.map(({ text }) => text).join('\n'), entries }
}

const entry = (hit: SearchHit): Entry => ({ text: `${hit.name} ${hit.detail}`.toLowerCase(), hit })

function clusterDetail({ connection, name }: ClusterState): string {
  const labels = Object.entries(connection?.labels ?? {}).map(([key, value]) => `${key}=${value}`)
  return [connection?.displayName !== name ? connection?.displayName : '', ...labels].filter(Boolean).join(' ')
}
