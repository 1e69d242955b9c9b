import type { SequenceRange } from '#model'
import { backoffMs } from '#runtime'

/*
 *            start              opened              welcome, or 5 s of silence
 *   idle ───────────▶ connecting ──────▶ registering ──────────────────▶ live
 *                      ▲      │ failed        │ closed, timeout           │ closed, silent, goodbye
 *                      │      ▼               ▼                           │
 *                      └── backing-off ◀──────┴───────────────────────────┘
 *
 * Times are of a clock that never jumps. What is decided here is tested at random in uplink-machine.test.ts:
 *   1. a sequence leaves the buffer on an ack only (or is declared lost where the hub refuses it for good);
 *   2. live goes before backlog, in the order of collection, and waits for WINDOW_BYTES or one message of backlog at most;
 *      it is the newest round, and what MetricSources saw that nothing later says;
 *   3. never more than maxUnacked on their way; backlog within its byte rate;
 *   4. a difference is made to the newest acknowledged live frame of this stream, with no other live frame on its way;
 *   5. the wait between attempts grows until the first ack of a stream, never below what a goodbye asked for; to a minute, and to
 *      five seconds where nothing of the hub is there, or what is there cuts the first attempts off.
 */

/** Backlog on its way: one message, or several up to this many bytes together. */
export const WINDOW_BYTES = 64 * 1024
const WELCOME_MS = 5_000
/** Once a hub spoke our protocol, it is given longer: a busy one must not be taken for an original. */
const KNOWN_WELCOME_MS = 30_000
const HEALTH_MS = 30_000
/** While backlog goes out people watch it shrink. */
const CATCHING_UP_HEALTH_MS = 5_000
const SILENT_MS = 90_000
const DEFAULT_PAUSE_MS = 1_000
const ORIGINAL_UNACKED = 4
/** Attempts that only a person can make succeed begin at this step: about a minute, so that the person sees it work. */
const SLOW_FAILURES = 6
/** What the hub refused, or was too busy for, waits ever longer: thousands of agents come one after the other by their jitter. */
const BACKOFF = { fromMs: 1_000, toMs: 60_000 }
/** Where nothing is there an attempt costs nobody anything, and a hub that is back has its agents within seconds, however long it was away. */
const NOWHERE_BACKOFF = { fromMs: 1_000, toMs: 5_000 }
const NOWHERE_FAILURES = 3
/**
 * So many attempts in a row that were accepted and cut off count as nowhere: about a minute. What stands before a hub that is away
 * does that, and so does a hub that has no room for more: thousands of agents must not come to that one every few seconds for ever.
 */
const MOST_CUTS = 24

export interface Sent {
  readonly as: 'live' | 'backlog'
  /** 0: complete */
  readonly base: number
  readonly bytes: number
  readonly at: number
}

export interface Live {
  readonly kind: 'live'
  readonly protocol: 'ours' | 'original'
  /** attempts in a row without an ack */
  readonly failures: number
  readonly deltas: boolean
  readonly losses: boolean
  readonly maxUnacked: number
  readonly maxMessageBytes: number
  /** bytes per second; 0: no bound */
  readonly backlogRate: number
  readonly inFlight: ReadonlyMap<number, Sent>
  /** the newest acknowledged live frame of this stream; 0: the next one must be complete */
  readonly base: number
  /** the newest complete one that crossed a resync: the hub may have it, and takes nothing older for a base */
  readonly crossed: number
  readonly writable: boolean
  /** the hub asked for a pause of everything until then */
  readonly pausedUntil: number
  readonly tokens: number
  readonly refilledAt: number
  readonly healthAt: number
  /** backlog was sent since a report said that none is left */
  readonly catchingUp: boolean
  /** the oldest of the buffer that is neither live nor on its way; undefined: not read, or there is none */
  readonly backlog: Item | undefined
  /** rises when the buffer may hold something new to send */
  readonly news: number
  /** `news` as of the read that runs; undefined: none does */
  readonly fetching: number | undefined
  /** `news` as of the read that found nothing */
  readonly emptyAt: number
  /** nothing new is begun: we stop as soon as nothing is on its way */
  readonly draining: boolean
}

export type Phase =
  | { readonly kind: 'idle' }
  | { readonly kind: 'connecting'; readonly failures: number }
  | { readonly kind: 'registering'; readonly failures: number; readonly since: number }
  | Live
  | { readonly kind: 'backing-off'; readonly failures: number; readonly until: number; readonly reason: string }
  | { readonly kind: 'stopped' }

