import { FleetError } from '#model'
import { byText } from './views.ts'

export class InvalidCursorError extends FleetError {
  override readonly name = 'InvalidCursorError'
  readonly code = 'invalid_cursor'
  readonly retryable = false

  constructor() {
    super('cursor does not belong to this list and order; begin again without it')
  }
}

export interface PageQuery {
  readonly limit?: number
  readonly cursor?: string
  readonly sort?: string
  readonly order?: 'asc' | 'desc'
}

/** null sorts last, whichever way */
export type SortValue = number | string | boolean | null

export interface Sortable<T> {
  readonly items: readonly T[]
  /** unique in the list; also the tie-break, so that the order is total */
  readonly name: (item: T) => string
  readonly value: (item: T, sort: string) => SortValue
}

export interface Page<T> {
  readonly items: readonly T[]
  readonly total: number
  readonly next: string | null
}

type Position = readonly [value: SortValue, name: string]

/**
 * One page of a list in a total order. The cursor names the last item seen, not a count, so that items which come and go
 * between two pages neither hide nor repeat the others.
 * @throws InvalidCursorError for a cursor of another list, another order, or of no list at all
 */
export function page<T>({ items, name, value }: Sortable<T>, query: PageQuery): Page<T> {
  const { limit = 100, sort = 'name', order = 'asc' } = query
  const compare = (left: Position, right: Position): number => comparePositions(left, right, order)
  const placed = items.map((item): readonly [Position, T] => [
    [sort === 'name' ? null : value(item, sort), name(item)],
    item,
  ])
  placed.sort(([left], [right]) => compare(left, right))

  const after = query.cursor === undefined ? undefined : readCursor(query.cursor, sort, order)
  const start = after ? firstAfter(placed, (position) => compare(position, after) > 0) : 0
  const slice = placed.slice(start, start + limit)
  const last = slice.at(-1)
  return {
    items: slice.map(([, item]) => item),
    total: items.length,
    next: last && start + limit < placed.length ? writeCursor(last[0], sort, order) : null,
  }
}

function comparePositions([leftValue, left]: Position, [rightValue, right]: Position, order: 'asc' | 'desc'): number {
  const direction = order === 'asc' ? 1 : -1
  if (leftValue === null || rightValue === null) {
    if (leftValue !== rightValue) return leftValue === null ? 1 : -1
    return direction * byText(left, right)
  }
  return direction * (compareValues(leftValue, rightValue) || byText(left, right))
}

function compareValues(left: NonNullable<SortValue>, right: NonNullable<SortValue>): number {
  if (typeof left === 'string' && typeof right === 'string') return byText(left, right)
  return Number(left) - Number(right)
}

function firstAfter<T>(placed: readonly (readonly [Position, T])[], isAfter: (position: Position) => boolean): number {
  let low = 0
  let high = placed.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const entry = placed[middle]
    if (entry && isAfter(entry[0])) high = middle
    else low = middle + 1
  }
  return low
}

export const writeCursor = (position: readonly [SortValue, string], sort: string, order: string): string =>
  Buffer.from(JSON.stringify([sort, order, ...position])).toString('base64url')

export function readCursor(cursor: string, sort: string, order: string): Position {
  const parts = parseJson(Buffer.from(cursor, 'base64url').toString())
  if (!Array.isArray(parts) || parts.length !== 4) throw new InvalidCursorError()
  const [cursorSort, cursorOrder, value, name] = parts as unknown[]
  if (cursorSort !== sort || cursorOrder !== order || typeof name !== 'string') throw new InvalidCursorError()
  if (value !== null && !['number', 'string', 'boolean'].includes(typeof value)) throw new InvalidCursorError()
  return [value as SortValue, name] // checked in the line above
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    if (cause instanceof SyntaxError) return undefined // a cursor that nobody gave out
    throw cause
  }
}
