import { Compile } from 'typebox/compile'
import { describe, expect, it } from 'vitest'
import { groupFleetRows, type RowGroupsView } from '#http'
import { minutes, type TableRow } from '#model'
import { resourceOf } from '#resources'
import { get } from '../test/ask.ts'
import { allow, only, within } from '../test/policies.ts'
import { aRow, seenBy } from '../test/sources.ts'
import { aNode, aWorld, complete, proxy, start, type World } from '../test/world.ts'

const pods = resourceOf('pods')
if (!pods) throw new Error('pods are compiled in')

const aPod = (namespace: string, name: string, values: TableRow['values'] = {}) =>
  aRow(namespace, name, { status: 'Running', restarts: 0, node: 'n1', workload: 'Deployment/web', ...values })

/** ann sees everything, bob what stands in shop, cid one node, and dora nothing of pods. */
const policies = [
  allow('ann'),
  allow('bob', { resources: [within('namespaces', 'shop')] }),
  allow('cid', { resources: [only('nodes', 'n1')] }),
  allow('dora', { resources: [{ type: 'pods', visibility: 'none' }] }),
]

/** Three clusters, of which nobody read the pods of the third. */
async function aFleet(): Promise<World> {
  const world = await aWorld({ identity: proxy, policies })
  for (const name of ['east', 'north', 'west']) {
    await world.connect(name)
    await world.batch(name, [complete('node', [aNode('n1'), aNode('n2')])])
  }
  world.collected(
    'east',
    seenBy(pods as never, [aPod('shop', 'a'), aPod('bank', 'b', { status: 'Pending', node: 'n2' })]),
  )
  world.collected(
    'west',
    seenBy(pods as never, [
      aPod('shop', 'c'),
      aPod('shop', 'd', { status: 'CrashLoopBackOff', restarts: 9 }),
      aPod('bank', 'e', { status: 'Completed', node: null }),
    ]),
  )
  return world
}

async function groups(world: World, as: string, query: string): Promise<RowGroupsView> {
  const { status, body } = await get(world, `/api/v2/groups/${query}`, { as })
  expect(body).not.toHaveProperty('code')
  expect(status).toBe(200)
  expect([...Compile(groupFleetRows.schema.response).Errors(body)]).toEqual([])
  return body as unknown as RowGroupsView
}
const said = ({ groups }: RowGroupsView) =>
  groups.map(({ values, count, health }) => `${values.join(' ')}: ${count} ${health}`)

describe('groups of rows', () => {
  it.each([
    [
      'by=status',
      ['Running: 2 healthy', 'Completed: 1 healthy', 'CrashLoopBackOff: 1 unhealthy', 'Pending: 1 degraded'],
    ],
    ['by=namespace', ['shop: 3 unhealthy', 'bank: 2 degraded']],
    ['by=cluster', ['west: 3 unhealthy', 'east: 2 degraded']],
    ['by=node', ['n1: 3 unhealthy', 'n2: 1 degraded', ': 1 healthy']],
    [
      'by=cluster&by=namespace',
      ['west shop: 2 unhealthy', 'east bank: 1 degraded', 'east shop: 1 healthy', 'west bank: 1 healthy'],
    ],
    ['by=namespace&where=status!%3DRunning', ['bank: 2 degraded', 'shop: 1 unhealthy']],
    ['by=namespace&sort=health&where=restarts%3E0||status%3DPending', ['shop: 1 unhealthy', 'bank: 1 degraded']],
    ['by=restarts&cluster=west', ['0: 2 healthy', '9: 1 unhealthy']],
    ['by=workload&q=crash', ['Deployment/web: 1 unhealthy']],
    ['by=status&namespace=nowhere', []],
  ])('%s are counted, with the worst that is said in each', async (query, expected) => {
    await using world = await aFleet()
    expect(said(await groups(world, 'ann', `pods?${query}`))).toEqual(expected)
  })

  it('beyond the limit are one figure', async () => {
    await using world = await aFleet()
    const { groups: named, others, total } = await groups(world, 'ann', 'pods?by=status&limit=1')
    expect(named).toHaveLength(1)
    expect(others).toEqual({ groups: 3, count: 3, health: 'unhealthy' })
    expect(total).toBe(5)
  })

  it('name a cluster whose rows nobody knows, and do not count it as none', async () => {
    await using world = await aFleet()
    const { unread, total, observedAt, stale } = await groups(world, 'ann', 'pods?by=cluster')
    expect(unread).toEqual([{ cluster: 'north', outcome: 'unreachable', message: 'Nothing was collected so far' }])
    expect([total, observedAt, stale]).toEqual([5, { oldest: start, newest: start }, []])
    expect(await groups(world, 'ann', 'pods?by=cluster&cluster=north')).toMatchObject({
      ...{ total: null, groups: [], observedAt: null },
      others: { groups: 0, count: 0, health: null },
    })
    world.clock.at += minutes(10)
    expect((await groups(world, 'ann', 'pods?by=cluster')).stale).toEqual(['east', 'west'])
  })

  it('are of what may be seen, and of nodes that may be named', async () => {
    await using world = await aFleet()
    expect(said(await groups(world, 'bob', 'pods?by=namespace'))).toEqual(['shop: 3 unhealthy'])
    expect(said(await groups(world, 'cid', 'pods?by=node'))).toEqual(['n1: 3 unhealthy', ': 2 degraded'])
    const refused = await get(world, '/api/v2/groups/pods?by=status', { as: 'dora' })
    expect([refused.status, refused.body]).toMatchObject([404, { code: 'type_not_found' }])
  })

  it.each([
    ['by=nothing', /there is no column "nothing": use name, namespace, cluster, status/],
    ['', /by/],
    ['by=a&by=b&by=c&by=d', /by/],
    ['by=status&where=status', /is none of field=text/],
  ])('of %s are refused, with the reason', async (query, reason) => {
    await using world = await aFleet()
    const { status, body } = await get(world, `/api/v2/groups/pods?${query}`, { as: 'ann' })
    expect(status).toBe(400)
    expect(body).toMatchObject({ code: 'invalid_parameter', error: expect.stringMatching(reason) })
  })
})
