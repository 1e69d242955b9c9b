import type { Collector } from '#collect'
import type { ClusterConnection } from '#kinds'
import { events, type KubeClient, type KubeObject, throwOwnClose } from '#kube'
import {
  type Clock,
  type ClusterName,
  type ConnectionFacts,
  FleetError,
  minutes,
  parseClusterName,
  seconds,
} from '#model'
import type { Logger } from '#runtime'
import type { NotDurable } from './agent-buffer.ts'
import type { AgentCredentials } from './agent-credentials.ts'
import {
  type DeploymentEnd,
  deployAgent,
  leftOvers,
  removeAgent,
  settingsHash,
  updateRole,
} from './agent-deployment.ts'
import { AGENT_NAME, AGENT_NAMESPACE, type AgentInstall, type AgentSettings, imageOf } from './agent-objects.ts'
import type { RoleGap, SourceReads } from './agent-role.ts'
import { agentSigns, troubleOf } from './agent-trouble.ts'
import type { CollectorCondition } from './choose-collector.ts'
import { connectionResource } from './connection-resource.ts'

export interface AgentInstallerOptions {
  readonly hub: KubeClient
  /** absent: agents are installed by hand only */
  readonly install?: AgentInstall
  readonly credentials?: Pick<AgentCredentials, 'check' | 'issue' | 'revoke'>
  readonly collectors: readonly Collector[]
  /** what MetricSources read now; undefined: that is not known yet. Default: nothing */
  readonly reads?: () => readonly SourceReads[] | undefined
  /** hears what the agent of a cluster may not read though MetricSources ask for it; []: it may read all of it */
  readonly onRoleGaps?: (cluster: ClusterName, gaps: readonly RoleGap[]) => void
  readonly operatorScanIntervalMs: number
  /** members are left as they are: nothing is deployed, kept or removed there */
  readonly readOnly?: boolean
  /** how long a deleted connection waits for its member to answer, ms; default 5 min */
  readonly patienceMs?: number
  readonly clock: Clock
  readonly random: () => number
  readonly logger: Logger
}

export interface Wish {
  readonly object: KubeObject
  readonly connection: ClusterConnection
  readonly facts: ConnectionFacts
  /** an agent is to be there */
  readonly wants: boolean
  /** it is to be there and does not deliver */
  readonly isMissing: boolean
  /** a MetricSource could not be read there for want of a right */
  readonly isRefused: boolean
  /** what is said of it otherwise */
  readonly condition: CollectorCondition | undefined
  /** why it does not deliver; '' where it does */
  readonly absence: string
  /** address of the member's API, as it is really asked; undefined where there is no way */
  readonly server: string | undefined
  readonly client: () => Promise<KubeClient | undefined>
  /** ms since the Unix epoch */
  readonly now: number
  readonly signal: AbortSignal
}

/** What is to be said of the agent in the status, besides whether it is connected. */
export interface Installed {
  readonly condition?: CollectorCondition
  /** the member took the hub's credentials just now */
  readonly accepted?: true
  /** an agent that is not wanted is still on the member: why */
  readonly left?: string
  /** why the agent's buffer ends with its pod; null: it does not; absent: nothing is known of it now */
  readonly buffer?: NotDurable | null
  /** it is to be settled again no later than this, ms */
  readonly againMs?: number
}

/** On connections whose agent the hub has deployed: they are not gone before it is. */
export const AGENT_FINALIZER = 'clusterpulse.io/agent'

/** Beside it: where. A connection that is turned to another cluster must not be spoken for by the agent of the former. */
const AGENT_AT = 'clusterpulse.io/agent-at'

/** The last attempt at one member. */
interface Attempt {
  readonly hash: string
  /** of the hub, as the agent is told it */
  readonly address: string
  /** what MetricSources read then; undefined: it was in a former life of the hub, and is taken for the same */
  readonly reads: string | undefined
  readonly at: number
  /** attempts at this wish since the agent last delivered */
  readonly tries: number
  readonly end: DeploymentEnd
  /** when the role was last given, or could not be, in this life of the hub, ms */
  readonly roleAt?: number
  /** it could not be given in full */
  readonly hasGaps?: boolean
}

