import type { Clock } from '#model'

/** All agents' tenants share one thread: of it a namespace has so much in advance, ms, and afterwards so much of each second. */
const ADVANCE_MS = 30_000
const SHARE = 0.25
/** Objects that take less, ms, are those of ordinary profiles. */
const WORTH_COUNTING_MS = 0.1
/** One that takes so long, ms, counts so many times: several of it come in one piece of a list, and nobody has a turn between them. */
const HOLDS_UP_MS = 200
const HOLDS_UP_TIMES = 4

/** What the targets of one namespace may still take of the thread, to make rows of objects that are slow. */
export class ExtractionTime {
  readonly #clock: Clock
  #leftMs = ADVANCE_MS
  #at: number

  constructor(clock: Clock) {
    this.#clock = clock
    this.#at = clock.now()
  }

  get isLeft(): boolean {
    return this.#left() > 0
  }

  /** @param ms for one object */
  spent(ms: number): void {
    if (ms >= WORTH_COUNTING_MS) this.#leftMs = this.#left() - (ms < HOLDS_UP_MS ? ms : HOLDS_UP_TIMES * ms)
  }

  #left(): number {
    const now = this.#clock.now()
    this.#leftMs = Math.min(ADVANCE_MS, this.#leftMs + SHARE * Math.max(0, now - this.#at))
    this.#at = now
    return this.#leftMs
  }
}

/** That of every namespace; '' for targets of the cluster. */
export class ExtractionTimes {
  readonly #clock: Clock
  readonly #of = new Map<string, ExtractionTime>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  of(namespace: string): ExtractionTime {
    const known = this.#of.get(namespace) ?? new ExtractionTime(this.#clock)
    this.#of.set(namespace, known)
    return known
  }
}
