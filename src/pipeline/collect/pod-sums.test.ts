import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type KubeObject, type PodFacts, podFacts } from '#kube'
import { requestsOf } from './pod-requests.ts'
import { type CountedPod, countedPod, type PodLoad, PodSums } from './pod-sums.ts'

const NONE = { cpu: '', memory: '' }
const asks = (cpu: string, memory = '') => ({ cpu, memory })
const starts = (cpu: string, restartPolicy = '') => ({ cpu, memory: '', restartPolicy })
const aPod = (over: Partial<PodFacts> = {}): PodLoad => ({
  namespace: 'shop',
  nodeName: 'n1',
  phase: 'Running',
  containers: [],
  initContainers: [],
  overhead: null,
  podRequests: null,
  ...over,
})
const counted = (over: Partial<PodFacts> = {}) => countedPod(aPod(over))
const never = (text: string): never => {
  throw new Error(`malformed: ${text}`)
}

describe('requestsOf', () => {
  it.each<[string, Partial<PodFacts>, number]>([
    ['nothing where nothing is asked', { containers: [NONE] }, 0],
    ['the sum of the containers', { containers: [asks('250m'), asks('1'), NONE] }, 1.25],
    [
      'the largest init container where that is more',
      { containers: [asks('100m')], initContainers: [starts('2'), starts('500m')] },
      2,
    ],
    ['the containers where init needs less', { containers: [asks('3')], initContainers: [starts('2')] }, 3],
    ['sidecars beside the containers', { containers: [asks('1')], initContainers: [starts('500m', 'Always')] }, 1.5],
    [
      'an init container beside the sidecars that were started before it, not after',
      { containers: [asks('100m')], initContainers: [starts('1', 'Always'), starts('3'), starts('2', 'Always')] },
      4,
    ],
    ['overhead on top', { containers: [asks('1')], overhead: asks('250m') }, 1.25],
    [
      'the request of the whole pod instead',
      { containers: [asks('5')], podRequests: asks('2'), overhead: asks('1') },
      3,
    ],
    [
      'the containers where the whole pod asks for memory only',
      { containers: [asks('5')], podRequests: asks('', '1Gi') },
      5,
    ],
  ])('counts %s', (_, pod, cpuCores) => expect(requestsOf(aPod(pod), never).cpuCores).toBeCloseTo(cpuCores, 9))

  it('reads memory in bytes, decimal and binary', () => {
    expect(requestsOf(aPod({ containers: [asks('', '1Gi'), asks('', '129M')] }), never).memoryBytes).toBe(
      2 ** 30 + 129e6,
    )
  })

  it('counts what it cannot read as nothing and tells it', () => {
    const told: string[] = []
    const pod = aPod({ containers: [asks('lots', '1Gi'), asks('1')] })
    expect(requestsOf(pod, (text) => told.push(text))).toEqual({ cpuCores: 1, memoryBytes: 2 ** 30 })
    expect(told).toEqual(['lots'])
  })

  it('reads a pod as a cluster sends it', () => {
    const pod: KubeObject = {
      metadata: { name: 'web-1', namespace: 'shop' },
      spec: {
        nodeName: 'n1',
        overhead: { cpu: '10m' },
        containers: [
          { name: 'web', resources: { requests: { cpu: '250m', memory: '64Mi' }, limits: { cpu: '4' } } },
          { name: 'plain' },
        ],
        initContainers: [{ name: 'mesh', restartPolicy: 'Always', resources: { requests: { cpu: '100m' } } }],
      },
      status: { phase: 'Running' },
    }
    expect(requestsOf(podFacts(pod), never)).toEqual({ cpuCores: 0.36, memoryBytes: 64 * 2 ** 20 })
  })
})

const anyPod = fc.record({
  namespace: fc.constantFrom('a', 'b', 'c'),
  nodeName: fc.constantFrom('', 'n1', 'n2'),
  phase: fc.constantFrom('Running', 'Pending', 'Failed', 'Succeeded', 'Unknown', ''),
  containers: fc.array(
    fc.record({ cpu: fc.constantFrom('', '100m', '3', '1n'), memory: fc.constantFrom('', '1Mi', '5k') }),
    { maxLength: 3 },
  ),
})

