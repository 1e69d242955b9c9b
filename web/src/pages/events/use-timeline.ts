import { useCallback, useMemo } from 'react'
import type { EventView } from '../../contract.ts'
import { useClusters, useHub, useLive } from '../../live/hooks.ts'
import type { Live } from '../../live/live-store.ts'
import { useRefresh } from '../../live/refresh.ts'
import { useFresh } from '../../live/use-fresh.ts'
import { foldEvents, hubEvent, kubeEvent, kubernetesEvents } from '../../model/kube-events.ts'

/** The newest Kubernetes events that are asked for at once. */
const MOST = 1000
/** Clusters whose past events of the hub are asked for: of more, those that come while the page is open are shown. */
export const CLUSTERS_ASKED = 24
/** Every frame of a fleet may bring events: that many are not worth a look each. */
const LEAST_MS = 3000

/** What happened in the fleet, newest first, by cause. */
export function useTimeline() {
  const { client } = useHub()
  const clusters = useClusters()
  const asked = [...clusters.keys()].sort().slice(0, CLUSTERS_ASKED).join('\n')
  const rows = useCallback(
    (signal: AbortSignal) =>
      client.fleetRows(kubernetesEvents, { limit: MOST, sort: 'lastAt', order: 'desc', aggregations: false }, signal),
    [client],
  )
  const past = useCallback(
    async (signal: AbortSignal): Promise<readonly EventView[]> => {
      const names = asked.split('\n').filter(Boolean)
      const answers = await Promise.all(names.map((name) => client.events(name, { limit: 50 }, signal)))
      return answers.flatMap(({ items }) => items)
    },
    [client, asked],
  )
  const [fresh, again] = useFresh(rows)
  const [told, askAgain] = useFresh(past)
  useRefresh(
    useCallback((live: Live) => live.fleet.clusters, []),
    again,
    LEAST_MS,
  )
  const heard = useLive((live) => live.fleet.events)
  const page = fresh.state === 'here' ? fresh.value : null
  const before = told.state === 'here' ? told.value : null
  const lines = useMemo(
    () =>
      foldEvents([
        ...(page?.items ?? []).map((row) => kubeEvent(row.cluster, row)),
        ...[...(before ?? []), ...heard].filter(({ type }) => type !== 'cluster.reconciled').map(hubEvent),
      ]),
    [page, before, heard],
  )
  return { fresh, page, told, lines, again, askAgain, clusterCount: clusters.size }
}
