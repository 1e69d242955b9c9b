import { minutes, seconds } from '#model'
import type { SinkErrorClass } from '#sinks'

/*
 * When a binding exports, as a pure state machine: time, chance and what happened come in, a decision goes out.
 *
 *            content changes, window over
 *   current ────────────────────────────▶ export ──exported──▶ current
 *     │  ▲                                   │
 *     │  └── touched ── heartbeat ◀─ interval over, identical content
 *     │                                      └──failed──▶ retry later ──▶ export
 *     └─ in the window: wait for its end, then the latest content
 *
 * 1. After a quiet window the first change is exported at once.
 * 2. Two exports are at least a window apart; what comes in between is exported when the window closes, in its latest form.
 * 3. What the sink holds is never exported again.
 * 4. After a failure it is tried again: within 10 s first, then ever later, at most 5 min; what somebody has to mend, each hour, and
 *    with other content as after other failures, since that may be the mend.
 * 5. What waits for its deletions is given again when they may be made, or as soon as there is other content.
 * 6. Nothing is exported before every list was read to its end, and an incomplete one never makes the sink current.
 */

/** How often a binding may write. */
export interface Pace {
  /** earliest next export after an export, ms */
  readonly windowMs: number
  /** earliest sign of life, or look, for identical content, ms; undefined: none is given */
  readonly heartbeatMs: number | undefined
}

/** What a snapshot says, as far as the schedule cares. */
export interface Content {
  readonly checksum: string
  readonly isComplete: boolean
}

/** How a binding stands. Times are ms of a clock that only goes forward. */
export interface BindingState {
  /** what the sink holds; undefined: that is not known */
  readonly held?: Content
  /** when it last took an export */
  readonly exportedAt?: number
  /** when it last answered well */
  readonly touchedAt?: number
  /** the sink lacks only deletions, which it may make from then on */
  readonly deletesAt?: number
  readonly failure?: {
    readonly count: number
    readonly retryAt: number
    readonly errorClass: SinkErrorClass
    /** the content that somebody has to mend, if it is that, and from when on other content is tried */
    readonly of?: { readonly checksum: string; readonly otherAt: number }
  }
}

/** What a binding does next; a wait ends early when something changes. */
export type Decision =
  | { readonly kind: 'export' | 'heartbeat' | 'idle' }
  | { readonly kind: 'wait'; readonly ms: number }

const FIRST_RETRY_MS = seconds(10)
const LAST_RETRY_MS = minutes(5)
/** What only a person can mend is looked at again after so long, ms. */
const TERMINAL_RETRY_MS = minutes(10)

/** A binding of which nothing is known. */
export const fresh: BindingState = {}

/**
 * A binding that exported before this process started. What was said of that may be older than what it did last: where the sink can be
 * looked at, that comes at once. @param at when, by the clock of `decide`
 */
export const seeded = (checksum: string, at: number): BindingState => ({
  held: { checksum, isComplete: true },
  exportedAt: at,
})

/** What to do now. @param content the latest; undefined: there is none to export. Asked only where it matters */
export function decide(state: BindingState, pace: Pace, content: () => Content | undefined, now: number): Decision {
  const { failure, exportedAt, touchedAt } = state
  if (failure && failure.retryAt > now) {
    if (!failure.of) return { kind: 'wait', ms: failure.retryAt - now }
    if (failure.of.otherAt > now) return { kind: 'wait', ms: failure.of.otherAt - now }
    const other = content()
    if (!other || other.checksum === failure.of.checksum) return { kind: 'wait', ms: failure.retryAt - now }
  }
  const windowMs = exportedAt === undefined ? 0 : exportedAt + pace.windowMs - now
  if (windowMs > 0) return { kind: 'wait', ms: windowMs }
  const latest = content()
  if (!latest) return { kind: 'idle' }
  if (!isCurrent(state, latest)) {
    const waitMs = state.held?.checksum === latest.checksum ? (state.deletesAt ?? now) - now : 0
    return waitMs > 0 ? { kind: 'wait', ms: waitMs } : { kind: 'export' }
  }
  if (pace.heartbeatMs === undefined) return { kind: 'idle' }
  const leftMs = touchedAt === undefined ? 0 : touchedAt + pace.heartbeatMs - now
  return leftMs > 0 ? { kind: 'wait', ms: leftMs } : { kind: 'heartbeat' }
}

/** Whether the sink holds this already. What it was given of an incomplete snapshot may hold rows that are gone. */
export const isCurrent = ({ held }: BindingState, content: Content): boolean =>
  held !== undefined && held.checksum === content.checksum && (held.isComplete || !content.isComplete)

/** The sink took the content. */
export const exported = (_: BindingState, content: Content, now: number): BindingState => ({
  held: content,
  exportedAt: now,
  touchedAt: now,
})

/** The sink took a part of the content: what it holds is not known until it has the rest. */
export const begun = ({ held: _, failure: __, ...state }: BindingState): BindingState => state

/** The sink took the content, and deletes what is gone only after so long, ms. */
export const exportedInPart = (content: Content, now: number, waitMs: number): BindingState => ({
  ...exported(fresh, { ...content, isComplete: false }, now),
  deletesAt: now + waitMs,
})

/** The sink took a sign of life. */
export const touched = ({ failure: _, ...state }: BindingState, now: number): BindingState => ({
  ...state,
  touchedAt: now,
})

/**
 * The sink did not take what it was given: what it holds is not known any more.
 * @param random from 0 to 1
 * @param checksum of what it was given
 */
export function failed(
  state: BindingState,
  errorClass: SinkErrorClass,
  now: number,
  random: number,
  checksum?: string,
): BindingState {
  const { held: _, ...known } = state
  const count = (state.failure?.count ?? 0) + 1
  const ceiling = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(count - 1, 20))
  const soonMs = ceiling / 2 + (ceiling / 2) * random
  if (errorClass !== 'terminal') return { ...known, failure: { count, retryAt: now + soonMs, errorClass } }
  const of = checksum === undefined ? undefined : { checksum, otherAt: now + soonMs }
  return { ...known, failure: { count, retryAt: now + TERMINAL_RETRY_MS, errorClass, ...(of && { of }) } }
}

/** The sink is well, and asked again after so long, ms. */
export function postponed(state: BindingState, waitMs: number, now: number): BindingState {
  const { held: _, ...known } = state
  return { ...known, failure: { count: state.failure?.count ?? 0, retryAt: now + waitMs, errorClass: 'transient' } }
}

/** Something that the failure may have come of changed: it is tried again at once. */
export function retried(state: BindingState): BindingState {
  const { failure: _, ...known } = state
  return known
}
