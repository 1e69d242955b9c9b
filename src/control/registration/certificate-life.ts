import { X509Certificate } from 'node:crypto'
import { CLUSTER_LABEL } from '#authority'
import type { CertificateRequestObject } from '#certificates'
import { done, type Informer, type Outcome, type Reconciler } from '#controller'
import type { KubeClient, KubeObject, ObjectKey } from '#kube'
import type { CertificateLife } from '#model'
import { type ManagedCluster, managedClusters } from './objects.ts'
import { versionOf } from './status.ts'

/**
 * From when to when the newest certificate of a member counts, `<from>/<until>` in RFC 3339. Requests are cleaned up within hours of
 * their answer; the member keeps this. The hub writes it, and decides nothing by it.
 */
export const CERTIFICATE_LIFE = 'clusterpulse.io/certificate-life'

/** As the hub wrote it; null where it did not, or where it is no life. */
export function certificateLifeOf({ metadata }: KubeObject): CertificateLife | null {
  const [from, until] = (metadata.annotations?.[CERTIFICATE_LIFE] ?? '').split('/').map((text) => Date.parse(text))
  return from !== undefined && until !== undefined && from < until ? { from, until } : null
}

interface CertificateLifeOptions {
  readonly hub: KubeClient
  readonly requests: Pick<Informer<CertificateRequestObject>, 'get'>
  readonly members: Pick<Informer<ManagedCluster>, 'get'>
}

/** Notes on a member how long its newest certificate lives, whoever signed it. */
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
    if (!life || !member) return done
    const known = certificateLifeOf(member)
    if (known && (known.from > life.from || (known.from === life.from && known.until >= life.until))) return done
    const text = [life.from, life.until].map((at) => new Date(at).toISOString()).join('/')
    const metadata = { ...versionOf(member), annotations: { [CERTIFICATE_LIFE]: text } }
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
