import { type HistorySpan, type HistoryStore, type RangeAnswer, unnamed } from '#history'
import { type FillingView, type HistoryView, maxHistorySeries } from '#http'
import {
  type ClusterState,
  FleetError,
  type Metric,
  type MetricScope,
  metricPrefix,
  metricsCatalogue,
  originalIntervalMs,
  scopeLabel,
  seconds,
} from '#model'
import { type Body, BodyCache } from './bodies.ts'
import { RefusedError } from './problem.ts'
import { askedStep, wholeSteps } from './steps.ts'
import { csvCell } from './type-rows.ts'
import { byText, type VisibleCluster } from './views.ts'
import type { Window } from './window.ts'

const askTimeoutMs = seconds(25)
/** More different questions than this wait for no answer: the store is too slow for them. */
const maxInFlight = 64
const cacheBytes = 16 * 2 ** 20

export const historyOff = (): RefusedError =>
  new RefusedError(
    'history_off',
    'history is not kept here: set VM_ENABLED=true and VM_ENDPOINT to the address of a VictoriaMetrics, or run `clusterpulse up`, which keeps it itself',
  )

/** @throws RefusedError */
export function openStore(store: HistoryStore | undefined): HistoryStore {
  if (!store) throw historyOff()
  const availability = store.availability()
  if (availability.state === 'available') return store
  const why = availability.state === 'loading' ? 'is still loading' : 'does not answer'
  throw new RefusedError('history_unavailable', `the history store ${why}`, { retryAfterSeconds: 5 })
}

/**
 * Asks the store, in bounded time.
 * @throws RefusedError `history_timeout`, `history_unavailable`, `history_failed`, `too_many_series`
 */
export async function askStore<T>(store: HistoryStore, ask: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const signal = AbortSignal.timeout(askTimeoutMs)
  try {
    return await ask(signal)
  } catch (cause) {
    if (cause instanceof RefusedError) throw cause
    if (cause instanceof FleetError && cause.code === 'too_many_series')
      throw new RefusedError('too_many_series', cause.message, { cause })
    if (signal.aborted || (cause instanceof Error && cause.name === 'TimeoutError'))
      throw new RefusedError('history_timeout', 'the history store did not answer in time', { cause })
    openStore(store)
    throw new RefusedError('history_failed', 'the history store failed to answer', { cause, retryAfterSeconds: 5 })
  }
}

/** @throws RefusedError `metric_required`; the sentence is the documented one */
export function requireMetric(text: string | undefined): readonly string[] {
  const names = [...new Set((text ?? '').split(',').map((name) => name.trim()))].filter(Boolean)
  if (names.length === 0) throw new RefusedError('metric_required', 'metric parameter required')
  return names
}

/** @throws RefusedError `unknown_metric` with the names there are */
export function metricsOf(scope: MetricScope, names: readonly string[]): readonly Metric[] {
  const known = metricsCatalogue.filter((metric) => metric.scope === scope)
  return names.map((name) => {
    const metric = known.find((one) => one.name === name)
    if (metric) return metric
    throw new RefusedError(
      'unknown_metric',
      `there is no metric ${JSON.stringify(name.slice(0, 80))} here: use ${known.map((one) => one.name).join(', ')}`,
    )
  })
}

/** The names by which samples of what the caller sees are kept: an operator's is its CSV, without namespace. */
export function seenKeys(cluster: VisibleCluster, scope: 'node' | 'operator' | 'clusterOperator'): ReadonlySet<string> {
  if (scope === 'operator') return new Set(cluster.visible('operator').map(({ csv }) => csv))
  return new Set(cluster.rows(scope).keys())
}

const ofPods = /^pods_(total|running|pending|failed|succeeded)$|_requested(_bytes)?$/
const ofUsage = /_usage_percent$/

/**
 * Metrics of nodes that are summed over pods which the caller may not see. A percentage is such a one where nothing is
 * measured.
 */
export function hidesOfNodes(cluster: VisibleCluster, keys: readonly string[]): (name: string) => boolean {
  // What is null for everybody could not be read; of the time before it is as much to be seen as ever.
  if (cluster.whole) return () => false
  const nodes = keys.flatMap((key) => cluster.rows('node').get(key)?.snapshot ?? [])
  const hidesPods = nodes.some(({ pods }) => pods === null)
  const hidesShares = nodes.some(({ requested, used }) => requested === null && used === null)
  return (name) => (hidesPods && ofPods.test(name)) || (hidesShares && ofUsage.test(name))
}

/**
 * The metrics without those that tell of what is hidden.
 * @throws RefusedError `history_filtered` where none is left
 */
