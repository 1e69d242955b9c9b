import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type ApiServer, apiServer } from '#api'
import { WatchBudget } from '#collect'
import { type ClusterView, createClient } from '#http'
import { secrets } from '#kube'
import { systemClock } from '#model'
import { Metrics, silentLogger } from '#runtime'
import { FaultProxy, type SimulatedFleet, scenarios, simulateFleet } from '#simulator'
import { connectionResource } from '../../src/control/connections/connection-resource.ts'
import {
  aWorld,
  conditionOf,
  connect,
  NAMESPACE,
  statusOf,
  until,
  untilPhase,
  type World,
  writeSecret,
} from '../../src/control/connections/testing/world.ts'
import { localAdministrator } from '../local-administrator.ts'

const administrator = await localAdministrator()

/*
 * A whole hub (objects, collection, log, state, API) in this process before simulated clusters that fail on purpose. For
 * each fault: people read what it is and what to do in the object's conditions and in the API; the cluster next to it is
 * read on; and all is well again when the cause goes, without a hand. Nothing is watched here, as with a role of former days: lists
 * are read in each round, and what is wrong with one is met at once.
 */
const TIMEOUT_MS = 3000
const key = (name: string) => ({ name, namespace: NAMESPACE })

let fleet: SimulatedFleet
let proxy: FaultProxy
let world: World
let api: ApiServer
let client: ReturnType<typeof createClient>
let address = ''

beforeAll(async () => {
  // sim-001 and sim-006 have operators; sim-004 has no metrics.
  fleet = await simulateFleet(scenarios.plain({ clusters: 16, nodes: 3, pods: 30 }))
  proxy = await FaultProxy.open({ upstream: fleet })
  world = await aWorld({
    defaults: { intervalMs: 400, timeoutMs: TIMEOUT_MS, operatorScanIntervalMs: 400 },
    watches: new WatchBudget(0),
  })
  api = apiServer({
    state: world.state,
    events: world.events,
    ...administrator,
    config: { host: '127.0.0.1', port: 0, ...administrator.config },
    logger: silentLogger,
    clock: systemClock,
    version: 'test',
    metrics: new Metrics({ role: 'test' }),
  })
  address = await api.start()
  client = createClient({ baseUrl: address })
  await connect(world, 'steady', memberOf('sim-016'))
  await world.start()
  await untilPhase(world, 'steady', 'Connected')
})
afterAll(async () => {
  await api?.[Symbol.asyncDispose]()
  await world?.[Symbol.asyncDispose]()
  await proxy?.[Symbol.asyncDispose]()
  await fleet?.[Symbol.asyncDispose]()
})

// Whatever happens to a cluster, the one beside it is read on meanwhile.
let steadyAt = 0
const steady = () => client.cluster('steady')
beforeEach(async () => {
  steadyAt = (await steady()).checkedAt ?? 0
})
afterEach(async () => {
  await until(async () => {
    const { checkedAt, health, parts } = await steady()
    expect([health, parts.node?.outcome]).toEqual(['healthy', 'complete'])
    expect(checkedAt).toBeGreaterThan(steadyAt)
  })
})

/** A simulated cluster behind the proxy. */
function memberOf(name: string) {
  return {
    url: `${proxy.url}/clusters/${name}`,
    ca: '',
    token: fleet.clusters.find((one) => one.name === name)?.token ?? '',
  }
}
/** The same without the proxy, over TLS. */
function directly(name: string) {
  const { url, caPem, token } = fleet.clusters.find((cluster) => cluster.name === name) ?? {
    url: '',
    caPem: '',
    token: '',
  }
  return { url, ca: caPem, token }
}
const view = (name: string): Promise<ClusterView> => client.cluster(name)
const why = async (name: string) => (await view(name)).reasons.map(({ message }) => message).join('\n')

async function connected(name: string): Promise<void> {
  await connect(world, name, memberOf(name))
  await untilPhase(world, name, 'Connected')
  await until(async () => expect((await view(name)).health).toBe('healthy'))
}

