import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseClusterName } from '#model'
import { get } from '../test/ask.ts'
import { allow, deny, none, within } from '../test/policies.ts'
import { aRow, aSource, GivenCatalog, seenBy } from '../test/sources.ts'
import { aWorld, proxy, start, type World } from '../test/world.ts'

const pvcx = aSource('pvcx')
const vm = aSource('vm')
const rows = [
  aRow('shop', 'cart', { size: 10, phase: 'Bound' }, { tier: 'gold' }),
  aRow('shop', 'db', { size: null, phase: '<Lost>' }),
  aRow('bank', 'vault', { size: 500, phase: 'Bound' }),
]
/** ann sees claims of shop, bob all but their total, cid all without measurements, eve nothing of types, gil claims of west. */
const policies = [
  allow('ann', { resources: [within('pvcx', 'shop')] }),
  allow('bob', {
    resources: [{ type: 'pvcx', visibility: 'all', aggregation_rules: { include: [], exclude: ['total'] } }],
  }),
  allow('cid', { metrics: false, resources: [{ type: 'pvcx', visibility: 'all' }] }),
  allow('eve'),
  allow('gil', { clusters: ['west'], priority: 200, resources: [{ type: 'pvcx', visibility: 'all' }] }),
  allow('gil-else', { users: ['gil'] }),
]
/** hal is shown west, without claims; what is denied elsewhere denies, as the original has it, every row of west. */
const halPolicies = [
  allow('hal', { clusters: ['west'], resources: [none('pvcx')] }),
  {
    ...deny('hal-elsewhere', { users: ['hal'], clusters: ['elsewhere'], priority: 200, resources: [none('vm')] }),
    default_cluster_access: 'allow',
  },
]

async function aFleet(semantics: 'strict' | 'original' = 'strict'): Promise<World> {
  const world = await aWorld(
    { identity: proxy, policies: [...policies, ...halPolicies], semantics },
    { catalog: new GivenCatalog(pvcx, vm) },
  )
  for (const name of ['west', 'east', 'south']) await world.connect(name)
  world.collected('west', seenBy(pvcx, rows, { truncated: true }))
  world.collected('east', seenBy(pvcx, rows.slice(2)))
  world.collected('south', seenBy(vm, []))
  for (const cluster of ['west', 'east'])
    await world.history.append([
      {
        kind: 'samples',
        samples: {
          cluster: parseClusterName(cluster),
          at: start - 60_000,
          source: 'pull',
          repaired: false,
          groups: [
            {
              scope: 'custom',
              keys: [pvcx.id],
              columns: ['count', 'total'].map((name) => ({
                metric: `clusterpulse_custom_resource_${name}`,
                values: Float64Array.of(7),
              })),
            },
          ],
        },
      },
    ])
  return world
}

let world: World
beforeAll(async () => {
  world = await aFleet()
})
afterAll(() => world[Symbol.asyncDispose]())

const ask = async (as: string, url: string) => (await get(world, url, { as })).body
const listed = async (as: string, url: string) =>
  (await get(world, url, { as })).body as unknown as readonly Record<string, unknown>[]

