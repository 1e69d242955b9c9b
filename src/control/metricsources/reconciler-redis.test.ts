import { describe, expect, it } from 'vitest'
import { RedisCatalog } from '#catalog'
import { Manager } from '#controller'
import { closeRedis, redisClient } from '#redis'
import { silentLogger } from '#runtime'
import { eventually, redisMissing, startRedis } from '../../pipeline/state/test/redis-server.ts'
import { metricSourceReconcilers } from './index.ts'
import { TestFleet } from './testing/fleet.ts'
import { aFaultySpec, anEmbeddedHub, aSpec, declare, NAMESPACE, statusOf, undeclare, until } from './testing/hub.ts'

describe.skipIf(redisMissing)(`MetricSources in Redis${redisMissing ? ` (not run: ${redisMissing})` : ''}`, () => {
  it('reach another process, survive a flush and a restart of the manager, and go with their object', async () => {
    await using hub = await anEmbeddedHub()
    await using redis = await startRedis()
    const connection = { host: redis.host, port: redis.port }
    await using reader = await RedisCatalog.open({ connection })
    const hand = redisClient(connection, () => undefined)
    await hand.connect()
    const fleet = new TestFleet('east')
    const lead = async (catalog: RedisCatalog) => {
      const options = { hub: hub.kube, namespace: NAMESPACE, catalog, state: fleet, ingester: fleet }
      const controllers = metricSourceReconcilers({ ...options, logger: silentLogger, lookEveryMs: 100 })
      const manager = new Manager({ controllers, logger: silentLogger })
      await manager.start()
      return manager
    }
    const ids = () => reader.sources().map(({ id }) => id)

    const first = await RedisCatalog.open({ connection })
    const firstManager = await lead(first)
    await declare(hub, 'disks')
    await declare(hub, 'others', aSpec({ rbac: { resourceTypeName: 'other' } }))
    const both = [`${NAMESPACE}/disks`, `${NAMESPACE}/others`]
    await until(() => expect(ids()).toEqual(both))
    expect(reader.ofType('pvc')?.columns.map(({ name }) => name)).toEqual(['phase', 'capacity', 'capacityGiB'])
    const source = reader.source(`${NAMESPACE}/disks`)

    await hand.flushall()
    await eventually('it is written again', async () => (await hand.scard('metricsources:enabled')) === 2)
    await until(() => expect(reader.unavailable()).toBeUndefined())
    expect(reader.source(`${NAMESPACE}/disks`)).toBe(source)
    await until(async () => expect((await statusOf(hub, 'disks')).phase).toBe('Pending'))

    await firstManager.stop()
    await first[Symbol.asyncDispose]()
    await fleet.tell('east', `${NAMESPACE}/others`, { rows: 1 })
    await declare(hub, 'disks', aFaultySpec())
    await undeclare(hub, 'others')
    await using second = await RedisCatalog.open({ connection })
    const secondManager = await lead(second)
    await until(() => expect(ids()).toEqual([`${NAMESPACE}/disks`]))
    await until(() => expect(fleet.holders(`${NAMESPACE}/others`)).toEqual([]))
    await until(async () =>
      expect((await statusOf(hub, 'disks')).message).toMatch(/the revision before stays in force$/),
    )
    expect(reader.source(`${NAMESPACE}/disks`)).toBe(source)

    await undeclare(hub, 'disks')
    await until(() => expect(ids()).toEqual([]))
    expect((await hand.keys('*')).sort().filter((key) => key.startsWith('metricsource'))).toEqual([
      'metricsources:digest',
      'metricsources:generation',
    ])
    await secondManager.stop()
    await closeRedis(hand)
  })
})
