import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createClient } from '#http'
import { createKubeClient, type KubeObject, type Resource } from '#kube'
import { scenarios, simulateFleet } from '#simulator'
import { redisMissing, startRedis } from '../../src/pipeline/state/test/redis-server.ts'
import { connections, embeddedApi, freePort, HUB, SLOW_MS } from '../owned-fleet.ts'
import { clusterpulse, eventually, type Running } from '../process.ts'

const SECRET = 's'.repeat(32)
const secrets: Resource = { group: '', version: 'v1', plural: 'secrets', kind: 'Secret', namespaced: true }
/** A round comes every five minutes here: what is there before was followed, not polled. */
const INTERVAL_SECONDS = 300
/** A change is there within a second; so much longer a loaded machine may take. */
const LIVE_MS = 20_000

/** Asks one `api` all the time how many pods there are. Only more come: an answer with fewer than the one before is false. */
class Watcher implements AsyncDisposable {
  readonly false: string[] = []
  shown = 0
  readonly #pods: () => Promise<number>
  readonly #loop: Promise<void>
  #isOver = false

  constructor(pods: () => Promise<number>, most: () => number) {
    this.#pods = pods
    this.#loop = this.#watch(most)
  }

  async #watch(most: () => number): Promise<void> {
    while (!this.#isOver) {
      // No answer is none; a wrong one is worse.
      const count = await this.#pods().catch(() => undefined)
      if (count !== undefined && (count < this.shown || count > most()))
        this.false.push(`${count} pods, after ${this.shown}, of at most ${most()}`)
      this.shown = Math.max(this.shown, count ?? 0)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  async [Symbol.asyncDispose]() {
    this.#isOver = true
    await this.#loop
  }
}

it.skipIf(redisMissing !== undefined)(
  `two api processes show a pod as it comes, over a killed api, a Redis that lost all, and a killed manager${redisMissing ? ` (not run: ${redisMissing})` : ''}`,
  { timeout: 300_000 },
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'two-apis-'))
    const hub = await embeddedApi(folder)
    const kube = createKubeClient(hub.access)
    try {
      await using redis = await startRedis()
      await using members = await simulateFleet(scenarios.plain({ clusters: 1, nodes: 2, pods: 20 }), { lives: false })
      const [member] = members.clusters
      if (!member) throw new Error('there is no simulated cluster')
      const data = { token: member.token, 'ca.crt': member.caPem }
      const encoded = Object.fromEntries(Object.entries(data).map(([key, text]) => [key, btoa(text)]))
      const inHub = { name: 'member', namespace: HUB }
      await kube.create(secrets, { metadata: inHub, type: 'Opaque', data: encoded } as KubeObject)
      await kube.create(connections, {
        metadata: inHub,
        spec: {
          ...{ credentialsRef: { name: 'member' }, endpoint: member.url },
          monitoring: { interval: INTERVAL_SECONDS },
        },
      })
      const env = {
        ...{ REDIS_HOST: '127.0.0.1', REDIS_PORT: String(redis.port), KUBECONFIG: join(folder, 'hub.yaml') },
        ...{ TRUSTED_PROXY_SECRET: SECRET, ADMIN_GROUPS: 'admins' },
      }
      const ports = { ingester: await freePort(), one: await freePort(), other: await freePort() }
      const manages = () =>
        clusterpulse(
          ['manager', '--metrics-bind-address', '127.0.0.1:0', '--health-probe-bind-address', '127.0.0.1:0'],
          {
            env: {
              ...{ ...env, DATA_DIR: join(folder, 'manager') },
              ...{ INGESTER_HOST: '127.0.0.1', INGESTER_PORT: String(ports.ingester) },
            },
          },
        )
      const answers = (port: number) => clusterpulse(['api', '--host', '127.0.0.1', '--port', String(port)], { env })
      const podsOf = (port: number) => {
        const who = { 'x-forwarded-user': 'root', 'x-forwarded-groups': 'admins' }
        const headers = { 'x-clusterpulse-proxy-secret': SECRET, ...who }
        const client = createClient({ baseUrl: `http://127.0.0.1:${port}`, headers })
        return async () => (await client.fleetRows('pods', { limit: 1 })).total
      }
      const running: Record<'manager' | 'one' | 'other', Running> = {
        ...{ manager: manages(), one: answers(ports.one), other: answers(ports.other) },
      }
      try {
        let pods = members.world(member.name).pods.size
        const most = () => pods
        await using one = new Watcher(podsOf(ports.one), most)
        await using other = new Watcher(podsOf(ports.other), most)
        const both = [one, other]
        const areShown = (withinMs: number) =>
          eventually(
            async () => both.map(({ shown }) => shown),
            (shown) => shown.every((count) => count === pods),
            withinMs,
          ).catch((error: unknown) => {
            const ends = Object.values(running).map((role) => role.stderr().slice(-2000))
            throw new Error([`${pods} pods; ${String(error)}`, ...ends].join('\n'))
          })
        const comes = async () => {
          pods++
          await members.addPods(member.name, 1)
        }
        await areShown(SLOW_MS)
        for (let i = 0; i < 5; i++) {
          await comes()
          await areShown(LIVE_MS)
        }

        await running.other.kill('SIGKILL')
        await comes()
        running.other = answers(ports.other)
        await areShown(SLOW_MS)

        await redis.kill()
        await comes()
        await redis.start()
        await areShown(SLOW_MS)

        await running.manager.kill('SIGKILL')
        await comes()
        running.manager = manages()
        await areShown(SLOW_MS)
        await comes()
        await areShown(LIVE_MS)
        expect(both.map((watcher) => watcher.false)).toEqual([[], []])
      } finally {
        for (const role of Object.values(running)) await role[Symbol.asyncDispose]()
      }
    } finally {
      await kube[Symbol.asyncDispose]()
      await hub.close()
      await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
    }
  },
)
