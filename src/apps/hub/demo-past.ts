import { setImmediate as nextTurn } from 'node:timers/promises'
import { type HistoryStore, samplesOf } from '#history'
import type { FillingView } from '#http'
import type { Ingester, Offer } from '#ingest'
import {
  type Batch,
  type Part as BatchPart,
  type Clock,
  type ClusterName,
  type ClusterState,
  minutes,
  type SampleSet,
  type SnapshotType,
  seconds,
} from '#model'
import { Past, type Picture } from '#simulator'
import type { StateReader } from '#state'

const HOUR = minutes(60)
const DAY = 24 * HOUR

/** Who numbers the batches of the past: the first is the newest, so that the chart of the last hour is whole first. */
const ORIGIN = 'simulated-past'
/** Batches of one cluster that share a sync of the hub's log; making them keeps nobody waiting for long. */
const AT_ONCE = 512
/** Batches made before others get a turn. */
const SLICE = 16
const LOOK_EVERY_MS = 50
/** A cluster that was not read by then has no past: nobody knows what it is like. */
const PATIENCE_MS = minutes(2)

/** How far apart batches are, down to this age: so near that the page, which draws no line over a hole, draws lines. */
const paces = [
  { untilMs: HOUR, everyMs: seconds(30) },
  { untilMs: 6 * HOUR, everyMs: minutes(2) },
  { untilMs: DAY, everyMs: minutes(5) },
  { untilMs: 30 * DAY, everyMs: minutes(30) },
] as const

/** The times of a past that ends when the cluster became known, newest first: whole multiples of their distance. */
export function pastTimes(known: number): readonly number[] {
  const times: number[] = []
  let at = known
  for (const { untilMs, everyMs } of paces) {
    for (at = Math.ceil(at / everyMs - 1) * everyMs; at > known - untilMs; at -= everyMs) times.push(at)
    at += everyMs
  }
  return times
}

export interface DemoPastOptions {
  /** when the hub was first told of each cluster, ms: its past ends there, and what came after is what was measured */
  readonly known: ReadonlyMap<ClusterName, number>
  /** how far it has come, by cluster, for as long as it is under way; written here */
  readonly filling: Map<string, FillingView>
  /** what is older is not kept anyway */
  readonly reachMs: number
  readonly state: StateReader
  readonly ingester: Ingester
  readonly history: HistoryStore
  readonly clock: Clock
}

/**
 * Gives each cluster of the demo a past, through the one entry for batches: the ledger knows which of them it has, so that
 * a restart goes on where the last one stopped, and adds nothing where that was the end.
 * @returns how many batches were added; they are in history
 */
export async function fillPast(options: DemoPastOptions, signal: AbortSignal): Promise<number> {
  const added = await Promise.all(
    [...options.known].map(async ([cluster, known]) => {
      const missing = await missingOf(options, cluster, known)
      if (missing.length === 0) return 0
      tellReached(options, cluster, known, missing)
      try {
        const read = await whenRead(options, cluster, signal)
        if (!read) return 0
        await deliver(options, { cluster, known, past: new Past(cluster, pictureOf(read), known), missing }, signal)
        await options.ingester.flushed('history')
        return missing.length
      } finally {
        options.filling.delete(cluster)
      }
    }),
  )
  return added.reduce((sum, count) => sum + count, 0)
}

interface Missing {
  readonly sequence: number
  readonly at: number
}

/** The past is there down to what is missing still. */
function tellReached(
  { filling }: DemoPastOptions,
  cluster: ClusterName,
  known: number,
  missing: readonly Missing[],
): void {
  const [first, last] = [missing[0], missing.at(-1)]
  if (!first || !last) return
  filling.set(cluster, { from: last.at, reached: pastTimes(known)[first.sequence - 2] ?? known, to: known })
}

async function missingOf(
  { ingester, history, clock, reachMs }: DemoPastOptions,
  cluster: ClusterName,
  known: number,
): Promise<readonly Missing[]> {
  const received = ingester.received(cluster, ORIGIN)
  if (received.length === 0) {
    // It was here before, was taken away and came back: its past is there, with all that was measured in it.
    const before = { cluster, scope: 'cluster', from: known - reachMs, to: known, limit: 1 } as const
    if ((await history.keys(before)).length > 0) return []
  }
  const oldest = clock.now() - reachMs
  return pastTimes(known)
    .map((at, index) => ({ at, sequence: index + 1 }))
    .filter(({ at, sequence }) => at > oldest && !received.some(([from, to]) => from <= sequence && sequence <= to))
}

/** The cluster, once its nodes were read; undefined where that does not happen in time. */
async function whenRead(
  { state, clock }: DemoPastOptions,
  cluster: ClusterName,
  signal: AbortSignal,
): Promise<ClusterState | undefined> {
  const until = clock.now() + PATIENCE_MS
  while (clock.now() < until && !signal.aborted) {
    const read = state.cluster(cluster)
    if (read?.parts.node?.freshness) return read
    await clock.sleep(LOOK_EVERY_MS, signal)
  }
  return undefined
}

/** What numbers are made of. */
const types = ['node', 'podSummary', 'namespace', 'deployment', 'operator', 'clusterOperator'] as const

function pictureOf({ parts }: ClusterState): Picture {
  const read = types.filter((type) => parts[type]?.freshness)
  return Object.fromEntries(read.map((type) => [type, [...(parts[type]?.items.values() ?? [])]]))
}

interface Delivery {
  readonly cluster: ClusterName
  readonly known: number
  readonly past: Past
  readonly missing: readonly Missing[]
}

async function deliver(options: DemoPastOptions, delivery: Delivery, signal: AbortSignal): Promise<void> {
  const { ingester } = options
  const { cluster, known, past, missing } = delivery
  const kept: Promise<void>[] = []
  try {
    for (let from = 0; from < missing.length; from += AT_ONCE) {
      if (signal.aborted) return
      const batches: Offer[] = []
      for (const { sequence, at } of missing.slice(from, from + AT_ONCE)) {
        const batch = batchOf(cluster, sequence, at, past.at(at))
        // Its numbers are what history keeps: nobody has to carry the rest.
        batches.push({ batch: { ...batch, parts: [] }, samples: drawn(batch) })
        // People who look meanwhile come first.
        if (batches.length % SLICE === 0) await nextTurn()
      }
      await ingester.acceptPast(batches, signal)
      // The next are made while these go into history.
      const rest = missing.slice(from + AT_ONCE)
      kept.push(ingester.flushed('history').then(() => tellReached(options, cluster, known, rest)))
    }
  } finally {
    await Promise.allSettled(kept)
  }
}

/** What charts are drawn of. Series of single operators would be four times as much again, and begin with the measured ones. */
const drawn = (batch: Batch): SampleSet | undefined => samplesOf(batch, undefined, ['cluster', 'node'])

const batchOf = (cluster: ClusterName, sequence: number, at: number, picture: Picture): Batch => ({
  ...{ cluster, sequence, origin: ORIGIN, backfill: true, simulated: true, source: 'pull', durationMs: 0 },
  collectedAt: at,
  parts: (Object.keys(picture) as SnapshotType[]).map(
    // The compiler does not follow that the items of a type are those of its part.
    (type) => ({ type, collector: type, durationMs: 0, outcome: 'complete', items: picture[type] }) as BatchPart,
  ),
})