export function seenMetrics(cluster: VisibleCluster, metrics: readonly Metric[], keys: readonly string[]) {
  const hides = hidesOfNodes(cluster, keys)
  const seen = metrics.filter(({ scope, name }) => scope !== 'node' || !hides(name))
  if (seen.length > 0) return seen
  throw new RefusedError(
    'history_filtered',
    `you see only some pods of cluster ${cluster.state.name}: what is summed over all of them is not shown`,
  )
}

/** A metric as an answer names it; of the catalogue, or an aggregation that somebody declared. */
export interface ShownMetric extends Pick<Metric, 'name' | 'title'> {
  readonly unit: string
}

export interface HistoryQuestion {
  readonly cluster: string
  readonly scope: MetricScope
  readonly metrics: readonly ShownMetric[]
  /** already reduced to what the caller may see, sorted; [''] for the cluster itself */
  readonly keys: readonly string[]
  readonly window: Window
  /** how often the metrics are collected, ms */
  readonly intervalMs: number
  /** what is missing up to now */
  readonly openHole?: HistorySpan | undefined
  /** the past is being filled still */
  readonly filling?: FillingView | undefined
}

/**
 * From the last round of a cluster up to now, where that is longer than two intervals. What comes next narrows it, or names it in
 * history; where nothing comes, it grows.
 */
export function openHoleOf(
  { connection, status, agent, heartbeats, source }: ClusterState,
  now: number,
): HistorySpan | undefined {
  const from = (status.before ?? status).checkedAt
  if (!connection || from === null) return undefined
  const isOfOriginal = source === 'push' && agent?.protocol === 'original'
  const ownMs = isOfOriginal ? originalIntervalMs(heartbeats.map(({ at }) => at)) : 0
  const paceMs = Math.max(connection.intervalMs, ownMs)
  if (now - from <= 2 * paceMs + (heartbeats.at(-1)?.durationMs ?? 0)) return undefined
  return { kind: 'lost', from, to: now, cause: 'not_received', count: Math.max(1, Math.round((now - from) / paceMs)) }
}

/** @throws RefusedError `too_many_series` */
export function requireFewSeries({ metrics, keys, scope }: HistoryQuestion): void {
  const count = metrics.length * keys.length
  if (count <= maxHistorySeries) return
  const fewer = `at most ${Math.max(1, Math.floor(maxHistorySeries / metrics.length))}`
  throw new RefusedError(
    'too_many_series',
    metrics.length > maxHistorySeries || keys.length === 1
      ? `${count} series are more than ${maxHistorySeries}: ask for fewer metrics`
      : `${count} series are more than ${maxHistorySeries}: name ${fewer} of the ${keys.length} by key= (scope ${scope})`,
  )
}

export async function historyView(store: HistoryStore, question: HistoryQuestion): Promise<HistoryView> {
  const { cluster, scope, metrics, keys, window, intervalMs, openHole, filling } = question
  requireFewSeries(question)
  const shape = metrics.map(({ name, unit, title }) => ({ name, unit, title }))
  const toSeconds = (ms: number): number => ms / 1000
  if (keys.length === 0) {
    const { from, to, stepMs } = window
    return {
      metrics: shape,
      start: toSeconds(from),
      end: toSeconds(to),
      step: toSeconds(stepMs),
      series: [],
      spans: [],
    }
  }
  // The last point stands for all of its step.
  const times = { from: window.from, to: window.to + window.stepMs - 1 }
  const query = {
    cluster,
    scope,
    metrics: metrics.map(({ name }) => metricPrefix[scope] + name),
    ...(scope !== 'cluster' && { keys }),
    ...times,
    stepMs: askedStep(window.stepMs, intervalMs),
    maxSeries: maxHistorySeries,
  }
  const [found, kept] = await askStore(store, (signal) =>
    Promise.all([store.range(query, signal), store.spans({ cluster, ...times })]),
  )
  const isAsked = openHole !== undefined && openHole.from <= times.to && openHole.to >= times.from
  // An agent names the hole before its next round ends it.
  const open = isAsked
    ? unnamed(
        openHole,
        kept.filter(({ kind }) => kind === 'lost'),
      )
    : []
  const spans = [...kept, ...open]
  const isWhole = query.stepMs === window.stepMs
  const answer = isWhole
    ? found
    : wholeSteps(
        found,
        intervalMs,
        spans.filter(({ kind }) => kind === 'lost'),
      )
  const begins = filling ? undefined : await beginOf(store, cluster, answer)
  return {
    metrics: shape,
    start: toSeconds(answer.start),
    end: toSeconds(answer.start + Math.max(0, answer.points - 1) * answer.stepMs),
    step: toSeconds(answer.stepMs),
    series: seriesOf(question, answer),
    spans: spans.map(({ kind, from, to, cause, count }) => ({ kind, from, to, cause, count })),
    ...(filling && times.from < filling.reached && { filling }),
    ...(begins !== undefined && { begins }),
  }
}

