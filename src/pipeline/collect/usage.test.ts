import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { KubeClient, KubeObject, RequestOptions } from '#kube'
import { type RowsPart, systemClock, Table } from '#model'
import { collectOne } from './collect-one.ts'
import { disksIn, Kubelets, summaryByProxy } from './kubelets.ts'
import { type FakeCluster, fakeCluster, kubeError } from './testing/fake-cluster.ts'
import { NODE_USAGE, POD_USAGE, usageCollectors } from './usage.ts'

const nodeMetric = (name: string, cpu: unknown, memory: unknown): KubeObject => ({
  metadata: { name },
  usage: { cpu, memory },
})
const podMetric = (namespace: string, name: string, ...containers: readonly [cpu: unknown, memory: unknown][]) => ({
  metadata: { namespace, name },
  containers: containers.map(([cpu, memory], i) => ({ name: `c${i}`, usage: { cpu, memory } })),
})
const node = (name: string): KubeObject => ({ metadata: { name } })

type Summaries = (node: string, options: RequestOptions) => Promise<unknown>

function aCluster(cluster: FakeCluster, summaries?: Summaries): { kube: KubeClient; asked: string[] } {
  const asked: string[] = []
  const kube = {
    ...fakeCluster(cluster),
    request: async (_: string, path: string, options: RequestOptions = {}) => {
      const name = /^\/api\/v1\/nodes\/(.*)\/proxy\/stats\/summary$/.exec(path)?.[1] ?? ''
      asked.push(name)
      return summaries?.(name, options)
    },
  } as KubeClient
  return { kube, asked }
}

async function collected(id: string, kube: KubeClient, kubelets?: Kubelets): Promise<RowsPart> {
  const collector = usageCollectors({ refreshMs: 5_000, ...(kubelets && { kubelets }) }).find(({ name }) => name === id)
  if (!collector) throw new Error(id)
  const { signal } = new AbortController()
  return (await collectOne({ collector, kube, signal, clock: systemClock })).part
}

function whole(part: RowsPart) {
  if (part.outcome !== 'complete') throw new Error(`${part.outcome}: ${'message' in part ? part.message : ''}`)
  return { ...part, byName: Object.fromEntries([...part.rows.rows()].map((row) => [row.name, row.values])) }
}

const kubeletsOf = () => new Kubelets({ way: 'proxy', read: summaryByProxy, clock: systemClock })
const summary = (capacityBytes: number, usedBytes: number, pods: readonly [string, string, number][] = []) => ({
  node: { fs: { capacityBytes, usedBytes } },
  pods: pods.map(([namespace, name, used]) => ({
    podRef: { namespace, name },
    'ephemeral-storage': { usedBytes: used },
  })),
})

