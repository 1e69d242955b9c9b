/**
 * Rows in PostgreSQL: a table of resources under (cluster, namespace, name, uid), the claims of inventories on them, and who writes.
 *
 *   delivery → lock of the inventory → older than what the writers table says? → what differs, by hash → claims → resources → writers
 *
 * All in one transaction, unless that takes long: then what was written until then is committed, and the inventory counts as
 * incomplete until deliveries that follow have written the rest.
 */

import {
  type DatabaseDeclaration,
  type Delivery,
  type Driver,
  type Position,
  type Probe,
  type Receipt,
  type Sink,
  type SinkContext,
  SinkError,
  type SinkPreview,
  type Writing,
} from '../sink.ts'
import type { Bounds } from './apply.ts'
import { Database, type Session } from './connection.ts'
import { codeOf, isOutOfTime, sinkErrorOf } from './errors.ts'
import { type Tables, tablesOf } from './identifiers.ts'
import { OriginalTable } from './original-table.ts'
import { type OwnEpochs, OwnTables, type Removed, type TableWriter } from './own-tables.ts'
import { definitions, shapeOf } from './schema.ts'

/** How long a former writer is waited for before what it left is deleted: three times as long as it is silent where nothing changes. */
const SILENCE_MS = 90_000
/** until the tables were looked at, and made */
const OPEN_MS = 30_000
/** A transaction that writes for so long ends with what it has. */
const PIECE_MS = 20_000
/** Rows of one statement; where statements run out of time, ever fewer. */
const MAX_ROWS = 1000
const MIN_ROWS = 10
/** until goodbye is said, or is not */
const LEAVE_MS = 5000

/** Opens a sink of type postgres. It connects when it is first used. */
export const openPostgres: Driver<'database'> = (declaration, context) => new PostgresSink(declaration, context)

export class PostgresSink implements Sink {
  readonly family = 'database'
  readonly #database: Database
  readonly #tables: Tables
  readonly #mode: 'ensure' | 'existing'
  readonly #writer: string
  readonly #silenceMs: number
  readonly #pieceMs: number
  /** of this process, by cluster: what it says goodbye for, also where its tables were looked at again meanwhile */
  readonly #epochs: OwnEpochs = new Map()
  #rows = MAX_ROWS
  #tableWriter: Promise<TableWriter> | undefined

  /** @param times instead of those above, ms; `transactionMs`: default 90 s */
  constructor(
    declaration: DatabaseDeclaration,
    context: SinkContext,
    times: {
      readonly silenceMs?: number | undefined
      readonly pieceMs?: number | undefined
      readonly transactionMs?: number | undefined
    } = {},
  ) {
    const { postgres, provisioning } = declaration.spec
    if (!postgres) throw new SinkError('terminal', 'spec.postgres is missing: say which table rows go to')
    if (declaration.cluster === '')
      throw new SinkError('terminal', 'the cluster has no name: set CLUSTER_NAME or spec.cluster')
    this.#database = new Database(declaration, context, times.transactionMs)
    this.#tables = tablesOf(postgres.schema ?? 'public', postgres.table)
    this.#mode = provisioning?.mode ?? 'ensure'
    this.#writer = context.writer
    this.#silenceMs = times.silenceMs ?? SILENCE_MS
    this.#pieceMs = times.pieceMs ?? PIECE_MS
  }

