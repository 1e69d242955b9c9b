import { StoredFormatError } from '#model'
import {
  type Command,
  closeRedis,
  pipelined,
  type Redis,
  type RedisConnection,
  redisClient,
  redisUnavailable,
  transaction,
} from '#redis'
import { hashOf } from './redis-alerts.ts'
import { own } from './redis-keys.ts'
import { divisionCommands, divisionOf, divisionWrites, isWhole, newGeneration, whileDivided } from './redis-owners.ts'

/**
 * Makes Redis belong to so many owners, in one step: from then on no owner of another division can write. What was whole
 * stays whole; what was not has to be written by each of the new owners. Nothing happens where they are so many already.
 * @param of 1 or more
 * @throws StoreUnavailableError when Redis does not answer or refuses; it may be tried again
 */
export function beginDivision(connection: RedisConnection, of: number): Promise<void> {
  return withRedis(connection, async (redis) => {
    await whileDivided(redis, (division) => {
      if (division.count === of) return []
      const indexes = isWhole(division) ? Array.from({ length: of }, (_, i) => i + 1) : []
      const generations = new Map(indexes.map((index) => [index, newGeneration()]))
      return [...divisionWrites(of, generations), ['DEL', own.writers], reloadEntry(generations.get(1) ?? '')]
    })
  })
}

/**
 * How far the state in Redis is in each of these logs.
 * @returns index of the last record that is in the state; -1 where Redis holds nothing whole or does not know the log
 * @throws StoreUnavailableError
 */
export function positionsIn(
  connection: RedisConnection,
  logIds: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  return withRedis(connection, async (redis) => {
    const [hash, text, positions] = await transaction(redis, [...divisionCommands, ['HGETALL', own.positions]])
    const known = isWhole(divisionOf(hash, text)) ? hashOf(positions) : {}
    return new Map(logIds.map((id) => [id, Number(known[id] ?? -1)]))
  })
}

/**
 * Forgets the positions in every log but these: the others are gone for good.
 * @throws StoreUnavailableError
 */
export function forgetPositions(connection: RedisConnection, keep: readonly string[]): Promise<void> {
  return withRedis(connection, async (redis) => {
    const [ids] = (await pipelined(redis, [['HKEYS', own.positions]])) as [string[]]
    const gone = ids.filter((id) => !keep.includes(id))
    if (gone.length > 0) await pipelined(redis, [['HDEL', own.positions, ...gone]])
  })
}

/** Tells followers to read all of it again. Of no owner: nothing follows it. */
export const reloadEntry = (generation: string): Command => [
  'XADD',
  own.changes,
  '*',
  'op',
  'reload',
  'c',
  '',
  'v',
  0,
  'o',
  0,
  'g',
  generation,
  's',
  newGeneration(),
  'n',
  1,
]

/** @throws StoreUnavailableError; what is foreseen otherwise passes */
export async function withRedis<T>(connection: RedisConnection, use: (redis: Redis) => Promise<T>): Promise<T> {
  let trouble: string | undefined
  const redis = redisClient(connection, (reason) => (trouble ??= reason))
  try {
    await redis.connect()
    return await use(redis)
  } catch (error) {
    if (error instanceof StoredFormatError) throw error
    throw redisUnavailable(trouble === undefined ? error : new Error(trouble, { cause: error }))
  } finally {
    await closeRedis(redis)
  }
}
