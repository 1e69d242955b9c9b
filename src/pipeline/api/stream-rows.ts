import type { AccessView } from '#access'
import type { RowsAgeView } from '#http'
import type { RowKind } from '#metricsource'
import { type ClusterState, FleetError, Table } from '#model'
import { isFleetKind } from '#resources'
import { type ClusterSets, requireSets, withSetOfRows } from './cluster-sets.ts'
import { placedAt, sortValues } from './row-order.ts'
import { plainFault } from './seen-status.ts'
import { Frame } from './stream-frame.ts'
import type { FleetHistory, Past } from './stream-history.ts'
import { type Fate, LeftRows, type RowName } from './stream-left.ts'
import type { RowsAsked } from './stream-query.ts'
import { type Incoming, RowsWindow, type WindowRow, windowDifference } from './stream-window.ts'
import { type Located, orderedRows, pageOfRows } from './type-rows.ts'
import { measuredView, neverRead, sourceView } from './type-views.ts'
import type { VisibleType, VisibleTypes } from './visible-types.ts'

/** Rows of one message. */
const rowsPerFrame = 500
/** Without `limit` a stream carries no more. */
export const maxStreamedRows = 50_000
/** One snapshot serves all who come within this; what moved meanwhile follows it. */
const sameSnapshotMs = 500
/** What is told of a difference of more texts is a new beginning. */
const maxChanges = 20_000
/** Steps from places of the past to the present, kept until that moves. */
const maxStepsKept = 64

interface FeedParts {
  readonly types: VisibleTypes
  readonly sets: ClusterSets
  readonly history: FleetHistory
  readonly now: () => number
}

/** What one who holds the feed's rows at one place must be told to hold them at another. */
export interface FeedStep {
  readonly from: number
  readonly to: number
  /** by place of the query; none: nothing to tell */
  frame(query: number): Frame | undefined
}

/** Rows that differ between two places: a row that changed is in both. */
interface Delta {
  readonly gone: readonly Located[]
  readonly come: readonly Located[]
  /** clusters of which nothing is shown any more, or not known what was */
  readonly cleared: readonly string[]
  /** of the clusters, as they are told */
  readonly ages: readonly string[]
}

/**
 * Rows of one query by one access view: as they are, and what changed. Who asks for the same shares it. Nothing walks all rows for one
 * change: tables tell by their chunks which rows differ, and only of these is asked who may see them and whether they match.
 */
export class RowsFeed {
  readonly key: string
  /** who holds the rows of one with an equal one may go on with this */
  readonly rowsKey: string
  readonly asked: RowsAsked
  accessView: AccessView
  /** how many groups of clients have it */
  users = 0
  /** why it cannot be answered; undefined: it can */
  ended: { readonly code: string; readonly reason: string } | undefined
  /** what is told of the last change */
  last: FeedStep | undefined
  /** rises when what was told counts no more */
  epoch = 0
  readonly #parts: FeedParts
  #clusters: ReadonlySet<string> | undefined
  /** where rows of a set, or of the fleet, were told anew: they have no history, so nobody goes on from there or before */
  #toldAnewAt = -1
  #kind: RowKind | undefined
  #typesVersion = -1
  #fleetVersion = ''
  #fleetTurnsAt = Number.POSITIVE_INFINITY
  #fleetType: VisibleType | undefined
  #place = -1
  #total = 0
  #window: RowsWindow | undefined
  #left = new LeftRows()
  #snapshot: RowsSnapshot | undefined
  /** by the place they begin at: readers who fell behind mostly did so at once */
  readonly #steps = new Map<number, FeedStep>()
  #also: FeedStep | undefined

  constructor(parts: FeedParts, accessView: AccessView, asked: RowsAsked) {
    this.#parts = parts
    this.accessView = accessView
    this.asked = asked
    this.key = feedKey(accessView, asked)
    this.rowsKey = JSON.stringify([accessView.fingerprint, asked.rowsText])
    this.#begin()
  }

  get isOfFleet(): boolean {
    return this.#kind !== undefined && isFleetKind(this.#kind)
  }

