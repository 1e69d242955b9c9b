import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ChannelCredentials } from '@grpc/grpc-js'
import { parse, stringify } from 'yaml'
import { clusterpulse, eventually, program, type Running } from './process.ts'
import type { Attack } from './siege-attackers.ts'
import { WirePusher } from './wire-pusher.ts'

export type Force = Pick<Attack, 'silent' | 'idle' | 'bombsPerSecond'>

/** ms, sorted, of one window */
export interface Waits {
  readonly acks: readonly number[]
  readonly healthz: readonly number[]
  readonly page: readonly number[]
  /** requests that failed or were refused, in words */
  readonly failures: readonly string[]
}

interface Kubeconfig {
  clusters: { name: string; cluster: Record<string, unknown> }[]
  contexts: { name: string; context: Record<string, unknown> }[]
}

const EVERY_MS = 50
const ASK_MS = 15_000
export const p99 = (sorted: readonly number[]): number => sorted[Math.ceil(sorted.length * 0.99) - 1] ?? Number.NaN

/** A hub (`up`), agents that push to it, members that hang, and a crowd that can be let loose on it. */
export class Siege implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'siege-'))
  readonly #running: Running[] = []
  readonly #pushers: WirePusher[] = []
  readonly #sockets = new Set<Socket>()
  readonly #hanging: Server = createServer((socket) => {
    this.#sockets.add(socket.on('error', () => undefined).on('close', () => this.#sockets.delete(socket)))
  })
  #base = ''
  #ingesterPort = 0
  #bomber = ''
  #attackers: Running | undefined

  static async open({ agents, hanging }: { readonly agents: number; readonly hanging: number }): Promise<Siege> {
    const siege = new Siege()
    try {
      await siege.#open(agents, hanging)
      return siege
    } catch (error) {
      await siege[Symbol.asyncDispose]()
      throw error
    }
  }

  async #open(agents: number, hanging: number): Promise<void> {
    const members = join(this.#folder, 'members')
    const simulate = ['simulate', '--clusters', '5', '--nodes', '5', '--pods', '50', '--kubeconfig-out', members]
    await this.#start(clusterpulse(simulate)).says(/kubeconfig in/)
    await this.#addHanging(members, hanging)
    const data = join(this.#folder, 'hub')
    const ports = ['--port', '0', '--control-plane-port', '0', '--ingester-port', '0']
    const hub = this.#start(clusterpulse(['up', '--kubeconfig', members, '--data-dir', data, ...ports]))
    const [, base = ''] = await hub.says(/on (http:\S+)/, 60_000)
    this.#base = base
    const tokens = []
    for (let i = 0; i <= agents; i++) tokens.push(await this.#connect(`agent-${i}`, join(data, 'kubeconfig')))
    this.#bomber = tokens.pop() ?? ''
    const credentials = ChannelCredentials.createSsl(null, null, null, { rejectUnauthorized: false })
    for (const [i, token] of tokens.entries())
      this.#pushers.push(
        new WirePusher({ host: '127.0.0.1', port: this.#ingesterPort, cluster: `agent-${i}`, token, credentials }),
      )
    await eventually(
      async () => this.#pushers.every(({ isConnected }) => isConnected),
      (yes) => yes,
      30_000,
    )
  }

  /** One window: every agent pushes, and health and page are asked on connections of their own, all evenly spaced. */
  async measure(seconds: number): Promise<Waits> {
    const [healthz, page, failures]: [number[], number[], string[]] = [[], [], []]
    for (const pusher of this.#pushers) pusher.waits.length = 0
    const asked: Promise<void>[] = []
    const ends = performance.now() + seconds * 1000
    for (let turn = 0; performance.now() < ends; turn++) {
      this.#pushers[turn % this.#pushers.length]?.push()
      asked.push(this.#ask('/healthz', healthz, failures), this.#ask('/', page, failures))
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS))
    }
    await Promise.all(asked)
    await eventually(
      async () => this.#pushers.flatMap(({ unsafe }) => unsafe),
      (unsafe) => unsafe.length === 0,
      30_000,
    )
    for (const { refusals } of this.#pushers) failures.push(...refusals)
    const acks = this.#pushers.flatMap(({ waits }) => waits)
    const sorted = (waits: readonly number[]) => waits.toSorted((left, right) => left - right)
    return { acks: sorted(acks), healthz: sorted(healthz), page: sorted(page), failures }
  }

  async attack(force: Force): Promise<void> {
    const ports = { ingesterPort: this.#ingesterPort, apiPort: Number(new URL(this.#base).port) }
    const attack: Attack = { ...force, ...ports, cluster: `agent-${this.#pushers.length}`, token: this.#bomber }
    const file = join(import.meta.dirname, 'siege-attackers.ts')
    const args = ['--import', 'tsx', file, JSON.stringify(attack)]
    this.#attackers = program(process.execPath, args, { cwd: join(import.meta.dirname, '..') })
    await this.#attackers.says(/attacking/)
  }

  async relieve(): Promise<void> {
    await this.#attackers?.kill('SIGKILL')
    this.#attackers = undefined
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.relieve()
    for (const pusher of this.#pushers) await pusher[Symbol.asyncDispose]()
    for (const socket of this.#sockets) socket.destroy()
    this.#hanging.close()
    for (const one of this.#running.toReversed()) await one[Symbol.asyncDispose]()
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  }

  #start(one: Running): Running {
    this.#running.push(one)
    return one
  }

  /** Members that take a connection and say nothing. */
  async #addHanging(kubeconfig: string, count: number): Promise<void> {
    this.#hanging.listen(0, '127.0.0.1')
    await once(this.#hanging, 'listening')
    const address = this.#hanging.address()
    const port = typeof address === 'object' && address ? address.port : 0
    const config = parse(await readFile(kubeconfig, 'utf8')) as Kubeconfig
    const user = config.contexts[0]?.context.user
    for (let i = 0; i < count; i++) {
      const name = `hanging-${i}`
      config.clusters.push({ name, cluster: { server: `https://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true } })
      config.contexts.push({ name, context: { cluster: name, user } })
    }
    await writeFile(kubeconfig, stringify(config))
  }

  /** @returns the token that `connect` prints */
  async #connect(cluster: string, kubeconfig: string): Promise<string> {
    const run = clusterpulse(['connect', cluster, '--kubeconfig', kubeconfig])
    if ((await run.ended()) !== 0) throw new Error(`connect ${cluster}: ${run.stderr()}`)
    const word = (name: string) => new RegExp(`${name}=(\\S+)`).exec(run.stdout())?.[1] ?? ''
    this.#ingesterPort = Number(word('INGESTER_ADDRESS').split(':').at(-1))
    return word('COLLECTOR_TOKEN')
  }

  async #ask(path: string, waits: number[], failures: string[]): Promise<void> {
    const from = performance.now()
    try {
      const headers = { connection: 'close' }
      const answer = await fetch(this.#base + path, { headers, signal: AbortSignal.timeout(ASK_MS) })
      await answer.arrayBuffer()
      if (!answer.ok) failures.push(`${path}: ${answer.status}`)
      waits.push(performance.now() - from)
    } catch (error) {
      failures.push(`${path}: ${error instanceof Error ? error.message : error}`)
    }
  }
}
