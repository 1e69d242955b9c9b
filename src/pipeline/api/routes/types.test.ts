import { Compile } from 'typebox/compile'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  getType,
  listCustomRows,
  listTypes,
  type RouteContract,
  type RowsPageView,
  type TypeOnClusterView,
  type TypeView,
} from '#http'
import { get } from '../test/ask.ts'
import { allow, deny, only, within } from '../test/policies.ts'
import { aRow, aSource, GivenCatalog, seenBy } from '../test/sources.ts'
import { aWorld, proxy, start, type World } from '../test/world.ts'

const pvcx = aSource('pvcx')
const vm = aSource('vm')

/** ann sees claims of shop, bob all of them but their total, cid all without measurements, dora vms, and eve nothing of types. */
const policies = [
  allow('ann', { resources: [within('pvcx', 'shop')] }),
  allow('bob', {
    resources: [{ type: 'pvcx', visibility: 'all', aggregation_rules: { include: [], exclude: ['total'] } }],
  }),
  allow('cid', { metrics: false, resources: [{ type: 'pvcx', visibility: 'all' }] }),
  allow('dora', { clusters: ['east'], resources: [{ type: 'vm', visibility: 'all' }] }),
  allow('eve'),
  allow('far', { clusters: ['west'], resources: [{ type: 'pvcx', visibility: 'all' }] }),
  deny('far-not', { users: ['far'], clusters: ['east'], priority: 200 }),
]

const rows = [
  aRow('shop', 'cart', { size: 10, phase: 'Bound' }, { tier: 'gold' }),
  aRow('shop', 'db', { size: 30, phase: 'Lost' }),
  aRow('bank', 'vault', { size: 500, phase: 'Bound' }),
  aRow('bank', 'db', { size: null, phase: '=cmd()' }),
]

async function aFleet(): Promise<World & { catalog: GivenCatalog }> {
  const catalog = new GivenCatalog(pvcx, vm)
  const world = await aWorld({ identity: proxy, policies }, { catalog })
  for (const name of ['west', 'east']) await world.connect(name, { displayName: name.toUpperCase() })
  world.collected('west', seenBy(pvcx, rows))
  world.collected('east', seenBy(pvcx, rows.slice(0, 1)))
  world.collected('east', seenBy(vm, []))
  return Object.assign(world, { catalog })
}

const fits = ({ schema }: RouteContract, body: unknown) =>
  expect([...Compile(schema.response).Errors(body)]).toEqual([])

async function types(world: World, as: string, query = ''): Promise<readonly TypeView[]> {
  const { status, body } = await get(world, `/api/v2/types${query}`, { as })
  expect(status).toBe(200)
  fits(listTypes, body)
  return body.items as readonly TypeView[]
}

async function page(world: World, as: string, query = ''): Promise<RowsPageView> {
  const { status, body } = await get(world, `/api/v2/clusters/west/types/pvcx${query}`, { as })
  expect(body).not.toHaveProperty('code')
  expect(status).toBe(200)
  fits(listCustomRows, body)
  return body as unknown as RowsPageView
}

const ids = ({ items }: RowsPageView): readonly string[] => items.map(({ id }) => id)

