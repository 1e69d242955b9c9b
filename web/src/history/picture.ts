import { type ClusterView, type FillingView, type HistoryView, lossText, type SpanView } from '../contract.ts'
import { toCsv } from '../model/export.ts'
import { formatStretch, plural } from '../model/format.ts'
import { formatIso } from './range.ts'
import type { Unit } from './units.ts'

/** How a line is drawn: the same word has the same colour and the same dashes on every chart. */
export type Stroke = 'first' | 'second' | 'third' | 'fourth'

/** What not every cluster has. */
type Served = 'operator' | 'clusterOperator'

export interface Line {
  readonly metric: string
  readonly word: string
  readonly stroke: Stroke
  /** what must be served for it to mean something: the original stores 0 where it is not */
  readonly of?: Served
}

export interface ChartPlan {
  readonly id: string
  readonly title: string
  readonly unit: Unit
  readonly lines: readonly Line[]
  /** shown only where there is a sample */
  readonly optional?: boolean
}

const line = (stroke: Stroke, metric: string, word: string): Line => ({ metric, word, stroke })
const amounts = (of: 'cpu' | 'memory', suffix: '' | '_bytes'): readonly Line[] => [
  line('first', `${of}_used${suffix}`, 'used'),
  line('second', `${of}_requested${suffix}`, 'requested'),
  line('third', `${of}_allocatable${suffix}`, 'allocatable'),
  line('fourth', `${of}_capacity${suffix}`, 'capacity'),
]

export const clusterCharts: readonly ChartPlan[] = [
  { id: 'cpu', title: 'CPU', unit: 'cores', lines: amounts('cpu', '') },
  { id: 'memory', title: 'Memory', unit: 'bytes', lines: amounts('memory', '_bytes') },
  {
    id: 'pods',
    title: 'Pods',
    unit: 'count',
    lines: [
      line('first', 'pods_running', 'running'),
      line('second', 'pods_pending', 'pending'),
      line('third', 'pods_failed', 'failed'),
      line('fourth', 'pods_total', 'total, with completed'),
    ],
  },
  {
    id: 'nodes',
    title: 'Nodes',
    unit: 'count',
    lines: [line('first', 'nodes_ready', 'ready'), line('fourth', 'nodes_total', 'total')],
  },
  {
    id: 'deployments',
    title: 'Deployments',
    unit: 'count',
    lines: [line('first', 'deployments_ready', 'ready'), line('fourth', 'deployments_total', 'total')],
  },
  {
    id: 'namespaces',
    title: 'Namespaces',
    unit: 'count',
    lines: [line('first', 'namespaces_total', 'namespaces')],
  },
  {
    id: 'operators',
    title: 'Operators',
    unit: 'count',
    optional: true,
    lines: [
      { ...line('first', 'operators_total', 'of OLM'), of: 'operator' },
      { ...line('second', 'operators_count', 'of the cluster'), of: 'clusterOperator' },
    ],
  },
]

export const nodeCharts: readonly ChartPlan[] = [
  {
    id: 'usage',
    title: 'Usage',
    unit: 'percent',
    lines: [line('first', 'cpu_usage_percent', 'CPU'), line('second', 'memory_usage_percent', 'memory')],
  },
  { id: 'cpu', title: 'CPU', unit: 'cores', lines: amounts('cpu', '') },
  { id: 'memory', title: 'Memory', unit: 'bytes', lines: amounts('memory', '_bytes') },
  {
    id: 'pods',
    title: 'Pods',
    unit: 'count',
    lines: [
      line('first', 'pods_running', 'running'),
      line('second', 'pods_pending', 'pending'),
      line('third', 'pods_failed', 'failed'),
      line('fourth', 'pods_allocatable', 'allocatable'),
    ],
  },
  { id: 'ready', title: 'Ready', unit: 'flag', lines: [line('first', 'ready', 'ready')] },
]

export const metricsOf = (plans: readonly ChartPlan[]): string[] =>
  plans.flatMap(({ lines }) => lines.map(({ metric }) => metric))

type Values = readonly (number | null)[]

