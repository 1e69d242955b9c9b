import type { HistoryRecord, HistorySpan, HistoryStore, PromQl, RangeAnswer, RangeQuery } from '#history'
import { FleetError, StoreUnavailableError } from '#model'
import type { Availability } from '#state'
import { LateCount } from '../../history/late-count.ts'

interface Sample {
  readonly at: number
  readonly cluster: string
  readonly metric: string
  readonly key: string
  readonly value: number
}

/** A history that keeps samples in a list. What a test says of its health it is told by fields. */
export class MemoryHistory implements HistoryStore {
  readonly driver = 'duckdb'
  readonly #samples: Sample[] = []
  readonly #late = new LateCount()
  readonly allSpans: HistorySpan[] = []
  readonly asked: RangeQuery[] = []
  told: Availability = { state: 'available' }
  /** asked before every answer */
  before: (signal: AbortSignal | undefined) => Promise<void> = async () => undefined
  promql?: PromQl

  availability(): Availability {
    return this.told
  }

  lateRecords(cluster: string): number {
    return this.#late.of(cluster)
  }

  async append(records: readonly HistoryRecord[]): Promise<void> {
    this.#late.add(records)
    for (const record of records) {
      if (record.kind !== 'samples') continue
      const { cluster, at, groups } = record.samples
      for (const { keys, columns } of groups)
        for (const { metric, values } of columns)
          for (const [index, key] of keys.entries())
            this.#samples.push({ at, cluster, metric, key, value: values[index] ?? Number.NaN })
    }
  }

  position(): number {
    return this.#samples.length - 1
  }

  async range(query: RangeQuery, signal?: AbortSignal): Promise<RangeAnswer> {
    this.asked.push(query)
    await this.before(signal)
    const { cluster, metrics, keys, from, to, stepMs } = query
    const start = Math.ceil(from / stepMs) * stepMs
    const points = Math.floor(to / stepMs) - start / stepMs + 1
    const found = this.#samples.filter(
      (sample) => sample.cluster === cluster && metrics.includes(sample.metric) && (keys?.includes(sample.key) ?? true),
    )
    const names = new Set(found.map(({ metric, key }) => `${metric} ${key}`))
    const series = [...names].map((name) => {
      const [metric = '', key = ''] = name.split(' ')
      const values = Array.from({ length: points }, (_, index) => {
        const at = start + index * stepMs
        const inStep = found.filter(
          (one) => one.metric === metric && one.key === key && one.at >= at && one.at < at + stepMs,
        )
        return inStep.length > 0 ? inStep.reduce((sum, { value }) => sum + value, 0) / inStep.length : null
      })
      return { metric, key, values }
    })
    return { start, stepMs, points, series }
  }

  async spans({ from, to }: { from: number; to: number }): Promise<readonly HistorySpan[]> {
    return this.allSpans.filter((span) => span.to >= from && span.from <= to)
  }

  async keys(): Promise<readonly string[]> {
    return [...new Set(this.#samples.map(({ key }) => key))].sort()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.told = { state: 'unavailable', since: 0, reason: 'closed' }
  }
}

export const gone = new StoreUnavailableError('history-0.inside:8428', 'connection refused')

class TooMany extends FleetError {
  readonly code = 'too_many_series'
  readonly retryable = false
}
export const tooMany = new TooMany('51 series are more than 50')
