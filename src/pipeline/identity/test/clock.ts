import type { Clock } from '#model'

/** A clock that stands until it is set. */
export class TestClock implements Clock {
  #now: number

  constructor(now = Date.now()) {
    this.#now = now
  }

  now(): number {
    return this.#now
  }

  async sleep(): Promise<void> {
    throw new Error('nothing here may sleep')
  }

  pass(ms: number): void {
    this.#now += ms
  }
}
