import { SinkError } from './sink.ts'

/** So many at a time; others wait in the order they came, so many of them. */
export class Slots {
  readonly #waiting: (() => void)[] = []
  readonly #maxWaiting: number
  #free: number

  constructor(count: number, maxWaiting: number) {
    this.#free = count
    this.#maxWaiting = maxWaiting
  }

  /**
   * @returns what gives the slot back, once
   * @throws SinkError, transient, where too many wait already; the reason of the signal where it ends the wait
   */
  async take(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted()
    if (this.#free > 0) this.#free--
    else if (this.#waiting.length >= this.#maxWaiting)
      throw new SinkError(
        'transient',
        `${this.#waiting.length} calls wait for the sink already; it is tried again later`,
      )
    else await this.#turn(signal)
    let isGiven = false
    return () => {
      if (isGiven) return
      isGiven = true
      const next = this.#waiting.shift()
      if (next) next()
      else this.#free++
    }
  }

  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiting.splice(this.#waiting.indexOf(turn), 1)
        reject(signal.reason)
      }
      const turn = () => {
        signal.removeEventListener('abort', leave)
        resolve()
      }
      this.#waiting.push(turn)
      signal.addEventListener('abort', leave, { once: true })
    })
  }
}