/** An answer of the hub as the charts, the table and the file take it: times once, one column per metric. ms throughout. */
export interface Picture {
  readonly from: number
  readonly to: number
  readonly stepMs: number
  readonly times: readonly number[]
  /** the same in seconds, for the axis */
  readonly seconds: readonly number[]
  readonly columns: ReadonlyMap<string, Values>
  /** oldest first */
  readonly spans: readonly SpanView[]
  /** the newest time with a value; null where there is none */
  readonly newest: number | null
  /** the past is being made up, and is there so far; null: it is not */
  readonly filling: FillingView | null
  /** nothing is kept from before this step; null: something is, or the range does not reach further back */
  readonly begins: number | null
}

/**
 * @param until the end of what was asked for, ms. The last point stands for a step that begins there: the picture goes on to
 * the end of that step, but not beyond what was asked for.
 */
export function pictureOf(view: HistoryView, until: number = view.end * 1000): Picture {
  const seconds = view.series[0]?.points.map(([at]) => at) ?? []
  const index = new Map(seconds.map((at, position) => [at, position]))
  const columns = new Map<string, Values>()
  let last = -1
  for (const { metric, points } of view.series) {
    const values = new Array<number | null>(seconds.length).fill(null)
    for (const [at, value] of points) {
      const position = index.get(at)
      if (position === undefined || value === null || !Number.isFinite(value)) continue
      values[position] = value
      last = Math.max(last, position)
    }
    columns.set(metric, values)
  }
  const lastPoint = Math.max(view.end, seconds.at(-1) ?? view.end) * 1000
  return {
    from: view.start * 1000,
    to: Math.max(lastPoint, Math.min(lastPoint + view.step * 1000, until)),
    stepMs: view.step * 1000,
    times: seconds.map((at) => at * 1000),
    seconds,
    columns,
    spans: view.spans.toSorted((a, b) => a.from - b.from),
    newest: last < 0 ? null : (seconds[last] ?? 0) * 1000,
    filling: view.filling ?? null,
    begins: view.begins ?? null,
  }
}

const DAY_MS = 86_400_000

/** `9 of 30 days so far`: whole days, never more than are there. */
export function fillingText({ from, reached, to }: FillingView): string {
  const all = Math.max(1, Math.round((to - from) / DAY_MS))
  return `${Math.min(all, Math.floor((to - reached) / DAY_MS))} of ${plural(all, 'day')} so far`
}

/** The column of a metric; nothing but holes where the hub sent none. */
export const valuesOf = (picture: Picture, metric: string): Values =>
  picture.columns.get(metric) ?? new Array<null>(picture.times.length).fill(null)

/** Operators are read so often, where the cluster declares nothing else; ms. */
const usualOperatorIntervalMs = 300_000

/**
 * The values of a line as it is drawn and said. What is read less often than the rest of its cluster keeps its value until it is
 * due again, as long as the cluster was read meanwhile; later, and wherever no round came, there is a hole.
 */
export function lastingValues(picture: Picture, { metric, of }: Line): Values {
  const values = valuesOf(picture, metric)
  if (of === undefined) return values
  const longest = (1.5 * paceOf(picture, values)) / picture.stepMs
  const columns = [...picture.columns.values()]
  let at = Number.NEGATIVE_INFINITY
  return values.map((value, index) => {
    if (value !== null) at = index
    else if (!columns.some((column) => (column[index] ?? null) !== null)) at = Number.NEGATIVE_INFINITY
    return index - at <= longest ? (values[at] ?? null) : null
  })
}

/** How far apart values usually are, ms. */
function paceOf({ times }: Picture, values: Values): number {
  const known = times.filter((_, index) => values[index] !== null)
  const gaps = known.slice(1).map((time, index) => time - (known[index] ?? time))
  const middle = gaps.toSorted((a, b) => a - b)[gaps.length >> 1]
  return Math.max(usualOperatorIntervalMs, middle ?? 0)
}

export const hasValues = (picture: Picture, { lines }: ChartPlan): boolean =>
  lines.some(({ metric }) => picture.columns.get(metric)?.some((value) => value !== null) ?? false)

/**
 * Charts without the lines that say nothing but 0 of what the cluster does not serve: it has none because there is no such thing.
 * A chart that is optional goes with its last line.
 */
