import { afterEach, describe, expect, it } from 'vitest'
import { type Access, openAccess, PoliciesUnavailableError, type PolicyDocument, type PolicySource } from '#access'
import type { ClusterView } from '#http'
import { leastOf } from '../../platform/runtime/testing/least-of.ts'
import { slowness } from '../../platform/runtime/testing/slowness.ts'
import { allow, but, deny } from './test/policies.ts'
import { type Frame, Picture, StreamReader } from './test/stream-reader.ts'
import { aNode, aWorld, complete, proxy, start, type World } from './test/world.ts'

const query = '?cluster=west&type=node'
const opened: StreamReader[] = []
afterEach(() => {
  for (const reader of opened.splice(0)) reader.close()
})

async function open(url: string, user: string, asked = query): Promise<StreamReader> {
  const reader = await StreamReader.open(`${url}/api/v1/stream${asked}`, { 'x-forwarded-user': user })
  opened.push(reader)
  await reader.until((frames) => frames.some(({ event }) => event === 'snapshot'))
  return reader
}

const events = ({ frames }: StreamReader): string[] => frames.map(({ event }) => event)
const picture = ({ frames }: StreamReader): Picture => {
  const made = new Picture()
  for (const frame of frames) made.apply(frame)
  return made
}
const nodesOf = (reader: StreamReader): string[] => [...picture(reader).rows.keys()].sort()
const clustersOf = (reader: StreamReader): string[] => [...picture(reader).clusters.keys()].sort()
/** the frames since the last snapshot began */
const last = (frames: readonly Frame[]): readonly Frame[] =>
  frames.slice(frames.findLastIndex(({ event }) => event === 'snapshot'))

const wide = allow('p', { users: ['ann', 'bea'] })
const narrow = allow('p', { users: ['ann', 'bea'], resources: [but('nodes', 'b')] })

async function aFleet(policies: readonly PolicyDocument[], access?: (world: World) => Access) {
  const world = await aWorld({ identity: proxy, policies }, access ? { access: lazily(() => access(world)) } : {})
  for (const cluster of ['west', 'east']) {
    await world.connect(cluster)
    await world.batch(cluster, [complete('node', [aNode('a'), aNode('b')])])
  }
  return world
}

/** An access that is made when it is first asked. */
function lazily(make: () => Access): Access {
  let made: Access | undefined
  const of = (): Access => (made ??= make())
  return {
    viewOf: (principal, signal) => of().viewOf(principal, signal),
    viewNow: (principal) => of().viewNow(principal),
    explain: (principal, question) => of().explain(principal, question),
    policiesOf: (principal) => of().policiesOf(principal),
    policies: () => of().policies(),
    isAdministrator: (principal) => of().isAdministrator(principal),
    withPolicies: (policies) => of().withPolicies(policies),
    onChange: (listener) => listeners.add(listener) && (() => listeners.delete(listener)),
  }
}
const listeners = new Set<() => void>()

