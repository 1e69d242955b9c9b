import { compareTexts } from '#extract'
import { KOLLECT_API_VERSION } from '#kinds'
import { type Position, type RowKey, SinkError, type Writing } from '../sink.ts'
import type { Session } from './connection.ts'
import type { Tables } from './identifiers.ts'
import { type Change, jsonbText, keyText } from './rows.ts'

/** Of JSON in one statement. */
const BATCH_BYTES = 4 * 2 ** 20
/** So many changes are put in order before they are written; more are written as they come, with the cluster to themselves. */
const ORDERED = 5000

/** What was written and deleted of an inventory. */
export interface Applied {
  written: number
  removed: number
  bytes: number
  /** its time was over before all was written */
  isCut: boolean
}

/** What one transaction may take. */
export interface Bounds {
  /** rows of one statement */
  readonly rows: number
  /** after so long of writing no further rows are begun, ms */
  readonly ms: number
}

interface Target {
  readonly session: Session
  readonly tables: Tables
  readonly writing: Writing
  readonly position: Position
  readonly bounds: Bounds
}

/**
 * Writes changes of one inventory: claims first, then the resources they are on, each of which shows its smallest claim and goes with
 * its last one. Another inventory of the cluster may write the same resources meanwhile. Whoever changes a claim locks its resource
 * afterwards and only then looks at all claims on it, so that the last of both sees what both did; locks are taken in the order of
 * keys, so that nobody waits in a circle.
 */
export async function apply(target: Target, changes: AsyncGenerator<Change>): Promise<Applied> {
  const done: Applied = { written: 0, removed: 0, bytes: 0, isCut: false }
  const { session, tables, writing, bounds } = target
  const startedAt = performance.now()
  const lockCluster = (how: '' | '_shared') =>
    session.query(`select pg_advisory_xact_lock${how}(hashtextextended($1, 2))`, [
      JSON.stringify([tables.resources, writing.cluster]),
    ])
  const held: Change[] = []
  let next = await changes.next()
  for (; !next.done && held.length < ORDERED; next = await changes.next()) held.push(next.value)
  if (held.length === 0) return done
  await lockCluster(next.done ? '_shared' : '')
  // Finding what differs is not writing it, and takes as long again for each piece: it may take twice the time.
  const until = Math.min(performance.now() + bounds.ms, startedAt + 3 * bounds.ms)
  const batch = new Batch(target, done)
  for await (const change of sorted(held, next, changes)) {
    if (batch.isFull) {
      await batch.write()
      if (performance.now() >= until) return { ...done, isCut: true }
    }
    batch.add(change)
  }
  await batch.write()
  return done
}

/** Those that are held in the order of their resources, then the others as they come. */
async function* sorted(
  held: readonly Change[],
  next: IteratorResult<Change, unknown>,
  others: AsyncGenerator<Change>,
): AsyncGenerator<Change> {
  yield* held.toSorted(compareResources)
  if (next.done) return
  yield next.value
  yield* others
}

const compareResources = ({ key: a }: Change, { key: b }: Change): number =>
  compareTexts(a.namespace, b.namespace) || compareTexts(a.name, b.name) || compareTexts(a.uid, b.uid)

/** Changes that go in one statement each. */
class Batch {
  readonly #target: Target
  readonly #done: Applied
  readonly #put = new Map<string, string>()
  readonly #removed = new Map<string, RowKey>()
  readonly #resources = new Map<string, Pick<RowKey, 'namespace' | 'name' | 'uid'>>()
  #bytes = 0

  constructor(target: Target, done: Applied) {
    this.#target = target
    this.#done = done
  }

  get isFull(): boolean {
    return this.#put.size + this.#removed.size >= this.#target.bounds.rows || this.#bytes >= BATCH_BYTES
  }

