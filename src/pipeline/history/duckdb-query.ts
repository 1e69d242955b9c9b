import type { DuckDBConnection } from '@duckdb/node-api'
import type { Loss } from '#model'
import { clusterFamily, type Family, familyOf, otherFamily, ROLL_MS, tableOf } from './duckdb-tables.ts'
import { metricWord, type Words } from './duckdb-words.ts'
import { wayCode } from './duckdb-writer.ts'
import { TooManySeriesError } from './errors.ts'
import { cleanMetric, type Grid, gridOf, SeriesTable } from './series.ts'
import { holesWithin, type Run, type Stretch, spanGapMs, spansOf, type Way } from './spans.ts'
import type { HistorySpan, HistoryStore, RangeAnswer, RangeQuery } from './types.ts'

type SpansQuery = Parameters<HistoryStore['spans']>[0]
type KeysQuery = Parameters<HistoryStore['keys']>[0]

/** Which samples, as SQL. Every text in it is ours: names of users are numbers here. */
interface Which {
  readonly family: Family
  readonly where: string
  /** ms, the end not included */
  readonly from: number
  readonly end: number
}

/** Reads of one connection. */
export class Reads {
  readonly #connection: DuckDBConnection
  readonly #words: Words

  constructor(connection: DuckDBConnection, words: Words) {
    this.#connection = connection
    this.#words = words
  }

