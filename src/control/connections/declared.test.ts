import { expect, it } from 'vitest'
import { collectors } from '#collect'
import type { KubeClient } from '#kube'
import { CLUSTER_SET_LABEL, StoreUnavailableError, systemClock } from '#model'
import { connectionResource } from './connection-resource.ts'
import { SomeAgents } from './testing/agents.ts'
import { reading } from './testing/reading.ts'
import { aWorld, connect, NAMESPACE, until, untilPhase, type World } from './testing/world.ts'

/*
 * What access policies select by. No round comes while these tests run: what the state says was declared, not looked up.
 */
const defaults = { intervalMs: 3_600_000, timeoutMs: 60_000, operatorScanIntervalMs: 3_600_000 }
const key = (name: string) => ({ name, namespace: NAMESPACE })
const inSet = (set: string | null) => ({ metadata: { labels: { [CLUSTER_SET_LABEL]: set } } })
const says = (world: World, name: string, what: object) =>
  world.hub.patch(connectionResource, key(name), what, { kind: 'merge' })
const labelsOf = (world: World, name: string) => world.cluster(name)?.connection?.labels
/** Clusters that do not answer. */
const hanging = collectors.map((collector) =>
  reading(collector, async (_, signal) => {
    await systemClock.sleep(3_600_000, signal)
    throw signal.reason
  }),
)

it.each(['pull', 'push'])('the set of a cluster moves both ways between two rounds: %s', async (collectionMode) => {
  await using world = await aWorld({ defaults })
  await connect(world, 'west', await world.member(), { collectionMode, labels: { team: 'shop' } })
  await world.start({ agents: new SomeAgents() })
  await untilPhase(world, 'west', 'Connected')
  for (const set of ['prod', 'default', 'prod']) {
    await says(world, 'west', inSet(set))
    await until(() => expect(labelsOf(world, 'west')).toEqual({ team: 'shop', [CLUSTER_SET_LABEL]: set }))
  }
  await says(world, 'west', inSet(null))
  await until(() => expect(labelsOf(world, 'west')).toEqual({ team: 'shop' }))
  expect(world.batches.filter(({ partial }) => !partial)).toHaveLength(1)
})

it('the set of a cluster moves that nobody reads: its agent never came, and the hub has no way there', async () => {
  await using world = await aWorld({ defaults })
  await world.hub.create(connectionResource, {
    metadata: { ...key('away'), labels: { [CLUSTER_SET_LABEL]: 'prod' } },
    spec: { collectionMode: 'push' },
  })
  await world.start({ agents: new SomeAgents() })
  for (const set of ['default', 'prod']) {
    await says(world, 'away', inSet(set))
    await until(() => expect(labelsOf(world, 'away')).toEqual({ [CLUSTER_SET_LABEL]: set }))
  }
})

it('labels, names and the end of clusters wait for no turn behind clusters that do not answer', async () => {
  await using world = await aWorld({ defaults, concurrency: 1, collectors: hanging })
  const member = await world.member()
  const names = Array.from({ length: 8 }, (_, i) => `c${i}`)
  for (const name of names) await connect(world, name, member, { labels: { tier: 'open' } })
  await world.start()
  await until(() => expect(names.map((name) => labelsOf(world, name)?.tier)).toEqual(names.map(() => 'open')))
  for (const name of names)
    await says(world, name, { spec: { labels: { tier: 'closed' }, displayName: `The ${name}` } })
  await until(() => expect(names.map((name) => labelsOf(world, name)?.tier)).toEqual(names.map(() => 'closed')))
  expect(world.cluster('c7')?.connection?.displayName).toBe('The c7')
  for (const name of names) await world.hub.delete(connectionResource, key(name))
  await until(() => expect(world.state.clusters()).toEqual([]))
})

it('a look that began before a change does not say what was', async () => {
  await using world = await aWorld({ defaults })
  const { url } = await world.member()
  let asked = false
  let answer = () => {}
  const answered = new Promise<void>((resolve) => {
    answer = resolve
  })
  // Secrets of other namespaces are read one by one.
  const hub = new Proxy(world.hub, {
    get(target, property) {
      const value = Reflect.get(target, property, target) as unknown
      if (typeof value !== 'function') return value
      if (property !== 'get') return value.bind(target) as unknown
      return async (...given: Parameters<KubeClient['get']>) => {
        const [, { namespace }] = given
        if (namespace !== 'elsewhere') return target.get(...given)
        asked = true
        await answered
        return target.get(...given)
      }
    },
  })
  const said: (string | undefined)[] = []
  const { ingester } = world
  await world.hub.create(connectionResource, {
    metadata: { ...key('west'), labels: { [CLUSTER_SET_LABEL]: 'prod' } },
    spec: { endpoint: url, credentialsRef: { name: 'west', namespace: 'elsewhere' } },
  })
  await world.start({
    hub,
    ingester: {
      connect(cluster, facts) {
        said.push(facts.labels[CLUSTER_SET_LABEL])
        return ingester.connect(cluster, facts)
      },
      remove: (cluster) => ingester.remove(cluster),
      nextSequence: (cluster) => ingester.nextSequence(cluster),
      unread: (...given) => ingester.unread(...given),
      accept: (...given) => ingester.accept(...given),
    },
  })
  await until(() => expect([asked, labelsOf(world, 'west')]).toEqual([true, { [CLUSTER_SET_LABEL]: 'prod' }]))
  await says(world, 'west', inSet('default'))
  await until(() => expect(labelsOf(world, 'west')).toEqual({ [CLUSTER_SET_LABEL]: 'default' }))
  const before = said.length
  answer()
  await untilPhase(world, 'west', 'Error') // there is no such Secret
  expect(said.slice(before).length).toBeGreaterThan(0)
  expect(new Set(said.slice(before))).toEqual(new Set(['default']))
})

it('what the hub cannot note is tried again soon, however long it could not', async () => {
  await using world = await aWorld({ defaults })
  const { ingester } = world
  let tries = 0
  let isFull = false
  await connect(world, 'west', await world.member())
  await world.start({
    ingester: {
      connect(cluster, facts) {
        if (!isFull) return ingester.connect(cluster, facts)
        tries++
        return Promise.reject(new StoreUnavailableError("the hub's log", 'no space left on the disk'))
      },
      remove: (cluster) => ingester.remove(cluster),
      nextSequence: (cluster) => ingester.nextSequence(cluster),
      unread: (...given) => ingester.unread(...given),
      accept: (...given) => ingester.accept(...given),
    },
  })
  await untilPhase(world, 'west', 'Connected')
  isFull = true
  await says(world, 'west', inSet('prod'))
  await until(() => expect(tries).toBeGreaterThan(2))
  isFull = false
  await until(() => expect(labelsOf(world, 'west')).toEqual({ [CLUSTER_SET_LABEL]: 'prod' }))
})
