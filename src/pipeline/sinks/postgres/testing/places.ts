import { onTestFinished } from 'vitest'
import type { Row } from '#extract'
import type { DatabaseDeclaration, SinkContext, Writing } from '../../index.ts'
import { contextOf } from '../../testing/delivery.ts'
import type { TestPostgres } from '../../testing/postgres-server.ts'
import { PostgresSink } from '../index.ts'

/** A schema of its own in a server, as the user of the sinks has it. */
export interface Place {
  readonly schema: string
  sink(
    cluster: string,
    more?: Partial<SinkContext> & {
      spec?: object
      dsn?: string
      caBundle?: string
      silenceMs?: number
      pieceMs?: number
      transactionMs?: number
    },
  ): PostgresSink
  /** rows of an inventory, as the view shows them */
  read(writing: Writing): Promise<Row[]>
  count(what?: string): Promise<number>
  /** as if so much time had gone by since all that the table of writers tells of */
  pass(ms: number): Promise<void>
  /** a number that is another one after any row of resources or claims was written */
  version(): Promise<number>
}

let places = 0

export async function aPlace(server: TestPostgres, table = 'inventory'): Promise<Place> {
  const schema = `place_${++places}_${Math.random().toString(36).slice(2, 8)}`
  await server.query(`create schema ${schema} authorization app`)
  return {
    schema,
    sink: (cluster, { spec, dsn = server.dsn(), caBundle, silenceMs, pieceMs, transactionMs, ...context } = {}) => {
      const declaration: DatabaseDeclaration = {
        namespace: 'team-a',
        name: 'warehouse',
        cluster,
        credentials: { dsn: Buffer.from(dsn) },
        ...(caBundle !== undefined && { caBundle }),
        spec: { type: 'postgres', postgres: { databaseRef: { name: 'warehouse' }, table, schema }, ...spec },
      }
      return new PostgresSink(declaration, contextOf(context), { silenceMs, pieceMs, transactionMs })
    },
    read: async ({ cluster, namespace, inventory }) => {
      const [{ there } = { there: false }] = await server.query<{ there: boolean }>(
        'select to_regclass($1) is not null as there',
        [`${schema}.${table}_view`],
      )
      if (!there) return []
      const rows = await server.query<Record<string, string> & { attributes: Record<string, unknown> }>(
        `select * from ${schema}.${table}_view where cluster = $1 and inventory_namespace = $2 and inventory_name = $3`,
        [cluster, namespace, inventory],
      )
      return rows.map((row) => ({
        targetNamespace: row.target_namespace ?? '',
        targetName: row.target_name ?? '',
        namespace: row.namespace ?? '',
        name: row.name ?? '',
        ...(row.api_group !== '' && { group: row.api_group ?? '' }),
        version: row.api_version ?? '',
        kind: row.kind ?? '',
        uid: row.uid ?? '',
        attributes: row.attributes,
      }))
    },
    pass: async (ms) => {
      const [writers, late] = [`${schema}.${table}_writers`, `interval '${ms} milliseconds'`]
      const times = ['taken_over_at', 'last_seen', 'left_at', 'rival_seen'].map((one) => `${one} = ${one} - ${late}`)
      await server.query(`update ${writers} set ${times.join(', ')}, former = case when former like '[%' then (
        select coalesce(jsonb_agg(other || jsonb_build_object('heardAt', (other->>'heardAt')::float8 - ${ms})), '[]')
        from jsonb_array_elements(former::jsonb) other)::text else former end`)
    },
    version: async () => {
      const marks = (name: string) => `select sum(hashtext(ctid::text || xmin::text)) n from ${schema}.${name}`
      const rows = await server.query<{ n: string | null }>(`${marks(table)} union all ${marks(`${table}_claims`)}`)
      return rows.reduce((sum, { n }) => sum + Number(n ?? 0), 0)
    },
    count: async (what = table) => {
      const [row] = await server.query<{ n: string }>(`select count(*) n from ${schema}.${what}`)
      return Number(row?.n)
    },
  }
}

/** A sink that is closed with its test. */
export function closed<T extends AsyncDisposable>(sink: T): T {
  onTestFinished(() => sink[Symbol.asyncDispose]())
  return sink
}
