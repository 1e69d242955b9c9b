/**
 * One agent as built, beside a simulated cluster, with a hub in memory that acknowledges at once and asks for the rows of every
 * built-in kind. What following the cluster costs in CPU, memory and bytes on the wire: in a quiet one, and in one whose pods and nodes live.
 */
import { spawn } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { build } from 'esbuild'
import { parseClusterName } from '../src/contract/model/index.ts'
import { serveHub } from '../src/pipeline/agent/testing/grpc-hub.ts'
import { MemoryHub } from '../src/pipeline/agent/testing/memory-hub.ts'
import { resources } from '../src/pipeline/resources/index.ts'
import { kubeconfigOf, scenarios, simulateFleet } from '../src/platform/simulator/index.ts'
import { machine, processOf } from './rounds/reading.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const MAX_RSS_MB = 160
const MAX_RESTING_MB = 120
const MAX_CPU_MILLI = 40

interface Measured {
  readonly life: 'quiet' | 'busy'
  readonly peakMb: number
  readonly steadyMb: number
  readonly cpuMilli: number
  readonly firstBytes: number
  readonly laterBytes: readonly number[]
  readonly rounds: number
}

/** `--nodes N`, `--pods N`, `--interval S` of the agent, `--intervals N` that are measured after one to settle, `--no-write`. */
export async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      nodes: { type: 'string', default: '500' },
      pods: { type: 'string', default: '20000' },
      interval: { type: 'string', default: '30' },
      intervals: { type: 'string', default: '6' },
      'no-write': { type: 'boolean', default: false },
    },
  })
  const options = {
    nodes: Number(values.nodes),
    pods: Number(values.pods),
    intervalMs: Number(values.interval) * 1000,
    intervals: Number(values.intervals),
  }
  const program = join(ROOT, 'node_modules/.cache/clusterpulse', `bench-agent-${process.pid}.mjs`)
  try {
    await build({
      entryPoints: [`${ROOT}src/apps/agent/main.ts`],
      outfile: program,
      bundle: true,
      platform: 'node',
      target: 'node20',
      format: 'esm',
      packages: 'external',
      logLevel: 'warning',
    })
    const results = await Promise.all([measure('quiet', program, options), measure('busy', program, options)])
    const page = report(results, options)
    process.stdout.write(page)
    if (values['no-write']) return
    await mkdir(`${ROOT}bench/results`, { recursive: true })
    await writeFile(`${ROOT}bench/results/agent.md`, page)
  } finally {
    await rm(program, { force: true })
  }
}

interface Options {
  readonly nodes: number
  readonly pods: number
  readonly intervalMs: number
  readonly intervals: number
}

async function measure(life: Measured['life'], program: string, options: Options): Promise<Measured> {
  const { nodes, pods, intervalMs, intervals } = options
  const directory = await mkdtemp(join(tmpdir(), 'bench-agent-'))
  const scenario = scenarios.plain({ clusters: 1, nodes, pods, seed: 1, lives: life === 'busy' })
  await using fleet = await simulateFleet(scenario, { seed: 1, lives: life === 'busy' })
  const hub = new MemoryHub({ cluster: parseClusterName('sim-001'), now: () => Date.now(), keepViews: false })
  hub.plan = {
    ...{ version: 'bench', intervalMs, timeoutMs: 30_000, operatorScanIntervalMs: 300_000, sources: [] },
    resources: resources.map(({ id }) => id),
  }
  await using served = await serveHub(hub)
  await writeFile(join(directory, 'kubeconfig'), kubeconfigOf(fleet.clusters))
  const agent = spawn(process.execPath, [program], {
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
    while (hub.arrivals.size === 0) await sleep(100)
    // The first rounds read more (discovery, operators), and meet code that is not yet compiled.
    await sleep(intervalMs * 1.5)
    const before = { at: performance.now(), ...processOf(pid), rounds: hub.arrivals.size }
    await sleep(intervalMs * intervals)
    const after = { at: performance.now(), ...processOf(pid), rounds: hub.arrivals.size }
    const [first, , ...later] = [...hub.arrivals.values()].map(({ messageBytes }) => messageBytes)
    return {
      life,
      peakMb: after.peakMb,
      steadyMb: after.rssMb,
      cpuMilli: ((after.cpuMs - before.cpuMs) / (after.at - before.at)) * 1000,
      firstBytes: first ?? 0,
      laterBytes: later,
      rounds: after.rounds - before.rounds,
    }
  } finally {
    agent.kill('SIGTERM')
    await closed
    await rm(directory, { recursive: true, force: true })
  }
}

function report(results: readonly Measured[], { nodes, pods, intervalMs, intervals }: Options): string {
  const on = machine()
  const rows = results.map(({ life, peakMb, steadyMb, cpuMilli, firstBytes, laterBytes, rounds }) => {
    const sorted = [...laterBytes].sort((a, b) => a - b)
    const median = sorted[Math.floor(sorted.length / 2)] ?? 0
    const most = sorted.at(-1) ?? 0
    return `| ${life} | ${peakMb.toFixed(0)} MB | ${steadyMb.toFixed(0)} MB | ${cpuMilli.toFixed(1)} | ${kilo(firstBytes)} | ${kilo(median)} | ${kilo(most)} | ${rounds} |`
  })
  const mib = (mb: number) => (mb * 1e6) / 2 ** 20
  const holds = results.every(
    ({ life, peakMb, steadyMb, cpuMilli }) =>
      mib(peakMb) <= MAX_RSS_MB && mib(steadyMb) <= MAX_RESTING_MB && (life === 'busy' || cpuMilli <= MAX_CPU_MILLI),
  )
  return [
    '# Agent',
    '',
    `\`npm run bench agent\`: one cluster of ${nodes} nodes and ${pods} pods, all built-in kinds followed by watches, a round every ${intervalMs / 1000} s, ${intervals} intervals measured after 1.5 to settle.`,
    `The agent is its own process (src/apps/agent bundled); cluster and hub are another. ${JSON.stringify(on)}`,
    '',
    '| life of the cluster | peak RSS | RSS at the end | CPU, mCPU | first frame | median frame | largest later frame | frames |',
    '|---|---|---|---|---|---|---|---|',
    ...rows,
    '',
    `Bounds: peak ${MAX_RSS_MB} MiB, at rest ${MAX_RESTING_MB} MiB, and ${MAX_CPU_MILLI} mCPU when quiet: ${holds ? 'held' : 'NOT held'}. Frames are whole messages as sent, deflated.`,
    '',
  ].join('\n')
}

const kilo = (bytes: number) => `${(bytes / 1000).toFixed(1)} kB`
