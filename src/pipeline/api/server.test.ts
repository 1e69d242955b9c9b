import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { gunzipSync, gzipSync } from 'node:zlib'
import { Compile } from 'typebox/compile'
import { describe, expect, it } from 'vitest'
import {
  ApiProblem,
  type ClusterView,
  createClient,
  type NodeView,
  type PageView,
  type RouteContract,
  routes,
} from '#http'
import { AGENTS_RETURN_MS, CLUSTER_SET_LABEL, type DeploymentSnapshot, HUB_STARTED } from '#model'
import { aRow, aSource, GivenCatalog, seenBy } from './test/sources.ts'
import { aNode, aWorld, complete, failed, proxy, start, type World, type WorldConfig } from './test/world.ts'

const pods = { total: 5, running: 4, pending: 1, failed: 0, succeeded: 0, unknown: 0 }
const aDeployment = (namespace: string, name: string, ready = 1): DeploymentSnapshot => ({
  name: `${namespace}/${name}`,
  namespace,
  replicas: 1,
  ready,
  available: ready,
  updated: 1,
})
const anOperator = {
  name: 'operators/etcd.v1',
  csv: 'etcd.v1',
  displayName: 'Etcd',
  version: '1.0.0',
  provider: 'Example',
  status: 'Succeeded',
  namespace: 'operators',
  installModes: ['AllNamespaces'],
  installMode: 'AllNamespaces',
  clusterWide: true,
  availableInNamespaces: ['*'],
  createdAt: start,
  updatedAt: start,
}
const aClusterOperator = {
  name: 'dns',
  version: '4.16',
  available: true,
  progressing: false,
  degraded: true,
  upgradeable: true,
  message: 'one is down',
  reason: '',
  lastTransitionAt: start,
  conditions: [],
  versions: [],
  relatedObjects: [],
}
const aNamespace = (name: string) => ({ name, phase: 'Active', createdAt: start, labels: {} })

async function fill(world: World): Promise<void> {
  // Its set is called as it is.
  await world.connect('west', { labels: { [CLUSTER_SET_LABEL]: 'west' } })
  await world.connect('east', { displayName: 'East', labels: { env: 'prod' } })
  await world.batch('west', [
    complete('node', [aNode('b', { ready: 'notReady', roles: ['control-plane'] }), aNode('a')]),
    complete('namespace', [aNamespace('shop'), aNamespace('constructor')]),
    complete('podSummary', [{ name: 'pods', counts: pods, unscheduled: 1, byNamespace: { shop: pods } }]),
    complete('deployment', [aDeployment('shop', 'cart'), aDeployment('shop', 'pay', 0)]),
    complete('operator', [anOperator]),
    complete('clusterOperator', [aClusterOperator]),
  ])
}

// What a route cannot answer without.
const needed: Readonly<Record<string, string>> = {
  search: '?q=a',
  groupFleetRows: '?by=name',
  authExplain: '?cluster=west',
  v1ClusterHistory: '?metric=pods_total',
  v1NodeHistory: '?metric=pods_total',
  getHistory: '?metric=pods_total',
  typeHistory: '?metric=count',
  v1CustomTypeClusters: '?type=pvc',
  promQlQuery: '?query=up',
  promQlRange: '?query=up&start=1&end=2&step=1',
  promQlSeries: '?match[]=up',
  promQlExemplars: '?query=up',
}
const fleetUrls = routes
  .filter(({ access, contentType, method }) => access === 'filtered' && contentType === undefined && method === 'GET')
  .filter(({ schema }) => schema.operationId !== 'getRegistry') // there is none
  .map(({ url, schema }) => {
    const path = url.replace(':name', 'west').replace(':node', 'a').replace(':label', 'cluster').replace(':type', 'pvc')
    return `${path}${needed[schema.operationId] ?? ''}`
  })
const contractOf = (url: string): RouteContract =>
  routes.find(
    (route) =>
      route.url ===
      url
        .split('?')[0]
        ?.replace('/west', '/:name')
        .replace('/nodes/a', '/nodes/:node')
        .replace('/cluster/', '/:label/')
        .replace('/pvc', '/:type'),
  )!

/** With a type of which something was collected. */
async function aTypedWorld(config: WorldConfig = {}): Promise<World> {
  const world = await aWorld(config, { catalog: new GivenCatalog(aSource()) })
  world.collected('west', seenBy(aSource(), [aRow('shop', 'cart', { size: 1, phase: 'Bound' })]))
  return world
}

