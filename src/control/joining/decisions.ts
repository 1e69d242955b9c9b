import { X509Certificate } from 'node:crypto'
import { CLUSTER_LABEL, isReservedNamespace } from '#authority'
import { approve, denialIn, deny, denyApproved } from '#certificates'
import type { AgentCredentials } from '#connections'
import { TRANSPORT_ANNOTATION } from '#kinds'
import { isKubeError, type KubeClient, KubeError, whole } from '#kube'
import {
  type ClusterName,
  FleetError,
  FORGET_CERTIFICATE,
  type MemberAct,
  type MemberDecider,
  systemClock,
} from '#model'
import { ASKED_ANNOTATION } from './askers.ts'
import { fingerprintOf, isIssuedBy, trustedIn } from './authorities.ts'
import {
  askerOf,
  asksForItself,
  type CertificateRequest,
  certificateRequests,
  clusterOfRequest,
  faultOf,
  isApproved,
  isAskedOf,
  KEY_ANNOTATION,
  keyOf,
  missingOf,
  stateOf,
} from './certificate-request.ts'
import { decidedAnnotation, decidedWords } from './decided-by.ts'
import type { JoinTokens } from './join-tokens.ts'
import {
  CERTIFICATES_ANNOTATION,
  certificatesOf,
  hasCertificate,
  isRevoked,
  type ManagedCluster,
  managedClusters,
  revokedAt,
} from './members.ts'

const reservedWords = (cluster: string): string =>
  `no member may be called ${cluster}: its namespace on the hub belongs to the system; deny it, and let it ask under another name`

/** A decision that cannot be carried out: why, and what would do. */
export class MembershipError extends FleetError {
  override readonly name = 'MembershipError'
  readonly code: 'member_leaving' | 'name_reserved' | 'no_request' | 'several_requests' | 'unknown_member'
  readonly retryable = false

  constructor(code: MembershipError['code'], message: string) {
    super(message)
    this.code = code
  }
}

/** What of the hub is decided with. */
export interface DecidingOptions {
  readonly hub: KubeClient
  readonly cluster: ClusterName
  /** hears of each act as soon as it is done */
  readonly did?: (act: MemberAct) => void
  /** named in what is written, where the account that writes is not that person's */
  readonly by?: MemberDecider
}

interface AcceptOptions extends DecidingOptions, Wanted {
  /** PEM of the authorities whose certificates the hub takes; undefined: who decides cannot know */
  readonly trusted?: () => Promise<string | undefined>
}

/** Of several requests that wait, the one that is meant. */
interface Wanted {
  readonly request?: string
}

/**
 * Makes a cluster a member: approves its request and sets hubAcceptsClient. Where requests with different keys wait, or another
 * machine is connected as that member, the one that is meant must be named.
 * @returns what was done, for people
 * @throws MembershipError where there is nothing to accept, or no telling which
 */
