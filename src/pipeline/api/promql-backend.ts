import type { HistoryStore, PromQl, PromQlPath } from '#history'
import { askStore, openStore } from './history.ts'
import { RefusedError } from './problem.ts'
import { durationOf, type Parameters } from './promql-form.ts'

const maxTimeoutMs = 30_000
const maxRunning = 16

export interface PromQlData {
  readonly data: unknown
  readonly warnings: readonly unknown[]
}

/** The history behind the hub where it speaks PromQL; so many questions at a time, each for so long. */
export class PromQlBackend {
  readonly #history: HistoryStore | undefined
  #running = 0

  constructor(history: HistoryStore | undefined) {
    this.#history = history
  }

  /** @throws RefusedError where nothing here answers PromQL, with what to do */
  require(): PromQl {
    const { promql } = openStore(this.#history)
    if (promql) return promql
    throw new RefusedError(
      'promql_off',
      'the embedded history has no PromQL: to ask by it, set VM_ENABLED=true and VM_ENDPOINT to the address of a VictoriaMetrics',
    )
  }

  /**
   * @param parameters narrowed to what the caller may see
   * @param given what the caller says: of it only the timeout counts here
   * @throws RefusedError what the backend refuses as `query_refused`, anything else as a fault of the history
   */
  async ask(
    path: PromQlPath,
    parameters: Readonly<Record<string, string | readonly string[]>>,
    given: Parameters,
  ): Promise<PromQlData> {
    const promql = this.require()
    const store = openStore(this.#history)
    if (this.#running >= maxRunning)
      throw new RefusedError('history_unavailable', 'too many queries at once', { retryAfterSeconds: 2 })
    this.#running += 1
    try {
      const timeout = timeoutOf(given)
      return passedOn(await askStore(store, (signal) => promql.ask(path, { ...parameters, timeout }, signal)))
    } finally {
      this.#running -= 1
    }
  }
}

function timeoutOf(given: Parameters): string {
  const asked = durationOf(given, 'timeout') ?? maxTimeoutMs
  return `${Math.max(1, Math.ceil(Math.min(asked, maxTimeoutMs) / 1000))}s`
}

interface BackendAnswer {
  readonly status?: unknown
  readonly data?: unknown
  readonly error?: unknown
  readonly warnings?: unknown
}

/** Only what Prometheus documents is passed on. */
function passedOn({ status, body }: { readonly status: number; readonly body: unknown }): PromQlData {
  const answer: BackendAnswer = typeof body === 'object' && body !== null ? body : {}
  if (status === 200 && answer.status === 'success')
    return { data: answer.data, warnings: Array.isArray(answer.warnings) ? answer.warnings : [] }
  if (status === 400 || status === 422)
    throw new RefusedError('query_refused', `the backend refuses: ${String(answer.error ?? status).slice(0, 500)}`)
  throw new RefusedError('history_failed', `the history store answered with ${status}`, { retryAfterSeconds: 5 })
}
