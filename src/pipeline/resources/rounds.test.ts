import { describe, expect, it } from 'vitest'
import { batchesOf, collectors, collectRound } from '#collect'
import type { KubeClient, KubeError, KubeObject } from '#kube'
import { type Batch, parseClusterName, type RowsPart, Table } from '#model'
import { fakeCluster, kubeError } from '../collect/testing/fake-cluster.ts'
import { resources } from './index.ts'

const aPod = (name: string, namespace = 'shop'): KubeObject => ({
  metadata: { name, namespace },
  spec: { nodeName: 'n1', containers: [{ name: 'a', resources: { requests: { cpu: '250m' } } }] },
  status: { phase: 'Running' },
})
const deployment: KubeObject = { metadata: { name: 'web', namespace: 'shop' }, spec: { replicas: 2 } }
const plain: Readonly<Record<string, readonly KubeObject[] | KubeError>> = {
  nodes: [{ metadata: { name: 'n1' } }],
  namespaces: [{ metadata: { name: 'shop' } }],
  pods: [aPod('a'), aPod('b'), aPod('c')],
  deployments: [deployment],
  statefulsets: [{ metadata: { name: 'web', namespace: 'shop' } }],
  services: [],
}

async function round(
  objects: typeof plain,
  over: Partial<KubeClient> = {},
): Promise<{ batch: Batch; asked: string[] }> {
  const asked: string[] = []
  const kube = {
    ...fakeCluster({ objects, onPage: (plural, page) => void (page === 0 && asked.push(plural)) }),
    ...over,
  }
  const batch = await collectRound({
    kube,
    cluster: parseClusterName('west'),
    collectors: [...collectors, ...resources.flatMap(({ collector }) => collector ?? [])],
    source: 'pull',
    signal: new AbortController().signal,
  })
  return { batch, asked }
}

const rowsOf = ({ tables = [] }: Batch, source: string) => tables.find((part) => part.source === source)

describe('rows that rounds read', () => {
  it('come of the lists that snapshots are made of: each list is read once', async () => {
    const { batch, asked } = await round(plain)
    expect(asked.toSorted()).toEqual([...new Set(asked)].toSorted())
    expect(asked).toContain('pods')
    const [node] = batch.parts.flatMap((part) =>
      part.type === 'node' && part.outcome === 'complete' ? part.items : [],
    )
    expect(node).toMatchObject({ pods: { total: 3 }, requested: { cpuCores: 0.75 } })
    const pods = rowsOf(batch, 'pods')
    expect(pods).toMatchObject({ outcome: 'complete', truncated: false, aggregations: { byStatus: { Running: 3 } } })
    expect(pods?.outcome === 'complete' && pods.rows.size).toBe(3)
  })

  it('are of the lists that are served; without any the kind is absent', async () => {
    const { batch } = await round({ ...plain, statefulsets: [] })
    const workloads = rowsOf(batch, 'workloads')
    expect(workloads?.outcome === 'complete' && workloads.rows.idAt(0)).toBe('shop/web:Deployment')
    expect(rowsOf(batch, 'services')).toMatchObject({ outcome: 'complete' })
    expect(rowsOf(batch, 'persistentvolumeclaims')).toMatchObject({ outcome: 'absent', code: 'not_served' })
  })

  it('are those of the namespaces that may be read, where the list of all is refused', async () => {
    const kube = fakeCluster({ objects: plain })
    const list = (resource: Parameters<KubeClient['list']>[0], options?: { readonly namespace?: string }) => {
      if (resource.plural === 'pods' && options?.namespace === undefined) throw kubeError('forbidden')
      return kube.list(resource, options as never)
    }
    const find = async () => ({ plural: 'pods', namespaced: true })
    const { batch } = await round(plain, { list, find } as unknown as Partial<KubeClient>) // two calls of a client
    expect(batch.parts.find(({ type }) => type === 'podSummary')).toMatchObject({ outcome: 'forbidden' })
    const pods = rowsOf(batch, 'pods')
    expect(pods?.outcome === 'complete' && pods.rows.size).toBe(3)
  })

  it('of a namespace whose list expired half way are there once', async () => {
    const kube = fakeCluster({ objects: plain })
    let lists = 0
    async function* list(resource: Parameters<KubeClient['list']>[0], options?: { readonly namespace?: string }) {
      if (resource.plural !== 'pods') return yield* kube.list(resource, options as never)
      if (options?.namespace === undefined) throw kubeError('forbidden')
      for await (const page of kube.list(resource)) {
        yield page
        if (lists++ === 0) throw kubeError('expired')
      }
    }
    const find = async () => ({ plural: 'pods', namespaced: true })
    const { batch } = await round(plain, { list, find } as unknown as Partial<KubeClient>) // two calls of a client
    const pods = rowsOf(batch, 'pods')
    expect(pods?.outcome === 'complete' && [...pods.rows.rows()].map(({ name }) => name)).toEqual(['a', 'b', 'c'])
  })

  it('are told to be out of reach with the round that failed', async () => {
    const { batch } = await round({ ...plain, nodes: kubeError('server') })
    expect(batch).toMatchObject({ parts: [], failure: { code: 'kube_server' } })
    expect(batch.tables?.map(({ source, outcome }) => [source, outcome])).toEqual(
      resources.filter(({ collector }) => collector).map(({ id }) => [id, 'unreachable']),
    )
  })

  it('are handed in after the round, as steps that together hold no more than a batch may', async () => {
    const names = Array.from({ length: 30_000 }, (_, i) => `p${String(i).padStart(6, '0')}`)
    const [namespaces, labels] = [names.map(() => ''), names.map(() => ({}))]
    const rows = Table.from({ fields: [], namespaces, names, labels, values: [] }) ?? Table.empty
    const facts = { aggregations: {}, truncated: false, errors: [], errorCount: 0, reports: [] }
    const part = (source: string): RowsPart => ({
      source,
      hash: '',
      durationMs: 1,
      outcome: 'complete',
      rows,
      ...facts,
    })
    const { batch } = await round(plain)
    const [first, ...steps] = batchesOf({ ...batch, tables: ['a', 'b', 'c'].map(part) })
    expect(first).toEqual({ ...batch, tables: undefined })
    expect(steps.map(({ tables = [] }) => tables.map(({ source }) => source))).toEqual([['a'], ['b'], ['c']])
    expect(
      steps.every(
        ({ partial, parts, collectedAt }) => partial && parts.length === 0 && collectedAt === batch.collectedAt,
      ),
    ).toBe(true)
    expect(batchesOf(batch)).toHaveLength(2)
    expect(batchesOf({ ...batch, tables: [] })).toHaveLength(1)
  })
})
