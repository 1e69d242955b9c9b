import { useEffect, useMemo, useState } from 'react'
import type { ClusterView, EventView } from '../../contract.ts'
import { newestFirst } from '../../live/fleet.ts'
import { useHub, useLive } from '../../live/hooks.ts'

const lossType = 'collection.lost'
/** More clusters than these are told of as this tab hears of their losses. */
const askedAtMost = 20
const none: readonly EventView[] = []
/** The strip then tells what this tab hears; why there is no answer is told on the Events tab of the cluster. */
const unanswered = () => null

/**
 * What agents declared lost, newest first: as heard in this tab, and before that as the hub remembers. The hub is asked only
 * of clusters whose agent ever lost something.
 */
export function useLosses(clusters: readonly ClusterView[]): readonly EventView[] {
  const { client } = useHub()
  const heard = useLive((live) => live.fleet.events)
  const [remembered, remember] = useState(none)
  const losers = clusters.flatMap(({ name, agent }) => (agent && agent.lostBatches > 0 ? [name] : []))
  const names = losers.sort().slice(0, askedAtMost).join(' ')

  useEffect(() => {
    if (names === '') return
    const asking = new AbortController()
    const ask = async () => {
      for (const name of names.split(' ')) {
        const answer = await client.events(name, { type: lossType, limit: 20 }, asking.signal).catch(unanswered)
        if (answer) remember((before) => newestFirst(answer.items, before))
      }
    }
    void ask()
    return () => asking.abort()
  }, [client, names])
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
