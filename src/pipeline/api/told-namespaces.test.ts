import { describe, expect, it } from 'vitest'
import { inventoryFields, inventoryKey, type TableRow } from '#model'
import { resourceOf } from '#resources'
import { get } from './test/ask.ts'
import { allow, within } from './test/policies.ts'
import { aRow, seenBy } from './test/sources.ts'
import { aWorld, proxy, type World } from './test/world.ts'

const SAID = 'hidden: it may be about a namespace that is not shown'

/** ann sees everything, zoe what stands in shop, bob what stands in shop and canary. */
const inventory = { type: 'inventory', visibility: 'all' } as const
const policies = [
  allow('ann'),
  allow('bob', { resources: [within('namespaces', 'shop', 'canary'), inventory] }),
  allow('zoe', { resources: [within('namespaces', 'shop'), inventory] }),
]

const failure = 'canary/secretapp: attribute num: no number'
const targetRow = (about: string | null, values: TableRow['values'] = {}) => ({
  status: 'Degraded',
  rows: 7919,
  failures: 7919,
  why: failure,
  lastFailure: failure,
  about,
  namespaces: about,
  ...values,
})

/** @param targets of shop */
async function aFleet(targets: readonly TableRow[]): Promise<World> {
  const world = await aWorld({ identity: proxy, policies })
  await world.connect('west')
  const rows: Readonly<Record<string, readonly TableRow[]>> = {
    kollecttargets: targets,
    kollectinventories: [
      aRow('shop', 'apps:KollectInventory', {
        status: 'Degraded',
        rows: 7919,
        why: failure,
        exports: [{ message: failure }],
      }),
    ],
    kollectsinks: [aRow('shop', 'pg:KollectDatabaseSink', { status: 'Degraded', rows: 7919, why: failure })],
    inventory: [
      aRow('shop', inventoryKey('late', 'mark1', 'u1'), { kind: 'Deployment', target: 'canary/hidden', uid: 'u1' }),
      aRow('shop', inventoryKey('late', 'mark2', 'u1'), { kind: 'Deployment', target: 'shop/own', uid: 'u1' }),
      aRow('shop', inventoryKey('late', 'mark3', 'u1'), { kind: 'Deployment', target: 'everything', uid: 'u1' }),
    ],
  }
  for (const [name, of] of Object.entries(rows)) {
    const kind = resourceOf(name)
    if (!kind) throw new Error(`${name} is compiled in`)
    world.collected('west', seenBy(kind as never, of))
  }
  expect(resourceOf('inventory')?.columns.map(({ name }) => name)).toEqual([...inventoryFields])
  return world
}

const both = [aRow('shop', 'both:KollectTarget', targetRow('canary, shop'))]
const own = [aRow('shop', 'own:KollectTarget', targetRow('shop'))]

async function rowsFor(world: World, as: string, kind: string): Promise<readonly Record<string, unknown>[]> {
  const { status, body } = await get(world, `/api/v2/rows/${kind}?columns=all`, { as })
  expect(status).toBe(200)
  const { items } = body as unknown as { items: { values: Record<string, unknown> }[] }
  return items.map(({ values }) => values)
}

describe('a row that is shown', () => {
  it.each([
    ...['rows/kollecttargets', 'rows/kollectinventories', 'rows/kollectsinks', 'rows/inventory'],
    ...['rows/kollecttargets?format=csv', 'rows/kollectinventories?format=csv', 'rows/inventory?format=csv'],
    ...['groups/kollecttargets?by=why', 'groups/kollecttargets?by=about', 'groups/inventory?by=target'],
    ...['rows/inventory?q=late', 'types/kollecttargets'],
  ])('says nothing of a hidden namespace: %s', async (path) => {
    await using world = await aFleet(both)
    const textFor = async (as: string) => {
      const headers = { host: 'hub.example', 'x-forwarded-user': as }
      const { statusCode, body } = await world.server.app.inject({ url: `/api/v2/${path}`, headers })
      expect(statusCode).toBe(200)
      return body
    }
    expect(await textFor('ann')).toMatch(/canary|7919/)
    expect(await textFor('zoe')).not.toMatch(/canary|secretapp|7919/)
  })

  it('is found by nothing that it does not say', async () => {
    await using world = await aFleet(both)
    const found = async (as: string, query: string) => {
      const { body } = await get(world, `/api/v2/rows/${query}`, { as })
      return (body as unknown as { total: number }).total
    }
    for (const query of ['kollecttargets?q=secretapp', 'kollectsinks?where=rows%3D7919', 'inventory?q=canary']) {
      expect(await found('ann', query)).toBe(1)
      expect(await found('bob', query)).toBe(1)
      expect(await found('zoe', query)).toBe(0)
    }
    const { body } = await get(world, '/api/v2/search?q=hidden', { as: 'zoe' })
    expect(body).toMatchObject({ total: 0, items: [] })
  })

  it('says so in words, and names what is shown', async () => {
    await using world = await aFleet(both)
    const target = { status: 'Degraded', why: SAID, lastFailure: SAID, rows: null, failures: null, namespaces: 'shop' }
    expect(await rowsFor(world, 'zoe', 'kollecttargets')).toMatchObject([target])
    expect(await rowsFor(world, 'zoe', 'kollectinventories')).toMatchObject([{ why: SAID, rows: null, exports: null }])
    expect(await rowsFor(world, 'zoe', 'kollectsinks')).toMatchObject([{ why: SAID, rows: null }])
    const targets = (await rowsFor(world, 'zoe', 'inventory')).map((row) => row.target)
    expect(targets.toSorted()).toEqual(['shop/own', null, null].toSorted())
  })

  it('says all that is of namespaces that are shown', async () => {
    await using world = await aFleet(own)
    expect(await rowsFor(world, 'zoe', 'kollecttargets')).toMatchObject([{ why: failure, rows: 7919, about: 'shop' }])
    expect(await rowsFor(world, 'zoe', 'kollectinventories')).toMatchObject([{ why: failure, rows: 7919 }])
    expect(await rowsFor(world, 'zoe', 'kollectsinks')).toMatchObject([{ why: failure, rows: 7919 }])
  })

  it('of a sink says nothing of what targets of the cluster may bring to it', async () => {
    await using world = await aFleet([...own, aRow('', 'all:KollectClusterTarget', targetRow('canary, shop'))])
    expect(await rowsFor(world, 'zoe', 'kollectinventories')).toMatchObject([{ why: failure, rows: 7919 }])
    expect(await rowsFor(world, 'zoe', 'kollectsinks')).toMatchObject([{ why: SAID, rows: null }])
  })

  it('is told anew when it is known what it may be about', async () => {
    await using world = await aFleet([aRow('shop', 'own:KollectTarget', targetRow(null))])
    expect(await rowsFor(world, 'zoe', 'kollectsinks')).toMatchObject([{ why: SAID }])
    world.collected('west', seenBy(resourceOf('kollecttargets') as never, own))
    expect(await rowsFor(world, 'zoe', 'kollectsinks')).toMatchObject([{ why: failure }])
    world.collected('west', seenBy(resourceOf('kollecttargets') as never, own, { truncated: true }))
    expect(await rowsFor(world, 'zoe', 'kollectsinks')).toMatchObject([{ why: SAID }])
  })
})
