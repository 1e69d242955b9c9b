/**
 * One hub that pulls from many clusters: `clusterpulse simulate` in one process, `clusterpulse up` in another, both as
 * built. What a round of one cluster costs in steady state, and whether that stays the same from 100 clusters to 1000.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Product } from './rounds/product.ts'
import { machine, processOf, type Reading, readingOf, shown } from './rounds/reading.ts'
import { type FleetResult, report } from './rounds/report.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const INTERVAL_MS = 30_000
const START_PATIENCE_MS = 300_000

interface Options {
  readonly bin: string
  readonly nodes: number
  readonly pods: number
  readonly intervals: number
}

/**
 * `--clusters 100,300,1000`, `--nodes N`, `--pods N` of each, `--intervals N` of 30 s that are measured after one to settle,
 * `--bin FILE` instead of bin/clusterpulse.js, `--no-write` to leave the results page alone.
 */
export async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      clusters: { type: 'string', default: '100,300,1000' },
      nodes: { type: 'string', default: '10' },
      pods: { type: 'string', default: '100' },
      intervals: { type: 'string', default: '3' },
      bin: { type: 'string', default: `${ROOT}bin/clusterpulse.js` },
      'no-write': { type: 'boolean', default: false },
    },
  })
  const options = {
    bin: values.bin,
    nodes: Number(values.nodes),
    pods: Number(values.pods),
    intervals: Number(values.intervals),
  }
  const on = machine()
  const results: FleetResult[] = []
  for (const clusters of values.clusters.split(',').map(Number)) results.push(await measure(clusters, options))
  const page = report(results, { ...options, machine: on })
  process.stdout.write(page)
  if (values['no-write']) return
  await mkdir(`${ROOT}bench/results`, { recursive: true })
  await writeFile(`${ROOT}bench/results/rounds.md`, page)
}

async function measure(clusters: number, { bin, nodes, pods, intervals }: Options): Promise<FleetResult> {
  const directory = await mkdtemp(join(tmpdir(), 'bench-rounds-'))
  const kubeconfig = join(directory, 'kubeconfig')
  try {
    const flags = ['--clusters', clusters, '--nodes', nodes, '--pods', pods, '--kubeconfig-out', kubeconfig].map(String)
    const { product: members } = await Product.start(bin, ['simulate', ...flags], /kubeconfig in/)
    await using _members = members
    const { product: hub, match } = await Product.start(
      bin,
      [
        'up',
        '--kubeconfig',
        kubeconfig,
        '--data-dir',
        join(directory, 'data'),
        '--port',
        '0',
        '--control-plane-port',
        '0',
      ],
      /on (http:\S+)/,
    )
    await using _hub = hub
    const url = match[1] ?? ''
    const servesAfterMs = performance.now() - hub.startedAt
    const allShownAfterMs = await untilShown(hub, url, clusters)
    await sleep(INTERVAL_MS) // the first rounds read more (discovery, operators), and meet code that is not yet compiled

    const membersCpuBefore = processOf(members.pid).cpuMs
    const readings = [await readingOf(hub.pid, url)]
    const oldestS: number[] = []
    const begunAt = readings[0]?.at ?? 0
    let peakSteadyMb = 0
    for (let interval = 1; interval <= intervals; interval++) {
      while (performance.now() - begunAt < interval * INTERVAL_MS) {
        await sleep(Math.min(1000, Math.max(0, begunAt + interval * INTERVAL_MS - performance.now())))
        peakSteadyMb = Math.max(peakSteadyMb, processOf(hub.pid).rssMb)
      }
      readings.push(await readingOf(hub.pid, url))
      oldestS.push((await shown(url)).oldestS)
    }
    return {
      clusters,
      servesAfterMs,
      allShownAfterMs,
      readings,
      oldestS: Math.max(...oldestS),
      fullRoundS: await fullRound(hub.pid, url, clusters),
      peakSteadyMb,
      peakMb: processOf(hub.pid).peakMb,
      membersMb: processOf(members.pid).peakMb,
      membersCpuMs: (processOf(members.pid).cpuMs - membersCpuBefore) / Math.max(1, roundsBetween(readings)),
    }
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

const roundsBetween = (readings: readonly Reading[]): number =>
  (readings.at(-1)?.collected ?? 0) - (readings[0]?.collected ?? 0)

async function untilShown(hub: Product, url: string, clusters: number): Promise<number> {
  for (;;) {
    const now = await shown(url)
    const afterMs = performance.now() - hub.startedAt
    if (now.clusters === clusters) return afterMs
    if (afterMs > START_PATIENCE_MS)
      throw new Error(`after ${START_PATIENCE_MS} ms ${now.clusters} of ${clusters} are shown`)
    await sleep(250)
  }
}

/** Seconds until so many further rounds are done as there are clusters. */
async function fullRound(pid: number, url: string, clusters: number): Promise<number> {
  const before = await readingOf(pid, url)
  for (;;) {
    await sleep(100)
    const now = await readingOf(pid, url)
    if (now.collected - before.collected >= clusters) return (now.at - before.at) / 1000
    if (now.at - before.at > 4 * INTERVAL_MS) return Number.POSITIVE_INFINITY
  }
}