describe('types', () => {
  it('are those that a policy names, by name, with counts of what is shown on each cluster', async () => {
    await using world = await aFleet()
    expect((await types(world, 'admin')).map(({ type, count }) => [type, count])).toEqual([
      ['pvcx', 5],
      ['vm', 0],
    ])
    const [claims, ...others] = await types(world, 'ann')
    expect(others).toEqual([])
    expect(
      claims?.clusters.map(({ cluster, displayName, part, filtered }) => [cluster, displayName, part.count, filtered]),
    ).toEqual([
      ['east', 'EAST', 1, true],
      ['west', 'WEST', 2, true],
    ])
    expect(claims?.count).toBe(3)
    expect(await types(world, 'eve')).toEqual([])
    expect(
      (await types(world, 'dora')).map(({ type, clusters }) => [type, clusters.map(({ cluster }) => cluster)]),
    ).toEqual([['vm', ['east']]])
    expect((await types(world, 'far')).map(({ clusters }) => clusters.map(({ cluster }) => cluster))).toEqual([
      ['west'],
    ])
  })

  it('of one cluster are those that are there', async () => {
    await using world = await aFleet()
    expect((await types(world, 'admin', '?cluster=west')).map(({ type, clusters }) => [type, clusters.length])).toEqual(
      [['pvcx', 1]],
    )
    expect(await types(world, 'far', '?cluster=east')).toEqual([])
    expect(await types(world, 'admin', '?cluster=none')).toEqual([])
  })

  it('follow the catalogue at once', async () => {
    await using world = await aFleet()
    await types(world, 'admin')
    world.catalog.set(pvcx)
    expect((await types(world, 'admin')).map(({ type }) => type)).toEqual(['pvcx'])
    expect((await get(world, '/api/v2/types/vm', { as: 'admin' })).status).toBe(404)
  })

  it('are summed over what is shown, without what a policy keeps back', async () => {
    await using world = await aFleet()
    const of = async (as: string) => {
      const { body } = await get(world, '/api/v2/types/pvcx', { as })
      fits(getType, body)
      const { sources, clusters } = body as unknown as TypeView
      const west = clusters.find(({ cluster }) => cluster === 'west') as TypeOnClusterView
      return { named: sources[0]?.aggregations.map(({ name }) => name), sums: west.aggregations }
    }
    expect(await of('admin')).toEqual({
      named: ['count', 'total', 'by_phase'],
      sums: { count: 4, total: 540, by_phase: { Bound: 2, Lost: 1, '=cmd()': 1 } },
    })
    expect((await of('ann')).sums).toEqual({ count: 2, total: 40, by_phase: { Bound: 1, Lost: 1 } })
    expect(await of('bob')).toMatchObject({ named: ['count', 'by_phase'], sums: { count: 4 } })
    expect((await of('bob')).sums).not.toHaveProperty('total')
    expect(await of('cid')).toEqual({ named: [], sums: null })
  })

  it('are whole numbers for everybody where the declaration says so', async () => {
    await using world = await aFleet()
    world.catalog.set({ ...pvcx, filterAggregations: false })
    expect((await page(world, 'ann')).on).toMatchObject({
      filtered: true,
      part: { count: 2 },
      aggregations: { total: 540 },
    })
  })

  it('are not known where none of the rows has a number, and what the original says of it in v1', async () => {
    await using world = await aFleet()
    const url = '/api/v1/clusters/west/custom/pvcx'
    const expectTotals = async (as: string, v2: number | null, v1: number) => {
      expect((await page(world, as)).on.aggregations).toMatchObject({ total: v2 })
      expect((await get(world, url, { as })).body.aggregations).toMatchObject({ total: v1 })
    }
    const sized = (size: number | null) => aRow('shop', 'cart', { size, phase: 'Lost' })
    world.collected('west', seenBy(pvcx, [...rows.slice(3), sized(null)]))
    for (const as of ['admin', 'ann']) await expectTotals(as, null, 0)
    world.collected('west', seenBy(pvcx, [...rows.slice(3), sized(0)]))
    for (const as of ['admin', 'ann']) await expectTotals(as, 0, 0)
    world.collected('west', seenBy(pvcx, []))
    await expectTotals('admin', 0, 0)
  })

  it('and rows of a type that no cluster was read for are not counted as none', async () => {
    await using world = await aFleet()
    const never = {
      ...seenBy(vm, []),
      outcome: 'forbidden',
      code: 'forbidden',
      message: 'no',
      freshness: null,
    } as const
    world.collected('east', never)
    const count = async () => (await types(world, 'admin')).find(({ type }) => type === 'vm')?.count
    expect(await count()).toBeNull()
    world.collected('east', seenBy(vm, []))
    expect(await count()).toBe(0)
  })

  it('that are denied are unknown, word by word', async () => {
    await using world = await aFleet()
    for (const url of ['/api/v2/types/', '/api/v2/clusters/east/types/']) {
      const denied = await get(world, `${url}pvcx`, { as: 'dora', headers: { 'x-request-id': 'one' } })
      const unknown = await get(world, `${url}qvcx`, { as: 'dora', headers: { 'x-request-id': 'one' } })
      expect(denied.status).toBe(404)
      expect(denied.body.code).toBe('type_not_found')
      expect(JSON.stringify(denied.body).replace('pvcx', 'qvcx')).toBe(JSON.stringify(unknown.body))
    }
    expect((await get(world, '/api/v2/clusters/east/types/pvcx', { as: 'far' })).body.code).toBe('cluster_not_found')
  })

  it('say that they are old, outdated or never read', async () => {
    await using world = await aFleet()
    expect((await page(world, 'admin')).on).toMatchObject({ stale: false, outdated: false })
    world.clock.at = start + 180_000
    expect((await page(world, 'admin')).on.stale).toBe(true)
    world.catalog.set({ ...pvcx, hash: 'another' }, vm)
    expect((await page(world, 'admin')).on.outdated).toBe(true)
    const { body } = await get(world, '/api/v2/clusters/west/types/vm', { as: 'admin' })
    fits(listCustomRows, body)
    expect(body).toMatchObject({
      items: [],
      total: 0,
      on: { part: { code: 'not_collected', freshness: null }, stale: false },
    })
  })

  it('name the namespaces that could not be read only to those who may see rows there', async () => {
    await using world = await aFleet()
    const error = (namespace: string) =>
      ({ namespace, outcome: 'forbidden', code: 'forbidden', message: `no entry to ${namespace}` }) as const
    world.collected('west', seenBy(pvcx, rows, { errors: [error('bank'), error('shop')], errorCount: 7 }))
    expect((await page(world, 'admin')).on).toMatchObject({ errorCount: 7, errors: [error('bank'), error('shop')] })
    const { errors, errorCount } = (await page(world, 'ann')).on
    expect(errorCount).toBe(1)
    expect(errors).toEqual([expect.objectContaining({ namespace: 'shop' })])
    expect(JSON.stringify(errors)).not.toContain('no entry')
  })
})

