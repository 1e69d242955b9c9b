import { decodeRequest } from '#wire'
import type { Arrival, LineSubscriber } from '../line/line.ts'

export interface WaitingOptions {
  /** for the first message, ms */
  readonly patienceMs: number
  now(): number
  /** its first message is here, and the cluster it claims if it is a registration */
  claims(arrival: Arrival, first: Uint8Array, cluster: string | undefined): void
  /** serves a stream whose first message has not come */
  serve(arrival: Arrival): LineSubscriber | undefined
}

/** Streams of which nobody knows yet whose they are: held until their first message. */
export class Waiting {
  readonly #options: WaitingOptions
  /** and whether it proved who it is */
  readonly #arrivals = new Map<Arrival, boolean>()

  constructor(options: WaitingOptions) {
    this.#options = options
  }

  get streams(): number {
    return this.#arrivals.size
  }

  get unproven(): number {
    let count = 0
    for (const isProven of this.#arrivals.values()) if (!isProven) count++
    return count
  }

  hold(arrival: Arrival, isProven: boolean): void {
    const { claims } = this.#options
    this.#arrivals.set(arrival, isProven)
    arrival.line.subscribe({
      message: (bytes) => {
        this.#arrivals.delete(arrival)
        claims(arrival, bytes, claimedIn(bytes))
      },
      finished: () => this.#serve(arrival)?.finished(),
      closed: () => void this.#arrivals.delete(arrival),
      drained: () => undefined,
      stopping: () => undefined,
    })
    arrival.line.allow('newcomer')
  }

  /** What waits too long is served as it is: its session says so. */
  sweep(): void {
    const latest = this.#options.now() - this.#options.patienceMs
    for (const arrival of [...this.#arrivals.keys()]) if (arrival.since < latest) this.#serve(arrival)
  }

  /** Nothing is waited for any more. */
  stop(): void {
    for (const arrival of [...this.#arrivals.keys()]) this.#serve(arrival)
  }

  #serve(arrival: Arrival): LineSubscriber | undefined {
    this.#arrivals.delete(arrival)
    return this.#options.serve(arrival)
  }
}

/** undefined: another message, or none of this protocol; a session says what becomes of it */
function claimedIn(message: Uint8Array): string | undefined {
  try {
    const { payload } = decodeRequest(message)
    return payload.case === 'register' ? payload.value.clusterName : undefined
  } catch {
    return undefined // the session reads it again, and refuses it
  }
}