/** It is well, and what is shown was read after now. */
async function heals(name: string, nodes = 3): Promise<void> {
  const now = Date.now()
  await until(async () => {
    const seen = await view(name)
    expect(seen.parts.node?.freshness?.observedAt).toBeGreaterThan(now)
    expect([seen.health, seen.nodes?.total, seen.reasons]).toEqual(['healthy', nodes, []])
  })
  // Its status is written after what the API shows.
  await until(async () => {
    expect(await statusOf(world, name)).toMatchObject({ phase: 'Connected' })
    expect(await conditionOf(world, name, 'Ready')).toMatchObject({ status: 'True' })
    expect(await conditionOf(world, name, 'Complete')).toMatchObject({ status: 'True' })
  })
}

/** The round as a whole fails: said in status and API alike, with what was known before kept. */
async function failsWith(name: string, reason: RegExp, message: RegExp): Promise<void> {
  await until(async () => {
    const status = await statusOf(world, name)
    expect(status).toMatchObject({ phase: 'Error', health: 'unhealthy' })
    expect(status.message).toMatch(message)
    expect((await conditionOf(world, name, 'Ready'))?.reason).toMatch(reason)
    const seen = await view(name)
    expect(seen.health).toBe('unhealthy')
    expect(seen.reasons[0]?.message).toMatch(message)
    expect(seen.nodes?.total ?? 3).toBe(3)
  })
}

describe('a cluster that refuses', () => {
  it('with an expired token: says to renew it, and is read again with a new one', async () => {
    await connected('sim-001')
    proxy.set('sim-001', { kind: 'status', code: 401, message: 'Unauthorized' })
    await failsWith('sim-001', /^KubeUnauthorized$/, /credentials \(401\); renew the token or certificate/)
    expect(await conditionOf(world, 'sim-001', 'CredentialsValid')).toMatchObject({ status: 'False' })
    expect(await conditionOf(world, 'sim-001', 'Reachable')).toMatchObject({ status: 'True' })
    proxy.heal('sim-001')
    await heals('sim-001')
  })

  it('everything with 403: says to give a role, and that the credentials themselves are good', async () => {
    await connected('sim-002')
    proxy.set('sim-002', { kind: 'status', code: 403, message: 'namespaces is forbidden' })
    await failsWith('sim-002', /^KubeForbidden$/, /may not do this \(403\); give it a role/)
    expect(await conditionOf(world, 'sim-002', 'CredentialsValid')).toMatchObject({ status: 'True' })
    proxy.heal('sim-002')
    await heals('sim-002')
  })

  it.each([
    ['deployments', 'deployment', 403, 'forbidden', /may not do this \(403\); give it a role/],
    ['clusterserviceversions', 'operator', 403, 'forbidden', /may not do this \(403\)/],
    ['deployments', 'deployment', 500, 'unreachable', /failed \(500\)/],
    ['deployments', 'deployment', 401, 'forbidden', /\(401\); renew the token/],
  ])(
    '%s alone: names %s (%d) in part and reasons, reads the rest, stays healthy',
    async (resource, type, code, outcome, message) => {
      const name = 'sim-006'
      if (!world.cluster(name)) await connected(name)
      proxy.set(name, { kind: 'status', code, resource })
      await until(async () => {
        const { parts, health, reasons, nodes } = await view(name)
        expect(parts[type]).toMatchObject({ outcome, message: expect.stringMatching(message) as string })
        expect(health).toBe('healthy')
        expect(reasons).toContainEqual({
          code: `${type}_${outcome}`,
          message: expect.stringMatching(message) as string,
        })
        expect([parts.node?.outcome, parts.namespace?.outcome, nodes?.total]).toEqual(['complete', 'complete', 3])
      })
      await until(async () =>
        expect(await conditionOf(world, name, 'Complete')).toMatchObject({
          status: 'False',
          reason: 'PartlyRead',
          message: expect.stringMatching(new RegExp(`^${type} ${outcome}: `)) as string,
        }),
      )
      await until(async () => expect(await statusOf(world, name)).toMatchObject({ phase: 'Connected', nodes: 3 }))
      proxy.heal(name)
      await heals(name)
    },
  )

  it('nodes: is unhealthy for that reason, and keeps the nodes known before', async () => {
    const name = 'sim-003'
    await connected(name)
    proxy.set(name, { kind: 'status', code: 403, resource: 'nodes' })
    await failsWith(name, /^KubeForbidden$/, /^failed to get node metrics: GET \/api\/v1\/nodes: .*give it a role/)
    proxy.heal(name)
    await heals(name)
  })

  it('pods: shows the nodes all the same, and says what of them is not known', async () => {
    const name = 'sim-003'
    proxy.set(name, { kind: 'status', code: 403, resource: 'pods' })
    await until(async () => {
      const { parts, health, nodes } = await view(name)
      expect(parts.node?.outcome).toBe('complete')
      expect(parts.podSummary).toMatchObject({
        outcome: 'forbidden',
        message: expect.stringMatching(/give it a role/) as string,
      })
      expect([health, nodes?.total]).toEqual(['healthy', 3])
    })
    proxy.heal(name)
    await heals(name)
  })

  it('for load (429 with Retry-After): is asked again after that time, within the round', async () => {
    await connected('sim-004')
    proxy.set('sim-004', { kind: 'status', code: 429, retryAfterSeconds: 0, resource: 'nodes', times: 1 })
    const before = Date.now()
    await until(() => expect(proxy.requests('sim-004')).toBeGreaterThan(0))
    await heals('sim-004')
    expect((await view('sim-004')).parts.node?.freshness?.observedAt).toBeGreaterThan(before)
    // Longer than the round may take: said, not waited for.
    proxy.set('sim-004', { kind: 'status', code: 429, retryAfterSeconds: 3600 })
    await failsWith('sim-004', /^KubeThrottled$/, /asks for fewer requests \(429\)/)
    expect(await conditionOf(world, 'sim-004', 'Reachable')).toMatchObject({ status: 'True' })
    proxy.heal('sim-004')
    await heals('sim-004')
  })
})

