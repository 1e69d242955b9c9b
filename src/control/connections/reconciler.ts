import { batchesOf, type Collector, failureOf, type Pulses, Rounds, silentRound, type WatchBudget } from '#collect'
import { againAfter, done, type Informer, type Outcome, type Reconciler } from '#controller'
import type { CredentialLedger } from '#credentials'
import type { Agents, Ingester } from '#ingest'
import type { ClusterConnection } from '#kinds'
import type { ClientPool, ClusterAccess, KubeClient, KubeError, KubeObject, ObjectKey } from '#kube'
import {
  AGENTS_RETURN_MS,
  type AgentFacts,
  type Batch,
  type Clock,
  type ClusterName,
  type ClusterState,
  type ConnectionFacts,
  elapsedMs,
  FleetError,
  HUB_RESTARTED,
  HUB_STARTED,
  isHubsAbsence,
  type OwnerPlace,
  ownerName,
  owns,
  parseClusterName,
  patienceMs,
  seconds,
} from '#model'
import type { Logger } from '#runtime'
import type { StateReader } from '#state'
import type { AgentInstaller, Installed } from './agent-installer.ts'
import { type CollectorChoice, chooseCollector } from './choose-collector.ts'
import { accessSecrets, isReachable, type SecretFacts, serverOf } from './cluster-access.ts'
import { connectionResource } from './connection-resource.ts'
import { CLIENT, type Endpoint, type Failed, poolKey, readConnection, resolveEndpoint } from './endpoint.ts'
import type { LocalKubeconfigs } from './local-kubeconfig.ts'
import { type Defaults, nextRoundMs, type Settings } from './settings.ts'
import type { SourceReading } from './source-reading.ts'
import { type RoundEnd, statusPatch, type TlsUse } from './status.ts'

export interface ReconcilerOptions {
  readonly hub: KubeClient
  readonly connections: Informer<KubeObject>
  readonly secrets: Informer<SecretFacts>
  /** of all connections, whoever owns their clusters */
  readonly ledger: CredentialLedger
  /** namespace of the secrets informer; Secrets elsewhere are read one by one */
  readonly namespace: string
  /** clusters of others are left alone: to know no connection of theirs does not mean that there is none */
  readonly owner: OwnerPlace
  readonly clients: Pick<ClientPool, 'get' | 'drop'>
  readonly ingester: Pick<Ingester, 'accept' | 'connect' | 'remove' | 'nextSequence' | 'unread'>
  readonly state: Pick<StateReader, 'cluster'>
  readonly collectors: readonly Collector[]
  readonly defaults: Defaults
  /** the live streams; absent: this hub receives no agents */
  readonly agents?: Agents
  /** other connections whose collectors show the token of this one's Secret */
  readonly tokenSharedWith?: (cluster: ClusterName) => readonly string[]
  /** why the agent of a cluster would be refused, with what helps; undefined: it would not, or that is not known */
  readonly whyRefused?: (cluster: ClusterName) => Promise<string | undefined>
  /** brings agents to members and takes them away */
  readonly installer: AgentInstaller
  /** the collectors of rows that a round of this cluster makes as well; default none */
  readonly rows?: (cluster: ClusterName) => readonly Collector[]
  /** MetricSources of the clusters that are read from here; absent: there are none */
  readonly sources?: Pick<SourceReading, 'read' | 'leave'>
  /** between rounds: whether what is read from here is there */
  readonly pulses: Pick<Pulses, 'follow' | 'leave' | 'takeTrouble'>
  /** absent: Secrets may not name files of this machine */
  readonly localKubeconfigs?: LocalKubeconfigs
  /** watches over all clusters; absent: what a round reads is not followed */
  readonly watches?: WatchBudget
  /** bounds the rounds that read at once */
  readonly turn: <T>(read: () => Promise<T>) => Promise<T>
  /** hears of each look that ended, however it did */
  readonly onLooked: (cluster: string) => void
  readonly onRound: (result: 'collected' | 'failed', durationMs: number) => void
  readonly clock: Clock
  readonly logger: Logger
}