/** Who is given the right to grant a role need not wait for the next look for drift. */
const ROLE_AGAIN_MS = seconds(45)
const DRIFT_CHECK_MS = minutes(10)
const MAX_WAIT_MS = minutes(10)
const PATIENCE_MS = minutes(5)

/** Keeps the agents of members as their connections want them, as often as is worth it. Failing changes nothing else. */
export class AgentInstaller {
  readonly #options: AgentInstallerOptions
  readonly #attempts = new Map<string, Attempt>()
  /** removals that failed: when, and how often */
  readonly #removals = new Map<string, { readonly at: number; readonly tries: number; readonly left: string }>()

  constructor(options: AgentInstallerOptions) {
    this.#options = options
  }

  /** Does what is due now: deploys, repairs, or removes. Never throws but for an abort. */
  async settle(wish: Wish): Promise<Installed> {
    const { object, wants } = wish
    if (this.#options.readOnly) return leftAsItIs(wish)
    if (wants) return this.#deploy(wish)
    if (!hasFinalizer(object)) return {}
    return this.#removeUnwanted(wish)
  }

  /**
   * Takes the agent of a deleted connection away and lets the connection go; after a while also where the member does not
   * answer, and then says what is left there.
   * @returns when to try again, ms; undefined: done
   */
  async leave(
    object: KubeObject,
    client: () => Promise<KubeClient | undefined>,
    signal: AbortSignal,
  ): Promise<number | undefined> {
    if (!hasFinalizer(object)) return undefined
    const { clock, logger, readOnly, patienceMs = PATIENCE_MS } = this.#options
    if (readOnly) {
      await this.#warn(object, `the agent of ${object.metadata.name} stays on the member: ${READ_ONLY}`, signal)
      await this.#release(object, signal)
      return undefined
    }
    const { name, deletionTimestamp = '' } = object.metadata
    const cluster = parseClusterName(name)
    const reason = await this.#removed(cluster, client, signal)
    if (reason !== undefined) {
      const waitedMs = clock.now() - (Date.parse(deletionTimestamp) || 0)
      if (reason !== NO_CLIENT && waitedMs < patienceMs) {
        logger.debug({ cluster, reason }, 'the agent of a deleted connection could not be removed yet')
        return Math.min(seconds(5) + waitedMs / 2, seconds(60))
      }
      await this.#warn(
        object,
        `the agent of ${name} could not be removed (${reason}); left on the member: ${leftOvers()}`,
        signal,
      )
    }
    await this.#release(object, signal)
    return undefined
  }

  /** Ends what the agent of a cluster could show, and everything remembered of it. */
  async forget(cluster: ClusterName, signal: AbortSignal): Promise<void> {
    this.#attempts.delete(cluster)
    this.#removals.delete(cluster)
    this.#options.onRoleGaps?.(cluster, [])
    await this.#revoke(cluster, signal)
  }

