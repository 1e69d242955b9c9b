import type { KeyObject } from 'node:crypto'
import { ALTERNATIVE_NAMES, type CertificateRequest, parseCertificateRequest } from './certificate-request.ts'
import { CertificateRequestError } from './errors.ts'
import { clusterOfGroup, type MemberName, memberOfUser, memberUser, quoted, subjectOf } from './member.ts'

/** Label of a certificate request, a namespace, or of what gives rights: the cluster it belongs to. */
export const CLUSTER_LABEL = 'open-cluster-management.io/cluster-name'
/** In `spec.extra` of a requester whose credential, such as a join token, is good for these clusters alone. */
export const CLUSTERS_EXTRA = 'clusterpulse.io/clusters'
/** The signer that agents of Open Cluster Management ask. */
export const API_CLIENT_SIGNER = 'kubernetes.io/kube-apiserver-client'

/** A CertificateSigningRequest of certificates.k8s.io/v1, as far as it is judged. */
export interface SigningRequest {
  readonly metadata: { readonly labels?: Readonly<Record<string, string>> | undefined }
  readonly spec?: RequestSpec | undefined
}

interface RequestSpec {
  /** base64 of PEM */
  readonly request?: string
  readonly signerName?: string
  readonly usages?: readonly string[]
  readonly expirationSeconds?: number
  readonly username?: string
  readonly groups?: readonly string[]
  readonly extra?: Readonly<Record<string, readonly string[]>>
}

/** Which rule a request breaks. */
export type RequestFault = 'label' | 'request' | 'key' | 'extensions' | 'subject' | 'usages' | 'requester'

/** What a request is. Only what is recognised can be signed. */
export type Judgement =
  /** for another signer: none of ours */
  | { readonly kind: 'foreign' }
  | { readonly kind: 'faulty'; readonly fault: RequestFault; readonly message: string }
  | RecognisedRequest

/** A request that breaks no rule: of this member, and nothing but its name. Whether it is approved is another question. */
export interface RecognisedRequest {
  readonly kind: 'recognised'
  readonly member: MemberName
  readonly organizations: readonly string[]
  /** the member asks for itself, under the identity it has already */
  readonly isRenewal: boolean
  readonly request: CertificateRequest
  /** how long it asks for; undefined: as long as is usual */
  readonly expirationSeconds: number | undefined
}

/**
 * Judges a CertificateSigningRequest by the rules of Open Cluster Management and by stricter ones of ours (no alternative names or other extensions, no other
 * words in the subject, client authentication alone, keys of a bounded sort, nobody asks for another cluster). Pure; never throws.
 * @param signers whose requests are judged
 */
export function judgeRequest({ metadata, spec = {} }: SigningRequest, signers: readonly string[]): Judgement {
  if (!signers.includes(spec.signerName ?? '')) return { kind: 'foreign' }
  const label = metadata.labels?.[CLUSTER_LABEL]
  if (!label)
    return faulty('label', `the request has no label ${CLUSTER_LABEL}: certificates are signed for members alone`)
  const request = parsed(spec.request)
  if (typeof request === 'string') return faulty('request', request)
  const keyFault = faultOfKey(request.publicKey)
  if (keyFault) return faulty('key', keyFault)
  const [extension] = request.extensions
  if (extension) return faulty('extensions', faultOfExtension(extension))
  const subject = subjectOf(request.subject)
  if (typeof subject === 'string') return faulty('subject', subject)
  const { member, organizations } = subject
  if (member.cluster !== label)
    return faulty(
      'label',
      `the subject names cluster ${quoted(member.cluster)}, the label ${CLUSTER_LABEL} names ${quoted(label)}`,
    )
  const usageFault = faultOfUsages(spec.usages ?? [])
  if (usageFault) return faulty('usages', usageFault)
  const requesterFault = faultOfRequester(spec, member.cluster)
  if (requesterFault) return faulty('requester', requesterFault)
  const isRenewal = spec.username === memberUser(member)
  return { kind: 'recognised', member, organizations, isRenewal, request, expirationSeconds: spec.expirationSeconds }
}

const faulty = (fault: RequestFault, message: string): Judgement => ({ kind: 'faulty', fault, message })

function parsed(base64: string | undefined): CertificateRequest | string {
  try {
    return parseCertificateRequest(Buffer.from(base64 ?? '', 'base64'))
  } catch (error) {
    if (error instanceof CertificateRequestError) return error.message
    throw error
  }
}

const CURVES = ['prime256v1', 'secp384r1', 'secp521r1']
const RSA_BITS = { min: 2048, max: 4096 }

function faultOfKey({ asymmetricKeyType, asymmetricKeyDetails: details }: KeyObject): string | undefined {
  const advice = 'use an elliptic curve key (P-256, P-384, P-521), Ed25519, or RSA of 2048 to 4096 bits'
  if (asymmetricKeyType === 'ed25519') return undefined
  if (asymmetricKeyType === 'ec')
    return CURVES.includes(details?.namedCurve ?? '')
      ? undefined
      : `the key is on another curve (${details?.namedCurve ?? 'unnamed'}): ${advice}`
  if (asymmetricKeyType !== 'rsa') return `the key is of type ${asymmetricKeyType}: ${advice}`
  const { modulusLength = 0, publicExponent = 0n } = details ?? {}
  if (modulusLength < RSA_BITS.min || modulusLength > RSA_BITS.max)
    return `the RSA key has ${modulusLength} bits: ${advice}`
  return publicExponent >= 65537n && publicExponent < 2n ** 32n
    ? undefined
    : `the RSA key has the exponent ${publicExponent}: use 65537`
}

const faultOfExtension = (oid: string): string =>
  oid === ALTERNATIVE_NAMES
    ? "the request asks for alternative names: a member's certificate has none"
    : `the request asks for the extension ${oid}: what a member's certificate may be used for is not the member's choice`

const OPTIONAL_USAGES = ['digital signature', 'key encipherment']

function faultOfUsages(usages: readonly string[]): string | undefined {
  const foreign = usages.find((usage) => usage !== 'client auth' && !OPTIONAL_USAGES.includes(usage))
  if (foreign !== undefined) return `invalid usage for client certificate: ${foreign}`
  return usages.includes('client auth') ? undefined : 'missing required usage for client certificate: client auth'
}

/** A member asks for itself, and who holds a credential for some clusters asks for those. */
function faultOfRequester(
  { username = '', groups = [], extra = {} }: RequestSpec,
  cluster: string,
): string | undefined {
  const asks = `${quoted(username)} asks for cluster ${quoted(cluster)}`
  const own = [memberOfUser(username)?.cluster, ...groups.map(clusterOfGroup)].filter((each) => each !== undefined)
  if (own.some((each) => each !== cluster))
    return `${asks}, and is a member itself: a member may ask for its own cluster alone`
  const bound = Object.hasOwn(extra, CLUSTERS_EXTRA) ? (extra[CLUSTERS_EXTRA] ?? []) : undefined
  if (bound && !bound.includes(cluster))
    return `${asks} with a credential for ${bound.map(quoted).join(', ') || 'none'}`
  return undefined
}
