import type { RowKind } from '#metricsource'
import { type Chunk, type Column, type Health, type JsonValue, type ScalarValue, sizeOf } from '#model'
import { ChunkMemo } from './chunk-memo.ts'
import { RefusedError } from './problem.ts'
import { columnOf, type RowColumn } from './row-columns.ts'
import type { RowsFilter } from './row-filter.ts'
import { compareValues } from './row-order.ts'
import { listRows } from './row-set.ts'
import type { Steps } from './turns.ts'
import { matching } from './type-rows.ts'
import type { VisibleType } from './visible-types.ts'

/*
 *  rows that may be seen → namespace, q, where → how many have each value → the largest groups, and the rest as one
 *
 * Rows of a chunk are counted by the place of their value among the distinct values of the chunk; texts are compared once per distinct
 * value and chunk.
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

/** Groups of one answer, of which the largest are named: more would take more memory than an answer is worth. */
export const MAX_ROW_GROUPS = 200_000

/** From the worst to the best; as places of a list. */
const healths: readonly Health[] = ['unhealthy', 'degraded', 'unknown', 'healthy']
const UNSAID = healths.length

/** The distinct values of a column of a chunk, and of each row which it has. */
interface Coded {
  readonly values: readonly ScalarValue[]
  /** undefined: all rows have the first */
  readonly codes: Uint8Array | Uint16Array | undefined
}

/** Codes of some columns of a million rows. */
const memo = new ChunkMemo(32 * 2 ** 20)
const bytesOfCoded = ({ values, codes }: Coded): number => 100 + 8 * values.length + (codes?.byteLength ?? 0)

/**
 * Counts step by step.
 * @param types of one kind, sorted by cluster
 * @throws RefusedError `invalid_parameter`: there is no such column, or there are too many groups
 */
export function* groupSteps(types: readonly VisibleType[], query: GroupsQuery): Steps<RowGroups> {
  const { by, limit = 20, sort = 'count' } = query
  const columns = types.map((type) => by.map((name) => new CodedColumn(columnOf(type, name))))
  const healthOf = types.map((type) => new RowHealth(type))
  const { parts, total } = yield* matching(types, query)
  const all = new GroupTree(by)
  const rows = new Uint16Array(512)
  for (const { number, chunk, rows: set } of parts) {
    const coded = combined(
      (columns[number] ?? []).map((column) => column.of(chunk)),
      sizeOf(chunk),
    )
    const count = listRows(set, sizeOf(chunk), rows)
    countCodes(coded, rows, count, healthOf[number]?.of(chunk), all)
    yield
  }
  const sorted = all.leaves.sort((left, right) => compareGroups(left, right, sort))
  yield
  const rest = sorted.slice(limit)
  return {
    groups: sorted
      .slice(0, limit)
      .map(({ values, count, worst }) => ({ values, count, health: healths[worst] ?? null })),
    others: {
      groups: rest.length,
      count: rest.reduce((sum, { count }) => sum + count, 0),
      health: healths[rest.reduce((worst, one) => Math.min(worst, one.worst), UNSAID)] ?? null,
    },
    total,
  }
}

class CodedColumn {
  readonly #column: RowColumn
  readonly #coded

  constructor(column: RowColumn) {
    this.#column = column
    this.#coded = memo.answers<Coded>(column.reading, bytesOfCoded)
  }

  of(chunk: Chunk): Coded {
    const column = this.#column.of(chunk)
    return this.#coded.of(column, () => this.#make(column, sizeOf(chunk)))
  }

