import { Readable } from 'node:stream'
import type { ApiRequest, ApiResponse } from './http/call.ts'

/** A request of this process, as it would come over the port. */
export interface LocalRequest {
  readonly method: string
  /** with the query */
  readonly path: string
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly body?: string | Uint8Array
}

/** Its answer: the head, and the body as it comes. The body throws where it was cut off. */
export interface LocalAnswer {
  readonly status: number
  /** by their names in lower case */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly chunks: AsyncIterable<Buffer>
}

/**
 * Lets a handler of HTTP answer without a connection. It is asked in a turn of the event loop of its own, as one that comes over
 * a port is: who asks without end does not keep the others from their turn.
 */
export async function answerHere(
  handle: (request: ApiRequest, response: ApiResponse) => void,
  request: LocalRequest,
  signal: AbortSignal,
): Promise<LocalAnswer> {
  await new Promise(setImmediate)
  signal.throwIfAborted()
  const response = new LocalResponse(signal)
  handle(requestOf(request), response)
  return response.answer
}

function requestOf({ method, path, headers, body }: LocalRequest): ApiRequest {
  const joined: Record<string, string> = {}
  const distinct: Record<string, string[]> = {}
  for (const [name, value] of Object.entries(headers)) {
    const values = [value].flat()
    joined[name.toLowerCase()] = values.join(', ')
    distinct[name.toLowerCase()] = values
  }
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  if (bytes) joined['content-length'] = String(bytes.length)
  const stream = new Readable({ read: () => undefined })
  if (bytes) stream.push(bytes)
  stream.push(null)
  return Object.assign(stream, { method, url: path, headers: joined, headersDistinct: distinct, complete: true })
}

/** An answer that is read where it is written. What nobody has read yet is counted, as on a connection. */
class LocalResponse implements ApiResponse {
  readonly answer: Promise<LocalAnswer>
  readonly #signal: AbortSignal
  readonly #headers: Record<string, string | string[]> = {}
  readonly #listeners: (() => void)[] = []
  #chunks: Buffer[] = []
  #unreadBytes = 0
  #isOver = false
  #error: unknown
  #hasHead = false
  #resolve: (answer: LocalAnswer) => void = () => undefined
  #reject: (reason: unknown) => void = () => undefined
  #wake: () => void = () => undefined
  readonly #abort = () => this.#cut(this.#signal.reason)

  constructor(signal: AbortSignal) {
    this.#signal = signal
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    signal.addEventListener('abort', this.#abort, { once: true })
  }

  get headersSent(): boolean {
    return this.#hasHead
  }

  get destroyed(): boolean {
    return this.#error !== undefined
  }

  get writableEnded(): boolean {
    return this.#isOver
  }

  get writableLength(): number {
    return this.#unreadBytes
  }

  setHeader(name: string, value: string | number): void {
    this.#headers[name.toLowerCase()] = String(value)
  }

  appendHeader(name: string, value: string): void {
    const before = this.#headers[name.toLowerCase()]
    this.#headers[name.toLowerCase()] = before === undefined ? value : [before, value].flat()
  }

  writeHead(status: number, headers: Readonly<Record<string, string>> = {}): void {
    for (const [name, value] of Object.entries(headers)) this.setHeader(name, value)
    this.#hasHead = true
    this.#resolve({ status, headers: this.#headers, chunks: { [Symbol.asyncIterator]: () => this.#read() } })
  }

  flushHeaders(): void {
    // The head is with its reader as soon as it is written.
  }

  write(chunk: string | Uint8Array): boolean {
    if (this.#isOver) return false
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : asBuffer(chunk)
    this.#chunks.push(bytes)
    this.#unreadBytes += bytes.length
    this.#wake()
    return true
  }

  end(chunk?: string | Uint8Array): void {
    if (chunk !== undefined) this.write(chunk)
    this.#close()
  }

  destroy(): void {
    this.#cut(Object.assign(new Error('the API server cut its answer off'), { code: 'ECONNRESET' }))
  }

  on(_event: 'close', listener: () => void): void {
    this.#listeners.push(listener)
  }

  #cut(error: unknown): void {
    if (this.#isOver) return
    this.#error = error
    this.#reject(error)
    this.#close()
  }

  #close(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#signal.removeEventListener('abort', this.#abort)
    this.#wake()
    for (const listener of this.#listeners.splice(0)) listener()
  }

  async *#read(): AsyncGenerator<Buffer, void, undefined> {
    try {
      for (;;) {
        if (this.#error !== undefined) throw this.#error
        const chunks = this.#chunks
        this.#chunks = []
        for (const chunk of chunks) {
          this.#unreadBytes -= chunk.length
          yield chunk
        }
        if (this.#chunks.length > 0 || this.#error !== undefined) continue
        if (this.#isOver) return
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
      }
    } finally {
      this.#cut(new Error('the reader left'))
    }
  }
}

const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
