import { isKubeError, type KubeClient } from '#kube'
import { type CertificateRequest, certificateRequests, stateOf } from './certificate-request.ts'

const ATTEMPTS = 5

interface Decision {
  readonly reason: string
  readonly message: string
  readonly signal?: AbortSignal
}

/** As `kubectl certificate approve`; one that is decided already stays as it is. @throws KubeError */
export const approve = (hub: KubeClient, request: CertificateRequest, decision: Decision): Promise<void> =>
  decide(hub, request.metadata.name, 'Approved', decision)

/** As `kubectl certificate deny`; one that is decided already stays as it is. @throws KubeError */
export const deny = (hub: KubeClient, request: CertificateRequest, decision: Decision): Promise<void> =>
  decide(hub, request.metadata.name, 'Denied', decision)

async function decide(hub: KubeClient, name: string, type: 'Approved' | 'Denied', decision: Decision): Promise<void> {
  const { reason, message, signal } = decision
  for (let attempt = 1; ; attempt++) {
    const found = await hub.get(certificateRequests, { name }, signal)
    if (!found || stateOf(found).kind !== 'pending') return
    const condition = { type, status: 'True', reason, message, lastUpdateTime: new Date().toISOString() }
    const body = { ...found, status: { ...found.status, conditions: [...(found.status?.conditions ?? []), condition] } }
    try {
      await hub.request('PUT', `/apis/certificates.k8s.io/v1/certificatesigningrequests/${name}/approval`, {
        ...{ body, contentType: 'application/json' },
        ...(signal && { signal }),
      })
      return
    } catch (error) {
      if (!isKubeError(error, 'conflict') || attempt >= ATTEMPTS) throw error
    }
  }
}
