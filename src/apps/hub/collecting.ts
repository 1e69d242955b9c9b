import { join } from 'node:path'
import { accessReconcilers, type PolicyWriter } from '#access'
import { type CatalogWriter, declaredTypes, type SourceCatalog } from '#catalog'
import { connectionReconcilers, type Defaults, sourceTrial } from '#connections'
import { type Controller, type LeaderElection, Manager } from '#controller'
import { type EventBus, openEvents } from '#events'
import type { HistoryStore } from '#history'
import { Ingester } from '#ingest'
import { ClientPool, type KubeClient } from '#kube'
import { metricSourceReconcilers } from '#metricsources'
import { seconds, systemClock } from '#model'
import { registryReconcilers } from '#registries'
import type { RegistryStore } from '#registry'
import { type Metrics, type Part, SegmentLog } from '#runtime'
import type { StateStore } from '#state'
import type { CollectionConfig } from './config.ts'
import type { IngesterConfig } from './config-push.ts'
import { Receiving } from './receiving.ts'
import { type HubLogger, part } from './run.ts'

/** What is elected, and led, on its own. */
export type ControllerName = 'connections' | 'access' | 'registries'

export interface CollectingOptions {
  readonly dataDir: string
  readonly namespace: string
  readonly collection: CollectionConfig
  readonly version: string
  readonly ingester: IngesterConfig
  readonly logMaxBytes: number
  readonly hub: () => KubeClient
  /** opened when the log is: its positions mean something in that log only */
  readonly openState: (logId: string) => Promise<StateStore>
  /** where compiled access policies go */
  readonly policies: () => PolicyWriter
  /** which MetricSources are in force */
  readonly catalog: () => SourceCatalog & CatalogWriter
  /** what is known of container registries */
  readonly registries: () => RegistryStore
  /** opened as state is; absent: no history is kept */
  readonly openHistory?: () => Promise<HistoryStore>
  /** of the controllers of this name */
  readonly election?: (name: ControllerName) => LeaderElection
  /** Secrets may name kubeconfigs of this machine: only where the person at it rules the hub. */
  readonly allowLocalKubeconfig: boolean
  readonly metrics: Metrics
  readonly logger: HubLogger
}

const CATCH_UP_MS = seconds(10)

/** The parts from a connection to state and events, in order: what `up` and `manager` have in common. */
export interface Collecting {
  readonly parts: readonly Part[]
  state(): StateStore
  /** undefined: none is kept */
  history(): HistoryStore | undefined
  events(): EventBus
  /** reads a cluster once with a source that is in force nowhere, by the hub's own way in */
  readonly trySource: ReturnType<typeof sourceTrial>
  manager(): Manager
  /** why agents are not received; undefined where they are, or are not to be */
  receivingFault(): string | undefined
  /** why nothing can be kept, such as a full disk; undefined where it can */
  logFault(): string | undefined
}

export function collecting(options: CollectingOptions): Collecting {
  const { dataDir, collection, metrics, logger } = options
  const log = part('log', () =>
    SegmentLog.open({
      directory: join(dataDir, 'log'),
      maxBytes: options.logMaxBytes,
      onDamage: (damage) => logger.error(damage, 'a place of the log is damaged and was left out'),
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
  const clients = part('clients', () => Promise.resolve(new ClientPool()))
  const defaults: Defaults = {
    intervalMs: collection.intervalMs,
    timeoutMs: collection.connectTimeoutMs,
    operatorScanIntervalMs: collection.operatorScanIntervalMs,
  }
  const receiving = options.ingester.enabled
    ? part('receiving', () =>
        Receiving.open({
          config: options.ingester,
          namespace: options.namespace,
          dataDir,
          version: options.version,
          hub: options.hub,
          ingester: ingester.get,
          defaults,
          catalog: options.catalog(),
          metrics,
          logger,
        }),
      )
    : undefined
  const shared = (name: string) => ({
    hub: options.hub(),
    namespace: options.namespace,
    logger: logger.child({ part: name }),
    metrics,
    clock: systemClock,
  })
  // Led together with the connections: statuses and removals need the state and the log of the process that reads the fleet.
  const leadSources = async (signal: AbortSignal): Promise<void> => {
    const sources = new Manager({
      name: 'sources',
      controllers: metricSourceReconcilers({
        ...shared('sources'),
        catalog: options.catalog(),
        state: state.get(),
        ingester: ingester.get(),
        events: events.get(),
      }),
      logger,
    })
    await sources.start()
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve()
      else signal.addEventListener('abort', () => resolve(), { once: true })
    })
    await sources.stop()
  }
  let manager: Manager | undefined
  const connections: Part = {
    name: 'connections',
    async start() {
      const election = options.election?.('connections')
      manager = new Manager({
        name: 'connections',
        controllers: connectionReconcilers({
          hub: options.hub(),
          namespace: options.namespace,
          clients: clients.get(),
          ingester: ingester.get(),
          state: state.get(),
          defaults,
          catalog: options.catalog(),
          ...(receiving && {
            agents: receiving.get().agents,
            agentInstall: receiving.get().install(),
            credentials: receiving.get().credentials,
          }),
          allowLocalKubeconfig: options.allowLocalKubeconfig,
          concurrency: collection.concurrency,
          logger: logger.child({ part: 'connections' }),
          metrics,
          clock: systemClock,
        }),
        ...(election && { election }),
        whileLeading: async (signal) => {
          await Promise.all([receiving?.get().whileLeading(signal), leadSources(signal)])
        },
        logger,
      })
      await manager.start()
    },
    stop: async () => manager?.stop(),
  }
  // Managers of their own: where a kind is not installed yet, connections go on all the same.
  const ownManager = (name: ControllerName, controllers: () => readonly Controller[]): Part => {
    let own: Manager | undefined
    return {
      name,
      async start() {
        const election = options.election?.(name)
        own = new Manager({ name, controllers: controllers(), ...(election && { election }), logger })
        await own.start()
      },
      stop: async () => own?.stop(),
    }
  }
  const access = ownManager('access', () =>
    accessReconcilers({ ...shared('access'), writer: options.policies(), types: declaredTypes(options.catalog()) }),
  )
  const registries = ownManager('registries', () =>
    registryReconcilers({ ...shared('registries'), store: options.registries() }),
  )
  return {
    parts: [
      access,
      registries,
      log,
      state,
      ...(history ? [history] : []),
      events,
      ingester,
      clients,
      ...(receiving ? [receiving] : []),
      connections,
    ],
    state: state.get,
    history: () => history?.get(),
    events: events.get,
    trySource: (cluster, source, asked) =>
      sourceTrial({
        hub: options.hub(),
        namespace: options.namespace,
        clients: clients.get(),
        defaults,
        allowLocalKubeconfig: options.allowLocalKubeconfig,
      })(cluster, source, asked),
    receivingFault: () => receiving?.get().fault(),
    logFault: () => ingester.get().logFault(),
    manager() {
      if (!manager) throw new Error('connections are not started')
      return manager
    },
  }
}
