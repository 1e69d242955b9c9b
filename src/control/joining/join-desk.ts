import { LRUCache } from 'lru-cache'
import { API_CLIENT_SIGNER, CLUSTER_LABEL, isMemberCluster } from '#authority'
import { AUTO_APPROVED, approve } from '#certificates'
import { Informer, InformerIndex } from '#controller'
import type { JoinAsked, JoinDesk, JoinStep } from '#ingest'
import { CERTIFICATE_LIFE_ANNOTATION, certificateLifeText } from '#kinds'
import { isKubeError, type KubeClient } from '#kube'
import { type Clock, isClusterName, minutes, seconds } from '#model'
import type { Logger } from '#runtime'
import { ASKED_ANNOTATION, type Asker, withAsker, withoutAsker } from './askers.ts'
import {
  type AskedCertificate,
  askedCertificate,
  asksForItself,
  type CertificateRequest,
  certificateRequests,
  clusterOfRequest,
  type FormerCertificate,
  faultOf,
  formerCertificate,
  type HandedOut,
  handedOutIn,
  isSameRequest,
  MEMBER_SIGNERS,
  stateOf,
} from './certificate-request.ts'
import { type JoinTokens, tokenFaultWords } from './join-tokens.ts'
import {
  CERTIFICATES_ANNOTATION,
  certificatesOf,
  joinAnew,
  type ManagedCluster,
  type Members,
  managedClusterOf,
  managedClusters,
  withCertificate,
} from './members.ts'
import type { JoinFact } from './record.ts'

/** What the desk works with. */
export interface HubJoinsOptions {
  readonly hub: KubeClient
  readonly tokens: JoinTokens
  readonly members: Members
  /** PEM of the authorities whose certificates members show */
  readonly clientRoots: () => Promise<string>
  /** PEM of the authorities this hub is known by; '': those of the agents' systems */
  readonly serverRoots: () => string
  readonly record: (fact: JoinFact) => Promise<void>
  /** who signs what agents ask for; default: the API's own signer of clients */
  readonly signer?: string
  /** why nothing can be signed now; undefined: nothing speaks against it */
  readonly signingFault?: () => Promise<string | undefined>
  /** whether this process tells of members that were accepted or ended; default true */
  readonly tellsMembers?: boolean
  readonly clock: Clock
  readonly logger: Logger
  /** requests that are looked at or wait, of one address and of all; default 3072 and 4096 */
  readonly maxPerAddress?: number
  readonly maxInAll?: number
}

/** Undecided requests of one cluster, as OCM's own agent counts them. */
const MAX_PENDING = 10
/** Requests of one cluster within an hour, decided or not: a member needs one in days, and who has joined can ask without end. */
const MAX_PER_HOUR = 30
const HOUR_MS = minutes(60)
/** How long after its end a certificate still proves who asks for the next one. */
const RENEWAL_GRACE_MS = minutes(30 * 24 * 60)
const BUSY_MS = seconds(5)
/** Longest time without a look at what is waited for; every change wakes before. */
const LOOK_EVERY_MS = seconds(30)
/** Of writing down who asks, where others write at the same moment. */
const NOTE_ATTEMPTS = 12
const MAX_TOLD = 10_000
/** After a write of ours: how long its arrival here is awaited. */
const SEEN_WITHIN_MS = seconds(5)

/** Why a request needs no person; without a reason it does. */
interface Consent {
  readonly reason?: string
  readonly message: string
}
const WAIT: Consent = { message: '' }
const RENEWAL: Consent = {
  reason: AUTO_APPROVED,
  message: 'the member proved the key of its certificate of before',
}
const AHEAD: Consent = {
  reason: 'ClusterPulseAccept',
  message: 'approved ahead: its join token was made with --accept',
}
/** Why something is waited for no more. Given, as an error that `abort` makes by itself comes with a stack. */
const OVER = 'no longer needed'

interface Seen {
  readonly isAccepted: boolean
  readonly revocation: string | undefined
  readonly revocations: number
}

/** What somebody who asks has shown to be of. */
interface Shown {
  /** of the ManagedCluster it is for */
  readonly uid: string
  readonly consent: Consent
}