describe('the documented rows of a type', () => {
  it('are those of the specification, with times, marks and paging', async () => {
    expect(await ask('admin', '/api/v1/clusters/west/custom/pvcx')).toEqual({
      resourceTypeName: 'pvcx',
      cluster: 'west',
      items: [
        { _id: 'bank/vault', _namespace: 'bank', _name: 'vault', values: { size: 500, phase: 'Bound' } },
        {
          _id: 'shop/cart',
          _namespace: 'shop',
          _name: 'cart',
          _labels: { tier: 'gold' },
          values: { size: 10, phase: 'Bound' },
        },
        { _id: 'shop/db', _namespace: 'shop', _name: 'db', values: { size: null, phase: '<Lost>' } },
      ],
      filtered: false,
      pagination: { total: 3, page: 1, pageSize: 100, totalPages: 1, hasNext: false, hasPrevious: false },
      collectedAt: '2026-01-01T00:00:00Z',
      truncated: true,
      aggregations: { count: 3, total: 510, by_phase: { Bound: 2, '<Lost>': 1 } },
    })
  })

  it('say that policies filter them, and never that a question does', async () => {
    expect(await ask('ann', '/api/v1/clusters/west/custom/pvcx')).toMatchObject({
      filtered: true,
      filterNote: 'Results filtered based on access policies',
      pagination: { total: 2 },
      aggregations: { count: 2, total: 10 },
    })
    const asked = await ask('admin', '/api/v1/clusters/west/custom/pvcx?namespace=shop')
    expect(asked).toMatchObject({ filtered: false, pagination: { total: 2 }, aggregations: { count: 2, total: 10 } })
    expect(asked).not.toHaveProperty('filterNote')
  })

  it.each([
    ['admin', 'bank', { count: 1, total: 500, by_phase: { Bound: 1 } }],
    ['admin', 'bank&sort_by=size&page_size=1', { count: 1, total: 500, by_phase: { Bound: 1 } }],
    ['admin', 'none', { count: 0, total: 0, by_phase: {} }],
    ['admin', '', { count: 3, total: 510, by_phase: { Bound: 2, '<Lost>': 1 } }],
    ['ann', 'bank', { count: 0, total: 0, by_phase: {} }],
    ['bob', 'shop', { count: 2, by_phase: { Bound: 1, '<Lost>': 1 } }],
    ['cid', 'shop', undefined],
  ])('for %s sum over the namespace that is asked for: %s', async (as, namespace, sums) => {
    expect((await ask(as, `/api/v1/clusters/west/custom/pvcx?namespace=${namespace}`)).aggregations).toEqual(sums)
  })

  it('sum over all there is where the declaration gives everybody that', async () => {
    const open = aSource('open', { filterAggregations: false })
    await using given = await aWorld({ identity: proxy, policies }, { catalog: new GivenCatalog(open) })
    await given.connect('west')
    given.collected('west', seenBy(open, rows))
    const { body } = await get(given, '/api/v1/clusters/west/custom/open?namespace=shop', { as: 'admin' })
    expect(body).toMatchObject({ pagination: { total: 2 }, aggregations: { count: 3 } })
  })

  it.each([
    ['sort_by=size', ['shop/cart', 'bank/vault', 'shop/db']],
    ['sort_by=size&sort_order=desc', ['bank/vault', 'shop/cart', 'shop/db']],
    ['sort_by=_name', ['shop/cart', 'shop/db', 'bank/vault']],
    ['sort_by=_id&sort_order=desc', ['shop/db', 'shop/cart', 'bank/vault']],
    ['page_size=2&page=2', ['shop/db']],
    ['page_size=x&page=-3', ['bank/vault', 'shop/cart', 'shop/db']],
    ['page=9', []],
  ])('are ordered and cut by %s', async (query, ids) => {
    const { items } = await ask('admin', `/api/v1/clusters/west/custom/pvcx?${query}`)
    expect((items as { _id: string }[]).map(({ _id }) => _id)).toEqual(ids)
  })

  it('bound their pages, and refuse an order by what is no column', async () => {
    const { pagination } = await ask('admin', '/api/v1/clusters/west/custom/pvcx?page_size=99999999999999999999')
    expect(pagination).toMatchObject({ pageSize: 10_000 })
    expect((await get(world, '/api/v1/clusters/west/custom/pvcx?sort_by=x', { as: 'admin' })).status).toBe(400)
  })

  it('leave aggregations out where they are not wanted, or not for the caller', async () => {
    expect(await ask('admin', '/api/v1/clusters/west/custom/pvcx?include_aggregations=false')).not.toHaveProperty(
      'aggregations',
    )
    expect(await ask('cid', '/api/v1/clusters/west/custom/pvcx')).not.toHaveProperty('aggregations')
    expect((await ask('bob', '/api/v1/clusters/west/custom/pvcx')).aggregations).toEqual({
      count: 3,
      by_phase: { Bound: 2, '<Lost>': 1 },
    })
  })

  it('are none, with the page that was asked for, where nothing was collected', async () => {
    expect(await ask('admin', '/api/v1/clusters/south/custom/pvcx?page=2&page_size=7')).toEqual({
      resourceTypeName: 'pvcx',
      cluster: 'south',
      items: [],
      filtered: false,
      pagination: { total: 0, page: 2, pageSize: 7, totalPages: 1, hasNext: false, hasPrevious: true },
    })
  })

  it('of a type that is denied are not there; in the original semantics the caller is told so', async () => {
    for (const type of ['pvcx', 'none'])
      expect(await get(world, `/api/v1/clusters/west/custom/${type}`, { as: 'eve' })).toMatchObject({
        status: 404,
        body: { error: `Custom resource type '${type}' not found` },
      })
    await using original = await aFleet('original')
    expect(await get(original, '/api/v1/clusters/west/custom/pvcx', { as: 'eve' })).toMatchObject({
      status: 403,
      body: { error: "Access denied to custom resource type 'pvcx'", code: 'type_denied' },
    })
    expect((await get(original, '/api/v1/custom-types/clusters?type=pvcx', { as: 'eve' })).status).toBe(403)
    expect((await get(original, '/api/v1/clusters/west/custom/none', { as: 'admin' })).status).toBe(404)
  })
})

