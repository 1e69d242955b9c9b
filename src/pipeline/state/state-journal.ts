import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type Log, type Logger, openLog } from '#runtime'

/** One value that changed, of a cluster; without a field: all of the cluster goes. */
export type FieldChange = readonly [cluster: string, field?: string, text?: string | null]

/** What holds of all clusters at one moment. */
export interface Moment {
  /** in the hub's log; -1 before the first */
  readonly position: number
  readonly version: number | undefined
}

/** One record of one moment; a moment counts when all its records are there. */
interface Part extends Moment {
  readonly n: number
  /** number of the moment before it; 0: it holds everything */
  readonly after: number
  readonly part: readonly [index: number, of: number | null]
  readonly changes: readonly FieldChange[]
}

type Fields = Map<string, Map<string, string>>

const CONSUMER = 'snapshot'
/** of a record, about */
const PART_BYTES = 2 ** 20
/** Written since everything was written, at least, before it is again; and at least so many times its size. */
const ANEW_AFTER_BYTES = 8 * 2 ** 20
const ANEW_FACTOR = 2
/** Nothing here waits for a reader, so only the disk bounds it. */
const UNBOUNDED = 2 ** 50

/**
 * State on disk: each write is one moment of it, as what differs from the one before; now and then everything is written anew
 * and what came before goes. Every record has a checksum and names the moment before its own, so that what was altered or is
 * missing is seen, and nothing of it served.
 */
export class StateJournal implements AsyncDisposable {
  readonly #log: Log
  readonly #logger: Logger
  #last: number
  #next: number
  #anewBytes = 0
  #sinceBytes = 0

  private constructor(log: Log, logger: Logger, { last, next }: { last: number; next: number }) {
    this.#log = log
    this.#logger = logger
    this.#last = last
    this.#next = next
  }

  /**
   * Opens what a former process left. State is a cache: one that is damaged is put aside as `<directory>.damaged`, and begins
   * empty, at no position.
   * @throws DirectoryLockedError while another process holds the directory
   */
  static async open(
    directory: string,
    logger: Logger,
  ): Promise<{ journal: StateJournal; moment: Moment; fields: Fields }> {
    let log = await open(directory)
    try {
      await removeFormer(directory, logger)
      let found = await readAll(log)
      if (found === 'damaged') {
        await log[Symbol.asyncDispose]()
        const keptAs = `${directory}.damaged`
        await rm(keptAs, { recursive: true, force: true })
        await rename(directory, keptAs)
        logger.error(
          { directory, keptAs },
          "the stored state is damaged: it is put aside and comes anew from the hub's log and the next rounds",
        )
        log = await open(directory)
        found = EMPTY()
      }
      const journal = new StateJournal(log, logger, found)
      journal.#sinceBytes = found.bytes
      return { journal, moment: found.moment, fields: found.fields }
    } catch (error) {
      await log[Symbol.asyncDispose]()
      throw error
    }
  }

  /** Whether so much was written since everything was that it is to be written anew. */
  isLong(): boolean {
    return this.#sinceBytes >= Math.max(ANEW_AFTER_BYTES, ANEW_FACTOR * this.#anewBytes)
  }

  /** Resolves when the moment is on disk. @throws LogFullError, LogWriteError: then it does not count */
  async write(moment: Moment, changes: Iterable<FieldChange>): Promise<void> {
    this.#sinceBytes += await this.#append(moment, this.#last, changes)
  }

  /** The same for a moment that does without all former ones: these go. */
  async writeAnew(moment: Moment, changes: Iterable<FieldChange>): Promise<void> {
    const before = this.#log.lastIndex()
    this.#anewBytes = await this.#append(moment, 0, changes)
    this.#sinceBytes = 0
    await this.#log.setCheckpoint(CONSUMER, before).catch((error: unknown) => {
      this.#logger.warn({ error }, 'former state on disk could not be removed: trying again later')
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#log[Symbol.asyncDispose]()
  }

  async #append(moment: Moment, after: number, changes: Iterable<FieldChange>): Promise<number> {
    const n = this.#next++
    let bytes = 0
    let index = 0
    const put = async (some: readonly FieldChange[], isLast: boolean) => {
      const part: Part = { n, after, ...moment, part: [index++, isLast ? index : null], changes: some }
      const payload = Buffer.from(JSON.stringify(part))
      bytes += payload.length
      await this.#log.append(payload)
    }
    let some: FieldChange[] = []
    let size = 0
    for (const change of changes) {
      if (size >= PART_BYTES) {
        await put(some, false)
        some = []
        size = 0
      }
      some.push(change)
      size += 50 + (change[2]?.length ?? 0)
    }
    await put(some, true)
    this.#last = n
    return bytes
  }
}

const open = (directory: string): Promise<Log> =>
  openLog({
    directory,
    segmentBytes: 4 * 2 ** 20,
    retainBytes: 0,
    retainMs: 0,
    maxBytes: UNBOUNDED,
    maxRecordBytes: 256 * 2 ** 20,
  })

const EMPTY = () => ({
  last: 0,
  next: 1,
  bytes: 0,
  moment: { position: -1, version: undefined } as Moment,
  fields: new Map() as Fields,
})

async function readAll(log: Log): Promise<ReturnType<typeof EMPTY> | 'damaged'> {
  log.checkpoint(CONSUMER)
  const found = EMPTY()
  let isBroken = log.stats().damagedPlaces > 0
  let parts: Part[] = []
  for await (const { payload } of log.read(log.firstIndex())) {
    found.bytes += payload.length
    const part = parsePart(payload)
    if (!part) continue // seen by what names it
    found.next = Math.max(found.next, part.n + 1)
    if (part.n !== parts[0]?.n) parts = []
    parts.push(part)
    const [, of] = part.part
    // One that is not whole was not answered, or is missed by the next.
    if (of === null || parts.length !== of || parts.some(({ part }, i) => part[0] !== i)) continue
    if (part.after === 0) {
      found.fields.clear()
      isBroken = false
    } else if (part.after !== found.last) {
      // What came before everything was written anew may be half gone: the next whole moment decides.
      isBroken = true
      continue
    }
    for (const { changes } of parts) for (const change of changes) applyChange(found.fields, change)
    found.last = part.n
    found.moment = { position: part.position, version: part.version }
  }
  return isBroken ? 'damaged' : found
}

function applyChange(fields: Fields, [cluster, field, text]: FieldChange): void {
  if (field === undefined) {
    fields.delete(cluster)
    return
  }
  const own = fields.get(cluster) ?? new Map<string, string>()
  fields.set(cluster, own)
  if (typeof text === 'string') own.set(field, text)
  else own.delete(field)
}

function parsePart(payload: Buffer): Part | undefined {
  try {
    const part = JSON.parse(payload.toString()) as Partial<Part> | null
    const numbers = [part?.n, part?.after, part?.position, part?.version]
    return numbers.every(Number.isSafeInteger) && Array.isArray(part?.part) && Array.isArray(part.changes)
      ? (part as Part)
      : undefined
  } catch {
    return undefined
  }
}

/** A former version kept state in a file that can end the process when it is damaged: it is not opened any more. */
async function removeFormer(directory: string, logger: Logger): Promise<void> {
  for (const name of ['state.mdb', 'state.mdb-lock']) {
    const path = join(directory, name)
    const isRemoved = await rm(path).then(
      () => true,
      () => false,
    )
    if (isRemoved && name === 'state.mdb')
      logger.info(
        { path },
        "state of a former version is not taken over: it comes from the hub's log and the next rounds",
      )
  }
}
