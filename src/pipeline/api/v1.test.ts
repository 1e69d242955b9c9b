import { describe, expect, it } from 'vitest'
import { routes } from '#http'
import type { OperatorSnapshot } from '#model'
import { aNode, aWorld, complete, start, type World } from './test/world.ts'

const anOperator = (name: string, changes: Partial<OperatorSnapshot> = {}): OperatorSnapshot => ({
  name: `operators/${name}`,
  csv: name,
  displayName: name,
  version: '1',
  provider: '',
  status: 'Succeeded',
  namespace: 'operators',
  installModes: [],
  installMode: '',
  clusterWide: false,
  availableInNamespaces: [],
  createdAt: start,
  updatedAt: null,
  ...changes,
})
const aNamespace = (name: string) => ({ name, phase: 'Active', createdAt: start, labels: {} })
const pods = { total: 3, running: 3, pending: 0, failed: 0, succeeded: 0, unknown: 0 }

async function fill(world: World): Promise<void> {
  await world.connect('west', { displayName: 'West <1>' })
  await world.connect('east')
  await world.batch('west', [
    complete('node', [
      aNode('b', { ready: 'notReady', roles: ['control-plane', 'worker'] }),
      aNode('a', { requested: { cpuCores: 1, memoryBytes: 3e9 } }),
      aNode('c', { unschedulable: true }),
    ]),
    complete('namespace', ['shop', 'beta', 'alpha'].map(aNamespace)),
    complete('podSummary', [{ name: 'pods', counts: pods, unscheduled: 0, byNamespace: { shop: pods } }]),
    complete('deployment', [
      { name: 'beta/x', namespace: 'beta', replicas: 1, ready: 1, available: 1, updated: 1 },
      { name: 'shop/x', namespace: 'shop', replicas: 1, ready: 1, available: 1, updated: 1 },
    ]),
    complete('operator', [
      anOperator('everywhere', { clusterWide: true, availableInNamespaces: ['*'] }),
      anOperator('in-shop', { availableInNamespaces: ['shop'], status: 'Failed' }),
    ]),
  ])
}

