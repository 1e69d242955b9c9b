import { type Authority, CLUSTER_LABEL, judgeRequest, type MemberName, type SigningRequest } from '#authority'
import { done, type Informer, type Outcome, type Reconciler } from '#controller'
import type { KubeClient, KubeObject, ObjectKey, Resource } from '#kube'
import type { Clock } from '#model'
import type { Logger } from '#runtime'

/** The signer of members that come over the hub's own stream; on every hub it is the hub itself. */
export const STREAM_SIGNER = 'open-cluster-management.io/grpc'

interface Condition {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
  readonly lastUpdateTime?: string
  readonly lastTransitionTime?: string
}

/** A CertificateSigningRequest, as far as signing goes by it. */
export interface CertificateRequestObject extends KubeObject {
  readonly spec?: SigningRequest['spec']
  readonly status?: { readonly conditions?: readonly Condition[]; readonly certificate?: string }
}

export const certificateRequests: Resource<CertificateRequestObject> = {
  group: 'certificates.k8s.io',
  version: 'v1',
  plural: 'certificatesigningrequests',
  kind: 'CertificateSigningRequest',
  namespaced: false,
  fromJson: ({ metadata: { managedFields: _, ...metadata }, ...object }) => ({ ...object, metadata }),
}

/** What was made of a request: for the audit trail. */
export interface SignedRequest {
  /** of the object */
  readonly name: string
  /** who asked */
  readonly username: string
  /** of one that failed `cluster` is what it says it is of; undefined: nothing */
  readonly result:
    | { readonly kind: 'signed'; readonly member: MemberName; readonly serial: string; readonly notAfterMs: number }
    | { readonly kind: 'failed'; readonly message: string; readonly cluster: string | undefined }
}

export interface SigningOptions {
  readonly hub: KubeClient
  readonly requests: Pick<Informer<CertificateRequestObject>, 'get' | 'wrote'>
  readonly authority: Authority
  /** whose requests are signed here */
  readonly signers: readonly string[]
  readonly onSigned?: ((request: SignedRequest) => void) | undefined
  readonly clock: Clock
  readonly logger: Logger
}

/** Signs what is approved, once; marks as failed what may not be signed, whoever approved it. */
export class SigningReconciler implements Reconciler {
  readonly name = 'certificate-signing'
  readonly #options: SigningOptions

  constructor(options: SigningOptions) {
    this.#options = options
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    const { requests, authority, signers } = this.#options
    const request = requests.get(key)
    if (!request || !isSignable(request)) return done
    const judged = judgeRequest(request, signers)
    if (judged.kind === 'foreign') return done
    if (judged.kind === 'faulty') {
      const conditions = [...(request.status?.conditions ?? []), this.#failed(judged.message)]
      await this.#write(request, { conditions }, signal)
      const cluster = request.metadata.labels?.[CLUSTER_LABEL]
      this.#tell(request, { kind: 'failed', message: judged.message, cluster })
      return done
    }
    const { pem, serial, notAfterMs } = await authority.signClient(judged)
    await this.#write(request, { certificate: Buffer.from(pem).toString('base64') }, signal)
    this.#tell(request, { kind: 'signed', member: judged.member, serial, notAfterMs })
    return done
  }

  #failed(message: string): Condition {
    const at = `${new Date(this.#options.clock.now()).toISOString().slice(0, 19)}Z`
    const times = { lastUpdateTime: at, lastTransitionTime: at }
    return { type: 'Failed', status: 'True', reason: 'SignerValidationFailure', message, ...times }
  }

  /** Refused where the request changed since it was judged: then it is judged again. */
  async #write({ metadata }: CertificateRequestObject, status: object, signal: AbortSignal): Promise<void> {
    const { name, uid, resourceVersion } = metadata
    const body = { metadata: { uid, resourceVersion }, status }
    const { hub, requests } = this.#options
    const how = { kind: 'merge', subresource: 'status', signal } as const
    requests.wrote(await hub.patch(certificateRequests, { name }, body, how))
  }

  #tell({ metadata: { name }, spec }: CertificateRequestObject, result: SignedRequest['result']): void {
    const { logger, onSigned } = this.#options
    const username = spec?.username ?? ''
    if (result.kind === 'signed') {
      const { member, serial } = result
      logger.info({ request: name, username, ...member, serial }, 'a certificate was signed for a member')
    } else
      logger.warn({ request: name, username, reason: result.message }, 'an approved certificate request was not signed')
    onSigned?.({ name, username, result })
  }
}

/** Approved, not denied as well, and neither signed nor failed yet. */
function isSignable({ metadata, status }: CertificateRequestObject): boolean {
  const has = (type: string) => status?.conditions?.some((one) => one.type === type && one.status === 'True') ?? false
  return !metadata.deletionTimestamp && has('Approved') && !has('Denied') && !has('Failed') && !status?.certificate
}