  async #deploy(wish: Wish): Promise<Installed> {
    const { install, credentials, collectors, logger } = this.#options
    const { object, connection, facts, isMissing, server, now, signal } = wish
    const { name } = object.metadata
    if (!install || !credentials || server === undefined) return {}
    const address = connection.spec.ingesterAddress || install.address
    if (!address) return isMissing ? { condition: NO_ADDRESS } : {}
    // Without the CA it is to trust the agent would be started in vain, and started anew with it.
    if (install.tls && install.caPem?.() === '') return {}
    const settings = { ...this.#settings(connection, facts, install, address), endpoint: server }
    const hash = settingsHash(settings)
    const last = this.#last(hash, settings, wish)
    const { reads: readsNow = () => [] } = this.#options
    const reads = readsNow()
    if (!isDue(last, hash, wish)) {
      if (last && reads && !isMissing) await this.#followReads(wish, settings, last, reads)
      return last ? this.#said(this.#attempts.get(name) ?? last, wish) : {}
    }
    let end: DeploymentEnd
    try {
      const kube = await wish.client()
      if (!kube) return {}
      const cluster = parseClusterName(name)
      const beforeWrite = async () => {
        if (agentAt(object) !== server) await this.#claim(object, cluster, server, signal)
      }
      end = await deployAgent({
        kube,
        cluster,
        settings,
        collectors,
        ...(reads && { reads }),
        credentials,
        ...(install.keepsOriginals && { keepsOriginals: true }),
        beforeWrite,
        now,
        signal,
      })
    } catch (error) {
      signal.throwIfAborted()
      throwOwnClose(error)
      const { code, message } = FleetError.from(error)
      end = { kind: 'failed', code, message }
    }
    // Whoever deletes what was kept wants ours with the next round.
    const before = last?.hash === hash && end.kind !== 'kept' ? last.tries : 0
    const attempt: Attempt = {
      hash,
      address,
      reads: JSON.stringify(reads ?? []),
      at: now,
      tries: isMissing ? before + 1 : 0,
      end,
      roleAt: now,
      hasGaps: end.kind === 'deployed' && end.roleGaps.length > 0,
    }
    this.#attempts.set(name, attempt)
    if (end.kind === 'failed') logger.warn({ cluster: name, reason: end.message }, 'the agent could not be deployed')
    else if (end.kind === 'deployed') {
      if (end.changed) logger.info({ cluster: name, image: end.image }, 'the agent was deployed')
      this.#tellGaps(parseClusterName(name), end.roleGaps)
    } else if (last?.end.kind !== 'kept') logger.info({ cluster: name }, 'a collector of the original is left as it is')
    return { ...(await this.#said(attempt, wish)), ...(end.kind === 'deployed' && { accepted: true }) }
  }

  /** What the last attempt says of the agent now, and of its buffer. */
  async #said(attempt: Attempt, wish: Wish): Promise<Installed> {
    const { end, reads } = attempt
    const known = {
      // What was done in a former life of the hub is not known until the next look.
      ...(end.kind === 'deployed' && reads !== undefined && { buffer: end.notDurable ?? null }),
      ...(lacksRight(attempt, wish) && { againMs: Math.max(roleDueMs(attempt, wish), 1) }),
    }
    if (!wish.isMissing) return known
    return { ...said(end, wish, end.kind === 'deployed' ? await this.#trouble(wish, attempt) : undefined), ...known }
  }

  /** Why the agent that was brought to the member does not start there or come here, as the member shows it. */
  async #trouble({ client, signal }: Wish, { address }: Attempt): Promise<string | undefined> {
    try {
      const kube = await client()
      return kube && troubleOf(await agentSigns(kube, signal), address)
    } catch (error) {
      signal.throwIfAborted()
      throwOwnClose(error)
      return undefined // it cannot be asked now, which its own conditions tell
    }
  }

  /**
   * The agent is well; where it is to read something else than before, its role is renewed, and while it lacks a right that is
   * tried again within a minute. The next look for drift heals what fails else, and what changed while no hub was there to see it.
   */
  async #followReads(wish: Wish, settings: AgentSettings, last: Attempt, reads: readonly SourceReads[]): Promise<void> {
    const { collectors, logger } = this.#options
    const { signal } = wish
    const { name } = wish.object.metadata
    const now = JSON.stringify(reads)
    const isNew = last.reads !== undefined && last.reads !== now
    const isTurn = lacksRight(last, wish) && roleDueMs(last, wish) <= 0
    this.#attempts.set(name, { ...last, reads: now })
    if (!(isNew || isTurn) || !hasFinalizer(wish.object)) return
    this.#attempts.set(name, { ...last, reads: now, roleAt: wish.now })
    try {
      const kube = await wish.client()
      if (!kube) return
      const cluster = parseClusterName(name)
      const gaps = await updateRole({ kube, cluster, settings, collectors, reads, signal })
      this.#attempts.set(name, { ...last, reads: now, roleAt: wish.now, hasGaps: gaps.length > 0 })
      this.#tellGaps(cluster, gaps)
    } catch (error) {
      signal.throwIfAborted()
      logger.warn({ cluster: name, err: FleetError.from(error) }, 'the role of the agent could not be renewed')
    }
  }

  #tellGaps(cluster: ClusterName, gaps: readonly RoleGap[]): void {
    this.#options.onRoleGaps?.(cluster, gaps)
    if (gaps.length === 0) return
    const facts = { cluster, gaps: gaps.map(({ message }) => message) }
    this.#options.logger.warn(facts, 'the agent may not read all that MetricSources ask for')
  }

