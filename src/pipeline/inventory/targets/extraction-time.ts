import type { Clock } from '#model'

/**
 * All agents' tenants share one thread: of it a namespace has so much in advance, ms, and afterwards so much of each second; less
 * where several are slow, which together have so much.
 */
const ADVANCE_MS = 30_000
/** Who has taken so much, ms, holds up the others that are read with it; so much of each second is forgotten. */
const SLOW_MS = 2_000
const FORGOTTEN = 0.02
const SHARE = 0.25
const SHARE_OF_ALL = 0.5
/** Objects that take less, ms, in all targets of a namespace together, are those of ordinary profiles. */
const WORTH_COUNTING_MS = 0.1
/** One that takes so long, ms, counts so many times: several of it come in one piece of a list, and nobody has a turn between them. */
const HOLDS_UP_MS = 200
const HOLDS_UP_TIMES = 4
/** All targets of a namespace may take so long for one object, ms. */
const MAX_OBJECT_MS = 1000

/** What one object took so far, in all targets, and what of it is not counted yet. */
interface OfObject {
  ms: number
  smallMs: number
}

/** What the targets of one namespace may still take of the thread, to make rows of objects that are slow. */
export class ExtractionTime {
  readonly #clock: Clock
  readonly #share: () => number
  readonly #onSlow: () => void
  readonly #onUsedUp: () => void
  #isSlow = false
  /** taken lately */
  #takenMs = 0
  #wasUsedUp = false
  #leftMs = ADVANCE_MS
  #at: number
  readonly #ofObjects = new WeakMap<object, OfObject>()

  /** @param on share: of each second, from 0 to 1; the others are told once, in the middle of work: they must not do much */
  constructor(
    clock: Clock,
    on: { readonly share: () => number; readonly onSlow: () => void; readonly onUsedUp: () => void },
  ) {
    this.#clock = clock
    this.#share = on.share
    this.#onSlow = on.onSlow
    this.#onUsedUp = on.onUsedUp
    this.#at = clock.now()
  }

  /** Whether it ever was slow: then it is read apart from what others want. */
  get isSlow(): boolean {
    return this.#isSlow
  }

  get isLeft(): boolean {
    return this.#left() > 0
  }

  /** Whether there is some for one more target that may take this object. */
  isLeftFor(object: object): boolean {
    return this.isLeft && (this.#ofObjects.get(object)?.ms ?? 0) < MAX_OBJECT_MS
  }

  /** @param ms in one target, for this object, which comes to all of them */
  spent(ms: number, object: object): void {
    const of = this.#ofObjects.get(object) ?? { ms: 0, smallMs: 0 }
    this.#ofObjects.set(object, of)
    of.smallMs += ms
    of.ms += ms
    if (of.smallMs < WORTH_COUNTING_MS) return
    const takenMs = ms < HOLDS_UP_MS ? of.smallMs : HOLDS_UP_TIMES * ms
    this.#leftMs = this.#left() - takenMs
    this.#takenMs += takenMs
    of.smallMs = 0
    if (this.#takenMs >= SLOW_MS && !this.#isSlow) {
      this.#isSlow = true
      this.#onSlow()
    }
    if (this.#leftMs > 0 || this.#wasUsedUp) return
    this.#wasUsedUp = true
    this.#onUsedUp()
  }

  #left(): number {
    const now = this.#clock.now()
    const elapsedMs = Math.max(0, now - this.#at)
    this.#leftMs = Math.min(ADVANCE_MS, this.#leftMs + this.#share() * elapsedMs)
    this.#takenMs = Math.max(0, this.#takenMs - FORGOTTEN * elapsedMs)
    this.#at = now
    return this.#leftMs
  }
}

/** That of every namespace; '' for targets of the cluster. */
export class ExtractionTimes {
  readonly #clock: Clock
  readonly #of = new Map<string, ExtractionTime>()
  #usedUp = 0
  /** told when a namespace is slow for the first time, in the middle of work: it must not do much */
  onSlow: () => void = () => undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  of(namespace: string): ExtractionTime {
    const known = this.#of.get(namespace) ?? this.#made()
    this.#of.set(namespace, known)
    return known
  }

  #made(): ExtractionTime {
    return new ExtractionTime(this.#clock, {
      share: () => Math.min(SHARE, SHARE_OF_ALL / Math.max(1, this.#usedUp)),
      onSlow: () => this.onSlow(),
      onUsedUp: () => {
        this.#usedUp++
      },
    })
  }
}
