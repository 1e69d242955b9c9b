import { describe, expect, it } from 'vitest'
import { type RouteContract, routes } from '#http'
import { aHiddenWorld, canary, type Hidden } from './test/hidden-world.ts'
import { allow, none, only } from './test/policies.ts'
import { StreamReader } from './test/stream-reader.ts'
import { aNode, complete, type World } from './test/world.ts'

/*
 * What is hidden is as if it were not there. Two proofs: no byte of any answer names it, and no answer differs between fleets
 * that differ only in what is hidden.
 */

const shapes: readonly Hidden[] = [
  { there: false, well: true },
  { there: true, well: true },
  { there: true, well: false },
]
const [absent, , broken] = shapes as [Hidden, Hidden, Hidden]
const as = (user: string) => ({ 'x-forwarded-user': user })

const queries: Readonly<Record<string, readonly string[]>> = {
  listClusters: ['', 'sort=health', 'sort=cpu&limit=1', 'health=healthy', 'health=degraded', 'sort=nodes&order=desc'],
  listNodes: ['', 'sort=pods', 'sort=cpu&limit=1', 'role=control-plane', 'ready=notReady'],
  listNamespaces: ['', 'sort=pods&limit=2', 'sort=deployments', 'phase=Terminating'],
  listOperators: ['', 'namespace=canary-ns', 'status=Failed'],
  listClusterOperators: ['', 'degraded=true'],
  listEvents: ['', 'limit=1', 'type=node.not_ready', 'type=operator.failed', 'type=cluster.health'],
  search: ['q=west', 'q=a', 'q=canary', 'q=o', 'q=canary-ns', 'q=shop', 'q=ca', 'q=pvc'],
  v1ListNodes: ['', 'role=canary-role', 'status=NotReady'],
  v1GetNode: ['', 'include_metrics=true'],
  v1ListOperators: ['', 'namespace=canary-ns', 'status=Failed'],
  v1ListNamespaces: ['', 'with_operator_count=true&with_resource_counts=true'],
  v1ListAlerts: ['', 'severity=warning'],
  v1ClusterHistory: ['metric=pods_total'],
  v1NodeHistory: [
    'metric=cpu_used',
    'metric=pods_total,cpu_used',
    'metric=cpu_requested',
    'metric=cpu_used&format=csv',
  ],
  getHistory: [
    'metric=cpu_used',
    'metric=cpu_used&key=canary-node',
    'metric=cpu_used&format=csv',
    'metric=pods_total&scope=cluster',
    'metric=available&scope=clusterOperator',
    'metric=installed&scope=operator',
  ],
  listTypes: ['', 'cluster=west', 'cluster=canary-cluster'],
  listCustomRows: [
    '',
    'limit=1&sort=size&order=desc',
    'sort=phase',
    'namespace=canary-ns',
    'q=canary',
    'q=shop',
    'where=size>11',
    'where=phase=Bound',
    'format=csv',
    'source=test/pvc',
  ],
  listFleetRows: [
    '',
    'limit=1&sort=size&order=desc',
    'sort=name',
    'cluster=west',
    'cluster=canary-cluster',
    'namespace=canary-ns',
    'labels=team=canary',
    'q=canary',
    'where=size>11',
    'format=csv',
    'source=test/pvc',
    'aggregations=false',
  ],
  groupFleetRows: [
    '',
    'by=phase',
    'by=namespace&by=name&limit=1',
    'by=cluster&sort=health',
    'by=size&q=canary',
    'by=name&cluster=canary-cluster',
    'by=namespace&where=size>11',
    'by=cluster&labels=team=canary',
  ],
  typeHistory: ['metric=total', 'metric=count,total&format=csv', 'metric=nothing', ''],
  v1CustomResources: [
    '',
    'page_size=1&page=2',
    'sort_by=size&sort_order=desc',
    'namespace=canary-ns',
    'include_aggregations=false',
  ],
  v1CustomTypes: ['', 'include_source_details=true&include_cluster_availability=true'],
  v1CustomTypeClusters: [
    'type=pvc&include_aggregations=true',
    'type=canary-type&type=pvc',
    'type=canary-type&clusters=west',
    'type=pvc&clusters=canary-cluster&clusters=west',
    '',
  ],
  promQlQuery: ['query=clusterpulse_custom_resource_total', 'query=up', 'query=sum(clusterpulse_cluster_pods_total)'],
  promQlRange: ['query=up&start=1767225600&end=1767225700&step=30'],
  promQlSeries: ['match[]=up', 'match[]={cluster="west"}'],
  promQlLabels: ['', 'match[]={cluster="west"}'],
  promQlLabelValues: ['', 'match[]={cluster="west"}&start=1767225600&limit=2'],
  promQlExemplars: ['query=up'],
  readyz: ['', 'verbose'],
}
const params: Readonly<Record<string, readonly string[]>> = {
  name: ['west', 'plain'],
  node: ['node-a', 'node-b'],
  type: ['pvc', 'canary-type'],
  label: ['__name__', 'cluster', 'node', 'operator', 'source'],
}

