import { randomUUID } from 'node:crypto'
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { beginNoted, notedPosition } from '#history'
import { divideLogs, type FormerLog } from '#ingest'
import { FleetError, seconds, systemClock } from '#model'
import type { RedisConnection } from '#redis'
import { DirectoryLockedError, type Log, type Logger, lockDirectory, openLog, retryForever } from '#runtime'
import { beginDivision, claimRedisFormat, forgetPositions, positionsIn } from '#state'

/** Folders of one owner. */
export interface OwnerFolders {
  readonly log: string
  /** of the VictoriaMetrics driver */
  readonly history: string
}

/** How the fleet is divided among the owners of one data folder. */
export interface Division {
  /** in the order of the owners */
  readonly owners: readonly OwnerFolders[]
}

export interface DivisionWanted {
  /** of this program */
  readonly version: string
  /** writes the form of the data folder, as who leads */
  readonly claimFolder: () => Promise<void>
  readonly dataDir: string
  readonly of: number
  readonly redis: RedisConnection
  /** numbers are kept over time; else what history lacks is nothing to carry over */
  readonly withHistory: boolean
  readonly logMaxBytes: number
  readonly logger: Logger
  readonly signal?: AbortSignal
}

class DivisionUnreadableError extends FleetError {
  override readonly name = 'DivisionUnreadableError'
  readonly code = 'division_unreadable'
  readonly retryable = false

  constructor(path: string, why: string) {
    super(
      `${path} says which process has which log, and cannot be used (${why}); put it back from a copy. The logs are in the folders beside it: nothing was removed.`,
    )
  }
}

interface Manifest {
  readonly of: number
  /** beside the manifest; '': the folder of the manifest itself, as it is where it was never divided */
  readonly folder: string
}

const MANIFEST = 'owners.json'
const PREFIX = 'owners-'
const UNDIVIDED: Manifest = { of: 1, folder: '' }
/** Owners of a manager that was killed have their logs a moment longer than it lived. */
const ENDING_MS = seconds(5)

/**
 * The folders of so many owners. Where the data folder is divided among another number, it is divided anew first: new logs
 * are written beside the old ones, Redis is told, and only then the manifest names the new ones. Whatever crashes before
 * leaves the former division, whole.
 * @throws StoreUnavailableError while Redis does not answer; StoredFormatError; DivisionUnreadableError; DirectoryLockedError
 */
export async function dividedAmong(wanted: DivisionWanted): Promise<Division> {
  await mkdir(wanted.dataDir, { recursive: true, mode: 0o700 })
  const until = systemClock.now() + ENDING_MS
  return retryForever(() => dividedNow(wanted), {
    clock: systemClock,
    signal: wanted.signal ?? new AbortController().signal,
    fromMs: 100,
    toMs: 500,
    retry: (error) => error instanceof DirectoryLockedError && systemClock.now() < until,
  })
}

async function dividedNow(wanted: DivisionWanted): Promise<Division> {
  const { dataDir, of, redis, version, logger } = wanted
  // One process at a time looks after the folder; what it finds may be half a division.
  await using _lock = await lockDirectory(join(dataDir, 'dividing'))
  await claimRedisFormat(redis, version, logger)
  await wanted.claimFolder()
  const former = await readManifest(dataDir)
  await removeLeftovers(dataDir, former)
  const manifest = former.of === of ? former : await divide(wanted, former)
  await beginDivision(redis, of)
  return { owners: foldersOf(dataDir, manifest) }
}