  #last(hash: string, settings: AgentSettings, wish: Wish): Attempt | undefined {
    const { name } = wish.object.metadata
    const last = this.#attempts.get(name) ?? this.#presumed(hash, settings, wish)
    // It delivers: what it took to get there makes no difference when it goes again.
    if (!last || wish.isMissing || last.tries === 0) return last
    const settled = { ...last, tries: 0 }
    this.#attempts.set(name, settled)
    return settled
  }

  /**
   * An agent that delivers when the hub comes up was deployed by its former life: it is looked at within the time in which
   * drift is, not together with all others.
   */
  #presumed(hash: string, { image, address }: AgentSettings, { object, isMissing, now }: Wish): Attempt | undefined {
    if (isMissing || !hasFinalizer(object)) return undefined
    const at = now - this.#options.random() * DRIFT_CHECK_MS
    const attempt: Attempt = {
      hash,
      address,
      reads: undefined,
      at,
      tries: 0,
      end: { kind: 'deployed', image, changed: false, roleGaps: [] },
    }
    this.#attempts.set(object.metadata.name, attempt)
    return attempt
  }

  #settings(
    { metadata, spec }: ClusterConnection,
    facts: ConnectionFacts,
    install: AgentInstall,
    address: string,
  ): AgentSettings {
    const { tls, serverName, imagePullSecret, bufferVolume, asksKubelets } = install
    const caPem = install.caPem?.()
    return {
      cluster: metadata.name,
      image: imageOf(install, spec.collectorVersion),
      address,
      intervalMs: facts.intervalMs,
      operatorScanIntervalMs: this.#options.operatorScanIntervalMs,
      tls,
      ...(caPem !== undefined && { caPem }),
      ...(serverName !== undefined && { serverName }),
      ...(asksKubelets && { asksKubelets }),
      ...(imagePullSecret !== undefined && { imagePullSecret }),
      ...(bufferVolume && { bufferVolume }),
    }
  }

  /** The mode is pull again: nobody may speak for the cluster any more, and its agent goes. */
  async #removeUnwanted({ object, client, now, signal }: Wish): Promise<Installed> {
    const { name } = object.metadata
    const last = this.#removals.get(name)
    if (last && now - last.at < Math.min(seconds(30) * 2 ** last.tries, MAX_WAIT_MS)) return { left: last.left }
    const cluster = parseClusterName(name)
    const reason = await this.#removed(cluster, client, signal)
    if (reason === undefined) await this.#revoke(cluster, signal)
    const kept = reason === undefined ? await this.#keptFinalizer(object, signal) : undefined
    if (reason === undefined && kept === undefined) {
      this.#removals.delete(name)
      this.#attempts.delete(name)
      this.#options.onRoleGaps?.(cluster, [])
      return {}
    }
    const left =
      reason === undefined
        ? `the agent was removed, but the finalizer ${AGENT_FINALIZER} could not be taken off the connection: ${kept}`
        : `the agent could not be removed from the member: ${reason}`
    this.#removals.set(name, { at: now, tries: (last?.tries ?? 0) + 1, left })
    return { left }
  }

  /** @returns why something is left; undefined: nothing is */
  async #removed(
    cluster: ClusterName,
    client: () => Promise<KubeClient | undefined>,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    try {
      const kube = await client()
      if (!kube) return NO_CLIENT
      const left = await removeAgent(kube, cluster, signal)
      if (left.length > 0) return left.join(', ')
      this.#options.logger.info({ cluster }, 'the agent was removed from the member')
      return undefined
    } catch (error) {
      signal.throwIfAborted()
      throwOwnClose(error)
      return FleetError.from(error).message
    }
  }

  async #revoke(cluster: ClusterName, signal: AbortSignal): Promise<void> {
    try {
      await this.#options.credentials?.revoke(cluster, undefined, signal)
    } catch (error) {
      signal.throwIfAborted()
      // The Secret goes with its connection anyway, and without that connection it proves nothing.
      this.#options.logger.warn({ cluster, err: error }, "an agent's credential could not be deleted")
    }
  }

  /** Writes down that an agent of ours is about to be there, before it is. What an agent elsewhere shows counts no more. */
  async #claim(object: KubeObject, cluster: ClusterName, server: string, signal: AbortSignal): Promise<void> {
    const now = await this.#current(object, signal)
    if (!now || agentAt(now) === server) return
    const before = agentAt(now)
    if (before !== undefined) {
      this.#options.logger.warn(
        { cluster, before, server },
        'the connection leads elsewhere now; the agent there is refused',
      )
      await this.#options.credentials?.revoke(cluster, undefined, signal)
    }
    await this.#mark(now, [...foreignFinalizers(now), AGENT_FINALIZER], server, signal)
  }

  /** @returns why the finalizer stays: thrown, it would end the round, which has read the cluster by then and would read it anew */
  async #keptFinalizer(object: KubeObject, signal: AbortSignal): Promise<string | undefined> {
    try {
      await this.#release(object, signal)
      return undefined
    } catch (error) {
      signal.throwIfAborted()
      return FleetError.from(error).message
    }
  }

  async #release(object: KubeObject, signal: AbortSignal): Promise<void> {
    const now = await this.#current(object, signal)
    if (now && hasFinalizer(now)) await this.#mark(now, foreignFinalizers(now), null, signal)
  }

  /** The object as it is now; undefined where it is gone, or another one has its name. */
  async #current({ metadata }: KubeObject, signal: AbortSignal): Promise<KubeObject | undefined> {
    const now = await this.#options.hub.get(connectionResource, keyOf({ metadata }), signal)
    return now?.metadata.uid === metadata.uid ? now : undefined
  }

  async #mark(now: KubeObject, finalizers: readonly string[], at: string | null, signal: AbortSignal): Promise<void> {
    const { resourceVersion } = now.metadata
    // With the version it was read at: a list that changed in between must not be overwritten.
    const metadata = { finalizers, annotations: { [AGENT_AT]: at }, resourceVersion }
    await this.#options.hub.patch(connectionResource, keyOf(now), { metadata }, { kind: 'merge', signal })
  }

  /** In the log, and as a kube event where the hub may write one. */
  async #warn(object: KubeObject, message: string, signal: AbortSignal): Promise<void> {
    const { hub, clock, logger } = this.#options
    const { name, namespace = '', uid = '' } = object.metadata
    logger.warn({ cluster: name }, message)
    const at = new Date(clock.now()).toISOString().replace(/\.\d+Z$/, 'Z')
    const event = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: `${name.slice(0, 200)}.${clock.now().toString(16)}`, namespace },
      involvedObject: { apiVersion: object.apiVersion ?? '', kind: object.kind ?? '', name, namespace, uid },
      type: 'Warning',
      reason: 'AgentLeftBehind',
      message: message.slice(0, 1000),
      source: { component: 'clusterpulse-hub' },
      firstTimestamp: at,
      lastTimestamp: at,
      count: 1,
    }
    try {
      await hub.create(events, event, signal)
    } catch (error) {
      signal.throwIfAborted()
      logger.debug({ cluster: name, err: error }, 'the warning could not be written as an event')
    }
  }
}

