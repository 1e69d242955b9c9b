import { type MetricUnit, metricPrefix, metricsCatalogue, type SampleGroup, type SampleSet, scopeLabel } from '#model'
import { cleanMetric, cleanTime } from './series.ts'
import { isBetweenRounds, wayOf } from './spans.ts'
import type { HistoryRecord } from './types.ts'

/** One line of the import. */
export class Line {
  readonly cluster: string
  readonly at: number
  readonly text: string
  readonly #metric: string
  readonly #label: string | null
  readonly #key: string

  constructor({ cluster, labels, label, key, at }: Labelled, metric: string, value: string) {
    this.cluster = cluster
    this.at = at
    this.text = `${metric}${labels} ${value} ${at}`
    this.#metric = metric
    this.#label = label
    this.#key = key
  }

  /** of its series within the cluster */
  get id(): string {
    return seriesId(this.#metric, this.#label, wellFormed(this.#key))
  }
}

/** What lines of one thing at one time have in common. */
interface Labelled {
  readonly cluster: string
  readonly label: string | null
  readonly key: string
  /** as they are written */
  readonly labels: string
  readonly at: number
}

/** Names of our own series beside the metrics: how each batch came, and what was declared lost. */
export const batchMetric = {
  pulled: 'clusterpulse_batch_pulled',
  pushed: 'clusterpulse_batch_pushed',
  repaired: 'clusterpulse_batch_repaired',
  simulated: 'clusterpulse_batch_simulated',
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
export function linesOf(record: HistoryRecord): readonly Line[] {
  if (record.kind === 'lost') return lossLines(record)
  const { samples } = record
  const at = cleanTime(samples.at)
  if (at === undefined) return []
  const lines: Line[] = []
  for (const group of samples.groups) addGroup(lines, samples, group, at)
  if (!isBetweenRounds(samples))
    lines.push(new Line(labelled(samples.cluster, null, '', at), batchMetric[wayOf(samples)], '1'))
  return lines
}

function lossLines({ cluster, loss }: Extract<HistoryRecord, { kind: 'lost' }>): readonly Line[] {
  const [from, to] = [cleanTime(loss.from), cleanTime(loss.to)]
  if (from === undefined || to === undefined) return []
  const cause = labelled(cluster, 'cause', loss.cause, from)
  const count = Math.max(0, Math.round(loss.count) || 0)
  return [
    new Line(cause, batchMetric.lost, String(count)),
    new Line(cause, batchMetric.lostMs, String(Math.max(0, to - from))),
  ]
}

function addGroup(lines: Line[], { cluster }: SampleSet, { scope, keys, columns }: SampleGroup, at: number): void {
  const metrics = columns.map(({ metric, values }) => {
    const name = cleanMetric(metric)
    return { name, values, unit: unitOf.get(name) }
  })
  for (const [i, key] of keys.entries()) {
    const thing = labelled(cluster, scopeLabel[scope], key, at)
    for (const { name, values, unit } of metrics) {
      const value = values[i]
      if (value !== undefined && Number.isFinite(value)) lines.push(new Line(thing, name, formatValue(value, unit)))
    }
  }
}

function labelled(cluster: string, label: string | null, key: string, at: number): Labelled {
  const own = label === null ? '' : `,${label}="${escapeLabel(key)}"`
  return { cluster, label, key, labels: `{cluster="${escapeLabel(cluster)}"${own}}`, at }
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
