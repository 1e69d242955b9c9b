import type { RowKind } from '#metricsource'
import type { ScalarValue } from '#model'
import { RefusedError } from './problem.ts'

/** Groups of one answer, of which the largest are named: more would take more memory than an answer is worth. */
export const MAX_ROW_GROUPS = 200_000

/** Distinct combinations of the values of the first columns: each is one of those before it, with one value more. */
export interface Level {
  readonly values: readonly ScalarValue[]
  /** by combination, its value; undefined: its own number */
  readonly ownOf: Uint16Array | undefined
  /** by combination, the one before; undefined: that of its own number */
  readonly parentOf: Uint16Array | undefined
}

/** Groups that have the first values in common; at the last column, their numbers. */
interface Branch {
  readonly values: readonly ScalarValue[]
  readonly next: Map<ScalarValue, Branch | number>
}

let last = 0

/** Numbers groups by their values, so that what was counted of a chunk stays counted: by number, whatever else there is. */
export class GroupNumbers {
  /** of these numbers, among all that there were */
  readonly id = ++last
  /** by number */
  readonly values: (readonly ScalarValue[])[] = []
  readonly #root: Branch = { values: [], next: new Map() }
  #levels: readonly Level[] = []
  /** by level and combination, what was looked up for this chunk */
  #branches: (Branch | undefined)[][] = []

  get size(): number {
    return this.values.length
  }

  /** From now on combinations are those of another chunk. */
  begin(levels: readonly Level[]): void {
    this.#levels = levels
    this.#branches = levels.map(() => [])
  }

  /** The number of a combination. */
  of(code: number): number {
    const last = this.#levels.length - 1
    const branch = this.#parent(last, code)
    const value = this.#valueAt(last, code)
    const known = branch.next.get(value) as number | undefined // at the last column there are numbers
    if (known !== undefined) return known
    const made = this.values.length
    branch.next.set(value, made)
    this.values.push([...branch.values, value])
    return made
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

/** By kind and columns; asked for last, last. */
const known = new Map<string, GroupNumbers>()
/** Groups that are numbered, whoever asked for them: some 100 bytes each. */
const MAX_NUMBERED = 2 * MAX_ROW_GROUPS

/** The numbers of groups by these columns, as long as somebody asks for them and they are not too many. */
export function groupNumbers({ id, hash }: RowKind, by: readonly string[]): GroupNumbers {
  const key = JSON.stringify([id, hash, by])
  const own = known.get(key) ?? new GroupNumbers()
  known.delete(key)
  known.set(key, own)
  let left = MAX_NUMBERED
  for (const [other, { size }] of [...known].reverse()) {
    left -= size
    if (left < 0) known.delete(other)
  }
  if (!known.has(key)) known.set(key, new GroupNumbers())
  return known.get(key) ?? own
}

export const tooManyGroups = (by: readonly string[]): RefusedError =>
  new RefusedError(
    'invalid_parameter',
    `by=${by.join('&by=')} makes more than ${MAX_ROW_GROUPS} groups: group by columns of fewer values, or ask for fewer rows with where, namespace or cluster`,
  )
