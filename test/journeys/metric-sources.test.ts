import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import pLimit from 'p-limit'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createClient } from '#http'
import { createKubeClient, type KubeClient, type KubeObject, type Resource } from '#kube'
import { VictoriaMetrics, victoriaMissing } from '../../src/pipeline/history/testing/victoria-metrics.ts'
import { redisMissing, startRedis, type TestRedis } from '../../src/pipeline/state/test/redis-server.ts'
import { freePort } from '../../src/platform/runtime/testing/free-port.ts'
import { leastOf } from '../../src/platform/runtime/testing/least-of.ts'
import { clusterpulse, eventually, program, type Running } from '../process.ts'
import { noRealApiServer, type RealApiServer, startRealApiServer } from '../real-apiserver.ts'

/*
 * A MetricSource over 1500 objects of a kind that the hub never heard of, on a real Kubernetes API: pulled by the hub
 * (west), pushed by an agent (north), and read with an account that may see one namespace only (south).
 */
const missing = noRealApiServer() ?? redisMissing ?? victoriaMissing()
const why = process.env.CI_REQUIRE_ALL === '1' ? undefined : missing

const HUB = 'clusterpulse'
const SECRET = 's'.repeat(32)
const SLOW_MS = 90_000
const COUNT = 1500
const bin = join(dirname(fileURLToPath(import.meta.url)), '..', '..', 'bin', 'clusterpulse.js')

const resource = (group: string, version: string, plural: string, kind: string, namespaced = true): Resource => ({
  group,
  version,
  plural,
  kind,
  namespaced,
})
const widgets = resource('shop.example.com', 'v1', 'widgets', 'Widget')
const connections = resource('clusterpulse.io', 'v1alpha1', 'clusterconnections', 'ClusterConnection')
const sources = resource('clusterpulse.io', 'v1alpha1', 'metricsources', 'MetricSource')
const policies = resource('clusterpulse.io', 'v1alpha1', 'monitoraccesspolicies', 'MonitorAccessPolicy')
const secrets = resource('', 'v1', 'secrets', 'Secret')
const namespaces = resource('', 'v1', 'namespaces', 'Namespace', false)
const crds = resource('apiextensions.k8s.io', 'v1', 'customresourcedefinitions', 'CustomResourceDefinition', false)

const teams = ['red', 'green', 'blue'] as const
const shops = ['shop-a', 'shop-b', 'shop-c', 'shop-d', 'kube-widgets'] as const
const sizeOf = (i: number) => (i * 37) % 1000
const widget = (i: number): KubeObject => ({
  apiVersion: 'shop.example.com/v1',
  kind: 'Widget',
  metadata: {
    name: `w-${String(i).padStart(4, '0')}`,
    namespace: shops[i % shops.length] ?? '',
    labels: { team: teams[i % 3] ?? '' },
  },
  spec: { size: `${sizeOf(i)}Mi`, weight: i % 7, parts: Array.from({ length: i % 4 }, (_, n) => ({ name: `p${n}` })) },
})
/** those that the source wants: all but the ones in kube-* */
const wanted = Array.from({ length: COUNT }, (_, i) => i).filter((i) => i % shops.length !== 4)
const bytes = (all: readonly number[]) => all.reduce((sum, i) => sum + sizeOf(i) * 1024 * 1024, 0)

const spec = {
  source: { apiVersion: 'shop.example.com/v1', kind: 'Widget', namespaces: { exclude: ['kube-*'] } },
  fields: [
    { name: 'size', path: '.spec.size', type: 'bytes' },
    { name: 'weight', path: '.spec.weight', type: 'integer' },
    { name: 'parts', path: '.spec.parts', type: 'arrayLength', default: '0' },
    { name: 'team', path: '.metadata.labels.team' },
  ],
  computed: [
    { name: 'sizeMiB', expression: 'round(size / 1048576, 1)', type: 'float' },
    { name: 'heavy', expression: 'weight >= 5', type: 'boolean' },
  ],
  aggregations: [
    { name: 'widgets', function: 'count' },
    { name: 'total_bytes', function: 'sum', field: 'size' },
    { name: 'heavy_widgets', function: 'count', filter: { field: 'heavy', operator: 'equals', value: 'true' } },
    { name: 'by_team', function: 'count', groupBy: 'team' },
  ],
  collection: { intervalSeconds: 30, maxResources: 10_000, watch: true },
  rbac: { resourceTypeName: 'widget', filterableFields: ['team'] },
}

