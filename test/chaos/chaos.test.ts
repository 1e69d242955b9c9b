import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { DuckDBInstance } from '@duckdb/node-api'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { redisMissing, startRedis } from '../../src/pipeline/state/test/redis-server.ts'
import type { AgentConfig } from './agent-process.ts'
import type { HubConfig } from './hub-process.ts'
import { valueAt } from './truth.ts'
import { startVictoria, victoriaMissing } from './victoria-server.ts'

/** CHAOS_CYCLES=1000 CHAOS_AGENTS=20 for the long run: kills of the hub or of agents, at random moments. */
const CYCLES = Number(process.env.CHAOS_CYCLES ?? 12)
const AGENTS = Number(process.env.CHAOS_AGENTS ?? 4)
const INTERVAL_MS = Number(process.env.CHAOS_INTERVAL_MS ?? 500)

/** From the beginning of a round to the collector in it, on a machine that is very busy. */
const READ_WITHIN_MS = 10_000

/** Samples as the store holds them: every one, so that a doubled one is seen. */
type Raw = (cluster: string) => Promise<readonly { readonly at: number; readonly value: number }[]>

describe('kill -9 of the hub and of agents at random', () => {
  let programs: { readonly hub: string; readonly agent: string }
  beforeAll(async () => {
    // Beside the installed packages, so that the bundles find those they leave out.
    const cache = resolve('node_modules/.cache/clusterpulse')
    await mkdir(cache, { recursive: true })
    const made = async (name: string) => {
      const outfile = join(cache, `chaos-${name}-${process.pid}.mjs`)
      await build({
        entryPoints: [join(import.meta.dirname, `${name}-process.ts`)],
        outfile,
        bundle: true,
        platform: 'node',
        format: 'esm',
        packages: 'external',
        logLevel: 'error',
      })
      return outfile
    }
    programs = { hub: await made('hub'), agent: await made('agent') }
  })
  afterAll(async () => {
    for (const file of Object.values(programs ?? {})) await rm(file, { force: true })
  })

  const timeout = 400_000 + CYCLES * 3_000

  it(`${CYCLES} times with ${AGENTS} agents: every sample is kept once, embedded`, { timeout }, async () => {
    const directory = await mkdtemp(join(tmpdir(), 'chaos-'))
    try {
      await run(programs, directory, { kind: 'embedded' }, () => duckDbRaw(join(directory, 'hub/history')))
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
  })

  const missing = redisMissing ?? victoriaMissing
  it.skipIf(missing !== undefined)(
    `${CYCLES} times with ${AGENTS} agents: every sample is kept once, in Redis and VictoriaMetrics${missing ? ` (not run: ${missing})` : ''}`,
    { timeout },
    async () => {
      const directory = await mkdtemp(join(tmpdir(), 'chaos-'))
      const redis = await startRedis()
      const victoria = await startVictoria()
      try {
        const stores = { kind: 'servers', redisPort: redis.port, victoria: victoria.url } as const
        await run(programs, directory, stores, async () => victoria.raw)
      } finally {
        await victoria[Symbol.asyncDispose]()
        await redis[Symbol.asyncDispose]()
        await rm(directory, { recursive: true, force: true })
      }
    },
  )
})

async function run(
  programs: { readonly hub: string; readonly agent: string },
  directory: string,
  stores: HubConfig['stores'],
  openRaw: () => Promise<Raw>,
): Promise<void> {
  const clusters = Array.from({ length: AGENTS }, (_, i) => `c${i}`)
  const kept = new Map(clusters.map((cluster) => [cluster, new Set<number>()]))
  const port = await freePort()
  const startHub = () => {
    const config: HubConfig = { directory: join(directory, 'hub'), port, clusters, intervalMs: INTERVAL_MS, stores }
    return new Child(programs.hub, config)
  }
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
  let hub = startHub()
  const agents = new Map(clusters.map((cluster) => [cluster, startAgent(cluster)]))
  try {
    await hub.says('ready')
    for (let cycle = 0; cycle < CYCLES; cycle++) {
      await pause(Math.random() * 2 * INTERVAL_MS)
      if (Math.random() < 0.35) {
        await hub.kill()
        await pause(Math.random() < 0.2 ? Math.random() * 6 * INTERVAL_MS : 0)
        hub = startHub()
        if (Math.random() < 0.8) await hub.says('ready')
      } else {
        const cluster = clusters[Math.floor(Math.random() * clusters.length)] as string
        await agents.get(cluster)?.kill()
        agents.set(cluster, startAgent(cluster))
      }
    }
    await hub.says('ready')
    hub.write('drain')
    const state = new Map<string, { at: number; value: number }>()
    hub.onLine((line) => {
      const [word, cluster = '', at, value] = line.split(' ')
      if (word === 'state') state.set(cluster, { at: Number(at), value: Number(value) })
    })
    // Agents go on meanwhile: what they keep now is either drained with the rest or known to come later.
    const before = new Map([...kept].map(([cluster, times]) => [cluster, [...times]]))
    // An agent that was refused often tries again within five minutes.
    await hub.says('drained', 330_000)
    for (const [cluster, times] of before) {
      const newest = Math.max(...times)
      expect(state.get(cluster)?.value, `state of ${cluster}`).toBeGreaterThanOrEqual(valueAt(newest))
    }
    hub.write('end')
    await hub.says('ended')
    const raw = await openRaw()
    let samples = 0
    for (const [cluster, times] of before) {
      const found = await raw(cluster)
      samples += found.length
      // The value names the moment of reading, the time the beginning of the round: some milliseconds lie between.
      const values = new Set(found.map(({ value }) => value))
      expect(new Set(found.map(({ at }) => at)).size, `${cluster}: times that are doubled`).toBe(found.length)
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
    await Promise.all([hub, ...agents.values()].map((child) => child.kill()))
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

  async says(word: string, withinMs = 30_000): Promise<void> {
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

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no port was given')
  return address.port
}

const pause = (ms: number) => new Promise((done) => setTimeout(done, ms))
