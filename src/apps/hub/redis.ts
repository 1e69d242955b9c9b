import type { RedisConnection } from '#state'
import type { RedisConfig } from './config.ts'

export function redisConnection({ tls, ...rest }: RedisConfig): RedisConnection {
  return { ...rest, ...(tls && { tls: {} }) }
}
