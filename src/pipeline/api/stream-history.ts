import type { EventId, NumberedChange } from '#events'
import { type Clock, type ClusterState, minutes, type RowsState, seconds, type Table } from '#model'
import type { StateReader } from '#state'
import { isAt, type MovedRows, movedRows, type RowsAt } from './moved-rows.ts'

/** Older places cannot be gone on from. */
const maxAgeMs = minutes(5)
/** Who looks at the page is never further behind than this; what is remembered of older states is let go. */
const maxLagMs = seconds(10)
/** Of what past states hold and the present one does not, about. */
const maxBytes = 64 * 2 ** 20
const maxEntries = 200_000
/** Steps that lead to one table, kept until the next. */
const maxMovedEach = 4

// Of what a change replaced, about: the columns that differ of a chunk with the same rows, a chunk of other rows, a part of a state.
const bytesOfColumns = 4 * 1024
const bytesOfOtherRows = 40 * 1024
const bytesOfState = 1024
const bytesOfItem = 64

/** What a cluster was; undefined: it was not there. `unknown`: it moved in the midst of what came here at once. */
export type Past = ClusterState | undefined | 'unknown'

interface Entry {
  readonly cluster: string
  before: Past
  readonly bytes: number
  readonly at: number
}

/**
 * The fleet as the bus has told of it, and what it was before: an entry per step of a cluster, with the state that it had. States share
 * all that did not change, so that keeping them costs what was replaced. Bounded by age, bytes and number; what is out of bounds is
 * forgotten from the oldest on.
 *
 *   place:   0 … first            …             last
 *                 │ before │ before │ before │        ─► current
 */
export class FleetHistory {
  readonly #state: StateReader
  readonly #clock: Clock
  readonly #current = new Map<string, ClusterState>()
  #sorted: readonly ClusterState[] | undefined
  #entries: Entry[] = []
  /** place of the first entry */
  #first = 0
  /** place of the first entry whose state is the very one that people saw */
  #seen = 0
  readonly #copies = new Copies()
  #bytes = 0
  readonly #places = new Map<EventId, number>()
  /** ids in the order of their places, to forget them */
  #ids: { readonly id: EventId; readonly place: number }[] = []
  #lastId: EventId | undefined
  #version = -1
  /** of the last steps; what is older must not be kept alive by it */
  readonly #moved = new Map<Table, { readonly older: RowsAt; readonly newer: RowsAt; readonly moved: MovedRows }[]>()
  #movedAt = 0

  constructor(state: StateReader, clock: Clock) {
    this.#state = state
    this.#clock = clock
  }

