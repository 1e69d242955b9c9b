import { type Clock, seconds } from '#model'
import type { Frame } from './frame.ts'

/** The open end of a stream, whatever it is spoken over. */
export interface Sink {
  /** takes no more for now */
  readonly isBusy: boolean
  write(frame: Frame): void
  /** a sign of life that carries nothing */
  beat(): void
  /** @param last told before the end, where the protocol has a word for it */
  end(last?: Frame): void
  /** called when a busy sink takes more again */
  onDrain(listener: () => void): void
}

/** A client that takes nothing for that long is cut off, ms. */
const STUCK_MS = seconds(30)
/** Differences that may wait for a slow client; beyond them it is given the whole anew. */
const MAX_WAITING_BYTES = 2 ** 20

/** One client with what waits for it. */
export class Client {
  readonly #sink: Sink
  readonly #clock: Clock
  #waiting: Frame[] = []
  #waitingBytes = 0
  #stuckSince: number | undefined
  #isListening = false
  /** differences were dropped: what it holds is no picture any more */
  isBehind = false
  dropped = 0

  constructor(sink: Sink, clock: Clock) {
    this.#sink = sink
    this.#clock = clock
  }

  send(frame: Frame): void {
    if (this.isReady) {
      this.#sink.write(frame)
      return
    }
    this.#stall()
    const older = frame.slot === undefined ? -1 : this.#waiting.findIndex(({ slot }) => slot === frame.slot)
    if (older >= 0) {
      this.#waitingBytes -= this.#waiting[older]?.body.data.length ?? 0
      this.#waiting.splice(older, 1)
      this.dropped++
    }
    this.#waiting.push(frame)
    this.#waitingBytes += frame.body.data.length
    if (frame.slot === undefined && this.#waitingBytes > MAX_WAITING_BYTES) {
      this.dropped += this.#waiting.length
      this.#waiting = []
      this.#waitingBytes = 0
      this.isBehind = true
    }
  }

  /** @returns whether it takes anything at all */
  beat(): boolean {
    if (this.#stuckSince !== undefined) return this.#clock.now() - this.#stuckSince < STUCK_MS
    if (this.#sink.isBusy) this.#stall()
    else this.#sink.beat()
    return true
  }

  get isReady(): boolean {
    return !this.#sink.isBusy && this.#waiting.length === 0
  }

  end(last?: Frame): void {
    this.#waiting = []
    this.#sink.end(last)
  }

  #stall(): void {
    this.#stuckSince ??= this.#clock.now()
    if (this.#isListening) return
    // Most clients never come here: thousands of listeners are not made.
    this.#isListening = true
    this.#sink.onDrain(() => this.#pump())
  }

  #pump(): void {
    this.#stuckSince = undefined
    while (!this.#sink.isBusy) {
      const frame = this.#waiting.shift()
      if (!frame) return
      this.#waitingBytes -= frame.body.data.length
      this.#sink.write(frame)
    }
    if (this.#waiting.length > 0) this.#stall()
  }
}
