import { ApiError } from './status.ts'
import type { Transaction } from './store.ts'
import type { ApiObject } from './types.ts'

export const EVENTS = '/events'

/** What the events of a server may take. */
export interface EventLimits {
  /** after its last change an event is deleted, ms; a Kubernetes API server keeps them for an hour */
  readonly lifeMs: number
  /** events of one namespace */
  readonly perNamespace: number
  /** of one event as JSON */
  readonly maxBytes: number
}

/**
 * Whoever may write events could fill the server by them.
 * @throws ApiError RequestEntityTooLarge, TooManyRequests
 */
export function checkEvent(limits: EventLimits, transaction: Transaction, path: string, event: ApiObject): void {
  const bytes = Buffer.byteLength(JSON.stringify(event))
  if (bytes > limits.maxBytes)
    throw new ApiError(
      'RequestEntityTooLarge',
      `the event has ${bytes} bytes, and may have ${limits.maxBytes}: shorten its message`,
    )
  const { namespace = '' } = event.metadata
  if (transaction.get(EVENTS, path)) return
  const count = transaction.list(EVENTS, `${namespace}/`).length
  if (count < limits.perNamespace) return
  const minutes = Math.round(limits.lifeMs / 60_000)
  throw new ApiError(
    'TooManyRequests',
    `the namespace ${namespace} has ${count} events, and may have ${limits.perNamespace}: they go ${minutes} minutes after their last change`,
  )
}
