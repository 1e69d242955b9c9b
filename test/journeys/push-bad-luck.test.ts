import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Agent, type AgentStatus, grpcTransport } from '#agent'
import { type ApiListener, type ApiObject, ApiServer, listenApi } from '#apiserver'
import { type Client, createClient } from '#http'
import { clusterConnection } from '#kinds'
import { type Clock, parseClusterName, systemClock } from '#model'
import { aliveClient, countingCollector } from '../../src/pipeline/agent/testing/small-cluster.ts'
import { VictoriaMetrics, victoriaMissing } from '../../src/pipeline/history/testing/victoria-metrics.ts'
import { redisMissing, startRedis, type TestRedis } from '../../src/pipeline/state/test/redis-server.ts'
import { freePort } from '../../src/platform/runtime/testing/free-port.ts'
import { clusterpulse, eventually, type Running } from '../process.ts'
import { type SmallDisk, smallDisk } from '../small-disk.ts'
import { UnkindProxy } from '../unkind-proxy.ts'
import { WirePusher } from '../wire-pusher.ts'

const missing = redisMissing ?? victoriaMissing()
const why = process.env.CI_REQUIRE_ALL === '1' ? undefined : missing

const HUB = 'clusterpulse'
const SLOW_MS = 90_000
const YEARS_MS = 5 * 365 * 86_400_000
const tokenOf = (cluster: string) => `the-token-of-${cluster}`

const disk = (mebibytes: number) => (why === undefined ? smallDisk(mebibytes) : why)
const [hubDisk, agentDisk] = [disk(64), disk(24)]
const noDisk = typeof hubDisk === 'string' ? hubDisk : typeof agentDisk === 'string' ? agentDisk : undefined
const notHere = noDisk === undefined ? '' : ` (not run: ${noDisk})`

