import type { Duplex } from 'node:stream'
import { FleetError, StoreUnavailableError } from '#model'
import { BaseMismatchError, ClusterNotConnectedError } from '../errors.ts'

/*
 * A frame, little endian; `size` counts what follows it:
 *
 *   size u32 │ sort u8 │ id u32 │ size of text u32 │ text, JSON │ bytes
 *
 * Both ends are of one version, and each other's child or parent: what arrives is what was sent.
 */
const TELL = 0
const ASK = 1
const ANSWER = 2
const FAILURE = 3
const HEAD = 9
const MAX_FRAME = 256 * 2 ** 20
const NOTHING = new Uint8Array(0)

export interface ChannelEnd<In> {
  heard(message: In): void
  /** what it returns is the answer; what it throws arrives as that error */
  asked(message: In, bytes: Uint8Array): Promise<unknown>
  closed(): void
}

interface Failure {
  readonly code: string
  readonly message: string
  readonly retryable: boolean
  readonly cluster?: string
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

/** Messages and questions between two of our processes, in order. */
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
    socket.once('close', () => this.#close())
    socket.once('end', () => this.#close())
    socket.on('error', () => socket.destroy()) // the other process is gone: `close` follows
  }

  tell(message: Out): void {
    this.#write(TELL, 0, message, NOTHING)
  }

  /** @throws what the other end threw; StoreUnavailableError where it is gone */
  ask<T>(message: Out, bytes: Uint8Array = NOTHING): Promise<T> {
    if (this.#closed) return Promise.reject(gone())
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

  #write(sort: number, id: number, message: unknown, bytes: Uint8Array): void {
    if (this.#closed) return
    const text = JSON.stringify(message ?? null)
    const size = Buffer.byteLength(text)
    const head = Buffer.allocUnsafe(4 + HEAD + size)
    head.writeUInt32LE(HEAD + size + bytes.length, 0)
    head[4] = sort
    head.writeUInt32LE(id, 5)
    head.writeUInt32LE(size, 9)
    head.write(text, 4 + HEAD)
    this.#uncorkSoon()
    this.#socket.write(head)
    if (bytes.length > 0) this.#socket.write(bytes)
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
      this.#take(bytes.subarray(4, 4 + size))
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
    if (sort === TELL) return this.#end.heard(message as In) // as the other end wrote it
    if (sort === ASK) return void this.#answer(id, message as In, frame.subarray(HEAD + size))
    const asked = this.#asked.get(id)
    this.#asked.delete(id)
    if (sort === ANSWER) asked?.resolve(message)
    else asked?.reject(errorOf(message as Failure))
  }

  async #answer(id: number, message: In, bytes: Uint8Array): Promise<void> {
    try {
      this.#write(ANSWER, id, await this.#end.asked(message, bytes), NOTHING)
    } catch (error) {
      this.#write(FAILURE, id, failureOf(error), NOTHING)
    }
  }

  #close() {
    if (this.#closed) return
    this.#closed = true
    for (const { reject } of this.#asked.values()) reject(gone())
    this.#asked.clear()
    this.#end.closed()
  }
}

const gone = () => new StoreUnavailableError('ingester', 'the process that owns the log is gone')

export function failureOf(error: unknown): Failure {
  const { code, message, retryable } = FleetError.from(error)
  const cluster =
    error instanceof BaseMismatchError || error instanceof ClusterNotConnectedError ? error.cluster : undefined
  return { code, message, retryable, ...(cluster !== undefined && { cluster }) }
}

function errorOf(failure: Failure): FleetError {
  const { code, cluster = '' } = failure
  if (code === 'base_mismatch') return new BaseMismatchError(cluster)
  if (code === 'cluster_not_connected') return new ClusterNotConnectedError(cluster)
  return new OtherProcessError(failure)
}
