import { type MetricUnit, metricPrefix, metricsCatalogue, type SampleGroup, type SampleSet, scopeLabel } from '#model'
import { cleanMetric, cleanTime } from './series.ts'
import { wayOf } from './spans.ts'
import type { HistoryRecord } from './types.ts'

/** One line of the import, and what names it: series and time. */
export interface Line {
  readonly cluster: string
  readonly id: string
  readonly at: number
  readonly text: string
}

/** Names of our own series beside the metrics: how each batch came, and what was declared lost. */
export const batchMetric = {
  pulled: 'clusterpulse_batch_pulled',
  pushed: 'clusterpulse_batch_pushed',
  repaired: 'clusterpulse_batch_repaired',
  /** the number of batches, at the time of the first */
  lost: 'clusterpulse_batch_lost',
  /** how long it lasted, at the same time */
  lostMs: 'clusterpulse_batch_lost_ms',
} as const

const unitOf: ReadonlyMap<string, MetricUnit> = new Map(
  metricsCatalogue.map(({ scope, name, unit }) => [metricPrefix[scope] + name, unit]),
)

/** What tells a series within a cluster: the same of a line and of an answer. */
export const seriesId = (metric: string, label: string | null, key: string): string =>
  label === null || key === '' ? metric : `${metric}\n${label}\n${key}`

/**
 * A record in the documented lines `name{labels} value time`, groups and numbers in their order, label values escaped.
 * Nothing for what is not a number or has no possible time.
 */
export function* linesOf(record: HistoryRecord): Generator<Line> {
  if (record.kind === 'lost') {
    const { loss, cluster } = record
    const [from, to] = [cleanTime(loss.from), cleanTime(loss.to)]
    if (from === undefined || to === undefined) return
    yield lineOf({ cluster, label: 'cause', at: from }, batchMetric.lost, loss.cause, Math.round(loss.count))
    yield lineOf({ cluster, label: 'cause', at: from }, batchMetric.lostMs, loss.cause, Math.max(0, to - from))
    return
  }
  const { samples } = record
  const at = cleanTime(samples.at)
  if (at === undefined) return
  for (const group of samples.groups) yield* groupLines(samples, group, at)
  yield lineOf({ cluster: samples.cluster, label: null, at }, batchMetric[wayOf(samples)], '', 1)
}

function* groupLines({ cluster }: SampleSet, { scope, keys, columns }: SampleGroup, at: number): Generator<Line> {
  const series = { cluster, label: scopeLabel[scope], at }
  const names = columns.map(({ metric }) => cleanMetric(metric))
  for (const [i, key] of keys.entries()) {
    for (const [c, { values }] of columns.entries()) {
      const value = values[i]
      const name = names[c]
      if (name !== undefined && value !== undefined && Number.isFinite(value)) yield lineOf(series, name, key, value)
    }
  }
}

function lineOf(
  { cluster, label, at }: { cluster: string; label: string | null; at: number },
  metric: string,
  key: string,
  value: number,
): Line {
  const labels = label === null ? '' : `,${label}="${escapeLabel(key)}"`
  const text = `${metric}{cluster="${escapeLabel(cluster)}"${labels}} ${formatValue(value, unitOf.get(metric))} ${at}`
  return { cluster, id: seriesId(metric, label, wellFormed(key)), at, text }
}

/** As it comes back: half a surrogate pair has no UTF-8. */
export const wellFormed = (text: string): string => Buffer.from(text).toString()

const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '"': '\\"', '\n': '\\n' }
const escapeLabel = (text: string): string => text.replace(/[\\"\n]/g, (letter) => ESCAPES[letter] ?? letter)

/** Counts and bytes as digits; the others shortest, with an exponent from 10⁶ on and below 10⁻⁴, as documented. */
export function formatValue(value: number, unit: MetricUnit | undefined): string {
  const size = Math.abs(value)
  const isCounted = unit === 'bytes' || unit === 'count' || unit === 'flag'
  if (isCounted && Number.isInteger(value) && size < 1e21) return String(value)
  if (size === 0 || (size >= 1e-4 && size < 1e6)) return String(value)
  return value.toExponential().replace(/e([+-])(\d)$/, 'e$10$2')
}
