import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MemoryPolicies, openAccess, PoliciesUnavailableError, type PolicyDocument, type PolicySource } from '#access'
import { type ApiOptions, apiServer } from '#api'
import { openEvents } from '#events'
import { openHistory } from '#history'
import { type IdentityConfig, openIdentity } from '#identity'
import { Ingester } from '#ingest'
import { type Clock, parseClusterName, type RowsPart, systemClock } from '#model'
import { Metrics, openLog, silentLogger } from '#runtime'
import { type Availability, EmbeddedStateStore, type StateReader } from '#state'
import type { Cluster, Gone, Round } from './clusters.ts'
import { Gateway, type Visitor } from './gateway.ts'

export const administrator: Visitor = { username: 'ada', email: 'ada@example.com', groups: ['operators'] }

export interface PageHubOptions {
  /** folder of the built page */
  readonly root: string
  /** path below which the gateway publishes the hub */
  readonly prefix?: string
  readonly policies?: readonly PolicyDocument[]
  /** ways to sign in besides that of the gateway */
  readonly signIn?: Omit<IdentityConfig, 'proxy'>
  /** how far the clock of the hub is ahead of the machine's */
  readonly clockAheadMs?: number
  /** whether it keeps the past of what comes in; default: history is off */
  readonly history?: boolean
  readonly filling?: ApiOptions['filling']
  readonly catalog?: ApiOptions['catalog']
  readonly trySource?: ApiOptions['trySource']
  readonly members?: ApiOptions['members']
}

/**
 * The read path of a hub in this process, as `up` puts it together: log, entry of batches, state, events, policies, API and page,
 * behind a gateway that a test makes unkind. Clusters come in as rounds, through the one entry for batches.
 */
export class PageHub implements AsyncDisposable {
  readonly gateway: Gateway
  readonly policies: MemoryPolicies
  /** what the store says of itself; undefined: as it is */
  availability: Availability | undefined
  readonly policySource: UnsteadyPolicies
  readonly #ingester: Ingester
  readonly #store: EmbeddedStateStore
  readonly #clock: SetClock
  /** by cluster, when its newest round was collected */
  readonly #newest = new Map<string, number>()
  /** by cluster, what its agent sent last */
  readonly #sent = new Map<string, number>()
  readonly #close: () => Promise<void>

  private constructor(parts: {
    gateway: Gateway
    policies: MemoryPolicies
    policySource: UnsteadyPolicies
    ingester: Ingester
    store: EmbeddedStateStore
    clock: SetClock
    close: () => Promise<void>
  }) {
    this.gateway = parts.gateway
    this.policies = parts.policies
    this.policySource = parts.policySource
    this.#ingester = parts.ingester
    this.#store = parts.store
    this.#clock = parts.clock
    this.#close = parts.close
  }

  static async open({ root, prefix, policies: given = [], signIn, clockAheadMs = 0, ...more }: PageHubOptions) {
    const directory = await mkdtemp(join(tmpdir(), 'page-hub-'))
    const clock = new SetClock(clockAheadMs)
    const opened: AsyncDisposable[] = []
    const keep = <T extends AsyncDisposable>(part: T): T => {
      opened.unshift(part)
      return part
    }
    const metrics = new Metrics({}, { processMetrics: false })
    const log = keep(await openLog({ directory: join(directory, 'log'), maxBytes: 2 ** 30 }))
    const store = keep(await EmbeddedStateStore.open({ directory: join(directory, 'state'), clock }))
    const events = keep(openEvents({ kind: 'in-process' }))
    const kept = { kind: 'duckdb', directory: join(directory, 'history'), threads: 1, clock } as const
    const history = more.history ? keep(await openHistory(kept)) : undefined
    const ingester = keep(await Ingester.open({ log, state: store, events, clock, ...(history && { history }) }))
    const policies = new MemoryPolicies()
    await policies.resync(given.map((document) => ({ document, status: {} })))
    const ways = { proxy: { trustedPeers: ['127.0.0.1'] }, ...signIn }
    const identity = keep(await openIdentity({ config: ways, clock, logger: silentLogger, metrics }))
    const administrators = { users: [], groups: ['operators'] }
    let told: () => Availability | undefined = () => undefined
    const source = new UnsteadyPolicies(policies)
    const state: StateReader = {
      availability: () => told() ?? store.availability(),
      version: () => store.version(),
      clusters: () => store.clusters(),
      cluster: (name) => store.cluster(name),
      alerts: () => store.alerts(),
    }
    const server = keep(
      apiServer({
        state,
        events,
        identity,
        access: openAccess({ source, semantics: 'strict', administrators, clock }),
        logger: silentLogger,
        clock,
        version: '0.1.0',
        metrics,
        webRoot: root,
        ...(history && { history }),
        ...(more.filling && { filling: more.filling }),
        ...(more.catalog && { catalog: more.catalog }),
        ...(more.trySource && { trySource: more.trySource }),
        ...(more.members && { members: more.members }),
        config: { host: '127.0.0.1', port: 0, identity: ways, rateLimit: { perSecond: 10_000, burst: 10_000 } },
      }),
    )
    const gateway = new Gateway({ hub: await server.start(), visitor: administrator, ...(prefix && { prefix }) })
    const close = async () => {
      await gateway.stop()
      for (const part of opened) await part[Symbol.asyncDispose]()
      await rm(directory, { recursive: true })
    }
    const hub = new PageHub({ gateway, policies, policySource: source, ingester, store, clock, close })
    told = () => hub.availability
    return hub
  }

