import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { tokenOf, useMonitor } from '../monitor-client.ts'
import { clusterpulse, type Running } from '../process.ts'
import { noRealApiServer, type RealApiServer, startRealApiServer } from '../real-apiserver.ts'
import { fillWithTenants, tenant } from '../tenants.ts'

const secret = 'what the auth service signs with'
const SLOW_MS = 240_000
const missing = process.env.CI_REQUIRE_ALL === '1' ? undefined : noRealApiServer()

let folder: string
const started: Running[] = []
const inFolder = (name: string) => join(folder, name)
const env = () => ({ JWT_SECRET: secret, DATA_DIR: mkdtempSync(join(folder, 'data-')), LOG_LEVEL: 'warn' })

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'cluster-monitor-'))
})
afterAll(async () => {
  for (const running of started) await running[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

const run = (args: readonly string[], more: Readonly<Record<string, string>> = {}): Running => {
  const running = clusterpulse(args, { env: { ...env(), ...more } })
  started.push(running)
  return running
}
const addressOf = async (running: Running) =>
  (await running.says(/Cluster Monitor's interface is on (\S+?),?\s/, SLOW_MS))[1] ?? ''

describe('the command cluster-monitor', () => {
  it('refuses what it cannot do with a sentence, and exits with 1', async () => {
    const ends = async (args: readonly string[]) => {
      const running = run(['cluster-monitor', ...args])
      return [await running.ended(), running.stderr()]
    }
    expect(await ends(['-refresh', '0s', '-addr', ':0'])).toEqual([
      1,
      expect.stringContaining('-refresh is 0s; it must be 100ms or more'),
    ])
    expect(await ends(['-refresh=-5s'])).toEqual([1, expect.stringContaining('-refresh is -5s')])
    expect(await ends(['-addr', ':0'])).toEqual([1, expect.stringContaining('run in a pod with a service account')])
  })

  it(
    'serves a simulated cluster to a client that knows the specification alone, with the flags of the original',
    async () => {
      const kubeconfig = inFolder('simulated')
      await run(['simulate', '--clusters', '1', '--nodes', '3', '--pods', '40', '--kubeconfig-out', kubeconfig]).says(
        /kubeconfig in/,
      )
      const flags = [
        '-addr',
        '127.0.0.1:0',
        '-refresh=1s',
        '-log-service',
        'logs:5000',
        '-log-source',
        'me',
        '-nats',
        'nats://127.0.0.1:1',
      ]
      const running = run(['cluster-monitor', ...flags, '--kubeconfig', kubeconfig], { MONITOR_ALL_NAMESPACES: 'true' })
      const url = await addressOf(running)
      expect(await (await fetch(`${url}/healthz`)).text()).toBe('ok')
      await useMonitor({ url, secret, tenant: { userId: 'nobody', namespaces: [] }, hasSystem: false })
      expect(running.stderr().match(/logs are not shipped/g)).toHaveLength(1)
    },
    SLOW_MS,
  )
})

describe.skipIf(missing !== undefined)(
  `on a real kube-apiserver${missing === undefined ? '' : ` (not run: ${missing})`}`,
  () => {
    let server: RealApiServer

    beforeAll(async () => {
      const real = await startRealApiServer()
      if (!real) throw new Error('there is no real kube-apiserver')
      server = real
      writeFileSync(inFolder('real'), server.kubeconfig)
      await fillWithTenants(server.access)
    }, SLOW_MS)
    afterAll(() => server?.stop())

    it(
      'the command passes, tenants and all',
      async () => {
        const flags = ['-addr', '127.0.0.1:0', '-refresh', '1s', '-nats', '']
        const url = await addressOf(run(['cluster-monitor', ...flags, '--kubeconfig', inFolder('real')]))
        await useMonitor({ url, secret, tenant, hasSystem: true })
        const admin = tokenOf({ is_admin: true }, secret)
        const ask = async (path: string) =>
          (await (await fetch(url + path, { headers: { authorization: `Bearer ${admin}` } })).json()) as Record<
            string,
            never[]
          >
        expect((await ask('/cluster-info')).nodes).toMatchObject([
          {
            name: 'n1',
            cpu_usage: '523456789n',
            cpu_capacity: '3920m',
            memory_capacity: '32929636Ki',
            cpu_percent: (524 / 3920) * 100,
          },
          {
            name: 'n2',
            metrics_available: false,
            conditions: [
              { type: 'MemoryPressure', status: 'False' },
              { type: 'NotReady', status: 'True' },
            ],
          },
        ])
        const pods = (await ask('/pod-metrics')).pods as unknown as {
          namespace: string
          name: string
          node: string
          cpu_usage: number
        }[]
        expect(pods.map(({ namespace }) => namespace)).not.toContain('kube-system')
        const placed = pods.filter(({ name }) => name === 'container').map(({ namespace, node }) => [namespace, node])
        expect(placed).toEqual([
          ['compute-ab3de6-00000001', 'n1'],
          ['compute-ab3de6-00000002', 'n2'],
          ['compute-other1-00000003', 'n1'],
        ])
        expect(pods.find(({ namespace }) => namespace === 'core')?.cpu_usage).toBe(1_000_000 + 250_000_000)
      },
      SLOW_MS,
    )

    it(
      'the listener of a hub passes, for the default cluster and for one of many',
      async () => {
        const hub = {
          KUBECONFIG: inFolder('real'),
          MONITOR_ADDRESS: '127.0.0.1:0',
          MONITOR_REFRESH: '1s',
          USAGE_REFRESH: '1s',
        }
        const url = await addressOf(
          run(['up', '--port', '0', '--control-plane-port', '0'], {
            ...hub,
            INGESTER_ENABLED: 'false',
            DEFAULT_CLUSTER: 'real',
          }),
        )
        await useMonitor({ url, secret, tenant, hasSystem: true })
        await useMonitor({ url: `${url}/clusters/real`, secret, tenant, hasSystem: true })
      },
      SLOW_MS,
    )
  },
)
