import type { RowKey } from '#sinks'
import { compareKeys, type PackedRow, rowKeyOf } from '../store/index.ts'
import { invalidParameter } from './refusal.ts'

export const DEFAULT_LIMIT = 500
export const MAX_LIMIT = 5000

/** Which part of a list is asked for. */
export interface Paging {
  readonly limit: number
  readonly offset: number
  /** what was last on the page before; then `offset` is 0 */
  readonly after?: RowKey
}

/** A part of a list that goes on. */
export interface Page<T> {
  readonly items: readonly T[]
  readonly offset: number
  readonly total: number
}

export type RowPage = Page<PackedRow>

/** Reads all that matches, for the total, and keeps the page. @param rows in canonical order */
export function pageOf(rows: Iterable<PackedRow>, { limit, offset, after }: Paging): RowPage {
  const items: PackedRow[] = []
  let total = 0
  let before = 0
  for (const row of rows) {
    const isBefore = after ? before === total && compareKeys(row, after) <= 0 : total < offset
    total++
    if (isBefore) before++
    else if (items.length < limit) items.push(row)
  }
  return { items, offset: before, total }
}

/** The same of a list that has no order of its own but its places. */
export function sliceOf<T>(all: readonly T[], { limit, offset }: Paging): Page<T> {
  const from = Math.min(offset, all.length)
  return { items: all.slice(from, from + limit), offset: from, total: all.length }
}

export const hasMore = ({ items, offset, total }: Page<unknown>): boolean => offset + items.length < total

/** Where the next page goes on, whatever comes and goes before it; undefined: there is none. @param mark of what was asked for */
export function continueToken(page: RowPage, mark: string): string | undefined {
  const last = page.items.at(-1)
  if (!last || !hasMore(page)) return undefined
  const { targetNamespace, targetName, namespace, name, uid } = rowKeyOf(last)
  return Buffer.from(JSON.stringify([mark, targetNamespace, targetName, namespace, name, uid])).toString('base64url')
}

/** @throws Refusal where it is none of ours, or was given for another question */
export function readContinueToken(token: string, mark: string): RowKey {
  const [given, targetNamespace, targetName, namespace, name, uid] = partsOf(token)
  if (given !== mark)
    throw invalidParameter('continue was given for another question: repeat its parameters, or leave continue out')
  return { targetNamespace, targetName, namespace, name, uid }
}

type Parts = readonly [string, string, string, string, string, string]

function partsOf(token: string): Parts {
  try {
    const parts: unknown = JSON.parse(Buffer.from(token, 'base64url').toString('utf8'))
    if (Array.isArray(parts) && parts.length === 6 && parts.every((part) => typeof part === 'string'))
      return parts as unknown as Parts // checked in the line above
  } catch {
    // Said below: it is none of ours.
  }
  throw invalidParameter('continue is none that was given here: leave it out to begin anew')
}
