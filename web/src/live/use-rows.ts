import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { type Client, type FleetRowView, type RowsPageQuery, rowKey } from '../contract.ts'
import { anythingBeyond, type Beyond } from '../model/ordered-rows.ts'
import { fleetAnswer, fleetId } from './fleet-answer.ts'
import { useHub, useLive } from './hooks.ts'
import type { RowsBesides } from './live-rows.ts'
import type { Live } from './live-store.ts'
import { beyondRead, RowOverlay, type ToldRows } from './overlay-rows.ts'
import { readBeside } from './read-beside.ts'
import { useRefresh } from './refresh.ts'
import { firstPageSize, type Paged, RowPages, type RowsAnswer, type ShownRow } from './row-pages.ts'
import { isWithin, type RowsLook, type RowsWindow, topWindow, windowAt } from './rows-window.ts'
import { useReturn } from './use-return.ts'

export interface RowsShown {
  readonly paged: Paged
  /** of rows that are not among these */
  readonly beyond: Beyond<ShownRow>
  /** what is shown answers the question before; this one is on its way */
  readonly pending: boolean
  readonly want: (count: number) => void
  /** somebody looks at these places */
  readonly look: (from: number, to: number) => void
  /** ids of rows that are shown though they may be none of these any more; asked when the stream is opened */
  readonly keep: (ids: RowsBesides) => void
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

const ownId = ({ id }: Pick<FleetRowView, 'id'>) => id

interface RowsOptions {
  /** the first so many are read at once and followed, and no more; default: as far as somebody scrolls */
  readonly size?: number
  /** all of them are looked at with each change: none is packed */
  readonly unpacked?: boolean
}

/** Every frame of a fleet may touch a type: that many are not worth a look each. */
const leastFleetMs = 3000
/** Who has not scrolled on for so long looks. */
const restMs = 150

/**
 * Rows of a type: read page by page as far as somebody scrolls, and those around where somebody looks as the stream tells them, as soon
 * as they move. What is beyond, and everything without the stream, is read again when something of its clusters moved.
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
  const isRefused = !pending && paged.state === 'failed' && paged.problem.status === 400
  const isAsked = (size !== undefined || loaded > 0 || !pending) && !isRefused && isShort(query)
  const [looked, look] = useLook()
  const [chosen, setChosen] = useState({ key, window: topWindow })
  const window = chosen.key === key ? chosen.window : topWindow
  const limit = size ?? (window.cursor === undefined ? topLimit(loaded, window.limit) : window.limit)
  const isCarried = isAsked && (window.cursor ?? '').length <= longestCursor
  const kept = useRef<RowsBesides>(nothingKept)
  const keep = useCallback((ids: RowsBesides) => {
    kept.current = ids
  }, [])
  const besides = useCallback(
    () => (cluster === null ? kept.current() : kept.current().map((id) => rowKey(cluster, id))),
    [cluster],
  )
  const told = useToldRows(isCarried ? { cluster, type, question: key } : null, { ...window, limit }, besides)
  const overlay = useMemo(() => new RowOverlay(cluster === null ? fleetId : ownId), [cluster])
  const isHeard = useLive(({ link }) => link.state === 'live')
  const over = useMemo(() => {
    if (paged.state !== 'here' || pending || !told) return null
    // What was read after the stream broke off is newer than what it told.
    return isHeard || told.heardAt >= paged.readAt ? overlay.over(paged, told, store.clock.now()) : null
  }, [paged, pending, told, isHeard, overlay, store])
  useEffect(() => {
    if (size !== undefined || paged.state !== 'here' || pending) return
    const now = told?.cursor === window.cursor && over ? { ...window, at: over.from } : window
    if (isWithin(looked, now, paged.rows.size)) return
    const next = windowAt(looked, paged.starts)
    if (next.cursor !== window.cursor || next.limit !== window.limit) setChosen({ key, window: next })
  }, [size, paged, pending, told, over, window, looked, key])
  // What could not be read before, such as a kind that is new, can be now.
  const isBehind = over?.isBehind === true || (paged.state === 'failed' && told?.held.isWhole === true)
  // biome-ignore lint/correctness/useExhaustiveDependencies: each state that is behind asks again
  useEffect(() => {
    if (isBehind) pages.current?.refreshInTurn()
  }, [isBehind, told])

  const again = useCallback(() => pages.current?.again(), [])
  const isLive = isHeard && told?.held.isWhole === true && over?.reaches !== false
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
    const beyond = over?.beyond ?? (paged.state === 'here' ? beyondRead(paged) : anythingBeyond)
    return {
      paged: isOfNow && now.state === 'here' ? { ...now, problem: null } : now,
      beyond,
      pending,
      want,
      look,
      keep,
      again,
    }
  }, [over, paged, isOfNow, pending, want, look, keep, again])
}

const nothingKept: RowsBesides = () => []

/** As many of the first rows as were read, or are read ahead of a first look. */
const topLimit = (loaded: number, most: number): number =>
  Math.min(most, Math.max(firstPageSize, Math.ceil(loaded / firstPageSize) * firstPageSize))

/** Where somebody looks, once they stopped scrolling. */
function useLook(): [looked: RowsLook, look: (from: number, to: number) => void] {
  const [looked, setLooked] = useState<RowsLook>({ from: 0, to: 0 })
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(() => () => clearTimeout(timer.current), [])
  const look = useCallback((from: number, to: number) => {
    clearTimeout(timer.current)
    timer.current = setTimeout(() => setLooked({ from, to }), restMs)
  }, [])
  return [looked, look]
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

interface Told extends ToldRows {
  readonly revision: number
  /** ms of `performance.now` */
  readonly heardAt: number
}

/** Between two looks at what the stream tells passes so many times as long as the last one took to draw. */
const restFactor = 4

/** What the stream holds of this window, as often as there is time to draw it. null: nothing is asked. */
function useToldRows(
  asked: { readonly cluster: string | null; readonly type: string; readonly question: string } | null,
  { at, cursor, limit }: RowsWindow,
  besides: RowsBesides,
): Told | null {
  const { store } = useHub()
  const key = asked && JSON.stringify(asked)
  const [told, setTold] = useState<{ readonly key: string; readonly told: Told } | null>(null)
  const drawing = useRef({ began: 0, ended: 0 })
  useEffect(() => {
    if (key === null) return
    const { cluster, type, question } = JSON.parse(key) as NonNullable<typeof asked> // what was made a text above
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
        ...(cursor !== undefined && { cursor }),
        limit,
      },
      ({ held, revision }) => {
        newest = { held, revision, heardAt: performance.now(), at, cursor, limit }
        const { began, ended } = drawing.current
        const rest = Number.isFinite(ended) ? ended + (ended - began) * restFactor - performance.now() : 0
        timer ??= setTimeout(look, Math.max(0, rest))
      },
      besides,
    )
    return () => {
      leave()
      clearTimeout(timer)
    }
  }, [store, key, at, cursor, limit, besides])
  useEffect(() => {
    if (told !== null) drawing.current = { ...drawing.current, ended: performance.now() }
  }, [told])
  // While another window is on its way the one before is still true.
  return told && told.key === key ? told.told : null
}

/** A stream that is asked what it cannot take carries nothing at all: neither longer words nor a longer cursor. */
const longestCursor = 2048
const isShort = ({ q = '', where = [] }: RowsPageQuery): boolean =>
  q.length <= 200 && where.length <= 10 && where.every((condition) => condition.length <= 512)
