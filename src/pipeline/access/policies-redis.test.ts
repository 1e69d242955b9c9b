import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { StoreUnavailableError } from '#model'
import { closeRedis, pipelined, type Redis, redisClient } from '#redis'
import { leastOf } from '../../platform/runtime/testing/least-of.ts'
import { eventually, redisMissing, startRedis, type TestRedis } from '../state/test/redis-server.ts'
import { PoliciesUnavailableError } from './errors.ts'
import { RedisPolicies, type RedisPoliciesOptions } from './policies-redis.ts'
import { removeAsOriginal, storeAsOriginal } from './testing/original-writer.ts'
import { aDocument } from './testing/policies.ts'
import type { PolicyDocument, PolicySource } from './types.ts'

const active = { state: 'Active' }
const every = (documents: readonly PolicyDocument[]) => documents.map((document) => ({ document, status: active }))
const keysOf = async (source: PolicySource) => (await source.current()).policies.map(({ key }) => key)
const hash = (name: string) => `policy:clusterpulse:${name}`
const key = (name: string) => `clusterpulse/${name}`

describe.skipIf(redisMissing)(`policies in a real Redis${redisMissing ? ` (skipped: ${redisMissing})` : ''}`, () => {
  let server: TestRedis
  /** of somebody with redis-cli */
  let hand: Redis
  const opened: AsyncDisposable[] = []

  beforeAll(async () => {
    server = await startRedis()
    hand = redisClient({ host: server.host, port: server.port }, () => undefined)
    await hand.connect()
  })
  beforeEach(async () => {
    await eventually('the hand is connected', () => hand.status === 'ready')
    await hand.flushall()
  })
  afterEach(async () => {
    for (const one of opened.splice(0)) await one[Symbol.asyncDispose]()
  })
  afterAll(async () => {
    await closeRedis(hand)
    await server[Symbol.asyncDispose]()
  })

  async function open(over: Partial<RedisPoliciesOptions> = {}): Promise<RedisPolicies> {
    const { host, port } = server
    const policies = await RedisPolicies.open({ connection: { host, port }, ...over })
    opened.push(policies)
    return policies
  }

  /** Everything under the keys of policies, as a plain value. */
  async function contents(): Promise<Record<string, unknown>> {
    const all: Record<string, unknown> = {}
    for (const name of (await hand.keys('polic*')).sort()) {
      const type = await hand.type(name)
      if (type === 'hash') all[name] = await hand.hgetall(name)
      else if (type === 'set') all[name] = (await hand.smembers(name)).sort()
      else if (type === 'zset') all[name] = (await pipelined(hand, [['ZRANGE', name, 0, -1, 'WITHSCORES']]))[0]
    }
    return all
  }

  async function listen(): Promise<{ messages: string[]; end: () => Promise<void> }> {
    const subscriber = redisClient({ host: server.host, port: server.port }, () => undefined)
    await subscriber.connect()
    const messages: string[] = []
    subscriber.on('message', (channel, text) => {
      const { action, type, policy, timestamp } = JSON.parse(text) as Record<string, string>
      expect(timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
      messages.push(`${channel} ${action ?? type} ${policy}`)
    })
    await subscriber.subscribe('policy-changes', 'policy-events')
    opened.push({ [Symbol.asyncDispose]: () => closeRedis(subscriber) })
    return {
      messages,
      // What was published before comes before.
      end: async () => {
        await hand.publish(
          'policy-changes',
          JSON.stringify({ action: 'end', policy: '', timestamp: '2026-01-01T00:00:00Z' }),
        )
        await eventually('the last message', () => messages.at(-1)?.includes(' end ') ?? false)
        messages.pop()
      },
    }
  }

  it('lie there as documented, and leave nothing behind', async () => {
    const policies = await open()
    await policies.resync([])
    const document = aDocument('a', {
      effect: 'Deny',
      priority: 300,
      users: ['ann', 'x:sorted', 'we,ird:*'],
      groups: ['dev'],
      service_accounts: ['system:serviceaccount:ci:bot'],
      custom_resource_types: ['pvc'],
    })
    await policies.put(document, { state: 'Active', message: 'Policy is active' })
    const member = hash('a')
    const scored = [member, '300']
    expect(await contents()).toEqual({
      [member]: {
        data: JSON.stringify(document),
        priority: '300',
        effect: 'Deny',
        enabled: 'true',
        hash: document.hash,
        compiled_at: document.compiled_at,
        status: '{"state":"Active","message":"Policy is active"}',
      },
      'policies:all': [member],
      'policies:enabled': [member],
      'policies:by:priority': scored,
      'policies:effect:deny': [member],
      'policy:user:ann': [member],
      'policy:user:ann:sorted': scored,
      'policy:user:we,ird:*': [member],
      'policy:user:we,ird:*:sorted': scored,
      // The plain set of "x:sorted" would be the sorted set of "x".
      'policy:user:x:sorted:sorted': scored,
      'policy:group:dev': [member],
      'policy:group:dev:sorted': scored,
      'policy:sa:system:serviceaccount:ci:bot': [member],
      'policy:sa:system:serviceaccount:ci:bot:sorted': scored,
      'policy:customtype:pvc': [member],
      'policy:customtype:pvc:sorted': scored,
    })
    await policies.put({ ...document, enabled: false }, active)
    expect(Object.keys(await contents())).toEqual([
      'policies:all',
      'policies:by:priority',
      'policies:effect:deny',
      member,
    ])
    await policies.put(
      { ...document, effect: 'Allow', users: ['bob'], groups: [], service_accounts: [], priority: 1 },
      active,
    )
    expect(Object.keys(await contents())).toEqual([
      'policies:all',
      'policies:by:priority',
      'policies:effect:allow',
      'policies:enabled',
      member,
      'policy:customtype:pvc',
      'policy:customtype:pvc:sorted',
      'policy:user:bob',
      'policy:user:bob:sorted',
    ])
    await policies.remove(key('a'))
    expect(await contents()).toEqual({})
  })

  it('escape what the documented writers escape', async () => {
    const policies = await open()
    await policies.resync(every([aDocument('a', { users: ['<b>&'] })]))
    expect(await hand.hget(hash('a'), 'data')).toContain('\\u003cb\\u003e\\u0026')
    expect((await policies.current()).policies[0]?.document.users).toEqual(['<b>&'])
  })

  it('are announced once per transition, on both channels', async () => {
    const policies = await open()
    const { messages, end } = await listen()
    await policies.resync([])
    const both = (action: string) => [
      `policy-changes ${action} ${key('a')}`,
      `policy-events policy.${action} ${key('a')}`,
    ]
    const document = aDocument('a')
    await policies.put(document, { state: 'Inactive' })
    await policies.put(document, { state: 'Inactive' })
    await policies.putStatus(key('a'), { state: 'Active' })
    await policies.putStatus(key('a'), { state: 'Active', message: 'again' })
    await policies.put(document, { state: 'Expired' })
    await policies.putStatus(key('a'), { state: 'Expired', message: 'still' })
    await policies.resync([{ document, status: { state: 'Expired' } }])
    await policies.remove(key('a'))
    await policies.remove(key('a'))
    await end()
    expect(messages).toEqual(['compiled', 'activated', 'expired', 'deleted'].flatMap(both))
  })

  it('keep the other fields of a status, and make none for a policy that is not there', async () => {
    const policies = await open()
    await policies.resync(every([aDocument('a')]))
    await policies.putStatus(key('a'), { state: 'Error', error_at: 't' })
    await hand.hset(hash('a'), 'status', '{"state":"Active","hash":"h"}')
    await policies.putStatus(key('a'), { message: 'm' })
    expect(JSON.parse((await hand.hget(hash('a'), 'status')) ?? '')).toEqual({
      state: 'Active',
      hash: 'h',
      message: 'm',
    })
    await policies.putStatus(key('b'), { state: 'Error' })
    expect(await hand.exists(hash('b'))).toBe(0)
  })

  it('take away what an original API decided before: at each change, and what it stores a moment after', async () => {
    const policies = await open()
    const kept = ['rbac:decision:ann:dev,ops:view:cluster:c1', 'rbac:custom:ann:dev,ops:pvc:all:view']
    const decide = () => Promise.all(kept.map((name) => hand.set(name, 'x', 'EX', 300)))
    const isClear = async () => (await hand.exists(...kept)) === 0
    const deny = aDocument('deny', { effect: 'Deny', users: ['ann'] })
    await policies.resync(every([deny]))
    for (const change of [
      () => policies.put(aDocument('more', { groups: ['ops'] }), active),
      () => policies.put(aDocument('more', { groups: ['dev'] }), active),
      () => policies.remove(key('more')),
      () => policies.putStatus(key('deny'), { state: 'Expired' }),
      () => policies.resync([]),
    ]) {
      await decide()
      await change()
      expect(await isClear()).toBe(true)
    }
    // By an API that read the policies before the change and was slow.
    await decide()
    await eventually('that goes too', isClear)
    // What changes nothing takes nothing away.
    await policies.resync(every([deny]))
    await new Promise((resolve) => setTimeout(resolve, 2_500))
    await decide()
    await policies.put(deny, active)
    expect(await isClear()).toBe(false)
  })

  it('are taken for written only when old decisions are gone', async () => {
    const { host, port } = server
    await hand.call('ACL', 'SETUSER', 'writer', 'reset', 'on', '>secret', '~*', '&*', '+@all', '-unlink')
    const policies = await open({ connection: { host, port, username: 'writer', password: 'secret' } })
    await policies.resync([])
    await hand.set('rbac:decision:ann::view:cluster:c1', 'x')
    await expect(policies.put(aDocument('deny'), active)).rejects.toBeInstanceOf(StoreUnavailableError)
    await hand.call('ACL', 'SETUSER', 'writer', '+unlink')
    await policies.put(aDocument('deny'), active)
    expect(await hand.exists('rbac:decision:ann::view:cluster:c1')).toBe(0)
  })

  it('take with them what caches of the original left, and nothing else', async () => {
    for (const name of ['policy:eval:ann:c1', 'rbac:decision:ann::view:cluster:c1', 'rbac:custom:ann::pvc:all:view'])
      await hand.set(name, 'x')
    await hand.set('rbac:other', 'x')
    await hand.set('user:groups:ann', 'x')
    const policies = await open()
    await policies.resync([])
    expect((await hand.keys('*')).sort()).toEqual([
      'policies:digest',
      'policies:generation',
      'rbac:other',
      'user:groups:ann',
    ])
  })

  it('are never taken for empty: not in a new Redis, not after a flush, not from a few alone', async () => {
    const [manager, api] = [await open(), await open()]
    await expect(api.current()).rejects.toMatchObject({ code: 'policies_unavailable', retryable: true })
    await manager.resync(every([aDocument('allow'), aDocument('deny', { effect: 'Deny' })]))
    expect(await keysOf(api)).toEqual([key('allow'), key('deny')])
    const counter = Number(await hand.get('policies:generation'))
    let lost = 0
    manager.onLost(() => lost++)

    await hand.flushall()
    await expect(api.current()).rejects.toBeInstanceOf(PoliciesUnavailableError)
    await expect(manager.put(aDocument('allow'), active)).rejects.toBeInstanceOf(StoreUnavailableError)
    await expect(manager.remove(key('allow'))).rejects.toBeInstanceOf(StoreUnavailableError)
    expect(await hand.keys('*')).toEqual([])
    await expect(api.current()).rejects.toBeInstanceOf(PoliciesUnavailableError)
    expect(lost).toBeGreaterThan(0)

    await manager.resync(every([aDocument('allow'), aDocument('deny', { effect: 'Deny' })]))
    expect(await keysOf(api)).toEqual([key('allow'), key('deny')])
    expect(Number(await hand.get('policies:generation'))).toBeGreaterThan(counter)
  })

  it('cannot be asked while Redis is away, and come back with it', async () => {
    const [manager, api] = [await open({ checkEveryMs: 100 }), await open({ checkEveryMs: 100 })]
    await manager.resync(every([aDocument('a')]))
    expect(await keysOf(api)).toEqual([key('a')])
    const told: boolean[] = []
    api.onChange(() => {
      void api.current().then(
        () => told.push(true),
        () => told.push(false),
      )
    })
    const died = performance.now()
    await server.kill()
    await expect(api.current()).rejects.toBeInstanceOf(PoliciesUnavailableError)
    await expect(manager.put(aDocument('b'), active)).rejects.toBeInstanceOf(StoreUnavailableError)
    await eventually('the loss is told', () => told.includes(false))
    // Open streams go on with what was verified last, for as long as their owner allows.
    expect(api.latest(60_000).policies).toHaveLength(1)
    await eventually('the last look is old', () => performance.now() - died > 50)
    expect(() => api.latest(20)).toThrow(PoliciesUnavailableError)

    await server.start()
    await expect(api.current()).rejects.toBeInstanceOf(PoliciesUnavailableError)
    await eventually('the manager can write', async () => {
      try {
        await manager.resync(every([aDocument('a'), aDocument('b')]))
        return true
      } catch (error) {
        expect(error).toBeInstanceOf(StoreUnavailableError)
        return false
      }
    })
    await eventually('the api reads', async () => (await keysOf(api).catch(() => [])).length === 2)
    await eventually('the return is told', () => told.includes(true))
  })

  it('are refused in time by a server that accepts and never answers', async () => {
    const sockets = new Set<Socket>()
    const silent = createServer((socket) => sockets.add(socket)).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const { port } = silent.address() as { port: number }
    const policies = await RedisPolicies.open({
      connection: { host: '127.0.0.1', port, connectTimeoutMs: 200, commandTimeoutMs: 200 },
    })
    await expect(policies.current()).rejects.toBeInstanceOf(PoliciesUnavailableError)
    await policies[Symbol.asyncDispose]()
    for (const socket of sockets) socket.destroy()
    silent.close()
  })

  it('say why a server does not let us in', async () => {
    const policies = await open({
      connection: { host: server.host, port: server.port, username: 'nobody', password: 'wrong' },
    })
    const error = await policies.current().catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(PoliciesUnavailableError)
    expect(String(error)).toContain('WRONGPASS')
    expect(String(error)).not.toContain('"wrong"')
  })

  it('are seen with the next question where no announcement is heard', async () => {
    const manager = await open()
    await manager.resync([])
    const rights = 'reset on >secret ~policy:* ~policies:* resetchannels +@connection +info +@read +eval'
    await hand.call('ACL', 'SETUSER', 'deaf', ...rights.split(' '))
    const connection = { host: server.host, port: server.port, username: 'deaf', password: 'secret' }
    const api = await open({ connection, checkEveryMs: 60_000 })
    for (let priority = 1; priority <= 20; priority++) {
      await manager.put(aDocument('a', { priority }), active)
      expect((await api.current()).policies[0]?.document.priority).toBe(priority)
    }
  })

  it('are asked once for all who ask at the same time', async () => {
    const manager = await open({ checkEveryMs: 60_000 })
    await manager.resync(every([aDocument('a')]))
    const api = await open({ checkEveryMs: 60_000 })
    // The announcement of the resync is behind us once another change of the same sort was told.
    await manager.put(aDocument('b'), active)
    await eventually(
      'both know b',
      async () => (await keysOf(api)).length === 2 && (await keysOf(manager)).length === 2,
    )
    const asked = async () => Number(/cmdstat_get:calls=(\d+)/.exec(await hand.info('commandstats'))?.[1] ?? 0)
    const before = await asked()
    await Promise.all(Array.from({ length: 200 }, () => api.current()))
    expect((await asked()) - before).toBeLessThanOrEqual(4)
  })

  it('need no more rights than the specification names', async () => {
    const rights = '~policy:* ~policies:* resetchannels &policy-changes &policy-events +@connection +info'
    const user = async (username: string, more: string) => {
      await hand.call('ACL', 'SETUSER', username, 'reset', 'on', '>secret', ...rights.split(' '), ...more.split(' '))
      return { connection: { host: server.host, port: server.port, username, password: 'secret' } }
    }
    const manager = await open(
      await user('manager', '~rbac:* +@read +@write +@transaction +eval +scan +publish +subscribe -@dangerous +info'),
    )
    await hand.set('rbac:decision:x', 'x')
    await manager.resync(every([aDocument('a')]))
    await manager.put(aDocument('b'), active)
    await manager.remove(key('a'))
    const api = await open({
      ...(await user('api', '+@read +eval +subscribe -@dangerous +info')),
      checkEveryMs: 60_000,
    })
    expect(await keysOf(api)).toEqual([key('b')])
    let told = 0
    api.onChange(() => told++)
    await eventually('the announcement is heard', async () => {
      await manager.put(aDocument('c', { priority: (told % 9) + 1 }), active)
      return told > 0
    })
    await expect(api.put(aDocument('d'), active)).rejects.toBeInstanceOf(StoreUnavailableError)
    expect(await keysOf(api)).toEqual([key('b'), key('c')])
  })

  describe('written by the original', () => {
    it('are read without a generation', async () => {
      await storeAsOriginal(hand, aDocument('a'))
      await storeAsOriginal(hand, aDocument('b', { effect: 'Deny' }))
      const api = await open({ takesUnsealed: true })
      expect(await keysOf(api)).toEqual([key('a'), key('b')])
      await expect((await open()).put(aDocument('c'), active)).rejects.toBeInstanceOf(StoreUnavailableError)
    })

    it('are nothing to answer by unless that is asked for: nothing proves that they are complete', async () => {
      await storeAsOriginal(hand, aDocument('a'))
      const api = await open()
      await expect(api.current()).rejects.toThrow('policies:generation')
      expect(() => api.latest(60_000)).toThrow(PoliciesUnavailableError)
      // The counter of our manager makes them whole; without it they are not any more.
      const manager = await open()
      await manager.resync(every([aDocument('a')]))
      await eventually('they count', () =>
        api.current().then(
          () => true,
          () => false,
        ),
      )
      await hand.del('policies:generation')
      await expect(api.current()).rejects.toThrow('policies:generation')
    })

    it('are seen at once when they change, as it announces them', async () => {
      await storeAsOriginal(hand, aDocument('a'))
      const api = await open({ checkEveryMs: 60_000, takesUnsealed: true })
      expect(await keysOf(api)).toEqual([key('a')])
      for (let i = 1; i <= 20; i++) {
        await storeAsOriginal(hand, aDocument('a', { priority: i }))
        await eventually('the change', async () => (await api.current()).policies[0]?.document.priority === i)
      }
      let told = 0
      api.onChange(() => told++)
      await removeAsOriginal(hand, key('a'))
      await eventually('the removal is told', () => told > 0)
      // It empties the last set by removing its member, so nothing tells this from a Redis that lost its memory.
      await expect(api.current()).rejects.toBeInstanceOf(PoliciesUnavailableError)
    })

    it('become ours with the first resync, whatever ours differ in', async () => {
      await storeAsOriginal(hand, aDocument('same'))
      await storeAsOriginal(hand, aDocument('other', { users: ['ann'] }))
      await storeAsOriginal(hand, aDocument('gone', { users: ['ann'] }))
      const manager = await open()
      const wanted = every([aDocument('same'), aDocument('other', { users: ['bob'] })])
      expect(await manager.resync(wanted)).toEqual([key('gone'), key('other')])
      expect(await hand.exists('policy:user:ann')).toBe(0)
      expect(await manager.resync(wanted)).toEqual([])
    })
  })

  describe('edited by hand', () => {
    const withUser = aDocument('a', { users: ['ann'], effect: 'Deny' })

    it('are seen within the time of a check where an original writes, also in the same length', async () => {
      await storeAsOriginal(hand, aDocument('a', { groups: ['dev-1'] }))
      const api = await open({ takesUnsealed: true })
      expect(await keysOf(api)).toEqual([key('a')])
      const text = (await hand.hget(hash('a'), 'data')) ?? ''
      let edits = 1
      const seenAfterMs = await leastOf(4, 2_000, async () => {
        const group = `dev-${++edits}`
        const edited = performance.now()
        await hand.hset(hash('a'), 'data', text.replace('dev-1', group))
        await eventually('the edit', async () => (await api.current()).policies[0]?.document.groups[0] === group)
        return performance.now() - edited
      })
      expect(seenAfterMs).toBeLessThan(2_000)
    })

    it('are answered by nobody until the manager has put them right', async () => {
      const manager = await open({ checkEveryMs: 50 })
      await manager.resync(every([withUser]))
      const api = await open({ checkEveryMs: 50 })
      expect(await keysOf(api)).toEqual([key('a')])
      await hand.hset(hash('a'), 'data', JSON.stringify({ ...withUser, effect: 'Allow' }))
      await eventually('the refusal', () =>
        api.current().then(
          () => false,
          (error) => String(error).includes('policies:digest'),
        ),
      )
      await expect(manager.put(aDocument('b'), active)).rejects.toBeInstanceOf(StoreUnavailableError)
      await manager.resync(every([withUser]))
      expect((await api.current()).policies.map(({ document }) => document.effect)).toEqual(['Deny'])
    })

    it('by an older version of the manager, which writes no digest, are nothing to answer by', async () => {
      const manager = await open()
      await manager.resync(every([withUser]))
      const api = await open({ checkEveryMs: 50 })
      await hand.incr('policies:generation')
      await expect(api.current()).rejects.toThrow('an older version of the manager writes')
      await manager.resync(every([withUser]))
      expect(await keysOf(api)).toEqual([key('a')])
      await hand.del('policies:digest')
      await hand.set('policies:generation', 'x')
      await manager.resync(every([withUser]))
      expect(await keysOf(api)).toEqual([key('a')])
    })

    it('are noticed by the manager, which is told to write all again', async () => {
      const manager = await open({ checkEveryMs: 100 })
      await manager.resync(every([withUser]))
      let lost = 0
      manager.onLost(() => lost++)
      for (let i = 1; i <= 20; i++) {
        await manager.put({ ...withUser, priority: i }, active)
        await manager.current()
      }
      expect(lost).toBe(0)
      await manager.put({ ...withUser, priority: 5 }, active)
      // At once, before the manager has read what it wrote itself.
      await hand.hset(hash('a'), 'data', '{}')
      await eventually('the edit is noticed', () => lost > 0)
    })

    it.each<[string, (redis: Redis) => Promise<unknown>]>([
      ['no JSON', (redis) => redis.hset(hash('a'), 'data', '{"effect":')],
      ['not UTF-8', (redis) => redis.hset(hash('a'), 'data', Buffer.from('{"effect":"Allow\xff"}', 'latin1'))],
      ['without its document', (redis) => redis.hdel(hash('a'), 'data')],
      ['without its hash', (redis) => redis.del(hash('a'))],
      [
        'of another type',
        async (redis) => {
          await redis.del(hash('a'))
          await redis.set(hash('a'), 'x')
        },
      ],
    ])('count as unreadable where an original writes: %s', async (_, edit) => {
      for (const document of [withUser, aDocument('b')]) await storeAsOriginal(hand, document)
      const manager = await open()
      const api = await open({ checkEveryMs: 50, takesUnsealed: true })
      await edit(hand)
      await eventually('the edit', async () => (await api.current()).policies[0]?.faults.length === 1)
      const { policies } = await api.current()
      expect(policies.map(({ key: of }) => of)).toEqual([key('a'), key('b')])
      expect(policies[0]?.faults[0]).toMatchObject({ severity: 'error', code: 'document_unreadable' })
      expect(policies[1]?.faults).toEqual([])
      expect(await manager.stored(key('a'))).toBeUndefined()
      expect(await manager.resync(every([withUser, aDocument('b')]))).toEqual([key('a')])
      expect((await api.current()).policies[0]).toEqual({ key: key('a'), document: withUser, faults: [] })
    })

    it('cannot be read where the list itself is something else', async () => {
      const manager = await open()
      await manager.resync(every([withUser]))
      const api = await open({ checkEveryMs: 50 })
      await hand.set('policies:all', 'x')
      await eventually('the refusal', () =>
        api.current().then(
          () => false,
          (error) => error instanceof PoliciesUnavailableError,
        ),
      )
      await expect(manager.put({ ...withUser, priority: 1 }, active)).rejects.toBeInstanceOf(StoreUnavailableError)
      await manager.resync(every([withUser]))
      expect(await keysOf(api)).toEqual([key('a')])
    })

    it.each<[string, (redis: Redis) => Promise<unknown>]>([
      ['a member too much', (redis) => redis.sadd('policies:enabled', hash('ghost'))],
      ['a member too few', (redis) => redis.srem('policy:user:ann', hash('a'))],
      ['another score', (redis) => redis.zadd('policy:user:ann:sorted', 9_999, hash('a'))],
      ['another type', (redis) => redis.set('policy:group:developers', 'x').then(() => undefined)],
      ['an index of nobody', (redis) => redis.zadd('policy:user:zoe:sorted', 1, hash('a'))],
      ['an orphan', (redis) => redis.hset(hash('orphan'), 'data', '{}')],
      ['a field of the hash', (redis) => redis.hset(hash('a'), 'priority', '1')],
      ['a field that does not belong there', (redis) => redis.hset(hash('a'), 'more', '1')],
      ['a missing set', (redis) => redis.del('policies:by:priority', 'policies:effect:deny')],
    ])('are as they should be after a resync: %s', async (what, edit) => {
      const manager = await open()
      await manager.resync(every([withUser]))
      const before = await contents()
      if (what === 'another type') await hand.del('policy:group:developers')
      await edit(hand)
      expect(await contents()).not.toEqual(before)
      const mended = await manager.resync(every([withUser]))
      if (what !== 'a field that does not belong there') expect(mended.length).toBeGreaterThan(0)
      expect(await contents()).toEqual(before)
    })
  })

  it('are five thousand within seconds: written, read, one changed, and compared', { tags: ['long'] }, async () => {
    const manager = await open()
    const documents = Array.from({ length: 5_000 }, (_, i) =>
      aDocument(`p${i}`, { users: [`u${i}`, `v${i % 100}`], groups: [`g${i % 50}`] }),
    )
    const times: number[] = []
    const timed = async <T>(action: () => Promise<T>): Promise<T> => {
      const began = performance.now()
      const value = await action()
      times.push(Math.round(performance.now() - began))
      return value
    }
    await timed(() => manager.resync(every(documents)))
    const api = await open()
    await timed(() => api.current())
    await timed(() => manager.put(aDocument('p7', { priority: 9 }), active))
    const { policies } = await timed(() => api.current())
    expect(policies.find(({ document }) => document.policy_name === 'p7')?.document.priority).toBe(9)
    await timed(() => manager.resync(every(documents)))
    expect(await keysOf(api)).toHaveLength(5_000)
    for (const ms of times) expect(ms).toBeLessThan(20_000)
  })
})
