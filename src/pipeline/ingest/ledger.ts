import { createHash } from 'node:crypto'
import {
  type Batch,
  type ClusterName,
  inRanges,
  isClusterName,
  type Loss,
  originalIntervalMs,
  ownerOf,
  type Ranges,
  type SequenceRange,
  withRange,
} from '#model'
import { holesBetween, lastSeen, paceAfter, UNPLANNED_MS } from './agent-holes.ts'
import { HISTORY, isFor, STATE } from './audience.ts'
import { coveredWith, type Known, type Live } from './choose-use.ts'
import type { LogEntry } from './log-record.ts'
import { HUB_ORIGIN, isAgent, PULL } from './origins.ts'
import { type Neighbours, type Run, withRun } from './runs.ts'

/** Runs of sequences kept per origin: as many holes, less one. */
export const MAX_RANGES = 1024
/** Spans of time kept per origin. */
export const MAX_SPANS = 512
/** Origins kept per cluster. */
export const MAX_ORIGINS = 16
/** Holes of a cluster that wait to be written into the log. */
const MAX_UNTOLD = 64

interface Origin {
  received: Ranges
  covered: Ranges
  /** of an agent: the same numbers as in `received` with the times at their ends, as far as those are known */
  runs: readonly Run[]
  /** index of the newest record of it */
  heardAt: number
}

interface Book {
  intervalMs: number
  live: Live | undefined
  /** collection time of the newest round that state takes, whatever its end, ms; 0: none */
  roundAt: number
  readonly origins: Map<string, Origin>
  /** spans of time that were declared lost, by agents or by the hub */
  named: Ranges
  /** holes that were found and are not in the log yet */
  untold: readonly Loss[]
}

/**
 * What was received of every cluster, by origin: a pure consequence of the log's records, in order. It knows a record only
 * when it is synced. Bounded: beyond MAX_RANGES runs of sequences the oldest hole counts as received (whoever numbers with
 * a thousand holes loses the batches of the first), beyond MAX_SPANS the oldest span is forgotten, beyond MAX_ORIGINS the
 * origin that was silent for the longest.
 */
export class Ledger {
  readonly #books: Map<ClusterName, Book>
  readonly #onHoleClosed: (cluster: ClusterName, origin: string, hole: SequenceRange) => void
  #position: number

  constructor(
    onHoleClosed: (cluster: ClusterName, origin: string, hole: SequenceRange) => void,
    { position, books }: Snapshot = { position: -1, books: new Map() },
  ) {
    this.#onHoleClosed = onHoleClosed
    this.#position = position
    this.#books = books
  }

  /** index of the newest record in it; -1 before the first */
  position(): number {
    return this.#position
  }

  received(cluster: ClusterName, origin: string): Ranges {
    return this.#books.get(cluster)?.origins.get(origin)?.received ?? []
  }

  has(cluster: ClusterName, origin: string, sequence: number): boolean {
    return inRanges(this.received(cluster, origin), sequence)
  }

  /** the highest of the hub's own rounds */
  newestPull(cluster: ClusterName): number {
    return this.received(cluster, PULL).at(-1)?.[1] ?? 0
  }

  /** the newest batch that state takes, whether or not it has it yet */
  live(cluster: ClusterName): Live | undefined {
    return this.#books.get(cluster)?.live
  }

  /** when the newest round that state takes was collected, whether or not it has it yet; 0: there was none */
  roundAt(cluster: ClusterName): number {
    return this.#books.get(cluster)?.roundAt ?? 0
  }

  known(cluster: ClusterName, intervalMs: number): Known {
    const book = this.#books.get(cluster)
    const covered = [...(book?.origins ?? [])].map(([origin, { covered }]) => [origin, covered] as const)
    return { live: book?.live, covered, intervalMs }
  }

  /** Whether an agent numbered a batch just before this one that is neither here nor declared. */
  isAwaited(cluster: ClusterName, origin: string, sequence: number): boolean {
    return isAgent(origin) && sequence > 1 && !this.has(cluster, origin, sequence - 1)
  }

  /** The interval that rounds of this origin keep, ms: the one in force, or a longer one that they were seen to keep. */
  paceMs(cluster: ClusterName, origin: string, intervalMs: number): number {
    const known = this.#books.get(cluster)?.origins.get(origin)
    if (origin === PULL) return intervalMs
    const ownMs = isAgent(origin)
      ? known?.runs.at(-1)?.paceMs || UNPLANNED_MS
      : paceOfSpans(known?.covered ?? [], intervalMs)
    return Math.max(intervalMs, ownMs)
  }