describe('who sees what', () => {
  it('changes on an open stream with the policies, which then begins anew', async () => {
    await using world = await aFleet([wide])
    const ann = await open(await world.server.start(), 'ann')
    expect(nodesOf(ann)).toEqual(['node/west/a', 'node/west/b'])
    const since = Date.now()
    await world.policies.put(narrow, {})
    await ann.until((frames) => last(frames).length > 0 && nodesOf(ann).length === 1)
    expect((Date.now() - since) / slowness).toBeLessThan(8000) // a stream that cannot be decided is looked at every ten seconds
    expect(events(ann)).toEqual(['store', 'snapshot', 'access', 'snapshot'])
    expect(ann.frames[2]?.data).toEqual({ reason: 'policies', now: start })
    expect(picture(ann).clusters.get('west')).toMatchObject({ filtered: true, nodes: { total: 1 } })
    await world.policies.put(deny('no', { users: ['ann'], clusters: ['west'], priority: 900 }), {})
    await ann.until(() => clustersOf(ann).length === 1)
    expect(clustersOf(ann)).toEqual(['east'])
    expect(JSON.stringify(last(ann.frames))).not.toContain('"west"')
    // Only of what is still seen is there news.
    await world.batch('west', [complete('node', [aNode('new')])])
    await world.batch('east', [complete('node', [aNode('e')])])
    await ann.until((frames) => last(frames).some(({ event }) => event === 'change'))
    expect(JSON.stringify(last(ann.frames))).not.toMatch(/"(west|new)"/)
    await world.policies.remove('test/p')
    await world.policies.remove('test/no')
    await ann.until(() => clustersOf(ann).length === 0)
  })

  it('goes on for everyone whom a policy does not touch, without a word', async () => {
    await using world = await aFleet([wide, allow('cid')])
    const url = await world.server.start()
    const [ann, cid, admin] = await Promise.all([open(url, 'ann'), open(url, 'cid'), open(url, 'admin')])
    await world.policies.put(narrow, {})
    await ann.until(() => nodesOf(ann).length === 1)
    await world.batch('west', [complete('node', [aNode('a'), aNode('b'), aNode('c')])])
    for (const reader of [cid, admin]) {
      await reader.until(() => nodesOf(reader).length === 3)
      expect(new Set(events(reader))).toEqual(new Set(['store', 'snapshot', 'change']))
      expect(picture(reader).snapshots).toBe(1)
    }
  })

  it('begins and ends on the second that a policy says, without an event', async () => {
    await using world = await aFleet([
      allow('ann', { until: start + 1000 }),
      allow('later', { users: ['bea'], from: start + 1000 }),
    ])
    const url = await world.server.start()
    const [ann, bea] = await Promise.all([open(url, 'ann'), open(url, 'bea')])
    expect([clustersOf(ann), clustersOf(bea)]).toEqual([['east', 'west'], []])
    world.clock.at += 1000 + 1
    await ann.until(() => clustersOf(ann).length === 0)
    await bea.until(() => clustersOf(bea).length === 2)
    for (const reader of [ann, bea])
      expect(reader.frames.find(({ event }) => event === 'access')?.data.reason).toBe('time')
  })

  it('ends on the second also where the policy that says so came later, and long after the stream was opened', async () => {
    await using world = await aFleet([allow('ann')])
    const ann = await open(await world.server.start(), 'ann')
    await world.policies.put(allow('ann', { clusters: ['west'], until: start + 3500 }), {})
    await ann.until(() => clustersOf(ann).length === 1)
    // Asked again because a while went by; the answer is the same.
    world.clock.at += 2500
    await world.batch('west', [complete('node', [aNode('c')])])
    await ann.until(() => nodesOf(ann).includes('node/west/c'))
    world.clock.at += 1001
    await ann.until(() => clustersOf(ann).length === 0)
  })

  it('changes with the labels of a cluster, rows and all', async () => {
    await using world = await aFleet([allow('ann', { labels: { env: 'dev' } }), allow('bea', { clusters: ['west'] })])
    const ann = await open(await world.server.start(), 'ann')
    expect(clustersOf(ann)).toEqual([])
    await world.connect('west', { labels: { env: 'dev' } })
    await ann.until(() => nodesOf(ann).length === 2)
    await world.connect('west', { labels: { env: 'prod' } })
    await ann.until(() => clustersOf(ann).length === 0)
    expect(events(ann)).not.toContain('access')
    expect(ann.frames.at(-1)?.data.changes).toEqual([{ op: 'remove', type: 'cluster', cluster: 'west' }])
  })
})

