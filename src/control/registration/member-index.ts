import { Informer, lastingTrouble, type Troubled } from '#controller'
import type { KubeClient } from '#kube'
import { type Behind, type Clock, hubAway, type MemberFacts, type MemberReader, type MemberState } from '#model'
import type { Logger } from '#runtime'
import {
  type Authorities,
  certificateLifeOf,
  hasLostAuthority,
  isRevoked,
  lacksAuthority,
  revokedMs,
} from './certificate-life.ts'
import { lostAuthorityWords, noMemberWords, unsignedWords, type Words } from './no-member-words.ts'
import {
  conditionOf,
  type ManagedCluster,
  type ManagedClusterSet,
  managedClusterSets,
  managedClusters,
} from './objects.ts'
import { isInSet } from './set-members.ts'
import { CONDITIONS, TRANSPORT } from './words.ts'

export interface MemberIndexOptions {
  readonly hub: KubeClient
  /** undefined: which CAs the hub has is not known here */
  readonly authorities?: Authorities
  /** undefined: members are judged in this process */
  readonly judgement?: Judgement
  /** whether the hub's API answers; absent: its watches tell */
  readonly pulse?: Troubled
  readonly logger: Logger
  readonly clock: Clock
}

/** Whether some process of the hub says of members whether they are available. */
export interface Judgement {
  /** ms; undefined: one does */
  absentSince(): number | undefined
  /** false: it has not been asked yet */
  isKnown(): boolean
}

/** Members as the hub's objects have them, followed by list and watch, for who shows them. */
export class MemberIndex implements MemberReader, AsyncDisposable {
  readonly #members: Informer<ManagedCluster>
  readonly #sets: Informer<ManagedClusterSet>
  readonly #authorities: Authorities | undefined
  readonly #unsubscribe: (() => void) | undefined
  readonly #judgement: Judgement | undefined
  readonly #told: readonly Troubled[]
  readonly #clock: Clock
  #version = 0
  /** what `behind` said when the version was asked for last */
  #saidBehind = ''
  #made: { readonly version: number; readonly members: ReadonlyMap<string, MemberFacts> } | undefined

  constructor({ hub, logger, clock, authorities, judgement, pulse }: MemberIndexOptions) {
    this.#authorities = authorities
    this.#judgement = judgement
    this.#clock = clock
    this.#members = new Informer({ kube: hub, resource: managedClusters, logger, clock })
    this.#sets = new Informer({ kube: hub, resource: managedClusterSets, logger, clock })
    this.#told = [this.#members, this.#sets, ...(pulse ? [pulse] : [])]
    for (const informer of [this.#members, this.#sets])
      informer.onChange(() => {
        this.#version++
      })
    this.#unsubscribe = authorities?.onChange(() => {
      this.#version++
    })
  }

  /** Does not wait for the hub's API, which may be away for now. */
  start(): void {
    this.#members.start()
    this.#sets.start()
  }