/** A request that was taken, and of what moment. */
interface Taken {
  readonly request: AskedCertificate
  /** of the ManagedCluster it is for */
  readonly uid: string
  /** of the cluster, when it was asked */
  readonly revocations: number
}

type Over = JoinStep & { readonly kind: 'over' }
const over = (code: Over['code'], message: string, retryAfterMs = 0): Over => ({
  kind: 'over',
  code,
  message,
  retryAfterMs,
})

/**
 * The hub's desk for machines that want to become members. What is decided about them stands in objects of the hub's API (a
 * ManagedCluster and a CertificateSigningRequest), where people and tools of Open Cluster Management decide it; nothing is kept
 * here, so that asking again after a crash of either end goes on where it was.
 */
export class HubJoins implements JoinDesk, AsyncDisposable {
  readonly #options: Required<HubJoinsOptions>
  readonly #requests: Informer<CertificateRequest>
  readonly #requestsOf: InformerIndex<CertificateRequest>
  readonly #byAddress = new Map<string, number>()
  readonly #waiting = new Map<string, Set<() => void>>()
  readonly #unlisten: (() => void)[]
  /** members at the last look, and how often they were revoked since this process began */
  readonly #seen = new Map<string, Seen>()
  /** why certificates of members that prove themselves count no more, by fingerprint, as it was said last */
  readonly #toldWhy = new LRUCache<string, string>({ max: MAX_TOLD })
  /** clusters of requests that are being made, by name */
  readonly #making = new Map<string, string>()
  #inAll = 0

