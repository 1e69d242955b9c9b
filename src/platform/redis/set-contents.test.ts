import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { redisMissing, startRedis, type TestRedis } from '../../pipeline/state/test/redis-server.ts'
import { closeRedis, pipelined, type Redis, redisClient } from './redis.ts'
import { aHash, aSet, aString, type Contents, differences, readContents, type Value } from './set-contents.ts'

const name = fc.constantFrom('a', 'b', 'c', ' ', 'é')
const some = { minLength: 1, maxLength: 4 }
const value: fc.Arbitrary<Value> = fc.oneof(
  fc.string().map(aString),
  fc.dictionary(name, fc.string(), { minKeys: 1 }).map(aHash),
  fc.uniqueArray(name, some).map(aSet),
  fc
    .uniqueArray(fc.tuple(name, fc.integer()), { ...some, selector: ([member]) => member })
    .map((members): Value => ({ kind: 'zset', entries: new Map(members) })),
)
const keys = ['k1', 'k2', 'k*[3]', 'k4']
const contents: fc.Arbitrary<Contents> = fc
  .uniqueArray(fc.tuple(fc.constantFrom(...keys), value), { selector: ([key]) => key })
  .map((entries) => new Map(entries))

const sameValue = (one: Value | undefined, other: Value | undefined) =>
  one?.kind === other?.kind &&
  JSON.stringify([...(one?.entries ?? [])].sort()) === JSON.stringify([...(other?.entries ?? [])].sort())

describe('the differences of what is stored and what is wanted', () => {
  it('are none exactly where both are the same, and name what moved and nothing else', () => {
    fc.assert(
      fc.property(contents, contents, (stored, wanted) => {
        expect(differences(wanted, new Map([...wanted].reverse()))).toEqual({ commands: [], moved: new Map() })
        const { commands, moved } = differences(stored, wanted)
        for (const key of keys) {
          const [before, after] = [stored.get(key), wanted.get(key)]
          expect(moved.has(key)).toBe(!sameValue(before, after))
          expect(commands.some(([, at]) => at === key)).toBe(moved.has(key))
          const isOtherKind = after !== undefined && before?.kind !== after.kind
          const held = isOtherKind ? new Map() : (before?.entries ?? new Map())
          const names = new Set([...held.keys(), ...(after?.entries.keys() ?? [])])
          const expected = [...names].filter(
            (one) => held.has(one) !== (after?.entries.has(one) ?? false) || held.get(one) !== after?.entries.get(one),
          )
          if (moved.has(key)) expect([...(moved.get(key) ?? [])].sort()).toEqual(expected.sort())
        }
      }),
    )
  })
})

describe.skipIf(redisMissing)(`contents of a real Redis${redisMissing ? ` (not run: ${redisMissing})` : ''}`, () => {
  let server: TestRedis
  let redis: Redis
  beforeAll(async () => {
    server = await startRedis()
    redis = redisClient({ host: server.host, port: server.port }, () => undefined)
    await redis.connect()
  })
  afterAll(async () => {
    await closeRedis(redis)
    await server[Symbol.asyncDispose]()
  })

  it('become what is wanted, whatever was stored, and are read as they are', async () => {
    await fc.assert(
      fc.asyncProperty(contents, contents, async (stored, wanted) => {
        await redis.flushall()
        await redis.rpush('kept', 'a list')
        for (const next of [stored, wanted]) {
          const before = await readContents(redis, ['k4'], ['k[0-9*]*'])
          const { commands } = differences(before, next)
          if (commands.length > 0) await pipelined(redis, commands)
          const after = await readContents(redis, ['k4'], ['k[0-9*]*'])
          expect([...after.keys()].sort()).toEqual([...next.keys()].sort())
          for (const [key, wanted] of next) expect(sameValue(after.get(key), wanted)).toBe(true)
        }
        expect(await readContents(redis, ['kept', 'missing'])).toEqual(
          new Map([['kept', { kind: 'other', entries: new Map() }]]),
        )
      }),
      { numRuns: 150 },
    )
  })

  it('of more members than one command takes are written and taken away', async () => {
    await redis.flushall()
    const many = new Map([['k1', aSet(Array.from({ length: 12_000 }, (_, i) => `m${i}`))]])
    const one = new Map([['k1', aSet(['m3'])]])
    for (const next of [many, one, many]) {
      const { commands, moved } = differences(await readContents(redis, ['k1']), next)
      expect(commands).toHaveLength(3)
      expect(moved.get('k1')?.length).toBeGreaterThan(11_990)
      await pipelined(redis, commands)
    }
    expect(await redis.scard('k1')).toBe(12_000)
  })
})
