import { mkdir, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import pLimit from 'p-limit'
import { seconds } from '../src/contract/model/index.ts'
import type { Row } from '../src/pipeline/extract/index.ts'
import { PostgresSink } from '../src/pipeline/sinks/postgres/index.ts'
import { contextOf, writingOf } from '../src/pipeline/sinks/testing/delivery.ts'
import { startPostgres, type TestPostgres } from '../src/pipeline/sinks/testing/postgres-server.ts'
import { machine } from './rounds/reading.ts'
import { Inventory } from './sinks/inventory.ts'

/*
 * What PostgreSQL costs as a sink: the driver against a real server on the same machine, without an agent. One writer of many rows: how
 * long a changed row takes until it is committed, and what is written for one percent. Then 50 clusters on one server.
 */

const signal = new AbortController().signal

/** `--rows 10000,100000`, `--changes N` single ones, `--writers N`, `--each N` rows, `--seconds N`, `--no-write`. */
export async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rows: { type: 'string', default: '10000,100000' },
      changes: { type: 'string', default: '300' },
      writers: { type: 'string', default: '50' },
      each: { type: 'string', default: '10000' },
      seconds: { type: 'string', default: '60' },
      'no-write': { type: 'boolean', default: false },
    },
  })
  const begun = machine()
  await using server = await startPostgres()
  const alone: string[] = []
  for (const rows of values.rows.split(',')) alone.push(await oneWriter(server, Number(rows), Number(values.changes)))
  const many = await manyWriters(server, Number(values.writers), Number(values.each), Number(values.seconds))
  const [version] = await server.query<{ server_version: string }>('show server_version')
  const page = [
    '# Sinks',
    '',
    `\`npm run bench sinks\`: the PostgreSQL driver alone against PostgreSQL ${version?.server_version} (\`fsync = off\`) on the same machine. ${begun}.`,
    '',
    `One writer; ${values.changes} times one row changes, then 1 % of them, told to the driver as differences, and once more found by itself:`,
    '',
    '| rows | first load | one row, p50 | p99 | 1 % told | 1 % found | rows written of 1 % | deleted |',
    '|---|---|---|---|---|---|---|---|',
    ...alone,
    '',
    `${values.writers} clusters of ${values.each} rows in one table; after their first load, four at a time, 1 % of each changes once in ${values.seconds} s, at a moment of its own:`,
    '',
    '| first load of all | 1 % of one, p50 | p99 | rows written | deadlocks | deleted |',
    '|---|---|---|---|---|---|',
    many,
    '',
  ].join('\n')
  process.stdout.write(page)
  if (values['no-write']) return
  const results = fileURLToPath(new URL('results/', import.meta.url))
  await mkdir(results, { recursive: true })
  await writeFile(`${results}sinks.md`, page)
}

function sinkOf(server: TestPostgres, cluster: string, table: string): PostgresSink {
  return new PostgresSink(
    {
      namespace: 'team-a',
      name: 'warehouse',
      cluster,
      credentials: { dsn: Buffer.from(server.dsn()) },
      spec: { type: 'postgres', postgres: { databaseRef: { name: 'warehouse' }, table, schema: 'bench' } },
    },
    contextOf(),
  )
}

/** As a binding does it: what lasts comes in parts, each of the latest. */
async function delivered(sink: PostgresSink, inventory: Inventory, changed: readonly Row[] | undefined): Promise<void> {
  let receipt = await sink.deliver(inventory.delivery(changed), signal)
  while (receipt.isPartial) receipt = await sink.deliver(inventory.delivery(undefined), signal)
}

async function oneWriter(server: TestPostgres, count: number, changes: number): Promise<string> {
  await server.query('create schema if not exists bench authorization app')
  const table = `alone_${count}`
  const sink = sinkOf(server, 'west', table)
  const inventory = new Inventory(writingOf('west'), count)
  const timed = async (changed: readonly Row[] | undefined): Promise<number> => {
    const began = performance.now()
    await delivered(sink, inventory, changed)
    return performance.now() - began
  }
  const load = await timed(undefined)
  const single: number[] = []
  for (let n = 0; n < changes; n++) single.push(await timed(inventory.change(1)))
  const told = await timed(inventory.change(count / 100))
  inventory.change(count / 100)
  const found = await timed(undefined)
  await sink[Symbol.asyncDispose]()
  const { inserted, updated, deleted } = await settled(server, `bench.${table}`)
  const share = ((inserted + updated - count - changes) / 2 / count) * 100
  const cells = [load, at50(single), at99(single), told, found].map(milliseconds)
  return `| ${count} | ${cells.join(' | ')} | ${share.toFixed(2)} % | ${deleted} |`
}

async function manyWriters(server: TestPostgres, writers: number, each: number, forSeconds: number): Promise<string> {
  const fleet = Array.from({ length: writers }, (_, n) => {
    const cluster = `cluster-${n}`
    return { sink: sinkOf(server, cluster, 'fleet'), inventory: new Inventory(writingOf(cluster), each) }
  })
  const began = performance.now()
  const loadOne = pLimit(4)
  await Promise.all(fleet.map(({ sink, inventory }) => loadOne(() => delivered(sink, inventory, undefined))))
  const load = performance.now() - began
  const times: number[] = []
  const rounds = 3
  for (let round = 0; round < rounds; round++)
    await Promise.all(
      fleet.map(async ({ sink, inventory }) => {
        await new Promise((resolve) => setTimeout(resolve, (Math.random() * seconds(forSeconds)) / rounds))
        const changed = inventory.change(each / 100 / rounds)
        const since = performance.now()
        await delivered(sink, inventory, changed)
        times.push(performance.now() - since)
      }),
    )
  await Promise.all(fleet.map(({ sink }) => sink[Symbol.asyncDispose]()))
  const { updated, deleted } = await settled(server, 'bench.fleet')
  const [stats] = await server.query<{ deadlocks: string }>(
    'select deadlocks from pg_stat_database where datname = current_database()',
  )
  const cells = [load, at50(times), at99(times)].map(milliseconds)
  return `| ${cells.join(' | ')} | ${updated} of ${writers * each} | ${stats?.deadlocks} | ${deleted} |`
}

/** What the server counts once it has counted all. */
async function settled(server: TestPostgres, table: string) {
  for (;;) {
    const before = await server.counts(table)
    await new Promise((resolve) => setTimeout(resolve, 1000))
    const after = await server.counts(table)
    if (JSON.stringify(before) === JSON.stringify(after) && after.inserted > 0) return after
  }
}

const quantile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? Number.NaN
const at50 = (values: readonly number[]): number => quantile(values, 0.5)
const at99 = (values: readonly number[]): number => quantile(values, 0.99)
const milliseconds = (ms: number): string => (ms < 10_000 ? `${ms.toFixed(0)} ms` : `${(ms / 1000).toFixed(1)} s`)
