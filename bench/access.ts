import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'

/*
 * What access policies cost: compiling them, deciding, filtering, answering somebody who sees a part, and telling open streams
 * that a policy changed. Each part runs in a process of its own, one after the other.
 */

interface Options {
  readonly own: number
  readonly rows: number
  readonly policies: number
  readonly clusters: number
  readonly nodes: number
  readonly streams: number
}

/** What access/core.ts tells: CPU of the process. */
interface Core {
  readonly compileMs: number
  readonly storeMs: number
  readonly prepareMs: number
  readonly decideUs: number
  readonly filterMs: number
  readonly left: number
}

/** What access/requests.ts tells of one person: CPU of the server per request, ms. */
interface Asked {
  readonly first: number
  readonly live: number
  readonly kept: number
  readonly bytes: number
  readonly listed: number
}
type Requests = Readonly<Record<string, Readonly<Record<'administrator' | 'third' | 'filtered', Asked>>>>

/** What access/streams.ts tells: wall time until the last stream has it, CPU of the server. */
interface Streams {
  readonly openMs: number
  readonly openBytes: number
  readonly results: readonly {
    readonly accessMs: number
    readonly snapshotMs: number
    readonly cpuMs: number
    readonly bytes: number
  }[]
}

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/** Runs the bench and writes bench/results/access.md. */
export async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      own: { type: 'string' },
      rows: { type: 'string' },
      policies: { type: 'string' },
      clusters: { type: 'string' },
      nodes: { type: 'string' },
      streams: { type: 'string' },
      'no-write': { type: 'boolean' },
    },
  })
  const options: Options = {
    own: Number(values.own ?? 200),
    rows: Number(values.rows ?? 10_000),
    policies: Number(values.policies ?? 5000),
    clusters: Number(values.clusters ?? 1000),
    nodes: Number(values.nodes ?? 10),
    streams: Number(values.streams ?? 1000),
  }
  const { own, rows, policies, clusters, nodes, streams } = options
  const core = await measure<Core>('core.ts', [own, rows, policies])
  const requests = await inDirectory((directory) => measure<Requests>('requests.ts', [directory, clusters, nodes]))
  const few = Math.min(20, streams)
  const teams = await inDirectory((directory) =>
    measure<Streams>('streams.ts', [directory, streams, clusters, nodes, few]),
  )
  const alone = await inDirectory((directory) =>
    measure<Streams>('streams.ts', [directory, streams, clusters, nodes, streams]),
  )
  const text = report({
    core,
    requests,
    streams: [
      [few, teams],
      [streams, alone],
    ],
    options,
  })
  if (!values['no-write']) {
    await mkdir(here('results'), { recursive: true })
    await writeFile(here('results/access.md'), text)
  }
  process.stdout.write(text)
}

async function measure<T>(script: string, args: readonly (string | number)[]): Promise<T> {
  const flags = ['--import', 'tsx', here(`access/${script}`), ...args.map(String)]
  const { stdout } = await promisify(execFile)(process.execPath, flags, { maxBuffer: 10e6 })
  return JSON.parse(stdout) as T // our own script's last words
}