  /** Clusters whose usage it shows now: of a window those of its rows. */
  looked(): readonly string[] {
    if (this.ended || !this.#kind?.measured) return []
    const shown = this.#window ? new Set(this.#window.shown.map(({ cluster }) => cluster)) : this.#clusters
    const isShown = (cluster: ClusterState) => shown?.has(cluster.name) ?? true
    const { accessView } = this
    const clusters = this.#parts.history.clusters().filter((one) => isShown(one) && accessView.canSee(one))
    return clusters.filter((one) => accessView.usage(one)).map(({ name }) => name)
  }

  /** Where its rows are now. */
  get place(): number {
    return this.#place
  }

  /**
   * Declarations changed, or there was nothing of this name and something moved: what the name means is asked again, and everything
   * told anew.
   * @returns whether it is
   */
  renew(): boolean {
    const { types, history } = this.#parts
    const isTurned = this.#typesVersion !== types.version()
    const isRetried = this.ended?.code === 'type_not_found' && this.#place !== history.place
    const isMoved = this.#isSetMoved()
    if (!isTurned && !isRetried && !isMoved) return false
    const before = this.ended ? undefined : this.#kind
    this.#typesVersion = types.version()
    if (before && !isMoved && this.#meant() === before) return false
    const wasEnded = this.ended !== undefined
    this.#begin()
    if (wasEnded && this.ended) return false
    this.epoch += 1
    return true
  }

  /** Whether rows that are of no cluster may have changed. */
  fleetMoved(): boolean {
    if (!this.isOfFleet || this.ended) return false
    const { types, now } = this.#parts
    return types.fleetVersion() !== this.#fleetVersion || now() >= this.#fleetTurnsAt
  }

  /** Whether who holds the rows of this place may be told what moved since, and no more. */
  goesOnFrom(place: number): boolean {
    return place > this.#toldAnewAt
  }

  /** Goes on to what the history says now. */
  advance(): void {
    const { place } = this.#parts.history
    if (this.#place === place || this.ended) return
    this.#steps.clear()
    const from = this.#place
    const past = this.#parts.history.since(from)
    // It would keep the rows of its time alive.
    if (this.#snapshot && this.#parts.now() - this.#snapshot.at >= sameSnapshotMs) this.#snapshot = undefined
    this.#guarded(() => {
      if (!past) {
        this.epoch += 1
        this.#begin()
        return
      }
      const delta = this.#delta(past)
      const [before, total] = [this.#window, this.#total]
      const texts = this.#take(delta)
      const all = [
        ...delta.cleared.map(clearText),
        ...(before ? this.#windowTexts(before, delta) : texts),
        ...delta.ages,
      ]
      this.#place = place
      this.last = this.#step(from, all, total)
      if (!this.asked.limit && this.#total > maxStreamedRows) this.#end('too_many_rows', this.#tooMany(this.#total))
    })
  }

  /**
   * What one who holds the rows of a place in the past must be told.
   * @returns undefined: that is not known, or a new beginning is shorter
   */
  since(place: number): FeedStep | undefined {
    this.advance()
    if (this.ended || !this.goesOnFrom(place)) return undefined
    if (place === this.#place) return this.#step(place, [], this.#total)
    if (this.last?.from === place && this.last.to === this.#place) return this.last
    const step = this.#steps.get(place) ?? this.#sincePast(place)
    if (step && this.#steps.size < maxStepsKept) this.#steps.set(place, step)
    return step
  }

  #sincePast(place: number): FeedStep | undefined {
    const past = this.#parts.history.since(place)
    if (!past || this.isOfFleet) return undefined
    return this.#guarded(() => {
      const delta = this.#delta(past)
      const clears = delta.cleared.map(clearText)
      if (!this.#window) {
        if (delta.gone.length + delta.come.length > maxChanges) return undefined
        const total = delta.cleared.length > 0 ? undefined : this.#total - delta.come.length + delta.gone.length
        return this.#step(place, [...clears, ...changeTexts(delta), ...delta.ages], total)
      }
      // What it was is what it is, with the difference taken back.
      if ([...past.values()].includes('unknown')) return undefined
      const before = this.#window.moved(this.#incoming(delta.come), this.#incoming(delta.gone))
      if (!before) return undefined
      const rows = this.#left.texts(windowDifference(before, this.#window), fateBy(delta))
      const texts = [...clears, ...rows, ...delta.ages]
      return this.#step(place, texts, before.total)
    })
  }

  /** All rows, frame by frame. @param isNew those of the present; else they may be of a moment ago. @returns undefined where the query has ended */
  snapshot(isNew = false): RowsSnapshot | undefined {
    this.advance()
    if (this.ended) return undefined
    const now = this.#parts.now()
    const known = this.#snapshot
    if (known && known.epoch === this.epoch) {
      // Rows of the fleet have no history to go on from.
      const isFresh = !isNew && !this.isOfFleet && Math.abs(now - known.at) < sameSnapshotMs
      if (isFresh || known.place === this.#place) return known
    }
    return this.#guarded(() => {
      const on = this.#types()
      const pages = this.#window ? textPages(this.#window.shown.map(({ json }) => json)) : rowPages(on, this.#filters)
      const head = {
        source: on[0] ? sourceView(on[0].source, on) : null,
        clusters: on.map((type) => ageOf(type)),
      }
      this.#snapshot = new RowsSnapshot({
        pages,
        head,
        total: this.#total,
        place: this.#place,
        epoch: this.epoch,
        at: now,
      })
      return this.#snapshot
    })
  }

  /** What became of rows that somebody asks for besides: for who has just begun, or come back. @returns undefined: there is nothing to tell */
  alsoFrame(query: number): Frame | undefined {
    const { also } = this.asked
    if (!also || this.ended) return undefined
    if (this.#also?.to !== this.#place) {
      const texts = this.#guarded(() => this.#left.asked(this.#fateNow(also)))
      this.#also = this.#step(this.#place, texts ?? [], this.#total)
    }
    return this.#also.frame(query)
  }

  endFrame(query: number): Frame {
    const { code = 'ended', reason = '' } = this.ended ?? {}
    return new Frame('rowsEnd', JSON.stringify({ query, code, reason }))
  }

  // ── where it is ────────────────────────────────────────────────────────────────────────────────────────────────────

  #begin(): void {
    const { history, types } = this.#parts
    this.ended = undefined
    this.last = undefined
    this.#snapshot = undefined
    this.#window = undefined
    this.#left = new LeftRows()
    this.#steps.clear()
    this.#also = undefined
    this.#place = history.place
    this.#typesVersion = types.version()
    this.#guarded(() => {
      this.#kind = this.#meant()
      if (this.asked.set !== undefined || this.isOfFleet) this.#toldAnewAt = this.#place
      if (this.asked.set !== undefined && this.#kind) requireSets(this.#kind, this.asked)
      this.#clusters = this.#clustersAsked()
      const on = this.#kind ? this.#types() : []
      if (!this.#kind || !this.#isSeen(this.#kind))
        return this.#end('type_not_found', `there are no ${this.asked.type} that you may see`)
      const { limit } = this.asked
      if (limit) this.#window = this.#newWindow(on, limit)
      this.#left = new LeftRows((this.asked.also ?? []).map(rowNamed), this.#window?.shown)
      this.#total = this.#window?.total ?? pageOfRows(on, { sort: 'cluster', ...this.#filters, limit: 1 }).total
      if (!limit && this.#total > maxStreamedRows) this.#end('too_many_rows', this.#tooMany(this.#total))
    })
  }

  #newWindow(on: readonly VisibleType[], limit: number): RowsWindow {
    const { sort = 'cluster', order = 'asc', cursor } = this.asked
    const after = cursor === undefined ? {} : { after: placedAt(cursor, sort, order) }
    const page = pageOfRows(on, { ...this.#filters, sort, order, limit: RowsWindow.capacity(limit) })
    return new RowsWindow(this.#windowRows(page.rows), page.total, { limit, order, ...after }, page.next === null)
  }

  /** undefined: all. @throws RefusedError `set_not_found` */
  #clustersAsked(): ReadonlySet<string> | undefined {
    const { cluster, set } = this.asked
    const named = cluster && new Set(cluster)
    if (set === undefined) return named
    const { accessView } = this
    const seen = this.#parts.history.clusters().filter((one) => accessView.canSee(one))
    const inSet = this.#parts.sets.names(set, seen, accessView.administrator)
    if (this.isOfFleet) return named
    return named ? new Set([...inSet].filter((name) => named.has(name))) : inSet
  }

  /** What is asked of the rows, with the set that they themselves are in. */
  get #filters(): RowsAsked {
    return withSetOfRows(this.#kind, this.asked)
  }

  /** Its set has other clusters by now, or is there or gone. */
  #isSetMoved(): boolean {
    if (this.asked.set === undefined) return false
    const before = this.#clusters ?? new Set()
    try {
      const now = [...(this.#clustersAsked() ?? [])]
      return this.ended?.code === 'set_not_found' || now.length !== before.size || now.some((name) => !before.has(name))
    } catch (error) {
      if (!(error instanceof FleetError)) throw error
      return this.ended?.code !== error.code
    }
  }

  /** Unknown and denied everywhere go the same way. */
  #isSeen(kind: RowKind): boolean {
    const { accessView } = this
    if (accessView.administrator || isFleetKind(kind)) return true
    const { history, types } = this.#parts
    return history.clusters().some((cluster) => accessView.canSee(cluster) && types.on(accessView, cluster, kind))
  }

  #tooMany(total: number): string {
    return `${total} rows match, and a stream carries ${maxStreamedRows}: ask for less with where, q, namespace or cluster, or for the first of them with limit`
  }

  #end(code: string, reason: string): void {
    this.ended = { code, reason }
    this.#snapshot = undefined
  }

  /** What cannot be asked ends the query, with the words for it. */
  #guarded<T>(work: () => T): T | undefined {
    try {
      return work()
    } catch (error) {
      if (!(error instanceof FleetError)) throw error
      this.#end(error.code, error.message)
      return undefined
    }
  }

