import { isDeepStrictEqual } from 'node:util'
import { type Collector, collectRound, failureOf } from '#collect'
import { againAfter, done, type Informer, type Outcome, type Reconciler } from '#controller'
import type { Ingester } from '#ingest'
import { type ClusterConnection, clusterConnection } from '#kinds'
import type { ClientPool, ClusterAccess, KubeClient, KubeObject, ObjectKey, Resource } from '#kube'
import { type Batch, type Clock, type ClusterName, FleetError, parseClusterName, seconds } from '#model'
import type { Logger } from '#runtime'
import type { StateReader } from '#state'
import { accessSecrets, decideAccess, type SecretFacts, serverOf } from './cluster-access.ts'
import type { LocalKubeconfigs } from './local-kubeconfig.ts'
import { type Defaults, nextRoundMs, type Settings, settingsOf } from './settings.ts'
import { type RoundEnd, statusPatch } from './status.ts'

export interface ReconcilerOptions {
  readonly hub: KubeClient
  readonly connections: Informer<KubeObject>
  readonly secrets: Informer<SecretFacts>
  /** namespace of the secrets informer; Secrets elsewhere are read one by one */
  readonly namespace: string
  readonly clients: Pick<ClientPool, 'get' | 'drop'>
  readonly ingester: Pick<Ingester, 'accept' | 'connect' | 'remove' | 'nextSequence'>
  readonly state: Pick<StateReader, 'cluster'>
  readonly collectors: readonly Collector[]
  readonly defaults: Defaults
  /** absent: Secrets may not name files of this machine */
  readonly localKubeconfigs?: LocalKubeconfigs
  /** bounds the rounds that read at once */
  readonly turn: <T>(read: () => Promise<T>) => Promise<T>
  readonly onRound: (result: 'collected' | 'failed', durationMs: number) => void
  readonly clock: Clock
  readonly logger: Logger
}

export const connectionResource: Resource<KubeObject> = {
  group: clusterConnection.group,
  version: clusterConnection.version,
  plural: clusterConnection.plural,
  kind: clusterConnection.kind,
  namespaced: true,
}

/** What we remember of one cluster between rounds. Owned here, gone with its connection; a restart begins anew. */
interface Visit {
  /** ends the round that runs now */
  running: AbortController | undefined
  /** when collectors that are not due every round were last read and stored, ms */
  readonly readAt: Map<string, number>
}

type Failed = Extract<RoundEnd, { kind: 'failed' }>

/** How one round is to be made, or why it cannot. */
type Way = { readonly access: ClusterAccess } | { readonly end: Failed }

/** What of a stored state is worth waiting for before the status is written. */
const STATE_PATIENCE_MS = seconds(2)

/** Makes the hub know what a ClusterConnection says: who the cluster is, what is on it, how it went. */
export class ConnectionReconciler implements Reconciler {
  readonly name = 'connections'
  readonly #options: ReconcilerOptions
  readonly #visits = new Map<string, Visit>()

  constructor(options: ReconcilerOptions) {
    this.#options = options
  }

  /** Ends the round of a cluster whose connection or credentials changed: its result must not be taken any more. */
  interrupt(cluster: string): void {
    this.#visits.get(cluster)?.running?.abort()
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    const object = this.#options.connections.get(key)
    if (!object || object.metadata.deletionTimestamp) return this.#remove(key)
    const visit = this.#visits.get(key.name) ?? { running: undefined, readAt: new Map() }
    this.#visits.set(key.name, visit)
    const running = new AbortController()
    visit.running = running
    // Not AbortSignal.any: the queue's signal lives long and would remember every round.
    const end = () => running.abort(signal.reason)
    signal.addEventListener('abort', end, { once: true })
    if (signal.aborted) end()
    try {
      return await this.#look(object, visit, running.signal)
    } catch (error) {
      if (running.signal.aborted && !signal.aborted) return done // the change that ended it has asked for the next look
      throw error
    } finally {
      signal.removeEventListener('abort', end)
      visit.running = undefined
    }
  }

  async #remove(key: ObjectKey): Promise<Outcome> {
    const { ingester, clients, logger } = this.#options
    await ingester.remove(parseClusterName(key.name))
    await clients.drop(poolKey(key))
    if (this.#visits.delete(key.name)) logger.info({ cluster: key.name }, 'connection is gone; cluster forgotten')
    return done
  }

