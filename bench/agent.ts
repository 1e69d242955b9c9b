/**
 * One agent as built, beside a simulated cluster, with a hub in memory that acknowledges at once and asks for the rows of every
 * built-in kind. What following the cluster costs in CPU, memory and bytes on the wire: in a quiet one, and in one whose pods and nodes live.
 */
import { spawn, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { parseClusterName } from '../src/contract/model/index.ts'
import { serveHub } from '../src/pipeline/agent/testing/grpc-hub.ts'
import { MemoryHub } from '../src/pipeline/agent/testing/memory-hub.ts'
import { usageNames } from '../src/pipeline/collect/index.ts'
import { resources } from '../src/pipeline/resources/index.ts'
import { kubeconfigOf, scenarios, simulateFleet } from '../src/platform/simulator/index.ts'
import { machine, processOf } from './rounds/reading.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const MAX_PEAK_MIB = 160
const MAX_RESTING_MIB = 120
const MAX_CPU_MILLI = 40

/** `measured`: quiet, and what nodes and pods use is read with each round. */
type Life = 'quiet' | 'busy' | 'measured'

interface Measured {
  readonly size: Size
  readonly life: Life
  readonly peakMb: number
  readonly steadyMb: number
  readonly cpuMilli: number
  readonly firstBytes: number
  readonly laterBytes: readonly number[]
  readonly rounds: number
  /** from the cluster and the hub, in the time that was measured: a list of all would be in it */
  readonly readBytes: number
}

interface Size {
  readonly nodes: number
  readonly pods: number
}

/** What the bounds are for, and the largest that Kubernetes has room for in nodes. */
const SIZES: readonly Size[] = [
  { nodes: 500, pods: 20_000 },
  { nodes: 5000, pods: 50_000 },
]

/** `--nodes N --pods N`, default both sizes; `--interval S` of the agent, `--intervals N` that are measured after 1.5 to settle, `--no-write`. */
export async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      nodes: { type: 'string' },
      pods: { type: 'string' },
      interval: { type: 'string', default: '30' },
      intervals: { type: 'string', default: '6' },
      'no-write': { type: 'boolean', default: false },
    },
  })
  const { nodes, pods, interval, intervals } = values
  const sizes = nodes || pods ? [{ nodes: Number(nodes ?? 500), pods: Number(pods ?? 20_000) }] : SIZES
  const options = { intervalMs: Number(interval) * 1000, intervals: Number(intervals) }
  const built = spawnSync(process.execPath, [`${ROOT}scripts/build.js`, 'node'], { stdio: 'inherit' })
  if (built.status !== 0) throw new Error('the product could not be built')
  const on = machine()
  const results: Measured[] = []
  // All lives of a size at once: none of the processes waits for another.
  for (const size of sizes)
    results.push(
      ...(await Promise.all((['quiet', 'busy', 'measured'] as const).map((life) => measure(life, size, options)))),
    )
  const page = report(results, options, on)
  process.stdout.write(page)
  if (values['no-write']) return
  await mkdir(`${ROOT}bench/results`, { recursive: true })
  await writeFile(`${ROOT}bench/results/agent.md`, page)
}

interface Options {
  readonly intervalMs: number
  readonly intervals: number
}

