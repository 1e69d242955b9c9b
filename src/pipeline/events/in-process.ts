import { randomBytes } from 'node:crypto'
import type { Change, ChangeStep } from '#model'
import type { EventBus, EventId, NumberedChange, Subscription } from './types.ts'

/** How much an event bus keeps. */
export interface InProcessEventsOptions {
  /** changes kept for subscribers that come back; default 50 000. A step that has more is kept by nobody */
  readonly capacity?: number
  /** names this bus's own steps; random by default, so that ids of a former process are unknown */
  readonly generation?: string
  /** A listener threw: its subscription has ended. Default: the error ends the process. */
  readonly onListenerError?: (error: unknown) => void
}

interface Subscriber {
  readonly listener: (events: readonly NumberedChange[]) => void
  /** number of the last step it was given */
  given: number
}

/** Keeps the newest steps, and calls subscribers in the process. Steps are its own, or those of a store that it follows. */
export class InProcessEventBus implements EventBus {
  readonly #generation: string
  readonly #capacity: number
  readonly #onListenerError: (error: unknown) => void
  /** the step of number n stands at n - `#first` */
  readonly #steps: ChangeStep[] = []
  readonly #numbers = new Map<EventId, number>()
  readonly #subscribers = new Set<Subscriber>()
  #first = 1
  /** of the steps that are kept */
  #size = 0
  #head: EventId
  /** id of the step before those that are kept: who has it can still be given all */
  #before: EventId
  #published = 0

  constructor({ capacity = 50_000, generation, onListenerError = failLoudly }: InProcessEventsOptions = {}) {
    this.#capacity = capacity
    this.#generation = generation ?? randomBytes(6).toString('hex')
    this.#onListenerError = onListenerError
    this.#head = `${this.#generation}-0`
    this.#before = this.#head
    this.#numbers.set(this.#head, 0)
  }

  async publish(changes: readonly Change[]): Promise<void> {
    if (changes.length === 0) return
    this.#published++
    this.take([{ id: `${this.#generation}-${this.#published}`, changes }])
  }

  /** Steps whose state can be read now; those of the past first. */
  take(steps: readonly ChangeStep[]): void {
    for (const step of steps) this.#keep(step)
    for (const subscriber of [...this.#subscribers]) this.#deliver(subscriber)
    // Not before: who follows live misses nothing, however much comes at once.
    this.#trim()
  }

  head(): EventId {
    return this.#head
  }

  subscribe(listener: (events: readonly NumberedChange[]) => void, after?: EventId): Subscription {
    const head = this.#head
    const known = after === undefined ? this.#last() : this.#numbers.get(after)
    const subscriber: Subscriber = { listener, given: known ?? this.#last() }
    this.#subscribers.add(subscriber)
    // After the caller has the subscription in hand; a step that comes first delivers the same earlier.
    if (subscriber.given < this.#last()) queueMicrotask(() => this.#deliver(subscriber))
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
    this.#steps.length = 0
    this.#numbers.clear()
  }

  /** number of the head */
  #last(): number {
    return this.#first + this.#steps.length - 1
  }

  #keep(step: ChangeStep): void {
    this.#steps.push(step)
    this.#size += sizeOf(step)
    this.#head = step.id
    this.#numbers.set(step.id, this.#last())
    if (step.isPast) for (const subscriber of this.#subscribers) subscriber.given = this.#last()
  }

  #trim(): void {
    let gone = 0
    for (; this.#size > this.#capacity; gone++) {
      this.#size -= sizeOf(this.#steps[gone] as ChangeStep) // as long as there is a size there is a step
      const before = gone === 0 ? this.#before : (this.#steps[gone - 1] as ChangeStep).id
      if (this.#numbers.get(before) === this.#first + gone - 1) this.#numbers.delete(before)
    }
    if (gone === 0) return
    this.#before = (this.#steps[gone - 1] as ChangeStep).id
    this.#steps.splice(0, gone)
    this.#first += gone
  }

  #deliver(subscriber: Subscriber): void {
    if (!this.#subscribers.has(subscriber) || subscriber.given >= this.#last()) return
    const missed = this.#steps.slice(subscriber.given + 1 - this.#first)
    subscriber.given = this.#last()
    const events = missed.flatMap(({ id, changes }) => changes.map((change): NumberedChange => ({ id, change })))
    if (events.length === 0) return
    try {
      subscriber.listener(events)
    } catch (error) {
      this.#subscribers.delete(subscriber)
      this.#onListenerError(error)
    }
  }
}

/** A step without changes takes its place as well. */
const sizeOf = ({ changes }: ChangeStep): number => Math.max(1, changes.length)

function failLoudly(error: unknown): void {
  queueMicrotask(() => {
    throw error
  })
}
