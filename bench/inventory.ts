/**
 * Inventory end to end: one agent as built, without a hub, between a real kube-apiserver full of Deployments and a real PostgreSQL. How
 * long it takes until all rows are there, then each change; what the agent needs for it; what the server counts.
 */
import { spawnSync } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { InventoryCluster, nameOf } from '../test/inventory-cluster.ts'
import { machine, processOf } from './rounds/reading.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
/** An agent that waits for the kinds, and one that has read all, come to rest. */
const REST_MS = 20_000
const PATIENCE_MS = 900_000

interface Bars {
  readonly startS: number
  readonly changeMs: number
  readonly addedMib: number
}
const barsOf = (rows: number): Bars =>
  rows <= 10_000 ? { startS: 15, changeMs: 2000, addedMib: 120 } : { startS: 90, changeMs: 5000, addedMib: 400 }

interface Measured {
  readonly rows: number
  readonly loadMs: number
  readonly startMs: number
  readonly changes: number
  readonly p50: number
  readonly p99: number
  readonly burst: { readonly changed: number; readonly ms: number; readonly written: number }
  readonly without: Memory
  readonly first: Memory
  readonly again: Memory
  /** in thousandths of a core, while 1 % of the rows change in a minute */
  readonly cpuMilli: number
  readonly deleted: number
}

interface Memory {
  readonly restMib: number
  readonly peakMib: number
}

/** `--rows 10000,100000`, `--seconds N` in which single rows change, 1 % of them a minute, `--no-write`. */
export async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rows: { type: 'string', default: '10000,100000' },
      seconds: { type: 'string', default: '60' },
      'no-write': { type: 'boolean', default: false },
    },
  })
  const built = spawnSync(process.execPath, [`${ROOT}scripts/build.js`, 'node'], { stdio: 'inherit' })
  if (built.status !== 0) throw new Error('the product could not be built')
  const on = machine()
  const results: Measured[] = []
  for (const rows of values.rows.split(',')) results.push(await measure(Number(rows), Number(values.seconds)))
  const page = report(results, Number(values.seconds), on)
  process.stdout.write(page)
  if (values['no-write']) return
  await mkdir(`${ROOT}bench/results`, { recursive: true })
  await writeFile(`${ROOT}bench/results/inventory.md`, page)
}

async function measure(rows: number, seconds: number): Promise<Measured> {
  const say = (what: string) => process.stderr.write(`${rows}: ${what}\n`)
  await using cluster = await InventoryCluster.open(rows)
  say('the cluster is filled')
  // An agent whose cluster does not have the kinds: inventory is set, and nothing of it is loaded.
  const waiting = cluster.startAgent()
  await until(async () => /inventory waits/.test(waiting.stderr()))
  await sleep(REST_MS)
  const without = memoryOf(waiting.pid)
  await waiting.kill('SIGTERM')
  await cluster.installKinds()
  await cluster.declare()

  let startedAt = performance.now()
  const agent = cluster.startAgent()
  await until(async () => {
    const held = await cluster.written()
    return held?.complete === true && held.rows === rows
  })
  const loadMs = performance.now() - startedAt
  say(`all rows are there after ${(loadMs / 1000).toFixed(1)} s`)
  await sleep(REST_MS)
  await using seen = await Seen.open(cluster)
  const cpuBefore = processOf(agent.pid).cpuMs
  const began = performance.now()
  const single = await trickle(cluster, seen, rows, seconds)
  const cpuMilli = ((processOf(agent.pid).cpuMs - cpuBefore) / (performance.now() - began)) * 1000
  say(`${single.length} single changes`)

  await settled(cluster)
  const before = await cluster.postgres.counts('inventory')
  const changed = Math.max(1, Math.round(rows / 100))
  startedAt = performance.now()
  const marks = Array.from({ length: changed }, (_, n) => ({ n: (n * 97) % rows, version: `burst-${n}` }))
  await eachOf(marks, 8, ({ n, version }) => cluster.change(n, version))
  await Promise.all(marks.map(({ n, version }) => seen.until(n, version)))
  const burstMs = performance.now() - startedAt
  await settled(cluster)
  const after = await cluster.postgres.counts('inventory')
  const written = after.inserted + after.updated - before.inserted - before.updated
  const first = memoryOf(agent.pid)

  await agent.kill('SIGKILL')
  await cluster.change(rows - 1, 'meanwhile')
  startedAt = performance.now()
  const next = cluster.startAgent()
  await seen.until(rows - 1, 'meanwhile')
  const startMs = performance.now() - startedAt
  say(`complete again after ${(startMs / 1000).toFixed(1)} s`)
  await sleep(REST_MS)
  const again = memoryOf(next.pid)
  await next.kill('SIGTERM')
  await settled(cluster)
  const { deleted } = await cluster.postgres.counts('inventory')
  return {
    ...{ rows, loadMs, startMs, changes: single.length, without, first, again, cpuMilli, deleted },
    ...{ p50: quantile(single, 0.5), p99: quantile(single, 0.99), burst: { changed, ms: burstMs, written } },
  }
}

/** Changes one row after the other, at the rate of 1 % a minute. @returns how long each took from before the write until it was committed, ms */
async function trickle(cluster: InventoryCluster, seen: Seen, rows: number, seconds: number): Promise<number[]> {
  const count = Math.max(1, Math.round((rows / 100) * (seconds / 60)))
  const startedAt = performance.now()
  const times: Promise<number>[] = []
  for (let change = 0; change < count; change++) {
    await sleep(Math.max(0, startedAt + ((change + Math.random()) * seconds * 1000) / count - performance.now()))
    const n = (change * 31) % rows
    const version = `single-${change}`
    const wroteAt = performance.now()
    const committed = seen.until(n, version)
    await cluster.change(n, version)
    times.push(committed.then(() => performance.now() - wroteAt))
  }
  return Promise.all(times)
}

