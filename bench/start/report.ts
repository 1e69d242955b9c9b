/** One first start, measured. Times are ms since the hub's process began. */
export interface StartResult {
  readonly machine: string
  readonly servesMs: number
  readonly firstListedMs: number
  readonly listedMs: number
  /** of the hub, until all were listed */
  readonly listedCpuMs: number
  /** until half of the clusters had their tables */
  readonly halfMs: number
  readonly tablesMs: number
  /** of the hub, until all had their tables */
  readonly hubCpuMs: number
  /** of the simulator, from the hub's start until all had their tables */
  readonly membersCpuMs: number
  readonly peakMb: number
}

const LISTED_GOAL_MS = 5_000
const TABLES_GOAL_MS = 35_000

export function report(
  results: readonly StartResult[],
  { clusters, nodes, pods }: { readonly clusters: number; readonly nodes: number; readonly pods: number },
): string {
  const worst = (of: (result: StartResult) => number) => Math.max(...results.map(of))
  const goal = (name: string, limitMs: number, ms: number) =>
    `| ${name} | ≤ ${limitMs / 1000} s | ${seconds(ms)} | ${ms <= limitMs ? 'met' : 'missed'} |`
  return `# First start

\`npm run bench start\`: ${clusters} clusters of ${nodes} nodes and ${pods} pods that the hub has never read; starts with empty folders.

| Machine | Serves | First listed | All listed | Half have tables | All have tables | CPU of the hub until listed | until tables | CPU of the members | Peak RSS |
|---|---|---|---|---|---|---|---|---|---|
${results.map(row).join('\n')}

| Goal | Target | Worst | |
|---|---|---|---|
${goal(
  `all ${clusters} listed`,
  LISTED_GOAL_MS,
  worst((result) => result.listedMs),
)}
${goal(
  `all ${clusters} have their tables`,
  TABLES_GOAL_MS,
  worst((result) => result.tablesMs),
)}
${goal(
  'the same on one core of its own: CPU of the hub until all have tables',
  TABLES_GOAL_MS,
  worst((result) => result.hubCpuMs),
)}

## Method

\`clusterpulse simulate\` serves the clusters from one process over TLS, \`clusterpulse up\` reads them from its kubeconfig in another, both as built.
All times are since the hub's process began, its start included. *Listed*: the row is in \`GET /api/v1/clusters\`, asked every 100 ms. *Tables*: the row
has nodes, asked every 500 ms. CPU is user plus system time from /proc, of each process by itself. That of the members is what the hub's questions and their own life cost
the simulator meanwhile: real members pay it on machines of their own, here it is taken from the same cores. The target is the hub's; its CPU says what
it would take beside members of their own. On a busy machine every time is too long, and CPU too where calls wait for so long that they are repeated.
`
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`

function row(result: StartResult): string {
  const { machine, servesMs, firstListedMs, listedMs, halfMs, tablesMs, listedCpuMs, hubCpuMs, membersCpuMs } = result
  const times = [servesMs, firstListedMs, listedMs, halfMs, tablesMs, listedCpuMs, hubCpuMs, membersCpuMs].map(seconds)
  return `| ${[machine, ...times, `${result.peakMb.toFixed(0)} MB`].join(' | ')} |`
}
