import type { Socket } from 'node:net'
import { Channel } from '#processes'
import type { Arrival } from '../line/line.ts'
import type { ToFront, ToOwner } from './messages.ts'
import { RelayedLine } from './relayed-line.ts'

export interface FrontLinkOptions {
  readonly socket: Socket
  now(): number
  serve(arrival: Arrival, first: Uint8Array): void
  /** a stream is gone, or all of them with the front */
  onGone(): void
}

/** The owner's end of the channel from one front: its streams, served as if they had come here. */
export class FrontLink implements AsyncDisposable {
  readonly #options: FrontLinkOptions
  readonly #channel: Channel<ToFront, ToOwner>
  readonly #lines = new Map<number, RelayedLine>()
  #isFull = false

  constructor(options: FrontLinkOptions) {
    this.#options = options
    this.#channel = new Channel<ToFront, ToOwner>(options.socket, {
      heard: (message, bytes) => this.#heard(message, bytes),
      asked: () => Promise.resolve('alive'),
      drained: () => this.#drained(),
      closed: () => this.#closed(),
    })
  }

  get streams(): number {
    return this.#lines.size
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#channel[Symbol.asyncDispose]()
  }

  #heard(message: ToOwner, bytes: Uint8Array) {
    if (message.kind === 'open') return this.#open(message, bytes)
    const line = this.#lines.get(message.stream)
    switch (message.kind) {
      case 'message':
        return line?.subscriber?.message(Buffer.from(bytes)) // kept until the log has it
      case 'finished':
        return line?.subscriber?.finished()
      case 'read':
        return line?.read(message.bytes)
      case 'stopping':
        return line?.subscriber?.stopping()
      case 'closed':
        this.#lines.delete(message.stream)
        line?.subscriber?.closed(message.why, message.silentMs)
        return this.#options.onGone()
      case 'alive':
        return // asked, never told
      default:
        message satisfies never
    }
  }

  #open({ stream, peer, presented }: ToOwner & { readonly kind: 'open' }, first: Uint8Array) {
    const line = new RelayedLine({
      stream,
      tell: (message, bytes) => {
        if (!this.#channel.tell(message, bytes)) this.#isFull = true
      },
      isFlowing: () => !this.#isFull,
    })
    this.#lines.set(stream, line)
    this.#options.serve({ line, peer, presented, since: this.#options.now() }, Buffer.from(first))
  }

  #drained() {
    this.#isFull = false
    for (const line of [...this.#lines.values()]) line.flow()
  }

  #closed() {
    const lines = [...this.#lines.values()]
    this.#lines.clear()
    for (const line of lines) line.subscriber?.closed('the process of the hub that had its connection ended', 0)
    this.#options.onGone()
  }
}
