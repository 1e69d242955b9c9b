import { cpSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClusterView, EventView, HistoryView } from '#http'
import { VictoriaMetrics, victoriaMissing } from '../../src/pipeline/history/testing/victoria-metrics.ts'
import { redisMissing, startRedis, type TestRedis } from '../../src/pipeline/state/test/redis-server.ts'
import { freePort } from '../../src/platform/runtime/testing/free-port.ts'
import { clusterpulse, eventually, program, type Running } from '../process.ts'
import { noRealApiServer, type RealApiServer, startRealApiServer } from '../real-apiserver.ts'

const missing = noRealApiServer() ?? redisMissing ?? victoriaMissing()
const why = process.env.CI_REQUIRE_ALL === '1' ? undefined : missing
const SLOW_MS = 90_000

/** Blocks of the guide's chapter on Kubernetes, as they are written. */
const [, chapter = ''] = readFileSync('docs/guide/backup.md', 'utf8').split('## A hub on Kubernetes')
const blocks = [...(chapter.split('\n## ')[0] ?? '').matchAll(/(?:^ {4}.*\n?)+/gm)].map(([text]) => text)
const block = (word: string): string => {
  const [found, ...more] = blocks.filter((text) => text.includes(word))
  if (!found || more.length > 0) throw new Error(`the guide has not one block with ${word}`)
  return found
}

