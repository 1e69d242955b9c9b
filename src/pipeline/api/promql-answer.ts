import { routes } from '#http'
import type { Answer } from './route.ts'

const prefix = '/api/v1/'
/** First words below the prefix that both APIs share. */
const ownWords = new Set(
  routes.flatMap(({ url, schema }) =>
    url.startsWith(prefix) && !schema.operationId.startsWith('promQl') ? [url.split('/')[3]] : [],
  ),
)

/** Whether a tool of Prometheus asks there: below the prefix whatever is not of our own API, known or not. */
export const isPromQlPath = (path: string): boolean => path.startsWith(prefix) && !ownWords.has(path.split('/')[3])

export const success = (data: unknown, warnings: readonly unknown[] = []): Answer => ({
  fresh: { status: 'success', data, ...(warnings.length > 0 && { warnings }) },
})

/** Not more than `limit`; what is left out is warned of in Prometheus' words. */
export function within<T>(list: readonly T[], limit: number, warnings: readonly unknown[] = []) {
  if (list.length <= limit) return { list, warnings }
  return { list: list.slice(0, limit), warnings: [...warnings, 'results truncated due to limit'] }
}

/** What a problem carries besides, so that a tool of Prometheus can read it. */
export function promQlMarks(status: number): { readonly status: 'error'; readonly errorType: string } {
  return { status: 'error', errorType: errorType(status) }
}

function errorType(status: number): string {
  if (status === 504) return 'timeout'
  if (status >= 500) return 'unavailable'
  if (status === 404) return 'not_found'
  return status === 400 ? 'bad_data' : 'execution'
}
