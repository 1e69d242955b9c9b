import { FleetError } from './errors.ts'

/** What stored data says of its form: a data folder, an agent's buffer, a Redis. */
export interface StoredFormat {
  /** rises with every change of form; 0: written by a version that kept no number */
  readonly format: number
  /** a program that knows no form from this one on would misread it */
  readonly readableFrom: number
  /** the version that wrote last, such as 0.1.0+1a2b3c4d5e6f */
  readonly program: string
}

/** What to do with stored data whose form was looked at. */
export interface FormatDecision {
  /** our own form is to be written */
  readonly writes: boolean
  readonly level?: 'info' | 'warn'
  /** for the log */
  readonly sentence?: string
}

/** The program is too old for what is stored, or cannot tell. */
export class StoredFormatError extends FleetError {
  override readonly name = 'StoredFormatError'
  readonly code = 'format_not_readable'
  readonly retryable = false
}

const GUIDE = 'docs/guide/upgrade.md'

/**
 * The one rule for all that is stored: nothing there is begun, an older form is upgraded, a newer one is refused where this
 * program would misread it, and warned of where it would only ignore some of it.
 * @param found `none`: there is nothing; `unreadable`: there is something that says no form we understand
 * @param where for people: `the data folder /data`
 * @throws StoredFormatError
 */
export function decideFormat(
  found: StoredFormat | 'none' | 'unreadable',
  ours: StoredFormat,
  where: string,
): FormatDecision {
  if (found === 'none') return { writes: true }
  if (found === 'unreadable') throw new StoredFormatError(unreadable(where, ours))
  if (found.readableFrom > ours.format) throw new StoredFormatError(tooNew(found, ours, where))
  if (found.format > ours.format || isOlder(ours.program, found.program)) {
    return { writes: found.format === ours.format, level: 'warn', sentence: downgrade(found, ours, where) }
  }
  if (found.format < ours.format) {
    const sentence = `${where} is upgraded from format ${found.format} (${found.program}) to ${ours.format} (${ours.program})`
    // There is no way back without a copy: said at every level of the log that people use.
    return { writes: true, level: 'warn', sentence }
  }
  if (found.program === ours.program) return { writes: false }
  const sentence = `${where} was last written by ${found.program}, and is by ${ours.program} from now on; format ${ours.format}`
  return { writes: true, level: 'info', sentence }
}

/** @returns undefined where it is none that we understand */
export function parseFormat(text: string): StoredFormat | undefined {
  try {
    const { format, readableFrom, program } = JSON.parse(text) as Partial<StoredFormat>
    const isFormat = isCount(format) && isCount(readableFrom) && typeof program === 'string'
    return isFormat ? { format, readableFrom, program: program.slice(0, 100) } : undefined
  } catch {
    return undefined
  }
}

/** What data is taken for that was there before numbers were kept. */
export const UNNUMBERED: StoredFormat = { format: 0, readableFrom: 0, program: 'a version that kept no number' }

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0

const tooNew = (found: StoredFormat, ours: StoredFormat, where: string): string =>
  `${where} is in format ${found.format}, written by ${found.program}; this is ${ours.program}, which knows formats up to ${ours.format} and would misread it. ` +
  `Start ${found.program} or a later version again, or put a copy back that ${ours.program} wrote (${GUIDE})`

const unreadable = (where: string, ours: StoredFormat): string =>
  `what says the format of ${where} cannot be read, so ${ours.program} does not touch it. Put it back from a copy; ` +
  `where no later version than ${ours.program} ever wrote there, remove it and start again (${GUIDE})`

const downgrade = (found: StoredFormat, ours: StoredFormat, where: string): string =>
  `${where} was written by ${found.program} (format ${found.format}), and this is the older ${ours.program} (format ${ours.format}): ` +
  `what it does not know it ignores, rules of access policies first; check them before you let people in (${GUIDE})`

/** By the three numbers alone: builds of one version have no order. A program without a version is not compared. */
function isOlder(one: string, other: string): boolean {
  const [a, b] = [numbersOf(one), numbersOf(other)]
  if (!a || !b) return false
  const at = a.findIndex((number, i) => number !== b[i])
  return at >= 0 && Number(a[at]) < Number(b[at])
}

function numbersOf(program: string): readonly number[] | undefined {
  const numbers = /^(\d+)\.(\d+)\.(\d+)/.exec(program)?.slice(1).map(Number)
  return numbers?.some((number) => number > 0) ? numbers : undefined
}
