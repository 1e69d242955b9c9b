import { createReadStream, existsSync, mkdirSync } from 'node:fs'
import { open, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import type { Clock } from '#model'
import { type Log, type Logger, openLog } from '#runtime'
import type { Entity, NewPoints, UsageHistory } from './history.ts'

/*
 * History over a restart: a whole copy now and then, and a log of the points that came after it.
 *
 *   every minute: new points → log      every hour: all series → copy.new → copy, which says where the log goes on
 */

const pack = promisify(gzip)
const unpack = promisify(gunzip)

const SAVE_MS = 60_000
const COPY_MS = 3_600_000
const CONSUMER = 'copy'
const FORMAT = 1
/** Points in one record of the log. */
const RECORD_POINTS = 20_000
/** Written at once, characters; others have their turn in between. */
const PIECE = 2 ** 18

export interface HistoryFilesOptions {
  readonly directory: string
  readonly history: UsageHistory
  readonly maxBytes: number
  readonly logger: Logger
  readonly clock: Clock
}

/** Keeps a history in a folder of its own, which one process has open. */
export class HistoryFiles implements AsyncDisposable {
  readonly #options: HistoryFilesOptions
  readonly #log: Log
  #savedAt: number
  #copiedAt: number

  private constructor(options: HistoryFilesOptions, log: Log) {
    this.#options = options
    this.#log = log
    this.#savedAt = options.clock.now()
    this.#copiedAt = this.#savedAt
  }

  /** Opens the folder and gives the history what is in it. What is damaged is left out and told. @throws DirectoryLockedError */
  static async open(options: HistoryFilesOptions, signal?: AbortSignal): Promise<HistoryFiles> {
    const { directory, logger, history, maxBytes } = options
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    const log = await openLog({
      directory: join(directory, 'points'),
      maxBytes,
      retainBytes: 0,
      whenFull: 'drop-oldest',
      onDamage: (damage) => logger.warn(damage, 'points of the usage history are damaged and left out'),
    })
    try {
      const after = await restoreCopy(join(directory, 'copy'), history, logger)
      for await (const { payload } of log.read(after + 1, signal)) await replay(payload, history, logger)
      return new HistoryFiles(options, log)
    } catch (error) {
      await log[Symbol.asyncDispose]()
      throw error
    }
  }

  /** Writes what is due; called every now and then. A failure is told, and costs the points of a minute. */
  async tick(): Promise<void> {
    const now = this.#options.clock.now()
    if (Math.abs(now - this.#savedAt) < SAVE_MS) return
    this.#savedAt = now
    try {
      await this.save()
      if (Math.abs(now - this.#copiedAt) < COPY_MS) return
      await this.copy()
      this.#copiedAt = now
    } catch (error) {
      this.#options.logger.warn({ err: error }, 'the usage history could not be saved; it is tried again in a minute')
    }
  }

  async save(): Promise<void> {
    const points = this.#options.history.takeUnsaved()
    for (let from = 0; from < points.length; from += RECORD_POINTS)
      await this.#log.append(await pack(JSON.stringify(points.slice(from, from + RECORD_POINTS).map(written))))
  }

  /** All series anew; what is older in the log is not needed any more. */
  async copy(): Promise<void> {
    const { directory, history } = this.#options
    const at = this.#log.lastIndex()
    const path = join(directory, 'copy')
    const file = await open(`${path}.new`, 'w', 0o600)
    try {
      await file.write(`${JSON.stringify({ format: FORMAT, log: this.#log.id, at })}\n`)
      let text = ''
      for (const { cluster, entity, name, tiers } of history.dump()) {
        text += `${JSON.stringify([cluster, entity, name, tiers.map(packed)])}\n`
        if (text.length < PIECE) continue
        await file.write(text)
        text = ''
      }
      await file.write(text)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(`${path}.new`, path)
    await this.#log.setCheckpoint(CONSUMER, at)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.save().catch((error: unknown) =>
      this.#options.logger.warn({ err: error }, 'the last points of the usage history could not be saved'),
    )
    await this.#log[Symbol.asyncDispose]()
  }
}

const written = ({ cluster, entity, name, numbers }: NewPoints) => [cluster, entity, name, numbers]

const isRow = (row: unknown): row is [string, Entity, string, unknown] =>
  Array.isArray(row) &&
  typeof row[0] === 'string' &&
  ['cluster', 'node', 'pod'].includes(row[1]) &&
  typeof row[2] === 'string'

const packed = (numbers: readonly number[]): string => Buffer.from(Float64Array.from(numbers).buffer).toString('base64')

function unpacked(text: string): readonly number[] {
  const bytes = new Uint8Array(Buffer.from(text, 'base64'))
  return [...new Float64Array(bytes.buffer, 0, Math.floor(bytes.length / 8))]
}

const areNumbers = (list: unknown): list is number[] =>
  Array.isArray(list) && list.every((number) => Number.isFinite(number))

/** @returns how far the log is in it; -1 where there is none */
async function restoreCopy(path: string, history: UsageHistory, logger: Logger): Promise<number> {
  if (!existsSync(path)) return -1
  let head: { readonly format?: unknown; readonly at?: unknown } | undefined
  let damaged = 0
  for await (const line of createInterface({ input: createReadStream(path) })) {
    const value = parsed(line)
    if (head === undefined) {
      head = typeof value === 'object' && value !== null ? value : {}
      if (head.format !== FORMAT) break
    } else if (isRow(value) && Array.isArray(value[3]) && value[3].every((tier) => typeof tier === 'string')) {
      history.restore(value[0], value[1], value[2], value[3].map(unpacked))
    } else damaged++
  }
  if (damaged > 0 || head?.format !== FORMAT)
    logger.warn({ path, damaged }, 'the copy of the usage history is damaged; what can be read of it is used')
  return typeof head?.at === 'number' ? head.at : -1
}

async function replay(payload: Buffer, history: UsageHistory, logger: Logger): Promise<void> {
  const rows = parsed((await unpack(payload)).toString())
  if (!Array.isArray(rows)) return logger.warn({}, 'a record of the usage history cannot be read and is left out')
  for (const row of rows)
    if (isRow(row) && areNumbers(row[3]))
      history.replay({ cluster: row[0], entity: row[1], name: row[2], numbers: row[3] })
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // damaged: who asks counts it
  }
}
