import { minutes } from '#model'
import { comparePositions, type Delivery, type Position, type Writing } from '../sink.ts'
import type { Session } from './connection.ts'
import type { Tables } from './identifiers.ts'

/** What the table says of the writer of an inventory. Times are the server's: clocks of writers may differ. */
export interface Held {
  readonly position: Position
  readonly writer: string
  readonly checksum: string
  readonly itemCount: number
  /** whether the rows are exactly those of that snapshot */
  readonly complete: boolean
  readonly removed: boolean
  /** ms since the writer was heard last, since it took over from a former one, since a rival was heard after that */
  readonly seenMs: number
  readonly takenOverMs: number
  readonly rivalMs: number | undefined
  readonly hasLeft: boolean
  readonly former: string | undefined
  readonly rival: string | undefined
}

/** A rival that is silent for so long is gone. */
const GONE_MS = minutes(15)
/** Who was heard before that has ended, or is away: nobody waits for it. */
const RECENT_MS = minutes(10)
/** What repeats itself is written down so often. */
const SEEN_EVERY_MS = 10_000

/** One writer at a time for an inventory of a cluster; until the end of the transaction. */
export const lockInventory = (session: Session, { cluster, namespace, inventory }: Writing, tables: Tables) =>
  session.query('select pg_advisory_xact_lock(hashtextextended($1, 1))', [
    JSON.stringify([tables.resources, cluster, namespace, inventory]),
  ])

/** Of one inventory; undefined where nobody wrote it yet. */
export async function heldBy(session: Session, tables: Tables, writing: Writing): Promise<Held | undefined> {
  const { rows } = await session.query<Record<string, string | number | boolean | null>>(
    `select writer, epoch::text, sequence::text, checksum, item_count::int4 as items, complete, removed, former, rival,
  left_at is not null as left,
  extract(epoch from clock_timestamp() - last_seen)::float8 * 1000 as seen_ms,
  extract(epoch from clock_timestamp() - taken_over_at)::float8 * 1000 as taken_ms,
  extract(epoch from clock_timestamp() - rival_seen)::float8 * 1000 as rival_ms
from ${tables.writers} where cluster = $1 and inventory_namespace = $2 and inventory_name = $3`,
    keyValues(writing),
  )
  const [row] = rows
  if (!row) return undefined
  return {
    position: { epoch: BigInt(String(row.epoch)), sequence: BigInt(String(row.sequence)) },
    writer: String(row.writer),
    checksum: String(row.checksum),
    itemCount: Number(row.items),
    complete: row.complete === true,
    removed: row.removed === true,
    seenMs: Number(row.seen_ms),
    takenOverMs: Number(row.taken_ms),
    rivalMs: row.rival_ms === null ? undefined : Number(row.rival_ms),
    hasLeft: row.left === true,
    former: row.former === null ? undefined : String(row.former),
    rival: row.rival === null ? undefined : String(row.rival),
  }
}

/** What a writer may do with an inventory. */
export type Standing =
  | { readonly may: 'write'; readonly isTakeover: boolean; readonly mayDelete: boolean }
  /** it holds something later already; `rival`: of a writer that is another one */
  | { readonly may: 'nothing'; readonly isRival: boolean }
  | { readonly may: 'conflict'; readonly sentence: string }

/**
 * Judges a delivery by who was here before. Two processes under one identity take over from each other in the order of their epochs:
 * the earlier one is refused and said so, the later one hears of it and stops, too. What a former writer left is deleted only when that
 * one said goodbye, or was silent for a while: it might be alive elsewhere, with objects of its own.
 *
 *   earlier epoch ─▶ refused, noted as rival          same epoch, a rival was heard for longer than the silence ─▶ conflict
 *   later epoch ─▶ takes over; deletes after the silence
 */