describe('every route of the fleet', () => {
  it('answers what its contract says', async () => {
    await using world = await aTypedWorld()
    await fill(world)
    for (const url of fleetUrls) {
      const { status, body } = await world.get(url)
      expect(status, url).toBe(200)
      const validator = Compile(contractOf(url).schema.response)
      expect([...validator.Errors(body)], url).toEqual([])
    }
  })

  it('shows an administrator what it shows nobody else: empty lists, and 404 for what is hidden', async () => {
    await using world = await aTypedWorld({ identity: proxy })
    await fill(world)
    for (const url of fleetUrls) {
      const admin = await world.get(url, { 'x-forwarded-user': 'admin' })
      const member = await world.get(url, { 'x-forwarded-user': 'ann', 'x-forwarded-groups': 'x,admins' })
      const stranger = await world.get(url, { 'x-forwarded-user': 'ann', 'x-forwarded-groups': 'admin' })
      expect(admin.status, url).toBe(200)
      if (!url.includes('/auth/')) expect(member.body, url).toEqual(admin.body) // who asks is part of those answers
      if (url.includes('west')) {
        const unknown = await world.get(url.replace('west', 'nowhere'), { 'x-forwarded-user': 'ann' })
        expect(stranger.status, url).toBe(404)
        expect({ ...(stranger.body as object), requestId: '' }, url).toEqual({
          ...(unknown.body as object),
          error: (unknown.body as { error: string }).error.replace('nowhere', 'west'),
          requestId: '',
        })
      } else {
        expect(stranger.status, url).toBe(url.includes('/pvc') ? 404 : 200)
        expect(JSON.stringify(stranger.body), url).not.toMatch(/west|east/)
      }
    }
  })

  it('never shows where credentials lie', async () => {
    await using world = await aTypedWorld()
    await fill(world)
    for (const url of fleetUrls) {
      expect(JSON.stringify((await world.get(url)).body), url).not.toMatch(/credential|the-secret/i)
    }
  })

  it('says 503 while state loads, answers from memory for a while when the store is gone, then says 503 again', async () => {
    await using world = await aTypedWorld()
    await fill(world)
    for (const url of fleetUrls) {
      world.told.availability = { state: 'loading' }
      const loading = await world.get(url)
      expect([loading.status, loading.headers['retry-after']], url).toEqual([503, '2'])
      expect(loading.body, url).toMatchObject({ code: 'state_loading', retryAfterSeconds: 2 })
      world.told.availability = { state: 'loading', missing: 'key x is missing: start the manager' }
      const missing = await world.get(url)
      expect(missing.status, url).toBe(503)
      expect(missing.body, url).toMatchObject({ code: 'state_missing', error: 'key x is missing: start the manager' })
      world.told.availability = { state: 'unavailable', since: start - 10_000, reason: 'redis-0.inside: refused' }
      expect((await world.get(url)).status, url).toBe(200)
      world.told.availability = { state: 'unavailable', since: start - 10_001, reason: 'redis-0.inside: refused' }
      const gone = await world.get(url)
      expect(gone.status, url).toBe(503)
      expect(gone.body, url).toMatchObject({ code: 'store_unavailable' })
      expect(JSON.stringify(gone.body)).not.toContain('inside')
    }
  })

  it('answers HEAD as GET without a body, and a wrong method with 405', async () => {
    await using world = await aTypedWorld()
    await fill(world)
    for (const url of fleetUrls) {
      const head = await world.server.app.inject({ method: 'HEAD', url, headers: { host: 'localhost' } })
      expect([head.statusCode, head.body], url).toEqual([200, ''])
      const wrong = await world.server.app.inject({ method: 'DELETE', url, headers: { host: 'localhost' } })
      expect([wrong.statusCode, wrong.headers.allow], url).toEqual([
        405,
        /\/(query\w*|series|labels)(\?|$)/.test(url) ? 'GET, HEAD, POST' : 'GET, HEAD',
      ])
      expect(wrong.json()).toMatchObject({ code: 'method_not_allowed' })
    }
  })

  it('does not start with a route that does not say who may call it', async () => {
    await using world = await aWorld()
    expect(() => world.server.app.get('/open', async () => 'all')).toThrow(/does not say who may call it/)
  })

  it('are all registered, each under the access its contract names', async () => {
    await using world = await aWorld({ identity: proxy })
    await world.server.app.ready()
    for (const route of routes) {
      expect(world.server.app.hasRoute({ url: route.url, method: route.method }), route.url).toBe(true)
      const url = route.url.replaceAll(/:\w+/g, 'x').replace('/search', '/search?q=a')
      const { statusCode } = await world.server.app.inject({
        method: route.method,
        url,
        headers: { host: 'localhost' },
      })
      // Without a way to sign in there is nothing to begin, and a POST that says nothing of where it comes from is none.
      if (url.startsWith('/api/v1/auth/') && route.access === 'public')
        expect([200, 403, 404], url).toContain(statusCode)
      else if (route.access === 'public') expect(statusCode, url).toBe(200)
      else expect(statusCode, url).toBe(401)
    }
  })
})

