import { Redis } from 'ioredis'
import { describe, expect, it } from 'vitest'
import { type ApiServer, apiServer } from '#api'
import { createClient } from '#http'
import { systemClock } from '#model'
import { Metrics, silentLogger } from '#runtime'
import { RedisStateStore } from '#state'
import { connectionResource } from '../../src/control/connections/connection-resource.ts'
import {
  aWorld,
  conditionOf,
  connect,
  NAMESPACE,
  statusOf,
  until,
  untilPhase,
  type World,
} from '../../src/control/connections/testing/world.ts'
import { redisMissing, startRedis } from '../../src/pipeline/state/test/redis-server.ts'
import { localAdministrator } from '../local-administrator.ts'
import { smallDisk } from '../small-disk.ts'

const administrator = await localAdministrator()

const defaults = { intervalMs: 150, timeoutMs: 2000, operatorScanIntervalMs: 300_000 }

function anApi(world: World): ApiServer {
  return apiServer({
    state: world.state,
    events: world.events,
    ...administrator,
    config: { host: '127.0.0.1', port: 0, ...administrator.config, storeGraceMs: 100 },
    logger: silentLogger,
    clock: systemClock,
    version: 'test',
    metrics: new Metrics({ role: 'test' }),
  })
}

const disk = smallDisk()
const noDisk = typeof disk === 'string' ? ` (not run: ${disk})` : ''

describe.skipIf(noDisk !== '')(`a full disk under the hub${noDisk}`, () => {
  it('is named in every status with what to do, loses nothing known, and heals when there is room', async () => {
    if (typeof disk === 'string') return
    const before = process.env.TMPDIR
    process.env.TMPDIR = disk.path
    try {
      await using world = await aWorld({ defaults })
      await using api = anApi(world)
      const client = createClient({ baseUrl: await api.start() })
      const member = await world.member()
      await connect(world, 'west', member)
      await connect(world, 'east', await world.member())
      await world.start()
      for (const name of ['west', 'east']) await untilPhase(world, name, 'Connected')
      disk.fill()
      for (const name of ['west', 'east']) {
        await until(async () =>
          expect(await statusOf(world, name)).toMatchObject({
            phase: 'Error',
            health: 'healthy',
            message: expect.stringMatching(
              /hub could not .* is full: no space left on the disk; make room there/,
            ) as string,
          }),
        )
        expect(await conditionOf(world, name, 'Ready')).toMatchObject({ status: 'False' })
        expect((await client.cluster(name)).nodes?.total).toBe(1)
      }
      // A cluster that comes meanwhile is told the same, and comes in later.
      await connect(world, 'north', await world.member())
      await until(async () => expect((await statusOf(world, 'north')).message).toMatch(/no space left on the disk/))
      member.addNode('n2')
      disk.empty()
      await until(async () => expect((await client.cluster('west')).nodes?.total).toBe(2))
      for (const name of ['west', 'east', 'north']) {
        await untilPhase(world, name, 'Connected')
        expect(await conditionOf(world, name, 'Ready')).toMatchObject({ status: 'True' })
      }
    } finally {
      if (before === undefined) delete process.env.TMPDIR
      else process.env.TMPDIR = before
      disk.unmount()
    }
  })
})

const noRedis = redisMissing === undefined ? '' : ` (not run: ${redisMissing})`

