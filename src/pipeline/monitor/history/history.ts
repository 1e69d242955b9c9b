import type { ClusterState } from '#model'
import { type Steps, sortedSteps } from '#runtime'
import { eachNode, NODE_USAGE, type NodeDocument, POD_USAGE, podDocuments } from '../documents.ts'
import { Sums } from '../sums.ts'
import { LONGEST_SPAN_MS, Series, type Values } from './series.ts'

/** What entities there are histories of. */
export type Entity = 'cluster' | 'node' | 'pod'

export interface HistoryOptions {
  /** of all series together; beyond it entities that were not seen for a while go, and others keep less */
  readonly maxBytes: number
  /** whether pods of a namespace are recorded */
  readonly wants: (namespace: string) => boolean
}

/** Points that came since they were asked for, for a file. */
export interface NewPoints {
  readonly cluster: string
  readonly entity: Entity
  /** node, `namespace/pod`, or '' of the cluster itself */
  readonly name: string
  /** time and three values each */
  readonly numbers: readonly number[]
}

/** Not seen for that long, it is the first to go, ms. */
const UNSEEN_MS = 600_000
/** Beside its numbers a series is about so large, bytes. */
const SERIES_BYTES = 1200

const ENTITIES: readonly Entity[] = ['cluster', 'node', 'pod']

interface ClusterSeries extends Readonly<Record<Entity, Map<string, Series>>> {
  /** when usage was read that was recorded last */
  readonly recorded: Map<string, number>
}

/** Usage of nodes and pods over thirty days, in memory and bounded; `HistoryFiles` keeps it over a restart. */
export class UsageHistory {
  readonly #options: HistoryOptions
  readonly #clusters = new Map<string, ClusterSeries>()
  #bytes = 0
  /** when there was no room last, of the points that came */
  #fullAt: number | undefined
  #unsaved: NewPoints[] = []
  /** entities that were dropped, and those that got no room, since the start */
  readonly counts = { dropped: 0, refused: 0 }

