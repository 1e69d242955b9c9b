import { describe, expect, it } from 'vitest'
import { type KubeObject, nodes } from '#kube'
import type { NodeSnapshot, PodSummary } from '#model'
import { nodeCollector, readiness, rolesOf } from './nodes.ts'
import { collectOnce } from './testing/collect-once.ts'
import { type FakeCluster, fakeCluster, kubeError } from './testing/fake-cluster.ts'

/** Shape of a node of Kubernetes 1.33, trimmed. */
const aNode = (
  name: string,
  over: { ready?: string; unschedulable?: boolean; capacity?: object } = {},
): KubeObject => ({
  metadata: {
    name,
    creationTimestamp: '2026-01-02T03:04:05Z',
    labels: {
      'node-role.kubernetes.io/worker': '',
      'node-role.kubernetes.io/control-plane': '',
      'node-role.kubernetes.io/': '',
    },
    annotations: { note: 'ä' },
  },
  spec: {
    ...(over.unschedulable && { unschedulable: true }),
    taints: [{ key: 'k', value: 'v', effect: 'NoSchedule' }],
  },
  status: {
    capacity: over.capacity ?? { cpu: '4', memory: '16Gi', 'ephemeral-storage': '100Gi', pods: '110' },
    allocatable: { cpu: '3500m', memory: '15Gi', 'ephemeral-storage': '92233720Ki', pods: '110' },
    conditions: [
      {
        type: 'MemoryPressure',
        status: 'False',
        reason: 'r',
        message: 'm',
        lastTransitionTime: '2026-01-02T03:04:05Z',
      },
      ...(over.ready === undefined ? [] : [{ type: 'Ready', status: over.ready }]),
    ],
    addresses: [
      { type: 'InternalIP', address: '10.0.0.1' },
      { type: 'InternalIP', address: 'fd00::1' },
      { type: 'Hostname', address: name },
    ],
    nodeInfo: {
      kernelVersion: '6.1',
      osImage: 'Linux',
      containerRuntimeVersion: 'containerd://2',
      kubeletVersion: 'v1.33.1',
      architecture: 'arm64',
    },
    images: [{ names: ['a'] }, { names: ['b'] }],
    volumesAttached: [{ name: 'v' }],
  },
})
const aPod = (name: string, nodeName: string, cpu: string): KubeObject => ({
  metadata: { name, namespace: 'shop' },
  spec: { nodeName, containers: [{ resources: { requests: { cpu, memory: '1Gi' } } }] },
  status: { phase: 'Running' },
})
const usage = (name: string, cpu: string, memory: string): KubeObject => ({
  metadata: { name },
  usage: { cpu, memory },
})

async function collect(cluster: FakeCluster, onMalformed?: (text: string) => void) {
  const result = await collectOnce(nodeCollector, fakeCluster(cluster), onMalformed)
  if ('absent' in result) throw new Error('nodes are never absent')
  return { node: result.node as readonly NodeSnapshot[], pods: (result.podSummary as readonly PodSummary[])[0]! }
}

