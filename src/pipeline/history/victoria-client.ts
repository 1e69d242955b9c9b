import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { StoreUnavailableError, seconds } from '#model'
import { SamplesRefusedError } from './errors.ts'

export const STORE = 'VictoriaMetrics'

export interface Ask {
  readonly timeoutMs?: number
  readonly signal?: AbortSignal | undefined
  /** of the answer */
  readonly maxBytes?: number
}

/** A list stands for a parameter that is given several times. */
type Parameters = Readonly<Record<string, string | readonly string[]>>

export interface Answer {
  readonly status: number
  readonly text: string
}

const DEFAULT_TIMEOUT_MS = seconds(30)
const DEFAULT_MAX_BYTES = 64 * 2 ** 20
/** A line of an export: one series with all its times. */
const MAX_LINE_BYTES = 64 * 2 ** 20

/** The connection was refused or broke: the process there may be gone. */
export class ContactLostError extends StoreUnavailableError {}

/** What we need of VictoriaMetrics' HTTP interface. Each call is bounded in time and in bytes; retries are the caller's. */
export class VictoriaClient {
  readonly #endpoint: string
  readonly #gzip: boolean
  readonly #importTimeoutMs: number

  constructor(endpoint: string, options: { readonly gzip: boolean; readonly importTimeoutMs: number }) {
    this.#endpoint = endpoint.replace(/\/+$/, '')
    this.#gzip = options.gzip
    this.#importTimeoutMs = options.importTimeoutMs
  }

