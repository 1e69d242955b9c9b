import { X509Certificate } from 'node:crypto'
import { CLUSTER_LABEL } from '#authority'
import type { CertificateRequestObject } from '#certificates'
import { done, type Informer, type Outcome, type Reconciler } from '#controller'
import { CERTIFICATE_LIFE_ANNOTATION, CERTIFICATES_ANNOTATION, certificateLifeIn, certificateLifeText } from '#kinds'
import type { KubeClient, KubeObject, ObjectKey } from '#kube'
import type { CertificateLife } from '#model'
import { AWAITED } from './availability.ts'
import { conditionOf, type ManagedCluster, managedClusters } from './objects.ts'
import { versionOf } from './status.ts'
import { CONDITIONS, TRANSPORT } from './words.ts'

/** As the hub wrote it; null where it did not, where it is no life, or where the certificate counts no more. */
export const certificateLifeOf = (member: KubeObject): CertificateLife | null =>
  isRevoked(member) ? null : certificateLifeIn(member.metadata.annotations?.[CERTIFICATE_LIFE_ANNOTATION])

/** The hub's CAs, as far as it depends on them whether certificates count. */
export interface Authorities {
  /** Whether none of them can have signed it; undefined: not known. */
  lacksIssuerOf(life: CertificateLife): boolean | undefined
  /** Why no certificate can be signed; undefined: one can, or it is not known. */
  signingFault?(): string | undefined
  /** @returns what ends it */
  onChange(listener: () => void): () => void
}

/** Whether the newest certificate of a member that is accepted is of a CA that the hub has lost; undefined: not known. */
export function lacksAuthority(member: ManagedCluster, authorities: Authorities | undefined): boolean | undefined {
  const life = certificateLifeOf(member)
  const isMember = member.spec?.hubAcceptsClient === true && !member.metadata.deletionTimestamp
  return isMember && life !== null ? authorities?.lacksIssuerOf(life) : false
}

/** The same, but of one that speaks to the hub it is not, whatever the clocks say. */
export function hasLostAuthority(member: ManagedCluster, authorities: Authorities | undefined): boolean {
  const { status = 'Unknown', reason } = conditionOf(member, CONDITIONS.available) ?? {}
  return (status === 'Unknown' || reason === AWAITED) && lacksAuthority(member, authorities) === true
}

/** Whether no certificate counts any more: it has to ask anew. */
export const isRevoked = (member: KubeObject): boolean => revokedMs(member) !== undefined

/** When somebody revoked its certificates, ms since the Unix epoch; undefined: they were not, or others were handed out since. */
export function revokedMs({ metadata: { annotations } }: KubeObject): number | undefined {
  const written = annotations?.[CERTIFICATES_ANNOTATION]
  return written?.startsWith('revoked-') ? Date.parse(written.slice('revoked-'.length)) || 0 : undefined
}

interface CertificateLifeOptions {
  readonly hub: KubeClient
  readonly requests: Pick<Informer<CertificateRequestObject>, 'get'>
  readonly members: Pick<Informer<ManagedCluster>, 'get'>
}

/**
 * Notes on a member how long its newest certificate lives, whoever signed it. Of one on our stream it is written with the certificate that
 * is handed out, in the same write. One that was asked for anew after its member was revoked ends that: the API server signed it, and no
 * list of ours says which of its certificates count.
 */
export class CertificateLifeReconciler implements Reconciler {
  readonly name = 'certificate-life'
  readonly #options: CertificateLifeOptions

  constructor(options: CertificateLifeOptions) {
    this.#options = options
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    const { hub, requests, members } = this.#options
    const request = requests.get(key)
    const name = request?.metadata.labels?.[CLUSTER_LABEL] ?? ''
    const life = lifeIn(request?.status?.certificate)
    const member = members.get({ name })
    // One that was approved before the member was made is of another of that name.
    const since = Math.max(Date.parse(member?.metadata.creationTimestamp ?? ''), (member && revokedMs(member)) ?? 0)
    if (!life || !member || approvedAt(request) < since) return done
    if (member.metadata.annotations?.[TRANSPORT] === 'stream') return done
    const known = certificateLifeOf(member)
    if (known && (known.from > life.from || (known.from === life.from && known.until >= life.until))) return done
    const annotations = {
      [CERTIFICATE_LIFE_ANNOTATION]: certificateLifeText(life),
      ...(isRevoked(member) && { [CERTIFICATES_ANNOTATION]: null }),
    }
    const metadata = { ...versionOf(member), annotations }
    await hub.patch(managedClusters, { name }, { metadata }, { kind: 'merge', signal })
    return done
  }
}

/** ms since the Unix epoch; not before it was made, whatever the clock of whoever approved. */
function approvedAt(request: CertificateRequestObject | undefined): number {
  const approved = request?.status?.conditions?.find(({ type }) => type === 'Approved')
  const { lastTransitionTime, lastUpdateTime } = approved ?? {}
  const times = [lastTransitionTime ?? lastUpdateTime, request?.metadata.creationTimestamp]
  return Math.max(0, ...times.map((text) => Date.parse(text ?? '')).filter((at) => !Number.isNaN(at)))
}

/** @param certificate PEM in base64, as a request has it; what is none has no life */
function lifeIn(certificate: string | undefined): CertificateLife | undefined {
  if (!certificate) return undefined
  try {
    const { validFrom, validTo } = new X509Certificate(Buffer.from(certificate, 'base64'))
    return { from: Date.parse(validFrom), until: Date.parse(validTo) }
  } catch {
    return undefined
  }
}
