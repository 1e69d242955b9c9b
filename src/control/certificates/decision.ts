import { isKubeError, type KubeClient } from '#kube'
import { type CertificateRequestObject, certificateRequests } from './signing.ts'

/** Of what the hub approves without a person, as OCM's hub says it. */
export const AUTO_APPROVED = 'AutoApprovedByHubCSRApprovingController'

const ATTEMPTS = 5
const DECIDED = new Set(['Approved', 'Denied', 'Failed'])
const ENDED = new Set(['Denied', 'Failed'])
/** Of a request that was turned down after it was approved: the API takes both conditions, Approved and Denied, of none. */
const DENIED_LATE = 'DeniedAfterApproval'

interface Decision {
  readonly reason: string
  readonly message: string
  /** ms since the Unix epoch; default now */
  readonly at?: number
  readonly signal?: AbortSignal
}

/** As `kubectl certificate approve`; one that is decided or gone already, or another of its name, is left as it is. @throws KubeError */
export const approve = (hub: KubeClient, request: CertificateRequestObject, decision: Decision): Promise<void> =>
  decide(hub, request, 'Approved', decision)

/** As `kubectl certificate deny`; one that is decided or gone already, or another of its name, is left as it is. @throws KubeError */
export const deny = (hub: KubeClient, request: CertificateRequestObject, decision: Decision): Promise<void> =>
  decide(hub, request, 'Denied', decision)

/** Turns one down that is approved, signed or not, as `Failed`; one that is denied, failed or gone already, or another of its name, is left as it is. @throws KubeError */
export const denyApproved = (
  hub: KubeClient,
  request: CertificateRequestObject,
  decision: Omit<Decision, 'reason'>,
): Promise<void> => decide(hub, request, 'Failed', { ...decision, reason: DENIED_LATE })

/** The condition by which a person turned it down, before or after it was approved. undefined: nobody did */
export const denialIn = ({ status }: Pick<CertificateRequestObject, 'status'>) =>
  status?.conditions?.find(
    ({ type, status, reason }) =>
      status !== 'False' && (type === 'Denied' || (type === 'Failed' && reason === DENIED_LATE)),
  )

async function decide(
  hub: KubeClient,
  request: CertificateRequestObject,
  type: 'Approved' | 'Denied' | 'Failed',
  { reason, message, at = Date.now(), signal }: Decision,
): Promise<void> {
  const { name, uid } = request.metadata
  const path = `/apis/certificates.k8s.io/v1/certificatesigningrequests/${encodeURIComponent(name)}/approval`
  // What is known is written first, by its version; one that was made here has none yet.
  let found = request.metadata.resourceVersion === undefined ? undefined : request
  for (let attempt = 1; ; attempt++) {
    found ??= await hub.get(certificateRequests, { name }, signal)
    if (!found || (uid !== undefined && found.metadata.uid !== uid) || isDecided(found, type)) return
    const condition = { type, status: 'True', reason, message, lastUpdateTime: new Date(at).toISOString() }
    const status = { ...found.status, conditions: [...(found.status?.conditions ?? []), condition] }
    try {
      const body = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest', ...found, status }
      await hub.request('PUT', path, { body, contentType: 'application/json', ...(signal && { signal }) })
      return
    } catch (error) {
      if (isKubeError(error, 'not_found')) return
      if (!isKubeError(error, 'conflict') || attempt >= ATTEMPTS) throw error
      found = undefined
    }
  }
}

const isDecided = ({ status }: CertificateRequestObject, as: 'Approved' | 'Denied' | 'Failed'): boolean =>
  (as !== 'Failed' && status?.certificate !== undefined) ||
  (status?.conditions ?? []).some((one) => (as === 'Failed' ? ENDED : DECIDED).has(one.type) && one.status !== 'False')