describe('the documented routes', () => {
  const questions = routes.flatMap(({ method, url, access, schema: { querystring } }) => {
    const declared = (querystring as { properties?: Record<string, { type?: unknown }> } | undefined)?.properties ?? {}
    const single = Object.keys(declared).filter((name) => declared[name]?.type !== 'array')
    const isAsked = method === 'GET' && access === 'filtered' && url.startsWith('/api/v1/') && !url.endsWith('/stream')
    return isAsked ? single.map((name) => [url, name] as const) : []
  })
  it('take the first of several, every parameter of every route, as if it stood alone', async () => {
    expect(questions.length).toBeGreaterThan(30)
    await using world = await aWorld()
    await fill(world)
    const steady = ({ status, body }: { status: number; body: unknown }) => ({
      status,
      body: { ...(body as object), requestId: '', evaluated_at: '', end: '', start: '' },
    })
    for (const [url, name] of questions) {
      const path = url
        .replace(':name', 'west')
        .replace(':node', 'a')
        .replace(':type', 'none')
        .replace(':label', 'cluster')
      // Refused the same way where it is refused: what counts is that the second is not looked at.
      for (const value of ['shop', '', 'true']) {
        const once = await world.get(`${path}?${name}=${value}`)
        const twice = await world.get(`${path}?${name}=${value}&${name}=alpha`)
        expect(steady(twice), `${url} ${name}=${value}`).toEqual(steady(once))
      }
    }
  })

  it('take the first where the first decides', async () => {
    await using world = await aWorld()
    await fill(world)
    const names = async (question: string) =>
      ((await world.get(`/api/v1/clusters/west/${question}`)).body as { name: string }[]).map(({ name }) => name)
    expect(await names('nodes?role=control-plane&role=x')).toEqual(['b'])
    expect(await names('nodes?role=x&role=control-plane')).toEqual([])
    expect(await names('nodes?status=NotReady&status=Ready&role=&role=x')).toEqual(['b'])
    expect(await names('operators?namespace=shop&namespace=none&status=Failed&status=x')).toEqual(['in-shop'])
    expect(await names('namespaces?with_operator_count=true&with_operator_count=false')).toHaveLength(3)
    expect((await world.get('/api/v2/search?q=a&q=b')).status).toBe(400)
  })

  it('list clusters by name with the documented fields, and freshness beside them', async () => {
    await using world = await aWorld()
    await fill(world)
    const { body } = await world.get('/api/v1/clusters')
    expect(await world.get('/api/v1/clusters/?include_status=true')).toMatchObject({ status: 200, body })
    const [east, west] = body as object[]
    expect(east).toEqual({
      name: 'east',
      accessible: true,
      spec: {
        displayName: 'West',
        endpoint: 'https://west.example:6443',
        labels: { env: 'test' },
        monitoring: { interval: 30, timeout: 10 },
      },
      info: { api_url: 'https://west.example:6443' },
      metrics: {},
      status: { health: 'unknown', message: expect.any(String), stale: false },
      freshness: {},
    })
    expect(west).toMatchObject({
      name: 'west',
      metrics: {
        timestamp: '2026-01-01T00:00:00Z',
        nodes: 3,
        nodes_ready: 1,
        namespaces: 3,
        pods: 3,
        pods_running: 3,
        cpu_capacity: 12,
        memory_capacity: 48e9,
        deployments: 2,
      },
      status: { last_check: '2026-01-01T00:00:00Z', stale: false },
      operator_count: 2,
      freshness: { observed_at: '2026-01-01T00:00:00Z', source: 'pull' },
    })
    const one = (await world.get('/api/v1/clusters/west/')).body as object
    expect({ ...one, accessible: true }).toEqual(west)
  })

  it('escape what could end a script, and end with a line', async () => {
    await using world = await aWorld()
    await fill(world)
    const { body, headers } = await world.server.app.inject({ url: '/api/v1/clusters', headers: { host: 'localhost' } })
    expect(headers['content-type']).toBe('application/json')
    expect(body).toContain('West \\u003c1\\u003e')
    expect(body.endsWith('\n')).toBe(true)
  })

  it('take a trailing slash where it is documented and nowhere else', async () => {
    await using world = await aWorld()
    await fill(world)
    for (const url of ['/api/v1/clusters/', '/api/v1/clusters/west/']) expect((await world.get(url)).status).toBe(200)
    for (const url of ['/api/v1/clusters/west/nodes/', '/healthz/', '/api/v2/clusters/'])
      expect((await world.get(url)).status, url).toBe(404)
  })

  it.each([
    ['nodes', ['a', 'b', 'c']],
    ['nodes?role=', ['a', 'b', 'c']],
    ['nodes?role=control-plane', ['b']],
    ['nodes?status=NotReady', ['b']],
    ['nodes?status=SchedulingDisabled', ['c']],
    ['nodes?status=Ready&role=worker', ['a']],
    ['nodes?status=ready', []],
    ['operators', ['everywhere', 'in-shop']],
    ['operators?namespace=shop', ['everywhere', 'in-shop']],
    ['operators?namespace=beta', ['everywhere']],
    ['operators?status=Failed', ['in-shop']],
    ['cluster-operators', []],
    ['namespaces?with_operator_count=true', ['alpha', 'beta', 'shop']],
    ['namespaces?with_resource_counts=true', ['shop', 'beta', 'alpha']],
  ])('answer %s with %j', async (path, names) => {
    await using world = await aWorld()
    await fill(world)
    const { status, body } = await world.get(`/api/v1/clusters/west/${path}`)
    expect(status).toBe(200)
    expect((body as { name: string }[]).map(({ name }) => name)).toEqual(names)
    expect((await world.get(`/api/v1/clusters/east/${path}`)).body).toEqual([])
  })

  it('count operators, pods and deployments of each namespace', async () => {
    await using world = await aWorld()
    await fill(world)
    expect((await world.get('/api/v1/clusters/west/namespaces')).body).toEqual(['alpha', 'beta', 'shop'])
    expect((await world.get('/api/v1/clusters/west/namespaces?with_resource_counts=TRUE')).body).toHaveLength(3)
    const { body } = await world.get(
      '/api/v1/clusters/west/namespaces?with_operator_count=true&with_resource_counts=true',
    )
    expect((body as object[])[0]).toEqual({
      name: 'shop',
      operator_count: 2,
      resource_counts: { pods: 3, deployments: 1 },
      total_resources: 4,
    })
  })

  it('show one node, and 404 for one that is not there', async () => {
    await using world = await aWorld()
    await fill(world)
    const { body } = await world.get('/api/v1/clusters/west/nodes/a')
    expect(body).toMatchObject({ name: 'a', status: 'Ready', cpu_usage_percent: 25, usage_source: 'requested' })
    for (const [node, code] of [
      ['west/nodes/zz', 'node_not_found'],
      ['nowhere/nodes/a', 'cluster_not_found'],
      ['west*/nodes/a', 'cluster_not_found'],
      ['..%2Fwest/nodes/a', 'cluster_not_found'],
      ['__proto__/nodes/a', 'cluster_not_found'],
    ]) {
      expect(await world.get(`/api/v1/clusters/${node}`), node).toMatchObject({ status: 404, body: { code } })
    }
  })

  it('list alerts by severity, and none as an empty list', async () => {
    await using world = await aWorld()
    await fill(world)
    expect((await world.get('/api/v1/clusters/west/alerts')).body).toEqual([])
    world.told.alerts = [
      { id: '1', severity: 'critical' },
      { id: '2', severity: 'warning' },
    ]
    expect((await world.get('/api/v1/clusters/west/alerts?severity=warning')).body).toEqual([world.told.alerts[1]])
    expect((await world.get('/api/v1/clusters/west/alerts')).body).toHaveLength(2)
  })

  it.each(['1', '2', '0', '-5', 'x', '', '1.5', '99999'])(
    'take %j as a limit of events, or the default',
    async (limit) => {
      await using world = await aWorld()
      await fill(world)
      const { body: all } = await world.get('/api/v1/clusters/west/events')
      const { body } = await world.get(`/api/v1/clusters/west/events?limit=${limit}`)
      expect((all as object[]).length).toBeGreaterThan(2)
      expect(body).toEqual(limit === '1' || limit === '2' ? (all as object[]).slice(0, Number(limit)) : all)
      expect((body as object[])[0]).toMatchObject({ cluster: 'west', timestamp: '2026-01-01T00:00:00Z' })
    },
  )

  it('tell who asks and what they may see', async () => {
    await using world = await aWorld()
    await fill(world)
    const user = { username: 'local-administrator', email: '', groups: [] }
    expect((await world.get('/api/v1/auth/status')).body).toEqual({
      authenticated: true,
      message: 'User is authenticated',
      user,
    })
    expect((await world.get('/api/v1/auth/permissions')).body).toMatchObject({
      user,
      summary: { total_clusters: 2, accessible_clusters: 2 },
      clusters: {
        east: { permissions: ['view', 'view_metrics'], access_level: 'full' },
        west: { permissions: ['view', 'view_metrics'], access_level: 'full' },
      },
      accessible_cluster_names: ['east', 'west'],
      evaluated_at: '2026-01-01T00:00:00Z',
    })
    expect((await world.get('/api/v1/registries/status')).body).toEqual([])
  })
})
