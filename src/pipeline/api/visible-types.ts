import type { AccessView, ObjectsOfEvents, RowsAccessView, StandardResource } from '#access'
import type { SourceCatalog } from '#catalog'
import { type CompiledSource, hasZero, type RowKind, type SumsOfNothing, withoutSumsOfNothing } from '#metricsource'
import { type Aggregated, type ClusterState, joined, type RowsState, Table } from '#model'
import { isFleetKind, isSnapshotKind, kindNamed, kinds, resources } from '#resources'
import { isKept } from './chunk-memo.ts'
import type { FleetRows } from './fleet-rows.ts'
import { allRows, type RowSet } from './row-set.ts'
import { SeenChunks, type SeenRows } from './seen-rows.ts'
import { seenRows, snapshotsOn } from './snapshot-rows.ts'
import { nobody, readIntervalMs, staleAfterMs, type Views } from './views.ts'

/**
 * What MetricSources collected, as far as one access view shows it. Whoever may see the whole of a cluster may still see none of its
 * types, so nothing here hangs on the views that those share: every question is asked with the access view of who asks.
 */
export type Aggregations = Readonly<Record<string, Aggregated>>

interface Kept extends SeenRows {
  readonly sums: WeakMap<RowKind, Aggregations>
}

/** At most this many access views are remembered per set of rows; the oldest makes room. */
const maxAccessViews = 64

export class VisibleTypes {
  readonly #catalog: SourceCatalog | undefined
  readonly #kept = new WeakMap<Table, Map<string, Kept>>()
  readonly #chunks = new SeenChunks()

  readonly #views: Views
  readonly #fleetRows: readonly FleetRows[]

  constructor(catalog: SourceCatalog | undefined, views: Views, fleetRows: readonly FleetRows[]) {
    this.#catalog = catalog
    this.#views = views
    this.#fleetRows = fleetRows
  }

  /** Equal versions mean equal declarations. */
  version(): number {
    return this.#catalog?.version() ?? 0
  }

  /** Of what belongs to the fleet: equal versions mean equal rows, until `fleetTurnsAt`. */
  fleetVersion(): string {
    return this.#fleetRows.map((one) => one.version()).join()
  }

