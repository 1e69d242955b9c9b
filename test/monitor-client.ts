/**
 * A client of Cluster Monitor, written from its specification alone: it speaks HTTP, server-sent events and WebSockets, signs its tokens
 * itself, and knows nothing of who serves.
 */
import { createHmac } from 'node:crypto'
import { expect } from 'vitest'
import { WebSocket } from 'ws'
import { EventReader } from './event-stream.ts'

export interface Monitored {
  /** origin, and the prefix of one of many clusters */
  readonly url: string
  readonly secret: string
  /** a user with his namespaces; others are there that he does not own */
  readonly tenant: { readonly userId: string; readonly namespaces: readonly string[] }
  /** whether the namespace `core` has pods, which administrators see */
  readonly hasSystem: boolean
}

type Json = Record<string, unknown>

/** As the auth service signs: HS256 over header and claims in base64url. */
export function tokenOf(claims: Json, secret: string, header: Json = { alg: 'HS256', typ: 'JWT' }): string {
  const encode = (value: Json) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signed = `${encode(header)}.${encode(claims)}`
  const hash = header.alg === 'HS512' ? 'sha512' : 'sha256'
  return `${signed}.${createHmac(hash, secret).update(signed).digest('base64url')}`
}

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d*[1-9])?Z$/
const QUANTITY = /^\d+(\.\d+)?(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$/
const NODE_KEYS = [
  ...['name', 'cpu_usage', 'memory_usage', 'cpu_capacity', 'memory_capacity', 'cpu_percent', 'memory_percent'],
  ...['disk_capacity', 'disk_usage', 'disk_percent'],
]
const POD_KEYS = [
  ...['name', 'namespace', 'node', 'cpu_usage', 'memory_usage', 'disk_usage'],
  ...['cpu_capacity', 'memory_capacity', 'disk_capacity'],
]
const NOTHING = { status: 0, text: '', type: '', json: {} as Json }
const PATIENT = { timeout: 60_000, interval: 200 }

/** Uses everything that is documented, as administrator and as user; throws at the first thing that is otherwise. */
export async function useMonitor({ url, secret, tenant, hasSystem }: Monitored): Promise<void> {
  const admin = tokenOf({ user_id: 'Adm1n0', username: 'root', is_admin: true }, secret)
  const user = tokenOf({ user_id: tenant.userId, username: 'u', type: 'api_token', scopes: { all: ['read'] } }, secret)
  const ask = async (path: string, token?: string, method = 'GET') => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const answer = await fetch(url + path, { headers, method })
    const [text, type] = [await answer.text(), answer.headers.get('content-type') ?? '']
    const json: Json = type.startsWith('application/json') ? JSON.parse(text) : {}
    return { ...NOTHING, status: answer.status, text, type, json }
  }
  // Everything was read once.
  await expect
    .poll(async () => itemsOf((await ask('/pod-metrics', admin)).json, 'pods').length, PATIENT)
    .toBeGreaterThan(0)
  await expect
    .poll(async () => itemsOf((await ask('/cluster-info', admin)).json, 'nodes').length, PATIENT)
    .toBeGreaterThan(0)

  await checkErrors(ask, admin, user, secret)
  const nodes = (await ask('/cluster-info', admin)).json
  checkNodes(nodes)
  const pods = (await ask('/pod-metrics', admin)).json
  checkPods(pods, nodes)
  expect(namespacesOf(pods).includes('core')).toBe(hasSystem)
  const own = (await ask('/pod-metrics', user)).json
  checkPods(own, nodes)
  expect([...new Set(namespacesOf(own))].sort()).toEqual([...tenant.namespaces].sort())
  await checkHistory(ask, admin, user, tenant.namespaces)
  await checkStreams(url, admin, user, tenant.namespaces)
  await checkSockets(url, admin, user)
}

type Ask = (path: string, token?: string, method?: string) => Promise<typeof NOTHING>

