import { randomUUID } from 'node:crypto'
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
}

const FILE = 'position.json'

/** What was noted; undefined where nothing was, or it cannot be read. */
export async function readNoted(directory: string): Promise<Noted | undefined> {
  try {
    const { store, safe, sent } = JSON.parse(await readFile(join(directory, FILE), 'utf8')) as Partial<Noted>
    const isPosition = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= -1
    if (typeof store === 'string' && store !== '' && isPosition(safe) && isPosition(sent)) return { store, safe, sent }
    return undefined
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT' || error instanceof SyntaxError) return undefined
    throw error
  }
}

/** Replaces what was noted, all or nothing, through power loss as well. */
export async function writeNoted(directory: string, noted: Noted): Promise<void> {
  const temporary = join(directory, `${FILE}.new`)
  const file = await open(temporary, 'w')
  try {
    await file.writeFile(JSON.stringify(noted))
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

/** How far a VictoriaMetrics driver with this directory is safe; -1: it was never used. Nobody may have it open. */
export const notedPosition = async (directory: string): Promise<number> => (await readNoted(directory))?.safe ?? -1

/**
 * Makes a directory for a VictoriaMetrics driver of another log, whose records up to `until` may have been sent under another
 * position before: they are verified there, so that no sample is kept twice.
 */
export async function beginNoted(directory: string, until: number): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 })
  await writeNoted(directory, { ...newNoted(), sent: until })
}