  #meant(): RowKind | undefined {
    const { types, history } = this.#parts
    const seen = history.clusters().filter((cluster) => this.accessView.canSee(cluster))
    const kinds = types.meant(this.asked.type, this.accessView, seen)
    return this.asked.source === undefined ? kinds[0] : kinds.find(({ id }) => id === this.asked.source)
  }

  #types(): readonly VisibleType[] {
    if (!this.isOfFleet) return this.#parts.history.clusters().flatMap((cluster) => this.#on(cluster) ?? [])
    this.#fleetType ??= this.#readFleet()
    return this.#clusters ? [] : [this.#fleetType]
  }

  #readFleet(): VisibleType {
    const { types, now } = this.#parts
    this.#fleetVersion = types.fleetVersion()
    this.#fleetTurnsAt = types.fleetTurnsAt(now())
    // A kind of the fleet stands at one place.
    return types.over(this.accessView, [], this.#kind as RowKind)[0] as VisibleType
  }

  #on(cluster: ClusterState | undefined): VisibleType | undefined {
    if (!cluster || !this.#kind || (this.#clusters && !this.#clusters.has(cluster.name))) return undefined
    return this.accessView.canSee(cluster) ? this.#parts.types.on(this.accessView, cluster, this.#kind) : undefined
  }

  /** What rows are now, whether they changed or not. A row that may not be seen is gone, as one that is not there. */
  #fateNow(keys: readonly string[]): Fate {
    const names = keys.map(rowNamed)
    const found = [...new Set(names.map(({ cluster }) => cluster))].flatMap((name) => {
      const type = this.isOfFleet
        ? this.#types().find(({ cluster }) => cluster.name === name)
        : this.#on(this.#parts.history.cluster(name))
      if (!type) return []
      const rows = rowsOf(type)
      const places = names.filter(({ cluster }) => cluster === name).map(({ id }) => placeOf(rows, id))
      const rising = [...new Set(places)].filter((place) => place >= 0).sort((left, right) => left - right)
      return this.#matching(this.#only(type, rows.only(rising)))
    })
    const now = new Map(found.map((row) => [keyAt(row), row]))
    return (key) => {
      const row = now.get(key)
      return row ? { json: rowText(row) } : 'gone'
    }
  }

  // ── what changed ───────────────────────────────────────────────────────────────────────────────────────────────────

  #delta(past: ReadonlyMap<string, Past>): Delta {
    const [gone, come]: [Located[], Located[]] = [[], []]
    const cleared: string[] = []
    const ages: string[] = []
    const add = (name: string, before: VisibleType | undefined | 'unknown', now: VisibleType | undefined): void => {
      const known = before === 'unknown' ? undefined : before
      if (before === 'unknown' || (before && !now)) cleared.push(name)
      const step = this.#stepOf(known, now)
      gone.push(...step.gone)
      come.push(...step.come)
      if (now && (!known || ageText(known) !== ageText(now))) ages.push(ageText(now))
    }
    if (this.isOfFleet) {
      const before = this.#fleetType
      if (this.fleetMoved()) this.#fleetType = this.#readFleet()
      if (before && before !== this.#fleetType) add('', before, this.#fleetType)
      return { gone, come, cleared, ages }
    }
    const { history } = this.#parts
    for (const [name, before] of past) {
      if (this.#clusters && !this.#clusters.has(name)) continue
      const now = history.cluster(name)
      if (before === now || (before !== 'unknown' && before && now && !mayDiffer(before, now))) continue
      add(name, before === 'unknown' ? before : this.#on(before), this.#on(now))
    }
    return { gone, come, cleared, ages }
  }

  #stepOf(before: VisibleType | undefined, now: VisibleType | undefined): Pick<Delta, 'gone' | 'come'> {
    if (!before || !now) return { gone: this.#matching(before), come: this.#matching(now) }
    const [older, newer] = [rowsOf(before), rowsOf(now)]
    const isSameRule = sameBasis(before, now)
    if (older === newer && measuredOf(before) === measuredOf(now) && isSameRule) return { gone: [], come: [] }
    if (!isSameRule) return { gone: this.#matching(before), come: this.#matching(now) }
    const moved = this.#parts.history.moved(
      { rows: older, measured: measuredOf(before) },
      { rows: newer, measured: measuredOf(now) },
    )
    return { gone: this.#matching(this.#only(before, moved.before)), come: this.#matching(this.#only(now, moved.now)) }
  }

  /** @returns undefined: none of them is asked for or may be seen, as most that move for those who see a namespace */
  #only(type: VisibleType, rows: Table): VisibleType | undefined {
    const { namespace } = this.asked
    if (rows.size === 0 || (namespace !== undefined && !hasNamespace(rows, namespace))) return undefined
    const only = type.only(rows)
    return only.count > 0 ? only : undefined
  }

  #matching(type: VisibleType | undefined): readonly Located[] {
    if (!type) return []
    const { sort: _, order: __, ...filters } = this.#filters
    return orderedRows([type], filters)
  }

  /** @returns what to tell of rows where there is no window */
  #take(delta: Delta): string[] {
    if (!this.#window) {
      this.#total += delta.come.length - delta.gone.length
      return changeTexts(delta)
    }
    const moved = this.#window.moved(this.#incoming(delta.gone), this.#incoming(delta.come))
    this.#window = moved ?? this.#newWindow(this.#types(), this.asked.limit ?? 1)
    this.#total = this.#window.total
    return []
  }

  #windowTexts(before: RowsWindow, delta: Delta): string[] {
    return this.#window ? this.#left.take(windowDifference(before, this.#window), fateBy(delta)) : []
  }

  #incoming(rows: readonly Located[]): Incoming[] {
    const { sort = 'cluster' } = this.asked
    let [of, values]: [VisibleType?, ReturnType<typeof sortValues>?] = []
    return rows.map((located) => {
      const { type, place } = located
      if (of !== type || !values) [of, values] = [type, sortValues(type, sort)]
      const [namespace, name, id] = [type.rows.namespaceAt(place), type.rows.nameAt(place), type.rows.idAt(place)]
      const cluster = type.cluster.name
      const key = keyOf(cluster, id)
      return { value: values(place), cluster, namespace, name, id, key, render: () => rowText(located) }
    })
  }

  #windowRows(rows: readonly Located[]): WindowRow[] {
    return this.#incoming(rows).map(({ render, ...row }) => ({ ...row, json: render() }))
  }

  /** @param before how many rows there were; undefined: that is not known */
  #step(from: number, texts: readonly string[], before: number | undefined): FeedStep {
    const frames = new Map<number, Frame>()
    const [total, now, to] = [this.#total, this.#parts.now(), this.#place]
    return {
      from,
      to,
      frame: (query) => {
        if (texts.length === 0 && before === total) return undefined
        const known = frames.get(query)
        if (known) return known
        const json = `{"query":${query},"changes":[${texts.join(',')}],"total":${total},"now":${now}}`
        const made = new Frame('rowsChange', json)
        frames.set(query, made)
        return made
      },
    }
  }
}