describe('PodSums', () => {
  it('counts phases per node, per namespace and over all, and requests of pods that are not finished', () => {
    const sums = new PodSums()
    const containers = [asks('1', '1Gi')]
    for (const phase of ['Running', 'Pending', 'Unknown', 'Succeeded', 'Failed'])
      sums.changed(undefined, counted({ phase, containers }))
    expect(sums.node('n1')).toEqual({
      pods: { total: 5, running: 1, pending: 1, failed: 1, succeeded: 1, unknown: 1 },
      requested: { cpuCores: 3, memoryBytes: 3 * 2 ** 30 },
    })
    expect(sums.summary()).toMatchObject({
      counts: { total: 5 },
      byNamespace: { shop: { total: 5, running: 1 } },
      unscheduled: 0,
    })
  })

  it('counts pods without a node in the cluster but on no node', () => {
    const sums = new PodSums()
    sums.changed(undefined, counted({ nodeName: '', phase: 'Pending', containers: [asks('1')] }))
    sums.changed(undefined, counted({ nodeName: '', phase: 'Failed' }))
    expect(sums.summary()).toMatchObject({ counts: { total: 2, pending: 1, failed: 1 }, unscheduled: 1 })
    expect(sums.node('')).toEqual(sums.node('elsewhere'))
  })

  it('is at nothing again, not below it, when what was asked for is gone', () => {
    const sums = new PodSums()
    const [some, more] = ['300m', '600m'].map((cpu) => counted({ containers: [asks(cpu)] }))
    sums.changed(undefined, counted())
    for (const pod of [some, more]) sums.changed(undefined, pod)
    for (const pod of [some, more]) sums.changed(pod, undefined)
    expect(sums.node('n1').requested).toEqual({ cpuCores: 0, memoryBytes: 0 })
  })

  it('comes to the same sums in whatever order the pods come, and the parts make the whole', () => {
    fc.assert(
      fc.property(fc.array(anyPod, { maxLength: 30 }), fc.nat(), (list, turn) => {
        const loads = list.map(counted)
        const cut = loads.length === 0 ? 0 : turn % loads.length
        const [straight, turned] = [new PodSums(), new PodSums()]
        for (const load of loads) straight.changed(undefined, load)
        for (const load of [...loads.slice(cut), ...loads.slice(0, cut)].reverse()) turned.changed(undefined, load)
        expect(turned.summary()).toEqual(straight.summary())
        for (const node of ['n1', 'n2']) expect(turned.node(node)).toEqual(straight.node(node))
        const { counts, byNamespace } = straight.summary()
        expect(counts.total).toBe(loads.length)
        expect(counts.running + counts.pending + counts.failed + counts.succeeded + counts.unknown).toBe(counts.total)
        expect(Object.values(byNamespace).reduce((sum, { total }) => sum + total, 0)).toBe(counts.total)
      }),
    )
  })

  it('comes to the same sums by changes, as a watch tells them, and by a list of what is left', () => {
    const change = fc.tuple(fc.constantFrom('a', 'b', 'c', 'd'), fc.option(anyPod, { nil: undefined }))
    fc.assert(
      fc.property(fc.array(change, { maxLength: 40 }), (changes) => {
        const there = new Map<string, CountedPod>()
        const [watched, listed] = [new PodSums(), new PodSums()]
        for (const [name, over] of changes) {
          const after = over && counted(over)
          watched.changed(there.get(name), after)
          if (after) there.set(name, after)
          else there.delete(name)
        }
        for (const load of there.values()) listed.changed(undefined, load)
        expect(watched.summary()).toEqual(listed.summary())
        for (const node of ['n1', 'n2']) expect(watched.node(node)).toEqual(listed.node(node))
      }),
    )
  })
})
