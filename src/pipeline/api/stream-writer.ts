import type { ServerResponse } from 'node:http'
import { crc32 } from 'node:zlib'
import { Frame } from './stream-frame.ts'

// RFC 1952: magic, deflate, no flags, no time, no extra flags, unknown system.
const gzipHeader = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255])
const lastEmptyBlock = Buffer.from([3, 0])

/**
 * The frames of one client, in order, packed where it takes that. Every frame can be read as soon as it is there.
 */
export class StreamWriter {
  readonly #response: ServerResponse
  readonly #isPacked: boolean
  readonly #queue: Frame[] = []
  #queuedBytes = 0
  #packing = false
  #ended = false
  #crc = 0
  #length = 0

  /** The head of the response is yet to be written, by who made this. */
  constructor(response: ServerResponse, isPacked: boolean) {
    this.#response = response
    this.#isPacked = isPacked
  }

  begin(): void {
    if (this.#isPacked) this.#response.write(gzipHeader)
  }

  /** Bytes that the client has not taken. */
  get waitingBytes(): number {
    return this.#response.writableLength + this.#queuedBytes
  }

  write(frame: Frame): void {
    if (this.#ended) return
    this.#queue.push(frame)
    this.#queuedBytes += frame.plain.length
    this.#pump()
  }

  /** What waits is dropped; `text` is the last that is sent. */
  end(text = ''): void {
    if (this.#ended) return
    this.#ended = true
    this.#queue.length = 0
    this.#queuedBytes = 0
    const frame = new Frame(text)
    if (!this.#isPacked) {
      this.#response.end(frame.plain)
      return
    }
    this.#count(frame)
    const trailer = Buffer.alloc(8)
    trailer.writeUInt32LE(this.#crc, 0)
    trailer.writeUInt32LE(this.#length % 2 ** 32, 4)
    const packed = frame.packed()
    this.#response.end(Buffer.concat([...(Buffer.isBuffer(packed) ? [packed] : []), lastEmptyBlock, trailer]))
  }

  #pump(): void {
    while (!this.#packing && !this.#ended) {
      const [frame] = this.#queue
      if (!frame) return
      const bytes = this.#isPacked ? frame.packed() : frame.plain
      if (Buffer.isBuffer(bytes)) this.#put(frame, bytes)
      else this.#putLater(frame, bytes)
    }
  }

  #put(frame: Frame, bytes: Buffer): void {
    this.#queue.shift()
    this.#queuedBytes -= frame.plain.length
    if (this.#isPacked) this.#count(frame)
    this.#response.write(bytes)
  }

  #putLater(frame: Frame, packed: Promise<Buffer>): void {
    this.#packing = true
    packed.then(
      (bytes) => {
        this.#packing = false
        if (this.#ended) return
        this.#put(frame, bytes)
        this.#pump()
      },
      // Nothing but a lack of memory: whoever reads comes again.
      () => this.#response.destroy(),
    )
  }

  #count({ plain }: Frame): void {
    this.#crc = crc32(plain, this.#crc)
    this.#length += plain.length
  }
}
