import type { SourceCatalog } from '#catalog'
import { InProcessEventBus } from '#events'
import {
  type ClusterName,
  type ClusterState,
  type CustomError,
  type CustomState,
  type FieldReport,
  parseClusterName,
  type SourceId,
  Table,
} from '#model'
import { OtherProcessGoneError } from '#processes'
import type { Availability } from '#state'
import type { SourceRemover } from '../reconciler.ts'

/** What a cluster told of a source, with what matters to a test. */
export interface Told {
  readonly rows?: number
  readonly hash?: string
  readonly outcome?: CustomState['outcome']
  readonly code?: string
  readonly message?: string
  readonly errors?: readonly CustomError[]
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
  async tell(name: string, id: SourceId, told: Told, catalog?: SourceCatalog): Promise<void> {
    const hash = told.hash ?? catalog?.source(id)?.hash ?? ''
    this.#set(name, id, aCustomState(id, { ...told, hash }))
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
    return this.#now().flatMap(({ name, custom }) => (custom.has(id) ? [name] : []))
  }

  #set(name: string, id: SourceId, state: CustomState | undefined): void {
    const cluster = this.#clusters.get(name)
    if (!cluster) throw new Error(`no cluster ${name}`)
    const custom = new Map(cluster.custom)
    if (state) custom.set(id, state)
    else custom.delete(id)
    this.#clusters.set(name, { ...cluster, custom, version: cluster.version + 1 })
  }
}

export function aCluster(name: string, custom: ReadonlyMap<SourceId, CustomState> = new Map()): ClusterState {
  return {
    name: parseClusterName(name),
    connection: null,
    status: { health: 'healthy', message: '', reasons: [], checkedAt: null, lastSyncAt: null },
    sequence: 1,
    origin: '',
    source: 'pull',
    agent: null,
    parts: {},
    custom,
    heartbeats: [],
    events: [],
    version: 1,
  }
}

export function aCustomState(source: SourceId, told: Told): CustomState {
  const { rows = 0, hash = '', outcome = 'complete', code = '', message = '', errors = [], at = Date.now() } = told
  const { truncated = false, reports = [], durationMs = 100 } = told
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
