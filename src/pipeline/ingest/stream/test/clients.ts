import { ChannelCredentials, Client, type ClientDuplexStream, Metadata, type StatusObject } from '@grpc/grpc-js'
import { COLLECTOR_METHOD, type ConnectResponse, decodeResponse, encodeRequest, type RequestInit } from '#wire'

export type Payload = NonNullable<RequestInit['payload']>
type Received = ConnectResponse['payload']
type Values = { [P in Received as NonNullable<P['case']>]: NonNullable<P['value']> }

export interface ClientOptions {
  readonly address: { readonly host: string; readonly port: number }
  readonly token?: string
  readonly credentials?: ChannelCredentials
  /** of the channel */
  readonly options?: Readonly<Record<string, string | number>>
}

/** One stream as any collector opens it: sends messages as they are given and keeps what comes. */
export class StreamClient implements AsyncDisposable {
  readonly #client: Client
  readonly #call: ClientDuplexStream<Uint8Array, Uint8Array>
  readonly received: Received[] = []
  readonly #waiting: (() => void)[] = []
  status: StatusObject | undefined

  constructor({ address, token, credentials = ChannelCredentials.createInsecure(), options = {} }: ClientOptions) {
    this.#client = new Client(`${address.host}:${address.port}`, credentials, {
      'grpc.use_local_subchannel_pool': 1,
      'grpc.max_receive_message_length': -1,
      ...options,
    })
    const metadata = new Metadata()
    if (token !== undefined) metadata.set('authorization', `Bearer ${token}`)
    const asBuffer = (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#call = this.#client.makeBidiStreamRequest(COLLECTOR_METHOD, asBuffer, (bytes) => bytes, metadata)
    this.#call.on('data', (bytes: Uint8Array) => {
      this.received.push(decodeResponse(bytes).payload)
      this.#wake()
    })
    this.#call.on('error', () => undefined) // told by the status as well
    this.#call.on('status', (status) => {
      this.status = status
      this.#wake()
    })
  }

  send(payload: Payload): void {
    this.sendBytes(encodeRequest({ payload }))
  }

  sendBytes(bytes: Uint8Array): void {
    this.#call.write(bytes)
  }

  finish(): void {
    this.#call.end()
  }

  /** reads nothing more, so that what the hub sends piles up */
  pause(): void {
    this.#call.pause()
  }

  resume(): void {
    this.#call.resume()
  }

  /** The next message of a sort, in the order they came; each is given once. */
  async next<C extends keyof Values>(sort: C): Promise<Values[C]> {
    for (;;) {
      const index = this.received.findIndex((payload) => payload.case === sort)
      const [found] = index < 0 ? [] : this.received.splice(index, 1)
      if (found) return found.value as Values[C]
      if (this.status) throw new Error(`the stream ended: ${this.status.code} ${this.status.details}`)
      await this.#changed()
    }
  }

  async ended(): Promise<StatusObject> {
    while (!this.status) await this.#changed()
    return this.status
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#call.cancel()
    this.#client.close()
    return Promise.resolve()
  }

  #changed(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}
