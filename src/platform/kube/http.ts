import type { Dispatcher } from 'undici'
import { KubeError } from './errors.ts'

/** One request on the wire; `path` begins with "/" and includes the query. */
export interface WireRequest {
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string | string[]>
  readonly body?: string
}

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
  /** took the body as it came, which is empty then */
  readonly sink?: BodySink
}

/** Takes a body as it comes. A chunk is valid until `push` returns, which throws nothing. */
export interface BodySink {
  push(chunk: Buffer): void
}

/** Called with the head of each answer. @returns undefined where the body is to be gathered */
export type SinkFor = (head: Pick<Answer, 'status' | 'headers'>) => BodySink | undefined

/** An answer whose body lies in memory that is used again: valid until released. */
export interface BorrowedAnswer extends Answer {
  release(): void
}

/** A 200 whose body comes as it comes. Ends when the server ends; throws what broke it. */
export interface AnswerStream {
  readonly status: number
  readonly headers: Answer['headers']
  readonly chunks: AsyncIterable<Buffer>
}

/** An API server of this very process. Rejects with the signal's reason, and what it answers ends with the signal. */
export type LocalServer = (request: WireRequest, signal: AbortSignal) => Promise<AnswerStream>

/** The answer is larger than we take; fewer objects per page may help. */
export class AnswerTooLargeError extends KubeError {
  constructor(maxBytes: number) {
    super('protocol', `the answer is larger than ${Math.round(maxBytes / 1024 / 1024)} MiB; ask for smaller pages`)
  }
}

/** The stream's reader falls behind by this much before the socket is paused. */
const STREAM_AHEAD_BYTES = 256 * 1024

export interface ExchangeOptions {
  readonly maxBytes: number
  readonly signal: AbortSignal
  /** told of each sign of the answer */
  readonly onProgress?: () => void
  /** default: the body is gathered */
  readonly sinkFor?: SinkFor | undefined
}

/**
 * Sends and takes the whole answer. Works on the dispatcher's own callbacks: for pages of a megabyte a stream object per
 * answer costs more than reading it.
 */
export function exchange(
  dispatcher: Dispatcher,
  origin: string,
  request: WireRequest,
  { maxBytes, signal, onProgress, sinkFor }: ExchangeOptions,
): Promise<BorrowedAnswer> {
  return new Promise((resolve, reject) => {
    let controller: Dispatcher.DispatchController | undefined
    let status = 0
    let headers: Answer['headers'] = {}
    const body = new BodyBuffer()
    let sink: BodySink | undefined
    let size = 0
    const finish = () => signal.removeEventListener('abort', abort)
    const fail = (error: unknown) => {
      finish()
      body.release()
      reject(error)
    }
    const abort = () => {
      controller?.abort(asError(signal.reason))
      fail(signal.reason)
    }
    if (signal.aborted) return fail(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    dispatcher.dispatch(dispatchOptions(origin, request), {
      onRequestStart(started) {
        controller = started
        if (signal.aborted) started.abort(asError(signal.reason))
      },
      onResponseStart(_, statusCode, responseHeaders) {
        status = statusCode
        headers = responseHeaders
        sink = sinkFor?.({ status, headers })
        onProgress?.()
      },
      onResponseData(running, chunk) {
        onProgress?.()
        size += chunk.length
        if (size > maxBytes) running.abort(new AnswerTooLargeError(maxBytes))
        else if (!signal.aborted) (sink ?? body).push(chunk)
      },
      onResponseEnd() {
        finish()
        resolve({ status, headers, body: body.bytes, ...(sink && { sink }), release: () => body.release() })
      },
      onResponseError(_, error) {
        fail(error)
      },
    })
  })
}

/** The whole answer of a server that needs no connection. */
export async function gathered(
  { status, headers, chunks }: AnswerStream,
  { maxBytes, sinkFor }: Pick<ExchangeOptions, 'maxBytes' | 'sinkFor'>,
): Promise<BorrowedAnswer> {
  const sink = sinkFor?.({ status, headers })
  const parts: Buffer[] = []
  let size = 0
  for await (const chunk of chunks) {
    size += chunk.length
    if (size > maxBytes) throw new AnswerTooLargeError(maxBytes)
    if (sink) sink.push(chunk)
    else parts.push(chunk)
  }
  const body = parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts)
  return { status, headers, body, ...(sink && { sink }), release: () => undefined }
}

