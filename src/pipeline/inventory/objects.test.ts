import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { silentLogger } from '#runtime'
import { inventoryInformers } from './index.ts'
import { aProfile, aTarget, TestCluster } from './targets/testing/cluster.ts'

describe('objects of inventory', () => {
  let cluster: TestCluster
  beforeAll(async () => {
    cluster = await TestCluster.start()
  })
  afterAll(() => cluster[Symbol.asyncDispose]())

  it('are those of some namespaces where nothing else may be read, each followed by itself, and none of the cluster', async () => {
    const inBank = (name: string) => ({ ...aTarget({}, name), metadata: { name, namespace: 'bank' } })
    await cluster.apply(aProfile())
    await cluster.apply(aTarget({}, 'first'))
    await cluster.apply({ kind: 'Namespace', metadata: { name: 'other' } })
    await cluster.apply({ ...aTarget({}, 'unseen'), metadata: { name: 'unseen', namespace: 'other' } })
    const informers = inventoryInformers(cluster.kube, silentLogger, ['shop', 'bank'])
    const all = Object.values(informers)
    try {
      for (const informer of all) informer.start()
      await Promise.all(all.map((informer) => informer.synced()))
      const names = () => informers.targets.list().map(({ metadata: { namespace, name } }) => `${namespace}/${name}`)
      expect(names()).toEqual(['shop/first'])
      expect(informers.namespaces.list().map(({ metadata }) => metadata.name)).toEqual(['shop', 'bank'])
      expect([informers.clusterTargets.isSynced, informers.clusterTargets.list()]).toEqual([true, []])
      await cluster.apply(inBank('second'))
      await expect.poll(() => names().sort()).toEqual(['bank/second', 'shop/first'])
      // What goes in one namespace takes nothing of another along.
      await cluster.remove(inBank('second'))
      await expect.poll(names).toEqual(['shop/first'])
    } finally {
      await Promise.all(all.map((informer) => informer.stop()))
    }
  })
})
