import { expect, it } from 'vitest'
import { RedisMarks } from '#redis'
import { silentLogger } from '#runtime'
import { redisMissing, startRedis } from '../state/test/redis-server.ts'
import { Looks } from './attention.ts'

it.skipIf(redisMissing !== undefined)(
  'a look in one process of a hub reaches the others, also those that come later',
  async () => {
    await using redis = await startRedis()
    const connection = { host: '127.0.0.1', port: redis.port }
    const looks = () =>
      new Looks({ marks: new RedisMarks({ connection, prefix: 'looks:', channel: 'looks' }), logger: silentLogger })
    await using api = looks()
    await using owner = looks()
    await expect
      .poll(
        () => {
          api.look('west')
          return owner.clusters()
        },
        { interval: 50 },
      )
      .toEqual(['west'])
    // A mark of half a minute tells it to who was not there.
    await using late = looks()
    await expect.poll(() => late.isLookedAt('west'), { interval: 50 }).toBe(true)
    expect(late.isLookedAt('east')).toBe(false)
  },
)
