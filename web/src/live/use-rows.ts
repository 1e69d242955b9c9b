import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import type { Client, FleetRowView, HeldRows, RowsPageQuery } from '../contract.ts'
import { fleetAnswer, fleetId } from './fleet-answer.ts'
import { useHub, useLive } from './hooks.ts'
import type { Live } from './live-store.ts'
import { RowOverlay } from './overlay-rows.ts'
import { readBeside } from './read-beside.ts'
import { useRefresh } from './refresh.ts'
import { firstPageSize, type Paged, pageSize, RowPages, type RowsAnswer } from './row-pages.ts'
import { useReturn } from './use-return.ts'

export interface RowsShown {
  readonly paged: Paged
  /** what is shown answers the question before; this one is on its way */
  readonly pending: boolean
  readonly want: (count: number) => void
  readonly again: () => void
}

/** `set`: only clusters in it, where rows of all are asked for. */
type RowsQuestion = RowsPageQuery & { readonly set?: string }

type Ask = (page: RowsQuestion, signal: AbortSignal) => Promise<RowsAnswer>

function ofCluster(client: Client, cluster: string, type: string): Ask {
  return async (question, signal) => {
    const { items, on, ...page } = await client.customRows(cluster, type, question, signal)
    return { ...page, items: items.map((row) => ({ ...row, cluster, rowId: row.id })), on: [on] }
  }
}

/** @param isLong rows are looked at as somebody scrolls: they come packed */
function ofFleet(client: Client, type: string, aggregations: boolean, isLong: boolean): Ask {
  return async (question, signal) => {
    const asked = { ...question, aggregations }
    // Short, and waited for, is the first page alone.
    if (!isLong || question.cursor === undefined) return fleetAnswer(await client.fleetRows(type, asked, signal))
    return readBeside(await client.fleetRowsBody(type, asked, signal))
  }
}

const ownId = (row: FleetRowView) => row.id

interface RowsOptions {
  /** the first so many are read at once and followed, and no more; default: as far as somebody scrolls */
  readonly size?: number
  /** all of them are looked at with each change: none is packed */
  readonly unpacked?: boolean
}

/** Every frame of a fleet may touch a type: that many are not worth a look each. */
const leastFleetMs = 3000
/** The stream tells the first rows, as far as somebody has scrolled, up to this many: as many as are read ahead of a first look. */
const mostLive = pageSize

/**
 * Rows of a type: read page by page as far as somebody scrolls, and the first of them as the stream tells them, as soon as they
 * move. What reaches beyond those, and everything without the stream, is read again when something of its clusters moved.
 * Another question keeps the old rows until it is answered.
 * @param cluster null: of all clusters
 */
export function useRows(
  cluster: string | null,
  type: string,
  query: RowsQuestion,
  { size, unpacked = false }: RowsOptions = {},
): RowsShown {
  const { client, store } = useHub()
  const key = JSON.stringify(query)
  const [shown, setShown] = useState<{ key: string; paged: Paged }>({ key: '', paged: { state: 'waiting' } })
  const pages = useRef<RowPages>(undefined)

  useEffect(() => {
    const question = JSON.parse(key) as RowsQuestion // what was made a text above
    const ask =
      cluster === null ? ofFleet(client, type, size === undefined, !unpacked) : ofCluster(client, cluster, type)
    const own = new RowPages({
      ask: (page, signal) => ask({ ...question, ...page }, signal),
      onChange: (paged) => setShown({ key, paged }),
      ...(size !== undefined && { firstSize: size }),
      ...(cluster === null && { leastMs: leastFleetMs }),
      ...(unpacked && { unpacked: Number.POSITIVE_INFINITY }),
    })
    pages.current = own
    own.refresh()
    return () => own.end()
  }, [client, cluster, type, key, size, unpacked])

  const { paged } = shown
  const pending = shown.key !== key
  const loaded = paged.state === 'here' && !pending ? paged.rows.size : 0
  const limit = size ?? Math.min(mostLive, Math.max(firstPageSize, Math.ceil(loaded / firstPageSize) * firstPageSize))
  const isRefused = !pending && paged.state === 'failed' && paged.problem.status === 400
  const isAsked = (size !== undefined || loaded > 0 || !pending) && !isRefused && isShort(query)
  const told = useToldRows(isAsked ? { cluster, type, question: key, limit } : null)
  const overlay = useMemo(() => new RowOverlay(cluster === null ? fleetId : ownId), [cluster])
  const over = useMemo(
    () => (paged.state === 'here' && !pending && told ? overlay.over(paged, told.held, store.clock.now()) : null),
    [paged, pending, told, overlay, store],
  )
  // What could not be read before, such as a kind that is new, can be now.
  const isBehind = over?.isBehind === true || (paged.state === 'failed' && told?.held.isWhole === true)
  // biome-ignore lint/correctness/useExhaustiveDependencies: each state that is behind asks again
  useEffect(() => {
    if (isBehind) pages.current?.refreshInTurn()
  }, [isBehind, told])

  const again = useCallback(() => pages.current?.again(), [])
  const isLive = useLive(({ link }) => link.state === 'live') && told?.held.isWhole === true && over?.reaches !== false
  // What the stream tells whole is of now, whatever became of the last look at it.
  const isOfNow = isLive && over !== null
  const problem = paged.state === 'waiting' || isOfNow ? null : paged.problem
  useReturn(problem, again, () => pages.current?.isAsking === true)
  // What the stream tells is no news of the fleet.
  const watched = useRef<unknown>(undefined)
  useRefresh(
    useCallback(
      ({ fleet }: Live): unknown => {
        if (!isLive) watched.current = cluster === null ? fleet.clusters : fleet.clusters.get(cluster)
        return watched.current
      },
      [cluster, isLive],
    ),
    useCallback(() => pages.current?.refreshInTurn(), []),
    cluster === null ? leastFleetMs : undefined,
  )
  const want = useCallback((count: number) => pages.current?.want(count), [])
  return useMemo(() => {
    const now = over?.paged ?? paged
    return { paged: isOfNow && now.state === 'here' ? { ...now, problem: null } : now, pending, want, again }
  }, [over, paged, isOfNow, pending, want, again])
}

