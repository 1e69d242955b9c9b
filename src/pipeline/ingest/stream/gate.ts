import type { ServerHttp2Stream } from 'node:http2'
import {
  type Metadata,
  ResponderBuilder,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
  ServerListenerBuilder,
} from '@grpc/grpc-js'
import { MessageReader, type ReaderOptions } from './message-reader.ts'

/**
 * The library's call beneath its interceptors, as far as it shows it to nobody: one bound of messages counts for all calls of
 * a server there, and no later moment can change it. A call that has it otherwise is not served.
 */
interface RawReading {
  decoder: { write(data: Buffer): Buffer[] }
  /** what comes of the stream; paused once it made a message */
  handleDataFrame(data: Buffer): void
  readonly stream: Pick<ServerHttp2Stream, 'close'>
}

const RESET_AFTER_MS = 2_000
const NOTHING = Buffer.alloc(0)

/**
 * Lets one message of a call through at a time, when asked. The library alone reads sixteen ahead, whatever their size;
 * behind the gate they stay in the windows of HTTP/2, and so with the sender.
 */
export class Gate extends ServerInterceptingCall {
  readonly #raw: RawReading
  readonly #reader: MessageReader
  #allowed = 0
  #wanted = false

  constructor(
    call: ServerInterceptingCallInterface & RawReading,
    responder: ConstructorParameters<typeof ServerInterceptingCall>[1],
    reader: MessageReader,
  ) {
    super(call, responder)
    call.decoder = reader
    this.#raw = call
    this.#reader = reader
  }

  override startRead(): void {
    this.#wanted = true
    this.#read()
  }

  /** One more message may come. */
  allow(by: 'newcomer' | 'member'): void {
    if (by === 'member') this.#reader.admit()
    this.#allowed++
    this.#read()
  }

  #read(): void {
    if (!this.#wanted || this.#allowed === 0) return
    this.#wanted = false
    this.#allowed--
    // What came with the message before: the stream may have nothing more to bring it.
    if (this.#reader.isReady) this.#raw.handleDataFrame(NOTHING)
    super.startRead()
  }
}

/** The gates of calls by the metadata they came with, which is all that a handler shares with its interceptor. */
export class Gates {
  readonly #options: ReaderOptions
  readonly #gates = new WeakMap<Metadata, Gate>()

  constructor(options: ReaderOptions) {
    this.#options = options
  }

  readonly interceptor: ServerInterceptor = (_method, call) => {
    if (!isRawReading(call)) return new ServerInterceptingCall(call)
    const reader = new MessageReader(this.#options)
    const gate: Gate = new Gate(
      call,
      new ResponderBuilder()
        .withStart((next) =>
          next(
            new ServerListenerBuilder()
              .withOnReceiveMetadata((metadata, pass) => {
                this.#gates.set(metadata, gate)
                pass(metadata)
              })
              .withOnCancel(() => {
                reader.close()
                // Whoever has its status by then, and does not end its half, would send on and keep the stream.
                setTimeout(() => call.stream.close(), RESET_AFTER_MS).unref()
              })
              .build(),
          ),
        )
        .build(),
      reader,
    )
    return gate
  }

  of(metadata: Metadata): Gate | undefined {
    return this.#gates.get(metadata)
  }
}

const isRawReading = (call: ServerInterceptingCallInterface): call is ServerInterceptingCallInterface & RawReading =>
  'decoder' in call && 'stream' in call && 'handleDataFrame' in call && typeof call.handleDataFrame === 'function'
