import { type FileHandle, open, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { type ChainHead, type ChainNote, follow, lineText, link, START } from './chain.ts'
import type { AuditEntry, AuditVerdict } from './types.ts'

/**
 * An append-only file of chained lines. When it is full it is renamed to `<path>.<first sequence>` and the chain goes on in a
 * new one. `<path>.head` names the last line written, so that lines cut off at the end are missed.
 */
export class AuditFile implements AsyncDisposable {
  readonly #path: string
  readonly #maxBytes: number
  readonly #key: Buffer | undefined
  #file: FileHandle
  #bytes: number
  #head: ChainHead
  /** sequence of the first line of the file being written */
  #first: number

  private constructor(
    path: string,
    maxBytes: number,
    key: Buffer | undefined,
    file: FileHandle,
    bytes: number,
    head: ChainHead,
    first: number,
  ) {
    this.#path = path
    this.#maxBytes = maxBytes
    this.#key = key
    this.#file = file
    this.#bytes = bytes
    this.#head = head
    this.#first = first
  }

  /** Goes on where the file ends; a line that a crash left half is cut off and said so in the next. */
  static async open(path: string, { maxBytes, key }: { maxBytes: number; key?: Buffer }): Promise<AuditFile> {
    const text = await readText(path)
    const end = text.lastIndexOf('\n') + 1
    const last = text.slice(0, end).trimEnd().split('\n').at(-1) ?? ''
    const head = last === '' ? await headBefore(path) : headIn(last)
    const file = await open(path, 'a', 0o600)
    if (end < text.length) await file.truncate(Buffer.byteLength(text.slice(0, end)))
    const bytes = Buffer.byteLength(text.slice(0, end))
    const before = head ?? START
    const opened = new AuditFile(path, maxBytes, key, file, bytes, before, firstIn(text) ?? before.seq + 1)
    if (end < text.length) await opened.append([{ at: Date.now(), kind: 'recovered', count: 1 }])
    return opened
  }

  /** Written and synced when it returns. */
  async append(entries: readonly (AuditEntry | ChainNote)[]): Promise<void> {
    if (this.#bytes >= this.#maxBytes) await this.#rotate()
    let head = this.#head
    let text = ''
    for (const entry of entries) {
      const line = link(head, entry, this.#key)
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
    await this.#keepHead()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close()
  }

  async #keepHead(): Promise<void> {
    const text = `${JSON.stringify({ ...this.#head, first: this.#first })}\n`
    try {
      await writeFile(`${this.#path}.head.new`, text, { mode: 0o600 })
      await rename(`${this.#path}.head.new`, `${this.#path}.head`)
    } catch {
      // The lines themselves are kept: an older head verifies as well, and the next append writes a newer one.
    }
  }

  async #rotate(): Promise<void> {
    const full = this.#file
    await rename(this.#path, `${this.#path}.${String(this.#first).padStart(12, '0')}`)
    this.#file = await open(this.#path, 'a', 0o600)
    await full.close()
    this.#bytes = 0
    this.#first = this.#head.seq + 1
  }
}

/** Files of one trail, oldest first. */
async function filesOf(path: string): Promise<string[]> {
  const name = basename(path)
  const names = await readdir(dirname(path)).catch((): string[] => [])
  const older = names.filter((one) => one.startsWith(`${name}.`) && /^\d{12}$/.test(one.slice(name.length + 1))).sort()
  return [...older.map((one) => join(dirname(path), one)), ...(names.includes(name) ? [join(dirname(path), name)] : [])]
}

/**
 * Follows the chain through all files of a trail, oldest first. Files that retention took away at the beginning are no fault;
 * anything missing in between or at the end is.
 * @param path of the file being written
 */
export async function verifyAudit(path: string, { key }: { key?: Buffer } = {}): Promise<AuditVerdict> {
  const files = await filesOf(path)
  if (files.length === 0)
    return { ok: false, entries: 0, fault: { file: path, line: 0, why: 'there is no such audit file' } }
  let head: ChainHead | undefined
  let entries = 0
  for (const file of files) {
    const lines = (await readText(file)).split('\n')
    const torn = lines.pop()
    const first = firstIn(lines[0] ?? '')
    const named = file === path ? firstNamed(await readText(`${path}.head`)) : Number(file.slice(-12))
    if (first !== undefined && named !== undefined && first !== named)
      return {
        ok: false,
        entries,
        fault: { file, line: 1, why: `the file began with line ${named}, which is missing` },
      }
    for (const [index, text] of lines.entries()) {
      const next = follow(head, text, key)
      if ('why' in next) return { ok: false, entries, fault: { file, line: index + 1, why: next.why } }
      head = next
      entries += 1
    }
    if (torn) return { ok: false, entries, fault: { file, line: lines.length + 1, why: 'the last line is not whole' } }
  }
  const said = headIn(await readText(`${path}.head`))
  if (said && (!head || said.seq > head.seq || (said.seq === head.seq && said.hash !== head.hash)))
    return {
      ok: false,
      entries,
      fault: {
        file: path,
        line: entries + 1,
        why: `the trail went on to line ${said.seq}, which is missing: lines were cut off at the end`,
      },
    }
  return { ok: true, entries }
}

const firstIn = (text: string): number | undefined => {
  const match = /^\{"seq":(\d{1,15}),/.exec(text.slice(0, 40))
  return match ? Number(match[1]) : undefined
}

function firstNamed(text: string): number | undefined {
  const match = /"first":(\d{1,15})/.exec(text)
  return match ? Number(match[1]) : undefined
}

function headIn(text: string): ChainHead | undefined {
  try {
    const { seq, hash } = JSON.parse(text) as Partial<ChainHead>
    return typeof seq === 'number' && typeof hash === 'string' ? { seq, hash } : undefined
  } catch {
    return undefined
  }
}

/** The last line of the newest file before this one; or what the head says, where all files were taken away. */
async function headBefore(path: string): Promise<ChainHead | undefined> {
  const older = (await filesOf(path)).filter((file) => file !== path).at(-1)
  const line = older ? (await readText(older)).trimEnd().split('\n').at(-1) : undefined
  return (line ? headIn(line) : undefined) ?? headIn(await readText(`${path}.head`))
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  }
}
