import { minutes } from '#model'
import { comparePositions, type Delivery, type Position, type Writing } from '../sink.ts'
import { areOfOneCluster } from '../writer-name.ts'
import type { Session } from './connection.ts'
import type { Tables } from './identifiers.ts'

/** A writer besides the one that the table is held by, which may be alive. */
export interface Other {
  /** tells writers apart: a cloned cluster has the same names */
  readonly epoch: string
  readonly writer: string
  /** ms since 1970 by the clock of the server */
  readonly heardAt: number
  /** it was heard although it should have ended: there are two clusters under one name */
  readonly isSecond: boolean
  /** it was one until it said goodbye: whoever it was in conflict with is one, too, once it is back */
  readonly wasSecond?: boolean
  /** a second one that has the name of the first: by their names, former starts of either cannot be told from the other one */
  readonly isClone?: boolean
}

/** What the table says of the writer of an inventory. Times are the server's: clocks of writers may differ. */
export interface Held {
  readonly position: Position
  readonly writer: string
  readonly checksum: string
  readonly itemCount: number
  /** whether the rows are exactly those of that snapshot */
  readonly complete: boolean
  readonly removed: boolean
  readonly hasLeft: boolean
  /** ms since the writer was heard last, since it took over from a former one */
  readonly seenMs: number
  readonly takenOverMs: number
  /** the clock of the server, ms since 1970 */
  readonly now: number
  readonly others: readonly Other[]
}

/** A second writer that is silent for so long is gone, and so is one that holds the table: nobody waits for it. */
const GONE_MS = minutes(15)
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
  extract(epoch from clock_timestamp())::float8 * 1000 as now,
  extract(epoch from clock_timestamp() - last_seen)::float8 * 1000 as seen_ms,
  extract(epoch from clock_timestamp() - taken_over_at)::float8 * 1000 as taken_ms,
  extract(epoch from rival_seen)::float8 * 1000 as rival_seen
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
    hasLeft: row.left === true,
    seenMs: Number(row.seen_ms),
    takenOverMs: Number(row.taken_ms),
    now: Number(row.now),
    others: othersOf(row),
  }
}

/** The column `former` holds them all; `rival`, for people, who of them was heard last. */
function othersOf({ former, rival, rival_seen: seen }: Record<string, unknown>): readonly Other[] {
  if (typeof former === 'string' && former.startsWith('[')) return JSON.parse(former) as Other[]
  // Of a former version of this table only the last rival is known.
  return rival === null
    ? []
    : [{ epoch: '', writer: String(rival), heardAt: Number(seen), isSecond: true, isClone: true }]
}

/** What a writer may do with an inventory. `others`: who may be alive besides it, from now on. */
export type Standing =
  | {
      readonly may: 'write'
      readonly isTakeover: boolean
      /** nothing, where others may be alive */
      readonly mayDelete: boolean
      readonly others: readonly Other[]
    }
  /** it holds something later already; `sentence`: of a writer that is another one */
  | { readonly may: 'nothing'; readonly sentence?: string }
  /** two clusters have one name; who takes over is known, and writes nothing */
  | {
      readonly may: 'conflict'
      readonly isTakeover: boolean
      readonly others: readonly Other[]
      readonly sentence: string
    }

/** Who is judged. */
export interface Judging {
  readonly writer: string
  /** of its process */
  readonly ownEpochs: ReadonlySet<bigint>
  readonly silenceMs: number
}

/**
 * Judges a delivery by who was here before. Writers under one identity take over from each other in the order of their epochs: the
 * earlier ones are refused and said so, the later one hears of them and stops, too. What others left is deleted only when each of them
 * said goodbye, or was silent for a while: it might be alive elsewhere, with objects of its own. So whoever takes over knows of all that
 * its predecessor knew of. Former starts of its own are no second writers to it: it is there in their place.
 *
 *   earlier epoch ─▶ refused, and heard; a second writer where the later one is there for longer than the silence
 *   later epoch   ─▶ takes over; deletes after the silence of those that did not say goodbye
 *   a second one was heard within GONE_MS ─▶ conflict: neither writes
 */
