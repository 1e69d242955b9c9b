import { mkdir, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { decideFormat, parseFormat, type StoredFormat, UNNUMBERED } from '#model'
import type { Logger } from './logger.ts'
import { replaceFile } from './replace-file.ts'
import { crc32c } from './segment-log/crc32c.ts'

/** Kept twice, so that no single harmed file leaves a folder whose form is unknown. */
const COPIES = ['format', 'format.copy']
/** Beside a copy while it is written; that of a folder's first start tells that no program was there before. */
const [FIRST, NEXT] = ['.first', '.new']
/** Made where a volume is mounted, a process just starts, or an agent asks to join (`identity`): no data yet. */
const NO_DATA: ReadonlySet<string> = new Set(['lost+found', 'lock', 'identity', ...COPIES])

/**
 * Looks at the form of a folder before anything in it is opened: an upgrade is logged, a downgrade warned of or refused. A new
 * folder gets its form at once, before anything else: what an aborted start leaves there is not of an earlier version.
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
  const isNew = isUnsaid && (await isBegun(directory))
  const state = found ?? (isNew ? 'none' : isUnsaid ? UNNUMBERED : 'unreadable')
  const { writes, level, sentence } = decideFormat(state, ours, `the ${what} ${directory}`)
  if (level && sentence) logger[level]({ directory }, sentence)
  // A harmed copy is put right by the other one.
  const harmed = found ? COPIES.filter((_, at) => readText(texts[at] ?? '') === undefined) : []
  if (harmed.length > 0)
    logger.warn(
      { directory, harmed },
      `a copy of the format of the ${what} was harmed or gone, and is made anew: look at the disk`,
    )
  const text = writeText(writes ? ours : (found ?? ours))
  const write = async () => {
    if (texts.every((one) => one === text)) return
    try {
      await mkdir(directory, { recursive: true, mode: 0o700 })
      for (const name of COPIES) await replaceFile(join(directory, name), text, isNew ? FIRST : NEXT)
    } catch (error) {
      logger.warn({ directory, error }, `the format of the ${what} could not be written: it is at the next start`)
    }
  }
  if (isNew) await write()
  return write
}

/** Nothing is there but what a first start began. */
async function isBegun(directory: string): Promise<boolean> {
  const names: readonly string[] = await readdir(directory).catch(() => [])
  return names.includes(`${COPIES[0]}${FIRST}`) || names.every((name) => NO_DATA.has(name))
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
