import type { CustomItem, CustomSight, Sight, StandardResource } from '#access'
import type { SourceCatalog } from '#catalog'
import type { CompiledSource, ResourceDescriptor } from '#metricsource'
import { type Aggregated, type ClusterState, type CustomState, type JsonValue, Table } from '#model'
import { resourceNamed, resources } from '#resources'

/**
 * What MetricSources collected, as far as one sight shows it. Whoever may see the whole of a cluster may still see none of its
 * types, so nothing here hangs on the views that those share: every question is asked with the sight of who asks.
 */
export type Aggregations = Readonly<Record<string, Aggregated>>

/** Which rows policies leave, and what is summed over them; as long as the rows live. */
interface Kept {
  readonly basis: readonly unknown[]
  readonly places: readonly number[]
  /** all rows, without the names that may not be seen */
  readonly rows: Table
  readonly sums: WeakMap<ResourceDescriptor, Aggregations>
}

/** At most this many sights are remembered per set of rows; the oldest makes room. */
const maxSights = 64

export class VisibleTypes {
  readonly #catalog: SourceCatalog | undefined
  readonly #kept = new WeakMap<Table, Map<string, Kept>>()

  constructor(catalog: SourceCatalog | undefined) {
    this.#catalog = catalog
  }

  /** Equal versions mean equal declarations. */
  version(): number {
    return this.#catalog?.version() ?? 0
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
  kinds(): readonly ResourceDescriptor[] {
    return [...resources, ...this.sources()]
  }

  /** What a kind is called: one that is compiled in has another name where a MetricSource took its own. */
  nameOf({ access, typeName }: ResourceDescriptor): string {
    return access !== 'declared' && this.#isTaken(typeName) ? `core/${typeName}` : typeName
  }

  /** Each type once, by name, with its declarations: of several the first counts. */
  types(): ReadonlyMap<string, readonly [ResourceDescriptor, ...ResourceDescriptor[]]> {
    const names = new Set(this.kinds().map((kind) => this.nameOf(kind)))
    const types = new Map<string, readonly [ResourceDescriptor, ...ResourceDescriptor[]]>()
    for (const name of [...names].sort()) {
      const [first, ...others] = this.ofType(name)
      if (first) types.set(name, [first, ...others])
    }
    return types
  }

  /** The declarations of a type name, sorted by id; what is compiled in answers to `core/<name>` as well. */
  ofType(name: string): readonly ResourceDescriptor[] {
    const declared = this.declaredAs(name)
    if (declared.length > 0) return declared
    const compiledIn = resourceNamed(name)
    return compiledIn ? [compiledIn] : []
  }

  /** @returns undefined where the type is denied on this cluster: there it does not exist */
  on(sight: Sight, cluster: ClusterState, source: ResourceDescriptor): VisibleType | undefined {
    const resource = this.standard(source)
    const custom = resource ? sight.resource(cluster, resource) : sight.custom(cluster, source.typeName)
    if (custom.result === 'deny') return undefined
    return new VisibleType(cluster, source, this.nameOf(source), custom, (rows) =>
      this.#left(rows, sight, custom, cluster, source),
    )
  }

  /** As access looks at a kind that is compiled in; undefined: a MetricSource declares it. */
  standard({ access, typeName }: ResourceDescriptor): StandardResource | undefined {
    return access === 'declared' ? undefined : { name: typeName, rule: access, isTaken: this.#isTaken(typeName) }
  }

  /** Where nobody knows what is declared, every name may be taken: that shows less. */
  #isTaken(typeName: string): boolean {
    if (!this.#catalog) return false
    return this.#catalog.unavailable() !== undefined || this.#catalog.allOfType(typeName).length > 0
  }

  #left(rows: Table, sight: Sight, custom: CustomSight, { name }: ClusterState, source: ResourceDescriptor): Kept {
    const bySight = this.#kept.get(rows) ?? new Map<string, Kept>()
    this.#kept.set(rows, bySight)
    const key = JSON.stringify([sight.fingerprint, name, source.typeName])
    const known = bySight.get(key)
    if (known?.basis.every((one, at) => one === custom.basis[at])) return known
    const made: Kept = { basis: custom.basis, ...visiblePart(rows, custom, source), sums: new WeakMap() }
    const oldest = bySight.keys().next()
    if (bySight.size >= maxSights && !oldest.done) bySight.delete(oldest.value)
    bySight.set(key, made)
    return made
  }
}

/** Looks at the columns: one item serves all rows, because a sight keeps nothing of it. */
function visiblePart(rows: Table, custom: CustomSight, source: ResourceDescriptor): Pick<Kept, 'places' | 'rows'> {
  const { fields } = rows
  const columns = fields.map((field) => rows.column(field))
  const values: Record<string, JsonValue> = Object.create(null) // a field may be called __proto__
  const item: { -readonly [K in keyof CustomItem]: CustomItem[K] } = { name: '', values }
  const places: number[] = []
  for (let place = 0; place < rows.size; place++) {
    item.name = source.rowName(rows.nameAt(place))
    item.namespace = rows.namespaceAt(place)
    item.labels = rows.labelsAt(place)
    for (let at = 0; at < fields.length; at++) values[fields[at] as string] = columns[at]?.(place) ?? null
    if (custom.shows(item)) places.push(place)
  }
  return { places, rows: withoutHiddenNames(rows, custom, source) }
}

/** A row that may be seen does not name a node that may not. */
function withoutHiddenNames(rows: Table, { showsNode }: CustomSight, { columns }: ResourceDescriptor): Table {
  const naming = columns.filter(({ refersTo }) => refersTo === 'node')
  if (!showsNode) return rows
  const seen = (value: JsonValue): JsonValue => (typeof value === 'string' && showsNode(value) ? value : null)
  return naming.reduce((table, { name }) => table.map(name, seen), rows)
}

/** One type on one cluster, for one sight. */
export class VisibleType {
  readonly cluster: ClusterState
  readonly source: ResourceDescriptor
  /** what the type is called here */
  readonly name: string
  readonly custom: CustomSight
  /** undefined: nothing was collected so far */
  readonly state: CustomState | undefined
  readonly #left: (rows: Table) => Kept
  #part: Kept | undefined

