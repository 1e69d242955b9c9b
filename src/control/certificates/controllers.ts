import type { Authority } from '#authority'
import { Controller, Informer, type ObjectChange, type Trigger } from '#controller'
import type { KubeClient, KubeObject, ObjectKey } from '#kube'
import { type Clock, systemClock } from '#model'
import type { Logger, Metrics } from '#runtime'
import { type AuthorityAct, configMaps, PublishedAuthority } from './published.ts'
import { type CertificateRequestObject, certificateRequests, type SignedRequest, SigningReconciler } from './signing.ts'

/** The ConfigMap in the hub's namespace that says which CAs members are signed by. */
export const AUTHORITY_CONFIG_MAP = 'hub-authority'

/** What signing members' certificates needs. */
export interface CertificatesOptions {
  /** the hub's own API, where the objects are */
  readonly hub: KubeClient
  /** where the ConfigMap stands */
  readonly namespace: string
  readonly authority: Authority
  /** whose requests are signed here; on Kubernetes its own controller signs some */
  readonly signers: readonly string[]
  /** hears of every request that was signed or marked as failed */
  readonly onSigned?: (request: SignedRequest) => void
  /** hears of every CA that was made or ended because people asked for it */
  readonly onAct?: (act: AuthorityAct) => void
  /** until a new CA signs, ms; default: that of the authority */
  readonly activeAfterMs?: number
  readonly logger: Logger
  readonly metrics?: Metrics
  readonly clock?: Clock
}

/** Signatures that are made at once. */
const CONCURRENCY = 8

/** The controllers of this module, for a Manager. */
export function certificateReconcilers(options: CertificatesOptions): readonly Controller[] {
  const { hub, namespace, authority, signers, logger, clock = systemClock, activeAfterMs } = options
  const requests = new Informer<CertificateRequestObject>({ kube: hub, resource: certificateRequests, logger, clock })
  const published = new Informer<KubeObject>({
    ...{ kube: hub, resource: configMaps, namespace, logger, clock },
    fieldSelector: `metadata.name=${AUTHORITY_CONFIG_MAP}`,
  })
  const key: ObjectKey = { namespace, name: AUTHORITY_CONFIG_MAP }
  const count = options.metrics?.counter(
    'clusterpulse_certificate_requests_total',
    'Approved certificate requests by what became of them.',
    ['result'],
  )
  const onSigned = (request: SignedRequest) => {
    count?.inc({ result: request.result.kind })
    options.onSigned?.(request)
  }
  const signing = new Controller({
    reconciler: new SigningReconciler({ hub, requests, authority, signers, onSigned, clock, logger }),
    triggers: [onEveryChange(requests)],
    concurrency: CONCURRENCY,
    logger,
    clock,
  })
  const publishing = new PublishingController(authority, key, {
    reconciler: new PublishedAuthority({
      ...{ hub, configMaps: published, authority, clock, logger, onAct: options.onAct },
      ...(activeAfterMs !== undefined && { activeAfterMs }),
    }),
    triggers: [{ ...onEveryChange(published), keysOf: () => [key], keysAtStart: () => [key] }],
    concurrency: 1,
    logger,
    clock,
  })
  return [signing, publishing]
}

/** Approval and annotations change no generation. */
function onEveryChange<T extends KubeObject>(informer: Informer<T>): Trigger {
  return {
    informer: informer as unknown as Informer<KubeObject>, // it only reads
    keysOf: (change: ObjectChange<KubeObject>) => (change.kind === 'deleted' ? [] : [change.key]),
    keysAtStart: () => informer.list().map(({ metadata: { name } }) => ({ name })),
  }
}

/** Looks again whenever the CA changes. */
class PublishingController extends Controller {
  readonly #authority: Authority
  readonly #key: ObjectKey
  #unsubscribe: (() => void) | undefined

  constructor(authority: Authority, key: ObjectKey, options: ConstructorParameters<typeof Controller>[0]) {
    super(options)
    this.#authority = authority
    this.#key = key
  }

  override start(): void {
    super.start()
    this.#unsubscribe ??= this.#authority.onChange(() => this.enqueue(this.#key))
  }

  override async stop(): Promise<void> {
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
    await super.stop()
  }
}