/** Sends and resolves with the head; the body follows as chunks, with the socket paused while nobody reads. */
export function openStream(
  dispatcher: Dispatcher,
  origin: string,
  request: WireRequest,
  signal: AbortSignal,
): Promise<AnswerStream> {
  return new Promise((resolve, reject) => {
    const body = new ChunkQueue()
    const abort = () => {
      body.abort(asError(signal.reason))
      reject(signal.reason)
    }
    if (signal.aborted) return reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    const finish = () => signal.removeEventListener('abort', abort)
    dispatcher.dispatch(dispatchOptions(origin, request), {
      onRequestStart(started) {
        body.controller = started
        if (signal.aborted) started.abort(asError(signal.reason))
      },
      onResponseStart(_, status, headers) {
        resolve({ status, headers, chunks: body })
      },
      onResponseData(_, chunk) {
        body.push(chunk)
      },
      onResponseEnd() {
        finish()
        body.end()
      },
      onResponseError(_, error) {
        finish()
        body.end(error)
        reject(error)
      },
    })
  })
}

const SPARE_BYTES = 256 * 1024
const MAX_SPARE_BYTES = 8 * 1024 * 1024
const MAX_SPARES = 4
/** Longer than between two pages, shorter than between two rounds. */
const SPARE_MS = 5_000
const SMALL_BYTES = 32 * 1024
/** Memory of earlier answers, shared by all clients: pages come one after the other, and each would cost its size anew. */
const spares: Buffer[] = []
let sparesEnd: NodeJS.Timeout | undefined

function keepSpare(memory: Buffer): void {
  const { length } = memory
  if (length < SPARE_BYTES || length > MAX_SPARE_BYTES || spares.length >= MAX_SPARES) return
  spares.push(memory)
  if (sparesEnd) return
  sparesEnd = setTimeout(() => {
    spares.length = 0
    sparesEnd = undefined
  }, SPARE_MS).unref()
}

function takeSpare(size: number): Buffer | undefined {
  const at = spares.findIndex(({ length }) => length >= size)
  return at < 0 ? undefined : spares.splice(at, 1)[0]
}

/** Gathers a body, or a part of one. Chunks are copied at once, as they lie in memory that the connections use again. */
export class BodyBuffer implements BodySink {
  #size = 0
  #memory: Buffer = EMPTY

  push(chunk: Buffer): void {
    if (this.#size + chunk.length > this.#memory.length) this.#grow(this.#size + chunk.length)
    this.#memory.set(chunk, this.#size)
    this.#size += chunk.length
  }

  get bytes(): Buffer {
    return this.#memory.subarray(0, this.#size)
  }

  release(): void {
    keepSpare(this.#memory)
    this.#memory = EMPTY
    this.#size = 0
  }

  #grow(size: number): void {
    const wanted = 2 ** Math.ceil(Math.log2(size))
    const larger =
      size <= SMALL_BYTES
        ? Buffer.allocUnsafeSlow(wanted)
        : (takeSpare(size) ?? Buffer.allocUnsafeSlow(Math.max(SPARE_BYTES, wanted)))
    larger.set(this.bytes)
    keepSpare(this.#memory)
    this.#memory = larger
  }
}

const EMPTY = Buffer.alloc(0)

class ChunkQueue implements AsyncIterable<Buffer> {
  controller: Dispatcher.DispatchController | undefined
  #chunks: Buffer[] = []
  #bytes = 0
  #ended = false
  #error: unknown
  #wake: (() => void) | undefined

  push(chunk: Buffer): void {
    if (this.#ended) return
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
    if (this.#bytes > STREAM_AHEAD_BYTES) this.controller?.pause()
    this.#wake?.()
  }

  end(error?: unknown): void {
    if (this.#ended) return
    this.#ended = true
    this.#error = error
    this.#wake?.()
  }

  abort(error: Error): void {
    this.controller?.abort(error)
    this.#chunks = []
    this.end(error)
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    try {
      for (;;) {
        const chunks = this.#chunks
        this.#chunks = []
        this.#bytes = 0
        if (this.controller?.paused) this.controller.resume()
        yield* chunks
        if (this.#chunks.length > 0) continue
        if (this.#error !== undefined) throw this.#error
        if (this.#ended) return
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
        this.#wake = undefined
      }
    } finally {
      if (!this.#ended) this.abort(new Error('the reader left'))
    }
  }
}

function dispatchOptions(origin: string, request: WireRequest): Dispatcher.DispatchOptions {
  return {
    origin,
    method: request.method,
    path: request.path,
    headers: request.headers,
    ...(request.body === undefined ? {} : { body: request.body }),
    // Our own deadlines hold instead: one over the whole call, one over the silence of a watch.
    headersTimeout: 0,
    bodyTimeout: 0,
  }
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason))
}
