/**
 * What it costs to read a large cluster: 100 nodes and 10 000 pods over local TLS, in pages of 500, into facts. Our
 * collection beside raw JSON and the typed client, in one run: fresh processes, interleaved, medians.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { cpus } from 'node:os'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { build, type Plugin } from 'esbuild'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
/** Below node_modules, so that the bundles find the packages they leave outside. */
const BUNDLES = `${ROOT}node_modules/.cache/clusterpulse-bench-pull`
const MODES = ['ours', 'raw', 'typed'] as const
type ModeName = (typeof MODES)[number]

interface Served {
  readonly url: string
  readonly ca: string
  readonly jsonBytes: number
  readonly protobufBytes: number
}

interface Sample {
  readonly cpuMs: number
  readonly wallMs: number
  readonly peakRssMb: number
  readonly baseRssMb: number
  readonly digest: string
}

/** `--runs N` (default 7), `--nodes N`, `--pods N`, `--no-write` to leave the results page alone. */
export async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      runs: { type: 'string', default: '7' },
      nodes: { type: 'string', default: '100' },
      pods: { type: 'string', default: '10000' },
      'no-write': { type: 'boolean', default: false },
    },
  })
  await bundle()
  const server = fork(`${BUNDLES}/server.mjs`, [values.nodes, values.pods], { execArgv: [] })
  try {
    const served = (await messageOf(server)) as Served
    const samples: Record<ModeName, Sample[]> = { ours: [], raw: [], typed: [] }
    for (let round = 0; round < Number(values.runs); round++) {
      for (const mode of MODES) samples[mode].push(await measure(mode, served))
    }
    const digests = new Set(MODES.flatMap((mode) => samples[mode].map((sample) => sample.digest)))
    if (digests.size !== 1) throw new Error(`the modes did not read the same: ${[...digests].join(' ')}`)
    const page = report(served, samples, values)
    process.stdout.write(page)
    if (!values['no-write']) {
      await mkdir(`${ROOT}bench/results`, { recursive: true })
      await writeFile(`${ROOT}bench/results/pull.md`, page)
    }
  } finally {
    server.kill()
    await rm(BUNDLES, { recursive: true, force: true })
  }
}

/**
 * Packages stay outside the bundles, and one that a mode never calls is not loaded at all: the memory of each process is
 * that of its way of reading, not of a logger or of schemas that come along in an index.
 */
const outside: Plugin = {
  name: 'packages-outside',
  setup(builder) {
    // The schemas of snapshots load a library of their own.
    builder.onResolve({ filter: /\/snapshots\.ts$/ }, ({ path, resolveDir }) => ({
      path: resolve(resolveDir, path),
      sideEffects: false,
    }))
    builder.onResolve({ filter: /^[@a-z]/ }, ({ path, kind }) =>
      kind === 'entry-point' || path.startsWith('node:')
        ? undefined
        : { path, external: true, sideEffects: path === 'reflect-metadata' },
    )
  },
}

/** Plain JavaScript as in production: a TypeScript loader in the process would be measured too. */
async function bundle(): Promise<void> {
  await build({
    absWorkingDir: ROOT,
    entryPoints: ['bench/pull/server.ts', 'bench/pull/modes.ts'],
    outdir: BUNDLES,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    plugins: [outside],
    logLevel: 'error',
  })
}

async function measure(mode: ModeName, { url, ca }: Served): Promise<Sample> {
  const child = fork(`${BUNDLES}/modes.mjs`, [mode, url, Buffer.from(ca).toString('base64')], { execArgv: [] })
  const sample = (await messageOf(child)) as Sample
  if (child.exitCode === null) await once(child, 'exit')
  return sample
}

function messageOf(child: ChildProcess): Promise<unknown> {
  return new Promise((answer, reject) => {
    child.once('message', answer)
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`a process of the bench ended with ${code}`)))
  })
}

function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  const [low = 0, high = 0] = [sorted[Math.ceil(sorted.length / 2) - 1], sorted[middle]]
  return (low + high) / 2
}

const NAMES: Record<ModeName, string> = {
  ours: '**ours** (protobuf, facts)',
  raw: 'undici + JSON.parse',
  typed: 'typed client-node 1.4.0',
}

function report(
  served: Served,
  samples: Record<ModeName, Sample[]>,
  values: { runs: string; nodes: string; pods: string },
): string {
  const of = (mode: ModeName, field: 'cpuMs' | 'wallMs' | 'peakRssMb' | 'baseRssMb') =>
    samples[mode].map((sample) => sample[field])
  const row = (mode: ModeName) => {
    const cpu = of(mode, 'cpuMs')
    const spread = `${Math.min(...cpu).toFixed(0)}–${Math.max(...cpu).toFixed(0)}`
    const rss = `${median(of(mode, 'peakRssMb')).toFixed(0)} (${Math.max(...of(mode, 'peakRssMb')).toFixed(0)})`
    const cells = [
      NAMES[mode],
      median(cpu).toFixed(0),
      spread,
      median(of(mode, 'wallMs')).toFixed(0),
      rss,
      median(of(mode, 'baseRssMb')).toFixed(0),
    ]
    return `| ${cells.join(' | ')} |`
  }
  const ratio = (other: ModeName) => median(of('ours', 'cpuMs')) / median(of(other, 'cpuMs'))
  const peak = Math.max(...of('ours', 'peakRssMb'))
  const verdict = (value: number, target: number) => (value <= target ? 'met' : 'missed')
  return `# Reading a large cluster

\`npm run bench pull\`: ${values.nodes} nodes and ${values.pods} pods (mean ${served.jsonBytes.toFixed(0)} B as JSON, ${served.protobufBytes.toFixed(0)} B as protobuf), pages of 500 over TLS on
the loopback. The server is another process that holds the pages as buffers. Each line is ${values.runs} fresh processes, interleaved with the
other lines; every mode keeps the same facts of every pod and node, and the facts are compared. CPU is user + system of the reading
process from after its imports until the facts are in hand; peak RSS is that of the whole process, which loads only the
packages its mode calls (a hub holds its logger and schemas besides). Node ${process.version}, ${cpus().length} shared cores.

| Mode | CPU ms, median | min–max | wall ms | peak RSS MB, median (max) | RSS before |
|---|---|---|---|---|---|
${MODES.map(row).join('\n')}

| Goal | Target | Measured | |
|---|---|---|---|
| CPU against raw JSON | ≤ 0.50 | ${ratio('raw').toFixed(2)} | ${verdict(ratio('raw'), 0.5)} |
| CPU against the typed client | ≤ 0.25 | ${ratio('typed').toFixed(2)} | ${verdict(ratio('typed'), 0.25)} |
| peak RSS, MB, worst run | ≤ 120 | ${peak.toFixed(0)} | ${verdict(peak, 120)} |
`
}
