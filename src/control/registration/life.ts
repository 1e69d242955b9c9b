import { isDeepStrictEqual } from 'node:util'
import {
  againAfter,
  type Condition,
  done,
  type Informer,
  type ObjectChange,
  type Outcome,
  type Reconciler,
} from '#controller'
import { isKubeError, type KubeClient, type ObjectKey } from '#kube'
import {
  type AgentFacts,
  type Clock,
  type ClusterState,
  HUB_RESTARTED,
  HUB_STARTED,
  HUB_STOPPED,
  rivalryOf,
  seconds,
  TWO_AGENTS,
} from '#model'
import type { Logger } from '#runtime'
import type { StateReader } from '#state'
import { apiAnswerOf, graceMs, judgeClock, judgeLease, judgeStream, leaseMs, type Verdict } from './availability.ts'
import { type Authorities, isRevoked, lacksAuthority } from './certificate-life.ts'
import type { MassLoss } from './mass-loss.ts'
import { memberFacts } from './member-facts.ts'
import { isLockedOut, lostAuthorityWords } from './no-member-words.ts'
import { clusterLeases, conditionOf, isJudged, type Lease, type ManagedCluster, managedClusters } from './objects.ts'
import type { Presence } from './presence.ts'
import { labelsOf } from './rights.ts'
import { keyOf, type SaidOf, say, versionOf } from './status.ts'
import { taintsOf } from './taints.ts'
import { transportOf } from './transport.ts'
import { CONDITIONS, LEASE_NAME, SKIP_CLOCK_CHECK } from './words.ts'

export interface LifeOptions {
  readonly hub: KubeClient
  readonly members: Pick<Informer<ManagedCluster>, 'get' | 'wrote'>
  readonly leases: Pick<Informer<Lease>, 'get'>
  /** what agents on our stream tell */
  readonly state: Pick<StateReader, 'cluster' | 'availability'>
  readonly massLoss: MassLoss
  /** while nobody watched, nobody was silent */
  readonly presence: Pick<Presence, 'since' | 'forMs'>
  /** by whose clock a lease is old; `member` as in Open Cluster Management */
  readonly leaseClock: 'hub' | 'member'
  /** false: a member on our stream is lost by its lease, too */
  readonly streamLoss: boolean
  readonly clock: Clock
  /** measures how long nothing was seen, however the clock of this machine is set */
  readonly steady: Clock
  readonly random: () => number
  /** undefined: which CAs the hub has is not known */
  readonly authorities?: Authorities | undefined
  readonly logger: Logger
}

/** What the hub saw of a lease. */
interface Seen {
  readonly renewTime: string
  /** by the steady clock, ms */
  readonly seenAt: number
  /** the member's clock minus ours, where it was seen to be renewed; undefined: it was there when we began to look */
  readonly offsetMs: number | undefined
}

const LOOK_AGAIN_MS = seconds(5)
const LEASE_GRID_MS = seconds(1)

/** Says how members live: available or not, by lease or stream; whose clock is wrong; what they have; and taints those that are not there. */
export class LifeReconciler implements Reconciler {
  readonly name = 'life'
  readonly #options: LifeOptions
  readonly #seen = new Map<string, Seen>()
  /** when the lease of a member on our stream is to be written next */
  readonly #leaseDue = new Map<string, number>()
  /** members whose stream ended then, and when that was seen, by the steady clock */
  readonly #away = new Map<string, { readonly since: number; readonly seenAt: number }>()

  constructor(options: LifeOptions) {
    this.#options = options
  }

  /** @returns whether the member is to be looked at for it */
  saw(change: ObjectChange<Lease>): boolean {
    const cluster = change.key.namespace ?? ''
    if (change.kind === 'deleted') return this.#seen.delete(cluster)
    const offsetMs = this.#note(cluster, change.object, change.kind === 'added')
    const member = this.#options.members.get({ name: cluster })
    if (offsetMs === undefined || !member) return false
    // Nothing waits for a renewal but the clock: when the lease is old is looked at by time.
    return conditionOf(member, CONDITIONS.clock)?.status !== judgeClock(offsetMs, graceOf(member)).status
  }