export function judge(
  held: Held | undefined,
  { position, writing }: { readonly position: Position; readonly writing: Writing },
  { writer, ownEpochs, silenceMs }: Judging,
): Standing {
  if (!held) return { may: 'write', isTakeover: true, mayDelete: true, others: [] }
  const isTakeover = held.position.epoch !== position.epoch
  const isLater = comparePositions(held.position, position) > 0
  const isOwn = ownEpochs.has(held.position.epoch)
  const hasEnded = isOwn || held.hasLeft || held.removed || held.seenMs > GONE_MS
  // Of one that has ended, a later epoch tells only that a clock was set back since: the next position may follow it.
  if (isTakeover && isLater) {
    const sentence = conflictWith(writing, held.writer, 'it started later, so nothing of this one is written')
    return { may: 'nothing', ...(!hasEnded && { sentence }) }
  }
  const heard = alive(held, silenceMs)
  const areTwo = heard.some(({ isSecond, wasSecond }) => isSecond || wasSecond)
  const areClones = heard.some(({ isClone }) => isClone)
  const isFormerStart = (other: string) => isTakeover && !areClones && areOfOneCluster(writer, other)
  const known = heard
    .filter(({ epoch }) => !ownEpochs.has(BigInt(epoch || 0)))
    .map((other) => (other.isSecond && isFormerStart(other.writer) ? { ...other, ...NO_LONGER } : other))
    .filter((other) => isHeard(other, held.now, silenceMs))
  // Of two clusters one that says goodbye may be back in a moment: it is waited for as one that was killed.
  const mayBeBack = !isOwn && (!hasEnded || (held.hasLeft && areTwo))
  const isSecond = areTwo && !hasEnded && !isFormerStart(held.writer)
  const others = isTakeover && mayBeBack ? [...known, formerOf(held, { isSecond, areClones })] : known
  const second = others.filter((other) => other.isSecond).reduce(lastHeard, undefined)
  if (second) {
    const sentence = conflictWith(writing, second.writer, 'both are stopped until one of them is')
    return { may: 'conflict', isTakeover, others, sentence }
  }
  if (isLater) return { may: 'nothing' }
  return { may: 'write', isTakeover, mayDelete: others.length === 0, others }
}

const NO_LONGER = { isSecond: false, wasSecond: true }

const lastHeard = (one: Other | undefined, other: Other): Other =>
  one !== undefined && one.heardAt > other.heardAt ? one : other

/** Those that were heard of late. */
const alive = ({ others, now }: Held, silenceMs: number): readonly Other[] =>
  others.filter((other) => isHeard(other, now, silenceMs))

const isHeard = ({ heardAt, isSecond }: Other, now: number, silenceMs: number): boolean =>
  now - heardAt < (isSecond ? GONE_MS : silenceMs)

/** The silence of who held the table is counted from the takeover: before, nobody refused it. */
const formerOf = (
  { position, writer, now }: Held,
  { isSecond, areClones }: { readonly isSecond: boolean; readonly areClones: boolean },
): Other => ({
  ...{ epoch: String(position.epoch), writer, heardAt: now, isSecond },
  ...(isSecond && areClones && { isClone: true }),
})

/** Why a writer would write nothing now, whatever it gave; undefined: it would. */
export function conflictOf(held: Held, { writing, epoch }: Refused, who: Judging): string | undefined {
  const standing = judge(held, { writing, position: { epoch, sequence: held.position.sequence + 1n } }, who)
  return standing.may === 'write' ? undefined : standing.sentence
}

/** What is told to a writer that another one has overtaken, or that hears of another. */
const conflictWith = ({ cluster }: Writing, other: string | undefined, then: string): string =>
  `${other ?? 'another agent'} writes under the cluster name ${cluster}, too: ${then}`

