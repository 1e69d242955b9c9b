import type { AgentFacts } from '#model'
import type { HealthReport } from '#wire'
import type { ClockOffset } from './clock-offset.ts'
import type { Place, SessionWorld } from './session-events.ts'
import { correctTime } from './times.ts'
import type { Peer } from './types.ts'

/** What a registration settled. */
export interface Registered {
  readonly peer: Peer
  readonly place: Place
  readonly version: string
  readonly protocol: AgentFacts['protocol']
  /** the plan the agent has; '' where it does not say */
  readonly plan: string
  readonly clock: ClockOffset
}

type Buffered = Pick<AgentFacts, 'bufferedBatches' | 'bufferedBytes' | 'oldestBufferedAt' | 'lostBatches'>

/** A registered stream: who it is of, and what it reports of itself. */
export class OpenStream {
  readonly registered: Registered
  readonly #since: number
  #heartbeatAt: number
  #buffered: Buffered = { bufferedBatches: 0, bufferedBytes: 0, oldestBufferedAt: null, lostBatches: 0 }
  #plan: string
  #polled: readonly string[] = []
  #isDelivering = false

  constructor(registered: Registered, now: number) {
    this.registered = registered
    this.#since = now
    this.#heartbeatAt = now
    this.#plan = registered.plan
  }

  get isDelivering(): boolean {
    return this.#isDelivering
  }

  heard(now: number): void {
    this.#heartbeatAt = now
  }

  /** A live batch is safe. @returns whether it is the first */
  delivered(): boolean {
    const isFirst = !this.#isDelivering
    this.#isDelivering = true
    return isFirst
  }

  health(health: HealthReport, now: number): void {
    const { clock, protocol } = this.registered
    const theirs = millisecondsOf(health.timestamp)
    if (theirs !== undefined) clock.compare(theirs, now)
    const { oldestBufferedMs: collectedAt } = health
    this.#buffered = {
      bufferedBatches: amountOf(health.bufferedBatches),
      bufferedBytes: amountOf(health.bufferedBytes),
      oldestBufferedAt: collectedAt > 0 ? correctTime({ collectedAt, offsetMs: clock.ms ?? 0, now }).at : null,
      lostBatches: amountOf(health.lostBatches),
    }
    if (protocol !== 'original') this.#plan = health.planVersion.slice(0, 128)
    this.#polled = health.polled.slice(0, MAX_POLLED).map((said) => said.slice(0, MAX_POLLED_TEXT))
  }

  facts(
    { tls, process }: Pick<SessionWorld, 'tls' | 'process'>,
    state: { readonly connected: boolean; readonly endedAt: number; readonly reason: string },
  ): AgentFacts {
    const { version, protocol, clock, peer, place } = this.registered
    const { connected, endedAt, reason } = state
    return {
      connected,
      since: connected ? this.#since : endedAt,
      reason,
      version,
      protocol,
      heartbeatAt: this.#heartbeatAt,
      ...this.#buffered,
      clockOffsetMs: clock.ms ?? 0,
      tls,
      method: peer.method,
      plan: this.#plan,
      ...(this.#polled.length > 0 && { polled: this.#polled }),
      epoch: place.epoch,
      ...(process !== undefined && { process }),
    }
  }
}

const MAX_POLLED = 50
const MAX_POLLED_TEXT = 500

const amountOf = (value: number): number => (Number.isFinite(value) && value > 0 ? Math.round(value) : 0)

type Timestamp = NonNullable<HealthReport['timestamp']>

/** undefined: absent, or out of every reason */
export function millisecondsOf(timestamp: Timestamp | undefined): number | undefined {
  if (!timestamp) return undefined
  const ms = Number(timestamp.seconds) * 1000 + timestamp.nanos / 1e6
  return Number.isFinite(ms) && ms > 0 ? ms : undefined
}