  /** Begins anew with what state says, at this id. */
  begin(id: EventId): void {
    const place = this.place + 1
    this.#entries = []
    this.#ids = []
    this.#places.clear()
    this.#bytes = 0
    this.#first = place
    this.#seen = place
    this.#current.clear()
    for (const cluster of this.#state.clusters()) this.#current.set(cluster.name, cluster)
    this.#sorted = undefined
    this.#version = this.#state.version()
    this.#noteId(id)
  }

  /** Counts what has changed here; places of one process compare with each other alone. */
  get place(): number {
    return this.#first + this.#entries.length
  }

  /** The bus's name of this place; undefined: state moved, and the bus has not told of it. */
  get id(): EventId | undefined {
    return this.#lastId !== undefined && this.#places.get(this.#lastId) === this.place ? this.#lastId : undefined
  }

  /** @returns undefined: unknown here, or forgotten */
  placeOf(id: EventId): number | undefined {
    return this.#places.get(id)
  }

  cluster(name: string): ClusterState | undefined {
    return this.#current.get(name)
  }

  /** Sorted by name. */
  clusters(): readonly ClusterState[] {
    this.#sorted ??= [...this.#current.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
    return this.#sorted
  }

  /** Whole steps, of which state is that after the last. */
  note(changes: readonly NumberedChange[]): void {
    const seen = new Map<string, EventId>()
    for (const [at, { id, change }] of changes.entries()) {
      const { cluster } = change
      const step = seen.get(cluster)
      if (step !== id) {
        // What was before the first step is known; between two that came at once it is not.
        const before = step === undefined ? this.#current.get(cluster) : 'unknown'
        if (step === undefined) this.#take(cluster)
        seen.set(cluster, id)
        this.#push(cluster, before)
      }
      if (changes[at + 1]?.id !== id) this.#noteId(id)
    }
    this.#version = this.#state.version()
    this.#forget()
  }

  /** Takes what state says without a word of the bus: from such a place nobody can go on elsewhere. @returns what moved */
  level(): readonly string[] {
    const version = this.#state.version()
    if (version === this.#version) return []
    this.#version = version
    const moved = this.#state.clusters().filter((cluster) => this.#current.get(cluster.name) !== cluster)
    const gone = [...this.#current.keys()].filter((name) => !this.#state.cluster(name))
    const names = [...moved.map(({ name }) => name), ...gone]
    for (const name of names) this.#move(name)
    return names
  }

  /** Something moved that is of no cluster: the bus's name of the place stays. */
  bump(): void {
    const { id } = this
    this.#push('', undefined)
    if (id !== undefined) this.#noteId(id)
  }

  /**
   * The clusters that changed since a place, as they were there.
   * @returns undefined: that is forgotten
   */
  since(place: number): ReadonlyMap<string, Past> | undefined {
    if (place < this.#first || place > this.place) return undefined
    const past = new Map<string, Past>()
    for (let at = place - this.#first; at < this.#entries.length; at++) {
      const { cluster, before } = this.#entries[at] as Entry // below its length
      if (cluster !== '' && !past.has(cluster)) past.set(cluster, before)
    }
    return past
  }

  /** What a step of a table moved: every query and every access view asks for the same, and is given the very same. */
  moved(older: RowsAt, newer: RowsAt): MovedRows {
    if (this.#movedAt !== this.place) this.#moved.clear()
    this.#movedAt = this.place
    const known = this.#moved.get(newer.rows) ?? []
    this.#moved.set(newer.rows, known)
    const same = known.find((one) => isAt(one.older, older) && isAt(one.newer, newer))
    if (same) return same.moved
    const moved = movedRows(older, newer)
    // Who comes back from far asks for steps of their own.
    if (known.length >= maxMovedEach) known.shift()
    known.push({ older, newer, moved })
    return moved
  }

  #move(name: string): void {
    const before = this.#current.get(name)
    this.#take(name)
    this.#push(name, before)
    this.#forget()
  }

  #take(name: string): void {
    const now = this.#state.cluster(name)
    if (now === this.#current.get(name)) return
    if (now) this.#current.set(name, now)
    else this.#current.delete(name)
    this.#sorted = undefined
  }

  #push(cluster: string, before: Past): void {
    const bytes = before === 'unknown' || !before ? 64 : replacedBytes(before, this.#current.get(cluster))
    this.#entries.push({ cluster, before, bytes, at: this.#clock.now() })
    this.#bytes += bytes
  }

  #letGo(): void {
    const oldest = this.#clock.now() - maxLagMs
    for (; this.#seen < this.place; this.#seen++) {
      const entry = this.#entries[this.#seen - this.#first] as Entry // below the last place
      if (entry.at >= oldest) return
      if (entry.before && entry.before !== 'unknown') entry.before = this.#copies.of(entry.before)
    }
  }

  #noteId(id: EventId): void {
    this.#lastId = id
    this.#places.set(id, this.place)
    this.#ids.push({ id, place: this.place })
  }

  #forget(): void {
    this.#letGo()
    const oldest = this.#clock.now() - maxAgeMs
    let count = 0
    while (count < this.#entries.length) {
      const { at, bytes } = this.#entries[count] as Entry
      if (at >= oldest && this.#bytes <= maxBytes && this.#entries.length - count <= maxEntries) break
      this.#bytes -= bytes
      count += 1
    }
    if (count === 0) return
    this.#entries.splice(0, count)
    this.#first += count
    this.#seen = Math.max(this.#seen, this.#first)
    const kept = this.#ids.findIndex(({ place }) => place >= this.#first)
    for (const { id } of this.#ids.splice(0, kept < 0 ? this.#ids.length : kept)) this.#places.delete(id)
  }
}

/**
 * Copies of states that share all their values. Views, texts and sums that were made of a state hang on it and on its tables, for
 * every access view: they go when it goes, and not when the copy does that is kept for those who come back.
 */
class Copies {
  readonly #tables = new WeakMap<ClusterState['tables'], ClusterState['tables']>()
  readonly #rows = new WeakMap<RowsState, RowsState>()

  of(state: ClusterState): ClusterState {
    const tables =
      this.#tables.get(state.tables) ?? new Map([...state.tables].map(([id, rows]) => [id, this.#of(rows)]))
    this.#tables.set(state.tables, tables)
    return { ...state, tables }
  }

  #of(state: RowsState): RowsState {
    const copy = this.#rows.get(state) ?? { ...state, rows: state.rows.copy() }
    this.#rows.set(state, copy)
    return copy
  }
}

/** What the older state holds alone, about. */
function replacedBytes(before: ClusterState, after: ClusterState | undefined): number {
  let bytes = bytesOfState
  if (!after || before === after) return bytes
  for (const [source, { rows }] of before.tables) {
    const now = after.tables.get(source)?.rows
    if (now !== rows) bytes += replacedRows(rows, now)
  }
  for (const [type, part] of Object.entries(before.parts)) {
    const now = after.parts[type as keyof typeof after.parts]
    if (part.items !== now?.items) bytes += part.items.size * bytesOfItem
  }
  return bytes
}

function replacedRows(before: Table, after: Table | undefined): number {
  const isInPlace = after?.keys === before.keys
  const now = new Set(after?.chunks)
  const others = before.chunks.filter((chunk) => !now.has(chunk)).length
  return others * (isInPlace ? bytesOfColumns : bytesOfOtherRows)
}