describe('lists in pages', () => {
  it('give clusters with counts, capacity and what is not known', async () => {
    await using world = await aWorld()
    await fill(world)
    const { body } = await world.get('/api/v2/clusters')
    const { items, total } = body as PageView<ClusterView>
    expect(total).toBe(2)
    const [east, west] = items
    expect(east).toMatchObject({ name: 'east', displayName: 'East', nodes: null, pods: null, facts: null, parts: {} })
    expect(east?.cpuCores.capacity).toBeNull()
    expect(west).toMatchObject({
      name: 'west',
      nodes: { total: 2, ready: 1, notReady: 1, unschedulable: 0 },
      pods,
      deployments: { total: 2, ready: 1 },
      clusterOperators: { total: 1, degraded: 1, unavailable: 0 },
      cpuCores: { capacity: 8, requested: 2, used: null },
      stale: false,
    })
  })

  it('filter, sort and page', async () => {
    await using world = await aWorld()
    await fill(world)
    const names = async (url: string) => {
      const { body } = await world.get(url)
      return (body as PageView<{ name: string }>).items.map(({ name }) => name)
    }
    expect(await names('/api/v2/clusters?label=env=prod')).toEqual(['east'])
    expect(await names('/api/v2/clusters?label=constructor')).toEqual([])
    expect(await names('/api/v2/clusters?sort=nodes')).toEqual(['west', 'east'])
    expect(await names('/api/v2/clusters/west/nodes')).toEqual(['a', 'b'])
    expect(await names('/api/v2/clusters/west/nodes?order=desc')).toEqual(['b', 'a'])
    expect(await names('/api/v2/clusters/west/nodes?ready=notReady')).toEqual(['b'])
    expect(await names('/api/v2/clusters/west/nodes?role=worker')).toEqual(['a'])
    expect(await names('/api/v2/clusters/west/namespaces?sort=pods&order=desc')).toEqual(['shop', 'constructor'])
    const first = (await world.get('/api/v2/clusters/west/nodes?limit=1')).body as PageView<NodeView>
    expect(first).toMatchObject({ total: 2, items: [{ name: 'a', cluster: 'west', freshness: { source: 'pull' } }] })
    expect(await names(`/api/v2/clusters/west/nodes?limit=1&cursor=${first.next}`)).toEqual(['b'])
  })

  it('refuse a parameter that makes no sense, by its name', async () => {
    await using world = await aWorld()
    await fill(world)
    for (const [url, name] of [
      ['/api/v2/clusters?limit=0', 'limit'],
      ['/api/v2/clusters?limit=1001', 'limit'],
      ['/api/v2/clusters?limit=x', 'limit'],
      ['/api/v2/clusters?health=fine', 'health'],
      ['/api/v2/clusters?sort=secret', 'sort'],
      ['/api/v2/clusters?order=up', 'order'],
      ['/api/v2/clusters?stale=perhaps', 'stale'],
      ['/api/v2/clusters/west/nodes?role=a&role=b', 'role'],
      ['/api/v2/search', 'q'],
      ['/api/v1/stream?type=secret', 'type'],
    ] as const) {
      const { status, body } = await world.get(url)
      expect(status, url).toBe(400)
      expect(body, url).toMatchObject({ code: 'invalid_parameter', error: expect.stringContaining(` ${name} `) })
    }
    expect((await world.get('/api/v2/clusters?cursor=abc')).body).toMatchObject({ code: 'invalid_cursor' })
  })

  it('tell empty, absent, forbidden, unreachable and never read apart', async () => {
    await using world = await aWorld()
    await world.connect('west')
    const operators = async () =>
      ((await world.get('/api/v2/clusters/west/operators')).body as PageView<unknown>).part?.outcome ?? null
    expect(await operators()).toBeNull()
    await world.batch('west', [complete('operator', [])])
    expect(await operators()).toBe('complete')
    for (const outcome of ['absent', 'forbidden', 'unreachable'] as const) {
      await world.batch('west', [failed('operator', outcome)])
      expect(await operators()).toBe(outcome)
    }
  })

  it('page through events of the same moment without losing one to newer events', async () => {
    await using world = await aWorld()
    await world.connect('west')
    for (let round = 0; round < 6; round++) await world.batch('west', [complete('node', [aNode(`n${round}`)])])
    const url = '/api/v2/clusters/west/events?limit=2'
    const seen: string[] = []
    const whole = ((await world.get('/api/v2/clusters/west/events')).body as PageView<object>).items
    let cursor = ''
    do {
      const page = (await world.get(`${url}${cursor}`)).body as PageView<object>
      seen.push(...page.items.map((item) => JSON.stringify(item)))
      cursor = page.next === null ? '' : `&cursor=${page.next}`
      world.clock.at += 1000
      await world.batch('west', [complete('node', [aNode('n')])])
    } while (cursor !== '')
    expect(whole.length).toBeGreaterThan(2)
    expect(seen).toEqual(whole.map((item) => JSON.stringify(item)))
  })
})

