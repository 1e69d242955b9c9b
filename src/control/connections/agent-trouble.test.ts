import { describe, expect, it } from 'vitest'
import type { KubeObject } from '#kube'
import { type AgentSigns, troubleOf } from './agent-trouble.ts'

const signs = (over: Partial<AgentSigns>): AgentSigns => ({
  deployment: undefined,
  pods: [],
  claim: undefined,
  events: [],
  ...over,
})
const pod = (status: object, metadata: object = {}): KubeObject => ({
  kind: 'Pod',
  metadata: { name: 'collector-1', uid: 'u1', creationTimestamp: '2026-01-01T00:00:00Z', ...metadata },
  status,
})
const waiting = (reason: string, message = '', more: object = {}) =>
  pod({ phase: 'Pending', containerStatuses: [{ state: { waiting: { reason, message } }, ...more }] })
const deployment = (type: string, status: string, reason: string, message: string): KubeObject => ({
  metadata: { name: 'clusterpulse-collector' },
  status: { conditions: [{ type, status, reason, message }] },
})
const event = (kind: string, name: string, reason: string, message: string, at = '2026-01-01T00:00:01Z') =>
  ({
    metadata: { name: `${name}.1` },
    type: 'Warning',
    reason,
    message,
    lastTimestamp: at,
    involvedObject: { kind, name },
  }) as KubeObject

const HUB = 'hub.example:9443'

describe('why an agent cannot start', () => {
  it.each<[string, Partial<AgentSigns>, RegExp | undefined]>([
    ['nothing there yet', {}, undefined],
    ['a pod that starts', { pods: [waiting('ContainerCreating')] }, undefined],
    [
      'a pod that runs',
      { pods: [pod({ phase: 'Running', containerStatuses: [{ state: { running: {} } }] })] },
      undefined,
    ],
    [
      'an image that cannot be pulled',
      { pods: [waiting('ImagePullBackOff', 'Back-off pulling image "x"')] },
      /^pod collector-1: ImagePullBackOff: Back-off pulling image "x"; set AGENT_IMAGE .*AGENT_IMAGE_PULL_SECRET/,
    ],
    [
      'a Secret that lacks',
      { pods: [waiting('CreateContainerConfigError', 'secret "a" not found')] },
      /CreateContainerConfigError: secret "a" not found$/,
    ],
    [
      'a container that ends',
      {
        pods: [
          waiting('CrashLoopBackOff', 'back-off', {
            lastState: { terminated: { exitCode: 137, reason: 'OOMKilled' } },
          }),
        ],
      },
      /CrashLoopBackOff: back-off; it ended with OOMKilled \(exit code 137\)/,
    ],
    [
      'a pod without a place',
      {
        pods: [
          pod({
            phase: 'Pending',
            conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/3 nodes' }],
          }),
        ],
      },
      /Unschedulable: 0\/3 nodes/,
    ],
    [
      'a volume that cannot be mounted',
      { pods: [waiting('ContainerCreating')], events: [event('Pod', 'collector-1', 'FailedMount', 'timed out')] },
      /^pod collector-1: FailedMount: timed out$/,
    ],
    [
      'a quota',
      {
        deployment: deployment(
          'ReplicaFailure',
          'True',
          'FailedCreate',
          'pods "x" is forbidden: exceeded quota: small',
        ),
      },
      /^no pod is made: FailedCreate: pods "x" is forbidden: exceeded quota: small$/,
    ],
    [
      'admission',
      { deployment: deployment('ReplicaFailure', 'True', 'FailedCreate', 'violates PodSecurity "restricted"') },
      /violates PodSecurity/,
    ],
    [
      'a claim that nothing provides',
      {
        pods: [
          pod({
            phase: 'Pending',
            conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: 'unbound' }],
          }),
        ],
        claim: {
          kind: 'PersistentVolumeClaim',
          metadata: { name: 'clusterpulse-collector' },
          status: { phase: 'Pending' },
        },
        events: [event('PersistentVolumeClaim', 'clusterpulse-collector', 'ProvisioningFailed', 'no capacity')],
      },
      /unbound; its claim clusterpulse-collector is pending: ProvisioningFailed: no capacity; set AGENT_BUFFER_STORAGE_CLASS/,
    ],
    ['a claim that waits for its pod', { claim: { metadata: { name: 'c' }, status: { phase: 'Pending' } } }, undefined],
    [
      'a pod that was thrown out',
      { pods: [pod({ phase: 'Failed', reason: 'Evicted', message: 'low on disk' })] },
      /Evicted: low on disk/,
    ],
  ])('names %s', (_, over, expected) => {
    const said = troubleOf(signs(over), HUB)
    if (expected) expect(said).toMatch(expected)
    else expect(said).toBeUndefined()
  })

  it('goes by the newest pod that stays, and by the last warning', () => {
    const old = waiting('ImagePullBackOff')
    const fresh = pod({ phase: 'Running' }, { name: 'collector-2', creationTimestamp: '2026-01-01T00:01:00Z' })
    const leaving = {
      ...old,
      metadata: { ...old.metadata, deletionTimestamp: 'x', creationTimestamp: '2026-01-01T00:02:00Z' },
    }
    expect(troubleOf(signs({ pods: [leaving, fresh, old] }), HUB)).toBeUndefined()
    const events = [
      event('Pod', 'collector-1', 'FailedMount', 'late', '2026-01-01T00:00:09Z'),
      event('Pod', 'collector-1', 'FailedMount', 'early', '2026-01-01T00:00:02Z'),
      event('Node', 'collector-1', 'NotMine', 'no', '2026-01-01T00:01:09Z'),
    ]
    expect(troubleOf(signs({ pods: [waiting('ContainerCreating')], events }), HUB)).toMatch(/late$/)
  })

  it('is that another hub took it, which each of the two says of the other', () => {
    const reportsTo = (address: string) => ({
      deployment: {
        ...deployment('Progressing', 'True', 'NewReplicaSetAvailable', ''),
        spec: { template: { spec: { containers: [{ env: [{ name: 'INGESTER_ADDRESS', value: address }] }] } } },
      },
    })
    expect(troubleOf(signs(reportsTo(HUB)), HUB)).toBeUndefined()
    expect(troubleOf(signs(reportsTo('other.example:9443')), HUB)).toMatch(
      /reports to other\.example:9443: .*set spec\.collectionMode to pull on one of them/,
    )
  })
})