describe.skipIf(why !== undefined)(
  `metric sources on Kubernetes${why === undefined ? '' : ` (not run: ${why})`}`,
  () => {
    let folder = ''
    let real: RealApiServer
    let kube: KubeClient
    let redis: TestRedis
    let eyes: Redis
    let victoria: VictoriaMetrics
    let address = ''
    const running: Running[] = []
    const inHub = (name: string) => ({ name, namespace: HUB })
    const admin = () => join(folder, 'admin.yaml')
    const kubectl = async (args: readonly string[], input?: string) => {
      const run = program('kubectl', ['--kubeconfig', admin(), ...args], input === undefined ? {} : { input })
      expect(await run.ended(), `kubectl ${args.join(' ')}: ${run.stderr()}`).toBe(0)
      return run.stdout()
    }
    const as = (user: string, groups = '') =>
      createClient({
        baseUrl: address,
        headers: { 'x-clusterpulse-proxy-secret': SECRET, 'x-forwarded-user': user, 'x-forwarded-groups': groups },
      })
    const root = () => as('root', 'admins')
    const on = async (client: ReturnType<typeof as>, cluster: string) =>
      (await client.type('widget')).clusters.find((one) => one.cluster === cluster)
    /** Types that a MetricSource declares; every cluster has others. */
    const declared = async (client: ReturnType<typeof as>) =>
      (await client.types()).items.filter(({ sources: [first] }) => first?.isDeclared)
    const start = (args: readonly string[], env: Readonly<Record<string, string>>) => {
      const role = clusterpulse(args, { env })
      running.push(role)
      return role
    }
    const connectMember = async (name: string, token: string, mode: 'pull' | 'push' = 'pull') => {
      const base64 = (text: string) => Buffer.from(text).toString('base64')
      const data = { token: base64(token), 'ca.crt': base64(real.access.ca ?? '') }
      await kube.create(secrets, { metadata: inHub(name), type: 'Opaque', data })
      await kube.create(connections, {
        metadata: inHub(name),
        spec: { endpoint: real.access.server, credentialsRef: { name }, collectionMode: mode, labels: { side: name } },
      })
    }

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'clusterpulse-sources-'))
      const [server, started, history, port] = await Promise.all([
        startRealApiServer(),
        startRedis(),
        VictoriaMetrics.start(),
        freePort(),
      ])
      if (!server) throw new Error('no real kube-apiserver')
      real = server
      redis = started
      victoria = history
      eyes = new Redis({ host: '127.0.0.1', port: redis.port })
      kube = createKubeClient(real.access, { qps: 2000, burst: 2000 })
      await writeFile(admin(), real.kubeconfig)
      const printed = clusterpulse(['crds'])
      expect(await printed.ended()).toBe(0)
      await kubectl(['apply', '--server-side', '-f', '-'], printed.stdout())
      await kube.create(crds, widgetDefinition)
      await kubectl(['wait', '--for=condition=Established', 'crd', '--all'])
      for (const name of [HUB, ...shops]) await kube.create(namespaces, { metadata: { name } })
      const limit = pLimit(32)
      await Promise.all(Array.from({ length: COUNT }, (_, i) => limit(() => kube.create(widgets, widget(i)))))

      // South's account sees shop-a, and what a reader of nodes sees.
      await kubectl(['-n', HUB, 'create', 'serviceaccount', 'south'])
      await kubectl([
        'create',
        'clusterrole',
        'rounds',
        '--verb=get,list',
        '--resource=nodes,pods,namespaces,deployments.apps',
      ])
      await kubectl(['create', 'clusterrolebinding', 'rounds', '--clusterrole=rounds', `--serviceaccount=${HUB}:south`])
      await kubectl([
        '-n',
        'shop-a',
        'create',
        'role',
        'widgets',
        '--verb=get,list,watch',
        '--resource=widgets.shop.example.com',
      ])
      await kubectl([
        '-n',
        'shop-a',
        'create',
        'rolebinding',
        'widgets',
        '--role=widgets',
        `--serviceaccount=${HUB}:south`,
      ])
      const limited = (await kubectl(['-n', HUB, 'create', 'token', 'south', '--duration=1h'])).trim()
      const whole = (real.access.credentials as { token: string }).token
      await connectMember('west', whole)
      await connectMember('south', limited)

      const env = {
        REDIS_HOST: '127.0.0.1',
        REDIS_PORT: String(redis.port),
        KUBECONFIG: admin(),
        NAMESPACE: HUB,
        VM_ENABLED: 'true',
        VM_ENDPOINT: victoria.endpoint,
      }
      start(['manager', '--metrics-bind-address', '127.0.0.1:0', '--health-probe-bind-address', '127.0.0.1:0'], {
        ...env,
        DATA_DIR: join(folder, 'manager'),
        INGESTER_HOST: '127.0.0.1',
        INGESTER_PORT: String(port),
        RECONCILIATION_INTERVAL: '30',
      })
      const api = start(['api', '--host', '127.0.0.1', '--port', '0'], {
        ...env,
        TRUSTED_PROXY_SECRET: SECRET,
        ADMIN_GROUPS: 'admins',
      })
      address = (await api.says(/on (http:\/\/127\.0\.0\.1:\d+)/, SLOW_MS))[1] ?? ''
      const connect = clusterpulse(
        [
          'connect',
          'north',
          '--bearer-token',
          '--kubeconfig',
          admin(),
          '--namespace',
          HUB,
          '--address',
          `127.0.0.1:${port}`,
        ],
        { env },
      )
      expect(await connect.ended(), connect.stderr()).toBe(0)
      const line = connect.stdout().replace('npx clusterpulse', `exec ${process.execPath} ${bin}`)
      running.push(
        program('sh', ['-c', line], {
          env: { KUBECONFIG: admin(), BUFFER_DIR: join(folder, 'north'), HEALTH_ADDRESS: '127.0.0.1:0' },
          cwd: folder,
        }),
      )
      await eventually(
        async () => (await root().clusters()).items.map(({ name, nodes }) => nodes && name),
        (names) => ['north', 'south', 'west'].every((name) => names.includes(name)),
        SLOW_MS,
      )
    })
    afterAll(async () => {
      for (const role of running.reverse()) await role[Symbol.asyncDispose]()
      eyes?.disconnect()
      await kube?.[Symbol.asyncDispose]()
      await victoria?.[Symbol.asyncDispose]()
      await redis?.[Symbol.asyncDispose]()
      await real?.stop()
      await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
    })

    it('collects 1500 objects of an unknown kind in pull and in push, and its status says so', async () => {
      expect(await declared(root())).toEqual([])
      await kube.create(sources, { metadata: inHub('widgets'), spec })
      for (const cluster of ['west', 'north']) {
        const seen = await eventually(
          () => on(root(), cluster).catch(() => undefined),
          (found) => found?.part.count === wanted.length,
          SLOW_MS,
        )
        expect(seen, cluster).toMatchObject({
          truncated: false,
          filtered: false,
          outdated: false,
          errorCount: 0,
          part: { outcome: 'complete', freshness: { source: cluster === 'west' ? 'pull' : 'push' } },
          aggregations: {
            widgets: wanted.length,
            total_bytes: bytes(wanted),
            heavy_widgets: wanted.filter((i) => i % 7 >= 5).length,
            by_team: Object.fromEntries(teams.map((team, t) => [team, wanted.filter((i) => i % 3 === t).length])),
          },
        })
      }
      // One namespace may be read there: it is shown, and the others are named.
      const south = await eventually(
        () => on(root(), 'south'),
        (found) => (found?.part.count ?? 0) > 0,
        SLOW_MS,
      )
      expect(south?.part.count).toBe(wanted.filter((i) => i % 5 === 0).length)
      expect(south?.errors.map(({ namespace, outcome }) => [namespace, outcome])).toContainEqual([
        'shop-b',
        'forbidden',
      ])

      const status = await eventually(
        async () => (await kube.get(sources, inHub('widgets')))?.status as Record<string, unknown> | undefined,
        (found) => found?.clustersCollected === 3,
        SLOW_MS,
      )
      expect(status).toMatchObject({
        phase: 'Degraded',
        resourcesCollected: 2 * wanted.length + (south?.part.count ?? 0),
      })
      expect(JSON.stringify(status?.clusters)).toMatch(/south.*forbidden/)
      expect(await kubectl(['-n', HUB, 'get', 'metricsource', 'widgets'])).toMatch(/Widget\s+Degraded/)
    })

    it('pages, sorts and filters rows, and writes them as CSV', async () => {
      const heaviest = await root().customRows('west', 'widget', { sort: 'size', order: 'desc', limit: 3 })
      expect(heaviest.total).toBe(wanted.length)
      expect(heaviest.items.map(({ values }) => values.sizeMiB)).toEqual(
        wanted
          .map(sizeOf)
          .sort((a, b) => b - a)
          .slice(0, 3),
      )
      const red = await root().customRows('north', 'widget', {
        where: ['team=red', 'sizeMiB>900'],
        namespace: 'shop-a',
      })
      expect(red.total).toBe(wanted.filter((i) => i % 3 === 0 && sizeOf(i) > 900 && i % 5 === 0).length)
      const csv = await fetch(root().rowsCsvUrl('west', 'widget'), {
        headers: { 'x-clusterpulse-proxy-secret': SECRET, 'x-forwarded-user': 'root', 'x-forwarded-groups': 'admins' },
      })
      expect((await csv.text()).trim().split('\n')).toHaveLength(wanted.length + 1)
      const v1 = await fetch(`${address}/api/v1/clusters/west/custom/widget?page_size=10&sort_by=_name`, {
        headers: { 'x-clusterpulse-proxy-secret': SECRET, 'x-forwarded-user': 'root', 'x-forwarded-groups': 'admins' },
      })
      expect(await v1.json()).toMatchObject({
        resourceTypeName: 'widget',
        cluster: 'west',
        pagination: { total: wanted.length, page: 1, pageSize: 10 },
        aggregations: { widgets: wanted.length },
      })
    })

    it('shows a change within seconds, pulled and pushed', async () => {
      let isHeavy = false
      const afterMs = await leastOf(4, 15_000, async () => {
        isHeavy = !isHeavy
        const patch = { spec: { weight: isHeavy ? 6 : 0 } }
        await kube.patch(widgets, { name: 'w-0000', namespace: 'shop-a' }, patch, { kind: 'merge' })
        const from = Date.now()
        for (const cluster of ['west', 'north']) {
          await eventually(
            async () => (await root().customRows(cluster, 'widget', { q: 'w-0000' })).items[0]?.values.heavy,
            (heavy) => heavy === isHeavy,
            SLOW_MS,
          )
        }
        return Date.now() - from
      })
      expect(afterMs).toBeLessThan(15_000)
    })

    it('shows people what a policy grants, with aggregations of what they see', async () => {
      const alice = as('alice')
      await kube.create(
        policies,
        aPolicy('alice', [
          { type: 'widget', visibility: 'filtered', filters: { fields: { team: { allowed: ['red'] } } } },
        ]),
      )
      const red = wanted.filter((i) => i % 3 === 0)
      const seen = await eventually(
        () => on(alice, 'west').catch(() => undefined),
        (found) => found !== undefined,
      )
      expect(seen).toMatchObject({
        filtered: true,
        part: { count: red.length },
        aggregations: { widgets: red.length, total_bytes: bytes(red), by_team: { red: red.length } },
      })
      const rows = await alice.customRows('west', 'widget', { limit: 1000 })
      expect(new Set(rows.items.map(({ values }) => values.team))).toEqual(new Set(['red']))
      await expect(alice.typeHistory('west', 'widget', { metric: ['widgets'] })).rejects.toMatchObject({ status: 403 })
      // Whom no policy grants the type: it does not exist for them.
      const bob = as('bob')
      expect(await declared(bob)).toEqual([])
      await expect(bob.customRows('west', 'widget')).rejects.toMatchObject({ status: 404 })
    })

    it('keeps numeric aggregations over time', async () => {
      const history = await eventually(
        () =>
          root()
            .typeHistory('north', 'widget', { metric: ['widgets', 'total_bytes'], range: '15m' })
            .catch(() => undefined),
        (found) => found?.series.some(({ points }) => points.some(([, value]) => value === wanted.length)) === true,
        60_000,
      )
      expect(history?.metrics.map(({ name, unit }) => [name, unit])).toEqual([
        ['widgets', 'count'],
        ['total_bytes', 'bytes'],
      ])
    })

    it('keeps the last declaration that works, and names the place of a mistake', async () => {
      const fields = spec.fields.map((field) => (field.name === 'size' ? { ...field, path: '.spec.size[' } : field))
      await kube.patch(sources, inHub('widgets'), { spec: { fields } }, { kind: 'merge' })
      const status = await eventually(
        async () =>
          (await kube.get(sources, inHub('widgets')))?.status as { phase?: string; message?: string } | undefined,
        (found) => found?.phase === 'Error',
        SLOW_MS,
      )
      expect(status?.message).toMatch(/spec\.fields\[\d\]\.path.*"\[" is not closed/s)
      expect((await on(root(), 'west'))?.part.count).toBe(wanted.length)
      await kube.patch(sources, inHub('widgets'), { spec: { fields: spec.fields } }, { kind: 'merge' })
      await eventually(
        async () => (await kube.get(sources, inHub('widgets')))?.status as { phase?: string } | undefined,
        (found) => found?.phase === 'Degraded',
        SLOW_MS,
      )
    })

    it('can be tried from the command line against the cluster', async () => {
      const file = join(folder, 'widgets.yaml')
      await writeFile(
        file,
        JSON.stringify({
          apiVersion: 'clusterpulse.io/v1alpha1',
          kind: 'MetricSource',
          metadata: inHub('widgets'),
          spec,
        }),
      )
      const run = clusterpulse(['metricsource', 'eval', '-f', file, '--kubeconfig', admin(), '-o', 'json'])
      expect(await run.ended(), run.stderr()).toBe(0)
      const [result] = JSON.parse(run.stdout()) as [{ rows: unknown[]; aggregations: Record<string, unknown> }]
      expect(result.rows).toHaveLength(wanted.length)
      expect(result.aggregations).toMatchObject({ widgets: wanted.length, total_bytes: bytes(wanted) })
    })

    it('forgets everything when the declaration goes', async () => {
      await eventually(
        () => eyes.keys('cluster:*:custom:clusterpulse/widgets:*'),
        (keys) => keys.length > 0,
        SLOW_MS,
      )
      await kube.delete(sources, inHub('widgets'))
      await eventually(
        () => declared(root()),
        (items) => items.length === 0,
        SLOW_MS,
      )
      await eventually(
        async () => [
          ...(await eyes.keys('*clusterpulse/widgets*')),
          ...(await eyes.keys('metricsource:clusterpulse:widgets')),
        ],
        (keys) => keys.length === 0,
        SLOW_MS,
      )
    })
  },
)

const aPolicy = (user: string, resources: readonly object[]): KubeObject => ({
  metadata: { name: `for-${user}`, namespace: HUB },
  spec: {
    identity: { subjects: { users: [user] }, priority: 100 },
    access: { effect: 'Allow' },
    scope: {
      clusters: {
        rules: [{ selector: { matchNames: ['*'] }, permissions: { view: true, viewMetrics: true }, resources }],
      },
    },
  },
})

const widgetDefinition: KubeObject = {
  metadata: { name: 'widgets.shop.example.com' },
  spec: {
    group: 'shop.example.com',
    names: { kind: 'Widget', listKind: 'WidgetList', plural: 'widgets', singular: 'widget' },
    scope: 'Namespaced',
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: { spec: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
          },
        },
      },
    ],
  },
}
