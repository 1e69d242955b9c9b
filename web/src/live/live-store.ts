import type { ApiProblem, Client, ClusterView, RowsStreamQuery, StreamMessage } from '../contract.ts'
import { backOffMs } from './back-off.ts'
import { applyMessage, emptyFleet, type Fleet, forget } from './fleet.ts'
import { HubClock } from './hub-clock.ts'
import { type LiveRows, RowQueries, type RowsBesides } from './live-rows.ts'
import { isGone, problemOf } from './problem.ts'
import { streamKinds } from './stream-share.ts'

/*
 *   connecting ──open──▶ live ──error──▶ reconnecting ──10 s──▶ polling ──stream opens again──▶ live
 *        │                 │                   │                   │
 *        │                 └──hidden 5 min / pause──▶ paused ──shown / resume──▶ connecting
 *        └──401, 403──▶ refused                └──nothing answers──▶ offline ──an answer──▶ polling
 *
 * A stream that breaks off, or says nothing for longer than a heartbeat takes, does not show that the hub is gone: it is asked.
 * Where nothing is there to answer, the page is offline at once; a hub that answers slowly, or hangs, is only waited for.
 * Where it answers and the stream says nothing all the same, the stream is opened anew, once; what then is not heard is not live.
 * Timers that fire late, as in a tab that slept, claim nothing: the hub is asked again. Messages that waited meanwhile are of the
 * past: what is there now is asked for instead.
 *
 * `access` says that what may be seen has changed: the snapshot after it replaces everything. Where nothing may be shown
 * (refused, session ended, policies cannot be read), nothing is kept either.
 */
export type Link =
  | { readonly state: 'connecting' | 'live' | 'reconnecting' | 'polling' | 'offline' }
  | { readonly state: 'paused'; readonly by: 'hidden' | 'person' }
  | { readonly state: 'refused'; readonly problem: ApiProblem }

export interface Live {
  readonly fleet: Fleet
  readonly link: Link
  /** by the hub's clock: the last message or answer, heartbeats included; null before the first */
  readonly heardAt: number | null
  /** by the hub's clock: since when the stream is gone or silent and nothing else has answered; null: the hub is heard */
  readonly waitingSince: number | null
  /** the last refusal of polling; null when the last poll was answered */
  readonly problem: ApiProblem | null
  /** by the hub's clock: when what may be seen last became another while this tab looked; null: it did not */
  readonly accessChangedAt: number | null
}

export interface LiveStoreOptions {
  readonly client: Client
  readonly openStream?: (url: string) => EventSource
  readonly clock?: HubClock
  readonly random?: () => number
  readonly timing?: Partial<typeof defaultTiming>
}

const defaultTiming = {
  /** how long a stream may be silent before it is opened anew: a first picture may take its time on a slow line */
  silenceMs: 40_000,
  /** after so long a silence the hub is asked whether it is there: heartbeats come every second */
  quietMs: 1_600,
  /** how soon it is asked after a stream broke off, at least and at most: not by all pages at once */
  brokenMs: 200,
  mostBrokenMs: 700,
  /** a hub that has not answered by then is not known to be there; together with the silence before less than 3 s */
  answerMs: 1_000,
  /** what is answered so late still shows that it is there */
  slowAnswerMs: 10_000,
  /** it is asked again after this, so that a hub that comes to itself is not met by all that was asked */
  againMs: 5_000,
  /** a stream that stays silent for so long after the hub has answered is opened anew: that goes on where it stands */
  stallMs: 1_000,
  /** a stream that has said nothing for so long, opened anew or not, is not live */
  lostMs: 5_000,
  /** a timer that fires so much later than it should says nothing of the hub: the machine slept, or the tab was held back */
  lateMs: 1_000,
  /** a message that was longer on its way waited while the machine slept, or the tab was held back */
  pastMs: 3_000,
  /** what is late all the same is taken: the stream is opened anew for it no more often than this */
  wakeMs: 10_000,
  /** how long the browser may try by itself before we poll */
  patienceMs: 10_000,
  pollMs: 30_000,
  /** how long a stream that is tried between polls may be silent, before the next of them */
  tryMs: 10_000,
  mostMs: 300_000,
  mostAwayMs: 8_000,
  /** how long what was shown may stay after it was said that access changed */
  outdatedMs: 1_000,
  /** somebody sits before an empty page: what can be shown again is shown soon */
  mostBlindMs: 15_000,
  hiddenMs: 300_000,
  /** how soon after rows began anew it is looked whether others are shown that the stream does not tell of: they are drawn by then, or soon */
  besidesMs: [500, 1500, 4000] as readonly number[],
  /** how long a cluster that nobody shows any more is still followed */
  lingerMs: 60_000,
}

