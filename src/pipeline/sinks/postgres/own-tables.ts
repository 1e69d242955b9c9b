import { setImmediate } from 'node:timers/promises'
import { comparePositions, type Delivery, type Position, type Receipt, type Waits, type Writing } from '../sink.ts'
import { apply, type Bounds } from './apply.ts'
import type { Session } from './connection.ts'
import type { Tables } from './identifiers.ts'
import { type Change, hashOf, keyOfText, keyText } from './rows.ts'
import {
  conflictOf,
  forgetRemoved,
  type Held,
  heldBy,
  type Judging,
  judge,
  lockInventory,
  noteAlive,
  noteLeft,
  noteRival,
  noteSeen,
  noteWritten,
  type Other,
  type Standing,
} from './writers.ts'

/** What a delivery did. `waits`: why it is not done yet; what it wrote holds all the same. */
export interface Delivered {
  readonly receipt: Receipt
  readonly waits?: Waits
  /** to be called when the transaction holds */
  readonly held?: () => void
}

/** What came of taking an inventory away. */
export interface Removed {
  /** why it is not done yet */
  readonly waits?: Waits
  /** part of it is gone; the rest is for another transaction */
  readonly isCut?: boolean
  /** as that of a Receipt */
  readonly conflict?: string
}

/** One shape of tables. Everything runs within a transaction. */
export interface TableWriter {
  deliver(session: Session, delivery: Delivery, bounds: Bounds): Promise<Delivered>
  remove(session: Session, writing: Writing, position: Position, bounds: Bounds): Promise<Removed>
  /** Says that the writer lives; absent where nobody waits for it. @returns as that of a Sink */
  alive?(session: Session, writing: Writing, epoch: bigint): Promise<string | undefined>
  /** Says goodbye; absent where there is nobody to say it to. */
  readonly leave?: ((session: Session) => Promise<void>) | undefined
}

/** Longer than two clocks differ over the time of a silence, ms. */
const SURELY_MS = 250

/** So many rows are looked at before others have their turn. */
const TURN = 2000

/** Epochs of one process, by cluster. */
export type OwnEpochs = Map<string, Set<bigint>>

/** Resources, the claims on them, and who writes. @see docs/guide/sinks-postgres.md */
export class OwnTables implements TableWriter {
  readonly #tables: Tables
  readonly #writer: string
  readonly #silenceMs: number
  readonly #epochs: OwnEpochs

  /** @param options.epochs of this process so far; it is told further ones */
  constructor(
    tables: Tables,
    options: { readonly writer: string; readonly silenceMs: number; readonly epochs: OwnEpochs },
  ) {
    this.#tables = tables
    this.#writer = options.writer
    this.#silenceMs = options.silenceMs
    this.#epochs = options.epochs
  }

