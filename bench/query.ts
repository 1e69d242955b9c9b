import { execFile } from 'node:child_process'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { availableParallelism, cpus, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'

/*
 * What questions over a million rows cost: the first time, again, and while rows change; by an administrator and by somebody who sees
 * a part of every cluster. One process, bundled as the product is.
 */

interface Told {
  /** ms: median, p99 */
  readonly wall: readonly [number, number]
  readonly cpu: readonly [number, number]
  /** CPU where no collection of the whole heap fell into the question */
  readonly quiet: readonly [number, number]
  /** questions into which one fell */
  readonly collected: number
}

interface Answered {
  readonly cold: { readonly wallMs: number; readonly cpuMs: number; readonly blockedMs: number }
  readonly warm: Told
  readonly live: Told
  readonly total: number
}

/** What query/measure.ts tells; MB. */
interface Measured {
  readonly results: Readonly<Record<string, Readonly<Record<'administrator' | 'filtered', Answered>>>>
  /** ms a collection of the whole heap stops everything: median, p99 */
  readonly collectionMs: readonly [number, number]
  readonly rss: { readonly loaded: number; readonly end: number; readonly peak: number; readonly live: number }
}

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/** Runs the bench and writes bench/results/query.md. */
export async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      clusters: { type: 'string' },
      pods: { type: 'string' },
      rounds: { type: 'string' },
      changes: { type: 'string' },
      'no-write': { type: 'boolean' },
    },
  })
  const how = {
    clusters: Number(values.clusters ?? 100),
    pods: Number(values.pods ?? 10_000),
    rounds: Number(values.rounds ?? 200),
    changes: Number(values.changes ?? 500),
  }
  const text = report(await measure(Object.values(how)), how)
  if (!values['no-write']) {
    await mkdir(here('results'), { recursive: true })
    await writeFile(here('results/query.md'), text)
  }
  process.stdout.write(text)
}

async function measure(args: readonly number[]): Promise<Measured> {
  const directory = here('../node_modules/.cache/bench-query')
  const outfile = `${directory}/measure.js`
  const { build } = await import('esbuild')
  try {
    await build({
      entryPoints: [here('query/measure.ts')],
      outfile,
      ...{ bundle: true, platform: 'node', target: 'node20', format: 'esm', packages: 'external', logLevel: 'error' },
    })
    const flags = ['--expose-gc', outfile, ...args.map(String)]
    const { stdout } = await promisify(execFile)(process.execPath, flags, { maxBuffer: 10e6 })
    return JSON.parse(stdout) as Measured // our own script's last words
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

const ms = (value: number): string => value.toFixed(value < 10 ? 1 : 0)
const met = (value: number, goal: number): string => (value <= goal ? 'met' : 'missed')
const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

function report(
  { results, collectionMs, rss }: Measured,
  how: { readonly clusters: number; readonly pods: number; readonly rounds: number; readonly changes: number },
): string {
  const all = Object.entries(results)
  const lines = all.flatMap(([question, answered]) =>
    (['administrator', 'filtered'] as const).map((person) => {
      const { cold, warm, live, total } = answered[person]
      const told = ({ cpu, quiet, wall }: Told) => `${ms(cpu[0])} | ${ms(quiet[1])} | ${ms(cpu[1])} | ${ms(wall[1])}`
      return `| ${question} | ${person === 'filtered' ? 'sees a part' : 'administrator'} | ${total} | ${ms(cold.cpuMs)} | ${told(warm)} | ${told(live)} |`
    }),
  )
  const answers = all.flatMap(([, { administrator, filtered }]) => [administrator, filtered])
  const worst = (of: (answered: Answered) => number): number => Math.max(...answers.map(of))
  const warm = worst(({ warm }) => warm.cpu[1])
  const live = worst(({ live }) => live.cpu[1])
  const quietWarm = worst(({ warm }) => warm.quiet[1])
  const quietLive = worst(({ live }) => live.quiet[1])
  const collected = answers.reduce((sum, { warm, live }) => sum + warm.collected + live.collected, 0)
  const share = (100 * collected) / (answers.length * 2 * how.rounds)
  const wall = worst(({ warm }) => warm.wall[1])
  const wallLive = worst(({ live }) => live.wall[1])
  const cold = worst(({ cold }) => cold.cpuMs)
  const ratio = median(all.map(([, { administrator, filtered }]) => filtered.warm.cpu[0] / administrator.warm.cpu[0]))
  const worstRatio = Math.max(
    ...all.map(([, { administrator, filtered }]) => filtered.warm.cpu[0] / administrator.warm.cpu[0]),
  )
  return `# Questions over ${how.clusters * how.pods} rows

| What | Measured | Goal | |
|---|---|---|---|
| again, the worst p99, wall time | ${ms(wall)} ms | 50 ms | ${met(wall, 50)} |
| while ${how.changes} rows change a second, the same | ${ms(wallLive)} ms | 50 ms | ${met(wallLive, 50)} |
| again, the worst p99, CPU of all threads, those of the collector among them | ${ms(warm)} ms | | |
| while ${how.changes} rows change a second, the same | ${ms(live)} ms | | |
| again, the worst p99 of the questions into which no collection of the whole heap fell, CPU | ${ms(quietWarm)} ms | | |
| while ${how.changes} rows change a second, the same | ${ms(quietLive)} ms | | |
| the first time, the worst, CPU | ${ms(cold)} ms | | |
| somebody who sees a part, against the administrator: median of the questions | ${ratio.toFixed(2)} × | 1.5 × | ${met(ratio, 1.5)} |
| the same, the worst question | ${worstRatio.toFixed(2)} × | 1.5 × | ${met(worstRatio, 1.5)} |
| RSS after all questions | ${rss.end.toFixed(0)} MB | 700 MB | ${met(rss.end, 700)} |

A collection of the whole heap fell into ${share.toFixed(0)} % of the questions; it stops everything for ${ms(collectionMs[0])} ms (median), ${ms(collectionMs[1])} ms (p99).
RSS when the rows were loaded ${rss.loaded.toFixed(0)} MB; peak, with making them, ${rss.peak.toFixed(0)} MB. Alive at the end, rows and what is kept of questions: ${rss.live.toFixed(0)} MB. The heap may grow to 1.4 times of what lives, as that of the hub.

## By question

Milliseconds. *Again*: one row changed since the last question. *While rows change*: ${how.changes / 10} rows, as in 100 ms.

| Question | Who | Rows | First, CPU | Again, CPU median | p99, no collection | p99 | p99 wall | While rows change, CPU median | p99, no collection | p99 | p99 wall |
|---|---|---|---|---|---|---|---|---|---|---|---|
${lines.join('\n')}

## Method

\`npm run bench query\`. ${how.clusters} clusters of ${how.pods} pods, 100 nodes and 40 namespaces, as the kind \`pods\` has them; ten pods a workload, three of a hundred do not run.
The real \`apiServer\` in one process, asked in process: from the question to the encoded answer of 100 rows, 20 groups or 20 hits. ${how.rounds} questions each, by an
administrator and by somebody from whom policies hide a quarter of the namespaces and some nodes, in turn. CPU is that of the process, user and system with garbage
collection. Node ${process.version}, ${availableParallelism()} cores of ${cpus()[0]?.model.trim() ?? 'an unknown processor'}; load ${(loadavg()[0] ?? 0).toFixed(1)} at the end: above the
number of cores wall times say more of the machine than of us.
`
}
