import { once } from 'node:events'
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2'
import { connect as tlsConnect } from 'node:tls'
import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { COLLECTOR_METHOD, decodeResponse, encodeRequest, ownOffer, type RequestInit } from '#wire'
import type { Messages } from '../ingest/messages.ts'

export interface MemberStreamOptions {
  readonly name: string
  readonly address: string
  readonly certificate: string
  readonly key: string
  readonly messages: Messages
}

/**
 * The stream of one member: a connection of its own with its own certificate, HTTP/2 and gRPC's framing written by hand, as a client
 * library for ten thousand of them would take the cores from the hub.
 */
export class MemberStream {
  /** resolves when its first batch is acknowledged; rejects where the stream ends before */
  readonly delivered: Promise<void>
  /** performance.now() of its end */
  readonly ended: Promise<number>
  readonly #name: string
  readonly #session: ClientHttp2Session
  readonly #stream: ClientHttp2Stream
  readonly #messages: Messages
  #sequence = 0
  #isDelivered = false
  #rest = Buffer.alloc(0)
  #onDelivered: () => void = () => undefined

  private constructor(options: MemberStreamOptions, session: ClientHttp2Session) {
    this.#name = options.name
    this.#messages = options.messages
    this.#session = session
    this.#stream = session.request(
      { ':method': 'POST', ':path': COLLECTOR_METHOD, 'content-type': 'application/grpc', te: 'trailers' },
      { endStream: false },
    )
    session.on('error', () => undefined) // its end is told
    this.#stream.on('error', () => undefined)
    this.#stream.on('data', (chunk: Buffer) => this.#read(chunk))
    // The hub ends its half; ours stays open until we say so.
    this.#stream.once('end', () => this.#stream.end())
    const closed = Promise.race(['end', 'close'].map((event) => once(this.#stream, event)))
    this.ended = closed.then(() => performance.now())
    this.delivered = new Promise((resolve, reject) => {
      this.#onDelivered = resolve
      void closed.then(() => reject(new Error(`the stream of ${options.name} ended before its first batch was taken`)))
    })
    const { name: clusterName } = options
    const hello = { ...ownOffer, capabilities: [...ownOffer.capabilities], origin: `bench-${clusterName}` }
    this.#send({
      case: 'register',
      value: { clusterName, token: '', version: 'bench', hello: { ...hello, nowMs: Date.now() } },
    })
  }

  static async open(options: MemberStreamOptions): Promise<MemberStream> {
    const { certificate: cert, key } = options
    const [host = '', port = ''] = options.address.split(/:(?=\d+$)/)
    // Whom it talks to is not what is measured.
    const socket = tlsConnect({ host, port: Number(port), cert, key, ALPNProtocols: ['h2'], rejectUnauthorized: false })
    await once(socket, 'secureConnect')
    return new MemberStream(options, connect(`https://${options.address}`, { createConnection: () => socket }))
  }

  /** The sign of life every agent sends each half minute. */
  health(): void {
    const timestamp = timestampFromMs(Date.now())
    this.#send({ case: 'health', value: { clusterName: this.#name, timestamp, bufferedBatches: 0 } })
  }

  close(): void {
    this.#session.destroy()
  }

  #read(chunk: Buffer): void {
    if (this.#isDelivered) return
    this.#rest = Buffer.concat([this.#rest, chunk])
    while (this.#rest.length >= 5 && this.#rest.length >= 5 + this.#rest.readUInt32BE(1)) {
      const end = 5 + this.#rest.readUInt32BE(1)
      const { payload } = decodeResponse(this.#rest.subarray(5, end))
      this.#rest = this.#rest.subarray(end)
      if (payload.case === 'welcome') this.#write(this.#messages(0, ++this.#sequence))
      if (payload.case !== 'ack' || !payload.value.success) continue
      this.#isDelivered = true
      this.#rest = Buffer.alloc(0)
      this.#onDelivered()
      return
    }
  }

  #send(payload: NonNullable<RequestInit['payload']>): void {
    this.#write(encodeRequest({ payload }))
  }

  #write(message: Uint8Array): void {
    const head = Buffer.alloc(5)
    head.writeUInt32BE(message.length, 1)
    this.#stream.write(Buffer.concat([head, message]))
  }
}