  fleetTurnsAt(now: number): number {
    return Math.min(...this.#fleetRows.map((one) => one.turnsAt(now)))
  }

  /** Why nobody knows what is declared; undefined: it is known, or was. */
  unknown(): string | undefined {
    return this.sources().length === 0 ? this.#catalog?.unavailable()?.reason : undefined
  }

  /** All declarations in force, sorted by id. */
  sources(): readonly CompiledSource[] {
    return this.#catalog?.sources() ?? []
  }

  /** What a type name means among the declarations, sorted by id. */
  declaredAs(name: string): readonly CompiledSource[] {
    return this.#catalog?.allOfType(name) ?? []
  }

  /** The declaration that each declared type name means, sorted by name. */
  declared(): readonly CompiledSource[] {
    const names = new Set(this.sources().map(({ typeName }) => typeName))
    return [...names].sort().flatMap((name) => this.declaredAs(name).slice(0, 1))
  }

  /** Every kind of row there is: what is compiled in, then what is declared. */
  kinds(): readonly RowKind[] {
    return [...this.#compiledIn(), ...this.sources()]
  }

  /** Of kinds that belong to the fleet, those this hub has rows of. */
  #compiledIn(): readonly RowKind[] {
    return kinds.filter((kind) => !isFleetKind(kind) || this.#fleetRows.some((one) => one.kind === kind))
  }

  /** What a kind is called: one that is compiled in has another name where a MetricSource took its own. */
  nameOf({ access, typeName }: RowKind): string {
    return access !== 'declared' && this.#isTaken(typeName) ? `core/${typeName}` : typeName
  }

  /** Each type once, by name, with its declarations: of several the first counts. */
  types(): ReadonlyMap<string, readonly [RowKind, ...RowKind[]]> {
    const names = new Set(this.kinds().map((kind) => this.nameOf(kind)))
    const types = new Map<string, readonly [RowKind, ...RowKind[]]>()
    for (const name of [...names].sort()) {
      const [first, ...others] = this.ofType(name)
      if (first) types.set(name, [first, ...others])
    }
    return types
  }

  /** The declarations of a type name, sorted by id; what is compiled in answers to `core/<name>` as well. */
  ofType(name: string): readonly RowKind[] {
    const declared = this.declaredAs(name)
    if (declared.length > 0) return declared
    const compiledIn = kindNamed(name)
    return compiledIn && this.#compiledIn().includes(compiledIn) ? [compiledIn] : []
  }

  /**
   * What a word means, in any case: the name of a type, else the singular or a short name of what is compiled in. A type that is
   * denied on all of the clusters takes neither of these: whether it is declared is not told.
   */
  meant(word: string, accessView: AccessView, clusters: readonly ClusterState[]): readonly RowKind[] {
    const asked = word.toLowerCase()
    const named = [word, asked].map((name) => this.ofType(name)).find(({ length }) => length > 0) ?? []
    const isSeen = (kind: RowKind) => this.#isSeen(accessView, clusters, kind)
    if (named.length > 0 && (accessView.administrator || named.some(isSeen))) return named
    const others = this.#compiledIn().filter((kind) => kind.typeName !== asked && namesOf(kind).includes(asked))
    return others.length > 0 ? others : named
  }

  /**
   * Where a kind is seen: on these clusters, or, where it belongs to the fleet, at one place that is no cluster.
   */
  over(accessView: AccessView, clusters: readonly ClusterState[], kind: RowKind): readonly VisibleType[] {
    const own = this.#fleetRows.find((one) => one.kind === kind)
    if (!own) return clusters.flatMap((cluster) => this.on(accessView, cluster, kind) ?? [])
    const state = own.rows(accessView)
    return [
      new VisibleType({ cluster: nobody(''), source: kind, name: this.nameOf(kind), custom: seenRows(true), state }),
    ]
  }

  /** Whether a kind is seen anywhere. */
  #isSeen(accessView: AccessView, clusters: readonly ClusterState[], kind: RowKind): boolean {
    if (this.#fleetRows.some((one) => one.kind === kind)) return true
    return clusters.some((cluster) => this.on(accessView, cluster, kind) !== undefined)
  }

  /** @returns undefined where the type is denied on this cluster, or stands on none: there it does not exist */
  on(accessView: AccessView, cluster: ClusterState, source: RowKind): VisibleType | undefined {
    if (isFleetKind(source)) return undefined
    const name = this.nameOf(source)
    const measured =
      source.measured && accessView.usage(cluster) ? cluster.tables.get(source.measured.source) : undefined
    if (isSnapshotKind(source)) {
      const visible = this.#views.of(accessView, cluster)
      return visible && new VisibleType({ cluster, source, name, measured, ...snapshotsOn(visible, source) })
    }
    const resource = this.standard(source)
    const custom = resource ? accessView.resource(cluster, resource) : accessView.custom(cluster, source.typeName)
    if (custom.result === 'deny') return undefined
    const left = (rows: Table, isStep: boolean) =>
      isStep && !isKept(rows)
        ? newKept(this.#chunks.ofStep(rows, custom, source))
        : this.#left(rows, accessView, custom, cluster, source)
    return new VisibleType({ cluster, source, name, custom, measured, state: cluster.tables.get(source.id), left })
  }

  /** As access looks at a kind with collections of its own that is compiled in; undefined: it is none. */
  standard({ access, typeName, columns }: RowKind): StandardResource | undefined {
    if (access === 'declared' || access === 'snapshot' || access === 'registry') return undefined
    const toldBy = columns.flatMap(({ tells }) => (typeof tells === 'object' ? (tells.source ?? []) : []))
    const resource = { name: typeName, rule: access, isTaken: this.#isTaken(typeName), toldBy: [...new Set(toldBy)] }
    return access === 'events' ? { ...resource, about: this.#objects() } : resource
  }

  /** Kinds of rows that events are about: a kind of objects that two have is the first one's. */
  #objects(): readonly ObjectsOfEvents[] {
    return resources.flatMap(({ id, typeName, access, targets }) =>
      access === 'pods' || access === 'namespaced'
        ? {
            ...{ name: typeName, rule: access, isTaken: this.#isTaken(typeName) },
            ...{ rows: id, kinds: targets.map(({ kind }) => kind) },
          }
        : [],
    )
  }

  /** Where nobody knows what is declared, every name may be taken: that shows less. */
  #isTaken(typeName: string): boolean {
    if (!this.#catalog) return false
    return this.#catalog.unavailable() !== undefined || this.#catalog.allOfType(typeName).length > 0
  }

  #left(rows: Table, accessView: AccessView, custom: RowsAccessView, { name }: ClusterState, source: RowKind): Kept {
    const byAccessView = this.#kept.get(rows) ?? new Map<string, Kept>()
    this.#kept.set(rows, byAccessView)
    const key = JSON.stringify([accessView.fingerprint, name, source.typeName, this.#isTaken(source.typeName)])
    const asked = this.#chunks.questionOf(key, custom, source)
    const known = byAccessView.get(asked)
    if (known) return known
    const made = newKept(this.#chunks.of(asked, rows, custom, source))
    const oldest = byAccessView.keys().next()
    if (byAccessView.size >= maxAccessViews && !oldest.done) byAccessView.delete(oldest.value)
    byAccessView.set(asked, made)
    return made
  }
}

const newKept = (seen: SeenRows): Kept => Object.assign(seen, { sums: new WeakMap<RowKind, Aggregations>() })

/** What people type for a kind: plural, singular, short names. */
export const namesOf = ({ typeName, singular, shortNames = [] }: RowKind): string[] => [
  typeName,
  ...(singular === undefined ? [] : [singular]),
  ...shortNames,
]

interface VisibleTypeParts {
  readonly cluster: ClusterState
  readonly source: RowKind
  readonly name: string
  readonly custom: RowsAccessView
  readonly state: RowsState | undefined
  /** what columns of measurements are taken from, with an age of its own; undefined: not read, or not for the caller */
  readonly measured?: RowsState | undefined
  /** what policies leave of the rows, or of the few of a step; absent: that is what `state` holds */
  readonly left?: (rows: Table, isStep: boolean) => Kept
  /** how many rows that is, without making them */
  readonly count?: number
  /** some of those that `state` holds; absent: all of them */
  readonly rows?: Table
}

/** Over all rows of a state, or a part of them that is left; as long as these live. */
const sumsKnown = new WeakMap<RowsState | Kept, WeakMap<RowKind, SumsOfNothing>>()

const measuredKnown = new WeakMap<Table, WeakMap<object, Aggregations>>()

/** @param places rising; undefined: all rows. Of what was measured nowhere the sum is not known. */
function measuredSums({ measured }: RowKind, rows: Table, places?: readonly number[]): Aggregations {
  const sums = (measured?.sums ?? []).map((field) => {
    const value = rows.column(field)
    const count = places?.length ?? rows.size
    let sum = count === 0 ? 0 : null
    for (let i = 0; i < count; i++) {
      const one = value?.(places ? (places[i] as number) : i) // below its length
      if (typeof one === 'number') sum = (sum ?? 0) + one
    }
    return [field, sum] as const
  })
  return Object.fromEntries(sums)
}

/** One type on one cluster, for one accessView. */
export class VisibleType {
  readonly cluster: ClusterState
  readonly source: RowKind
  /** what the type is called here */
  readonly name: string
  readonly custom: RowsAccessView
  /** undefined: nothing was collected so far */
  readonly state: RowsState | undefined
  /** what columns of measurements are taken from; undefined: not read, or not for the caller */
  readonly measured: RowsState | undefined
  #joined: Table | undefined
  readonly #left: VisibleTypeParts['left']
  readonly #count: number | undefined
  readonly #some: Table | undefined
  #part: Kept | undefined

  constructor({ cluster, source, name, custom, state, left, count, measured, rows }: VisibleTypeParts) {
    this.cluster = cluster
    this.source = source
    this.name = name
    this.custom = custom
    this.state = state
    this.measured = measured
    this.#left = custom.whole ? undefined : left
    this.#count = count
    this.#some = rows
  }

  /** The same with these few rows alone, of all that were collected: what is seen of a row hangs on no other. */
  only(rows: Table): VisibleType {
    const { cluster, source, name, custom, state, measured } = this
    const left = this.#left && { left: this.#left }
    return new VisibleType({ cluster, source, name, custom, state, measured, rows, ...left })
  }

  /** All rows, also those that are hidden: only for looking up what stands at visible places. */
  get rows(): Table {
    this.#joined ??= this.#withMeasured(this.#seen?.rows ?? this.#all)
    return this.#joined
  }

  #withMeasured(rows: Table): Table {
    const { measured } = this.source
    return measured ? joined(rows, this.measured?.rows ?? Table.empty, measured.fields) : rows
  }

  get #all(): Table {
    return this.#some ?? this.state?.rows ?? Table.empty
  }

  /** The same without a look at values: namespaces and names alone are for use, chunk by chunk as `rows` has them. */
  get named(): Table {
    return this.#all
  }

  /** Where the rows are that may be seen; undefined: all of them. */
  get places(): readonly number[] | undefined {
    return this.#seen?.places
  }

  /** Which rows of a chunk may be seen, by its number. */
  seenIn(chunk: number): RowSet {
    return this.#seen?.seenIn(chunk) ?? allRows
  }

  /** Equal ones of equal rows: the same of them may be seen. */
  get seenBy(): string {
    return this.#seen?.question ?? ''
  }

  /** As of the first question: whoever asks holds this for one answer. */
  get #seen(): Kept | undefined {
    this.#part ??= this.#left?.(this.#all, this.#some !== undefined)
    return this.#part
  }

  /** Rows that may be seen. */
  get count(): number {
    return this.#count ?? this.#seen?.count ?? this.#all.size
  }

  /** Where this row is, if it may be seen; -1 where it may not, or is not. */
  placeOf(namespace: string, name: string): number {
    const place = this.#all.indexOf(namespace, name)
    if (place < 0 || !this.#left) return place
    const row = this.#all.row(place)
    return this.custom.shows({ ...row, name: this.source.rowName(row.name) }) ? place : -1
  }

  /**
   * As stored and documented, a sum of nothing is 0. Over what may be seen, unless the declaration says that everybody gets the whole numbers. Which of the two depends on
   * policies and declaration alone: a hidden row must not show by how a number was made.
   * @returns null where measurements may not be seen
   */
  get aggregations(): Aggregations | null {
    return this.#shown(
      () => this.#summed() ?? this.state?.aggregations ?? {},
      () => this.#measuredSums(),
    )
  }

  /** As people are told: null for a sum of nothing that was read. */
  get knownAggregations(): Aggregations | null {
    const { aggregations, state } = this
    const { aggregations: infos } = this.source
    if (!aggregations || !state || !infos.some((one) => one.function === 'sum' && hasZero(aggregations[one.name])))
      return aggregations
    const part = this.source.filterAggregations ? this.#seen : undefined
    const known = sumsKnown.get(part ?? state) ?? new WeakMap<RowKind, SumsOfNothing>()
    sumsKnown.set(part ?? state, known)
    const nothing = known.get(this.source) ?? this.source.sumsOfNothing(part ? part.rows.only(part.places) : this.#all)
    known.set(this.source, nothing)
    return withoutSumsOfNothing(aggregations, nothing)
  }

  /** The same as stored, over these of the rows that may be seen. */
  aggregationsOver(places: readonly number[]): Aggregations | null {
    const rising = places.toSorted((left, right) => left - right)
    return this.#shown(
      () => this.source.aggregate(this.rows.only(rising)),
      () => measuredSums(this.source, this.rows, rising),
    )
  }

  #shown(made: () => Aggregations, measured: () => Aggregations): Aggregations | null {
    if (!this.custom.metrics) return null
    const collected = this.source.filterAggregations ? made() : (this.state?.aggregations ?? {})
    const all = this.source.measured && this.state ? { ...collected, ...measured() } : collected
    // A peer may say more than was declared.
    const declared = new Set(this.source.aggregations.map(({ name }) => name))
    return Object.fromEntries(
      Object.entries(all).filter(([name]) => declared.has(name) && this.custom.aggregation(name)),
    )
  }

  /** Over all rows that may be seen, kept as long as these rows and their measurements. */
  #measuredSums(): Aggregations {
    const { rows } = this
    const known = measuredKnown.get(rows) ?? new WeakMap<object, Aggregations>()
    measuredKnown.set(rows, known)
    const part = this.#seen ?? rows
    const sums = known.get(part) ?? measuredSums(this.source, rows, this.places)
    known.set(part, sums)
    return sums
  }

  #summed(): Aggregations | undefined {
    if (!this.state || !this.#seen) return undefined
    const { rows, places, sums } = this.#seen
    const known = sums.get(this.source)
    if (known) return known
    const made = this.source.aggregate(rows.only(places))
    sums.set(this.source, made)
    return made
  }

  get staleAt(): number {
    return rowsStaleAt(this.source, this.cluster)
  }

  /** time between two collections here */
  get intervalMs(): number {
    return paceOf(this.source, this.cluster).intervalMs
  }
}

/** Time between two collections on a cluster, and the age at which what is known is of the past, ms. */
function paceOf(source: RowKind, cluster: ClusterState) {
  const own = source.collection.intervalMs
  if (source.access === 'declared') return { intervalMs: own, staleAfterMs: 3 * own }
  // What is compiled in is read with the rounds, if not with every one.
  const intervalMs = Math.max(readIntervalMs(cluster, isSnapshotKind(source) ? source.type : undefined), own)
  return { intervalMs, staleAfterMs: Math.max(staleAfterMs(cluster), 3 * intervalMs) }
}

/** From when on what is known of a kind is of the past: three intervals were missed. Infinity where nothing is known. */
export function rowsStaleAt(kind: RowKind, cluster: ClusterState): number {
  const known = isSnapshotKind(kind) ? cluster.parts[kind.type] : cluster.tables.get(kind.id)
  if (!known?.freshness) return Number.POSITIVE_INFINITY
  return known.freshness.observedAt + paceOf(kind, cluster).staleAfterMs
}
