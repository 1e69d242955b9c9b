/**
 * A hub of several owners as people run it, for journeys: a Kubernetes API for its objects, Redis, VictoriaMetrics, `api`, and
 * `manager` as often as it is started. Its clusters are chosen so that each of three owners has two that are pulled and two
 * that push, one of which by a WirePusher, of which every batch is known.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { expect } from 'vitest'
import { type ApiObject, ApiServer, listenApi } from '#apiserver'
import { type Client, type ClusterView, createClient } from '#http'
import { kinds } from '#kinds'
import { type ClusterAccess, createKubeClient, type KubeClient, type KubeObject, type Resource } from '#kube'
import { ownerName, ownerOf } from '#model'
import { type SimulatedFleet, scenarios, simulateFleet } from '#simulator'
import { VictoriaMetrics } from '../src/pipeline/history/testing/victoria-metrics.ts'
import { startRedis, type TestRedis } from '../src/pipeline/state/test/redis-server.ts'
import { freePort } from '../src/platform/runtime/testing/free-port.ts'
import { OriginalCollector } from './original-collector.ts'
import { clusterpulse, eventually, program, type Running } from './process.ts'
import { startRealApiServer } from './real-apiserver.ts'
import { WirePusher } from './wire-pusher.ts'

export const HUB = 'clusterpulse'
export const SLOW_MS = 90_000
const SECRET = 's'.repeat(32)
/** of each simulated cluster */
const NODES = 2
const PODS = 8

const resource = (group: string, version: string, plural: string, kind: string): Resource => ({
  ...{ group, version, plural, kind },
  namespaced: true,
})
const secrets = resource('', 'v1', 'secrets', 'Secret')
export const connections = resource('clusterpulse.io', 'v1alpha1', 'clusterconnections', 'ClusterConnection')
export const sources = resource('clusterpulse.io', 'v1alpha1', 'metricsources', 'MetricSource')
export const policies = resource('clusterpulse.io', 'v1alpha1', 'monitoraccesspolicies', 'MonitorAccessPolicy')

const tokenOf = (cluster: string) => `the-token-of-${cluster}`

/** Names, so many for each of three owners, the owners in turn. */
function evenly(prefix: string, count: number): readonly string[] {
  const names: string[] = []
  for (let n = 1; names.length < count; n++) {
    const name = `${prefix}-${n}`
    if (ownerOf(name, 3) === (names.length % 3) + 1) names.push(name)
  }
  return names
}

/** A manager that runs. */
export class ManagerRun {
  readonly run: Running
  readonly #health: number
  readonly #metrics: number

  constructor(run: Running, health: number, metrics: number) {
    this.run = run
    this.#health = health
    this.#metrics = metrics
  }

  async readiness(): Promise<{ readonly status: number; readonly text: string }> {
    const answer = await fetch(`http://127.0.0.1:${this.#health}/readyz`)
    return { status: answer.status, text: await answer.text() }
  }

  /** @throws with what it said last */
  async ready(): Promise<void> {
    await eventually(
      () => this.readiness(),
      ({ status }) => status === 200,
      SLOW_MS,
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${this.run.stderr().slice(-6000)}`)
    })
  }

  /** The numbers of one metric, with their labels. */
  async numbers(metric: string): Promise<readonly { readonly labels: string; readonly value: number }[]> {
    const page = await (await fetch(`http://127.0.0.1:${this.#metrics}/metrics`)).text()
    const line = new RegExp(`^${metric}(?:\\{(.*)\\})? (\\S+)$`, 'gm')
    return [...page.matchAll(line)].map(([, labels = '', value]) => ({ labels, value: Number(value) }))
  }

  /** Process ids of its owners, by their names. */
  async owners(): Promise<ReadonlyMap<string, number>> {
    const found = await this.numbers('clusterpulse_owner_process_info')
    return new Map(
      found.map(({ labels }) => [
        /process="([^"]+)"/.exec(labels)?.[1] ?? '',
        Number(/pid="(\d+)"/.exec(labels)?.[1] ?? Number.NaN),
      ]),
    )
  }
}

/** A process is there, and is no corpse whose parent has not looked at it yet. */
export async function isAlive(pid: number): Promise<boolean> {
  const run = program('ps', ['-o', 'stat=', '-p', String(pid)])
  await run.ended()
  const state = run.stdout().trim()
  return state !== '' && !state.startsWith('Z')
}

