import { SinkError } from '../sink.ts'
import type { Session } from './connection.ts'
import { quoted, suffixed, type Tables } from './identifiers.ts'

type Columns = Readonly<Record<string, string>>

const RESOURCES: Columns = {
  cluster: 'text',
  namespace: 'text',
  name: 'text',
  uid: 'text',
  api_group: 'text',
  api_version: 'text',
  kind: 'text',
  payload: 'jsonb',
  payload_hash: 'bytea',
  schema_version: 'text',
  epoch: 'bigint',
  sequence: 'bigint',
  exported_at: 'timestamp with time zone',
}
const CLAIMS: Columns = {
  cluster: 'text',
  inventory_namespace: 'text',
  inventory_name: 'text',
  target_namespace: 'text',
  target_name: 'text',
  namespace: 'text',
  name: 'text',
  uid: 'text',
  api_group: 'text',
  api_version: 'text',
  kind: 'text',
  attributes: 'jsonb',
  attributes_hash: 'bytea',
  epoch: 'bigint',
  sequence: 'bigint',
}
const WRITERS: Columns = {
  cluster: 'text',
  inventory_namespace: 'text',
  inventory_name: 'text',
  writer: 'text',
  epoch: 'bigint',
  sequence: 'bigint',
  generation: 'bigint',
  checksum: 'text',
  item_count: 'bigint',
  complete: 'boolean',
  removed: 'boolean',
  taken_over_at: 'timestamp with time zone',
  last_seen: 'timestamp with time zone',
  left_at: 'timestamp with time zone',
  former: 'text',
  rival: 'text',
  rival_seen: 'timestamp with time zone',
}
/** May be empty. */
const NULLABLE = new Set(['left_at', 'former', 'rival', 'rival_seen'])
const KEYS = {
  resources: 'cluster, namespace, name, uid',
  claims: 'cluster, inventory_namespace, inventory_name, target_namespace, target_name, namespace, name, uid',
  writers: 'cluster, inventory_namespace, inventory_name',
}

/** The table of the original: one row for each object of a target of an inventory. */
export const ORIGINAL: Columns = {
  inventory_namespace: 'text',
  inventory_name: 'text',
  target_name: 'text',
  source_uid: 'text',
  cluster: 'text',
  resource_namespace: 'text',
  payload: 'jsonb',
  exported_at: 'timestamp with time zone',
}

/** What a sink's table is: not there, ours with all that belongs to it, or the one of the original with the columns of its key. */
export type Shape =
  | { readonly kind: 'missing'; readonly names: readonly string[] }
  | { readonly kind: 'ours' }
  | { readonly kind: 'original'; readonly key: readonly string[] }

/** What makes the tables; what is there already stays as it is. */
export function definitions(tables: Tables): readonly string[] {
  const table = (name: string, columns: Columns, key: string, check = '') =>
    `create table if not exists ${name} (\n${Object.entries(columns)
      .map(
        ([column, type]) =>
          `  ${column} ${type}${NULLABLE.has(column) ? '' : ' not null'}${column === 'cluster' ? check : ''},\n`,
      )
      .join('')}  primary key (${key})\n)`
  const index = (name: string, on: string) => `create index if not exists ${name} on ${on}`
  const { names } = tables
  return [
    table(tables.resources, RESOURCES, KEYS.resources, " check (cluster <> '')"),
    index(indexName(names.resources, '_uid'), `${tables.resources} (cluster, uid)`),
    index(indexName(names.resources, '_kind'), `${tables.resources} (cluster, kind, namespace)`),
    table(tables.claims, CLAIMS, KEYS.claims, " check (cluster <> '')"),
    index(indexName(names.claims, '_uid'), `${tables.claims} (cluster, uid)`),
    table(tables.writers, WRITERS, KEYS.writers, " check (cluster <> '')"),
    `create or replace view ${tables.view} as
select c.cluster, c.inventory_namespace, c.inventory_name, c.target_namespace, c.target_name,
  c.namespace, c.name, c.uid, c.api_group, c.api_version, c.kind, c.attributes,
  r.exported_at, w.complete, w.last_seen
from ${tables.claims} c
join ${tables.resources} r using (cluster, namespace, name, uid)
left join ${tables.writers} w using (cluster, inventory_namespace, inventory_name)`,
  ]
}