export const feedKey = ({ fingerprint }: AccessView, { text }: RowsAsked): string => JSON.stringify([fingerprint, text])

interface SnapshotParts {
  readonly pages: Iterator<readonly string[]>
  readonly head: object
  readonly total: number
  readonly place: number
  readonly epoch: number
  readonly at: number
}

/** All rows of one place, made frame by frame as somebody takes them, once for all who do. */
export class RowsSnapshot {
  readonly place: number
  readonly epoch: number
  readonly at: number
  readonly #parts: SnapshotParts
  readonly #pages: (readonly string[])[] = []
  readonly #frames = new Map<string, Frame>()
  #isDone = false

  constructor(parts: SnapshotParts) {
    this.#parts = parts
    this.place = parts.place
    this.epoch = parts.epoch
    this.at = parts.at
  }

  /** @returns undefined behind the last */
  frame(number: number, query: number): Frame | undefined {
    // Which is the last shows when the one behind it is asked for.
    while (!this.#isDone && this.#pages.length <= number + 1) this.#more()
    const page = this.#pages[number]
    if (!page && number > 0) return undefined
    const key = `${number} ${query}`
    const known = this.#frames.get(key)
    if (known) return known
    const { head, total, at } = this.#parts
    const isLast = this.#isDone && number >= this.#pages.length - 1
    const facts = { query, from: number * rowsPerFrame, total, isLast, now: at, ...(number === 0 && head) }
    const made = new Frame('rows', `${JSON.stringify(facts).slice(0, -1)},"items":[${(page ?? []).join(',')}]}`)
    this.#frames.set(key, made)
    return made
  }

  #more(): void {
    const { done, value } = this.#parts.pages.next()
    if (done) this.#isDone = true
    else this.#pages.push(value)
  }
}

