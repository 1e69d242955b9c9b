import type { Log } from '#runtime'
import { isSealed, SealBrokenError, type Sealer, UnknownKeyError, wrappingKeyOf } from '#sealing'
import { type JournalRecord, parseRecord } from './journal-chain.ts'

/** One place for all records: each holds its number and the objects' names inside, so that none passes for another. */
const PLACE = { kind: 'Journal', name: 'objects' }

/** As it lies on the disk: sealed as a whole, or in the clear where there is no sealer. */
export async function encodeRecord(record: JournalRecord, sealer: Sealer | undefined): Promise<Buffer> {
  const text = Buffer.from(JSON.stringify(record))
  return sealer ? sealer.seal(text, PLACE) : text
}

/** What can be read of one copy of the journal. */
export interface ReadCopy {
  /** those that are whole, by number */
  readonly records: Map<number, JournalRecord>
  /** numbers of those that lie in the clear */
  readonly clear: ReadonlySet<number>
  /** some are sealed with a former key */
  readonly hasFormer: boolean
  /** keys that are not at hand */
  readonly unknownKeys: ReadonlySet<string>
  /** records that are sealed with those */
  readonly unopened: number
}

export async function readCopy(log: Log, sealer: Sealer | undefined): Promise<ReadCopy> {
  const records = new Map<number, JournalRecord>()
  const clear = new Set<number>()
  const unknownKeys = new Set<string>()
  let [hasFormer, unopened] = [false, 0]
  for await (const { payload } of log.read(log.firstIndex())) {
    const text = await opened(payload, sealer)
    if (typeof text === 'string') {
      unknownKeys.add(text)
      unopened++
      continue
    }
    const record = text && parseRecord(text)
    if (!record) continue
    records.set(record.n, record)
    if (!isSealed(payload)) clear.add(record.n)
    else hasFormer ||= sealer?.isCurrent(payload) === false
  }
  return { records, clear, hasFormer, unknownKeys, unopened }
}

/** @returns undefined where it is not what was sealed: damaged; the id of a key that is not at hand */
async function opened(payload: Buffer, sealer: Sealer | undefined): Promise<Buffer | string | undefined> {
  if (!isSealed(payload)) return payload
  if (!sealer) return wrappingKeyOf(payload)
  try {
    return await sealer.open(payload, PLACE)
  } catch (error) {
    if (error instanceof UnknownKeyError) return error.keyId
    if (error instanceof SealBrokenError) return undefined
    throw error
  }
}

/**
 * Who can write into the folder and has no key could add records in the clear. Once some are sealed, only those from before count.
 * @returns how many do not
 */
export function dropForged(copies: readonly ReadCopy[]): number {
  let dropped = 0
  let firstSealed = Number.POSITIVE_INFINITY
  for (const { records, clear } of copies)
    for (const n of records.keys()) if (!clear.has(n)) firstSealed = Math.min(firstSealed, n)
  for (const { records, clear } of copies) for (const n of clear) if (n > firstSealed && records.delete(n)) dropped++
  return dropped
}
