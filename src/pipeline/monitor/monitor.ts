import type { Attention } from '#attention'
import { type Clock, type MemberReader, seconds } from '#model'
import { inTurns, type Logger, type Metrics, Turns } from '#runtime'
import type { StateReader } from '#state'
import { HistoryFiles } from './history/files.ts'
import { UsageHistory } from './history/history.ts'
import { MonitorServer } from './http/server.ts'
import { Pictures } from './pictures.ts'
import { StreamHub } from './stream/hub.ts'
import { Tenancy, type TenancyRules } from './tenancy.ts'
import { type OneTimeNames, OwnNames } from './tickets.ts'
import { TokenReader, type TokenRules } from './tokens.ts'

/** What the listener is told. */
export interface MonitorConfig {
  readonly address: { readonly host: string; readonly port: number }
  /** period of whole snapshots, and of usage while the listener serves; ms */
  readonly refreshMs: number
  /** what paths without a prefix are about; where there is one cluster alone, they are about that */
  readonly defaultCluster: string
  readonly tokens: TokenRules
  readonly tenancy: TenancyRules
  /** pods of every namespace are told of; else those of tenants and of the system namespace */
  readonly allNamespaces: boolean
  /** hosts, meant with sub-domains and https; or whole origins */
  readonly corsOrigins: readonly string[]
  /** points of percent that a value moves before a difference tells of it */
  readonly deadBandPoints: number
  readonly historyMaxBytes: number
  readonly maxConnections: number
  readonly tls?: { readonly cert: string; readonly key: string }
}

export interface MonitorOptions {
  readonly config: MonitorConfig
  readonly state: StateReader
  /** in which sets members are; absent: clusters are in the sets that their labels name */
  readonly members?: Pick<MemberReader, 'member'>
  /** told which clusters are looked at: the default one always, others while somebody asks for them */
  readonly attention?: Attention
  /** of tickets, shared by all processes that answer; absent: there is this one alone */
  readonly ticketNames?: OneTimeNames
  /** where history is kept; absent: in memory alone */
  readonly historyDirectory?: string
  readonly logger: Logger
  readonly metrics: Metrics
  readonly clock: Clock
}

const DEAD_BAND_MAX_MS = seconds(60)
/** Whether anything changed is asked that often; whole snapshots come at their own pace. */
const POLL_MS = 20
/** Between two looks at everything, ms: where something changed, and where nothing did. */
const TICK_MS = { least: 200, most: seconds(1) }
const PRUNE_MS = seconds(60)

/** Cluster Monitor's interface over the state of a hub. */
export class Monitor implements AsyncDisposable {
  readonly #server: MonitorServer
  readonly #stop = new AbortController()
  readonly #files: HistoryFiles | undefined
  #running: Promise<void> = Promise.resolve()
  /** where it listens */
  readonly url: string

  private constructor(server: MonitorServer, url: string, files: HistoryFiles | undefined) {
    this.#server = server
    this.url = url
    this.#files = files
  }

