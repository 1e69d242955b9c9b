import type { Client, RowsPageQuery } from './contract.ts'
import { firstPageSize } from './live/row-pages.ts'
import { usualOrder } from './model/row-values.ts'
import type { Route } from './router.tsx'

type Ask<T> = (signal?: AbortSignal) => Promise<T>

/** What the page does not ask for so soon after its start, it asks for itself: rows of then would be shown as rows of now. ms */
const KEPT_MS = 10_000

/** Answers that were asked for before somebody wanted them: each is taken once, by the same question. */
class Early {
  readonly #answers = new Map<string, Promise<unknown>>()
  readonly #isTrue: () => boolean
  readonly #since = performance.now()

  /** @param isTrue what may be seen is still what it was when they were asked for */
  constructor(isTrue: () => boolean) {
    this.#isTrue = isTrue
  }

  ask<T>(key: string, answer: Promise<T>): void {
    this.#answers.set(key, answer)
    // A refusal that nobody waits for says nothing of later: whoever wants to know asks then.
    answer.catch(() => this.#answers.delete(key))
  }

  /** What was asked for, or asks now. */
  take<T>(key: string, ask: Ask<T>, signal?: AbortSignal): Promise<T> {
    const answer = this.#answers.get(key)
    this.#answers.delete(key)
    const isOld = performance.now() - this.#since > KEPT_MS
    if (!answer || isOld || !this.#isTrue() || signal?.aborted) return ask(signal)
    return answer as Promise<T> // of the same question
  }
}

const keyOf = (...question: readonly unknown[]): string =>
  JSON.stringify(question, (_, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  )

/**
 * Asks at once for what the page at this address is going to show, while its script and the first message of the stream are on
 * their way. The page asks as it always does, and finds the answer under way; what it asks otherwise is asked then.
 * @param isTrue what may be seen is still what it was at first
 */
export function askEarly(
  client: Client,
  route: Route,
  query: URLSearchParams,
  isTrue: () => boolean = () => true,
): Client {
  const early = new Early(isTrue)
  if (route.page === 'cluster' && (route.type !== null || usualOrder[route.tab] !== undefined)) {
    const { name, tab, type } = route
    early.ask(keyOf('types', { cluster: name }), client.types({ cluster: name }))
    const rows = type ?? tab
    const question = rowsQuestionOf(query, type === null ? usualOrder[tab] : undefined)
    if (question) early.ask(keyOf('rows', name, rows, question), client.customRows(name, rows, question))
  }
  if (route.page === 'types' && route.type !== null) early.ask(keyOf('type', route.type), client.type(route.type))
  return {
    ...client,
    types: (asked, signal) => early.take(keyOf('types', asked), (to) => client.types(asked, to), signal),
    type: (type, signal) => early.take(keyOf('type', type), (to) => client.type(type, to), signal),
    customRows: (cluster, type, asked, signal) =>
      early.take(keyOf('rows', cluster, type, asked), (to) => client.customRows(cluster, type, asked, to), signal),
  }
}

/** The first question of a table at this address; undefined: only its columns tell what is to be asked. */
function rowsQuestionOf(query: URLSearchParams, usual: string | undefined): RowsPageQuery | undefined {
  const order = query.get('sort') ?? ''
  const sort = order.replace(/^-/, '') || usual
  if (sort === undefined || query.get('view') || query.get('q') || query.get('source')) return undefined
  return {
    limit: firstPageSize,
    ...(sort !== 'name' && { sort }),
    ...(order.startsWith('-') && { order: 'desc' as const }),
  }
}
