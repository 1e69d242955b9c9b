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

/** Of a chunk. */
const MOST_ROWS = 512

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
  const rows = new Uint16Array(MOST_ROWS)
  for (const { number, chunk, rows: set } of parts) {
    const size = sizeOf(chunk)
    const coded = (columns[number] ?? []).map((column) => column.of(chunk))
    const { levels, codes } = combined(coded, size)
    const count = listRows(set, size, rows)
    all.begin(levels)
    countCodes(codes, rows, count, healthOf[number]?.of(chunk), all)
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
    const { words, codes } = column
    if (column.isOne) return { values: [this.#column.read(words.at(0) as JsonValue)], codes: undefined }
    if (codes) return { values: Array.from(words, (word) => this.#column.read(word)), codes }
    const places = new Map<ScalarValue, number>()
    const made = new Uint16Array(size)
    for (let row = 0; row < size; row++) {
      const key = this.#column.read(column.at(row))
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

/** Distinct combinations of the values of the first columns: each is one of those before it, with one value more. */
interface Level {
  readonly values: readonly ScalarValue[]
  /** by combination, its value; undefined: its own number */
  readonly ownOf: Uint16Array | undefined
  /** by combination, the one before; undefined: that of its own number */
  readonly parentOf: Uint16Array | undefined
}

interface Combined {
  readonly levels: readonly Level[]
  /** of each row its combination; undefined: all have the first */
  readonly codes: Uint8Array | Uint16Array | undefined
}

/** By pair of codes of two columns, the code of the pair, and one more; zero between two uses. */
const codesOfPairs = new Uint16Array(MOST_ROWS * MOST_ROWS)
const allZero = new Uint16Array(MOST_ROWS)

function combined(columns: readonly Coded[], size: number): Combined {
  let codes: Combined['codes']
  const levels = columns.map(({ values, codes: own }): Level => {
    if (!own) return { values, ownOf: allZero, parentOf: undefined }
    if (!codes) {
      codes = own
      return { values, ownOf: undefined, parentOf: allZero }
    }
    const paired = pairs(codes, own, values.length, size)
    codes = paired.codes
    return { values, ...paired }
  })
  return { levels, codes }
}

function pairs(left: NonNullable<Combined['codes']>, right: NonNullable<Coded['codes']>, width: number, size: number) {
  const [codes, parentOf, ownOf] = [new Uint16Array(size), new Uint16Array(size), new Uint16Array(size)]
  let count = 0
  for (let row = 0; row < size; row++) {
    const [parent, value] = [left[row] as number, right[row] as number]
    const pair = parent * width + value
    let code = codesOfPairs[pair] as number
    if (code === 0) {
      parentOf[count] = parent
      ownOf[count] = value
      count += 1
      code = count
      codesOfPairs[pair] = code
    }
    codes[row] = code - 1
  }
  for (let code = 0; code < count; code++)
    codesOfPairs[(parentOf[code] as number) * width + (ownOf[code] as number)] = 0
  return { codes, parentOf, ownOf }
}

/** By code, for one chunk; zero between two uses. */
const counts = new Uint16Array(MOST_ROWS)
const worsts = new Uint8Array(MOST_ROWS)
const met = new Uint16Array(MOST_ROWS)

function countCodes(
  codes: Combined['codes'],
  rows: Uint16Array,
  count: number,
  health: Uint8Array | undefined,
  all: GroupTree,
): void {
  let distinct = 0
  for (let i = 0; i < count; i++) {
    const row = rows[i] as number
    const code = codes ? (codes[row] as number) : 0
    if (counts[code] === 0) {
      met[distinct++] = code
      worsts[code] = UNSAID
    }
    counts[code] = (counts[code] as number) + 1
    if (health !== undefined && (health[row] as number) < (worsts[code] as number)) worsts[code] = health[row] as number
  }
  for (let i = 0; i < distinct; i++) {
    const code = met[i] as number
    const [own, worst] = [counts[code] as number, worsts[code] as number]
    counts[code] = 0
    all.add(code, own, worst)
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
      const ofWords = values.codes ? Array.from(values.words, said) : undefined
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

/** Groups that have the first values in common. */
interface Branch {
  readonly values: readonly ScalarValue[]
  readonly next: Map<ScalarValue, Branch | Leaf>
}

/** Groups by value of the first column, then of the second, and so on. */
class GroupTree {
  readonly leaves: Leaf[] = []
  readonly #root: Branch = { values: [], next: new Map() }
  readonly #by: readonly string[]
  #levels: readonly Level[] = []
  /** by level and combination, what was looked up for this chunk */
  #branches: (Branch | undefined)[][] = []

  constructor(by: readonly string[]) {
    this.#by = by
  }

  /** From now on combinations are those of another chunk. */
  begin(levels: readonly Level[]): void {
    this.#levels = levels
    this.#branches = levels.map(() => [])
  }

  add(code: number, count: number, worst: number): void {
    const last = this.#levels.length - 1
    const branch = this.#parent(last, code)
    const value = this.#valueAt(last, code)
    const leaf = branch.next.get(value) as Leaf | undefined // at the last column there are leaves
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
    const made = { values: [...branch.values, value], count, worst }
    branch.next.set(value, made)
    this.leaves.push(made)
  }

  /** What the combination of a level is a part of. */
  #parent(level: number, code: number): Branch {
    if (level === 0) return this.#root
    const own = this.#levels[level]?.parentOf
    return this.#branch(level - 1, own ? (own[code] as number) : code)
  }

  #branch(level: number, code: number): Branch {
    const known = (this.#branches[level] as (Branch | undefined)[])[code]
    if (known) return known
    const parent = this.#parent(level, code)
    const value = this.#valueAt(level, code)
    let branch = parent.next.get(value) as Branch | undefined // before the last column there are branches
    if (!branch) {
      branch = { values: [...parent.values, value], next: new Map() }
      parent.next.set(value, branch)
    }
    ;(this.#branches[level] as (Branch | undefined)[])[code] = branch
    return branch
  }

  #valueAt(level: number, code: number): ScalarValue {
    const { values, ownOf } = this.#levels[level] as Level
    return values[ownOf ? (ownOf[code] as number) : code] as ScalarValue
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
