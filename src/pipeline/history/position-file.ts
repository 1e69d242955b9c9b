import { createHash, randomUUID } from 'node:crypto'
import { mkdir, open, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'

/** How far a store elsewhere is safe, kept beside us. */
export interface Noted {
  /** names what we wrote there, so that we know it again */
  readonly store: string
  /** of the last record that is surely on its disk */
  readonly safe: number
  /** records up to here may have been sent */
  readonly sent: number
  /** of ours that is surely on its disk, the newest; absent: none is. A store without it is an older copy */
  readonly mark?: Mark
}

/** A sample that says that all up to a position was sent when it was. */
export interface Mark {
  /** ms */
  readonly at: number
  readonly position: number
}

const FILE = 'position.json'

/** What was noted; `damaged` where that cannot be read or does not agree with its checksum; undefined where nothing was. */
export async function readNoted(directory: string): Promise<Noted | 'damaged' | undefined> {
  let text: string
  try {
    text = await readFile(join(directory, FILE), 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  try {
    const { sum, ...noted } = JSON.parse(text) as Partial<Noted> & { readonly sum?: unknown }
    const { store, safe, sent, mark = { at: 0, position: -1 } } = noted
    const isPosition = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= -1
    const isShaped = typeof store === 'string' && store !== '' && [safe, sent, mark.at, mark.position].every(isPosition)
    // Builds before the checksum wrote exactly three fields.
    const isWhole = sum === undefined ? Object.keys(noted).length === 3 : sum === sumOf(noted as Noted)
    return isShaped && isWhole ? (noted as Noted) : 'damaged'
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return 'damaged'
    throw error
  }
}

const sumOf = ({ store, safe, sent, mark }: Noted): string =>
  createHash('sha256')
    .update(JSON.stringify([store, safe, sent, mark?.at, mark?.position]))
    .digest('hex')
    .slice(0, 16)

/** Replaces what was noted, all or nothing, through power loss as well. */
export async function writeNoted(directory: string, noted: Noted): Promise<void> {
  const temporary = join(directory, `${FILE}.new`)
  const file = await open(temporary, 'w')
  try {
    await file.writeFile(JSON.stringify({ ...noted, sum: sumOf(noted) }))
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(temporary, join(directory, FILE))
  const folder = await open(directory, 'r')
  try {
    await folder.sync() // the new name as well
  } finally {
    await folder.close()
  }
}

export const newNoted = (): Noted => ({ store: randomUUID(), safe: -1, sent: -1 })

/** How far a VictoriaMetrics driver with this directory is safe; -1: it was never used, or that cannot be read. Nobody may have it open. */
export async function notedPosition(directory: string): Promise<number> {
  const noted = await readNoted(directory)
  return noted === undefined || noted === 'damaged' ? -1 : noted.safe
}

/**
 * Makes a directory for a VictoriaMetrics driver of another log, whose records up to `until` may have been sent under another
 * position before: they are verified there, so that no sample is kept twice.
 */
export async function beginNoted(directory: string, until: number): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 })
  await writeNoted(directory, { ...newNoted(), sent: until })
}
