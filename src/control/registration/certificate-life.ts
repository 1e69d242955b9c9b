import { X509Certificate } from 'node:crypto'
import { CLUSTER_LABEL } from '#authority'
import type { CertificateRequestObject } from '#certificates'
import { done, type Informer, type Outcome, type Reconciler } from '#controller'
import { CERTIFICATE_LIFE_ANNOTATION, certificateLifeIn, certificateLifeText } from '#kinds'
import type { KubeClient, KubeObject, ObjectKey } from '#kube'
import type { CertificateLife } from '#model'
import { type ManagedCluster, managedClusters } from './objects.ts'
import { versionOf } from './status.ts'
import { TRANSPORT } from './words.ts'

/** As the hub wrote it; null where it did not, or where it is no life. */
export const certificateLifeOf = ({ metadata }: KubeObject): CertificateLife | null =>
  certificateLifeIn(metadata.annotations?.[CERTIFICATE_LIFE_ANNOTATION])

interface CertificateLifeOptions {
  readonly hub: KubeClient
  readonly requests: Pick<Informer<CertificateRequestObject>, 'get'>
  readonly members: Pick<Informer<ManagedCluster>, 'get'>
}

/**
 * Notes on a member how long its newest certificate lives, whoever signed it. Of one on our stream it is written with the certificate that
 * is handed out, in the same write.
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
    if (!life || !member || member.metadata.annotations?.[TRANSPORT] === 'stream') return done
    const known = certificateLifeOf(member)
    if (known && (known.from > life.from || (known.from === life.from && known.until >= life.until))) return done
    const annotations = { [CERTIFICATE_LIFE_ANNOTATION]: certificateLifeText(life) }
    const metadata = { ...versionOf(member), annotations }
    await hub.patch(managedClusters, { name }, { metadata }, { kind: 'merge', signal })
    return done
  }
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
