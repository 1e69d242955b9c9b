import type { Line, LineSubscriber } from '../line/line.ts'
import { type ToFront, UNREAD_BYTES } from './messages.ts'

export interface RelayedLineOptions {
  readonly stream: number
  tell(message: ToFront, bytes?: Uint8Array): void
  /** the channel takes more */
  isFlowing(): boolean
}

/** The line of a stream that came to another process. */
export class RelayedLine implements Line {
  readonly #options: RelayedLineOptions
  subscriber: LineSubscriber | undefined
  #unread = 0
  #isBlocked = false
  #hasEnded = false

  constructor(options: RelayedLineOptions) {
    this.#options = options
  }

  subscribe(subscriber: LineSubscriber): void {
    this.subscriber = subscriber
  }

  allow(): void {
    const { tell, stream } = this.#options
    if (!this.#hasEnded) tell({ kind: 'more', stream })
  }

  write(message: Uint8Array): boolean {
    const { tell, stream } = this.#options
    if (this.#hasEnded) return true
    tell({ kind: 'message', stream }, message)
    this.#unread += message.length
    this.#isBlocked = !this.#flows
    return !this.#isBlocked
  }

  end(status: number, details: string): void {
    const { tell, stream } = this.#options
    if (!this.#hasEnded) tell({ kind: 'end', stream, status, details })
    this.#hasEnded = true
  }

  /** So much more has left for the peer. */
  read(bytes: number): void {
    this.#unread -= bytes
    this.flow()
  }

  /** Something moved: who waits for it may write again. */
  flow(): void {
    if (!this.#isBlocked || !this.#flows) return
    this.#isBlocked = false
    this.subscriber?.drained()
  }

  get #flows(): boolean {
    return this.#unread < UNREAD_BYTES && this.#options.isFlowing()
  }
}
