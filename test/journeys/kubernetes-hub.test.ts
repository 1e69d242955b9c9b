import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createClient } from '#http'
import { redisMissing, startRedis, type TestRedis } from '../../src/pipeline/state/test/redis-server.ts'
import { freePort } from '../../src/platform/runtime/testing/free-port.ts'
import { clusterpulse, eventually, program, type Running } from '../process.ts'
import { noRealApiServer, type RealApiServer, startRealApiServer } from '../real-apiserver.ts'

const missing = noRealApiServer() ?? redisMissing
const why = process.env.CI_REQUIRE_ALL === '1' ? undefined : missing

describe.skipIf(why !== undefined)(`a hub on Kubernetes${why === undefined ? '' : ` (not run: ${why})`}`, () => {
  let folder: string
  let real: RealApiServer
  let redis: TestRedis
  let fleet: Running
  const running: Running[] = []
  const hubConfig = () => join(folder, 'hub.yaml')
  const kubectl = async (args: readonly string[], input?: string) => {
    const run = program('kubectl', ['--kubeconfig', hubConfig(), ...args], input === undefined ? {} : { input })
    expect(await run.ended(), `kubectl ${args.join(' ')}: ${run.stderr()}`).toBe(0)
    return run.stdout()
  }
  const start = (args: readonly string[], env: Record<string, string>) => {
    const role = clusterpulse(args, { env })
    running.push(role)
    return role
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'clusterpulse-k8s-'))
    const server = await startRealApiServer()
    if (!server) throw new Error('no real kube-apiserver')
    real = server
    redis = await startRedis()
    await writeFile(hubConfig(), real.kubeconfig)
    fleet = clusterpulse([
      'simulate',
      '--clusters',
      '1',
      '--nodes',
      '3',
      '--pods',
      '15',
      '--kubeconfig-out',
      join(folder, 'member.yaml'),
    ])
    await fleet.says(/kubeconfig in/)
  })
  afterAll(async () => {
    for (const role of running) await role[Symbol.asyncDispose]()
    await fleet?.[Symbol.asyncDispose]()
    await redis?.[Symbol.asyncDispose]()
    await real?.stop()
    await rm(folder, { recursive: true, force: true })
  })

  it('takes the kind, connects, writes statuses, answers, forgets', async () => {
    const crds = clusterpulse(['crds'])
    expect(await crds.ended()).toBe(0)
    await kubectl(['apply', '-f', '-'], crds.stdout())
    await kubectl(['wait', '--for=condition=Established', 'crd/clusterconnections.clusterpulse.io'])
    await kubectl(['create', 'namespace', 'clusterpulse'])

    const [healthPort, metricsPort] = [await freePort(), await freePort()]
    const env = {
      REDIS_HOST: '127.0.0.1',
      REDIS_PORT: String(redis.port),
      KUBECONFIG: hubConfig(),
      DATA_DIR: join(folder, 'manager'),
    }
    const manager = start(
      [
        'manager',
        '--leader-elect',
        '--health-probe-bind-address',
        `127.0.0.1:${healthPort}`,
        '--metrics-bind-address',
        `127.0.0.1:${metricsPort}`,
      ],
      env,
    )
    const api = start(['api', '--host', '127.0.0.1', '--port', '0'], env)
    const address = (await api.says(/on (http:\/\/127\.0\.0\.1:\d+)/))[1] ?? ''
    const client = createClient({ baseUrl: address })
    await eventually(
      () => fetch(`http://127.0.0.1:${healthPort}/readyz`),
      (answer) => answer.status === 200,
    )

    const member = program('kubectl', [
      '--kubeconfig',
      join(folder, 'member.yaml'),
      'config',
      'view',
      '--raw',
      '--minify',
      '-o',
      'json',
    ])
    expect(await member.ended(), member.stderr()).toBe(0)
    const { clusters, users } = JSON.parse(member.stdout())
    const endpoint: string = clusters[0].cluster.server
    await writeFile(join(folder, 'ca.crt'), Buffer.from(clusters[0].cluster['certificate-authority-data'], 'base64'))
    await kubectl([
      '-n',
      'clusterpulse',
      'create',
      'secret',
      'generic',
      'east',
      `--from-literal=token=${users[0].user.token}`,
      `--from-file=ca.crt=${join(folder, 'ca.crt')}`,
    ])
    const connection = (spec: object) =>
      JSON.stringify({
        apiVersion: 'clusterpulse.io/v1alpha1',
        kind: 'ClusterConnection',
        metadata: { name: 'east', namespace: 'clusterpulse' },
        spec,
      })
    await kubectl(['apply', '-f', '-'], connection({ displayName: 'East', endpoint, credentialsRef: { name: 'east' } }))

    const table = await eventually(
      () => kubectl(['-n', 'clusterpulse', 'get', 'clusterconnections']),
      (text) => /Connected/.test(text),
    )
    expect(table).toMatch(/NAME +DISPLAY NAME +ENDPOINT +STATUS +HEALTH +AGE/)
    expect(table).toMatch(/east +East +https:\S+ +Connected +healthy/)
    const seen = await eventually(
      () => client.cluster('east'),
      (cluster) => cluster.nodes?.total === 3,
    )
    expect(seen).toMatchObject({ health: 'healthy', displayName: 'East', pods: { total: 15 } })
    expect(JSON.stringify(seen)).not.toContain('credentialsRef')
    await eventually(
      async () => (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text(),
      (text) => /clusterpulse_rounds_total\{[^}]*result="collected"/.test(text),
    )

    // A broken token is named in the object's conditions and heals when the Secret changes.
    const token = (value: string) =>
      kubectl(['-n', 'clusterpulse', 'patch', 'secret', 'east', '-p', JSON.stringify({ stringData: { token: value } })])
    await token('wrong')
    const broken = await eventually(
      async () => JSON.parse(await kubectl(['-n', 'clusterpulse', 'get', 'cc', 'east', '-o', 'json'])),
      ({ status }) => status.phase === 'Error',
    )
    expect(broken.status.conditions).toContainEqual(
      expect.objectContaining({ type: 'CredentialsValid', status: 'False' }),
    )
    expect((await client.cluster('east')).nodes?.total).toBe(3)
    await token(users[0].user.token)
    await eventually(
      () => kubectl(['-n', 'clusterpulse', 'get', 'cc', 'east']),
      (text) => /Connected +healthy/.test(text),
    )

    // Redis comes back empty: everything is there again without a restart.
    await redis.kill()
    await redis.start()
    await eventually(
      () => client.cluster('east'),
      (cluster) => cluster.nodes?.total === 3,
      60_000,
    )

    await kubectl(['-n', 'clusterpulse', 'delete', 'cc', 'east'])
    await eventually(
      () => client.clusters(),
      ({ total }) => total === 0,
    )
    expect(await manager.kill('SIGTERM')).toBe(0)
    expect(await api.kill('SIGTERM')).toBe(0)
  })
})
