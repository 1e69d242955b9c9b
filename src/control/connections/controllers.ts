import { isDeepStrictEqual } from 'node:util'
import type { SourceCatalog } from '#catalog'
import { collectors as builtIn, type Collector, Pulses, WatchBudget } from '#collect'
import {
  againAfter,
  Controller,
  type ControllerOptions,
  changesSpec,
  done,
  Informer,
  InformerIndex,
  keyText,
  type ObjectChange,
  onReferredChange,
  onSpecChange,
  type Trigger,
} from '#controller'
import { CredentialLedger } from '#credentials'
import type { Agents, Ingester } from '#ingest'
import type { ClientPool, KubeClient, KubeObject, ObjectKey } from '#kube'
import {
  CLUSTER_SET_LABEL,
  type Clock,
  type ClusterName,
  FleetError,
  type OwnerPlace,
  owns,
  soleOwner,
  systemClock,
} from '#model'
import type { Logger, Metrics } from '#runtime'
import type { StateReader } from '#state'
import type { AgentCredentials } from './agent-credentials.ts'
import { AgentInstaller } from './agent-installer.ts'
import type { AgentInstall } from './agent-objects.ts'
import { type RoleGap, readsOf, usageReads } from './agent-role.ts'
import { accessSecrets, type SecretFacts, serverOf } from './cluster-access.ts'
import { connectionResource } from './connection-resource.ts'
import { FirstLooks } from './first-looks.ts'
import { LocalKubeconfigs } from './local-kubeconfig.ts'
import { ConnectionReconciler } from './reconciler.ts'
import type { Defaults } from './settings.ts'
import { SourceReading } from './source-reading.ts'
import { turns } from './turns.ts'

/** What the controllers of ClusterConnections need. */
export interface ConnectionsOptions {
  /** the hub's own API, where the objects are */
  readonly hub: KubeClient
  readonly namespace: string
  /** connections whose clusters others own are not looked at, whoever asks for it; default: all are ours */
  readonly owner?: OwnerPlace
  readonly clients: Pick<ClientPool, 'get' | 'drop'>
  readonly ingester: Pick<Ingester, 'accept' | 'connect' | 'remove' | 'nextSequence' | 'unread'>
  readonly state: Pick<StateReader, 'cluster' | 'clusters'>
  readonly defaults: Defaults
  /** Secrets may name kubeconfigs of this machine, whose commands may be run; only where the person at it rules the hub. */
  readonly allowLocalKubeconfig?: boolean
  /** the live streams; absent: this hub receives no agents, and every cluster is pulled */
  readonly agents?: Agents
  /** why the agent of a cluster would be refused, with what helps; undefined: it would not, or that is not known */
  readonly whyRefused?: (cluster: ClusterName) => Promise<string | undefined>
  /** how agents are deployed on members; absent: they are installed by hand only */
  readonly agentInstall?: AgentInstall
  /** for the tokens of deployed agents; without it none is deployed */
  readonly credentials?: Pick<AgentCredentials, 'check' | 'issue' | 'revoke' | 'sharedWith'>
  /** hears what the agent of a cluster may not read though MetricSources ask for it; []: it may read all of it */
  readonly onRoleGaps?: (cluster: ClusterName, gaps: readonly RoleGap[]) => void
  /** each connection that was there at the start was looked at once, or a minute is over */
  readonly onFirstLooks?: () => void
  /** how long a deleted connection waits for its member, so that the agent there is taken away, ms; default 5 min */
  readonly removalPatienceMs?: number
  /** watches over all clusters; default MAX_WATCHES, each of a connection of its own */
  readonly watches?: WatchBudget
  /** rounds that read at once, those that wait for their clusters aside; default 16 */
  readonly concurrency?: number
  readonly collectors?: readonly Collector[]
  /** which MetricSources are in force; without it none is read from here */
  readonly catalog?: SourceCatalog
  /** collections of MetricSources that read at once, over all clusters, those that wait aside; default 8 */
  readonly sourceConcurrency?: number
  readonly logger: Logger
  readonly metrics?: Metrics
  readonly clock?: Clock
  readonly random?: () => number
}

