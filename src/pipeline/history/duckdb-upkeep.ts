import type { DuckDBConnection } from '@duckdb/node-api'
import { type Family, families, ROLL_MS, tableOf } from './duckdb-tables.ts'

/** Rolled at a time: bounds what the database has to hold, and how long writers wait. */
const ROLL_SLICE_MS = 6 * 3_600_000
/** Words that name nothing any more are looked for above this many. */
const MANY_WORDS = 50_000

export interface UpkeepLimits {
  readonly rawMs: number
  readonly retentionMs: number
}

type Transaction = (work: () => Promise<void>) => Promise<void>

/** What moves samples through their stages. Each step is a transaction of its own; a crash between two loses nothing. */
export class Upkeep {
  readonly #connection: DuckDBConnection
  readonly #transaction: Transaction
  readonly #limits: UpkeepLimits

  constructor(connection: DuckDBConnection, transaction: Transaction, limits: UpkeepLimits) {
    this.#connection = connection
    this.#transaction = transaction
    this.#limits = limits
  }

  /** Moves what is recent behind what is raw, sorted by series: a chart of one cluster then reads few blocks. */
  async sort(family: Family): Promise<void> {
    const recent = tableOf(family, 'recent')
    await this.#transaction(async () => {
      const order = [...family.series, 't'].join(', ')
      await this.#connection.run(`INSERT INTO ${tableOf(family, 'raw')} BY NAME FROM ${recent} ORDER BY ${order}`)
      await this.#connection.run(`DELETE FROM ${recent}`)
    })
  }

  /** Rolls up and removes what is due. @returns whether anything was done */
  async expire(now: number): Promise<boolean> {
    const { rawMs, retentionMs } = this.#limits
    const gone = Math.floor(now - retentionMs)
    const due = Math.floor((now - Math.min(rawMs, retentionMs)) / ROLL_MS) * ROLL_MS
    let worked = false
    for (const family of families) {
      // Before the rolling: what is too old to keep is not rolled up first.
      for (const stage of ['recent', 'raw', 'rolled'] as const) {
        worked = (await this.#remove(`DELETE FROM ${tableOf(family, stage)} WHERE t < ${gone}`)) || worked
      }
      worked = (await this.#roll(family, due)) || worked
    }
    return (await this.#remove(`DELETE FROM losses WHERE l < ${gone}`)) || worked
  }

  async #remove(sql: string): Promise<boolean> {
    let changed = 0
    await this.#transaction(async () => {
      changed = (await this.#connection.run(sql)).rowsChanged
    })
    return changed > 0
  }

  async #roll(family: Family, due: number): Promise<boolean> {
    let worked = false
    for (const stage of ['recent', 'raw'] as const) {
      const table = tableOf(family, stage)
      for (;;) {
        const sql = `SELECT min(t)::DOUBLE FROM ${table} WHERE t < ${due}`
        const oldest = (await this.#connection.runAndReadAll(sql)).getColumns()[0]?.[0]
        if (typeof oldest !== 'number') break
        const end = Math.min(due, (Math.floor(oldest / ROLL_SLICE_MS) + 1) * ROLL_SLICE_MS)
        await this.#transaction(() => this.#rollSlice(family, table, end))
        worked = true
      }
    }
    return worked
  }

  async #rollSlice(family: Family, table: string, end: number): Promise<void> {
    const by = [...family.series, ...(family.hasWay ? ['way'] : [])]
    const values = [...family.columns.values()].map((column) => `avg(${column}) AS ${column}`)
    const facts = ['count(*) AS n', ...(family.hasWay ? ['min(t) AS f', 'max(t) AS l'] : [])]
    const bucket = `t // ${ROLL_MS} * ${ROLL_MS}`
    await this.#connection.run(`
      INSERT INTO ${tableOf(family, 'rolled')} BY NAME
      SELECT ${[...by, `${bucket} AS t`, ...facts, ...values].join(', ')} FROM ${table} WHERE t < ${end}
      GROUP BY ${[...by, bucket].join(', ')} ORDER BY ${[...family.series, bucket].join(', ')}`)
    await this.#connection.run(`DELETE FROM ${table} WHERE t < ${end}`)
  }

  /** Forgets words that no row uses. @returns whether any was */
  async forgetWords(known: number): Promise<boolean> {
    if (known < MANY_WORDS) return false
    const used = families.flatMap((family) =>
      (['recent', 'raw', 'rolled'] as const).flatMap((stage) =>
        family.series.map((column) => `SELECT ${column} FROM ${tableOf(family, stage)}`),
      ),
    )
    const all = [...used, 'SELECT cluster FROM losses'].join(' UNION ')
    return this.#remove(`DELETE FROM words WHERE id NOT IN (${all})`)
  }
}