async function checkErrors(ask: Ask, admin: string, user: string, secret: string): Promise<void> {
  const guarded = [
    '/cluster-info',
    '/pod-metrics',
    '/api/metrics/nodes',
    '/api/metrics/pods',
    '/api/graph/dependencies',
    '/sse/health',
  ]
  const none = `${tokenOf({ user_id: 'x', is_admin: true }, secret, { alg: 'none' }).replace(/[^.]*$/, '')}`
  const bad = [
    undefined,
    'x',
    none,
    tokenOf({ is_admin: true }, `${secret}x`),
    tokenOf({ is_admin: true }, secret, { alg: 'HS512' }),
    tokenOf({ is_admin: true, exp: 1 }, secret),
    tokenOf({ is_admin: true, type: '2fa_challenge' }, secret),
  ]
  for (const path of guarded)
    for (const token of bad) expect(await ask(path, token)).toMatchObject({ status: 401, text: 'unauthorized\n' })
  for (const path of [
    '/cluster-info',
    '/api/metrics/nodes',
    '/api/metrics/nodes/any',
    '/sse/cluster-info',
    '/api/graph/dependencies',
  ])
    expect(await ask(path, user)).toMatchObject({ status: 403, text: 'forbidden\n' })
  expect((await ask('/api/graph/dependencies', admin)).status).toBe(501)
  expect((await ask('/no-such-path', admin)).status).toBe(404)
  expect((await ask('/pod-metrics', admin, 'DELETE')).status).toBe(405)
  expect(await ask('/pod-metrics', undefined, 'OPTIONS')).toMatchObject({ status: 200, text: '' })
  expect((await ask(`/cluster-info?token=${admin}`)).status).toBe(200)
  expect((await ask(`/cluster-info?token=${admin}`, 'x')).status).toBe(401)
}

const itemsOf = (document: Json, key: 'nodes' | 'pods'): readonly Json[] => (document[key] ?? []) as Json[]
const namespacesOf = (document: Json): readonly string[] =>
  itemsOf(document, 'pods').map(({ namespace }) => String(namespace))

function checkNodes(document: Json): void {
  expect(Object.keys(document).filter((key) => key !== 'stale')).toEqual(['timestamp', 'nodes'])
  expect(document.timestamp).toMatch(RFC3339)
  for (const node of itemsOf(document, 'nodes')) {
    expect(Object.keys(node).filter((key) => key !== 'conditions' && key !== 'metrics_available')).toEqual(NODE_KEYS)
    for (const key of ['cpu_usage', 'memory_usage', 'cpu_capacity', 'memory_capacity'])
      expect(node[key]).toMatch(QUANTITY)
    for (const key of ['cpu_percent', 'memory_percent', 'disk_percent']) expect(typeof node[key]).toBe('number')
    for (const key of ['disk_capacity', 'disk_usage']) expect(Number.isInteger(node[key])).toBe(true)
    if ('metrics_available' in node)
      expect(node).toMatchObject({ metrics_available: false, cpu_usage: '0', cpu_percent: 0 })
    if (!('conditions' in node)) continue
    const conditions = node.conditions as Json[]
    expect(conditions.length).toBeGreaterThan(0)
    for (const condition of conditions) {
      expect(Object.keys(condition)).toEqual(['type', 'status'])
      expect(['MemoryPressure', 'DiskPressure', 'PIDPressure', 'NotReady']).toContain(condition.type)
      expect(['True', 'False', 'Unknown']).toContain(condition.status)
    }
  }
}