  async #look(object: KubeObject, visit: Visit, signal: AbortSignal): Promise<Outcome> {
    const { defaults, ingester, clock } = this.#options
    const cluster = parseClusterName(object.metadata.name)
    const startedAt = clock.now()
    const { connection, settings, fault } = read(object, defaults)
    const way: Way = fault ?? (await this.#way(connection, signal))
    const access = 'access' in way ? way.access : undefined
    // A kubeconfig has an address of its own; the page must show the one that is really asked.
    const facts = access
      ? {
          ...settings.facts,
          ...addressOf(access, settings.facts.endpoint),
          insecureSkipTlsVerify: isUnverified(access),
        }
      : settings.facts
    const unknown = await this.#connect(cluster, facts, signal)
    if (unknown) {
      await this.#write(object, unknown, settings, access, undefined)
      return againAfter(nextRoundMs(facts.intervalMs, true, 0))
    }
    await this.#write(object, { kind: 'connecting' }, settings, access, undefined)

    const sequence = ingester.nextSequence(cluster)
    const { batch, end } =
      'access' in way
        ? await this.#collect(object.metadata, cluster, way.access, facts.timeoutMs, sequence, visit, signal)
        : { batch: failed(cluster, sequence, startedAt, way.end), end: way.end }
    signal.throwIfAborted()
    const refusal = await this.#accept(batch, visit, signal)
    // Why a cluster cannot be read matters more than that the hub could not note it.
    const told = end.kind === 'failed' ? end : (refusal ?? end)
    await this.#write(object, told, settings, access, refusal ? undefined : batch)
    const tookMs = clock.now() - startedAt
    this.#options.onRound(told.kind === 'collected' ? 'collected' : 'failed', tookMs)
    return againAfter(nextRoundMs(facts.intervalMs, told.kind === 'failed' || refusal !== undefined, tookMs))
  }

  /** Makes the hub know the cluster. @returns why it could not note it */
  async #connect(cluster: ClusterName, facts: Settings['facts'], signal: AbortSignal): Promise<Failed | undefined> {
    const { state, ingester } = this.#options
    try {
      if (!isDeepStrictEqual(state.cluster(cluster)?.connection, facts)) await ingester.connect(cluster, facts)
      return undefined
    } catch (error) {
      signal.throwIfAborted()
      return this.#ownFault(cluster, 'the hub could not note this cluster: ', error)
    }
  }

  #ownFault(cluster: ClusterName, prefix: string, error: unknown): Failed {
    const err = FleetError.from(error)
    this.#options.logger.error({ cluster, err }, 'a round could not be kept')
    return { kind: 'failed', blame: 'hub', code: err.code, message: `${prefix}${err.message}`.slice(0, 4000) }
  }

  /** The Secret, then what it says. */
  async #way({ metadata, spec }: ClusterConnection, signal: AbortSignal): Promise<Way> {
    const { hub, secrets, namespace, localKubeconfigs } = this.#options
    const { name } = spec.credentialsRef
    const secretKey = { name, namespace: spec.credentialsRef.namespace || metadata.namespace || namespace }
    const secretName = `${secretKey.namespace}/${name}`
    let secret: SecretFacts | undefined
    try {
      secret =
        secretKey.namespace === namespace ? secrets.get(secretKey) : await hub.get(accessSecrets, secretKey, signal)
    } catch (error) {
      signal.throwIfAborted()
      const { code, message } = failureOf(`${CLIENT}the Secret ${secretName} cannot be read: `, error)
      return { end: { kind: 'failed', blame: 'credentials', code, message } }
    }
    const path = secret?.access.kubeconfigPath
    const decision = await decideAccess(spec, {
      secretName,
      secret,
      localKubeconfig: path !== undefined && localKubeconfigs ? await localKubeconfigs.read(path.trim()) : undefined,
      allowLocalKubeconfig: localKubeconfigs !== undefined,
    })
    if ('access' in decision) return decision
    const { code, message } = decision.fault
    return { end: { kind: 'failed', blame: 'credentials', code, message: `${CLIENT}${message}` } }
  }

  async #collect(
    metadata: ObjectKey,
    cluster: ClusterName,
    access: ClusterAccess,
    timeoutMs: number,
    sequence: number,
    visit: Visit,
    signal: AbortSignal,
  ): Promise<{ batch: Batch; end: RoundEnd }> {
    const { clients, clock, turn, logger } = this.#options
    const startedAt = clock.now()
    let kube: KubeClient
    try {
      kube = await clients.get(poolKey(metadata), access, { timeoutMs }, signal)
    } catch (error) {
      signal.throwIfAborted()
      const end = { kind: 'failed' as const, blame: 'credentials' as const, ...failureOf(CLIENT, error) }
      return { batch: failed(cluster, sequence, startedAt, end), end }
    }
    const malformed = new Set<string>()
    const batch = await collectRound({
      kube,
      cluster,
      collectors: this.#due(visit, startedAt),
      source: 'pull',
      sequence,
      signal,
      clock,
      turn,
      onMalformed: (text) => malformed.size < 5 && malformed.add(text.slice(0, 40)),
    })
    if (malformed.size > 0) logger.warn({ cluster, quantities: [...malformed] }, 'quantities could not be read')
    if (!batch.failure) return { batch, end: { kind: 'collected', batch } }
    logger.debug({ cluster, failure: batch.failure }, 'round failed')
    return { batch, end: { kind: 'failed', blame: 'cluster', ...batch.failure } }
  }

  #due(visit: Visit, now: number): Collector[] {
    return this.#options.collectors.filter((collector) => {
      const readAt = visit.readAt.get(collector.name)
      return readAt === undefined || now - readAt >= this.#everyMs(collector)
    })
  }

  #everyMs({ name, everyMs }: Collector): number {
    return name === 'operators' ? this.#options.defaults.operatorScanIntervalMs : everyMs
  }

  /** Hands the batch in. @returns why the hub could not keep it; then what it knows stays, and everything is read anew. */
  async #accept(batch: Batch, visit: Visit, signal: AbortSignal): Promise<Failed | undefined> {
    const { ingester } = this.#options
    try {
      await ingester.accept(batch, signal)
    } catch (error) {
      signal.throwIfAborted()
      return this.#ownFault(batch.cluster, 'the cluster was read, but the hub could not keep it: ', error)
    }
    for (const { collector, outcome } of batch.parts) {
      // Only what is in the hub counts as read; a collector that could not get through tries again next round.
      if (outcome !== 'unreachable') visit.readAt.set(collector, batch.collectedAt)
    }
    await this.#settled(batch, signal)
    return undefined
  }

  /** Waits a little until the batch is in state, so that the status can say what the hub makes of it. */
  async #settled({ cluster, sequence }: Batch, signal: AbortSignal): Promise<void> {
    const { state, clock } = this.#options
    const until = clock.now() + STATE_PATIENCE_MS
    for (let pauseMs = 2; clock.now() < until && !signal.aborted; pauseMs = Math.min(pauseMs * 2, 200)) {
      if ((state.cluster(cluster)?.sequence ?? 0) >= sequence) return
      await clock.sleep(pauseMs, signal)
    }
  }

  /** Writes what differs from the stored status. A failure to do so is logged: the next round says it again. */
  async #write(
    object: KubeObject,
    end: RoundEnd,
    settings: Settings,
    access: ClusterAccess | undefined,
    batch: Batch | undefined,
  ): Promise<void> {
    const { hub, state, connections, clock, logger } = this.#options
    const key = keyOf(object)
    const known = state.cluster(object.metadata.name)
    const stored = (connections.get(key) ?? object) as unknown as Partial<ClusterConnection> // served under our schema
    if (end.kind === 'connecting' && stored.status?.phase) return
    const status = statusPatch({
      stored: stored.status,
      generation: object.metadata.generation,
      end,
      state: batch && known && known.sequence >= batch.sequence ? known : undefined,
      tlsVerified: access ? !isUnverified(access) : !settings.facts.insecureSkipTlsVerify,
      adjustments: settings.adjustments,
      wantsAgent: stored.spec?.collectionMode === 'push',
      now: clock.now(),
    })
    if (!status) return
    try {
      await hub.patch(connectionResource, key, { status }, { kind: 'merge', subresource: 'status' })
    } catch (error) {
      if (connections.get(key)) logger.warn({ cluster: key.name, err: error }, 'status could not be written')
    }
  }
}