  /** Listens and serves until it is disposed. @throws MonitorPortTakenError, DirectoryLockedError */
  static async open(options: MonitorOptions, signal?: AbortSignal): Promise<Monitor> {
    const { config, state, logger, metrics, clock, historyDirectory, attention } = options
    if (!config.tokens.secret)
      logger.warn({}, 'JWT_SECRET is not set: no token is valid, and every guarded endpoint of the monitor answers 401')
    const wants = wantedNamespaces(config)
    const history = new UsageHistory({ maxBytes: config.historyMaxBytes, wants })
    const files =
      historyDirectory === undefined
        ? undefined
        : await HistoryFiles.open(
            { directory: historyDirectory, history, maxBytes: config.historyMaxBytes, logger, clock },
            signal,
          )
    const tenancy = new Tenancy(config.tenancy, clock)
    const { systemNamespace: firstNamespace } = config.tenancy
    const pictures = new Pictures({ state, wants, firstNamespace, refreshMs: config.refreshMs, clock })
    const band = { points: config.deadBandPoints, maxMs: DEAD_BAND_MAX_MS }
    const { refreshMs, maxConnections } = config
    const turns = new Turns()
    const streams = new StreamHub({
      state,
      tenancy,
      pictures,
      refreshMs,
      band,
      maxStreams: maxConnections,
      turns,
      clock,
      metrics,
    })
    const { address, corsOrigins, defaultCluster, tls } = config
    const server = new MonitorServer({
      ...{ state, tenancy, pictures, streams, history, turns, address, corsOrigins, defaultCluster, maxConnections },
      ...(tls && { tls }),
      tickets: { secret: config.tokens.secret, names: options.ticketNames ?? new OwnNames() },
      ...{ tokens: new TokenReader(config.tokens, clock), logger, metrics, clock },
      ...(attention && { attention }),
      ...(options.members && { members: options.members }),
    })
    countHistory(metrics, history)
    try {
      const monitor = new Monitor(server, await server.start(), files)
      monitor.#running = monitor.#run({ ...options, history, streams, server, turns })
      return monitor
    } catch (error) {
      await files?.[Symbol.asyncDispose]()
      throw error
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#server[Symbol.asyncDispose]()
    await this.#running
    await this.#files?.[Symbol.asyncDispose]()
  }

  async #run({ config, state, logger, clock, history, streams, attention, server, turns }: Running): Promise<void> {
    const { signal } = this.#stop
    const due = new Due(config.refreshMs)
    let prunedAt = clock.now()
    while (!signal.aborted) {
      const now = clock.now()
      if (due.is(state.version(), now)) {
        try {
          for (const cluster of state.clusters()) await inTurns(history.record(cluster), turns)
          if (server.defaultCluster) attention?.look(server.defaultCluster.name)
          for (const name of await streams.tick()) attention?.look(name)
          if (Math.abs(now - prunedAt) >= PRUNE_MS && state.availability().state === 'available') {
            prunedAt = now
            history.prune(new Set(state.clusters().map(({ name }) => name)), now)
          }
          if (this.#files) await this.#files.tick()
          else history.takeUnsaved()
        } catch (error) {
          logger.error({ error }, 'a tick of the monitor failed; the next one tries again')
        }
      }
      await clock.sleep(Math.min(config.refreshMs, POLL_MS), signal)
    }
  }
}

/** When everything is looked at again: soon where state moved, and now and then as time does. */
class Due {
  readonly #mostMs: number
  #version = -1
  #at = Number.NEGATIVE_INFINITY

  constructor(refreshMs: number) {
    this.#mostMs = Math.min(refreshMs, TICK_MS.most)
  }

  is(version: number, now: number): boolean {
    const restMs = version === this.#version ? this.#mostMs : Math.min(this.#mostMs, TICK_MS.least)
    // A clock that was set back must not stop us.
    if (Math.abs(now - this.#at) < restMs) return false
    this.#version = version
    this.#at = now
    return true
  }
}

interface Running extends MonitorOptions {
  readonly history: UsageHistory
  readonly streams: StreamHub
  readonly server: MonitorServer
  readonly turns: Turns
}

/** Whose pods are told of. */
export function wantedNamespaces({
  allNamespaces,
  tenancy,
}: Pick<MonitorConfig, 'allNamespaces' | 'tenancy'>): (namespace: string) => boolean {
  const { systemNamespace, tenantPrefix } = tenancy
  return (namespace) => allNamespaces || namespace === systemNamespace || namespace.startsWith(tenantPrefix)
}

function countHistory(metrics: Metrics, history: UsageHistory): void {
  metrics.gauge('clusterpulse_monitor_history_bytes', 'Memory of the usage history.', [], (gauge) =>
    gauge.set(history.bytes),
  )
  metrics.gauge(
    'clusterpulse_monitor_history_dropped',
    'Nodes and pods without a history for lack of room: those that were dropped, and those that were refused.',
    ['reason'],
    (gauge) => {
      gauge.set({ reason: 'dropped' }, history.counts.dropped)
      gauge.set({ reason: 'refused' }, history.counts.refused)
    },
  )
}
