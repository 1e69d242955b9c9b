import type { DuckDBConnection } from '@duckdb/node-api'
import { type MetricScope, metricPrefix, metricsCatalogue } from '#model'

/*
 * Three families of tables: `cluster` and `node` are wide (a row per thing and time, a column per metric of the
 * catalogue), `other` is narrow (a row per number: operators, custom metrics, names that no catalogue knows). Each family
 * has three stages:
 *
 *   recent ─ as it comes ─▶ raw ─ sorted by series ─▶ rolled ─ means of 5 minutes ─▶ gone
 *
 * Names of clusters, keys and metrics are numbers of the table `words`. `t` is the original time, ms.
 */

/** What samples are rolled up to, ms. */
export const ROLL_MS = 300_000

export interface Family {
  readonly name: 'cluster' | 'node' | 'other'
  /** columns that name a series, in the order raw and rolled are sorted by */
  readonly series: readonly string[]
  /** metric by column; of `other` the only column is `value` */
  readonly columns: ReadonlyMap<string, string>
  /** a column that says how the batch came: only the cluster has it, once per batch */
  readonly hasWay: boolean
}

const columnsOf = (scope: MetricScope): ReadonlyMap<string, string> =>
  new Map(
    metricsCatalogue
      .filter((metric) => metric.scope === scope)
      .map(({ name }) => [metricPrefix[scope] + name, `m_${name}`]),
  )

export const clusterFamily: Family = {
  name: 'cluster',
  series: ['cluster'],
  columns: columnsOf('cluster'),
  hasWay: true,
}
export const nodeFamily: Family = {
  name: 'node',
  series: ['cluster', 'key'],
  columns: columnsOf('node'),
  hasWay: false,
}
export const otherFamily: Family = {
  name: 'other',
  series: ['cluster', 'metric', 'key'],
  columns: new Map([['', 'value']]),
  hasWay: false,
}
export const families: readonly Family[] = [clusterFamily, nodeFamily, otherFamily]

export const familyOf = (scope: MetricScope): Family => {
  if (scope === 'cluster') return clusterFamily
  return scope === 'node' ? nodeFamily : otherFamily
}

export type Stage = 'recent' | 'raw' | 'rolled'
export const tableOf = (family: Family, stage: Stage): string => `${family.name}_${stage}`

/** Makes what is missing, columns of metrics that are new in the catalogue included. */
export async function createTables(connection: DuckDBConnection): Promise<void> {
  await connection.run('BEGIN')
  await connection.run('CREATE TABLE IF NOT EXISTS meta (name VARCHAR NOT NULL, value BIGINT NOT NULL)')
  await connection.run('CREATE TABLE IF NOT EXISTS words (id INTEGER NOT NULL, word VARCHAR NOT NULL)')
  await connection.run(
    'CREATE TABLE IF NOT EXISTS losses (cluster INTEGER NOT NULL, f BIGINT NOT NULL, l BIGINT NOT NULL, cause VARCHAR NOT NULL, n BIGINT NOT NULL)',
  )
  for (const family of families) {
    for (const stage of ['recent', 'raw', 'rolled'] as const) await createTable(connection, family, stage)
  }
  await connection.run("INSERT INTO meta SELECT 'position', -1 WHERE NOT EXISTS (FROM meta WHERE name = 'position')")
  await connection.run('COMMIT')
}

async function createTable(connection: DuckDBConnection, family: Family, stage: Stage): Promise<void> {
  const table = tableOf(family, stage)
  const values = [...family.columns.values()].map((column) => `${column} DOUBLE`)
  await connection.run(
    `CREATE TABLE IF NOT EXISTS ${table} (${[...fixedColumns(family, stage), ...values].join(', ')})`,
  )
  for (const column of values) await connection.run(`ALTER TABLE ${table} ADD COLUMN IF NOT EXISTS ${column}`)
}

function fixedColumns(family: Family, stage: Stage): readonly string[] {
  return [
    ...family.series.map((column) => `${column} INTEGER NOT NULL`),
    't BIGINT NOT NULL',
    ...(family.hasWay ? ['way UTINYINT NOT NULL'] : []),
    // of a rolled row: how many samples, and of batches the first and the last time
    ...(stage === 'rolled' ? ['n INTEGER NOT NULL'] : []),
    ...(stage === 'rolled' && family.hasWay ? ['f BIGINT NOT NULL', 'l BIGINT NOT NULL'] : []),
  ]
}