export interface State {
  readonly phase: Phase
  /** those of `fresh` that are not on their way, rising */
  readonly live: readonly number[]
  /** batches of this process that say something no later one says, and are not safe; rising */
  readonly fresh: readonly number[]
  /** a hub at this address has spoken our protocol, so many silent registrations ago; undefined: never */
  readonly known: number | undefined
  /** attempts in a row that were accepted and cut off */
  readonly cuts: number
}

/** A record of the buffer, as far as decisions need it. */
export interface Item {
  readonly sequence: number
  readonly bytes: number
  readonly kind: 'batch' | 'loss'
}

export interface Welcomed {
  readonly capabilities: readonly string[]
  readonly received: readonly SequenceRange[]
  readonly maxMessageBytes: number
  readonly backlogBytesPerSecond: number
  readonly maxUnacked: number
}

export interface Acked {
  readonly received: readonly SequenceRange[]
  readonly success: boolean
  readonly retryable: boolean
  readonly retryAfterMs: number
  /** a difference whose base the hub does not know: it goes again at once, complete */
  readonly mismatch?: boolean
}

interface Away {
  /** nothing of the hub answers at its address */
  readonly nowhere?: boolean
  /** the connection was accepted, and ended before a hub showed itself */
  readonly cut?: boolean
}

export type Event =
  | { readonly type: 'start' }
  | { readonly type: 'stop' }
  /** `fresh`: what still says something that no later one says, itself included; default: itself alone */
  | { readonly type: 'collected'; readonly sequence: number; readonly fresh?: readonly number[] }
  /** something else came into the buffer */
  | { readonly type: 'stored' }
  | { readonly type: 'opened' }
  | ({ readonly type: 'closed'; readonly reason: string; readonly retryAfterMs?: number } & Away)
  | ({ readonly type: 'welcome' } & Welcomed)
  | ({ readonly type: 'ack' } & Acked)
  | { readonly type: 'resync' }
  /** `slow`: a person must act before another attempt can succeed */
  | { readonly type: 'goodbye'; readonly reason: string; readonly retryAfterMs: number; readonly slow?: boolean }
  | { readonly type: 'fetched'; readonly item: Item | undefined }
  | { readonly type: 'blocked' }
  | { readonly type: 'writable' }
  /** it was settled or found damaged before it could be sent */
  | { readonly type: 'unsent'; readonly sequence: number }
  | { readonly type: 'tick' }

export type Effect =
  | { readonly type: 'open' }
  | { readonly type: 'register' }
  | { readonly type: 'close' }
  | { readonly type: 'fetch' }
  | { readonly type: 'send'; readonly sequence: number; readonly as: 'live' | 'backlog'; readonly base: number }
  | { readonly type: 'health' }
  | { readonly type: 'settle'; readonly received: readonly SequenceRange[] }
  | { readonly type: 'refuse'; readonly sequence: number }

export interface Moment {
  /** of a clock that never jumps, ms */
  readonly now: number
  readonly random: () => number
}

export const initial: State = { phase: { kind: 'idle' }, live: [], fresh: [], known: undefined, cuts: 0 }

/** What follows from an event: the new state, and what is to be done, in order. */
export function decide(state: State, event: Event, moment: Moment): { state: State; effects: readonly Effect[] } {
  const effects: Effect[] = []
  const next = act(step(state, event, moment, effects), moment, effects)
  return { state: next, effects }
}

/** When `tick` is needed at the latest; Infinity: only other events lead on. */
export function wakeAt({ phase, known, live }: State, now: number): number {
  switch (phase.kind) {
    case 'registering':
      return phase.since + (known === undefined ? WELCOME_MS : KNOWN_WELCOME_MS)
    case 'backing-off':
      return phase.until
    case 'live': {
      const times = [healthDue(phase)]
      if (phase.inFlight.size > 0) times.push(silentAt(phase))
      if ((live.length > 0 || phase.backlog || phase.emptyAt !== phase.news) && phase.pausedUntil > now)
        times.push(phase.pausedUntil)
      if (phase.backlog && phase.tokens <= 0)
        times.push(phase.refilledAt + Math.ceil(((1 - phase.tokens) / phase.backlogRate) * 1000))
      return Math.min(...times)
    }
    default:
      return Number.POSITIVE_INFINITY
  }
}

const healthDue = ({ healthAt, catchingUp }: Live): number =>
  healthAt + (catchingUp ? CATCHING_UP_HEALTH_MS : HEALTH_MS)

/** A hub that answers some and swallows others is no better than a silent one. */
const silentAt = (phase: Live) => Math.min(...[...phase.inFlight.values()].map(({ at }) => at)) + SILENT_MS

