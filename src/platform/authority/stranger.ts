import { COMMON_NAME, ORGANIZATION, parseCertificateRequest } from './certificate-request.ts'
import { CertificateRequestError } from './errors.ts'
import { API_CLIENT_SIGNER, CLUSTER_LABEL, type SigningRequest } from './judge.ts'
import { clusterOfGroup, MEMBERS_GROUP, memberOfUser, quoted } from './member.ts'

/** Says nothing of who somebody is. */
const ORGANIZATIONAL_UNIT = '2.5.4.11'
/** Groups of every add-on's agents, and of everybody. */
const SHARED = /^(system:open-cluster-management:addon:[^:]+|system:authenticated)$/

/**
 * Why a request that an agent made must never be approved: signed as it stands, its certificate would be good for somebody else than the
 * cluster of its label and that cluster's add-ons. undefined: it would not, or another signer is asked. Who approves by the label need
 * not read the subject. Pure; never throws.
 */
export function strangerIn({ metadata, spec = {} }: SigningRequest): string | undefined {
  if (spec.signerName !== API_CLIENT_SIGNER) return undefined
  const cluster = metadata.labels?.[CLUSTER_LABEL] ?? ''
  const addOn = `system:open-cluster-management:cluster:${cluster}:addon:`
  try {
    for (const { oid, value } of parseCertificateRequest(Buffer.from(spec.request ?? '', 'base64')).subject) {
      const isOwn =
        oid === ORGANIZATIONAL_UNIT ||
        (oid === COMMON_NAME && (memberOfUser(value)?.cluster === cluster || value.startsWith(addOn))) ||
        (oid === ORGANIZATION &&
          (clusterOfGroup(value) === cluster ||
            value === MEMBERS_GROUP ||
            value.startsWith(addOn) ||
            SHARED.test(value)))
      if (!isOwn) return `its subject names ${quoted(value)}, which is not of cluster ${quoted(cluster)}`
    }
    return undefined
  } catch (error) {
    if (error instanceof CertificateRequestError) return error.message
    throw error
  }
}