/** What we remember of one cluster between rounds. Owned here, gone with its connection; a restart begins anew. */
interface Visit {
  /** ends the round that runs now */
  running: AbortController | undefined
  /** the last way in that was written down: a Secret often goes together with its connection, and the agent must go too */
  access: ClusterAccess | undefined
  /** it reads the cluster: pointless from the moment an agent delivers */
  isReading: boolean
  readonly rounds: Rounds
  /** since when no agent delivers; undefined while one does, or before the first look */
  awaySince: number | undefined
  /** the hub reads for want of an agent */
  isPulling: boolean
  /** the hub reads although there is a stream: nothing comes by it */
  isSilent: boolean
  /** when the last reading of the hub that succeeded began, ms */
  pulledAt: number | undefined
  /** the newest batch of an agent we saw in state, and when */
  lastPush: { readonly origin: string; readonly sequence: number; readonly at: number } | undefined
}

/** One look at a connection: what it says, and what was decided from it. */
interface Look {
  readonly object: KubeObject
  readonly connection: ClusterConnection
  readonly cluster: ClusterName
  readonly settings: Settings
  readonly choice: CollectorChoice
  readonly endpoint: Endpoint
  readonly startedAt: number
  /** the newest batch of the cluster by then */
  readonly seen: Pick<ClusterState, 'origin' | 'sequence'>
  /** what was found since the last round */
  readonly trouble: KubeError | undefined
}

/** A batch the hub has now; or why not, where there should be one. */
interface Kept {
  readonly batch: Batch | undefined
  readonly refusal: Failed | undefined
}

/** What of a stored state is worth waiting for before the status is written. */
const STATE_PATIENCE_MS = seconds(2)
/** An agent whose batches are accepted and not yet in state: a status that says so is worth another look. */
const LOOK_AGAIN_MS = seconds(5)

/** A first look that takes longer is told of before it ends. */
const CONNECTING_AFTER_MS = seconds(5)
const OVER = 'the look ended'

/** Makes the hub know what a ClusterConnection says: who the cluster is, what is on it, how it went. */
export class ConnectionReconciler implements Reconciler {
  readonly name = 'connections'
  readonly #options: ReconcilerOptions
  /** the name of this process among those that share the fleet; undefined: it is alone */
  readonly #owner: string | undefined
  readonly #visits = new Map<string, Visit>()

  constructor(options: ReconcilerOptions) {
    this.#options = options
    this.#owner = ownerName(options.owner)
  }

