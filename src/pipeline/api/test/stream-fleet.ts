import { EventEmitter, setMaxListeners } from 'node:events'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type AccessView, MemoryPolicies, openAccess, type PolicyDocument, type Principal } from '#access'
import { InProcessEventBus } from '#events'
import { applyRows, type HeldRows, noRows, type RowsMessage } from '#http'
import type { ChangeStep, Clock, ClusterState, RowsState, TableRow } from '#model'
import { Metrics, silentLogger } from '#runtime'
import type { StateReader } from '#state'
import { ClusterSets } from '../cluster-sets.ts'
import { StoreFacts } from '../store-facts.ts'
import { StreamHub, type StreamQuery } from '../stream.ts'
import { StreamSockets } from '../stream-socket.ts'
import { nobody, Views } from '../views.ts'
import { VisibleTypes } from '../visible-types.ts'
import { aRow, aSource, GivenCatalog, seenBy } from './sources.ts'
import { connection, start } from './world.ts'

// Streams of several processes of one hub without sockets and without waiting: thousands of stories in a few seconds.

export const source = aSource('pvcx')
const catalog = new GivenCatalog(source)

/** Time that passes when a test says so. */
export class ManualClock implements Clock {
  #at = start
  #sleeps: { readonly due: number; readonly wake: () => void }[] = []

  now = (): number => this.#at

  sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
    new Promise((wake) => {
      if (signal?.aborted) return wake()
      if (signal) setMaxListeners(0, signal)
      signal?.addEventListener('abort', () => wake(), { once: true })
      this.#sleeps.push({ due: this.#at + ms, wake })
    })

  async pass(ms: number): Promise<void> {
    const end = this.#at + ms
    for (;;) {
      await new Promise(setImmediate)
      const due = this.#sleeps.filter((one) => one.due <= end).sort((a, b) => a.due - b.due)
      const [first] = due
      if (!first) break
      this.#at = Math.max(this.#at, first.due)
      const now = this.#sleeps.filter((one) => one.due <= this.#at)
      this.#sleeps = this.#sleeps.filter((one) => one.due > this.#at)
      for (const { wake } of now) wake()
    }
    this.#at = end
  }
}

/** Rows of a cluster: by `namespace/name`. */
export type PlainRows = ReadonlyMap<string, number>

export interface PlainCluster {
  readonly env: string
  readonly rows: PlainRows
}

export type PlainFleet = ReadonlyMap<string, PlainCluster>

const rowOf = ([id, size]: readonly [string, number]): TableRow => {
  const [namespace = '', name = ''] = id.split('/')
  return aRow(namespace, name, { size, phase: size > 5 ? 'Bound' : 'Pending' })
}

const stateOf = (name: string, { env, rows }: PlainCluster, before: ClusterState | undefined, version: number) => {
  const old = before?.tables.get(source.id)
  const seen: RowsState = seenBy(source, [...rows].map(rowOf))
  const table = old ? seen.rows.basedOn(old.rows) : seen.rows
  const labels = before?.connection?.labels.env === env ? before.connection.labels : { env }
  const state: ClusterState = {
    ...nobody(name),
    connection: connection({ labels }),
    version,
    tables: new Map([[source.id, { ...seen, rows: table }]]),
  }
  return state
}

interface Step {
  readonly id: string
  readonly cluster: string
  readonly fleet: PlainFleet
}

/** One fleet, told to several processes in one order, to each in its own time. */
export class ToldFleet {
  fleet: PlainFleet = new Map()
  readonly steps: Step[] = []

  move(cluster: string, after: PlainCluster | undefined): void {
    const fleet = new Map(this.fleet)
    if (after) fleet.set(cluster, after)
    else fleet.delete(cluster)
    this.fleet = fleet
    this.steps.push({ id: `step-${this.steps.length}`, cluster, fleet })
  }
}

/** One process: its state, its bus, its streams. */
export class Replica implements AsyncDisposable {
  readonly hub: StreamHub
  readonly policies = new MemoryPolicies()
  readonly #told: ToldFleet
  readonly #states = new Map<string, ClusterState>()
  readonly #bus = new InProcessEventBus()
  readonly #access
  #taken = 0

