import { promisify } from 'node:util'
import { constants, deflateRaw, deflateRawSync } from 'node:zlib'

const packApart = promisify(deflateRaw)

// Each ends on a byte boundary and is not the last block (RFC 1951, 3.2.4): pieces that were packed once stand in any stream.
const packing = { level: 4, finishFlush: constants.Z_SYNC_FLUSH }

/** Above this a piece is packed beside the event loop. */
const largeBytes = 32 * 1024

/** One piece of a stream: rendered once and packed once, however many clients it goes to. */
export class Frame {
  readonly plain: Buffer
  #packed: Buffer | Promise<Buffer> | undefined

  constructor(text: string) {
    this.plain = Buffer.from(text)
  }

  /** A piece of a deflated stream that stands for itself. */
  packed(): Buffer | Promise<Buffer> {
    const { plain } = this
    if (plain.length <= largeBytes) this.#packed ??= deflateRawSync(plain, packing)
    else
      this.#packed ??= packApart(plain, packing).then((packed) => {
        this.#packed = packed
        return packed
      })
    return this.#packed
  }
}
