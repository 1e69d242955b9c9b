import { useEffect, useMemo, useRef, useState } from 'react'
import type { ClusterView, EventView } from '../../contract.ts'
import { newestFirst } from '../../live/fleet.ts'
import { useHub, useLive } from '../../live/hooks.ts'

const lossType = 'collection.lost'
/** Of more clusters than these the losses stand on their own pages alone. */
const askedAtMost = 20
const none: readonly EventView[] = []
/** Why there is no answer is told on the Events tab of the cluster. */
const unanswered = () => null

/**
 * What agents declared lost, newest first, as the hub remembers and as heard in this tab, which hears of the cluster it looks
 * at alone. The hub is asked only of clusters whose agent lost something, and again when that becomes more.
 */
export function useLosses(clusters: readonly ClusterView[]): readonly EventView[] {
  const { client } = useHub()
  const heard = useLive((live) => live.fleet.events)
  const [remembered, remember] = useState(none)
  const losers = clusters.flatMap(({ name, agent }) =>
    agent && agent.lostBatches > 0 ? [`${name} ${agent.lostBatches}`] : [],
  )
  const counts = losers.sort().slice(0, askedAtMost).join('\n')
  const told = useRef(new Set<string>())

  useEffect(() => {
    const asking = new AbortController()
    const ask = async () => {
      for (const count of counts.split('\n')) {
        const [name = ''] = count.split(' ')
        if (name === '' || told.current.has(count)) continue
        const answer = await client.events(name, { type: lossType, limit: 20 }, asking.signal).catch(unanswered)
        if (!answer) continue
        told.current.add(count)
        remember((before) => newestFirst(answer.items, before))
      }
    }
    void ask()
    return () => asking.abort()
  }, [client, counts])
  return useMemo(
    () =>
      newestFirst(
        heard.filter(({ type }) => type === lossType),
        remembered,
      ),
    [heard, remembered],
  )
}

/** Batches lost within the last hour, by cluster. */
export function lostLately(losses: readonly EventView[], now: number): ReadonlyMap<string, number> {
  const lost = new Map<string, number>()
  for (const { cluster, at, data } of losses) {
    if (at < now - 3_600_000) continue
    const count = typeof data?.count === 'number' ? data.count : 1
    lost.set(cluster, (lost.get(cluster) ?? 0) + count)
  }
  return lost
}
