import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { type ChainHead, type ChainNote, lineText, link, START } from './chain.ts'
import { keepHead, readHead } from './head.ts'
import { filesOf, firstIn, headIn, readText, rotatedName } from './lines.ts'
import type { AuditEntry } from './types.ts'

interface FileSettings {
  readonly maxBytes: number
  readonly keepFiles?: number
  readonly key?: Buffer
}

/**
 * An append-only file of chained lines. When it is full it is renamed to `<path>.<first sequence>` and the chain goes on in a
 * new one. `<path>.head` names the last line written, so that lines cut off at the end are missed.
 */
export class AuditFile implements AsyncDisposable {
  readonly #path: string
  readonly #settings: FileSettings
  #file: FileHandle
  #bytes: number
  #head: ChainHead
  /** sequence of the first line of the file being written */
  #first: number

  private constructor(path: string, settings: FileSettings, file: FileHandle, at: Place) {
    this.#path = path
    this.#settings = settings
    this.#file = file
    this.#bytes = at.bytes
    this.#head = at.head
    this.#first = at.first
  }

  /**
   * Goes on where the file ends. A line that a crash left half is cut off; that, lines missing at the end, and a head that is
   * missing or not signed are said in the next line, where `audit verify` finds them.
   */
  static async open(path: string, settings: FileSettings): Promise<AuditFile> {
    const older = (await filesOf(path)).filter((file) => file !== path).at(-1)
    const isThere = (await filesOf(path)).includes(path)
    const text = await readText(path)
    const end = text.lastIndexOf('\n') + 1
    const whole = text.slice(0, end)
    const lastLine = lastLineOf(whole)
    const said = await readHead(path, settings.key)
    // Where every file was taken away the head alone knows how far the trail went.
    const seen = headIn(lastLine || (older ? lastLineOf(await readText(older)) : ''))
    const head = seen ?? (older === undefined ? said : undefined) ?? START
    const emptied = isThere && lastLine === '' && older === undefined && said ? said.seq : 0
    const missing = emptied || Math.max(0, (said?.seq ?? 0) - head.seq)
    const notes = notesOf({ missing, signed: said?.signed === true, head, settings, torn: end < text.length })
    const bytes = Buffer.byteLength(whole)
    const file = await open(path, 'a', 0o600)
    await file.chmod(0o600)
    if (end < text.length) await file.truncate(bytes)
    const opened = new AuditFile(path, settings, file, { bytes, head, first: firstIn(text) ?? head.seq + 1 })
    if (notes.length > 0) await opened.append(notes)
    else await opened.#keepHead()
    return opened
  }

  /** Written and synced when it returns. */
  async append(entries: readonly (AuditEntry | ChainNote)[]): Promise<void> {
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

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close()
  }

  #keepHead(): Promise<void> {
    return keepHead(this.#path, this.#head, this.#first, this.#settings.key)
  }

  async #rotate(): Promise<void> {
    const full = this.#file
    await rename(this.#path, rotatedName(this.#path, this.#first))
    this.#file = await open(this.#path, 'a', 0o600)
    await full.close()
    this.#bytes = 0
    this.#first = this.#head.seq + 1
    await this.#removeOld().catch(() => undefined)
  }

  async #removeOld(): Promise<void> {
    const { keepFiles } = this.#settings
    if (keepFiles === undefined) return
    const full = (await filesOf(this.#path)).filter((file) => file !== this.#path)
    for (const file of full.slice(0, Math.max(0, full.length - keepFiles))) await rm(file, { force: true })
  }
}

interface Place {
  readonly bytes: number
  readonly head: ChainHead
  readonly first: number
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
function notesOf({ missing, signed, head, settings, torn }: Found): ChainNote[] {
  const note = (kind: ChainNote['kind'], count: number): ChainNote => ({ at: Date.now(), kind, count })
  const notes: ChainNote[] = []
  if (torn) notes.push(note('recovered', 1))
  if (missing > 0) notes.push(note('cut', missing))
  if (settings.key && head.seq > 0 && !signed) notes.push(note('unsigned', 0))
  return notes
}

const lastLineOf = (text: string): string => text.trimEnd().split('\n').at(-1) ?? ''