  add({ key, put }: Change): void {
    const text = keyText(key)
    const { namespace, name, uid } = key
    this.#resources.set(`${namespace}\n${name}\n${uid}`, { namespace, name, uid })
    if (put) {
      const { targetNamespace: tn, targetName: t, group: g = '', version: v, kind: k, attributes: a } = put.row
      const json = jsonbText({ tn, t, ns: namespace, n: name, u: uid, g, v, k, a, h: put.hash })
      this.#put.set(text, json)
      this.#removed.delete(text)
      this.#bytes += json.length
    } else {
      this.#removed.set(text, key)
      this.#put.delete(text)
    }
  }

  async write(): Promise<void> {
    if (this.#resources.size === 0) return
    const claims = this.#put.size > 0 ? await this.#putClaims() : 0
    if (this.#removed.size > 0) await this.#removeClaims()
    const resources = await this.#writeResources()
    if (claims < this.#put.size || resources < this.#resources.size) await this.#requireAll()
    this.#done.bytes += this.#bytes
    this.#put.clear()
    this.#removed.clear()
    this.#resources.clear()
    this.#bytes = 0
  }

  /** Where less was written than differs others may have written it; or a trigger of the table let it go without a word. */
  async #requireAll(): Promise<void> {
    const { session, tables, writing } = this.#target
    if (this.#put.size === 0) return
    const { rows } = await session.query<{ missing: number }>(
      `select count(*)::int4 as missing from jsonb_to_recordset($1::jsonb) as r (tn text, t text, ns text, n text, u text)
where not exists (
  select from ${tables.claims} c where c.cluster = $2 and c.inventory_namespace = $3 and c.inventory_name = $4
    and c.target_namespace = r.tn and c.target_name = r.t and c.namespace = r.ns and c.name = r.n and c.uid = r.u
) or not exists (
  select from ${tables.resources} held where held.cluster = $2 and held.namespace = r.ns and held.name = r.n and held.uid = r.u
)`,
      [`[${[...this.#put.values()].join(',')}]`, ...valuesOf(writing)],
    )
    const missing = rows[0]?.missing ?? 0
    if (missing > 0)
      throw new SinkError(
        'terminal',
        `${missing} rows are not in ${tables.names.resources} or ${tables.names.claims} although the database took them: a trigger or a rule of the tables lets them go; take it off`,
      )
  }

  /** @returns how many were written */
  async #putClaims(): Promise<number> {
    const { session, tables, writing, position } = this.#target
    const { count } = await session.query(
      `insert into ${tables.claims} as held (cluster, inventory_namespace, inventory_name, target_namespace, target_name,
  namespace, name, uid, api_group, api_version, kind, attributes, attributes_hash, epoch, sequence)
select $2, $3, $4, r.tn, r.t, r.ns, r.n, r.u, r.g, r.v, r.k, r.a, decode(r.h, 'base64'), $5::bigint, $6::bigint
from jsonb_to_recordset($1::jsonb) as r (tn text, t text, ns text, n text, u text, g text, v text, k text, a jsonb, h text)
on conflict (cluster, inventory_namespace, inventory_name, target_namespace, target_name, namespace, name, uid) do update set
  api_group = excluded.api_group, api_version = excluded.api_version, kind = excluded.kind, attributes = excluded.attributes,
  attributes_hash = excluded.attributes_hash, epoch = excluded.epoch, sequence = excluded.sequence
where held.attributes_hash <> excluded.attributes_hash`,
      [
        `[${[...this.#put.values()].join(',')}]`,
        ...valuesOf(writing),
        String(position.epoch),
        String(position.sequence),
      ],
    )
    this.#done.written += count
    return count
  }

  async #removeClaims(): Promise<void> {
    const { session, tables, writing } = this.#target
    const keys = [...this.#removed.values()].map(
      ({ targetNamespace: tn, targetName: t, namespace: ns, name: n, uid: u }) => ({
        ...{ tn, t, ns, n, u },
      }),
    )
    const { count } = await session.query(
      `delete from ${tables.claims} where ctid = any (array(
  select c.ctid from jsonb_to_recordset($1::jsonb) as r (tn text, t text, ns text, n text, u text)
  cross join lateral (
    select ctid from ${tables.claims} c where c.cluster = $2 and c.inventory_namespace = $3 and c.inventory_name = $4
      and c.target_namespace = r.tn and c.target_name = r.t and c.namespace = r.ns and c.name = r.n and c.uid = r.u limit 1
  ) c))`,
      [JSON.stringify(keys), ...valuesOf(writing)],
    )
    this.#done.removed += count
  }

  /** @returns how many were written */
  async #writeResources(): Promise<number> {
    const { session, tables, writing, position } = this.#target
    const keys = JSON.stringify(
      [...this.#resources.values()].map(({ namespace: ns, name: n, uid: u }) => ({ ns, n, u })),
    )
    const values = [keys, writing.cluster, String(position.epoch), String(position.sequence)]
    // What is there is only locked by this, in the order of the keys. What has no claim is made and taken away again below.
    const { count: made } = await session.query(this.#show('left join', 'cluster = held.cluster where false'), values)
    // What was made just now shows its smallest claim already; who adds a smaller one waits for this transaction.
    if (made === this.#resources.size && this.#removed.size === 0) return made
    const columns = [
      'api_group',
      'api_version',
      'kind',
      'payload',
      'payload_hash',
      'schema_version',
      'epoch',
      'sequence',
    ]
    const set = [...columns, 'exported_at'].map((column) => `${column} = excluded.${column}`).join(', ')
    const { count: shown } = await session.query(
      this.#show('join', `${set} where held.payload_hash <> excluded.payload_hash`),
      values,
    )
    if (this.#removed.size === 0) return made + shown
    await session.query(
      `delete from ${tables.resources} where ctid = any (array(
  select held.ctid from jsonb_to_recordset($1::jsonb) as k (ns text, n text, u text)
  cross join lateral (
    select ctid from ${tables.resources} held
    where held.cluster = $2 and held.namespace = k.ns and held.name = k.n and held.uid = k.u limit 1
  ) held
  where not exists (select from (
    select 1 from ${tables.claims} c where c.cluster = $2 and c.uid = k.u and c.namespace = k.ns and c.name = k.n limit 1
  ) any_claim)))`,
      [keys, writing.cluster],
    )
    return made + shown
  }

  /**
   * Puts for each resource its smallest claim, by the bytes of the claim's key. Each is looked up by itself (`lateral … limit`): joined, the
   * server would read every claim of a cluster that its statistics do not know yet, for each statement.
   */
  #show(join: 'join' | 'left join', conflict: string): string {
    const { resources, claims } = this.#target.tables
    const key = ['inventory_namespace', 'inventory_name', 'target_namespace', 'target_name']
    return `insert into ${resources} as held
  (cluster, namespace, name, uid, api_group, api_version, kind, payload, payload_hash, schema_version, epoch, sequence, exported_at)
select $2, k.ns, k.n, k.u, coalesce(c.api_group, ''), coalesce(c.api_version, ''), coalesce(c.kind, ''),
  coalesce(c.payload, '{}'), coalesce(c.attributes_hash, ''), '${KOLLECT_API_VERSION}', $3::bigint, $4::bigint, clock_timestamp()
from jsonb_to_recordset($1::jsonb) as k (ns text, n text, u text)
${join} lateral (
  select c.api_group, c.api_version, c.kind, c.attributes_hash,
    jsonb_build_object('namespace', c.namespace, 'name', c.name, 'version', c.api_version, 'kind', c.kind, 'uid', c.uid, 'attributes', c.attributes)
      || case when c.api_group = '' then '{}'::jsonb else jsonb_build_object('group', c.api_group) end as payload
  from ${claims} c where c.cluster = $2 and c.uid = k.u and c.namespace = k.ns and c.name = k.n
  order by ${key.map((column) => `c.${column} collate "C"`).join(', ')} limit 1
) c on true
order by k.ns collate "C", k.n collate "C", k.u collate "C"
on conflict (cluster, namespace, name, uid) do update set ${conflict}`
  }
}

const valuesOf = ({ cluster, namespace, inventory }: Writing): string[] => [cluster, namespace, inventory]
