import type { Health, ScalarValue } from '#model'
import type { Steps } from '#runtime'
import { Best } from './best.ts'
import { ChunkMemo, isKept } from './chunk-memo.ts'
import { addedUp, ChunkCounter, type GroupCounts, healths, NUMBERS_OF_GROUP, UNSAID } from './group-counts.ts'
import { type GroupNumbers, groupNumbers, MAX_ROW_GROUPS, tooManyGroups } from './group-numbers.ts'
import { type MatchingTable, matching, questionOf } from './matching.ts'
import type { RowsFilter } from './row-filter.ts'
import { compareValues } from './row-order.ts'
import type { VisibleType } from './visible-types.ts'

/*
 *  rows that may be seen → namespace, q, where → how many have each value → the largest groups, and the rest as one
 *
 * What was counted of a table, and of a chunk, is kept by number of the group: where one row changed, one chunk is counted again.
 */

/** Which rows, and by which columns they are counted. */
export interface GroupsQuery extends RowsFilter {
  readonly by: readonly string[]
  /** so many groups are named; default 20 */
  readonly limit?: number
  /** the largest first, or the worst; default the largest */
  readonly sort?: 'count' | 'health'
}

/** Rows that are equal in the columns of the question. */
export interface RowGroup {
  /** of the columns, in their order */
  readonly values: readonly ScalarValue[]
  readonly count: number
  /** the worst that any of its rows says of itself; null: none says anything */
  readonly health: Health | null
}

/** What is not named of the groups. */
interface OtherGroups {
  /** how many */
  readonly groups: number
  /** rows in them */
  readonly count: number
  readonly health: Health | null
}

export interface RowGroups {
  readonly groups: readonly RowGroup[]
  readonly others: OtherGroups
  /** rows in all groups */
  readonly total: number
}

/** Some questions over a million rows, of chunks and of tables. */
const memo = new ChunkMemo(32 * 2 ** 20)
const bytesOfCounts = ({ byteLength }: GroupCounts): number => 220 + byteLength

/**
 * Counts step by step.
 * @param types of one kind, sorted by cluster
 * @throws RefusedError `invalid_parameter`: there is no such column, or there are too many groups
 */
export function* groupSteps(types: readonly VisibleType[], query: GroupsQuery): Steps<RowGroups> {
  const { by } = query
  const { tables, total } = yield* matching(types, query)
  const counted: GroupCounts[] = []
  const [first] = types
  if (!first) return { groups: [], others: { groups: 0, count: 0, health: null }, total }
  const numbers = groupNumbers(first.source, by)
  const most = numbers.size + MAX_ROW_GROUPS
  for (const found of tables) {
    const type = types[found.number] as VisibleType // tables are of these
    const question = JSON.stringify([numbers.id, questionOf(type, query, by)])
    const make = () => tableCounts(type, found, numbers, { by, question, most })
    const { table } = found
    counted.push(isKept(table) ? yield* memo.answers(question, bytesOfCounts).steps(table, make) : yield* make())
    yield
  }
  const all = addedUp(counted, numbers.size)
  if (all.length > MAX_ROW_GROUPS * NUMBERS_OF_GROUP) throw tooManyGroups(by)
  return { ...largest(all, numbers, query), total }
}

interface Counting {
  readonly by: readonly string[]
  readonly question: string
  /** groups that may be numbered before there are too many */
  readonly most: number
}

function* tableCounts(
  type: VisibleType,
  { parts, table }: MatchingTable,
  numbers: GroupNumbers,
  { by, question, most }: Counting,
): Steps<GroupCounts> {
  const counter = new ChunkCounter(type, by, numbers)
  const answers = memo.answers(question, bytesOfCounts)
  const counted: GroupCounts[] = []
  for (const { chunk, rows } of parts) {
    counted.push(isKept(table) ? answers.of(chunk, () => counter.count(chunk, rows)) : counter.count(chunk, rows))
    if (numbers.size > most) throw tooManyGroups(by)
    yield
  }
  return addedUp(counted, numbers.size)
}

interface Group extends Omit<RowGroup, 'health'> {
  /** place among the healths */
  readonly worst: number
}

const healthAt = (worst: number): Health | null => healths[worst] ?? null

function largest(
  counted: GroupCounts,
  numbers: GroupNumbers,
  { limit = 20, sort = 'count' }: GroupsQuery,
): Omit<RowGroups, 'total'> {
  const best = new Best<Group>(limit, (left, right) => compareGroups(left, right, sort))
  let rest = { groups: 0, count: 0, worst: UNSAID }
  const leave = ({ count, worst }: Pick<Group, 'count' | 'worst'>): void => {
    rest = { groups: rest.groups + 1, count: rest.count + count, worst: Math.min(rest.worst, worst) }
  }
  for (let i = 0; i < counted.length; i += NUMBERS_OF_GROUP) {
    const [number, count, worst] = [counted[i] as number, counted[i + 1] as number, counted[i + 2] as number]
    const { bound } = best
    // Most are smaller than what is kept, by one look.
    if (bound && (sort === 'count' ? count < bound.count : worst > bound.worst)) {
      leave({ count, worst })
      continue
    }
    const group = { values: numbers.values[number] as readonly ScalarValue[], count, worst }
    const isBetter = !bound || compareGroups(group, bound, sort) < 0
    if (!isBetter) leave(group)
    else {
      if (bound) leave(bound)
      best.add(group)
    }
  }
  return {
    groups: best.sorted().map(({ values, count, worst }) => ({ values, count, health: healthAt(worst) })),
    others: { groups: rest.groups, count: rest.count, health: healthAt(rest.worst) },
  }
}

function compareGroups(left: Group, right: Group, sort: 'count' | 'health'): number {
  if (sort === 'health' && left.worst !== right.worst) return left.worst - right.worst
  if (left.count !== right.count) return right.count - left.count
  for (let i = 0; i < left.values.length; i++) {
    const [a, b] = [left.values[i] as ScalarValue, right.values[i] as ScalarValue]
    if (a === b) continue
    if (a === null || b === null) return a === null ? 1 : -1
    return compareValues(a, b) || 0
  }
  return 0
}