/** The first rows of a question and no more. Of another question nothing is shown until it is answered. */
export function useFirstRows(
  cluster: string | null,
  type: string,
  query: RowsQuestion,
  size: number,
): [paged: Paged, again: () => void] {
  const { paged, pending, again } = useRows(cluster, type, query, { size })
  return [pending ? waiting : paged, again]
}

const waiting: Paged = { state: 'waiting' }

interface Told {
  readonly held: HeldRows
  readonly revision: number
}

/** Between two looks at what the stream tells passes so many times as long as the last one took to draw. */
const restFactor = 4

/** What the stream holds of this window, as often as there is time to draw it. null: nothing is asked. */
function useToldRows(
  asked: {
    readonly cluster: string | null
    readonly type: string
    readonly question: string
    readonly limit: number
  } | null,
): Told | null {
  const { store } = useHub()
  const key = asked && JSON.stringify(asked)
  const [told, setTold] = useState<{ readonly key: string; readonly told: Told } | null>(null)
  const drawing = useRef({ began: 0, ended: 0 })
  useEffect(() => {
    if (key === null) return
    const { cluster, type, question, limit } = JSON.parse(key) as NonNullable<typeof asked> // what was made a text above
    let timer: ReturnType<typeof setTimeout> | undefined
    let newest: Told | undefined
    const look = () => {
      timer = undefined
      if (!newest) return
      drawing.current = { began: performance.now(), ended: Number.POSITIVE_INFINITY }
      setTold({ key, told: newest })
    }
    const leave = store.followRows(
      {
        type,
        ...(cluster !== null && { cluster: [cluster] }),
        sort: cluster === null ? 'cluster' : 'name',
        ...(JSON.parse(question) as RowsQuestion),
        limit,
      },
      ({ held, revision }) => {
        newest = { held, revision }
        const { began, ended } = drawing.current
        const rest = Number.isFinite(ended) ? ended + (ended - began) * restFactor - performance.now() : 0
        timer ??= setTimeout(look, Math.max(0, rest))
      },
    )
    return () => {
      leave()
      clearTimeout(timer)
    }
  }, [store, key])
  useEffect(() => {
    if (told !== null) drawing.current = { ...drawing.current, ended: performance.now() }
  }, [told])
  // While a longer window is on its way the shorter one is still true.
  return told && key !== null && sameQuestion(told.key, key) ? told.told : null
}

/** A stream that is asked what it cannot take carries nothing at all. */
const isShort = ({ q = '', where = [] }: RowsPageQuery): boolean =>
  q.length <= 200 && where.length <= 10 && where.every((condition) => condition.length <= 512)

const sameQuestion = (a: string, b: string): boolean => withoutLimit(a) === withoutLimit(b)
const withoutLimit = (key: string): string => key.replace(/,"limit":\d+\}$/, '')