/** `manager` and `api` with a real Redis and a real VictoriaMetrics, and agents that push whatever happens. */
describe.skipIf(why !== undefined)(`push in bad luck${why === undefined ? '' : ` (not run: ${why})`}`, () => {
  let folder: string
  let objects: ApiServer
  let listener: ApiListener
  let redis: TestRedis
  let victoria: VictoriaMetrics
  let proxy: UnkindProxy
  let manager: Running | undefined
  let api: Running
  let client: Client
  let address: string
  let members: Running
  let port: number
  let health: number
  const running: Running[] = []
  const pushers = new Map<string, WirePusher>()
  const dataDir = () => (typeof hubDisk === 'string' ? join(folder, 'manager') : hubDisk.path)

  const declare = async (cluster: string) => {
    const metadata = { name: cluster, namespace: HUB }
    const data = { token: Buffer.from(tokenOf(cluster)).toString('base64') }
    await objects.objects.put({ apiVersion: 'v1', kind: 'Secret', type: 'Opaque', metadata, data })
    const spec = { collectionMode: 'push', credentialsRef: { name: cluster } }
    const { apiVersion, kind } = clusterConnection
    await objects.objects.create({ apiVersion, kind, metadata, spec } as unknown as ApiObject)
  }
  const start = (args: readonly string[], env: Readonly<Record<string, string>>) => {
    const role = clusterpulse(args, { env })
    running.push(role)
    return role
  }
  const startManager = () => {
    manager = start(
      ['manager', '--metrics-bind-address', '127.0.0.1:0', '--health-probe-bind-address', `127.0.0.1:${health}`],
      {
        REDIS_HOST: '127.0.0.1',
        REDIS_PORT: String(redis.port),
        KUBECONFIG: join(folder, 'hub.yaml'),
        DATA_DIR: dataDir(),
        VM_ENABLED: 'true',
        VM_ENDPOINT: proxy.endpoint,
        INGESTER_HOST: '127.0.0.1',
        INGESTER_PORT: String(port),
        LOG_LEVEL: 'warn',
      },
    )
  }
  const managerSays = async () => {
    const answer = await fetch(`http://127.0.0.1:${health}/readyz`)
    return { status: answer.status, text: await answer.text() }
  }
  const whenReady = () => {
    if (!manager) startManager()
    return eventually(managerSays, ({ status }) => status === 200, SLOW_MS)
  }
  /** An agent that pushes for this cluster; it is connected. */
  const pusherOf = async (cluster: string) => {
    await whenReady()
    await declare(cluster)
    const pusher = new WirePusher({ host: '127.0.0.1', port, cluster, token: tokenOf(cluster) })
    pushers.set(cluster, pusher)
    await connected(pusher)
    return pusher
  }
  const until = (promise: () => boolean, withinMs = SLOW_MS) =>
    eventually(
      async () => promise(),
      (yes) => yes,
      withinMs,
    )
  const connected = (pusher: WirePusher) => until(() => pusher.isConnected)
  /** every batch is acknowledged, and none was refused */
  const safe = async (pusher: WirePusher) => {
    await eventually(
      async () => pusher.unsafe,
      (unsafe) => unsafe.length === 0,
      SLOW_MS,
    )
    expect(pusher.refusals).toEqual([])
  }
  const samplesOf = async (cluster: string, metric: string) => {
    const found = await victoria.export(`${metric}{cluster="${cluster}"}`)
    return found.flatMap(({ timestamps, values }) =>
      timestamps.map((at, i) => ({ at, value: values[i] ?? Number.NaN })),
    )
  }
  /** Each number is in VictoriaMetrics, once, and the newest is what the page shows. */
  const arrived = async (cluster: string, { numbers }: WirePusher) => {
    const found = await eventually(
      () => samplesOf(cluster, 'clusterpulse_node_cpu_requested'),
      (samples) => new Set(samples.map(({ value }) => value)).size === numbers.length,
      SLOW_MS,
    )
    expect(found.map(({ value }) => value).sort((a, b) => a - b)).toEqual(numbers)
    await eventually(
      () => client.cluster(cluster),
      (seen) => seen.cpuCores.requested === numbers.at(-1),
      SLOW_MS,
    )
  }
  const agentEnv = (cluster: string, buffer: string) => ({
    CLUSTER_NAME: cluster,
    INGESTER_ADDRESS: `127.0.0.1:${port}`,
    COLLECTOR_TOKEN: tokenOf(cluster),
    COLLECT_INTERVAL: '1',
    KUBECONFIG: join(folder, 'member.yaml'),
    BUFFER_DIR: buffer,
    HEALTH_ADDRESS: '127.0.0.1:0',
  })
  const healthOf = async (agent: Running) => {
    const [, at] = /"port":(\d+)/.exec(agent.stderr()) ?? []
    const answer = await fetch(`http://127.0.0.1:${at}/healthz`)
    return (await answer.json()) as {
      status: string
      hub: string
      bufferedBatches: number
      lostBatches: number
      buffer?: string
    }
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'push-bad-luck-'))
    ;[redis, victoria, port, health] = await Promise.all([
      startRedis(),
      VictoriaMetrics.start(),
      freePort(),
      freePort(),
    ])
    proxy = await UnkindProxy.before(victoria.endpoint)
    objects = await ApiServer.open({ storage: { kind: 'memory' }, name: 'hub' })
    await objects.objects.put(clusterConnection.crd() as unknown as ApiObject)
    await objects.objects.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: HUB } })
    const token = 'hub'
    listener = await listenApi({
      tokens: [{ token, user: 'hub', groups: ['system:masters'] }],
      mounts: new Map([['', objects]]),
    })
    await writeFile(join(folder, 'hub.yaml'), listener.kubeconfig({ context: 'hub', token }))
    members = start(
      ['simulate', '--clusters', '1', '--nodes', '2', '--pods', '10', '--kubeconfig-out', join(folder, 'member.yaml')],
      {},
    )
    await members.says(/kubeconfig in/, SLOW_MS)
    api = start(['api', '--host', '127.0.0.1', '--port', '0'], {
      REDIS_HOST: '127.0.0.1',
      REDIS_PORT: String(redis.port),
      VM_ENABLED: 'true',
      VM_ENDPOINT: proxy.endpoint,
    })
    address = (await api.says(/on (http:\/\/127\.0\.0\.1:\d+)/, SLOW_MS))[1] ?? ''
    client = createClient({ baseUrl: address })
  })
  afterEach(({ task }) => {
    proxy.be('pass')
    if (task.result?.state === 'fail')
      process.stderr.write(`the manager of "${task.name}":\n${manager?.stderr().slice(-6000)}\n`)
  })
  afterAll(async () => {
    for (const pusher of pushers.values()) await pusher[Symbol.asyncDispose]()
    for (const role of running) await role[Symbol.asyncDispose]()
    await proxy?.[Symbol.asyncDispose]()
    await listener?.[Symbol.asyncDispose]()
    await objects?.[Symbol.asyncDispose]()
    await victoria?.[Symbol.asyncDispose]()
    await redis?.[Symbol.asyncDispose]()
    for (const disk of [hubDisk, agentDisk]) if (typeof disk !== 'string') disk.unmount()
    await rm(folder, { recursive: true, force: true })
  })

  it.skipIf(notHere !== '')(`an agent whose disk is full goes on, says so, heals, and delivers${notHere}`, async () => {
    const disk = agentDisk as SmallDisk
    const agent = start(['agent'], agentEnv('small', disk.path))
    const says = (promise: (health: Awaited<ReturnType<typeof healthOf>>) => boolean) =>
      eventually(() => healthOf(agent), promise, SLOW_MS)
    await says(({ bufferedBatches }) => bufferedBatches >= 2)
    disk.fill()
    const { buffer } = await says(({ status }) => status === 'degraded')
    expect(buffer).toMatch(/space|full/)
    const { bufferedBatches: then } = await healthOf(agent)
    await says(({ bufferedBatches }) => bufferedBatches >= then + 2)
    disk.empty()
    await says(({ status }) => status === 'ok')

    // The hub comes only now: everything that was collected meanwhile is for it.
    await declare('small')
    startManager()
    await whenReady()
    await says(({ hub, bufferedBatches }) => hub === 'connected' && bufferedBatches === 0)
    const { lostBatches } = await healthOf(agent)
    expect(lostBatches).toBe(0)
    const found = await eventually(
      () => samplesOf('small', 'clusterpulse_cluster_nodes_total'),
      (samples) => samples.length > then + 2,
      SLOW_MS,
    )
    const times = found.map(({ at }) => at).sort((a, b) => a - b)
    expect(new Set(times).size).toBe(times.length)
    expect(await agent.kill('SIGTERM'), agent.stderr()).toBe(0)
  })

  it('acknowledges while VictoriaMetrics refuses, is busy, hangs or is killed; all is there once afterwards', async () => {
    const pusher = await pusherOf('steady')
    pusher.push(3)
    await safe(pusher)
    await arrived('steady', pusher)
    for (const mood of [400, 503, 'hang'] as const) {
      const before = proxy.refused
      proxy.be(mood)
      pusher.push(5)
      await safe(pusher)
      await until(() => proxy.refused > before)
    }
    const answer = await fetch(`${address}/api/v1/clusters/steady/metrics/history?metric=nodes_total&range=15m`, {
      signal: AbortSignal.timeout(60_000),
    })
    expect([503, 504], `${await answer.text()} ${api.stderr()}`).toContain(answer.status)
    proxy.be('pass')
    pusher.push(5)
    await safe(pusher)
    // With what it took and has not on its disk yet.
    await victoria.kill()
    pusher.push(5)
    await safe(pusher)
    await victoria.start()
    pusher.push(2)
    await safe(pusher)
    await arrived('steady', pusher)
  })

  it('acknowledges while Redis is away, and fills it again when it comes back empty', async () => {
    const pusher = await pusherOf('kept')
    pusher.push(2)
    await safe(pusher)
    await arrived('kept', pusher)
    await redis.kill()
    pusher.push(5)
    await safe(pusher)
    const away = await eventually(managerSays, ({ status }) => status === 503, SLOW_MS)
    expect(away.text).toMatch(/redis: /)
    await redis.start()
    pusher.push(2)
    await safe(pusher)
    await arrived('kept', pusher)
    await whenReady()
    // Those that did not push meanwhile are there as well.
    await expect.poll(async () => (await client.cluster('steady')).nodes?.total).toBe(1)
    // And where it is emptied under a manager and an agent that go on.
    const hand = new Redis({ host: '127.0.0.1', port: redis.port })
    await hand.flushall()
    hand.disconnect()
    pusher.push(2)
    await safe(pusher)
    await arrived('kept', pusher)
    await eventually(
      () => client.cluster('steady'),
      ({ nodes }) => nodes?.total === 1,
      SLOW_MS,
    )
  })

  it.skipIf(notHere !== '')(
    `holds agents back while its own disk is full, says so, and loses nothing${notHere}`,
    async () => {
      const disk = hubDisk as SmallDisk
      const pusher = await pusherOf('patient')
      pusher.push(3)
      await safe(pusher)
      disk.fill()
      pusher.push(40)
      await eventually(managerSays, ({ text }) => /space|full/.test(text), SLOW_MS)
      expect(pusher.unsafe.length).toBeGreaterThan(0)
      disk.empty()
      await safe(pusher)
      await arrived('patient', pusher)
      await whenReady()
    },
  )

  it('is killed between writing and acknowledging, again and again, and has everything once', {
    tags: ['long'],
  }, async () => {
    const pusher = await pusherOf('survivor')
    for (let cycle = 0; cycle < 5; cycle++) {
      await connected(pusher)
      const { streams } = pusher
      const until = Date.now() + Math.random() * 60
      do {
        pusher.push(2)
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 10))
      } while (Date.now() < until)
      await manager?.kill('SIGKILL')
      startManager()
      await eventually(
        async () => pusher.streams,
        (now) => now > streams,
        SLOW_MS,
      )
    }
    await safe(pusher)
    await arrived('survivor', pusher)
    // What others had delivered before is neither gone nor doubled.
    for (const [cluster, other] of pushers) await arrived(cluster, other)
  })

  it('puts right what agents say whose clocks are years off', async () => {
    await whenReady()
    await Promise.all(
      [YEARS_MS, -YEARS_MS].map(async (offMs, i) => {
        const cluster = `clock-${i}`
        const clock: Clock = { ...systemClock, now: () => systemClock.now() + offMs }
        let rounds = 0
        let mayConnect: (token: string) => void = () => undefined
        const token = new Promise<string>((resolve) => {
          mayConnect = resolve
        })
        const directory = join(folder, cluster)
        await mkdir(directory)
        const from = Date.now()
        await using agent = await Agent.open({
          cluster: parseClusterName(cluster),
          version: '1.0.0',
          transport: grpcTransport({ address: `127.0.0.1:${port}`, token: () => token }),
          token: () => token,
          kube: () => aliveClient(),
          directory,
          plan: { intervalMs: 200 },
          collectors: [countingCollector((count) => (rounds = count))],
          clock,
        })
        await until(() => rounds >= 6)
        await declare(cluster)
        mayConnect(tokenOf(cluster))
        const delivered = ({ uplink, buffer }: AgentStatus) => uplink.phase === 'live' && buffer.batches === 0
        await until(() => delivered(agent.status()))
        const seen = await eventually(
          () => client.cluster(cluster),
          (view) => view.agent?.connected === true && view.source === 'push' && view.checkedAt !== null,
          SLOW_MS,
        )
        expect(Math.abs((seen.agent?.clockOffsetMs ?? 0) - offMs)).toBeLessThan(60_000)
        expect(Math.abs((seen.checkedAt ?? 0) - Date.now())).toBeLessThan(60_000)
        const found = await eventually(
          () => samplesOf(cluster, 'clusterpulse_cluster_namespaces_total'),
          (samples) => samples.length >= 6,
          SLOW_MS,
        )
        const times = found.map(({ at }) => at).sort((a, b) => a - b)
        expect(new Set(times).size).toBe(times.length)
        expect(times[0]).toBeGreaterThan(from - 5_000)
        expect(times.at(-1)).toBeLessThanOrEqual(Date.now())
      }),
    )
  })

  it('tells two agents with one identity from one, serves one at a time, and keeps each sample once', async () => {
    await whenReady()
    await declare('twin')
    const first = start(['agent'], agentEnv('twin', join(folder, 'twin-1')))
    await eventually(
      () => healthOf(first),
      ({ hub }) => hub === 'connected',
      SLOW_MS,
    )
    const second = start(['agent'], agentEnv('twin', join(folder, 'twin-2')))
    const doubted = await eventually(
      () => client.cluster('twin'),
      ({ agent }) => /two agents/.test(agent?.reason ?? ''),
      SLOW_MS,
    )
    expect(doubted.agent?.connected).toBe(true)
    expect(await second.kill('SIGTERM'), second.stderr()).toBe(0)
    await eventually(
      () => healthOf(first),
      ({ hub, bufferedBatches }) => hub === 'connected' && bufferedBatches === 0,
      SLOW_MS,
    )
    const found = await eventually(
      () => samplesOf('twin', 'clusterpulse_cluster_nodes_total'),
      (samples) => samples.length > 0,
      SLOW_MS,
    )
    expect(new Set(found.map(({ at }) => at)).size).toBe(found.length)
    expect(await first.kill('SIGTERM'), first.stderr()).toBe(0)
    expect(await manager?.kill('SIGTERM'), manager?.stderr()).toBe(0)
  })
})
