import type { CustomItem, CustomSight, Sight } from '#access'
import type { SourceCatalog } from '#catalog'
import type { CompiledSource } from '#metricsource'
import { type Aggregated, type ClusterState, CustomRows, type CustomState, type CustomValue } from '#model'

/**
 * What MetricSources collected, as far as one sight shows it. Whoever may see the whole of a cluster may still see none of its
 * types, so nothing here hangs on the views that those share: every question is asked with the sight of who asks.
 */
export type Aggregations = Readonly<Record<string, Aggregated>>

/** Which rows policies leave, and what is summed over them; as long as the rows live. */
interface Kept {
  readonly labels: unknown
  readonly places: readonly number[]
  readonly sums: WeakMap<CompiledSource, Aggregations>
}

/** At most this many sights are remembered per set of rows; the oldest makes room. */
const maxSights = 64

export class VisibleTypes {
  readonly #catalog: SourceCatalog | undefined
  readonly #kept = new WeakMap<CustomRows, Map<string, Kept>>()

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

  /** Each type once, by name, with its declarations: of several the first counts. */
  types(): ReadonlyMap<string, readonly [CompiledSource, ...CompiledSource[]]> {
    const names = new Set(this.sources().map(({ typeName }) => typeName))
    const types = new Map<string, readonly [CompiledSource, ...CompiledSource[]]>()
    for (const name of [...names].sort()) {
      const [first, ...others] = this.ofType(name)
      if (first) types.set(name, [first, ...others])
    }
    return types
  }

  /** The declarations of a type name, sorted by id. */
  ofType(name: string): readonly CompiledSource[] {
    return this.#catalog?.allOfType(name) ?? []
  }

  /** @returns undefined where the type is denied on this cluster: there it does not exist */
  on(sight: Sight, cluster: ClusterState, source: CompiledSource): VisibleType | undefined {
    const custom = sight.custom(cluster, source.typeName)
    if (custom.result === 'deny') return undefined
    return new VisibleType(cluster, source, custom, (rows) => this.#left(rows, sight, custom, cluster, source))
  }

  #left(
    rows: CustomRows,
    sight: Sight,
    custom: CustomSight,
    { name, connection }: ClusterState,
    { typeName }: CompiledSource,
  ): Kept {
    const bySight = this.#kept.get(rows) ?? new Map<string, Kept>()
    this.#kept.set(rows, bySight)
    const key = JSON.stringify([sight.fingerprint, name, typeName])
    const known = bySight.get(key)
    // Policies may select by labels of the cluster, which are no part of its rows.
    if (known && known.labels === connection?.labels) return known
    const made: Kept = { labels: connection?.labels, places: placesOf(rows, custom), sums: new WeakMap() }
    const oldest = bySight.keys().next()
    if (bySight.size >= maxSights && !oldest.done) bySight.delete(oldest.value)
    bySight.set(key, made)
    return made
  }
}

/** Looks at the columns: one item serves all rows, because a sight keeps nothing of it. */
function placesOf(rows: CustomRows, custom: CustomSight): readonly number[] {
  const { namespaces, names, labels, fields, values: columns } = rows.columns
  const values: Record<string, CustomValue> = Object.create(null) // a field may be called __proto__
  const item: { -readonly [K in keyof CustomItem]: CustomItem[K] } = { name: '', values }
  const places: number[] = []
  for (let place = 0; place < rows.size; place++) {
    item.name = names[place] ?? ''
    item.namespace = namespaces[place] ?? ''
    item.labels = labels[place] ?? {}
    for (let at = 0; at < fields.length; at++) values[fields[at] as string] = columns[at]?.[place] ?? null
    if (custom.shows(item)) places.push(place)
  }
  return places
}

/** One type on one cluster, for one sight. */
export class VisibleType {
  readonly cluster: ClusterState
  readonly source: CompiledSource
  readonly custom: CustomSight
  /** undefined: nothing was collected so far */
  readonly state: CustomState | undefined
  readonly #left: (rows: CustomRows) => Kept

  constructor(
    cluster: ClusterState,
    source: CompiledSource,
    custom: CustomSight,
    left: (rows: CustomRows) => { places: readonly number[]; sums: WeakMap<CompiledSource, Aggregations> } & Kept,
  ) {
    this.cluster = cluster
    this.source = source
    this.custom = custom
    this.state = cluster.custom.get(source.id)
    this.#left = left
  }

  /** All rows, also those that are hidden: only for looking up what stands at visible places. */
  get rows(): CustomRows {
    return this.state?.rows ?? CustomRows.empty
  }

  /** Where the rows are that may be seen; undefined: all of them. */
  get places(): readonly number[] | undefined {
    return this.custom.whole ? undefined : this.#left(this.rows).places
  }

  /** Rows that may be seen. */
  get count(): number {
    return this.places?.length ?? this.rows.size
  }

  /** Where this row is, if it may be seen; -1 where it may not, or is not. */
  placeOf(namespace: string, name: string): number {
    const place = this.rows.indexOf(namespace, name)
    return place >= 0 && (this.custom.whole || this.custom.shows(itemAt(this.rows, place))) ? place : -1
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
    return Object.fromEntries(Object.entries(all).filter(([name]) => this.custom.aggregation(name)))
  }

  #summed(): Aggregations {
    if (!this.state) return {}
    const { places, sums } = this.#left(this.rows)
    const known = sums.get(this.source)
    if (known) return known
    const made = this.source.aggregate(this.rows.only(places))
    sums.set(this.source, made)
    return made
  }

  /** From when on what is known is of the past: three intervals were missed. Infinity where nothing is known. */
  get staleAt(): number {
    const { freshness } = this.state ?? { freshness: null }
    return freshness ? freshness.observedAt + 3 * this.source.collection.intervalMs : Number.POSITIVE_INFINITY
  }
}

const itemAt = (rows: CustomRows, place: number): CustomItem => rows.row(place)