function step(state: State, event: Event, moment: Moment, effects: Effect[]): State {
  const { phase } = state
  const { now } = moment
  switch (event.type) {
    case 'start':
      if (phase.kind !== 'idle') return state
      effects.push({ type: 'open' })
      return { ...state, phase: { kind: 'connecting', failures: 0 } }
    case 'stop':
      if (phase.kind === 'live' && phase.inFlight.size > 0) return { ...state, phase: { ...phase, draining: true } }
      effects.push({ type: 'close' })
      return { ...state, phase: { kind: 'stopped' } }
    case 'collected':
      return collected(state, event.sequence, event.fresh ?? [event.sequence])
    case 'stored':
      return { ...state, phase: withNews(phase) }
    case 'opened':
      if (phase.kind !== 'connecting') return state
      effects.push({ type: 'register' })
      return { ...state, cuts: 0, phase: { kind: 'registering', failures: phase.failures, since: now } }
    case 'closed':
      return end(state, event.reason, event.retryAfterMs ?? 0, moment, event)
    case 'welcome':
      return welcome(state, event, moment, effects)
    case 'ack':
      return phase.kind === 'live' ? acked(state, phase, event, moment, effects) : state
    case 'resync':
      return phase.kind === 'live' ? resync(state, phase) : state
    case 'goodbye':
      if (phase.kind !== 'live' && phase.kind !== 'registering') return state
      effects.push({ type: 'close' })
      return end(
        { ...state, phase: event.slow ? { ...phase, failures: Math.max(phase.failures, SLOW_FAILURES) } : phase },
        event.reason,
        event.retryAfterMs,
        moment,
      )
    case 'fetched':
      return phase.kind === 'live' ? { ...state, phase: fetched(state, phase, event.item) } : state
    case 'blocked':
      return phase.kind === 'live' ? { ...state, phase: { ...phase, writable: false } } : state
    case 'writable':
      return phase.kind === 'live' ? { ...state, phase: { ...phase, writable: true } } : state
    case 'unsent': {
      if (phase.kind !== 'live') return state
      const inFlight = new Map(phase.inFlight)
      inFlight.delete(event.sequence)
      return { ...state, phase: { ...phase, inFlight, news: phase.news + 1 } }
    }
    case 'tick':
      return tick(state, moment, effects)
  }
}

/** What a later batch says as well comes from the buffer now, for history. */
function collected(state: State, sequence: number, fresh: readonly number[]): State {
  const live = [...state.live.filter((one) => fresh.includes(one)), sequence]
  return { ...state, live, fresh: [...fresh], phase: withNews(state.phase) }
}

/** Without those that are safe. */
function unsettled(state: State, received: readonly SequenceRange[]): Pick<State, 'live' | 'fresh'> {
  const isOpen = (sequence: number) => !contains(received, sequence)
  return { live: state.live.filter(isOpen), fresh: state.fresh.filter(isOpen) }
}

const withNews = (phase: Phase): Phase => (phase.kind === 'live' ? { ...phase, news: phase.news + 1 } : phase)

function fetched(state: State, phase: Live, item: Item | undefined): Live {
  const read: Live = { ...phase, fetching: undefined }
  if (!item) return { ...read, emptyAt: phase.fetching ?? phase.emptyAt }
  // The read may have crossed a new batch, or one that was sent meanwhile.
  const isTaken = phase.inFlight.has(item.sequence) || (phase.protocol === 'ours' && state.live.includes(item.sequence))
  return isTaken ? read : { ...read, backlog: item }
}

function welcome(state: State, welcomed: Welcomed, { now }: Moment, effects: Effect[]): State {
  const { phase } = state
  if (phase.kind !== 'registering' && !(phase.kind === 'live' && phase.protocol === 'original')) return state
  effects.push({ type: 'settle', received: welcomed.received })
  const has = (name: string) => welcomed.capabilities.includes(name)
  return {
    ...state,
    ...unsettled(state, welcomed.received),
    known: 0,
    phase: {
      ...live(phase.failures, now),
      // Its first report answers the welcome: so the hub sees how their clocks differ before it takes a batch.
      healthAt: now - HEALTH_MS,
      protocol: 'ours',
      deltas: has('deltas'),
      losses: has('loss'),
      maxUnacked: Math.max(1, welcomed.maxUnacked || ORIGINAL_UNACKED),
      maxMessageBytes: welcomed.maxMessageBytes || Number.POSITIVE_INFINITY,
      backlogRate: welcomed.backlogBytesPerSecond,
      tokens: welcomed.backlogBytesPerSecond,
    },
  }
}

