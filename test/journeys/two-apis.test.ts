import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createClient } from '#http'
import { createKubeClient, type KubeObject, type Resource } from '#kube'
import { type SimulatedFleet, scenarios, simulateFleet } from '#simulator'
import { redisMissing, startRedis, type TestRedis } from '../../src/pipeline/state/test/redis-server.ts'
import { freePort } from '../../src/platform/runtime/testing/free-port.ts'
import { noBrowser, openBrowser } from '../../web/testing/browser.ts'
import { connections, embeddedApi, HUB, SLOW_MS } from '../owned-fleet.ts'
import { clusterpulse, eventually, type Running } from '../process.ts'

const SECRET = 's'.repeat(32)
const administrator = {
  'x-clusterpulse-proxy-secret': SECRET,
  ...{ 'x-forwarded-user': 'root', 'x-forwarded-groups': 'admins' },
}
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

interface Hub {
  readonly redis: TestRedis
  readonly members: SimulatedFleet
  readonly member: string
  readonly ports: Readonly<Record<'ingester' | 'one' | 'other', number>>
  readonly running: Record<'manager' | 'one' | 'other', Running>
  readonly manages: () => Running
  readonly answers: (port: number) => Running
  readonly podsOf: (port: number) => () => Promise<number>
}

/** A manager, two `api` processes and a simulated member of twenty pods, for as long as the story takes. */
async function withTwoApis(story: (hub: Hub) => Promise<void>): Promise<void> {
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
      clusterpulse(['manager', '--metrics-bind-address', '127.0.0.1:0', '--health-probe-bind-address', '127.0.0.1:0'], {
        env: {
          ...{ ...env, DATA_DIR: join(folder, 'manager') },
          ...{ INGESTER_HOST: '127.0.0.1', INGESTER_PORT: String(ports.ingester) },
        },
      })
    const answers = (port: number) => clusterpulse(['api', '--host', '127.0.0.1', '--port', String(port)], { env })
    const podsOf = (port: number) => {
      const client = createClient({ baseUrl: `http://127.0.0.1:${port}`, headers: administrator })
      return async () => (await client.fleetRows('pods', { limit: 1 })).total
    }
    const running: Record<'manager' | 'one' | 'other', Running> = {
      ...{ manager: manages(), one: answers(ports.one), other: answers(ports.other) },
    }
    try {
      await story({ redis, members, member: member.name, ports, running, manages, answers, podsOf })
    } finally {
      for (const role of Object.values(running)) await role[Symbol.asyncDispose]()
    }
  } finally {
    await kube[Symbol.asyncDispose]()
    await hub.close()
    await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  }
}

it.skipIf(redisMissing !== undefined)(
  `two api processes show a pod as it comes, over a killed api, a Redis that lost all, and a killed manager${redisMissing ? ` (not run: ${redisMissing})` : ''}`,
  () =>
    withTwoApis(async ({ redis, members, member, ports, running, manages, answers, podsOf }) => {
      let pods = members.world(member).pods.size
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
        await members.addPods(member, 1)
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
    }),
)

const missing = redisMissing ?? noBrowser

it.skipIf(missing !== undefined)(
  `a page goes on by difference on the other api when its own is killed${missing ? ` (not run: ${missing})` : ''}`,
  () =>
    withTwoApis(async ({ members, member, ports, running, podsOf }) => {
      await using way = await Way.open(ports.one)
      const all = () => members.world(member).pods.size
      for (const port of [ports.one, ports.other])
        await eventually(
          () => podsOf(port)().catch(() => 0),
          (count) => count === all(),
          SLOW_MS,
        )
      const browser = await openBrowser()
      try {
        const page = await browser.newPage({ extraHTTPHeaders: administrator })
        page.setDefaultTimeout(SLOW_MS)
        await page.addInitScript(listening)
        await page.goto(`http://127.0.0.1:${way.port}/types/pods?view=rows`)
        const shown = async () => (await page.evaluate('rowsSeen')) as Seen
        const isShown = (count: number) => eventually(shown, ({ now }) => now === count, SLOW_MS)
        await isShown(all())
        await eventually(shown, ({ heard }) => heard.includes('synced'), SLOW_MS)
        await members.addPods(member, 1)
        await isShown(all())

        // For a while nobody answers at the page's address; what comes meanwhile is not lost.
        way.to = undefined
        await running.one.kill('SIGKILL')
        await page.locator('main.is-unheard').waitFor()
        await members.addPods(member, 2)
        await eventually(podsOf(ports.other), (count) => count === all(), SLOW_MS)
        expect((await shown()).now).toBe(all() - 2)
        await page.evaluate('rowsSeen.heard.length = 0')
        way.to = ports.other
        await isShown(all())
        await page.locator('main.is-unheard').waitFor({ state: 'detached' })
        await members.addPods(member, 1)
        await isShown(all())
        const { heard, least, doubled } = await shown()
        expect(heard).toContain('rowsChange')
        expect(heard.filter((kind) => kind === 'rows' || kind === 'snapshot')).toEqual([])
        expect([least, doubled]).toEqual([0, []])
      } finally {
        await browser.close()
      }
    }),
)

interface Seen {
  readonly now: number
  /** by how many there were fewer than before, at most: here none goes */
  readonly least: number
  readonly doubled: readonly string[]
  /** kinds of messages of the stream */
  readonly heard: readonly string[]
}

/** In the page: what stands in its table at any time, and what its own stream says. */
const listening = `
  delete window.SharedWorker
  globalThis.rowsSeen = { now: 0, least: 0, doubled: [], heard: [] }
  const Heard = EventSource
  globalThis.EventSource = class extends Heard {
    constructor(...args) {
      super(...args)
      for (const kind of ['snapshot', 'change', 'rows', 'rowsChange', 'synced'])
        this.addEventListener(kind, () => rowsSeen.heard.push(kind))
    }
  }
  new MutationObserver(() => {
    const names = [...document.querySelectorAll('tbody [data-row-link]')].map(({ textContent }) => textContent)
    if (names.length === 0) return
    rowsSeen.least = Math.min(rowsSeen.least, names.length - rowsSeen.now)
    rowsSeen.now = names.length
    rowsSeen.doubled.push(...names.filter((name, place) => names.indexOf(name) !== place))
  }).observe(document, { childList: true, subtree: true })
`

/** The one address of a hub, which leads to one of its processes. */
class Way implements AsyncDisposable {
  readonly port: number
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #to: number | undefined

  private constructor(server: Server, to: number) {
    this.#server = server
    this.#to = to
    this.port = (server.address() as AddressInfo).port
    server.on('connection', (socket) => this.#lead(socket))
  }

  static async open(to: number): Promise<Way> {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new Way(server, to)
  }

  /** undefined: nowhere. What is open breaks off. */
  set to(port: number | undefined) {
    this.#to = port
    for (const socket of this.#sockets) socket.destroy()
  }

  #lead(socket: Socket): void {
    if (this.#to === undefined) {
      socket.destroy()
      return
    }
    const onward = connect(this.#to, '127.0.0.1')
    for (const [one, other] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      this.#sockets.add(one)
      one.pipe(other)
      one.on('error', () => other.destroy())
      one.on('close', () => {
        this.#sockets.delete(one)
        other.destroy()
      })
    }
  }

  async [Symbol.asyncDispose]() {
    this.to = undefined
    this.#server.close()
    await once(this.#server, 'close')
  }
}