const NO_CLIENT = 'the hub has no access to it any more'

const keyOf = ({ metadata: { name, namespace } }: KubeObject) => (namespace ? { name, namespace } : { name })

/** Where our agent was last brought; undefined where none was. */
const agentAt = (object: KubeObject): string | undefined =>
  hasFinalizer(object) ? (object.metadata.annotations?.[AGENT_AT] ?? '') : undefined

const foreignFinalizers = ({ metadata }: KubeObject): readonly string[] =>
  (metadata.finalizers ?? []).filter((finalizer) => finalizer !== AGENT_FINALIZER)

const hasFinalizer = ({ metadata }: KubeObject): boolean => metadata.finalizers?.includes(AGENT_FINALIZER) === true

const lacksRight = ({ hasGaps }: Attempt, { isRefused }: Wish): boolean => hasGaps === true || isRefused

/** How long until the role is due again, ms. */
const roleDueMs = ({ roleAt }: Attempt, { now }: Wish): number =>
  roleAt === undefined ? 0 : roleAt + ROLE_AGAIN_MS - now

/** Something new is wanted, or the agent is away and the next attempt's time has come, or it is time to look for drift. */
function isDue(last: Attempt | undefined, hash: string, { isMissing, facts, now }: Wish): boolean {
  if (!last || last.hash !== hash) return true
  const waited = now - last.at
  if (!isMissing) return waited >= DRIFT_CHECK_MS
  // A round that begins a little early must not miss its turn.
  return waited + facts.intervalMs / 4 >= Math.min(facts.intervalMs * 2 ** Math.min(last.tries - 1, 20), MAX_WAIT_MS)
}