describe('age', () => {
  it('marks a cluster stale by time alone, and a kept answer with it', async () => {
    await using world = await aWorld()
    await world.connect('west')
    await world.batch('west', [complete('node', [aNode('a')])])
    const stale = async () => {
      const { body, headers } = await world.get('/api/v2/clusters/west')
      const list = (await world.get('/api/v2/clusters')).body as PageView<ClusterView>
      expect(list.items[0]).toEqual(body)
      return { stale: (body as ClusterView).stale, etag: headers.etag }
    }
    const fresh = await stale()
    world.clock.at += 99_000
    expect(await stale()).toEqual(fresh)
    world.clock.at += 1_006
    const old = await stale()
    expect(old.stale).toBe(true)
    expect(old.etag).not.toBe(fresh.etag)
    const v1 = (await world.get('/api/v1/clusters/west')).body as { status: object }
    expect(v1.status).toMatchObject({
      health: 'unknown',
      stale: true,
      message: expect.stringContaining('no news since'),
    })
  })

  it('knows a cluster as it was while its agent is about to come back to a hub that was away', async () => {
    await using world = await aWorld()
    await world.connect('west')
    await world.batch('west', [complete('node', [aNode('a')])])
    world.clock.at += 200_000
    await world.agent('west', { connected: false, reason: HUB_STARTED, since: world.clock.at })
    const health = async () =>
      ((await world.get('/api/v1/clusters/west')).body as { status: { health: string; stale: boolean } }).status
    expect(await health()).toMatchObject({ health: 'healthy', stale: true })
    world.clock.at += AGENTS_RETURN_MS
    expect(await health()).toMatchObject({ health: 'unknown', stale: true })
  })

  it('keeps saying unhealthy of a cluster that is asked and does not answer', async () => {
    await using world = await aWorld()
    await world.connect('west')
    await world.batch('west', [complete('node', [aNode('a')])])
    world.clock.at += 200_000
    await world.batch('west', [failed('node', 'unreachable')], { failure: { code: 'unreachable', message: 'refused' } })
    const { status } = (await world.get('/api/v1/clusters/west')).body as { status: object }
    expect(status).toMatchObject({ health: 'unhealthy', stale: true })
  })
})

