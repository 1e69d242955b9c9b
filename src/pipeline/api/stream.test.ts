import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { systemClock } from '#model'
import { allow, but } from './test/policies.ts'
import { type Frame, Picture, StreamReader } from './test/stream-reader.ts'
import { aNode, aWorld, complete, failed, proxy, type World } from './test/world.ts'

const has = (event: string) => (frames: readonly Frame[]) => frames.some((frame) => frame.event === event)
const admin = { 'x-forwarded-user': 'admin' }

async function openStream(url: string, query = '', headers: Record<string, string> = {}): Promise<StreamReader> {
  return StreamReader.open(`${url}/api/v1/stream${query}`, headers)
}

/** What a new client is told now. */
async function truth(url: string, query: string, headers: Record<string, string> = {}): Promise<Picture> {
  const reader = await openStream(url, query, headers)
  await reader.until(has('snapshot'))
  reader.close()
  const picture = new Picture()
  for (const frame of reader.frames) picture.apply(frame)
  return picture
}

describe('the stream', () => {
  it('begins with the store and a snapshot, then tells of changes by number', async () => {
    await using world = await aWorld()
    await world.connect('west')
    const url = await world.server.start()
    const reader = await openStream(url)
    expect(reader.response.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'x-content-type-options': 'nosniff',
    })
    await reader.until(has('snapshot'))
    expect(reader.frames.map(({ event }) => event)).toEqual(['store', 'snapshot'])
    await world.batch('west', [complete('node', [aNode('a')])])
    await reader.until(has('change'))
    const { data, id } = reader.frames.at(-1)!
    expect(id).toBeDefined()
    expect(data.changes).toMatchObject([{ op: 'put', type: 'cluster', view: { name: 'west', nodes: { total: 1 } } }])
    reader.close()
  })

  it('says where the hub answers and hears nothing new, since when and why, and that it does again', async () => {
    let fault: string | undefined
    await using world = await aWorld({}, { readiness: { log: () => fault, agents: () => undefined } })
    await world.connect('west')
    const reader = await openStream(await world.server.start())
    await reader.until(has('snapshot'))
    const stores = () => reader.frames.filter(({ event }) => event === 'store').map(({ data }) => data)
    expect(stores()).toMatchObject([{ state: 'available', since: null, reason: '' }])
    fault = 'the disk is full'
    await reader.until(() => stores().length === 2)
    expect(stores()[1]).toMatchObject({ state: 'available', since: expect.any(Number) as number, reason: fault })
    fault = undefined
    await reader.until(() => stores().length === 3)
    expect(stores()[2]).toMatchObject({ state: 'available', since: null, reason: '' })
    reader.close()
  })

  it('says so to who listens already, also where somebody comes in the same moment', async () => {
    let fault: string | undefined
    await using world = await aWorld({}, { readiness: { log: () => fault } })
    await world.connect('west')
    const url = await world.server.start()
    const reader = await openStream(url)
    await reader.until(has('snapshot'))
    const newest = () => reader.frames.filter(({ event }) => event === 'store').at(-1)?.data.reason
    for (let n = 0; n < 10; n++) {
      fault = n % 2 === 0 ? `fault ${n}` : undefined
      const other = await openStream(url)
      await other.until(has('store'))
      await reader.until(() => newest() === (fault ?? ''))
      other.close()
    }
    reader.close()
  })

  it('carries rows and events of the clusters it was asked for, and of no other', async () => {
    await using world = await aWorld()
    await world.connect('west')
    await world.connect('east')
    const url = await world.server.start()
    const reader = await openStream(url, '?cluster=west&type=node')
    await reader.until(has('snapshot'))
    await world.batch('east', [complete('node', [aNode('e')])])
    await world.batch('west', [complete('node', [aNode('w')])])
    const changes = (frames: readonly Frame[]) =>
      frames.filter(({ event }) => event === 'change').flatMap(({ data }) => data.changes as { type: string }[])
    await reader.until((frames) => changes(frames).some(({ type }) => type === 'event'))
    const rows = changes(reader.frames).filter(({ type }) => type !== 'cluster')
    expect(JSON.stringify(rows)).not.toContain('east')
    expect(rows.slice(0, 3)).toMatchObject([
      { op: 'put', type: 'node', cluster: 'west', view: { name: 'w', cluster: 'west' } },
      { op: 'part', type: 'node', cluster: 'west', part: { outcome: 'complete', count: 1 } },
      { op: 'event', view: { cluster: 'west' } },
    ])
    reader.close()
  })

  it('tells those who may see nothing of nothing, not even of a name that goes', async () => {
    await using world = await aWorld({ identity: proxy })
    await world.connect('west')
    const url = await world.server.start()
    const all = await openStream(url, '?cluster=west&type=node', admin)
    const none = await openStream(url, '?cluster=west&type=node', { 'x-forwarded-user': 'ann' })
    await Promise.all([all.until(has('snapshot')), none.until(has('snapshot'))])
    await world.batch('west', [complete('node', [aNode('w')])])
    await world.remove('west')
    await all.until((frames) => JSON.stringify(frames).includes('"op":"remove"'))
    expect(none.frames.map(({ event }) => event)).toEqual(['store', 'snapshot'])
    expect(none.frames[1]?.data).toMatchObject({ clusters: [], rows: [] })
    all.close()
    none.close()
  })

  it('does not resume with a number that another subscription or other eyes were given', async () => {
    await using world = await aWorld({ identity: proxy })
    await world.connect('west')
    const url = await world.server.start()
    const first = await openStream(url, '', admin)
    await first.until(has('snapshot'))
    const id = first.lastEventId!
    first.close()
    for (const [query, headers] of [
      ['?cluster=west&type=node', admin],
      ['', { 'x-forwarded-user': 'ann' }],
    ] as const) {
      const other = await openStream(url, query, { ...headers, 'last-event-id': id })
      await other.until(has('snapshot'))
      other.close()
    }
    const same = await openStream(url, `?lastEventId=${id}`, admin)
    await world.batch('west', [complete('node', [aNode('a')])])
    await same.until(has('change'))
    expect(same.frames.map(({ event }) => event)).toEqual(['store', 'change'])
    same.close()
  })

  it.each(['nonsense', '.', 'x-1.y', 'x-99999.000000000000'])('answers the number %s with a snapshot', async (id) => {
    await using world = await aWorld()
    const reader = await openStream(await world.server.start(), '', { 'last-event-id': id })
    await reader.until(has('snapshot'))
    reader.close()
  })

  it('says by itself that a cluster went stale, and says it again to whoever resumes', async () => {
    await using world = await aWorld()
    await world.connect('west')
    await world.batch('west', [complete('node', [aNode('a')])])
    const url = await world.server.start()
    const reader = await openStream(url)
    await reader.until(has('snapshot'))
    const id = reader.lastEventId!
    world.clock.at += 150_000
    const stale = [{ op: 'put', type: 'cluster', view: { name: 'west', stale: true } }]
    await reader.until(has('change'))
    expect(reader.frames.find(({ event }) => event === 'change')).toMatchObject({
      id: undefined,
      data: { changes: stale },
    })
    await reader.until(() => reader.heartbeats > 0)
    reader.close()
    const again = await openStream(url, '', { 'last-event-id': id })
    await again.until(has('change'))
    expect(again.frames.at(-1)?.data).toMatchObject({ changes: stale })
    again.close()
  })

  it('waits with its snapshot until state is loaded, and says when the store goes and comes', async () => {
    await using world = await aWorld()
    await world.connect('west')
    world.told.availability = { state: 'loading' }
    const reader = await openStream(await world.server.start())
    await reader.until(has('store'))
    world.told.availability = { state: 'loading', missing: 'key x is missing' }
    await reader.until((frames) => frames.length === 2)
    expect(reader.frames.at(-1)?.data).toMatchObject({ state: 'loading', reason: 'key x is missing' })
    world.told.availability = { state: 'available' }
    await reader.until(has('snapshot'))
    world.told.availability = { state: 'unavailable', since: 5, reason: 'redis-0.inside' }
    await reader.until((frames) => frames.length === 5)
    expect(reader.frames.map(({ event, data }) => data.state ?? event)).toEqual([
      'loading',
      'loading',
      'available',
      'snapshot',
      'unavailable',
    ])
    expect(JSON.stringify(reader.frames)).not.toContain('inside')
    reader.close()
  })

  it('tells a client that does not read to begin again, and makes no other wait', async () => {
    await using world = await aWorld({ streamBufferBytes: 50_000 })
    await world.connect('west')
    const url = await world.server.start()
    const slow = await openStream(url, '?cluster=west&type=node')
    const quick = await openStream(url, '?cluster=west&type=node')
    await Promise.all([slow.until(has('snapshot')), quick.until(has('snapshot'))])
    slow.response.pause()
    const text = 'x'.repeat(200_000)
    const overflows = async () =>
      /clusterpulse_stream_overflows_total (\d+)/.exec(await world.metrics.registry.metrics())?.[1]
    for (let round = 0; (await overflows()) === '0'; round++) {
      expect(round).toBeLessThan(200)
      const nodes = [aNode('a', { osImage: `${round}`, labels: { text } })]
      await world.batch('west', [complete('node', nodes)])
      await quick.until((frames) => JSON.stringify(frames.at(-1)?.data).includes(`"osImage":"${round}"`))
    }
    slow.response.resume()
    await slow.until(has('reset'))
    await slow.until(() => slow.closed)
    expect(quick.closed).toBe(false)
    quick.close()
  })

  it('refuses more streams than it can take, and takes one again when another ends', async () => {
    await using world = await aWorld({ maxStreams: 1 })
    const url = await world.server.start()
    const first = await openStream(url)
    await first.until(has('snapshot'))
    const { status, headers } = await fetch(`${url}/api/v1/stream`)
    expect([status, headers.get('retry-after')]).toEqual([503, '10'])
    first.close()
    for (let tries = 0; (await fetchStatus(url)) !== 200; tries++) expect(tries).toBeLessThan(100)
  })

  it('outlives the time limit of a request', async () => {
    await using world = await aWorld({ requestTimeoutMs: 50 })
    await world.connect('west')
    const reader = await openStream(await world.server.start())
    await reader.until(has('snapshot'))
    await systemClock.sleep(150)
    await world.batch('west', [complete('node', [aNode('a')])])
    await reader.until(has('change'))
    expect(reader.closed).toBe(false)
    reader.close()
  })

  it('ends its streams when the server stops', async () => {
    await using world = await aWorld()
    const reader = await openStream(await world.server.start())
    await reader.until(has('snapshot'))
    await world.server.stop()
    await reader.until(() => reader.closed)
  })
})

