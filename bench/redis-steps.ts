import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { availableParallelism, cpus, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Redis } from 'ioredis'
import { type Batch, parseClusterName, type RowsPart, Table, type TableRow } from '../src/contract/model/index.ts'
import { RedisStateStore } from '../src/pipeline/state/redis-store.ts'
import { startRedis } from '../src/pipeline/state/test/redis-server.ts'

/*
 * From a change that the owner applies to the state of a mirror in another process, over a real Redis: one row of a large cluster, and
 * all rows of a small table of it. Beside what the mirror did before: read all of the cluster again.
 */

const name = parseClusterName('west')
/** steps before each measuring */
const WARM = 10
const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url))
const nowMs = (): number => Number(process.hrtime.bigint()) / 1e6

/** What is said of one sort of change. */
interface Measured {
  readonly what: string
  readonly p50: number
  readonly p99: number
  /** of the mirror, per step, ms */
  readonly cpuMs: number
  /** of the stream in the memory of Redis, per entry */
  readonly bytes: number
}

/** Runs the bench and writes bench/results/redis-steps.md. */
export async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: { pods: { type: 'string' }, steps: { type: 'string' }, 'no-write': { type: 'boolean' } },
  })
  const [pods, steps] = [Number(values.pods ?? 20_000), Number(values.steps ?? 500)]
  const load = loadavg()[0] ?? 0
  const usageSteps = Math.ceil(steps / 20)
  const all = podsOf(pods)
  // Made before anything is measured: it takes the owner's process longer than a write.
  const usage = Array.from({ length: usageSteps + 2 * WARM }, (_, turn) => usageOf(all, turn))
  await using server = await startRedis()
  const redis = new Redis(server.port, server.host)
  await using store = await RedisStateStore.open({ connection: server })
  const hub = new Hub(store, all, usage)
  await hub.apply(hub.whole())
  await store.flush()
  const hash = await redis.memory('USAGE', 'clusterpulse:cluster:west', 'SAMPLES', 0)
  const child = fork(here('redis-steps/mirror.ts'), [String(server.port)], { execArgv: ['--import', 'tsx'] })
  const seen = new Map<number, number>()
  child.on('message', ({ sequence, at }: { sequence?: number; at?: number }) => {
    if (sequence !== undefined && at !== undefined && !seen.has(sequence)) seen.set(sequence, at)
  })
  try {
    while (seen.size === 0) await pause(20)
    const lines: Measured[] = []
    const measure = async (what: string, count: number, everyMs: number, next: () => RowsPart): Promise<void> => {
      for (let i = 0; i < WARM; i++) await hub.apply([next()])
      await pause(500)
      const [bytesBefore, cpuBefore] = [await streamBytes(redis), await asked(child, {})]
      const sent = new Map<number, number>()
      for (let i = 0; i < count; i++) {
        sent.set(hub.sequence + 1, nowMs())
        await hub.apply([next()])
        await pause(everyMs)
      }
      while (!seen.has(hub.sequence)) await pause(5)
      const [bytesAfter, cpuAfter] = [await streamBytes(redis), await asked(child, {})]
      const took = [...sent].flatMap(([sequence, at]) => [(seen.get(sequence) ?? Number.NaN) - at])
      const known = took.filter((ms) => !Number.isNaN(ms)).sort((a, b) => a - b)
      const entries = bytesAfter.entries - bytesBefore.entries
      lines.push({
        what,
        p50: known[Math.floor(known.length / 2)] ?? Number.NaN,
        p99: known[Math.floor(known.length * 0.99)] ?? Number.NaN,
        cpuMs: ((cpuAfter.cpuMs ?? 0) - (cpuBefore.cpuMs ?? 0)) / count,
        bytes: (bytesAfter.bytes - bytesBefore.bytes) / entries,
      })
    }
    await measure('one pod of them', steps, 40, () => hub.onePod())
    await measure('all rows of `pod-usage`', usageSteps, 400, () => hub.allUsage())
    const { wholeMs = Number.NaN } = await asked(child, { whole: 20 })
    const text = report({ lines, wholeMs, hash: hash ?? 0, pods, steps, load })
    if (!values['no-write']) {
      await mkdir(here('results'), { recursive: true })
      await writeFile(here('results/redis-steps.md'), text)
    }
    process.stdout.write(text)
  } finally {
    child.disconnect()
    redis.disconnect()
  }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

async function asked(child: ChildProcess, question: object): Promise<{ cpuMs?: number; wholeMs?: number }> {
  child.send(question)
  for (;;) {
    const [answer] = (await once(child, 'message')) as [{ cpuMs?: number; wholeMs?: number }]
    if (answer.cpuMs !== undefined || answer.wholeMs !== undefined) return answer
  }
}

async function streamBytes(redis: Redis): Promise<{ bytes: number; entries: number }> {
  const bytes = (await redis.memory('USAGE', 'clusterpulse:changes', 'SAMPLES', 0)) ?? 0
  const [last] = await redis.xrevrange('clusterpulse:changes', '+', '-', 'COUNT', 1)
  const fields = last?.[1] ?? []
  return { bytes, entries: Number(fields[fields.indexOf('n') + 1]) }
}