  clusters(): readonly ClusterName[] {
    return [...this.#books.keys()]
  }

  /** Holes between the batches of agents that are to be written into the log, each as a loss for history. */
  untold(cluster: ClusterName): readonly Loss[] {
    return this.#books.get(cluster)?.untold ?? []
  }

  /** clusters with such holes */
  withUntold(): readonly ClusterName[] {
    return [...this.#books].filter(([, { untold }]) => untold.length > 0).map(([cluster]) => cluster)
  }

  /** What state has of a cluster, where the log that told of it is gone. What is known from the log is newer. */
  seed(cluster: ClusterName, intervalMs: number, live: Live | undefined): void {
    const book = this.#bookOf(cluster)
    book.intervalMs ||= intervalMs
    if (!live || live.sequence === 0) return
    book.live ??= live
    this.#receive(cluster, live.origin, [live.sequence, live.sequence], -1)
  }

  /**
   * What state has of a cluster, where that is newer than anything in this log: another manager wrote it, by a log of its own. Rounds of
   * the hub are numbered on from there. A batch of an agent is not taken for received: its samples may be in no history.
   */
  follow(cluster: ClusterName, live: Live): void {
    const book = this.#bookOf(cluster)
    if (live.sequence === 0 || !isNewer(live, book.live)) return
    book.live = live
    if (live.origin === PULL) this.#receive(cluster, PULL, [live.sequence, live.sequence], -1)
  }

  /** A record that is synced; in the order of the log. One that was noted before changes nothing. */
  note({ record, audience }: LogEntry, index: number): void {
    if (index <= this.#position) return
    this.#position = index
    switch (record.kind) {
      case 'batch':
        // What history made of records of the first version is not told by them.
        this.#noteBatch(record.batch, index, isFor(audience, STATE), audience?.has(HISTORY) === true)
        return
      case 'lost':
        this.#noteLoss(record.cluster, record.loss, index)
        return
      case 'connection':
        this.#bookOf(record.cluster).intervalMs = record.connection.intervalMs
        return
      case 'removed':
        this.#books.delete(record.cluster)
        return
      case 'agent':
      case 'unread':
      case 'source-removed':
    }
  }

  snapshot(): Snapshot {
    return { position: this.#position, books: this.#books }
  }

  #noteLoss(cluster: ClusterName, { origin, sequence, lost, from, to, cause, count }: Loss, index: number): void {
    const book = this.#bookOf(cluster)
    // What was not received may be found to have another cause.
    if (count > 0 && from <= to && cause !== 'not_received')
      book.named = withRange(book.named, [from, to]).slice(-MAX_SPANS)
    // Told by the hub of itself: there is no numbering behind it.
    if (origin === HUB_ORIGIN) {
      book.untold = book.untold.filter((hole) => hole.from !== from || hole.to !== to || hole.cause !== cause)
      return
    }
    for (const range of [[sequence, sequence] as const, ...lost]) {
      this.#receive(cluster, origin, range, index)
      this.#join(book, origin, { first: range[0], last: range[1], paceMs: 0 })
    }
  }

  #noteBatch(batch: Batch, index: number, isForState: boolean, isForHistory: boolean): void {
    const { cluster, origin = PULL, sequence, collectedAt: at } = batch
    this.#receive(cluster, origin, [sequence, sequence], index)
    const book = this.#bookOf(cluster)
    if (isForState) book.live = { origin, sequence, at }
    if (isForState && !batch.partial) book.roundAt = at
    const known = book.origins.get(origin)
    // What MetricSources saw between two rounds is no reason to leave out a round of another origin.
    if (known && !batch.partial && isForHistory)
      known.covered = coveredWith(known.covered, at, book.intervalMs).slice(-MAX_SPANS)
    // What is made up has holes on purpose.
    if (!batch.simulated) this.#join(book, origin, runOf(batch, isForHistory))
  }

  /** Beside what was received: finds the holes in time that this number closes in between. */
  #join(book: Book, name: string, run: Run): void {
    const origin = book.origins.get(name)
    if (!origin || !isAgent(name)) return
    const meet = (pair: Neighbours): number => {
      const holes = holesBetween(pair, besideOf(book), run.last)
      book.untold = [...book.untold, ...holes].slice(-MAX_UNTOLD)
      return paceAfter(pair, book.intervalMs)
    }
    const known = firstRound(origin.runs)
    origin.runs = withRun(origin.runs, run, meet).slice(-MAX_RANGES)
    const first = firstRound(origin.runs)
    const before = first && !known ? lastBefore(book, name, first.at) : undefined
    if (first && before) meet({ before, after: first, paceMs: 0 })
  }

  #receive(cluster: ClusterName, name: string, [first, last]: SequenceRange, index: number): void {
    const { origins } = this.#bookOf(cluster)
    let origin = origins.get(name)
    if (!origin) {
      origin = { received: [], covered: [], runs: [], heardAt: index }
      origins.set(name, origin)
      if (origins.size > MAX_ORIGINS) forgetSilent(origins, name)
    }
    origin.heardAt = Math.max(origin.heardAt, index)
    const received = withRange(origin.received, [name === PULL ? 1 : first, last])
    origin.received = bounded(received, (hole) => this.#onHoleClosed(cluster, name, hole))
  }

  #bookOf(cluster: ClusterName): Book {
    let book = this.#books.get(cluster)
    if (!book) {
      book = { intervalMs: 0, live: undefined, roundAt: 0, origins: new Map(), named: [], untold: [] }
      this.#books.set(cluster, book)
    }
    return book
  }
}