  constructor(options: HubJoinsOptions) {
    this.#options = {
      ...{ maxPerAddress: 3_072, maxInAll: 4_096, tellsMembers: true },
      ...{ signer: API_CLIENT_SIGNER, signingFault: () => Promise.resolve(undefined) },
      ...options,
    }
    const { hub, members, clock, logger } = this.#options
    this.#requests = new Informer({
      ...{ kube: hub, resource: certificateRequests, labelSelector: CLUSTER_LABEL, logger, clock },
      where: ({ spec }) => MEMBER_SIGNERS.has(spec.signerName),
    })
    this.#requestsOf = new InformerIndex(this.#requests, (request) => [clusterOfRequest(request)])
    this.#unlisten = [
      this.#requests.onChange((change) => {
        const object = change.kind === 'deleted' ? change.previous : change.object
        this.#wake(clusterOfRequest(object))
      }),
      members.onChange((cluster) => {
        this.#noteMember(cluster)
        this.#wake(cluster)
      }),
    ]
  }

  start(): void {
    this.#requests.start()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const end of this.#unlisten) end()
    await this.#requests.stop()
  }

  async *ask(asked: JoinAsked, signal: AbortSignal, onProven?: () => void): AsyncIterable<JoinStep> {
    const { maxPerAddress, maxInAll } = this.#options
    const { address } = asked
    const here = this.#byAddress.get(address) ?? 0
    if (here >= maxPerAddress || this.#inAll >= maxInAll) {
      yield over('join_busy', 'too many requests to join are under way; this one may come again soon', BUSY_MS)
      return
    }
    this.#inAll++
    this.#byAddress.set(address, here + 1)
    try {
      yield* this.#serve(asked, signal, onProven)
    } finally {
      this.#inAll--
      const left = (this.#byAddress.get(address) ?? 1) - 1
      if (left > 0) this.#byAddress.set(address, left)
      else this.#byAddress.delete(address)
    }
  }

  async *#serve(asked: JoinAsked, signal: AbortSignal, onProven: (() => void) | undefined): AsyncIterable<JoinStep> {
    const { logger } = this.#options
    const stop = new AbortController()
    // Before what it shows is looked at: what counted then and was revoked since counts no more.
    const revocations = this.#revocationsOf(asked.cluster)
    try {
      const taken = await this.#take(asked, signal, onProven)
      if ('kind' in taken) {
        yield taken
        return
      }
      yield* this.#decided(asked, { ...taken, revocations }, AbortSignal.any([signal, stop.signal]))
    } catch (error) {
      if (signal.aborted) return
      if (!isKubeError(error)) throw error
      logger.warn({ err: error, cluster: asked.cluster }, "the hub's objects cannot be reached for a request to join")
      yield over('join_unavailable', "the hub's objects cannot be reached now; the request may come again", BUSY_MS)
    } finally {
      stop.abort(OVER)
    }
  }

  #refuse(asked: JoinAsked, reason: string): Over {
    void this.#record(asked, { event: 'join_refused', reason })
    return over('join_refused', reason)
  }

  #revocationsOf(cluster: string): number {
    return this.#seen.get(cluster)?.revocations ?? 0
  }

  /** Who asks may, and what is asked stands in the hub's API. @returns why not */
  async #take(
    asked: JoinAsked,
    signal: AbortSignal,
    onProven: (() => void) | undefined,
  ): Promise<Over | Omit<Taken, 'revocations'>> {
    const { cluster, token } = asked
    const refuse = (reason: string): Over => this.#refuse(asked, reason)
    if (!this.#options.members.isSynced)
      return over(
        'join_unavailable',
        'the hub does not know its members yet; where that stays, its kinds are missing: `clusterpulse crds | kubectl apply -f -`',
        BUSY_MS,
      )
    if (!isClusterName(cluster) || !isMemberCluster(cluster))
      return refuse(`${JSON.stringify(cluster.slice(0, 80))} cannot be the name of a member`)
    const request = askedCertificate(asked, this.#options.signer)
    if (typeof request === 'string') return refuse(request)
    const isRenewal = token === ''
    const shown = isRenewal ? await this.#byFormer(asked) : await this.#byToken(asked, request.key, signal, onProven)
    if ('kind' in shown) return shown
    if (isRenewal) onProven?.()
    return (await this.#create(asked, request, shown, signal)) ?? { request, uid: shown.uid }
  }

  /** By its token, and its ManagedCluster is there. @returns that, and who consents, where somebody did ahead; or why not */
  async #byToken(
    asked: JoinAsked,
    key: string,
    signal: AbortSignal,
    onProven: (() => void) | undefined,
  ): Promise<Over | Shown> {
    const { hub, tokens } = this.#options
    const { token, cluster } = asked
    const shown = await tokens.look(token, { cluster, key }, signal)
    if (typeof shown === 'string') return this.#refuse(asked, tokenFaultWords(shown, cluster))
    onProven?.()
    const asker = { key, address: asked.address, version: asked.version }
    const declared = await this.#declare(asked, { uid: shown.record.member, asker }, signal)
    if ('kind' in declared) return declared
    const { uid } = declared
    const spent = await tokens.spend(token, { cluster, key, member: uid }, shown, signal)
    if (spent !== 'spent') return this.#refuse(asked, tokenFaultWords(spent, cluster))
    // Asked of the API: it may have been accepted this very moment. One that was denied since waits for a person.
    const member =
      shown.record.isApproved === true ? await hub.get(managedClusters, { name: cluster }, signal) : undefined
    if (member?.spec?.hubAcceptsClient === true) return { uid, consent: AHEAD }
    await this.#noteAsker(cluster, asker, signal)
    return { uid, consent: WAIT }
  }

  /** Where it comes from stands where people look who decide. It usually does, since its ManagedCluster was made. */
  async #noteAsker(cluster: string, asker: Asker, signal: AbortSignal): Promise<void> {
    const { hub, members } = this.#options
    for (let attempt = 1; ; attempt++) {
      const seen = attempt === 1 ? members.get(cluster) : undefined
      const known = seen ?? (await hub.get(managedClusters, { name: cluster }, signal))
      const asked = known && withAsker(known, asker)
      if (asked === undefined) return
      const { resourceVersion } = known?.metadata ?? {}
      const body = { metadata: { resourceVersion, annotations: { [ASKED_ANNOTATION]: asked } } }
      try {
        members.wrote(await hub.patch(managedClusters, { name: cluster }, body, { kind: 'merge', signal }))
        return
      } catch (error) {
        if (isKubeError(error, 'not_found')) return // whoever waits for it is told
        if (!isKubeError(error, 'conflict') || attempt >= NOTE_ATTEMPTS) throw error
      }
    }
  }

  /** By the certificate of before. @returns its ManagedCluster, or why not */
  async #byFormer(asked: JoinAsked): Promise<Over | Shown> {
    const { members, clientRoots } = this.#options
    const roots = await clientRoots()
    if (roots === '')
      return over('join_unavailable', 'the hub does not know now whose certificates its members show', BUSY_MS)
    const former = formerCertificate(asked, roots)
    if (typeof former === 'string') return this.#refuse(asked, former)
    const fault = this.#faultOfFormer(asked, former)
    if (fault === undefined) {
      this.#toldWhy.delete(former.fingerprint)
      this.#noteOldCopy(former)
    }
    // It asks again and again why it is not served: what it was told before is no news for the trail.
    else if (this.#toldWhy.get(former.fingerprint) === fault) return over('join_refused', fault)
    else this.#toldWhy.set(former.fingerprint, fault)
    if (fault !== undefined) return this.#refuse(asked, fault)
    return { uid: members.get(asked.cluster)?.metadata.uid ?? '', consent: RENEWAL }
  }

  /** Decisions of the time in between are lost with it, and nobody else can tell. */
  #noteOldCopy({ cluster, fingerprint, notBefore }: FormerCertificate): void {
    const { members, logger } = this.#options
    const member = members.get(cluster)
    if (!member || certificatesOf(member).includes(fingerprint)) return
    logger.warn(
      { cluster, issuedAt: new Date(notBefore).toISOString() },
      'a member shows a certificate that is newer than all the hub remembers, and is let in: an older copy of the hub was put back. Whom you denied, revoked or detached since that copy was made is a member again: decide anew',
    )
  }

  #faultOfFormer(asked: JoinAsked, former: FormerCertificate): string | undefined {
    const { cluster, agent, fingerprint, notBefore, notAfter } = former
    const { members, clock } = this.#options
    if (cluster !== asked.cluster || agent !== asked.agent) return 'the certificate of before is that of another agent'
    if (clock.now() > notAfter + RENEWAL_GRACE_MS)
      return `the certificate of before ended more than 30 days ago; ${joinAnew(cluster)}`
    return isClusterName(cluster) ? members.fault(cluster, fingerprint, notBefore) : 'it names no cluster'
  }

  /**
   * The ManagedCluster is there, and is the one that was asked for before.
   * @param first `uid` of that one, undefined: this is the first time; and who asks
   */
  async #declare(
    asked: JoinAsked,
    { uid, asker }: { readonly uid: string | undefined; readonly asker: Asker },
    signal: AbortSignal,
  ): Promise<Over | { readonly uid: string }> {
    const { hub, members } = this.#options
    const { cluster } = asked
    const seen = members.get(cluster)
    const isThis = seen !== undefined && seen.metadata.uid === uid
    // What is seen here may be behind.
    const isRead = !isThis && (seen !== undefined || uid !== undefined)
    const known = isRead ? await hub.get(managedClusters, { name: cluster }, signal) : seen
    if (known?.metadata.deletionTimestamp)
      return over(
        'join_unavailable',
        `ManagedCluster ${cluster} is being deleted; it can join anew when it is gone`,
        BUSY_MS,
      )
    if (uid !== undefined && known?.metadata.uid !== uid) return this.#refuse(asked, deletedWords(cluster))
    if (known) return { uid: known.metadata.uid ?? '' }
    try {
      const annotations = { [ASKED_ANNOTATION]: withAsker(undefined, asker) ?? '' }
      const object = managedClusterOf(cluster, { hubAcceptsClient: false }, annotations)
      const made = await hub.create(managedClusters, object, signal)
      members.wrote(made)
      return { uid: made.metadata.uid ?? '' }
    } catch (error) {
      if (!isKubeError(error, 'already_exists')) throw error
      const made = await hub.get(managedClusters, { name: cluster }, signal)
      if (made) return { uid: made.metadata.uid ?? '' }
      return over('join_unavailable', `ManagedCluster ${cluster} comes and goes; ask again`, BUSY_MS)
    }
  }

  async #create(
    asked: JoinAsked,
    { object }: AskedCertificate,
    { uid, consent }: Shown,
    signal: AbortSignal,
  ): Promise<Over | undefined> {
    const { hub } = this.#options
    const { name } = object.metadata
    const there = this.#requests.get({ name })
    if (there && !isSameRequest(there, object)) return takenWords(asked.cluster, name)
    if (!there) {
      const tooMany = this.#tooMany(asked.cluster)
      if (tooMany !== undefined) {
        void this.#record(asked, { event: 'join_refused', reason: tooMany })
        return over('join_busy', tooMany, minutes(1))
      }
      this.#making.set(name, asked.cluster)
      try {
        const made = await hub
          .create(certificateRequests, ownedBy(asked.cluster, uid, object), signal)
          .catch(unless('already_exists'))
        // One that nobody labelled is not followed, and has the name all the same.
        const other = made ?? (await hub.get(certificateRequests, { name }, signal))
        if (other && !isSameRequest(other, object)) return takenWords(asked.cluster, name)
        if (made) this.#requests.wrote(made)
        if (consent !== RENEWAL)
          void this.#record(asked, { event: 'join_asked', request: name, reason: 'with a join token' })
        await this.#arrived(asked.cluster, name, signal)
      } finally {
        this.#making.delete(name)
      }
    }
    const known = this.#requests.get({ name }) ?? object
    if (consent.reason !== undefined && stateOf(known).kind === 'pending')
      await approve(hub, known, { reason: consent.reason, message: consent.message, signal })
    return undefined
  }

  /** @returns why one more request of the cluster is not made now */
  #tooMany(cluster: string): string | undefined {
    // Those that others make in its name, by the API, are bounded there and must not keep it out.
    const made = this.#requestsOf
      .of(cluster)
      .filter((one) => !asksForItself(one.spec.username ?? '') && faultOf(one) === undefined)
    let making = 0
    for (const [name, of] of this.#making) if (of === cluster && !this.#requests.get({ name })) making++
    const undecided = making + made.filter((one) => stateOf(one).kind === 'pending').length
    if (undecided >= MAX_PENDING)
      return `${undecided} requests of ${cluster} wait for a decision; approve one or deny them first`
    const since = this.#options.clock.now() - HOUR_MS
    const recent =
      making + made.filter(({ metadata }) => !(Date.parse(metadata.creationTimestamp ?? '') < since)).length
    if (recent < MAX_PER_HOUR) return undefined
    return `${recent} requests of ${cluster} were made within an hour; the next one is taken when that is over`
  }

  /** A request that was just made counts among those of its cluster from now on. */
  async #arrived(cluster: string, name: string, signal: AbortSignal): Promise<void> {
    const until = this.#options.clock.now() + SEEN_WITHIN_MS
    while (!this.#requests.get({ name }) && !signal.aborted && this.#options.clock.now() < until)
      await this.#changed(cluster, signal)
  }

  async *#decided(
    asked: JoinAsked,
    { request: { object, key }, uid, revocations }: Taken,
    signal: AbortSignal,
  ): AsyncIterable<JoinStep> {
    const { members, clock, clientRoots } = this.#options
    const { cluster } = asked
    const request = object.metadata.name
    const askedAt = clock.now()
    let said = ''
    let signed: { readonly certificate: string; readonly noted: HandedOut | undefined } | undefined
    let wasSeen = false
    for (;;) {
      const changed = this.#changed(cluster, signal)
      if (this.#revocationsOf(cluster) !== revocations) {
        yield this.#refuse(asked, `the cluster was revoked meanwhile; ${joinAnew(cluster)}`)
        return
      }
      const isSeen = members.get(cluster)?.metadata.uid === uid
      if (wasSeen && !isSeen) {
        yield this.#refuse(asked, deletedWords(cluster))
        return
      }
      wasSeen ||= isSeen
      const seen = this.#requests.get({ name: request })
      // It was deleted, and another has its name, which whoever reads requests can give to one of its own.
      if (seen && !isSameRequest(seen, object)) {
        yield takenWords(cluster, request)
        return
      }
      const state = seen ? stateOf(seen) : ({ kind: 'pending' } as const)
      const isAccepted = isClusterName(cluster) && members.isAccepted(cluster)
      if (!seen && this.#requests.isSynced && clock.now() - askedAt > LOOK_EVERY_MS) {
        yield over('join_unavailable', `request ${request} was deleted before it was decided; ask again`, BUSY_MS)
        return
      }
      if (state.kind === 'denied' || state.kind === 'failed') {
        const reason = state.kind === 'denied' ? 'the request was denied' : 'the certificate could not be signed'
        const next =
          state.kind === 'denied'
            ? `ask whoever decides on the hub; where it is to join after all, it takes a new join token (\`clusterpulse connect ${cluster}\` on the hub)`
            : joinAnew(cluster)
        const message = `${reason}${state.why === '' ? '' : `: ${state.why}`}; ${next}`
        await this.#record(asked, { event: 'join_denied', request, reason: message })
        yield over('join_denied', message)
        return
      }
      if (state.kind === 'signed' && isAccepted) {
        // Looked at again after it was handed out: it is the same.
        if (signed?.certificate !== state.certificate)
          signed = { certificate: state.certificate, noted: handedOutIn(state.certificate, await clientRoots()) }
        const { noted } = signed
        if (!noted) {
          yield over('join_unavailable', `what was signed for request ${request} is no certificate`, minutes(1))
          return
        }
        if (!members.counts(cluster, noted.fingerprint)) {
          await this.#handOut(cluster, { ...noted, key }, signal)
          await changed
          if (signal.aborted) return
          continue
        }
        const event = asked.token === '' ? 'certificate_renewed' : 'join_granted'
        await this.#record(asked, { event, request, reason: 'approved and accepted' })
        yield { kind: 'joined', request, certificate: state.certificate, roots: this.#options.serverRoots() }
        return
      }
      const isDecided = state.kind !== 'pending' && isAccepted
      const fault = isDecided ? await this.#options.signingFault() : undefined
      const message =
        fault === undefined ? wantedWords(cluster, request, state.kind, isAccepted) : unsignedWords(request, fault)
      if (message !== said) yield { kind: 'pending', request, message }
      said = message
      await changed
      if (signal.aborted) return
    }
  }

  /** From now on it counts; written before it is sent, so that an answer that is lost is given again. */
  async #handOut(
    cluster: string,
    { fingerprint, life, key }: HandedOut & { readonly key: string },
    signal: AbortSignal,
  ): Promise<void> {
    const { hub, members } = this.#options
    const known = members.get(cluster)
    if (!known) return
    const { resourceVersion } = known.metadata
    const asked = withoutAsker(known, key)
    const annotations = {
      [CERTIFICATES_ANNOTATION]: withCertificate(certificatesOf(known), fingerprint),
      [CERTIFICATE_LIFE_ANNOTATION]: certificateLifeText(life),
      ...(asked !== undefined && { [ASKED_ANNOTATION]: asked }),
    }
    // Of what was read and no other: a revocation that is on its way here stays, and so do certificates handed out meanwhile.
    const body = { metadata: { resourceVersion, annotations } }
    const written = await hub
      .patch(managedClusters, { name: cluster }, body, { kind: 'merge', signal })
      .catch(unless('conflict'))
    if (written) members.wrote(written)
  }

  /** Resolves when something about the cluster changed, after a while, or when the signal aborts. */
  #changed(cluster: string, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options
    const waiting = this.#waiting.get(cluster) ?? new Set()
    this.#waiting.set(cluster, waiting)
    const late = new AbortController()
    return new Promise((resolve) => {
      const done = () => {
        waiting.delete(done)
        if (waiting.size === 0 && this.#waiting.get(cluster) === waiting) this.#waiting.delete(cluster)
        signal.removeEventListener('abort', done)
        late.abort(OVER)
        resolve()
      }
      waiting.add(done)
      signal.addEventListener('abort', done, { once: true })
      if (signal.aborted) return done()
      void clock.sleep(LOOK_EVERY_MS, late.signal).then(() => {
        if (!late.signal.aborted) done()
      })
    })
  }

  /** Whoever decided it, and by whatever tool: the trail has it. */
  #noteMember(cluster: string): void {
    const { members, record, tellsMembers } = this.#options
    if (!isClusterName(cluster)) return
    const before = this.#seen.get(cluster)
    const revocation = members.revocation(cluster)
    const isRevoked = revocation !== undefined && revocation !== before?.revocation
    const revocations = (before?.revocations ?? 0) + (isRevoked ? 1 : 0)
    const now: Seen = { isAccepted: members.isAccepted(cluster), revocation, revocations }
    this.#seen.set(cluster, now)
    // What was there when this process began is no news.
    if (!members.isSynced || !tellsMembers) return
    if (isRevoked) void record({ event: 'member_revoked', cluster, reason: 'no certificate of it counts any more' })
    if (now.isAccepted === (before?.isAccepted ?? false)) return
    if (now.isAccepted) void record({ event: 'member_accepted', cluster, reason: 'hubAcceptsClient is true' })
    else void record({ event: 'member_ended', cluster, reason: endedWords(members.get(cluster)) })
  }

  #wake(cluster: string): void {
    for (const done of [...(this.#waiting.get(cluster) ?? [])]) done()
  }

  #record({ cluster, agent, address }: JoinAsked, fact: Pick<JoinFact, 'event' | 'request' | 'reason'>): Promise<void> {
    const [short, name] = [cluster.slice(0, 80), agent.slice(0, 80)]
    this.#options.logger.info({ cluster: short, agent: name, address, ...fact }, 'a request to join')
    return this.#options.record({ cluster: short, agent: name, address, ...fact })
  }
}

