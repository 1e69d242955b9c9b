import type { Row } from '#extract'

/** One server-sent event. */
export interface HeardEvent {
  readonly id?: string
  readonly event: string
  readonly data: Heard
}

interface Heard {
  readonly items?: readonly Row[]
  readonly pagination?: { readonly offset: number; readonly total: number; readonly hasMore: boolean }
  readonly put?: readonly Row[]
  readonly removed?: readonly Row[]
  readonly complete: boolean
}

/** @returns undefined: a comment, or how long to wait before coming back */
export function parseEvent(text: string): HeardEvent | undefined {
  const fields = new Map(
    text
      .trim()
      .split('\n')
      .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)] as const),
  )
  const [id, event, data] = [fields.get('id'), fields.get('event'), fields.get('data')]
  if (event === undefined || data === undefined) return undefined
  return { ...(id !== undefined && { id }), event, data: JSON.parse(data) as Heard }
}

const keyOf = ({ targetNamespace, targetName, namespace, name, uid }: Row) =>
  [targetNamespace, targetName, namespace, name, uid].join('\n')

/** What a client of the stream with deltas holds, as docs/reference/inventory-api.md tells it to. */
export class Reader {
  readonly #rows = new Map<string, Row>()
  id: string | undefined
  isComplete = false

  get rows(): readonly Row[] {
    return [...this.#rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row)
  }

  hear({ id, event, data }: HeardEvent): void {
    if (event === 'inventory' && (data.pagination?.offset ?? 0) === 0) this.#rows.clear()
    for (const row of data.items ?? data.put ?? []) this.#rows.set(keyOf(row), row)
    for (const row of data.removed ?? []) this.#rows.delete(keyOf(row))
    this.isComplete = data.complete
    if (id !== undefined) this.id = id
  }
}