function runOf({ sequence, collectedAt: at, durationMs, partial, failure }: Batch, hasSamples: boolean): Run {
  const seen = { at, until: at + durationMs, isRead: hasSamples || !failure }
  return { first: sequence, last: sequence, ...(!partial && { head: seen, tail: seen }), paceMs: 0 }
}

/** The interval of a collector of the original: rounds in one span keep the one in force. */
function paceOfSpans(covered: Ranges, intervalMs: number): number {
  const last = covered.slice(-4)
  return last.some(([first, end]) => end > first) ? intervalMs : originalIntervalMs(last.map(([first]) => first))
}

/** The first round of an agent, where all that it numbered before is here; a declared loss or a MetricSource may have the first number. */
const firstRound = ([run]: readonly Run[]) => (run?.first === 1 ? run.head : undefined)

/** Before the first round of a new agent: the last of a former one; where there was none, of anybody else. */
function lastBefore({ origins }: Book, name: string, at: number) {
  const others = [...origins].filter(([other]) => other !== name)
  const spansOf = (some: typeof others) => some.map(([, { covered }]) => covered)
  return lastSeen(spansOf(others.filter(([other]) => isAgent(other))), at) ?? lastSeen(spansOf(others), at)
}

function besideOf({ origins, named, intervalMs }: Book) {
  const spans = [...[...origins.values()].map(({ covered }) => covered), named]
  const cut = spans.filter(({ length }) => length >= MAX_SPANS).map((ranges) => ranges[0]?.[0] ?? 0)
  return { intervalMs, spans, knownFrom: Math.max(0, ...cut) }
}

function bounded(ranges: Ranges, onHoleClosed: (hole: SequenceRange) => void): Ranges {
  let received = ranges
  while (received.length > MAX_RANGES) {
    const [[start, end], [next, newEnd]] = received as [SequenceRange, SequenceRange]
    onHoleClosed([end + 1, next - 1])
    received = [[start, newEnd], ...received.slice(2)]
  }
  return received
}

function forgetSilent(origins: Map<string, Origin>, newest: string): void {
  let silent: string | undefined
  for (const [name, { heardAt }] of origins) {
    if (name === newest || name === PULL) continue
    if (silent === undefined || heardAt < (origins.get(silent)?.heardAt ?? 0)) silent = name
  }
  if (silent !== undefined) origins.delete(silent)
}

export interface Snapshot {
  readonly position: number
  readonly books: Map<ClusterName, Book>
  /** the log that told of some clusters was gone when it was made: what state has of them is to be added */
  readonly incomplete?: boolean
}

/**
 * The books of all former ledgers by their new owner, the first at 0. A cluster that several tell of has received what any
 * of them says. The former ledgers are not to be used after it.
 */
export function dividedBooks(
  former: readonly Snapshot[],
  of: number,
  onHoleClosed: (cluster: ClusterName, origin: string, hole: SequenceRange) => void,
): Snapshot['books'][] {
  const divided = Array.from({ length: of }, (): Snapshot['books'] => new Map())
  for (const { books } of former) {
    for (const [cluster, book] of books) {
      const mine = divided[ownerOf(cluster, of) - 1]
      const known = mine?.get(cluster)
      const close = (origin: string, hole: SequenceRange) => onHoleClosed(cluster, origin, hole)
      mine?.set(cluster, known ? mergedBook(known, book, close) : book)
    }
  }
  return divided
}

