import { mkdtempSync, rmSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ChannelCredentials } from '@grpc/grpc-js'
import { parse, stringify } from 'yaml'
import { bundled } from './bundled.ts'
import { clusterpulse, eventually, program, type Running } from './process.ts'
import type { Attack, Blows } from './siege-attackers.ts'
import { WirePusher } from './wire-pusher.ts'

export type Force = Pick<Attack, 'silent' | 'idle' | 'bombsPerSecond'>

interface SiegeSize {
  readonly agents: number
  /** members that answer until an attack, and hang as long as it goes on */
  readonly hanging: number
}

/** ms, sorted, of one window */
export interface Waits {
  readonly acks: readonly number[]
  readonly healthz: readonly number[]
  readonly page: readonly number[]
  /** requests that failed or were refused, in words */
  readonly failures: readonly string[]
}

interface Kubeconfig {
  clusters: { name: string }[]
  contexts: { name: string; context: { cluster: string; user: string } }[]
  users: { name: string }[]
}

const EVERY_MS = 50
const ASK_MS = 15_000
export const channels = ['acks', 'healthz', 'page'] as const
/** What docs/threat-model.md says a hub withstands. */
export const crowd: Force = { silent: 300, idle: 1000, bombsPerSecond: 100 }
/** At least so much of a crowd is at the doors at any moment. */
const HELD = 0.8
/** How much the p99 of others may grow under it. */
export const MOST = 1.2

export interface Compared {
  /** p99 of all windows of a kind together, ms */
  readonly calm: number
  readonly under: number
  readonly ratio: number
}

/** Windows of calm and of attack that were measured side by side. */
export function compare(channel: (typeof channels)[number], calm: readonly Waits[], under: readonly Waits[]): Compared {
  const pooled = (all: readonly Waits[]) => p99(all.flatMap((waits) => waits[channel]).toSorted((a, b) => a - b))
  const [before, after] = [pooled(calm), pooled(under)]
  return { calm: before, under: after, ratio: after / before }
}

export const p99 = (sorted: readonly number[]): number => sorted[Math.ceil(sorted.length * 0.99) - 1] ?? Number.NaN

/** A hub (`up`) with members it reads, agents that push to it, and a crowd that can be let loose on it. */
export class Siege implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'siege-'))
  readonly #running: Running[] = []
  readonly #pushers: WirePusher[] = []
  #base = ''
  #ingesterPort = 0
  #hanging: Running | undefined
  #attackers: Running | undefined
  #programOfAttackers: Awaited<ReturnType<typeof bundled>> | undefined
  #attacks = 0

  static async open(size: SiegeSize): Promise<Siege> {
    const siege = new Siege()
    try {
      await siege.#open(size)
      return siege
    } catch (error) {
      await siege[Symbol.asyncDispose]()
      throw error
    }
  }

  async #open({ agents, hanging }: SiegeSize): Promise<void> {
    const members = join(this.#folder, 'members')
    await this.#simulate(members, 5)
    const besieged = join(this.#folder, 'besieged')
    this.#hanging = await this.#simulate(besieged, hanging)
    await joinKubeconfigs(members, besieged)
    const ports = ['--port', '0', '--control-plane-port', '0', '--ingester-port', '0']
    const hub = this.#start(
      clusterpulse(['up', '--kubeconfig', members, '--data-dir', join(this.#folder, 'hub'), ...ports]),
    )
    const [, base = ''] = await hub.says(/on (http:\S+)/)
    this.#base = base
    const tokens = await Promise.all(Array.from({ length: agents }, (_, i) => this.#connect(`agent-${i}`)))
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
    if (this.#hanging) process.kill(this.#hanging.pid, 'SIGSTOP')
    // An agent that nobody knows yet: one that sent bombs before is not listened to.
    const cluster = `bomber-${++this.#attacks}`
    const attack: Attack = { ...force, ...ports, cluster, token: await this.#connect(cluster) }
    this.#programOfAttackers ??= await bundled(join(import.meta.dirname, 'siege-attackers.ts'))
    const args = [this.#programOfAttackers.path, JSON.stringify(attack)]
    this.#attackers = program(process.execPath, args, { cwd: join(import.meta.dirname, '..'), holdsInput: true })
    await this.#attackers.says(/attacking/)
  }

  /** What came of the attack since this was asked for last. */
  async #blows(): Promise<Blows> {
    const attackers = this.#attackers
    if (!attackers) throw new Error('nobody attacks')
    const known = attackers.stdout().length
    process.kill(attackers.pid, 'SIGUSR1')
    await eventually(
      async () => attackers.stdout().slice(known),
      (said) => said.endsWith('\n'),
      30_000,
    )
    return JSON.parse(attackers.stdout().slice(known)) as Blows
  }

  /** A calm window and one under attack, one after the other. */
  async pair(seconds: number): Promise<readonly [calm: Waits, under: Waits]> {
    const settled = () => new Promise((resolve) => setTimeout(resolve, 2_000))
    if (this.#attacks > 0) await settled()
    const calm = await this.measure(seconds)
    await this.attack(crowd)
    await settled()
    const under = await this.measure(seconds)
    const { open, streams } = await this.#blows()
    // Who is closed comes again, and who is refused tries again: a crowd that went away would prove nothing.
    if (open.silent < HELD * crowd.silent || open.idle < HELD * crowd.idle || streams < seconds)
      throw new Error(`the attack was none: ${JSON.stringify({ open, streams })}`)
    await this.relieve()
    return [calm, under]
  }

  async relieve(): Promise<void> {
    await this.#attackers?.kill('SIGKILL')
    this.#attackers = undefined
    if (this.#hanging) process.kill(this.#hanging.pid, 'SIGCONT')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.relieve()
    await this.#programOfAttackers?.[Symbol.asyncDispose]()
    for (const pusher of this.#pushers) await pusher[Symbol.asyncDispose]()
    for (const one of this.#running.toReversed()) await one[Symbol.asyncDispose]()
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  }

  #start(one: Running): Running {
    this.#running.push(one)
    return one
  }

  async #simulate(kubeconfig: string, clusters: number): Promise<Running> {
    const size = ['--clusters', String(clusters), '--nodes', '5', '--pods', '50', '--kubeconfig-out', kubeconfig]
    const simulator = this.#start(clusterpulse(['simulate', ...size]))
    await simulator.says(/kubeconfig in/)
    return simulator
  }

  /** @returns the token that `connect` prints */
  async #connect(cluster: string): Promise<string> {
    const kubeconfig = join(this.#folder, 'hub', 'kubeconfig')
    const run = clusterpulse(['connect', cluster, '--bearer-token', '--kubeconfig', kubeconfig])
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

/** The clusters of the second, under names of their own, are added to the first. */
async function joinKubeconfigs(into: string, from: string): Promise<void> {
  const [config, added] = await Promise.all(
    [into, from].map(async (file) => parse(await readFile(file, 'utf8')) as Kubeconfig),
  )
  if (!config || !added) return
  const renamed = (name: string) => `besieged-${name}`
  config.clusters.push(...added.clusters.map((one) => ({ ...one, name: renamed(one.name) })))
  config.users.push(...added.users.map((one) => ({ ...one, name: renamed(one.name) })))
  for (const { name, context } of added.contexts)
    config.contexts.push({
      name: renamed(name),
      context: { ...context, cluster: renamed(context.cluster), user: renamed(context.user) },
    })
  await writeFile(into, stringify(config))
}