/** One that does not hold the table. */
interface Refused {
  readonly writing: Writing
  readonly epoch: bigint
}

/** Notes that a writer lives, whether it holds the table or not, and whatever may come of its deliveries. */
export async function noteAlive(
  session: Session,
  tables: Tables,
  of: Refused,
  held: Held,
  who: Judging,
): Promise<void> {
  if (who.ownEpochs.has(held.position.epoch)) await noteSeen(session, tables, of.writing, held)
  else await noteRival(session, tables, of, held, who)
}

/** Notes that a writer is there that does not hold the table. */
export async function noteRival(
  session: Session,
  tables: Tables,
  { writing, epoch: own }: Refused,
  held: Held,
  { writer, silenceMs }: { readonly writer: string; readonly silenceMs: number },
): Promise<void> {
  const epoch = String(own)
  const others = alive(held, silenceMs)
  const before = others.find((other) => other.epoch === epoch)
  // A later one takes over as soon as it can; and who holds the table may have ended.
  const isRefused = held.position.epoch > own && !held.hasLeft && held.seenMs <= GONE_MS
  const isBeside = isRefused && held.takenOverMs > silenceMs
  const isSecond = before?.isSecond || isBeside
  const isClone = before?.isClone || (isBeside && areOfOneCluster(writer, held.writer))
  const isChange = before?.isSecond !== isSecond || (before.isClone ?? false) !== isClone
  const isNews = isChange || held.now - before.heardAt >= Math.min(SEEN_EVERY_MS, silenceMs / 10)
  if (!isNews) return
  const heard: Other = {
    epoch,
    writer,
    heardAt: held.now,
    isSecond,
    ...(isClone && { isClone }),
    ...(before?.wasSecond && { wasSecond: true }),
  }
  await session.query(
    `update ${tables.writers} set former = $4, rival = $5, rival_seen = clock_timestamp()
where cluster = $1 and inventory_namespace = $2 and inventory_name = $3`,
    [...keyValues(writing), JSON.stringify([...others.filter((other) => other !== before), heard]), writer],
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

/** Notes what is held now. @param more.others of use at a takeover */
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
    readonly others: readonly Other[]
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
  former = case when $13 then excluded.former else held.former end`,
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
      JSON.stringify(more.others),
      more.isTakeover,
    ],
  )
}

/**
 * Says goodbye: who comes next, or is there, need not wait. A second writer is waited for once more, as it may be back in a moment; of
 * others, whom it heard of or not, its goodbye says nothing.
 */
export const noteLeft = (session: Session, tables: Tables, cluster: string, epochs: readonly bigint[]) =>
  session.query(
    `update ${tables.writers} set
  left_at = case when epoch = any ($2::bigint[]) then clock_timestamp() else left_at end,
  former = case when former like '[%' then (
    select coalesce(jsonb_agg(case when other->>'epoch' = any ($3::text[]) then other || jsonb_build_object(
      'isSecond', false, 'wasSecond', true, 'heardAt', extract(epoch from clock_timestamp()) * 1000) else other end), '[]')::text
    from jsonb_array_elements(former::jsonb) other
    where (other->>'isSecond')::boolean or not other->>'epoch' = any ($3::text[])
  ) else former end
where cluster = $1 and (epoch = any ($2::bigint[]) or former like any ($4::text[]))`,
    [cluster, epochs.map(String), epochs.map(String), epochs.map((epoch) => `%"${epoch}"%`)],
  )

/** What is left of inventories that are no more, after 30 days. */
export const forgetRemoved = (session: Session, tables: Tables, cluster: string) =>
  session.query(
    `delete from ${tables.writers} where cluster = $1 and removed and last_seen < clock_timestamp() - interval '30 days'`,
    [cluster],
  )

const keyValues = ({ cluster, namespace, inventory }: Writing): string[] => [cluster, namespace, inventory]