async function divide(wanted: DivisionWanted, former: Manifest): Promise<Manifest> {
  const { dataDir, of, redis, withHistory, logMaxBytes, logger, signal } = wanted
  const manifest: Manifest = { of, folder: `${PREFIX}${randomUUID().slice(0, 8)}` }
  logger.info({ from: former.of, to: of }, 'the clusters are divided anew among the processes')
  const opened: Log[] = []
  const logIn = async (directory: string, shares = 1) => {
    const log = await openLog({
      directory,
      maxBytes: logMaxBytes * shares,
      onDamage: (damage) => logger.error(damage, 'a place of the log is damaged and was left out'),
    })
    opened.push(log)
    return log
  }
  const [olds, news] = [foldersOf(dataDir, former), foldersOf(dataDir, manifest)]
  try {
    const logs = await inOrder(olds, ({ log }) => logIn(log))
    const positions = await positionsIn(
      redis,
      logs.map(({ id }) => id),
    )
    const from = await inOrder(logs, async (log, i): Promise<FormerLog> => {
      const history = withHistory ? await notedPosition(olds[i]?.history ?? '') : log.lastIndex()
      return { log, positions: { state: positions.get(log.id) ?? -1, history } }
    })
    // What several had not given to the stores yet may all go to one.
    const to = await inOrder(news, ({ log }) => logIn(log, former.of))
    const divided = await divideLogs({ from, to, logger, ...(signal && { signal }) })
    if (withHistory) for (const [i, log] of to.entries()) await beginNoted(news[i]?.history ?? '', log.lastIndex())
    // Redis knows the new division before it counts: a crash between the two leaves former logs, and begins again.
    await beginDivision(redis, of)
    await writeManifest(dataDir, manifest)
    logger.info({ from: former.of, to: of, ...divided }, 'every cluster has its owner')
    await forgetPositions(
      redis,
      to.map(({ id }) => id),
    )
  } finally {
    for (const log of opened) await log[Symbol.asyncDispose]()
  }
  await removeDivision(dataDir, former)
  return manifest
}

function foldersOf(dataDir: string, { of, folder }: Manifest): readonly OwnerFolders[] {
  if (folder === '') return [{ log: join(dataDir, 'log'), history: join(dataDir, 'history') }]
  return Array.from({ length: of }, (_, i) => {
    const own = join(dataDir, folder, String(i + 1))
    return { log: join(own, 'log'), history: join(own, 'history') }
  })
}

async function readManifest(dataDir: string): Promise<Manifest> {
  const path = join(dataDir, MANIFEST)
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return UNDIVIDED
    throw error
  }
  try {
    const { of, folder } = JSON.parse(text) as Partial<Manifest>
    if (Number.isInteger(of) && of !== undefined && of >= 1 && typeof folder === 'string' && isOurs(folder))
      return { of, folder }
  } catch {
    throw new DivisionUnreadableError(path, 'it is no JSON')
  }
  throw new DivisionUnreadableError(path, 'it names no folder of this hub')
}

const isOurs = (folder: string): boolean => /^owners-[0-9a-f]{8}$/.test(folder)

async function writeManifest(dataDir: string, manifest: Manifest): Promise<void> {
  const path = join(dataDir, MANIFEST)
  const file = await open(`${path}.new`, 'w', 0o600)
  try {
    await file.writeFile(`${JSON.stringify(manifest)}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(`${path}.new`, path)
  const folder = await open(dataDir, 'r')
  try {
    await folder.sync() // the new name as well
  } finally {
    await folder.close()
  }
}

/** What an attempt left that did not come to its end, or that had and could not remove what it replaced. */
async function removeLeftovers(dataDir: string, { folder }: Manifest): Promise<void> {
  for (const name of await readdir(dataDir)) {
    if (isOurs(name) && name !== folder) await rm(join(dataDir, name), { recursive: true, force: true })
  }
  if (folder !== '') await removeDivision(dataDir, UNDIVIDED)
}

async function removeDivision(dataDir: string, manifest: Manifest): Promise<void> {
  if (manifest.folder !== '') return rm(join(dataDir, manifest.folder), { recursive: true, force: true })
  for (const { log, history } of foldersOf(dataDir, manifest)) {
    await rm(log, { recursive: true, force: true })
    await rm(history, { recursive: true, force: true })
  }
}

async function inOrder<T, R>(items: readonly T[], action: (item: T, i: number) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  for (const [i, item] of items.entries()) results.push(await action(item, i))
  return results
}