async function measure(life: Life, size: Size, { intervalMs, intervals }: Options): Promise<Measured> {
  const { nodes, pods } = size
  const directory = await mkdtemp(join(tmpdir(), 'bench-agent-'))
  const scenario = scenarios.plain({ clusters: 1, nodes, pods, seed: 1, lives: life === 'busy' })
  await using fleet = await simulateFleet(scenario, { seed: 1, lives: life === 'busy' })
  const sources = [...resources.map(({ id }) => id), ...(life === 'measured' ? usageNames : [])]
  const hub = new MemoryHub({ cluster: parseClusterName('sim-001'), now: () => Date.now(), keepViews: false })
  hub.plan = {
    ...{ version: 'bench', intervalMs, timeoutMs: 30_000, operatorScanIntervalMs: 300_000, sources: [] },
    resources: sources,
  }
  await using served = await serveHub(hub)
  await writeFile(join(directory, 'kubeconfig'), kubeconfigOf(fleet.clusters))
  const agent = spawn(process.execPath, [`${ROOT}bin/clusterpulse.js`, 'agent'], {
    env: {
      CLUSTER_NAME: 'sim-001',
      INGESTER_ADDRESS: `127.0.0.1:${served.port}`,
      COLLECTOR_TOKEN: 'secret',
      COLLECT_INTERVAL: String(intervalMs / 1000),
      KUBECONFIG: join(directory, 'kubeconfig'),
      BUFFER_DIR: join(directory, 'buffer'),
      HEALTH_ADDRESS: '127.0.0.1:0',
      LOG_LEVEL: 'error',
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const closed = new Promise((resolve) => agent.once('close', resolve))
  try {
    const pid = agent.pid ?? 0
    // The first list of each kind is over, and told.
    while (!sources.every((source) => isTold(hub, source))) await sleep(1000)
    // The first rounds read more (discovery, operators), and meet code that is not yet compiled.
    await sleep(intervalMs * 1.5)
    const before = { at: performance.now(), ...processOf(pid), readBytes: readBy(pid), rounds: hub.arrivals.size }
    await sleep(intervalMs * intervals)
    const after = { at: performance.now(), ...processOf(pid), readBytes: readBy(pid), rounds: hub.arrivals.size }
    const [first, , ...later] = [...hub.arrivals.values()].map(({ messageBytes }) => messageBytes)
    return {
      size,
      life,
      peakMb: after.peakMb,
      steadyMb: after.rssMb,
      cpuMilli: ((after.cpuMs - before.cpuMs) / (after.at - before.at)) * 1000,
      firstBytes: first ?? 0,
      laterBytes: later,
      rounds: after.rounds - before.rounds,
      readBytes: after.readBytes - before.readBytes,
    }
  } finally {
    agent.kill('SIGTERM')
    await closed
    await rm(directory, { recursive: true, force: true })
  }
}

const isTold = (hub: MemoryHub, source: string): boolean =>
  [...hub.arrivals.values()].some(({ batch }) => batch.tables?.some((table) => table.source === source))

/** Bytes of all reads of a process, sockets included. */
const readBy = (pid: number): number =>
  Number(/^rchar: (\d+)/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1] ?? Number.NaN)

function report(results: readonly Measured[], { intervalMs, intervals }: Options, on: string): string {
  const rows = results.map(({ size, life, peakMb, steadyMb, cpuMilli, firstBytes, laterBytes, rounds, readBytes }) => {
    const sorted = [...laterBytes].sort((a, b) => a - b)
    const median = sorted[Math.floor(sorted.length / 2)] ?? 0
    const most = sorted.at(-1) ?? 0
    const memory = `${mib(peakMb).toFixed(0)} MiB | ${mib(steadyMb).toFixed(0)} MiB | ${cpuMilli.toFixed(1)}`
    return `| ${size.nodes} | ${size.pods} | ${life} | ${memory} | ${kilo(readBytes)} | ${kilo(firstBytes)} | ${kilo(median)} | ${kilo(most)} | ${rounds} |`
  })
  const bounded = results.filter(({ size }) => size.nodes <= 500 && size.pods <= 20_000)
  const holds = bounded.every(
    ({ life, peakMb, steadyMb, cpuMilli }) =>
      mib(peakMb) <= MAX_PEAK_MIB &&
      mib(steadyMb) <= MAX_RESTING_MIB &&
      (life !== 'quiet' || cpuMilli <= MAX_CPU_MILLI),
  )
  return [
    '# Agent',
    '',
    `\`npm run bench agent\`: one cluster, all built-in kinds followed by watches, a round every ${intervalMs / 1000} s, ${intervals} intervals measured after 1.5 to settle.`,
    `The agent is its own process (\`clusterpulse agent\`, as built); cluster and hub are another. ${on}`,
    '',
    '| nodes | pods | life of the cluster | peak RSS | RSS at the end | CPU, mCPU | read in the time measured | first frame | median frame | largest later frame | frames |',
    '|---|---|---|---|---|---|---|---|---|---|---|',
    ...rows,
    '',
    `Bounds for 500 nodes and 20 000 pods: peak ${MAX_PEAK_MIB} MiB, at rest ${MAX_RESTING_MIB} MiB, and ${MAX_CPU_MILLI} mCPU when quiet: ${bounded.length === 0 ? 'not measured' : holds ? 'held' : 'NOT held'}.`,
    '`measured` is quiet, with what nodes and pods use read with every round (what a hub asks for by default). Frames are whole messages as sent, deflated. What is read is from cluster and hub together, in all the time measured: one list of 20 000 pods alone is some 50 MB.',
    '',
  ].join('\n')
}

const mib = (mb: number) => (mb * 1e6) / 2 ** 20
const kilo = (bytes: number) => `${(bytes / 1000).toFixed(1)} kB`