  now(): number {
    return this.#clock.now()
  }

  /** Resolves when nothing is left to write of what came in: that goes on beside the answers. */
  async written(): Promise<void> {
    await this.#ingester.flushed()
    await this.#store.flush()
  }

  /** So much time passes at once. */
  pass(ms: number): void {
    this.#clock.aheadMs += ms
  }

  /** The time of the hub is this one, from now on. */
  goTo(time: number): void {
    this.pass(time - this.#clock.now())
  }

  /** Declares these clusters in the place of all others, and sends their rounds in the order of time. */
  async fill(clusters: readonly Cluster[]): Promise<this> {
    await Promise.all([...this.#newest.keys()].map((name) => this.remove(name)))
    for (const cluster of clusters) await this.#declare(cluster)
    const rounds = clusters
      .flatMap(({ name, rounds: all }) => all.map((round) => ({ name, round })))
      .sort((a, b) => a.round.at - b.round.at)
    // What came at one time shares a sync of the log.
    for (let from = 0; from < rounds.length; ) {
      const { at } = rounds[from]?.round ?? { at: 0 }
      const together = rounds.slice(from).filter(({ round }) => round.at < at + 1000)
      from += together.length
      await this.#clock.atTime(Math.min(at + 200, this.#clock.now()), () =>
        Promise.all(together.map(({ name, round }) => this.#send(name, round))),
      )
    }
    await this.#applied()
    return this
  }

  /** What the agent of a known cluster kept until now, at once. */
  async repair(name: string, rounds: readonly Round[]): Promise<void> {
    const cluster = parseClusterName(name)
    const origin = `agent-of-${name}`
    const offers = rounds.map(({ at, source: _, gone: _gone, ...said }) => ({
      batch: {
        ...({ cluster, origin, source: 'push', backfill: true, durationMs: 800, parts: [] } as const),
        ...said,
        sequence: this.#nextOfAgent(name),
        collectedAt: at,
      },
    }))
    await this.#ingester.acceptPast(offers)
    await this.#applied()
  }

  /** The cluster as it is now: all its rounds where it is new, else its newest one. */
  async put(cluster: Cluster): Promise<void> {
    const isKnown = this.#newest.has(cluster.name)
    await this.#declare(cluster)
    for (const round of isKnown ? cluster.rounds.slice(-1) : cluster.rounds) {
      if (isKnown) await this.#send(cluster.name, round)
      else await this.#clock.atTime(Math.min(round.at + 200, this.#clock.now()), () => this.#send(cluster.name, round))
    }
    await this.#ingester.flushed()
  }

  /** Rows of a known cluster that moved between two rounds. */
  async step(name: string, tables: readonly RowsPart[]): Promise<void> {
    const cluster = parseClusterName(name)
    const sequence = this.#ingester.nextSequence(cluster)
    const collectedAt = Math.max(this.#clock.now(), (this.#newest.get(name) ?? 0) + 1)
    this.#newest.set(name, collectedAt)
    const about = { ...{ cluster, sequence, collectedAt, tables }, source: 'pull', partial: true } as const
    await this.#ingester.accept({ batch: { ...about, base: sequence - 1, durationMs: 1, parts: [] } })
  }

  async remove(name: string): Promise<void> {
    this.#newest.delete(name)
    await this.#ingester.remove(parseClusterName(name))
  }

  /** Its agent gives up batches that it never sent. */
  async lost(name: string, { count, ...loss }: Gone): Promise<void> {
    const first = this.#nextOfAgent(name)
    for (let more = 1; more < count; more++) this.#nextOfAgent(name)
    const lost = [[first, first + count - 1]] as const
    const origin = `agent-of-${name}`
    const declared = { origin, sequence: this.#nextOfAgent(name), keptEveryMs: 0, ...loss, count, lost }
    await this.#ingester.lost(parseClusterName(name), declared)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close()
  }

  /** What came in is shown, and its past is too. */
  async #applied(): Promise<void> {
    await this.#ingester.flushed()
    await this.#ingester.flushed('history')
  }

  /** A new one was declared before its first round came. */
  async #declare({ name: of, connection, agent, rounds: [first] }: Cluster): Promise<void> {
    const name = parseClusterName(of)
    const declare = async () => {
      await this.#ingester.connect(name, connection)
      if (agent) await this.#ingester.agent(name, agent)
    }
    if (this.#newest.has(name)) return declare()
    this.#newest.set(name, 0)
    await this.#clock.atTime((first?.at ?? this.#clock.now()) - 1000, declare)
  }

  #nextOfAgent(name: string): number {
    const next = (this.#sent.get(name) ?? 0) + 1
    this.#sent.set(name, next)
    return next
  }

  async #send(name: string, { at, source, gone, ...said }: Round): Promise<void> {
    if (gone) await this.lost(name, gone)
    const cluster = parseClusterName(name)
    const collectedAt = Math.max(at, (this.#newest.get(name) ?? 0) + 1)
    this.#newest.set(name, collectedAt)
    const origin = source === 'push' ? { origin: `agent-of-${name}` } : {}
    const sequence = source === 'push' ? this.#nextOfAgent(name) : this.#ingester.nextSequence(cluster)
    const isDifference = said.parts?.some(({ outcome }) => outcome === 'changed')
    const base = isDifference ? { base: sequence - 1 } : {}
    await this.#ingester.accept({
      batch: { cluster, sequence, source, collectedAt, durationMs: 800, parts: [], ...origin, ...base, ...said },
    })
  }
}

/** Policies whose store can go away and come back. */
class UnsteadyPolicies implements PolicySource {
  readonly #policies: PolicySource
  readonly #listeners = new Set<() => void>()
  #isAway = false

  constructor(policies: PolicySource) {
    this.#policies = policies
  }

  set isAway(isAway: boolean) {
    this.#isAway = isAway
    for (const listener of this.#listeners) listener()
  }

  current(signal?: AbortSignal) {
    return this.#isAway ? Promise.reject(away()) : this.#policies.current(signal)
  }

  latest(maxAgeMs: number) {
    if (this.#isAway) throw away()
    return this.#policies.latest(maxAgeMs)
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    const forget = this.#policies.onChange(listener)
    return () => {
      this.#listeners.delete(listener)
      forget()
    }
  }
}

const away = () => new PoliciesUnavailableError('redis refuses connections')

/** The machine's time, moved; or the time that is set for a while, in which rounds of the past are received. */
class SetClock implements Clock {
  aheadMs: number
  #set: number | undefined
  readonly sleep: Clock['sleep'] = systemClock.sleep

  constructor(aheadMs: number) {
    this.aheadMs = aheadMs
  }

  now(): number {
    return this.#set ?? systemClock.now() + this.aheadMs
  }

  async atTime(at: number, act: () => Promise<unknown>): Promise<void> {
    this.#set = at
    try {
      await act()
    } finally {
      this.#set = undefined
    }
  }
}
