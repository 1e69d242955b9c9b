import {
  type Metadata,
  ResponderBuilder,
  ServerInterceptingCall,
  type ServerInterceptor,
  ServerListenerBuilder,
} from '@grpc/grpc-js'

/**
 * Lets one message of a call through at a time, when asked. The library alone reads sixteen ahead, whatever their size;
 * behind the gate they stay in the windows of HTTP/2, and so with the sender.
 */
export class Gate extends ServerInterceptingCall {
  #allowed = 0
  #wanted = false

  override startRead(): void {
    this.#wanted = true
    this.#read()
  }

  /** One more message may come. */
  allow(): void {
    this.#allowed++
    this.#read()
  }

  #read(): void {
    if (!this.#wanted || this.#allowed === 0) return
    this.#wanted = false
    this.#allowed--
    super.startRead()
  }
}

/** The gates of calls by the metadata they came with, which is all that a handler shares with its interceptor. */
export class Gates {
  readonly #gates = new WeakMap<Metadata, Gate>()

  readonly interceptor: ServerInterceptor = (_method, call) => {
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
              .build(),
          ),
        )
        .build(),
    )
    return gate
  }

  of(metadata: Metadata): Gate | undefined {
    return this.#gates.get(metadata)
  }
}
