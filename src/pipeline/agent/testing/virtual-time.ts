import type { Clock } from '#model'
import type { Monotonic } from '../boot.ts'

interface Sleeper {
  readonly at: number
  wake(): void
}

/** Time that a test owns. The clock of the wall may jump; the monotonic one goes with `advance` only. */
export class VirtualTime implements Clock {
  readonly monotonic: Monotonic
  #elapsed = 0
  #offset: number
  #sleepers: Sleeper[] = []

  constructor(startsAt: number, bootId = 'boot-1') {
    this.#offset = startsAt
    this.monotonic = { bootId, now: () => this.#elapsed }
  }

  now(): number {
    return this.#offset + this.#elapsed
  }

  /** The clock of the wall is set by this much. */
  jump(ms: number): void {
    this.#offset += ms
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve()
      const sleeper: Sleeper = {
        at: this.#elapsed + ms,
        wake: () => {
          signal?.removeEventListener('abort', sleeper.wake)
          this.#sleepers = this.#sleepers.filter((other) => other !== sleeper)
          resolve()
        },
      }
      this.#sleepers.push(sleeper)
      signal?.addEventListener('abort', sleeper.wake, { once: true })
    })
  }

  /** Goes on by this much, from one sleeper to the next; `settled` waits until nothing moves any more. */
  async advance(ms: number, settled: () => Promise<void>): Promise<void> {
    const until = this.#elapsed + ms
    await settled()
    for (;;) {
      const next = this.#sleepers.reduce<Sleeper | undefined>((a, b) => (a && a.at <= b.at ? a : b), undefined)
      if (!next || next.at > until) break
      this.#elapsed = Math.max(this.#elapsed, next.at)
      next.wake()
      await settled()
    }
    this.#elapsed = until
    await settled()
  }
}
