import { Compile } from 'typebox/compile'
import { describe, expect, it } from 'vitest'
import { type FleetPageView, listFleetRows, type TypeView } from '#http'
import { minutes, type TableRow } from '#model'
import { resourceOf } from '#resources'
import { get } from '../test/ask.ts'
import { allow, only, within } from '../test/policies.ts'
import { aRow, aSource, GivenCatalog, seenBy } from '../test/sources.ts'
import { aNode, aWorld, complete, proxy, start, type World } from '../test/world.ts'

const [pods, workloads, services] = ['pods', 'workloads', 'services'].map(resourceOf)
if (!pods || !workloads || !services) throw new Error('these kinds are compiled in')

const aPod = (namespace: string, name: string, values: TableRow['values'] = {}, labels = {}) =>
  aRow(namespace, name, { status: 'Running', restarts: 0, oomKills: 0, node: 'n1', ...values }, labels)

/** ann sees everything, bob what stands in shop, cid one node, and dora nothing of pods. */
const policies = [
  allow('ann'),
  allow('bob', { resources: [within('namespaces', 'shop')] }),
  allow('cid', { resources: [only('nodes', 'n1')] }),
  allow('dora', { resources: [{ type: 'pods', visibility: 'none' }] }),
]

async function aFleet(...declared: ReturnType<typeof aSource>[]): Promise<World> {
  const world = await aWorld({ identity: proxy, policies }, { catalog: new GivenCatalog(...declared) })
  for (const name of ['east', 'west']) {
    await world.connect(name)
    await world.batch(name, [
      complete('node', [aNode('n1'), aNode('n2')]),
      complete(
        'namespace',
        ['shop', 'bank'].map((one) => ({ name: one, phase: 'Active', createdAt: null, labels: {} })),
      ),
    ])
  }
  world.collected(
    'west',
    seenBy(pods as never, [
      aPod('bank', 'vault', { restarts: 7, node: 'n2' }),
      aPod('shop', 'cart', { restarts: 3, status: 'CrashLoopBackOff' }, { app: 'cart' }),
    ]),
  )
  world.collected(
    'east',
    seenBy(pods as never, [aPod('shop', 'cart', { restarts: 1, node: 'n2' }, { app: 'cart', tier: 'gold' })]),
  )
  world.collected(
    'east',
    seenBy(workloads as never, [
      aRow('shop', 'web:Deployment', { kind: 'Deployment' }),
      aRow('shop', 'web:Job', { kind: 'Job' }),
    ]),
  )
  world.collected('east', seenBy(services as never, [aRow('shop', 'web')]))
  return world
}

async function page(world: World, as: string, path: string): Promise<FleetPageView> {
  const { status, body } = await get(world, `/api/v2/rows/${path}`, { as })
  expect(body).not.toHaveProperty('code')
  expect(status).toBe(200)
  expect([...Compile(listFleetRows.schema.response).Errors(body)]).toEqual([])
  return body as unknown as FleetPageView
}
const where = ({ items }: FleetPageView) => items.map(({ cluster, id }) => `${cluster}:${id}`)