describe('what nodes use', () => {
  it('is kept as the metrics API wrote it, and as numbers', async () => {
    const { kube } = aCluster({ objects: { 'metrics/nodes': [nodeMetric('n1', '523456789n', '1048576Ki')] } })
    expect(whole(await collected(NODE_USAGE, kube)).byName.n1).toEqual({
      cpuText: '523456789n',
      memoryText: '1048576Ki',
      cpuUsed: 0.523456789,
      memoryUsed: 2 ** 30,
      diskCapacity: null,
      diskUsed: null,
    })
  })

  it('costs one node alone where a quantity cannot be read: it is named, counted and left out', async () => {
    const objects = {
      'metrics/nodes': [nodeMetric('n1', '12q', '1Ki'), nodeMetric('n2', '1', '1Ki'), nodeMetric('n3', '1', 7)],
    }
    const part = whole(await collected(NODE_USAGE, aCluster({ objects }).kube))
    expect(Object.keys(part.byName)).toEqual(['n2'])
    expect(part.errorCount).toBe(2)
    expect(part.errors.map(({ code, message }) => [code, message])).toEqual([
      ['quantity_unreadable', 'n1 is left out: "12q" is no quantity'],
      ['quantity_unreadable', 'n3 is left out: 7 is no quantity'],
    ])
  })

  it.each([
    ['absent', undefined],
    ['forbidden', kubeError('forbidden')],
    ['unreachable', kubeError('server')],
    ['unreachable', kubeError('timeout')],
  ] as const)('is %s where the metrics API is, and no empty table', async (outcome, answer) => {
    const { kube } = aCluster({ objects: answer ? { 'metrics/nodes': answer } : {} })
    expect(await collected(NODE_USAGE, kube)).toMatchObject({ source: NODE_USAGE, outcome })
  })

  it('knows the disk of a node that its kubelet tells of, also where it is not measured', async () => {
    const objects = { 'metrics/nodes': [nodeMetric('n1', '1', '1Ki')], nodes: [node('n1'), node('n2')] }
    const { kube, asked } = aCluster({ objects }, async (name) => summary(100, name === 'n1' ? 30 : 40))
    const { byName } = whole(await collected(NODE_USAGE, kube, kubeletsOf()))
    expect(byName.n1).toMatchObject({ cpuUsed: 1, diskCapacity: 100, diskUsed: 30 })
    expect(byName.n2).toMatchObject({ cpuUsed: null, cpuText: null, diskCapacity: 100, diskUsed: 40 })
    expect(asked.toSorted()).toEqual(['n1', 'n2'])
  })

  it('names the nodes whose kubelets fail: their disks are not known, which is not 0, and nothing else is touched', async () => {
    const objects = {
      'metrics/nodes': ['n1', 'n2', 'n3'].map((name) => nodeMetric(name, '1', '1Ki')),
      nodes: ['n1', 'n2', 'n3'].map(node),
    }
    const { kube } = aCluster({ objects }, async (name, { timeoutMs, isolated }) => {
      expect([timeoutMs, isolated]).toEqual([3_000, true])
      if (name === 'n1') throw kubeError('timeout')
      return name === 'n2' ? 'no summary at all' : summary(10, 1)
    })
    const part = whole(await collected(NODE_USAGE, kube, kubeletsOf()))
    expect(part.byName).toMatchObject({
      n1: { cpuUsed: 1, diskUsed: null },
      n2: { diskUsed: null },
      n3: { diskUsed: 1 },
    })
    expect(part.errors.map(({ message }) => message)).toEqual(['disk of node n1 is not known: test: timeout'])
    expect(part.errorCount).toBe(1)
  })

  it('says once that a right is missing, and does not ask every kubelet for it', async () => {
    const names = Array.from({ length: 40 }, (_, i) => `n${i}`)
    const objects = { 'metrics/nodes': names.map((name) => nodeMetric(name, '1', '1Ki')), nodes: names.map(node) }
    const { kube, asked } = aCluster({ objects }, async () => {
      throw kubeError('forbidden')
    })
    const part = whole(await collected(NODE_USAGE, kube, kubeletsOf()))
    expect(part.rows.size).toBe(40)
    expect(part.errors).toHaveLength(1)
    expect(part.errors[0]).toMatchObject({ outcome: 'forbidden', code: 'kubelet_forbidden' })
    expect(part.errors[0]?.message).toContain('grant "get nodes/proxy" on the member')
    expect(asked.length).toBeLessThanOrEqual(10)
  })

  it('forgets what a kubelet told before, once it does not answer or may not be asked', async () => {
    const objects = { 'metrics/nodes': [], nodes: ['n1', 'n2'].map(node) }
    let trouble: 'timeout' | 'forbidden' | undefined
    const { kube } = aCluster({ objects }, async (name) => {
      if (trouble === 'timeout' ? name === 'n1' : trouble) throw kubeError(trouble as 'timeout')
      return summary(10, 1, [['shop', `web-${name}`, 5]])
    })
    let now = 0
    const clock = { ...systemClock, now: () => now }
    const kubelets = new Kubelets({ way: 'proxy', read: summaryByProxy, clock })
    const known = async () => {
      const { nodes, pods, faultCount } = await kubelets.disks(kube, new AbortController().signal)
      now += 15_000
      return [[...nodes.keys()], [...pods.keys()], faultCount]
    }
    const both = [['n1', 'n2'], ['shop/web-n1', 'shop/web-n2'], 0]
    expect(await known()).toEqual(both)
    trouble = 'timeout'
    expect(await known()).toEqual([['n2'], ['shop/web-n2'], 1])
    trouble = undefined
    expect(await known()).toEqual([['n2', 'n1'], ['shop/web-n2', 'shop/web-n1'], 0])
    trouble = 'forbidden'
    expect(await known()).toEqual([[], [], 1])
  })

  it('asks ten kubelets at once at most, and each once for both tables', async () => {
    const names = Array.from({ length: 35 }, (_, i) => `n${i}`)
    const objects = { 'metrics/nodes': [], 'metrics/pods': [], nodes: names.map(node) }
    let [running, most] = [0, 0]
    const { kube, asked } = aCluster({ objects }, async () => {
      most = Math.max(most, ++running)
      await new Promise((resolve) => setImmediate(resolve))
      running--
      return summary(1, 1)
    })
    const kubelets = kubeletsOf()
    await Promise.all([collected(NODE_USAGE, kube, kubelets), collected(POD_USAGE, kube, kubelets)])
    expect(most).toBe(10)
    expect(asked).toHaveLength(35)
  })
})

