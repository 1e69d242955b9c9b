import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { systemClock } from '#model'
import { type Frame, Picture, StreamReader } from './test/stream-reader.ts'
import { aNode, aWorld, complete, failed, proxy, type World } from './test/world.ts'

const has = (event: string) => (frames: readonly Frame[]) => frames.some((frame) => frame.event === event)
const admin = { 'x-forwarded-user': 'admin' }

async function openStream(url: string, query = '', headers: Record<string, string> = {}): Promise<StreamReader> {
  return StreamReader.open(`${url}/api/v1/stream${query}`, headers)
}

/** What a new client is told now. */
async function truth(url: string, query: string): Promise<Picture> {
  const reader = await openStream(url, query)
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
    await reader.until(has('heartbeat'))
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
    world.told.availability = { state: 'available' }
    await reader.until(has('snapshot'))
    world.told.availability = { state: 'unavailable', since: 5, reason: 'redis-0.inside' }
    await reader.until((frames) => frames.length === 4)
    expect(reader.frames.map(({ event, data }) => data.state ?? event)).toEqual([
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

type Step =
  | { readonly do: 'batch'; readonly cluster: string; readonly nodes: readonly number[]; readonly generation: number }
  | { readonly do: 'fail' | 'remove' | 'connect'; readonly cluster: string }
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
)

async function act(
  world: World,
  { url, query }: { url: string; query: string },
  steps: readonly Step[],
): Promise<void> {
  const picture = new Picture()
  const ids: number[] = []
  let reader = await openStream(url, query)
  let applied = 0
  let fetched: StreamReader | undefined
  const take = () => {
    for (const frame of reader.frames.slice(applied)) {
      picture.apply(frame)
      if (frame.id === undefined) continue
      const id = Number(/-(\d+)\./.exec(frame.id)?.[1])
      // A snapshot may repeat the place where the client already was; a change is always something further on.
      if (frame.event === 'change') expect(id).toBeGreaterThan(ids.at(-1) ?? -1)
      ids.push(id)
    }
    applied = reader.frames.length
  }
  const caughtUp = async () => {
    const head = Number(world.bus.head().split('-')[1])
    // Waits for the numbered frame that holds everything published so far; the head may move nothing that is shown.
    await reader.until(has('store'))
    take()
    if ((ids.at(-1) ?? -1) < head && (await stillMissing(reader, head))) {
      // What came and went between two frames is told to nobody: the picture is right without it.
      take()
      const now = await truth(url, query)
      expect(picture.facts, 'a change was lost').toEqual(now.facts)
    }
    take()
  }
  for (const one of steps) {
    world.clock.at += 1000 // equal events of one moment would look like one that came twice
    if (one.do === 'batch') {
      const nodes = one.nodes.map((n) => aNode(`n${n}`, { imagesCount: one.generation }))
      await world.batch(one.cluster, [complete('node', nodes)])
    } else if (one.do === 'fail') await world.batch(one.cluster, [failed('node', 'unreachable')])
    else if (one.do === 'remove') await world.remove(one.cluster)
    else if (one.do === 'connect') await world.connect(one.cluster)
    else if (one.do === 'catch up') await caughtUp()
    else {
      take()
      const { lastEventId } = reader
      reader.close()
      fetched = reader
      reader = await openStream(url, query, lastEventId === undefined ? {} : { 'last-event-id': lastEventId })
      applied = 0
    }
  }
  await reader.until((frames) => frames.length > 0)
  await caughtUp()
  const now = await truth(url, query)
  expect(picture.facts).toEqual(now.facts)
  expect(ids).toEqual(ids.toSorted((a, b) => a - b))
  expect(new Set(picture.events.map((event) => JSON.stringify(event))).size).toBe(picture.events.length)
  fetched?.close()
  reader.close()
}

/** true when a change that the client must be told of has not come after a while */
async function stillMissing(reader: StreamReader, head: number): Promise<boolean> {
  try {
    await reader.until(
      (frames) => frames.some(({ id }) => id !== undefined && Number(/-(\d+)\./.exec(id)?.[1]) >= head),
      3_000,
    )
    return false
  } catch {
    return true
  }
}

describe('a client that is cut off again and again', () => {
  it('holds what a new client is told, with no number twice and no event twice', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
        await using world = await aWorld()
        await world.connect('west')
        const url = await world.server.start()
        await act(world, { url, query: '?cluster=west&cluster=east&type=node' }, steps)
      }),
      { numRuns: 25 },
    )
  }, 60_000)
})