async function inDirectory<T>(work: (directory: string) => Promise<T>): Promise<T> {
  const directory = await mkdtemp(`${tmpdir()}/bench-access-`)
  try {
    return await work(directory)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

const met = (value: number, goal: number): string => (value <= goal ? 'met' : 'missed')
const ms = (value: number): string => `${value.toFixed(value < 10 ? 1 : 0)} ms`

function report({
  core,
  requests,
  streams,
  options,
}: {
  readonly core: Core
  readonly requests: Requests
  readonly streams: readonly (readonly [views: number, Streams])[]
  readonly options: Options
}): string {
  const { own, rows, policies, clusters, nodes } = options
  const people = {
    administrator: 'administrator',
    third: 'sees a third of the clusters',
    filtered: 'sees a part of every cluster',
  } as const
  const asked = Object.entries(requests).flatMap(([url, answers]) =>
    Object.entries(people).map(([person, name]) => {
      const { first, live, kept, bytes, listed } = answers[person as keyof typeof people]
      const ratio = live / answers.administrator.live
      return `| \`${url}\` | ${name} | ${listed} | ${(bytes / 1000).toFixed(0)} KB | ${ms(first)} | ${ms(live)} | ${ratio.toFixed(2)} × | ${ms(kept)} |`
    }),
  )
  const ratios = Object.values(requests).map(({ administrator, filtered }) => filtered.live / administrator.live)
  const worstRatio = Math.max(...ratios)
  const worstCases = streams.map(([views, { openMs, results }]) => {
    const worst = (of: (result: Streams['results'][number]) => number): number => Math.max(...results.map(of))
    return {
      views,
      openMs,
      accessMs: worst(({ accessMs }) => accessMs),
      snapshotMs: worst(({ snapshotMs }) => snapshotMs),
      cpuMs: worst(({ cpuMs }) => cpuMs),
      megabytes: worst(({ bytes }) => bytes) / 1e6,
    }
  })
  const [first] = worstCases
  return `# Access policies

| What | Measured | Goal | |
|---|---|---|---|
| compile ${policies} policies with all checks | ${ms(core.compileMs)} | 1000 ms | ${met(core.compileMs, 1000)} |
| decide about one cluster, ${own} policies for the caller, none selects it | ${core.decideUs.toFixed(1)} µs | 20 µs | ${met(core.decideUs, 20)} |
| filter ${rows} rows by names and labels (${core.left} left) | ${ms(core.filterMs)} | 5 ms | ${met(core.filterMs, 5)} |
| \`GET /clusters\`, a filtered person against an administrator | ${worstRatio.toFixed(2)} × | 1.5 × | ${met(worstRatio, 1.5)} |
| a policy change visible on ${options.streams} open streams | ${ms(first?.snapshotMs ?? Number.NaN)} | 2000 ms | ${met(first?.snapshotMs ?? Number.NaN, 2000)} |

Besides: reading ${policies} policies into the store takes ${ms(core.storeMs)}, preparing them for decisions once per change ${ms(core.prepareMs)}.

## GET /clusters, ${clusters} clusters of ${nodes} nodes and 20 namespaces

| Route | Person | Clusters listed | Body | First time | While 33 clusters changed | Against the administrator | Nothing changed |
|---|---|---|---|---|---|---|---|
${asked.join('\n')}

## Open streams, one Deny comes or goes for all of them

| Streams | Different views | Opened in | Last \`access\` frame | Last new snapshot | CPU of the server | Sent |
|---|---|---|---|---|---|---|
${worstCases.map((one) => `| ${options.streams} | ${one.views} | ${ms(one.openMs)} | ${ms(one.accessMs)} | ${ms(one.snapshotMs)} | ${ms(one.cpuMs)} | ${one.megabytes.toFixed(0)} MB |`).join('\n')}

From its \`access\` frame on a stream carries nothing of the former view; the snapshot is the new one. The worst of five changes each.

## Method

\`npm run bench access\`. Four processes one after the other on ${availableParallelism()} cores (${cpus()[0]?.model ?? 'unknown'}, Node ${process.version}; load at the end
${loadavg()[0]?.toFixed(1)}: more than the cores make wall times say more of the machine than of us). Times of the first three rows and of requests are CPU of the process,
user plus system with garbage collection: of the first three the lower quartile of the rounds, of requests the median; those of streams
are wall time.

Compiling, deciding, filtering ([\`access/core.ts\`](../access/core.ts)): ${policies} policies with two rules, filters of three types and selectors of every sort (names with
wildcards, RE2, labels). Decisions are about clusters that were never asked about before and that share the prefix of what the
policies select, so that every selector of every policy is compared and none matches. Rows are new in each round.

Requests ([\`access/requests.ts\`](../access/requests.ts)): the real \`apiServer\` over the embedded store, asked in process, 500 other policies beside. The administrator
and the others ask in turn, each time after 33 clusters of ${clusters} changed, so every answer is put together anew from views of which
33 are new. Somebody who sees a part of every cluster has health, sums and counts computed from what is left.

Streams ([\`access/streams.ts\`](../access/streams.ts)): real sockets, all clients in one other process. Each person sees the 20 to 40 clusters of a team; in the second row no
two people see the same, so that nothing is shared between any two of them.
`
}