  /** @returns how far the clock was off, where it was seen to be renewed */
  #note(cluster: string, lease: Lease, isFirst: boolean): number | undefined {
    const renewTime = lease.spec?.renewTime ?? ''
    const known = this.#seen.get(cluster)
    if (known?.renewTime === renewTime) return undefined
    const now = this.#options.clock.now()
    const written = Date.parse(renewTime)
    // One that was there already was renewed at any time before; of the future it is wrong whenever that was.
    const isTelling = !Number.isNaN(written) && (!isFirst || known !== undefined || written > now)
    const offsetMs = isTelling ? written - now : undefined
    const agoMs = this.#options.leaseClock === 'member' && !Number.isNaN(written) ? now - written : 0
    this.#seen.set(cluster, { renewTime, seenAt: this.#options.steady.now() - agoMs, offsetMs })
    return offsetMs
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    const member = this.#options.members.get(key)
    if (!member) {
      this.#seen.delete(key.name)
      this.#leaseDue.delete(key.name)
      this.#away.delete(key.name)
      return done
    }
    // Nothing is said of one that nobody decided on; that nothing may be placed there follows of it.
    if (!isJudged(member)) return this.#settle(member, [], {}, signal)
    const { state } = this.#options
    const known = state.cluster(key.name)
    if (transportOf(member, Boolean(known?.agent)) === 'api') return this.#byLease(member, signal)
    // What is not read, or may be old, says nothing of any member.
    if (state.availability().state !== 'available') return againAfter(LOOK_AGAIN_MS)
    return this.#byStream(member, known, signal)
  }

  async #byLease(member: ManagedCluster, signal: AbortSignal): Promise<Outcome> {
    const { leases, massLoss } = this.#options
    const { name, deletionTimestamp } = member.metadata
    const isDeleting = deletionTimestamp !== undefined
    const lease = leases.get({ name: LEASE_NAME, namespace: name })
    if (!lease && !isDeleting) {
      if (conditionOf(member, CONDITIONS.accepted)?.status !== 'True') return this.#settle(member, [], {}, signal)
      const isMade = await this.#makeLease(member, signal)
      return this.#settle(member, [], {}, signal, isMade ? graceOf(member) : LOOK_AGAIN_MS)
    }
    if (lease && !this.#seen.has(name)) this.#note(name, lease, true)
    let verdict = this.#judge(member, isDeleting)
    // A watch that stands still must not make a member look dead: one look of its own.
    if (verdict.said && lease && !isRevoked(member) && (await this.#lookAgain(name, signal)))
      verdict = this.#judge(member, isDeleting)
    if (verdict.said && isWanted(member)) massLoss.lost(name)
    const offsetMs = this.#seen.get(name)?.offsetMs
    const said = [...this.#ofAvailable(member, verdict), ...ofClock(member, offsetMs)]
    return this.#settle(member, said, {}, signal, verdict.againMs)
  }

  #judge(member: ManagedCluster, isDeleting: boolean): Verdict {
    const { presence, leaseClock } = this.#options
    const seen = this.#seen.get(member.metadata.name)
    // While the hub stood still nobody could renew anything that it would have seen.
    const from = leaseClock === 'hub' ? presence.since : 0
    return judgeLease({
      lease: seen && { seenAt: Math.max(seen.seenAt, from) },
      isDeleting,
      isRevoked: isRevoked(member),
      graceMs: graceOf(member),
      stored: conditionOf(member, CONDITIONS.available)?.status,
      now: this.#options.steady.now(),
    })
  }

  /** @returns whether it was renewed after all */
  async #lookAgain(cluster: string, signal: AbortSignal): Promise<boolean> {
    const { hub, steady } = this.#options
    try {
      const lease = await hub.get(clusterLeases, { name: LEASE_NAME, namespace: cluster }, signal)
      return lease !== undefined && this.#note(cluster, lease, false) !== undefined
    } catch (error) {
      // Where the hub's own API is away, no agent can renew anything: the member has its whole grace again.
      const known = this.#seen.get(cluster)
      if (known && !signal.aborted) this.#seen.set(cluster, { ...known, seenAt: steady.now() })
      throw error
    }
  }

  async #byStream(member: ManagedCluster, state: ClusterState | undefined, signal: AbortSignal): Promise<Outcome> {
    const { massLoss, presence, clock, streamLoss } = this.#options
    const agent = state?.agent ?? undefined
    const now = clock.now()
    const verdict = judgeStream({
      sign: agent,
      api: state && apiAnswerOf(state),
      stored: conditionOf(member, CONDITIONS.available)?.status,
      ...(!streamLoss && { lostAfterMs: graceOf(member) }),
      watchedMs: presence.forMs(),
      awayMs: this.#awayMs(member.metadata.name, agent),
      now,
    })
    if (verdict.said?.status === 'Unknown' && isWanted(member)) massLoss.lost(member.metadata.name)
    if (!agent?.connected || !state) {
      const holdMs = agent ? holdMsOf(agent, { returnMs: massLoss.returnMs, graceMs: graceOf(member), now }) : 0
      return this.#settle(member, this.#ofAvailable(member, verdict), {}, signal, verdict.againMs, holdMs)
    }
    const leaseMs = await this.#renewLease(member, signal)
    const said = [
      joined,
      ...this.#ofAvailable(member, verdict),
      ...ofClock(member, agent.clockOffsetMs),
      ...ofAgents(member, agent),
    ]
    return this.#settle(member, said, newIn(member, memberFacts(state, member.status?.clusterClaims)), signal, leaseMs)
  }

  #awayMs(cluster: string, agent: AgentFacts | undefined): number {
    if (!agent || agent.connected) {
      this.#away.delete(cluster)
      return 0
    }
    const now = this.#options.steady.now()
    const known = this.#away.get(cluster)
    if (known?.since === agent.since) return now - known.seenAt
    this.#away.set(cluster, { since: agent.since, seenAt: now })
    return 0
  }

  /** One whose certificate counts no more cannot come back by itself: that is why it is away, for as long as that is so. */
  #ofAvailable(member: ManagedCluster, { said }: Verdict): readonly SaidOf[] {
    const type = CONDITIONS.available
    const isLost = lacksAuthority(member, this.#options.authorities)
    const { message } = lostAuthorityWords(member)
    if (said) return [{ type, ...said, ...(isLost && said.status === 'Unknown' && { message }) }]
    const stored = conditionOf(member, type)
    if (stored?.status !== 'Unknown' || isLost === undefined || isLost === isLockedOut(stored.message)) return []
    const { reason = '' } = stored
    return [{ type, status: 'Unknown', reason, message: isLost ? message : 'The agent of the cluster is away.' }]
  }

  /** Writes what differs, then the taints that follow. @param holdMs a loss that it shares with others taints it only then */
  async #settle(
    member: ManagedCluster,
    said: readonly SaidOf[],
    fields: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
    againMs?: number,
    holdMs = 0,
  ): Promise<Outcome> {
    const { hub, members, clock, massLoss } = this.#options
    const now = clock.now()
    const written = await say(hub, managedClusters, member, { to: members, said, fields, now, signal })
    const available = conditionOf(written, CONDITIONS.available)
    // Only who is lost may be back in a moment; of one that never came, or says itself what it lacks, nothing is waited for.
    const pauseMs = available?.status === 'Unknown' ? Math.max(massLoss.pauseMs(), calmMs(available, now), holdMs) : 0
    if (!written.metadata.deletionTimestamp) {
      const taints = taintsOf(written.spec?.taints ?? [], available?.status, {
        mayAdd: pauseMs === 0,
        timeAdded: rfc3339(now),
      })
      const patch = { metadata: versionOf(written), spec: { taints } }
      if (taints) members.wrote(await hub.patch(managedClusters, keyOf(written), patch, { kind: 'merge', signal }))
    }
    const waits = [againMs, ...(pauseMs > 0 ? [pauseMs] : [])].filter((ms) => ms !== undefined)
    return waits.length > 0 ? againAfter(Math.max(1, Math.min(...waits))) : done
  }

  /** In the name of a member on our stream, at most once per heartbeat. @returns in how many ms it is due again */
  async #renewLease(member: ManagedCluster, signal: AbortSignal): Promise<number> {
    const { hub, clock, random } = this.#options
    const { name, deletionTimestamp } = member.metadata
    const everyMs = leaseMs(member.spec?.leaseDurationSeconds)
    const now = clock.now()
    const known = this.#leaseDue.get(name) ?? now
    // One that was noted by a clock that was ahead, and was set back since, is due.
    const due = known - now > everyMs * 1.25 + LEASE_GRID_MS ? now : known
    if (deletionTimestamp || due > now) return Math.min(Math.max(due - now, 1), everyMs * 1.25)
    // Due in whole seconds: those of one second share a write to disk.
    const waitMs = Math.ceil((now + everyMs * (1 + random() * 0.25)) / LEASE_GRID_MS) * LEASE_GRID_MS - now
    try {
      const spec = { renewTime: microTime(now) }
      await hub.patch(clusterLeases, { name: LEASE_NAME, namespace: name }, { spec }, { kind: 'merge', signal })
    } catch (error) {
      if (!isKubeError(error, 'not_found')) throw error
      if (!(await this.#makeLease(member, signal))) return LOOK_AGAIN_MS
    }
    this.#leaseDue.set(name, now + waitMs)
    return waitMs
  }

  /** @returns false: its namespace is not there yet */
  async #makeLease(member: ManagedCluster, signal: AbortSignal): Promise<boolean> {
    const { hub, clock } = this.#options
    const { name } = member.metadata
    const lease = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: LEASE_NAME, namespace: name, labels: labelsOf(name) },
      spec: {
        holderIdentity: LEASE_NAME,
        leaseDurationSeconds: leaseMs(member.spec?.leaseDurationSeconds) / 1000,
        renewTime: microTime(clock.now()),
      },
    }
    try {
      await hub.create(clusterLeases, lease, signal)
      return true
    } catch (error) {
      if (isKubeError(error, 'already_exists')) return true
      // The namespace is about to come, or to go.
      if (isKubeError(error, 'not_found') || (isKubeError(error) && error.apiMessage?.includes('being terminated')))
        return false
      throw error
    }
  }
}