/** A collector of the original that dials again, and does not send again what it did not hear of. */
export class DialingOriginal implements AsyncDisposable {
  readonly cluster: string
  readonly #port: number
  #collector: OriginalCollector
  #pushed = 0
  /** numbers of acknowledged batches */
  readonly acked = new Set<number>()
  readonly refused: string[] = []

  constructor(cluster: string, port: number) {
    this.cluster = cluster
    this.#port = port
    this.#collector = this.#dial()
  }

  get pushed(): number {
    return this.#pushed
  }

  /** The CPU that is requested on its only node is the number of the batch. */
  push(): void {
    this.#heard()
    if (this.#collector.status) this.dialAnew()
    const number = ++this.#pushed
    const node = {
      name: 'old-1',
      status: 'Ready',
      roles: ['worker'],
      cpuCapacity: 4,
      cpuRequested: number,
      podsTotal: 1,
    }
    this.#collector.push(String(number), {
      clusterMetrics: { nodes: 1, nodesReady: 1, pods: 1, podsRunning: 1, cpuCapacity: 4 },
      nodeMetrics: [node],
      clusterInfo: { apiUrl: '', version: 'v1.27.3', platform: 'Kubernetes' },
    })
  }

  dialAnew(): void {
    this.#heard()
    void this.#collector[Symbol.asyncDispose]()
    this.#collector = this.#dial()
  }

  /** Looks at what was acknowledged since. */
  heard(): ReadonlySet<number> {
    this.#heard()
    return this.acked
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#collector[Symbol.asyncDispose]()
  }

  #heard(): void {
    for (const { batchId, success, error } of this.#collector.acks.splice(0)) {
      if (success) this.acked.add(Number(batchId))
      else this.refused.push(error)
    }
  }

  #dial(): OriginalCollector {
    const { cluster } = this
    return new OriginalCollector({ address: `127.0.0.1:${this.#port}`, cluster, token: tokenOf(cluster) })
  }
}

export interface ManagerOptions {
  readonly processes: number
  readonly leaderElect?: boolean
  readonly env?: Readonly<Record<string, string>>
}

export class OwnedFleet implements AsyncDisposable {
  readonly folder: string
  readonly kube: KubeClient
  readonly redis: TestRedis
  readonly eyes: Redis
  readonly victoria: VictoriaMetrics | undefined
  readonly members: SimulatedFleet
  /** for agents */
  readonly port: number
  readonly running: Running[] = []
  readonly pulled = evenly('pulled', 6)
  /** one per owner */
  readonly pushers = new Map<string, WirePusher>()
  readonly originals: DialingOriginal[] = []
  /** the cluster of `clusterpulse agent`, where it was started */
  readonly agentCluster: string
  readonly #closing: (() => Promise<void>)[]
  #address = ''
  #pushing: NodeJS.Timeout | undefined

  private constructor(parts: {
    readonly folder: string
    readonly kube: KubeClient
    readonly redis: TestRedis
    readonly victoria: VictoriaMetrics | undefined
    readonly members: SimulatedFleet
    readonly port: number
    readonly closing: (() => Promise<void>)[]
  }) {
    const { folder, kube, redis, victoria, members, port, closing } = parts
    this.folder = folder
    this.kube = kube
    this.redis = redis
    this.victoria = victoria
    this.members = members
    this.port = port
    this.#closing = closing
    this.eyes = new Redis({ host: '127.0.0.1', port: redis.port })
    this.eyes.on('error', () => undefined) // Redis is killed at times; who reads from it hears of that
    this.agentCluster = evenly('agent', 3)[2] ?? ''
  }

  /** With its connections declared; nothing of the hub runs but `api`. */
  static async open(options: { readonly realApi: boolean; readonly withHistory: boolean }): Promise<OwnedFleet> {
    const folder = await mkdtemp(join(tmpdir(), 'owners-'))
    const closing: (() => Promise<void>)[] = []
    try {
      const api = await (options.realApi ? realApi(folder) : embeddedApi(folder))
      closing.push(api.close)
      const kube = createKubeClient(api.access)
      closing.push(async () => kube[Symbol.asyncDispose]())
      const redis = await startRedis()
      closing.push(async () => redis[Symbol.asyncDispose]())
      const victoria = options.withHistory ? await VictoriaMetrics.start() : undefined
      closing.push(async () => victoria?.[Symbol.asyncDispose]())
      const members = await simulateFleet(scenarios.plain({ clusters: 7, nodes: NODES, pods: PODS }), { lives: false })
      closing.push(async () => members[Symbol.asyncDispose]())
      const fleet = new OwnedFleet({ folder, kube, redis, victoria, members, port: await freePort(), closing })
      await fleet.#begin(options.realApi)
      return fleet
    } catch (error) {
      for (const close of closing.reverse()) await close()
      throw error
    }
  }

