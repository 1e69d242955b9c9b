import type { Informer } from '#controller'
import type { KubeObject } from '#kube'
import type { Clock } from '#model'

/** Between two looks passes so many times what the last one took, and no less and no more than this, ms: an API that was slow may be well. */
const PAUSE_PER_LOOK = 10
const LEAST_PAUSE_MS = 200
const LONGEST_PAUSE_MS = 5_000

/**
 * Reads anew, from the API itself, what targets are judged by. Watches of several kinds do not tell things in the order in which they
 * happened: one may be late or silent, and nothing shows it. What takes rows away is believed once it holds by a look that began later.
 */
export class SecondLook {
  readonly #informers: readonly Pick<Informer<KubeObject>, 'renew'>[]
  readonly #clock: Clock
  readonly #onDone: () => void
  #begun = 0
  #done = 0
  #wanted = 0
  #running: Promise<void> | undefined

  /** @param onDone a look that somebody asked for is over */
  constructor(informers: readonly Pick<Informer<KubeObject>, 'renew'>[], clock: Clock, onDone: () => void) {
    this.#informers = informers
    this.#clock = clock
    this.#onDone = onDone
  }

  /** How many looks are over. */
  get done(): number {
    return this.#done
  }

  /** @returns the number of a look that begins from now on: it is over once so many are */
  ask(): number {
    this.#wanted = this.#begun + 1
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined
    })
    return this.#wanted
  }

  async #run(): Promise<void> {
    while (this.#wanted > this.#begun) {
      const startedAt = performance.now()
      this.#begun += 1
      await Promise.all(this.#informers.map((informer) => informer.renew()))
      this.#done = this.#begun
      const tookMs = performance.now() - startedAt
      this.#onDone()
      await this.#clock.sleep(Math.min(Math.max(LEAST_PAUSE_MS, tookMs * PAUSE_PER_LOOK), LONGEST_PAUSE_MS))
    }
  }
}
