import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Manager } from '#controller'
import type { Row } from '#extract'
import { type KubeObject, type Resource, secrets } from '#kube'
import { Metrics, silentLogger } from '#runtime'
import { onPostgres, postgresMissing, startPostgres, type TestPostgres } from '../sinks/testing/postgres-server.ts'
import { InventoryEngine, inventoryInformers, inventoryResources } from './index.ts'
import { clusters, type TestCluster } from './testing/cluster.ts'
import { sinkContext } from './testing/memory-sink.ts'

const NAMESPACE = 'team-a'
const { inventories, targets, databaseSinks } = inventoryResources as unknown as Readonly<
  Record<keyof typeof inventoryResources, Resource<KubeObject>>
>

const aRow = (name: string, label = 'blue'): Row => ({
  targetNamespace: NAMESPACE,
  targetName: 'deployments',
  namespace: NAMESPACE,
  name,
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  uid: `uid-${name}`,
  attributes: { label },
})

describe.skipIf(postgresMissing !== undefined)(onPostgres('inventories of two clusters in one PostgreSQL'), () => {
  let postgres: TestPostgres
  const [embedded] = clusters
  const members = new Map<string, TestCluster>()
  const ends: (() => PromiseLike<unknown>)[] = []
  beforeAll(async () => {
    postgres = await startPostgres()
    await postgres.query('grant create on schema public to app')
    for (const name of ['east', 'west']) {
      const cluster = (await embedded?.open()) as TestCluster
      members.set(name, cluster)
      await declare(cluster)
    }
  })
  afterAll(async () => {
    for (const cluster of members.values()) await cluster[Symbol.asyncDispose]()
    await postgres?.[Symbol.asyncDispose]()
  })
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end()
  })

  /** The same manifests for every cluster: who it is, the agent says. */
  async function declare({ kube }: TestCluster) {
    const metadata = { name: 'apps', namespace: NAMESPACE }
    const make = (resource: Resource<KubeObject>, spec: object) =>
      kube.create(resource, { apiVersion: 'kollect.dev/v1alpha1', kind: resource.kind, metadata, spec })
    await kube.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata, stringData: { dsn: postgres.dsn() } })
    await make(databaseSinks, { type: 'postgres', postgres: { databaseRef: { name: 'apps' }, table: 'fleet' } })
    await kube.create(targets, {
      apiVersion: 'kollect.dev/v1alpha1',
      kind: 'KollectTarget',
      metadata: { name: 'deployments', namespace: NAMESPACE },
      spec: { profileRef: 'deployments' },
    })
    await make(inventories, { databaseSinkRefs: ['apps'] })
  }

  async function anAgent(name: string) {
    const { kube } = members.get(name) as TestCluster
    const engine = InventoryEngine.open({
      kube,
      informers: inventoryInformers(kube, silentLogger),
      cluster: name,
      known: { semantics: 'strict', maxExportBytes: 1_572_864 },
      sinks: { ...sinkContext, writer: `agent of ${name}` },
      logger: silentLogger,
      metrics: new Metrics({}, { processMetrics: false }),
    })
    const { controllers } = engine
    const manager = new Manager({ controllers, logger: silentLogger, whileLeading: (signal) => engine.lead(signal) })
    await manager.start()
    const stop = async () => {
      await manager.stop()
      await engine[Symbol.asyncDispose]()
    }
    ends.push(stop)
    return { rows: engine.rows.target({ namespace: NAMESPACE, name: 'deployments' }), stop }
  }

  const namesIn = async (cluster: string) => {
    const known = await postgres.query<{ exists: boolean }>(`select to_regclass('public.fleet') is not null as exists`)
    if (!known[0]?.exists) return []
    const rows = await postgres.query<{ name: string }>('select name from fleet where cluster = $1 order by name', [
      cluster,
    ])
    return rows.map(({ name }) => name)
  }

  it('hold both; deleting in one deletes its row alone, also of an object that lives in both', async () => {
    for (const name of ['east', 'west']) {
      const { rows } = await anAgent(name)
      rows.put([aRow('a'), aRow('shared')])
      rows.setComplete(true)
      await expect.poll(() => namesIn(name)).toEqual(['a', 'shared'])
      if (name === 'west') rows.remove([aRow('shared')])
    }
    await expect.poll(() => namesIn('west')).toEqual(['a'])
    expect(await namesIn('east')).toEqual(['a', 'shared'])
  })

  it('are written three rows for three of a thousand that changed, and none and no deletion over a restart', async () => {
    const all = Array.from({ length: 1000 }, (_, at) => aRow(`web-${String(at).padStart(4, '0')}`))
    const first = await anAgent('east')
    first.rows.put(all)
    first.rows.setComplete(true)
    await expect.poll(async () => (await namesIn('east')).length).toBe(1000)
    // The server counts a little later.
    const written = async () => {
      const { inserted, updated } = await postgres.counts('fleet')
      return inserted + updated
    }
    await expect.poll(written).toBeGreaterThanOrEqual(1000)
    const before = await settled(written)
    const changed = all.slice(0, 3).map(({ name }) => aRow(name, 'green'))
    first.rows.put(changed)
    const greens = async () => {
      const found = await postgres.query<{ n: string }>(
        `select count(*) as n from fleet where payload::text like '%green%'`,
      )
      return Number(found[0]?.n)
    }
    await expect.poll(greens).toBe(3)
    await expect.poll(written).toBe(before + 3)
    const { deleted } = await postgres.counts('fleet')
    ends.splice(0)
    await first.stop()

    const second = await anAgent('east')
    second.rows.put(all.slice(500))
    second.rows.put(changed)
    second.rows.put([...all.slice(3, 500), aRow('new')])
    second.rows.setComplete(true)
    await expect.poll(async () => (await namesIn('east')).length).toBe(1001)
    await expect.poll(written).toBe(before + 4)
    expect((await postgres.counts('fleet')).deleted).toBe(deleted)
  })
})

/** A count once it is the same twice, two seconds apart: the statistics of a server follow within one. */
async function settled(count: () => Promise<number>): Promise<number> {
  for (let before = await count(); ; ) {
    await new Promise((resolve) => setTimeout(resolve, 2000))
    const now = await count()
    if (now === before) return now
    before = now
  }
}
