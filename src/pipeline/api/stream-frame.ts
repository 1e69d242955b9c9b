import { promisify } from 'node:util'
import { constants, deflateRaw, deflateRawSync } from 'node:zlib'

const packApart = promisify(deflateRaw)

// Each ends on a byte boundary and is not the last block (RFC 1951, 3.2.4): pieces that were packed once stand in any stream.
const packing = { level: 4, finishFlush: constants.Z_SYNC_FLUSH }

/** Above this a piece is packed beside the event loop. */
const largeBytes = 32 * 1024

/** One message of a stream: rendered once and packed once, however many clients it goes to. */
export class Frame {
  readonly #kind: string
  /** of an object */
  readonly #json: string
  readonly #id: string | undefined
  #plain: Buffer | undefined
  #packed: Buffer | Promise<Buffer> | undefined
  #message: Buffer | undefined

  /** @param id undefined: nobody can come back with it */
  constructor(kind: string, json: string, id?: string) {
    this.#kind = kind
    this.#json = json
    this.#id = id
  }

  /** As a server-sent event. */
  get plain(): Buffer {
    const id = this.#id === undefined ? '' : `id: ${this.#id}\n`
    this.#plain ??= Buffer.from(`${id}event: ${this.#kind}\ndata: ${this.#json}\n\n`)
    return this.#plain
  }

  /** As one message of a WebSocket. */
  get message(): Buffer {
    const id = this.#id === undefined ? '' : `,"id":${JSON.stringify(this.#id)}`
    const rest = this.#json === '{}' ? '}' : `,${this.#json.slice(1)}`
    this.#message ??= Buffer.from(`{"kind":"${this.#kind}"${id}${rest}`)
    return this.#message
  }

  /** The messages of a WebSocket, in order. */
  get messages(): readonly Buffer[] {
    return [this.message]
  }

  /** About what a client has to take. */
  get bytes(): number {
    return this.#json.length + 64
  }

  /** A piece of a deflated stream that stands for itself. */
  packed(): Buffer | Promise<Buffer> {
    const { plain } = this
    if (plain.length <= largeBytes) this.#packed ??= pack(plain)
    else
      this.#packed ??= packApart(plain, packing).then((packed) => {
        this.#packed = packed
        return packed
      })
    return this.#packed
  }
}

/** Frames that the same clients are told at once: one piece to write. */
export class FrameRun extends Frame {
  readonly #frames: readonly Frame[]
  #together: Buffer | undefined

  constructor(frames: readonly Frame[]) {
    super('run', '{}')
    this.#frames = frames
  }

  override get plain(): Buffer {
    this.#together ??= Buffer.concat(this.#frames.map(({ plain }) => plain))
    return this.#together
  }

  override get messages(): readonly Buffer[] {
    return this.#frames.flatMap(({ messages }) => messages)
  }

  override get bytes(): number {
    return this.#frames.reduce((sum, { bytes }) => sum + bytes, 0)
  }
}

export const pack = (plain: Buffer): Buffer => deflateRawSync(plain, packing)
