import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DuckDBInstance } from '@duckdb/node-api'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { redisMissing, startRedis } from '../../src/pipeline/state/test/redis-server.ts'
import { freePort } from '../../src/platform/runtime/testing/free-port.ts'
import { bundled } from '../bundled.ts'
import type { AgentConfig } from './agent-process.ts'
import type { HubConfig } from './hub-process.ts'
import type { OwnersConfig } from './owners-process.ts'
import { valueAt } from './truth.ts'
import { startVictoria, victoriaMissing } from './victoria-server.ts'

/** CHAOS_CYCLES=1000 CHAOS_AGENTS=20 for the long run: kills of the hub or of agents, at random moments. */
const CYCLES = Number(process.env.CHAOS_CYCLES ?? 2)
const AGENTS = Number(process.env.CHAOS_AGENTS ?? 4)
const INTERVAL_MS = Number(process.env.CHAOS_INTERVAL_MS ?? 500)
/** of a hub whose clusters several processes share: how many there are at the beginning */
const PROCESSES = Number(process.env.CHAOS_PROCESSES ?? 3)
/** so often such a hub is started again with another number of them */
const DIVIDED_EVERY = Math.min(20, Math.ceil(CYCLES / 3))
const READY_WITHIN_MS = 60_000

/** From the beginning of a round to the collector in it, on a machine that is very busy. */
const READ_WITHIN_MS = 10_000

/** Samples as the store holds them: every one, so that a doubled one is seen. */
type Raw = (cluster: string) => Promise<readonly { readonly at: number; readonly value: number }[]>

interface Programs {
  readonly hub: string
  readonly owners: string
  readonly agent: string
}

