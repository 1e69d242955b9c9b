import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { canonicalRow, type Row } from '#extract'
import { Metrics, silentLogger } from '#runtime'
import { checksumOf } from '#sinks'
import { InventoryApi, type InventoryApiOptions } from './index.ts'
import { parseEvent, Reader } from './testing/reader.ts'
import { aRow, World } from './testing/world.ts'

const ends: (() => PromiseLike<unknown>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

async function served(world: World, options: Partial<InventoryApiOptions> = {}) {
  const metrics = new Metrics({}, { processMetrics: false })
  const api = new InventoryApi({
    cluster: 'west',
    address: { host: '127.0.0.1', port: 0 },
    access: undefined,
    readable: () => ({ view: world.view }),
    logger: silentLogger,
    metrics,
    ...options,
  })
  ends.push(() => api[Symbol.asyncDispose]())
  const port = await api.start()
  const get = async (path: string, init: RequestInit = {}) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, init)
    const text = await answer.text()
    return { status: answer.status, headers: answer.headers, body: text === '' ? undefined : JSON.parse(text) }
  }
  /** Follows a stream. */
  const follow = async (path: string, headers: Record<string, string> = {}) => {
    const leaving = new AbortController()
    ends.push(async () => leaving.abort())
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { headers, signal: leaving.signal })
    const events: NonNullable<ReturnType<typeof parseEvent>>[] = []
    let ended = false
    const read = async () => {
      let text = ''
      for await (const part of answer.body!.pipeThrough(new TextDecoderStream())) {
        text += part
        const parts = text.split('\n\n')
        text = parts.pop() ?? ''
        for (const part of parts) {
          const event = parseEvent(part)
          if (event) events.push(event)
        }
      }
      ended = true
    }
    void read().catch(() => (ended = true))
    return { status: answer.status, events, leave: () => leaving.abort(), hasEnded: () => ended }
  }
  return { api, port, metrics, get, follow }
}

const aWorld = () => {
  const world = new World()
  world.collect('team-a', 'apps', [
    { name: 'b', attributes: { image: '<x>' } },
    { name: 'a' },
    { name: 'c', namespace: 'elsewhere' },
  ])
  world.collect('team-b', 'apps', [
    { name: 'other', namespace: 'team-b' },
    { name: 'a', namespace: 'team-a' },
  ])
  world.collect('', 'nodes', [{ name: 'n1', namespace: '', kind: 'Node', uid: 'uid-n1' }])
  const { group: _, ...node } = aRow({
    targetNamespace: '',
    targetName: 'nodes',
    name: 'n1',
    namespace: '',
    kind: 'Node',
    uid: 'uid-n1',
  })
  world.store.target({ namespace: '', name: 'nodes' }).replace([node])
  world.inventories.push({ metadata: { name: 'apps', namespace: 'team-a', generation: 2 } })
  return world
}
const named = (rows: readonly Row[]) =>
  rows.map(({ targetNamespace, namespace, name }) => `${targetNamespace}|${namespace}/${name}`)