/** Of the clusters that are followed the page takes events; of the rows that come along the type that has the fewest. */
const fewest = ['clusterOperator'] as const

/** One stream per tab, and what came of it. Everything on the page reads from here. */
export class LiveStore {
  readonly clock: HubClock
  readonly #client: Client
  readonly #openStream: (url: string) => EventSource
  readonly #random: () => number
  readonly #timing: typeof defaultTiming
  readonly #listeners = new Set<() => void>()
  #live: Live = {
    fleet: emptyFleet,
    link: { state: 'connecting' },
    heardAt: null,
    waitingSince: null,
    problem: null,
    accessChangedAt: null,
  }

  #source: EventSource | undefined
  #lastEventId = ''
  /** clusters the page shows, by how many show them */
  readonly #wanted = new Map<string, number>()
  /** what the open stream carries */
  #covered = new Set<string>()
  readonly #rows = new RowQueries()
  #timers = new Map<string, ReturnType<typeof setTimeout>>()
  #attempt = 0
  /** of a stream, since the hub was polled first */
  #tries = 0
  #polling: AbortController | undefined
  #asking: AbortController | undefined
  /** the stream was opened anew since it last said something, for the hub answers */
  #isRetried = false
  /** the open stream has said something, and all that it began with */
  #hasSpoken = false
  #isSynced = false
  /** it broke off, and the browser has it resumed as it was asked for */
  #isResumed = false
  /** ms of `performance.now`: the last message, and when a stream that had stalled was last opened anew */
  #spokeMs = 0
  #renewedMs = Number.NEGATIVE_INFINITY
  /** and when it was for messages of the past */
  #wokeMs = Number.NEGATIVE_INFINITY
  #started = false

  constructor({ client, openStream, clock, random, timing }: LiveStoreOptions) {
    this.#client = client
    this.#openStream = openStream ?? ((url) => new EventSource(url))
    this.clock = clock ?? new HubClock()
    this.#random = random ?? Math.random
    this.#timing = { ...defaultTiming, ...timing }
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  readonly current = (): Live => this.#live

  start(): void {
    if (this.#started) return
    this.#started = true
    this.#open()
  }

  stop(): void {
    this.#started = false
    this.#close()
    for (const timer of this.#timers.values()) clearTimeout(timer)
    this.#timers.clear()
  }

  /** Stops, and keeps nothing: nobody is signed in any more. */
  leave(): void {
    this.stop()
    this.#lastEventId = ''
    this.#forget()
  }

  /** Asks what happens on a cluster for as long as somebody shows it. @returns the end of that */
  follow(cluster: string): () => void {
    this.#wanted.set(cluster, (this.#wanted.get(cluster) ?? 0) + 1)
    this.#later('cover', 0, () => this.#cover())
    return () => {
      const users = (this.#wanted.get(cluster) ?? 1) - 1
      if (users > 0) {
        this.#wanted.set(cluster, users)
        return
      }
      this.#wanted.delete(cluster)
      this.#later('linger', this.#timing.lingerMs, () => this.#cover(true))
    }
  }

  /**
   * Rows of one kind as the stream tells them, for as long as somebody shows them.
   * @param listener is given each state that is told whole; the same object each time, changed in place
   * @param besides rows outside of these that are shown, too: asked whenever the stream is opened
   * @returns the end of that
   */
  followRows(query: RowsStreamQuery, listener: (rows: LiveRows) => void, besides?: RowsBesides): () => void {
    const leave = this.#rows.follow(query, listener, besides)
    this.#later('cover', 0, () => this.#cover())
    return () => {
      if (leave()) this.#later('linger', this.#timing.lingerMs, () => this.#cover(true))
    }
  }

  /** The page was hidden or shown. A hidden page listens for a while, then rests. */
  setHidden(hidden: boolean): void {
    if (hidden) this.#later('hidden', this.#timing.hiddenMs, () => this.#rest('hidden'))
    else {
      this.#cancel('hidden')
      if (this.#live.link.state === 'paused' && this.#live.link.by === 'hidden') this.resume()
    }
  }

  pause(): void {
    this.#rest('person')
  }

  resume(): void {
    this.clock.forget()
    this.#set({ link: { state: 'connecting' } })
    this.#open()
  }

  /** Opens the stream anew where it stands: the old one would end with the session that has been renewed since. */
  reopen(): void {
    if (this.#source && this.#live.link.state === 'live') this.#open()
  }

  /** The change of access was read; it need not be told any longer. */
  noteRead(): void {
    this.#set({ accessChangedAt: null })
  }

  /** The network is another, or there again: goes on where the stream stands, at once. */
  catchUp(): void {
    this.#attempt = 0
    if (this.#live.link.state === 'paused') return
    this.clock.forget()
    this.#open()
  }

  /** Reads everything again now. */
  refresh(): void {
    this.#lastEventId = ''
    this.#attempt = 0
    if (this.#live.link.state === 'paused') void this.#poll()
    else this.#open()
  }

  #set(part: Partial<Live>): void {
    const next = { ...this.#live, ...part }
    const { state } = next.link
    const isWaiting = state === 'reconnecting' || state === 'connecting'
    this.#live = { ...next, waitingSince: isWaiting ? (next.waitingSince ?? this.clock.now()) : null }
    for (const listener of this.#listeners) listener()
  }

  #link(state: 'connecting' | 'live' | 'reconnecting' | 'polling' | 'offline'): void {
    if (this.#live.link.state !== state) this.#set({ link: { state } })
  }

  #cover(drop = false): void {
    if (!this.#started || this.#live.link.state === 'paused') return
    const missing = [...this.#wanted.keys()].some((key) => !this.#covered.has(key))
    const tooMuch = drop && ([...this.#covered].some((key) => !this.#wanted.has(key)) || this.#rows.isTooMuch)
    if (!missing && !tooMuch && !this.#rows.isMissing) return
    // Other rows beside the same clusters: the hub goes on with what it has told.
    if (missing || tooMuch) this.#lastEventId = ''
    this.#open()
  }

  #open(): void {
    this.#close()
    if (!this.#started) return
    this.#covered = new Set(this.#wanted.keys())
    this.#hasSpoken = false
    this.#isSynced = false
    this.#isResumed = false
    const url = this.#client.streamUrl({
      cluster: [...this.#wanted.keys()],
      ...(this.#wanted.size > 0 && { type: fewest }),
      rows: this.#rows.carry(),
      ...(this.#lastEventId && { lastEventId: this.#lastEventId }),
    })
    const source = this.#openStream(url)
    this.#source = source
    for (const kind of streamKinds) {
      source.addEventListener(kind, (event) => this.#hear(source, kind, event as MessageEvent<string>))
    }
    source.addEventListener('error', () => this.#failed(source))
    this.#listen()
    // Where it does not get through, what is shown is read meanwhile.
    if (this.#live.link.state === 'polling') this.#later('patience', this.#timing.tryMs, () => this.#fallBack())
  }

  /** From now on silence counts. */
  #listen(): void {
    this.#cancel('stalled')
    this.#later('silence', this.#timing.silenceMs, () => this.#silent())
    this.#later('ask', this.#timing.quietMs, () => void this.#ask())
  }

  #close(): void {
    this.#source?.close()
    this.#source = undefined
    this.#polling?.abort()
    this.#polling = undefined
    this.#asking?.abort()
    this.#asking = undefined
    for (const name of ['silence', 'ask', 'stalled', 'patience', 'poll', 'reopen', 'besides']) this.#cancel(name)
  }

  #hear(source: EventSource, kind: (typeof streamKinds)[number], event: MessageEvent<string>): void {
    if (source !== this.#source) return
    let message: StreamMessage
    try {
      message = { ...(JSON.parse(event.data) as object), kind } as StreamMessage // the hub's contract tests hold it to this
    } catch {
      // Half a message or a proxy's page: what we know may have a hole, so begin again.
      this.#lastEventId = ''
      this.#failed(source, true)
      return
    }
    if ('now' in message && this.#isPast(message.now)) {
      this.#wake()
      return
    }
    // Half a snapshot is nothing to resume after: it has an empty id.
    if (event.lastEventId || message.kind === 'snapshot') this.#lastEventId = event.lastEventId
    if ('now' in message) this.clock.observe(message.now)
    if (message.kind === 'reset') {
      this.#reset(source, message.reason)
      return
    }
    const isResumed = this.#isResumed
    this.#isResumed = false
    if (isResumed && this.#rows.isBesidesMissing) {
      this.#open()
      return
    }
    this.#attempt = 0
    this.#isRetried = false
    this.#hasSpoken = true
    this.#spokeMs = performance.now()
    if (message.kind === 'synced') this.#isSynced = true
    this.#asking?.abort()
    this.#cancel('patience')
    this.#listen()
    if (message.kind === 'rows' || message.kind === 'rowsChange' || message.kind === 'rowsEnd') {
      const isAgain = this.#rows.take(message)
      if (message.kind === 'rows' && message.from === 0) this.#askBesides()
      if (isAgain && this.#rows.isBesidesMissing) {
        // What was held is forgotten already.
        this.#lastEventId = ''
        this.#open()
        return
      }
      if (this.#live.waitingSince !== null) this.#set({ waitingSince: this.clock.now() })
      return
    }
    if (message.kind === 'access') this.#rows.forget()
    if (message.kind === 'synced') this.#rows.sync()
    const fleet = applyMessage(this.#live.fleet, message)
    // A stream that resumes sends no snapshot. It lives once it has said what is new of what we hold: rows come last.
    const isMoment = message.kind === 'synced' || (message.kind === 'heartbeat' && this.#isSynced)
    const isToldAll = this.#rows.isCarried ? isMoment : message.kind !== 'store'
    const live = fleet.loaded && (isToldAll || this.#live.link.state === 'live')
    this.#set({
      fleet,
      heardAt: this.clock.now(),
      ...(this.#live.waitingSince !== null && { waitingSince: this.clock.now() }),
      problem: live ? null : this.#live.problem,
      // The same object as long as it says the same: whoever shows it draws nothing.
      link: live && this.#live.link.state !== 'live' ? { state: 'live' } : this.#live.link,
      ...(fleet.epoch > this.#live.fleet.epoch && { accessChangedAt: this.clock.now() }),
    })
    if (!fleet.isOutdated) this.#cancel('outdated')
    else if (message.kind === 'access') this.#later('outdated', this.#timing.outdatedMs, () => this.#forget())
  }

  /** Behind this one more may wait, all of which would be shown as if it were so now. */
  #isPast(hubNow: number): boolean {
    const { pastMs, wakeMs } = this.#timing
    const isLate = this.#hasSpoken && this.clock.lateBy(hubNow) > pastMs
    return isLate && performance.now() - this.#wokeMs > wakeMs
  }

  /** Goes on where it stands, over another connection. */
  #wake(): void {
    this.#wokeMs = performance.now()
    this.#lose()
    // What is late there as well is so by a clock that was set.
    this.clock.forget()
    this.#open()
    if (this.#live.link.state === 'reconnecting') this.#bePatient()
  }

  /** What left while nothing was heard is known only once rows that began anew are drawn: it is asked for then. */
  #askBesides(looks = this.#timing.besidesMs): void {
    const [first, ...rest] = looks
    if (first === undefined) return
    this.#later('besides', first, () => {
      if (this.#isSynced && this.#live.link.state === 'live' && this.#rows.isBesidesMissing) this.#open()
      else this.#askBesides(rest)
    })
  }

  /** The last frame of a stream. The hub says at once why it refuses a new one, if it does: a poll asks for that. */
  #reset(source: EventSource, reason: string): void {
    this.#lastEventId = ''
    if (reason === 'policies_unavailable' || reason === 'session_ended') this.#forget()
    this.#failed(source, true)
  }

  #forget(): void {
    this.#rows.forget()
    if (this.#live.fleet.loaded) this.#set({ fleet: forget(this.#live.fleet) })
  }

  #silent(): void {
    this.#link('reconnecting')
    this.#open()
    this.#later('patience', this.#timing.patienceMs, () => this.#fallBack())
  }

  #failed(source: EventSource, broken = false): void {
    if (source !== this.#source) return
    if (this.#live.link.state === 'live') this.#link('reconnecting')
    this.#isResumed = true
    const closed = broken || source.readyState === 2 // CLOSED: the hub answered, but with no stream
    if (closed) {
      source.close()
      this.#fallBack()
    } else if (!this.#timers.has('patience')) {
      this.#later('patience', this.#timing.patienceMs, () => this.#fallBack())
      const { brokenMs, mostBrokenMs } = this.#timing
      this.#later('ask', brokenMs + (mostBrokenMs - brokenMs) * this.#random(), () => void this.#ask(true))
    }
  }

  /** Is the hub there? @param isBroken its stream broke off: one that answers is to open it again now */
  async #ask(isBroken = false): Promise<void> {
    this.#asking?.abort()
    const asking = new AbortController()
    this.#asking = asking
    const { answerMs, slowAnswerMs, lateMs, againMs } = this.#timing
    const atAll = AbortSignal.timeout(slowAnswerMs)
    const latest = Date.now() + answerMs + lateMs
    let answers = true
    try {
      const answer = this.#client.alive(AbortSignal.any([asking.signal, atAll]))
      if (!(await isWithin(answer, answerMs))) {
        if (asking.signal.aborted) return
        if (Date.now() > latest) {
          void this.#ask(isBroken)
          return
        }
        this.#lose()
        await answer
      }
    } catch (cause) {
      if (asking.signal.aborted) return
      const problem = problemOf(cause)
      answers = !atAll.aborted
      if (answers && isGone(problem)) {
        this.#close()
        this.#pollFailed(problem)
        return
      }
    }
    if (asking.signal.aborted) return
    // Once: a stream that breaks off again without a word does not get through, whoever answers.
    if (isBroken && answers && !this.#isRetried) {
      this.#isRetried = true
      this.#open()
      return
    }
    this.#later('ask', againMs, () => void this.#ask())
    if (answers) this.#awaitStream()
  }

  /** The hub is there, and its stream is silent, whether it was lost meanwhile or not. */
  #awaitStream(): void {
    const { state } = this.#live.link
    if (state !== 'live' && state !== 'reconnecting') return
    if (this.#timers.has('stalled') || this.#timers.has('patience')) return
    const { stallMs, lostMs, lateMs, silenceMs } = this.#timing
    const now = performance.now()
    // Seldom: on a slow line a long message is a silence, too.
    const isRenewed = this.#hasSpoken && now - this.#renewedMs > silenceMs
    const waitMs = isRenewed ? stallMs : Math.max(stallMs, lostMs - (now - this.#spokeMs))
    const latest = Date.now() + waitMs + lateMs
    this.#later('stalled', waitMs, () => {
      if (Date.now() > latest) {
        void this.#ask()
        return
      }
      if (isRenewed) {
        this.#renewedMs = performance.now()
        this.#open()
      } else this.#lose()
      if (this.#live.link.state === 'reconnecting') this.#bePatient()
    })
  }

  /** What is not live is read some time after the last message, however long the hub was waited for; a new stream has its chance. */
  #bePatient(): void {
    const { lostMs, patienceMs } = this.#timing
    const leftMs = lostMs + patienceMs - (performance.now() - this.#spokeMs)
    this.#later('patience', Math.max(patienceMs / 2, leftMs), () => this.#fallBack())
  }

  /** What is shown is of when the hub was last heard. */
  #lose(): void {
    if (this.#live.link.state !== 'live') return
    this.#set({ link: { state: 'reconnecting' }, waitingSince: this.#live.heardAt })
  }

  #fallBack(): void {
    for (const name of ['silence', 'ask', 'stalled']) this.#cancel(name)
    this.#asking?.abort()
    this.#source?.close()
    this.#source = undefined
    void this.#poll()
  }

  async #poll(): Promise<void> {
    this.#polling?.abort()
    const polling = new AbortController()
    this.#polling = polling
    try {
      const message = await this.#read(polling.signal)
      if (polling.signal.aborted) return
      const { link, problem } = this.#live
      const isFirst = link.state !== 'polling' || problem !== null
      this.#set({
        fleet: {
          ...applyMessage(this.#live.fleet, message),
          store: { state: 'available', since: null, reason: '' },
        },
        heardAt: this.clock.now(),
        problem: null,
      })
      if (this.#live.link.state === 'paused') return
      this.#link('polling')
      this.#attempt = 0
      // The first answer shows that the hub is there: its stream is tried soon, then less and less often, once per poll at least.
      if (isFirst) this.#tries = 0
      const { pollMs, tryMs } = this.#timing
      const betweenMs = Math.max(pollMs / 2, pollMs - tryMs)
      const wait = backOffMs(this.#tries++, 1000, betweenMs, this.#random)
      this.#later('reopen', wait, () => this.#open())
    } catch (cause) {
      if (polling.signal.aborted) return
      this.#pollFailed(cause)
    }
  }

  #pollFailed(cause: unknown): void {
    const problem = problemOf(cause)
    if (hides(problem)) this.#forget()
    if (problem.status === 401 || problem.status === 403) {
      this.#close()
      this.#set({ link: { state: 'refused', problem }, problem })
      return
    }
    if (this.#live.link.state === 'paused') {
      this.#set({ problem })
      return
    }
    // Another answer is news: a hub that is back but still loads is asked again soon.
    if (this.#live.problem?.code !== problem.code) this.#attempt = 0
    this.#set({ problem, link: { state: problem.status === 0 ? 'offline' : 'polling' } })
    // A hub that restarts is back within seconds; one that answers with problems is spared.
    const isAway = problem.status === 0
    const most = isAway ? this.#timing.mostAwayMs : hides(problem) ? this.#timing.mostBlindMs : this.#timing.mostMs
    const wait = backOffMs(this.#attempt++, isAway ? 1000 : 4000, most, this.#random)
    // A poll fails or answers at once, where a stream would be waited for; its answer opens the stream again.
    this.#later('reopen', Math.max(wait, (problem.retryAfterSeconds ?? 0) * 1000), () => void this.#poll())
  }

  /** What a stream would say, asked for in pages. */
  async #read(signal: AbortSignal): Promise<StreamMessage> {
    const clusters = await this.#all<ClusterView>((cursor) => this.#client.clusters(page(cursor), signal))
    return { kind: 'snapshot', clusters, rows: [], now: this.clock.now() }
  }

  async #all<T>(ask: Parameters<Client['all']>[0]): Promise<T[]> {
    const items: T[] = []
    for await (const item of this.#client.all(ask)) items.push(item as T) // `ask` answers with these
    return items
  }

  #rest(by: 'hidden' | 'person'): void {
    this.#close()
    this.#set({ link: { state: 'paused', by } })
  }

  #later(name: string, ms: number, run: () => void): void {
    this.#cancel(name)
    this.#timers.set(
      name,
      setTimeout(() => {
        this.#timers.delete(name)
        run()
      }, ms),
    )
  }

  #cancel(name: string): void {
    clearTimeout(this.#timers.get(name))
    this.#timers.delete(name)
  }
}

/** @throws as the promise, where it fails within that time */
async function isWithin(promise: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), ms)
  })
  try {
    return await Promise.race([promise.then(() => true), late])
  } finally {
    clearTimeout(timer)
  }
}

/** The hub does not say that it cannot answer, but that nothing it would answer may be shown. */
const hides = ({ status, code }: ApiProblem): boolean =>
  status === 401 || status === 403 || code === 'policies_unavailable' || code === 'identity_unavailable'

const page = (cursor: string | undefined) => ({ limit: 1000, ...(cursor && { cursor }) })