/** Above this many connections the first rounds are spread, so that later ones do not come all at once. */
const SPREAD_ABOVE = 32
const SPREAD_PER_KEY_MS = 15
/** The rounds with the first rows of fewer. */
const ROWS_SPREAD_MS = 1_000
const DECLARED_AT_ONCE = 256
/** Not with growing pauses: until then somebody may see what is no longer theirs. */
const DECLARE_AGAIN_MS = 1_000
const ROLE_SPREAD_MS = 5_000
/** A client is made within a call's own limit. */
const never = new AbortController().signal

/** The controllers of this module, for a Manager. */
export function connectionReconcilers(options: ConnectionsOptions): readonly Controller[] {
  const {
    hub,
    namespace,
    logger,
    clock = systemClock,
    random = Math.random,
    concurrency = 16,
    metrics,
    state,
    owner = soleOwner,
  } = options
  const isOurs = (cluster: string) => owns(owner, cluster)
  const shared = { kube: hub, namespace, logger, clock }
  const ledger = new CredentialLedger('ClusterConnection', serverOf)
  const connections = new Informer<KubeObject>({
    ...shared,
    resource: { ...connectionResource, fromJson: lean },
    onEvent: (event) => ledger.see(event),
    // A connection has the name of its cluster.
    ...(owner.of > 1 && { where: ({ metadata }: KubeObject) => isOurs(metadata.name) }),
  })
  const secrets = new Informer<SecretFacts>({ ...shared, resource: accessSecrets })
  const collectors = options.collectors ?? builtIn
  const { agents, catalog } = options
  const { resources = [], usage } = options.defaults
  const installer = new AgentInstaller({
    hub,
    ...(options.agentInstall && { install: options.agentInstall }),
    ...(options.credentials && { credentials: options.credentials }),
    collectors,
    ...(catalog && {
      reads: () =>
        isLoading(catalog) ? undefined : [...readsOf([...resources, ...catalog.sources()]), ...usageReads(usage)],
    }),
    ...(options.onRoleGaps && { onRoleGaps: options.onRoleGaps }),
    operatorScanIntervalMs: options.defaults.operatorScanIntervalMs,
    ...(options.defaults.readOnlyMembers && { readOnly: true }),
    ...(options.removalPatienceMs !== undefined && { patienceMs: options.removalPatienceMs }),
    clock,
    random,
    logger,
  })
  const sources =
    catalog &&
    new SourceReading({
      catalog,
      ingester: options.ingester,
      kube: (cluster) => reconciler.clientOf(cluster, never),
      ...(usage && { usage }),
      isLeft: (cluster) => reconciler.isLeft(cluster),
      roundMs: (cluster) => state.cluster(cluster)?.connection?.intervalMs ?? options.defaults.intervalMs,
      turn: turns(options.sourceConcurrency ?? 8, clock),
      clock,
      random,
      logger,
      ...(metrics && { metrics }),
    })
  const firstLooks = new FirstLooks(clock)
  const watches = options.watches ?? new WatchBudget()
  /** connections whose rows wait until the first looks are over; undefined: none do */
  let held: Set<string> | undefined
  /** Those that ask meanwhile are looked at again then. */
  const isHeld = (cluster: string): boolean => held?.add(cluster) !== undefined
  const pulses = new Pulses({
    onTrouble: (name) => {
      reconciler.interrupt(name)
      controller.enqueue({ name, namespace })
    },
    onRecovered: (name) => controller.enqueue({ name, namespace }),
    clock,
  })
  const reconciler: ConnectionReconciler = new ConnectionReconciler({
    hub,
    connections,
    secrets,
    ledger,
    namespace,
    owner,
    clients: options.clients,
    ingester: options.ingester,
    state,
    collectors,
    ...(agents && { agents }),
    ...(options.whyRefused && { whyRefused: options.whyRefused }),
    installer,
    tokenSharedWith: (cluster) => options.credentials?.sharedWith(cluster) ?? [],
    ...(sources && {
      sources: {
        read(cluster) {
          if (!isHeld(cluster)) sources.read(cluster)
        },
        leave: (cluster) => sources.leave(cluster),
      },
    }),
    rows: (cluster) =>
      resources.length === 0 || isHeld(cluster) ? [] : resources.flatMap((one) => one.collector ?? []),
    pulses,
    defaults: options.defaults,
    ...(options.allowLocalKubeconfig && { localKubeconfigs: new LocalKubeconfigs() }),
    watches,
    turn: turns(concurrency, clock),
    onLooked: (cluster) => firstLooks.ended(cluster),
    onRound: roundMetrics(metrics),
    clock,
    logger,
  })
  const bySecret = new InformerIndex(connections, (object) => secretsOf(object).map(keyText))
  const referring = (secret: ObjectKey) => bySecret.of(keyText(secret)).map(keyOf)

  connections.onChange((change) => {
    if (changesSpec(change)) reconciler.renew(change.key.name)
  })
  secrets.onChange((change) => {
    if (change.kind === 'deleted') ledger.forget(change.previous.metadata.uid)
    if (change.kind === 'changed' && sameAccess(change.object, change.previous)) return
    for (const { name } of referring(change.key)) reconciler.renew(name)
  })

  const beside = {
    start() {
      const looked = firstLooks.begin(connections.list().map(({ metadata }) => metadata.name))
      const waiting = new Set<string>()
      held = waiting
      watches.hold()
      void looked.then(() => {
        if (held !== waiting) return
        held = undefined
        watches.release()
        options.onFirstLooks?.()
        for (const name of waiting)
          controller.enqueue({ name, namespace }, random() * spreadMs(waiting.size, ROWS_SPREAD_MS))
      })
      pulses.start(looked)
      sources?.start()
    },
    async stop() {
      held = undefined
      watches.release()
      firstLooks.end()
      await Promise.all([pulses.stop(), sources?.stop(), reconciler.stop()])
    },
  }
  const controller: Controller = new ConnectionsController(beside, {
    reconciler,
    triggers: [
      withForgotten(onSpecChange(connections), state, namespace, isOurs),
      // Any change frees credentials that are held, or binds them anew.
      onReferredChange(secrets, (change) => referring(change.key)),
    ],
    // Waiting for a cluster that does not answer costs nothing, so more may wait than read.
    concurrency: concurrency * 4,
    spreadStartMs: (keys) => spreadMs(keys, 0),
    logger,
    clock,
    random,
  })
  metrics?.gauge('clusterpulse_connections_waiting', 'Connections that wait for a worker.', [], (gauge) =>
    gauge.set(controller.load.waiting),
  )
  // As long as the streams: both end with the process.
  agents?.onChange((name) => {
    if (!isOurs(name)) return
    reconciler.agentChanged(name)
    controller.enqueue({ name, namespace })
  })
  let reads = JSON.stringify(readsOf(catalog?.sources() ?? []))
  // Agents may read what sources need: their roles follow, spread a little.
  catalog?.onChange(() => {
    const before = reads
    reads = JSON.stringify(readsOf(catalog.sources()))
    if (reads === before) return
    for (const object of connections.list()) {
      if (isPush(object)) controller.enqueue(keyOf(object), random() * ROLE_SPREAD_MS)
    }
  })
  // All at once, as they share the syncs of the log: who declares a thousand clusters sees a thousand, not yet read.
  const declarations = new Controller({
    reconciler: {
      name: 'declarations',
      reconcile: async (key) => {
        try {
          await reconciler.declare(key)
          return done
        } catch (error) {
          if (!(error instanceof FleetError && error.retryable)) throw error
          logger.warn({ cluster: key.name, err: error }, 'what a connection says could not be noted yet')
          return againAfter(DECLARE_AGAIN_MS)
        }
      },
    },
    triggers: [withForgotten(onDeclared(connections), state, namespace, isOurs)],
    concurrency: DECLARED_AT_ONCE,
    logger,
    clock,
    random,
  })
  return [declarations, controller]
}