/** The first step with a number, ms, where the answer reaches further back and no round of the cluster is kept from before. */
async function beginOf(store: HistoryStore, cluster: string, answer: RangeAnswer): Promise<number | undefined> {
  const firsts = answer.series.map(({ values }) => values.findIndex((value) => value !== null)).filter((at) => at >= 0)
  const first = Math.min(...firsts)
  if (!store.newestRound || !Number.isFinite(first) || first === 0) return undefined
  const at = answer.start + first * answer.stepMs
  const before = await askStore(store, async () => store.newestRound?.(cluster, at - 1))
  return before === undefined ? at : undefined
}

function seriesOf({ cluster, scope, metrics, keys }: HistoryQuestion, answer: RangeAnswer): HistoryView['series'] {
  const label = scopeLabel[scope]
  const order = new Map(metrics.map(({ name }, index) => [metricPrefix[scope] + name, index]))
  const shown = new Set(keys)
  const rank = (metric: string): number => order.get(metric) ?? -1
  return answer.series
    .filter(({ metric, key }) => order.has(metric) && (scope === 'cluster' || shown.has(key)))
    .sort((left, right) => rank(left.metric) - rank(right.metric) || byText(left.key, right.key))
    .map(({ metric, key, values }) => ({
      metric: metric.slice(metricPrefix[scope].length),
      labels: label === null ? { cluster } : { cluster, [label]: key },
      points: values.map((value, index): [number, number | null] => [
        (answer.start + index * answer.stepMs) / 1000,
        value,
      ]),
    }))
}

/**
 * One row per time and thing, one column per metric, and in the last whether the numbers were made up for the demonstration; RFC 4180.
 * An empty cell is "not known". Line by line, with their ends.
 */
export function* historyCsv({ metrics, series, spans, step }: HistoryView): Generator<string> {
  const madeUp = spans.filter(({ kind }) => kind === 'simulated')
  const isSimulated = (at: number) => madeUp.some(({ from, to }) => from < (at + step) * 1000 && to >= at * 1000)
  const names = metrics.map(({ name }) => name)
  const labels = Object.keys(series[0]?.labels ?? { cluster: '' })
  const rows = new Map<string, Map<string, readonly (readonly [number, number | null])[]>>()
  for (const { metric, labels: values, points } of series) {
    const thing = labels.map((label) => csvCell(values[label] ?? '')).join(',')
    const columns = rows.get(thing) ?? new Map()
    rows.set(thing, columns.set(metric, points))
  }
  yield `${['time', ...labels, ...names, 'simulated'].join(',')}\r\n`
  for (const [thing, columns] of rows) {
    const [first] = columns.values()
    for (const [index, [at]] of (first ?? []).entries()) {
      const cells = names.map((name) => columns.get(name)?.[index]?.[1] ?? '')
      yield `${[new Date(at * 1000).toISOString(), thing, ...cells, isSimulated(at)].join(',')}\r\n`
    }
  }
}

/** Encoded answers, each asked for once at a time and kept, where it is to be, as long as its last point can hardly have moved. */
export class HistoryBodies {
  readonly #kept = new BodyCache(cacheBytes)
  readonly #asked = new Map<string, Promise<Body>>()

  async get(
    key: string,
    now: number,
    ttlMs: number,
    make: () => Promise<{ readonly body: Body; readonly isKept: boolean }>,
  ): Promise<Body> {
    const known = this.#kept.get(key, this, now) ?? this.#asked.get(key)
    if (known) return known
    if (this.#asked.size >= maxInFlight)
      throw new RefusedError('history_unavailable', 'too many questions to the history store at once', {
        retryAfterSeconds: 2,
      })
    const asked = make()
      .then(({ body, isKept }) => {
        if (isKept) this.#kept.set(key, { tag: this, validUntil: now + ttlMs }, body)
        return body
      })
      .finally(() => this.#asked.delete(key))
    this.#asked.set(key, asked)
    return asked
  }
}

/** Whether there is a single number in it: what has none yet is asked for again with each question. */
export const hasNumbers = ({ series }: HistoryView): boolean =>
  series.some(({ points }) => points.some(([, value]) => value !== null))

/** A quarter of a step, from 2 to 30 s: a repaired span may still fill what looks closed. */
export const keepMs = (stepMs: number): number => Math.min(seconds(30), Math.max(seconds(2), stepMs / 4))