export function judge(
  held: Held | undefined,
  { position, writing }: { readonly position: Position; readonly writing: Writing },
  { ownEpochs, silenceMs }: { readonly ownEpochs: ReadonlySet<bigint>; readonly silenceMs: number },
): Standing {
  if (!held) return { may: 'write', isTakeover: true, mayDelete: true }
  const isOwn = held.position.epoch === position.epoch
  const isLater = comparePositions(held.position, position) > 0
  if (!isOwn) {
    const isEnded = ownEpochs.has(held.position.epoch) || held.hasLeft || held.removed || held.seenMs > RECENT_MS
    // Of one that has ended, a later epoch tells only that a clock was set back since: the next position may follow it.
    return isLater ? { may: 'nothing', isRival: !isEnded } : { may: 'write', isTakeover: true, mayDelete: isEnded }
  }
  const rivalMs = held.rivalMs !== undefined && held.rivalMs < GONE_MS ? held.rivalMs : undefined
  if (rivalMs !== undefined && held.takenOverMs - rivalMs > silenceMs)
    return { may: 'conflict', sentence: conflictWith(writing, held.rival, 'both are stopped until one of them is') }
  if (isLater) return { may: 'nothing', isRival: false }
  const isQuiet = held.former === undefined || held.takenOverMs > silenceMs
  return { may: 'write', isTakeover: false, mayDelete: isQuiet && (rivalMs === undefined || rivalMs > silenceMs) }
}

/** What is told to a writer that another one has overtaken, or that hears of another. */
export const conflictWith = ({ cluster }: Writing, other: string | undefined, then: string): string =>
  `${other ?? 'another agent'} writes under the cluster name ${cluster}, too: ${then}`

/** Notes that a writer was refused. */
export async function noteRival(
  session: Session,
  tables: Tables,
  writing: Writing,
  { writer, silenceMs }: { readonly writer: string; readonly silenceMs: number },
): Promise<void> {
  await session.query(
    `update ${tables.writers} set rival = $4, rival_seen = clock_timestamp()
where cluster = $1 and inventory_namespace = $2 and inventory_name = $3
  and (rival is distinct from $4 or rival_seen < clock_timestamp() - $5 * interval '1 millisecond')`,
    [...keyValues(writing), writer, Math.min(SEEN_EVERY_MS, silenceMs / 10)],
  )
}

/** Notes that the writer is there. */
export async function noteSeen(session: Session, tables: Tables, writing: Writing, held: Held): Promise<void> {
  if (held.seenMs < SEEN_EVERY_MS && !held.hasLeft) return
  await session.query(
    `update ${tables.writers} set last_seen = clock_timestamp(), left_at = null
where cluster = $1 and inventory_namespace = $2 and inventory_name = $3`,
    keyValues(writing),
  )
}

/** Notes what is held now. @param more.former a writer that may be alive, at a takeover */
export async function noteWritten(
  session: Session,
  tables: Tables,
  {
    writing,
    position,
    generation,
    checksum,
    itemCount,
  }: Pick<Delivery, 'writing' | 'position' | 'generation' | 'checksum' | 'itemCount'>,
  more: {
    readonly writer: string
    readonly complete: boolean
    readonly removed: boolean
    readonly isTakeover: boolean
    readonly former: string | undefined
  },
): Promise<void> {
  await session.query(
    `insert into ${tables.writers} as held
  (cluster, inventory_namespace, inventory_name, writer, epoch, sequence, generation, checksum, item_count, complete, removed, taken_over_at, last_seen, former)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, clock_timestamp(), clock_timestamp(), $12)
on conflict (cluster, inventory_namespace, inventory_name) do update set
  writer = excluded.writer, epoch = excluded.epoch, sequence = excluded.sequence, generation = excluded.generation,
  checksum = excluded.checksum, item_count = excluded.item_count, complete = excluded.complete, removed = excluded.removed,
  last_seen = excluded.last_seen, left_at = null,
  taken_over_at = case when $13 then excluded.taken_over_at else held.taken_over_at end,
  former = case when $13 then excluded.former else held.former end,
  rival = case when $13 then null else held.rival end,
  rival_seen = case when $13 then null else held.rival_seen end`,
    [
      ...keyValues(writing),
      more.writer,
      String(position.epoch),
      String(position.sequence),
      generation,
      checksum,
      itemCount,
      more.complete,
      more.removed,
      more.former ?? null,
      more.isTakeover,
    ],
  )
}

/** Says goodbye: who comes next need not wait. */
export const noteLeft = (session: Session, tables: Tables, cluster: string, epochs: readonly bigint[]) =>
  session.query(
    `update ${tables.writers} set left_at = clock_timestamp() where cluster = $1 and epoch = any ($2::bigint[])`,
    [cluster, epochs.map(String)],
  )

/** What is left of inventories that are no more, after 30 days. */
export const forgetRemoved = (session: Session, tables: Tables, cluster: string) =>
  session.query(
    `delete from ${tables.writers} where cluster = $1 and removed and last_seen < clock_timestamp() - interval '30 days'`,
    [cluster],
  )

const keyValues = ({ cluster, namespace, inventory }: Writing): string[] => [cluster, namespace, inventory]