  async deliver(session: Session, delivery: Delivery, bounds: Bounds): Promise<Delivered> {
    const { writing, position, complete } = delivery
    await lockInventory(session, writing, this.#tables)
    const held = await heldBy(session, this.#tables, writing)
    this.#came(writing, position.epoch)
    const standing = judge(held, delivery, this.#judging(writing))
    if (standing.may !== 'write') return this.#stopped(session, delivery, held as Held, standing) // without one it may
    const isNew = standing.isTakeover
    if (held && !isNew && isHeld(held, delivery)) {
      await noteSeen(session, this.#tables, writing, held)
      return { receipt: { position: held.position, ...NOTHING } }
    }
    const mayDelete = complete && standing.mayDelete
    const differs = new Differences(session, this.#tables, delivery)
    const isSame = held && !isNew && complete && held.complete && !held.removed && isEqual(held, delivery)
    const { changes } = delivery
    // Where not all that is gone was deleted, differences between two snapshots do not tell of it.
    const isBase = held && changes && !isNew && comparePositions(held.position, changes.base) === 0
    const isOfUse = isBase && !held.removed && (held.complete || !complete)
    const source = isSame ? none() : isOfUse ? differs.told(changes, mayDelete) : differs.found(mayDelete)
    const { isCut, ...applied } = await apply({ session, tables: this.#tables, writing, position, bounds }, source)
    const mayStay = held && !mayDelete && !isCut && differs.kept > 0
    const kept = mayStay ? await this.#kept(session, delivery) : 0
    const waits = complete && kept > 0
    const { others } = standing
    // Until all of it is there, it is as if it had not come.
    const reached = isCut ? { ...position, sequence: position.sequence - 1n } : position
    await noteWritten(
      session,
      this.#tables,
      { ...delivery, position: reached },
      {
        writer: this.#writer,
        complete: complete && !waits && !isCut,
        removed: false,
        isTakeover: isNew,
        others,
      },
    )
    return {
      receipt: { position: reached, ...applied, ...(isCut && { isPartial: true }), ...(kept > 0 && { kept }) },
      ...(held && waits && { waits: waitsFor(others, held.now, this.#silenceMs) }),
    }
  }

  async remove(session: Session, writing: Writing, position: Position, bounds: Bounds): Promise<Removed> {
    await lockInventory(session, writing, this.#tables)
    const held = await heldBy(session, this.#tables, writing)
    if (!held || held.removed) return {}
    this.#came(writing, position.epoch)
    const standing = judge(held, { writing, position }, this.#judging(writing))
    if (standing.may === 'nothing') return {}
    const tables = this.#tables
    const none = { writing, position, generation: 0, checksum: '', itemCount: 0 }
    const { isTakeover, others } = standing
    const writer = { writer: this.#writer, isTakeover, others }
    if (standing.may === 'conflict' || !standing.mayDelete) {
      await noteWritten(session, tables, none, { ...writer, complete: false, removed: false })
      if (standing.may === 'conflict') return { conflict: standing.sentence }
      return { waits: waitsFor(others, held.now, this.#silenceMs) }
    }
    const claims = new Differences(session, tables, { ...none, rows: () => [] })
    const { isCut } = await apply({ session, tables, writing, position, bounds }, claims.found(true))
    await noteWritten(session, tables, none, { ...writer, complete: !isCut, removed: !isCut })
    if (isCut) return { isCut }
    await forgetRemoved(session, tables, writing.cluster)
    return {}
  }

  async alive(session: Session, writing: Writing, epoch: bigint): Promise<string | undefined> {
    await lockInventory(session, writing, this.#tables)
    const held = await heldBy(session, this.#tables, writing)
    if (!held || held.removed) return undefined
    this.#came(writing, epoch)
    const who = this.#judging(writing)
    await noteAlive(session, this.#tables, { writing, epoch }, held, who)
    return conflictOf(held, { writing, epoch }, who)
  }

  get leave(): TableWriter['leave'] {
    if (this.#epochs.size === 0) return undefined
    return async (session) => {
      for (const [cluster, epochs] of this.#epochs) await noteLeft(session, this.#tables, cluster, [...epochs])
    }
  }

  async #stopped(
    session: Session,
    delivery: Delivery,
    held: Held,
    standing: Exclude<Standing, { may: 'write' }>,
  ): Promise<Delivered> {
    const { writing, position } = delivery
    const receipt = { position: held.position, ...NOTHING }
    if (standing.may === 'conflict') {
      const { isTakeover, others, sentence } = standing
      // Nothing of the snapshot is there; that its writer is, others hear.
      const none = { ...delivery, position: { ...position, sequence: position.sequence - 1n } }
      const now = { writer: this.#writer, complete: false, removed: false, isTakeover, others }
      if (isTakeover) await noteWritten(session, this.#tables, none, now)
      else await noteSeen(session, this.#tables, writing, held)
      return { receipt: { ...receipt, conflict: sentence } }
    }
    const { sentence: conflict } = standing
    if (conflict === undefined) return { receipt }
    await noteRival(session, this.#tables, { writing, epoch: position.epoch }, held, {
      writer: this.#writer,
      silenceMs: this.#silenceMs,
    })
    return { receipt: { ...receipt, conflict } }
  }

  /** Rows that the inventory has there beyond those of the snapshot, all of which are there now. */
  async #kept(session: Session, { writing, itemCount }: Delivery): Promise<number> {
    const { cluster, namespace, inventory } = writing
    const { rows } = await session.query<{ held: number }>(
      `select count(*)::int4 as held from ${this.#tables.claims}
where cluster = $1 and inventory_namespace = $2 and inventory_name = $3`,
      [cluster, namespace, inventory],
    )
    return Math.max(0, (rows[0]?.held ?? 0) - itemCount)
  }

  #judging({ cluster }: Writing): Judging {
    const ownEpochs = this.#epochs.get(cluster) ?? new Set()
    return { writer: this.#writer, silenceMs: this.#silenceMs, ownEpochs }
  }

  #came({ cluster }: Writing, epoch: bigint): void {
    if (this.#epochs.get(cluster)?.has(epoch)) return
    this.#epochs.set(cluster, new Set(this.#epochs.get(cluster)).add(epoch))
  }
}

const NOTHING = { written: 0, removed: 0, bytes: 0 }

const isHeld = (held: Held, { position, complete }: Delivery): boolean =>
  comparePositions(held.position, position) === 0 && (held.complete || !complete)

const isEqual = (held: Held, { checksum, itemCount }: Delivery): boolean =>
  held.checksum === checksum && held.itemCount === itemCount

/** What is gone waits for the silence of all others; none of them is a second writer. */
function waitsFor(others: readonly Other[], now: number, silenceMs: number): Waits {
  const last = others.reduce((a, b) => (b.heardAt > a.heardAt ? b : a), { writer: '', heardAt: now - silenceMs })
  return {
    message: `what is gone is deleted once ${last.writer}, which wrote before, was silent for ${Math.ceil(silenceMs / 1000)} s: it might be another cluster under the same name`,
    // The silence must be over by the clock of the server, which is not ours.
    ms: Math.max(0, last.heardAt + silenceMs - now) + SURELY_MS,
  }
}

async function* none(): AsyncGenerator<Change> {
  // No difference.
}

/** What differs between a snapshot and what the inventory holds. */
class Differences {
  readonly #session: Session
  readonly #tables: Tables
  readonly #delivery: Pick<Delivery, 'writing' | 'rows'>
  /** rows that are gone and were not deleted; of told ones some may never have been there */
  kept = 0

  constructor(session: Session, tables: Tables, delivery: Pick<Delivery, 'writing' | 'rows'>) {
    this.#session = session
    this.#tables = tables
    this.#delivery = delivery
  }

  /** As the delivery says itself. */
  async *told(
    { put, removed, kept = 0 }: NonNullable<Delivery['changes']>,
    mayDelete: boolean,
  ): AsyncGenerator<Change> {
    for (const row of put) yield { key: row, put: { row, hash: hashOf(row) } }
    this.kept += kept
    if (mayDelete) for (const key of removed) yield { key }
    else this.kept += removed.length
  }

  /** By comparing every row with the hash that its claim has. */
  async *found(mayDelete: boolean): AsyncGenerator<Change> {
    const held = await this.#hashes()
    let seen = 0
    for (const row of this.#delivery.rows()) {
      const key = keyText(row)
      const hash = hashOf(row)
      if (held.get(key) !== hash) yield { key: row, put: { row, hash } }
      held.delete(key)
      if (++seen % TURN === 0) await setImmediate()
    }
    if (mayDelete) for (const key of held.keys()) yield { key: keyOfText(key) }
    else this.kept += held.size
  }

  async #hashes(): Promise<Map<string, string>> {
    const { cluster, namespace, inventory } = this.#delivery.writing
    const { rows } = await this.#session.query<{ key: string; hash: string }>(
      `select concat_ws(e'\\n', target_namespace, target_name, namespace, name, uid) as key, encode(attributes_hash, 'base64') as hash
from ${this.#tables.claims} where cluster = $1 and inventory_namespace = $2 and inventory_name = $3`,
      [cluster, namespace, inventory],
    )
    return new Map(rows.map(({ key, hash }) => [key, hash]))
  }
}
