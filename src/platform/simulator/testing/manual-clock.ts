import type { Clock } from '#model'

/** Time that stands still until a test moves it. */
export class ManualClock implements Clock {
  #now: number
  readonly #sleepers = new Set<{ readonly until: number; readonly wake: () => void }>()

  constructor(now = Date.UTC(2026, 10, 21, 9, 0, 0)) {
    this.#now = now
  }

  now(): number {
    return this.#now
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted || ms <= 0) return resolve()
      const sleeper = {
        until: this.#now + ms,
        wake: () => {
          this.#sleepers.delete(sleeper)
          signal?.removeEventListener('abort', sleeper.wake)
          resolve()
        },
      }
      this.#sleepers.add(sleeper)
      signal?.addEventListener('abort', sleeper.wake, { once: true })
    })
  }

  advance(ms: number): void {
    this.#now += ms
    for (const sleeper of [...this.#sleepers]) if (sleeper.until <= this.#now) sleeper.wake()
  }
}