  get address(): string {
    return this.#address
  }

  get client(): Client {
    return createClient({ baseUrl: this.#address })
  }

  /** Every cluster there is. */
  get clusters(): readonly string[] {
    return [...this.pulled, ...this.pushed].sort()
  }

  /** Those with agents, of whichever sort. */
  get pushed(): readonly string[] {
    return [...this.pushers.keys(), ...this.originals.map(({ cluster }) => cluster), this.agentCluster]
  }

  async kubectl(args: readonly string[], input?: string): Promise<string> {
    const run = program(
      'kubectl',
      ['--kubeconfig', join(this.folder, 'hub.yaml'), ...args],
      input === undefined ? {} : { input },
    )
    expect(await run.ended(), `kubectl ${args.join(' ')}: ${run.stderr()}`).toBe(0)
    return run.stdout()
  }

  start(args: readonly string[], env: Readonly<Record<string, string>>): Running {
    const role = clusterpulse(args, { env })
    this.running.push(role)
    return role
  }

  /** An `api` on which people are who a proxy says. */
  async apiBehindProxy(): Promise<(user: string, groups?: string) => Client> {
    const baseUrl = await this.#startApi({ TRUSTED_PROXY_SECRET: SECRET, ADMIN_GROUPS: 'admins' })
    return (user, groups = '') =>
      createClient({
        baseUrl,
        headers: { 'x-clusterpulse-proxy-secret': SECRET, 'x-forwarded-user': user, 'x-forwarded-groups': groups },
      })
  }

  /** Does not wait until it is ready. */
  async manager({ processes, leaderElect = false, env = {} }: ManagerOptions): Promise<ManagerRun> {
    const [health, metrics] = [await freePort(), await freePort()]
    const run = this.start(
      [
        ...['manager', '--metrics-bind-address', `127.0.0.1:${metrics}`],
        ...['--health-probe-bind-address', `127.0.0.1:${health}`, ...(leaderElect ? ['--leader-elect'] : [])],
      ],
      {
        ...this.#stores,
        KUBECONFIG: join(this.folder, 'hub.yaml'),
        DATA_DIR: join(this.folder, 'manager'),
        INGESTER_HOST: '127.0.0.1',
        INGESTER_PORT: String(this.port),
        MANAGER_PROCESSES: String(processes),
        ...env,
      },
    )
    return new ManagerRun(run, health, metrics)
  }

  /** `clusterpulse agent` beside the seventh simulated cluster. */
  startAgent(): Running {
    return this.start(['agent'], {
      CLUSTER_NAME: this.agentCluster,
      INGESTER_ADDRESS: `127.0.0.1:${this.port}`,
      COLLECTOR_TOKEN: tokenOf(this.agentCluster),
      COLLECT_INTERVAL: '2',
      KUBECONFIG: join(this.folder, 'member.yaml'),
      BUFFER_DIR: join(this.folder, 'agent'),
      HEALTH_ADDRESS: '127.0.0.1:0',
    })
  }

  /** Every agent of which we know the batches pushes one now and then, until it is told to stop. */
  beginPushing(everyMs = 100): void {
    this.stopPushing()
    this.#pushing = setInterval(() => {
      for (const pusher of this.pushers.values()) pusher.push()
      for (const original of this.originals) original.push()
    }, everyMs)
  }

