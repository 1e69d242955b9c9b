import { type Clock, seconds, steadyClock } from '#model'

/** An agent waits about so long for an answer before it gives a connection up. */
const STOOD_STILL_MS = seconds(4)

/** When this process, or its machine, stood still: streams that end then end because of it. */
export class Pauses {
  readonly #clock: Clock
  readonly #everyMs: number
  #resumedAt = Number.NEGATIVE_INFINITY
  #seen: { readonly steady: number; readonly wall: number }

  /** @param options.everyMs between two looks */
  constructor({ clock, everyMs }: { readonly clock: Clock; readonly everyMs: number }) {
    this.#clock = clock
    this.#everyMs = everyMs
    this.#seen = this.#now()
  }

  /** What happened meanwhile may be told before the next look is due: asked for, it looks itself. */
  get resumedAt(): number {
    this.look()
    return this.#resumedAt
  }

  look(): void {
    const before = this.#seen
    this.#seen = this.#now()
    const { steady, wall } = this.#seen
    // A machine that slept may have a steady clock that slept, too.
    const passed = Math.max(steady - before.steady, wall - before.wall)
    if (passed >= this.#everyMs + STOOD_STILL_MS) this.#resumedAt = wall
  }

  #now() {
    return { steady: steadyClock.now(), wall: this.#clock.now() }
  }
}
