import { describe, expect, it } from 'vitest'
import { resourceOf } from '#resources'
import { get } from './test/ask.ts'
import { allow, none, only } from './test/policies.ts'
import { aRow, aSource, GivenCatalog, seenBy } from './test/sources.ts'
import { aWorld, complete, proxy, start } from './test/world.ts'

const [pods, workloads, services] = ['pods', 'workloads', 'services'].map(resourceOf)
const aNamespace = (name: string) => ({ name, phase: 'Active', createdAt: start, labels: {} })

/** ann sees all, bob the namespace bank and no services, cid one service, dora of all lists services alone. */
const policies = [
  allow('ann'),
  allow('bob', { resources: [only('namespaces', 'bank'), none('services')] }),
  allow('cid', { resources: [only('services', 'web')] }),
  allow('dora', { resources: [none('pods'), none('workloads'), { type: 'services', visibility: 'all' }] }),
]

async function aFleet(catalog = new GivenCatalog()) {
  const world = await aWorld({ identity: proxy, policies }, { catalog })
  await world.connect('west')
  const counts = { total: 5, running: 2, pending: 1, failed: 1, succeeded: 1, unknown: 0 }
  await world.batch('west', [
    complete('namespace', ['bank', 'shop'].map(aNamespace)),
    complete('podSummary', [{ name: 'pods', counts, unscheduled: 0, byNamespace: { shop: counts } }]),
  ])
  const asked = async (as: string, path = '/namespaces?with_resource_counts=true') =>
    (await get(world, `/api/v1/clusters/west${path}`, { as })).body
  const readAll = () => {
    world.collected('west', seenBy(pods as never, [], { durationMs: 40 }))
    world.collected('west', seenBy(services as never, [aRow('shop', 'web'), aRow('shop', 'db'), aRow('bank', 'web')]))
    const workload = (namespace: string, name: string, kind: string) => aRow(namespace, `${name}:${kind}`, { kind })
    world.collected(
      'west',
      seenBy(
        workloads as never,
        [
          workload('shop', 'db', 'StatefulSet'),
          workload('shop', 'log', 'DaemonSet'),
          workload('shop', 'web', 'Deployment'),
        ],
        { truncated: true },
      ),
    )
  }
  return Object.assign(world, { asked, readAll })
}

describe('what the documented lists hold', () => {
  it('is counted per namespace, without pods that ended; what nobody read has no number', async () => {
    await using world = await aFleet()
    const before = [
      { name: 'shop', resource_counts: { pods: 3 }, total_resources: 3 },
      { name: 'bank', resource_counts: { pods: 0 }, total_resources: 0 },
    ]
    expect(await world.asked('ann')).toEqual(before)
    expect(await world.asked('ann', '')).not.toHaveProperty('resource_collection')
    world.readAll()
    expect(await world.asked('ann')).toEqual([
      { name: 'shop', resource_counts: { pods: 3, services: 2, statefulsets: 1, daemonsets: 1 }, total_resources: 7 },
      { name: 'bank', resource_counts: { pods: 0, services: 1, statefulsets: 0, daemonsets: 0 }, total_resources: 1 },
    ])
  })

  it('has no number of rows that nobody reads any more', async () => {
    await using world = await aFleet()
    world.readAll()
    expect(JSON.stringify(await world.asked('ann'))).toContain('"services":2')
    world.clock.at += 3 * 60_000
    expect(JSON.stringify(await world.asked('ann', '/namespaces?with_resource_counts=true&'))).not.toContain('services')
    expect(await world.asked('ann', '/')).not.toHaveProperty('resource_collection')
  })

  it('is counted of what may be seen', async () => {
    await using world = await aFleet()
    world.readAll()
    const counts = async (as: string) =>
      ((await world.asked(as)) as unknown as readonly { name: string; resource_counts: object }[]).map(
        ({ name, resource_counts }) => [name, resource_counts],
      )
    expect(await counts('bob')).toEqual([['bank', { pods: 0, statefulsets: 0, daemonsets: 0 }]])
    expect(await counts('cid')).toEqual([
      ['shop', expect.objectContaining({ services: 1 })],
      ['bank', expect.objectContaining({ services: 1 })],
    ])
  })

  it('says when it was read, how long that took, and whether that was all', async () => {
    await using world = await aFleet()
    world.readAll()
    expect(await world.asked('ann', '')).toMatchObject({
      resource_collection: {
        enabled: true,
        last_collection: '2026-01-01T00:00:00Z',
        collection_time_ms: 40,
        truncated: true,
      },
    })
  })

  it('follows what is declared: a name that a MetricSource takes is decided anew', async () => {
    const catalog = new GivenCatalog()
    await using world = await aFleet(catalog)
    world.readAll()
    const countsServices = async () => [
      JSON.stringify(await world.asked('dora')).includes('"services":'),
      JSON.stringify(await world.asked('dora', '')).includes('resource_collection'),
    ]
    expect(await countsServices()).toEqual([true, true])
    // From now on the policy speaks of that one; what is compiled in follows pods, of which not all are shown.
    catalog.set(aSource('services'))
    expect(await countsServices()).toEqual([false, false])
  })
})
