import { describe, expect, it } from 'vitest'
import { redisMissing, startRedis } from '../../pipeline/state/test/redis-server.ts'
import { sharedKey } from './shared-key.ts'

describe.skipIf(redisMissing !== undefined)('a key that processes share', () => {
  it('is made by who asks first, and is the same for all who ask, however many ask at once', async () => {
    await using redis = await startRedis()
    const keys = await Promise.all(Array.from({ length: 8 }, () => sharedKey(redis, 'key')))
    expect(new Set(keys).size).toBe(1)
    expect(keys[0]).toMatch(/^[\w-]{43}$/)
    expect(await sharedKey(redis, 'other')).not.toBe(keys[0])
  })

  it('is not known where nobody answers', async () => {
    expect(await sharedKey({ host: '127.0.0.1', port: 9 }, 'key')).toBeUndefined()
  })
})
