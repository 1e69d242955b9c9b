import { beforeAll, describe, expect, it } from 'vitest'
import { CLUSTER_LABEL } from '#authority'
import type { CertificateRequestObject } from '#certificates'
import { aRequest, signingRequest, subjectOfMember } from '../../platform/authority/test/requests.ts'
import { approvalOf } from './approval.ts'
import type { ManagedCluster } from './objects.ts'
import { CONDITIONS } from './words.ts'

const BOOTSTRAP = 'system:bootstrap:abcdef'

describe('a request for a certificate', () => {
  let pem = ''
  let foreign = ''
  beforeAll(async () => {
    pem = (await aRequest(subjectOfMember('east', 'a'))).pem
    foreign = (await aRequest([...subjectOfMember('east', 'a'), { O: ['system:masters'] }])).pem
  })
  const asks = (
    username: string,
    over: Partial<CertificateRequestObject> = {},
    request = pem,
  ): CertificateRequestObject => ({
    ...signingRequest(request, { username, groups: [] }),
    metadata: { name: 'r', labels: { [CLUSTER_LABEL]: 'east' } },
    ...over,
  })
  const aMember = (...conditions: readonly [type: string, status: 'True' | 'False'][]): ManagedCluster => ({
    metadata: { name: 'east' },
    status: {
      conditions: conditions.map(([type, status]) => ({
        ...{ type, status, reason: '', message: '' },
        lastTransitionTime: '2026-01-01T00:00:00Z',
      })),
    },
  })
  const decide = (
    request: CertificateRequestObject,
    member: ManagedCluster | undefined,
    users: readonly string[] = [BOOTSTRAP],
  ) => approvalOf(request, users, (name) => (name === 'east' ? member : undefined)).kind

  it('of a listed user is approved for a cluster that is no member yet', () =>
    expect(decide(asks(BOOTSTRAP), aMember())).toBe('automatic'))

  it('of a member itself is a renewal, whoever is listed', () =>
    expect(decide(asks('system:open-cluster-management:east:a'), aMember([CONDITIONS.joined, 'True']), [])).toBe(
      'renewal',
    ))

  it('waits for a person in every other case', () => {
    const waits: readonly (readonly [string, CertificateRequestObject, ManagedCluster | undefined])[] = [
      ['somebody who is not listed', asks('somebody'), aMember()],
      ['another agent of the same cluster', asks('system:open-cluster-management:east:b'), aMember()],
      ['a listed user for a member that lives', asks(BOOTSTRAP), aMember([CONDITIONS.joined, 'True'])],
      ['a listed user for a cluster that was denied', asks(BOOTSTRAP), aMember([CONDITIONS.accepted, 'False'])],
      ['a listed user for a cluster nobody knows', asks(BOOTSTRAP), undefined],
      ['a person who wants more groups', asks('somebody', {}, foreign), aMember()],
      [
        'one that is approved',
        asks(BOOTSTRAP, { status: { conditions: [{ type: 'Approved', status: 'True' }] } }),
        aMember(),
      ],
      [
        'one that is denied',
        asks(BOOTSTRAP, { status: { conditions: [{ type: 'Denied', status: 'True' }] } }),
        aMember(),
      ],
      [
        'one for another signer',
        asks(BOOTSTRAP, { spec: { ...asks('').spec, signerName: 'example.com/s' } }),
        aMember(),
      ],
    ]
    for (const [who, request, member] of waits) expect(decide(request, member), who).toBe('wait')
  })

  it('of an agent that would be somebody else is denied, as people approve by the label', () => {
    const elsewhere = { metadata: { name: 'r', labels: { [CLUSTER_LABEL]: 'west' } } }
    for (const user of [BOOTSTRAP, 'system:open-cluster-management:west:a']) {
      expect(decide(asks(user, elsewhere), aMember())).toBe('denial')
      expect(decide(asks(user, {}, foreign), aMember())).toBe('denial')
      const kubelet = { spec: { ...asks(user).spec, signerName: 'kubernetes.io/kube-apiserver-client-kubelet' } }
      expect(decide(asks(user, kubelet), aMember()), 'denying takes the right to approve').toBe('wait')
      const status = { conditions: [{ type: 'Approved', status: 'True' as const }], certificate: 'c2lnbmVk' }
      expect(decide(asks(user, { ...kubelet, status }), aMember())).toBe('breach')
    }
  })

  it('of an agent that would be somebody else, and was approved by somebody, is told of', () => {
    const approved = {
      status: { conditions: [{ type: 'Approved', status: 'True' as const }], certificate: 'c2lnbmVk' },
    }
    expect(decide(asks(BOOTSTRAP, approved, foreign), aMember())).toBe('breach')
    expect(decide(asks(BOOTSTRAP, approved), aMember())).toBe('wait')
    expect(decide(asks('ann', approved, foreign), aMember())).toBe('wait')
    const failed = {
      status: { conditions: [...approved.status.conditions, { type: 'Failed', status: 'True' as const }] },
    }
    expect(decide(asks(BOOTSTRAP, failed, foreign), aMember()), 'nobody signed it').toBe('wait')
  })
})
