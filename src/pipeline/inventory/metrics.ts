import type { Metrics } from '#runtime'
import type { Receipt, SinkErrorClass } from '#sinks'

/** Seconds; up to the deadline of a call, so that a slow sink is told from one just above ten seconds. */
const EXPORT_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120]

/** A binding with its lag, for the gauge. */
export interface Lag {
  readonly namespace: string
  readonly inventory: string
  /** `family/name` */
  readonly sink: string
  readonly lagMs: number
  /** it may lack something for so long by its own pace */
  readonly windowMs: number
}

/** What is counted of exports. */
export class ExportMetrics {
  readonly #duration
  readonly #rows
  readonly #bytes
  readonly #exports
  readonly #errors
  readonly #conflicts
  readonly #tests

  /** @param lags of every binding, when somebody asks */
  constructor(metrics: Metrics, lags: () => Iterable<Lag>) {
    this.#exports = metrics.counter('kollect_exports_total', 'Snapshots that sinks took', ['sink_type'])
    this.#duration = metrics.histogram(
      'kollect_export_duration_seconds',
      'How long exports take',
      ['sink_type'],
      EXPORT_BUCKETS,
    )
    this.#rows = metrics.counter('kollect_export_rows_total', 'Rows, files or messages that exports wrote or deleted', [
      'sink_type',
      'verb',
    ])
    this.#bytes = metrics.counter('kollect_export_bytes_total', 'Bytes that exports wrote', ['sink_type'])
    this.#errors = metrics.counter('kollect_sink_errors_total', 'Exports that failed', ['reason'])
    this.#conflicts = metrics.counter(
      'kollect_export_conflicts_total',
      'Exports that a sink refused because another writer has the same identity',
    )
    this.#tests = metrics.counter('kollect_sink_connection_test_total', 'Sinks that were looked at', ['type', 'result'])
    const labels = ['namespace', 'inventory', 'sink'] as const
    metrics.gauge('kollect_export_lag_seconds', 'Age of the oldest change that a sink lacks', labels, (gauge) => {
      gauge.reset()
      for (const { lagMs, windowMs: _, ...of } of lags()) gauge.set(of, lagMs / 1000)
    })
    metrics.gauge('kollect_export_window_seconds', 'How long a sink waits between two exports', labels, (gauge) => {
      gauge.reset()
      for (const { lagMs: _, windowMs, ...of } of lags()) gauge.set(of, windowMs / 1000)
    })
  }

  took(type: string, ms: number): void {
    this.#duration.observe({ sink_type: type }, ms / 1000)
  }

  wrote(type: string, { written, removed, bytes }: Receipt): void {
    this.#exports.inc({ sink_type: type })
    this.#rows.inc({ sink_type: type, verb: 'written' }, written)
    this.#rows.inc({ sink_type: type, verb: 'removed' }, removed)
    this.#bytes.inc({ sink_type: type }, bytes)
  }

  failed(errorClass: SinkErrorClass): void {
    this.#errors.inc({ reason: errorClass })
  }

  conflict(): void {
    this.#conflicts.inc()
  }

  tested(type: string, isVerified: boolean): void {
    this.#tests.inc({ type, result: isVerified ? 'success' : 'failure' })
  }
}