  stopPushing(): void {
    clearInterval(this.#pushing)
  }

  /** Every cluster is there with all that it has, and the API says who of so many owns it. */
  async whole(of: number, withinMs = SLOW_MS): Promise<readonly ClusterView[]> {
    const wanted = this.clusters.map((name) => [name, this.#nodesOf(name), ownerIn(name, of)])
    const faulty = (found: readonly ClusterView[]) => {
      const seen = new Map(found.map((cluster) => [cluster.name, [cluster.nodes?.total, cluster.owner]]))
      return wanted.filter(([name, nodes, owner]) => {
        const [total, said] = seen.get(String(name)) ?? []
        return total !== nodes || said !== owner
      })
    }
    let found: readonly ClusterView[] = []
    await eventually(
      async () => {
        found = (await this.client.clusters({ limit: 1000 })).items
        const left = faulty(found)
        return left.length > 0
          ? { left, seen: found.map(({ name, owner, nodes, message }) => [name, owner, nodes?.total, message]) }
          : undefined
      },
      (left) => left === undefined,
      withinMs,
    )
    expect(found.map(({ name }) => name)).toEqual(this.clusters)
    return found
  }

  /** As the objects say it. */
  async ownersInStatus(): Promise<Readonly<Record<string, string | undefined>>> {
    const all = await this.kube.listAll(connections, { namespace: HUB })
    return Object.fromEntries(
      all.map(({ metadata, status }) => [metadata.name, (status as { owner?: string } | undefined)?.owner]),
    )
  }

  /** Statuses name the owners, and nothing but them. */
  async statusesSay(of: number): Promise<void> {
    const wanted = Object.fromEntries(this.clusters.map((name) => [name, ownerIn(name, of)]))
    await eventually(
      async () => ({ said: await this.ownersInStatus(), wanted }),
      ({ said }) => this.clusters.every((name) => said[name] === wanted[name]),
      SLOW_MS,
    )
  }

  /** All that was pushed is acknowledged, and nothing was refused. */
  async allSafe(): Promise<void> {
    for (const [cluster, pusher] of this.pushers) {
      await eventually(
        async () => ({ cluster, unsafe: pusher.unsafe.slice(0, 20) }),
        ({ unsafe }) => unsafe.length === 0,
        SLOW_MS,
      )
      expect(pusher.refusals, cluster).toEqual([])
    }
    for (const { refused, cluster } of this.originals) expect(refused, cluster).toEqual([])
  }

  /** What was acknowledged is in state and, once each, in history. */
  async keptOnce(): Promise<void> {
    for (const [cluster, { numbers }] of this.pushers) {
      await eventually(
        () => this.client.cluster(cluster),
        (seen) => seen.cpuCores.requested === numbers.at(-1),
        SLOW_MS,
      )
      await this.#inHistoryOnce(cluster, numbers, numbers)
    }
    for (const original of this.originals) {
      const acked = [...original.heard()].sort((a, b) => a - b)
      const all = Array.from({ length: original.pushed }, (_, i) => i + 1)
      const newest = acked.at(-1) ?? 0
      await eventually(
        () => this.client.cluster(original.cluster),
        (seen) => (seen.cpuCores.requested ?? 0) >= newest,
        SLOW_MS,
      )
      await this.#inHistoryOnce(original.cluster, acked, all)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.stopPushing()
    for (const pusher of this.pushers.values()) await pusher[Symbol.asyncDispose]()
    for (const original of this.originals) await original[Symbol.asyncDispose]()
    for (const role of this.running.reverse()) await role[Symbol.asyncDispose]()
    this.eyes.disconnect()
    for (const close of this.#closing.reverse()) await close()
    await rm(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  }

  get #stores(): Readonly<Record<string, string>> {
    return {
      REDIS_HOST: '127.0.0.1',
      REDIS_PORT: String(this.redis.port),
      ...(this.victoria && { VM_ENABLED: 'true', VM_ENDPOINT: this.victoria.endpoint }),
    }
  }

  /** Pushers and originals say one node, simulated clusters have more. */
  #nodesOf(cluster: string): number {
    return this.pulled.includes(cluster) || cluster === this.agentCluster ? NODES : 1
  }

  async #begin(isReal: boolean): Promise<void> {
    if (isReal) {
      const printed = clusterpulse(['crds'])
      expect(await printed.ended(), printed.stderr()).toBe(0)
      await this.kubectl(['apply', '--server-side', '-f', '-'], printed.stdout())
      await this.kubectl(['wait', '--for=condition=Established', 'crd', '--all'])
      await this.kubectl(['create', 'namespace', HUB])
    }
    await writeFile(join(this.folder, 'member.yaml'), memberKubeconfig(this.members))
    for (const [i, name] of this.pulled.entries()) {
      const member = this.members.clusters[i]
      if (!member) throw new Error('there are too few simulated clusters')
      await this.#declare(
        name,
        { token: member.token, 'ca.crt': member.caPem },
        { endpoint: member.url, labels: { team: i % 2 === 0 ? 'red' : 'blue' } },
      )
    }
    for (const name of evenly('pusher', 3)) {
      await this.#declarePush(name)
      this.pushers.set(
        name,
        new WirePusher({ host: '127.0.0.1', port: this.port, cluster: name, token: tokenOf(name) }),
      )
    }
    for (const name of evenly('original', 2)) {
      await this.#declarePush(name)
      this.originals.push(new DialingOriginal(name, this.port))
    }
    await this.#declarePush(this.agentCluster)
    this.#address = await this.#startApi({})
  }

  #declarePush(name: string): Promise<void> {
    return this.#declare(name, { token: tokenOf(name) }, { collectionMode: 'push', labels: { team: 'green' } })
  }

  async #declare(name: string, credentials: Readonly<Record<string, string>>, spec: object): Promise<void> {
    const metadata = { name, namespace: HUB }
    const data = Object.fromEntries(
      Object.entries(credentials).map(([key, text]) => [key, Buffer.from(text).toString('base64')]),
    )
    await this.kube.create(secrets, { metadata, type: 'Opaque', data } as KubeObject)
    await this.kube.create(connections, { metadata, spec: { credentialsRef: { name }, ...spec } })
  }