describe('without policies to go by', () => {
  /** Policies of the world, until a test takes them away. */
  function losable(world: World) {
    const told = { isLost: false }
    const source: PolicySource = {
      current: async (signal) => {
        if (told.isLost) throw new PoliciesUnavailableError('the test took them')
        return world.policies.current(signal)
      },
      latest: (maxAgeMs) => {
        if (told.isLost) throw new PoliciesUnavailableError('the test took them')
        return world.policies.latest(maxAgeMs)
      },
      onChange: (listener) => world.policies.onChange(listener),
    }
    const { clock } = world
    const access = openAccess({ source, semantics: 'strict', administrators: { users: ['admin'], groups: [] }, clock })
    const tell = (isLost: boolean) => {
      told.isLost = isLost
      for (const listener of listeners) listener()
    }
    return { access, tell }
  }

  async function aLosableFleet() {
    let lost: ReturnType<typeof losable> | undefined
    const of = (world: World) => (lost ??= losable(world))
    const world = await aFleet([wide], (made) => of(made).access)
    return { world, tell: (isLost: boolean) => of(world).tell(isLost) }
  }

  it('nothing is told, but to administrators; afterwards all that moved is', async () => {
    const { world, tell } = await aLosableFleet()
    await using _ = world
    const url = await world.server.start()
    const [ann, admin] = await Promise.all([open(url, 'ann'), open(url, 'admin')])
    tell(true)
    await world.batch('west', [complete('node', [aNode('a'), aNode('c')])])
    await admin.until(() => nodesOf(admin).includes('node/west/c'))
    expect((await fetch(`${url}/api/v1/stream`, { headers: { 'x-forwarded-user': 'ann' } })).status).toBe(503)
    expect(events(ann)).toEqual(['store', 'snapshot'])
    tell(false)
    await ann.until(() => nodesOf(ann).includes('node/west/c'))
    expect(picture(ann).facts).toEqual(picture(admin).facts)
    expect(picture(ann).snapshots).toBe(1)
  })

  it('a stream ends after ten seconds, and not before', async () => {
    const { world, tell } = await aLosableFleet()
    await using _ = world
    const url = await world.server.start()
    const [ann, admin] = await Promise.all([open(url, 'ann'), open(url, 'admin')])
    tell(true)
    await world.batch('west', [complete('node', [aNode('c')])])
    await admin.until(() => nodesOf(admin).length === 1)
    world.clock.at += 9_000
    await expect.poll(() => ann.closed, { interval: 200, timeout: 1_200 }).toBe(false)
    world.clock.at += 1_500
    await ann.until(() => ann.closed)
    expect(ann.frames.at(-1)).toMatchObject({ event: 'reset', data: { reason: 'policies_unavailable' } })
    expect(JSON.stringify(ann.frames)).not.toContain('"c"')
    expect(admin.closed).toBe(false)
  })
})

describe('a thousand streams', () => {
  it('are told of a policy that changes what they see by less than two seconds of work', async () => {
    const people = Array.from({ length: 1000 }, (_, n) => `user-${n}`)
    const policy = (hidden: string) =>
      allow('all', { groups: ['everyone'], users: people, resources: [but('nodes', hidden)] })
    await using world = await aFleet([policy('a')])
    const url = await world.server.start()
    const readers: StreamReader[] = []
    for (let from = 0; from < people.length; from += 100)
      readers.push(...(await Promise.all(people.slice(from, from + 100).map((user) => open(url, user)))))
    let [hidden, snapshots] = ['a', 1]
    // Beside others the same takes more of a processor.
    const workMs = await leastOf(3, 2000, async () => {
      hidden = hidden === 'a' ? 'b' : 'a'
      snapshots++
      const since = process.cpuUsage()
      await world.policies.put(policy(hidden), {})
      await Promise.all(
        readers.map((reader) => reader.until((frames) => frames.filter(isSnapshot).length === snapshots)),
      )
      const { user, system } = process.cpuUsage(since) // that of the readers as well
      return (user + system) / 1000
    })
    const shown = hidden === 'a' ? 'b' : 'a'
    for (const { frames } of readers) {
      const { clusters, rows } = frames.findLast(isSnapshot)!.data as { clusters: ClusterView[]; rows: unknown }
      expect(clusters.map(({ nodes }) => nodes?.total)).toEqual([1, 1])
      expect(rows).toMatchObject([{ items: [{ name: shown }] }])
    }
    expect(workMs).toBeLessThan(2000)
  })
})

const isSnapshot = ({ event }: Frame): boolean => event === 'snapshot'
