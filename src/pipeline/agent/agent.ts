import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import {
  batchesOf,
  collectors as builtIn,
  type Collector,
  CollectorLoop,
  isKubeletWay,
  Kubelets,
  type KubeletWay,
  type OwnCollector,
  type ReadSummary,
  summaryByProxy,
  usageCollectors,
  usageNames,
  WatchBudget,
} from '#collect'
import type { KubeClient } from '#kube'
import { ownCollector, type ResourceDescriptor, readDefinition } from '#metricsource'
import {
  type Batch,
  type Clock,
  type ClusterName,
  FleetError,
  type Plan,
  type RowFeed,
  seconds,
  systemClock,
} from '#model'
import { resourceOf } from '#resources'
import { type Logger, type Metrics, silentLogger } from '#runtime'
import { decodePlan, encodeBody } from '#wire'
import type { AgentStatus } from './agent-status.ts'
import { type Monotonic, systemMonotonic } from './boot.ts'
import { BatchBuffer, type BufferOptions } from './buffer.ts'
import { CollectLoop } from './collect-loop.ts'
import { type OriginalConfig, planOfConfig } from './config-plan.ts'
import { Feeding } from './feeding.ts'
import { agentMetrics } from './metrics.ts'
import { PlanFile } from './plan-file.ts'
import { inTurn, laneOf, Unreadable } from './sources.ts'
import type { HubTrust, Transport } from './types.ts'
import { packed, Uplink } from './uplink.ts'

/** What an agent runs with; durations in ms, sizes in bytes. */
export interface AgentOptions {
  readonly cluster: ClusterName
  /** of this software, told to the hub */
  readonly version: string
  /** of this start of it, told to the hub; default: the machine's, and a part of its own */
  readonly name?: string
  readonly transport: Transport
  /** for the registration; asked at each attempt. undefined: a certificate tells who we are */
  readonly token: () => Promise<string | undefined>
  /** told by what the hub is known, where we are a member */
  readonly onTrust?: (trust: HubTrust) => void
  /** the cluster's client with this limit of one request, ms; asked for each round */
  readonly kube: (timeoutMs: number) => KubeClient
  /** buffer and plan are kept here; one agent at a time */
  readonly directory: string
  /** what is collected before the hub ever sent a plan */
  readonly plan?: Partial<Omit<Plan, 'version'>>
  readonly buffer?: Pick<BufferOptions, 'maxBytes' | 'maxAgeMs' | 'keptEveryMs' | 'memoryBytes' | 'disk'>
  readonly collectors?: readonly Collector[]
  /** asks kubelets at their own ports; absent: only the API server is asked for them */
  readonly kubelet?: { readonly verified: ReadSummary; readonly unverified: ReadSummary }
  /** rows of compiled-in kinds that this process keeps, for a hub that asks for them; default none */
  readonly feeds?: readonly RowFeed[]
  readonly metrics?: Metrics
  readonly logger?: Logger
  readonly clock?: Clock
  readonly monotonic?: Monotonic
  readonly random?: () => number
}

const DEFAULT_PLAN: Plan = {
  version: '',
  intervalMs: seconds(60),
  timeoutMs: seconds(30),
  operatorScanIntervalMs: seconds(300),
  sources: [],
}
const FLUSH_MS = 5_000
const ROUND_GRACE_MS = 2_000
/** Collections of sources that read at once: the agent is a guest of its cluster. */
const SOURCES_AT_ONCE = 2
const MAX_FINDINGS = 20
const MAX_PART_AGE_MS = 600_000

/**
 * Collects on schedule, keeps every batch on disk, and sends it when there is a hub. Nothing leaves the disk before its ack.
 */