describe('a cluster whose connection breaks', () => {
  it.each([
    [
      'answers nothing',
      { kind: 'hang' },
      /within 3 s; check its load and the network|circuit breaker is open.*within 3 s/,
    ],
    [
      'hangs amid the nodes',
      { kind: 'hang-mid-body', resource: 'nodes' },
      /\/nodes: .*did not answer completely within 3 s/,
    ],
    [
      'hangs amid the pods',
      { kind: 'hang-mid-body', resource: 'pods' },
      /\/pods: .*did not answer completely within 3 s/,
    ],
    ['resets every connection', { kind: 'reset' }, /the connection to http:\S+ broke/],
    [
      'resets amid the pods',
      { kind: 'reset', when: 'mid-body', resource: 'pods' },
      /\/pods: the connection to http:\S+ broke/,
    ],
    ['ends amid the nodes', { kind: 'half-page', resource: 'nodes' }, /\/nodes: /],
    [
      'ends amid the nodes as if that were all',
      { kind: 'half-page', looksWhole: true, resource: 'nodes' },
      /\/nodes|broken protobuf/,
    ],
    [
      'ends amid the pods as if that were all',
      { kind: 'half-page', looksWhole: true, resource: 'pods' },
      /\/pods|broken protobuf/,
    ],
    [
      'answers with a page of a proxy',
      { kind: 'rewrite', change: () => Buffer.from('<html>sign in</html>'), resource: 'nodes' },
      /\/nodes|broken protobuf/,
    ],
  ] as const)('%s: says so, keeps what was known, and heals', async (_, fault, message) => {
    const name = 'sim-005'
    if (!world.cluster(name)) await connected(name)
    proxy.set(name, fault)
    await failsWith(name, /^Kube(Timeout|Unreachable|Protocol)$/, message)
    proxy.heal(name)
    await heals(name)
  })

  it('says while its breaker is open what was wrong, and nothing of the breaker', async () => {
    await connected('sim-007')
    proxy.set('sim-007', { kind: 'reset' })
    const cause = /^connection test failed: GET \S+: the connection to http:\S+ broke/
    await failsWith('sim-007', /^KubeUnreachable$/, cause)
    let refusedRounds = 0
    await until(async () => {
      if (world.clients.breakerState(`${NAMESPACE}/sim-007`) === 'open') refusedRounds += 1
      await failsWith('sim-007', /^KubeUnreachable$/, cause)
      expect(refusedRounds).toBeGreaterThan(10)
    })
    proxy.heal('sim-007')
    await heals('sim-007')
  })

  it('shows a slow cluster as well as any other, as long as it is fast enough for its timeout', async () => {
    await connected('sim-008')
    // A round's calls share four connections, and waiting for one counts: together they stay within the timeout.
    proxy.set('sim-008', { kind: 'slow', delayMs: TIMEOUT_MS / 10 })
    await heals('sim-008')
    proxy.heal('sim-008')
  })
})

