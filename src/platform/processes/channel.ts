import type { Duplex } from 'node:stream'
import { FleetError } from '#model'

/*
 * A frame, little endian; `size` counts what follows it:
 *
 *   size u32 │ sort u8 │ id u32 │ size of text u32 │ text, JSON │ bytes
 *
 * Both ends are of one version, and processes of one hub: what arrives is what was sent.
 */
const TELL = 0
const ASK = 1
const ANSWER = 2
const FAILURE = 3
const HEAD = 9
const MAX_FRAME = 300 * 2 ** 20
const NOTHING = new Uint8Array(0)

/** What one end of a channel does with what comes. */
export interface ChannelEnd<In> {
  /** @param bytes a view of what was read: keep a copy, not the view, for longer than the turn */
  heard(message: In, bytes: Uint8Array): void
  /** what it returns is the answer; what it throws arrives as an OtherProcessError; absent: nothing is answered here */
  asked?(message: In, bytes: Uint8Array): Promise<unknown>
  closed(): void
  /** what was told before has left for the system: more may be told */
  drained?(): void
}

interface Failure {
  readonly code: string
  readonly message: string
  readonly retryable: boolean
}

/** What the other process answered: its code, its sentence. */
export class OtherProcessError extends FleetError {
  override readonly name = 'OtherProcessError'
  readonly code: string
  readonly retryable: boolean

  constructor({ code, message, retryable }: Failure) {
    super(message)
    this.code = code
    this.retryable = retryable
  }
}

/** The other process ended, or its end of the channel did: what was asked may have happened or not. */
export class OtherProcessGoneError extends FleetError {
  override readonly name = 'OtherProcessGoneError'
  readonly code = 'other_process_gone'
  readonly retryable = true

  constructor() {
    super('the other process of the hub is gone; it is started again')
  }
}

/** Messages and questions between two of our processes, each with bytes beside it, in order. */
export class Channel<Out, In> implements AsyncDisposable {
  readonly #socket: Duplex
  readonly #end: ChannelEnd<In>
  readonly #asked = new Map<number, { resolve(value: unknown): void; reject(error: unknown): void }>()
  #nextId = 1
  #chunks: Buffer[] = []
  #held = 0
  #wanted = 4
  #corked = false
  #closed = false

  constructor(socket: Duplex, end: ChannelEnd<In>) {
    this.#socket = socket
    this.#end = end
    socket.on('data', (chunk: Buffer) => this.#read(chunk))
    socket.on('drain', () => end.drained?.())
    socket.once('close', () => this.#close())
    socket.once('end', () => this.#close())
    socket.on('error', () => socket.destroy()) // the other process is gone: `close` follows
  }

  get isClosed(): boolean {
    return this.#closed
  }

  /** @returns false: more than the socket likes waits to leave; `drained` says when it has */
  tell(message: Out, bytes: Uint8Array = NOTHING): boolean {
    return this.#write(TELL, 0, message, bytes)
  }

  /** @throws OtherProcessError, OtherProcessGoneError */
  ask<T>(message: Out, bytes: Uint8Array = NOTHING): Promise<T> {
    if (this.#closed) return Promise.reject(new OtherProcessGoneError())
    const id = this.#nextId++ >>> 0
    return new Promise<T>((resolve, reject) => {
      // The answer to a message is what its sort says: both ends are of one version.
      this.#asked.set(id, { resolve: resolve as (value: unknown) => void, reject })
      this.#write(ASK, id, message, bytes)
    })
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#socket.destroy()
    this.#close()
    return Promise.resolve()
  }

  #write(sort: number, id: number, message: unknown, bytes: Uint8Array): boolean {
    if (this.#closed) return true
    const text = JSON.stringify(message ?? null)
    const size = Buffer.byteLength(text)
    const head = Buffer.allocUnsafe(4 + HEAD + size)
    head.writeUInt32LE(HEAD + size + bytes.length, 0)
    head[4] = sort
    head.writeUInt32LE(id, 5)
    head.writeUInt32LE(size, 9)
    head.write(text, 4 + HEAD)
    this.#uncorkSoon()
    const flows = this.#socket.write(head)
    return bytes.length > 0 ? this.#socket.write(bytes) : flows
  }

  // What one turn has to say goes out in one system call.
  #uncorkSoon() {
    if (this.#corked) return
    this.#corked = true
    this.#socket.cork()
    setImmediate(() => {
      this.#corked = false
      this.#socket.uncork()
    })
  }

  #read(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#held += chunk.length
    if (this.#held < this.#wanted) return
    let bytes = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks)
    this.#wanted = 4
    while (bytes.length >= 4) {
      const size = bytes.readUInt32LE(0)
      if (size < HEAD || size > MAX_FRAME) {
        this.#socket.destroy()
        return
      }
      if (bytes.length < 4 + size) {
        this.#wanted = 4 + size
        break
      }
      try {
        this.#take(bytes.subarray(4, 4 + size))
      } catch {
        // It is no frame of ours, or nobody knows what to do with it: nothing behind it can be trusted.
        this.#socket.destroy()
        return
      }
      bytes = bytes.subarray(4 + size)
    }
    this.#chunks = bytes.length > 0 ? [bytes] : []
    this.#held = bytes.length
  }

  #take(frame: Buffer) {
    const sort = frame[0]
    const id = frame.readUInt32LE(1)
    const size = frame.readUInt32LE(5)
    const message: unknown = JSON.parse(frame.toString('utf8', HEAD, HEAD + size))
    const bytes = frame.subarray(HEAD + size)
    if (sort === TELL) return this.#end.heard(message as In, bytes) // as the other end wrote it
    if (sort === ASK) return void this.#answer(id, message as In, bytes)
    const asked = this.#asked.get(id)
    this.#asked.delete(id)
    if (sort === ANSWER) asked?.resolve(message)
    else asked?.reject(new OtherProcessError(message as Failure))
  }

  async #answer(id: number, message: In, bytes: Uint8Array): Promise<void> {
    try {
      if (!this.#end.asked) throw new Error('nobody answers questions at this end of the channel')
      this.#write(ANSWER, id, await this.#end.asked(message, bytes), NOTHING)
    } catch (error) {
      const { code, message: text, retryable } = FleetError.from(error)
      this.#write(FAILURE, id, { code, message: text, retryable } satisfies Failure, NOTHING)
    }
  }

  #close() {
    if (this.#closed) return
    this.#closed = true
    for (const { reject } of this.#asked.values()) reject(new OtherProcessGoneError())
    this.#asked.clear()
    this.#end.closed()
  }
}