describe('what pods use', () => {
  it('is the sum of their containers, each rounded up, by namespace and name', async () => {
    const objects = {
      'metrics/pods': [podMetric('a', 'web', ['1n', '1'], ['1500u', '1Ki']), podMetric('b', 'web', ['2', '1500m'])],
      nodes: [node('n1')],
    }
    const { kube } = aCluster({ objects }, async () => summary(10, 5, [['b', 'web', 77]]))
    const { rows } = whole(await collected(POD_USAGE, kube, kubeletsOf()))
    expect([...rows.rows()].map(({ namespace, name, values }) => [namespace, name, values])).toEqual([
      ['a', 'web', { cpuUsed: 0.001500001, cpuMillicores: 3, memoryUsed: 1025, diskUsed: null }],
      ['b', 'web', { cpuUsed: 2, cpuMillicores: 2000, memoryUsed: 2, diskUsed: 77 }],
    ])
  })

  it('leaves out a pod with one container that cannot be read, and one that says nothing yet', async () => {
    const objects = {
      'metrics/pods': [
        podMetric('a', 'bad', ['1', '1Ki'], ['-1', '1Ki']),
        podMetric('a', 'new'),
        podMetric('a', 'good', ['1', '0']),
      ],
    }
    const part = whole(await collected(POD_USAGE, aCluster({ objects }).kube))
    expect(Object.keys(part.byName)).toEqual(['good'])
    expect(part.errors.map(({ namespace, message }) => [namespace, message])).toEqual([
      ['a', 'a/bad is left out: "-1" is no quantity'],
    ])
  })

  it('is a table of numbers or null whatever the metrics API sends', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.dictionary(fc.constantFrom('metadata', 'containers', 'usage'), fc.jsonValue())),
        async (objects) => {
          const { kube } = aCluster({ objects: { 'metrics/pods': objects as unknown as KubeObject[] } })
          const part = await collected(POD_USAGE, kube)
          expect(['complete', 'unreachable']).toContain(part.outcome)
          if (part.outcome === 'complete') expect(part.rows).toBeInstanceOf(Table)
        },
      ),
      { numRuns: 50 },
    ))
})

describe('the summary of a kubelet', () => {
  it('gives amounts or null, whatever it is', () =>
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const { disk, pods } = disksIn(value)
        for (const one of [disk.capacityBytes, disk.usedBytes]) expect(one === null || one >= 0).toBe(true)
        expect(Array.isArray(pods)).toBe(true)
      }),
    ))

  it('says nothing of amounts that are none', () =>
    expect(disksIn(summary(-1, 1e20, [['a', 'b', Number.POSITIVE_INFINITY]]))).toEqual({
      disk: { capacityBytes: null, usedBytes: null },
      pods: [],
    }))
})
