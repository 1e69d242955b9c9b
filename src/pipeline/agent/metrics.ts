import type { Clock } from '#model'
import type { Metrics } from '#runtime'
import type { AgentStatus } from './agent-status.ts'

const NEVER = Number.NaN

/** The agent's own metrics, computed when they are read. */
export function agentMetrics(metrics: Metrics, status: () => AgentStatus, clock: Clock): void {
  const gauges: Readonly<Record<string, readonly [help: string, value: (status: AgentStatus) => number]>> = {
    buffer_batches: ['batches that await their ack', ({ buffer }) => buffer.batches],
    buffer_bytes: ['bytes of the batches that await their ack', ({ buffer }) => buffer.bytes],
    buffer_oldest_age_seconds: [
      'age of the oldest batch that awaits its ack; 0 where none does',
      ({ buffer }) => (buffer.oldestAt === undefined ? 0 : Math.max(0, (clock.now() - buffer.oldestAt) / 1000)),
    ],
    buffer_memory_batches: [
      'batches that are in memory only, as the disk does not take them',
      ({ buffer }) => buffer.memoryBatches,
    ],
    buffer_damaged_places: ['damaged places found in the buffer since the start', ({ buffer }) => buffer.damagedPlaces],
    lost_batches: ['batches declared lost since the buffer was made', ({ buffer }) => buffer.lostBatches],
    connected: ['1 while a registered stream to the hub is open', ({ uplink }) => (uplink.phase === 'live' ? 1 : 0)],
    streams: ['streams to the hub that were registered since the start', ({ uplink }) => uplink.streams],
    sent_bytes: ['bytes of messages given to the transport since the start', ({ uplink }) => uplink.sentBytes],
    sent_batches: [
      'batches given to the transport since the start, repeats included',
      ({ uplink }) => uplink.sentBatches,
    ],
    last_ack_age_seconds: [
      'time since the last ack; not a number before the first',
      ({ uplink }) => (uplink.lastAckAgeMs === undefined ? NEVER : uplink.lastAckAgeMs / 1000),
    ],
    collection_duration_seconds: ['duration of the last round', ({ collection }) => collection.lastDurationMs / 1000],
    rounds: ['rounds since the start', ({ collection }) => collection.rounds],
    failed_rounds: ['rounds that failed since the start', ({ collection }) => collection.failedRounds],
    sources: ['MetricSources of the plan that are collected', ({ sources }) => sources.length],
    failing_sources: [
      'MetricSources whose last collection could not be made, or not of all namespaces',
      ({ sources }) =>
        sources.filter(
          ({ outcome, errorCount }) => (outcome && outcome !== 'complete' && outcome !== 'absent') || errorCount > 0,
        ).length,
    ],
    skipped_ticks: ['ticks that passed while a round was running', ({ collection }) => collection.skippedTicks],
  }
  for (const [name, [help, value]] of Object.entries(gauges)) {
    metrics.gauge(`clusterpulse_agent_${name}`, help, [], (gauge) => gauge.set(value(status())))
  }
}