/** Whether it is one of many that are lost together shows in a moment: until then it is not tainted. */
const TOGETHER_MS = seconds(3)
const calmMs = ({ lastTransitionTime }: Condition, now: number): number =>
  leftOf(TOGETHER_MS, Date.parse(lastTransitionTime), now)

/**
 * Where the process that serves agents was away, and this one was not. As long as it is, nobody renews the lease of the member:
 * after its grace the member is as good as lost.
 */
function holdMsOf(
  { reason, since }: Pick<AgentFacts, 'reason' | 'since'>,
  { returnMs, graceMs, now }: { readonly returnMs: number; readonly graceMs: number; readonly now: number },
): number {
  if (reason === HUB_STOPPED) return leftOf(Math.max(returnMs, graceMs), since, now)
  return reason === HUB_STARTED || reason === HUB_RESTARTED ? leftOf(returnMs, since, now) : 0
}

/** Of a span since then, at most all of it. */
const leftOf = (spanMs: number, since: number, now: number): number =>
  Math.min(spanMs, Math.max(0, since + spanMs - now))

/** Of one that was denied, revoked or detached nobody wonders where it is. */
const isWanted = (member: ManagedCluster): boolean =>
  member.spec?.hubAcceptsClient === true && member.metadata.deletionTimestamp === undefined && !isRevoked(member)

