import { connect } from 'node:net'
import { Channel } from '#processes'
import { grpcStatus } from '../line/grpc-status.ts'
import type { Arrival, Line, LineSubscriber } from '../line/line.ts'
import { CONFIRMED_BYTES, type ToFront, type ToOwner } from './messages.ts'

export interface OwnerLinkOptions {
  readonly path: string
  readonly greeting: Buffer
  /** sweeps without a word from the owner before it is asked for one, and then before it counts as away */
  readonly quietSweeps: number
  readonly patientSweeps: number
  /** a stream is gone */
  onGone(): void
  /** the owner is away, and so many streams with it */
  closed(streams: number): void
}

/** The front's end of the channel to one owner, and the streams carried for it. Opens at once; closed, it stays so. */
export class OwnerLink implements AsyncDisposable {
  readonly #options: OwnerLinkOptions
  readonly #channel: Channel<ToOwner, ToFront>
  readonly #streams = new Map<number, Carried>()
  #next = 1
  // Counted in sweeps, not in time: what comes waits while this process stands still, and they do not pass.
  #quiet = 0

  constructor(options: OwnerLinkOptions) {
    this.#options = options
    // What is written before the owner has taken the connection waits in it; where nobody is there, it closes.
    const socket = connect({ path: options.path })
    socket.write(options.greeting)
    this.#channel = new Channel<ToOwner, ToFront>(socket, {
      heard: (message, bytes) => this.#heard(message, bytes),
      closed: () => this.#closed(),
    })
  }

  get streams(): number {
    return this.#streams.size
  }

  carry({ line, peer, presented }: Arrival, first: Uint8Array): void {
    const stream = this.#next++
    const carried = new Carried(line, stream, (message, bytes) => {
      if (message.kind === 'closed') this.#streams.delete(stream)
      this.#channel.tell(message, bytes)
      if (message.kind === 'closed') this.#options.onGone()
    })
    this.#streams.set(stream, carried)
    line.subscribe(carried)
    this.#channel.tell({ kind: 'open', stream, peer, presented }, first)
  }

  /** Now and then: an owner that says nothing when it is asked is away, although its socket is not. */
  sweep(): void {
    const { quietSweeps, patientSweeps } = this.#options
    this.#quiet++
    if (this.#quiet === quietSweeps) {
      // Where the channel closes instead, `closed` says so.
      this.#channel.ask({ kind: 'alive', stream: 0 }).then(this.#heardOf, () => undefined)
    } else if (this.#quiet > quietSweeps + patientSweeps) void this.#channel[Symbol.asyncDispose]()
  }

  /** The owner ends what is carried for it, once what is under way is acknowledged. */
  stop(): void {
    for (const carried of this.#streams.values()) carried.stopping()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#channel[Symbol.asyncDispose]()
  }

  readonly #heardOf = () => {
    this.#quiet = 0
  }

  #heard(message: ToFront, bytes: Uint8Array) {
    this.#heardOf()
    const carried = this.#streams.get(message.stream)
    switch (message.kind) {
      case 'more':
        // Of what is carried here the first message is a registration: the owner asks for more where it took that.
        return carried?.line.allow('member')
      case 'message':
        return carried?.write(Buffer.from(bytes))
      case 'end':
        return carried?.line.end(message.status, message.details)
      default:
        message satisfies never
    }
  }

  #closed() {
    const streams = [...this.#streams.values()]
    for (const { line } of streams) line.end(grpcStatus.unavailable, OWNER_AWAY)
    this.#options.closed(streams.length)
  }
}

const OWNER_AWAY = 'unavailable: the process of the hub that has this cluster is being started again'

/** One stream that came here and belongs to another process. */
class Carried implements LineSubscriber {
  readonly line: Line
  readonly #stream: number
  readonly #tell: (message: ToOwner, bytes?: Uint8Array) => void
  #unconfirmed = 0

  constructor(line: Line, stream: number, tell: (message: ToOwner, bytes?: Uint8Array) => void) {
    this.line = line
    this.#stream = stream
    this.#tell = tell
  }

  write(bytes: Uint8Array): void {
    this.#unconfirmed += bytes.length
    if (this.line.write(bytes) && this.#unconfirmed >= CONFIRMED_BYTES) this.drained()
  }

  message(bytes: Uint8Array): void {
    this.#tell({ kind: 'message', stream: this.#stream }, bytes)
  }

  finished(): void {
    this.#tell({ kind: 'finished', stream: this.#stream })
  }

  drained(): void {
    this.#tell({ kind: 'read', stream: this.#stream, bytes: this.#unconfirmed })
    this.#unconfirmed = 0
  }

  stopping(): void {
    this.#tell({ kind: 'stopping', stream: this.#stream })
  }

  closed(why: string, silentMs: number): void {
    this.#tell({ kind: 'closed', stream: this.#stream, why, silentMs })
  }
}
