import { canonicalRow, type Row } from '#extract'
import { comparePositions, type Delivery, type Position, SinkError, type Writing } from '../sink.ts'
import type { Bounds } from './apply.ts'
import type { Session } from './connection.ts'
import type { Tables } from './identifiers.ts'
import type { Delivered, Removed, TableWriter } from './own-tables.ts'
import { jsonbText } from './rows.ts'
import { lockInventory } from './writers.ts'

const BATCH_BYTES = 4 * 2 ** 20
const NOTHING = { written: 0, removed: 0, bytes: 0 }
const UNCUT = { ...NOTHING, isCut: false, kept: 0 }
const START: Position = { epoch: 0n, sequence: 0n }

/**
 * The table as Kollect made it, for those who read it: one row for each object of a target, and nothing about writers. So positions are
 * known only to this process, and two writers under one name are not noticed. Every statement names the cluster.
 */
export class OriginalTable implements TableWriter {
  readonly #tables: Tables
  /** columns of its primary key; the cluster may be among them, and should be */
  readonly #key: readonly string[]
  readonly #held = new Map<string, Pick<Delivery, 'position' | 'checksum' | 'complete'>>()

  constructor(tables: Tables, key: readonly string[]) {
    this.#tables = tables
    this.#key = key
  }

  async deliver(session: Session, delivery: Delivery, bounds: Bounds): Promise<Delivered> {
    const { writing, position, complete, checksum } = delivery
    await lockInventory(session, writing, this.#tables)
    const key = keyOf(writing)
    const held = this.#held.get(key)
    const order = held ? comparePositions(held.position, position) : -1
    if (held && (order > 0 || (order === 0 && held.complete >= complete)))
      return { receipt: { position: held.position, ...NOTHING } }
    const isSame = held?.complete && held.checksum === checksum
    const { isCut, kept, ...done } = isSame ? UNCUT : await this.#write(session, delivery, held?.position, bounds)
    // What is there of it is found equal by the next delivery, and costs that little.
    if (isCut)
      return {
        receipt: { position: held?.position ?? START, ...done, isPartial: true },
        held: () => void this.#held.delete(key),
      }
    return {
      receipt: { position, ...done, ...(kept > 0 && { kept }) },
      // It holds only once the transaction does.
      held: () => void this.#held.set(key, { position, checksum, complete }),
    }
  }

  async remove(session: Session, writing: Writing, position: Position): Promise<Removed> {
    await lockInventory(session, writing, this.#tables)
    const held = this.#held.get(keyOf(writing))
    if (held && comparePositions(held.position, position) > 0) return {}
    await session.query(
      `delete from ${this.#tables.resources} where cluster = $1 and inventory_namespace = $2 and inventory_name = $3`,
      valuesOf(writing),
    )
    this.#held.delete(keyOf(writing))
    return {}
  }

  async #write(session: Session, delivery: Delivery, held: Position | undefined, bounds: Bounds) {
    const { changes, complete, writing } = delivery
    const isOfUse =
      changes && held && comparePositions(held, changes.base) === 0 && this.#held.get(keyOf(writing))?.complete
    const put = await this.#put(session, writing, isOfUse ? changes.put : delivery.rows(), bounds)
    let removed = 0
    if (complete && !put.isCut)
      removed = isOfUse
        ? await this.#remove(session, writing, changes.removed.map(rowKeyOf))
        : await this.#removeAllBut(session, writing, put.keys)
    const mayStay = !complete && !put.isCut && (!isOfUse || changes.kept !== 0)
    const kept = mayStay ? await this.#beyond(session, writing, isOfUse ? delivery.itemCount : put.keys.size) : 0
    return { written: put.written, removed, bytes: put.bytes, isCut: put.isCut, kept }
  }

  /** How many rows are there beyond so many that are. */
  async #beyond(session: Session, writing: Writing, count: number): Promise<number> {
    const { rows } = await session.query<{ held: number }>(
      `select count(*)::int4 as held from ${this.#tables.resources} where cluster = $1 and inventory_namespace = $2 and inventory_name = $3`,
      valuesOf(writing),
    )
    return Math.max(0, (rows[0]?.held ?? 0) - count)
  }

