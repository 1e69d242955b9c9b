import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { createClient } from '#http'
import { type Access, accessPolicies, connections } from './damage-objects.ts'
import { clusterpulse, eventually, type Running } from './process.ts'

/** What becomes of one hub whose folder was harmed. */
export type Outcome =
  | 'served'
  | 'served at the second start'
  | 'served what is left'
  | 'stays dead'
  | 'serves altered objects'

export interface DamageRun {
  readonly what: string
  readonly outcome: Outcome
  readonly detail: string
}

const NODES = 3
const CLUSTERS = ['sim-001', 'sim-002']

const harms: Record<string, (path: string, random: () => number) => void> = {
  'a flipped bit': (path, random) =>
    change(path, random, (bytes, at) => bytes.writeUInt8((bytes[at] ?? 0) ^ (1 << (at % 8)), at)),
  'other bytes': (path, random) =>
    change(path, random, (bytes, at) => {
      for (let i = at; i < Math.min(bytes.length, at + 64); i++) bytes.writeUInt8(Math.floor(random() * 256), i)
    }),
  zeros: (path, random) => change(path, random, (bytes, at) => bytes.fill(0, at, Math.min(bytes.length, at + 4096))),
  'cut off': (path, random) => truncateSync(path, Math.floor(statSync(path).size * random())),
  emptied: (path) => truncateSync(path, 0),
  deleted: (path) => rmSync(path),
}

function change(path: string, random: () => number, alter: (bytes: Buffer, at: number) => void): void {
  const bytes = readFileSync(path)
  if (bytes.length > 0) alter(bytes, Math.floor(random() * bytes.length))
  writeFileSync(path, bytes)
}

/** A small living fleet and the folder of a hub that knew it: each run harms one file of a copy and starts a hub there. */
export class DamageBench implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'damage-'))
  readonly #kubeconfig = join(this.#folder, 'fleet.yaml')
  readonly #original = join(this.#folder, 'original')
  readonly #fleet: Running
  #objects: Access = { policies: [], connections: [] }
  #runs = 0

  private constructor() {
    this.#fleet = clusterpulse([
      ...['simulate', '--clusters', String(CLUSTERS.length), '--nodes', String(NODES), '--pods', '12'],
      ...['--kubeconfig-out', this.#kubeconfig],
    ])
  }

  static async open(): Promise<DamageBench> {
    const bench = new DamageBench()
    try {
      await bench.#fleet.says(/kubeconfig in/)
      const hub = bench.#start(bench.#original)
      const address = await addressOf(hub)
      await allRead(address)
      const kubeconfig = join(bench.#original, 'kubeconfig')
      for (const group of ['a', 'b', 'c']) await accessPolicies.add(kubeconfig, group)
      bench.#objects = {
        policies: await accessPolicies.list(kubeconfig),
        connections: await connections.list(kubeconfig),
      }
      // Not stopped in order: its files are what a crash leaves.
      await hub.kill('SIGKILL')
      return bench
    } catch (error) {
      await bench[Symbol.asyncDispose]()
      throw error
    }
  }

  /** @param random from 0 to 1: the same numbers do the same harm */
  async run(random: () => number): Promise<DamageRun> {
    const folder = join(this.#folder, `run-${++this.#runs}`)
    cpSync(this.#original, folder, { recursive: true })
    try {
      const files = filesOf(folder)
      const path = files[Math.floor(random() * files.length)] ?? ''
      const names = Object.keys(harms)
      const how = names[Math.floor(random() * names.length)] ?? ''
      harms[how]?.(path, random)
      return { what: `${relative(folder, path)} ${how}`, ...(await this.#judge(folder)) }
    } finally {
      rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#fleet[Symbol.asyncDispose]()
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  }

  #start(folder: string, ...more: string[]): Running {
    return clusterpulse(
      [
        'up',
        '--data-dir',
        folder,
        '--port',
        '0',
        '--control-plane-port',
        '0',
        '--kubeconfig',
        this.#kubeconfig,
        ...more,
      ],
      { env: { INGESTER_PORT: '0' } },
    )
  }

  async #judge(folder: string): Promise<Omit<DamageRun, 'what'>> {
    const said: string[] = []
    for (const attempt of ['served', 'served at the second start'] as const) {
      await using hub = this.#start(folder)
      const fault = await this.#look(hub, folder, true)
      if (fault === undefined) return { outcome: attempt, detail: said.join('\n') }
      if (fault.outcome) return { outcome: fault.outcome, detail: fault.detail }
      said.push(fault.detail)
      if (!/--accept-loss/.test(fault.detail)) continue
      await hub.kill('SIGKILL')
      await using accepting = this.#start(folder, '--accept-loss')
      const left = await this.#look(accepting, folder, false)
      if (left === undefined) return { outcome: 'served what is left', detail: fault.detail }
      return { outcome: left.outcome ?? 'stays dead', detail: `${fault.detail}\n${left.detail}` }
    }
    return { outcome: 'stays dead', detail: said.join('\n') }
  }

  /** @returns undefined where the hub serves what it should */
  async #look(
    hub: Running,
    folder: string,
    all: boolean,
  ): Promise<{ readonly outcome?: Outcome; readonly detail: string } | undefined> {
    try {
      const address = await addressOf(hub)
      const kubeconfig = join(folder, 'kubeconfig')
      const found = { policies: await accessPolicies.list(kubeconfig), connections: await connections.list(kubeconfig) }
      const altered = (['policies', 'connections'] as const).flatMap((sort) => {
        const known = this.#objects[sort]
        if (all && found[sort].length < known.length)
          return [`${known.length - found[sort].length} ${sort} are missing`]
        return found[sort]
          .filter((one) => !known.some((other) => isDeepStrictEqual(one, other)))
          .map((one) => JSON.stringify(one))
      })
      if (altered.length > 0) return { outcome: 'serves altered objects', detail: altered.join('\n') }
      const { items } = await createClient({ baseUrl: address }).clusters()
      for (const { name, nodes } of items)
        if (!CLUSTERS.includes(name) || (nodes && nodes.total !== NODES))
          return { outcome: 'serves altered objects', detail: JSON.stringify({ name, nodes }) }
      await allRead(address)
      return undefined
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error)
      return { detail: `${text}\n${hub.stdout().slice(-2_000)}\n${hub.stderr().slice(-2_000)}` }
    }
  }
}

const addressOf = async (hub: Running): Promise<string> => (await hub.says(/on (http:\/\/127\.0\.0\.1:\d+)/))[1] ?? ''

const allRead = (address: string) =>
  eventually(
    () => createClient({ baseUrl: address }).clusters(),
    ({ items }) => items.length === CLUSTERS.length && items.every(({ nodes }) => nodes?.total === NODES),
    90_000,
  )

const filesOf = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
