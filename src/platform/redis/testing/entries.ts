import type { Redis } from 'ioredis'

/** One field, member or element of a key. */
export interface Entry {
  /** for sentences */
  readonly what: string
  take(): Promise<unknown>
}

/** What can be taken out of a key that stays; none where that would be all of it, or the key is a string. */
export async function entriesOf(redis: Redis, key: string): Promise<readonly Entry[]> {
  const type = await redis.type(key)
  const names = await namesIn(redis, key, type)
  if (names.length < 2) return []
  return names.map((name) => ({
    what: `${name} of ${key}`,
    take: () => {
      if (type === 'hash') return redis.hdel(key, name)
      if (type === 'set') return redis.srem(key, name)
      return type === 'zset' ? redis.zrem(key, name) : redis.lrem(key, 1, name)
    },
  }))
}

async function namesIn(redis: Redis, key: string, type: string): Promise<string[]> {
  if (type === 'hash') return redis.hkeys(key)
  if (type === 'set') return redis.smembers(key)
  if (type === 'zset') return redis.zrange(key, '0', '-1')
  return type === 'list' ? redis.lrange(key, 0, -1) : []
}