  async #put(session: Session, writing: Writing, rows: Iterable<Row>, bounds: Bounds) {
    const done = { written: 0, bytes: 0, keys: new Set<string>(), isCut: false }
    let batch: string[] = []
    let bytes = 0
    let spentMs = 0
    const write = async () => {
      const startedAt = performance.now()
      const written = batch.length > 0 ? await this.#upsert(session, writing, `[${batch.join(',')}]`, batch.length) : 0
      // Finding rows equal takes nothing of the time, or there would be rows that are never come to.
      if (written > 0) spentMs += performance.now() - startedAt
      done.written += written
      done.bytes += bytes
      batch = []
      bytes = 0
    }
    for (const row of rows) {
      const key = rowKeyOf(row)
      if (batch.length >= bounds.rows || bytes >= BATCH_BYTES) {
        await write()
        if (spentMs > bounds.ms) return { ...done, isCut: true }
      }
      // Targets of equal names in two namespaces share a key here: the first stands.
      if (done.keys.has(key)) continue
      done.keys.add(key)
      const json = `{"t":${jsonbText(row.targetName)},"u":${jsonbText(row.uid)},"ns":${jsonbText(row.namespace || writing.namespace)},"p":${jsonbText(JSON.parse(canonicalRow(row)))}}`
      batch.push(json)
      bytes += json.length
    }
    await write()
    return done
  }

  async #upsert(session: Session, writing: Writing, json: string, count: number): Promise<number> {
    const target = this.#key.map((column) => `"${column.replaceAll('"', '""')}"`).join(', ')
    const { rows } = await session.query<{ mine: number; written: number }>(
      `with given as (
  select r.t, r.u, r.ns, r.p from jsonb_to_recordset($1::jsonb) as r (t text, u text, ns text, p jsonb)
), mine as (
  select held.target_name, held.source_uid from ${this.#tables.resources} held join given on held.target_name = given.t and held.source_uid = given.u
  where held.cluster = $2 and held.inventory_namespace = $3 and held.inventory_name = $4 and held.payload = given.p and held.resource_namespace = given.ns
), written as (
  insert into ${this.#tables.resources} as held (inventory_namespace, inventory_name, target_name, source_uid, cluster, resource_namespace, payload, exported_at)
  select $3, $4, t, u, $2, ns, p, clock_timestamp() from given
  where not exists (select 1 from mine where mine.target_name = given.t and mine.source_uid = given.u)
  order by t collate "C", u collate "C"
  on conflict (${target}) do update set payload = excluded.payload, resource_namespace = excluded.resource_namespace, exported_at = excluded.exported_at
  where held.cluster = excluded.cluster
  returning 1
)
select (select count(*) from mine)::int4 as mine, (select count(*) from written)::int4 as written`,
      [json, ...valuesOf(writing)],
    )
    const [{ mine, written } = { mine: 0, written: 0 }] = rows
    if (mine + written === count) return written
    throw new SinkError(
      'terminal',
      `${count - mine - written} rows have the key of rows of another cluster, which are not touched: the primary key of ${this.#tables.names.resources} is (${this.#key.join(', ')}). Add the column cluster to it; or, where these rows are of this cluster and older, set their column cluster to ${JSON.stringify(writing.cluster)}`,
    )
  }

  async #removeAllBut(session: Session, writing: Writing, keys: ReadonlySet<string>): Promise<number> {
    const { rows } = await session.query<{ t: string; u: string }>(
      `select target_name as t, source_uid as u from ${this.#tables.resources} where cluster = $1 and inventory_namespace = $2 and inventory_name = $3`,
      valuesOf(writing),
    )
    const gone = rows.map(({ t, u }) => JSON.stringify([t, u])).filter((key) => !keys.has(key))
    return this.#remove(session, writing, gone)
  }

  async #remove(session: Session, writing: Writing, keys: readonly string[]): Promise<number> {
    if (keys.length === 0) return 0
    const { count } = await session.query(
      `delete from ${this.#tables.resources} held using jsonb_array_elements($1::jsonb) as k
where held.cluster = $2 and held.inventory_namespace = $3 and held.inventory_name = $4 and held.target_name = k->>0 and held.source_uid = k->>1`,
      [`[${keys.join(',')}]`, ...valuesOf(writing)],
    )
    return count
  }
}

const rowKeyOf = ({ targetName, uid }: { readonly targetName: string; readonly uid: string }): string =>
  JSON.stringify([targetName, uid])

const keyOf = (writing: Writing): string => JSON.stringify(valuesOf(writing))

const valuesOf = ({ cluster, namespace, inventory }: Writing): string[] => [cluster, namespace, inventory]