  async probe(signal: AbortSignal): Promise<Probe> {
    const { warnings } = this.#database
    try {
      const denied = await this.#database.session(async (session) => {
        const shape = await this.#shape(session)
        return this.#denied(session, shape.kind === 'original')
      }, signal)
      return denied === undefined
        ? { verified: true, message: 'the tables can be written', warnings }
        : { verified: false, message: denied, warnings }
    } catch (error) {
      signal.throwIfAborted()
      const { message, errorClass } = sinkErrorOf(error)
      return { verified: false, message, warnings, ...(errorClass === 'transient' && { isPassing: true }) }
    }
  }

  async deliver(delivery: Delivery, signal: AbortSignal): Promise<Receipt> {
    const { receipt, waits, held } = await this.#run(
      (writer, session) => writer.deliver(session, delivery, this.#bounds),
      signal,
    )
    held?.()
    return waits ? { ...receipt, waits } : receipt
  }

  alive(writing: Writing, epoch: bigint, signal: AbortSignal): Promise<string | undefined> {
    return this.#run(async (writer, session) => writer.alive?.(session, writing, epoch), signal)
  }

  async remove(writing: Writing, position: Position, signal: AbortSignal): Promise<void> {
    let removed: Removed
    do removed = await this.#run((writer, session) => writer.remove(session, writing, position, this.#bounds), signal)
    while (removed.isCut)
    const { waits, conflict } = removed
    if (conflict !== undefined) throw new SinkError('transient', conflict)
    if (waits) throw new SinkError('transient', waits.message, { retryAfterMs: waits.ms })
  }

  preview(): SinkPreview {
    return { provisioningMode: this.#mode, postgres: { expectedDDL: `${definitions(this.#tables).join(';\n\n')};\n` } }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Where the database is away, who comes next waits a little; nothing is lost.
    await this.#leave(AbortSignal.timeout(LEAVE_MS)).catch(() => undefined)
    await this.#database[Symbol.asyncDispose]()
  }

  async #leave(signal: AbortSignal): Promise<void> {
    const writer = await this.#tableWriter?.catch(() => undefined)
    if (this.#epochs.size === 0) return
    const { leave } = writer ?? (await this.#newWriter(signal))
    if (leave) await this.#database.session(leave, signal)
  }

  get #bounds(): Bounds {
    return { rows: this.#rows, ms: this.#pieceMs }
  }

  async #run<T>(work: (writer: TableWriter, session: Session) => Promise<T>, signal: AbortSignal): Promise<T> {
    // For whoever asks while it is made: so no one's signal ends it.
    this.#tableWriter ??= this.#newWriter(AbortSignal.timeout(OPEN_MS))
    const opening = this.#tableWriter
    const forget = () => {
      if (this.#tableWriter === opening) this.#tableWriter = undefined
    }
    // One that could not be made, for whatever reason, is made anew by who comes next.
    opening.catch(forget)
    try {
      const writer = await opening
      return await this.#database.transaction((session) => work(writer, session), signal)
    } catch (error) {
      if (isOutOfTime(error)) this.#rows = Math.max(MIN_ROWS, Math.floor(this.#rows / 2))
      // What was made of the tables meanwhile is looked at again.
      const isOfTables =
        !(error instanceof SinkError) || error.errorClass === 'terminal' || codeOf(error.cause) === '42P01'
      if (isOfTables) forget()
      throw error
    }
  }

  async #newWriter(signal: AbortSignal): Promise<TableWriter> {
    const shape = await this.#database
      .session((session) => this.#shape(session), signal)
      .catch((error) => Promise.reject(sinkErrorOf(error)))
    return shape.kind === 'original'
      ? new OriginalTable(this.#tables, shape.key)
      : new OwnTables(this.#tables, { writer: this.#writer, silenceMs: this.#silenceMs, epochs: this.#epochs })
  }

  async #shape(session: Session) {
    const shape = await shapeOf(session, this.#tables, this.#mode)
    if (shape.kind !== 'missing') return shape
    throw new SinkError(
      'terminal',
      `spec.provisioning.mode is ${this.#mode}, and there is no table ${shape.names.join(', ')} in the schema ${this.#tables.schema}: make it (status.preview shows how), or set the mode to ensure`,
    )
  }

  /** Why rows cannot be written; undefined where they can. */
  async #denied(session: Session, isOriginal: boolean): Promise<string | undefined> {
    const { resources, claims, writers } = this.#tables
    const { rows } = await session.query<{ readonly: string; may: boolean }>(
      `select current_setting('transaction_read_only') as readonly,
  bool_and(has_table_privilege(t, 'select') and has_table_privilege(t, 'insert') and has_table_privilege(t, 'update') and has_table_privilege(t, 'delete')) as may
from unnest($1::text[]) t`,
      [isOriginal ? [resources] : [resources, claims, writers]],
    )
    if (rows[0]?.readonly === 'on') return 'the database is read-only now: it is a standby, or under maintenance'
    if (!rows[0]?.may)
      return `the user may not write the tables: grant select, insert, update and delete on ${resources}${isOriginal ? '' : ` and on the tables that begin like it`}`
    return undefined
  }
}
