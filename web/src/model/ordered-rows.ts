/** Rows in order, each known by its key: those of an array, or what stands for more than are kept at hand. */
export interface OrderedRows<T> extends Pick<ReadonlyMap<string, T>, 'size' | 'get' | 'has' | 'keys' | 'values'> {
  /** lists that share it have the same keys in the same order; those that do not may have, too */
  readonly order: object
  /** the same of keys in whatever order */
  readonly members: object
  /** @param from 0 or more */
  slice(from: number, to: number): readonly T[]
}

/** Rows of an array. */
export function orderedRows<T>(rows: readonly T[], rowKey: (row: T) => string): OrderedRows<T> {
  let made: ReadonlyMap<string, T> | undefined
  const byKey = () => {
    made ??= new Map(rows.map((row) => [rowKey(row), row]))
    return made
  }
  return {
    order: rows,
    members: rows,
    size: rows.length,
    get: (key) => byKey().get(key),
    has: (key) => byKey().has(key),
    *keys(): MapIterator<string> {
      for (const row of rows) yield rowKey(row)
    },
    values: () => rows.values(),
    slice: (from, to) => rows.slice(from, to),
  }
}

type All<T> = Pick<ReadonlyMap<string, T>, 'get' | 'has'>

/** What is known of rows that are not in a list, which may be a part of all. */
export interface Beyond<T> {
  /** as it is now, where that is known; undefined: it is not, or there is none */
  readonly get: (key: string) => T | undefined
  readonly isGone: (key: string) => boolean
}

/** Beyond a list of all rows there are none. */
export const nothingBeyond: Beyond<never> = { get: () => undefined, isGone: () => true }
/** Beyond a part of all rows any may be. */
export const anythingBeyond: Beyond<never> = { get: () => undefined, isGone: () => false }

export interface Hold<T> {
  readonly rows: OrderedRows<T>
  /** keys of rows that are shown only because the order is held: there are no such rows any more */
  readonly gone: ReadonlySet<string>
  /** keys of rows that are shown only because the order is held, and may stand beyond the list: whether it is known that they do */
  readonly elsewhere: ReadonlyMap<string, boolean>
  /** rows would stand elsewhere if the order were not held */
  readonly moved: boolean
}

const none: ReadonlySet<string> = new Set()
const nowhere: ReadonlyMap<string, boolean> = new Map()

export const inOrder = <T>(rows: OrderedRows<T>): Hold<T> => ({ rows, gone: none, elsewhere: nowhere, moved: false })

/**
 * The order while somebody reads or points at the list: what was there keeps its place, even what has gone; what is new comes after it.
 * @param shown what was there
 * @param all those of the list and others that it leaves out
 */
export function hold<T>(
  shown: OrderedRows<T>,
  arranged: OrderedRows<T>,
  all: All<T>,
  beyond: Beyond<T> = nothingBeyond,
): Hold<T> {
  if (begins(arranged, shown)) return inOrder(arranged)
  const rows = HeldRows.after(shown, arranged, all, beyond)
  const { gone, kept } = rows
  const others = [...kept.keys()].filter((key) => !gone.has(key))
  const elsewhere = new Map(others.map((key) => [key, beyond.get(key) !== undefined]))
  return { rows, gone, elsewhere, moved: true }
}

/**
 * Keys of rows that are shown only because the order is held, and of those that were told to stand elsewhere and are still shown where
 * they stood; nearest to these places first.
 */
export function keptNear<T>(
  { rows, gone, elsewhere }: Hold<T>,
  beyond: Beyond<T>,
  from: number,
  to: number,
): readonly string[] {
  const away: { readonly key: string; readonly by: number }[] = []
  let at = 0
  for (const key of rows.keys()) {
    const isKept = gone.has(key) || elsewhere.has(key) || beyond.get(key) !== undefined
    if (isKept) away.push({ key, by: Math.max(from - at, at - to, 0) })
    at += 1
  }
  return away.sort((one, other) => one.by - other.by).map(({ key }) => key)
}

/** A list begins with another one: that is told by their keys alone. */
function begins(list: OrderedRows<unknown>, other: OrderedRows<unknown>): boolean {
  if (list.order === other.order) return true
  if (list.size < other.size) return false
  const keys = list.keys()
  for (const key of other.keys()) if (keys.next().value !== key) return false
  return true
}

type Kept<T> = Pick<HeldRows<T>, 'kept' | 'gone'>

/** Keys in an order that is held. Rows are looked up as they are shown: there may be a hundred thousand. */
class HeldRows<T> implements OrderedRows<T> {
  readonly order: readonly string[]
  readonly members: object
  /** those that are not in the list, as they are, or were */
  readonly kept: ReadonlyMap<string, T>
  /** of these the ones that are nowhere by now */
  readonly gone: ReadonlySet<string>
  readonly #arranged: OrderedRows<T>
  readonly #all: All<T>
  #known: ReadonlySet<string> | undefined

  private constructor(order: readonly string[], { kept, gone }: Kept<T>, arranged: OrderedRows<T>, all: All<T>) {
    this.order = order
    this.members = order
    this.kept = kept
    this.gone = gone
    this.#arranged = arranged
    this.#all = all
  }

  static after<T>(shown: OrderedRows<T>, arranged: OrderedRows<T>, all: All<T>, beyond: Beyond<T>): HeldRows<T> {
    const before = shown instanceof HeldRows ? (shown as HeldRows<T>) : null
    const kept = new Map<string, T>()
    const gone = new Set<string>()
    const keep = (key: string): void => {
      const now = beyond.get(key)
      const row = now ?? shown.get(key)
      if (row === undefined) return
      kept.set(key, row)
      // Who is told no longer what became of it knows it still.
      if (now === undefined && (beyond.isGone(key) || before?.gone.has(key))) gone.add(key)
    }
    // They only changed places: none came, and none left.
    if (before && before.#arranged.members === arranged.members && before.#isOfAll && all === arranged) {
      for (const key of before.kept.keys()) keep(key)
      return before.#with(before.order, { kept, gone }, arranged, all)
    }
    const added: string[] = []
    for (const key of arranged.keys()) if (!shown.has(key)) added.push(key)
    const order = before && added.length === 0 ? before.order : [...shown.keys(), ...added]
    // No more than are arranged: it is those.
    for (const key of order.length > arranged.size ? order : []) if (!all.has(key)) keep(key)
    return before
      ? before.#with(order, { kept, gone }, arranged, all)
      : new HeldRows(order, { kept, gone }, arranged, all)
  }

  #with(order: readonly string[], kept: Kept<T>, arranged: OrderedRows<T>, all: All<T>): HeldRows<T> {
    const made = new HeldRows(order, kept, arranged, all)
    if (order === this.order) made.#known = this.#known
    return made
  }

  /** nothing is left out */
  get #isOfAll(): boolean {
    return this.#all === this.#arranged
  }

  get size(): number {
    return this.order.length
  }

  get(key: string): T | undefined {
    return this.has(key) ? this.#now(key) : undefined
  }

  has(key: string): boolean {
    this.#known ??= new Set(this.order)
    return this.#known.has(key)
  }

  keys(): MapIterator<string> {
    return this.order.values()
  }

  *values(): MapIterator<T> {
    for (const key of this.order) {
      const row = this.#now(key)
      if (row !== undefined) yield row
    }
  }

  slice(from: number, to: number): readonly T[] {
    return this.order.slice(from, to).flatMap((key) => this.#now(key) ?? [])
  }

  #now(key: string): T | undefined {
    return this.#all.get(key) ?? this.kept.get(key)
  }
}
