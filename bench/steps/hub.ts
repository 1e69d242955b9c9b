/*
 * The hub's way of a step, without a network: `accept`, log (synced), state with its journal, history, event bus. Each cluster hands in its
 * next step when the last is acknowledged, as its mirror does.
 *
 *   hub.ts {"clusters":…,"pods":…,"nodes":…,"seconds":…,"brokenEvery":…,"directory":…}
 */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openEvents } from '../../src/pipeline/events/index.ts'
import { openHistory } from '../../src/pipeline/history/index.ts'
import { Ingester } from '../../src/pipeline/ingest/index.ts'
import { EmbeddedStateStore } from '../../src/pipeline/state/index.ts'
import { openLog } from '../../src/platform/runtime/index.ts'
import { StepsOfCluster } from './worlds.ts'

interface Options {
  readonly clusters: number
  readonly pods: number
  readonly nodes: number
  readonly seconds: number
  /** every so many steps a node changes too; 0: never */
  readonly brokenEvery: number
  readonly directory: string
}

/** What came of it. */
export interface Stepped {
  readonly steps: number
  readonly seconds: number
  readonly cpuMs: number
  /** of changes on the bus until it was done */
  readonly changes: number
  readonly syncs: number
  readonly logBytes: number
  /** from `accept` to the bus, ms, ascending */
  readonly latencies: readonly number[]
  readonly rssMb: number
}

const WARM_MS = 2_000
const options = JSON.parse(process.argv[2] ?? '{}') as Options
const { directory } = options
await using log = await openLog({ directory: join(directory, 'log') })
await using state = await EmbeddedStateStore.open({ directory: join(directory, 'state') })
await using history = await openHistory({ kind: 'duckdb', directory: join(directory, 'history') })
await using events = openEvents({ kind: 'in-process' })
await using ingester = await Ingester.open({ log, state, events, history })

const clusters = Array.from({ length: options.clusters }, (_, i) => new StepsOfCluster(i + 1, options))
const handedIn = new Map<string, number>()
let latencies: number[] = []
let changes = 0
let steps = 0
let isOver = false
events.subscribe((told) => {
  const now = performance.now()
  changes += told.length
  for (const { change } of told) {
    const at = change.kind === 'cluster' ? handedIn.get(change.cluster) : undefined
    if (at !== undefined) latencies.push(now - at)
  }
})
for (const cluster of clusters) {
  await ingester.connect(cluster.name, cluster.connection)
  for (const batch of cluster.first(ingester.nextSequence(cluster.name))) await ingester.accept({ batch })
}
await ingester.flushed()

const running = clusters.map(async (cluster) => {
  while (!isOver) {
    const isBroken = options.brokenEvery > 0 && steps % options.brokenEvery === 0
    const batch = cluster.next(ingester.nextSequence(cluster.name), isBroken)
    handedIn.set(cluster.name, performance.now())
    await ingester.accept({ batch })
    steps++
  }
})
await sleep(WARM_MS)
const [cpu, at, syncs, bytes] = [process.cpuUsage(), performance.now(), log.stats().syncs, log.stats().bytes]
steps = 0
changes = 0
latencies = []
await sleep(options.seconds * 1000)
const stepped = steps
isOver = true
await Promise.all(running)
// What is acknowledged and not applied yet is owed, and paying it counts.
await ingester.flushed()
await state.flush()
const { user, system } = process.cpuUsage(cpu)
const told: Stepped = {
  steps: stepped,
  seconds: (performance.now() - at) / 1000,
  cpuMs: (user + system) / 1000,
  changes,
  syncs: log.stats().syncs - syncs,
  logBytes: log.stats().bytes - bytes,
  latencies: latencies.sort((a, b) => a - b),
  rssMb: process.memoryUsage.rss() / 1e6,
}
await new Promise((resolve) => process.send?.(told, resolve))
process.disconnect()