  constructor(options: HistoryOptions) {
    this.#options = options
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Adds what was measured since the last call, at the time it was measured. Nodes without metrics have no point. */
  *record(cluster: ClusterState): Steps<void> {
    const known = this.#of(cluster.name)
    const nodesAt = this.#newly(cluster, known, NODE_USAGE)
    if (nodesAt !== undefined) {
      const nodes: NodeDocument[] = []
      for (const node of eachNode(cluster, cluster.parts.node?.items.values() ?? [])) {
        yield
        if (!node) continue
        nodes.push(node)
        const { name, cpu_percent, memory_percent, disk_percent, metrics_available } = node
        if (metrics_available === undefined)
          this.#add(cluster.name, 'node', name, nodesAt, [cpu_percent, memory_percent, disk_percent])
      }
      const sums = new Sums()
      sums.addUsage(nodes)
      const { cpu_percent, memory_percent, disk_percent } = sums.summary()
      if (cpu_percent !== null && memory_percent !== null)
        this.#add(cluster.name, 'cluster', '', nodesAt, [cpu_percent, memory_percent, disk_percent ?? 0])
    }
    const podsAt = this.#newly(cluster, known, POD_USAGE)
    if (podsAt === undefined) return
    for (const { namespace, name, cpu_usage, memory_usage, disk_usage } of podDocuments(cluster, this.#options.wants)) {
      this.#add(cluster.name, 'pod', `${namespace}/${name}`, podsAt, [cpu_usage, memory_usage, disk_usage])
      yield
    }
  }

  /**
   * Those of a kind, by name in order; undefined is a step on the way there, after which others may have their turn.
   * @param wants whether one of that name is asked for
   */
  *each(
    cluster: string,
    entity: Entity,
    wants: (name: string) => boolean,
  ): Generator<readonly [name: string, series: Series] | undefined> {
    const wanted: (readonly [name: string, series: Series])[] = []
    for (const one of [...(this.#clusters.get(cluster)?.[entity] ?? [])]) {
      if (wants(one[0])) wanted.push(one)
      yield
    }
    yield* yield* sortedSteps(wanted, ([a], [b]) => (a < b ? -1 : 1))
  }

  find(cluster: string, entity: Entity, name: string): Series | undefined {
    return this.#clusters.get(cluster)?.[entity].get(name)
  }

  /** Drops clusters that are gone, and what nobody saw for thirty days. */
  prune(clusters: ReadonlySet<string>, now: number): void {
    for (const [name, kinds] of this.#clusters) {
      const isGone = !clusters.has(name)
      for (const all of ENTITIES.map((entity) => kinds[entity]))
        for (const [entity, series] of all)
          if (isGone || now - series.lastAt > LONGEST_SPAN_MS) this.#drop(all, entity, series)
      if (isGone) this.#clusters.delete(name)
    }
  }

  /** What came since the last call. */
  takeUnsaved(): readonly NewPoints[] {
    const taken = this.#unsaved
    this.#unsaved = []
    return taken
  }

  *dump(): Generator<{
    readonly cluster: string
    readonly entity: Entity
    readonly name: string
    readonly tiers: number[][]
  }> {
    for (const [cluster, kinds] of this.#clusters)
      for (const entity of ENTITIES)
        for (const [name, series] of kinds[entity]) yield { cluster, entity, name, tiers: series.dump() }
  }

  restore(cluster: string, entity: Entity, name: string, tiers: readonly (readonly number[])[]): void {
    this.#put(cluster, entity, name, Series.restore(tiers, this.#mayGrow))
  }

  /** Points of a file, oldest first; those that are known already are passed over. */
  replay({ cluster, entity, name, numbers }: NewPoints): void {
    for (let at = 0; at + 3 < numbers.length; at += 4) {
      const [time = 0, cpu = 0, mem = 0, disk = 0] = numbers.slice(at, at + 4)
      if (time > (this.find(cluster, entity, name)?.lastAt ?? Number.NEGATIVE_INFINITY))
        this.#add(cluster, entity, name, time, [cpu, mem, disk], false)
    }
  }

  #newly(cluster: ClusterState, { recorded }: ClusterSeries, source: string): number | undefined {
    const at = cluster.tables.get(source)?.freshness?.observedAt
    if (at === undefined || at === recorded.get(source)) return undefined
    const isFirst = !recorded.has(source)
    recorded.set(source, at)
    // After a restart the newest state is the one that was recorded before.
    return isFirst && this.#has(cluster.name, source, at) ? undefined : at
  }

  #has(cluster: string, source: string, at: number): boolean {
    const all = this.#clusters.get(cluster)?.[source === NODE_USAGE ? 'node' : 'pod'] ?? new Map<string, Series>()
    return [...all.values()].some(({ lastAt }) => lastAt >= at)
  }

  #add(cluster: string, entity: Entity, name: string, time: number, values: Values, isNew = true): void {
    const series = this.find(cluster, entity, name) ?? this.#made(cluster, entity, name, time)
    if (!series) return
    series.add(time, values, this.#mayGrow)
    if (isNew) this.#unsaved.push({ cluster, entity, name, numbers: [time, ...values] })
  }

  #made(cluster: string, entity: Entity, name: string, time: number): Series | undefined {
    // Where there was no room a moment ago there is none for the next one of that time: looking for it costs as much as there is.
    if (this.#bytes >= this.#options.maxBytes && time !== this.#fullAt) this.#makeRoom(time)
    if (this.#bytes >= this.#options.maxBytes) {
      this.#fullAt = time
      this.counts.refused++
      return undefined
    }
    const series = new Series()
    this.#put(cluster, entity, name, series)
    return series
  }

  #put(cluster: string, entity: Entity, name: string, series: Series): void {
    this.#of(cluster)[entity].set(name, series)
    this.#bytes += SERIES_BYTES
  }

  readonly #mayGrow = (bytes: number): boolean => {
    if (this.#bytes + bytes > this.#options.maxBytes) return false
    this.#bytes += bytes
    return true
  }

  /** A tenth of the room at least, of those that were seen longest ago. */
  #makeRoom(now: number): void {
    const unseen = [...this.#clusters.values()]
      .flatMap(({ node, pod }) =>
        [node, pod].flatMap((all) => [...all].map(([name, series]) => ({ all, name, series }))),
      )
      .filter(({ series }) => now - series.lastAt > UNSEEN_MS)
      .sort((a, b) => a.series.lastAt - b.series.lastAt)
    for (const { all, name, series } of unseen) {
      if (this.#bytes < this.#options.maxBytes * 0.9) return
      this.#drop(all, name, series)
      this.counts.dropped++
    }
  }

  #drop(all: Map<string, Series>, name: string, series: Series): void {
    all.delete(name)
    this.#bytes -= series.bytes + SERIES_BYTES
  }

  #of(cluster: string): ClusterSeries {
    const known = this.#clusters.get(cluster)
    if (known) return known
    const made: ClusterSeries = { cluster: new Map(), node: new Map(), pod: new Map(), recorded: new Map() }
    this.#clusters.set(cluster, made)
    return made
  }
}