describe('the inventory API', () => {
  it('answers a summary in the names of section 21, with rows in those of section 8', async () => {
    const { get } = await served(aWorld())
    const { status, headers, body } = await get('/v1alpha1/inventory?limit=2')
    expect(status).toBe(200)
    expect(headers.get('content-type')).toBe('application/json')
    expect(headers.get('cache-control')).toBe('private, no-store')
    expect(Object.keys(body)).toEqual([
      ...['schemaVersion', 'itemCount', 'cluster', 'updatedAt', 'checksum', 'complete', 'asOf', 'items', 'pagination'],
    ])
    expect(body).toMatchObject({
      schemaVersion: 'kollect.dev/v1alpha1',
      itemCount: 2,
      cluster: 'west',
      updatedAt: '2026-01-01T00:00:00.000Z',
      complete: true,
      pagination: { limit: 2, offset: 0, total: 6, hasMore: true, continue: expect.any(String) },
    })
    expect(Object.keys(body.items[1])).toEqual([
      ...['targetNamespace', 'targetName', 'namespace', 'name', 'group', 'version', 'kind', 'uid', 'attributes'],
    ])
    expect(Object.keys(body.items[0])).not.toContain('group') // of the core group
    expect(body.items[1].attributes).toEqual({})
    // As of an envelope with these rows: whoever has both can compare.
    expect(body.checksum).toBe(checksumOf(body.items.map((row: Row) => canonicalRow(row))))
  })

  it('pages by token and by offset over all rows, each once', async () => {
    const { get } = await served(aWorld())
    const byToken: Row[] = []
    let next = ''
    do {
      const { body } = await get(`/v1alpha1/inventory?limit=1${next}`)
      byToken.push(...body.items)
      next = body.pagination.continue ? `&continue=${body.pagination.continue}` : ''
    } while (next !== '')
    const byOffset = await Promise.all(
      [0, 1, 2, 3, 4, 5].map((offset) => get(`/v1alpha1/inventory?limit=1&offset=${offset}`)),
    )
    expect(byOffset.flatMap(({ body }) => body.items)).toEqual(byToken)
    expect(named(byToken)).toEqual([
      '|/n1',
      ...['team-a|elsewhere/c', 'team-a|team-a/a', 'team-a|team-a/b'],
      ...['team-b|team-a/a', 'team-b|team-b/other'],
    ])
  })

  it('gives of a named inventory its rows and no others, by path and by query', async () => {
    const world = aWorld()
    world.bindings.set('team-a/apps', [
      {
        name: 'database/warehouse',
        family: 'database',
        namespace: 'team-a',
        state: 'exported',
        reason: 'Exported',
        message: 'ok',
        lastExportAt: 0,
      },
      {
        name: 'snapshot/git',
        family: 'snapshot',
        namespace: 'sinks',
        state: 'current',
        reason: '',
        message: 'm',
        behindSince: 1,
      },
      {
        name: 'snapshot/slow',
        family: 'snapshot',
        namespace: 'team-a',
        state: 'exported',
        reason: '',
        message: 'm',
        ...{ behindSince: 1, lateAt: 2 },
      },
      {
        name: 'event/bus',
        family: 'event',
        namespace: 'team-a',
        state: 'failing',
        reason: 'Transient',
        message: 'refused',
      },
      {
        name: 'event/other',
        family: 'event',
        namespace: 'team-a',
        state: 'pending',
        reason: 'Pending',
        message: 'nothing yet',
      },
    ])
    const { get } = await served(world)
    for (const path of ['/v1alpha1/inventory/team-a/apps', '/v1alpha1/inventory?namespace=team-a&inventory=apps']) {
      const { body } = await get(path)
      expect(named(body.items)).toEqual(['team-a|elsewhere/c', 'team-a|team-a/a', 'team-a|team-a/b'])
      expect(body).toMatchObject({ namespace: 'team-a', inventory: 'apps' })
      expect(body.exportStatus).toEqual([
        {
          sinkName: 'warehouse',
          sinkFamily: 'database',
          sinkNamespace: 'team-a',
          status: 'ok',
          lastExportTime: '1970-01-01T00:00:00.000Z',
          message: 'ok',
        },
        {
          sinkName: 'git',
          sinkFamily: 'snapshot',
          sinkNamespace: 'sinks',
          status: 'debounced',
          message: expect.stringMatching(/waits for the end of its window/),
        },
        {
          sinkName: 'slow',
          sinkFamily: 'snapshot',
          sinkNamespace: 'team-a',
          status: 'degraded',
          message: 'm; it lacks what changed since 1970-01-01T00:00:00.001Z',
        },
        { sinkName: 'bus', sinkFamily: 'event', sinkNamespace: 'team-a', status: 'degraded', message: 'refused' },
        { sinkName: 'other', sinkFamily: 'event', sinkNamespace: 'team-a', status: 'unknown', message: 'nothing yet' },
      ])
    }
    expect(await get('/v1alpha1/inventory/team-a/none')).toMatchObject({
      status: 404,
      body: { code: 'inventory_not_found' },
    })
  })

  it('takes a namespace for that of the target or of the object', async () => {
    const { get } = await served(aWorld())
    const { body } = await get('/v1alpha1/inventory?namespace=team-a')
    expect(named(body.items)).toEqual(['team-a|elsewhere/c', 'team-a|team-a/a', 'team-a|team-a/b', 'team-b|team-a/a'])
  })

  it('tells who may read one namespace nothing of what targets of other namespaces say of it', async () => {
    const world = aWorld()
    world.store.target({ namespace: 'team-b', name: 'apps' }).setComplete(false)
    const judge = async (_: unknown, { namespace }: { readonly namespace?: string }) =>
      namespace === 'team-a' ? ('allowed' as const) : ('forbidden' as const)
    const { get } = await served(world, { access: { judge } })
    const { body } = await get('/v1alpha1/inventory?namespace=team-a')
    expect(named(body.items)).toEqual(['team-a|elsewhere/c', 'team-a|team-a/a', 'team-a|team-a/b'])
    expect(body).toMatchObject({ complete: true })
  })

  it('knows its own cluster, and says of another that it does not', async () => {
    const { get } = await served(aWorld())
    expect((await get('/v1alpha1/inventory?cluster=west')).body.pagination.total).toBe(6)
    expect(await get('/v1alpha1/inventory?cluster=east')).toMatchObject({
      status: 404,
      body: { code: 'cluster_not_found' },
    })
  })

  it('answers with an empty list only where that is the whole truth', async () => {
    const world = new World()
    world.declare('team-a', 'apps')
    const { get } = await served(world)
    expect(await get('/v1alpha1/inventory')).toMatchObject({
      status: 503,
      body: { code: 'incomplete', complete: false, waitsFor: [{ namespace: 'team-a', name: 'apps' }] },
    })
    world.store.target({ namespace: 'team-a', name: 'apps' }).put([aRow()])
    expect(await get('/v1alpha1/inventory')).toMatchObject({ status: 200, body: { itemCount: 1, complete: false } })
    expect(await get('/v1alpha1/inventory?kind=Node')).toMatchObject({ status: 503 })
    world.store.target({ namespace: 'team-a', name: 'apps' }).setComplete(true)
    const empty = await get('/v1alpha1/inventory?kind=Node')
    expect(empty).toMatchObject({ status: 200, body: { itemCount: 0, items: [], complete: true } })
    expect(empty.body).not.toHaveProperty('pagination')
  })

  it('says since when rows are no longer followed, and for whom', async () => {
    const world = aWorld()
    world.store.target({ namespace: 'team-b', name: 'apps' }).setComplete(false)
    world.now += 60_000
    const { get } = await served(world)
    const asOf = '2026-01-01T00:00:00.000Z'
    const { body } = await get('/v1alpha1/inventory')
    expect(body).toMatchObject({
      ...{ updatedAt: '2026-01-01T00:01:00.000Z', complete: false, asOf },
      ...{ waitsForCount: 1, waitsFor: [{ namespace: 'team-b', name: 'apps', asOf }] },
    })
    // What it may lack is counted for a namespace; the target of another one is not named there.
    const { body: ofTeam } = await get('/v1alpha1/inventory?namespace=team-a')
    expect(ofTeam).toMatchObject({ complete: false, waitsForCount: 1, waitsFor: [] })
    expect((await get('/v1alpha1/inventory/team-a/apps')).body).toMatchObject({ complete: true })
  })

  it('is not ready, and says why, while there is nothing to read', async () => {
    const { get } = await served(new World(), { readable: () => ({ message: 'the kinds are missing' }) })
    const { status, headers, body } = await get('/v1alpha1/status/targets')
    expect([status, headers.get('retry-after'), body]).toEqual([
      ...[503, '5', { error: 'inventory is not read yet: the kinds are missing', code: 'not_ready' }],
    ])
  })

  it('lists how inventories and targets stand', async () => {
    const world = aWorld()
    world.inventories.push({
      metadata: { name: 'all', namespace: 'a-team', generation: 3 },
      status: {
        observedGeneration: 3,
        itemCount: 7,
        lastExportTime: '2026-01-01T00:00:00Z',
        conditions: [{ type: 'Ready', status: 'True' }],
      },
    })
    const { get } = await served(world)
    const { body } = await get('/v1alpha1/status/inventories')
    expect(body).toEqual({
      schemaVersion: 'kollect.dev/v1alpha1',
      cluster: 'west',
      items: [
        {
          name: 'all',
          namespace: 'a-team',
          generation: 3,
          observedGeneration: 3,
          itemCount: 7,
          lastExportTime: '2026-01-01T00:00:00Z',
          conditions: [{ type: 'Ready', status: 'True' }],
        },
        { name: 'apps', namespace: 'team-a', generation: 2, observedGeneration: 0, conditions: [] },
      ],
      pagination: { limit: 5000, offset: 0, total: 2, hasMore: false },
    })
    const targets = await get('/v1alpha1/status/targets?namespace=team-b')
    expect(targets.body.items).toMatchObject([{ name: 'apps', namespace: 'team-b' }])
  })

  it('gives of a roll-up the rows that its sinks get, and how roll-ups stand', async () => {
    const world = aWorld()
    for (const name of ['team-a', 'team-b', 'default']) world.namespaces.push({ metadata: { name } })
    const twice = { namespace: 'team-a', name: 'web', uid: 'uid-web' }
    world.collect('', 'all', [twice, { namespace: 'team-b', name: 'db' }, { namespace: 'elsewhere', name: 'far' }])
    world.collect('', 'more', [twice])
    world.clusterInventories.push({
      metadata: { name: 'fleet', generation: 2 },
      spec: { namespaceSelector: {}, targetRefs: ['all', 'more'], dedupe: 'byResourceUID' },
      status: { itemCount: 2, sinkExports: [{ name: 'event/kafka', namespace: 'kollect-system' }] },
    })
    world.bindings.set('/fleet', [])
    const reviews: unknown[] = []
    const judge = (_: unknown, review: unknown) => {
      reviews.push(review)
      return Promise.resolve('allowed' as const)
    }
    const { get } = await served(world, { access: { judge } })
    const all = await get('/v1alpha1/cluster-inventory/fleet')
    expect(all.body).toMatchObject({ clusterInventory: 'fleet', complete: true, itemCount: 2, exportStatus: [] })
    expect(named(all.body.items)).toEqual(['|team-a/web', '|team-b/db'])
    const some = await get('/v1alpha1/cluster-inventory/fleet?namespace=team-b')
    expect(named(some.body.items)).toEqual(['|team-b/db'])
    const page = await get('/v1alpha1/cluster-inventory/fleet?limit=1')
    const next = await get(`/v1alpha1/cluster-inventory/fleet?limit=1&continue=${page.body.pagination.continue}`)
    expect([...named(page.body.items), ...named(next.body.items)]).toEqual(named(all.body.items))

    world.store.target({ namespace: '', name: 'more' }).setComplete(false)
    world.now += 1000
    const waiting = await get('/v1alpha1/cluster-inventory/fleet')
    expect(waiting.body).toMatchObject({ complete: false, waitsFor: [{ namespace: '', name: 'more' }] })
    const { body } = await get('/v1alpha1/status/cluster-inventories')
    expect(body.items).toMatchObject([{ name: 'fleet', namespace: '', generation: 2, itemCount: 2 }])
    const missing = await get('/v1alpha1/cluster-inventory/none')
    expect([missing.status, missing.body.code]).toEqual([404, 'inventory_not_found'])
    const refused = await get('/v1alpha1/cluster-inventory/fleet?inventory=apps')
    expect([refused.status, refused.body.code]).toEqual([400, 'invalid_parameter'])
    // Rights in a namespace are none over the cluster: they are not asked for.
    expect(reviews[0]).toEqual({ verb: 'get', resource: 'kollectclusterinventories', name: 'fleet' })
    expect(reviews[1]).toEqual(reviews[0])
    expect(reviews).toContainEqual({ verb: 'list', resource: 'kollectclusterinventories' })
  })

  it('answers the former paths, and names their successors', async () => {
    const { get } = await served(aWorld())
    const { status, headers } = await get('/inventory?limit=1')
    expect([status, headers.get('deprecation'), headers.get('link')]).toEqual([
      ...[200, 'true', '</v1alpha1/inventory>; rel="successor-version"'],
    ])
  })

  it.each(['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])('answers %s with 405', async (method) => {
    const { get } = await served(aWorld())
    const { status, headers, body } = await get('/v1alpha1/inventory', { method })
    expect([status, headers.get('allow'), body.code]).toEqual([405, 'GET', 'method_not_allowed'])
  })

  it('reads no body', async () => {
    const { port } = await served(aWorld())
    for (const head of ['Content-Length: 5', 'Transfer-Encoding: chunked']) {
      const socket = connect(port, '127.0.0.1')
      socket.write(`GET /v1alpha1/inventory HTTP/1.1\r\nHost: localhost\r\n${head}\r\n\r\n`)
      const [answer] = (await once(socket, 'data')) as [Buffer]
      expect(answer.toString()).toMatch(/^HTTP\/1\.1 413 /)
      await once(socket, 'close')
    }
  })

  it('asks who it is before it says what is there, and tells its answers apart', async () => {
    const verdicts = ['unauthenticated', 'forbidden'] as const
    for (const [at, verdict] of verdicts.entries()) {
      const { get } = await served(aWorld(), { access: { judge: async () => verdict } })
      for (const path of [
        '/v1alpha1/inventory',
        '/v1alpha1/inventory/watch',
        '/v1alpha1/inventory/team-a/none',
        '/v1alpha1/status/targets',
      ])
        expect((await get(path)).status).toBe([401, 403][at])
    }
    const { get } = await served(aWorld(), {
      access: { judge: () => Promise.reject(new Error('down: https://secret')) },
    })
    const { status, body } = await get('/v1alpha1/inventory')
    expect([status, body.code]).toEqual([500, 'review_failed'])
    expect(body.error).not.toMatch(/secret/)
  })

  it('says which right is missing', async () => {
    const { get } = await served(aWorld(), { access: { judge: async () => 'forbidden' } })
    expect((await get('/v1alpha1/inventory?namespace=team-a')).body.error).toMatch(
      /^you may not list kollectinventories\.kollect\.dev in team-a;/,
    )
    expect((await get('/v1alpha1/inventory/team-a/apps')).body.error).toMatch(
      /^you may not get kollectinventories\.kollect\.dev apps in team-a;/,
    )
    expect((await get('/v1alpha1/status/targets')).body.error).toMatch(
      /^you may not list kollecttargets\.kollect\.dev in the whole cluster;/,
    )
  })

  it('shows nothing to a foreign name that leads to a port without sign-in', async () => {
    const { port } = await served(aWorld())
    const socket = connect(port, '127.0.0.1')
    socket.write('GET /v1alpha1/inventory HTTP/1.1\r\nHost: evil.example:8082\r\nConnection: close\r\n\r\n')
    const [answer] = (await once(socket, 'data')) as [Buffer]
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 403 .*host_refused/s)
  })

  it('leads who follows a stream to the rows as they are, and goes on where he was cut off', async () => {
    const world = aWorld()
    const { follow } = await served(world)
    const target = world.store.target({ namespace: 'team-a', name: 'apps' })
    const first = await follow('/v1alpha1/inventory/watch?namespace=team-a&inventory=apps&deltas=true')
    expect(first.status).toBe(200)
    await expect.poll(() => first.events).toHaveLength(1)
    target.put([aRow({ name: 'd' })])
    await expect.poll(() => first.events).toHaveLength(2)
    first.leave()
    target.remove([aRow({ name: 'a' })])
    const reader = new Reader()
    for (const event of first.events) reader.hear(event)
    const again = await follow('/v1alpha1/inventory/watch?namespace=team-a&inventory=apps&deltas=true', {
      'last-event-id': reader.id ?? '',
    })
    await expect.poll(() => again.events).toHaveLength(1)
    for (const event of again.events) reader.hear(event)
    expect(again.events).toMatchObject([{ event: 'delta', data: { put: [], removed: [{ name: 'a' }] } }])
    expect(reader.rows.map(({ name }) => name)).toEqual(['c', 'b', 'd'])
    world.inventories.length = 0
    target.put([aRow({ name: 'e' })])
    await expect.poll(again.hasEnded).toBe(true)
  })

  it('takes as many streams as it may, counts those it refuses, and has room again when one ends', async () => {
    const { follow, get, metrics } = await served(aWorld(), { maxStreams: 2 })
    const [first] = await Promise.all([follow('/v1alpha1/inventory/watch'), follow('/inventory/watch')])
    const refused = await get('/v1alpha1/inventory/watch')
    expect(refused).toMatchObject({ status: 503, body: { code: 'too_many_streams' } })
    expect(refused.headers.get('retry-after')).toBe('10')
    expect(await metrics.registry.metrics()).toMatch(/^kollect_inventory_streams_refused_total 1$/m)
    first?.leave()
    await expect.poll(() => metrics.registry.getSingleMetricAsString('kollect_inventory_streams')).toMatch(/ 1$/m)
    const again = await follow('/v1alpha1/inventory/watch')
    expect(again.status).toBe(200)
  })

  it('streams nothing to who went before it was known whether he may', async () => {
    const [asked, known] = [new AbortController(), new AbortController()]
    const isAsked = once(asked.signal, 'abort')
    const judge = async () => {
      asked.abort()
      await once(known.signal, 'abort')
      return 'allowed' as const
    }
    const { port, metrics } = await served(aWorld(), { access: { judge } })
    const socket = connect(port, '127.0.0.1')
    socket.write(`GET /v1alpha1/inventory/watch HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer x\r\n\r\n`)
    await isAsked
    socket.resetAndDestroy()
    await new Promise((resolve) => setTimeout(resolve, 200))
    known.abort()
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(await metrics.registry.getSingleMetricAsString('kollect_inventory_streams')).toMatch(/ 0$/m)
  })

  it('keeps one piece for who reads slowly, and shows him the newest state when he reads on', async () => {
    const world = new World()
    const large = (at: number) =>
      Array.from({ length: 100 }, (_, row) => aRow({ name: `n${row}`, attributes: { at, text: 'x'.repeat(20_000) } }))
    world.collect('team-a', 'apps', large(0))
    const { port } = await served(world)
    const socket = connect(port, '127.0.0.1')
    let [text, isPaused] = ['', false]
    socket.on('data', (part) => {
      text += part.toString()
      if (isPaused || text.length < 1000) return
      isPaused = true
      socket.pause()
    })
    socket.write('GET /v1alpha1/inventory/watch?deltas=true HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await expect.poll(() => isPaused).toBe(true)
    const before = process.memoryUsage().arrayBuffers
    for (let at = 1; at <= 20; at++) world.store.target({ namespace: 'team-a', name: 'apps' }).put(large(at))
    // 20 states of 2 MB each were passed over.
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(20 * 2 ** 20)
    socket.resume()
    await expect.poll(() => text.match(/event: \w+/g)?.length).toBeGreaterThan(1)
    await expect.poll(() => text.lastIndexOf('"at":20')).toBeGreaterThan(0)
    expect([...new Set(text.match(/"at":\d+/g))].length).toBeLessThan(5)
    socket.destroy()
  })
})