function live(failures: number, now: number): Live {
  return {
    kind: 'live',
    protocol: 'original',
    failures,
    deltas: false,
    losses: false,
    maxUnacked: ORIGINAL_UNACKED,
    maxMessageBytes: 4 * 2 ** 20, // what an original hub receives
    backlogRate: 0,
    inFlight: new Map(),
    base: 0,
    crossed: 0,
    writable: true,
    pausedUntil: 0,
    tokens: 0,
    refilledAt: now,
    healthAt: now,
    catchingUp: false,
    backlog: undefined,
    news: 0,
    fetching: undefined,
    emptyAt: -1,
    draining: false,
  }
}

function acked(state: State, phase: Live, ack: Acked, { now }: Moment, effects: Effect[]): State {
  const inFlight = new Map(phase.inFlight)
  const named = [...phase.inFlight].filter(
    // What `resync` already sent again, complete, is not what this refuses.
    ([sequence, { base }]) => contains(ack.received, sequence) && (ack.mismatch !== true || base > 0),
  )
  for (const [sequence] of named) inFlight.delete(sequence)
  const heard: Live = { ...phase, inFlight }
  if (ack.success) {
    effects.push({ type: 'settle', received: ack.received })
    const newest = Math.max(0, ...named.filter(([, { as }]) => as === 'live').map(([sequence]) => sequence))
    const base = newest > phase.crossed ? Math.max(phase.base, newest) : phase.base
    const progress = ack.received.length > 0 ? { failures: 0 } : {}
    const backlog = phase.backlog && contains(ack.received, phase.backlog.sequence) ? undefined : phase.backlog
    return {
      ...state,
      ...unsettled(state, ack.received),
      phase: { ...heard, ...progress, base, backlog },
    }
  }
  if (ack.mismatch === true) return again(state, { ...heard, base: named.length > 0 ? 0 : phase.base }, named)
  if (!ack.retryable) {
    for (const [sequence] of named) effects.push({ type: 'refuse', sequence })
    return { ...state, phase: heard }
  }
  const pausedUntil = now + (ack.retryAfterMs || DEFAULT_PAUSE_MS)
  return again({ ...state, phase: heard }, { ...heard, pausedUntil: Math.max(phase.pausedUntil, pausedUntil) }, named)
}

/** Sequences that were sent go back: the fresh ones as live, the others come from the buffer. */
function again(state: State, phase: Live, sent: readonly (readonly [number, Sent])[]): State {
  const back = state.fresh.filter((fresh) => sent.some(([sequence]) => sequence === fresh))
  const live = [...new Set([...state.live, ...back])].sort((a, b) => a - b)
  return { ...state, live, phase: { ...phase, backlog: undefined, news: phase.news + 1 } }
}

/** What was sent as a difference could not be read: it goes again, complete. */
function resync(state: State, phase: Live): State {
  const differences = [...phase.inFlight].filter(([, { base }]) => base > 0)
  const inFlight = new Map(phase.inFlight)
  for (const [sequence] of differences) inFlight.delete(sequence)
  // A complete one may have crossed: it is taken, but nothing builds on it, or on one before it.
  const live = [...inFlight].filter(([, { as }]) => as === 'live').map(([sequence]) => sequence)
  for (const [sequence, sent] of inFlight) inFlight.set(sequence, { ...sent, as: 'backlog' })
  return again(state, { ...phase, inFlight, base: 0, crossed: Math.max(phase.crossed, ...live) }, differences)
}

function tick(state: State, moment: Moment, effects: Effect[]): State {
  const { phase } = state
  const { now } = moment
  if (phase.kind === 'backing-off' && now >= phase.until) {
    effects.push({ type: 'open' })
    return { ...state, phase: { kind: 'connecting', failures: phase.failures } }
  }
  if (phase.kind === 'registering' && now >= wakeAt(state, now)) {
    // No answer to our Hello: an original hub, which never sends one. One we know to be ours is only slow, up to three times.
    if (state.known !== undefined && state.known < 2) {
      effects.push({ type: 'close' })
      return end({ ...state, known: state.known + 1 }, 'the hub did not answer the registration', 0, moment)
    }
    return { ...state, known: undefined, phase: live(phase.failures, now) }
  }
  if (phase.kind !== 'live') return state
  if (phase.inFlight.size > 0 && now >= silentAt(phase)) {
    effects.push({ type: 'close' })
    return end(state, `the hub left a message without an answer for ${SILENT_MS / 1000} s`, 0, moment)
  }
  if (now < healthDue(phase)) return state
  effects.push({ type: 'health' })
  return { ...state, phase: { ...phase, healthAt: now } }
}