export function shownCharts(
  picture: Picture | null,
  plans: readonly ChartPlan[],
  isServed: (type: Served) => boolean,
): readonly ChartPlan[] {
  return plans.flatMap((plan) => {
    if (picture === null) return plan.optional ? [] : [plan]
    const hasAny = ({ metric }: Line) => picture.columns.get(metric)?.some((value) => value !== null && value !== 0)
    const lines = plan.lines.filter((line) => line.of === undefined || isServed(line.of) || hasAny(line))
    const left = lines.length === plan.lines.length ? plan : { ...plan, lines }
    return plan.optional && !hasValues(picture, left) ? [] : [left]
  })
}

export const isBlank = (picture: Picture): boolean => picture.newest === null

/** The largest value that a chart shows. */
export function largestOf(picture: Picture, { lines }: ChartPlan): number {
  let largest = 0
  for (const { metric } of lines) {
    for (const value of picture.columns.get(metric) ?? []) if (value !== null && value > largest) largest = value
  }
  return largest
}

/** The smallest value that a chart shows, if it is below 0; else 0. */
export function smallestOf(picture: Picture, { lines }: ChartPlan): number {
  let smallest = 0
  for (const { metric } of lines) {
    for (const value of picture.columns.get(metric) ?? []) if (value !== null && value < smallest) smallest = value
  }
  return smallest
}

/** The point nearest to a moment; -1 where there is none. */
export function nearest(times: readonly number[], at: number): number {
  let [low, high] = [0, times.length - 1]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((times[middle] ?? 0) < at) low = middle + 1
    else high = middle
  }
  const [here, before] = [times[low], times[low - 1]]
  if (here === undefined) return -1
  return before !== undefined && at - before <= here - at ? low - 1 : low
}

/** What a point has samples of: the time from it to the next one. */
export const spansAt = ({ spans, stepMs }: Picture, at: number): SpanView[] =>
  spans.filter(({ from, to }) => from < at + stepMs && to >= at)

export const spanWord: Readonly<Record<SpanView['kind'], string>> = {
  repaired: 'repaired',
  pulled: 'pulled by the hub',
  lost: 'lost',
  simulated: 'simulated',
}

/** What a span means, for people. */
export function spanText({ kind, cause, count }: SpanView): string {
  const batches = plural(count, 'batch', 'batches')
  switch (kind) {
    case 'repaired':
      return `repaired: ${batches} sent later out of the buffer of the agent`
    case 'pulled':
      return `pulled: the hub read ${batches} itself while the agent was away`
    case 'lost':
      // Nobody knows yet whether it will come.
      if (cause === 'not_received') return `${batches} ${lossText(cause)}`
      return `lost: ${batches} will never come${cause ? `, ${lossText(cause)}` : ''}`
    case 'simulated':
      return 'simulated: nothing was measured then, these numbers were made up for the demonstration'
  }
}

/** What a point that no span marks came by: the hub marks pulls only in what is pushed as well. '' where that leaves it open. */
export type Way = 'pull' | 'push' | ''

export function usualWay(
  picture: Picture,
  { mode, source, agent }: Pick<ClusterView, 'mode' | 'source' | 'agent'>,
): Way {
  // What was made up says nothing of how the rest came.
  const spans = picture.spans.filter(({ kind }) => kind !== 'simulated')
  if (spans.some(({ kind }) => kind === 'pulled')) return 'push'
  if (mode === 'push') return source === 'push' || agent !== null ? 'push' : ''
  return source === 'pull' && spans.length === 0 ? 'pull' : ''
}

const liveWords: Readonly<Record<Way, string>> = {
  push: 'live, pushed by the agent',
  pull: 'live, read by the hub',
  '': 'live',
}

/** How the numbers of one point came; `way` is the usual one. */
export function sourceText(picture: Picture, index: number, way: Way): string {
  const at = picture.times[index]
  if (at === undefined) return ''
  const spans = spansAt(picture, at)
  if (spans.length > 0) return spans.map(spanText).join('; ')
  const hasAny = [...picture.columns.values()].some((values) => (values[index] ?? null) !== null)
  return hasAny ? liveWords[way] : 'no sample'
}