const graceOf = (member: ManagedCluster): number => graceMs(member.spec?.leaseDurationSeconds)

const joined: SaidOf = {
  type: CONDITIONS.joined,
  status: 'True',
  reason: 'ManagedClusterJoined',
  message: 'Managed cluster joined',
}

function ofAgents(member: ManagedCluster, agent: AgentFacts): readonly SaidOf[] {
  const type = CONDITIONS.singleAgent
  const rivalry = rivalryOf(agent)
  if (rivalry !== '') return [{ type, status: 'False', reason: TWO_AGENTS, message: rivalry }]
  const message = 'One agent speaks for the cluster.'
  return conditionOf(member, type) ? [{ type, status: 'True', reason: 'OneAgent', message }] : []
}

function ofClock(member: ManagedCluster, offsetMs: number | undefined): readonly SaidOf[] {
  if (offsetMs === undefined || member.metadata.annotations?.[SKIP_CLOCK_CHECK] === 'true') return []
  return [{ type: CONDITIONS.clock, ...judgeClock(offsetMs, graceOf(member)) }]
}

/** The facts that the status does not say yet. */
function newIn(member: ManagedCluster, facts: ReturnType<typeof memberFacts>): Readonly<Record<string, unknown>> {
  const stored = member.status ?? {}
  return Object.fromEntries(
    Object.entries(facts).filter(([field, value]) => {
      const known = stored[field as keyof typeof facts]
      // Amounts of other resources, which somebody else wrote, stay.
      const overlaid =
        Array.isArray(value) || typeof value !== 'object' ? value : { ...(known as object | undefined), ...value }
      return !isDeepStrictEqual(overlaid, known)
    }),
  )
}

const rfc3339 = (at: number): string => `${new Date(at).toISOString().slice(0, 19)}Z`
/** metav1.MicroTime */
const microTime = (at: number): string => new Date(at).toISOString().replace('Z', '000Z')
