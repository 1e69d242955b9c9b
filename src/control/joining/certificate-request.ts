import { createHash, verify, X509Certificate } from 'node:crypto'
import {
  API_CLIENT_SIGNER,
  CLUSTER_LABEL,
  judgeRequest,
  memberGroup,
  memberOfUser,
  memberUser,
  parseCertificateRequest,
} from '#authority'
import { type CertificateRequestObject, denialIn, STREAM_SIGNER } from '#certificates'
import { clusterOfCertificate } from '#connections'
import type { KubeObject, Resource } from '#kube'
import type { CertificateLife, MissingDecision } from '#model'
import { type Asker, askersOf } from './askers.ts'
import { authoritiesIn, fingerprintOf, isIssuedBy } from './authorities.ts'
import { BOOTSTRAP_USER } from './bootstrap-kubeconfig.ts'
import { withoutPerson } from './decided-by.ts'
import { denialTimeOf, type ManagedCluster, managedClusters } from './members.ts'

/** With which key a request is made (SHA-256 of the public key, hex): for whoever decides by `kubectl`. */
export const KEY_ANNOTATION = 'clusterpulse.io/key'

/** Signers of members, whichever this hub asks: another one may have been in force when a request was made. */
export const MEMBER_SIGNERS: ReadonlySet<string> = new Set([API_CLIENT_SIGNER, STREAM_SIGNER])

/** One request, as far as it is looked at. */
export interface CertificateRequest extends CertificateRequestObject {
  readonly spec: {
    /** PEM of a PKCS#10, in base64 */
    readonly request: string
    readonly signerName: string
    readonly usages: readonly string[]
    readonly username?: string
  }
}

/** Requests for certificates, as Kubernetes has them. */
export const certificateRequests: Resource<CertificateRequest> = {
  group: 'certificates.k8s.io',
  version: 'v1',
  plural: 'certificatesigningrequests',
  kind: 'CertificateSigningRequest',
  namespaced: false,
}

/** Where a request is on its way; `signed` has what was asked for, in PEM. */
export type RequestState =
  | { readonly kind: 'pending' }
  | { readonly kind: 'approved' }
  | { readonly kind: 'signed'; readonly certificate: string }
  | { readonly kind: 'denied' | 'failed'; readonly why: string }

export function stateOf(request: Pick<CertificateRequest, 'status'>): RequestState {
  const { conditions = [], certificate } = request.status ?? {}
  const has = (type: string) => conditions.find((one) => one.type === type && one.status !== 'False')
  const denied = denialIn(request)
  if (denied) return { kind: 'denied', why: withoutPerson(denied.message || denied.reason || '') }
  const failed = has('Failed')
  if (failed) return { kind: 'failed', why: failed.message || failed.reason || '' }
  if (!has('Approved')) return { kind: 'pending' }
  if (!certificate) return { kind: 'approved' }
  return { kind: 'signed', certificate: Buffer.from(certificate, 'base64').toString() }
}

/** Whether somebody said yes to it, and nobody no since. */
export const isApproved = (request: CertificateRequest): boolean =>
  ['approved', 'signed'].includes(stateOf(request).kind)

/**
 * Which of the two decisions that make a member nobody took yet: one that is approved waits for its cluster to be accepted.
 * @param member undefined: there is none of the name, or none any more
 * @returns none where all is decided, and where no decision could make this one a member
 */
export function missingOf(request: CertificateRequest, member: ManagedCluster | undefined): readonly MissingDecision[] {
  if (!member || member.metadata.deletionTimestamp || !isAskedOf(request, member)) return []
  const isAccepted = member.spec?.hubAcceptsClient === true
  if (stateOf(request).kind === 'pending') return isAccepted ? ['approval'] : ['approval', 'acceptance']
  // One that was approved before its cluster was turned down was decided with it.
  return isApproved(request) && !isAccepted && approvedAt(request) > denialTimeOf(member) ? ['acceptance'] : []
}