describe('nodeCollector', () => {
  it('reads every field of a node in base units', async () => {
    const { node } = await collect({
      objects: { nodes: [aNode('n1', { ready: 'True' })], pods: [aPod('p1', 'n1', '250m')] },
    })
    expect(node).toEqual([
      {
        name: 'n1',
        createdAt: Date.UTC(2026, 0, 2, 3, 4, 5),
        ready: 'ready',
        unschedulable: false,
        roles: ['control-plane', 'worker'],
        conditions: [
          {
            type: 'MemoryPressure',
            status: 'False',
            reason: 'r',
            message: 'm',
            lastTransitionAt: Date.UTC(2026, 0, 2, 3, 4, 5),
          },
          { type: 'Ready', status: 'True', reason: '', message: '', lastTransitionAt: null },
        ],
        capacity: { cpuCores: 4, memoryBytes: 16 * 2 ** 30, storageBytes: 100 * 2 ** 30, pods: 110 },
        allocatable: { cpuCores: 3.5, memoryBytes: 15 * 2 ** 30, storageBytes: 92233720 * 1024, pods: 110 },
        requested: { cpuCores: 0.25, memoryBytes: 2 ** 30 },
        used: null,
        pods: { total: 1, running: 1, pending: 0, failed: 0, succeeded: 0, unknown: 0 },
        kernelVersion: '6.1',
        osImage: 'Linux',
        containerRuntime: 'containerd://2',
        kubeletVersion: 'v1.33.1',
        architecture: 'arm64',
        internalIp: 'fd00::1',
        externalIp: '',
        hostname: 'n1',
        labels: expect.objectContaining({ 'node-role.kubernetes.io/worker': '' }) as object,
        annotations: { note: 'ä' },
        taints: [{ key: 'k', value: 'v', effect: 'NoSchedule' }],
        imagesCount: 2,
        volumesAttached: 1,
      },
    ])
  })

  it.each([
    ['True', 'ready'],
    ['False', 'notReady'],
    ['Unknown', 'notReady'],
    [undefined, 'unknown'],
  ])('calls a node whose Ready condition is %s %s', (status, ready) => expect(readiness(status)).toBe(ready))

  it('keeps cordoned and not ready apart', async () => {
    const { node } = await collect({
      objects: { nodes: [aNode('n1', { ready: 'False', unschedulable: true })], pods: [] },
    })
    expect(node[0]).toMatchObject({ ready: 'notReady', unschedulable: true })
  })

  it('names roles sorted and none for an empty label', () => {
    expect(
      rolesOf({
        'node-role.kubernetes.io/b': '',
        'node-role.kubernetes.io/a': 'x',
        'node-role.kubernetes.io/': '',
        role: 'c',
      }),
    ).toEqual(['a', 'b'])
  })

  it('leaves an amount it cannot read unknown, tells it, and reads the others', async () => {
    const told: string[] = []
    const capacity = { cpu: 'many', memory: '16Gi' }
    const { node } = await collect({ objects: { nodes: [aNode('n1', { capacity })], pods: [] } }, (text) =>
      told.push(text),
    )
    expect(node[0]?.capacity).toEqual({ cpuCores: null, memoryBytes: 16 * 2 ** 30, storageBytes: null, pods: null })
    expect(told).toEqual(['many'])
  })

  it('adds measured usage where it is served', async () => {
    const objects = {
      nodes: [aNode('n1'), aNode('n2')],
      pods: [],
      'metrics/nodes': [usage('n1', '1500m', '2Gi'), usage('n2', '-5', '1Gi')],
    }
    const { node } = await collect({ objects })
    expect(node.map(({ used }) => used)).toEqual([{ cpuCores: 1.5, memoryBytes: 2 ** 31 }, null])
  })

  it.each(['forbidden', 'server', 'timeout'] as const)(
    'reads nodes without usage where metrics are %s',
    async (reason) => {
      const { node } = await collect({
        objects: { nodes: [aNode('n1')], pods: [], 'metrics/nodes': kubeError(reason) },
      })
      expect(node[0]?.used).toBeNull()
    },
  )

  it('sums pods anew when the list expired between two pages, counting none twice', async () => {
    let expiries = 1
    const { node, pods } = await collect({
      objects: { nodes: [aNode('n1')], pods: ['a', 'b', 'c'].map((name) => aPod(name, 'n1', '1')) },
      pageSize: 1,
      onPage: (plural, page) => {
        if (plural === 'pods' && page === 2 && expiries-- > 0) throw kubeError('expired')
      },
    })
    expect(pods.counts.total).toBe(3)
    expect(node[0]?.requested?.cpuCores).toBe(3)
  })

  it('gives up when the list expires again and again', async () => {
    const onPage = (plural: string, page: number) => {
      if (plural === 'pods' && page === 1) throw kubeError('expired')
    }
    const objects = { nodes: [], pods: ['a', 'b'].map((name) => aPod(name, 'n1', '1')) }
    await expect(collect({ objects, pageSize: 1, onPage })).rejects.toMatchObject({ reason: 'expired' })
  })

  it('asks for protobuf, which spares what it does not read', () => expect(nodes.fromProtobuf).toBeDefined())
})
