import { describe, expect, it } from 'vitest'
import { Manager } from '#controller'
import type { KubeObject } from '#kube'
import { type ConnectionFacts, type OwnerPlace, ownerName, ownerOf, soleOwner } from '#model'
import { silentLogger } from '#runtime'
import { connectionResource } from './connection-resource.ts'
import { type ConnectionsOptions, connectionReconcilers } from './controllers.ts'
import { SomeAgents } from './testing/agents.ts'
import { aWorld, connect, NAMESPACE, statusOf, until, untilPhase, type World, writeSecret } from './testing/world.ts'

const first: OwnerPlace = { index: 1, of: 2 }
const second: OwnerPlace = { index: 2, of: 2 }
const names = Array.from({ length: 8 }, (_, i) => `c${i + 4}`).sort()
const shareOf = ({ index }: OwnerPlace) => names.filter((name) => ownerOf(name, 2) === index)

/** One set of controllers over the world's API server, and what it told the ingester. */
interface Owner {
  readonly manager: Manager
  /** connections its informer holds, sorted */
  held(): readonly string[]
  /** clusters it told the ingester of, sorted */
  told(what: 'connect' | 'accept' | 'remove'): readonly string[]
  readonly facts: ReadonlyMap<string, ConnectionFacts>
}

async function own(
  world: World,
  owner: OwnerPlace | undefined,
  over: Partial<ConnectionsOptions> = {},
): Promise<Owner> {
  const { hub, clients, state, ingester } = world
  const calls: [what: string, cluster: string][] = []
  const facts = new Map<string, ConnectionFacts>()
  const controllers = connectionReconcilers({
    ...{ hub, namespace: NAMESPACE, clients, state, logger: silentLogger },
    ...(owner && { owner }),
    defaults: { intervalMs: 150, timeoutMs: 2000, operatorScanIntervalMs: 300_000 },
    ingester: {
      connect(cluster, given) {
        calls.push(['connect', cluster])
        facts.set(cluster, given)
        return ingester.connect(cluster, given)
      },
      remove(cluster) {
        calls.push(['remove', cluster])
        return ingester.remove(cluster)
      },
      accept(offer, signal) {
        calls.push(['accept', offer.batch.cluster])
        return ingester.accept(offer, signal)
      },
      nextSequence: (cluster) => ingester.nextSequence(cluster),
      unread: (cluster, after, because) => ingester.unread(cluster, after, because),
    },
    ...over,
  })
  const manager = new Manager({ controllers, logger: silentLogger })
  await manager.start()
  const [connections] = controllers.flatMap(({ informers }) => informers)
  return {
    manager,
    facts,
    held: () => (connections?.list() ?? []).map(({ metadata }) => metadata.name).sort(),
    told: (wanted) => [...new Set(calls.flatMap(([what, cluster]) => (what === wanted ? [cluster] : [])))].sort(),
  }
}

const ownersInStatuses = async (world: World) =>
  Promise.all(names.map(async (name) => (await statusOf(world, name)).owner))

async function eightClusters(world: World): Promise<void> {
  const member = await world.member()
  for (const name of names) await connect(world, name, member)
}

