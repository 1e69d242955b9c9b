import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createClient } from '#http'
import { createKubeClient, type KubeObject, type Resource } from '#kube'
import { scenarios, simulateFleet } from '#simulator'
import { redisMissing, startRedis } from '../../src/pipeline/state/test/redis-server.ts'
import { freePort } from '../../src/platform/runtime/testing/free-port.ts'
import { leastOf } from '../../src/platform/runtime/testing/least-of.ts'
import { connections, embeddedApi, HUB, policies, SLOW_MS, sources } from '../owned-fleet.ts'
import { clusterpulse, eventually } from '../process.ts'
import { SilentProxy } from '../silent-proxy.ts'

/** Of the machine that runs this, beside the 15 s that people wait at most. */
const BACK_MS = 15_000 + 5_000
/** `npm run soak silence` for many. */
const SILENCES = Number(process.env.SILENCES ?? 1)
const SECRET = 's'.repeat(32)
const kind = (group: string, version: string, plural: string, name: string): Resource => ({
  ...{ group, version, plural, kind: name },
  namespaced: true,
})
const secrets = kind('', 'v1', 'secrets', 'Secret')
const registries = kind('clusterpulse.io', 'v1alpha1', 'registryconnections', 'RegistryConnection')
const inHub = (name: string) => ({ name, namespace: HUB })

const policyOf = (user: string): KubeObject => ({
  metadata: inHub(user),
  spec: {
    identity: { subjects: { users: [user] }, priority: 100 },
    access: { effect: 'Allow' },
    scope: { clusters: { rules: [{ selector: { matchNames: ['*'] }, permissions: { view: true } }] } },
  },
})

it.skipIf(redisMissing !== undefined)(
  `manager and api are back within 15 s when all their connections to Redis fall silent, each of them, without a restart${redisMissing ? ` (not run: ${redisMissing})` : ''}`,
  { timeout: 270_000 + SILENCES * 30_000 },
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'silent-redis-'))
    const hub = await embeddedApi(folder)
    const kube = createKubeClient(hub.access)
    try {
      await using redis = await startRedis()
      await using proxy = await SilentProxy.before(redis.port)
      await using members = await simulateFleet(scenarios.plain({ clusters: 1, nodes: 2, pods: 4 }), { lives: false })
      const [member] = members.clusters
      if (!member) throw new Error('there is no simulated cluster')
      const data = { token: member.token, 'ca.crt': member.caPem }
      const encoded = Object.fromEntries(Object.entries(data).map(([key, text]) => [key, btoa(text)]))
      await kube.create(secrets, { metadata: inHub('member'), type: 'Opaque', data: encoded } as KubeObject)
      const declare = (name: string) =>
        kube.create(connections, {
          metadata: inHub(name),
          spec: { credentialsRef: { name: 'member' }, endpoint: member.url },
        })

      const env = {
        ...{ REDIS_HOST: '127.0.0.1', REDIS_PORT: String(proxy.port), KUBECONFIG: join(folder, 'hub.yaml') },
        ...{ TRUSTED_PROXY_SECRET: SECRET, ADMIN_GROUPS: 'admins' },
      }
      const bound = ['--metrics-bind-address', '127.0.0.1:0', '--health-probe-bind-address', '127.0.0.1:0']
      await using manager = clusterpulse(['manager', ...bound], {
        env: {
          ...{ ...env, DATA_DIR: join(folder, 'manager') },
          ...{ INGESTER_HOST: '127.0.0.1', INGESTER_PORT: String(await freePort()) },
        },
      })
      await using api = clusterpulse(['api', '--host', '127.0.0.1', '--port', '0'], { env })
      const baseUrl = (await api.says(/on (http:\/\/127\.0\.0\.1:\d+)/, SLOW_MS))[1] ?? ''
      const as = (user: string, groups = '') => {
        const who = { 'x-forwarded-user': user, 'x-forwarded-groups': groups }
        return createClient({ baseUrl, headers: { 'x-clusterpulse-proxy-secret': SECRET, ...who } })
      }
      /** One of each sort, and everything the page shows of them. */
      const declareAll = async (mark: string) => {
        await declare(`cluster-${mark}`)
        await kube.create(policies, policyOf(`person-${mark}`))
        await kube.create(sources, { metadata: inHub(`pods-${mark}`), spec: podsCalled(`pods${mark}`) })
        await kube.create(registries, {
          metadata: inHub(`registry-${mark}`),
          spec: { endpoint: 'https://127.0.0.1:9' },
        })
      }
      const seen = async (mark: string) => {
        const root = as('root', 'admins')
        const clusters = await as(`person-${mark}`).clusters()
        return {
          cluster: clusters.items.some(({ name, nodes }) => name === `cluster-${mark}` && nodes?.total === 2),
          type: (await root.types()).items.some(({ type }) => type === `pods${mark}`),
          registry: (await root.registries()).items.some(({ name }) => name === `registry-${mark}`),
        }
      }
      const all = { cluster: true, type: true, registry: true }
      const isThere = (mark: string, withinMs: number) =>
        eventually(
          () => seen(mark),
          (found) => Object.values(found).every(Boolean),
          withinMs,
        ).catch((error: unknown) => {
          throw new Error(`${String(error)}\n${manager.stderr().slice(-3000)}\n${api.stderr().slice(-3000)}`)
        })

      await declareAll('a')
      expect(await isThere('a', SLOW_MS)).toEqual(all)
      for (let time = 1; time <= SILENCES; time++) {
        let again = 0
        const backAfterMs = await leastOf(3, BACK_MS, async () => {
          const mark = `b${time}x${again++}`
          const before = proxy.carrying
          expect(before).toBeGreaterThan(8)
          expect(proxy.silence()).toBeGreaterThanOrEqual(before)
          const silentAt = Date.now()
          await declareAll(mark)
          expect(await isThere(mark, SLOW_MS)).toEqual(all)
          // Not only those that somebody waited for: for every one that fell silent another one was opened.
          await eventually(
            async () => proxy.carrying,
            (carrying) => carrying >= before,
            SLOW_MS,
          )
          return Date.now() - silentAt
        })
        expect(backAfterMs).toBeLessThan(BACK_MS)
      }
    } finally {
      await kube[Symbol.asyncDispose]()
      await hub.close()
      await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
    }
  },
)

const podsCalled = (name: string) => ({
  source: { apiVersion: 'v1', kind: 'Pod' },
  fields: [{ name: 'phase', path: '.status.phase' }],
  collection: { intervalSeconds: 30 },
  rbac: { resourceTypeName: name },
})
