import type { FleetError } from '#model'
import { BaseMismatchError } from '../errors.ts'
import type { Effects } from './effects.ts'
import type { Offering, SessionWorld } from './session-events.ts'

/** Something the ingester is given for a channel of the stream, which hears how it ended. */
export interface Work {
  readonly bytes: number
  /** how long it is offered again while the hub cannot take it, ms */
  readonly holdMs: number
  /** asked for with each try */
  offering(): Offering
  /** Of a difference to what the hub has not: from now on `offering` does without. @returns false: it did already */
  rebase?(): boolean
  /** it is on disk */
  accepted(now: number): void
  /** for good, as far as this stream goes */
  failed(error: FleetError, now: number): void
}

interface Ticket {
  readonly work: Work
  readonly since: number
  attempt: number
}

/** What the ingester was given and has not answered, by ticket; with what waits for its turn, what the stream holds of memory. */
export class InFlight {
  readonly #world: Pick<SessionWorld, 'limits' | 'random'>
  readonly #effects: Effects
  readonly #tickets = new Map<number, Ticket>()
  #next = 1
  #retrying = 0
  #waiting = 0
  #bytes = 0

  constructor(world: Pick<SessionWorld, 'limits' | 'random'>, effects: Effects) {
    this.#world = world
    this.#effects = effects
  }

  get isEmpty(): boolean {
    return this.#tickets.size === 0
  }

  /** the next message must wait until something of this has ended */
  get isFull(): boolean {
    const { maxUnacked, maxUnackedBytes } = this.#world.limits
    return this.#retrying > 0 || this.#tickets.size + this.#waiting >= maxUnacked || this.#bytes >= maxUnackedBytes
  }

  /** A message that waits for its turn: it is held as well. */
  hold(bytes: number) {
    this.#waiting++
    this.#bytes += bytes
  }

  release(bytes: number) {
    this.#waiting--
    this.#bytes -= bytes
  }

  open(work: Work, now: number) {
    const ticket = this.#next++
    this.#tickets.set(ticket, { work, since: now, attempt: 0 })
    this.#bytes += work.bytes
    this.#offer(ticket, work, 0)
  }

  has(ticket: number): boolean {
    return this.#tickets.has(ticket)
  }

  accepted(ticket: number, now: number) {
    this.#close(ticket)?.work.accepted(now)
  }

  failed(id: number, error: FleetError, now: number) {
    const ticket = this.#tickets.get(id)
    if (!ticket) return
    const { work } = ticket
    if (error instanceof BaseMismatchError) {
      // The hub has read the cluster meanwhile, or acks were on their way: whole, it needs no base.
      if (work.rebase?.()) return this.#offer(id, work, 0)
    } else if (error.retryable && now - ticket.since < work.holdMs) {
      if (ticket.attempt++ === 0) {
        this.#retrying++
        this.#effects.count('held')
      }
      const pauseMs = Math.min(2_000, 100 * 2 ** Math.min(ticket.attempt, 5))
      return this.#offer(id, work, pauseMs * (0.5 + this.#world.random() / 2))
    }
    this.#close(id)
    work.failed(error, now)
  }

  clear() {
    this.#tickets.clear()
  }

  #offer(ticket: number, work: Work, afterMs: number) {
    this.#effects.add({ ...work.offering(), ticket, afterMs })
  }

  #close(id: number): Ticket | undefined {
    const ticket = this.#tickets.get(id)
    if (!ticket) return undefined
    this.#tickets.delete(id)
    this.#bytes -= ticket.work.bytes
    if (ticket.attempt > 0) this.#retrying--
    return ticket
  }
}
