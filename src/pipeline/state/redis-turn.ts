import { pipelined, type RedisConnection } from '#redis'
import { withRedis } from './redis-division.ts'
import { own } from './redis-keys.ts'

// KEYS: the turn. ARGV: who asks, for how long (ms). Answers who has it now.
const TAKE = `
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return holder end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return ARGV[1]`
const LEAVE = `if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end`

/**
 * Takes the turn to write into this Redis, or keeps it. It ends by itself after `forMs`.
 * @param holder names who asks, the same after a restart
 * @returns whose turn it is now
 * @throws StoreUnavailableError
 */
export function takeTurn(connection: RedisConnection, holder: string, forMs: number): Promise<string> {
  return withRedis(connection, async (redis) => {
    const [answer] = await pipelined(redis, [['EVAL', TAKE, 1, own.turn, holder, forMs]])
    return String(answer)
  })
}

/** Gives the turn to whoever waits for it. @throws StoreUnavailableError */
export function leaveTurn(connection: RedisConnection, holder: string): Promise<void> {
  return withRedis(connection, async (redis) => void (await pipelined(redis, [['EVAL', LEAVE, 1, own.turn, holder]])))
}
