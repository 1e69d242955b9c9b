import type { Clock } from '#model'

/** A clock that stands still until it is told to go on. Sleepers wake in order of time. */
export class ManualClock implements Clock {
  #now: number
  #sleepers: { readonly due: number; readonly wake: () => void }[] = []

  constructor(now = Date.UTC(2026, 0, 1)) {
    this.#now = now
  }

  now(): number {
    return this.#now
  }

  /** sleepers that wait now */
  get sleepers(): number {
    return this.#sleepers.length
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      const sleeper = {
        due: this.#now + ms,
        wake: () => {
          this.#sleepers = this.#sleepers.filter((entry) => entry !== sleeper)
          signal?.removeEventListener('abort', sleeper.wake)
          resolve()
        },
      }
      this.#sleepers.push(sleeper)
      signal?.addEventListener('abort', sleeper.wake, { once: true })
    })
  }

  /** Lets time pass; everyone who is due wakes at their time, and what they do then is done before time goes on. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms
    await settle()
    for (;;) {
      const next = this.#sleepers.filter(({ due }) => due <= end).sort((a, b) => a.due - b.due)[0]
      if (!next) break
      this.#now = Math.max(this.#now, next.due)
      next.wake()
      await settle()
    }
    this.#now = end
  }
}

/** Lets every promise that can go on go on. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
}