describe('a certificate of no known CA', () => {
  it.each([
    ['no CA is given', () => ({})],
    ['another CA is given', () => ({ 'ca.crt': otherCa })],
  ])('where %s: is refused and named; its own CA heals it', async (_, given) => {
    otherCa ||= (await world.member()).ca
    const name = Object.keys(given()).length === 0 ? 'sim-009' : 'sim-010'
    const member = directly(name)
    await connect(world, name, member, {}, { token: member.token, ...given() })
    await untilPhase(world, name, 'Error')
    await until(async () => expect(await why(name)).toMatch(/not signed by a known CA; give the cluster's ca\.crt/))
    expect((await statusOf(world, name)).message).toMatch(/give the cluster's ca\.crt/)
    expect((await view(name)).nodes).toBeNull()
    await writeSecret(world.hub, `${name}-credentials`, { token: member.token, 'ca.crt': member.ca })
    await heals(name)
    expect(await conditionOf(world, name, 'TLSVerified')).toMatchObject({ status: 'True' })
    expect((await view(name)).insecureSkipTlsVerify).toBe(false)
  })
  let otherCa = ''

  it('where verification is waived: is read, and the choice shows in condition and API', async () => {
    const member = directly('sim-011')
    await connect(world, 'sim-011', member, { insecureSkipTLSVerify: true }, { token: member.token })
    await heals('sim-011')
    expect(await conditionOf(world, 'sim-011', 'TLSVerified')).toMatchObject({
      status: 'False',
      reason: 'SkippedByChoice',
    })
    expect((await view('sim-011')).insecureSkipTlsVerify).toBe(true)
    await world.hub.patch(
      connectionResource,
      key('sim-011'),
      { spec: { insecureSkipTLSVerify: false } },
      { kind: 'merge' },
    )
    await failsWith('sim-011', /^Kube(Tls|BreakerOpen)$/, /give the cluster's ca\.crt/)
  })
})

describe('a cluster with odd objects', () => {
  it('of 1.5 MB: is read as any other', async () => {
    const name = 'sim-012'
    await connected(name)
    const store = fleet.server(name).objects
    const big = { note: 'x'.repeat(1_500_000) }
    await store.put({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'big', annotations: big },
      status: { conditions: [{ type: 'Ready', status: 'True' }], capacity: { cpu: '4' } },
    } as never)
    await store.put({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'big', namespace: 'default' },
      data: big,
    } as never)
    await heals(name, 4)
    const big4 = (await client.nodes(name)).items.find((node) => node.name === 'big')
    expect(big4?.capacity.cpuCores).toBe(4)
    await store.delete({ group: '', version: 'v1', plural: 'nodes' } as never, { name: 'big' })
    await heals(name)
  })

  it('with quantities and dates that are none: shows them as not known, and the others as they are', async () => {
    const name = 'sim-013'
    await connected(name)
    proxy.set(name, asNodes(oddNodes))
    await until(async () => expect((await view(name)).nodes?.total).toBe(4))
    const nodes = new Map((await client.nodes(name)).items.map((node) => [node.name, node]))
    expect(nodes.get('fine')).toMatchObject({
      capacity: { cpuCores: 8, memoryBytes: 2 ** 30 },
      createdAt: 1767225600000,
    })
    for (const odd of ['words', 'kinds', 'beyond'])
      expect(nodes.get(odd)).toMatchObject({ capacity: { cpuCores: null, memoryBytes: null, pods: null } })
    expect(nodes.get('words')?.createdAt).toBeNull()
    expect((await view(name)).cpuCores.capacity).toBe(8)
    const documented = await fetch(`${address}/api/v1/clusters/${name}/nodes`)
    expect(documented.status).toBe(200)
    expect(JSON.stringify(await documented.json())).not.toMatch(/NaN|Infinity/)
    proxy.heal(name)
    await heals(name)
  })

  it('with a node that has no name: says which object is at fault, keeps what was known, and heals', async () => {
    const name = 'sim-014'
    await connected(name)
    proxy.set(name, asNodes([{ metadata: {} }]))
    await until(async () => {
      const status = await statusOf(world, name)
      expect(status).toMatchObject({ phase: 'Error', health: 'healthy' })
      expect(status.message).toMatch(/hub could not keep it: the batch is refused: parts\[0\]\.items\[0\]\.name/)
    })
    expect((await view(name)).nodes?.total).toBe(3)
    proxy.heal(name)
    await heals(name)
  })
})

describe('a cluster that is deleted', () => {
  it.each([
    ['hangs', { kind: 'hang', resource: 'pods' }],
    ['is slow', { kind: 'slow', delayMs: 300 }],
  ] as const)('while it is read (%s): is gone, and stays gone', async (_, fault) => {
    const name = 'sim-015'
    await connected(name)
    proxy.set(name, fault)
    const asked = proxy.requests(name)
    await until(() => expect(proxy.requests(name)).toBeGreaterThan(asked + 1))
    await world.hub.delete(connectionResource, key(name))
    await world.hub.delete(secrets, key(`${name}-credentials`))
    await until(() => expect(world.cluster(name)).toBeUndefined())
    proxy.heal(name)
    // Long enough for whatever was under way to end.
    const rounds = world.batches.length
    await until(() => expect(world.batches.length).toBeGreaterThan(rounds + 30))
    await world.ingester.flushed()
    expect(world.cluster(name)).toBeUndefined()
    expect(world.batches.slice(rounds).some(({ cluster }) => cluster === name)).toBe(false)
    await expect(view(name)).rejects.toMatchObject({ status: 404 })
    expect((await client.clusters()).items.map((cluster) => cluster.name)).not.toContain(name)
  })
})

const asNodes = (items: readonly unknown[]) =>
  ({
    kind: 'rewrite',
    resource: 'nodes',
    contentType: 'application/json',
    change: () => Buffer.from(JSON.stringify({ kind: 'NodeList', items })),
  }) as const
const odd = (name: string, amount: unknown, time: unknown) => ({
  metadata: { name, creationTimestamp: time, labels: 7, annotations: [null] },
  spec: { taints: [null, 5, 'no'], unschedulable: 'yes' },
  status: {
    capacity: { cpu: amount, memory: amount, pods: amount },
    conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: time }, null, 4],
    addresses: 'none',
  },
})
const oddNodes = [
  odd('words', 'four and a half', 'yesterday'),
  odd('kinds', { much: true }, 12),
  odd('beyond', '1e9999', '+275760-09-13T00:00:00.001Z'),
  {
    metadata: { name: 'fine', creationTimestamp: '2026-01-01T00:00:00Z' },
    status: { capacity: { cpu: '8', memory: '1Gi' }, conditions: [{ type: 'Ready', status: 'True' }] },
  },
]