/** Every question about the fleet that the contract lets one ask by GET. Routes of signing in tell of policies, by design. */
const questions: readonly string[] = routes
  .filter(({ method, access, contentType, url }) => {
    const isOurs = access === 'filtered' || access === 'public'
    return method === 'GET' && isOurs && contentType !== 'text/event-stream' && !url.includes('/auth/')
  })
  .flatMap(urlsOf)

function urlsOf({ url, schema }: RouteContract): string[] {
  const paths = url.split('/').reduce<string[]>(
    (before, piece) => {
      const values = piece.startsWith(':') ? (params[piece.slice(1)] ?? ['?']) : [piece]
      return before.flatMap((path) => values.map((value) => (path === '' ? value : `${path}/${value}`)))
    },
    [''],
  )
  return paths.flatMap((path) =>
    (queries[schema.operationId] ?? ['']).map((query) => `/${path}${query && `?${query}`}`.replace('//', '/')),
  )
}

interface Told {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: string
}

async function ask(world: World, url: string, user: string): Promise<Told> {
  const headers = { host: 'localhost', 'x-request-id': 'the-request', ...as(user) }
  const response = await world.server.app.inject({ method: 'GET', url, headers })
  const { date: _, ...kept } = response.headers
  return { status: response.statusCode, headers: kept, body: response.body }
}

const cursorOf = ({ body }: Told): string | undefined => /"next":"([^"]+)"/.exec(body)?.[1]

/** The answer, and where it is a page the pages after it. */
async function pages(world: World, url: string, user: string): Promise<Told[]> {
  const first = await ask(world, url, user)
  const next = cursorOf(first)
  if (next === undefined) return [first]
  return [first, ...(await pages(world, `${url.replace(/[?&]cursor=.*$/, '')}&cursor=${next}`, user))]
}

const own = /^\/(metrics|api\/v1\/openapi)/ // about the process, not about the fleet