/** Hands batches of one cluster to its owner. */
class Hub {
  sequence = 0
  readonly #store: RedisStateStore
  #pods: Table
  readonly #usage: Table[]
  #turn = 0

  constructor(store: RedisStateStore, pods: Table, usage: Table[]) {
    this.#store = store
    this.#pods = pods
    this.#usage = usage
  }

  whole(): RowsPart[] {
    return [{ ...facts('pods'), outcome: 'complete', rows: this.#pods }, this.allUsage()]
  }

  onePod(): RowsPart {
    this.#turn++
    const row = this.#pods.row((this.#turn * 7919) % this.#pods.size)
    const restarts = this.#turn
    const put = Table.of(this.#pods.fields, [
      { ...row, values: { ...row.values, restarts, ready: this.#turn % 2 === 0 } },
    ])
    this.#pods = this.#pods.patch(put, [])
    return { ...facts('pods'), outcome: 'changed', put, removed: [] }
  }

  allUsage(): RowsPart {
    return { ...facts('pod-usage'), outcome: 'complete', rows: this.#usage.pop() ?? Table.empty }
  }

  async apply(tables: readonly RowsPart[]): Promise<void> {
    const base = this.sequence
    this.sequence++
    const now = Date.now()
    const batch: Batch = {
      ...{ cluster: name, sequence: this.sequence, source: 'pull', collectedAt: now, durationMs: 3, parts: [] },
      ...{ partial: true, base, tables },
    }
    await this.#store.apply([{ kind: 'batch', batch, receivedAt: now }], this.sequence)
  }
}

const facts = (source: string) => ({
  ...{ source, hash: '0123456789abcdef', durationMs: 3, aggregations: {}, truncated: false },
  ...{ errors: [], errorCount: 0, reports: [] },
})

const FIELDS = [
  'phase',
  'reason',
  'node',
  'ready',
  'containers',
  'restarts',
  'owner',
  'qos',
  'ip',
  'createdAt',
  'cpu',
  'memory',
]

function podsOf(count: number): Table {
  const row = (i: number): TableRow => ({
    namespace: `team-${i % 50}`,
    name: `web-${i % 400}-${(i * 2_654_435_761).toString(36).slice(-10)}-${i.toString(36)}`,
    labels: { app: `web-${i % 400}`, 'pod-template-hash': (i % 400).toString(16) },
    values: {
      ...{ phase: 'Running', reason: null, node: `node-${i % 500}`, ready: true, containers: 2, restarts: 0 },
      ...{
        owner: `ReplicaSet/web-${i % 400}`,
        qos: 'Burstable',
        ip: `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`,
      },
      ...{ createdAt: 1_760_000_000_000 + i * 1000, cpu: 0.1, memory: 2 ** 27 },
    },
  })
  return Table.of(
    FIELDS,
    Array.from({ length: count }, (_, i) => row(i)),
  )
}

function usageOf(pods: Table, turn: number): Table {
  const used = ['cpuUsed', 'cpuMillicores', 'memoryUsed', 'diskUsed']
  const rows = Array.from({ length: pods.size }, (_, i): TableRow => {
    const millicores = (i * 31 + turn * 17) % 900
    const memoryUsed = (i % 1000) * 2 ** 18 + turn * 4096
    const { namespace, name } = pods.row(i)
    return {
      namespace,
      name,
      labels: {},
      values: { cpuUsed: millicores / 1000, cpuMillicores: millicores, memoryUsed, diskUsed: null },
    }
  })
  return Table.of(used, rows)
}

interface Report {
  readonly lines: readonly Measured[]
  readonly wholeMs: number
  readonly hash: number
  readonly pods: number
  readonly steps: number
  readonly load: number
}

function report({ lines, wholeMs, hash, pods, steps, load }: Report): string {
  const cpu = cpus()[0]?.model ?? 'unknown'
  const rows = lines.map(
    ({ what, p50, p99, cpuMs, bytes }) =>
      `| ${what} | ${p50.toFixed(1)} ms | ${p99.toFixed(1)} ms | ${cpuMs.toFixed(2)} ms | ${Math.round(bytes)} |`,
  )
  return `<!-- written by npm run bench redis-steps -->
# A change on its way through Redis

One cluster of ${pods} pods and a table of their usage; owner and Redis on one machine, the mirror in a process of its own. One pod changed every
40 ms, ${steps} times; all rows of the usage every 400 ms, ${Math.ceil(steps / 20)} times. Latency: from \`apply\` of the owner to the state of the mirror, by one clock.

| What changed | p50 | p99 | CPU of the mirror per step | bytes in the stream |
|---|---|---|---|---|
${rows.join('\n')}
| anything, the cluster read as a whole (before) | | | ${wholeMs.toFixed(1)} ms | |

The cluster's hash holds ${(hash / 2 ** 20).toFixed(1)} MiB. CPU of a step holds the process's idle work of the time between two.

${availableParallelism()} cores, ${cpu}, Node ${process.versions.node}; load when it began ${load.toFixed(1)}.
`
}
