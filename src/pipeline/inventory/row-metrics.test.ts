import { expect, it } from 'vitest'
import { seconds, systemClock } from '#model'
import { Metrics } from '#runtime'
import { aRow } from './api/testing/world.ts'
import type { InventoryInformers } from './objects.ts'
import { measureRows } from './row-metrics.ts'
import { RowStore } from './store/index.ts'

it('counts the rows of all targets of a profile together, and forgets those that are gone', async () => {
  const store = new RowStore(() => undefined)
  const of = (name: string) => store.target({ namespace: 'team-a', name })
  const target = (name: string, profileRef: string) => ({
    metadata: { name, namespace: 'team-a' },
    spec: { profileRef },
  })
  const informers = {
    targets: { list: () => [target('apps', 'p'), target('more', 'p'), target('pods', 'q')] },
    profiles: { list: () => [], get: () => undefined },
    clusterTargets: {
      list: () => [{ metadata: { name: 'nodes' }, spec: { profileRef: { name: 'n', namespace: 'kollect-system' } } }],
    },
  } as unknown as InventoryInformers // all that is read of them
  const metrics = new Metrics({}, { processMetrics: false })
  measureRows(metrics, { store, informers, itemCounts: () => [2, undefined, 3], clock: systemClock })
  of('apps').put([aRow({ name: 'a' }), aRow({ name: 'b' })])
  of('more').put([aRow({ name: 'c', targetName: 'more' })])
  of('pods').put([aRow({ name: 'd', targetName: 'pods', group: '', kind: 'Pod' })])
  store
    .target({ namespace: '', name: 'nodes' })
    .put([aRow({ name: 'n', targetNamespace: '', group: '', kind: 'Node' })])
  const text = await metrics.registry.metrics()
  expect(text).toContain('kollect_collected_objects{profile="team-a/p",gvk="apps/v1/Deployment"} 3')
  expect(text).toContain('kollect_collected_objects{profile="team-a/q",gvk="v1/Pod"} 1')
  expect(text).toContain('kollect_collected_objects{profile="kollect-system/n",gvk="v1/Node"} 1')
  expect(text).toMatch(/^kollect_collect_items_total 5$/m)
  expect(text).toMatch(/^kollect_inventory_items_total 5$/m)
  of('pods').drop()
  expect(await metrics.registry.metrics()).not.toContain('team-a/q')
})

it('adds up attributes as profiles say, anew each half a minute, and forgets what is gone', async () => {
  const store = new RowStore(() => undefined)
  const apps = store.target({ namespace: 'team-a', name: 'apps' })
  const targets = [{ metadata: { name: 'apps', namespace: 'team-a' }, spec: { profileRef: 'p' } }]
  const profile = {
    metadata: { name: 'p', namespace: 'team-a' },
    spec: {
      targetGVK: { group: 'apps', version: 'v1', kind: 'Deployment' },
      metrics: [{ name: 'replicas', path: 'replicas', labels: ['team', 'series'] }],
    },
  }
  const informers = {
    targets: { list: () => targets },
    clusterTargets: { list: () => [] },
    profiles: {
      list: () => [profile],
      get: ({ namespace, name }: { namespace: string; name: string }) =>
        namespace === 'team-a' && name === 'p' ? profile : undefined,
    },
  } as unknown as InventoryInformers // all that is read of them
  const metrics = new Metrics({ cluster: 'west' }, { processMetrics: false })
  let now = 0
  const clock = { ...systemClock, now: () => now }
  measureRows(metrics, { store, informers, itemCounts: () => [], clock })
  const text = () => metrics.registry.metrics()
  const of = 'profile="team-a/p",gvk="apps/v1/Deployment"'
  apps.setComplete(true)
  expect(await text()).toContain(`kollect_custom_resource_series{${of},series="object_count",cluster="west"} 0`)

  apps.put([
    aRow({ name: 'a', attributes: { replicas: 3, team: 'x', series: 'blue' } }),
    aRow({ name: 'b', attributes: { replicas: '2', team: 'x', series: 'blue' } }),
    aRow({ name: 'c', attributes: { replicas: 'many', team: 'x' } }),
    aRow({ name: 'd', attributes: { replicas: 1 } }),
  ])
  expect(await text()).not.toContain('series="replicas"')
  now += seconds(30)
  expect(await text()).toContain(`kollect_custom_resource_series{${of},series="object_count",cluster="west"} 4`)
  expect(await text()).toContain(`kollect_custom_resource_series{${of},series="replicas",cluster="west"} 6`)
  const divided = 'kollect_custom_resource_labeled_series'
  const divide = async () => (await text()).split('\n').filter((line) => line.startsWith(`${divided}{`))
  expect(await divide()).toEqual([
    `${divided}{team="",attribute_series="",${of},series="replicas",cluster="west"} 1`,
    `${divided}{team="x",attribute_series="blue",${of},series="replicas",cluster="west"} 5`,
  ])
  // It may be told before the sample that it is of.
  expect(await text()).toContain(`${divided}_capped_total{${of},series="replicas",cluster="west"} 0`)
  // As one process tells another.
  expect(JSON.stringify(await metrics.moment())).toContain('"attribute_series":"blue"')

  targets.length = 0
  now += seconds(30)
  expect(await text()).not.toContain('series="object_count"')
  expect(await text()).not.toContain('team-a/p')
})
