import type { ServerDuplexStream } from '@grpc/grpc-js'
import { grpcStatus } from '../line/grpc-status.ts'
import type { Line, LineSubscriber } from '../line/line.ts'
import type { Gate } from './gate.ts'
import type { Cut } from './listener.ts'

export type RawCall = ServerDuplexStream<Buffer, Uint8Array>

export interface GrpcLineOptions {
  readonly call: RawCall
  readonly gate: Gate
  /** from the end of a stream to its end by force */
  readonly goodbyeMs: number
  /** ends the connection under a stream that does not end */
  drop(): void
  /** of its connection, by the hub */
  readonly cut: Cut
}

/** The line of a call that came to this process. */
export class GrpcLine implements Line {
  readonly #options: GrpcLineOptions
  #subscriber: LineSubscriber | undefined
  #isClosed = false
  #patience: NodeJS.Timeout | undefined

  constructor(options: GrpcLineOptions) {
    const { call } = options
    this.#options = options
    call.on('data', (bytes: Buffer) => this.#subscriber?.message(bytes))
    // The end of a connection that was cut reads like an end that the peer wanted.
    call.on('end', () => (options.cut.why ? this.#close() : this.#subscriber?.finished()))
    call.on('drain', () => this.#subscriber?.drained())
    call.once('cancelled', () => this.#close())
    call.once('close', () => this.#close())
  }

  subscribe(subscriber: LineSubscriber): void {
    this.#subscriber = subscriber
  }

  allow(by: 'newcomer' | 'member'): void {
    this.#options.gate.allow(by)
  }

  write(message: Uint8Array): boolean {
    return this.#options.call.write(message)
  }

  end(status: number, details: string): void {
    if (this.#isClosed || this.#patience) return
    const { call, drop, goodbyeMs } = this.#options
    this.#patience = setTimeout(drop, goodbyeMs)
    // The library ends a stream with a status other than "ok" by this event only.
    if (status === grpcStatus.ok) call.end()
    else call.emit('error', { code: status, details })
  }

  #close() {
    if (this.#isClosed) return
    this.#isClosed = true
    clearTimeout(this.#patience)
    const { why, silentMs } = this.#options.cut
    this.#subscriber?.closed(why, silentMs)
  }
}