describe('rows of a kind over all clusters', () => {
  it.each([
    ['', ['east:shop/cart', 'west:bank/vault', 'west:shop/cart']],
    ['?cluster=west', ['west:bank/vault', 'west:shop/cart']],
    ['?cluster=nowhere', []],
    ['?namespace=shop', ['east:shop/cart', 'west:shop/cart']],
    ['?labels=app=cart', ['east:shop/cart', 'west:shop/cart']],
    ['?labels=app%3Dcart,!tier', ['west:shop/cart']],
    ['?where=restarts%3E2', ['west:bank/vault', 'west:shop/cart']],
    ['?q=crash', ['west:shop/cart']],
    ['?sort=restarts&order=desc', ['west:bank/vault', 'west:shop/cart', 'east:shop/cart']],
    ['?sort=name', ['east:shop/cart', 'west:shop/cart', 'west:bank/vault']],
    ['?sort=cluster&order=desc', ['west:shop/cart', 'west:bank/vault', 'east:shop/cart']],
  ])('pods%s', async (query, expected) => {
    await using world = await aFleet()
    expect(where(await page(world, 'ann', `pods${query}`))).toEqual(expected)
  })

  it.each(['restarts', 'cluster', 'name', 'namespace'])(
    'come in pages that are the whole, sorted by %s',
    async (sort) => {
      await using world = await aFleet()
      const whole = where(await page(world, 'ann', `pods?sort=${sort}`))
      const seen: string[] = []
      for (let cursor: string | null = ''; cursor !== null; ) {
        const one = await page(
          world,
          'ann',
          `pods?sort=${sort}&limit=1${cursor && `&cursor=${encodeURIComponent(cursor)}`}`,
        )
        expect(one.total).toBe(3)
        seen.push(...where(one))
        cursor = one.next
      }
      expect(seen).toEqual(whole)
    },
  )

  it('are those that may be seen, and name no node that may not', async () => {
    await using world = await aFleet()
    expect(where(await page(world, 'bob', 'pods'))).toEqual(['east:shop/cart', 'west:shop/cart'])
    const nodes = async (as: string) => (await page(world, as, 'pods')).items.map(({ values }) => values.node)
    expect(await nodes('ann')).toEqual(['n2', 'n2', 'n1'])
    expect(await nodes('cid')).toEqual([null, null, 'n1'])
    // Nor can it be found out by asking.
    expect(where(await page(world, 'cid', 'pods?where=node%3Dn2'))).toEqual([])
    expect(where(await page(world, 'cid', 'pods?q=n2'))).toEqual([])
  })

  it('are not there for who may not see them, as what is not there at all', async () => {
    await using world = await aFleet()
    const answers = await Promise.all(
      ['pods', 'services', 'nothing'].map((type) => get(world, `/api/v2/rows/${type}`, { as: 'dora' })),
    )
    expect(answers.map(({ status, body }) => [status, body.code])).toEqual([
      [404, 'type_not_found'],
      [404, 'type_not_found'],
      [404, 'type_not_found'],
    ])
  })

  it('are called as people know them, whatever keeps two kinds apart', async () => {
    await using world = await aFleet()
    const { items } = await page(world, 'ann', 'workloads')
    expect(items.map(({ id, name, values }) => [id, name, values.kind])).toEqual([
      ['shop/web:Deployment', 'web', 'Deployment'],
      ['shop/web:Job', 'web', 'Job'],
    ])
    expect((await page(world, 'ann', 'workloads?where=name%3Dweb')).total).toBe(2)
  })

  it('are chosen by parts of a text, by one of several, and by what they are not', async () => {
    await using world = await aFleet()
    const asked = async (...conditions: string[]) =>
      where(await page(world, 'admin', `pods?${conditions.map((one) => `where=${encodeURIComponent(one)}`).join('&')}`))
    expect(await asked('status~crash')).toEqual(['west:shop/cart'])
    expect(await asked('status!~crash')).not.toContain('west:shop/cart')
    expect(await asked('status=CrashLoopBackOff||status=Nothing')).toEqual(['west:shop/cart'])
    expect(await asked('*!~crash')).not.toContain('west:shop/cart')
    const nodes = await page(world, 'admin', 'nodes?where=version%3Ev1.9')
    expect(nodes.items.length).toBe((await page(world, 'admin', 'nodes?where=version~v1.31')).items.length)
    expect(await asked('restarts>=0')).toEqual(await asked())
  })

  it('keep another address where a MetricSource has their name', async () => {
    const declared = aSource('services')
    await using world = await aFleet(declared)
    world.collected('west', seenBy(declared, [aRow('shop', 'declared', { size: 1 })]))
    expect(where(await page(world, 'admin', 'services'))).toEqual(['west:shop/declared'])
    expect(where(await page(world, 'admin', 'core%2Fservices'))).toEqual(['east:shop/web'])
    const { body } = await get(world, '/api/v2/types', { as: 'admin' })
    expect((body.items as { type: string }[]).map(({ type }) => type)).toEqual([
      'core/services',
      'namespaces',
      'nodes',
      'pods',
      'services',
      'workloads',
    ])
  })

  it.each(['pod', 'po', 'PO', 'Pods'])('are found by what people call them as well: %s', async (word) => {
    await using world = await aFleet()
    expect(where(await page(world, 'ann', word))).toEqual(where(await page(world, 'ann', 'pods')))
    expect((await get(world, `/api/v2/types/${word}`, { as: 'ann' })).body.type).toBe('pods')
    const rows = await get(world, `/api/v2/clusters/west/types/${word}?format=json`, { as: 'ann' })
    expect((rows.body.items as { id: string }[]).map(({ id }) => id)).toEqual(['shop/cart', 'bank/vault'])
    for (const path of [`rows/${word}`, `types/${word}`, `clusters/west/types/${word}`])
      expect((await get(world, `/api/v2/${path}`, { as: 'dora' })).status, path).toBe(404)
  })

  it('leave a short name to the MetricSource that has it, where it may be seen', async () => {
    const declared = aSource('svc')
    await using world = await aFleet(declared)
    world.collected('west', seenBy(declared, [aRow('shop', 'declared', { size: 1 })]))
    const meant = async (as: string, word: string) => (await get(world, `/api/v2/types/${word}`, { as })).body.type
    expect([await meant('admin', 'svc'), await meant('admin', 'service')]).toEqual(['svc', 'services'])
    expect([await meant('admin', 'SVC'), await meant('bob', 'svc')]).toEqual(['svc', 'services'])
  })

  it('are of the past when three of their own reads were missed: operators are not read in every round', async () => {
    await using world = await aFleet()
    await world.connect('west', { operatorScanIntervalMs: minutes(5) })
    await world.batch('west', [complete('node', [aNode('n1')]), complete('operator', [])], { sequence: 2 })
    const told = async (type: string) => {
      const { body } = await get(world, `/api/v2/types?cluster=west`, { as: 'admin' })
      const { items } = body as unknown as { items: TypeView[] }
      const view = items.find((one) => one.type === type)
      return [view?.sources[0]?.intervalMs, view?.clusters[0]?.stale]
    }
    world.clock.at = start + minutes(4)
    expect(await told('nodes')).toEqual([30_000, true])
    expect(await told('operators')).toEqual([minutes(5), false])
    world.clock.at = start + minutes(16)
    expect(await told('operators')).toEqual([minutes(5), true])
  })

  it('are no custom types of the documented routes', async () => {
    await using world = await aFleet()
    expect((await get(world, '/api/v1/custom-types', { as: 'admin' })).body).toEqual([])
    expect((await get(world, '/api/v1/clusters/east/custom/pods', { as: 'admin' })).status).toBe(404)
  })

  it('come as a file that says which cluster each is of', async () => {
    await using world = await aFleet()
    const { body } = await world.server.app.inject({
      url: '/api/v2/rows/pods?format=csv',
      headers: { host: 'hub.example', 'x-forwarded-user': 'bob' },
    })
    const [head, ...lines] = body.trim().split('\r\n')
    expect(head).toMatch(/^cluster,namespace,name,status,ready,.*,observed_at$/)
    for (const line of lines) expect(line).toMatch(/,\d{4}-\d\d-\d\dT[\d:.]+Z$/)
    expect(lines.map((line) => line.split(',').slice(0, 4))).toEqual([
      ['east', 'shop', 'cart', 'Running'],
      ['west', 'shop', 'cart', 'CrashLoopBackOff'],
    ])
  })

  it.each([
    ['labels=a%3Db%3Dc', 'labels='],
    ['sort=nothing', 'nothing'],
    ['where=nothing%3D1', 'nothing'],
    ['where=%3E5', 'where=>5 is none of field=text, ~,'],
    ['where=', 'where is empty'],
    [`q=${'x'.repeat(201)}`, 'q has more than 200 characters'],
    ['where=a%3D1'.concat('&where=a%3D1'.repeat(10)), 'where stands there more than 10 times'],
    ['format=xml', 'format is none of json, csv'],
    ['order=up', 'order is none of asc, desc'],
  ])('refuse %s with a sentence', async (query, words) => {
    await using world = await aFleet()
    const { status, body } = await get(world, `/api/v2/rows/pods?${query}`, { as: 'ann' })
    expect([status, body.code, body.error]).toEqual([400, 'invalid_parameter', expect.stringContaining(words)])
  })
})
