import type { ServerResponse } from 'node:http'
import { crc32 } from 'node:zlib'
import { writeShared } from '#runtime'
import { type Frame, pack } from './stream-frame.ts'

/** Where the messages of one client go, in order. */
export interface StreamWriter {
  /** Bytes that the client has not taken. */
  readonly waitingBytes: number
  begin(): void
  write(frame: Frame): void
  /** What waits is dropped; `frame` is the last that is sent. */
  end(frame?: Frame): void
  /** Ends at once, whatever was not sent. */
  destroy(): void
  /** Asks whether anybody is there, where the protocol can. */
  ping?(): void
}

// RFC 1952: magic, deflate, no flags, no time, no extra flags, unknown system.
const gzipHeader = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255])
const lastEmptyBlock = Buffer.from([3, 0])

/** How soon a client that lost the stream comes again. */
const retry = Buffer.from('retry: 2000\n\n')

/**
 * Server-sent events, packed where the client takes that. Every one can be read as soon as it is there.
 */
export class EventWriter implements StreamWriter {
  readonly #response: ServerResponse
  readonly #isPacked: boolean
  readonly #onSpace: () => void
  readonly #queue: Frame[] = []
  #queuedBytes = 0
  #packing = false
  #ended = false
  #crc = 0
  #length = 0

  /**
   * The head of the response is yet to be written, by who made this.
   * @param onSpace is called when the client has taken something
   */
  constructor(response: ServerResponse, isPacked: boolean, onSpace: () => void) {
    this.#response = response
    this.#isPacked = isPacked
    this.#onSpace = onSpace
    response.on('drain', onSpace)
    const { socket } = response
    socket?.on('drain', onSpace)
    // The connection may serve another request.
    response.on('close', () => socket?.off('drain', onSpace))
  }

  begin(): void {
    if (this.#isPacked) {
      writeShared(this.#response, gzipHeader)
      this.#count(retry)
    }
    writeShared(this.#response, this.#isPacked ? pack(retry) : retry)
  }

  get waitingBytes(): number {
    return this.#response.writableLength + this.#queuedBytes
  }

  write(frame: Frame): void {
    if (this.#ended) return
    if (!this.#isPacked) {
      writeShared(this.#response, frame.plain)
      return
    }
    this.#queue.push(frame)
    this.#queuedBytes += frame.plain.length
    this.#pump()
  }

  end(frame?: Frame): void {
    if (this.#ended) return
    this.#ended = true
    this.#queue.length = 0
    this.#queuedBytes = 0
    const last = frame?.plain ?? Buffer.alloc(0)
    if (!this.#isPacked) {
      this.#response.end(last)
      return
    }
    this.#count(last)
    const trailer = Buffer.alloc(8)
    trailer.writeUInt32LE(this.#crc, 0)
    trailer.writeUInt32LE(this.#length % 2 ** 32, 4)
    this.#response.end(Buffer.concat([pack(last), lastEmptyBlock, trailer]))
  }

  destroy(): void {
    this.#response.destroy()
  }

  #pump(): void {
    while (!this.#packing && !this.#ended) {
      const [frame] = this.#queue
      if (!frame) return
      const bytes = frame.packed()
      if (Buffer.isBuffer(bytes)) this.#put(frame, bytes)
      else this.#putLater(frame, bytes)
    }
  }

  #put(frame: Frame, bytes: Buffer): void {
    this.#queue.shift()
    this.#queuedBytes -= frame.plain.length
    this.#count(frame.plain)
    writeShared(this.#response, bytes)
  }

  #putLater(frame: Frame, packed: Promise<Buffer>): void {
    this.#packing = true
    packed.then(
      (bytes) => {
        this.#packing = false
        if (this.#ended) return
        this.#put(frame, bytes)
        this.#pump()
        this.#onSpace()
      },
      // Nothing but a lack of memory: whoever reads comes again.
      () => this.#response.destroy(),
    )
  }

  #count(plain: Buffer): void {
    this.#crc = crc32(plain, this.#crc)
    this.#length += plain.length
  }
}