  version(): number {
    const behind = this.behind()?.code ?? ''
    if (behind !== this.#saidBehind) this.#version++
    this.#saidBehind = behind
    return this.#version + (this.isKnown() ? 1 : 0)
  }

  behind(): Behind | undefined {
    const away = hubAway(lastingTrouble(this.#told, this.#clock))
    const since = this.#judgement?.absentSince()
    if (away || since === undefined) return away
    const message = 'no manager of this hub judges members, or its Redis is away: none that is lost since is noticed'
    return { since, code: 'members_not_judged', message }
  }

  isKnown(): boolean {
    return this.#members.isSynced && this.#sets.isSynced && (this.#judgement?.isKnown() ?? true)
  }

  members(): readonly MemberFacts[] {
    return [...this.#byName().values()]
  }

  member(name: string): MemberFacts | undefined {
    return this.#byName().get(name)
  }

  sets(): readonly string[] {
    return this.#sets
      .list()
      .map(({ metadata }) => metadata.name)
      .sort()
  }

  /** Resolves when all are known. @throws the signal's reason */
  async synced(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#members.synced(signal), this.#sets.synced(signal)])
  }

  /** Names of members whose newest certificate is of a CA that the hub has lost; of those that are taken for available, too. */
  ofLostAuthority(): readonly string[] {
    return this.#members
      .list()
      .filter((member) => lacksAuthority(member, this.#authorities))
      .map(({ metadata }) => metadata.name)
      .sort()
  }

  /** Sorted. */
  #byName(): ReadonlyMap<string, MemberFacts> {
    const version = this.version()
    if (this.#made?.version !== version) {
      const sets = this.#sets.list()
      const facts = this.#members.list().map((member) => memberFactsOf(member, sets, this.#authorities))
      const members = new Map(facts.sort((a, b) => (a.name < b.name ? -1 : 1)).map((one) => [one.name, one]))
      this.#made = { version, members }
    }
    return this.#made.members
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#unsubscribe?.()
    await Promise.all([this.#members.stop(), this.#sets.stop()])
  }
}

export function stateOf(member: ManagedCluster): MemberState {
  if (member.metadata.deletionTimestamp) return 'detaching'
  if (isRevoked(member)) return 'revoked'
  const accepted = conditionOf(member, CONDITIONS.accepted)
  if (accepted?.status !== 'True') return accepted ? 'denied' : 'not accepted yet'
  const available = conditionOf(member, CONDITIONS.available)?.status
  if (available === 'True') return 'available'
  if (available === 'False') return 'unreachable'
  // Of one that has just joined nothing was said yet: it was never lost.
  const isJoined = conditionOf(member, CONDITIONS.joined)?.status === 'True'
  return isJoined && available !== undefined ? 'lost' : 'not joined yet'
}

/** As lists show it. @param sets all there are @param authorities undefined: not known */
export function memberFactsOf(
  member: ManagedCluster,
  sets: readonly ManagedClusterSet[],
  authorities?: Authorities,
): MemberFacts {
  const { name, labels = {}, annotations = {}, creationTimestamp } = member.metadata
  const available = conditionOf(member, CONDITIONS.available)
  const accepted = conditionOf(member, CONDITIONS.accepted)
  const clock = conditionOf(member, CONDITIONS.clock)
  // Why it is no member matters more than how it once was.
  const told = accepted?.status === 'True' ? (available ?? accepted) : accepted
  const state = stateOf(member)
  // Who was accepted anew is so only since then, whatever was said of it before.
  const since =
    (state === 'revoked' ? revokedMs(member) : momentOf(member.metadata.deletionTimestamp)) ||
    (state === 'not accepted yet' && momentOf(creationTimestamp)) ||
    (told && Math.max(...[told, accepted].map((one) => momentOf(one?.lastTransitionTime) ?? 0)))
  const lost = hasLostAuthority(member, authorities) ? lostAuthorityWords(member) : undefined
  const fault = state === 'not joined yet' ? authorities?.signingFault?.() : undefined
  const outside = noMemberWords(member, state) ?? lost ?? (fault === undefined ? undefined : unsignedWords(fault))
  const words = outside ?? rivalryIn(member, state, told?.message) ?? told
  const transport = annotations[TRANSPORT]
  return {
    name,
    state,
    accepted: accepted?.status === 'True',
    joined: conditionOf(member, CONDITIONS.joined)?.status === 'True',
    available: available?.status ?? null,
    reason: words?.reason ?? '',
    message: words?.message ?? '',
    since: since || null,
    createdAt: momentOf(creationTimestamp),
    sets: sets
      .filter((set) => isInSet(set, labels))
      .map(({ metadata }) => metadata.name)
      .sort(),
    transport: transport === 'stream' || transport === 'api' ? transport : null,
    kubernetesVersion: member.status?.version?.kubernetes ?? null,
    clockSynced: clock ? clock.status === 'True' : null,
    taints: (member.spec?.taints ?? []).map(({ key, effect }) => `${key}:${effect}`),
    claims: Object.fromEntries((member.status?.clusterClaims ?? []).map((claim) => [claim.name, claim.value])),
    labels,
    capacity: member.status?.capacity ?? {},
    allocatable: member.status?.allocatable ?? {},
    conditions: (member.status?.conditions ?? []).map(({ type, status, reason, message, lastTransitionTime }) => ({
      ...{ type, status, reason, since: momentOf(lastTransitionTime) },
      // The hub forgets the agent of one it threw out: that none is known says nothing then.
      message: outside && type === CONDITIONS.available && status === 'Unknown' ? outside.message : message,
    })),
    certificate: certificateLifeOf(member),
  }
}

/** Of one that is heard, that two agents speak for it matters most: a key may have been stolen. @param told of its availability */
function rivalryIn(member: ManagedCluster, state: MemberState, told = ''): Words | undefined {
  const rivalry = conditionOf(member, CONDITIONS.singleAgent)
  if (rivalry?.status !== 'False' || (state !== 'available' && state !== 'unreachable')) return undefined
  const also = state === 'unreachable' ? `. ${told}` : ''
  return { reason: rivalry.reason, message: `${rivalry.message}${also}` }
}

function momentOf(text: string | undefined): number | null {
  const at = Date.parse(text ?? '')
  return Number.isNaN(at) ? null : at
}