const spreadMs = (keys: number, ofFewMs: number): number =>
  keys > SPREAD_ABOVE ? Math.min(20_000, keys * SPREAD_PER_KEY_MS) : ofFewMs

interface Beside {
  start(): void
  stop(): Promise<void>
}

/** With the reading of rows and the pulses, which begin and end with it. */
class ConnectionsController extends Controller {
  readonly #beside: Beside

  constructor(beside: Beside, options: ControllerOptions) {
    super(options)
    this.#beside = beside
  }

  override start(): void {
    this.#beside.start()
    super.start()
  }

  override async stop(): Promise<void> {
    await super.stop()
    await this.#beside.stop()
  }
}

/** When what a connection says of its cluster may have changed: its set is a label of the object. */
const onDeclared = (connections: Informer<KubeObject>): Trigger => ({
  ...onSpecChange(connections),
  keysOf: (change) => (changesSpec(change) || setDiffers(change) ? [change.key] : []),
})

const setDiffers = (change: ObjectChange<KubeObject>): boolean =>
  change.kind === 'changed' &&
  change.object.metadata.labels?.[CLUSTER_SET_LABEL] !== change.previous.metadata.labels?.[CLUSTER_SET_LABEL]

/** Clusters the hub still knows whose connection went while nobody looked: they are looked at once, and forgotten. */
function withForgotten(
  trigger: Trigger,
  state: Pick<StateReader, 'clusters'>,
  namespace: string,
  isOurs: (cluster: string) => boolean,
): Trigger {
  const keysAtStart = () => {
    const keys = trigger.keysAtStart()
    const present = new Set(keys.map(({ name }) => name))
    const gone = state.clusters().filter(({ name }) => isOurs(name) && !present.has(name))
    return [...gone.map(({ name }) => ({ name, namespace })), ...keys]
  }
  return { ...trigger, keysAtStart }
}

