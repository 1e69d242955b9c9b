import { closeRedis, pipelined, type RedisConnection, redisClient } from '#redis'
import type { ChainNote } from './chain.ts'
import { filesOf, readText } from './lines.ts'
import type { AuditEntry } from './types.ts'

/** What a trail holds: entries, and what it says of itself. */
export type AuditRecord = AuditEntry | ChainNote

/** Which records are read: the last ones of those that are wanted. */
export interface AuditQuery {
  readonly last: number
  readonly isWanted: (record: AuditRecord) => boolean
}

/**
 * The last records of an audit file and its older parts, oldest first. Whether the chain is whole says `verifyAudit`.
 * @returns undefined where there is no such file
 */
export async function auditFileRecords(
  path: string,
  { last, isWanted }: AuditQuery,
): Promise<AuditRecord[] | undefined> {
  const files = await filesOf(path)
  if (files.length === 0) return undefined
  let found: AuditRecord[] = []
  // From the newest file back, so that of a long trail few are read.
  for (const file of files.reverse()) {
    const lines = (await readText(file)).split('\n')
    const records = lines.flatMap((line) => recordIn(line, ({ entry }) => entry)).filter(isWanted)
    found = [...records.slice(-last), ...found].slice(-last)
    if (found.length >= last) break
  }
  return found
}

const CHUNK = 1_000

/** The same of the Redis stream that roles share. @throws StoreUnavailableError */
export async function auditStreamRecords(
  { connection, key }: { readonly connection: RedisConnection; readonly key: string },
  { last, isWanted }: AuditQuery,
): Promise<AuditRecord[]> {
  const redis = redisClient(connection, () => undefined)
  try {
    await redis.connect().catch(() => undefined) // the first command says why
    const found: AuditRecord[] = []
    for (let to = '+'; found.length < last; ) {
      const [messages] = (await pipelined(redis, [['XREVRANGE', key, to, '-', 'COUNT', CHUNK]])) as [
        readonly (readonly [id: string, fields: readonly string[]])[],
      ]
      found.push(...messages.flatMap(([, fields]) => recordIn(fields[1] ?? '', (entry) => entry)).filter(isWanted))
      const oldest = messages.at(-1)
      if (!oldest || messages.length < CHUNK) break
      to = `(${oldest[0]}`
    }
    return found.slice(0, last).reverse()
  } finally {
    await closeRedis(redis)
  }
}

/** [] where the text is none: `verifyAudit` finds such lines. */
function recordIn<T>(text: string, recordOf: (value: { readonly entry?: T }) => unknown): AuditRecord[] {
  try {
    const record = recordOf(JSON.parse(text) as { readonly entry?: T }) as AuditRecord | undefined
    return typeof record?.at === 'number' && typeof record.kind === 'string' ? [record] : []
  } catch {
    return []
  }
}
