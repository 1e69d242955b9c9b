import { describe, expect, it } from 'vitest'
import type { NodeSnapshot } from '#model'
import { aNode, T0 } from '../state/test/fleet-words.ts'
import { isStale, NODE_USAGE, nodeDocuments, nodeSnapshot, podDocuments, rfc3339 } from './documents.ts'
import { monitored } from './testing/monitored.ts'

const condition = (type: string, status: string) => ({ type, status, reason: '', message: '', lastTransitionAt: null })
const withConditions = (...conditions: NodeSnapshot['conditions']) => aNode('n1', { conditions })
const documentsOf = (words: Parameters<typeof monitored>[0]) => {
  const cluster = monitored(words)
  return nodeDocuments(cluster, cluster.parts.node?.items.values() ?? [])
}
const podsOf = (words: Parameters<typeof monitored>[0], wants: (namespace: string) => boolean = () => true) => [
  ...podDocuments(monitored(words), wants),
]

describe('node documents', () => {
  it('have the keys of the specification, in quantities as they were measured, and no others', () => {
    const [node] = documentsOf({ usage: { n1: { cpuText: '523456789n', memoryText: '4194304Ki' } } })
    expect(node).toEqual({
      name: 'n1',
      cpu_usage: '523456789n',
      memory_usage: '4194304Ki',
      cpu_capacity: '4',
      memory_capacity: '16Gi',
      cpu_percent: (524 / 4000) * 100,
      memory_percent: 25,
      disk_capacity: 1000,
      disk_usage: 250,
      disk_percent: 25,
    })
    expect(Object.keys(node ?? {})).not.toContain('conditions')
  })

  it('neither round nor cut percents, and divide by no capacity', () => {
    const none = { cpuCores: null, memoryBytes: null, storageBytes: null, pods: null }
    const [node] = documentsOf({
      usage: { n1: { cpuText: '9', diskCapacity: null, diskUsed: null } },
      nodes: [aNode('n1', { capacity: { ...none, cpuCores: 4 } })],
    })
    expect(node).toMatchObject({ cpu_percent: 225, memory_capacity: '0', memory_percent: 0, disk_percent: 0 })
  })

  it('copy the three conditions in their order and add NotReady at the place of Ready', () => {
    const node = withConditions(
      condition('MemoryPressure', 'False'),
      condition('NetworkUnavailable', 'False'),
      condition('Ready', 'Unknown'),
      condition('PIDPressure', 'Unknown'),
      condition('DiskPressure', 'True'),
    )
    const [document] = documentsOf({ usage: { n1: {} }, nodes: [node] })
    expect(document?.conditions).toEqual([
      { type: 'MemoryPressure', status: 'False' },
      { type: 'NotReady', status: 'True' },
      { type: 'PIDPressure', status: 'Unknown' },
      { type: 'DiskPressure', status: 'True' },
    ])
  })

  it('append nodes that are not measured, or not readably, sorted by name, and say so', () => {
    const documents = documentsOf({
      nodes: ['d', 'c', 'b', 'a'].map((name) => aNode(name)),
      usage: { d: {}, c: {}, b: { cpuText: 'much' } },
    })
    expect(documents.map(({ name, metrics_available }) => [name, metrics_available])).toEqual([
      ['c', undefined],
      ['d', undefined],
      ['a', false],
      ['b', false],
    ])
    expect(documents[3]).toMatchObject({ cpu_usage: '0', memory_usage: '0', cpu_percent: 0, disk_usage: 250 })
  })

  it('leave out what is measured of a node that is none', () => {
    expect(documentsOf({ usage: { n1: {}, ghost: {} } }).map(({ name }) => name)).toEqual(['n1'])
  })
})

describe('pod documents', () => {
  it('count nanocores and bytes, with the capacity of the node the pod is on', () => {
    const pods = [{ namespace: 'core', name: 'api', node: 'n1', cpuMillicores: 524, memoryUsed: 123 }]
    expect(podsOf({ pods, usage: { n1: {} } })).toEqual([
      {
        name: 'api',
        namespace: 'core',
        node: 'n1',
        cpu_usage: 524_000_000,
        memory_usage: 123,
        disk_usage: 4096,
        cpu_capacity: 4_000_000_000,
        memory_capacity: 16 * 2 ** 30,
        disk_capacity: 1000,
      },
    ])
  })

  it('place pods of equal names by their namespace', () => {
    const placed = podsOf({
      nodes: [aNode('n1'), aNode('n2')],
      pods: [
        { namespace: 'compute-a-1', name: 'container', node: 'n1' },
        { namespace: 'compute-b-1', name: 'container', node: 'n2' },
      ],
    })
    expect(placed.map(({ namespace, node }) => [namespace, node])).toEqual([
      ['compute-a-1', 'n1'],
      ['compute-b-1', 'n2'],
    ])
  })

  it('keep one without an object, without a node and with no capacity', () => {
    const [pod] = podsOf({ pods: [{ namespace: 'core', name: 'ghost', diskUsed: null }] })
    expect(pod).toMatchObject({ node: '', cpu_capacity: 0, memory_capacity: 0, disk_capacity: 0, disk_usage: 0 })
  })

  it('leave out what could not be read, and namespaces that nobody wants', () => {
    const pods = [
      { namespace: 'a', name: 'x' },
      { namespace: 'b', name: 'bad', cpuMillicores: null },
      { namespace: 'b', name: 'worse', memoryUsed: null },
      { namespace: 'b', name: 'x' },
      { namespace: 'b-c', name: 'x' },
      { namespace: 'c', name: 'x' },
    ]
    const kept = podsOf({ pods }, (namespace) => namespace.startsWith('b'))
    expect(kept.map(({ namespace, name }) => `${namespace}/${name}`)).toEqual(['b/x', 'b-c/x'])
  })
})

describe('snapshots', () => {
  const times = { startedAt: T0, now: T0 + 1000, staleAfterMs: 15_000 }

  it('tell the time of the start and no nodes before anything was read, and are not stale yet', () => {
    expect(nodeSnapshot(undefined, [], times)).toEqual({ timestamp: '2026-01-01T00:00:00Z', nodes: [] })
  })

  it('are stale when the newest read failed, when it is overdue, and when none ever came', () => {
    const fresh = monitored({ usage: { n1: {} } })
    expect(isStale(fresh, NODE_USAGE, times)).toBe(false)
    expect(isStale(fresh, NODE_USAGE, { ...times, now: T0 + 15_001 })).toBe(true)
    expect(isStale(monitored({ usage: { n1: {} }, outcome: 'unreachable' }), NODE_USAGE, times)).toBe(true)
    expect(isStale(undefined, NODE_USAGE, { ...times, now: T0 + 15_000 })).toBe(true)
    expect(nodeSnapshot(monitored({ outcome: 'absent' }), [], times)).toMatchObject({ stale: true })
  })

  it.each([
    [0, '1970-01-01T00:00:00Z'],
    [120, '1970-01-01T00:00:00.12Z'],
    [600_000, '1970-01-01T00:10:00Z'],
    [1, '1970-01-01T00:00:00.001Z'],
  ])('write %d ms as %s', (ms, text) => expect(rfc3339(ms)).toBe(text))
})
