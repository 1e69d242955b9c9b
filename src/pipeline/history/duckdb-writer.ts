import { setImmediate as nextTurn } from 'node:timers/promises'
import type { DuckDBAppender, DuckDBConnection } from '@duckdb/node-api'
import type { Loss, SampleGroup, SampleSet } from '#model'
import { type Cells, ColumnRows } from './duckdb-rows.ts'
import { clusterFamily, type Family, families, familyOf, nodeFamily, otherFamily, tableOf } from './duckdb-tables.ts'
import { metricWord, type Words } from './duckdb-words.ts'
import { cleanMetric, cleanTime } from './series.ts'
import { isBetweenRounds, type Way, wayOf } from './spans.ts'
import type { HistoryRecord } from './types.ts'

export const wayCode: Readonly<Record<Way, number>> = { pulled: 0, pushed: 1, repaired: 2, simulated: 3 }

/** Values written before others get a turn. */
const SLICE = 20_000

/** Names of the columns of a table, in its own order: a metric added later stands last. */
export type Layout = ReadonlyMap<Family, readonly string[]>

export async function layoutOf(connection: DuckDBConnection): Promise<Layout> {
  const layout = new Map<Family, readonly string[]>()
  for (const family of families) {
    const table = tableOf(family, 'recent')
    const [names = []] = (
      await connection.runAndReadAll(
        `SELECT column_name FROM duckdb_columns() WHERE table_name = '${table}' ORDER BY column_index`,
      )
    ).getColumns()
    layout.set(family, names.map(String))
  }
  return layout
}

/** Appends the records of one transaction. The transaction, and what a failure means, are the caller's. */
export class RecordWriter {
  readonly #connection: DuckDBConnection
  readonly #words: Words
  readonly #layout: Layout
  readonly #appenders = new Map<string, DuckDBAppender>()
  readonly #wideRows = new Map<Family, ColumnRows>()
  /** rows for `recent` by family, as they were written */
  readonly rows = new Map<Family, number>(families.map((family) => [family, 0]))
  /** sets left out, their time being none */
  skipped = 0

  constructor(connection: DuckDBConnection, words: Words, layout: Layout) {
    this.#connection = connection
    this.#words = words
    this.#layout = layout
  }

  async write(records: readonly HistoryRecord[]): Promise<void> {
    let values = 0
    for (const record of records) {
      if (record.kind === 'lost') await this.#loss(record.cluster, record.loss)
      else values += await this.#set(record.samples)
      if (values > SLICE) {
        values = 0
        await nextTurn()
      }
    }
    for (const rows of this.#wideRows.values()) rows.close()
    for (const appender of this.#appenders.values()) appender.closeSync()
  }

  async #loss(cluster: string, { from, to, cause, count }: Loss): Promise<void> {
    const [first, last] = [cleanTime(from), cleanTime(to)]
    if (first === undefined || last === undefined) {
      this.skipped++
      return
    }
    const appender = await this.#appender('losses')
    appender.appendInteger(this.#words.idOf(cluster))
    appender.appendBigInt(BigInt(first))
    appender.appendBigInt(BigInt(last))
    appender.appendVarchar(cause)
    appender.appendBigInt(BigInt(Math.max(0, Math.round(count) || 0)))
    appender.endRow()
  }

  async #set(set: SampleSet): Promise<number> {
    const time = cleanTime(set.at)
    if (time === undefined) {
      this.skipped++
      return 0
    }
    const cluster = this.#words.idOf(set.cluster)
    const at = BigInt(time)
    let values = 0
    // A row even without numbers of the cluster: it tells how the batch came.
    const own = set.groups.filter((group) => group.scope === 'cluster')
    if (!isBetweenRounds(set)) await this.#wide(clusterFamily, own, { cluster, at, way: wayCode[wayOf(set)] })
    await this.#wide(
      nodeFamily,
      set.groups.filter((group) => group.scope === 'node'),
      { cluster, at },
    )
    for (const group of set.groups) {
      await this.#narrow(group, cluster, at)
      values += group.keys.length * group.columns.length
    }
    return values
  }

  async #wide(
    family: Family,
    groups: readonly SampleGroup[],
    { cluster, at, way }: { cluster: number; at: bigint; way?: number },
  ): Promise<void> {
    if (groups.length === 0 && way === undefined) return
    const rows = await this.#rowsOf(family)
    const group: SampleGroup = groups.length === 1 && groups[0] ? groups[0] : merged(family, groups)
    const columns = new Map(group.columns.map(({ metric, values }) => [family.columns.get(metric), values]))
    const cells = (this.#layout.get(family) ?? []).map((name): Cells => {
      if (name === 'cluster') return cluster
      if (name === 'key') return group.keys.map((key) => this.#words.idOf(key))
      if (name === 't') return at
      return name === 'way' ? (way ?? 0) : (columns.get(name) ?? null)
    })
    rows.add(group.keys.length, cells)
    this.#count(family, group.keys.length)
  }

  /** What has no column of its own. */
  async #narrow({ scope, keys, columns }: SampleGroup, cluster: number, at: bigint): Promise<void> {
    const family = familyOf(scope)
    for (const { metric, values } of columns) {
      if (family !== otherFamily && family.columns.has(metric)) continue
      const appender = await this.#appender(tableOf(otherFamily, 'recent'))
      const id = this.#words.idOf(metricWord(scope, cleanMetric(metric)))
      for (const [i, key] of keys.entries()) {
        const value = values[i]
        if (value === undefined || !Number.isFinite(value)) continue
        appender.appendInteger(cluster)
        appender.appendInteger(id)
        appender.appendInteger(this.#words.idOf(key))
        appender.appendBigInt(at)
        appender.appendDouble(value)
        appender.endRow()
        this.#count(otherFamily, 1)
      }
    }
  }

  #count(family: Family, rows: number): void {
    this.rows.set(family, (this.rows.get(family) ?? 0) + rows)
  }

  async #rowsOf(family: Family): Promise<ColumnRows> {
    const known = this.#wideRows.get(family)
    if (known) return known
    const appender = await this.#connection.createAppender(tableOf(family, 'recent'))
    const made = new ColumnRows(appender, this.#layout.get(family) ?? [])
    this.#wideRows.set(family, made)
    return made
  }

  async #appender(table: string): Promise<DuckDBAppender> {
    const known = this.#appenders.get(table)
    if (known) return known
    const appender = await this.#connection.createAppender(table)
    this.#appenders.set(table, appender)
    return appender
  }
}

/** Several groups of one scope as one: the rows of all, each name once, what comes later counts. */
function merged(family: Family, groups: readonly SampleGroup[]): SampleGroup {
  const scope = family === nodeFamily ? 'node' : 'cluster'
  const keys = groups.length === 0 ? [''] : [...new Set(groups.flatMap((group) => group.keys))]
  const place = new Map(keys.map((key, i) => [key, i]))
  const columns = new Map<string, Float64Array>()
  for (const group of groups) {
    for (const { metric, values } of group.columns) {
      const column = columns.get(metric) ?? new Float64Array(keys.length).fill(Number.NaN)
      columns.set(metric, column)
      for (const [i, key] of group.keys.entries()) column[place.get(key) ?? 0] = values[i] ?? Number.NaN
    }
  }
  return { scope, keys, columns: [...columns].map(([metric, values]) => ({ metric, values })) }
}
