import { randomBytes } from 'node:crypto'
import { closeRedis, pipelined, type RedisConnection, redisClient } from './redis.ts'

/** A Redis that is there answers by then. */
const WAIT_MS = 2_000

/**
 * A random text that all processes on this Redis share: who asks first makes it.
 * @returns undefined where Redis does not answer
 */
export async function sharedKey(connection: RedisConnection, name: string): Promise<string | undefined> {
  const redis = redisClient(connection, () => undefined)
  let timer: NodeJS.Timeout | undefined
  try {
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error('late')), WAIT_MS)
    })
    return await Promise.race([keyIn(redis, name), late])
  } catch {
    // A process can do without it, with a key of its own.
    return undefined
  } finally {
    clearTimeout(timer)
    await closeRedis(redis)
  }
}

async function keyIn(redis: ReturnType<typeof redisClient>, name: string): Promise<string | undefined> {
  await redis.connect()
  const made = randomBytes(32).toString('base64url')
  const [, key] = await pipelined(redis, [
    ['SET', name, made, 'NX'],
    ['GET', name],
  ])
  return typeof key === 'string' ? key : undefined
}