function* textPages(texts: readonly string[]): Generator<readonly string[]> {
  for (let from = 0; from < texts.length; from += rowsPerFrame) yield texts.slice(from, from + rowsPerFrame)
}

/** Cluster by cluster: what is not taken is not made. */
function* rowPages(
  on: readonly VisibleType[],
  { sort: _, order: __, ...filters }: RowsAsked,
): Generator<readonly string[]> {
  let page: string[] = []
  for (const type of on) {
    for (const located of orderedRows([type], filters)) {
      page.push(rowText(located))
      if (page.length < rowsPerFrame) continue
      yield page
      page = []
    }
  }
  if (page.length > 0) yield page
}

// ── texts ────────────────────────────────────────────────────────────────────────────────────────────────────────────

const keyOf = (cluster: string, id: string): string => `${cluster}/${id}`

/** What such a key names. */
function rowNamed(key: string): RowName {
  const mark = key.indexOf('/')
  return { key, cluster: key.slice(0, Math.max(0, mark)), id: key.slice(mark + 1) }
}

/** @returns below 0: there is no such row */
function placeOf(rows: Table, id: string): number {
  const mark = id.indexOf('/')
  return rows.indexOf(id.slice(0, Math.max(0, mark)), id.slice(mark + 1))
}

const keyAt = ({ type, place }: Located): string => keyOf(type.cluster.name, type.rows.idAt(place))

