import { hostname } from 'node:os'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { silentLogger } from '#runtime'
import { redisMissing, startRedis, type TestRedis } from '../../pipeline/state/test/redis-server.ts'
import { managerTurn } from './turn.ts'

/** Guards against hanging; `vi.waitFor` by itself waits for a second. */
const PATIENCE_MS = 20_000

const never = new AbortController().signal

describe.skipIf(redisMissing)(`managers without a lease${redisMissing ? ` (skipped: ${redisMissing})` : ''}`, () => {
  let server: TestRedis
  let redis: Redis
  let said: string[] = []
  beforeAll(async () => {
    server = await startRedis()
    redis = new Redis(server.port, server.host)
  })
  afterAll(async () => {
    redis.disconnect()
    await server[Symbol.asyncDispose]()
  })
  beforeEach(async () => {
    said = []
    await redis.flushall()
  })
  const logger = { ...silentLogger, warn: (_: object, sentence: string) => void said.push(sentence) } as never
  const manager = (dataDir: string, onLost = vi.fn(), port = server.port) => {
    const connection = { host: server.host, port }
    return { ...managerTurn({ connection, dataDir, logger, onLost, holdMs: 3_000 }), onLost, connection }
  }

  it('work one at a time: the second waits, names the first, and goes on when that has ended', async () => {
    const [first, second] = [manager('/data/a'), manager('/data/b')]
    await first.part.start(never)
    const started = second.part.start(never)
    await vi.waitFor(() => expect(second.waitsFor()).toMatch(/data folder \/data\/a$/), PATIENCE_MS)
    await new Promise((resolve) => setTimeout(resolve, 4_000)) // more than one turn
    expect(second.waitsFor()).toBeDefined()
    expect(said).toEqual([
      expect.stringMatching(/^another manager works on this Redis \(on .*\/data\/a\): stop one of them/),
    ])
    await first.part.stop()
    await started
    expect(second.waitsFor()).toBeUndefined()
    await second.part.stop()
    expect([first.onLost, second.onLost].flatMap(({ mock }) => mock.calls)).toEqual([])
  })

  it('goes on waiting while Redis is away', async () => {
    const [first, second] = [manager('/data/a'), manager('/data/b')]
    await first.part.start(never)
    const started = second.part.start(never)
    await vi.waitFor(() => expect(second.waitsFor()).toBeDefined(), PATIENCE_MS)
    second.connection.port = 1
    await new Promise((resolve) => setTimeout(resolve, 400))
    expect(second.waitsFor()).toMatch(/data folder \/data\/a$/)
    second.connection.port = server.port
    await first.part.stop()
    await started
    await second.part.stop()
  })

  it('goes on at once in its own folder, also when it was killed', async () => {
    await redis.set('clusterpulse:turn', `${hostname()}, data folder /data/a`, 'PX', 60_000)
    const again = manager('/data/a')
    await again.part.start(never)
    expect(said).toEqual([])
    await again.part.stop()
    expect(await redis.get('clusterpulse:turn')).toBeNull()
  })

  it('ends where another one took its turn, and leaves that to it', async () => {
    const one = manager('/data/a')
    await one.part.start(never)
    await redis.set('clusterpulse:turn', 'elsewhere, data folder /data/b')
    await vi.waitFor(() => expect(one.onLost).toHaveBeenCalledWith(expect.stringMatching(/elsewhere/)), PATIENCE_MS)
    await one.part.stop()
    expect(await redis.get('clusterpulse:turn')).toMatch(/elsewhere/)
  })

  it('does not wait for a Redis that is away', async () => {
    const alone = manager('/data/a', vi.fn(), 1)
    await alone.part.start(never)
    expect(alone.waitsFor()).toBeUndefined()
    await alone.part.stop()
  })
})