async function fetchStatus(url: string): Promise<number> {
  const { status, body } = await fetch(`${url}/api/v1/stream`)
  await body?.cancel()
  await systemClock.sleep(5)
  return status
}

// One policy as it changes: whole clusters, some nodes, none, and by the labels of clusters. Secrets are never in it.
const hidden = { users: ['ann'], resources: [but('nodes', 'secret-*')] }
const policyOf = {
  wide: allow('p', hidden),
  narrow: allow('p', { users: ['ann'], resources: [but('nodes', 'secret-*', 'n1', 'n2')] }),
  west: allow('p', { ...hidden, clusters: ['west'] }),
  labelled: allow('p', { ...hidden, labels: { env: 'dev' } }),
  nobody: allow('p', { ...hidden, users: [] }),
} as const

type Step =
  | { readonly do: 'batch'; readonly cluster: string; readonly nodes: readonly number[]; readonly generation: number }
  | { readonly do: 'fail' | 'remove' | 'connect'; readonly cluster: string }
  | { readonly do: 'label'; readonly cluster: string; readonly env: string }
  | { readonly do: 'policy'; readonly policy: keyof typeof policyOf }
  | { readonly do: 'drop' | 'catch up' }

const cluster = fc.constantFrom('west', 'east')
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('batch' as const),
      cluster,
      nodes: fc.uniqueArray(fc.nat({ max: 4 })),
      generation: fc.nat({ max: 2 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constantFrom('fail' as const, 'remove' as const, 'connect' as const), cluster }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('drop' as const, 'catch up' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('label' as const), cluster, env: fc.constantFrom('dev', 'prod') }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('policy' as const),
      policy: fc.constantFrom('wide', 'narrow', 'west', 'labelled', 'nobody'),
    }),
  },
)