describe('kill -9 of the hub and of agents at random', () => {
  let programs: Programs
  const bundles: AsyncDisposable[] = []
  beforeAll(async () => {
    const made = async (name: string) => {
      const program = await bundled(join(import.meta.dirname, `${name}-process.ts`))
      bundles.push(program)
      return program.path
    }
    programs = { hub: await made('hub'), owners: await made('owners'), agent: await made('agent') }
  })
  afterAll(async () => {
    for (const one of bundles) await one[Symbol.asyncDispose]()
  })

  const timeout = 400_000 + CYCLES * 3_000

  it(`${CYCLES} times with ${AGENTS} agents: every sample is kept once, embedded`, { timeout }, async () => {
    const directory = await mkdtemp(join(tmpdir(), 'chaos-'))
    try {
      const stores = { kind: 'embedded' } as const
      await run(programs, directory, new OneHub(programs.hub, stores), () => duckDbRaw(join(directory, 'hub/history')))
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
  })

  const missing = redisMissing ?? victoriaMissing
  const notRun = missing ? ` (not run: ${missing})` : ''
  const withServers = async (hubOver: (stores: OwnersConfig['stores']) => KillableHub) => {
    const directory = await mkdtemp(join(tmpdir(), 'chaos-'))
    const redis = await startRedis()
    const victoria = await startVictoria()
    try {
      const hub = hubOver({ kind: 'servers', redisPort: redis.port, victoria: victoria.url })
      await run(programs, directory, hub, async () => victoria.raw)
    } finally {
      await victoria[Symbol.asyncDispose]()
      await redis[Symbol.asyncDispose]()
      await rm(directory, { recursive: true, force: true })
    }
  }

  it.skipIf(missing !== undefined)(
    `${CYCLES} times with ${AGENTS} agents: every sample is kept once, in Redis and VictoriaMetrics${notRun}`,
    // One hub is killed above, and one over these stores below and in journeys/push-bad-luck.test.ts.
    { timeout, tags: ['again'] },
    () => withServers((stores) => new OneHub(programs.hub, stores)),
  )

  it.skipIf(missing !== undefined)(
    `${CYCLES} times with ${AGENTS} agents and ${PROCESSES} owners, now and then another number: every sample is kept once${notRun}`,
    { timeout },
    () => withServers((stores) => new SharedHub(programs.owners, stores)),
  )
})

/** Where a hub is and whom it serves, the same for each of its lives. */
type HubPlace = Pick<HubConfig, 'directory' | 'port' | 'clusters' | 'intervalMs'>

/** A hub of which something is killed, and started again. */
interface KillableHub {
  /** what was done to it, and when: for the message of a failure */
  readonly story: readonly string[]
  /** the process that is told what to do */
  readonly child: Child
  /** of all kills, that hit it and not an agent */
  readonly share: number
  /** something is to be done with it in this cycle, whatever chance says */
  isDue(cycle: number): boolean
  start(place: HubPlace): void
  /** Kills something of it; resolves when it is started again, or was. */
  kill(cycle: number): Promise<void>
}

class OneHub implements KillableHub {
  readonly share = 0.35
  readonly story: string[] = []
  readonly #program: string
  readonly #stores: HubConfig['stores']
  #place: HubPlace | undefined
  #child: Child | undefined

  constructor(program: string, stores: HubConfig['stores']) {
    this.#program = program
    this.#stores = stores
  }

  get child(): Child {
    return started(this.#child)
  }

  start(place: HubPlace): void {
    this.#place = place
    this.#child = new Child(this.#program, { ...place, stores: this.#stores } satisfies HubConfig)
  }

  isDue(): boolean {
    return false
  }

  async kill(): Promise<void> {
    this.story.push(`${Date.now()} killed`)
    await killed(this.child)
    this.start(started(this.#place))
  }
}

/** Its manager, or one of its owners, is killed; now and then it is started again with another number of them. */
class SharedHub implements KillableHub {
  readonly share = 0.6
  readonly story: string[] = []
  readonly #program: string
  readonly #stores: OwnersConfig['stores']
  readonly #pids = new Map<string, number>()
  #place: HubPlace | undefined
  #child: Child | undefined
  #processes = PROCESSES

  constructor(program: string, stores: OwnersConfig['stores']) {
    this.#program = program
    this.#stores = stores
  }

  get child(): Child {
    return started(this.#child)
  }

  start(place: HubPlace): void {
    this.#place = place
    this.#pids.clear()
    this.story.push(`${Date.now()} started with ${this.#processes}`)
    const config: OwnersConfig = { ...place, stores: this.#stores, processes: this.#processes }
    this.#child = new Child(this.#program, config)
    this.#child.onLine((line) => {
      const [word, index = '', pid] = line.split(' ')
      if (word === 'owner') this.#pids.set(index, Number(pid))
      this.story.push(`${Date.now()} ${line}`)
    })
  }

  isDue(cycle: number): boolean {
    return cycle % DIVIDED_EVERY === DIVIDED_EVERY - 1
  }

  async kill(cycle: number): Promise<void> {
    const others = Array.from({ length: PROCESSES + 1 }, (_, i) => i + 1).filter((of) => of !== this.#processes)
    const isDivided = this.isDue(cycle)
    if (!isDivided && Math.random() < 0.6) return this.#killOwner()
    if (isDivided) this.#processes = oneOf(others)
    if (isDivided && Math.random() < 0.5) {
      await this.child.says('ready', READY_WITHIN_MS)
      this.child.write('end')
      await this.child.says('ended')
    }
    this.story.push(`${Date.now()} killed`)
    await killed(this.child)
    this.start(started(this.#place))
  }

  #killOwner(): void {
    const pids = [...this.#pids.values()]
    if (pids.length === 0) return
    const pid = oneOf(pids)
    this.story.push(`${Date.now()} killed ${pid}`)
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It was killed a moment before, and the next one has not told its name yet.
    }
  }
}

/** What is known once `start` was called. */
function started<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('it was not started')
  return value
}

const oneOf = <T>(all: readonly T[]): T => all[Math.floor(Math.random() * all.length)] as T

/** It is away for a while, at times. */
async function killed(child: Child): Promise<void> {
  await child.kill()
  await pause(Math.random() < 0.2 ? Math.random() * 6 * INTERVAL_MS : 0)
}

async function run(
  programs: Programs,
  directory: string,
  hub: KillableHub,
  openRaw: () => Promise<Raw>,
): Promise<void> {
  const clusters = Array.from({ length: AGENTS }, (_, i) => `c${i}`)
  const kept = new Map(clusters.map((cluster) => [cluster, new Set<number>()]))
  const port = await freePort()
  const startAgent = (cluster: string) => {
    const config: AgentConfig = {
      cluster,
      address: `127.0.0.1:${port}`,
      directory: join(directory, cluster),
      intervalMs: INTERVAL_MS,
    }
    const child = new Child(programs.agent, config)
    child.onLine((line) => {
      const [word, at] = line.split(' ')
      if (word === 'kept') kept.get(cluster)?.add(Number(at))
    })
    return child
  }
  hub.start({ directory: join(directory, 'hub'), port, clusters, intervalMs: INTERVAL_MS })
  const agents = new Map(clusters.map((cluster) => [cluster, startAgent(cluster)]))
  try {
    await hub.child.says('ready', READY_WITHIN_MS)
    for (let cycle = 0; cycle < CYCLES; cycle++) {
      await pause(Math.random() * 2 * INTERVAL_MS)
      if (hub.isDue(cycle) || Math.random() < hub.share) {
        await hub.kill(cycle)
        if (Math.random() < 0.8) await hub.child.says('ready', READY_WITHIN_MS)
      } else {
        const cluster = oneOf(clusters)
        await agents.get(cluster)?.kill()
        agents.set(cluster, startAgent(cluster))
      }
    }
    const { child } = hub
    await child.says('ready', READY_WITHIN_MS)
    // Who was refused often waits for minutes, which is none of what is asked here.
    for (const [cluster, agent] of agents) {
      await agent.kill()
      agents.set(cluster, startAgent(cluster))
    }
    // Some may have been killed before they kept anything.
    await expect.poll(() => [...kept].filter(([, times]) => times.size === 0), { timeout: READY_WITHIN_MS }).toEqual([])
    child.write('drain')
    const state = new Map<string, { at: number; value: number }>()
    child.onLine((line) => {
      const [word, cluster = '', at, value] = line.split(' ')
      if (word === 'state') state.set(cluster, { at: Number(at), value: Number(value) })
    })
    // Agents go on meanwhile: what they keep now is either drained with the rest or known to come later.
    const before = new Map([...kept].map(([cluster, times]) => [cluster, [...times]]))
    await child.says('drained', 330_000)
    for (const [cluster, times] of before) {
      const newest = Math.max(...times)
      expect(state.get(cluster)?.value, `state of ${cluster}`).toBeGreaterThanOrEqual(valueAt(newest))
    }
    child.write('end')
    await child.says('ended')
    const raw = await openRaw()
    let samples = 0
    for (const [cluster, times] of before) {
      const found = await raw(cluster)
      samples += found.length
      // The value names the moment of reading, the time the beginning of the round: some milliseconds lie between.
      const values = new Set(found.map(({ value }) => value))
      const sorted = found.map(({ at }) => at).sort((a, b) => a - b)
      const doubled = sorted.filter((at, i) => at === sorted[i - 1])
      expect(doubled, `${cluster}: times that are doubled\n${hub.story.join('\n')}`).toEqual([])
      expect(values.size, `${cluster}: samples that are doubled`).toBe(found.length)
      expect(
        times.filter((at) => !values.has(valueAt(at))),
        `${cluster}: samples that are lost`,
      ).toEqual([])
      expect(
        found.filter(({ at, value }) => value < valueAt(at) || value > valueAt(at) + READ_WITHIN_MS),
        `${cluster}: samples of another time`,
      ).toEqual([])
      const inTime = found.toSorted((a, b) => a.at - b.at).map(({ value }) => value)
      expect(
        inTime.filter((value, i) => i > 0 && value <= (inTime[i - 1] ?? 0)),
        `${cluster}: samples whose time is that of another`,
      ).toEqual([])
    }
    expect(samples).toBeGreaterThan(CYCLES)
  } finally {
    await Promise.all([hub.child, ...agents.values()].map((child) => child.kill()))
  }
}

/** One of our processes, its lines, and its violent end. */
class Child {
  readonly #child: ChildProcess
  readonly #lines: string[] = []
  readonly #listeners = new Set<(line: string) => void>()
  readonly #over: Promise<unknown>

  constructor(program: string, config: object) {
    this.#child = spawn(process.execPath, [program, JSON.stringify(config)], { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#child.stdin?.on('error', () => undefined) // it was killed: who writes finds out by what it does not say
    this.#over = once(this.#child, 'close')
    if (this.#child.stdout) {
      createInterface({ input: this.#child.stdout }).on('line', (line) => {
        this.#lines.push(line)
        for (const listener of this.#listeners) listener(line)
      })
    }
  }

  onLine(listener: (line: string) => void): void {
    this.#listeners.add(listener)
  }

  write(line: string): void {
    this.#child.stdin?.write(`${line}\n`)
  }

  async says(word: string, withinMs = 90_000): Promise<void> {
    const until = Date.now() + withinMs
    while (!this.#lines.some((line) => line.split(' ')[0] === word)) {
      if (this.#child.exitCode !== null) throw new Error(`it ended with ${this.#child.exitCode} before it said ${word}`)
      if (Date.now() > until)
        throw new Error(`it did not say ${word} within ${withinMs} ms; its last words: ${this.#lines.at(-1)}`)
      await pause(10)
    }
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#over
  }
}

async function duckDbRaw(directory: string): Promise<Raw> {
  const instance = await DuckDBInstance.create(join(directory, 'history.duckdb'), { access_mode: 'READ_ONLY' })
  const connection = await instance.connect()
  return async (cluster) => {
    const rows = await connection.runAndReadAll(
      `SELECT t::DOUBLE, m_cpu_requested FROM (FROM node_raw SELECT cluster, t, m_cpu_requested UNION ALL FROM node_recent SELECT cluster, t, m_cpu_requested)
       WHERE cluster = (SELECT id FROM words WHERE word = '${cluster}') ORDER BY t`,
    )
    return rows.getRows().map(([at, value]) => ({ at: Number(at), value: Number(value) }))
  }
}

const pause = (ms: number) => new Promise((done) => setTimeout(done, ms))
