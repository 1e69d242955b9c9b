import { join } from 'node:path'
import { accessReconcilers, type PolicyWriter } from '#access'
import { connectionReconcilers, type Defaults } from '#connections'
import { type LeaderElection, Manager } from '#controller'
import { type EventBus, openEvents } from '#events'
import type { HistoryStore } from '#history'
import { Ingester } from '#ingest'
import { ClientPool, type KubeClient } from '#kube'
import { seconds, systemClock } from '#model'
import { type Metrics, type Part, SegmentLog } from '#runtime'
import type { StateStore } from '#state'
import type { CollectionConfig } from './config.ts'
import type { IngesterConfig } from './config-push.ts'
import { Receiving } from './receiving.ts'
import { type HubLogger, part } from './run.ts'

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
  /** opened as state is; absent: no history is kept */
  readonly openHistory?: () => Promise<HistoryStore>
  /** of the controllers of this name */
  readonly election?: (name: 'connections' | 'access') => LeaderElection
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
          metrics,
          logger,
        }),
      )
    : undefined
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
        ...(receiving && { whileLeading: (signal: AbortSignal) => receiving.get().whileLeading(signal) }),
        logger,
      })
      await manager.start()
    },
    stop: async () => manager?.stop(),
  }
  // A manager of its own: where the kind is not installed yet, connections go on all the same.
  let policies: Manager | undefined
  const access: Part = {
    name: 'access',
    async start() {
      const election = options.election?.('access')
      policies = new Manager({
        name: 'access',
        controllers: accessReconcilers({
          hub: options.hub(),
          namespace: options.namespace,
          writer: options.policies(),
          logger: logger.child({ part: 'access' }),
          metrics,
          clock: systemClock,
        }),
        ...(election && { election }),
        logger,
      })
      await policies.start()
    },
    stop: async () => policies?.stop(),
  }
  return {
    parts: [
      access,
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
    receivingFault: () => receiving?.get().fault(),
    logFault: () => ingester.get().logFault(),
    manager() {
      if (!manager) throw new Error('connections are not started')
      return manager
    },
  }
}