describe('what is hidden', () => {
  it('is asked for by every route of the fleet', () => {
    expect(questions.length).toBeGreaterThan(80)
    expect(questions.filter((url) => url.includes('?:') || url.includes('/?/'))).toEqual([])
  })

  it.each(['ann', 'nobody'])('is in no byte of what %s is answered', async (user) => {
    await using world = await aHiddenWorld(broken)
    for (const url of questions) {
      for (const other of ['admin', 'cid', 'bob']) await pages(world, url, other) // what is kept for them is theirs
      for (const { status, headers, body } of await pages(world, url, user)) {
        expect(status, url).not.toBe(500)
        expect(JSON.stringify(headers), url).not.toMatch(canary)
        // What was asked for is said again.
        expect(body.replaceAll("'canary-type'", ''), url).not.toMatch(canary)
      }
    }
  })

  it.each(['ann', 'bob', 'nobody'])('makes no difference to any answer that %s gets', async (user) => {
    const answers: Map<string, Told[]>[] = []
    for (const shape of shapes) {
      await using world = await aHiddenWorld(shape)
      const told = new Map<string, Told[]>()
      for (const url of questions.filter((one) => !own.test(one))) {
        if (shape.there) await pages(world, url, 'admin') // what is kept for them is theirs
        told.set(url, await pages(world, url, user))
      }
      answers.push(told)
    }
    const [without, ...others] = answers
    for (const other of others) for (const [url, told] of other) expect(told, url).toEqual(without?.get(url))
  })

  it('can be told from nothing by no path: hidden and unknown get the same answer', async () => {
    await using world = await aHiddenWorld(broken)
    const hiddenAndUnknown = [
      ['/api/v1/clusters/canary-cluster', '/api/v1/clusters/nowhere'],
      ['/api/v2/clusters/canary-cluster', '/api/v2/clusters/nowhere'],
      ['/api/v2/clusters/canary-cluster/nodes/canary-node-2', '/api/v2/clusters/nowhere/nodes/canary-node-2'],
      ['/api/v2/clusters/canary-cluster/events', '/api/v2/clusters/nowhere/events'],
      ['/api/v1/clusters/canary-cluster/alerts', '/api/v1/clusters/nowhere/alerts'],
      ['/api/v1/clusters/canary-cluster/metrics/history?metric=x', '/api/v1/clusters/nowhere/metrics/history?metric=x'],
      ['/api/v2/clusters/west/nodes/canary-node', '/api/v2/clusters/west/nodes/nowhere'],
      ['/api/v1/clusters/west/nodes/canary-node', '/api/v1/clusters/west/nodes/nowhere'],
      [
        '/api/v1/clusters/west/nodes/canary-node/metrics/history?metric=cpu_used',
        '/api/v1/clusters/west/nodes/nowhere/metrics/history?metric=cpu_used',
      ],
      ['/api/v2/types/canary-type', '/api/v2/types/nowhere'],
      ['/api/v2/clusters/west/types/canary-type', '/api/v2/clusters/west/types/nowhere'],
      ['/api/v1/clusters/west/custom/canary-type', '/api/v1/clusters/west/custom/nowhere'],
      [
        '/api/v2/clusters/west/types/canary-type/history?metric=total',
        '/api/v2/clusters/west/types/nowhere/history?metric=total',
      ],
    ] as const
    const blank = ({ status, body, headers: { 'content-length': _, ...headers } }: Told) => ({
      status,
      headers,
      body: body.replaceAll(/canary-cluster|canary-node|canary-type|nowhere/g, '…'),
    })
    for (const [hidden, unknown] of hiddenAndUnknown) {
      const told = await ask(world, hidden, 'ann')
      expect(told.status, hidden).toBe(404)
      expect(blank(told), hidden).toEqual(blank(await ask(world, unknown, 'ann')))
      expect((await ask(world, hidden, 'admin')).status, hidden).not.toBe(404)
    }
  })

  it('is in no frame of a stream, neither in its snapshot nor when it comes, moves or goes', async () => {
    await using world = await aHiddenWorld(broken)
    const url = await world.server.start()
    const types = ['node', 'namespace', 'deployment', 'operator', 'clusterOperator']
      .map((type) => `&type=${type}`)
      .join('')
    const stream = `${url}/api/v1/stream?cluster=west&cluster=canary-cluster${types}`
    const ann = await StreamReader.open(stream, as('ann'))
    await ann.until((frames) => frames.some(({ event }) => event === 'snapshot'))
    for (const nodes of [['node-a', 'canary-node', 'canary-new'], ['node-a'], ['node-a', 'node-c', 'canary-node']]) {
      world.clock.at += 1000
      await world.batch('canary-cluster', [
        complete(
          'node',
          nodes.map((name) => aNode(name)),
        ),
      ])
      await world.batch('west', [
        complete(
          'node',
          nodes.map((name) => aNode(name)),
        ),
      ])
    }
    await world.remove('canary-cluster')
    await ann.until((frames) => JSON.stringify(frames).includes('node-c'))
    await world.remove('west')
    await ann.until((frames) => JSON.stringify(frames.at(-1)).includes('"op":"remove"'))
    expect(JSON.stringify(ann.frames)).not.toMatch(canary)
    expect(new Set(ann.frames.flatMap(({ id }) => id?.length ?? [])).size).toBe(1)
    ann.close()
  })

  it('is in no measurement of the process, nor is any name', async () => {
    await using world = await aHiddenWorld(broken)
    await ask(world, '/api/v2/clusters/plain', 'ann')
    world.metrics.counter('told_total', 'by whom', ['user', 'result']).inc({ user: 'ann', result: 'good' })
    world.metrics.counter('kept_total', 'by result', ['result']).inc({ result: 'good' })
    const { body } = await ask(world, '/metrics', 'nobody')
    expect(body).toContain('route="/api/v2/clusters/:name"')
    expect(body).toContain('kept_total{result="good"} 1')
    expect(body).not.toMatch(/canary|west|plain|"ann"/)
  })

  it('is not even in the query that a backend gets', async () => {
    await using world = await aHiddenWorld(broken)
    const queries: string[] = []
    world.history.promql = {
      ask: async (_path, { query = '' }) => {
        queries.push(String(query))
        return { status: 200, body: { status: 'success', data: { resultType: 'vector', result: [] } } }
      },
    }
    expect((await ask(world, '/api/v1/query?query=up', 'bob')).status).toBe(200)
    expect(queries).toEqual(['up { cluster=~"plain" }'])
    expect(await ask(world, '/api/v1/query?query=up', 'ann')).toMatchObject({ status: 403 })
    expect((await ask(world, '/api/v1/query?query=up', 'cid')).status).toBe(200)
    expect(queries.slice(1)).toEqual(['up { cluster=~"\\\\-" }'])
  })
})

