import { type Chunk, compareKeys, type Keys, type Labels } from './chunk.ts'
import type { Column } from './column.ts'
import type { JsonValue } from './json.ts'
import { columnAt, labelsAt, ReadChunk, valueAt } from './read-chunk.ts'
import type { Table } from './table.ts'

/** What two tables made, as long as both live. */
const known = new WeakMap<Table, WeakMap<Table, Table>>()

/**
 * The rows of a table with columns of another, by namespace and name: null where that has no such row. Of a field that both have, the
 * other's value counts where there is one. A column is made when it is first looked at, and those of the table itself stay the very
 * same; so rows that are joined with something that moves all the time cost only who asks for it.
 * @param fields of the other
 */
export function joined(rows: Table, other: Table, fields: readonly string[]): Table {
  const before = known.get(rows)?.get(other)
  if (before) return before
  const all = fieldsOf(rows.fields, fields)
  const reading = all.map((field) =>
    fields.includes(field) ? joining(rows.fields.indexOf(field), other, field) : undefined,
  )
  const made = rows.mapChunks((chunk) => joinedChunk(chunk, other, reading), all)
  const ofRows = known.get(rows) ?? new WeakMap<Table, Table>()
  known.set(rows, ofRows.set(other, made))
  return made
}

/** Lists of fields stay the very same while rows change. */
const knownFields = new WeakMap<readonly string[], WeakMap<readonly string[], readonly string[]>>()

function fieldsOf(own: readonly string[], others: readonly string[]): readonly string[] {
  const ofOwn = knownFields.get(own) ?? new WeakMap<readonly string[], readonly string[]>()
  const all = ofOwn.get(others) ?? [...own, ...others.filter((field) => !own.includes(field))]
  knownFields.set(own, ofOwn.set(others, all))
  return all
}

const noValue = (): null => null
// A function of its own: chunks keep what is made here for longer than the table of which they were first a part, and must not keep that.
const joining = (own: number, other: Table, field: string): Joining => ({ own, values: other.column(field) ?? noValue })

/** What a chunk made with another table: rows that did not move stay the very same chunk while others of their table do. */
const knownChunks = new WeakMap<Chunk, WeakMap<Table, JoinedChunk>>()

function joinedChunk(chunk: Chunk, other: Table, reading: readonly (Joining | undefined)[]): JoinedChunk {
  const ofChunk = knownChunks.get(chunk) ?? new WeakMap<Table, JoinedChunk>()
  const made = ofChunk.get(other) ?? new JoinedChunk(chunk, other, reading)
  knownChunks.set(chunk, ofChunk.set(other, made))
  return made
}

interface Joining {
  /** the column of the same name; -1: there is none */
  readonly own: number
  readonly values: (place: number) => JsonValue
}

class JoinedChunk extends ReadChunk {
  readonly #base: Chunk
  readonly #other: Table
  /** by field; shared by all chunks of a table */
  readonly #joining: readonly (Joining | undefined)[]
  #places: Int32Array | undefined

  constructor(base: Chunk, other: Table, joining: readonly (Joining | undefined)[]) {
    super(base.keys, joining.length)
    this.#base = base
    this.#other = other
    this.#joining = joining
  }

  protected override readLabels(row: number): Labels {
    return labelsAt(this.#base, row)
  }

  protected override readValue(at: number, row: number): JsonValue {
    const joining = this.#joining[at]
    if (!joining) return valueAt(this.#base, at, row)
    this.#places ??= placesIn(this.#base.keys, this.#other)
    const place = this.#places[row] as number
    const value = place < 0 ? null : joining.values(place)
    return value ?? (joining.own < 0 ? null : valueAt(this.#base, joining.own, row))
  }

  override get labels(): Column<Labels> {
    return this.#base.labels
  }

  override columnAt(at: number): Column {
    return this.#joining[at] ? super.columnAt(at) : columnAt(this.#base, at)
  }

  override valueAt(at: number, row: number): JsonValue {
    return this.#joining[at] ? super.valueAt(at, row) : valueAt(this.#base, at, row)
  }

  override labelsAt(row: number): Labels {
    return labelsAt(this.#base, row)
  }
}

/** Where each row of these keys is in a table; -1 where it is not. Both lie in the same order. */
function placesIn(keys: Keys, table: Table): Int32Array {
  const places = new Int32Array(keys.names.length).fill(-1)
  let at = table.firstNotBefore(keys.namespaces.at(0), keys.names.at(0) as string)
  for (let row = 0; row < places.length && at < table.size; row++) {
    const [namespace, name] = [keys.namespaces.at(row), keys.names.at(row) as string]
    let order = -1
    while (at < table.size) {
      order = compareKeys(table.namespaceAt(at), table.nameAt(at), namespace, name)
      if (order >= 0) break
      at++
    }
    if (order === 0) places[row] = at++
  }
  return places
}
