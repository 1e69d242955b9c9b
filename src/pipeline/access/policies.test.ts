import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { closeRedis, redisClient } from '#redis'
import { eventually, redisMissing, startRedis, type TestRedis } from '../state/test/redis-server.ts'
import { PoliciesUnavailableError } from './errors.ts'
import { MemoryPolicies } from './policies-memory.ts'
import { RedisPolicies } from './policies-redis.ts'
import { aDocument } from './testing/policies.ts'
import type { PolicyDocument, PolicySource, PolicyWriter } from './types.ts'

interface Stores extends AsyncDisposable {
  readonly writer: PolicyWriter
  readonly source: PolicySource
}

const active = { state: 'Active' }
const every = (documents: readonly PolicyDocument[]) => documents.map((document) => ({ document, status: active }))
const documentsOf = async (source: PolicySource) => (await source.current()).policies.map(({ document }) => document)
const keysOf = async (source: PolicySource) => (await source.current()).policies.map(({ key }) => key)

/** What every store of policies promises. */
function promises(open: () => Promise<Stores>): void {
  it('answers nobody before the first resync', async () => {
    await using stores = await open()
    const { writer, source } = stores
    await expect(source.current()).rejects.toBeInstanceOf(PoliciesUnavailableError)
    expect(() => source.latest(60_000)).toThrow(PoliciesUnavailableError)
    await writer.resync([])
    expect(await keysOf(source)).toEqual([])
    expect(source.latest(60_000).policies).toEqual([])
  })

  it('gives what was put, sorted by key, and nothing of what was removed', async () => {
    await using stores = await open()
    const { writer, source } = stores
    await writer.resync([])
    const [b, a] = [aDocument('b'), aDocument('a', { effect: 'Deny', users: ['ann', 'a:b,c*'], priority: 7 })]
    await writer.put(b, active)
    await writer.put(a, active)
    expect(await documentsOf(source)).toEqual([a, b])
    await writer.remove('clusterpulse/b')
    expect(await documentsOf(source)).toEqual([a])
    await writer.remove('clusterpulse/never-was')
    expect(await keysOf(source)).toEqual(['clusterpulse/a'])
  })

  it('has a new generation exactly where the policies differ', async () => {
    await using stores = await open()
    const { writer, source } = stores
    await writer.resync([])
    const generations = [(await source.current()).generation]
    const next = async () => {
      const { generation } = await source.current()
      generations.push(generation)
      return generations.length === new Set(generations).size
    }
    await writer.put(aDocument('a'), active)
    expect(await next()).toBe(true)
    await writer.put(aDocument('a', { hash: 'ffffffffffffffff' }), active)
    expect(await next()).toBe(true)
    await writer.put(aDocument('a', { hash: 'ffffffffffffffff' }), active)
    await writer.putStatus('clusterpulse/a', { state: 'Expired', message: 'Policy expired' })
    await writer.resync(every([aDocument('a', { hash: 'ffffffffffffffff' })]))
    expect((await source.current()).generation).toBe(generations.at(-1))
    await writer.put(aDocument('b'), active)
    expect(await next()).toBe(true)
  })

  it('keeps the policies that stayed, so that what was made of them need not be made again', async () => {
    await using stores = await open()
    const { writer, source } = stores
    await writer.resync(every([aDocument('a'), aDocument('b')]))
    const before = await source.current()
    await writer.put(aDocument('b', { priority: 5 }), active)
    const after = await source.current()
    expect(after.policies[0]).toBe(before.policies[0])
    expect(after.policies[1]).not.toBe(before.policies[1])
    expect(before.policies[1]?.document.priority).toBe(100)
  })

  it('holds exactly what a resync gives, and names what it had to mend', async () => {
    await using stores = await open()
    const { writer, source } = stores
    const [a, b, c] = [aDocument('a'), aDocument('b'), aDocument('c')]
    expect(await writer.resync(every([a, b]))).toEqual(['clusterpulse/a', 'clusterpulse/b'])
    expect(await writer.resync(every([b, a]))).toEqual([])
    const moved = { ...b, priority: 200 }
    expect(await writer.resync(every([moved, c]))).toEqual(['clusterpulse/a', 'clusterpulse/b', 'clusterpulse/c'])
    expect(await documentsOf(source)).toEqual([moved, c])
  })

  it('tells of every change, after it can be read', async () => {
    await using stores = await open()
    const { writer, source } = stores
    let told = 0
    const seen: string[][] = []
    const end = source.onChange(() => {
      told++
      void keysOf(source).then(
        (keys) => seen.push(keys),
        () => undefined,
      )
    })
    await writer.resync([])
    await eventually('the first resync is told', () => told > 0)
    await writer.put(aDocument('a'), active)
    await eventually('a is told', () => seen.at(-1)?.length === 1)
    await writer.remove('clusterpulse/a')
    await eventually('that a is gone is told', () => seen.at(-1)?.length === 0)
    end()
    const before = told
    await writer.put(aDocument('b'), active)
    expect(await keysOf(source)).toEqual(['clusterpulse/b'])
    expect(told).toBe(before)
  })

  it('answers calls at the same time alike, and each with what was written before it', async () => {
    await using stores = await open()
    const { writer, source } = stores
    await writer.resync([])
    for (let i = 0; i < 20; i++) {
      await writer.put(aDocument('a', { priority: i + 1 }), active)
      const answers = await Promise.all(Array.from({ length: 50 }, () => source.current()))
      expect(new Set(answers.map(({ policies }) => policies[0]?.document.priority))).toEqual(new Set([i + 1]))
    }
  })

  it('ends a question with its signal, and goes on answering others', async () => {
    await using stores = await open()
    const { writer, source } = stores
    await writer.resync([])
    await expect(source.current(AbortSignal.abort(new Error('given up')))).rejects.toThrow('given up')
    expect(await keysOf(source)).toEqual([])
  })

  it('is after any sequence of writes what a plain map would be', async () => {
    await using stores = await open()
    const { writer, source } = stores
    const name = fc.constantFrom('a', 'b', 'c')
    const document = fc
      .record({
        name,
        enabled: fc.boolean(),
        users: fc.subarray(['ann', 'bob:sorted', 'bob', 'x*']),
        priority: fc.integer({ min: 1, max: 3 }),
        effect: fc.constantFrom('Allow', 'Deny'),
        custom_resource_types: fc.constantFrom(null, ['pvc'], ['pvc', 'vm']),
      })
      .map(({ name: ofPolicy, ...over }) => aDocument(ofPolicy, over))
    const step = fc.oneof(
      fc.record({ kind: fc.constant('put' as const), document }),
      fc.record({ kind: fc.constant('remove' as const), name }),
      fc.record({
        kind: fc.constant('resync' as const),
        documents: fc.uniqueArray(document, { selector: ({ policy_name }) => policy_name }),
      }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        await writer.resync([])
        const plain = new Map<string, PolicyDocument>()
        for (const one of steps) {
          if (one.kind === 'put') {
            await writer.put(one.document, active)
            plain.set(one.document.policy_name, one.document)
          } else if (one.kind === 'remove') {
            await writer.remove(`clusterpulse/${one.name}`)
            plain.delete(one.name)
          } else {
            await writer.resync(every(one.documents))
            plain.clear()
            for (const each of one.documents) plain.set(each.policy_name, each)
          }
        }
        const wanted = [...plain.values()].sort((x, y) => (x.policy_name < y.policy_name ? -1 : 1))
        expect(await documentsOf(source)).toEqual(wanted)
        // Nothing is left to mend: the indexes too are as one resync would have written them.
        expect(await writer.resync(every(wanted))).toEqual([])
      }),
      { numRuns: 40 },
    )
  })
}

