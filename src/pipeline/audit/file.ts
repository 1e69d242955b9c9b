import type { BigIntStats } from 'node:fs'
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises'
import { type ChainHead, type ChainNote, lineText, link, START } from './chain.ts'
import { type KeptHead, keepHead, readHead } from './head.ts'
import { filesOf, firstIn, headIn, readText, rotatedName } from './lines.ts'
import type { AuditEntry } from './types.ts'

interface FileSettings {
  readonly maxBytes: number
  readonly keepFiles?: number
  readonly key?: Buffer
  /** hears of each loss that is found, as the trail has it */
  readonly found?: (loss: AuditLoss) => void
}

/** What may be found of the file when it is opened. */
export interface AuditLoss extends ChainNote {
  readonly kind: 'cut' | 'unsigned' | 'recovered'
}

/** Beyond it something takes each new file away at once. */
const MAX_TRIES = 3

/**
 * An append-only file of chained lines. When it is full it is renamed to `<path>.<first sequence>` and the chain goes on in a
 * new one. `<path>.head` names the last line written and the first of the file, so that lines that somebody takes away are
 * missed, and files that were rotated are not.
 */
export class AuditFile implements AsyncDisposable {
  readonly #path: string
  readonly #settings: FileSettings
  #file: FileHandle
  #inode: Inode
  #bytes: number
  #head: ChainHead
  /** sequence of the first line of the file being written */
  #first: number
  /** losses that were found, until their line is in the file */
  #unsaid: readonly AuditLoss[] = []

  private constructor(path: string, settings: FileSettings, { file, inode, bytes, head, first }: Opened) {
    this.#path = path
    this.#settings = settings
    this.#file = file
    this.#inode = inode
    this.#bytes = bytes
    this.#head = head
    this.#first = first
  }

  /**
   * Goes on where the file ends. A line that a crash left half is cut off; that, lines that are missing, and a head that is
   * missing or not signed are said in the next line, where `audit verify` finds them.
   */
  static async open(path: string, settings: FileSettings): Promise<AuditFile> {
    const opened = await openAt(path, settings, await readHead(path, settings.key))
    const file = new AuditFile(path, settings, opened)
    if (opened.notes.length > 0) await file.#write(opened.notes)
    else await file.#keepHead()
    return file
  }

  /**
   * Written and synced when it returns, in the file that the path leads to: where somebody took that away or cut it, the
   * trail says so and goes on at the path.
   */
  async append(entries: readonly (AuditEntry | ChainNote)[]): Promise<void> {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      if (await this.#isDisplaced()) await this.#reopen()
      await this.#write([...this.#unsaid, ...entries])
      if (await this.#isDisplaced()) continue
      this.#unsaid = []
      return
    }
    throw new Error(`${this.#path} is taken away again and again while it is written`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      if (await this.#isDisplaced()) await this.append([])
    } catch {
      // The head beside the file still knows: the next start says it.
    }
    await this.#file.close()
  }

  /** Whether the path leads to another file than the open one, or that is shorter than what was written. */
  async #isDisplaced(): Promise<boolean> {
    const there = await stat(this.#path, { bigint: true }).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined
      throw error
    })
    return there?.ino !== this.#inode.ino || there.dev !== this.#inode.dev || there.size < this.#bytes
  }

