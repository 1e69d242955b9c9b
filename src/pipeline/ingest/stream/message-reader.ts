/** What a message may be: of a stream that has not registered, a few KiB, counted together with those of all others. */
export interface ReaderOptions {
  readonly limits: { readonly maxMessageBytes: number; readonly maxNewcomerMessageBytes: number }
  /** held for all streams that have not registered */
  readonly newcomers: ByteBudget
  readonly onRefused: (why: 'too_large' | 'newcomer_bytes') => void
}

/** Bytes that several may hold together. */
export class ByteBudget {
  readonly maxBytes: number
  #held = 0

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes
  }

  get held(): number {
    return this.#held
  }

  /** @returns false: it would be too much, and nothing changed */
  change(byBytes: number): boolean {
    if (byBytes > 0 && this.#held + byBytes > this.maxBytes) return false
    this.#held += byBytes
    return true
  }
}

const EMPTY = Buffer.alloc(0)
/** of a message in gRPC: whether it is compressed, u8, and its size, u32 */
const PREFIX_BYTES = 5

/**
 * Messages out of the bytes of one call, in the place of the library's own decoder, one at a time. A message is judged by its
 * prefix, before anything of it is kept, and by what the stream may send then: one behind a registration may be as large as
 * those of members. Bytes are copied into one buffer: what is held is what came, however small its pieces.
 */
export class MessageReader {
  readonly #options: ReaderOptions
  #isNewcomer = true
  #bytes: Buffer = EMPTY
  #start = 0
  #end = 0
  /** of `#bytes`, in the budget of newcomers */
  #counted = 0
  #isClosed = false

  constructor(options: ReaderOptions) {
    this.#options = options
  }

  /** Its stream is registered. */
  admit(): void {
    this.#isNewcomer = false
    this.#count(0)
  }

  /** The prefix of the next message is here: it can be judged, and may be here whole. */
  get isReady(): boolean {
    return this.#end - this.#start >= PREFIX_BYTES
  }

  /**
   * @returns the next message with its prefix, or none yet; what came behind it comes with the next call
   * @throws Error whose message the peer is told, with RESOURCE_EXHAUSTED
   */
  write(data: Buffer): Buffer[] {
    if (this.#isClosed) return []
    this.#append(data)
    if (!this.isReady) return []
    const total = PREFIX_BYTES + this.#judged()
    if (this.#end - this.#start < total) return []
    const bytes = this.#bytes.subarray(this.#start, this.#start + total)
    this.#start += total
    if (this.#start < this.#end) return [Buffer.from(bytes)]
    this.#drop()
    return [bytes]
  }

  /** Nothing more is read, and nothing held. */
  close(): void {
    this.#isClosed = true
    this.#drop()
  }

  /** The size that the prefix announces, where it may come. */
  #judged(): number {
    const { maxMessageBytes, maxNewcomerMessageBytes } = this.#options.limits
    const size = this.#bytes.readUInt32BE(this.#start + 1)
    if (this.#bytes[this.#start] !== 0) this.#refuse('too_large', 'too_large: messages may not be compressed by gRPC')
    if (this.#isNewcomer && size > maxNewcomerMessageBytes)
      this.#refuse(
        'too_large',
        `too_large: before the registration a message has at most ${maxNewcomerMessageBytes} bytes, and this one ${size}`,
      )
    if (size > maxMessageBytes)
      this.#refuse('too_large', `too_large: a message has at most ${maxMessageBytes} bytes, and this one ${size}`)
    return size
  }

  #append(data: Buffer): void {
    const length = this.#end - this.#start
    if (this.#end + data.length > this.#bytes.length) {
      const needed = length + data.length
      const room = length === 0 ? needed : Math.max(needed, Math.min(2 * length, this.#announced()))
      if (!this.#count(room))
        this.#refuse(
          'newcomer_bytes',
          `busy: streams that have not registered hold at most ${this.#options.newcomers.maxBytes} bytes together; try again later`,
        )
      const grown = Buffer.allocUnsafeSlow(room)
      this.#bytes.copy(grown, 0, this.#start, this.#end)
      this.#bytes = grown
      this.#start = 0
      this.#end = length
    }
    data.copy(this.#bytes, this.#end)
    this.#end += data.length
  }

  /** so much and no more belongs to the message that comes, once that is known */
  #announced(): number {
    return this.isReady ? PREFIX_BYTES + this.#bytes.readUInt32BE(this.#start + 1) : 0
  }

  #drop(): void {
    this.#bytes = EMPTY
    this.#start = 0
    this.#end = 0
    this.#count(0)
  }

  #count(bytes: number): boolean {
    const counted = this.#isNewcomer ? bytes : 0
    if (!this.#options.newcomers.change(counted - this.#counted)) return false
    this.#counted = counted
    return true
  }

  #refuse(why: 'too_large' | 'newcomer_bytes', sentence: string): never {
    this.close()
    this.#options.onRefused(why)
    throw new Error(sentence)
  }
}