/** Whether it was asked for this ManagedCluster, and not for one of its name that was deleted since. */
export function isAskedOf({ metadata, spec }: CertificateRequest, member: ManagedCluster): boolean {
  const owner = metadata.ownerReferences?.find(({ kind }) => kind === managedClusters.kind)
  if (owner) return owner.uid === member.metadata.uid
  // OCM's agent makes its ManagedCluster before or after it asks, and makes it again where it is gone: what it asked still counts.
  if (asksForItself(spec.username ?? '')) return true
  return !(Date.parse(metadata.creationTimestamp ?? '') < Date.parse(member.metadata.creationTimestamp ?? ''))
}

/** ms since the Unix epoch. */
function approvedAt({ status, metadata }: CertificateRequest): number {
  const { lastTransitionTime, lastUpdateTime } = status?.conditions?.find(({ type }) => type === 'Approved') ?? {}
  return Date.parse(lastTransitionTime ?? lastUpdateTime ?? metadata.creationTimestamp ?? '')
}

/** Whether a user of the hub's API is a member, or holds a credential to become one: nobody watches what it makes. */
export const asksForItself = (username: string): boolean =>
  username === BOOTSTRAP_USER || username.startsWith('system:bootstrap:') || memberOfUser(username) !== undefined

/** Where a request came from and of which agent, as the desk wrote it down. undefined: the desk did not make it, or forgot it since */
export function askerOf(request: CertificateRequest, member: KubeObject | undefined): Asker | undefined {
  if (asksForItself(request.spec.username ?? '')) return undefined
  const key = keyOf(request)
  return askersOf(member).find((one) => one.key === key)
}

const judged = new WeakMap<CertificateRequest, { readonly fault: string | undefined }>()

/**
 * Why a request is none of the cluster that its label names, whoever made it: anybody who may make requests can label them.
 * @returns undefined where it is one
 */
export function faultOf(request: CertificateRequest): string | undefined {
  const known = judged.get(request)
  if (known) return known.fault
  const judgement = judgeRequest(request, [...MEMBER_SIGNERS])
  const fault =
    judgement.kind === 'recognised'
      ? undefined
      : judgement.kind === 'faulty'
        ? judgement.message
        : `it is for the signer ${request.spec.signerName}`
  judged.set(request, { fault })
  return fault
}

/** Whether both ask for the same certificate: names can be given to others. */
export const isSameRequest = (a: CertificateRequest, b: CertificateRequest): boolean =>
  a.spec.request === b.spec.request &&
  a.spec.signerName === b.spec.signerName &&
  clusterOfRequest(a) === clusterOfRequest(b)

export const clusterOfRequest = ({ metadata }: KubeObject): string => metadata.labels?.[CLUSTER_LABEL] ?? ''

/** A request of a member that breaks no rule, as the object to be made of it. */
export interface AskedCertificate {
  readonly object: CertificateRequest
  /** SHA-256 of the public key, hex */
  readonly key: string
}

const MAX_REQUEST_BYTES = 4_096

/**
 * Makes the object of what an agent asks for. Its name follows from the request, so that asking twice makes one.
 * @param signer who is to sign it
 * @returns a sentence where the request is not exactly that of this agent: its subject, a key of its own, and no other wish
 */
export function askedCertificate(
  asked: {
    readonly cluster: string
    readonly agent: string
    readonly csr: Uint8Array
  },
  signer: string,
): AskedCertificate | string {
  const { cluster, agent, csr } = asked
  if (csr.length === 0 || csr.length > MAX_REQUEST_BYTES) return 'the certificate request is missing or too large'
  const object: CertificateRequest = {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: {
      name: `${cluster}-${sha256(csr).slice(0, 12)}`,
      labels: { [CLUSTER_LABEL]: cluster },
    },
    spec: {
      request: Buffer.from(pemOf('CERTIFICATE REQUEST', csr)).toString('base64'),
      signerName: signer,
      usages: ['digital signature', 'key encipherment', 'client auth'],
    },
  }
  const judged = judgeRequest(object, [signer])
  if (judged.kind !== 'recognised') return judged.kind === 'faulty' ? judged.message : 'the request is none of a member'
  // The next one is asked for with a signature of this key, which is read for these alone.
  if (judged.request.publicKey.asymmetricKeyType !== 'ec')
    return 'the key is on no elliptic curve: use one on P-256, P-384 or P-521'
  if (memberUser(judged.member) !== memberUser({ cluster, agent }))
    return 'the certificate request is for another agent'
  if (judged.organizations.join() !== memberGroup(cluster)) return 'the certificate request is for another group'
  const key = judged.request.keySha256
  object.metadata.annotations = { [KEY_ANNOTATION]: key }
  return { object, key }
}