  /**
   * Has the hub know at once what a connection says of its cluster: that it is there or gone, its name, its labels and set. Access
   * policies select by these, so they wait for no turn, no round and no answer of a cluster; the look itself may.
   * @throws IngestBusyError, StoreUnavailableError when the hub could not note it
   */
  async declare(key: ObjectKey): Promise<void> {
    if (!owns(this.#options.owner, key.name)) return
    const cluster = parseClusterName(key.name)
    if (this.#declared(key)) await this.#note(key)
    else await this.#forget(cluster)
  }

  /** Ends the round of a cluster whose connection or credentials changed: its result must not be taken any more. */
  interrupt(cluster: string): void {
    this.#visits.get(cluster)?.running?.abort()
  }

  /** The same, and what was followed by the way in of before is followed no more. */
  renew(cluster: string): void {
    this.interrupt(cluster)
    void this.#visits.get(cluster)?.rounds.leave()
  }

  /** Nothing is followed any more, of any cluster. */
  async stop(): Promise<void> {
    await Promise.all([...this.#visits.values()].map(({ rounds }) => rounds.leave()))
  }

  /** An agent came or went. Where it delivers, what the hub reads by itself is not needed and must not be doubled. */
  agentChanged(cluster: string): void {
    const visit = this.#visits.get(cluster)
    if (!visit || !this.#options.agents?.isDelivering(cluster)) return
    visit.isSilent = false
    this.#options.sources?.leave(parseClusterName(cluster))
    void visit.rounds.leave()
    if (visit.isReading) visit.running?.abort()
  }

  /**
   * An agent or a collector delivers: what it says is newer, and nothing that the hub reads between rounds may hide it until the next look
   * leaves the cluster to them.
   */
  isLeft(cluster: string): boolean {
    return this.#options.agents?.isDelivering(cluster) === true && !this.#visits.get(cluster)?.isSilent
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    if (!owns(this.#options.owner, key.name)) return done
    const object = this.#options.connections.get(key)
    if (!object || object.metadata.deletionTimestamp) {
      this.#options.onLooked(key.name)
      return this.#remove(key, object, signal)
    }
    const visit = this.#visits.get(key.name) ?? this.#newVisit(key.name)
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
      visit.isReading = false
      visit.rounds.handedIn()
      this.#options.onLooked(key.name)
    }
  }

  #newVisit(name: string): Visit {
    const { collectors, turn, clock, logger, watches, ingester, defaults } = this.#options
    const { relisting } = defaults
    const cluster = parseClusterName(name)
    const onStep = async (step: Batch) => {
      if (this.isLeft(cluster)) return
      await ingester.accept({ batch: { ...step, sequence: ingester.nextSequence(cluster) } })
    }
    const live = watches && { onStep, watches, ...(relisting && { relisting }) }
    return {
      running: undefined,
      access: undefined,
      isReading: false,
      rounds: new Rounds({ cluster, source: 'pull', collectors, turn, clock, logger, ...(live && { live }) }),
      awaySince: undefined,
      isPulling: false,
      isSilent: false,
      pulledAt: undefined,
      lastPush: undefined,
    }
  }

  /** Forgets a cluster: first for everyone who looks, then on the member, as far as it can be reached. */
  async #remove(key: ObjectKey, object: KubeObject | undefined, signal: AbortSignal): Promise<Outcome> {
    const { clients, agents, installer, logger } = this.#options
    const cluster = parseClusterName(key.name)
    await this.#visits.get(key.name)?.rounds.leave()
    await this.#forget(cluster)
    // Only a living one: ending a stream is a change that asks for this look again.
    if (agents?.facts(cluster)?.connected) {
      agents.disconnect(cluster, 'not_connected', 'its ClusterConnection was deleted')
    }
    const waitMs = object && (await installer.leave(object, () => this.#client(object, signal), signal))
    if (waitMs !== undefined) return againAfter(waitMs)
    await installer.forget(cluster, signal)
    clients.drop(poolKey(key))
    if (this.#visits.delete(key.name)) logger.info({ cluster: key.name }, 'connection is gone; cluster forgotten')
    return done
  }

  /** First for everyone who looks: nothing of the cluster is shown any more. A repeat is free. */
  async #forget(cluster: ClusterName): Promise<void> {
    this.#options.sources?.leave(cluster)
    this.#options.pulses.leave(cluster)
    await this.#options.ingester.remove(cluster)
  }

  async #look(object: KubeObject, visit: Visit, signal: AbortSignal): Promise<Outcome> {
    const { defaults, clock, agents } = this.#options
    const cluster = parseClusterName(object.metadata.name)
    const startedAt = clock.now()
    const { origin = '', sequence = 0 } = this.#options.state.cluster(cluster) ?? {}
    const seen = { origin, sequence }
    const { connection, settings, fault } = readConnection(object, defaults, agents !== undefined)
    const endpoint: Endpoint = fault ?? (await this.#endpoint(connection, signal))
    if ('access' in endpoint) visit.access = endpoint.access
    const refusal = agents?.facts(cluster)?.connected ? undefined : await this.#options.whyRefused?.(cluster)
    const choice = this.#decide(cluster, connection, settings, { visit, refusal: refusal ?? '' })
    const trouble = this.#options.pulses.takeTrouble(cluster)
    const look: Look = { object, connection, cluster, settings, choice, endpoint, startedAt, seen, trouble }
    const unknown = await this.#connect(look, signal)
    if (unknown) {
      await this.#write(look, unknown, undefined)
      return againAfter(nextRoundMs(settings.facts.intervalMs, true, 0, defaults.retryMs))
    }
    if (fault || choice.by === 'hub') return this.#pull(look, visit, signal)
    return this.#leaveToAgent(look, visit, signal)
  }

  #decide(
    cluster: ClusterName,
    { spec }: ClusterConnection,
    { facts }: Settings,
    { visit, refusal }: { readonly visit: Visit; readonly refusal: string },
  ): CollectorChoice {
    const { agents, state, clock } = this.#options
    const now = clock.now()
    const known = state.cluster(cluster)
    const isDelivering = agents?.isDelivering(cluster) === true
    const agent = agents?.facts(cluster)
    // A stream that fell silent is away since its last sign of life, not since that was noticed; of a former life of the hub since this one began.
    const away = agent ?? (known?.agent?.reason === HUB_STARTED ? known.agent : undefined)
    const lastSeen = away && !away.connected ? Math.min(away.since, now) : now
    // One that a hub waits for which agents cannot reach yet has its time from later on.
    const since = away?.reason === HUB_STARTED ? lastSeen : (visit.awaySince ?? lastSeen)
    visit.awaySince = isDelivering ? undefined : Math.min(since, now)
    visit.lastPush = isDelivering ? newestPush(visit.lastPush, known, now) : undefined
    const choice = chooseCollector({
      mode: spec.collectionMode ?? 'pull',
      receivesAgents: agents !== undefined,
      isReachable: isReachable(spec),
      isDelivering,
      facts: agent,
      lastBatchAt: visit.lastPush?.at,
      lastReadAt: (known?.status.before ?? known?.status)?.checkedAt ?? undefined,
      hadAgent: agent !== undefined || Boolean(known?.agent),
      formerAbsence: absenceOf(known?.agent),
      refusal,
      awaySince: visit.awaySince,
      patienceMs: patienceOf(agent, known?.agent),
      isPulling: visit.isPulling,
      pulledAt: visit.pulledAt,
      intervalMs: facts.intervalMs,
      tokenSharedWith: this.#options.tokenSharedWith?.(cluster) ?? [],
      now,
    })
    visit.isSilent = isDelivering && choice.by === 'hub'
    const goesOn = choice.by === 'hub' || (choice.by === 'wait' && visit.isPulling)
    visit.isPulling = goesOn && choice.condition !== undefined
    return choice
  }

  /** Reads the cluster from here. */
  async #pull(look: Look, visit: Visit, signal: AbortSignal): Promise<Outcome> {
    const { sources, clock, onRound, defaults } = this.#options
    const { cluster, settings, endpoint, object, choice, startedAt, trouble } = look
    const { intervalMs } = settings.facts
    visit.isReading = true
    if (!('access' in endpoint)) void visit.rounds.leave()
    // Delivered meanwhile: whoever asked before the flag was up asked in vain.
    this.agentChanged(cluster)
    const read = !('access' in endpoint)
      ? { batch: failed(cluster, startedAt, endpoint.end), end: endpoint.end }
      : trouble
        ? ended(silentRound({ cluster, source: 'pull' }, startedAt, trouble))
        : await this.#sayingConnecting(look, () =>
            this.#collect(object.metadata, cluster, endpoint.access, settings.facts, visit, signal),
          )
    const { batch: unnumbered, end } = withAbsence(read, choice)
    signal.throwIfAborted()
    const { batch, refusal } = await this.#keep(look, unnumbered, visit, signal)
    visit.isReading = false
    // Nodes and totals come before rows.
    sources?.read(cluster)
    if (end.kind === 'collected' && !refusal) visit.pulledAt = startedAt
    // Why a cluster cannot be read matters more than that the hub could not note it.
    const shownEnd = end.kind === 'failed' ? end : (refusal ?? end)
    const installed = await this.#install(look, end.kind === 'collected', signal)
    await this.#write(look, shownEnd, batch, installed)
    const tookMs = elapsedMs(clock, startedAt)
    onRound(shownEnd.kind === 'collected' ? 'collected' : 'failed', tookMs)
    const isFailed = shownEnd.kind === 'failed' || refusal !== undefined
    return againAfter(nextRoundMs(intervalMs, isFailed, tookMs, defaults.retryMs))
  }

  /** Says so where the first look takes long: most say more in a moment, and a status costs as much as a look. */
  async #sayingConnecting<T>(look: Look, work: () => Promise<T>): Promise<T> {
    const over = new AbortController()
    const said = this.#options.clock.sleep(CONNECTING_AFTER_MS, over.signal).then(async () => {
      if (!over.signal.aborted) await this.#write(look, { kind: 'connecting' }, undefined)
    })
    try {
      return await work()
    } finally {
      over.abort(OVER)
      await said
    }
  }

  /** Nothing is read from here: an agent does, or may in a moment, or nobody can. */
  async #leaveToAgent(look: Look, visit: Visit, signal: AbortSignal): Promise<Outcome> {
    const { sources, pulses, clock } = this.#options
    const { cluster, choice, startedAt } = look
    if (!visit.isPulling) {
      sources?.leave(cluster)
      void visit.rounds.leave()
    }
    pulses.leave(cluster)
    let againMs = choice.againMs
    if (choice.by === 'agent') {
      const isCurrent = await this.#pushed(cluster, signal)
      if (!isCurrent) againMs = Math.min(againMs, LOOK_AGAIN_MS)
      const installed = await this.#install(look, true, signal)
      againMs = Math.min(againMs, installed.againMs ?? againMs)
      await this.#write(look, { kind: 'delivered' }, undefined, installed)
    } else if (choice.isLost) {
      const message = `${choice.absence}; the hub has no way to this cluster itself`
      const end: Failed = { kind: 'failed', blame: 'agent', code: 'agent_away', message }
      await this.#unread(look, end, signal)
      await this.#write(look, end, undefined)
    } else if (choice.isBack) {
      await this.#unread(look, undefined, signal)
      await this.#write(look, { kind: 'delivered' }, undefined)
    } else {
      await this.#write(look, { kind: 'waiting' }, undefined)
    }
    return againAfter(Math.max(againMs - elapsedMs(clock, startedAt), 1))
  }