/** The stream is over: what was on its way is still in the buffer, and goes again on the next one. */
function end(state: State, reason: string, retryAfterMs: number, { now, random }: Moment, how: Away = {}): State {
  const { phase } = state
  if (phase.kind === 'idle' || phase.kind === 'stopped' || phase.kind === 'backing-off') return state
  if (phase.kind === 'live' && phase.draining) return { ...state, phase: { kind: 'stopped' } }
  const cuts = state.cuts + (how.cut === true ? 1 : 0)
  const nowhere = how.nowhere === true || (how.cut === true && cuts <= MOST_CUTS)
  const backoff = nowhere ? NOWHERE_BACKOFF : BACKOFF
  const waitMs = Math.max(retryAfterMs, backoffMs(phase.failures, { ...backoff, random }))
  // Counted no further: one that is back and still slow is asked again within seconds.
  const failures = nowhere ? Math.min(phase.failures + 1, NOWHERE_FAILURES) : phase.failures + 1
  const back = phase.kind === 'live' ? again(state, phase, [...phase.inFlight]) : state
  return { ...back, cuts, phase: { kind: 'backing-off', failures, until: now + waitMs, reason } }
}

/** Sends what may be sent now. */
function act(state: State, { now }: Moment, effects: Effect[]): State {
  if (state.phase.kind !== 'live') return state
  let { live } = state
  let phase = refilled(state.phase, now)
  if (phase.draining && phase.inFlight.size === 0) {
    effects.push({ type: 'close' })
    return { ...state, phase: { kind: 'stopped' } }
  }
  const mayBeSent = () => phase.writable && now >= phase.pausedUntil && phase.inFlight.size < phase.maxUnacked
  for (let [first] = live; first !== undefined && phase.protocol === 'ours' && mayBeSent(); [first] = live) {
    const alone = ![...phase.inFlight.values()].some(({ as }) => as === 'live')
    // One that was held up and comes after a later one is no step from that one.
    const base = phase.deltas && alone && first > phase.base ? phase.base : 0
    effects.push({ type: 'send', sequence: first, as: 'live', base })
    phase = withSent(phase, first, { as: 'live', base, bytes: 0, at: now })
    live = live.slice(1)
  }
  if (phase.draining) return { ...state, live, phase }
  if (
    phase.backlog &&
    mayBeSent() &&
    mayFollow(phase, phase.backlog) &&
    (phase.backlogRate === 0 || phase.tokens > 0)
  ) {
    const { sequence, bytes } = phase.backlog
    effects.push({ type: 'send', sequence, as: 'backlog', base: 0 })
    phase = withSent(phase, sequence, { as: 'backlog', base: 0, bytes, at: now })
    phase = { ...phase, backlog: undefined, tokens: phase.tokens - bytes }
    if (!phase.catchingUp) phase = { ...phase, catchingUp: true, healthAt: now }
  }
  if (!phase.backlog && phase.fetching === undefined && phase.emptyAt !== phase.news && mayBeSent()) {
    effects.push({ type: 'fetch' })
    phase = { ...phase, fetching: phase.news }
  }
  const isEmpty = phase.inFlight.size === 0 && !phase.backlog && phase.fetching === undefined
  if (phase.catchingUp && isEmpty && phase.emptyAt === phase.news) {
    effects.push({ type: 'health' })
    phase = { ...phase, catchingUp: false, healthAt: now }
  }
  return { ...state, live, phase }
}

/** One slot is kept for live, and only so much of backlog is on its way. */
function mayFollow(phase: Live, { bytes }: Item): boolean {
  const before = [...phase.inFlight.values()].filter(({ as }) => as === 'backlog')
  if (before.length === 0) return true
  if (phase.inFlight.size >= phase.maxUnacked - 1) return false
  return before.reduce((sum, sent) => sum + sent.bytes, bytes) <= WINDOW_BYTES
}

function withSent(phase: Live, sequence: number, sent: Sent): Live {
  return { ...phase, inFlight: new Map(phase.inFlight).set(sequence, sent) }
}

// A burst of one second; what was sent beyond it is waited for.
function refilled(phase: Live, now: number): Live {
  if (phase.backlogRate === 0 || now <= phase.refilledAt) return phase
  const tokens = phase.tokens + ((now - phase.refilledAt) / 1000) * phase.backlogRate
  return { ...phase, tokens: Math.min(phase.backlogRate, tokens), refilledAt: now }
}

function contains(ranges: readonly SequenceRange[], sequence: number): boolean {
  return ranges.some(([first, last]) => first <= sequence && sequence <= last)
}
