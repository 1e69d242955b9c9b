import { X509Certificate } from 'node:crypto'
import { EVENTS, type EventLimits } from './event-limits.ts'
import type { ExpiringKind } from './expiry.ts'
import type { ApiObject } from './types.ts'

const HOUR_MS = 3_600_000
/** How long a decided request stays, from its decision on, and an undecided or unsigned one. */
const DECIDED_MS = HOUR_MS
const WAITING_MS = 24 * HOUR_MS

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

/** Those that are made by machines do not pile up. */
export const expiringRequests: ExpiringKind = {
  resource: { group: 'certificates.k8s.io', version: 'v1', plural: 'certificatesigningrequests' },
  collection: 'certificates.k8s.io/certificatesigningrequests',
  isOver: isRequestOver,
}

/** Events that nobody changed for so long go. When that was is the server's to say, not the writer's. */
export const expiringEvents = ({ lifeMs }: EventLimits): ExpiringKind => ({
  resource: { group: '', version: 'v1', plural: 'events' },
  collection: EVENTS,
  isOver: ({ metadata }, nowMs) => nowMs - changedMs(metadata) > lifeMs,
})

function changedMs({ creationTimestamp, managedFields }: ApiObject['metadata']): number {
  const times = [creationTimestamp, ...(managedFields ?? []).map(({ time }) => time)]
  return Math.max(0, ...times.map((time) => Date.parse(time ?? '') || 0))
}