/** Hears of each changed row when its transaction holds, as any reader could. */
class Seen implements AsyncDisposable {
  readonly #client: pg.Client
  readonly #waiting = new Map<string, () => void>()
  readonly #seen = new Set<string>()

  private constructor(client: pg.Client) {
    this.#client = client
    client.on('notification', ({ payload = '' }) => {
      this.#seen.add(payload)
      this.#waiting.get(payload)?.()
    })
  }

  static async open({ postgres }: InventoryCluster): Promise<Seen> {
    await postgres.query(`create or replace function tell() returns trigger language plpgsql as
      'begin perform pg_notify(''rows'', new.name || '' '' || (new.payload->''attributes''->>''image'')); return null; end'`)
    await postgres.query('create trigger tell after update on inventory for each row execute function tell()')
    const client = new pg.Client({ connectionString: postgres.dsn() })
    await client.connect()
    await client.query('listen rows')
    return new Seen(client)
  }

  until(n: number, version: string): Promise<void> {
    const payload = `${nameOf(n)} shop/web:${version}`
    return new Promise((resolve, reject) => {
      if (this.#seen.has(payload)) return resolve()
      const late = setTimeout(() => reject(new Error(`no row came for ${payload}`)), PATIENCE_MS)
      this.#waiting.set(payload, () => {
        clearTimeout(late)
        resolve()
      })
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.end()
  }
}

async function until(isThere: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS
  while (!(await isThere())) {
    if (performance.now() > deadline) throw new Error('it did not come to that')
    await sleep(100)
  }
}

/** Until the server has counted all: a connection at rest tells it within ten seconds. */
async function settled({ postgres }: InventoryCluster): Promise<void> {
  for (let last = ''; ; await sleep(12_000)) {
    const now = JSON.stringify(await postgres.counts('inventory'))
    if (now === last) return
    last = now
  }
}

async function eachOf<T>(all: readonly T[], lanes: number, work: (one: T) => Promise<void>): Promise<void> {
  const left = all[Symbol.iterator]()
  const lane = async () => {
    for (const one of left) await work(one)
  }
  await Promise.all(Array.from({ length: lanes }, lane))
}

function memoryOf(pid: number): Memory {
  const { rssMb, peakMb } = processOf(pid)
  return { restMib: mib(rssMb), peakMib: mib(peakMb) }
}

function report(results: readonly Measured[], seconds: number, on: string): string {
  const verdicts = results.map(({ rows, startMs, loadMs, p99, first, again, without, burst, deleted }) => {
    const bars = barsOf(rows)
    const addedMib = Math.max(first.peakMib, again.peakMib) - without.peakMib
    const held = [
      [`complete within ${bars.startS} s`, Math.max(startMs, loadMs) <= bars.startS * 1000],
      [`p99 ≤ ${bars.changeMs} ms`, p99 <= bars.changeMs],
      [`≤ ${bars.addedMib} MiB added`, addedMib <= bars.addedMib],
      ['1 % writes 1 %', burst.written === burst.changed],
      ['0 deleted', deleted === 0],
    ] as const
    return `- ${rows} rows: ${held.map(([what, holds]) => `${what}: ${holds ? 'held' : '**NOT held**'}`).join('; ')}.`
  })
  return [
    '# Inventory',
    '',
    `\`npm run bench inventory\`: one agent as built, without a hub, beside a real kube-apiserver with Deployments in one namespace, and PostgreSQL (\`fsync = off\`), all on one machine. ${on}.`,
    '',
    `From the start of the process: *first load* until all rows are there and complete; *start* after kill -9, with the rows there, until a change made meanwhile is. Then ${seconds} s in which 1 % of the rows a minute change singly, each from before it is written to the API until its row is committed; then 1 % at once.`,
    '',
    '| rows | first load | start | single changes | p50 | p99 | CPU meanwhile | 1 % at once | rows written of it | rows deleted |',
    '|---|---|---|---|---|---|---|---|---|---|',
    ...results.map(
      ({ rows, loadMs, startMs, changes, p50, p99, cpuMilli, burst, deleted }) =>
        `| ${rows} | ${inSeconds(loadMs)} | ${inSeconds(startMs)} | ${changes} | ${p50.toFixed(0)} ms | ${p99.toFixed(0)} ms | ${cpuMilli.toFixed(0)} mCPU | ${inSeconds(burst.ms)} | ${burst.written} of ${burst.changed} | ${deleted} |`,
    ),
    '',
    'Memory of the agent, RSS in MiB; *without*: its cluster does not have the kinds; *added* is the highest peak over the peak without:',
    '',
    '| rows | without, at rest | peak | first load, at rest | peak | start, at rest | peak | added |',
    '|---|---|---|---|---|---|---|---|',
    ...results.map(({ rows, without, first, again }) => {
      const cells = [without, first, again].flatMap(({ restMib, peakMib }) => [restMib, peakMib])
      const added = Math.max(first.peakMib, again.peakMib) - without.peakMib
      return `| ${rows} | ${[...cells, added].map((value) => value.toFixed(0)).join(' | ')} |`
    }),
    '',
    ...verdicts,
    '',
  ].join('\n')
}

const mib = (mb: number): number => (mb * 1e6) / 2 ** 20
const quantile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? Number.NaN
const inSeconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`
