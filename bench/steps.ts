/** How many steps a second one process of the hub takes, from `accept` to the event bus, and what one costs. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Bencher } from './ingest/process.ts'
import { at } from './live/mark.ts'
import { machine } from './rounds/reading.ts'
import type { Stepped } from './steps/hub.ts'

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/** `--clusters N`, `--pods N` and `--nodes N` of each, `--seconds N`, `--no-write`. Writes bench/results/steps.md. */
export async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      clusters: { type: 'string', default: '100' },
      pods: { type: 'string', default: '1000' },
      nodes: { type: 'string', default: '10' },
      seconds: { type: 'string', default: '10' },
      'no-write': { type: 'boolean', default: false },
    },
  })
  const [clusters, pods] = [Number(values.clusters), Number(values.pods)]
  const [nodes, seconds] = [Number(values.nodes), Number(values.seconds)]
  const begun = machine()
  const rows: string[] = []
  for (const [what, brokenEvery] of [
    ['one pod', 0],
    ['one pod, every fourth time a node too', 4],
  ] as const) {
    const stepped = await measure({ clusters, pods, nodes, seconds, brokenEvery })
    rows.push(rowOf(what, stepped))
  }
  const page = [
    '# Steps',
    '',
    `\`npm run bench steps\`: ${clusters} clusters of ${nodes} nodes and ${pods} pods in one process; each hands in its next step when the last is acknowledged`,
    `(on disk in the log), for ${seconds} s. Log, state with its journal, embedded history and the event bus are those of \`up\`. ${begun}.`,
    '',
    '| a step is | steps/s | CPU per step | steps/s of a whole core | p50 | p99 | steps per sync | log per step | RSS |',
    '|---|---|---|---|---|---|---|---|---|',
    ...rows,
    '',
    'p50, p99: from `accept` to the subscriber of the bus, all clusters at once, so of a queue that is as long as there are clusters.',
    'CPU: user and system time of the process until all is in state and on disk. What makes the steps (a patch of the table) is in it.',
    '',
  ].join('\n')
  process.stdout.write(page)
  if (values['no-write']) return
  await mkdir(here('results'), { recursive: true })
  await writeFile(here('results/steps.md'), page)
}

async function measure(options: object): Promise<Stepped> {
  const directory = await mkdtemp(join(tmpdir(), 'bench-steps-'))
  try {
    await using hub = new Bencher(new URL('steps/hub.ts', import.meta.url), { ...options, directory })
    return await hub.hear<Stepped>()
  } finally {
    await rm(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  }
}

function rowOf(what: string, { steps, seconds, cpuMs, syncs, logBytes, latencies, rssMb }: Stepped): string {
  const each = cpuMs / steps
  const [p50, p99] = [at(latencies, 0.5), at(latencies, 0.99)]
  return `| ${what} | ${(steps / seconds).toFixed(0)} | ${each.toFixed(3)} ms | ${(1000 / each).toFixed(0)} | ${p50.toFixed(0)} ms | ${p99.toFixed(0)} ms | ${(steps / syncs).toFixed(0)} | ${(logBytes / steps).toFixed(0)} B | ${rssMb.toFixed(0)} MB |`
}