/** What the API server keeps for itself is not held a second time here. */
function lean({ metadata: { managedFields: _, ...metadata }, ...object }: KubeObject): KubeObject {
  return { ...object, metadata }
}

const keyOf = ({ metadata: { name, namespace } }: KubeObject): ObjectKey => (namespace ? { name, namespace } : { name })

/** Nothing is in force, or nothing was read yet: these must not be taken for each other. */
const isLoading = (catalog: SourceCatalog) => catalog.unavailable() !== undefined && catalog.sources().length === 0

const isPush = ({ spec }: KubeObject) => (spec as { collectionMode?: unknown } | undefined)?.collectionMode === 'push'

/** The Secret that its credentials are in. */
function secretsOf({ metadata, spec }: KubeObject): ObjectKey[] {
  const ref = (spec as { credentialsRef?: { name?: unknown; namespace?: unknown } } | undefined)?.credentialsRef
  const namespace = ref?.namespace || metadata.namespace
  if (typeof ref?.name !== 'string') return []
  return [{ name: ref.name, ...(typeof namespace === 'string' && { namespace }) }]
}

const sameAccess = (a: SecretFacts, b: SecretFacts) =>
  isDeepStrictEqual([a.access, a.metadata.annotations], [b.access, b.metadata.annotations])

function roundMetrics(metrics: Metrics | undefined): (result: 'collected' | 'failed', durationMs: number) => void {
  const rounds = metrics?.counter('clusterpulse_rounds_total', 'Rounds by how they ended.', ['result'])
  const durations = metrics?.histogram(
    'clusterpulse_round_duration_seconds',
    'Time from the start of a round to its status.',
    [],
    [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  )
  return (result, durationMs) => {
    rounds?.inc({ result })
    durations?.observe(durationMs / 1000)
  }
}