/**
 * Looks at the tables, and makes them where that is allowed.
 * @returns which shape is there
 * @throws SinkError, terminal, where columns are not as they are written
 */
export async function shapeOf(session: Session, tables: Tables, mode: 'ensure' | 'existing'): Promise<Shape> {
  const found = await look(session, tables)
  if (mode === 'ensure' && found.kind === 'original')
    throw new SinkError(
      'terminal',
      `the table ${tables.names.resources} is one of Kollect: say spec.provisioning.mode: existing to go on writing it, or name another table`,
    )
  if (mode === 'existing' || found.kind !== 'missing') return found
  await make(session, tables)
  return look(session, tables)
}

async function make(session: Session, tables: Tables): Promise<void> {
  await session.query('begin')
  // Agents that begin at the same time would meet inside of "create table if not exists".
  await session.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`clusterpulse ${tables.resources}`])
  // Who waited finds them made; making them again would meet those who write already.
  if ((await look(session, tables)).kind === 'missing')
    for (const statement of definitions(tables)) await session.query(statement)
  await session.query('commit')
}

async function look(session: Session, tables: Tables): Promise<Shape> {
  const { names } = tables
  const columns = await columnsOf(session, tables)
  const resources = columns.get(names.resources)
  if (resources && 'source_uid' in resources && !('uid' in resources)) {
    compare(names.resources, resources, ORIGINAL)
    return { kind: 'original', key: await keyOf(session, tables) }
  }
  const wanted: readonly (readonly [string, Columns])[] = [
    [names.resources, RESOURCES],
    [names.claims, CLAIMS],
    [names.writers, WRITERS],
  ]
  for (const [name, expected] of wanted) compare(name, columns.get(name), expected)
  const missing = wanted.map(([name]) => name).filter((name) => !columns.has(name))
  return missing.length > 0 ? { kind: 'missing', names: missing } : { kind: 'ours' }
}

/** Columns of others may stand beside ours as long as they need no value. */
function compare(table: string, found: Columns | undefined, wanted: Columns): void {
  if (!found) return
  const wrong = Object.entries(wanted).flatMap(([column, type]) =>
    found[column] === type ? [] : [`${column} is ${found[column] ?? 'missing'}, not ${type}`],
  )
  if (wrong.length > 0)
    throw new SinkError(
      'terminal',
      `the table ${table} has other columns: ${wrong.slice(0, 3).join('; ')}${wrong.length > 3 ? `; and ${wrong.length - 3} more` : ''}. Correct it, or name another table`,
    )
}

async function columnsOf(session: Session, { schema, names }: Tables): Promise<Map<string, Record<string, string>>> {
  const { rows } = await session.query<{ table: string; column: string; type: string }>(
    `select c.relname as table, a.attname as column, format_type(a.atttypid, null) as type
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
where n.nspname = $1 and c.relname = any ($2) and c.relkind in ('r', 'p', 'f', 'v', 'm')`,
    [schema, [names.resources, names.claims, names.writers]],
  )
  const tables = new Map<string, Record<string, string>>()
  for (const { table, column, type } of rows) {
    const columns = tables.get(table) ?? {}
    columns[column] = type
    tables.set(table, columns)
  }
  return tables
}

/** Columns of the primary key, in its order. */
async function keyOf(session: Session, { resources }: Tables): Promise<string[]> {
  const { rows } = await session.query<{ column: string }>(
    `select a.attname as column
from pg_catalog.pg_index i
join unnest(i.indkey) with ordinality as k (attnum, n) on true
join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
where i.indrelid = to_regclass($1) and i.indisprimary order by k.n`,
    [resources],
  )
  return rows.map(({ column }) => column)
}

const indexName = (table: string, suffix: string): string => quoted(suffixed(table, suffix))
