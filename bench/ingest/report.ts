import type { Options, Result } from '../ingest.ts'
import { BESIDE, FACTOR, ORIGINAL, STAND_IN } from './calibration.ts'

const QUIET_GOAL_BYTES = 1_024
const FIRST_GOAL_BYTES = 10_240
const STORM_GOAL_S = 30
const RATIO_GOAL = 2

const rate = ({ clients }: Result) => clients.acks / clients.seconds
const upBytes = ({ clients }: Result) => clients.upBytes / Math.max(1, clients.acks)
const cycleBytes = ({ clients }: Result) => (clients.upBytes + clients.downBytes) / Math.max(1, clients.acks)
const cpuUs = ({ hubCpuUs, redisCpuUs }: Result) => hubCpuUs + redisCpuUs

/** The page of results, by the ids of the cases: `baseline` is the stand-in for the original that the others are compared with. */
export function report(
  results: ReadonlyMap<string, Result>,
  storm: Result | undefined,
  options: Options,
  machine: string,
): string {
  const [baseline, same, original, complete, moving, quiet] = [
    'baseline',
    'same',
    'original',
    'complete',
    'moving',
    'quiet',
  ].map((id) => results.get(id))
  const goals: string[] = []
  const goal = (what: string, target: string, value: string, met: boolean) =>
    goals.push(`| ${what} | ${target} | ${value} | ${met ? 'met' : 'missed'} |`)
  const compared: readonly (readonly [string, Result | undefined])[] = [
    ['original protocol, what that hub writes', same],
    ['original protocol, history kept besides', original],
    ['own protocol, complete, history kept', complete],
    ['own protocol, differences, history kept', moving],
  ]
  for (const [what, result] of compared) {
    if (!baseline || !result) continue
    const compare = (of: string, ratio: number, factor: number) =>
      goal(
        `${of}, ${what}`,
        `≥ ${RATIO_GOAL} × the original`,
        `${(ratio / factor).toFixed(2)} × (${ratio.toFixed(2)} × the stand-in)`,
        ratio / factor >= RATIO_GOAL,
      )
    compare('batches/s', rate(result) / rate(baseline), FACTOR.rate)
    compare('batches per CPU, hub and Redis', cpuUs(baseline) / cpuUs(result), FACTOR.cpu)
  }
  if (complete) {
    const bytes = upBytes(complete)
    goal(
      `complete batch of ${options.nodes} nodes`,
      '≤ 10 KB',
      `${(bytes / 1000).toFixed(1)} KB`,
      bytes <= FIRST_GOAL_BYTES,
    )
  }
  if (quiet) {
    const bytes = cycleBytes(quiet)
    goal('quiet cluster per cycle, both ways', '≤ 1 KB', `${bytes.toFixed(0)} B`, bytes <= QUIET_GOAL_BYTES)
  }
  const shared: readonly (readonly [string, Result | undefined, Result | undefined])[] = [
    ['two owners, original protocol', same, results.get('two-original')],
    ['two owners, own protocol, differences', results.get('one-moving'), results.get('two-moving')],
    ['four owners, own protocol, differences', results.get('one-moving'), results.get('four-moving')],
  ]
  for (const [what, one, several] of shared) {
    if (!one || !several) continue
    const share = one.busiestCpuUs / several.busiestCpuUs
    goal(`${what}: batches per CPU of the busiest process`, '> 1 × one process', `${share.toFixed(2)} ×`, share > 1)
  }
  if (storm) {
    const seconds = storm.clients.allStreamingMs / 1000
    goal(
      `${options.storm} agents at once, all acknowledged`,
      `≤ ${STORM_GOAL_S} s`,
      `${seconds.toFixed(1)} s`,
      seconds <= STORM_GOAL_S,
    )
  }
  return `# Batches into one hub

\`npm run bench ingest\`: ${options.streams} streams over TLS, batches of ${options.nodes} nodes, one under way per stream, ${options.seconds} s each; ${options.runs} runs of each row in turn, medians.
On: ${machine}. Hub, clients and Redis share the cores.

| Hub and clients | Batches/s | Hub CPU per batch | of it the busiest process | Redis CPU per batch | Ack p50 | Ack p99 | RSS | Peak RSS | Bytes up per batch | Settled after |
|---|---|---|---|---|---|---|---|---|---|---|
${[...results.values()].map(row).join('\n')}

${storm ? `Reconnect storm: ${options.storm} agents dial at once; all had their first batch acknowledged after ${(storm.clients.allStreamingMs / 1000).toFixed(1)} s, hub RSS ${storm.rssMb.toFixed(0)} MB, peak ${storm.peakRssMb.toFixed(0)} MB, then ${rate(storm).toFixed(0)} batches/s.\n` : ''}
| Goal | Target | Measured | |
|---|---|---|---|
${goals.join('\n')}

## The original itself

The first row is a stand-in for the original, and slower than it: the original does ${FACTOR.rate.toFixed(2)} × its batches/s with 1/${FACTOR.cpu.toFixed(2)} of its CPU, so
every ratio to the stand-in is divided by that. The factors come from two separate measurements of ${ORIGINAL.streams} streams × ${ORIGINAL.nodes} nodes: the original on two
calm cores (TLS, the same kind of Redis; ${ORIGINAL.batchesPerSecond} batches/s, ${(ORIGINAL.cpuUs / 1000).toFixed(1)} ms of CPU per batch with Redis, ${ORIGINAL.rssMb} MB), and the stand-in as it was published
(${STAND_IN.batchesPerSecond} batches/s, ${(STAND_IN.cpuUs / 1000).toFixed(2)} ms, ${STAND_IN.rssMb} MB). They did not run side by side; they hold for that load, and as far as a machine acts alike on both. Side
by side, in the measurement of the original, ours (original protocol, history kept besides) was nearer to it, and takes several times its memory:

| Streams × nodes | The original: batches/s, CPU per batch with Redis, RSS | Ours beside it |
|---|---|---|
${BESIDE.map(({ load, original, ours }) => `| ${load} | ${original} | ${ours} |`).join('\n')}

## Memory

With 200 streams × 50 nodes, original protocol, on two cores that others used too (load 6 to 11), medians of 3 runs each: 265 MB without history (peak
273 MB, 1827 batches/s), 414 MB with it (peak 477 MB, 843 batches/s); goal 400 MB. Of the latter some 90 MB are files that are mapped, 150 to 200 MB the heap of V8, half of
it garbage, 45 MB buffers, 40 to 90 MB DuckDB and the rest of the process. Before, in the same days and in bundles with the heap of the product: 255 to 264 MB, and 468 to 570 MB at 890 to
1390 batches/s; by the loader of sources and without the limit of the heap, as this page measured until then, 490 MB and 680 MB. At fewer batches/s less is young: at the 1300 of
calm cores more is to be expected than 414 MB. It was the allocator of C that kept up to 230 MB of what DuckDB had freed: DuckDB itself held 9 MB. Without effect on it: a limit of 64 MiB
for DuckDB, one thread, fewer arenas alone, its own threshold for flushing; on the rest: 16 MiB of records that may wait instead of 64, which cost CPU, and a young generation of 8 MB.
The limit of the heap has its price: 0.79 to 0.87 ms of CPU per batch without history, 0.52 to 0.58 without the limit.

## Method

Each row runs in fresh processes, bundled as the product is, ours with its limit of the heap: a hub (\`ours.ts\`: stream, synced log, state in Redis, history in DuckDB; \`writes-all.ts\`: every document and
sample by the documented keys, one pipeline per group, then the ack), one process with all clients, a Redis that keeps nothing on disk. A client
sends its next batch when the last one is acknowledged; bodies are encoded before the clock runs. Ours acknowledges when the batch is synced in
the hub's log; Redis and history follow, Redis with the newest state of each cluster and not with every one that came
meanwhile (docs/spec/redis.md), where the baseline writes every one. The baseline keeps no history but an hour of samples in Redis, as the
row without history does; the others keep thirty days besides. *Settled after* is how long all of it needs after the last ack, Redis and history. CPU counts from the first connection until
then, handshakes and all batches included, so nothing is left out of the cost of a batch. Usage of every node moves from batch to batch except in *quiet*. Latency includes the wait
for ${options.streams - 1} others: the hub is saturated on purpose.

Owners are processes that share the clusters, each with its log, state and streams, all on one port (docs/spec/hub-log.md): a stream that arrives at
another one is relayed. Where all share the cores with clients and Redis, their batches/s say little; *the busiest process* says what
more cores would carry, since a process has one core for most of what it does: its CPU per batch of the whole hub bounds the batches/s at
1 s divided by it.
`
}

function row(result: Result): string {
  const { name, clients, rssMb, peakRssMb, settledMs } = result
  const ms = (value: number) => `${value.toFixed(0)} ms`
  const cells = [
    name,
    rate(result).toFixed(0),
    `${result.hubCpuUs.toFixed(0)} µs`,
    `${result.busiestCpuUs.toFixed(0)} µs`,
    `${result.redisCpuUs.toFixed(0)} µs`,
    ms(clients.p50),
    ms(clients.p99),
    `${rssMb.toFixed(0)} MB`,
    `${peakRssMb.toFixed(0)} MB`,
    upBytes(result).toFixed(0),
    `${(settledMs / 1000).toFixed(1)} s`,
  ]
  return `| ${cells.join(' | ')} |`
}
