import type { Clock } from '#model'

/**
 * All agents' tenants share one thread: of it a namespace has so much in advance, ms, and afterwards so much of each second; less
 * where several are slow, which together have so much.
 */
const ADVANCE_MS = 30_000
/** Who has taken so much of it, ms, holds up the others that are read with it. */
const SLOW_MS = 3_000
const SHARE = 0.25
const SHARE_OF_ALL = 0.5
/** Objects that take less, ms, in all targets of a namespace together, are those of ordinary profiles. */
const WORTH_COUNTING_MS = 0.1
/** One that takes so long, ms, counts so many times: several of it come in one piece of a list, and nobody has a turn between them. */
const HOLDS_UP_MS = 200
const HOLDS_UP_TIMES = 4
/** An object goes through all targets of a namespace in one piece, which may take so long, ms. */
const MAX_OBJECT_MS = 1000

/** What the targets of one namespace may still take of the thread, to make rows of objects that are slow. */
export class ExtractionTime {
  readonly #clock: Clock
  readonly #share: () => number
  readonly #onSlow: () => void
  readonly #onUsedUp: () => void
  #isSlow = false
  #wasUsedUp = false
  #leftMs = ADVANCE_MS
  #at: number
  #of: WeakRef<object> | undefined
  /** for that object, and not counted yet */
  #smallMs = 0
  /** for that object, in all targets */
  #objectMs = 0

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
    return this.isLeft && (this.#objectMs < MAX_OBJECT_MS || this.#of?.deref() !== object)
  }

  /** @param ms in one target, for this object, which comes to all of them one after the other */
  spent(ms: number, object: object): void {
    if (this.#of?.deref() !== object) {
      this.#of = new WeakRef(object)
      this.#smallMs = 0
      this.#objectMs = 0
    }
    this.#smallMs += ms
    this.#objectMs += ms
    if (this.#smallMs < WORTH_COUNTING_MS) return
    this.#leftMs = this.#left() - (ms < HOLDS_UP_MS ? this.#smallMs : HOLDS_UP_TIMES * ms)
    this.#smallMs = 0
    if (this.#leftMs <= ADVANCE_MS - SLOW_MS && !this.#isSlow) {
      this.#isSlow = true
      this.#onSlow()
    }
    if (this.#leftMs > 0 || this.#wasUsedUp) return
    this.#wasUsedUp = true
    this.#onUsedUp()
  }

  #left(): number {
    const now = this.#clock.now()
    this.#leftMs = Math.min(ADVANCE_MS, this.#leftMs + this.#share() * Math.max(0, now - this.#at))
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
