import { X509Certificate } from 'node:crypto'
import type { Clock } from '#model'
import type { Logger } from '#runtime'
import type { ObjectStore } from './objects.ts'
import { ApiError } from './status.ts'
import type { ApiObject } from './types.ts'

export const CERTIFICATE_REQUESTS = 'certificates.k8s.io/certificatesigningrequests'
const requests = { group: 'certificates.k8s.io', version: 'v1', plural: 'certificatesigningrequests' }

const HOUR_MS = 3_600_000
/** How long a decided request stays, from its decision on, and an undecided or unsigned one. */
const DECIDED_MS = HOUR_MS
const WAITING_MS = 24 * HOUR_MS
/** Between two looks, while there are requests. */
const LOOK_MS = 60_000

interface Condition {
  readonly type: string
  readonly lastUpdateTime?: string
}

/**
 * Whether a CertificateSigningRequest has served its time, as Kubernetes' controller decides: an hour after it was denied, failed, or approved and signed; a
 * day without a decision or a certificate; or when its certificate has ended.
 */
export function isRequestOver({ metadata, status }: ApiObject, nowMs: number): boolean {
  const { conditions = [], certificate } = (status ?? {}) as { conditions?: readonly Condition[]; certificate?: string }
  const isOlder = (time: string | undefined, ms: number) => time !== undefined && nowMs - Date.parse(time) > ms
  if (conditions.length === 0) return isOlder(metadata.creationTimestamp, WAITING_MS)
  return conditions.some(({ type, lastUpdateTime }) => {
    if (type === 'Denied' || type === 'Failed') return isOlder(lastUpdateTime, DECIDED_MS)
    if (type !== 'Approved') return false
    return certificate
      ? isOlder(lastUpdateTime, DECIDED_MS) || hasEnded(certificate, nowMs)
      : isOlder(lastUpdateTime, WAITING_MS)
  })
}

function hasEnded(certificate: string, nowMs: number): boolean {
  try {
    return nowMs > Date.parse(new X509Certificate(Buffer.from(certificate, 'base64')).validTo)
  } catch {
    return false // a signer's own business
  }
}

/** Deletes CertificateSigningRequests that have served their time, so that those that are made by machines do not pile up. */
export class CertificateCleanup implements AsyncDisposable {
  readonly #objects: ObjectStore
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #stop = new AbortController()
  #looking: Promise<void> | undefined

  constructor(parts: { readonly objects: ObjectStore; readonly clock: Clock; readonly logger: Logger }) {
    this.#objects = parts.objects
    this.#clock = parts.clock
    this.#logger = parts.logger
  }

  /** Called with every change as it becomes visible. */
  saw(collection: string): void {
    if (collection === CERTIFICATE_REQUESTS) this.start()
  }

  /** Looks as long as there are requests. */
  start(): void {
    if (!this.#stop.signal.aborted) this.#looking ??= this.#look()
  }

  async #look(): Promise<void> {
    const { signal } = this.#stop
    await Promise.resolve() // not within the write that called for it
    while (!signal.aborted && this.#objects.list(requests).length > 0) {
      for (const request of this.#objects.list(requests))
        if (isRequestOver(request, this.#clock.now())) await this.#remove(request)
      await this.#clock.sleep(LOOK_MS, signal)
    }
    this.#looking = undefined
  }

  async #remove({ metadata }: ApiObject): Promise<void> {
    const { name, uid = '', resourceVersion = '' } = metadata
    try {
      await this.#objects.delete(requests, { name }, { preconditions: { uid, resourceVersion } })
    } catch (error) {
      if (error instanceof ApiError && error.reason === 'Conflict') return // decided just now
      this.#logger.warn({ err: error, name }, 'a certificate request that has served its time could not be deleted')
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#looking
  }
}
