import { keyOf } from '../events/held.ts'
import type { EventMessage } from '../events/messages.ts'
import type { Delivery } from '../sink.ts'

/** No name of Kubernetes has it. */
const MARK = '#'

/**
 * The key of a message: that of its inventory, `cluster/namespace/inventory`. A compacted topic keeps the newest of each key, so all parts
 * but the last have a number behind it, and a snapshot that may lack rows stands beside the complete one before it.
 */
export function recordKey({ writing, complete }: Delivery, { part }: EventMessage): string {
  const key = complete ? keyOf(writing) : `${keyOf(writing)}${MARK}incomplete`
  return part.index === part.total ? key : `${key}${MARK}${String(part.index).padStart(4, '0')}`
}

/** What of a key decides over its partition. */
export const partitionKey = (key: string): string => key.split(MARK, 1)[0] ?? key
