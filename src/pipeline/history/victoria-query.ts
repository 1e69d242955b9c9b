import {
  bufferCauses,
  holeCauses,
  type Loss,
  type MetricScope,
  metricPrefix,
  StoreUnavailableError,
  scopeLabel,
  seconds,
} from '#model'
import { cleanMetric, type Grid, gridOf, SeriesTable } from './series.ts'
import { holesWithin, type Marks, runsOf, spansOf, type Way } from './spans.ts'
import type { HistorySpan, HistoryStore, PromQl, RangeAnswer, RangeQuery } from './types.ts'
import { STORE, type VictoriaClient } from './victoria-client.ts'
import { batchMetric, wellFormed } from './victoria-lines.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** How far back a loss may begin that still reaches into a range. */
const LONGEST_LOSS_MS = 31 * DAY_MS

type SpansQuery = Parameters<HistoryStore['spans']>[0]
type KeysQuery = Parameters<HistoryStore['keys']>[0]

/** Means of the samples of each step, both ends to the millisecond. */
export async function range(client: VictoriaClient, query: RangeQuery, signal?: AbortSignal): Promise<RangeAnswer> {
  const grid = gridOf(query)
  const table = new SeriesTable(grid, query.maxSeries)
  const label = scopeLabel[query.scope]
  const names = new Map(query.metrics.map((metric) => [cleanMetric(metric), metric]))
  const selector = selectorOf(query.cluster, { names: [...names.keys()], label, keys: query.keys })
  const window = `[${grid.stepMs}ms] offset -${grid.stepMs - 1}ms`
  const mean = `avg_over_time(${selector}${window}) keep_metric_names`
  const answer = await client.askJson(
    '/api/v1/query_range',
    {
      query: `limitk(${query.maxSeries + 1}, ${mean})`,
      start: toSeconds(grid.start),
      end: toSeconds(lastAsked(grid)),
      step: `${grid.stepMs}ms`,
      // As asked, to the millisecond: a cached answer is rounded.
      nocache: '1',
    },
    { signal },
  )
  for (const { metric, values = [] } of resultOf(answer)) {
    const name = names.get(metric.__name__ ?? '')
    if (name === undefined) continue
    const key = label === null ? '' : (metric[label] ?? '')
    for (const [at, value] of values) {
      table.set(name, key, Math.round((at * 1000 - grid.start) / grid.stepMs), Number(value))
    }
  }
  return table.answer(query.metrics)
}

const BLANKED_MS = 60_000

/**
 * Of short steps VictoriaMetrics blanks the points of the last half minute, which it takes for incomplete, unless the range
 * reaches more than a step into the future. Ours are complete; what we ask too much is left out of the answer.
 */
function lastAsked({ end, stepMs }: Grid): number {
  const [last, now] = [end - stepMs, Date.now()]
  return stepMs < BLANKED_MS && last > now - BLANKED_MS
    ? Math.max(last, last + Math.ceil((now - last + 5000) / stepMs + 2) * stepMs)
    : last
}

/** Exact up to a day; for longer ranges by whole days (UTC), which is how VictoriaMetrics' index knows series. */
export async function keys(client: VictoriaClient, query: KeysQuery): Promise<readonly string[]> {
  const { cluster, scope, from, to, limit } = query
  const label = scopeLabel[scope]
  const selector = `{__name__=~"${namesOf(scope)}",cluster=${quote(cluster)}}`
  const found = new Set<string>()
  if (to - from <= DAY_MS) {
    const answer = await client.askJson('/api/v1/query', {
      query: `count(count_over_time(${selector}[${to - from + 1}ms])) by (${label ?? 'cluster'})`,
      time: toSeconds(to),
      nocache: '1',
    })
    for (const { metric } of resultOf(answer)) found.add(label === null ? '' : (metric[label] ?? ''))
  } else {
    for (const metric of await seriesIn(client, selector, from, to))
      found.add(label === null ? '' : (metric[label] ?? ''))
  }
  return [...found].sort().slice(0, Math.max(0, limit))
}

const ways: readonly Way[] = ['pulled', 'pushed', 'repaired', 'simulated']

/** Looks back in steps that double, so that what was read lately costs little. */
export async function newestRound(client: VictoriaClient, cluster: string, until: number): Promise<number | undefined> {
  const match = `{__name__=~"${ways.map((way) => batchMetric[way]).join('|')}",cluster=${quote(cluster)}}`
  let newest: number | undefined
  for (
    let to = until, stepMs = HOUR_MS;
    newest === undefined && to > until - LONGEST_LOSS_MS;
    to -= stepMs, stepMs *= 2
  )
    for await (const { timestamps } of client.export(match, Math.max(0, to - stepMs), to))
      newest = timestamps.reduce((late, at) => Math.max(late, at), newest ?? 0)
  return newest
}

