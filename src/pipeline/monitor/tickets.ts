import { randomBytes } from 'node:crypto'
import type { Clock } from '#model'
import type { Caller } from './tokens.ts'

/** A ticket opens one stream within this time, ms. */
export const TICKET_MS = 30_000
/** Tickets that nobody used yet; beyond them the oldest goes. */
const MAX_TICKETS = 10_000

interface Ticket {
  readonly caller: Caller
  readonly until: number
}

/** Stands in for a token in the address of one stream: short-lived, for one use, and good for nothing else. */
export class Tickets {
  readonly #clock: Clock
  readonly #open = new Map<string, Ticket>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  issue(caller: Caller): { readonly ticket: string; readonly expiresAt: number } {
    for (const [ticket, { until }] of this.#open) {
      // They stand in the order they were issued in.
      if (until > this.#clock.now() && this.#open.size < MAX_TICKETS) break
      this.#open.delete(ticket)
    }
    const ticket = randomBytes(24).toString('base64url')
    const until = this.#clock.now() + TICKET_MS
    this.#open.set(ticket, { caller, until })
    return { ticket, expiresAt: until }
  }

  /** @returns whose it was, once; undefined: it is unknown, used, or too old */
  redeem(ticket: string): Caller | undefined {
    const found = this.#open.get(ticket)
    this.#open.delete(ticket)
    const now = this.#clock.now()
    return found && now < found.until && now < found.caller.expiresAt ? found.caller : undefined
  }
}