function mergedBook(one: Book, other: Book, onHoleClosed: (origin: string, hole: SequenceRange) => void): Book {
  const [older, newer] = isNewer(one.live, other.live) ? [other, one] : [one, other]
  const intervalMs = newer.intervalMs || older.intervalMs
  const origins = new Map(older.origins)
  for (const [name, mine] of newer.origins) {
    const known = origins.get(name)
    if (!known) {
      origins.set(name, mine)
      continue
    }
    const received = union(known.received, mine.received, 1)
    origins.set(name, {
      received: bounded(received, (hole) => onHoleClosed(name, hole)),
      covered: union(known.covered, mine.covered, 1.5 * intervalMs).slice(-MAX_SPANS),
      runs: mine.runs.reduce((runs, run) => withRun(runs, run, (pair) => pair.paceMs), known.runs).slice(-MAX_RANGES),
      heardAt: Math.max(known.heardAt, mine.heardAt),
    })
  }
  while (origins.size > MAX_ORIGINS) forgetSilent(origins, PULL)
  const named = union(older.named, newer.named, 1).slice(-MAX_SPANS)
  const untold = [...older.untold, ...newer.untold].slice(-MAX_UNTOLD)
  const roundAt = newer.roundAt || older.roundAt
  return { intervalMs, live: newer.live, roundAt, origins, named, untold }
}

const union = (one: Ranges, other: Ranges, reach: number): Ranges =>
  other.reduce((ranges, range) => withRange(ranges, range, reach), one)

function isNewer(live: Live | undefined, than: Live | undefined): boolean {
  if (!live || !than) return live !== undefined
  return live.origin === than.origin ? live.sequence > than.sequence : live.at > than.at
}

const digestOf = (text: string) => createHash('sha256').update(text).digest('base64')

/** The ledger as a file: a checksum, then everything. @param logId the log whose indices it speaks of */
export function encodeSnapshot({ position, books, incomplete }: Snapshot, logId: string): string {
  const clusters = [...books].map(([name, { intervalMs, live, roundAt, origins, named, untold }]) => [
    name,
    intervalMs,
    live ? [live.origin, live.sequence, live.at] : 0,
    [...origins].map(([origin, { received, covered, heardAt, runs }]) => [origin, received, covered, heardAt, runs]),
    { named, untold, roundAt },
  ])
  const text = JSON.stringify({ version: 1, log: logId, position, ...(incomplete && { incomplete }), clusters })
  return `${digestOf(text)}\n${text}\n`
}

/** undefined: damaged, of another log, or of a version we do not know; then the log is read from its beginning. */
export function decodeSnapshot(file: string, logId: string): Snapshot | undefined {
  const [digest, text = ''] = file.split('\n')
  if (digestOf(text) !== digest) return undefined
  const value = JSON.parse(text) as StoredSnapshot // its checksum is right: it is what we wrote
  if (value.version !== 1 || value.log !== logId) return undefined
  const books = new Map<ClusterName, Book>()
  // Former versions wrote neither runs, nor what was named, nor the newest round.
  for (const [name, intervalMs, live, origins, beside = { named: [], untold: [] }] of value.clusters) {
    if (!isClusterName(name)) continue
    const { named, untold, roundAt = 0 } = beside
    books.set(name, {
      intervalMs,
      live: live ? { origin: live[0], sequence: live[1], at: live[2] } : undefined,
      roundAt,
      origins: new Map(
        origins.map(([origin, received, covered, heardAt, runs = []]) => [
          origin,
          { received, covered, heardAt, runs },
        ]),
      ),
      named,
      untold,
    })
  }
  return { position: value.position, books, ...(value.incomplete && { incomplete: true }) }
}

interface StoredSnapshot {
  readonly version: number
  readonly log: string
  readonly position: number
  readonly incomplete?: boolean
  readonly clusters: readonly [
    name: string,
    intervalMs: number,
    live: [origin: string, sequence: number, at: number] | 0,
    origins: [origin: string, received: Ranges, covered: Ranges, heardAt: number, runs?: readonly Run[]][],
    beside?: { readonly named: Ranges; readonly untold: readonly Loss[]; readonly roundAt?: number },
  ][]
}
