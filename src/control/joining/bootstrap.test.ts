import { describe, expect, it } from 'vitest'
import type { KubeClient } from '#kube'
import { aRequest } from '../../platform/authority/test/requests.ts'
import { ASKED_ANNOTATION } from './askers.ts'
import { BOOTSTRAP_USER, bootstrapKubeconfig } from './bootstrap-kubeconfig.ts'
import { askerOf, type CertificateRequest, keyOf } from './certificate-request.ts'
import { aJoiningHub } from './testing/joining-hub.ts'

const server = 'https://hub.example:8443'

/** Whether who holds such a kubeconfig may put a cluster into a set, or take it out. */
async function mayJoin(kube: KubeClient, set: string): Promise<boolean> {
  const resourceAttributes = {
    ...{ group: 'cluster.open-cluster-management.io', resource: 'managedclustersets', subresource: 'join' },
    ...{ verb: 'create', name: set },
  }
  const body = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: { user: BOOTSTRAP_USER, groups: [], resourceAttributes },
  }
  const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews'
  const answer = await kube.request('POST', path, { body, contentType: 'application/json' })
  return (answer as { status: { allowed: boolean } }).status.allowed
}

describe('the kubeconfig that is shared by all who ask to join', () => {
  it('moves no member between sets, which would show it to others', async () => {
    await using hub = await aJoiningHub()
    await bootstrapKubeconfig({ hub: hub.kube, server })
    expect(await mayJoin(hub.kube, 'default')).toBe(true)
    expect(await mayJoin(hub.kube, 'production')).toBe(false)
  })

  it.each([
    ['the hub', 'hub', '192.0.2.7'],
    ['who holds it', BOOTSTRAP_USER, ''],
    ['who holds a bootstrap token', 'system:bootstrap:abcdef', ''],
    ['a member', 'system:open-cluster-management:east:agent', ''],
  ])('does not let a request say where it comes from: made by %s', async (_, username, address) => {
    const { pem } = await aRequest()
    const request = {
      metadata: { name: 'east-1' },
      spec: { request: Buffer.from(pem).toString('base64'), signerName: '', usages: [], username },
    } satisfies CertificateRequest
    const askers = JSON.stringify([{ key: keyOf(request), address: '192.0.2.7', version: '1.2.3' }])
    const member = { metadata: { name: 'east', annotations: { [ASKED_ANNOTATION]: askers } } }
    expect(askerOf(request, member)?.address ?? '').toBe(address)
  })
})