  /**
   * @throws SamplesRefusedError where the body itself is refused
   * @throws StoreUnavailableError else; it may have been taken all the same
   */
  async import(body: string, signal?: AbortSignal): Promise<void> {
    const bytes = this.#gzip ? await promisify(gzip)(body, { level: 1 }) : body
    const { status, text } = await this.#text('/api/v1/import/prometheus', {
      init: {
        method: 'POST',
        body: bytes,
        headers: { 'content-type': 'text/plain', ...(this.#gzip && { 'content-encoding': 'gzip' }) },
      },
      ask: { timeoutMs: this.#importTimeoutMs, maxBytes: 64 * 1024, signal },
    })
    if (status < 300) return
    const reason = refusal(status, text)
    // 401, 403, 404 are about the address or the right to write there, which a person mends; 408 and 429 pass.
    if (status >= 400 && status < 500 && ![401, 403, 404, 408, 429].includes(status)) {
      throw new SamplesRefusedError(STORE, reason)
    }
    throw new StoreUnavailableError(STORE, reason)
  }

  /** A question by form, so that no address grows too long. The answer is passed on whatever its status. */
  ask(path: string, parameters: Parameters, ask: Ask = {}): Promise<Answer> {
    const body = new URLSearchParams()
    for (const [name, given] of Object.entries(parameters)) for (const value of [given].flat()) body.append(name, value)
    return this.#text(path, { init: { method: 'POST', body }, ask })
  }

  /** The same; anything but success is an error. @throws StoreUnavailableError */
  async askJson(path: string, parameters: Readonly<Record<string, string>>, ask: Ask = {}): Promise<unknown> {
    const { status, text } = await this.ask(path, parameters, ask)
    if (status !== 200) throw new StoreUnavailableError(STORE, refusal(status, text))
    return parseJson(text)
  }

  /** Series of `/api/v1/export`, one after the other. Times in ms, both included. @throws StoreUnavailableError */
  async *export(match: string, from: number, to: number, ask: Ask = {}): AsyncGenerator<ExportedSeries> {
    const parameters = { 'match[]': match, start: unixSeconds(from), end: unixSeconds(to), reduce_mem_usage: '1' }
    const init = { method: 'POST', body: new URLSearchParams(parameters) }
    for await (const line of this.#lines('/api/v1/export', { init, ask })) {
      if (line === '') continue
      const { metric, values, timestamps } = parseJson(line) as Partial<ExportedSeries>
      if (metric && values && timestamps) yield { metric, values, timestamps }
    }
  }

  /** Makes what was imported visible to questions. Where this is not served, a pause of its own would be needed: 1 s. */
  async forceFlush(signal?: AbortSignal): Promise<void> {
    await this.#text('/internal/force_flush', { init: {}, ask: { timeoutMs: seconds(10), maxBytes: 65536, signal } })
  }

  /** When the process began, which tells a restart; undefined where it does not say. @throws StoreUnavailableError */
  async startedAt(signal?: AbortSignal): Promise<string | undefined> {
    const { status, text } = await this.#text('/metrics', {
      init: {},
      ask: { timeoutMs: seconds(5), maxBytes: 8 * 2 ** 20, signal },
    })
    if (status !== 200) return undefined
    return /^(?:vm_app_start_timestamp|process_start_time_seconds) (\S+)/m.exec(text)?.[1]
  }

  async #text(path: string, request: Request): Promise<Answer> {
    return this.#reached(request.ask, async (signal) => {
      const response = await fetch(this.#endpoint + path, { ...request.init, signal, redirect: 'error' })
      const chunks: Uint8Array[] = []
      for await (const chunk of bounded(response, request.ask.maxBytes ?? DEFAULT_MAX_BYTES)) chunks.push(chunk)
      return { status: response.status, text: Buffer.concat(chunks).toString() }
    })
  }

  async *#lines(path: string, { init, ask }: Request): AsyncGenerator<string> {
    const { signal, ended } = this.#within(ask)
    try {
      const response = await fetch(this.#endpoint + path, { ...init, signal, redirect: 'error' })
      if (response.status !== 200) {
        const chunks: Uint8Array[] = []
        for await (const chunk of bounded(response, 65536)) chunks.push(chunk)
        throw new StoreUnavailableError(STORE, refusal(response.status, Buffer.concat(chunks).toString()))
      }
      const decoder = new TextDecoder()
      let rest = ''
      for await (const chunk of bounded(response, ask.maxBytes ?? DEFAULT_MAX_BYTES * 4)) {
        const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
        rest = lines.pop() ?? ''
        if (rest.length > MAX_LINE_BYTES) throw new StoreUnavailableError(STORE, 'a line of its export is too long')
        yield* lines
      }
      yield rest + decoder.decode()
    } catch (error) {
      throw ended(error)
    }
  }

  async #reached<T>(ask: Ask, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { signal, ended } = this.#within(ask)
    try {
      return await work(signal)
    } catch (error) {
      throw ended(error)
    }
  }

  #within({ timeoutMs = DEFAULT_TIMEOUT_MS, signal }: Ask): {
    signal: AbortSignal
    ended: (error: unknown) => unknown
  } {
    signal?.throwIfAborted()
    const timeout = AbortSignal.timeout(timeoutMs)
    const ended = (error: unknown): unknown => {
      if (signal?.aborted) return signal.reason
      if (error instanceof StoreUnavailableError) return error
      if (timeout.aborted) return new StoreUnavailableError(STORE, `no answer within ${timeoutMs} ms`, { cause: error })
      return new ContactLostError(STORE, reasonOf(error), { cause: error })
    }
    return { signal: signal ? AbortSignal.any([signal, timeout]) : timeout, ended }
  }
}

interface Request {
  readonly init: RequestInit
  readonly ask: Ask
}

export interface ExportedSeries {
  readonly metric: Readonly<Record<string, string>>
  readonly values: readonly (number | null)[]
  /** ms */
  readonly timestamps: readonly number[]
}

/** What it answers in place of what was asked. It is there: that it asks who we are is no outage. */
function refusal(status: number, text: string): string {
  const said = `${status} ${text.trim().slice(0, 500)}`.trim()
  return status === 401 || status === 403
    ? `it refuses the hub (${said}); the hub shows no credentials: let it in by its address, or put what adds them before VM_ENDPOINT`
    : said
}

async function* bounded(response: Response, maxBytes: number): AsyncGenerator<Uint8Array> {
  if (!response.body) return
  let bytes = 0
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength
    if (bytes > maxBytes) throw new StoreUnavailableError(STORE, `its answer is longer than ${maxBytes} bytes`)
    yield chunk
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new StoreUnavailableError(STORE, 'its answer is no JSON', { cause: error })
  }
}

const unixSeconds = (ms: number): string => (Math.max(0, Math.floor(ms)) / 1000).toFixed(3)

// fetch says only that it failed; what failed stands in the cause.
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { cause } = error
  return cause instanceof Error ? cause.message || String((cause as NodeJS.ErrnoException).code) : error.message
}