describe('rows', () => {
  let shared: World
  beforeAll(async () => {
    shared = await aFleet()
  })
  afterAll(() => shared[Symbol.asyncDispose]())

  it('are those that policies leave, sorted by name, with what goes for all of them', async () => {
    await using world = await aFleet()
    const all = await page(world, 'admin')
    expect(ids(all)).toEqual(['shop/cart', 'bank/db', 'shop/db', 'bank/vault'])
    expect(all).toMatchObject({
      total: 4,
      next: null,
      source: { id: 'test/pvcx' },
      on: { cluster: 'west', filtered: false },
    })
    const some = await page(world, 'ann')
    expect(ids(some)).toEqual(['shop/cart', 'shop/db'])
    expect(some.items[0]).toEqual({
      id: 'shop/cart',
      namespace: 'shop',
      name: 'cart',
      labels: { tier: 'gold' },
      values: { size: 10, phase: 'Bound' },
    })
  })

  it.each([
    ['sort=size', ['shop/cart', 'shop/db', 'bank/vault', 'bank/db']],
    ['sort=size&order=desc', ['bank/vault', 'shop/db', 'shop/cart', 'bank/db']],
    ['sort=namespace', ['bank/db', 'bank/vault', 'shop/cart', 'shop/db']],
    ['sort=phase&order=desc', ['shop/db', 'bank/vault', 'shop/cart', 'bank/db'].sort()],
    ['namespace=bank', ['bank/db', 'bank/vault']],
    ['q=SHOP db', ['shop/db']],
    ['q=bound', ['shop/cart', 'bank/vault']],
    ['where=size>10', ['shop/db', 'bank/vault']],
    ['where=size<30&where=phase=Bound', ['shop/cart']],
    ['where=size=10.0', ['shop/cart']],
    ['where=phase!=Bound', ['bank/db', 'shop/db']],
    ['where=name=db&where=namespace!=bank', ['shop/db']],
  ])('are found and ordered by %s', async (query, expected) => {
    const world = shared
    const found = ids(await page(world, 'admin', `?${query.replaceAll(' ', '%20')}`))
    if (query.startsWith('sort=phase')) expect([...found].sort()).toEqual(expected)
    else expect(found).toEqual(expected)
  })

  it.each(['sort=secret', 'where=secret=1', 'where=size', 'where=size>big', 'cursor=bm9uZQ'])(
    'are not guessed at: %s is refused',
    async (query) => {
      const world = shared
      const { status, body } = await get(world, `/api/v2/clusters/west/types/pvcx?${query}`, { as: 'ann' })
      expect(status, JSON.stringify(body)).toBe(400)
    },
  )

  it.each(['name', 'namespace', 'size', 'phase'])(
    'come in pages by %s that neither hide nor repeat, both ways',
    async (sort) => {
      const world = shared
      for (const order of ['asc', 'desc']) {
        const whole = ids(await page(world, 'admin', `?sort=${sort}&order=${order}`))
        const seen: string[] = []
        let next: string | null = ''
        while (next !== null) {
          const cursor: string = next === '' ? '' : `&cursor=${next}`
          const one = await page(world, 'admin', `?sort=${sort}&order=${order}&limit=1${cursor}`)
          expect(one.total).toBe(4)
          seen.push(...ids(one))
          next = one.next
        }
        expect(seen).toEqual(whole)
      }
    },
  )

  it('go on behind a row that is gone', async () => {
    await using world = await aFleet()
    for (const order of ['asc', 'desc']) {
      world.collected('west', seenBy(pvcx, rows))
      const first = await page(world, 'admin', `?sort=namespace&order=${order}&limit=2`)
      const [, last] = ids(first)
      world.collected(
        'west',
        seenBy(
          pvcx,
          rows.filter(({ namespace, name }) => `${namespace}/${name}` !== last),
        ),
      )
      const rest = await page(world, 'admin', `?sort=namespace&order=${order}&cursor=${first.next}`)
      expect([...ids(first), ...ids(rest)]).toHaveLength(4)
    }
  })

  it('are one CSV, all of them, in which nothing is a formula', async () => {
    await using world = await aFleet()
    const response = await world.server.app.inject({
      url: '/api/v2/clusters/west/types/pvcx?format=csv&limit=1&sort=namespace',
      headers: { host: 'hub.example', 'x-forwarded-user': 'admin' },
    })
    expect(response.headers).toMatchObject({
      'content-type': 'text/csv; charset=utf-8',
      'content-disposition': 'attachment; filename="west-pvcx.csv"',
    })
    expect(response.body).toBe(
      "namespace,name,size,phase\r\nbank,db,,'=cmd()\r\nbank,vault,500,Bound\r\nshop,cart,10,Bound\r\nshop,db,30,Lost\r\n",
    )
  })

  it('are a CSV in words for people when asked with headings=labels', async () => {
    await using world = await aFleet()
    const csv = async (query: string) =>
      world.server.app.inject({
        url: `/api/v2/clusters/west/types/pvcx?format=csv&sort=namespace&${query}`,
        headers: { host: 'hub.example', 'x-forwarded-user': 'ann' },
      })
    const lines = (await csv('headings=labels')).body.split('\r\n')
    expect(lines).toEqual([
      'Namespace,Name,size (bytes),phase,Cluster,Display name,As of',
      expect.stringMatching(/^shop,cart,10,Bound,west,WEST,\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      expect.stringMatching(/^shop,db,30,Lost,west,WEST,/),
      '',
    ])
    const [title] = (await csv('headings=labels&columns=size')).body.split('\r\n')
    expect(title).toBe('Namespace,Name,size (bytes),Cluster,Display name,As of')
    expect((await csv('headings=fields')).body).toBe((await csv('')).body)
    expect((await csv('headings=nice')).statusCode).toBe(400)
  })

  it('are sent once: who has them is told so, and a change is seen at once', async () => {
    await using world = await aFleet()
    const ask = (etag = '') =>
      get(world, '/api/v2/clusters/west/types/pvcx', {
        as: 'ann',
        headers: etag === '' ? {} : { 'if-none-match': etag },
      })
    const { headers } = await ask()
    expect((await ask(String(headers.etag))).status).toBe(304)
    world.collected('west', seenBy(pvcx, rows.slice(1)))
    const again = await ask(String(headers.etag))
    expect(again).toMatchObject({ status: 200, body: { total: 1 } })
  })

  it('go when the labels of the cluster no longer let them be seen', async () => {
    await using world = await aFleet()
    await world.policies.put(
      allow('gil', { labels: { env: 'test' }, priority: 300, resources: [only('pvcx', 'cart', 'vault')] }),
      {},
    )
    await world.policies.put(allow('gil2', { users: ['gil'], resources: [only('pvcx', 'db')] }), {})
    expect(ids(await page(world, 'gil'))).toEqual(['shop/cart', 'bank/vault'])
    await world.connect('west', { labels: { env: 'prod' } })
    expect(ids(await page(world, 'gil'))).toEqual(['bank/db', 'shop/db'])
  })

  it('are not shared by two who see the same clusters whole', async () => {
    await using world = await aFleet()
    for (const as of ['admin', 'eve', 'admin']) {
      const { status } = await get(world, '/api/v2/clusters/west/types/pvcx', { as })
      expect(status).toBe(as === 'eve' ? 404 : 200)
    }
  })

  it('of several declarations of one name are those of the first, or of the one that is asked for', async () => {
    await using world = await aFleet()
    const other = aSource('zzz', { typeName: 'pvcx' })
    world.catalog.set(pvcx, other)
    world.collected('west', seenBy(other, [aRow('', 'alone')]))
    expect((await page(world, 'admin')).total).toBe(4)
    expect(ids(await page(world, 'admin', '?source=test/zzz'))).toEqual(['alone'])
    expect((await types(world, 'admin'))[0]?.sources.map(({ id }) => id)).toEqual(['test/pvcx', 'test/zzz'])
    expect((await get(world, '/api/v2/clusters/west/types/pvcx?source=test/vm', { as: 'admin' })).status).toBe(404)
  })
})