  async #startApi(env: Readonly<Record<string, string>>): Promise<string> {
    const api = this.start(['api', '--host', '127.0.0.1', '--port', '0'], {
      ...this.#stores,
      KUBECONFIG: join(this.folder, 'hub.yaml'),
      ...env,
    })
    return (await api.says(/on (http:\/\/127\.0\.0\.1:\d+)/, SLOW_MS))[1] ?? ''
  }

  async #inHistoryOnce(cluster: string, must: readonly number[], may: readonly number[]): Promise<void> {
    const { victoria } = this
    if (!victoria) return
    const valuesIn = async () => {
      const found = await victoria.export(`clusterpulse_node_cpu_requested{cluster="${cluster}"}`)
      return found.flatMap(({ values }) => values).sort((a, b) => a - b)
    }
    const values = await eventually(
      async () => {
        const found = await valuesIn()
        const kept = new Set(found)
        return { found, missing: must.filter((number) => !kept.has(number)).slice(0, 20) }
      },
      ({ missing }) => missing.length === 0,
      SLOW_MS,
    )
    const doubled = values.found.filter((value, i) => value === values.found[i - 1])
    expect(doubled, `${cluster}: samples that are doubled`).toEqual([])
    const known = new Set(may)
    const foreign = values.found.filter((value) => !known.has(value))
    expect(foreign, `${cluster}: samples nobody pushed`).toEqual([])
  }
}

/** As it is named to people. */
export const ownerIn = (cluster: string, of: number): string | undefined =>
  ownerName({ index: ownerOf(cluster, of), of })

interface HubApi {
  readonly access: ClusterAccess
  close(): Promise<void>
}

async function realApi(folder: string): Promise<HubApi> {
  const server = await startRealApiServer()
  if (!server) throw new Error('no real kube-apiserver')
  await writeFile(join(folder, 'hub.yaml'), server.kubeconfig)
  return { access: server.access, close: () => server.stop() }
}

/** A hub's API in this process, with its kubeconfig `hub.yaml` in the folder. */
export async function embeddedApi(folder: string): Promise<HubApi> {
  const server = await ApiServer.open({ storage: { kind: 'memory' }, name: 'hub' })
  for (const kind of kinds) await server.objects.put(kind.crd() as unknown as ApiObject) // a CRD is an API object
  await server.objects.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: HUB } })
  const token = 'hub'
  const listener = await listenApi({
    tokens: [{ token, user: 'hub', groups: ['system:masters'] }],
    mounts: new Map([['', server]]),
  })
  await writeFile(join(folder, 'hub.yaml'), listener.kubeconfig({ context: 'hub', token }))
  return {
    access: { server: listener.url, ca: listener.caPem, verifyTls: true, credentials: { kind: 'token', token } },
    async close() {
      await listener[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    },
  }
}

/** Its current context is the last of the fleet. */
function memberKubeconfig(members: SimulatedFleet): string {
  const last = members.clusters.at(-1)
  return members.kubeconfig().replace(/^current-context: .*$/m, `current-context: ${last?.name}`)
}