describe('policies in memory', () => {
  promises(() => {
    const store = new MemoryPolicies()
    return Promise.resolve({ writer: store, source: store, [Symbol.asyncDispose]: () => Promise.resolve() })
  })

  it('answer nobody before the first resync, whatever was put', async () => {
    const store = new MemoryPolicies()
    await store.put(aDocument('a'), active)
    await expect(store.current()).rejects.toBeInstanceOf(PoliciesUnavailableError)
  })

  it('keep the status beside the policy, merged, and gone with it', async () => {
    const store = new MemoryPolicies()
    await store.put(aDocument('a'), { state: 'Active', hash: 'h' })
    await store.putStatus('clusterpulse/a', { state: 'Error', error_at: 't' })
    expect(store.statusOf('clusterpulse/a')).toEqual({ state: 'Error', hash: 'h', error_at: 't' })
    await store.putStatus('clusterpulse/b', { state: 'Error' })
    expect(store.statusOf('clusterpulse/b')).toBeUndefined()
    await store.remove('clusterpulse/a')
    expect(store.statusOf('clusterpulse/a')).toBeUndefined()
  })
})

describe.skipIf(redisMissing)(`policies in Redis${redisMissing ? ` (skipped: ${redisMissing})` : ''}`, () => {
  let server: TestRedis
  beforeAll(async () => {
    server = await startRedis()
  })
  afterAll(() => server?.[Symbol.asyncDispose]())

  promises(async () => {
    const { host, port } = server
    const redis = redisClient({ host, port }, () => undefined)
    await redis.connect()
    await redis.flushall()
    await closeRedis(redis)
    const writer = await RedisPolicies.open({ connection: { host, port } })
    const source = await RedisPolicies.open({ connection: { host, port } })
    return {
      writer,
      source,
      [Symbol.asyncDispose]: async () => {
        await writer[Symbol.asyncDispose]()
        await source[Symbol.asyncDispose]()
      },
    }
  })
})
