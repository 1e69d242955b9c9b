import { randomBytes } from 'node:crypto'
import type { Change } from '#model'
import type { EventBus, EventId, NumberedChange, Subscription } from './types.ts'

/** How much an event bus keeps. */
export interface InProcessEventsOptions {
  /** changes kept for subscribers that come back; default 50 000 */
  readonly capacity?: number
  /** names this bus's numbering; random by default, so that ids of a former process are unknown */
  readonly generation?: string
  /** A listener threw: its subscription has ended. Default: the error ends the process. */
  readonly onListenerError?: (error: unknown) => void
}

interface Subscriber {
  readonly listener: (events: readonly NumberedChange[]) => void
  /** number of the last change it was given */
  given: number
}

/** Numbers changes, keeps the newest in a ring, and calls subscribers in the process. */
export class InProcessEventBus implements EventBus {
  readonly #generation: string
  readonly #capacity: number
  readonly #onListenerError: (error: unknown) => void
  /** change n stands at n modulo the capacity */
  readonly #ring: Change[] = []
  readonly #subscribers = new Set<Subscriber>()
  #head = 0

  constructor({ capacity = 50_000, generation, onListenerError = failLoudly }: InProcessEventsOptions = {}) {
    this.#capacity = capacity
    this.#generation = generation ?? randomBytes(6).toString('hex')
    this.#onListenerError = onListenerError
  }

  async publish(changes: readonly Change[]): Promise<void> {
    // In pieces that fit the ring, so that whoever follows live misses nothing, however much comes at once.
    for (let from = 0; from < changes.length; from += this.#capacity) {
      for (const change of changes.slice(from, from + this.#capacity)) {
        this.#head++
        this.#ring[this.#head % this.#capacity] = change
      }
      for (const subscriber of [...this.#subscribers]) this.#deliver(subscriber)
    }
  }

  head(): EventId {
    return this.#idOf(this.#head)
  }

  subscribe(listener: (events: readonly NumberedChange[]) => void, after?: EventId): Subscription {
    const head = this.head()
    const known = after === undefined ? this.#head : this.#numberOf(after)
    const subscriber: Subscriber = { listener, given: known ?? this.#head }
    this.#subscribers.add(subscriber)
    // After the caller has the subscription in hand; a publish that comes first delivers the same earlier.
    if (subscriber.given < this.#head) queueMicrotask(() => this.#deliver(subscriber))
    return {
      head,
      reset: known === undefined,
      [Symbol.asyncDispose]: async () => {
        this.#subscribers.delete(subscriber)
      },
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#subscribers.clear()
    this.#ring.length = 0
  }

  #deliver(subscriber: Subscriber): void {
    if (!this.#subscribers.has(subscriber) || subscriber.given >= this.#head) return
    const events: NumberedChange[] = []
    for (let number = subscriber.given + 1; number <= this.#head; number++) {
      // In the ring: it was there at subscribing, and each publish delivers before it overwrites.
      events.push({ id: this.#idOf(number), change: this.#ring[number % this.#capacity] as Change })
    }
    subscriber.given = this.#head
    try {
      subscriber.listener(events)
    } catch (error) {
      this.#subscribers.delete(subscriber)
      this.#onListenerError(error)
    }
  }

  #oldest(): number {
    return Math.max(1, this.#head - this.#capacity + 1)
  }

  #idOf(number: number): EventId {
    return `${this.#generation}-${number}`
  }

  /** undefined: not of this bus, or what follows it is no longer here */
  #numberOf(id: EventId): number | undefined {
    const dash = id.lastIndexOf('-')
    const number = Number(id.slice(dash + 1))
    if (id.slice(0, dash) !== this.#generation || !/^\d{1,15}$/.test(id.slice(dash + 1))) return undefined
    return number <= this.#head && number >= this.#oldest() - 1 ? number : undefined
  }
}

function failLoudly(error: unknown): void {
  queueMicrotask(() => {
    throw error
  })
}
