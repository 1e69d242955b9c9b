import { decideFormat, type FormatDecision, parseFormat, type StoredFormat, UNNUMBERED } from '#model'
import { type Command, pipelined, type Redis, type RedisConnection } from '#redis'
import type { Logger } from '#runtime'
import { reloadEntry, withRedis } from './redis-division.ts'
import { own } from './redis-keys.ts'

/**
 * The form of everything our manager keeps in Redis: state, policies, MetricSources, registries. Raise `format` with a change
 * that another version sees, `readableFrom` where one that does not know it would misread what is there; both with a line in
 * docs/guide/upgrade.md.
 */
const FORMAT = { format: 4, readableFrom: 3 }
const WHERE = 'what our manager keeps in Redis'

/** What makes `formatOf` find out, to be read with other commands. */
export const formatCommands: readonly Command[] = [
  ['GET', own.format],
  ['EXISTS', own.owners, own.generation],
]

/** @param text, exists what `formatCommands` replied. @throws StoredFormatError where this program would misread the rest */
export function formatDecided(text: unknown, exists: unknown, program: string): FormatDecision {
  const unsaid = exists === 0 ? 'none' : UNNUMBERED
  const found = typeof text === 'string' ? (parseFormat(text) ?? 'unreadable') : unsaid
  return decideFormat(found, { ...FORMAT, program }, WHERE)
}

/**
 * Looks whether this program may write into this Redis.
 * @throws StoredFormatError; StoreUnavailableError while Redis does not answer
 */
export const checkRedisFormat = (connection: RedisConnection, program: string): Promise<void> =>
  withRedis(connection, async (redis) => void (await decided(redis, program)))

/**
 * Writes our form, as the one process that leads: an upgrade is logged, a downgrade warned of. Followers read all anew, and see it.
 * @throws StoredFormatError; StoreUnavailableError
 */
export function claimRedisFormat(connection: RedisConnection, program: string, logger: Logger): Promise<void> {
  return withRedis(connection, async (redis) => {
    const { writes, level, sentence } = await decided(redis, program)
    if (level && sentence) logger[level]({}, sentence)
    if (!writes) return
    // Nothing follows what was not there.
    const reload = level === undefined ? [] : [reloadEntry('')]
    await pipelined(redis, [['SET', own.format, formatText(program)], ...reload])
  })
}

/** Put beside what is written again after Redis lost its memory; it never replaces a form that is there. */
export const formatKept = (program: string): Command => ['SETNX', own.format, formatText(program)]

const formatText = (program: string): string => JSON.stringify({ ...FORMAT, program } satisfies StoredFormat)

async function decided(redis: Redis, program: string): Promise<FormatDecision> {
  const [text, exists] = await pipelined(redis, formatCommands)
  return formatDecided(text, exists, program)
}
