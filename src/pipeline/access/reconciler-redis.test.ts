import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { Manager } from '#controller'
import { closeRedis, type Redis, redisClient } from '#redis'
import { Metrics, silentLogger } from '#runtime'
import { cpuMs } from '../../../test/cpu.ts'
import { redisMissing, startRedis, type TestRedis } from '../state/test/redis-server.ts'
import { RedisPolicies } from './policies-redis.ts'
import { accessPolicyResource } from './policy-resource.ts'
import { accessReconcilers } from './reconciler.ts'
import { anEmbeddedHub, aSpec, declare, NAMESPACE, statusOf, type TestHub, undeclare, until } from './testing/hub.ts'

const key = (name: string) => `${NAMESPACE}/${name}`
const MANY = 500

describe.skipIf(redisMissing)(`a manager over Redis${redisMissing ? ` (skipped: ${redisMissing})` : ''}`, () => {
  let server: TestRedis
  let hub: TestHub
  let hand: Redis
  const opened: (() => Promise<void>)[] = []

  beforeAll(async () => {
    server = await startRedis()
    hand = redisClient({ host: server.host, port: server.port }, () => undefined)
    await hand.connect()
  })
  beforeEach(async () => {
    await until(() => expect(hand.status).toBe('ready'))
    await hand.flushall()
  })
  afterAll(async () => {
    await closeRedis(hand)
    await server[Symbol.asyncDispose]()
  })
  afterEach(async () => {
    for (const close of opened.splice(0).reverse()) await close()
  })

  async function start() {
    hub = await anEmbeddedHub()
    opened.push(async () => hub[Symbol.asyncDispose]())
    return restart()
  }

  async function restart() {
    const connection = { host: server.host, port: server.port }
    const writer = await RedisPolicies.open({ connection, checkEveryMs: 200 })
    const source = await RedisPolicies.open({ connection, checkEveryMs: 200 })
    const metrics = new Metrics({}, { processMetrics: false })
    const controllers = accessReconcilers({
      hub: hub.kube,
      namespace: NAMESPACE,
      writer,
      logger: silentLogger,
      metrics,
    })
    const manager = new Manager({ controllers, logger: silentLogger })
    await manager.start()
    let isOpen = true
    const close = async () => {
      if (!isOpen) return
      isOpen = false
      await manager.stop()
      await writer[Symbol.asyncDispose]()
      await source[Symbol.asyncDispose]()
    }
    opened.push(close)
    return { writer, source, metrics, close }
  }

  const keysOf = async (source: RedisPolicies) => (await source.current()).policies.map((policy) => policy.key)

  it('brings policies into Redis, and them back after a flush, a crash and an edit by hand', async () => {
    const { source, metrics } = await start()
    await declare(hub, 'one')
    await declare(hub, 'two', aSpec({ access: { effect: 'Deny', enabled: true } }))
    await until(async () => expect(await keysOf(source)).toEqual([key('one'), key('two')]))
    await until(async () => expect((await statusOf(hub, 'two')).state).toBe('Active'))

    await hand.flushall()
    await until(async () => expect(await keysOf(source)).toEqual([key('one'), key('two')]))
    await server.kill()
    await expect(source.current()).rejects.toMatchObject({ code: 'policies_unavailable' })
    await server.start()
    await until(async () => expect(await keysOf(source)).toEqual([key('one'), key('two')]))

    await until(() => expect(hand.status).toBe('ready'))
    const text = (await hand.hget('policy:clusterpulse:two', 'data')) ?? ''
    await hand.hset('policy:clusterpulse:two', 'data', text.replace('"Deny"', '"Allow"'))
    await until(async () => expect(await hand.hget('policy:clusterpulse:two', 'data')).toBe(text))
    await until(async () =>
      expect(await metrics.registry.metrics()).toMatch(/clusterpulse_access_policies_mended_total [1-9]/),
    )
    expect(await metrics.registry.metrics()).toContain('clusterpulse_access_policies{state="Active"} 2')
  })

  it('tells of an end by the clock once, also over a restart', async () => {
    const { source, close } = await start()
    const subscriber = redisClient({ host: server.host, port: server.port }, () => undefined)
    await subscriber.connect()
    opened.push(() => closeRedis(subscriber))
    const actions: string[] = []
    subscriber.on('message', (_, text) => actions.push((JSON.parse(text) as { action: string }).action))
    await subscriber.subscribe('policy-changes')
    const notAfter = new Date(Date.now() + 1_500).toISOString()
    await declare(hub, 'short', aSpec({ lifecycle: { validity: { notAfter } } }))
    await until(async () => expect((await statusOf(hub, 'short')).state).toBe('Active'))
    const { generation } = await source.current()
    await until(async () => expect((await statusOf(hub, 'short')).state).toBe('Expired'))
    expect(JSON.parse((await hand.hget('policy:clusterpulse:short', 'status')) ?? '')).toMatchObject({
      state: 'Expired',
    })
    expect((await source.current()).generation).toBe(generation)
    await close()
    const again = await restart()
    await declare(hub, 'last')
    await until(async () => expect(await keysOf(again.source)).toHaveLength(2))
    await undeclare(hub, 'short')
    await until(() => expect(actions.at(-1)).toBe('deleted'))
    expect(actions.filter((action) => action !== 'compiled')).toEqual(['expired', 'deleted'])
  })

  it(`writes ${MANY} policies at the start at once, and their status soon after`, { tags: ['long'] }, async () => {
    hub = await anEmbeddedHub()
    opened.push(async () => hub[Symbol.asyncDispose]())
    for (let i = 0; i < MANY; i++)
      await declare(hub, `p${i}`, aSpec({ identity: { subjects: { users: [`u${i}`] }, priority: 1 } }))
    const began = process.cpuUsage()
    const { source } = await restart()
    await until(async () => expect(await keysOf(source)).toHaveLength(MANY))
    expect(cpuMs(began)).toBeLessThan(5_000)
    const isSaid = async () => {
      const states = (await hub.kube.listAll(accessPolicyResource)).map(
        ({ status }) => (status as { state?: string }).state,
      )
      expect(states.filter((state) => state === 'Active')).toHaveLength(MANY)
    }
    await vi.waitFor(isSaid, { timeout: 120_000, interval: 200 })
  })
})
