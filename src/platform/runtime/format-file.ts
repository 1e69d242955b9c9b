import { mkdir, open, readdir, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { decideFormat, parseFormat, type StoredFormat, UNNUMBERED } from '#model'
import type { Logger } from './logger.ts'
import { crc32c } from './segment-log/crc32c.ts'

/** Kept twice, so that no single harmed file leaves a folder whose form is unknown. */
const COPIES = ['format', 'format.copy']
/** Made by others where a volume is mounted or a process just starts: no data yet. */
const NO_DATA = new Set(['lost+found', 'lock', ...COPIES])

/**
 * Looks at the form of a folder before anything in it is opened: an upgrade is logged, a downgrade warned of or refused.
 * @param what for people: `data folder`
 * @returns writes our form; to be called once nobody else has the folder. What cannot be written, because the disk is full, is tried again
 * at the next start
 * @throws StoredFormatError where this program would misread what is there
 */
export async function claimFormat(
  directory: string,
  { what, ours, logger }: { readonly what: string; readonly ours: StoredFormat; readonly logger: Logger },
): Promise<() => Promise<void>> {
  const texts = await Promise.all(COPIES.map((name) => readFile(join(directory, name), 'utf8').catch(() => undefined)))
  const found = texts.map((text) => readText(text ?? '')).find((format) => format !== undefined)
  const isUnsaid = texts.every((text) => text === undefined)
  const unsaid = async () => ((await hasData(directory)) ? UNNUMBERED : 'none')
  const state = found ?? (isUnsaid ? await unsaid() : 'unreadable')
  const { writes, level, sentence } = decideFormat(state, ours, `the ${what} ${directory}`)
  if (level && sentence) logger[level]({ directory }, sentence)
  // A harmed copy is put right by the other one.
  const text = writeText(writes ? ours : (found ?? ours))
  return async () => {
    if (texts.every((one) => one === text)) return
    try {
      await mkdir(directory, { recursive: true, mode: 0o700 })
      for (const name of COPIES) await replace(directory, name, text)
    } catch (error) {
      logger.warn({ directory, error }, `the format of the ${what} could not be written: it is at the next start`)
    }
  }
}

async function hasData(directory: string): Promise<boolean> {
  const names = await readdir(directory).catch(() => [])
  return names.some((name) => !NO_DATA.has(name))
}

function writeText(format: StoredFormat): string {
  const text = JSON.stringify(format)
  return `${text}\n${checksum(text)}\n`
}

function readText(text: string): StoredFormat | undefined {
  const [line = '', sum] = text.split('\n')
  return sum === checksum(line) ? parseFormat(line) : undefined
}

const checksum = (text: string): string => crc32c(Buffer.from(text)).toString(16)

async function replace(directory: string, name: string, text: string): Promise<void> {
  const path = join(directory, name)
  const file = await open(`${path}.new`, 'w', 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(`${path}.new`, path)
}
