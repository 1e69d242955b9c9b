import type { Metrics } from '#runtime'
import type { EventPart } from './messages.ts'
import type { EventKind } from './subjects.ts'

/**
 * Why a tick is not published: a newer one came first, nobody was there to take it, it was due too long ago, or the cluster
 * was not read of late.
 */
export type DropReason = 'replaced' | 'disconnected' | 'late' | 'unread'

/** The publisher's own metrics. @param isConnected asked when they are read */
export function publisherMetrics(metrics: Metrics, isConnected: () => boolean) {
  metrics.gauge('clusterpulse_nats_connected', 'Whether NATS is reached: 1, or 0.', [], (gauge) =>
    gauge.set(Number(isConnected())),
  )
  const published = metrics.counter('clusterpulse_nats_published_total', 'Events that the stream acknowledged.', [
    'kind',
  ])
  const parts = metrics.counter('clusterpulse_nats_parts_total', 'Messages of these events.', ['kind'])
  const bytes = metrics.counter('clusterpulse_nats_bytes_total', 'Bytes of these messages.', ['kind'])
  const failed = metrics.counter('clusterpulse_nats_failed_total', 'Events that the stream did not acknowledge.', [
    'kind',
  ])
  const dropped = metrics.counter('clusterpulse_nats_dropped_total', 'Events that were due and not sent.', [
    'kind',
    'reason',
  ])
  return {
    published(kind: EventKind, sent: readonly EventPart[]) {
      published.inc({ kind })
      parts.inc({ kind }, sent.length)
      bytes.inc(
        { kind },
        sent.reduce((sum, part) => sum + part.bytes.length, 0),
      )
    },
    failed: (kind: EventKind) => failed.inc({ kind }),
    dropped: (kind: EventKind, reason: DropReason) => dropped.inc({ kind, reason }),
  }
}
