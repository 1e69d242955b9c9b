import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { ApiServer, listenApi } from '#apiserver'
import { createKubeClient, type KubeObject, type Resource } from '#kube'
import { redisMissing, startRedis, type TestRedis } from '../../src/pipeline/state/test/redis-server.ts'
import { freePort } from '../../src/platform/runtime/testing/free-port.ts'
import { EventReader } from '../event-stream.ts'
import { tokenOf, useFleet, useMonitor } from '../monitor-client.ts'
import { connections, embeddedApi, HUB } from '../owned-fleet.ts'
import { clusterpulse, type Running } from '../process.ts'
import { fillWithTenants, tenant } from '../tenants.ts'

const secret = 'what the auth service signs with'
const SLOW_MS = 240_000
const PATIENT = { timeout: 90_000, interval: 200 }
const secrets: Resource = { group: '', version: 'v1', plural: 'secrets', kind: 'Secret', namespaced: true }
/** Equal but for their name and labels: what belongs to the one must never come with the other. */
const MEMBERS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  east: { environment: 'test' },
  west: { environment: 'production' },
}

const closing: (() => Promise<unknown>)[] = []
afterAll(async () => {
  for (const close of closing.reverse()) await close()
})

type Json = Record<string, unknown>

describe.skipIf(redisMissing !== undefined)(
  `the monitor of a hub on Redis${redisMissing ? ` (not run: ${redisMissing})` : ''}`,
  { timeout: SLOW_MS },
  () => {
    let redis: TestRedis
    let manager: Running
    let urls: readonly [string, string]
    const apis: Running[] = []
    const root = tokenOf({ user_id: 'Root01', is_admin: true }, secret)
    const owner = tokenOf({ user_id: tenant.userId }, secret)
    const ask = async (path: string, token = root, url = urls[0]) => {
      const answer = await fetch(url + path, { headers: { authorization: `Bearer ${token}` } })
      const text = await answer.text()
      const isJson = answer.headers.get('content-type')?.startsWith('application/json') ?? false
      return { status: answer.status, text, json: (isJson ? JSON.parse(text) : {}) as Json }
    }

    beforeAll(async () => {
      const folder = await mkdtemp(join(tmpdir(), 'monitor-redis-'))
      closing.push(() => rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }))
      const hub = await embeddedApi(folder)
      closing.push(hub.close)
      redis = await startRedis()
      closing.push(async () => redis[Symbol.asyncDispose]())
      await using kube = createKubeClient(hub.access)
      for (const [name, labels] of Object.entries(MEMBERS)) {
        const server = await ApiServer.open({ storage: { kind: 'memory' }, name, runsWorkloads: true })
        closing.push(async () => server[Symbol.asyncDispose]())
        const token = `token-of-${name}`
        const listener = await listenApi({
          tokens: [{ token, user: 'hub', groups: ['system:masters'] }],
          mounts: new Map([['', server]]),
        })
        closing.push(async () => listener[Symbol.asyncDispose]())
        const access = { server: listener.url, ca: listener.caPem, verifyTls: true }
        await fillWithTenants({ ...access, credentials: { kind: 'token', token } })
        const data = Object.entries({ token, 'ca.crt': listener.caPem }).map(([key, text]) => [key, btoa(text)])
        const inHub = { name, namespace: HUB }
        await kube.create(secrets, {
          ...{ metadata: inHub, type: 'Opaque', data: Object.fromEntries(data) },
        } as KubeObject)
        await kube.create(connections, {
          metadata: inHub,
          spec: { credentialsRef: { name }, endpoint: listener.url, labels },
        })
      }
      const env = {
        ...{ REDIS_HOST: '127.0.0.1', REDIS_PORT: String(redis.port), KUBECONFIG: join(folder, 'hub.yaml') },
        ...{ TRUSTED_PROXY_SECRET: 's'.repeat(32), LOG_LEVEL: 'info' },
      }
      manager = clusterpulse(['manager'], {
        env: {
          ...env,
          DATA_DIR: join(folder, 'manager'),
          INGESTER_PORT: String(await freePort()),
          USAGE_REFRESH: '1s',
        },
      })
      closing.push(async () => manager[Symbol.asyncDispose]())
      const monitored = {
        ...{ JWT_SECRET: secret, MONITOR_ADDRESS: '127.0.0.1:0', MONITOR_REFRESH: '1s', DEFAULT_CLUSTER: 'west' },
        ...{ MONITOR_CORS_ORIGINS: 'dash.example.com' },
      }
      const answers = async () => {
        const api = clusterpulse(['api', '--host', '127.0.0.1', '--port', String(await freePort())], {
          env: { ...env, ...monitored },
        })
        closing.push(async () => api[Symbol.asyncDispose]())
        apis.push(api)
        return (await api.says(/Cluster Monitor's interface is on (\S+)\s/, SLOW_MS))[1] ?? ''
      }
      urls = [await answers(), await answers()]
    }, SLOW_MS)

    it('passes as the command does: for the default cluster, for one of many, and on the other replica', async () => {
      const common = { secret, tenant, hasSystem: true }
      await useMonitor({ url: urls[0], ...common })
      await useMonitor({ url: `${urls[0]}/clusters/east`, ...common })
      await useMonitor({ url: urls[1], ...common })
    })

    it('passes for the fleet, on both replicas', async () => {
      const clusters = { west: ['environment', 'production'], east: ['environment', 'test'] } as const
      for (const url of urls) await useFleet({ url, secret, tenant, clusters })
    })

    it('gives tickets that are good once, on whichever replica', async () => {
      const headers = { authorization: `Bearer ${owner}` }
      const issued = await fetch(`${urls[0]}/stream-tickets`, { method: 'POST', headers })
      expect(issued.status).toBe(201)
      const { ticket } = (await issued.json()) as { ticket: string }
      using stream = await EventReader.open(`${urls[1]}/sse/health?ticket=${ticket}`)
      await expect.poll(() => stream.documents[0]?.type, PATIENT).toBe('pods')
      for (const url of urls)
        await expect(EventReader.open(`${url}/sse/health?ticket=${ticket}`)).rejects.toThrow('401')
    })

    it('goes on over a Redis that lost everything: streams stay, and tell of what is read afterwards', async () => {
      using stream = await EventReader.open(`${urls[1]}/sse/health?token=${owner}`)
      const socket = new WebSocket(`${urls[1].replace('http', 'ws')}/ws/cluster-info?token=${root}`)
      const messages: string[] = []
      let isClosed = false
      socket
        .on('message', (data) => messages.push(String(data)))
        .on('close', () => {
          isClosed = true
        })
      await expect.poll(() => [stream.events.length, messages.length].every((count) => count > 1), PATIENT).toBe(true)
      await redis.kill()
      expect(await (await fetch(`${urls[1]}/healthz`)).text()).toBe('ok')
      const { pods } = (await ask('/pod-metrics', owner, urls[1])).json as { pods: { namespace: string }[] }
      expect(pods.map(({ namespace }) => namespace)).toEqual(tenant.namespaces)
      await redis.start()
      const counts = [stream.events.length, messages.length] as const
      await expect.poll(() => stream.events.length > counts[0] && messages.length > counts[1], PATIENT).toBe(true)
      expect([stream.isEnded, isClosed]).toEqual([false, false])
      for (const { type, payload } of stream.documents) {
        const told = (payload as { pods: { namespace: string }[] }).pods
        // Nothing is told as gone that is there.
        expect([type, told.map(({ namespace }) => namespace)]).toEqual(['pods', tenant.namespaces])
      }
      socket.terminate()
    })

    it('writes no token into a log', () => {
      const text = apis.map((api) => api.stderr() + api.stdout()).join('\n')
      expect(text).toContain('token=[secret]')
      const shown = [...text.matchAll(/token(?:=|%3D)([^&"\s]+)/g)].map(([, value]) => value)
      expect(new Set(shown)).toEqual(new Set(['[secret]']))
      expect(text).not.toMatch(/eyJ[\w-]+\.eyJ/)
    })
  },
)
