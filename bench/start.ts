/**
 * The first start of a hub for a fleet that nobody has read yet: how long until each cluster is listed, and until each
 * shows its tables; and what that costs in CPU, which does not depend on what else the machine does.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Product } from './rounds/product.ts'
import { machine, processOf } from './rounds/reading.ts'
import { report, type StartResult } from './start/report.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const PATIENCE_MS = 300_000
const LOOK_EVERY_MS = 100
/** A look at all tables costs the hub 1000 rows, so it comes less often than one at the list. */
const TABLES_EVERY_MS = 500

/**
 * `--clusters N`, `--nodes N`, `--pods N` of each, `--runs N`, `--bin FILE` instead of bin/clusterpulse.js, `--no-write` to
 * leave the results page alone.
 */
export async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      clusters: { type: 'string', default: '1000' },
      nodes: { type: 'string', default: '10' },
      pods: { type: 'string', default: '100' },
      runs: { type: 'string', default: '3' },
      bin: { type: 'string', default: `${ROOT}bin/clusterpulse.js` },
      'no-write': { type: 'boolean', default: false },
    },
  })
  const fleet = { clusters: Number(values.clusters), nodes: Number(values.nodes), pods: Number(values.pods) }
  const results: StartResult[] = []
  for (let run = 0; run < Number(values.runs); run++) results.push(await measure(values.bin, fleet))
  const page = report(results, fleet)
  process.stdout.write(page)
  if (values['no-write']) return
  await mkdir(`${ROOT}bench/results`, { recursive: true })
  await writeFile(`${ROOT}bench/results/start.md`, page)
}

async function measure(
  bin: string,
  fleet: { readonly clusters: number; readonly nodes: number; readonly pods: number },
): Promise<StartResult> {
  const directory = await mkdtemp(join(tmpdir(), 'bench-start-'))
  const kubeconfig = join(directory, 'kubeconfig')
  try {
    const flags = Object.entries({ ...fleet, 'kubeconfig-out': kubeconfig }).flatMap(([name, value]) => [
      `--${name}`,
      String(value),
    ])
    const { product: members } = await Product.start(bin, ['simulate', ...flags], /kubeconfig in/)
    await using _members = members
    const on = machine()
    const before = processOf(members.pid).cpuMs
    const ports = ['--port', '0', '--control-plane-port', '0', '--ingester-port', '0']
    const { product: hub, match } = await Product.start(
      bin,
      ['up', '--kubeconfig', kubeconfig, '--data-dir', join(directory, 'data'), ...ports],
      /on (http:\S+)/,
    )
    await using _hub = hub
    const servesMs = performance.now() - hub.startedAt
    const url = match[1] ?? ''
    const firstListedMs = await until(hub, LOOK_EVERY_MS, async () => (await listed(url)).length > 0)
    const listedMs = await until(hub, LOOK_EVERY_MS, async () => (await listed(url)).length >= fleet.clusters)
    const listedCpuMs = processOf(hub.pid).cpuMs
    const tables = async () => (await listed(url)).filter(({ metrics }) => (metrics?.nodes ?? 0) > 0).length
    const halfMs = await until(hub, TABLES_EVERY_MS, async () => (await tables()) >= fleet.clusters / 2)
    const tablesMs = await until(hub, TABLES_EVERY_MS, async () => (await tables()) >= fleet.clusters)
    return {
      machine: on,
      servesMs,
      firstListedMs,
      listedMs,
      listedCpuMs,
      halfMs,
      tablesMs,
      hubCpuMs: processOf(hub.pid).cpuMs,
      membersCpuMs: processOf(members.pid).cpuMs - before,
      peakMb: processOf(hub.pid).peakMb,
    }
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

interface ListedCluster {
  readonly metrics?: { readonly nodes?: number } | null
}

const listed = async (url: string): Promise<readonly ListedCluster[]> => {
  const answer = await fetch(`${url}/api/v1/clusters`)
  return answer.ok ? ((await answer.json()) as ListedCluster[]) : []
}

/** ms since the hub's process began. @throws Error where it never comes true */
async function until(hub: Product, everyMs: number, isTrue: () => Promise<boolean>): Promise<number> {
  for (;;) {
    const isNow = await isTrue()
    const afterMs = performance.now() - hub.startedAt
    if (isNow) return afterMs
    if (afterMs > PATIENCE_MS) throw new Error(`not all clusters after ${PATIENCE_MS} ms`)
    await sleep(everyMs)
  }
}