/** What is said where the hub may change nothing on members. */
function leftAsItIs({ object, wants, isMissing, condition, absence }: Wish): Installed {
  if (!wants) return hasFinalizer(object) ? { left: `the agent stays on the member: ${READ_ONLY}` } : {}
  // That it is not let in says more.
  if (!isMissing || condition?.reason === 'TokenShared') return {}
  const message = `${absence}; none is deployed: ${READ_ONLY}; the hub collects by itself meanwhile`
  return { condition: { status: 'False', reason: 'MembersReadOnly', message } }
}

/** What a deployment adds to why no agent delivers; while one delivers, its failure is worth a word in the log only. */
function said(end: DeploymentEnd, { condition, absence }: Wish, trouble: string | undefined): Installed {
  const meanwhile = 'the hub collects by itself meanwhile'
  if (end.kind === 'failed') {
    const message = `${absence}; it cannot be deployed: ${end.message}; ${meanwhile}`
    return { condition: { status: 'False', reason: 'DeployFailed', message } }
  }
  if (end.kind === 'kept') {
    // That it is not let in says more.
    if (condition?.reason === 'TokenShared') return {}
    const message = `${absence}; a collector of the original is installed there and stays: ${REPLACE}; ${meanwhile}`
    return { condition: { status: 'False', reason: 'OriginalCollector', message } }
  }
  if (trouble !== undefined) {
    const message = `${absence}; it (${end.image}) is deployed and cannot start: ${trouble}; ${meanwhile}`
    return { condition: { status: 'False', reason: 'AgentNotStarting', message } }
  }
  // One that was there before is away for a reason, which says more.
  if (condition?.reason !== 'NoAgent') return {}
  const message = `the agent (${end.image}) is deployed and has not connected yet; ${meanwhile}`
  return { condition: { status: 'False', reason: 'AwaitingAgent', message } }
}

const READ_ONLY = 'this hub changes nothing on members (READ_ONLY_MEMBERS)'
const REPLACE = `to have ours, delete the Deployment ${AGENT_NAMESPACE}/${AGENT_NAME} on the member`

const NO_ADDRESS: CollectorCondition = {
  status: 'False',
  reason: 'NoIngesterAddress',
  message:
    'no agent can be deployed: spec.ingesterAddress is empty and this hub advertises no address; the hub collects by itself meanwhile',
}