const CLIENT = 'failed to get cluster client: '

const keyOf = ({ metadata: { name, namespace } }: KubeObject): ObjectKey => (namespace ? { name, namespace } : { name })
/** Never the display name: two clusters may share one. */
const poolKey = ({ name, namespace }: ObjectKey) => `${namespace ?? ''}/${name}`
/** As written, where that is what is asked. */
const addressOf = ({ server }: ClusterAccess, written: string) =>
  server === serverOf(written) ? {} : { endpoint: server }
const isUnverified = ({ server, verifyTls }: ClusterAccess) => !verifyTls || server.startsWith('http:')

interface Reading {
  readonly connection: ClusterConnection
  readonly settings: Settings
  readonly fault?: Extract<Way, { end: unknown }>
}

/** The connection as its kind describes it; where it does not fit, enough of it that people see which one and why. */
function read(object: KubeObject, defaults: Defaults): Reading {
  try {
    const connection = clusterConnection.parse(object)
    return { connection, settings: settingsOf(connection, defaults) }
  } catch (error) {
    const { code, message } = FleetError.from(error)
    const spec = { endpoint: '', credentialsRef: { name: '' } }
    const connection = { ...object, apiVersion: clusterConnection.apiVersion, kind: clusterConnection.kind, spec }
    const end = { kind: 'failed' as const, blame: 'spec' as const, code, message: `${CLIENT}${message}` }
    return { connection, settings: settingsOf(connection, defaults), fault: { end } }
  }
}

function failed(
  cluster: ClusterName,
  sequence: number,
  collectedAt: number,
  { code, message }: { readonly code: string; readonly message: string },
): Batch {
  const failure = { code, message: message.slice(0, 4000) }
  return { cluster, sequence, source: 'pull', collectedAt, durationMs: 0, parts: [], failure }
}
