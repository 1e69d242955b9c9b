import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Clock } from '#model'
import type { Caller } from './tokens.ts'

/** A ticket opens one stream within this time, ms. */
const TICKET_MS = 30_000
/** Names that nobody took yet; beyond them the oldest goes: that of the same user first. */
const MAX_NAMES = 50_000
const MAX_NAMES_OF_ONE = 1000

/** Names that can be taken once, by whichever process is first. */
export interface OneTimeNames {
  /** @param owner for whom it is: who sets many loses own ones */
  set(name: string, ttlMs: number, owner: string): Promise<void>
  /** @returns whether it was there, and is this caller's now */
  take(name: string): Promise<boolean>
}

/** Those of one process alone. */
export class OwnNames implements OneTimeNames {
  readonly #names = new Map<string, string>()
  readonly #byOwner = new Map<string, Set<string>>()

  async set(name: string, _ttlMs: number, owner: string): Promise<void> {
    const own = this.#byOwner.get(owner)
    const [oldest] = own && own.size >= MAX_NAMES_OF_ONE ? own : this.#names.size >= MAX_NAMES ? this.#names.keys() : []
    if (oldest !== undefined) await this.take(oldest)
    this.#names.set(name, owner)
    const names = this.#byOwner.get(owner) ?? new Set()
    this.#byOwner.set(owner, names.add(name))
  }

  async take(name: string): Promise<boolean> {
    const owner = this.#names.get(name)
    if (owner === undefined) return false
    this.#names.delete(name)
    const names = this.#byOwner.get(owner)
    names?.delete(name)
    if (names?.size === 0) this.#byOwner.delete(owner)
    return true
  }
}

export interface TicketsOptions {
  /** of the tokens: every process that has it can read a ticket; undefined: there are neither */
  readonly secret: string | undefined
  readonly names: OneTimeNames
  readonly clock: Clock
}

type Content = readonly [name: string, until: number, userId: string, isAdmin: boolean, expiresAt: number | null]

/** Stands in for a token in the address of one stream: short-lived, for one use, and good for nothing else. */
export class Tickets {
  readonly #names: OneTimeNames
  readonly #clock: Clock
  readonly #key: Buffer

  constructor({ secret, names, clock }: TicketsOptions) {
    this.#names = names
    this.#clock = clock
    // A key of its own: what is sealed as a ticket is no token, and no token is a ticket.
    this.#key = createHmac('sha256', secret ?? randomBytes(32))
      .update('stream tickets')
      .digest()
  }

  async issue({
    userId,
    isAdmin,
    expiresAt,
  }: Caller): Promise<{ readonly ticket: string; readonly expiresAt: number }> {
    const until = this.#clock.now() + TICKET_MS
    const name = randomBytes(18).toString('base64url')
    await this.#names.set(name, TICKET_MS, userId)
    const content: Content = [name, until, userId, isAdmin, Number.isFinite(expiresAt) ? expiresAt : null]
    const text = Buffer.from(JSON.stringify(content)).toString('base64url')
    return { ticket: `${text}.${this.#seal(text).toString('base64url')}`, expiresAt: until }
  }

  /** @returns whose it was, once; undefined: it is unknown, used, or too old */
  async redeem(ticket: string): Promise<Caller | undefined> {
    const [text = '', seal = ''] = ticket.split('.')
    const [given, expected] = [Buffer.from(seal, 'base64url'), this.#seal(text)]
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined
    const content = JSON.parse(Buffer.from(text, 'base64url').toString()) as Content // sealed by us
    const [name, until, userId, isAdmin, tokenEnds] = content
    const expiresAt = tokenEnds ?? Number.POSITIVE_INFINITY
    const now = this.#clock.now()
    const isTaken = await this.#names.take(name)
    return isTaken && now < until && now < expiresAt ? { userId, isAdmin, expiresAt } : undefined
  }

  #seal(text: string): Buffer {
    return createHmac('sha256', this.#key).update(text).digest()
  }
}