export interface SpanGroup {
  readonly kind: SpanView['kind']
  readonly text: string
  /** where each lies */
  readonly where: string
  readonly bounds: { readonly from: number; readonly to: number }
}

/** One line per kind of span for the legend. */
export function spanGroups(picture: Picture): SpanGroup[] {
  return (['repaired', 'pulled', 'lost', 'simulated'] as const).flatMap((kind) => {
    const all = picture.spans.filter((span) => span.kind === kind)
    const [first, last] = [all[0], all.at(-1)]
    if (!first || !last) return []
    const count = all.reduce((sum, span) => sum + span.count, 0)
    const causes = [...new Set(all.flatMap(({ cause }) => (cause === '' ? [] : lossText(cause))))]
    const text =
      kind === 'simulated'
        ? 'made up for the demonstration'
        : `${plural(count, 'batch', 'batches')}${causes.length > 0 ? ` (${causes.join('; ')})` : ''}`
    const more = all.length > 1 ? ` and ${plural(all.length - 1, 'more stretch', 'more stretches')}` : ''
    const to = Math.max(...all.map((span) => span.to))
    return [{ kind, text, where: `${formatStretch(first.from, first.to)}${more}`, bounds: { from: first.from, to } }]
  })
}

/** The lines of a picture as a table shows and a file holds them. */
export interface PictureColumn {
  readonly id: string
  readonly chart: ChartPlan
  readonly line: Line
  readonly values: Values
}

const suffix: Readonly<Record<Unit, string>> = {
  cores: '_cores',
  bytes: '_bytes',
  seconds: '_seconds',
  milliseconds: '_ms',
  percent: '',
  count: '',
  flag: '',
  amount: '',
}

export function columnsOf(picture: Picture, plans: readonly ChartPlan[]): PictureColumn[] {
  return plans.flatMap((chart) =>
    chart.lines.map((each) => {
      const end = suffix[chart.unit]
      const id = each.metric.endsWith(end) ? each.metric : `${each.metric}${end}`
      return { id, chart, line: each, values: valuesOf(picture, each.metric) }
    }),
  )
}

/** Exactly what is shown, in base units: one row per point, an empty cell for a hole, how each row came in the last cell. */
export function pictureCsv(picture: Picture, plans: readonly ChartPlan[], way: Way): string {
  const columns = columnsOf(picture, plans)
  return toCsv(
    picture.times.map((_, index) => index),
    [
      { id: 'time', header: 'time', value: (index) => formatIso(picture.times[index] ?? 0) },
      // A hole is an empty cell: what computes with these numbers takes it for one.
      ...columns.map(({ id, values }) => ({ id, header: id, value: (index: number) => values[index] ?? '' })),
      { id: 'source', header: 'source', value: (index) => sourceText(picture, index, way) },
    ],
  )
}

/** A chart in words: where each line was and is, and what is missing. */
export function chartText(
  picture: Picture,
  { title, lines, unit }: ChartPlan,
  say: (unit: Unit, value: number) => string,
): string {
  const texts = lines.flatMap(({ metric, word }) => {
    const known = valuesOf(picture, metric).filter((value) => value !== null)
    const last = known.at(-1)
    if (last === undefined) return []
    let [least, most] = [last, last]
    for (const value of known) {
      least = Math.min(least, value)
      most = Math.max(most, value)
    }
    return [`${word} between ${say(unit, least)} and ${say(unit, most)}, last ${say(unit, last)}`]
  })
  const holes = holesOf(picture, lines)
  const gaps = holes > 0 ? ` ${plural(holes, 'point has', 'points have')} no sample.` : ''
  const head = `${title}, ${formatStretch(picture.from, picture.to)}`
  return texts.length === 0 ? `${head}: no samples.` : `${head}: ${texts.join('; ')}.${gaps}`
}

function holesOf(picture: Picture, lines: readonly Line[]): number {
  const columns = lines.map(({ metric }) => valuesOf(picture, metric))
  return picture.times.reduce(
    (count, _, index) => count + (columns.every((values) => values[index] === null) ? 1 : 0),
    0,
  )
}