/** Rows of a step are few. Of more nothing is kept, which would live as long as their table. */
const maxTextsKept = 64

/** Texts of the rows of a step, by place: queries and access views that show the very same rows tell them alike. */
const knownTexts = new WeakMap<Table, TextsOfRows>()

interface TextsOfRows {
  readonly cluster: string
  readonly source: RowKind
  readonly texts: (string | undefined)[]
}

function rowText({ type, place }: Located): string {
  const { rows, cluster, source } = type
  if (rows.size > maxTextsKept) return newText(type, place)
  const known = knownTexts.get(rows) ?? { cluster: cluster.name, source, texts: [] }
  if (known.cluster !== cluster.name || known.source !== source) return newText(type, place)
  knownTexts.set(rows, known)
  const text = known.texts[place] ?? newText(type, place)
  known.texts[place] = text
  return text
}

function newText({ cluster, source, rows }: VisibleType, place: number): string {
  const row = rows.row(place)
  return JSON.stringify({ cluster: cluster.name, id: rows.idAt(place), ...row, name: source.rowName(row.name) })
}

const clearText = (cluster: string): string => JSON.stringify({ op: 'clear', cluster })

/** What became of rows that differ, which are looked through where it is asked at all. */
function fateBy({ gone, come, cleared }: Delta): Fate {
  let differing: Map<string, Located | null> | undefined
  return (key) => {
    differing ??= new Map([
      ...gone.map((row) => [keyAt(row), null] as const),
      ...come.map((row) => [keyAt(row), row] as const),
    ])
    const now = differing.get(key)
    if (now) return { json: rowText(now) }
    // Of a cluster that is told anew all rows have come.
    return now === null || cleared.includes(rowNamed(key).cluster) ? 'gone' : undefined
  }
}

