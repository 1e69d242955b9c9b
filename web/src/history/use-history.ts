import { useCallback, useEffect, useRef, useState } from 'react'
import type { ApiProblem, Client, HistoryQuery, HistoryView } from '../contract.ts'
import { backOffMs } from '../live/back-off.ts'
import { useHub, useLive } from '../live/hooks.ts'
import { problemOf } from '../live/problem.ts'
import { useReturn } from '../live/use-return.ts'
import type { Crosshair } from './crosshair.ts'
import { type Picture, pictureOf } from './picture.ts'
import { type Range, refreshMs } from './range.ts'

/** Whose history: a cluster, one of its nodes, or what one MetricSource counts there. */
export interface Subject {
  readonly cluster: string
  readonly node: string | null
  readonly type?: { readonly name: string; readonly source: string }
}

export type Shown =
  | { readonly state: 'waiting' }
  | { readonly state: 'failed'; readonly problem: ApiProblem }
  | {
      readonly state: 'here'
      readonly picture: Picture
      /** the range the picture is of is not the one that is asked for any more: another is on its way */
      readonly pending: boolean
      /** why the last look brought nothing new; null where it did */
      readonly problem: ApiProblem | null
    }

interface Wish {
  readonly subject: Subject
  readonly metrics: readonly string[]
  readonly range: Range
  readonly stepMs: number
  readonly intervalMs: number
  readonly crosshair: Crosshair
}

export function askHistory(
  client: Client,
  { cluster, node, type }: Subject,
  query: HistoryQuery,
  signal: AbortSignal,
): Promise<HistoryView> {
  if (type) return client.typeHistory(cluster, type.name, { ...query, source: type.source }, signal)
  return node === null
    ? client.clusterHistory(cluster, query, signal)
    : client.nodeHistory(cluster, node, query, signal)
}

/**
 * The picture of a range. A live one is looked at again with every round, unless somebody reads it, the page is hidden or
 * updates are paused; what was shown stays until the next is here.
 */
export function useHistory(wish: Wish): [shown: Shown, again: () => void] {
  const { client, store } = useHub()
  const paused = useLive((live) => live.link.state === 'paused')
  const [shown, setShown] = useState<Shown>({ state: 'waiting' })
  const [attempt, setAttempt] = useState(0)
  const latest = useRef(wish)
  latest.current = wish
  const { subject, range, stepMs, intervalMs } = wish
  const query: HistoryQuery = {
    metric: wish.metrics,
    step: stepMs / 1000,
    ...(range.kind === 'live'
      ? { range: range.preset.id }
      : { start: Math.floor(range.from / 1000), end: Math.ceil(range.to / 1000) }),
  }
  const key = JSON.stringify([subject, query])
  const isLive = range.kind === 'live' && !paused
  const seen = useRef('')
  const isAsking = useRef(false)

  // biome-ignore lint/correctness/useExhaustiveDependencies: `key` stands for subject and query; another attempt asks again
  useEffect(() => {
    const asking = new AbortController()
    const { crosshair } = latest.current
    let timer: ReturnType<typeof setTimeout> | undefined
    let failures = 0
    let due = false
    const later = (ms: number) => {
      timer = setTimeout(() => {
        due = true
        look()
      }, ms)
    }
    const look = () => {
      if (!due || crosshair.current().held || document.hidden) return
      due = false
      void ask()
    }
    const ask = async () => {
      let isFilling = false
      isAsking.current = true
      try {
        const view = await askHistory(client, subject, query, asking.signal)
        failures = 0
        isFilling = view.filling !== undefined
        seen.current = key
        const until = range.kind === 'live' ? store.clock.now() : range.to
        setShown({ state: 'here', picture: pictureOf(view, until), pending: false, problem: null })
      } catch (cause) {
        if (asking.signal.aborted) return
        const problem = problemOf(cause)
        failures++
        // What was shown stays while the same range is looked at again; another range has nothing to stay.
        setShown((before) =>
          before.state === 'here' && seen.current === key
            ? { ...before, pending: false, problem }
            : { state: 'failed', problem },
        )
      }
      if (!asking.signal.aborted) isAsking.current = false
      if (!(isLive || (isFilling && !paused)) || asking.signal.aborted) return
      const pause = isFilling ? fillingPauseMs : refreshMs(stepMs, intervalMs)
      later(failures === 0 ? pause : backOffMs(failures, pause, 10 * pause))
    }
    setShown((before) => {
      if (before.state === 'here' && sameSubject(seen.current, key)) return { ...before, pending: seen.current !== key }
      return { state: 'waiting' }
    })
    void ask()
    const stopLooking = crosshair.subscribe(look)
    document.addEventListener('visibilitychange', look)
    return () => {
      asking.abort()
      clearTimeout(timer)
      stopLooking()
      document.removeEventListener('visibilitychange', look)
    }
  }, [client, store, key, isLive, paused, attempt])
  const again = useCallback(() => setAttempt((count) => count + 1), [])
  useReturn(shown.state === 'waiting' ? null : shown.problem, again, () => isAsking.current)
  return [shown, again]
}

/** So often a past that is being filled is looked at, also where the range is fixed. */
const fillingPauseMs = 1000

const subjectOf = (key: string): unknown => (key === '' ? null : (JSON.parse(key) as unknown[])[0])
const sameSubject = (one: string, other: string): boolean =>
  JSON.stringify(subjectOf(one)) === JSON.stringify(subjectOf(other))