describe('types of which nobody could read what is declared', () => {
  it('are refused and not empty; what is compiled in is there, and what was read once goes on', async () => {
    const catalog = new GivenCatalog()
    catalog.unavailable = () => ({ since: 0, reason: 'metricsources:digest is of somebody else' })
    await using unread = await aWorld({ identity: proxy, policies: [] }, { catalog })
    await unread.connect('west')
    const answer = (path: string) => get(unread, path, { as: 'admin' })
    for (const path of [
      '/api/v1/custom-types',
      '/api/v1/custom-types/clusters?type=pvcx',
      '/api/v1/clusters/west/custom/pvcx',
      '/api/v2/types/pvcx',
      '/api/v2/clusters/west/types/pvcx',
    ])
      expect(await answer(path), path).toMatchObject({
        status: 503,
        body: { code: 'store_unavailable', error: expect.stringContaining('metricsources:digest') as string },
      })
    expect((await answer('/api/v2/types/pods')).status).toBe(200)
    catalog.set(aSource('pvcx'))
    expect((await answer('/api/v1/custom-types')).body).toEqual([{ resourceTypeName: 'pvcx', sourceId: 'test/pvcx' }])
    expect((await answer('/api/v2/types/none')).status).toBe(404)
  })
})

describe('the documented discovery of types', () => {
  it('names what is granted somewhere, with details only where they are asked for', async () => {
    expect(await listed('admin', '/api/v1/custom-types')).toEqual([
      { resourceTypeName: 'pvcx', sourceId: 'test/pvcx' },
      { resourceTypeName: 'vm', sourceId: 'test/vm' },
    ])
    expect(await listed('admin', '/api/v1/custom-types/')).toEqual(await listed('admin', '/api/v1/custom-types'))
    expect((await get(world, '/api/v1/custom-types/')).status).toBe(401)
    expect((await get(world, '/api/v1/custom-types/clusters/', { as: 'admin' })).status).toBe(404)
    expect(await listed('eve', '/api/v1/custom-types')).toEqual([])
    const details = '?include_source_details=true&include_cluster_availability=true'
    expect(await listed('bob', `/api/v1/custom-types${details}`)).toEqual([
      {
        resourceTypeName: 'pvcx',
        sourceId: 'test/pvcx',
        source: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', scope: 'Namespaced' },
        fields: ['size', 'phase'],
        computedFields: [],
        aggregations: ['count', 'by_phase'],
        clustersWithData: ['east', 'west'],
      },
    ])
    expect((await listed('gil', `/api/v1/custom-types${details}`))[0]?.clustersWithData).toEqual(['west'])
  })

  it('counts cluster by cluster, in the order of the question, each type once', async () => {
    const url = '/api/v1/custom-types/clusters'
    expect(await get(world, url, { as: 'admin' })).toMatchObject({
      status: 400,
      body: { error: "at least one 'type' query parameter is required" },
    })
    expect(await listed('admin', `${url}?type=vm&type=pvcx&type=vm&type=none`)).toEqual([
      { cluster: 'south', resourceTypeName: 'vm', count: 0, lastCollection: '2026-01-01T00:00:00Z' },
      { cluster: 'east', resourceTypeName: 'pvcx', count: 1, lastCollection: '2026-01-01T00:00:00Z' },
      { cluster: 'west', resourceTypeName: 'pvcx', count: 3, lastCollection: '2026-01-01T00:00:00Z' },
    ])
    expect(await listed('ann', `${url}?type=pvcx&clusters=west&include_aggregations=true`)).toMatchObject([
      { cluster: 'west', count: 2, aggregations: { count: 2 } },
    ])
    expect((await listed('gil', `${url}?type=pvcx`)).map(({ cluster }) => cluster)).toEqual(['west'])
    expect(await listed('eve', `${url}?type=pvcx`)).toEqual([])
  })
})