/** It goes with its ManagedCluster: no other one of that name is what it was asked for. */
const ownedBy = (name: string, uid: string, object: CertificateRequest): CertificateRequest => {
  const { group, version, kind } = managedClusters
  const ownerReferences = [{ apiVersion: `${group}/${version}`, kind, name, uid }]
  return uid === '' ? object : { ...object, metadata: { ...object.metadata, ownerReferences } }
}

const takenWords = (cluster: string, name: string): Over =>
  over(
    'join_unavailable',
    `another request has the name ${name}, and is not what ${cluster} asked for: whoever decides on the hub looks at it and deletes it (\`kubectl delete certificatesigningrequest ${name}\`); this one is made then`,
    BUSY_MS,
  )

const endedWords = (member: ManagedCluster | undefined): string =>
  member ? 'hubAcceptsClient is no longer true' : 'the ManagedCluster was deleted'

const deletedWords = (cluster: string): string =>
  `ManagedCluster ${cluster} was deleted after this was asked; ${joinAnew(cluster)}`

/** Who must do what, in words a person can act on. */
function wantedWords(cluster: string, request: string, state: string, isAccepted: boolean): string {
  if (state === 'pending' && !isAccepted)
    return `somebody must accept it on the hub: \`clusterpulse accept ${cluster}\`, or \`kubectl certificate approve ${request}\` and hubAcceptsClient: true of ManagedCluster ${cluster}`
  if (state === 'pending')
    return `${cluster} is accepted; its certificate must be approved on the hub: \`clusterpulse accept ${cluster} --request ${request}\`, or \`kubectl certificate approve ${request}\``
  if (!isAccepted)
    return `the certificate is approved; ManagedCluster ${cluster} must be accepted on the hub: hubAcceptsClient: true, or \`clusterpulse accept ${cluster}\``
  return `accepted; the certificate of request ${request} is about to be signed`
}

const unsignedWords = (request: string, fault: string): string =>
  `accepted; the hub cannot sign the certificate of request ${request} now, and does so by itself once it can: ${fault}`

function unless(reason: 'already_exists' | 'conflict'): (error: unknown) => undefined {
  return (error) => {
    if (!isKubeError(error, reason)) throw error
    return undefined
  }
}
