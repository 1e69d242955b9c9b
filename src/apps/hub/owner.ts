import { type Attention, usageRates } from '#attention'
import type { SourceCatalog } from '#catalog'
import { type KubeletWay, POD_USAGE, WatchBudget } from '#collect'
import { connectionReconcilers, type Defaults, type RoleGap, sourceTrial } from '#connections'
import { Manager } from '#controller'
import { type EventBus, openEvents } from '#events'
import type { HistoryStore } from '#history'
import { Ingester, type LogSink } from '#ingest'
import { ClientPool, type KubeClient } from '#kube'
import { type ClusterName, type ClusterState, minutes, type OwnerPlace, seconds, soleOwner, systemClock } from '#model'
import { OutboundGuard } from '#outbound'
import { ClusterPublisher } from '#publish'
import { type Log, type LogDamage, type Metrics, openLog, type Part } from '#runtime'
import type { StateStore } from '#state'
import { AgentReceiver } from './agent-receiver.ts'
import type { CollectionConfig } from './config.ts'
import { isDefaultNamed, type PublishConfig } from './config-publish.ts'
import type { IngesterConfig } from './config-push.ts'
import type { HubJoinsWiring } from './joins.ts'
import { type HubLogger, part } from './run.ts'

export interface OwnerOptions {
  /** default: this process owns every cluster */
  readonly place?: OwnerPlace
  /** where the other owners are reached, as unix sockets; needed where there are others */
  readonly socketDirectory?: string
  /** of the log; asked when it is opened */
  readonly logDirectory: () => string
  /** of what else is kept beside it */
  readonly dataDir: string
  readonly namespace: string
  readonly collection: CollectionConfig
  readonly version: string
  readonly ingester: IngesterConfig
  /** machines may ask to become members; absent: they may not */
  readonly joins?: HubJoinsWiring
  readonly logMaxBytes: number
  readonly hub: () => KubeClient
  /** opened when the log is: its positions mean something in that log only */
  readonly openState: (logId: string) => Promise<StateStore>
  /** who looks at what clusters use */
  readonly attention: () => Attention
  /** how kubelets of this cluster are asked for disks; default: as configured */
  readonly kubeletsOf?: (cluster: string) => KubeletWay | undefined
  /** which MetricSources are in force */
  readonly catalog: () => SourceCatalog
  /** opened as state is; absent: no history is kept */
  readonly openHistory?: () => Promise<HistoryStore>
  /** who reads the log beside state and history; asked when it is open. Default: nobody */
  readonly consumers?: (log: Log) => readonly LogSink<unknown>[]
  /** runs as long as clusters are read and agents received */
  readonly beside?: (signal: AbortSignal) => Promise<void>
  /** hears what the agent of a cluster may not read though MetricSources ask for it */
  readonly onRoleGaps: (cluster: ClusterName, gaps: readonly RoleGap[]) => void
  /** Secrets may name kubeconfigs of this machine: only where the person at it rules the hub. */
  readonly allowLocalKubeconfig: boolean
  /** where what clusters say is published; undefined: nowhere */
  readonly publish?: PublishConfig | undefined
  readonly metrics: Metrics
  readonly logger: HubLogger
}

const CATCH_UP_MS = seconds(10)
/** Where connections cannot be read, what the log held is shown after so long. */
const LOOKS_WITHIN_MS = seconds(60)
/** Rows come behind the first looks. */
const ROWS_WITHIN_MS = seconds(15)
const ROWS_LOOK_MS = 200

/** The parts from a connection to state and events, in order, of the clusters one process owns. */
export interface Owner {
  readonly parts: readonly Part[]
  state(): StateStore
  /** undefined: none is kept */
  history(): HistoryStore | undefined
  events(): EventBus
  ingester(): Ingester
  /** reads a cluster once with a source that is in force nowhere, by the hub's own way in */
  readonly trySource: ReturnType<typeof sourceTrial>
  manager(): Manager
  /** why agents are not received; undefined where they are, or are not to be */
  receiverFault(): string | undefined
  /** why nothing can be kept, such as a full disk; undefined where it can */
  logFault(): string | undefined
}

