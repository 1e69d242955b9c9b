import { Compile } from 'typebox/compile'
import { describe, expect, it } from 'vitest'
import { listCustomRows, type RowsPageView } from '#http'
import type { ResourceDescriptor } from '#metricsource'
import { resourceOf } from '#resources'
import { get } from '../test/ask.ts'
import { allow, only, within } from '../test/policies.ts'
import { aRow, seenBy } from '../test/sources.ts'
import { aNode, aWorld, complete, proxy, type World } from '../test/world.ts'

/** ann sees everything, bob what stands in shop, cid one node, dora no workloads. */
const policies = [
  allow('ann'),
  allow('bob', { resources: [within('namespaces', 'shop')] }),
  allow('cid', { resources: [only('nodes', 'n1')] }),
  allow('dora', { resources: [{ type: 'workloads', visibility: 'none' }] }),
  allow('eve', { resources: [only('workloads', 'other')] }),
]

const kind = (id: string) => resourceOf(id) as ResourceDescriptor as never
const aPod = (name: string, values: Parameters<typeof aRow>[2]) =>
  aRow('shop', name, { status: 'Running', node: 'n2', workload: null, owner: null, ...values })

async function aFleet({ workloads = true } = {}): Promise<World> {
  const world = await aWorld({ identity: proxy, policies }, {})
  await world.connect('west')
  await world.batch('west', [
    complete('node', [aNode('n1'), aNode('n2')]),
    complete(
      'namespace',
      ['shop', 'bank'].map((one) => ({ name: one, phase: 'Active', createdAt: null, labels: {} })),
    ),
  ])
  world.collected(
    'west',
    seenBy(kind('pods'), [
      aPod('bare', { node: 'n9' }),
      aPod('cart', { workload: 'Deployment/cart', owner: 'ReplicaSet/cart-6f9c' }),
      aPod('gone', { workload: 'Deployment/gone', owner: 'Deployment/gone' }),
    ]),
  )
  if (workloads)
    world.collected(
      'west',
      seenBy(kind('workloads'), [
        aRow('bank', 'gone:Deployment', { kind: 'Deployment', owner: null }),
        aRow('shop', 'cart:Deployment', { kind: 'Deployment', owner: null }),
        aRow('shop', 'nightly-1:Job', { kind: 'Job', owner: 'CronJob/nightly' }),
        aRow('shop', 'nightly:CronJob', { kind: 'CronJob', owner: null }),
      ]),
    )
  return world
}

async function page(world: World, as: string, type: string): Promise<RowsPageView> {
  const { status, body } = await get(world, `/api/v2/clusters/west/types/${type}`, { as })
  expect(status).toBe(200)
  expect([...Compile(listCustomRows.schema.response).Errors(body)]).toEqual([])
  return body as unknown as RowsPageView
}
const linksOf = async (world: World, as: string, name: string, type = 'pods') =>
  (await page(world, as, type)).items.find((row) => row.name === name)?.links
const node = { column: 'node', type: 'nodes', id: 'n2' }
const workload = { column: 'workload', type: 'workloads', id: 'shop/cart:Deployment' }
const namespace = { column: null, type: 'namespaces', id: 'shop' }

describe('a row', () => {
  it('leads to the node, the workload and the namespace it names', async () => {
    await using world = await aFleet()
    expect(await linksOf(world, 'ann', 'cart')).toEqual([node, workload, namespace])
  })

  it('leads nowhere for what is not there, or of no kind that is collected', async () => {
    await using world = await aFleet()
    // Nobody collects replica sets; the node and the deployment are in no list, or in another namespace.
    expect(await linksOf(world, 'ann', 'bare')).toEqual([namespace])
    expect(await linksOf(world, 'ann', 'gone')).toEqual([node, namespace])
    await using without = await aFleet({ workloads: false })
    expect(await linksOf(without, 'ann', 'cart')).toEqual([node, namespace])
  })

  it.each([
    ['a hidden node', 'cid', [workload, namespace]],
    ['a hidden kind', 'dora', [node, namespace]],
    ['a hidden row', 'eve', [node, namespace]],
  ])('leads not to %s', async (_, as, expected) => {
    await using world = await aFleet()
    expect(await linksOf(world, as, 'cart')).toEqual(expected)
  })

  it('leads from a job to its cron job', async () => {
    await using world = await aFleet()
    expect(await linksOf(world, 'bob', 'nightly-1', 'workloads')).toEqual([
      { column: 'owner', type: 'workloads', id: 'shop/nightly:CronJob' },
      namespace,
    ])
  })

  it('leads to a claim that is named without its kind, and is found by both names', async () => {
    await using world = await aFleet()
    world.collected('west', seenBy(kind('persistentvolumeclaims'), [aRow('shop', 'data', { volume: 'pv-1' })]))
    world.collected('west', seenBy(kind('persistentvolumes'), [aRow('shop', 'pv-1', { claim: 'data' })]))
    expect(await linksOf(world, 'ann', 'pv-1', 'persistentvolumes')).toContainEqual({
      ...{ column: 'claim', type: 'persistentvolumeclaims', id: 'shop/data' },
    })
    const found = async (type: string, where: string) => {
      const { body } = await get(world, `/api/v2/clusters/west/types/${type}?where=${where}`, { as: 'ann' })
      return (body as unknown as RowsPageView).items.map(({ name }) => name)
    }
    expect(await found('persistentvolumes', 'claim=data')).toEqual(['pv-1'])
    expect(await found('persistentvolumes', 'claim=PersistentVolumeClaim/data')).toEqual(['pv-1'])
    expect(await found('persistentvolumes', 'claim=other')).toEqual([])
    expect(await found('pods', 'workload=cart')).toEqual(['cart'])
    expect(await found('pods', 'workload=StatefulSet/cart')).toEqual([])
  })

  it('says how others name it, and which of them may be seen', async () => {
    await using world = await aFleet()
    const { items, referredBy } = await page(world, 'ann', 'workloads')
    expect(items.map(({ reference }) => reference)).toContain('Deployment/cart')
    const pods = {
      type: 'pods',
      column: 'workload',
      title: 'Pods',
      kinds: ['Deployment', 'StatefulSet', 'DaemonSet', 'Job'],
    }
    expect(referredBy).toEqual([pods, { type: 'workloads', column: 'owner', title: 'Jobs', kinds: ['CronJob'] }])
    expect((await page(world, 'ann', 'pods')).referredBy).toBeUndefined()
  })

  it('finds those that name it by the column and the reference that were told', async () => {
    await using world = await aFleet()
    const { items, referredBy = [] } = await page(world, 'ann', 'workloads')
    const [{ column = '', type = '' } = {}] = referredBy
    const reference = items.find(({ name }) => name === 'cart')?.reference
    const query = new URLSearchParams({ where: `${column}=${reference}`, namespace: 'shop' })
    const { body } = await get(world, `/api/v2/clusters/west/types/${type}?${query}`, { as: 'ann' })
    expect((body as unknown as RowsPageView).items.map(({ name }) => name)).toEqual(['cart'])
  })
})