  #make(column: Column, size: number): Coded {
    const { words, codes, numbers } = column
    if (column.isOne) return { values: [this.#column.read(words[0] as JsonValue)], codes: undefined }
    if (codes) return { values: words.map((word) => this.#column.read(word)), codes }
    const places = new Map<ScalarValue, number>()
    const made = new Uint16Array(size)
    for (let row = 0; row < size; row++) {
      const value = numbers ? column.at(row) : (words[row] as JsonValue)
      const key = this.#column.read(value)
      let place = places.get(key)
      if (place === undefined) {
        place = places.size
        places.set(key, place)
      }
      made[row] = place
    }
    return { values: [...places.keys()], codes: made }
  }
}

/** Distinct combinations of the values of several columns. */
interface Combined {
  readonly combinations: readonly (readonly ScalarValue[])[]
  readonly codes: Uint8Array | Uint16Array | undefined
}

/** By pair of codes of two columns, the code of the pair, and one more; zero between two uses. */
const codesOfPairs = new Uint16Array(512 * 512)

function combined([first, ...more]: readonly Coded[], size: number): Combined {
  let [combinations, codes]: [(readonly ScalarValue[])[], Combined['codes']] = [
    (first?.values ?? [null]).map((value) => [value]),
    first?.codes,
  ]
  for (const { values, codes: own } of more) {
    if (!own) {
      combinations = combinations.map((one) => [...one, values[0] ?? null])
      continue
    }
    const [before, width] = [codes, values.length]
    const [pairs, used, made]: [(readonly ScalarValue[])[], number[], Uint16Array] = [[], [], new Uint16Array(size)]
    for (let row = 0; row < size; row++) {
      const [left, right] = [before ? (before[row] as number) : 0, own[row] as number]
      const pair = left * width + right
      let code = codesOfPairs[pair] as number
      if (code === 0) {
        pairs.push([...(combinations[left] ?? []), values[right] ?? null])
        code = pairs.length
        codesOfPairs[pair] = code
        used.push(pair)
      }
      made[row] = code - 1
    }
    for (const pair of used) codesOfPairs[pair] = 0
    ;[combinations, codes] = [pairs, made]
  }
  return { combinations, codes }
}

/** By code, for one chunk; zero between two uses. */
const counts = new Uint16Array(512)
const worsts = new Uint8Array(512)

function countCodes(
  { combinations, codes }: Combined,
  rows: Uint16Array,
  count: number,
  health: Uint8Array | undefined,
  all: GroupTree,
): void {
  worsts.fill(UNSAID)
  for (let i = 0; i < count; i++) {
    const row = rows[i] as number
    const code = codes ? (codes[row] as number) : 0
    counts[code] = (counts[code] as number) + 1
    if (health && (health[row] as number) < (worsts[code] as number)) worsts[code] = health[row] as number
  }
  for (let code = 0; code < combinations.length; code++) {
    if (counts[code] === 0) continue
    all.add(combinations[code] as readonly ScalarValue[], counts[code] as number, worsts[code] as number)
    counts[code] = 0
  }
}

/** What the rows of a kind say of themselves. */
class RowHealth {
  readonly #columns: readonly { readonly column: RowColumn; readonly health: Readonly<Record<string, Health>> }[]
  readonly #known

  constructor(type: VisibleType) {
    const { columns, id, hash }: RowKind = type.source
    this.#columns = columns.flatMap(({ name, health }) => (health ? [{ column: columnOf(type, name), health }] : []))
    this.#known = memo.answers<Uint8Array>(`health ${id} ${hash}`, ({ byteLength }) => 100 + byteLength)
  }

  /** By row, the place among the healths. @returns undefined: rows of this kind say nothing */
  of(chunk: Chunk): Uint8Array | undefined {
    const [first, ...more] = this.#columns
    if (!first) return undefined
    const about = more.length === 0 ? first.column.of(chunk) : chunk
    const known = this.#known.of(about, () => this.#make(chunk))
    return known.length >= sizeOf(chunk) ? known : this.#make(chunk)
  }

  #make(chunk: Chunk): Uint8Array {
    const worst = new Uint8Array(sizeOf(chunk)).fill(UNSAID)
    for (const { column, health } of this.#columns) {
      const values = column.of(chunk)
      const said = (raw: JsonValue): number => {
        const value = column.read(raw)
        return value === null ? UNSAID : healths.indexOf(health[String(value)] ?? 'degraded')
      }
      const ofWords = values.codes ? values.words.map(said) : undefined
      for (let row = 0; row < worst.length; row++) {
        const own = ofWords && values.codes ? (ofWords[values.codes[row] as number] as number) : said(values.at(row))
        if (own < (worst[row] as number)) worst[row] = own
      }
    }
    return worst
  }
}

interface Leaf {
  readonly values: readonly ScalarValue[]
  count: number
  /** place among the healths */
  worst: number
}

type Branch = Map<ScalarValue, Branch | Leaf>

/** Groups by value of the first column, then of the second, and so on. */
class GroupTree {
  readonly leaves: Leaf[] = []
  readonly #root: Branch = new Map()
  readonly #by: readonly string[]

  constructor(by: readonly string[]) {
    this.#by = by
  }

  add(values: readonly ScalarValue[], count: number, worst: number): void {
    let branch = this.#root
    const last = values.length - 1
    for (let i = 0; i < last; i++) {
      const value = values[i] as ScalarValue
      const next = (branch.get(value) as Branch | undefined) ?? new Map() // leaves are at the last column
      branch.set(value, next)
      branch = next
    }
    const value = values[last] as ScalarValue
    const leaf = branch.get(value) as Leaf | undefined // as above
    if (leaf) {
      leaf.count += count
      if (worst < leaf.worst) leaf.worst = worst
      return
    }
    if (this.leaves.length === MAX_ROW_GROUPS)
      throw new RefusedError(
        'invalid_parameter',
        `by=${this.#by.join('&by=')} makes more than ${MAX_ROW_GROUPS} groups: group by columns of fewer values, or ask for fewer rows with where, namespace or cluster`,
      )
    const made = { values, count, worst }
    branch.set(value, made)
    this.leaves.push(made)
  }
}

function compareGroups(left: Leaf, right: Leaf, sort: 'count' | 'health'): number {
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
