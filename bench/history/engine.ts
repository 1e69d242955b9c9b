/*
 * One engine in a process of its own: takes the month of all clusters, then answers. Called by ../history.ts with a JSON
 * argument; prints one JSON line.
 */
import { readFileSync } from 'node:fs'
import { type ClusterName, metricPrefix, metricsCatalogue, type SampleSet } from '../../src/contract/model/index.ts'
import { type HistoryRecord, openHistory } from '../../src/pipeline/history/index.ts'

export interface EngineTask {
  readonly config:
    | { readonly kind: 'duckdb'; readonly rawDays: number }
    | { readonly kind: 'victoria'; readonly endpoint: string }
  readonly directory: string
  readonly clusters: number
  /** of each cluster */
  readonly nodes: number
  readonly days: number
  /** how many times each question is asked */
  readonly questions: number
  /** false: what a former run left is opened and kept up, then asked */
  readonly fill: boolean
}

/** Medians; ms. */
export interface Answering {
  readonly wallMs: number
  /** of ours: of an embedded store all of it */
  readonly cpuMs: number
}

export interface EngineResult {
  readonly samples: number
  readonly appendSeconds: number
  /** user and system time of all threads of ours */
  readonly appendCpuSeconds: number
  readonly firstMillionSeconds: number
  readonly oneGauge: Answering
  readonly allGauges: Answering
  readonly rssMb: number
}

const STEP_MS = 30_000
const GROUP = 1000
const day = 86_400_000
const metrics = metricsCatalogue
  .filter(({ scope }) => scope === 'node')
  .slice(0, 17)
  .map(({ scope, name, unit }) => ({ name: metricPrefix[scope] + name, unit }))

const task = JSON.parse(process.argv[2] ?? '{}') as EngineTask
// The month ends now, so that no engine finds it too old.
const end = Math.floor(Date.now() / day) * day
const begin = end - task.days * day
const nodes = Array.from({ length: task.nodes }, (_, i) => `node-${i}`)
const nameOf = (cluster: number) => `cluster-${cluster}` as ClusterName

const store = await openHistory(
  task.config.kind === 'duckdb'
    ? { kind: 'duckdb', directory: task.directory, rawMs: task.config.rawDays * day, retentionMs: 40 * day }
    : {
        kind: 'victoria',
        endpoint: task.config.endpoint,
        directory: task.directory,
        // It is not killed here: what is sent need not be held.
        durableAfterMs: 0,
      },
)
const filled = task.fill ? await fill() : { samples: 0, appendSeconds: 0, appendCpuSeconds: 0, firstMillionSeconds: 0 }
if (task.config.kind === 'victoria') await fetch(`${task.config.endpoint}/internal/force_flush`)
if ('upkeep' in store && typeof store.upkeep === 'function') await store.upkeep()
const oneGauge = await ask(1)
const allGauges = await ask(metrics.length)
await store[Symbol.asyncDispose]()
const peak = /VmHWM:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]
const result: EngineResult = { ...filled, oneGauge, allGauges, rssMb: Number(peak) / 1024 }
process.stdout.write(`${JSON.stringify(result)}\n`)

/** Batch after batch of all clusters, as they come live; only the appending is timed. */
async function fill(): Promise<
  Pick<EngineResult, 'samples' | 'appendSeconds' | 'appendCpuSeconds' | 'firstMillionSeconds'>
> {
  const walks = Array.from({ length: task.clusters }, () =>
    metrics.map(() => Float64Array.from(nodes, () => 1000 + Math.random() * 1000)),
  )
  let [spent, cpu, firstMillion, samples, position] = [0, 0, 0, 0, -1]
  let group: HistoryRecord[] = []
  const append = async () => {
    position += group.length
    const [begun, before] = [performance.now(), process.cpuUsage()]
    await store.append(group, position)
    spent += performance.now() - begun
    const { user, system } = process.cpuUsage(before)
    cpu += user + system
    samples += group.length * metrics.length * task.nodes
    if (firstMillion === 0 && samples >= 1e6) firstMillion = spent
    group = []
  }
  for (let at = begin; at < end; at += STEP_MS) {
    for (const [cluster, walk] of walks.entries()) {
      group.push({ kind: 'samples', samples: setAt(cluster, at, walk) })
      if (group.length === GROUP) await append()
    }
  }
  if (group.length > 0) await append()
  return { samples, appendSeconds: spent / 1000, appendCpuSeconds: cpu / 1e6, firstMillionSeconds: firstMillion / 1000 }
}

/** Random walks, rounded as such numbers are: thousandths of cores and percent, MiB, whole pods. */
function setAt(cluster: number, at: number, walk: readonly Float64Array[]): SampleSet {
  const columns = metrics.map(({ name, unit }, i) => {
    const now = walk[i] ?? new Float64Array(task.nodes)
    for (let n = 0; n < now.length; n++) now[n] = Math.max(0, (now[n] ?? 0) + (Math.random() - 0.5) * 10)
    return { metric: name, values: now.map((value) => rounded(value, unit)) }
  })
  const groups = [{ scope: 'node' as const, keys: nodes, columns }]
  return { cluster: nameOf(cluster), at, source: 'pull', repaired: false, groups }
}

function rounded(value: number, unit: string): number {
  if (unit === 'bytes') return Math.round(value) * 2 ** 20
  return unit === 'count' ? Math.round(value / 20) : Math.round(value) / 100
}

async function ask(count: number): Promise<Answering> {
  const [wall, cpu]: [number[], number[]] = [[], []]
  for (let i = 0; i < task.questions; i++) {
    const [begun, before] = [performance.now(), process.cpuUsage()]
    const { series } = await store.range({
      cluster: nameOf(i % task.clusters),
      scope: 'node',
      metrics: metrics.slice(0, count).map(({ name }) => name),
      keys: [nodes[i % nodes.length] ?? ''],
      from: begin,
      to: end - 1,
      stepMs: (task.days * day) / 300,
      maxSeries: 50,
    })
    wall.push(performance.now() - begun)
    const { user, system } = process.cpuUsage(before)
    cpu.push((user + system) / 1000)
    const complete = series.filter(({ values }) => values.length === 300 && values.every((value) => value !== null))
    if (complete.length !== count) throw new Error(`${complete.length} whole series instead of ${count}`)
  }
  return { wallMs: median(wall), cpuMs: median(cpu) }
}

function median(values: number[]): number {
  return values.sort((left, right) => left - right)[Math.floor(values.length / 2)] ?? Number.NaN
}
