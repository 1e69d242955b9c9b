import { useCallback, useMemo } from 'react'
import type { ApiProblem, TypeView } from '../contract.ts'
import { hasRows } from '../model/row-values.ts'
import { useQueryValue } from '../router.tsx'
import { useHub } from './hooks.ts'
import type { Live } from './live-store.ts'
import { useRefresh } from './refresh.ts'
import { useFresh } from './use-fresh.ts'

/** The set of clusters that the address names, as `set=`. */
export type ChosenSet =
  /** all clusters are meant */
  | { readonly state: 'all' }
  | { readonly state: 'waiting'; readonly name: string }
  | { readonly state: 'failed'; readonly name: string; readonly problem: ApiProblem; readonly again: () => void }
  | { readonly state: 'here'; readonly name: string; readonly clusters: ReadonlySet<string> }

const watchClusters = ({ fleet }: Live): unknown => fleet.clusters
const leastMs = 5000

export const useSetName = (): string => useQueryValue('set')[0]

/** Which clusters are in it is asked again as the fleet moves. */
export function useClusterSet(): ChosenSet {
  const { client } = useHub()
  const name = useSetName()
  const ask = useCallback(
    (signal: AbortSignal) => (name === '' ? Promise.resolve(null) : client.clusterSet(name, signal)),
    [client, name],
  )
  const [fresh, again] = useFresh(ask)
  useRefresh(watchClusters, again, leastMs)
  const names = fresh.state === 'here' ? (fresh.value?.clusters.join(' ') ?? null) : null
  const clusters = useMemo(() => new Set((names ?? '').split(' ').filter(Boolean)), [names])
  const problem = fresh.state === 'failed' ? fresh.problem : null
  return useMemo((): ChosenSet => {
    if (name === '') return { state: 'all' }
    if (problem) return { state: 'failed', name, problem, again }
    return names === null ? { state: 'waiting', name } : { state: 'here', name, clusters }
  }, [name, names, clusters, problem, again])
}

/** Whether a cluster is meant. */
export const isMeant = (set: ChosenSet, cluster: string): boolean =>
  set.state === 'all' || (set.state === 'here' && set.clusters.has(cluster))

/** The type on the clusters of a set alone, with what is counted there. */
export function ofSet(view: TypeView, set: ChosenSet): TypeView {
  if (set.state === 'all') return view
  const clusters = view.clusters.filter(({ cluster }) => isMeant(set, cluster))
  const read = clusters.filter(hasRows)
  const count = read.length === 0 && clusters.length > 0 ? null : read.reduce((sum, { part }) => sum + part.count, 0)
  return { ...view, clusters, count }
}