  /**
   * The agent's objects on the member, where that is due: brought there, kept as they should be, or taken away. What it says
   * of the agent is for the status.
   */
  async #install(look: Look, answers: boolean, signal: AbortSignal): Promise<Installed> {
    const { installer, state, clock } = this.#options
    const { object, connection, cluster, settings, choice, endpoint } = look
    const wants = connection.spec.collectionMode === 'push' && this.#options.agents !== undefined
    // What does not answer a read will not take a write.
    if (!answers) return {}
    return installer.settle({
      object,
      connection,
      facts: settings.facts,
      wants,
      isMissing: choice.deploy,
      isRefused: [...(state.cluster(cluster)?.tables.values() ?? [])].some(({ outcome }) => outcome === 'forbidden'),
      condition: choice.condition,
      absence: choice.absence,
      server: 'access' in endpoint ? endpoint.access.server : undefined,
      client: () => this.#client(object, signal),
      now: clock.now(),
      signal,
    })
  }

  /** The client of a cluster as its connection says now; undefined where there is none, or no way in. */
  async clientOf(cluster: ClusterName, signal: AbortSignal): Promise<KubeClient | undefined> {
    const object = this.#options.connections.get({ name: cluster, namespace: this.#options.namespace })
    return object && !object.metadata.deletionTimestamp ? this.#client(object, signal) : undefined
  }

  /** A client of the member, as the connection says or last said; undefined where it never said a way that works. */
  async #client(object: KubeObject, signal: AbortSignal): Promise<KubeClient | undefined> {
    const { clients, defaults } = this.#options
    const { connection, settings, fault } = readConnection(object, defaults, true)
    if (fault) return undefined
    const endpoint = await this.#endpoint(connection, signal)
    const access = 'access' in endpoint ? endpoint.access : this.#visits.get(object.metadata.name)?.access
    if (!access) return undefined
    return clients.get(poolKey(object.metadata), access, { timeoutMs: settings.facts.timeoutMs }, signal)
  }

  /**
   * Waits a little until state holds what the agent sent, so that the status does not speak of the time before. A first batch
   * that was collected before the last pull never gets there; the next one does.
   */
  async #pushed(cluster: ClusterName, signal: AbortSignal): Promise<boolean> {
    const { state, clock } = this.#options
    const isThere = (known: ClusterState | undefined) =>
      known?.source === 'push' && known.status.checkedAt !== null && !known.status.before
    return untilState(() => isThere(state.cluster(cluster)), clock, signal)
  }

  /** What the hub read goes in as a batch. That it could not read what an agent should read is none: it saw nothing. */
  async #keep(look: Look, unnumbered: Batch, visit: Visit, signal: AbortSignal): Promise<Kept> {
    const { failure, parts } = unnumbered
    if (!failure || parts.length > 0 || !look.choice.condition) return this.#accept(unnumbered, visit, signal)
    return { batch: undefined, refusal: await this.#unread(look, failure, signal) }
  }

  /**
   * Says of the cluster that nobody reads it, or takes that back. Not as a round: what its agent sends, whenever it collected that,
   * must not be older than it. @returns why the hub could not note it
   */
  async #unread({ cluster, seen }: Look, because: Batch['failure'], signal: AbortSignal): Promise<Failed | undefined> {
    const { state, ingester, clock } = this.#options
    const known = state.cluster(cluster)
    if (!because && !known?.status.before) return undefined
    try {
      await ingester.unread(cluster, seen, because && { code: because.code, message: because.message })
    } catch (error) {
      signal.throwIfAborted()
      return this.#ownFault(cluster, 'the hub could not note that nobody reads this cluster: ', error)
    }
    await untilState(() => state.cluster(cluster)?.version !== known?.version, clock, signal)
    return undefined
  }

  /** Makes the hub know the cluster. @returns why it could not note it */
  async #connect({ object, cluster, settings, endpoint }: Look, signal: AbortSignal): Promise<Failed | undefined> {
    try {
      await this.#note(keyOf(object), askedAt(settings, endpoint))
      return undefined
    } catch (error) {
      signal.throwIfAborted()
      return this.#ownFault(cluster, 'the hub could not note this cluster: ', error)
    }
  }

  /** The connection as it is declared now; undefined where it is gone, or going. */
  #declared(key: ObjectKey): KubeObject | undefined {
    const object = this.#options.connections.get(key)
    return object?.metadata.deletionTimestamp ? undefined : object
  }

  /**
   * Hands in what the connection says, as it is in this very turn: a look began with an older one, and of two that hand in, the later
   * must not say what was before.
   * @param asked where the cluster is asked; default: where it was, as that takes its Secret
   */
  async #note(key: ObjectKey, asked?: AskedAt): Promise<void> {
    const { defaults, agents, state, ingester } = this.#options
    const object = this.#declared(key)
    if (!object) return
    const cluster = parseClusterName(key.name)
    const { facts } = readConnection(object, defaults, agents !== undefined).settings
    const { endpoint, insecureSkipTlsVerify } = asked ?? state.cluster(cluster)?.connection ?? facts
    const owner = this.#owner !== undefined && { owner: this.#owner }
    const read = this.#visits.get(cluster)?.rounds.polled() ?? []
    const polled = read.length > 0 && { polled: read }
    await ingester.connect(cluster, { ...facts, ...owner, ...polled, endpoint, insecureSkipTlsVerify })
  }

  #ownFault(cluster: ClusterName, prefix: string, error: unknown): Failed {
    const err = FleetError.from(error)
    this.#options.logger.error({ cluster, err }, 'a round could not be kept')
    return { kind: 'failed', blame: 'hub', code: err.code, message: `${prefix}${err.message}`.slice(0, 4000) }
  }

  #endpoint(connection: ClusterConnection, signal: AbortSignal): Promise<Endpoint> {
    const { hub, secrets, namespace, ledger, localKubeconfigs } = this.#options
    return resolveEndpoint(
      connection,
      {
        namespace,
        ledger,
        secret: async (key) => (key.namespace === namespace ? secrets.get(key) : hub.get(accessSecrets, key, signal)),
        ...(localKubeconfigs && { localKubeconfigs }),
      },
      signal,
    )
  }

  async #collect(
    metadata: ObjectKey,
    cluster: ClusterName,
    access: ClusterAccess,
    times: Pick<Settings['facts'], 'intervalMs' | 'timeoutMs'>,
    visit: Visit,
    signal: AbortSignal,
  ): Promise<{ batch: Batch; end: RoundEnd }> {
    const { clients, clock, logger, pulses } = this.#options
    const startedAt = clock.now()
    let kube: KubeClient
    try {
      kube = await clients.get(poolKey(metadata), access, { timeoutMs: times.timeoutMs }, signal)
    } catch (error) {
      signal.throwIfAborted()
      const end = { kind: 'failed' as const, blame: 'credentials' as const, ...failureOf(CLIENT, error) }
      return { batch: failed(cluster, startedAt, end), end }
    }
    const { operatorScanIntervalMs } = this.#options.defaults
    const rows = this.#options.rows?.(cluster) ?? []
    const now = { kube, times: { ...times, operatorScanIntervalMs }, rows, at: startedAt, signal }
    const batch = await visit.rounds.collect(now)
    if (batch.failure) logger.debug({ cluster, failure: batch.failure }, 'round failed')
    else pulses.follow(cluster, kube)
    return ended(batch)
  }

  /**
   * Numbers the batch and hands it in, in one moment: of two batches the one that comes later must have the higher number.
   * @returns why the hub could not keep it; then what it knows stays, and everything is read anew
   */
  async #accept(unnumbered: Batch, visit: Visit, signal: AbortSignal): Promise<Kept> {
    const { ingester, logger } = this.#options
    const [round = unnumbered, ...steps] = batchesOf(unnumbered)
    const batch = { ...round, sequence: ingester.nextSequence(round.cluster) }
    try {
      await ingester.accept({ batch }, signal)
    } catch (error) {
      signal.throwIfAborted()
      const refusal = this.#ownFault(batch.cluster, 'the cluster was read, but the hub could not keep it: ', error)
      return { batch: undefined, refusal }
    }
    visit.rounds.kept(batch, batch.collectedAt)
    for (const step of steps) {
      try {
        await ingester.accept({ batch: { ...step, sequence: ingester.nextSequence(step.cluster) } }, signal)
        visit.rounds.kept(step, step.collectedAt)
      } catch (error) {
        signal.throwIfAborted()
        // The next round reads them again.
        logger.warn({ cluster: step.cluster, err: FleetError.from(error) }, 'rows of a round could not be kept')
      }
    }
    visit.rounds.handedIn()
    await this.#settled(batch, signal)
    return { batch, refusal: undefined }
  }

  /** Waits a little until the batch is in state, so that the status can say what the hub makes of it. */
  async #settled({ cluster, sequence }: Batch, signal: AbortSignal): Promise<void> {
    const { state, clock } = this.#options
    await untilState(() => (state.cluster(cluster)?.sequence ?? 0) >= sequence, clock, signal)
  }

  #polled(cluster: ClusterName, { by }: CollectorChoice): readonly string[] {
    if (by === 'agent') return this.#options.agents?.facts(cluster)?.polled ?? []
    return this.#visits.get(cluster)?.rounds.polled() ?? []
  }

  /** Writes what differs from the stored status. A failure to do so is logged: the next round says it again. */
  async #write(look: Look, end: RoundEnd, batch: Batch | undefined, installed: Installed = {}): Promise<void> {
    const { hub, state, connections, agents, ledger, clock, logger } = this.#options
    const { object, cluster, settings, endpoint, choice } = look
    const key = keyOf(object)
    const known = state.cluster(cluster)
    const stored = (connections.get(key) ?? object) as unknown as Partial<ClusterConnection> // served under our schema
    if (end.kind === 'connecting' && (stored.status?.phase || choice.by !== 'hub')) return
    const isCurrent = end.kind === 'delivered' || (batch && known && known.sequence >= batch.sequence)
    const isAccepted = end.kind === 'collected' || installed.accepted === true
    const status = statusPatch({
      stored: stored.status,
      generation: object.metadata.generation,
      end,
      state: isCurrent ? known : undefined,
      tls:
        'access' in endpoint ? tlsOf(endpoint.access) : settings.facts.insecureSkipTlsVerify ? 'skipped' : 'verified',
      adjustments: settings.adjustments,
      collector: choice.condition && (installed.condition ?? choice.condition),
      leftAgent: installed.left,
      held: 'end' in endpoint ? endpoint.held : undefined,
      credentials: isAccepted && 'access' in endpoint ? ledger.accept(endpoint.credentials) : undefined,
      buffer: installed.buffer,
      polled: this.#polled(cluster, choice),
      agent: agents?.facts(cluster),
      isDelivering: choice.by === 'agent',
      owner: this.#owner,
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

/** Waits a little for what was accepted to be in state. @returns whether it is */
async function untilState(isThere: () => boolean, clock: Clock, signal: AbortSignal): Promise<boolean> {
  const until = clock.now() + STATE_PATIENCE_MS
  for (let pauseMs = 2; !signal.aborted; pauseMs = Math.min(pauseMs * 2, 200)) {
    if (isThere()) return true
    if (clock.now() >= until) return false
    await clock.sleep(pauseMs, signal)
  }
  return false
}

/** How long an agent may be away, ms. @param former as state has it: of a former life of the hub, where this one knows none */
function patienceOf(agent: AgentFacts | undefined, former: AgentFacts | null | undefined): number {
  if (agent) return patienceMs(agent)
  return former?.connected ? AGENTS_RETURN_MS : patienceMs(former ?? NEVER_CAME)
}
const NEVER_CAME = { reason: '' }

/** Why it is away, but for the sake of the hub; '' where it is not. */
const absenceOf = (former: AgentFacts | null | undefined): string =>
  !former || former.connected || isHubsAbsence(former) || former.reason === HUB_RESTARTED ? '' : former.reason

/** When a batch of the living stream last arrived; from its first look on, as a stream may have begun long before. */
function newestPush(last: Visit['lastPush'], known: ClusterState | undefined, now: number): Visit['lastPush'] {
  const { origin = '', sequence = 0, source } = known ?? {}
  const isNew = source === 'push' && (origin !== last?.origin || sequence !== last.sequence)
  return !last || isNew ? { origin, sequence, at: now } : last
}

/** What a connection says only together with its Secret. */
type AskedAt = Pick<ConnectionFacts, 'endpoint' | 'insecureSkipTlsVerify'>

/** A kubeconfig has an address of its own; the page must show the one that is really asked. */
function askedAt({ facts }: Settings, endpoint: Endpoint): AskedAt {
  if (!('access' in endpoint)) return facts
  const { access } = endpoint
  return {
    endpoint: facts.endpoint,
    ...addressOf(access, facts.endpoint),
    insecureSkipTlsVerify: tlsOf(access) === 'skipped',
  }
}

/** A cluster that neither the hub nor an agent can read: both reasons count. */
function withAbsence(
  read: { batch: Batch; end: RoundEnd },
  { absence }: CollectorChoice,
): { batch: Batch; end: RoundEnd } {
  const { batch, end } = read
  if (!absence || end.kind !== 'failed') return read
  const message = `${end.message}; ${absence}`.slice(0, 4000)
  return { batch: { ...batch, failure: { code: end.code, message } }, end: { ...end, message } }
}

const keyOf = ({ metadata: { name, namespace } }: KubeObject): ObjectKey => (namespace ? { name, namespace } : { name })
/** As written, where that is what is asked. */
const addressOf = ({ server }: ClusterAccess, written: string) =>
  server === serverOf(written) ? {} : { endpoint: server }
/** Without `allowHttp` the client takes plain HTTP to this machine only. */
function tlsOf({ server, verifyTls, allowHttp }: ClusterAccess): TlsUse {
  if (/^http:/i.test(server)) return allowHttp ? 'skipped' : 'local'
  return verifyTls ? 'verified' : 'skipped'
}

/** Numbered when it is handed in. */
const ended = (batch: Batch): { batch: Batch; end: RoundEnd } => ({
  batch,
  end: batch.failure ? { kind: 'failed', blame: 'cluster', ...batch.failure } : { kind: 'collected', batch },
})

function failed(
  cluster: ClusterName,
  collectedAt: number,
  { code, message }: { readonly code: string; readonly message: string },
): Batch {
  const failure = { code, message: message.slice(0, 4000) }
  return { cluster, sequence: 0, source: 'pull', collectedAt, durationMs: 0, parts: [], failure }
}