describe('aggregations over time', () => {
  const url = (metric: string, cluster = 'west') =>
    `/api/v2/clusters/${cluster}/types/pvcx/history?metric=${metric}&range=15m`

  it('are those of the declaration, with their units', async () => {
    expect(await ask('admin', url('total,count'))).toMatchObject({
      metrics: [
        { name: 'total', unit: 'bytes', title: 'total (sum of size)' },
        { name: 'count', unit: 'count', title: 'count' },
      ],
      series: [{ metric: 'total', labels: { cluster: 'west', source: 'test/pvcx' } }, { metric: 'count' }],
    })
  })

  it.each([
    ['ann', 'total', 403, 'history_filtered'],
    ['cid', 'total', 403, 'metrics_not_permitted'],
    ['bob', 'total', 400, 'unknown_metric'],
    ['admin', 'by_phase', 400, 'unknown_metric'],
    ['eve', 'total', 404, 'type_not_found'],
    ['bob', 'count', 200, undefined],
  ])('for %s, who asks for %s, are %d %s', async (as, metric, status, code) => {
    const answer = await get(world, url(metric), { as })
    expect([answer.status, answer.body.code]).toEqual([status, code])
  })

  it('by PromQL are narrowed to the clusters and sources of which the caller may have them', async () => {
    const queries: string[] = []
    const lists: (string | readonly string[])[] = []
    world.history.promql = {
      ask: async (_path, { query = '', 'match[]': selectors = [] }) => {
        queries.push(String(query))
        lists.push(selectors)
        return { status: 200, body: { status: 'success', data: { resultType: 'vector', result: [] } } }
      },
    }
    const query = async (as: string, text: string) => {
      queries.length = 0
      const { status } = await get(world, `/api/v1/query?query=${encodeURIComponent(text)}`, { as })
      return status === 200 ? queries[0] : status
    }
    const total = 'clusterpulse_custom_resource_total'
    const count = 'clusterpulse_custom_resource_count'
    const everywhere = 'cluster=~"east|south|west"'
    const sources = 'source=~"test\\\\/pvcx|test\\\\/vm"'
    expect(await query('admin', total)).toBe(`${total} { ${everywhere} , ${sources} }`)
    expect(await query('bob', total)).toBe(`${total} { ${everywhere} , source!~".*" }`)
    expect(await query('bob', count)).toBe(`${count} { ${everywhere} , source=~"test\\\\/pvcx" }`)
    expect(await query('gil', count)).toBe(`${count} { cluster=~"west" , source=~"test\\\\/pvcx" }`)
    expect(await query('eve', count)).toBe(`${count} { ${everywhere} , source!~".*" }`)
    expect(await query('ann', count)).toBe(403)
    // What is listed is asked for by selectors; one that names no metric finds the aggregations that are theirs.
    const selectors = async (as: string, selector = '') => {
      lists.length = 0
      await ask(as, `/api/v1/series?match[]=${encodeURIComponent(selector)}`)
      return lists[0]
    }
    const plain = (clusters: string) => `{ ${clusters} , __name__!~"clusterpulse_custom_resource_.*" }`
    expect(await selectors('gil', '{}')).toEqual([
      plain('cluster=~"east|south|west"'),
      `{ cluster=~"west" , source=~"test\\\\/pvcx" , __name__=~"${count}|${total}" }`,
    ])
    expect(await selectors('eve', '{}')).toEqual([plain(everywhere)])
    expect(JSON.stringify(await selectors('bob', '{cluster="west"}'))).toContain(count)
    expect(JSON.stringify(await selectors('bob', '{cluster="west"}'))).not.toContain(total)
    expect(await selectors('bob', total)).toEqual([`${total} { ${everywhere} , source!~".*" }`])
    const declared = async (as: string) => Object.keys((await ask(as, '/api/v1/metadata')).data as object)
    expect(await declared('bob')).toContain(count)
    expect(await declared('bob')).not.toContain(total)
    expect(await declared('eve')).not.toContain(count)
  })
})