/** The key a stored request is for, whatever its annotations say. undefined: it cannot be read. */
export function keyOf({ spec }: CertificateRequest): string | undefined {
  try {
    return parseCertificateRequest(Buffer.from(spec.request, 'base64').toString()).keySha256
  } catch {
    return undefined
  }
}

/** A certificate of before, as a renewal shows it. */
export interface FormerCertificate {
  readonly cluster: string
  readonly agent: string
  /** SHA-256, hex */
  readonly fingerprint: string
  /** ms since the Unix epoch */
  readonly notBefore: number
  readonly notAfter: number
}

/**
 * The certificate of a member that one of the authorities signed, and whose key signed the request for the next one. Whether it
 * has ended is for the caller.
 * @param roots PEM
 * @returns a sentence where it is none, or was not
 */
export function formerCertificate(
  shown: { readonly certificate: Uint8Array; readonly proof: Uint8Array; readonly csr: Uint8Array },
  roots: string,
): FormerCertificate | string {
  let read: X509Certificate
  try {
    read = new X509Certificate(shown.certificate)
  } catch {
    return 'the certificate of before cannot be read'
  }
  if (read.ca || !authoritiesIn(roots).some((authority) => isIssuedBy(read, authority)))
    return 'the certificate of before is of no authority of this hub: its CA was ended or replaced without an overlap, or it is another hub; let the cluster join anew, with a new join token, or, where that CA was lost, restore it (docs/guide/backup.md)'
  const { CN, O } = read.toLegacyObject().subject as { CN?: string | string[]; O?: string | string[] }
  const commonName = typeof CN === 'string' ? CN : ''
  const fingerprint = fingerprintOf(read)
  const [notBefore, notAfter] = [Date.parse(read.validFrom), Date.parse(read.validTo)]
  const organizations = [O ?? []].flat()
  const subjectAltName = read.subjectAltName ?? ''
  const named = clusterOfCertificate({ commonName, organizations, subjectAltName, fingerprint, notAfter })
  if (named?.as !== 'member') return 'the certificate of before is no certificate of a member'
  if (!isSignedBy(read, shown.csr, shown.proof))
    return 'the request is not signed with the key of the certificate of before'
  return { cluster: named.cluster, agent: commonName.split(':').at(-1) ?? '', fingerprint, notBefore, notAfter }
}

/** What is noted of a certificate that is handed out: by what it counts (SHA-256, hex), and how long. */
export interface HandedOut {
  readonly fingerprint: string
  readonly life: CertificateLife
}

/** Of a certificate in PEM. @param roots PEM of the authorities that may have signed it. undefined: it is none */
export function handedOutIn(pem: string, roots: string): HandedOut | undefined {
  try {
    const read = new X509Certificate(pem)
    const issuer = authoritiesIn(roots).find((authority) => isIssuedBy(read, authority))
    const life = { from: Date.parse(read.validFrom), until: Date.parse(read.validTo) }
    return {
      fingerprint: fingerprintOf(read),
      life: { ...life, ...(issuer && { issuer: fingerprintOf(issuer).slice(0, 16) }) },
    }
  } catch {
    return undefined
  }
}

function isSignedBy({ publicKey }: X509Certificate, data: Uint8Array, signature: Uint8Array): boolean {
  try {
    return publicKey.asymmetricKeyType === 'ec' && verify('sha256', data, publicKey, signature)
  } catch {
    return false // OpenSSL throws on signatures of impossible sizes
  }
}

export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

function pemOf(label: string, der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString('base64')
      .match(/.{1,64}/g) ?? []
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`
}