export async function accept({
  hub,
  cluster,
  did,
  by,
  request: wanted,
  trusted,
}: AcceptOptions): Promise<readonly string[]> {
  const member = await hub.get(managedClusters, { name: cluster })
  if (!member) throw new MembershipError('unknown_member', unknownWords(cluster))
  // Whoever asks by OCM's agent chooses the name, and would be told that it is a member and never served.
  if (isReservedNamespace(cluster)) throw new MembershipError('name_reserved', reservedWords(cluster))
  if (member.metadata.deletionTimestamp) throw new MembershipError('member_leaving', leavingWords(cluster))
  const labelled = await requestsOf(hub, cluster)
  const all = labelled.filter((one) => whyNoneOf(one, member) === undefined)
  const waiting = all.filter((one) => missingOf(one, member).length > 0)
  const chosen =
    wanted === undefined ? theOneOf(member, waiting) : namedOf(cluster, waiting, { wanted, others: labelled, member })
  const other = waiting.find((one) => chosen && isApproved(one) && keyOf(one) !== keyOf(chosen))
  if (other) throw new MembershipError('several_requests', approvedWords(other, member))
  const done: string[] = []
  const second = chosen && (await secondMachine(hub, chosen, { member, all, roots: await trusted?.() }))
  // Whoever meant the one that is there would let a stranger in.
  if (chosen && second?.isHere && member.spec?.hubAcceptsClient === true && wanted === undefined)
    throw new MembershipError(
      'several_requests',
      `${second.words}, and another one asks to be it: ${chosen.metadata.name} (${factsOf(chosen, member)}). To let it in beside that one, name its request: clusterpulse accept ${cluster} --request ${chosen.metadata.name}; where it is none of yours: clusterpulse deny ${cluster} --request ${chosen.metadata.name}`,
    )
  if (second)
    done.push(
      `warning: ${second.words}; where it is another one than this, two speak for one cluster from now on: the newer stream is served, the other is made to wait. Stop the agent of the one that is wrong, or end both (\`clusterpulse revoke ${cluster}\`) and let the right one join anew`,
    )
  if (chosen && isApproved(chosen))
    done.push(`request ${chosen.metadata.name} was approved already (${factsOf(chosen, member)})`)
  else if (chosen) {
    await approve(hub, chosen, { reason: 'ClusterPulseAccept', message: decidedWords('approved', 'accept', by) })
    const words = `request ${chosen.metadata.name} is approved (${factsOf(chosen, member)})`
    done.push(told(did, { act: 'request_approved', words, request: chosen.metadata.name }))
  }
  if (member.spec?.hubAcceptsClient === true) done.push(`${cluster} was accepted already`)
  else {
    // The one that was looked at: another of its name may have come since.
    const metadata = { uid: member.metadata.uid, annotations: decidedAnnotation('accept', by, systemClock.now()) }
    const body = { metadata, spec: { hubAcceptsClient: true } }
    const write = hub.patch(managedClusters, { name: cluster }, body, { kind: 'merge' })
    await write.catch((error: unknown) => {
      const half = chosen && `request ${chosen.metadata.name} is approved, and ${cluster} is not accepted yet`
      if (!half || !isKubeError(error)) throw error
      const { reason, httpStatus, apiMessage, message } = error
      const facts = { cause: error, ...(httpStatus && { httpStatus }), ...(apiMessage && { apiMessage }) }
      throw new KubeError(reason, `${half}: ${message}. Then: clusterpulse accept ${cluster}`, facts)
    })
    done.push(told(did, { act: 'cluster_accepted', words: `${cluster} is accepted as a member` }))
  }
  done.push(...leftOut(labelled, member), ...signedBefore(all))
  if (!chosen && isRevoked(member))
    done.push(
      `its certificates were revoked and do not count again: ${
        member.metadata.annotations?.[TRANSPORT_ANNOTATION] === 'api'
          ? `its agent asks anew after \`${FORGET_CERTIFICATE}\` there and a restart, with a bootstrap kubeconfig (\`clusterpulse bootstrap-kubeconfig\`), and that request is approved`
          : `\`clusterpulse connect ${cluster}\` prints a token to join anew with`
      }`,
    )
  else if (!chosen && certificatesOf(member).length === 0 && !all.some((one) => stateOf(one).kind === 'signed'))
    done.push(`no request of ${cluster} waits: it becomes a member when it asks and is approved`)
  return done
}

/**
 * Turns the requests of a cluster down, and ends its membership; of a request that is named, that one alone.
 * @throws MembershipError where the hub knows no such cluster, or none waits of that name
 */
export async function refuse({
  hub,
  cluster,
  did,
  by,
  request: wanted,
}: DecidingOptions & Wanted): Promise<readonly string[]> {
  const done: string[] = []
  const member = await hub.get(managedClusters, { name: cluster })
  // Also those that only claim to be of it: nobody else would turn them down.
  const waiting = (await requestsOf(hub, cluster)).filter((one) => isOpen(one, member))
  const refused = wanted === undefined ? waiting : [namedOf(cluster, waiting, { wanted })]
  done.push(...(await turnDown({ hub, did, by, member }, refused)))
  if (wanted !== undefined) return [...done, restWords(cluster, member, waiting.length - refused.length)]
  if (!member && done.length === 0) throw new MembershipError('unknown_member', unknownWords(cluster))
  let left = member
  const wasMember = member?.spec?.hubAcceptsClient === true
  if (wasMember) {
    const annotations = decidedAnnotation('deny', by, systemClock.now())
    const body = { metadata: { annotations }, spec: { hubAcceptsClient: false } }
    left = await ifThere(hub.patch(managedClusters, { name: cluster }, body, { kind: 'merge' }))
    if (left)
      done.push(told(did, { act: 'cluster_denied', words: `${cluster} is no member any more; its stream ends` }))
  }
  if (member && (!left || left.metadata.deletionTimestamp)) return [...done, goingWords(cluster)]
  if (done.length === 0) return [`no request of ${cluster} waits, and it is no member`]
  return [...done, wasMember ? undoneWords(cluster) : outsideWords(cluster, member)]
}

const goingWords = (cluster: string): string => `there is nothing to undo: ${leavingWords(cluster)}`

/** @returns undefined where it was deleted meanwhile */
async function ifThere<T>(write: Promise<T>): Promise<T | undefined> {
  try {
    return await write
  } catch (error) {
    if (isKubeError(error, 'not_found')) return undefined
    throw error
  }
}

const undoneWords = (cluster: string): string =>
  `ManagedCluster ${cluster} stays; to undo: \`clusterpulse accept ${cluster}\`, and its agent comes back by itself`

/** Of a cluster that never was let in, or was thrown out before. */
function outsideWords(cluster: string, member: ManagedCluster | undefined): string {
  const anew = `to let it in after all, its machine asks anew (\`clusterpulse connect ${cluster}\` prints a token), and then \`clusterpulse accept ${cluster}\``
  if (!member) return `there is no ManagedCluster ${cluster}: nothing else of it is known; ${anew}`
  return `cluster ${cluster} is no member, and has no rights on the hub; ManagedCluster ${cluster} stays, until \`clusterpulse detach ${cluster}\`; ${anew}`
}

/** What else there is of a cluster of which one request alone was turned down. */
function restWords(cluster: string, member: ManagedCluster | undefined, others: number): string {
  const rest = others === 0 ? 'no other waits' : others === 1 ? '1 other waits still' : `${others} others wait still`
  if (member?.metadata.deletionTimestamp) return `of the requests of ${cluster} ${rest}; ${leavingWords(cluster)}`
  const is = member?.spec?.hubAcceptsClient === true ? 'is a member as before' : 'is no member, as before'
  return `of the requests of ${cluster} ${rest}; cluster ${cluster} itself ${is} (\`clusterpulse deny ${cluster}\` decides about it)`
}

/**
 * Ends a cluster's membership for good: join tokens, requests, certificates, so that only a new token lets it in again, also
 * after it was accepted anew. Its open stream ends within seconds.
 * @throws MembershipError where there is nothing of it to revoke
 */
export async function revokeMember(
  options: DecidingOptions & { readonly tokens: JoinTokens; readonly credentials: AgentCredentials },
): Promise<readonly string[]> {
  const { hub, cluster, did, by, tokens, credentials } = options
  const ended = await tokens.revoke(cluster)
  const done = ended > 0 ? [`${ended} join token${ended === 1 ? '' : 's'} of ${cluster} may not be shown any more`] : []
  const member = await hub.get(managedClusters, { name: cluster })
  if (member) {
    const now = systemClock.now()
    const body = {
      metadata: {
        annotations: {
          ...{ [CERTIFICATES_ANNOTATION]: revokedAt(now), [ASKED_ANNOTATION]: null },
          ...decidedAnnotation('revoke', by, now),
        },
      },
      spec: { hubAcceptsClient: false },
    }
    await hub.patch(managedClusters, { name: cluster }, body, { kind: 'merge' })
    const words = `no certificate of ${cluster} counts any more, and it is no member; its stream ends`
    done.push(told(did, { act: 'cluster_revoked', words }))
    const waiting = (await requestsOf(hub, cluster)).filter((one) => isOpen(one, member))
    done.push(...(await turnDown({ hub, did, by, member }, waiting)))
  }
  if (await credentials.revoke(cluster)) done.push(`every token of the agent of ${cluster} is revoked`)
  if (!member && done.length === 0) throw new MembershipError('unknown_member', unknownWords(cluster))
  return done
}

/** Whether a person can still turn it down, also where no decision could make it a member. */
const isOpen = (request: CertificateRequest, member: ManagedCluster | undefined): boolean =>
  stateOf(request).kind === 'pending' || (faultOf(request) === undefined && missingOf(request, member).length > 0)

async function turnDown(
  { hub, did, by, member }: Pick<DecidingOptions, 'hub'> & Deciding,
  requests: readonly CertificateRequest[],
): Promise<readonly string[]> {
  const done: string[] = []
  for (const one of requests) {
    const { name } = one.metadata
    const late = isApproved(one)
    const message = decidedWords('denied', 'deny', by)
    if (late) await denyApproved(hub, one, { message: `${message} after it was approved` })
    else await deny(hub, one, { reason: 'ClusterPulseDeny', message })
    const what = late ? 'was approved already, and is turned down now' : 'is denied'
    const words = `request ${name} ${what} (${factsOf(one, member)})`
    done.push(told(did, { act: 'request_denied', words, request: name }))
  }
  return done
}

interface Deciding {
  readonly did: DecidingOptions['did'] | undefined
  readonly by: MemberDecider | undefined
  readonly member: ManagedCluster | undefined
}

/**
 * Takes a member off the hub: its add-ons and works are cleaned up in order, then it loses its rights.
 * @throws MembershipError where the hub knows no such cluster
 */
export async function detach({ hub, cluster, did, by }: DecidingOptions): Promise<readonly string[]> {
  const member = await hub.get(managedClusters, { name: cluster })
  if (!member) throw new MembershipError('unknown_member', unknownWords(cluster))
  if (member.metadata.deletionTimestamp) return [`${cluster} is being detached already`]
  // A deletion has no room for a name.
  if (by) {
    const body = { metadata: { annotations: decidedAnnotation('detach', by, systemClock.now()) } }
    await hub.patch(managedClusters, { name: cluster }, body, { kind: 'merge' })
  }
  await hub.delete(managedClusters, { name: cluster })
  const words = `${cluster} is being detached; what belongs to it is cleaned up first`
  return [told(did, { act: 'cluster_deleted', words })]
}

/** @returns the words */
function told(did: DecidingOptions['did'], act: MemberAct): string {
  did?.(act)
  return act.words
}

/**
 * Of one that is let in beside a machine that is a member under that name, or was before it was denied: two would speak for it.
 * @returns undefined where no other machine is known
 */
async function secondMachine(
  hub: KubeClient,
  chosen: CertificateRequest,
  { member, all, roots }: Known,
): Promise<SecondMachine | undefined> {
  const cluster = clusterOfRequest(chosen)
  const known = await hub.get(whole(managedClusters), { name: cluster })
  if (!known) return undefined
  const { conditions = [] } = (known.status ?? {}) as { readonly conditions?: readonly Told[] }
  const statusOf = (wanted: string) => conditions.find(({ type }) => type === wanted)?.status
  // Which certificates an API server takes stands on no member: who joined there has one.
  const isOfApi = known.metadata.annotations?.[TRANSPORT_ANNOTATION] === 'api'
  const hasJoined = isOfApi
    ? statusOf('ManagedClusterJoined') === 'True' && !isRevoked(member)
    : hasCertificate(known, roots)
  if (!hasJoined) return undefined
  const key = keyOf(chosen)
  // The one whose certificate is in use need not be the newest, as where `kubectl` approved another one that never came.
  const authorities = trustedIn(roots)
  const counts = (one: CertificateRequest) =>
    isOfApi ? stateOf(one).kind === 'signed' : countsFor(known, one, authorities)
  const counting = all.filter((one) => one !== chosen && counts(one))
  const keys = [...new Set(counting.map(keyOf))]
  const others = keys.filter((one) => one !== key)
  if (keys.length > 0 && others.length === 0) return undefined // the same machine asks again
  const available = statusOf('ManagedClusterConditionAvailable')
  const isHere = available === 'True' || available === 'False'
  const [which, ...more] = others.map((one) => one?.slice(0, 16))
  const withKey =
    which === undefined
      ? ''
      : more.length === 0
        ? `, with key ${which}`
        : `, with one of the keys ${[which, ...more].join(' and ')}`
  const is = member.spec?.hubAcceptsClient === true ? 'is a member' : 'was a member, and comes back,'
  return { words: `a machine ${is} as ${cluster} already${withKey}${isHere ? ', and is connected' : ''}`, isHere }
}

interface SecondMachine {
  /** which machine is known */
  readonly words: string
  /** it is connected as a member */
  readonly isHere: boolean
}

interface Known {
  readonly member: ManagedCluster
  readonly all: readonly CertificateRequest[]
  /** PEM of the authorities whose certificates the hub takes */
  readonly roots: string | undefined
}

/** It was signed, and the hub takes that certificate. @param authorities that it trusts; undefined: they are not known */
function countsFor(
  member: ManagedCluster,
  { status }: CertificateRequest,
  authorities: readonly X509Certificate[] | undefined,
): boolean {
  if (!status?.certificate) return false
  try {
    const certificate = new X509Certificate(Buffer.from(status.certificate, 'base64'))
    const isTrusted = !authorities || authorities.some((one) => isIssuedBy(certificate, one))
    return isTrusted && certificatesOf(member).includes(fingerprintOf(certificate))
  } catch {
    return false // whoever signs may write anything there
  }
}

interface Told {
  readonly type: string
  readonly status: string
}

const MAX_LINES = 10

/** Why one that has the label of the cluster can make it no member. undefined: it can */
const whyNoneOf = (request: CertificateRequest, member: ManagedCluster): string | undefined =>
  faultOf(request) ??
  (isAskedOf(request, member)
    ? undefined
    : `it was asked for a ManagedCluster ${member.metadata.name} that was deleted since; the machine must join anew`)

/** Those that were turned down when their machine could read the certificate already: the API knows no revocation of one. */
const signedBefore = (all: readonly CertificateRequest[]): readonly string[] =>
  all
    .filter((one) => one.status?.certificate && denialIn(one) && asksForItself(one.spec.username ?? ''))
    .slice(0, MAX_LINES)
    .map(
      (one) =>
        `warning: request ${one.metadata.name} was signed before it was turned down; whoever asked may hold that certificate (key ${keyOf(one)?.slice(0, 16)}), and the hub's API takes it as long as ${clusterOfRequest(one)} is accepted; where that is another machine, deny the cluster and let the right one join under another name`,
    )

/** Those that wait with the label of the cluster and are none of it. */
function leftOut(labelled: readonly CertificateRequest[], member: ManagedCluster): readonly string[] {
  const lines = labelled.flatMap((one) => {
    const why = stateOf(one).kind === 'pending' ? whyNoneOf(one, member) : undefined
    return why === undefined ? [] : [`request ${one.metadata.name} is left alone, as it can never be signed: ${why}`]
  })
  const more = lines.length - MAX_LINES
  return more > 0 ? [...lines.slice(0, MAX_LINES), `and ${more} more of that sort`] : lines
}

async function requestsOf(hub: KubeClient, cluster: string): Promise<readonly CertificateRequest[]> {
  try {
    return await hub.listAll(certificateRequests, { labelSelector: `${CLUSTER_LABEL}=${cluster}` })
  } catch (error) {
    if (isKubeError(error, 'not_found')) return [] // an API without such requests
    throw error
  }
}

/** By the name of the request, or by its key as the machine says it. */
function isMeant(request: CertificateRequest, wanted: string): boolean {
  if (request.metadata.name === wanted) return true
  return /^[0-9a-f]{16,64}$/.test(wanted) && keyOf(request)?.startsWith(wanted) === true
}

function namedOf(
  cluster: string,
  waiting: readonly CertificateRequest[],
  {
    wanted,
    others = [],
    member,
  }: { readonly wanted: string; readonly others?: readonly CertificateRequest[]; readonly member?: ManagedCluster },
): CertificateRequest {
  const found = waiting.findLast((one) => isMeant(one, wanted))
  if (found) return found
  const meant = others.find((one) => isMeant(one, wanted))
  const fault = meant && member && whyNoneOf(meant, member)
  if (fault !== undefined)
    throw new MembershipError(
      'no_request',
      `request ${wanted} is none of ${cluster}, though its label says so: ${fault}`,
    )
  const names = waiting.map(({ metadata }) => metadata.name).join(', ') || 'none'
  throw new MembershipError('no_request', `no request ${wanted} of ${cluster} waits for a decision; waiting: ${names}`)
}

function theOneOf(member: ManagedCluster, waiting: readonly CertificateRequest[]): CertificateRequest | undefined {
  const keys = new Set(waiting.map((one) => keyOf(one) ?? one.metadata.name))
  if (keys.size <= 1) return waiting.at(-1)
  const cluster = member.metadata.name
  const lines = waiting.map((one) => `  ${one.metadata.name}  ${factsOf(one, member)}`)
  throw new MembershipError(
    'several_requests',
    `${keys.size} machines ask to be ${cluster}; look which is the right one and name its request, or the key it says: clusterpulse accept ${cluster} --request NAME\n${lines.join('\n')}`,
  )
}

/** From where, and with which key: the agent says its own on standard error, so that people can compare. */
function factsOf(request: CertificateRequest, member: ManagedCluster | undefined): string {
  const { annotations = {}, creationTimestamp } = request.metadata
  const from = askerOf(request, member)?.address || request.spec.username || 'somebody'
  const key = keyOf(request) ?? annotations[KEY_ANNOTATION] ?? 'unreadable'
  return `from ${from}, key ${key.slice(0, 16)}, ${creationTimestamp ?? 'just now'}`
}

const approvedWords = (other: CertificateRequest, member: ManagedCluster): string => {
  const { name } = member.metadata
  const request = other.metadata.name
  return `request ${request} of ${name} is approved already, by \`kubectl\` or another tool, so that two machines would be let in (${factsOf(other, member)}); turn it down first: clusterpulse deny ${name} --request ${request}`
}

const leavingWords = (cluster: string): string =>
  `${cluster} is being detached: what belongs to it is cleaned up first; when \`kubectl get managedcluster ${cluster}\` finds it no more, it can ask anew, with a new join token`

const unknownWords = (cluster: string): string =>
  `the hub knows no cluster ${cluster} that is a member or asks to be one; \`kubectl get managedclusters\` lists those it knows`