function checkPods(document: Json, nodes: Json): void {
  expect(Object.keys(document)).toEqual(['timestamp', 'pods'])
  expect(document.timestamp).toMatch(RFC3339)
  expect(Array.isArray(document.pods)).toBe(true)
  const known = new Set(itemsOf(nodes, 'nodes').map(({ name }) => name))
  for (const pod of itemsOf(document, 'pods')) {
    expect(Object.keys(pod)).toEqual(POD_KEYS)
    for (const key of POD_KEYS.slice(3)) expect(Number.isInteger(pod[key])).toBe(true)
    expect(Number(pod.cpu_usage) % 1_000_000).toBe(0)
    if (known.has(pod.node)) expect(Number(pod.cpu_capacity)).toBeGreaterThan(0)
    else expect(pod).toMatchObject({ cpu_capacity: 0, memory_capacity: 0 })
  }
}

async function checkHistory(ask: Ask, admin: string, user: string, own: readonly string[]): Promise<void> {
  const seriesOf = async (path: string, token: string) => (await ask(path, token)).json.series as Record<string, Json[]>
  await expect
    .poll(async () => Object.keys((await seriesOf('/api/metrics/nodes', admin)) ?? {}).length, PATIENT)
    .toBeGreaterThan(0)
  const nodes = (await ask('/api/metrics/nodes', admin)).json
  expect(Object.keys(nodes).filter((key) => key !== 'stale')).toEqual([
    'start',
    'end',
    'resolution',
    'series',
    'timestamp',
    'nodes',
  ])
  expect(nodes.resolution).toBe('raw')
  expect(Date.parse(String(nodes.end)) - Date.parse(String(nodes.start))).toBe(3_600_000)
  const [name = '', points = []] = Object.entries(nodes.series as Record<string, Json[]>)[0] ?? []
  for (const point of points) expect(Object.keys(point)).toEqual(['t', 'cpu', 'mem', 'disk'])
  expect(Object.keys(await seriesOf(`/api/metrics/nodes/${encodeURIComponent(name)}`, admin))).toEqual([name])
  expect((await ask('/api/metrics/nodes/no-such-node', admin)).status).toBe(404)
  expect((await ask('/api/metrics/nodes/', admin)).status).toBe(400)
  const past = await ask(`/api/metrics/nodes/${name}?start=2020-01-01T00:00:00Z&end=2020-01-01T03:00:00%2B01:00`, admin)
  expect(past.json).toMatchObject({ end: '2020-01-01T03:00:00+01:00', resolution: '1m', series: { [name]: [] } })
  expect(
    (await ask('/api/metrics/nodes?start=2020-01-02T00:00:00Z&end=2020-01-01T00:00:00Z', admin)).json.series,
  ).toEqual({})

  const minutes = await seriesOf('/api/metrics/pods?resolution=1m', admin)
  for (const point of Object.values(minutes).flat()) {
    expect(Date.parse(String(point.t)) % 60_000).toBe(0)
    for (const key of ['cpu', 'mem', 'disk']) expect(Number.isInteger(point[key])).toBe(true)
  }
  expect(Object.keys(minutes)).toEqual(Object.keys(minutes).toSorted())
  const mine = (await ask('/api/metrics/pods', user)).json
  expect(Object.keys(mine)).toEqual(['start', 'end', 'resolution', 'series', 'timestamp', 'pods'])
  for (const key of Object.keys(mine.series as Json)) expect(own).toContain(key.split('/')[0])
  for (const namespace of ['core', 'kube-system', 'no-such-namespace'])
    expect(await ask(`/api/metrics/pods?namespace=${namespace}`, user)).toMatchObject({
      status: 403,
      text: 'forbidden\n',
    })
  for (const namespace of own) expect((await ask(`/api/metrics/pods?namespace=${namespace}`, user)).status).toBe(200)
}

