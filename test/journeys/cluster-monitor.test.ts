import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createKubeClient, type KubeClient, type KubeObject, type Resource } from '#kube'
import { kubeconfigOf } from '#simulator'
import { tokenOf, useMonitor } from '../monitor-client.ts'
import { clusterpulse, type Running } from '../process.ts'
import { noRealApiServer, type RealApiServer, startRealApiServer } from '../real-apiserver.ts'
import { fillWithTenants, tenant } from '../tenants.ts'

const secret = 'what the auth service signs with'
const SLOW_MS = 240_000
/** Rounds are half a minute apart. */
const SOON = { timeout: 20_000, interval: 100 }
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

const resourceOf = (group: string, version: string, plural: string, kind: string, namespaced = false): Resource => ({
  ...{ group, version, plural, kind, namespaced },
})
const core = (plural: string, kind: string, namespaced = false) => resourceOf('', 'v1', plural, kind, namespaced)
const rbac = (plural: string, kind: string) => resourceOf('rbac.authorization.k8s.io', 'v1', plural, kind)
const [nodes, namespaces, pods] = [core('nodes', 'Node'), core('namespaces', 'Namespace'), core('pods', 'Pod', true)]
const measuredPods = resourceOf('metrics.k8s.io', 'v1beta1', 'pods', 'PodMetrics', true)

/** An account with the role that the original is deployed with. @returns its kubeconfig */
async function originalAccount(admin: KubeClient, { access }: RealApiServer): Promise<string> {
  const name = 'cluster-monitor'
  const verbs = ['get', 'list']
  await admin.create(core('serviceaccounts', 'ServiceAccount', true), { metadata: { name, namespace: 'default' } })
  await admin.create(rbac('clusterroles', 'ClusterRole'), {
    metadata: { name },
    rules: [
      { apiGroups: [''], resources: ['nodes', 'nodes/proxy', 'pods', 'namespaces'], verbs },
      { apiGroups: ['metrics.k8s.io'], resources: ['nodes', 'pods'], verbs },
    ],
  })
  await admin.create(rbac('clusterrolebindings', 'ClusterRoleBinding'), {
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
    subjects: [{ kind: 'ServiceAccount', name, namespace: 'default' }],
  })
  const path = `/api/v1/namespaces/default/serviceaccounts/${name}/token`
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 3600 } }
  const { status } = (await admin.request('POST', path, { body })) as { status: { token: string } }
  return kubeconfigOf([{ name, url: access.server, caPem: access.ca ?? '', token: status.token }])
}

describe.skipIf(missing !== undefined)(
  `on a real kube-apiserver${missing === undefined ? '' : ` (not run: ${missing})`}`,
  () => {
    let server: RealApiServer
    let admin: KubeClient

    beforeAll(async () => {
      const real = await startRealApiServer()
      if (!real) throw new Error('there is no real kube-apiserver')
      server = real
      writeFileSync(inFolder('real'), server.kubeconfig)
      await fillWithTenants(server.access)
      admin = createKubeClient(server.access)
      writeFileSync(inFolder('original'), await originalAccount(admin, server))
    }, SLOW_MS)
    afterAll(async () => {
      await admin?.[Symbol.asyncDispose]()
      await server?.stop()
    })

    it(
      'the command passes, tenants and all, with no right more than the original has; what moves is told at the next refresh',
      async () => {
        const flags = ['-addr', '127.0.0.1:0', '-refresh', '1s', '-nats', '']
        const url = await addressOf(run(['cluster-monitor', ...flags, '--kubeconfig', inFolder('original')]))
        await useMonitor({ url, secret, tenant, hasSystem: true })
        const root = tokenOf({ is_admin: true }, secret)
        const ask = async (path: string, token = root) =>
          (await (await fetch(url + path, { headers: { authorization: `Bearer ${token}` } })).json()) as Record<
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
        type Pod = { namespace: string; name: string; node: string; cpu_usage: number }
        const podsOf = async (token = root) => (await ask('/pod-metrics', token)).pods as unknown as Pod[]
        const shown = await podsOf()
        expect(shown.map(({ namespace }) => namespace)).not.toContain('kube-system')
        const placed = shown.filter(({ name }) => name === 'container').map(({ namespace, node }) => [namespace, node])
        expect(placed).toEqual([
          ['compute-ab3de6-00000001', 'n1'],
          ['compute-ab3de6-00000002', 'n2'],
          ['compute-other1-00000003', 'n1'],
        ])
        expect(shown.find(({ namespace }) => namespace === 'core')?.cpu_usage).toBe(1_000_000 + 250_000_000)

        // One after the other: of rounds each would need its own.
        const nodesNow = async () => (await ask('/cluster-info')).nodes as unknown as KubeObject[]
        const pressed = { conditions: [{ type: 'MemoryPressure', status: 'True' }] }
        await admin.patch(nodes, { name: 'n1' }, { status: pressed }, { kind: 'merge', subresource: 'status' })
        await expect.poll(async () => (await nodesNow())[0], SOON).toMatchObject(pressed)
        const lateNode = async () => (await podsOf()).find(({ name }) => name === 'late')?.node
        const late = { metadata: { name: 'late', namespace: 'core' } }
        await admin.create(measuredPods, { ...late, containers: [{ name: 'a', usage: { cpu: '1m', memory: '1Mi' } }] })
        await expect.poll(lateNode, SOON).toBe('')
        await admin.create(pods, { ...late, spec: { nodeName: 'n1', containers: [{ name: 'a', image: 'a' }] } })
        await expect.poll(lateNode, SOON).toBe('n1')
        const other = tokenOf({ user_id: 'Zz9zZ9' }, secret)
        expect(await podsOf(other)).toEqual([])
        const owned = { metadata: { labels: { 'user-id': 'Zz9zZ9' } } }
        await admin.patch(namespaces, { name: 'compute-other1-00000003' }, owned, { kind: 'merge' })
        await expect.poll(() => podsOf(other), SOON).toHaveLength(1)
        await admin.delete(nodes, { name: 'n2' })
        await expect.poll(async () => (await nodesNow()).length, SOON).toBe(1)
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
