import type { RedisConnection } from '#redis'
import type { RedisConfig } from './config.ts'

export function redisConnection({ tls, ...rest }: RedisConfig): RedisConnection {
  return { ...rest, ...(tls && { tls: {} }) }
}