describe('an answer that was given before', () => {
  it('is 304 until something changes, for any spelling of the tag', async () => {
    await using world = await aWorld()
    await fill(world)
    const url = '/api/v1/clusters'
    const { headers, body } = await world.get(url)
    const etag = String(headers.etag)
    expect(headers['cache-control']).toBe('private, no-cache')
    for (const known of [etag, `W/${etag}`, `"x", ${etag}`, etag.replace(/"$/, '-gzip"'), '*']) {
      const again = await world.get(url, { 'if-none-match': known })
      expect([again.status, again.body], known).toEqual([304, ''])
    }
    world.clock.at += 1000
    await world.batch('west', [complete('node', [aNode('a')])])
    const changed = await world.get(url, { 'if-none-match': etag })
    expect(changed.status).toBe(200)
    expect(changed.body).not.toEqual(body)
  })

  it('is packed for those who take gzip, under a tag of its own', async () => {
    await using world = await aWorld()
    await fill(world)
    const plain = await world.server.app.inject({ url: '/api/v2/clusters', headers: { host: 'localhost' } })
    for (const accept of ['gzip', 'br, gzip;q=0.5', 'gzip, deflate, br']) {
      const packed = await world.server.app.inject({
        url: '/api/v2/clusters',
        headers: { host: 'localhost', 'accept-encoding': accept },
      })
      expect(packed.headers['content-encoding']).toBe('gzip')
      expect(gunzipSync(packed.rawPayload).toString()).toBe(plain.body)
      expect(packed.headers.etag).not.toBe(plain.headers.etag)
    }
    const refused = await world.get('/api/v2/clusters', { 'accept-encoding': 'gzip;q=0, br' })
    expect(refused.headers['content-encoding']).toBeUndefined()
  })

  it('never crosses from one who sees all to one who sees nothing', async () => {
    await using world = await aWorld({ identity: proxy })
    await fill(world)
    const admin = await world.get('/api/v2/clusters', { 'x-forwarded-user': 'admin' })
    const stranger = await world.get('/api/v2/clusters', {
      'x-forwarded-user': 'ann',
      'if-none-match': String(admin.headers.etag),
    })
    expect([stranger.status, stranger.body]).toEqual([200, { items: [], total: 0, next: null, part: null }])
  })
})

describe('probes', () => {
  it('live without a store, and are ready only with one', async () => {
    let reason: string | undefined
    await using world = await aWorld({}, { readiness: { queue: () => reason } })
    expect((await world.get('/readyz')).body).toEqual({ status: 'ready', version: '1.2.3' })
    reason = 'full'
    expect((await world.get('/readyz?verbose')).body).toEqual({
      status: 'not ready',
      version: '1.2.3',
      error: 'full',
      checks: { state: 'ok', queue: 'full' },
    })
    world.told.availability = { state: 'unavailable', since: start, reason: 'inside' }
    const { status, body } = await world.get('/readyz')
    expect([status, body]).toEqual([503, { status: 'not ready', version: '1.2.3', error: 'store unavailable' }])
    expect(await world.get('/healthz')).toMatchObject({ status: 200, body: { status: 'ok' } })
  })

  it('are not ready for what is wrong with the hub itself, though it hears all that is new', async () => {
    await using world = await aWorld({}, { checks: { authority: () => 'not kept' } })
    expect((await world.get('/readyz')).body).toMatchObject({ status: 'not ready', error: 'not kept' })
    expect((await world.get('/api/v2/clusters')).headers.warning).toBeUndefined()
  })

  it('measure requests by route, not by address', async () => {
    await using world = await aWorld()
    await fill(world)
    await world.get('/api/v2/clusters/west')
    await world.get('/api/v2/clusters/nowhere')
    const { body, headers } = await world.get('/metrics')
    expect(headers['content-type']).toContain('text/plain')
    expect(body).toContain('route="/api/v2/clusters/:name",status="404"')
    expect(body).not.toContain('nowhere')
  })
})

describe('the page', () => {
  it('says how it is built as long as it is not, and is there once it is', async () => {
    const root = await mkdtemp(join(tmpdir(), 'page-test-'))
    await using world = await aWorld({}, { webRoot: root })
    expect((await world.get('/')).body).toContain('npm run build')
    await writeFile(join(root, 'app-Ab12Cd34.js'), 'let x = 1 // '.padEnd(2000, 'x'))
    await writeFile(join(root, 'app-Ab12Cd34.js.gz'), gzipSync('let x = 1 // '.padEnd(2000, 'x')))
    await writeFile(join(root, 'index.html'), '<!doctype html><title>page</title>')
    for (const url of ['/', '/clusters/west', '/clusters/a.json', '/clusters/west/nodes/n.1']) {
      const { status, body, headers } = await world.get(url)
      expect([status, body], url).toEqual([200, '<!doctype html><title>page</title>'])
      expect(headers['cache-control'], url).toBe('no-cache')
      expect(headers['content-security-policy'], url).toContain("script-src 'self';")
    }
    const script = await world.get('/app-Ab12Cd34.js', { 'accept-encoding': 'gzip' })
    expect(script.headers).toMatchObject({
      'cache-control': 'public, max-age=31536000, immutable',
      'content-encoding': 'gzip',
      'content-type': 'text/javascript; charset=utf-8',
    })
    expect((await world.get('/missing.js')).status).toBe(404)
    for (const url of ['/../../etc/passwd', '/%2e%2e/%2e%2e/etc/passwd', '/..%2fpackage.json']) {
      expect(String((await world.get(url)).body), url).not.toMatch(/root:|clusterpulse"/)
    }
    for (const url of [
      '/api/v3',
      '/api/v1/clusters/none/x',
      '/-/healthy',
      '/-/',
      '/federate',
      '/federate?match[]=up',
    ]) {
      const { status, headers, body } = await world.get(url, { accept: 'text/html' })
      expect([status, headers['content-type'], body], url).toEqual([
        404,
        expect.stringContaining('application/json'),
        { code: 'route_not_found', error: expect.any(String), requestId: expect.any(String) },
      ])
    }
    await rm(root, { recursive: true })
  })
})

describe('a path that means the API and is written otherwise', () => {
  const raw = async (base: string, path: string) => {
    const { hostname, port } = new URL(base)
    // As it is: fetch writes paths anew.
    const asked = request({ hostname, port, path, headers: { accept: 'text/html' } }).end()
    const [response] = (await once(asked, 'response')) as [IncomingMessage]
    return { status: response.statusCode, body: JSON.parse(await text(response)) as unknown }
  }

  it('gets no page for an answer, and what it is told in the format of the tool that asks', async () => {
    const root = await mkdtemp(join(tmpdir(), 'page-'))
    await writeFile(join(root, 'index.html'), '<!doctype html><title>page</title>')
    await using world = await aWorld({}, { webRoot: root })
    const base = await world.server.start()
    const paths = [
      '//api/v1/clusters',
      '///api/v2/clusters',
      '//healthz',
      '/./api/v1/clusters',
      '/x/../api/v1/clusters',
      '/%2fapi/v1/clusters',
    ]
    for (const path of paths)
      expect(await raw(base, path), path).toEqual({
        status: 404,
        body: { code: 'route_not_found', error: expect.any(String), requestId: expect.any(String) },
      })
    expect(await raw(base, '//api/v1/query?query=up')).toMatchObject({
      status: 404,
      body: { status: 'error', errorType: expect.any(String), code: 'route_not_found' },
    })
    await rm(root, { recursive: true })
  })
})

describe('the typed client', () => {
  it('reads pages, follows cursors, and throws the problem it is given', async () => {
    await using world = await aWorld()
    await fill(world)
    const client = createClient({ baseUrl: await world.server.start() })
    expect((await client.session()).user?.method).toBe('local-administrator')
    const names: string[] = []
    for await (const node of client.all((cursor) => client.nodes('west', { limit: 1, ...(cursor && { cursor }) }))) {
      names.push(node.name)
    }
    expect(names).toEqual(['a', 'b'])
    expect((await client.search('etcd')).items[0]).toMatchObject({ kind: 'operator', cluster: 'west', name: 'Etcd' })
    const problem = await client.cluster('nowhere').catch((error: unknown) => error)
    expect(problem).toBeInstanceOf(ApiProblem)
    expect(problem).toMatchObject({ status: 404, code: 'cluster_not_found' })
    const nobody = createClient({ baseUrl: 'http://127.0.0.1:1' })
    await expect(nobody.session()).rejects.toMatchObject({ status: 0, code: 'no_answer' })
  })
})

describe('the description', () => {
  it('names every route once, with the parameters of its path', async () => {
    await using world = await aWorld()
    const { body } = await world.get('/api/v1/openapi.json')
    const { paths, openapi } = body as {
      openapi: string
      paths: Record<string, Record<string, { operationId: string }>>
    }
    expect(openapi).toBe('3.1.0')
    const ids = Object.values(paths).flatMap((path) => Object.values(path).map(({ operationId }) => operationId))
    expect(ids.toSorted()).toEqual(routes.map(({ schema }) => schema.operationId).toSorted())
    expect(new Set(ids).size).toBe(ids.length)
    expect(JSON.stringify(paths['/api/v2/clusters/{name}/nodes/{node}'])).toContain(
      '"name":"node","in":"path","required":true',
    )
    const operation = (path: string) => JSON.stringify(paths[path])
    expect(operation('/api/v2/access/preview')).toContain(
      '"requestBody":{"required":true,"content":{"application/json"',
    )
    expect(operation('/api/v2/access/preview')).toContain('"security":[{"proxy":[]},{"bearer":[]},{"session":[]}]')
    expect(operation('/api/v1/auth/password')).toContain('"security":[]')
  })
})