  constructor(
    cluster: ClusterState,
    source: ResourceDescriptor,
    name: string,
    custom: CustomSight,
    left: (rows: Table) => Kept,
  ) {
    this.cluster = cluster
    this.source = source
    this.name = name
    this.custom = custom
    this.state = cluster.custom.get(source.id)
    this.#left = left
  }

  /** All rows, also those that are hidden: only for looking up what stands at visible places. */
  get rows(): Table {
    return this.custom.whole ? this.#all : this.#seen.rows
  }

  get #all(): Table {
    return this.state?.rows ?? Table.empty
  }

  /** Where the rows are that may be seen; undefined: all of them. */
  get places(): readonly number[] | undefined {
    return this.custom.whole ? undefined : this.#seen.places
  }

  /** As of the first question: whoever asks holds this for one answer. */
  get #seen(): Kept {
    this.#part ??= this.#left(this.#all)
    return this.#part
  }

  /** Rows that may be seen. */
  get count(): number {
    return this.places?.length ?? this.#all.size
  }

  /** Where this row is, if it may be seen; -1 where it may not, or is not. */
  placeOf(namespace: string, name: string): number {
    const place = this.#all.indexOf(namespace, name)
    if (place < 0 || this.custom.whole) return place
    const row = this.#all.row(place)
    return this.custom.shows({ ...row, name: this.source.rowName(row.name) }) ? place : -1
  }

  /**
   * Over what may be seen, unless the declaration says that everybody gets the whole numbers. Which of the two depends on
   * policies and declaration alone: a hidden row must not show by how a number was made.
   * @returns null where measurements may not be seen
   */
  get aggregations(): Aggregations | null {
    return this.#shown(() => (this.custom.whole ? (this.state?.aggregations ?? {}) : this.#summed()))
  }

  /** The same, over these of the rows that may be seen. */
  aggregationsOver(places: readonly number[]): Aggregations | null {
    return this.#shown(() => this.source.aggregate(this.rows.only(places.toSorted((left, right) => left - right))))
  }

  #shown(made: () => Aggregations): Aggregations | null {
    if (!this.custom.metrics) return null
    const all = this.source.filterAggregations ? made() : (this.state?.aggregations ?? {})
    // A peer may say more than was declared.
    const declared = new Set(this.source.aggregations.map(({ name }) => name))
    return Object.fromEntries(
      Object.entries(all).filter(([name]) => declared.has(name) && this.custom.aggregation(name)),
    )
  }

  #summed(): Aggregations {
    if (!this.state) return {}
    const { rows, places, sums } = this.#seen
    const known = sums.get(this.source)
    if (known) return known
    const made = this.source.aggregate(rows.only(places))
    sums.set(this.source, made)
    return made
  }

  /** From when on what is known is of the past: three intervals were missed. Infinity where nothing is known. */
  get staleAt(): number {
    const { freshness } = this.state ?? { freshness: null }
    return freshness ? freshness.observedAt + 3 * this.source.collection.intervalMs : Number.POSITIVE_INFINITY
  }
}