async function checkStreams(url: string, admin: string, user: string, own: readonly string[]): Promise<void> {
  using all = await EventReader.open(`${url}/sse/health?token=${admin}`)
  using mine = await EventReader.open(`${url}/sse/health?token=${user}`)
  using bare = await EventReader.open(`${url}/sse/pod-metrics`, { authorization: `Bearer ${admin}` })
  expect(all.headers).toMatchObject({ 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
  // The picture at once, then more of it as it is read.
  for (const [stream, count] of [
    [all, 4],
    [mine, 3],
    [bare, 3],
  ] as const)
    await expect.poll(() => stream.events.length, PATIENT).toBeGreaterThanOrEqual(count)
  expect(all.documents.slice(0, 2).map(({ type }) => type)).toEqual(['cluster', 'pods'])
  expect(all.retries).toEqual([5000])
  for (const { event, id } of [...all.events, ...bare.events]) expect([event, id === '']).toEqual(['', false])
  for (const document of all.documents) expect(Object.keys(document)).toEqual(['type', 'payload'])
  for (const { type, payload } of mine.documents) {
    expect(type).toBe('pods')
    for (const namespace of namespacesOf(payload as Json)) expect(own).toContain(namespace)
  }
  for (const document of bare.documents) expect(Object.keys(document)).toEqual(['timestamp', 'pods'])
  const times = bare.documents.map(({ timestamp }) => Date.parse(String(timestamp)))
  expect(times).toEqual(times.toSorted((a, b) => a - b))

  using steps = await EventReader.open(`${url}/sse/health?protocol=2&token=${admin}`)
  await expect
    .poll(() => steps.events.map(({ event }) => event).slice(0, 3), PATIENT)
    .toEqual(['snapshot', 'snapshot', 'status'])
}

async function checkSockets(url: string, admin: string, user: string): Promise<void> {
  const address = url.replace(/^http/, 'ws')
  const statusOf = (path: string, origin?: string) =>
    new Promise((resolve) => {
      const socket = new WebSocket(address + path, origin === undefined ? {} : { origin })
      socket.on('unexpected-response', (_, { statusCode }) => resolve(statusCode)).on('error', () => undefined)
      socket.on('open', () => {
        socket.terminate()
        resolve(101)
      })
    })
  expect(await statusOf('/ws/cluster-info')).toBe(401)
  expect(await statusOf(`/ws/cluster-info?token=${user}`)).toBe(403)
  expect(await statusOf(`/ws/pod-metrics?token=${admin}`, 'https://elsewhere.example')).toBe(403)
  expect((await fetch(`${url}/ws/pod-metrics?token=${admin}`)).status).toBe(400)
  const messages: Json[] = []
  const socket = new WebSocket(`${address}/ws/cluster-info?token=${admin}`)
  socket.on('message', (data) => messages.push(JSON.parse(String(data)) as Json))
  await expect.poll(() => messages.length, PATIENT).toBeGreaterThanOrEqual(2)
  for (const message of messages) checkNodes(message)
  socket.terminate()
}

export interface MonitoredFleet extends Omit<Monitored, 'hasSystem'> {
  /** every cluster, with one label that tells it from the others */
  readonly clusters: Readonly<Record<string, readonly [key: string, value: string]>>
}

/** Uses what is documented of a fleet; all of its clusters hold the tenant's namespaces. */
export async function useFleet({ url, secret, tenant, clusters }: MonitoredFleet): Promise<void> {
  const admin = tokenOf({ user_id: 'Adm1n0', is_admin: true }, secret)
  const user = tokenOf({ user_id: tenant.userId }, secret)
  const stranger = tokenOf({ user_id: 'zzzzzz' }, secret)
  const names = Object.keys(clusters).sort()
  const [[first = '', label] = []] = Object.entries(clusters)
  const ask = async (path: string, token = admin) => {
    const answer = await fetch(url + path, { headers: { authorization: `Bearer ${token}` } })
    const text = await answer.text()
    return { status: answer.status, json: (answer.status === 200 ? JSON.parse(text) : {}) as Json }
  }
  const told = async (path: string, token = admin) => (await ask(path, token)).json.clusters as Record<string, Json>
  await expect
    .poll(
      async () => Object.values(await told('/fleet/pod-metrics')).map(({ pods }) => (pods as Json[]).length > 0),
      PATIENT,
    )
    .toEqual(names.map(() => true))

  const nodes = (await ask('/fleet/cluster-info')).json
  expect(Object.keys(nodes)).toEqual(['timestamp', 'clusters'])
  for (const [name, entry] of Object.entries(nodes.clusters as Json)) {
    expect(Object.keys(entry as Json)).toEqual(['timestamp', 'stale', 'status', 'nodes'])
    checkNodes({ timestamp: (entry as Json).timestamp, nodes: (entry as Json).nodes })
    expect((entry as Json).nodes).toEqual((await ask(`/clusters/${name}/cluster-info`)).json.nodes)
  }
  for (const entry of Object.values(await told('/fleet/pod-metrics', user)))
    expect([...new Set(namespacesOf(entry))].sort()).toEqual([...tenant.namespaces].sort())
  expect(await told('/fleet/pod-metrics', stranger)).toEqual({})
  for (const name of [first, 'no-such-cluster'])
    expect((await ask(`/clusters/${name}/pod-metrics`, stranger)).status).toBe(404)
  for (const path of ['/fleet/cluster-info', '/fleet/api/metrics/clusters', '/fleet/sse/cluster-info'])
    expect((await ask(path, user)).status).toBe(403)
  expect((await ask('/fleet/ws/pod-metrics')).status).toBe(404)
  expect((await ask('/fleet/api/graph/dependencies')).status).toBe(501)

  expect(Object.keys(await told(`/fleet/pod-metrics?clusters=${first},no-such-cluster`))).toEqual([first])
  expect(Object.keys(await told(`/fleet/pod-metrics?selector=${encodeURIComponent((label ?? []).join('='))}`))).toEqual(
    [first],
  )
  expect((await ask('/fleet/pod-metrics?selector=%3D%3D')).status).toBe(400)
  const page = (await ask('/fleet/pod-metrics?limit=1')).json
  expect(Object.keys(page.clusters as Json)).toEqual(names.slice(0, 1))
  const rest = await told(`/fleet/pod-metrics?continue=${encodeURIComponent(String(page.continue))}`)
  expect(Object.keys(rest)).toEqual(names.slice(1))

  const summary = (await ask('/fleet/summary')).json
  const totals = [
    ...['nodes', 'ready_nodes', 'nodes_without_metrics', 'pods', 'pods_without_metrics'],
    ...['cpu_percent', 'memory_percent', 'disk_percent', 'alerts'],
  ]
  expect(Object.keys(summary)).toEqual(['timestamp', 'clusters', 'total'])
  expect(Object.keys(summary.total as Json)).toEqual(totals)
  for (const one of Object.values(summary.clusters as Record<string, Json>)) {
    expect(Object.keys(one)).toEqual(['status', 'stale', 'timestamp', 'age_seconds', ...totals])
    expect(Number(one.pods)).toBeGreaterThan(0)
  }
  expect((await ask('/fleet/summary', user)).json.total).toMatchObject({
    nodes: null,
    ready_nodes: null,
    cpu_percent: null,
  })

  const past = async () => (await ask('/fleet/api/metrics/clusters')).json.series as Json
  await expect.poll(async () => Object.keys(await past()), PATIENT).toEqual(names)

  using all = await EventReader.open(`${url}/fleet/sse/health?token=${admin}`)
  using mine = await EventReader.open(`${url}/fleet/sse/health?token=${user}&clusters=${first}`)
  using sums = await EventReader.open(`${url}/fleet/sse/summary?token=${user}`)
  await expect.poll(() => all.events.length, PATIENT).toBeGreaterThan(2 * names.length)
  await expect.poll(() => mine.events.length, PATIENT).toBeGreaterThan(1)
  await expect.poll(() => sums.events.length, PATIENT).toBeGreaterThan(1)
  for (const document of all.documents) expect(Object.keys(document)).toEqual(['type', 'cluster', 'payload'])
  for (const { cluster, type } of mine.documents) expect([cluster, type]).toEqual([first, 'pods'])
}
