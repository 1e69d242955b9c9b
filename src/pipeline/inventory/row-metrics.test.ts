import { expect, it } from 'vitest'
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
    clusterTargets: {
      list: () => [{ metadata: { name: 'nodes' }, spec: { profileRef: { name: 'n', namespace: 'kollect-system' } } }],
    },
  } as unknown as InventoryInformers // all that is read of them
  const metrics = new Metrics({}, { processMetrics: false })
  measureRows(metrics, { store, informers, itemCounts: () => [2, undefined, 3] })
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