interface Client {
  readonly url: string
  readonly query: string
  readonly headers?: Record<string, string>
}

async function act(world: World, client: Client, steps: readonly Step[]): Promise<readonly Frame[]> {
  const { url, query, headers = {} } = client
  const picture = new Picture()
  const seen: Frame[] = []
  let reader = await openStream(url, query, headers)
  let applied = 0
  const take = () => {
    for (const frame of reader.frames.slice(applied)) {
      picture.apply(frame)
      seen.push(frame)
    }
    applied = reader.frames.length
  }
  /** Until it holds what a new client is told. */
  const caughtUp = async () => {
    for (let tries = 0; ; tries++) {
      const now = await truth(url, query, headers)
      take()
      if (isDeepStrictEqual(picture.facts, now.facts)) return
      if (tries === 200) expect(picture.facts, 'a change was lost').toEqual(now.facts)
      await systemClock.sleep(10)
    }
  }
  for (const one of steps) {
    world.clock.at += 1000 // equal events of one moment would look like one that came twice
    if (one.do === 'batch') {
      const nodes = one.nodes.map((n) => aNode(`n${n}`, { imagesCount: one.generation }))
      const secret = aNode(`secret-${one.generation}`, { ready: one.nodes.length > 2 ? 'ready' : 'notReady' })
      await world.batch(one.cluster, [complete('node', [...nodes, secret])])
    } else if (one.do === 'fail') await world.batch(one.cluster, [failed('node', 'unreachable')])
    else if (one.do === 'remove') await world.remove(one.cluster)
    else if (one.do === 'connect') await world.connect(one.cluster)
    else if (one.do === 'label') await world.connect(one.cluster, { labels: { env: one.env } })
    else if (one.do === 'policy') await world.policies.put(policyOf[one.policy], {})
    else if (one.do === 'catch up') await caughtUp()
    else {
      await reader.until((frames) => frames.length > 0)
      take()
      const { lastEventId } = reader
      reader.close()
      reader = await openStream(url, query, { ...headers, ...(lastEventId && { 'last-event-id': lastEventId }) })
      applied = 0
    }
  }
  await caughtUp()
  expect(new Set(picture.events.map((event) => JSON.stringify(event))).size).toBe(picture.events.length)
  const ids = seen.flatMap(({ id }) => id ?? [])
  expect(new Set(ids).size).toBe(ids.length)
  reader.close()
  return seen
}

describe('a client that is cut off again and again', () => {
  const query = '?cluster=west&cluster=east&type=node'

  it('is told that a cluster which was gone and is back holds nothing of before', async () => {
    await using world = await aWorld()
    await world.connect('west')
    await act(world, { url: await world.server.start(), query }, [
      { do: 'batch', cluster: 'east', nodes: [], generation: 0 },
      { do: 'drop' },
      { do: 'remove', cluster: 'east' },
      { do: 'label', cluster: 'east', env: 'dev' },
      { do: 'drop' },
    ])
  })

  it('holds what a new client is told, with no number twice and no event twice', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
        await using world = await aWorld()
        await world.connect('west')
        await act(world, { url: await world.server.start(), query }, steps)
      }),
      { numRuns: 25 },
    )
  })

  it('and that sees a part under policies that change, is never told of what no policy shows', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
        await using world = await aWorld({ identity: proxy, policies: [policyOf.wide] })
        await world.connect('west')
        const client = { url: await world.server.start(), query, headers: { 'x-forwarded-user': 'ann' } }
        const frames = await act(world, client, steps)
        expect(JSON.stringify(frames)).not.toContain('secret')
      }),
      { numRuns: 25 },
    )
  })
})
