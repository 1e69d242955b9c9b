import type { ApiObject } from './types.ts'

/** One write: what changed, in one step. A snapshot is a row of them that begins anew. */
export interface JournalRecord {
  /** rises with every record that is tried */
  readonly n: number
  /** number of the record before it that was kept; 0: it is the first. One that failed is named by none */
  readonly after: number
  /** resourceVersion of the store after it */
  readonly rv: number
  readonly changes: readonly (readonly [key: string, object: ApiObject | null])[]
  /** of a snapshot: which of how many */
  readonly part?: readonly [index: number, of: number]
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0

/** @returns undefined for what is no record, whatever it is */
export function parseRecord(payload: Buffer): JournalRecord | undefined {
  let record: Partial<JournalRecord> | null
  try {
    record = JSON.parse(payload.toString('utf8')) as Partial<JournalRecord> | null
  } catch {
    return undefined
  }
  const { n, after, rv, changes } = record ?? {}
  return isCount(n) && isCount(after) && after < n && isCount(rv) && Array.isArray(changes)
    ? (record as JournalRecord)
    : undefined
}

/**
 * The records that count, oldest first, from the last whole snapshot or from the beginning on; and the numbers of those that
 * are missing among them. A snapshot that a crash cut off at the end is none: what it would have replaced is all there.
 */
export function chainOf(found: ReadonlyMap<number, JournalRecord>): {
  readonly records: readonly JournalRecord[]
  readonly lost: readonly number[]
} {
  const numbers = [...found.keys()].sort((a, b) => b - a)
  const records: JournalRecord[] = []
  const lost: number[] = []
  let wanted = numbers[0] ?? 0
  for (const n of numbers) {
    // Between a record and the one it follows stand those that failed.
    if (n > wanted) continue
    if (n < wanted) lost.push(wanted)
    const record = found.get(n)
    if (!record) continue
    records.push(record)
    if (beginsSnapshot(records)) {
      wanted = 0
      break
    }
    wanted = record.after
  }
  if (wanted > 0) lost.push(wanted)
  const cutOff = lost.length === 0 ? cutOffParts(records) : 0
  return { records: records.slice(cutOff).reverse(), lost }
}

/** @param records newest first. @returns how many of the newest are the first parts of a snapshot that has no end */
function cutOffParts(records: readonly JournalRecord[]): number {
  const [index, of] = records[0]?.part ?? []
  if (index === undefined || of === undefined || index === of - 1) return 0
  const isRow = records.slice(0, index + 1).every(({ part }, i) => part?.[0] === index - i)
  return isRow && records.length > index ? index + 1 : 0
}

/** @param records newest first: the last of them begins a snapshot all of whose parts follow it */
function beginsSnapshot(records: readonly JournalRecord[]): boolean {
  const [index, of] = records.at(-1)?.part ?? []
  if (index !== 0 || of === undefined || records.length < of) return false
  return Array.from({ length: of }, (_, i) => records.at(-1 - i)?.part).every((part, i) => part?.[0] === i)
}

/** Whether a copy alone would do: it holds every record that counts up to the end. */
export function isWhole(records: ReadonlyMap<number, JournalRecord>, end: number): boolean {
  const own = chainOf(records)
  return own.lost.length === 0 && (own.records.at(-1)?.n ?? 0) === end
}
