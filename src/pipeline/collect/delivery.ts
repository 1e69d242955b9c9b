import { type Clock, FleetError, type RowsPart } from '#model'
import type { Logger } from '#runtime'

interface Waiting {
  readonly part: RowsPart
  readonly collectedAt: number
  readonly signal: AbortSignal
  readonly delivered: () => void
}

/** What finishes within this time travels together, ms. */
const GATHER_MS = 100

export interface DeliveryOptions {
  readonly onParts: (parts: readonly RowsPart[], collectedAt: number) => Promise<void>
  readonly clock: Clock
  readonly logger: Logger
}

/** Hands over what was collected: gathered, one hand-over at a time, in the order of arrival. Each source waits for its own. */
export class Delivery {
  readonly #options: DeliveryOptions
  #waiting: Waiting[] = []
  readonly #hurry = new AbortController()
  #running: Promise<void> | undefined

  constructor(options: DeliveryOptions) {
    this.#options = options
  }

  /** Resolves when the part was taken; at once when it is not wanted any more. One of a source at a time. */
  async deliver(part: RowsPart, collectedAt: number, signal: AbortSignal): Promise<void> {
    await new Promise<void>((delivered) => {
      this.#waiting.push({ part, collectedAt, signal, delivered })
      this.#running ??= this.#run().finally(() => {
        this.#running = undefined
      })
    })
  }

  /** Nothing more is gathered: what waits goes at once. */
  hurry(): void {
    this.#hurry.abort()
  }

  async #run(): Promise<void> {
    const { clock } = this.#options
    while (this.#waiting.length > 0) {
      await clock.sleep(GATHER_MS, this.#hurry.signal)
      const taken = this.#waiting
      this.#waiting = []
      await this.#tell(taken.filter(({ signal }) => !signal.aborted))
      for (const { delivered } of taken) delivered()
    }
  }

  async #tell(wanted: readonly Waiting[]): Promise<void> {
    if (wanted.length === 0) return
    const collectedAt = Math.min(...wanted.map((one) => one.collectedAt))
    try {
      await this.#options.onParts(
        wanted.map(({ part }) => part),
        collectedAt,
      )
    } catch (error) {
      if (wanted.every(({ signal }) => signal.aborted)) return
      // The next collection says it again.
      this.#options.logger.error({ err: FleetError.from(error) }, 'what sources collected could not be handed over')
    }
  }
}