  /** @throws InvalidRangeError, TooManySeriesError */
  async range(query: RangeQuery): Promise<RangeAnswer> {
    const grid = gridOf(query)
    const table = new SeriesTable(grid, query.maxSeries)
    const cluster = this.#words.find(query.cluster)
    if (cluster === undefined) return table.answer(query.metrics)
    const family = familyOf(query.scope)
    const keys = query.scope === 'cluster' ? undefined : query.keys?.map((key) => this.#words.find(key) ?? 0)
    const base = `cluster = ${cluster}`
    const times = { from: grid.start, end: grid.end }
    const wide = query.metrics.filter((metric) => family !== otherFamily && family.columns.has(metric))
    if (wide.length > 0) {
      const which = { family, where: base + keysIn(family === clusterFamily ? undefined : keys), ...times }
      await this.#limitKeys(which, wide, query)
      await this.#wide(which, wide, grid, table)
    }
    const narrow = new Map(
      query.metrics
        .filter((metric) => !wide.includes(metric))
        .map((metric) => [this.#words.find(metricWord(query.scope, cleanMetric(metric))) ?? 0, metric]),
    )
    narrow.delete(0)
    if (narrow.size > 0) {
      const where = `${base} AND metric IN (${[...narrow.keys()].join(', ')})${keysIn(keys)}`
      await this.#narrow({ family: otherFamily, where, ...times }, narrow, grid, table)
    }
    return table.answer(query.metrics)
  }

  async #wide(which: Which, metrics: readonly string[], grid: Grid, table: SeriesTable): Promise<void> {
    const columns = metrics.map((metric) => which.family.columns.get(metric) ?? '')
    const by = which.family === clusterFamily ? [] : ['key']
    const rows = await this.#columns(means(which, by, columns, grid.stepMs))
    const [points, keys] = [rows[0] ?? [], by.length === 0 ? undefined : (rows[1] ?? [])]
    const first = grid.start / grid.stepMs
    for (const [c, metric] of metrics.entries()) {
      const values = rows[c + 1 + by.length] ?? []
      for (let i = 0; i < points.length; i++) {
        const key = keys ? this.#key(keys[i]) : ''
        table.set(metric, key, Number(points[i]) - first, numberOrNull(values[i]))
      }
    }
  }

  async #narrow(which: Which, metrics: ReadonlyMap<number, string>, grid: Grid, table: SeriesTable): Promise<void> {
    const rows = await this.#columns(means(which, ['metric', 'key'], ['value'], grid.stepMs))
    const [points = [], ids = [], keys = [], values = []] = rows
    const first = grid.start / grid.stepMs
    for (let i = 0; i < points.length; i++) {
      const metric = metrics.get(Number(ids[i]))
      if (metric) table.set(metric, this.#key(keys[i]), Number(points[i]) - first, numberOrNull(values[i]))
    }
  }

  // The rows of an answer are bounded before they are made.
  async #limitKeys(which: Which, metrics: readonly string[], query: RangeQuery): Promise<void> {
    const { family, where } = which
    if (family === clusterFamily) return
    if (query.keys && query.keys.length * metrics.length <= query.maxSeries) return
    const known = metrics.map((metric) => `${family.columns.get(metric)} IS NOT NULL`).join(' OR ')
    const sql = `SELECT count(DISTINCT key) FROM ${stages({ ...which, where: `${where} AND (${known})` }, 'key')}`
    const [[count = 0] = []] = await this.#columns(sql)
    if (Number(count) > query.maxSeries) throw new TooManySeriesError(query.maxSeries)
  }

  async keys({ cluster, scope, from, to, limit }: KeysQuery): Promise<readonly string[]> {
    const id = this.#words.find(cluster)
    if (id === undefined) return []
    const family = familyOf(scope)
    const which = { family, where: `cluster = ${id}`, from, end: to + 1 }
    if (family === clusterFamily) {
      const [[found] = []] = await this.#columns(`SELECT 1 FROM ${stages(which, 'cluster')} LIMIT 1`)
      return found === undefined || limit < 1 ? [] : ['']
    }
    const metrics = this.#words.idsBeginning(metricWord(scope, ''))
    const sets = [
      ...(family === otherFamily ? [] : [which]),
      ...(metrics.length === 0
        ? []
        : [{ ...which, family: otherFamily, where: `${which.where} AND metric IN (${metrics.join(', ')})` }]),
    ]
    if (sets.length === 0) return []
    const union = sets.map((which) => `SELECT key FROM ${stages(which, 'key')}`).join(' UNION ALL ')
    const [ids = []] = await this.#columns(`SELECT DISTINCT key FROM (${union})`)
    return ids
      .map((key) => this.#key(key))
      .sort()
      .slice(0, Math.max(0, limit))
  }

  async spans({ cluster, from, to }: SpansQuery): Promise<readonly HistorySpan[]> {
    const id = this.#words.find(cluster)
    if (id === undefined) return []
    const [found = []] = await this.#columns(`SELECT DISTINCT way FROM ${batches(`cluster = ${id}`)}`)
    const ways = found.map((way) => wayNamed(Number(way)))
    const pushes = ways.some((way) => way === 'pushed' || way === 'repaired')
    const isMarked = pushes || ways.includes('simulated')
    const losses = await this.#losses(id, from, to)
    const holes = pushes ? holesWithin(losses) : undefined
    const seen = holes ? await this.#batches(id, holes) : []
    const runs = isMarked ? await this.#runs(id, from, to) : []
    return spansOf({ runs, losses, pushes, batches: seen }, { from, to })
  }

  async #batches(cluster: number, { from, to }: Stretch): Promise<readonly Stretch[]> {
    const where = `cluster = ${cluster} AND t >= ${sqlTime(from - ROLL_MS)} AND t <= ${sqlTime(to)}`
    const [firsts = [], lasts = []] = await this.#columns(`SELECT f::DOUBLE, l::DOUBLE FROM ${batches(where)}`)
    return firsts.map((first, i) => ({ from: Number(first), to: Number(lasts[i]) }))
  }

  /** Runs are told apart by the database: a month of batches is a few rows. */
  async newestRound(cluster: string, until: number): Promise<number | undefined> {
    const id = this.#words.find(cluster)
    if (id === undefined) return undefined
    const where = `cluster = ${id} AND t <= ${sqlTime(until)}`
    const [[newest] = []] = await this.#columns(`SELECT max(l)::DOUBLE FROM ${batches(where)}`)
    return typeof newest === 'number' ? newest : undefined
  }

  async #runs(cluster: number, from: number, to: number): Promise<readonly Run[]> {
    const where = `cluster = ${cluster} AND t >= ${sqlTime(from - ROLL_MS)} AND t <= ${sqlTime(to)}`
    const gap = `if(way = ${wayCode.simulated}, ${spanGapMs('simulated')}, ${spanGapMs('pulled')})`
    const rows = await this.#columns(`
      WITH batches AS (FROM ${batches(where)}),
      fresh AS (
        SELECT *, way IS DISTINCT FROM lag(way) OVER (ORDER BY f, l) OR f - lag(l) OVER (ORDER BY f, l) > ${gap} AS is_new
        FROM batches WHERE l >= ${sqlTime(from)} AND f <= ${sqlTime(to)}),
      runs AS (SELECT *, count(*) FILTER (is_new) OVER (ORDER BY f, l ROWS UNBOUNDED PRECEDING) AS run FROM fresh)
      SELECT any_value(way), min(f)::DOUBLE, max(l)::DOUBLE, sum(n)::DOUBLE FROM runs GROUP BY run ORDER BY 2`)
    const [ways = [], firsts = [], lasts = [], counts = []] = rows
    return ways.map((way, i) => ({
      way: wayNamed(Number(way)),
      from: Number(firsts[i]),
      to: Number(lasts[i]),
      count: Number(counts[i]),
    }))
  }

  async #losses(cluster: number, from: number, to: number): Promise<Pick<Loss, 'from' | 'to' | 'cause' | 'count'>[]> {
    const rows = await this.#columns(
      `SELECT f::DOUBLE, l::DOUBLE, cause, n::DOUBLE FROM losses WHERE cluster = ${cluster} AND l >= ${sqlTime(from)} AND f <= ${sqlTime(to)}`,
    )
    const [firsts = [], lasts = [], causes = [], counts = []] = rows
    return firsts.map((first, i) => ({
      from: Number(first),
      to: Number(lasts[i]),
      cause: String(causes[i]) as Loss['cause'], // only written from a Loss
      count: Number(counts[i]),
    }))
  }

  #key(id: unknown): string {
    return this.#words.wordOf(Number(id)) ?? ''
  }

  async #columns(sql: string): Promise<readonly (readonly unknown[])[]> {
    return (await this.#connection.runAndReadAll(sql)).getColumns()
  }
}

/**
 * The mean per step and series: samples count alike, a rolled row as many as it stands for. Where a step is shorter than a
 * rolled row, the row is the value of every step it covers. Each stage is summed by itself: that halves the time.
 */
function means(which: Which, by: readonly string[], columns: readonly string[], stepMs: number): string {
  const { family } = which
  const groups = ['1', ...by.map((_, i) => String(i + 2))].join(', ')
  const point = (t: string): readonly string[] => [`${t} // ${stepMs} AS point`, ...by]
  const single = columns.flatMap((column, i) => [`sum(${column}) AS s${i}`, `count(${column}) AS n${i}`])
  const parts = (['recent', 'raw'] as const).map((stage) => {
    const rows = `${tableOf(family, stage)} WHERE ${inTime(which)}`
    return `SELECT ${[...point('t'), ...single].join(', ')} FROM ${rows} GROUP BY ${groups}`
  })
  const weighed = columns.flatMap((column, i) => [
    `sum(${column} * n) AS s${i}`,
    `sum(CASE WHEN ${column} IS NOT NULL THEN n END) AS n${i}`,
  ])
  const spread = stepMs < ROLL_MS ? `, (SELECT unnest(range(0, ${ROLL_MS}, ${stepMs})) AS o)` : ''
  const rolled = `${tableOf(family, 'rolled')}${spread} WHERE ${inTime(which, ROLL_MS)}`
  const t = spread === '' ? 't' : '(t + o)'
  parts.push(`SELECT ${[...point(t), ...weighed].join(', ')} FROM ${rolled} GROUP BY ${groups}`)
  const values = columns.map((_, i) => `sum(s${i}) / nullif(sum(n${i}), 0)`)
  return `SELECT point::DOUBLE, ${[...by, ...values].join(', ')} FROM (${parts.join(' UNION ALL ')}) GROUP BY ${['point', ...by].join(', ')}`
}

/** Rows of all stages, where only their being there counts. */
function stages(which: Which, column: string): string {
  const parts = (['recent', 'raw', 'rolled'] as const).map((stage) => {
    const where = inTime(which, stage === 'rolled' ? ROLL_MS : 0)
    return `SELECT ${column} FROM ${tableOf(which.family, stage)} WHERE ${where}`
  })
  return `(${parts.join(' UNION ALL ')})`
}

/** A rolled row stands for the five minutes from its time on: it may begin before the range. */
const inTime = ({ where, from, end }: Which, lengthMs = 0): string =>
  `${where} AND t ${lengthMs > 0 ? '>' : '>='} ${sqlTime(from - lengthMs)} AND t < ${sqlTime(end)}`

function batches(where: string): string {
  const single = (['recent', 'raw'] as const).map(
    (stage) => `SELECT way, t AS f, t AS l, 1 AS n FROM ${tableOf(clusterFamily, stage)} WHERE ${where}`,
  )
  return `(${single.join(' UNION ALL ')} UNION ALL SELECT way, f, l, n FROM ${tableOf(clusterFamily, 'rolled')} WHERE ${where})`
}

const keysIn = (keys: readonly number[] | undefined): string =>
  keys === undefined ? '' : ` AND key IN (${[0, ...keys].join(', ')})`

const sqlTime = (at: number): string =>
  String(Number.isFinite(at) ? Math.max(-1, Math.min(8.64e15, Math.floor(at))) : at > 0 ? 8.64e15 : -1)

const numberOrNull = (value: unknown): number | null => (typeof value === 'number' ? value : null)

const wayNamed = (code: number): Way => waysByCode.find((way) => wayCode[way] === code) ?? 'pulled'
const waysByCode = Object.keys(wayCode) as Way[] // the keys of a record of every way
