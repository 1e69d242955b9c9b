import { spawnSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { generateServingCertificate } from '#apiserver'
import { type Client, type ClusterView, createClient } from '#http'
import type { MetricSourceStatus } from '#kinds'
import { createKubeClient, type KubeClient, type KubeObject, type ObjectKey, type Resource } from '#kube'
import { VictoriaMetrics, victoriaMissing } from '../../src/pipeline/history/testing/victoria-metrics.ts'
import { redisMissing, startRedis, type TestRedis } from '../../src/pipeline/state/test/redis-server.ts'
import { freePort } from '../../src/platform/runtime/testing/free-port.ts'
import { OriginalCollector } from '../original-collector.ts'
import { clusterpulse, eventually, program, type Running } from '../process.ts'
import { noRealApiServer, type RealApiServer, startRealApiServer } from '../real-apiserver.ts'

const missing = noRealApiServer() ?? redisMissing ?? victoriaMissing()
const why = process.env.CI_REQUIRE_ALL === '1' ? undefined : missing

const HUB = 'clusterpulse'
const SYSTEM = 'clusterpulse-system'
const AGENT = 'clusterpulse-collector'
const SERVER_NAME = `clusterpulse-ingester.${HUB}.svc`
const SLOW_MS = 90_000

const resource = (group: string, version: string, plural: string, kind: string, namespaced = true): Resource => ({
  group,
  version,
  plural,
  kind,
  namespaced,
})
const RBAC = 'rbac.authorization.k8s.io'
const connections = resource('clusterpulse.io', 'v1alpha1', 'clusterconnections', 'ClusterConnection')
const metricSources = resource('clusterpulse.io', 'v1alpha1', 'metricsources', 'MetricSource')
const secrets = resource('', 'v1', 'secrets', 'Secret')
const configMaps = resource('', 'v1', 'configmaps', 'ConfigMap')
const nodes = resource('', 'v1', 'nodes', 'Node', false)
const pods = resource('', 'v1', 'pods', 'Pod')
const clusterRoles = resource(RBAC, 'v1', 'clusterroles', 'ClusterRole', false)
const deployments = resource('apps', 'v1', 'deployments', 'Deployment')
const namespaces = resource('', 'v1', 'namespaces', 'Namespace', false)

/** What the hub makes on a member. */
const installed: readonly (readonly [Resource, ObjectKey])[] = [
  [namespaces, { name: SYSTEM }],
  [resource('', 'v1', 'serviceaccounts', 'ServiceAccount'), { name: AGENT, namespace: SYSTEM }],
  [clusterRoles, { name: AGENT }],
  [resource(RBAC, 'v1', 'clusterrolebindings', 'ClusterRoleBinding', false), { name: AGENT }],
  [secrets, { name: `${AGENT}-token`, namespace: SYSTEM }],
  [configMaps, { name: 'ingester-ca', namespace: SYSTEM }],
  [resource('networking.k8s.io', 'v1', 'networkpolicies', 'NetworkPolicy'), { name: AGENT, namespace: SYSTEM }],
  [deployments, { name: AGENT, namespace: SYSTEM }],
]

interface Status {
  readonly phase?: string
  readonly nodes?: number
  readonly collectorStatus?: object
  readonly conditions?: readonly { readonly type: string; readonly status: string; readonly message: string }[]
}

/** A hub of the manifests' rights, on a real API that is also its member, with Redis and VictoriaMetrics. */
describe.skipIf(why !== undefined)(`push on Kubernetes${why === undefined ? '' : ` (not run: ${why})`}`, () => {
  let folder: string
  let real: RealApiServer
  let kube: KubeClient
  let redis: TestRedis
  let victoria: VictoriaMetrics
  let eyes: Redis
  let ca: string
  let port: number
  let client: Client
  let address: string
  let scraped: number
  let manager: Running
  let agent: Running
  let readerToken: string
  const running: Running[] = []
  const inHub = (name: string) => ({ name, namespace: HUB })
  const admin = () => join(folder, 'admin.yaml')
  const certificate = { cert: () => join(folder, 'tls.crt'), key: () => join(folder, 'tls.key') }

  const kubectl = async (args: readonly string[], input?: string) => {
    const run = program('kubectl', ['--kubeconfig', admin(), ...args], input === undefined ? {} : { input })
    expect(await run.ended(), `kubectl ${args.join(' ')}: ${run.stderr()}`).toBe(0)
    return run.stdout()
  }
  const start = (args: readonly string[], env: Readonly<Record<string, string>>) => {
    const role = clusterpulse(args, { env })
    running.push(role)
    return role
  }
  /** A kubeconfig that is no more than this service account. */
  const accountOf = async (namespace: string, name: string): Promise<string> => {
    const token = (await kubectl(['-n', namespace, 'create', 'token', name, '--duration=1h'])).trim()
    const path = join(folder, `${name}.yaml`)
    await writeFile(path, real.kubeconfig.replace(/token: \S+/, `token: ${token}`), { mode: 0o600 })
    return path
  }
  /** of the CA in the folder: the next one is of the same */
  const newCertificate = async () => {
    const made = await generateServingCertificate({ hosts: [SERVER_NAME], dir: join(folder, 'ca') })
    await writeFile(certificate.key(), made.key, { mode: 0o600 })
    await writeFile(certificate.cert(), made.cert)
    return made
  }
  const startManager = async (env: Readonly<Record<string, string>>) => {
    const health = await freePort()
    manager = start(
      [
        ...['manager', '--leader-elect', '--metrics-bind-address', '127.0.0.1:0'],
        ...['--health-probe-bind-address', `127.0.0.1:${health}`],
      ],
      {
        REDIS_HOST: '127.0.0.1',
        REDIS_PORT: String(redis.port),
        KUBECONFIG: join(folder, 'clusterpulse-manager.yaml'),
        DATA_DIR: join(folder, 'manager'),
        VM_ENABLED: 'true',
        VM_ENDPOINT: victoria.endpoint,
        INGESTER_HOST: '127.0.0.1',
        INGESTER_PORT: String(port),
        INGESTER_TLS_ENABLED: 'true',
        INGESTER_TLS_CERT: certificate.cert(),
        INGESTER_TLS_KEY: certificate.key(),
        AGENT_IMAGE: 'registry.example/clusterpulse',
        ...env,
      },
    )
    await eventually(
      () => fetch(`http://127.0.0.1:${health}/readyz`),
      (answer) => answer.status === 200,
      SLOW_MS,
    )
  }
  const connection = async (name: string) => {
    const found = await kube.get(connections, inHub(name))
    if (!found) throw new Error(`there is no connection ${name}`)
    return found
  }
  const statusOf = async (name: string) => ((await connection(name)).status ?? {}) as Status
  const conditionOf = async (name: string, type: string) =>
    (await statusOf(name)).conditions?.find((condition) => condition.type === type)
  const view = (name: string) => client.cluster(name)
  const pushed = (seen: ClusterView) => seen.source === 'push' && seen.agent?.connected === true

  /** How often Deployments were applied, as the API server itself counts. */
  const appliesOf = async () => {
    const lines = (await kubectl(['get', '--raw', '/metrics'])).split('\n')
    const wanted = /^apiserver_request_total\{.*resource="deployments".*verb="(APPLY|PATCH)"/
    return lines.filter((line) => wanted.test(line)).reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
  }

  /** The agent as its Deployment says: that environment with the Secret resolved, that volume, that account. */
  const startAgent = async () => {
    const { spec } = (await kube.get(deployments, { name: AGENT, namespace: SYSTEM })) as unknown as Deployment
    const pod = spec.template.spec
    const [container] = pod.containers
    if (!container) throw new Error('the Deployment has no container')
    const mounts = new Map(container.volumeMounts.map(({ name, mountPath }) => [mountPath, join(folder, 'pod', name)]))
    for (const { name, configMap } of pod.volumes) {
      await mkdir(join(folder, 'pod', name), { recursive: true })
      const map = configMap && (await kube.get(configMaps, { name: configMap.name, namespace: SYSTEM }))
      for (const [key, text] of Object.entries((map?.data ?? {}) as Record<string, string>)) {
        await writeFile(join(folder, 'pod', name, key), text)
      }
    }
    const env: Record<string, string> = {}
    for (const { name, value, valueFrom } of container.env) {
      const mount = [...mounts].find(([path]) => value?.startsWith(path))
      if (value !== undefined) env[name] = mount ? value.replace(...mount) : value
      if (!valueFrom) continue
      const { name: of, key } = valueFrom.secretKeyRef
      const data = (await kube.get(secrets, { name: of, namespace: SYSTEM }))?.data as Record<string, string>
      env[name] = Buffer.from(data[key] ?? '', 'base64').toString()
    }
    agent = start(container.args, {
      ...env,
      KUBECONFIG: await accountOf(SYSTEM, pod.serviceAccountName),
      HEALTH_ADDRESS: '127.0.0.1:0',
    })
    return env
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'kubernetes-push-'))
    const starting = [startRealApiServer(), startRedis(), VictoriaMetrics.start(), freePort()] as const
    const [server, ...others] = await Promise.all(starting)
    if (!server) throw new Error('no real kube-apiserver')
    real = server
    ;[redis, victoria, port] = others
    eyes = new Redis({ host: '127.0.0.1', port: redis.port })
    kube = createKubeClient(real.access)
    await writeFile(admin(), real.kubeconfig)
    await mkdir(join(folder, 'ca'))
    ca = (await newCertificate()).ca

    // The manifests as they are, less what needs somebody to run pods.
    const manifests = spawnSync('kubectl', ['kustomize', 'deploy/overlays/kubernetes'], { encoding: 'utf8' }).stdout
    const kinds = /^kind: (Namespace|ServiceAccount|Role|RoleBinding|CustomResourceDefinition)$/m
    const chosen = manifests.split(/^---$/m).filter((text) => kinds.test(text))
    await kubectl(['apply', '--server-side', '-f', '-'], chosen.join('\n---\n'))
    await kubectl(['wait', '--for=condition=Established', 'crd/clusterconnections.clusterpulse.io'])
    await kubectl(['apply', '--server-side', '-f', 'deploy/member/reader.yaml'])
    await accountOf(HUB, 'clusterpulse-manager')
    await kube.create(configMaps, { metadata: inHub('ingester-ca'), data: { 'service-ca.crt': ca } })

    for (const name of ['n1', 'n2']) await kube.create(nodes, aNode(name))
    for (const [name, cpu] of Object.entries({ web: '500m', db: '1' })) {
      await kube.create(pods, aPod(name, cpu))
      await kube.patch(pods, { name, namespace: 'default' }, { status: { phase: 'Running' } }, asStatus)
    }
    readerToken = (await kubectl(['-n', HUB, 'create', 'token', 'clusterpulse-reader', '--duration=1h'])).trim()
    const data = { token: base64(readerToken), 'ca.crt': base64(real.access.ca ?? '') }
    await kube.create(secrets, { metadata: inHub('east'), type: 'Opaque', data })

    scraped = await freePort()
    const api = start(['api', '--host', '127.0.0.1', '--port', '0'], {
      API_METRICS_BIND_ADDRESS: `127.0.0.1:${scraped}`,
      REDIS_HOST: '127.0.0.1',
      REDIS_PORT: String(redis.port),
      VM_ENABLED: 'true',
      VM_ENDPOINT: victoria.endpoint,
    })
    address = (await api.says(/on (http:\/\/127\.0\.0\.1:\d+)/, SLOW_MS))[1] ?? ''
    client = createClient({ baseUrl: address })
  })
  afterAll(async () => {
    for (const role of running) await role[Symbol.asyncDispose]()
    eyes?.disconnect()
    await kube?.[Symbol.asyncDispose]()
    await victoria?.[Symbol.asyncDispose]()
    await redis?.[Symbol.asyncDispose]()
    await real?.stop()
    await rm(folder, { recursive: true, force: true })
  })

  it('is pull where the hub receives no agents, and the condition says so', async () => {
    await startManager({ INGESTER_ENABLED: 'false' })
    await kube.create(connections, {
      metadata: inHub('east'),
      spec: {
        displayName: 'East',
        collectionMode: 'push',
        ingesterAddress: `127.0.0.1:${port}`,
        endpoint: real.access.server,
        credentialsRef: { name: 'east' },
        monitoring: { interval: 30 },
      },
    })
    const seen = await eventually(
      () => view('east'),
      (east) => east.nodes?.total === 2,
      SLOW_MS,
    )
    expect(seen).toMatchObject({ source: 'pull', mode: 'pull', agent: null })
    const condition = await eventually(
      () => conditionOf('east', 'CollectorConnected'),
      (known) => known !== undefined,
    )
    expect(condition).toMatchObject({ status: 'False', message: expect.stringMatching(/receives no agents/) as string })
    expect(await kube.get(namespaces, { name: SYSTEM })).toBeUndefined()
    expect(await manager.kill('SIGTERM'), manager.stderr()).toBe(0)
  })

  it('names the right that lacks, then deploys the agent with no more than it needs', async () => {
    await startManager({})
    const lacking = await eventually(
      () => conditionOf('east', 'CollectorConnected'),
      (known) => /cannot be deployed/.test(known?.message ?? ''),
      SLOW_MS,
    )
    expect(lacking?.message).toMatch(/the account may not \w+ \w+.*; grant it/)
    expect(await kube.get(deployments, { name: AGENT, namespace: SYSTEM })).toBeUndefined()

    await kubectl(['apply', '--server-side', '-f', 'deploy/member/agent-installer.yaml'])
    const may = async (...asked: readonly string[]) => {
      const as = `--as=system:serviceaccount:${HUB}:clusterpulse-reader`
      const run = program('kubectl', ['--kubeconfig', admin(), 'auth', 'can-i', ...asked, as])
      await run.ended()
      return run.stdout().trim()
    }
    await eventually(
      () => may('patch', `deployments/${AGENT}`, '-n', SYSTEM),
      (said) => said === 'yes',
    )
    // Outside of the agent's namespace none of it, by whatever name.
    for (const asked of [
      ['patch', `deployments/${AGENT}`],
      ['create', `secrets/${AGENT}-token`],
      ['get', `secrets/${AGENT}-token`],
    ])
      expect([asked.join(' '), await may(...asked, '-n', 'kube-system')]).toEqual([asked.join(' '), 'no'])
    expect(await may('patch', `deployments/${AGENT}`, '-n', SYSTEM)).toBe('yes')
    expect(await may('patch', 'deployments/other', '-n', SYSTEM)).toBe('no')
    expect(await may('get', 'secrets/other', '-n', SYSTEM)).toBe('no')
    // A wish that changed is tried at once.
    await kube.patch(connections, inHub('east'), { spec: { collectorVersion: 'v9' } }, { kind: 'merge' })
    const deployed = await eventually(
      () => kube.get(deployments, { name: AGENT, namespace: SYSTEM }),
      (found) => found !== undefined,
      SLOW_MS,
    )
    expect(JSON.stringify(deployed)).toMatch(/registry\.example\/clusterpulse:v9/)
    const role = await kube.get(clusterRoles, { name: AGENT })
    const rules = role?.rules as { apiGroups: string[]; resources: string[]; verbs: string[] }[]
    const words = rules.flatMap(({ apiGroups, resources, verbs }) => [...apiGroups, ...resources, ...verbs])
    expect(words).toContain('nodes')
    expect(words).not.toContain('*')
    expect(words).not.toContain('secrets')
    expect(rules.flatMap(({ verbs }) => verbs).filter((verb) => !['get', 'list', 'watch'].includes(verb))).toEqual([])
    for (const [of, key] of installed) expect(await kube.get(of, key), of.kind).toBeDefined()
    // Nobody provides volumes here, which the hub sees with the rights of that file.
    const buffer = await eventually(
      () => conditionOf('east', 'BufferNotDurable'),
      (known) => known !== undefined,
      SLOW_MS,
    )
    expect(buffer).toMatchObject({
      status: 'True',
      message: expect.stringMatching(/no default StorageClass/) as string,
    })
    // The hub keeps a hash; the token itself is on the member only.
    const kept = JSON.stringify((await kube.get(secrets, inHub('east-agent')))?.data)
    const given = (await kube.get(secrets, { name: `${AGENT}-token`, namespace: SYSTEM }))?.data as { token: string }
    expect(Buffer.from(given.token, 'base64').toString()).toMatch(/^cp_east_/)
    expect(kept).not.toContain(given.token)
  })

  it('serves a collector of the original: its acks, documents and series', async () => {
    const before = await objectVersions(kube)
    const applied = await appliesOf()
    const token = 'the-token-the-hub-itself-has-for-west'
    await kube.create(secrets, { metadata: inHub('west'), type: 'Opaque', data: { token: base64(token) } })
    const spec = { displayName: 'West', collectionMode: 'push', credentialsRef: { name: 'west' } }
    await kube.create(connections, { metadata: inHub('west'), spec })
    await eventually(
      () => conditionOf('west', 'CollectorConnected'),
      (known) => known?.status === 'False',
      SLOW_MS,
    )
    const dial = (options: { readonly cluster: string; readonly token: string }) =>
      new OriginalCollector({ address: `127.0.0.1:${port}`, tls: { ca, serverName: SERVER_NAME }, ...options })

    await using wrongToken = dial({ cluster: 'west', token: 'guessed' })
    expect((await wrongToken.ended()).code).toBe(16)
    await using wrongName = dial({ cluster: 'east', token })
    expect((await wrongName.ended()).details).toMatch(/^wrong_cluster: /)
    await using collector = dial({ cluster: 'west', token })
    const from = Date.now()
    const ids = Array.from({ length: 6 }, (_, i) => `batch-${i}`)
    for (const [i, id] of ids.entries()) {
      collector.push(id, originalBatch(i), from - (ids.length - i) * 5_000)
      collector.health(0)
    }
    const acks = await collector.acked(ids.length)
    expect(acks.map(({ batchId, success, error }) => [batchId, success, error])).toEqual(
      ids.map((id) => [id, true, '']),
    )
    expect({ unknown: collector.unknown, configs: collector.configs }).toEqual({ unknown: 0, configs: [] })

    const seen = await eventually(
      () => view('west'),
      (west) => west.source === 'push' && west.nodes?.total === 2 && west.pods?.running === 25,
      SLOW_MS,
    )
    expect(seen).toMatchObject({
      agent: { connected: true, protocol: 'original', version: 'v0.9.1', tls: true },
      health: 'healthy',
      namespaces: 3,
      facts: { version: 'v1.27.3' },
      operators: { total: 1 },
    })
    await eventually(
      () => statusOf('west'),
      ({ collectorStatus }) =>
        JSON.stringify(collectorStatus)?.includes('"authentication":"connection-token"') === true,
      SLOW_MS,
    )
    const documented = await fetch(`${address}/api/v1/clusters/west/nodes`)
    expect(JSON.stringify(await documented.json())).toMatch(/old-1.*old-2/)
    const document = async (key: string) => JSON.parse((await eyes.get(`cluster:west:${key}`)) ?? 'null')
    // Documents are written behind.
    await vi.waitFor(
      async () => {
        expect(await document('status')).toMatchObject({ health: 'healthy' })
        expect(await document('metrics')).toMatchObject({ nodes: 2, pods: 30, pods_running: 25 })
        expect((await eyes.smembers('cluster:west:nodes')).sort()).toEqual(['old-1', 'old-2'])
        expect(await eyes.hget('cluster:west:node:old-1', 'current')).toMatch(/"cpu_requested":1.5/)
        expect(await eyes.sismember('clusters:all', 'west')).toBe(1)
      },
      { timeout: SLOW_MS, interval: 200 },
    )

    const series = await eventually(
      () => victoria.export('{cluster="west"}'),
      (found) => find(found, 'clusterpulse_cluster_nodes_total')?.timestamps.length === ids.length,
      SLOW_MS,
    )
    for (const [metric, { node, operator }] of documentedSeries) {
      const key = { ...(node && { node }), ...(operator && { operator }) }
      const found = series.find((one) => one.metric.__name__ === metric && contains(one.metric, key))
      expect(found?.metric, metric).toEqual({ __name__: metric, cluster: 'west', ...key })
    }
    const requested = series.find((one) => one.metric.__name__ === 'clusterpulse_node_cpu_requested')
    // At the times the collector said, each once; by its clock, which looks behind where all it says comes late.
    const lateMs = [...(requested?.timestamps ?? [])].sort().map((at, i) => at - (from - (ids.length - i) * 5_000))
    expect(lateMs).toHaveLength(ids.length)
    for (const late of lateMs) expect(late === 0 || (late >= 1_000 && late < 15_000), String(lateMs)).toBe(true)

    // Meanwhile the hub looked at east's objects again, and found nothing to change.
    await eventually(appliesOf, (count) => count > applied, SLOW_MS)
    expect(await objectVersions(kube)).toEqual(before)
  })

  it('receives the agent it deployed: page, status and columns say so', async () => {
    const env = await startAgent()
    expect(env).toMatchObject({
      CLUSTER_NAME: 'east',
      INGESTER_ADDRESS: `127.0.0.1:${port}`,
      INGESTER_TLS_ENABLED: 'true',
      INGESTER_TLS_SERVER_NAME: SERVER_NAME,
      COLLECT_INTERVAL: '30',
    })
    const seen = await eventually(() => view('east'), pushed, SLOW_MS).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${agent.stderr()}`)
    })
    expect(seen).toMatchObject({ mode: 'push', health: 'healthy', agent: { tls: true, protocol: 1, lostBatches: 0 } })
    expect(seen).toMatchObject({ nodes: { total: 2, ready: 2 }, cpuCores: { requested: 1.5 } })
    const status = await eventually(
      () => statusOf('east'),
      ({ collectorStatus }) => JSON.stringify(collectorStatus).includes('"delivering":true'),
      SLOW_MS,
    )
    expect(status).toMatchObject({
      phase: 'Connected',
      nodes: 2,
      collectorStatus: { connected: true, delivering: true, authentication: 'token' },
    })
    const table = await kubectl(['-n', HUB, 'get', 'clusterconnections', '-o', 'wide'])
    expect(table).toMatch(/MODE +AGENT +NODES/)
    expect(table).toMatch(/east +East .*Connected +healthy .*push +true +2 /)
    const [, probes] = /"port":(\d+)/.exec(agent.stderr()) ?? []
    expect((await fetch(`http://127.0.0.1:${probes}/readyz`)).status).toBe(200)
    const measured = await fetch(`http://127.0.0.1:${scraped}/metrics`)
    expect([measured.status, await measured.text()]).toEqual([200, expect.stringMatching(/role="api"/)])
    // The page and the API are not there: who may scrape need not be signed in.
    expect((await fetch(`http://127.0.0.1:${scraped}/api/v2/clusters`)).status).toBe(404)
  })

  it('shows a renewed certificate without a restart, and keeps the streams', async () => {
    const shown = () => shownBy(port)
    const before = await shown()
    const { since } = (await view('east')).agent ?? {}
    const made = await newCertificate()
    expect(made.ca).toBe(ca)
    const renewed = new X509Certificate(made.cert).fingerprint256
    expect(renewed).not.toBe(before)
    expect(await eventually(shown, (fingerprint) => fingerprint !== before, SLOW_MS)).toBe(renewed)
    expect((await view('east')).agent).toMatchObject({ connected: true, since })
  })

  it('ends a revoked stream, reads by itself, deploys a new token, and history has no hole and no double', async () => {
    const ways = () => victoria.export('{__name__=~"clusterpulse_batch_.+",cluster="east"}')
    // One of its batches is in history as pushed: the first lay beside what the hub had just read.
    await eventually(
      ways,
      (found) => found.some(({ metric }) => metric.__name__ === 'clusterpulse_batch_pushed'),
      SLOW_MS,
    )
    const { resourceVersion } = (await kube.get(deployments, { name: AGENT, namespace: SYSTEM }))?.metadata ?? {}
    await kube.delete(secrets, inHub('east-agent'))
    const away = await eventually(
      () => view('east'),
      ({ agent: known }) => known?.connected === false,
      20_000,
    )
    expect(away.agent?.reason).toMatch(/no longer valid/)
    await eventually(
      () => view('east'),
      ({ source }) => source === 'pull',
      SLOW_MS,
    )
    await eventually(
      () => kube.get(deployments, { name: AGENT, namespace: SYSTEM }),
      (found) => found?.metadata.resourceVersion !== resourceVersion,
      SLOW_MS,
    )
    // What the Deployment's controller would do.
    expect(await agent.kill('SIGTERM'), agent.stderr()).toBe(0)
    await startAgent()
    const back = await eventually(() => view('east'), pushed, SLOW_MS)
    expect(back.agent?.lostBatches).toBe(0)
    await eventually(
      () => view('east'),
      ({ agent: known }) => known?.bufferedBatches === 0,
      SLOW_MS,
    )

    const until = Date.now()
    const found = await eventually(
      () => victoria.export('clusterpulse_cluster_nodes_total{cluster="east"}'),
      ([one]) => Math.max(...(one?.timestamps ?? [0])) > until,
      SLOW_MS,
    )
    const times = found.flatMap(({ timestamps }) => timestamps).sort((a, b) => a - b)
    expect(new Set(times).size).toBe(times.length)
    const gaps = times.slice(1).map((at, i) => at - (times[i] ?? at))
    expect(Math.max(...gaps), `${times.map((at) => at - until)}`).toBeLessThan(60_000)
    expect(found.flatMap(({ values }) => values).filter((value) => value !== 2)).toEqual([])
    const sorts = await ways()
    expect(sorts.map(({ metric }) => metric.__name__)).toContain('clusterpulse_batch_pulled')
    expect(sorts.reduce((sum, { timestamps }) => sum + timestamps.length, 0)).toBe(times.length)
  })

  it('answers history and PromQL out of VictoriaMetrics, by the api', async () => {
    const history = await eventually(
      async () =>
        (await (
          await fetch(`${address}/api/v1/clusters/east/metrics/history?metric=nodes_total,cpu_requested&range=15m`)
        ).json()) as { series: { points: [number, number | null][] }[] },
      ({ series }) => series.length === 2,
      SLOW_MS,
    )
    const [total, requested] = history.series.map(({ points }) => new Set(points.map(([, value]) => value)))
    expect(total).toContain(2)
    expect(requested).toContain(1.5)
    await eventually(
      async () =>
        await (
          await fetch(`${address}/api/v1/clusters/east/nodes/n1/metrics/history?metric=cpu_requested&range=15m`)
        ).text(),
      (node) => /1\.5/.test(node),
      SLOW_MS,
    )
    const query = async (text: string) => {
      const answer = await fetch(`${address}/api/v1/query?query=${encodeURIComponent(text)}`)
      return (await answer.json()) as { data?: { result?: { metric: object; value: [number, string] }[] } }
    }
    // VictoriaMetrics itself answers with what is half a minute old.
    const { data } = await eventually(
      () => query('sum by (cluster) (clusterpulse_node_cpu_requested)'),
      (answer) => answer.data?.result?.length === 2,
      SLOW_MS,
    )
    const values = new Map(data?.result?.map(({ metric, value }) => [JSON.stringify(metric), value[1]]))
    expect(values.get('{"cluster":"east"}')).toBe('1.5')
  })

  it('names in a source what the hub may not let its agent read, also after a restart as two, and no more once it may', {
    tags: ['long'],
  }, async () => {
    const declareSource = (name: string, kind: string) =>
      kube.create(metricSources, {
        metadata: inHub(name),
        spec: {
          source: { apiVersion: 'v1', kind },
          fields: [{ name: 'created', path: '.metadata.creationTimestamp', type: 'timestamp' }],
          collection: { intervalSeconds: 30 },
          rbac: { resourceTypeName: name },
        },
      })
    const sourceStatus = async (name: string) =>
      ((await kube.get(metricSources, inHub(name)))?.status ?? {}) as MetricSourceStatus
    const phaseOf = (name: string, phase: string) =>
      eventually(
        () => sourceStatus(name),
        (status) => status.phase === phase,
        SLOW_MS,
      )
    const roleHolds = async (plural: string) =>
      JSON.stringify((await kube.get(clusterRoles, { name: AGENT }))?.rules).includes(`"${plural}"`)
    const grant = async (plural: string) => {
      await kubectl(['create', 'clusterrole', `give-${plural}`, '--verb=get,list', `--resource=${plural}`])
      const account = `--serviceaccount=${HUB}:clusterpulse-reader`
      await kubectl(['create', 'clusterrolebinding', `give-${plural}`, `--clusterrole=give-${plural}`, account])
    }
    await grant('resourcequotas')
    await declareSource('maps', 'ConfigMap')
    await declareSource('quotas', 'ResourceQuota')
    const right = 'get, list configmaps'
    const refused = (status: MetricSourceStatus) => status.clusters?.[0]?.reason === 'role_not_granted'
    const named = await eventually(() => sourceStatus('maps'), refused, SLOW_MS).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${manager.stderr()}`)
    })
    expect(named).toMatchObject({ phase: 'Error', clusters: [{ name: 'east', collected: false, errors: 1 }] })
    const said = `the hub may not give it "${right}": system:serviceaccount:${HUB}:clusterpulse-reader does not hold that right there itself; grant "${right}" to it on the member`
    expect(named.clusters?.[0]?.message).toContain(said)
    expect(named.message).toContain(said)
    // One that is refused costs the others nothing.
    await phaseOf('quotas', 'Active')
    expect([await roleHolds('resourcequotas'), await roleHolds('configmaps')]).toEqual([true, false])

    expect(await manager.kill('SIGTERM'), manager.stderr()).toBe(0)
    await startManager({ MANAGER_PROCESSES: '2' })
    const restartedAt = new Date(Date.now() - 1000).toISOString()
    await eventually(
      () => sourceStatus('maps'),
      (status) => refused(status) && String(status.lastCollectionTime) >= restartedAt,
      SLOW_MS,
    )

    await grant('configmaps')
    await eventually(() => roleHolds('configmaps'), Boolean, SLOW_MS)
    const healed = await phaseOf('maps', 'Active')
    expect(healed.errorsLastRun).toBe(0)
    expect(JSON.stringify(healed.clusters)).not.toContain('grant')
  })

  it('takes everything away with the connection', async () => {
    expect((await connection('east')).metadata.finalizers).toHaveLength(1)
    for (const name of ['west', 'east']) await kube.delete(connections, inHub(name))
    for (const name of ['west', 'east']) {
      await eventually(
        () => kube.get(connections, inHub(name)),
        (found) => found === undefined,
        SLOW_MS,
      )
    }
    for (const [of, key] of installed) {
      const left = await kube.get(of, key)
      // It was there before: made by the file that lets the hub in.
      if (of === namespaces) expect(left?.metadata.deletionTimestamp).toBeUndefined()
      else expect(left, of.kind).toBeUndefined()
    }
    expect(await kube.get(secrets, inHub('east-agent'))).toBeUndefined()
    await eventually(
      () => client.clusters(),
      ({ total }) => total === 0,
      SLOW_MS,
    )
    expect(await manager.kill('SIGTERM'), manager.stderr()).toBe(0)
    const errors = manager
      .stderr()
      .split('\n')
      .filter((line) => line.includes('"level":"error"'))
    expect(errors).toEqual([])
  })
})

interface Deployment {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly serviceAccountName: string
        readonly volumes: readonly { readonly name: string; readonly configMap?: { readonly name: string } }[]
        readonly containers: readonly {
          readonly args: readonly string[]
          readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[]
          readonly env: readonly {
            readonly name: string
            readonly value?: string
            readonly valueFrom?: { readonly secretKeyRef: { readonly name: string; readonly key: string } }
          }[]
        }[]
      }
    }
  }
}

const base64 = (text: string) => Buffer.from(text).toString('base64')
const asStatus = { kind: 'merge', subresource: 'status' } as const

const aNode = (name: string): KubeObject => ({
  metadata: { name },
  status: {
    capacity: { cpu: '4', memory: '8Gi', pods: '110' },
    allocatable: { cpu: '4', memory: '8Gi', pods: '110' },
    conditions: [{ type: 'Ready', status: 'True' }],
    nodeInfo: { kubeletVersion: 'v1.30.0', architecture: 'amd64', osImage: 'Linux' },
  },
})

const aPod = (name: string, cpu: string): KubeObject => ({
  metadata: { name, namespace: 'default' },
  spec: { nodeName: 'n1', containers: [{ name, image: 'registry.example/x', resources: { requests: { cpu } } }] },
})

/** A batch as the original makes it; the number of running pods rises with `i`. */
const originalBatch = (i: number) => ({
  clusterMetrics: {
    nodes: 2,
    nodesReady: 2,
    namespaces: 3,
    namespaceList: ['default', 'kube-system', 'shop'],
    pods: 30,
    podsRunning: 20 + i,
    cpuCapacity: 8,
    memoryCapacity: 2 ** 34,
    deployments: 4,
  },
  nodeMetrics: ['old-1', 'old-2'].map((name) => ({
    name,
    status: 'Ready',
    roles: ['worker'],
    cpuCapacity: 4,
    memoryCapacity: 2 ** 33,
    storageCapacity: 2 ** 36,
    podsCapacity: 110,
    cpuAllocatable: 3.5,
    memoryAllocatable: 2 ** 32,
    storageAllocatable: 2 ** 35,
    podsAllocatable: 110,
    cpuRequested: 1.5,
    memoryRequested: 2 ** 30,
    cpuUsagePercent: 42.86,
    memoryUsagePercent: 25,
    podsTotal: 15,
    podsRunning: 10 + (name === 'old-1' ? i : 0),
    kubeletVersion: 'v1.27.3',
    hostname: name,
  })),
  operators: [{ name: 'web-terminal.v1.9', displayName: 'Web Terminal', version: '1.9', status: 'Succeeded' }],
  clusterOperators: [{ name: 'dns', version: '4.14', available: true, upgradeable: true }],
  clusterInfo: { apiUrl: '', version: 'v1.27.3', platform: 'Kubernetes' },
})

const clusterMetrics = [
  ...['nodes_total', 'nodes_ready', 'pods_total', 'pods_running', 'cpu_capacity', 'memory_capacity_bytes'],
  // A count of deployments without their names is not kept.
  ...['namespaces_total', 'operators_total', 'operators_count'],
]
const nodeMetrics = [
  ...['cpu_usage_percent', 'memory_usage_percent', 'pods_total', 'pods_running', 'cpu_capacity'],
  ...['memory_capacity_bytes', 'storage_capacity_bytes', 'pods_capacity', 'cpu_allocatable'],
  ...['memory_allocatable_bytes', 'storage_allocatable_bytes', 'pods_allocatable', 'cpu_requested'],
  ...['memory_requested_bytes', 'pods_pending', 'pods_failed', 'pods_succeeded'],
]
const documentedSeries: readonly (readonly [string, { readonly node?: string; readonly operator?: string }])[] = [
  ...clusterMetrics.map((name) => [`clusterpulse_cluster_${name}`, {}] as const),
  ...nodeMetrics.map((name) => [`clusterpulse_node_${name}`, { node: 'old-2' }] as const),
  ['clusterpulse_operator_installed', { operator: 'web-terminal.v1.9' }],
  ...['available', 'progressing', 'degraded', 'upgradeable'].map(
    (name) => [`clusterpulse_cluster_operator_${name}`, { operator: 'dns' }] as const,
  ),
]

interface Exported {
  readonly metric: Readonly<Record<string, string>>
  readonly timestamps: readonly number[]
}
const find = (all: readonly Exported[], name: string) => all.find(({ metric }) => metric.__name__ === name)
const contains = (metric: Exported['metric'], part: Readonly<Record<string, string>>) =>
  Object.entries(part).every(([key, value]) => metric[key] === value)

async function objectVersions(kube: KubeClient): Promise<readonly string[]> {
  return Promise.all(
    installed.map(async ([of, key]) => `${of.kind} ${(await kube.get(of, key))?.metadata.resourceVersion}`),
  )
}

/** Fingerprint of the certificate that is shown on a port. */
function shownBy(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['h2'] }, () => {
      resolve(socket.getPeerX509Certificate()?.fingerprint256 ?? '')
      socket.destroy()
    })
    socket.once('error', reject)
  })
}