describe('connections of a hub of two owners', () => {
  it('are each read by one, whose name their status carries; with one alone again nothing tells of owners', async () => {
    await using world = await aWorld()
    await eightClusters(world)
    const owners = [await own(world, first), await own(world, second)]
    for (const name of names) await untilPhase(world, name, 'Connected')
    for (const [i, place] of [first, second].entries()) {
      expect(shareOf(place).length).toBeGreaterThan(1)
      expect(owners[i]?.held()).toEqual(shareOf(place))
      expect(owners[i]?.told('connect')).toEqual(shareOf(place))
      expect(owners[i]?.told('accept')).toEqual(shareOf(place))
      for (const name of shareOf(place)) expect(world.cluster(name)?.connection?.owner).toBe(ownerName(place))
    }
    expect(await ownersInStatuses(world)).toEqual(names.map((name) => `owner-${ownerOf(name, 2)}`))

    for (const { manager } of owners) await manager.stop()
    const alone = await own(world, undefined)
    await until(async () => expect(await ownersInStatuses(world)).toEqual(names.map(() => undefined)))
    expect(alone.told('accept')).toEqual(names)
    for (const name of names) {
      expect(world.cluster(name)?.connection).not.toHaveProperty('owner')
      const { metadata, status } = (await world.hub.get(connectionResource, {
        name,
        namespace: NAMESPACE,
      })) as KubeObject
      expect(JSON.stringify([metadata.annotations, status])).not.toContain('owner-')
    }
    await alone.manager.stop()
  })

  it('move to their new owners when there is one owner more, and the others stay', async () => {
    await using world = await aWorld()
    await eightClusters(world)
    const before = [await own(world, first), await own(world, second)]
    for (const name of names) await untilPhase(world, name, 'Connected')
    for (const { manager } of before) await manager.stop()
    const after = await Promise.all([1, 2, 3].map((index) => own(world, { index, of: 3 })))
    const wanted = names.map((name) => `owner-${ownerOf(name, 3)}`)
    expect(wanted).toContain('owner-3')
    await until(async () => expect(await ownersInStatuses(world)).toEqual(wanted))
    for (const { manager } of after) await manager.stop()
  })

  it('are forgotten by the one that owns them, whoever else looks; also when they went while nobody did', async () => {
    await using world = await aWorld()
    await eightClusters(world)
    const alone = await own(world, soleOwner)
    for (const name of names) await untilPhase(world, name, 'Connected')
    await alone.manager.stop()
    const [ours = '', gone = '', late = ''] = shareOf(first)
    const [theirs = '', theirsGone = ''] = shareOf(second)
    const forget = (name: string) => world.hub.delete(connectionResource, { name, namespace: NAMESPACE })
    for (const name of [gone, theirsGone]) await forget(name)

    const one = await own(world, first)
    await until(() => expect(world.cluster(gone)).toBeUndefined())
    await forget(ours)
    await forget(theirs)
    await until(() => expect(world.cluster(ours)).toBeUndefined())
    // What is told after it has been seen: nothing was done about the connections of the other one.
    await forget(late)
    await until(() => expect(world.cluster(late)).toBeUndefined())
    expect(one.told('remove')).toEqual([ours, gone, late].sort())
    for (const name of [theirs, theirsGone]) expect(world.cluster(name)).toBeDefined()

    const other = await own(world, second)
    await until(() => {
      for (const name of [theirs, theirsGone]) expect(world.cluster(name)).toBeUndefined()
    })
    expect(other.told('remove')).toEqual([theirs, theirsGone].sort())
    for (const { manager } of [one, other]) await manager.stop()
  })

  it('are looked at by their owner alone when an agent comes and goes, or a Secret changes', async () => {
    await using world = await aWorld()
    const agents = new SomeAgents()
    const member = await world.member()
    const [ours = '', theirs = ''] = [shareOf(first)[0], shareOf(second)[0]]
    for (const name of [ours, theirs]) {
      await connect(world, name, member, { collectionMode: 'push', credentialsRef: { name: 'shared' } })
    }
    const owners = [await own(world, first, { agents }), await own(world, second, { agents })]
    const [one, other] = owners
    await writeSecret(world.hub, 'shared', { token: 'wrong', 'ca.crt': member.ca })
    for (const name of [ours, theirs]) await untilPhase(world, name, 'Error')
    await writeSecret(world.hub, 'shared', { token: member.token, 'ca.crt': member.ca })
    for (const name of [ours, theirs]) await untilPhase(world, name, 'Connected')

    agents.connected(theirs)
    agents.delivers(theirs)
    await until(async () => expect((await statusOf(world, theirs)).collectorStatus?.delivering).toBe(true))
    agents.gone(theirs, 'test')
    await until(async () => expect((await statusOf(world, theirs)).collectorStatus?.connected).toBe(false))
    // Not knowing their connection is no reason to forget the cluster.
    expect([one?.told('remove'), other?.told('remove')]).toEqual([[], []])
    expect(one?.told('connect')).toEqual([ours])
    expect(other?.told('connect')).toEqual([theirs])
    expect((await statusOf(world, theirs)).owner).toBe('owner-2')
    for (const { manager } of owners) await manager.stop()
  })
})
