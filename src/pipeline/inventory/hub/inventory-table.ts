import { createHash } from 'node:crypto'
import { attributesOf, inventoryFields, inventoryKey, type JsonValue, Table, type TableRow, tableRowId } from '#model'
import type { TargetKey } from '../rows.ts'
import { type Departure, type PackedRow, type RowStore, targetText } from '../store/index.ts'

/** What a batch may hold is bounded: beyond these, rows go without attributes, then not at all. Attributes as JSON. */
export interface TableLimits {
  readonly rows: number
  /** of all rows, UTF-16 units */
  readonly units: number
}

const LIMITS: TableLimits = { rows: 100_000, units: 24 * 2 ** 20 }
/** What a row takes besides its attributes, about. */
const UNITS_OF_ROW = 150

const TOO_LARGE = 'its attributes are too large for the hub; sinks have them'
const OUT_OF_ROOM = 'the inventory of this cluster is too large for the hub: attributes of some rows are in sinks alone'
const NO_LABELS: TableRow['labels'] = Object.freeze({})

/** A target whose rows count. */
export interface CountedTarget {
  readonly key: TargetKey
  /** of its object */
  readonly uid: string
}

/** Rows of all targets as one table for a hub, which shares with the table before what did not change. */
export class InventoryTable {
  readonly #store: RowStore
  readonly #limits: TableLimits
  #rows: Table = Table.empty
  /** tells targets apart, by `targetText` */
  readonly #marks = new Map<string, { readonly uid: string; readonly mark: string }>()
  /** of the store, as of the table; undefined: it does not hold all that is there */
  #sequence: number | undefined
  #isTruncated = false

  constructor(store: RowStore, limits: TableLimits = LIMITS) {
    this.#store = store
    this.#limits = limits
  }

  /** @param targets each once */
  read(targets: readonly CountedTarget[]): { readonly rows: Table; readonly isTruncated: boolean } {
    const { sequence } = this.#store
    this.#mark(targets)
    if (this.#sequence !== sequence) this.#follow(this.#placed(targets))
    return { rows: this.#rows, isTruncated: this.#isTruncated }
  }

  /** Rows of a target that was made again have other ids. What left the store since is told by the marks of before. */
  #mark(targets: readonly CountedTarget[]): void {
    for (const { key, uid } of targets) {
      const target = targetText(key)
      const known = this.#marks.get(target)
      if (known?.uid === uid) continue
      if (known) this.#sequence = undefined
      this.#marks.set(target, { uid, mark: markOf(target, uid) })
    }
    if (this.#marks.size <= 2 * targets.length + SPARE_MARKS) return
    const counted = new Set(targets.map(({ key }) => targetText(key)))
    for (const target of this.#marks.keys()) if (!counted.has(target)) this.#marks.delete(target)
    this.#sequence = undefined
  }

  #placed(targets: readonly CountedTarget[]): readonly Placed[] {
    return targets.flatMap(({ key }) => {
      const state = this.#store.state(key)
      const target = targetText(key)
      const mark = this.#markOf(target)
      return state.kind === 'rows' ? state.rows.map((row) => ({ target, mark, row })) : []
    })
  }

  #markOf(target: string): string {
    return this.#marks.get(target)?.mark ?? ''
  }

  #follow(all: readonly Placed[]): void {
    const { sequence } = this.#store
    let units = all.length * UNITS_OF_ROW
    for (const { row } of all) units += row.attributes.length
    const fits = all.length <= this.#limits.rows && units <= this.#limits.units
    const since = this.#sequence
    const departed = fits && since !== undefined ? this.#store.departedSince(since) : undefined
    const next = departed && since !== undefined ? this.#patched(all, since, departed) : undefined
    // Where the count is another, something was missed: then all are laid out anew.
    this.#rows = next?.size === all.length ? next : this.#anew(all).basedOn(this.#rows)
    this.#isTruncated = all.length > this.#limits.rows
    this.#sequence = fits ? sequence : undefined
  }

  #patched(all: readonly Placed[], since: number, departed: readonly Departure[]): Table {
    const put = all.filter(({ row }) => row.sequence > since).map((one) => rowOf(one, attributes(one.row)))
    const here = new Set(put.map(({ namespace, name }) => tableRowId(namespace, name)))
    const gone = departed
      .map(({ target, key }) => tableRowId(key.namespace, inventoryKey(key.name, this.#markOf(target), key.uid)))
      .filter((id) => !here.has(id))
    return this.#rows.patch(Table.of(inventoryFields, put), gone)
  }

  #anew(all: readonly Placed[]): Table {
    const some = all.slice(0, this.#limits.rows)
    let left = this.#limits.units - some.length * UNITS_OF_ROW
    const rows = some.map((one) => {
      left -= one.row.attributes.length
      return rowOf(one, left < 0 ? { value: null, note: OUT_OF_ROOM } : attributes(one.row))
    })
    return Table.of(inventoryFields, rows)
  }
}

/** Of targets that are gone. */
const SPARE_MARKS = 1000

/** The uid cannot be guessed: who sees a row need not see its target, and shall not find its name by trying names. */
const markOf = (target: string, uid: string): string =>
  createHash('sha256').update(`${uid} ${target}`).digest('hex').slice(0, 20)

/** A row of a target: that of the cluster has rows that say the namespace of their object. */
interface Placed {
  /** as `targetText` writes it */
  readonly target: string
  readonly mark: string
  readonly row: PackedRow
}

interface Attributes {
  readonly value: JsonValue
  readonly note: string | null
}

function attributes({ attributes: json }: PackedRow): Attributes {
  const value = attributesOf(json)
  return value === undefined ? { value: null, note: TOO_LARGE } : { value, note: null }
}

function rowOf({ target, mark, row }: Placed, { value, note }: Attributes): TableRow {
  const { namespace, name, group, version, kind, uid } = row
  return {
    namespace,
    name: inventoryKey(name, mark, uid),
    labels: NO_LABELS,
    values: {
      kind,
      apiVersion: group === '' ? version : `${group}/${version}`,
      target: target.replace(/^\//, ''),
      attributes: value,
      note,
      uid,
    },
  }
}
