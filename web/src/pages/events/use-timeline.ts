import { useCallback, useEffect, useMemo } from 'react'
import type { EventView } from '../../contract.ts'
import { useClusters, useHub, useLive } from '../../live/hooks.ts'
import { isMeant, useClusterSet } from '../../live/use-cluster-set.ts'
import { useFresh } from '../../live/use-fresh.ts'
import { useFirstRows } from '../../live/use-rows.ts'
import { foldEvents, hubEvent, kubeEvent, kubernetesEvents } from '../../model/kube-events.ts'

/** The newest Kubernetes events that are followed. */
const MOST = 1000
/** Clusters whose events of the hub are asked for and followed. */
export const CLUSTERS_ASKED = 24
const newest = { sort: 'lastAt', order: 'desc' } as const

/** What happened in the fleet, newest first, by cause, as it happens. */
export function useTimeline() {
  const { client, store } = useHub()
  const all = useClusters()
  const set = useClusterSet()
  const clusters = [...all.keys()].filter((name) => isMeant(set, name))
  const asked = clusters.sort().slice(0, CLUSTERS_ASKED).join('\n')
  const past = useCallback(
    async (signal: AbortSignal): Promise<readonly EventView[]> => {
      const names = asked.split('\n').filter(Boolean)
      const answers = await Promise.all(names.map((name) => client.events(name, { limit: 50 }, signal)))
      return answers.flatMap(({ items }) => items)
    },
    [client, asked],
  )
  const setName = set.state === 'all' ? '' : set.name
  const query = useMemo(() => ({ ...newest, ...(setName !== '' && { set: setName }) }), [setName])
  const [paged, again] = useFirstRows(null, kubernetesEvents, query, MOST)
  const [told, askAgain] = useFresh(past)
  useEffect(() => {
    const ends = asked
      .split('\n')
      .filter(Boolean)
      .map((name) => store.follow(name))
    return () => {
      for (const end of ends) end()
    }
  }, [store, asked])
  const heard = useLive((live) => live.fleet.events)
  const rows = paged.state === 'here' ? paged.rows : null
  const before = told.state === 'here' ? told.value : null
  const lines = useMemo(
    () =>
      foldEvents([
        ...[...(rows?.values() ?? [])].map((row) => kubeEvent(row.cluster, row)),
        ...[...(before ?? []), ...heard]
          .filter(({ type, cluster }) => type !== 'cluster.reconciled' && isMeant(set, cluster))
          .map(hubEvent),
      ]),
    [rows, before, heard, set],
  )
  return { paged, told, lines, again, askAgain, clusterCount: clusters.length, set }
}
