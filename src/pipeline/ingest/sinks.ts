import type { EventBus } from '#events'
import { type HistoryRecord, type HistoryStore, samplesOf } from '#history'
import type { Batch, Change } from '#model'
import type { Logger } from '#runtime'
import type { StateRecord, StateStore } from '#state'
import { HISTORY, STATE } from './audience.ts'
import { isForHistory, isForState } from './choose-use.ts'
import type { LogSink } from './log-consumer.ts'

export interface StateSinkOptions {
  readonly state: StateStore
  readonly events: EventBus
  readonly logger: Logger
  /** State has no use for this batch, though it was taken for it: what it is a difference to is not there. */
  readonly onMissed: (batch: Batch) => void
}

/** Into state, then to those who listen. */
export function stateSink({ state, events, logger, onMissed }: StateSinkOptions): LogSink<StateRecord> {
  // In the turn in which state moves: what a subscriber reads is the state of the step it is told of.
  const publish = (changes: readonly Change[]) =>
    void events.publish(changes).catch((error: unknown) => {
      // They are in state: whoever follows takes a new snapshot. Applying them again would tell nothing.
      logger.error({ error }, 'changes could not be published')
    })
  return {
    name: STATE,
    want: 'record',
    wants: isForState,
    group: { records: 64, bytes: 8 * 2 ** 20 },
    take: ({ record }) => record,
    async apply(records, position, signal) {
      await state.apply(records, position, signal, publish)
      for (const batch of newestBatches(records)) {
        const known = state.cluster(batch.cluster)
        if (known && (known.sequence !== batch.sequence || known.origin !== (batch.origin ?? ''))) onMissed(batch)
      }
    },
    position: () => state.position(),
    leftOut: (record) => {
      if (record.kind === 'batch') onMissed(record.batch)
    },
  }
}

/** The last batch of each cluster. */
function newestBatches(records: readonly StateRecord[]): Iterable<Batch> {
  const newest = new Map<string, Batch>()
  for (const record of records) {
    if (record.kind === 'batch') newest.set(record.batch.cluster, record.batch)
    if (record.kind === 'removed') newest.delete(record.cluster)
  }
  return newest.values()
}

/** Samples and declared losses into history. */
export function historySink(
  history: HistoryStore,
  missed: NonNullable<LogSink<HistoryRecord>['missed']> = async () => [],
): LogSink<HistoryRecord> {
  return {
    name: HISTORY,
    want: 'samples',
    wants: isForHistory,
    group: { records: 256, bytes: 8 * 2 ** 20 },
    // A transaction costs the embedded store as much as the samples of ten clusters, and a chart is looked at by the minute.
    gatherMs: 1_000,
    take({ record, audience, samples }) {
      if (record.kind !== 'batch' && record.kind !== 'lost') return undefined
      if (record.kind === 'lost')
        return record.loss.count > 0 ? { kind: 'lost', cluster: record.cluster, loss: record.loss } : undefined
      // A record of an older version holds no samples, but whole parts.
      const kept = samples ?? (audience ? undefined : samplesOf(record.batch))
      return kept && kept.groups.length > 0 ? { kind: 'samples', samples: kept } : undefined
    },
    apply: (records, position, signal) => history.append(records, position, signal),
    position: () => history.position(),
    fallsBack: true,
    missed,
  }
}