/** Rows that are in both and say the same are not told. */
function changeTexts({ gone, come, cleared }: Delta): string[] {
  const isCleared = new Set(cleared)
  const before = new Map(gone.map((row) => [keyAt(row), row]))
  const puts: string[] = []
  for (const row of come) {
    const key = keyAt(row)
    const known = before.get(key)
    before.delete(key)
    const text = rowText(row)
    if (!known || rowText(known) !== text) puts.push(`{"op":"put","row":${text}}`)
  }
  const removes = [...before.values()]
    .filter(({ type }) => !isCleared.has(type.cluster.name))
    .map(({ type, place }) => JSON.stringify({ op: 'remove', cluster: type.cluster.name, id: type.rows.idAt(place) }))
  return [...removes, ...puts]
}

/** Of a state of a cluster, by kind and by how much the caller may know. */
const knownAges = new WeakMap<ClusterState, Map<string, string>>()

/** What is told of the age of rows: many queries and access views ask for the same. */
function ageText(type: VisibleType): string {
  const { source, custom, cluster, measured } = type
  const made = (): string => JSON.stringify({ op: 'age', age: ageOf(type) })
  if (isFleetKind(source)) return made()
  const ofCluster = knownAges.get(cluster) ?? new Map<string, string>()
  knownAges.set(cluster, ofCluster)
  const key = `${source.id} ${source.hash} ${custom.whole} ${measured !== undefined}`
  const text = ofCluster.get(key) ?? made()
  ofCluster.set(key, text)
  return text
}

/** As far as the caller may know: what is written by name does not leak. */
function ageOf(type: VisibleType): RowsAgeView {
  const { state, custom, cluster, staleAt } = type
  const { outcome, code, message, attemptedAt, freshness } = state ?? neverRead(type)
  return {
    cluster: cluster.name,
    outcome,
    code,
    message: custom.whole || outcome === 'complete' || !state ? message : plainFault(outcome),
    attemptedAt,
    freshness: freshness && {
      observedAt: freshness.observedAt,
      receivedAt: freshness.receivedAt,
      source: freshness.source,
    },
    filtered: !custom.whole,
    staleAt: Number.isFinite(staleAt) ? staleAt : null,
    ...(type.measured && { measured: measuredView(type.measured, custom.whole) }),
  }
}

// ── what differs ─────────────────────────────────────────────────────────────────────────────────────────────────────

const mayDiffer = (before: ClusterState, now: ClusterState): boolean =>
  before.tables !== now.tables || before.parts !== now.parts || before.connection !== now.connection

const rowsOf = ({ state }: VisibleType): Table => state?.rows ?? Table.empty

/** Whether the same rows would be seen and told the same way. */
function sameBasis({ custom: one }: VisibleType, { custom: other }: VisibleType): boolean {
  if (one.whole !== other.whole || one.metrics !== other.metrics || one.result !== other.result) return false
  return one.basis.length === other.basis.length && one.basis.every((each, at) => each === other.basis[at])
}

function hasNamespace(rows: Table, namespace: string): boolean {
  for (let place = 0; place < rows.size; place++) if (rows.namespaceAt(place) === namespace) return true
  return false
}

const measuredOf = ({ measured }: VisibleType): Table => measured?.rows ?? Table.empty
