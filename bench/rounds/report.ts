import type { Reading } from './reading.ts'

/** One fleet, measured. */
export interface FleetResult {
  readonly clusters: number
  readonly servesAfterMs: number
  readonly allShownAfterMs: number
  /** the first at the begin of the measured intervals, then one at the end of each */
  readonly readings: readonly Reading[]
  readonly oldestS: number
  readonly fullRoundS: number
  readonly peakSteadyMb: number
  /** since the start of the process */
  readonly peakMb: number
  readonly membersMb: number
  /** CPU of the simulator per round it served */
  readonly membersCpuMs: number
}

interface Facts {
  readonly nodes: number
  readonly pods: number
  readonly intervals: number
  readonly machine: string
}

const RSS_GOAL_MB = 700
const FLAT = 1.15

export function report(results: readonly FleetResult[], { nodes, pods, intervals, machine }: Facts): string {
  const costs = results.map(costOf)
  const [first, last] = [costs[0], costs.at(-1)]
  const largest = results.at(-1)
  const ratio = first && last ? last.cpuMs / first.cpuMs : Number.NaN
  const verdict = (met: boolean) => (met ? 'met' : 'missed')
  const goals: string[] = []
  if (largest && last) {
    const least = Math.min(...last.perInterval)
    goals.push(
      `| every cluster read within each interval of 30 s, ${largest.clusters} clusters | ≥ ${largest.clusters} rounds | ${least} | ${verdict(least >= largest.clusters * 0.99)} |`,
      `| peak RSS in steady state, ${largest.clusters} clusters | ≤ ${RSS_GOAL_MB} MB | ${largest.peakSteadyMb.toFixed(0)} MB | ${verdict(largest.peakSteadyMb <= RSS_GOAL_MB)} |`,
      `| peak RSS since the start, ${largest.clusters} clusters | ≤ ${RSS_GOAL_MB} MB | ${largest.peakMb.toFixed(0)} MB | ${verdict(largest.peakMb <= RSS_GOAL_MB)} |`,
      `| CPU per round, ${largest.clusters} against ${results[0]?.clusters} clusters | flat (≤ ${FLAT} ×) | ${ratio.toFixed(2)} × | ${verdict(ratio <= FLAT)} |`,
      `| RSS of the simulator, ${largest.clusters} clusters | ≤ ${RSS_GOAL_MB} MB | ${largest.membersMb.toFixed(0)} MB | ${verdict(largest.membersMb <= RSS_GOAL_MB)} |`,
    )
  }
  return `# Many clusters on one hub

\`npm run bench rounds\`: clusters of ${nodes} nodes and ${pods} pods, read every 30 s; ${intervals} intervals measured in steady state.
On: ${machine}. Simulator, hub and bench share the machine.

| Clusters | Rounds per interval | Failed | CPU per round | Mean round | Full round of all | Oldest shown | Serves after | All shown after |
|---|---|---|---|---|---|---|---|---|
${results.map((result, index) => row(result, costs[index])).join('\n')}

| Clusters | Steady RSS | Peak RSS, steady | Peak RSS, ever | Heap used | External | Anonymous | Sockets | Simulator RSS | Simulator CPU per round |
|---|---|---|---|---|---|---|---|---|---|
${results.map(memoryRow).join('\n')}

| Goal | Target | Measured | |
|---|---|---|---|
${goals.join('\n')}

## Method

\`clusterpulse simulate\` serves the clusters from one process over TLS, and they live (pods come and go, usage moves); \`clusterpulse up\`
collects from its kubeconfig in another, with empty stores on the machine's temporary directory. Both run from the bundle with no flags of Node's.
Measuring begins one interval after all clusters were shown. CPU is user plus system time of the hub's process from /proc, divided by
the rounds it collected in the same time (\`clusterpulse_rounds_total\`), so the page's server, log, state, statuses and its own embedded
Kubernetes API are all in it. *Mean round* is from the start of a round to its status, waiting for a turn included. *Full round of all* is the
time in which as many rounds end as there are clusters. *Oldest shown* is the highest age on the list of clusters at the end of an interval.
*Serves after* and *All shown after* count from the start of the process. Sockets count both ends of the hub's connection to itself.
RSS in MB of 10⁶ bytes.
`
}

function costOf({ readings }: FleetResult) {
  const [first, last] = [readings[0], readings.at(-1)]
  const rounds = (last?.collected ?? 0) - (first?.collected ?? 0)
  return {
    cpuMs: ((last?.cpuMs ?? 0) - (first?.cpuMs ?? 0)) / rounds,
    meanRoundMs: (((last?.roundSecondsSum ?? 0) - (first?.roundSecondsSum ?? 0)) * 1000) / rounds,
    failed: (last?.failed ?? 0) - (first?.failed ?? 0),
    perInterval: readings.slice(1).map((reading, index) => reading.collected - (readings[index]?.collected ?? 0)),
  }
}

function row(result: FleetResult, cost: ReturnType<typeof costOf> | undefined): string {
  const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`
  const cells = [
    result.clusters,
    cost?.perInterval.join(', '),
    cost?.failed,
    `${cost?.cpuMs.toFixed(1)} ms`,
    `${cost?.meanRoundMs.toFixed(0)} ms`,
    `${result.fullRoundS.toFixed(1)} s`,
    `${result.oldestS.toFixed(1)} s`,
    seconds(result.servesAfterMs),
    seconds(result.allShownAfterMs),
  ]
  return `| ${cells.join(' | ')} |`
}

function memoryRow({ clusters, readings, peakSteadyMb, peakMb, membersMb, membersCpuMs }: FleetResult): string {
  const last = readings.at(-1)
  const mean = readings.reduce((sum, { rssMb }) => sum + rssMb, 0) / readings.length
  const mb = [mean, peakSteadyMb, peakMb, last?.heapMb, last?.externalMb, last?.anonymousMb].map(
    (value) => `${value?.toFixed(0)} MB`,
  )
  return `| ${[clusters, ...mb, last?.sockets, `${membersMb.toFixed(0)} MB`, `${membersCpuMs.toFixed(1)} ms`].join(' | ')} |`
}
