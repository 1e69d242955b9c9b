import { parseLabelSelector } from '#model'
import { RefusedError } from './problem.ts'
import type { RowsQuery } from './type-rows.ts'

/** Rows of one kind over the fleet, as somebody asks a stream for them. */
export interface RowsAsked extends RowsQuery {
  readonly type: string
  readonly source?: string
  /** absent: all that are seen */
  readonly cluster?: readonly string[]
  /** only clusters in this set */
  readonly set?: string
  /** the first so many in order, behind the cursor where there is one; absent: all of them */
  readonly limit?: number
  /** of a page of the same rows in the same order: the row that the first one stands behind */
  readonly cursor?: string
  /** rows outside of these of which it is told as well, as `<cluster>/<id>`, each once, sorted */
  readonly also?: readonly string[]
  /** equal texts ask the same */
  readonly text: string
  /** equal ones are answered by the same rows, whatever is told besides */
  readonly rowsText: string
}

const maxLimit = 2000
const lengths: Readonly<Record<string, number>> = {
  source: 253,
  set: 253,
  namespace: 253,
  labels: 1024,
  q: 200,
  sort: 128,
  order: 4,
  limit: 4,
  cursor: 2048,
}
/** Words that may stand several times, and how often. */
const lists: Readonly<Record<string, { readonly most: number; readonly length: number }>> = {
  cluster: { most: 1000, length: 253 },
  where: { most: 10, length: 512 },
  also: { most: 100, length: 600 },
}

/**
 * Reads `<type>?<query>`, with the words of GET /api/v2/rows/<type>.
 * @throws RefusedError `invalid_parameter` that names the word
 */
export function parseRowsAsked(text: string): RowsAsked {
  const mark = text.indexOf('?')
  const type = decoded(mark < 0 ? text : text.slice(0, mark))
  if (type.length === 0 || type.length > 63) refuse(text, 'it begins with no name of a type')
  const words = new URLSearchParams(mark < 0 ? '' : text.slice(mark + 1))
  const one: Record<string, string> = {}
  const many: Record<string, string[]> = {}
  for (const [name, value] of words) {
    const list = Object.hasOwn(lists, name) ? lists[name] : undefined
    const most = list?.length ?? (Object.hasOwn(lengths, name) ? lengths[name] : undefined)
    if (most === undefined)
      refuse(text, `${name.slice(0, 40)} is none of ${[...Object.keys(lists), ...Object.keys(lengths)].join(', ')}`)
    if (value === '' || value.length > most) refuse(text, `${name} is empty or longer than ${most} characters`)
    if (list) many[name] = [...(many[name] ?? []), value]
    else if (Object.hasOwn(one, name)) refuse(text, `${name} stands there twice`)
    else one[name] = value
    if (list && (many[name]?.length ?? 0) > list.most) refuse(text, `${name} stands there more than ${list.most} times`)
  }
  const { order, limit, labels, ...rest } = one
  const way: RowsAsked['order'] | undefined = order === 'asc' || order === 'desc' ? order : undefined
  if (order !== way) refuse(text, 'order is asc or desc')
  const most = limit === undefined ? undefined : Number(limit)
  if (most !== undefined && (!/^\d+$/.test(limit ?? '') || most < 1 || most > maxLimit))
    refuse(text, `limit is a number from 1 to ${maxLimit}`)
  if (rest.cursor !== undefined && most === undefined) refuse(text, 'cursor needs limit: how many rows behind it')
  if (many.also && most === undefined) refuse(text, 'also needs limit: without it all rows are told')
  const selector = labels === undefined ? undefined : parseLabelSelector(labels)
  if (typeof selector === 'string') refuse(text, `labels=${selector}`)
  const asked = {
    type,
    ...rest,
    ...(labels !== undefined && { labels }),
    ...(many.cluster && { cluster: [...new Set(many.cluster)].sort() }),
    ...(many.where && { where: many.where }),
    ...(way && { order: way }),
    ...(most !== undefined && { limit: most }),
  } as const
  const rowsText = JSON.stringify(Object.entries(asked).sort(([a], [b]) => (a < b ? -1 : 1)))
  if (!many.also) return { ...asked, text: rowsText, rowsText }
  const also = [...new Set(many.also)].sort()
  return { ...asked, also, text: JSON.stringify([rowsText, also]), rowsText }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch (error) {
    if (error instanceof URIError) return refuse(text, 'its type is not URL-encoded')
    throw error
  }
}

function refuse(text: string, why: string): never {
  throw new RefusedError('invalid_parameter', `rows=${text.slice(0, 80)}: ${why}`)
}