describe.skipIf(noRedis !== '')(`a hub over Redis${noRedis}`, () => {
  const ofRedis = (port: number) => (logId: string) =>
    RedisStateStore.open({ connection: { host: '127.0.0.1', port }, logId, checkEveryMs: 100 })

  it('leaves no key of a cluster that is deleted while it is read, and none of its late results', async () => {
    await using redis = await startRedis()
    await using world = await aWorld({ defaults }, ofRedis(redis.port))
    const eyes = new Redis({ host: '127.0.0.1', port: redis.port })
    try {
      await connect(world, 'west', await world.member())
      await connect(world, 'westend', await world.member())
      await world.start()
      for (const name of ['west', 'westend']) await untilPhase(world, name, 'Connected')
      const keysOf = async (name: string) => (await eyes.keys('*')).filter((key) => key.split(':').includes(name))
      // Documents are written behind: a connected cluster has its keys a moment later.
      await until(async () => expect((await keysOf('west')).length).toBeGreaterThan(3))
      // Deleted and made again at once, several times: the last word counts.
      for (let n = 0; n < 5; n++) {
        await world.hub.delete(connectionResource, { name: 'west', namespace: NAMESPACE })
        await until(() => expect(world.cluster('west')).toBeUndefined())
        await until(async () => expect(await keysOf('west')).toEqual([]))
        if (n === 4) break
        const spec = { endpoint: (await world.member()).url, credentialsRef: { name: 'west-credentials' } }
        await world.hub.create(connectionResource, { metadata: { name: 'west', namespace: NAMESPACE }, spec })
        await until(() => expect(world.cluster('west')).toBeDefined())
      }
      const rounds = world.batches.length
      await until(() => expect(world.batches.length).toBeGreaterThan(rounds + 5))
      expect(await keysOf('west')).toEqual([])
      await until(async () => expect((await keysOf('westend')).length).toBeGreaterThan(3))
    } finally {
      eyes.disconnect()
    }
  })

  it('goes on reading while Redis is away or refuses to write, says so, and fills it again when it is empty', async () => {
    await using redis = await startRedis()
    await using world = await aWorld({ defaults }, ofRedis(redis.port))
    await using api = anApi(world)
    const address = await api.start()
    const client = createClient({ baseUrl: address })
    const member = await world.member()
    await connect(world, 'west', member)
    await world.start()
    await until(async () => expect((await client.cluster('west')).nodes?.total).toBe(1))

    await redis.kill()
    await until(async () => {
      const answer = await fetch(`${address}/api/v2/clusters`)
      expect(answer.status).toBe(503)
      expect(await answer.json()).toMatchObject({ code: 'store_unavailable', retryAfterSeconds: 5 })
    })
    member.addNode('n2')
    const rounds = world.batches.length
    await until(() => expect(world.batches.length).toBeGreaterThan(rounds))
    await redis.start()
    await until(async () => expect((await client.cluster('west')).nodes?.total).toBe(2))

    const eyes = new Redis({ host: '127.0.0.1', port: redis.port })
    try {
      await eyes.config('SET', 'maxmemory', '1')
      member.addNode('n3')
      await until(async () => expect((await fetch(`${address}/api/v2/clusters`)).status).toBe(503))
      const availability = world.state.availability()
      expect(availability).toMatchObject({ state: 'unavailable', reason: expect.stringMatching(/memory/i) as string })
      await eyes.config('SET', 'maxmemory', '0')
      await until(async () => expect((await client.cluster('west')).nodes?.total).toBe(3))
      await untilPhase(world, 'west', 'Connected')
      expect(await eyes.exists('clusterpulse:generation')).toBe(1)
    } finally {
      eyes.disconnect()
    }
  })

  it('shows what is true now where Redis comes back from an older dump: what came since, and nothing that went', async () => {
    await using redis = await startRedis()
    await using world = await aWorld({ defaults }, ofRedis(redis.port))
    await using api = anApi(world)
    const client = createClient({ baseUrl: await api.start() })
    const member = await world.member()
    for (const name of ['west', 'went']) await connect(world, name, member)
    await world.start()
    const names = async () =>
      (await client.clusters({})).items.map(({ name, nodes }) => `${name} ${nodes?.total}`).sort()
    await until(async () => expect(await names()).toEqual(['went 1', 'west 1']))
    const eyes = new Redis({ host: '127.0.0.1', port: redis.port })
    await eyes.save()
    eyes.disconnect()

    await world.hub.delete(connectionResource, { name: 'went', namespace: NAMESPACE })
    await connect(world, 'came', member)
    member.addNode('n2')
    await until(async () => expect(await names()).toEqual(['came 2', 'west 2']))
    await redis.kill()
    await redis.start()
    const again = new Redis({ host: '127.0.0.1', port: redis.port })
    expect(Number(/rdb_last_load_keys_loaded:(\d+)/.exec(await again.info('persistence'))?.[1])).toBeGreaterThan(4)
    again.disconnect()
    const rounds = world.batches.length
    await until(() => expect(world.batches.length).toBeGreaterThan(rounds + 6))
    await until(async () => expect(await names()).toEqual(['came 2', 'west 2']))
  })
})