/** docs/guide/backup.md, as it is written, from one cluster to another that is empty; an agent goes on meanwhile. */
describe.skipIf(why !== undefined)(`a backup on Kubernetes${why === undefined ? '' : ` (not run: ${why})`}`, () => {
  let directory: string
  let real: RealApiServer
  let redis: TestRedis
  let victoria: VictoriaMetrics
  let port: string
  let base: string
  let manager: Running
  let api: Running
  const running: Running[] = []
  const servers: RealApiServer[] = []
  const stores: AsyncDisposable[] = []
  const at = (name: string) => join(directory, name)

  /** An empty place: a Kubernetes API, Redis and VictoriaMetrics that nobody used. */
  async function anEmptyPlace(): Promise<void> {
    const server = await startRealApiServer()
    if (!server) throw new Error('no real kube-apiserver')
    servers.push(server)
    real = server
    redis = await startRedis()
    victoria = await VictoriaMetrics.start()
    stores.push(redis, victoria)
    writeFileSync(at('admin.yaml'), real.kubeconfig, { mode: 0o600 })
  }

  /** A block of the guide, by a shell; `npx clusterpulse` is the one that was built. */
  async function follow(text: string): Promise<string> {
    const script = text.replaceAll('npx clusterpulse', `${process.execPath} ${resolve('bin/clusterpulse.js')}`)
    const run = program('sh', ['-ec', script], { env: { KUBECONFIG: at('admin.yaml') }, cwd: directory })
    expect(await run.ended(), `${script}\n${run.stdout()}\n${run.stderr()}`).toBe(0)
    return run.stdout()
  }
  const start = (args: readonly string[], env: Readonly<Record<string, string>>) => {
    const role = clusterpulse(args, { env })
    running.push(role)
    return role
  }
  const storesEnv = () => ({
    REDIS_HOST: '127.0.0.1',
    REDIS_PORT: String(redis.port),
    VM_ENABLED: 'true',
    VM_ENDPOINT: victoria.endpoint,
  })
  async function startManager(): Promise<void> {
    const health = await freePort()
    manager = start(
      ['manager', '--metrics-bind-address', '127.0.0.1:0', '--health-probe-bind-address', `127.0.0.1:${health}`],
      {
        ...storesEnv(),
        KUBECONFIG: at('admin.yaml'),
        DATA_DIR: at('volume'),
        INGESTER_HOST: '127.0.0.1',
        INGESTER_PORT: port,
        INGESTER_TLS_ENABLED: 'false',
        INGESTER_ADVERTISE: `127.0.0.1:${port}`,
      },
    )
    await eventually(
      () => fetch(`http://127.0.0.1:${health}/readyz`),
      (answer) => answer.status === 200,
      SLOW_MS,
    )
  }
  async function startApi(): Promise<void> {
    api = start(['api', '--host', '127.0.0.1', '--port', '0'], storesEnv())
    base = (await api.says(/on (http:\/\/127\.0\.0\.1:\d+)/, SLOW_MS))[1] ?? ''
  }
  const json = async <T>(path: string): Promise<T> => (await (await fetch(`${base}${path}`)).json()) as T
  const rounds = async () => {
    const edge = await json<ClusterView>('/api/v2/clusters/edge')
    return edge.agent?.connected ? edge.lastSyncAt : null
  }
  async function moreRounds(count: number): Promise<void> {
    for (let seen = 0; seen < count; seen++) {
      const before = await rounds()
      await eventually(rounds, (now) => now !== null && now !== before, SLOW_MS)
    }
  }

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'backup-kubernetes-'))
    port = String(await freePort())
    const size = ['--clusters', '1', '--nodes', '3', '--pods', '9']
    const members = start(['simulate', ...size, '--kubeconfig-out', at('members')], {})
    await anEmptyPlace()
    await members.says(/kubeconfig in/, SLOW_MS)
  })
  afterAll(async () => {
    for (const role of running) await role[Symbol.asyncDispose]()
    for (const store of stores) await store[Symbol.asyncDispose]()
    for (const server of servers) await server.stop()
    rmSync(directory, { recursive: true, force: true })
  })

  it('brings a hub back in an empty place, and says what an agent had delivered since', {
    tags: ['again'],
  }, async () => {
    await follow('npx clusterpulse crds | kubectl apply -f -\nkubectl create namespace clusterpulse')
    await follow('kubectl wait --for=condition=Established crd --all')
    writeFileSync(at('policy.yaml'), policy)
    await follow('kubectl apply -f policy.yaml')
    await startManager()
    await startApi()
    const line = await follow('npx clusterpulse connect edge --bearer-token')
    startAgent(line)
    await eventually(rounds, (time) => time !== null, SLOW_MS)

    // Save: objects and Secrets, and the volume.
    await follow(block('> objects.yaml'))
    await manager.kill('SIGTERM')
    cpSync(at('volume'), at('copy'), { recursive: true, preserveTimestamps: true })
    await startManager()
    await moreRounds(2)

    // Everything is gone, and another place is empty.
    for (const role of [manager, api]) await role.kill('SIGTERM')
    await anEmptyPlace()
    renameSync(at('volume'), at('volume-before'))
    cpSync(at('copy'), at('volume'), { recursive: true, preserveTimestamps: true })
    await follow(block('kubectl apply -f secrets.json -f objects.yaml'))
    await follow(block('for NAME in'))
    await startManager()
    await startApi()

    expect(await follow('kubectl -n clusterpulse get monitoraccesspolicies -o name')).toMatch(/\/devs$/m)
    await moreRounds(1)
    const history = await eventually(
      () => json<HistoryView>('/api/v1/clusters/edge/metrics/history?metric=nodes_total&range=15m&step=30'),
      ({ spans }) => spans.some(({ cause }) => cause === 'restored'),
      SLOW_MS,
    )
    expect(history.spans.find(({ cause }) => cause === 'restored')).toMatchObject({ kind: 'lost' })
    const { items } = await json<{ items: EventView[] }>('/api/v2/clusters/edge/events')
    expect(items.map((event) => JSON.stringify(event))).toContainEqual(expect.stringContaining('restored'))
  })

  function startAgent(line: string): void {
    const script = line.replace('npx clusterpulse', `exec ${process.execPath} ${resolve('bin/clusterpulse.js')}`)
    const env = {
      KUBECONFIG: at('members'),
      BUFFER_DIR: at('buffer'),
      HEALTH_ADDRESS: '127.0.0.1:0',
      COLLECTION_INTERVAL: '30',
    }
    running.push(program('sh', ['-c', script], { env, cwd: directory }))
  }
})

const policy = JSON.stringify({
  apiVersion: 'clusterpulse.io/v1alpha1',
  kind: 'MonitorAccessPolicy',
  metadata: { name: 'devs', namespace: 'clusterpulse' },
  spec: {
    identity: { subjects: { groups: ['developers'] }, priority: 100 },
    access: { effect: 'Allow', enabled: true },
    scope: { clusters: { default: 'allow' } },
  },
})