describe('beside their own routes, types', () => {
  it('are found by name, as far as they are seen', async () => {
    const found = async (as: string, q: string) => {
      const { items, total } = await ask(as, `/api/v2/search?q=${q}`)
      return [
        total,
        (items as { kind: string; name: string; cluster: string }[]).map(
          ({ kind, cluster, name }) => `${kind} ${cluster}/${name}`,
        ),
      ]
    }
    expect(await found('admin', 'vault')).toEqual([2, ['custom east/vault', 'custom west/vault']])
    expect(await found('ann', 'vault')).toEqual([0, []])
    expect(await found('ann', 'pvcx%20db')).toEqual([1, ['custom west/db']])
    expect(await found('eve', 'cart')).toEqual([0, []])
    expect((await ask('ann', '/api/v2/search?q=cart')).items).toEqual([
      {
        kind: 'custom',
        cluster: 'west',
        name: 'cart',
        detail: 'pvcx in shop',
        health: 'unknown',
        type: 'pvcx',
        namespace: 'shop',
      },
    ])
  })

  it('stand among permissions where they are seen', async () => {
    const visibility = async (as: string) =>
      ((await ask(as, '/api/v1/auth/permissions')).clusters as Record<string, { visibility: object }>).west?.visibility
    expect(await visibility('admin')).toMatchObject({ pvcx: 'all', vm: 'all' })
    expect(await visibility('ann')).toMatchObject({ pvcx: 'filtered' })
    expect(await visibility('bob')).toMatchObject({ pvcx: 'all' })
    expect(await visibility('eve')).not.toHaveProperty('pvcx')
  })

  it.each(['strict', 'original'] as const)(
    'are said to be hidden where own policies name them, %s',
    async (semantics) => {
      await using fleet = await aFleet(semantics)
      const { body } = await get(fleet, '/api/v1/auth/permissions', { as: 'hal' })
      const nodes = semantics === 'strict' ? 'all' : 'none'
      expect(body.clusters).toMatchObject({ west: { visibility: { nodes, pvcx: 'none', vm: 'none' } } })
    },
  )

  it('are explained by what is known of the row', async () => {
    const shown = async (as: string, name: string, namespace = '') => {
      const url = `/api/v1/auth/explain?cluster=west&type=pvcx&name=${name}${namespace && `&namespace=${namespace}`}`
      return (await ask(as, url)).item
    }
    expect(await shown('ann', 'cart')).toMatchObject({ shown: true })
    expect(await shown('ann', 'vault')).toMatchObject({ shown: false })
    expect(await shown('ann', 'cart', 'bank')).toMatchObject({ shown: false })
  })
})