  async #reopen(): Promise<void> {
    const said = { ...this.#head, first: this.#first, signed: true }
    const { file, inode, bytes, head, first, notes } = await openAt(this.#path, this.#settings, said)
    const former = this.#file
    this.#file = file
    this.#inode = inode
    this.#bytes = bytes
    this.#head = head
    this.#first = first
    this.#unsaid = [...this.#unsaid, ...notes]
    await former.close()
  }

  async #write(entries: readonly (AuditEntry | ChainNote)[]): Promise<void> {
    if (entries.length === 0) return
    if (this.#bytes >= this.#settings.maxBytes) await this.#rotate()
    let head = this.#head
    let text = ''
    for (const entry of entries) {
      const line = link(head, entry, this.#settings.key)
      text += lineText(line)
      head = line
    }
    const bytes = Buffer.from(text)
    const before = this.#bytes
    try {
      await this.#file.appendFile(bytes)
      await this.#file.datasync()
    } catch (error) {
      // Whatever part of it is there goes, so that the next line follows the last whole one.
      await this.#file.truncate(before).catch(() => undefined)
      throw error
    }
    this.#bytes = before + bytes.length
    this.#head = { seq: head.seq, hash: head.hash }
    // The lines themselves are kept: an older head verifies as well, and the next append writes a newer one.
    await this.#keepHead().catch(() => undefined)
  }

  #keepHead(): Promise<void> {
    return keepHead(this.#path, this.#head, this.#first, this.#settings.key)
  }

  async #rotate(): Promise<void> {
    const full = this.#file
    await rename(this.#path, rotatedName(this.#path, this.#first))
    this.#file = await open(this.#path, 'a', 0o600)
    this.#inode = await this.#file.stat({ bigint: true })
    await full.close()
    this.#bytes = 0
    this.#first = this.#head.seq + 1
    // Lines of files that are removed are missing where the head still says that the file being written has them.
    await this.#keepHead()
      .then(() => this.#removeOld())
      .catch(() => undefined)
  }

  async #removeOld(): Promise<void> {
    const { keepFiles } = this.#settings
    if (keepFiles === undefined) return
    const full = (await filesOf(this.#path)).filter((file) => file !== this.#path)
    for (const file of full.slice(0, Math.max(0, full.length - keepFiles))) await rm(file, { force: true })
  }
}

type Inode = Pick<BigIntStats, 'ino' | 'dev'>

/** A file to append to, and where the chain stands in it. */
interface Opened {
  readonly file: FileHandle
  readonly inode: Inode
  readonly bytes: number
  /** the last whole line there is; where there is none, the last that is known of */
  readonly head: ChainHead
  readonly first: number
}

/** @param said what is known to have been written */
async function openAt(
  path: string,
  settings: FileSettings,
  said: KeptHead | undefined,
): Promise<Opened & { readonly notes: readonly AuditLoss[] }> {
  const rotated = (await filesOf(path)).filter((file) => file !== path)
  const text = await readText(path)
  const end = text.lastIndexOf('\n') + 1
  const whole = text.slice(0, end)
  const [older] = rotated.slice(-1)
  const last = headIn(lastLineOf(whole)) ?? headIn(older === undefined ? '' : lastLineOf(await readText(older)))
  // Where every file was taken away the head alone knows how far the trail went.
  const head = last ?? said ?? START
  const wasRotated = said !== undefined && rotated.includes(rotatedName(path, said.first))
  const missing = said ? missingOf(said, { last, whole, wasRotated }) : 0
  const notes = notesOf({ missing, signed: said?.signed === true, head, settings, torn: end < text.length })
  const bytes = Buffer.byteLength(whole)
  const file = await open(path, 'a', 0o600)
  try {
    await file.chmod(0o600)
    if (end < text.length) await file.truncate(bytes)
    const inode = await file.stat({ bigint: true })
    for (const note of notes) settings.found?.(note)
    return { file, inode, bytes, head, first: firstIn(text) ?? head.seq + 1, notes }
  } catch (error) {
    await file.close()
    throw error
  }
}

/**
 * How many lines were written that are not there: at the end, at the beginning of the file being written, or, where another
 * stands in its place, the last one. Older files may have been removed, as those beyond AUDIT_FILE_KEEP are.
 */
function missingOf(
  said: KeptHead,
  {
    last,
    whole,
    wasRotated,
  }: { readonly last: ChainHead | undefined; readonly whole: string; readonly wasRotated: boolean },
): number {
  if (!last) return Math.max(0, said.seq + 1 - said.first)
  const atEnd = Math.max(0, said.seq - last.seq)
  const atStart = wasRotated ? 0 : Math.max(0, (firstIn(whole) ?? 0) - said.first)
  const there = hashAt(whole, said.seq)
  return atEnd + atStart || (there !== undefined && there !== said.hash ? 1 : 0)
}

/** Of the line with that sequence, if it is there. */
function hashAt(text: string, seq: number): string | undefined {
  const at = `\n${text}`.indexOf(`\n{"seq":${seq},`)
  return at < 0 ? undefined : headIn(text.slice(at, text.indexOf('\n', at)))?.hash
}

interface Found {
  /** lines that were written and are not there */
  readonly missing: number
  readonly signed: boolean
  /** the last whole line there is */
  readonly head: ChainHead
  readonly settings: FileSettings
  readonly torn: boolean
}

/** What the trail must say of how it was found. */
function notesOf({ missing, signed, head, settings, torn }: Found): AuditLoss[] {
  const note = (kind: AuditLoss['kind'], count: number): AuditLoss => ({ at: Date.now(), kind, count })
  const notes: AuditLoss[] = []
  if (torn) notes.push(note('recovered', 1))
  if (missing > 0) notes.push(note('cut', missing))
  if (settings.key && head.seq > 0 && !signed) notes.push(note('unsigned', 0))
  return notes
}

const lastLineOf = (text: string): string => text.trimEnd().split('\n').at(-1) ?? ''
