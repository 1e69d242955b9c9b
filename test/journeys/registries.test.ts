import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createClient } from '#http'
import { createKubeClient, type KubeClient, type Resource } from '#kube'
import { type SimulatedRegistry, simulateRegistry } from '#simulator'
import { redisMissing, startRedis, type TestRedis } from '../../src/pipeline/state/test/redis-server.ts'
import { clusterpulse, eventually, program, type Running } from '../process.ts'
import { noRealApiServer, type RealApiServer, startRealApiServer } from '../real-apiserver.ts'

/* RegistryConnections applied to a real Kubernetes API, probed by a manager, shown by an API process through Redis. */
const missing = noRealApiServer() ?? redisMissing
const why = process.env.CI_REQUIRE_ALL === '1' ? undefined : missing

const HUB = 'clusterpulse'
const SECRET = 's'.repeat(32)
const SLOW_MS = 60_000
const kind = (plural: string, name: string): Resource => ({
  group: 'clusterpulse.io',
  version: 'v1alpha1',
  plural,
  kind: name,
  namespaced: true,
})
const registries = kind('registryconnections', 'RegistryConnection')
const policies = kind('monitoraccesspolicies', 'MonitorAccessPolicy')
const namespaces: Resource = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', namespaced: false }

describe.skipIf(why !== undefined)(`registries on Kubernetes${why === undefined ? '' : ` (not run: ${why})`}`, () => {
  let folder = ''
  let real: RealApiServer
  let redis: TestRedis
  let eyes: Redis
  let kube: KubeClient
  let registry: SimulatedRegistry
  let address = ''
  const running: Running[] = []
  const inHub = (name: string) => ({ name, namespace: HUB })
  const headers = (user: string, groups = '') => ({
    'x-clusterpulse-proxy-secret': SECRET,
    'x-forwarded-user': user,
    'x-forwarded-groups': groups,
  })
  const as = (user: string, groups = '') => createClient({ baseUrl: address, headers: headers(user, groups) })
  const root = () => as('root', 'admins')
  const kubectl = async (args: readonly string[], input?: string) => {
    const run = program(
      'kubectl',
      ['--kubeconfig', join(folder, 'admin.yaml'), ...args],
      input === undefined ? {} : { input },
    )
    expect(await run.ended(), `kubectl ${args.join(' ')}: ${run.stderr()}`).toBe(0)
    return run.stdout()
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'clusterpulse-registries-'))
    const server = await startRealApiServer()
    if (!server) throw new Error('no real kube-apiserver')
    real = server
    redis = await startRedis()
    eyes = new Redis({ host: '127.0.0.1', port: redis.port })
    registry = await simulateRegistry({ repositories: Array.from({ length: 230 }, (_, i) => `team/app-${i}`) })
    kube = createKubeClient(real.access)
    await writeFile(join(folder, 'admin.yaml'), real.kubeconfig)
    const crds = clusterpulse(['crds'])
    expect(await crds.ended()).toBe(0)
    await kubectl(['apply', '--server-side', '-f', '-'], crds.stdout())
    await kubectl(['wait', '--for=condition=Established', 'crd', '--all'])
    await kube.create(namespaces, { metadata: { name: HUB } })
    const env = {
      REDIS_HOST: '127.0.0.1',
      REDIS_PORT: String(redis.port),
      KUBECONFIG: join(folder, 'admin.yaml'),
      NAMESPACE: HUB,
    }
    running.push(
      clusterpulse(['manager', '--metrics-bind-address', '127.0.0.1:0', '--health-probe-bind-address', '127.0.0.1:0'], {
        env: { ...env, DATA_DIR: join(folder, 'manager'), INGESTER_ENABLED: 'false' },
      }),
    )
    const api = clusterpulse(['api', '--host', '127.0.0.1', '--port', '0'], {
      env: { ...env, TRUSTED_PROXY_SECRET: SECRET, ADMIN_GROUPS: 'admins' },
    })
    running.push(api)
    address = (await api.says(/on (http:\/\/127\.0\.0\.1:\d+)/, SLOW_MS))[1] ?? ''
  })
  afterAll(async () => {
    for (const role of running.reverse()) await role[Symbol.asyncDispose]()
    eyes?.disconnect()
    await registry?.[Symbol.asyncDispose]()
    await kube?.[Symbol.asyncDispose]()
    await redis?.[Symbol.asyncDispose]()
    await real?.stop()
    await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  })

  it('shows availability, version and the whole catalogue of what was applied', async () => {
    const none = await eventually(
      () =>
        root()
          .registries()
          .catch(() => undefined),
      (answer) => answer !== undefined,
      SLOW_MS,
    )
    expect(none?.items).toEqual([])
    const spec = { displayName: 'Shop', endpoint: registry.url, insecure: true, labels: { team: 'shop' } }
    await kube.create(registries, { metadata: inHub('shop'), spec: { ...spec, monitoring: { checkCatalog: true } } })
    const seen = await eventually(
      async () => (await root().registries()).items[0],
      (found) => found?.available === true,
      SLOW_MS,
    )
    expect(seen).toMatchObject({
      name: 'shop',
      displayName: 'Shop',
      health: 'healthy',
      version: 'registry/2.0',
      repositoryCount: 230,
      catalogTruncated: false,
      stale: false,
    })
    expect((await root().registry('shop')).measurements.length).toBeGreaterThan(0)
    const v1 = await fetch(`${address}/api/v1/registries/status`, { headers: headers('root', 'admins') })
    expect(await v1.json()).toMatchObject([
      { name: 'shop', spec: { display_name: 'Shop' }, status: { available: true, repository_count: 230 } },
    ])
    const status = await eventually(
      async () => (await kube.get(registries, inHub('shop')))?.status as Record<string, unknown> | undefined,
      (found) => found?.phase === 'Connected',
      SLOW_MS,
    )
    expect(status).toMatchObject({ available: true, health: 'healthy', repositoryCount: 230 })
  })

  it('says why a registry is not available, and that plain HTTP has to be wished for', async () => {
    await kube.create(registries, { metadata: inHub('gone'), spec: { endpoint: 'https://127.0.0.1:4' } })
    await kube.create(registries, { metadata: inHub('plain'), spec: { endpoint: registry.url } })
    const found = await eventually(
      async () => new Map((await root().registries()).items.map((one) => [one.name, one])),
      (all) => all.get('gone')?.available === false && all.get('plain')?.available === false,
      SLOW_MS,
    )
    expect(found.get('gone')).toMatchObject({ health: 'unhealthy', code: 'unreachable', responseMs: null })
    expect(found.get('plain')).toMatchObject({ health: 'unhealthy', code: 'insecure_refused' })
    await eventually(
      () => kubectl(['-n', HUB, 'get', 'registryconnection']),
      (table) => /gone .*false .*unhealthy/.test(table),
      SLOW_MS,
    )
  })

  it('shows people the registries a policy shows them, and nothing of the others', async () => {
    const resources = [{ type: 'registries', visibility: 'filtered', filters: { names: { allowed: ['shop'] } } }]
    await kube.create(policies, {
      metadata: inHub('alice'),
      spec: {
        identity: { subjects: { users: ['alice'] }, priority: 100 },
        access: { effect: 'Allow' },
        scope: { clusters: { rules: [{ selector: { matchNames: ['*'] }, permissions: { view: true }, resources }] } },
      },
    })
    await eventually(
      async () => (await as('alice').registries()).items.map(({ name }) => name),
      (names) => names.join() === 'shop',
      SLOW_MS,
    )
    await expect(as('alice').registry('gone')).rejects.toMatchObject({ status: 404 })
    expect((await as('nobody').registries()).items).toEqual([])
  })

  it('leaves no trace of what is deleted', async () => {
    await kube.delete(registries, inHub('shop'))
    await eventually(
      async () => (await root().registries()).items.map(({ name }) => name),
      (names) => !names.includes('shop'),
      SLOW_MS,
    )
    await eventually(
      () => eyes.keys('registry:shop:*'),
      (keys) => keys.length === 0,
    )
  })
})