export class Agent implements AsyncDisposable {
  readonly #buffer: BatchBuffer
  readonly #uplink: Uplink
  readonly #loop: CollectLoop
  readonly #sources: CollectorLoop
  readonly #feedings: readonly Feeding[]
  readonly #unreadable = new Unreadable()
  /** rows were collected while there was nobody to tell */
  #hasUnsaid = false
  readonly #planFile: PlanFile
  readonly #options: AgentOptions
  #kubelets: Kubelets | undefined
  readonly #stopping = new AbortController()
  readonly #givingUp = new AbortController()
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #tasks: Promise<void>[]
  #plan: Plan
  /** a hub has said what to collect since the start; before, a plan was only kept */
  #hasPlan = false
  #findings: readonly string[] = []
  #keeping: Promise<unknown> = Promise.resolve()
  #stopped: Promise<void> | undefined

  private constructor(options: AgentOptions, buffer: BatchBuffer, planFile: PlanFile, plan: Plan) {
    const { cluster, version, transport, token, kube, metrics, random = Math.random } = options
    const clock = options.clock ?? systemClock
    const monotonic = options.monotonic ?? systemMonotonic()
    const logger = options.logger ?? silentLogger
    const beganAt = monotonic.now()
    this.#options = options
    this.#buffer = buffer
    this.#planFile = planFile
    this.#plan = plan
    this.#clock = clock
    this.#logger = logger
    this.#uplink = new Uplink({
      cluster,
      version,
      ...(options.name !== undefined && { name: options.name }),
      transport,
      buffer,
      token,
      planVersion: () => this.#plan.version,
      onPlan: (bytes) => this.#replan(bytes),
      onConfig: (config) => this.#configure(config),
      ...(options.onTrust && { onTrust: options.onTrust }),
      onLive: () => {
        if (this.#hasUnsaid) this.#loop.again()
        this.#hasUnsaid = false
        for (const feeding of this.#feedings) feeding.wake()
      },
      health: () => ({
        uptimeMs: monotonic.now() - beganAt,
        lastCollectionMs: this.#loop.health.lastDurationMs,
        polled: this.#loop.polled(),
        rssBytes: process.memoryUsage.rss(),
      }),
      clock,
      monotonic,
      random,
      logger,
    })
    this.#loop = new CollectLoop({
      cluster,
      kube,
      collectors: options.collectors ?? builtIn,
      // What a newer hub names and we do not have, it sees is missing.
      rows: () => (this.#plan.resources ?? []).flatMap((name) => resourceOf(name)?.collector ?? []),
      plan: () => this.#plan,
      live: { onStep: (step) => this.#step(step, monotonic.now()), watches: new WatchBudget() },
      onBatch: async (batch, stamp) => {
        const [round = batch, ...steps] = batchesOf(batch)
        await this.#keep(round, stamp)
        // Rows of kinds that are compiled in make no history: with nobody to send them to, the next collection says all.
        const isLive = this.#uplink.status().phase === 'live'
        if (isLive) for (const step of steps) await this.#keep(step, stamp, true)
        else if (steps.length > 0) this.#hasUnsaid = true
      },
      clock,
      monotonic,
      logger,
    })
    this.#sources = new CollectorLoop({
      cluster,
      source: 'push',
      kube: async () => kube(this.#plan.timeoutMs),
      onBatch: async (given) => {
        const batch = this.#worthKeeping(given)
        if (!batch) return
        // How long ago that was, by the clock of the wall: a jump of it must not make the batch a day old.
        const ageMs = Math.min(Math.max(0, clock.now() - batch.collectedAt), MAX_PART_AGE_MS)
        const isHollow = batch.tables?.every(({ source }) => usageNames.includes(source)) === true
        await this.#keep(batch, monotonic.now() - ageMs, isHollow)
      },
      turn: inTurn(SOURCES_AT_ONCE),
      clock,
      random,
      logger,
      ...(metrics && { metrics }),
    })
    this.#feedings = (options.feeds ?? []).flatMap((feed) => {
      const kind = resourceOf(feed.source)
      if (!kind) return []
      const isWanted = () => this.#plan.resources?.includes(kind.id) === true && this.#uplink.takesSteps
      const hand = (step: Batch) => this.#step(step, monotonic.now())
      return [new Feeding({ cluster, feed, kind, isWanted, hand, clock, logger })]
    })
    this.#sources.replan(this.#collectedBy(plan))
    if (metrics) agentMetrics(metrics, () => this.status(), clock)
    this.#uplink.start()
    this.#tasks = [
      this.#loop.run(this.#stopping.signal, this.#givingUp.signal),
      this.#flushes(),
      ...this.#feedings.map((feeding) => feeding.run(this.#stopping.signal)),
    ]
  }

  /**
   * Opens the buffer and begins: the first round at once, the first attempt to connect at once.
   * @throws DirectoryLockedError while another agent has the directory; the system's error where it cannot be used
   */
  static async open(options: AgentOptions): Promise<Agent> {
    const { directory, clock, monotonic, logger = silentLogger } = options
    const buffer = await BatchBuffer.open({
      ...options.buffer,
      directory,
      logger,
      ...(clock && { clock }),
      ...(monotonic && { monotonic }),
    })
    const planFile = new PlanFile(join(directory, 'plan.json'), logger)
    const plan = (await planFile.read()) ?? { ...DEFAULT_PLAN, ...options.plan }
    return new Agent(options, buffer, planFile, plan)
  }

  status(): AgentStatus {
    return {
      uplink: this.#uplink.status(),
      collection: this.#loop.health,
      buffer: this.#buffer.stats(),
      plan: this.#plan.version,
      findings: this.#findings,
      polled: this.#loop.polled(),
      sources: this.#sources.statuses(),
    }
  }

  /** a round runs, or the disk is being written or read */
  get isBusy(): boolean {
    return this.#loop.isRunning || this.#buffer.isBusy
  }

  /** The round that runs gets 2 s, what is on its way to the hub another 2 s; the rest stays in the buffer. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  async #stop(): Promise<void> {
    this.#stopping.abort()
    const done = new AbortController()
    const late = this.#clock.sleep(ROUND_GRACE_MS, done.signal).then(() => this.#givingUp.abort())
    await Promise.all([...this.#tasks, this.#sources.stop()])
    done.abort()
    await late
    await this.#uplink.stop()
    await this.#planFile.written()
    await this.#buffer[Symbol.asyncDispose]()
  }

  /** What moved between two rounds is told while somebody hears it; else the next round says it. Resolves when it was answered. */
  async #step(step: Batch, stamp: number): Promise<void> {
    if (!this.#uplink.takesSteps) {
      this.#hasUnsaid = true
      return
    }
    const sequence = await this.#keep(step, stamp, true)
    if (sequence !== undefined) await this.#uplink.handled(sequence)
  }

  /**
   * One after the other, so that the uplink hears of batches in the order of their sequences.
   * @param isHollow the buffer keeps its number alone, as the next round says anew what it says
   * @returns its sequence; undefined: it could not be kept
   */
  #keep(batch: Batch, stamp: number, isHollow = false): Promise<number | undefined> {
    const kept = this.#keeping.then(() => this.#append(batch, stamp, isHollow))
    this.#keeping = kept
    return kept
  }

  async #append(batch: Batch, stamp: number, isHollow: boolean): Promise<number | undefined> {
    const { collectedAt } = batch
    try {
      const { tables: _, ...head } = batch
      const body = packed(encodeBody(isHollow ? { ...head, parts: [] } : batch))
      const lane = laneOf(batch)
      const record = await this.#buffer.append({ collectedAt, stamp, ...body, ...(lane > 0 && { lane }) })
      const { sequence } = record
      this.#uplink.collected({ ...batch, origin: this.#buffer.origin, sequence }, record, isHollow)
      return sequence
    } catch (error) {
      // One batch that cannot be kept must not end the collecting of the others; its sequence is found missing, and declared.
      this.#logger.error({ err: FleetError.from(error) }, 'a batch could not be kept')
      return undefined
    }
  }

  #collectedBy(plan: Plan): readonly OwnCollector[] {
    return [...this.#readable(plan).map(ownCollector), ...this.#usage(plan)]
  }

  /** What nodes and pods use, as the plan asks for it. */
  #usage({ resources = [], refreshMs, intervalMs, kubelets: asked }: Plan): readonly OwnCollector[] {
    if (!usageNames.some((name) => resources.includes(name))) return []
    const way = isKubeletWay(asked) ? asked : undefined
    if (this.#kubelets?.way !== way) this.#kubelets = way && this.#kubeletsBy(way)
    const all = usageCollectors({
      refreshMs: refreshMs ?? intervalMs,
      ...(this.#kubelets && { kubelets: this.#kubelets }),
    })
    return all.filter(({ name }) => resources.includes(name))
  }

  #kubeletsBy(way: KubeletWay): Kubelets | undefined {
    const { kubelet } = this.#options
    const read = way === 'proxy' ? summaryByProxy : way === 'direct' ? kubelet?.verified : kubelet?.unverified
    return read && new Kubelets({ way, read, clock: this.#clock })
  }

  /** What nodes and pods use makes no history: with nobody to send it to, the next reading says all. */
  #worthKeeping(batch: Batch): Batch | undefined {
    if (this.#uplink.status().phase === 'live') return batch
    const tables = (batch.tables ?? []).filter(({ source }) => !usageNames.includes(source))
    return tables.length > 0 ? { ...batch, tables } : undefined
  }

  /** The sources of a plan that this version understands. */
  #readable({ sources }: Plan): readonly ResourceDescriptor[] {
    return sources.flatMap((definition) => {
      const source = readDefinition(definition)
      if (source) return [source]
      const { namespace, name } = (definition ?? {}) as { readonly namespace?: unknown; readonly name?: unknown }
      if (this.#unreadable.isNew(definition)) {
        this.#logger.warn({ source: `${namespace}/${name}` }, 'a source of the plan cannot be read; it is left out')
      }
      return []
    })
  }

  #replan(bytes: Uint8Array): void {
    let plan: Plan
    try {
      plan = decodePlan(bytes)
    } catch (error) {
      this.#logger.error({ err: error }, 'the hub sent a plan that cannot be read; the former one holds')
      return
    }
    this.#hasPlan = true
    this.#findings = []
    this.#take(plan)
  }

  /** A hub of the original with nothing to collect says nothing: then what was kept from before our start is over. */
  #configure(config: OriginalConfig | undefined): void {
    if (!config && (this.#hasPlan || this.#plan.sources.length === 0)) return
    this.#hasPlan = true
    const { plan, findings } = planOfConfig(config ?? { metricSourcesJson: [], defaultIntervalSeconds: 0 }, this.#plan)
    this.#findings = findings.slice(0, MAX_FINDINGS)
    if (findings.length > 0)
      this.#logger.warn({ findings: this.#findings, count: findings.length }, 'not all that the hub says can be used')
    this.#take(plan)
  }

  #take(plan: Plan): void {
    if (plan.version === this.#plan.version) return
    const hasOtherRows = !isDeepStrictEqual(plan.resources ?? [], this.#plan.resources ?? [])
    this.#plan = plan
    this.#logger.info({ plan: plan.version, intervalMs: plan.intervalMs }, 'a new plan holds')
    // What is followed begins with a round: nobody should wait half a minute for the first rows.
    if (hasOtherRows) this.#loop.again()
    else this.#loop.replan()
    this.#sources.replan(this.#collectedBy(plan))
    for (const feeding of this.#feedings) feeding.wake()
    void this.#planFile.write(plan)
  }

  async #flushes(): Promise<void> {
    for (;;) {
      await this.#clock.sleep(FLUSH_MS, this.#stopping.signal)
      if (this.#stopping.signal.aborted) return
      const before = this.#buffer.newest
      await this.#buffer.flush().catch((error: unknown) => {
        this.#logger.error({ err: error }, 'the buffer could not be tidied')
      })
      if (this.#buffer.newest !== before) this.#uplink.stored()
      await this.#planFile.flush()
    }
  }
}