export function createOwner(options: OwnerOptions): Owner {
  const { collection, metrics, logger, place = soleOwner } = options
  const log = part('log', () =>
    openLog({
      directory: options.logDirectory(),
      maxBytes: options.logMaxBytes,
      onDamage: (damage) => logger.error(damage, damageText(damage)),
    }),
  )
  const state = part('state', () => options.openState(log.get().id))
  const { openHistory } = options
  const history = openHistory && part('history', openHistory)
  const events = part('events', () => Promise.resolve(openEvents({ kind: 'in-process' })))
  const ingester = part('ingester', async (signal) => {
    const opened = await Ingester.open(
      {
        log: log.get(),
        state: state.get(),
        events: events.get(),
        ...(history && { history: history.get() }),
        ...(options.consumers && { consumers: options.consumers(log.get()) }),
        logger: logger.child({ part: 'ingester' }),
        metrics,
      },
      signal,
    )
    // What the log holds beyond the state is in before anybody reads, unless the store is away: then it comes later.
    const waited = new AbortController()
    await Promise.race([opened.flushed(), systemClock.sleep(CATCH_UP_MS, waited.signal)])
    waited.abort()
    return opened
  })
  const { kubelets, retryMs } = collection
  const clients = part('clients', () =>
    Promise.resolve(
      new ClientPool({
        outbound: new OutboundGuard({ use: 'member', allow: collection.outboundAllow }),
        ...(retryMs !== undefined && { breaker: { recoveryMs: retryMs } }),
      }),
    ),
  )
  const defaults = (): Defaults => ({
    intervalMs: collection.intervalMs,
    timeoutMs: collection.connectTimeoutMs,
    operatorScanIntervalMs: collection.operatorScanIntervalMs,
    ...(retryMs !== undefined && { retryMs }),
    ...(collection.relisting && { relisting: collection.relisting }),
    resources: collection.resources,
    ...(collection.readOnlyMembers && { readOnlyMembers: true }),
    usage: {
      rates: usageRates({
        attention: options.attention(),
        refreshMs: collection.usageRefreshMs,
        podsOf: (cluster) => podsIn(state.get().cluster(cluster)),
      }),
      ...(kubelets && { kubelets }),
      kubeletsOf: options.kubeletsOf ?? (() => kubelets),
    },
  })
  const receiver = options.ingester.enabled
    ? part('receiving', () =>
        AgentReceiver.open({
          config: options.ingester,
          place,
          ...(options.socketDirectory !== undefined && { socketDirectory: options.socketDirectory }),
          namespace: options.namespace,
          dataDir: options.dataDir,
          version: options.version,
          hub: options.hub,
          ingester: ingester.get,
          defaults: defaults(),
          catalog: options.catalog(),
          ...(options.joins && { joins: options.joins }),
          metrics,
          logger,
        }),
      )
    : undefined
  let looked = (): void => undefined
  const firstLooks = new Promise<void>((resolve) => {
    looked = resolve
  })
  /** A store that began empty is shown once it holds what is known: a fleet that is there would seem to be gone, or as it was long ago. */
  const beginShowing = async (store: StateStore, applied: Promise<void>, signal: AbortSignal): Promise<void> => {
    await applied
    const waited = new AbortController()
    await Promise.race([firstLooks, systemClock.sleep(LOOKS_WITHIN_MS, AbortSignal.any([waited.signal, signal]))])
    waited.abort()
    if (store.clusters().length === 0) await Promise.race([firstLooks, systemClock.sleep(minutes(60 * 24), signal)])
    for (let ms = 0; ms < ROWS_WITHIN_MS && !signal.aborted && !store.clusters().every(hasPods); ms += ROWS_LOOK_MS)
      await systemClock.sleep(ROWS_LOOK_MS, signal)
    if (!signal.aborted) store.begin?.()
  }
  const showing = new AbortController()
  let manager: Manager | undefined
  const connections: Part = {
    name: 'connections',
    async start() {
      manager = new Manager({
        name: 'connections',
        controllers: connectionReconcilers({
          hub: options.hub(),
          namespace: options.namespace,
          owner: place,
          clients: clients.get(),
          ingester: ingester.get(),
          state: state.get(),
          defaults: defaults(),
          catalog: options.catalog(),
          ...(receiver && {
            agents: receiver.get().agents,
            agentInstall: receiver.get().install(),
            credentials: receiver.get().credentials,
            whyRefused: (cluster) => receiver.get().whyRefused(cluster),
          }),
          onRoleGaps: options.onRoleGaps,
          onFirstLooks: looked,
          allowLocalKubeconfig: options.allowLocalKubeconfig,
          concurrency: collection.concurrency,
          watches: new WatchBudget(collection.maxWatches),
          logger: logger.child({ part: 'connections' }),
          metrics,
          clock: systemClock,
        }),
        whileLeading: async (signal) => {
          await Promise.all([receiver?.get().whileLeading(signal), options.beside?.(signal)])
        },
        logger,
      })
      await manager.start()
      if (state.get().begin) void beginShowing(state.get(), ingester.get().flushed(), showing.signal)
    },
    async stop() {
      showing.abort()
      await manager?.stop()
    },
  }
  const { publish } = options
  const publisher =
    publish &&
    part('publisher', () =>
      Promise.resolve(
        ClusterPublisher.start({
          ...publish,
          // Where others own a part of the fleet, it may be theirs.
          expectsDefault: place.of === 1 && isDefaultNamed(publish),
          state: state.get(),
          look: (cluster) => options.attention().look(cluster),
          metrics,
          logger: logger.child({ part: 'publisher' }),
        }),
      ),
    )
  return {
    parts: [
      log,
      state,
      ...(history ? [history] : []),
      events,
      ingester,
      clients,
      ...(receiver ? [receiver] : []),
      connections,
      ...(publisher ? [publisher] : []),
    ],
    state: state.get,
    history: () => history?.get(),
    events: events.get,
    ingester: ingester.get,
    trySource: (cluster, source, asked) =>
      sourceTrial({
        hub: options.hub(),
        namespace: options.namespace,
        clients: clients.get(),
        defaults: defaults(),
        allowLocalKubeconfig: options.allowLocalKubeconfig,
      })(cluster, source, asked),
    receiverFault: () => receiver?.get().fault(),
    logFault: () => ingester.get().logFault(),
    manager() {
      if (!manager) throw new Error('connections are not started')
      return manager
    },
  }
}

/** What a place of the log that is not served means for who reads it. */
export function damageText({ kind, segment }: LogDamage): string {
  if (kind === 'torn')
    return 'a write at the end of the log was cut off and was left out: nobody had been told it was kept'
  if (segment === 'id')
    return 'the file id of the log is missing or damaged: a new one is made, and what reads the log begins anew at its start'
  if (segment.endsWith('.checkpoint'))
    return 'how far the log was read is not known, as that file is damaged or of another log: its reader begins anew at its start'
  const what =
    segment === '*.segment' ? 'all records of the log are gone' : 'a place of the log is damaged and was left out'
  return `${what}: what of it was not yet in state and history is lost. The hub goes on and reads anew; check the disk, and for the past put the folder back from a backup`
}

/** Its pods were read, or cannot be now. */
const hasPods = ({ parts, tables }: ClusterState): boolean =>
  parts.node?.outcome !== 'complete' || tables.get('pods')?.freshness != null

/** Pods whose usage is read, or would be; undefined: the cluster is not one of ours. */
function podsIn(cluster: ClusterState | undefined): number | undefined {
  return cluster && (cluster.tables.get(POD_USAGE)?.rows.size || (cluster.tables.get('pods')?.rows.size ?? 0))
}
