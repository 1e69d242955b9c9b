import type { SourceCatalog } from '#catalog'
import { InProcessEventBus } from '#events'
import {
  type ClusterName,
  type ClusterState,
  type FieldReport,
  parseClusterName,
  type RowsError,
  type RowsState,
  type SourceId,
  Table,
} from '#model'
import { OtherProcessGoneError } from '#processes'
import type { Availability } from '#state'
import type { SourceRemover } from '../reconciler.ts'

/** What a cluster told of a source, with what matters to a test. */
export interface ReportedSource {
  readonly rows?: number
  readonly hash?: string
  readonly outcome?: RowsState['outcome']
  readonly code?: string
  readonly message?: string
  readonly errors?: readonly RowsError[]
  readonly truncated?: boolean
  readonly reports?: readonly FieldReport[]
  readonly durationMs?: number
  readonly at?: number
}

/** The state of a few clusters, as the hub would have it, with the events that tell of it. */
export class TestFleet implements SourceRemover {
  readonly events = new InProcessEventBus()
  readonly #clusters = new Map<string, ClusterState>()
  availabilityNow: Availability = { state: 'available' }
  /** until then nothing is removed */
  isBroken = false
  /** clusters whose owner is away, so that nothing is removed of them */
  readonly away = new Set<string>()
  /** how often it was asked to remove something */
  asked = 0
  #seen: readonly ClusterState[] | undefined

  constructor(...names: readonly string[]) {
    for (const name of names) this.#clusters.set(name, aCluster(name))
  }

  availability(): Availability {
    return this.availabilityNow
  }

  clusters(): readonly ClusterState[] {
    return this.#seen ?? this.#now()
  }

  /** From now on what is read is of this moment, as where another process writes it; the former, until it is ended. */
  fallBehind(): () => void {
    this.#seen = this.#now()
    return () => {
      this.#seen = undefined
    }
  }

  #now(): readonly ClusterState[] {
    return [...this.#clusters.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  /** The cluster was read for the source: as `catalog` has it, where no hash is given. */
  async tell(name: string, id: SourceId, reported: ReportedSource, catalog?: SourceCatalog): Promise<void> {
    const hash = reported.hash ?? catalog?.source(id)?.hash ?? ''
    this.#set(name, id, aRowsState(id, { ...reported, hash }))
    const cluster = parseClusterName(name)
    await this.events.publish([{ kind: 'custom', cluster, source: id, rows: true, op: 'put', at: Date.now() }])
  }

  async removeSource(name: ClusterName, id: SourceId): Promise<void> {
    this.asked++
    if (this.isBroken) throw new Error('the log is full')
    if (this.away.has(name)) throw new OtherProcessGoneError()
    this.#set(name, id, undefined)
    await this.events.publish([{ kind: 'custom', cluster: name, source: id, rows: true, op: 'remove', at: Date.now() }])
  }

  /** clusters that know something of the source */
  holders(id: SourceId): readonly string[] {
    return this.#now().flatMap(({ name, tables }) => (tables.has(id) ? [name] : []))
  }

  #set(name: string, id: SourceId, state: RowsState | undefined): void {
    const cluster = this.#clusters.get(name)
    if (!cluster) throw new Error(`no cluster ${name}`)
    const tables = new Map(cluster.tables)
    if (state) tables.set(id, state)
    else tables.delete(id)
    this.#clusters.set(name, { ...cluster, tables, version: cluster.version + 1 })
  }
}

export function aCluster(name: string, tables: ReadonlyMap<SourceId, RowsState> = new Map()): ClusterState {
  return {
    name: parseClusterName(name),
    connection: null,
    status: { health: 'healthy', message: '', reasons: [], checkedAt: null, lastSyncAt: null },
    sequence: 1,
    origin: '',
    source: 'pull',
    agent: null,
    parts: {},
    tables,
    heartbeats: [],
    events: [],
    version: 1,
  }
}

export function aRowsState(source: SourceId, reported: ReportedSource): RowsState {
  const { rows = 0, hash = '', outcome = 'complete', code = '', message = '', errors = [], at = Date.now() } = reported
  const { truncated = false, reports = [], durationMs = 100 } = reported
  const names = Array.from({ length: rows }, (_, i) => `row-${i}`)
  return {
    source,
    hash,
    durationMs,
    outcome,
    code,
    message,
    attemptedAt: at,
    freshness: outcome === 'complete' ? { observedAt: at, receivedAt: at, source: 'pull' } : null,
    rows: Table.of(
      ['phase'],
      names.map((name) => ({ namespace: 'shop', name, labels: {}, values: { phase: 'Bound' } })),
    ),
    aggregations: {},
    truncated,
    errors,
    errorCount: errors.length,
    reports,
  }
}