  constructor(told: ToldFleet, clock: ManualClock) {
    this.#told = told
    const state: StateReader = {
      availability: () => ({ state: 'available' }),
      version: () => this.#taken,
      clusters: () => [...this.#states.values()].sort((a, b) => (a.name < b.name ? -1 : 1)),
      cluster: (name) => this.#states.get(name),
      alerts: () => [],
    }
    const views = new Views()
    const administrators = { users: ['admin'], groups: [] }
    this.#access = openAccess({ source: this.policies, semantics: 'strict', administrators, clock })
    this.hub = new StreamHub({
      state,
      store: new StoreFacts({ state, clock }),
      events: this.#bus,
      access: this.#access,
      views,
      types: new VisibleTypes(catalog, views, []),
      sets: new ClusterSets(undefined),
      sockets: new StreamSockets({ isOwn: () => true, allows: () => true, credentials: true }),
      clock,
      logger: silentLogger,
      metrics: new Metrics({}, { processMetrics: false }),
      config: {
        host: '',
        port: 0,
        identity: {},
        streamKey: 'the same for all processes of the hub',
        streamOpens: { perSecond: 1e6, burst: 1e6 },
      },
    })
  }

  async start(policy: PolicyDocument): Promise<void> {
    await this.policies.resync([{ document: policy, status: {} }])
    this.hub.start()
  }

  get fleet(): PlainFleet {
    return this.#told.steps[this.#taken - 1]?.fleet ?? new Map()
  }

  /** Takes some of the steps that are there, at once. */
  take(most = Number.POSITIVE_INFINITY): void {
    const steps = this.#told.steps.slice(this.#taken, this.#taken + most)
    if (steps.length === 0) return
    for (const { cluster, fleet } of steps) {
      this.#taken += 1
      const after = fleet.get(cluster)
      if (after) this.#states.set(cluster, stateOf(cluster, after, this.#states.get(cluster), this.#taken))
      else this.#states.delete(cluster)
    }
    this.#bus.take(
      steps.map(({ id, cluster }): ChangeStep => {
        const of = { cluster: cluster as ClusterState['name'], at: 0 }
        return {
          id,
          changes: [
            { kind: 'custom', ...of, source: source.id, rows: true, op: 'put' },
            { kind: 'cluster', ...of, op: this.#states.has(cluster) ? 'put' : 'remove' },
          ],
        }
      }),
    )
  }

  viewOf(principal: Principal): Promise<AccessView> {
    return this.#access.viewOf(principal)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.hub[Symbol.asyncDispose]()
    await this.#bus[Symbol.asyncDispose]()
  }
}

/** A response that takes what is written, or nothing for a while. */
class Response extends EventEmitter {
  readonly texts: string[] = []
  isStuck = false
  #waiting: string[] = []

  get writableLength(): number {
    return this.#waiting.reduce((sum, text) => sum + text.length, 0)
  }

  write(bytes: Buffer): boolean {
    if (this.isStuck) this.#waiting.push(bytes.toString())
    else this.texts.push(bytes.toString())
    return !this.isStuck
  }

  read(): void {
    this.isStuck = false
    this.texts.push(...this.#waiting.splice(0))
    this.emit('drain')
  }

  end(bytes: Buffer): void {
    this.write(bytes)
    this.destroy()
  }

  destroy(): void {
    this.emit('close')
  }

  writeHead(): void {
    // Nobody looks at the head.
  }

  flushHeaders(): void {
    // There is none.
  }
}

export const principalOf = (username: string): Principal => ({
  username,
  groups: [],
  email: '',
  isServiceAccount: false,
  method: 'oidc',
})

/** Somebody who reads a stream, and goes on with another process as if nothing had been. */
export class Reader {
  readonly name: string
  readonly query: StreamQuery
  readonly held: HeldRows[]
  /** everything that reached them */
  text = ''
  response = new Response()
  #taken = 0
  #lastEventId: string | undefined

  constructor(name: string, rows: readonly string[]) {
    this.name = name
    this.query = { clusters: false, rows }
    this.held = rows.map(() => noRows())
  }

  async open(replica: Replica): Promise<void> {
    this.take()
    this.response.destroy()
    this.response = new Response()
    this.#taken = 0
    const principal = principalOf(this.name)
    const accessView = await replica.viewOf(principal)
    const socket = { setTimeout: () => undefined, setNoDelay: () => undefined }
    const request = { headers: {}, principal, accessView, session: null, actor: null, ip: '', raw: { socket } }
    const reply = { hijack: () => undefined, raw: this.response, getHeaders: () => ({}) }
    const query = { ...this.query, ...(this.#lastEventId && { lastEventId: this.#lastEventId }) }
    // As much of both as a stream looks at.
    await replica.hub.open(request as unknown as FastifyRequest, reply as unknown as FastifyReply, query)
  }

  /** Takes what arrived. */
  take(): void {
    const texts = this.response.texts.slice(this.#taken).join('')
    this.#taken = this.response.texts.length
    this.text += texts
    for (const block of texts.split('\n\n')) {
      const [, id] = /^id: (.*)$/m.exec(block) ?? []
      const [, kind] = /^event: (.*)$/m.exec(block) ?? []
      const [, data] = /^data: (.*)$/m.exec(block) ?? []
      if (id) this.#lastEventId = id
      if (!data || !['rows', 'rowsChange', 'rowsEnd'].includes(kind ?? '')) continue
      const message = { kind, ...(JSON.parse(data) as object) } as RowsMessage
      applyRows(this.held[message.query] as HeldRows, message)
    }
  }
}
