import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { redisMissing } from '../../src/pipeline/state/test/redis-server.ts'
import { noContainers } from '../containers.ts'
import { Pods } from '../pods.ts'
import { eventually, type Running } from '../process.ts'
import { noRealApiServer } from '../real-apiserver.ts'

const missing = noContainers() ?? noRealApiServer() ?? redisMissing
const why = process.env.CI_REQUIRE_ALL === '1' ? undefined : missing

const MACHINE = 20
const SLOW_MS = 90_000

/** Both processes of a hub, as somebody starts them in two terminals of one machine. */
describe.skipIf(why !== undefined)(`one machine${why === undefined ? '' : ` (not run: ${why})`}`, () => {
  let pods: Pods
  const start = (args: readonly string[], env: Readonly<Record<string, string>> = {}): Running => {
    const named = Object.entries({ KUBECONFIG: pods.kubeconfig, REDIS_HOST: '127.0.0.1', ...env })
    // Nothing chooses a port: what tests choose for programs is taken off.
    const off = ['METRICS_BIND_ADDRESS', 'HEALTH_PROBE_BIND_ADDRESS', 'INGESTER_PORT'].flatMap((name) => ['-u', name])
    const words = ['env', ...off, ...named.map((pair) => pair.join('=')), process.execPath]
    return pods.beside(MACHINE, [...words, resolve('bin/clusterpulse.js'), ...args], { cwd: pods.empty })
  }
  const curl = async (port: number, path: string) => {
    const run = pods.beside(MACHINE, [
      'curl',
      '-sS',
      '-m',
      '5',
      '-w',
      '\n%{http_code}',
      `http://127.0.0.1:${port}${path}`,
    ])
    await run.ended()
    return run.stdout() || run.stderr()
  }
  const answers = (port: number, path: string, pattern: RegExp) =>
    eventually(
      () => curl(port, path),
      (said) => pattern.test(said),
      SLOW_MS,
    )

  beforeAll(async () => {
    pods = await Pods.open({})
    pods.kubectl('apply', '--server-side', '-k', 'deploy/crds')
    pods.kubectl('wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s')
    pods.kubectl('create', 'namespace', 'clusterpulse')
    const redis = pods.beside(MACHINE, ['redis-server', '--port', '6379', '--save', ''])
    await redis.says(/Ready to accept connections/)
  })
  afterAll(() => pods?.[Symbol.asyncDispose]())

  it('runs manager and api side by side, and a second manager only after the first', async () => {
    const api = start(['api'], { API_HOST: '127.0.0.1' })
    await api.says(/on http:\/\/127\.0\.0\.1:8080/, SLOW_MS)
    const first = start(['manager'], { DATA_DIR: join(pods.empty, 'first') })
    await answers(8081, '/readyz', /\n200$/)
    expect(await curl(8082, '/metrics')).toMatch(/role="manager"/)
    expect(await answers(8080, '/api/v2/clusters', /\n200$/)).toMatch(/"items":\[\]/)

    // Another one in a folder of its own, on ports of its own, without a lease.
    const ports = ['--metrics-bind-address', ':8092', '--health-probe-bind-address', ':8091']
    const second = start(['manager', ...ports], { DATA_DIR: join(pods.empty, 'second'), INGESTER_PORT: '9543' })
    const says = (one: Running, pattern: RegExp) =>
      eventually(
        () => Promise.resolve(one.stderr()),
        (said) => pattern.test(said),
        SLOW_MS,
      )
    await says(second, /another manager works on this Redis \(on [^)]*\/first\): stop one of them[^"]*this one waits/)
    // As ready as one that waits for a lease.
    await answers(8091, '/readyz', /\n200$/)
    expect(second.stderr()).not.toContain('"manager runs"')
    expect(await first.kill('SIGTERM'), first.stderr()).toBe(0)
    await says(second, /"manager runs"/)

    // One that takes the ports of another says which, and what chooses it.
    const third = start(['manager', ...ports], { DATA_DIR: join(pods.empty, 'third') })
    expect(await third.ended()).not.toBe(0)
    expect(third.stderr()).toMatch(/809[12][\s\S]*BIND_ADDRESS|BIND_ADDRESS[\s\S]*809[12]/i)
  })
})