export async function spans(client: VictoriaClient, query: SpansQuery): Promise<readonly HistorySpan[]> {
  const { cluster, from, to } = query
  const named = (pattern: string): string => `{__name__=~"${pattern}",cluster=${quote(cluster)}}`
  const pushed = named(`${batchMetric.pushed}|${batchMetric.repaired}`)
  const pushes = (await seriesIn(client, pushed, from - LONGEST_LOSS_MS, to + DAY_MS)).length > 0
  const lost = await losses(client, query)
  const holes = pushes ? holesWithin(lost) : undefined
  const batches: { way: Way; at: number }[] = []
  // Where nothing is pushed pulling is the usual way, and a month of it need not be read.
  const marked = pushes ? ways : (['simulated'] as const)
  for await (const { metric, timestamps } of client.export(
    named(marked.map((way) => batchMetric[way]).join('|')),
    Math.min(from, holes?.from ?? from),
    Math.max(to, holes?.to ?? to),
  )) {
    const way = marked.find((one) => batchMetric[one] === metric.__name__)
    if (way) for (const at of timestamps) batches.push({ way, at })
  }
  const shown = batches.filter(({ at }) => at >= from && at <= to)
  const seen = batches.map(({ at }) => ({ from: at, to: at }))
  return spansOf({ runs: runsOf(shown), losses: lost, pushes, batches: seen }, { from, to })
}

async function losses(client: VictoriaClient, { cluster, from, to }: SpansQuery): Promise<Marks['losses']> {
  const counts = new Map<string, number>()
  const lengths = new Map<string, { from: number; ms: number; cause: Loss['cause'] }>()
  const match = `{__name__=~"${batchMetric.lost}|${batchMetric.lostMs}",cluster=${quote(cluster)}}`
  for await (const { metric, timestamps, values } of client.export(match, from - LONGEST_LOSS_MS, to)) {
    const cause = metric.cause
    if (!isCause(cause)) continue
    for (const [i, at] of timestamps.entries()) {
      const id = `${cause} ${at}`
      if (metric.__name__ === batchMetric.lost) counts.set(id, values[i] ?? 0)
      else lengths.set(id, { from: at, ms: values[i] ?? 0, cause })
    }
  }
  return [...lengths]
    .map(([id, { from: first, ms, cause }]) => ({ from: first, to: first + ms, cause, count: counts.get(id) ?? 0 }))
    .filter((loss) => loss.to >= from)
}

const causes = new Set<string | undefined>([...bufferCauses, ...holeCauses])
const isCause = (cause: string | undefined): cause is Loss['cause'] => causes.has(cause)

/** PromQL as it is. */
export function promQl(client: VictoriaClient): PromQl {
  return {
    async ask(path, parameters, signal) {
      const limits = { timeoutMs: seconds(30), maxBytes: 32 * 2 ** 20, signal }
      const { status, text } = await client.ask(`/api/v1/${path}`, parameters, limits)
      try {
        return { status, body: JSON.parse(text) as unknown }
      } catch (error) {
        throw new StoreUnavailableError(STORE, `its answer (${status}) is no JSON`, { cause: error })
      }
    },
  }
}

async function seriesIn(
  client: VictoriaClient,
  match: string,
  from: number,
  to: number,
): Promise<readonly Readonly<Record<string, string>>[]> {
  const answer = await client.askJson('/api/v1/series', {
    'match[]': match,
    start: toSeconds(Math.max(0, from)),
    end: toSeconds(to),
  })
  const { data } = answer as { data?: unknown }
  return Array.isArray(data) ? (data as Readonly<Record<string, string>>[]) : []
}

interface Result {
  readonly metric: Readonly<Record<string, string>>
  readonly values?: readonly (readonly [seconds: number, value: string])[]
}

function resultOf(answer: unknown): readonly Result[] {
  const { data } = answer as { data?: { result?: unknown } }
  if (!Array.isArray(data?.result)) throw new StoreUnavailableError(STORE, 'its answer has no result')
  return data.result as readonly Result[]
}

function selectorOf(
  cluster: string,
  { names, label, keys }: { names: readonly string[]; label: string | null; keys: readonly string[] | undefined },
): string {
  const [only, ...others] = names
  const name = others.length === 0 ? `__name__=${quote(only ?? '')}` : `__name__=~${quote(names.join('|'))}`
  const ofKeys = label === null || keys === undefined ? '' : `,${label}${oneOf(keys)}`
  return `{${name},cluster=${quote(cluster)}${ofKeys}}`
}

function oneOf(keys: readonly string[]): string {
  const [only, ...others] = keys
  if (only !== undefined && others.length === 0) return `=${quote(only)}`
  // Nothing asked for is nothing found: no name of ours ends so.
  if (only === undefined) return '="\\u0000"'
  return `=~${quote(keys.map(escapePattern).join('|'))}`
}

/** A name as a pattern of RE2 that matches it only. */
const escapePattern = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')

/** A text of PromQL. Escapes of JSON are among those of Go, which PromQL takes. */
const quote = (text: string): string => JSON.stringify(wellFormed(text))

/** Names of a scope: the prefix of one is the beginning of another's. */
function namesOf(scope: MetricScope): string {
  const prefix = metricPrefix[scope]
  const metrics = scope === 'cluster' ? '(nodes|pods|cpu|memory|namespaces|deployments|operators)_.+' : '.+'
  return prefix + metrics
}

const toSeconds = (ms: number): string => (Math.floor(ms) / 1000).toFixed(3)