describe('what is seen of a part', () => {
  it('is summed up from what is seen', async () => {
    await using world = await aHiddenWorld(broken)
    const json = async (url: string, user = 'ann') => JSON.parse((await ask(world, url, user)).body)
    expect(await json('/api/v2/clusters/west')).toMatchObject({
      filtered: true,
      health: 'degraded',
      message: expect.stringContaining('1 of 2 nodes not ready: node-b'),
      nodes: { total: 2, ready: 1, notReady: 1 },
      pods: { total: 6, running: 5, pending: 1 },
      namespaces: 3,
      deployments: { total: 2, ready: 1 },
      operators: { total: 1, failing: 0 },
      clusterOperators: { total: 1, degraded: 0, unavailable: 0 },
      cpuCores: { capacity: 8, allocatable: 8, requested: null, used: 1.5 },
      parts: { node: { count: 2 }, namespace: { count: 3 } },
    })
    expect(await json('/api/v2/clusters/plain')).toMatchObject({ filtered: false, cpuCores: { requested: 2 } })
    expect(await json('/api/v2/clusters/west/nodes/node-a')).toMatchObject({ pods: null, requested: null, used: {} })
    const { items } = await json('/api/v2/clusters/west/namespaces')
    expect(
      items.map(({ name, pods }: { name: string; pods: { total: number } | null }) => [name, pods?.total]),
    ).toEqual([
      ['shop', 4],
      ['shop-db', 2],
      ['tools', undefined], // its pods are hidden, which is not the same as none
    ])
    const { metrics } = await json('/api/v1/clusters/west')
    expect(metrics).toMatchObject({
      nodes: 2,
      nodes_ready: 1,
      namespaces: 3,
      pods: 6,
      cpu_capacity: 8,
      filtered: true,
      filter_metadata: {
        filtered_types: ['alerts', 'events', 'namespaces', 'nodes', 'operators', 'pods', 'pvc'],
        allowed_namespaces: ['shop', 'shop-db', 'tools'],
      },
    })
    // They could not be read this time: what was known stands with its time in the other view.
    expect(metrics).not.toHaveProperty('deployments')
    expect((await json('/api/v1/clusters/plain')).metrics).not.toHaveProperty('filtered')
    expect(await json('/api/v1/clusters/west/nodes/node-a')).not.toHaveProperty('pods_total')
    expect(await json('/api/v1/clusters/west/alerts')).toEqual([
      { name: 'slow', severity: 'warning', cluster: 'west', namespace: 'shop' },
    ])
  })

  it('does not tell who sees a part how many deployments a collector counted', async () => {
    await using world = await aHiddenWorld(broken)
    for (const cluster of ['west', 'plain']) await world.batch(cluster, [], { deploymentCount: 7919 })
    const answers = async (cluster: string, user: string) => {
      const [v1, v2] = await Promise.all([1, 2].map((v) => ask(world, `/api/v${v}/clusters/${cluster}`, user)))
      return [JSON.parse(v1?.body ?? '').metrics.deployments, JSON.parse(v2?.body ?? '').deployments]
    }
    expect(await answers('west', 'ann')).toEqual([undefined, { total: 2, ready: 1 }])
    expect(await answers('plain', 'ann')).toEqual([7919, { total: 7919, ready: null }])
    expect(await answers('west', 'cid')).toEqual([7919, { total: 7919, ready: null }])
  })

  it('has no measurements without view_metrics, and everything else', async () => {
    await using world = await aHiddenWorld(broken)
    const json = async (url: string) => {
      await ask(world, url, 'admin') // what is kept for them is theirs
      return JSON.parse((await ask(world, url, 'cid')).body)
    }
    expect(await json('/api/v2/clusters/west')).toMatchObject({
      filtered: false,
      nodes: { total: 3 },
      cpuCores: { capacity: 7927, used: null },
    })
    expect(await json('/api/v2/clusters/west/nodes/node-a')).toMatchObject({ used: null, requested: {}, pods: {} })
    const node = await json('/api/v1/clusters/west/nodes/node-a?include_metrics=true')
    expect(node).toMatchObject({ cpu_requested: 7919, pods_total: 7919 })
    for (const field of ['cpu_usage_percent', 'memory_usage_percent', 'usage_source', 'metrics_history'])
      expect(node).not.toHaveProperty(field)
    for (const url of [
      '/api/v1/clusters/west/metrics/history?metric=pods_total',
      '/api/v1/clusters/west/nodes/node-a/metrics/history?metric=cpu_used',
      '/api/v2/clusters/west/history?metric=cpu_used',
    ])
      expect(await json(url), url).toMatchObject({ code: 'metrics_not_permitted' })
  })

  it('has no pods where all of them are hidden, which is not the same as none', async () => {
    await using world = await aHiddenWorld(broken)
    await world.policies.put(
      allow('dan', { clusters: ['west'], resources: [none('pods'), only('nodes', 'nowhere'), none('operators')] }),
      {},
    )
    const json = async (url: string) => JSON.parse((await ask(world, url, 'dan')).body)
    const west = await json('/api/v2/clusters/west')
    expect(west).toMatchObject({ pods: null, nodes: { total: 0 }, health: 'healthy', operators: { total: 0 } })
    expect(west.parts).not.toHaveProperty('podSummary')
    const { items } = await json('/api/v2/clusters/west/namespaces')
    expect(items.map(({ pods }: { pods: unknown }) => pods)).toEqual([null, null, null, null])
    const { metrics } = await json('/api/v1/clusters/west')
    expect(metrics).toMatchObject({ nodes: 0 })
    expect(metrics).not.toHaveProperty('pods')
  })

  it('has no series that are summed over hidden pods', async () => {
    await using world = await aHiddenWorld(absent)
    const history = async (metric: string) =>
      JSON.parse((await ask(world, `/api/v1/clusters/west/nodes/node-a/metrics/history?metric=${metric}`, 'ann')).body)
    const both = await history('pods_total,cpu_used,cpu_requested')
    expect(both.metrics.map(({ name }: { name: string }) => name)).toEqual(['cpu_used'])
    expect(both.series.map(({ metric }: { metric: string }) => metric)).toEqual(['cpu_used'])
    expect(await history('pods_total')).toMatchObject({ code: 'history_filtered' })
  })
})
