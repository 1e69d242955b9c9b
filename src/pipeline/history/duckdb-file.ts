import { rename, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'
import { StoreUnavailableError } from '#model'
import type { Logger } from '#runtime'
import { createTables } from './duckdb-tables.ts'
import { Words } from './duckdb-words.ts'
import { type Layout, layoutOf } from './duckdb-writer.ts'

const FILE = 'history.duckdb'
export const READERS = 2

/** An open file with its connections and what is known of it. */
export interface OpenFile {
  readonly writer: DuckDBConnection
  /** not in use */
  readonly readers: DuckDBConnection[]
  readonly words: Words
  readonly layout: Layout
  position: number
  close(): void
}

export interface FileOptions {
  readonly directory: string
  readonly memoryBytes: number
  readonly threads: number
  readonly logger: Logger
}

/**
 * Opens the file; what cannot be read is put aside: first only the log beside it (the file then has an older position),
 * then the file itself (a new one has none).
 * @throws StoreUnavailableError where the reason is not the content
 */
export async function openFile(options: FileOptions): Promise<OpenFile> {
  for (const aside of [['.wal'], ['', '.wal'], undefined]) {
    try {
      return await open(options)
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      if (!aside || isOfTheMachine(reason))
        throw new StoreUnavailableError('embedded history', reason, { cause: error })
      await setAside(options, aside, reason)
    }
  }
  throw new StoreUnavailableError('embedded history', 'it could not be opened')
}

const isOfTheMachine = (reason: string): boolean =>
  /permission denied|no space|read-only|too many open|out of memory|temporarily|input\/output error|could not set lock/i.test(
    reason,
  )

/** Gives the file, or what stands beside it, another name; nothing of it is deleted. */
export async function setAside(
  { directory, logger }: FileOptions,
  endings: readonly string[] = ['', '.wal'],
  reason = 'its content is damaged',
): Promise<void> {
  const mark = new Date().toISOString().replace(/[:.]/g, '-')
  for (const ending of endings) {
    const from = join(directory, FILE + ending)
    const to = join(directory, `history-damaged-${mark}.duckdb${ending}`)
    const isThere = await stat(from).then(
      () => true,
      () => false,
    )
    if (!isThere) continue
    await rename(from, to)
    logger.error(
      { file: from, keptAs: to, reason },
      'history could not be read: it is put aside, and what the log still has is taken again',
    )
  }
}

/** As the database reads it. */
export const limitOf = (bytes: number): string => `${Math.ceil(bytes / 2 ** 20)}MiB`

async function open({ directory, memoryBytes, threads }: FileOptions): Promise<OpenFile> {
  const database = await DuckDBInstance.create(join(directory, FILE), {
    memory_limit: limitOf(memoryBytes),
    threads: String(threads),
    temp_directory: join(directory, 'spill'),
    // Nothing is fetched, whatever a statement says.
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
  })
  const open: DuckDBConnection[] = []
  const connect = async (): Promise<DuckDBConnection> => {
    const connection = await database.connect()
    open.push(connection)
    return connection
  }
  const close = (): void => {
    if (open.length === 0) return
    for (const connection of open.splice(0)) connection.closeSync()
    database.closeSync()
  }
  try {
    const writer = await connect()
    await createTables(writer)
    const words = new Words()
    await words.load(writer)
    const sql = "SELECT value::DOUBLE FROM meta WHERE name = 'position'"
    const position = Number((await writer.runAndReadAll(sql)).getColumns()[0]?.[0] ?? -1)
    const layout = await layoutOf(writer)
    const readers: DuckDBConnection[] = []
    for (let i = 0; i < READERS; i++) readers.push(await connect())
    return { writer, readers, words, layout, position, close }
  } catch (error) {
    close()
    throw error
  }
}
