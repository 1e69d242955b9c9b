import { readFile } from 'node:fs/promises'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { StoreUnavailableError } from '#model'
import { all } from '../../../test/properties.ts'
import { SilentProxy } from '../../../test/silent-proxy.ts'
import { eventually, redisMissing, startRedis, type TestRedis } from '../../pipeline/state/test/redis-server.ts'
import { closeRedis, type Redis, type RedisConnection, redisClient } from './index.ts'
import { sha1 } from './seal.ts'
import { type Contents, readContents } from './set-contents.ts'
import { SetReader } from './set-reader.ts'
import { type Damaged, type Dump, damage, dump, harm, putBack } from './testing/damage.ts'
import { entriesOf } from './testing/entries.ts'
import { type Item, type Member, type Use, uses } from './testing/uses.ts'

/** More by environment: DAMAGE_CASES=20000. */
const CASES = Number(process.env.DAMAGE_CASES ?? 150)

const item: fc.Arbitrary<Item> = fc.record({
  name: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
  variant: fc.integer({ min: 1, max: 3 }),
})
const world = fc.uniqueArray(item, { selector: ({ name }) => name, maxLength: 5 })
const items = (...names: string[]): Item[] => names.map((name) => ({ name, variant: 1 }))
const textsOf = (all: readonly Item[]) => all.map(({ name, variant }) => `${name} ${variant}`).sort()

describe.skipIf(redisMissing).each(uses)(
  `$title in a shared Redis${redisMissing ? ` (not run: ${redisMissing})` : ''}`,
  (use: Use) => {
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

    const { layout } = use
    const connection = (over: Partial<RedisConnection> = {}) => ({ host: server.host, port: server.port, ...over })
    async function open(checkEveryMs = 100, at = connection()): Promise<Member> {
      const member = await use.open({ connection: at, checkEveryMs })
      opened.push(member)
      return member
    }
    /** A manager that writes again what was lost, as its reconciler does. */
    async function manager(all: readonly Item[], checkEveryMs = 100): Promise<Member> {
      const member = await open(checkEveryMs)
      await member.resync(all)
      member.onLost(() => void member.resync(all).catch(() => undefined))
      return member
    }
    const isRead = async (member: Member, all: readonly Item[]) => (await member.read())?.join() === textsOf(all).join()
    const damaged = (): Damaged => ({
      redis: hand,
      pattern: use.pattern,
      members: items('a', 'b', 'c', 'ghost').map(({ name }) => use.member(name)),
      another: use.another,
    })

    it('are those that the manager wrote, or an error: nothing less and nothing else, whatever happened to Redis', async () => {
      const writer = await open(60_000)
      let [refused, answered] = [0, 0]
      await fc.assert(
        fc.asyncProperty(
          fc.array(world, { minLength: 1, maxLength: 4 }),
          fc.array(damage, { minLength: 1, maxLength: 4 }),
          async (worlds, damages) => {
            await hand.flushall()
            // One that knows them, and one that starts after the damage.
            const [knows, starts] = [1, 2].map(() => new SetReader(hand, layout, (_, text) => text, 'refused'))
            if (!knows || !starts) return
            const read = (reader: typeof knows) =>
              reader.load().then(
                ({ documents }) => [...documents].map(([name, { value }]) => `${name} ${value}`).sort(),
                (error: unknown) => {
                  expect(error).toBeInstanceOf(StoreUnavailableError)
                  return undefined
                },
              )
            // Its text: dumps of equal texts may differ.
            const sealText = () => hand.get(layout.seal).catch(() => null)
            const history: { dump: Dump; texts: string[] | undefined; seal: string | null }[] = []
            for (const all of worlds) {
              await writer.resync(all)
              history.push({
                dump: await dump(damaged()),
                texts: await read(knows),
                seal: await sealText(),
              })
            }
            const intact = history.at(-1)?.texts
            expect(intact).toHaveLength(worlds.at(-1)?.length ?? 0)
            const former = history.slice(0, -1).map((moment) => moment.dump)
            for (const key of use.besides) await hand.set(key, 'x')
            for (const one of damages) await harm(damaged(), one, former)
            // All of an older generation, whole: that only the manager can tell from the newest, and who has read a newer one.
            const seal = await sealText()
            const older = history.filter((moment) => seal && moment.seal === seal).map(({ texts }) => texts)
            for (const reader of [knows, starts]) {
              const found = await read(reader)
              if (found === undefined) refused++
              else {
                answered++
                expect([intact, ...(reader === starts ? older : [])]).toContainEqual(found)
              }
            }
            await writer.resync(worlds.at(-1) ?? [])
            for (const reader of [knows, starts]) expect(await read(reader)).toEqual(intact)
          },
        ),
        all({ numRuns: CASES }),
      )
      // Both happen: what other readers use is damaged without harm to ours.
      expect(refused).toBeGreaterThan(CASES / 3)
      expect(answered).toBeGreaterThan(CASES / 20)
    }, 600_000)

    it('are written again by a manager that lives, whatever is lost', async () => {
      await manager(items('a', 'b'))
      const reader = await open()
      const key = layout.documentKey(use.member('b'))
      for (const harmed of ['member', 'document', 'digest', 'generation'] as const) {
        await eventually('all is well', () => isRead(reader, items('a', 'b')))
        const before = await readContents(hand, [layout.members, key])
        if (harmed === 'member') await hand.srem(layout.members, use.member('b'))
        if (harmed === 'document') await hand.del(key)
        if (harmed === 'digest') await hand.del(layout.seal)
        if (harmed === 'generation') await hand.multi().del(layout.generation).lpush(layout.generation, 'x').exec()
        await eventually(
          `it is put right: ${harmed}`,
          async () =>
            (await hand.type(layout.generation)) === 'string' &&
            (await hand.exists(layout.seal, key)) === 2 &&
            (await hand.sismember(layout.members, use.member('b'))) === 1,
        )
        expect(await readContents(hand, [layout.members, key])).toEqual(before)
      }
      await eventually('all is well', () => isRead(reader, items('a', 'b')))
    })

    it('have every key and every entry written again that is lost alone, those for other readers too', async () => {
      const writer = await open()
      await writer.resync(items('a', 'b', 'c'))
      writer.onLost(() => void writer.resync(items('a', 'b')).catch(() => undefined))
      // That leaves some of the indexes empty, or not.
      await writer.remove('c')
      const keys = (await hand.keys('*')).sort()
      expect(keys.length).toBeGreaterThan(4)
      const before = await readContents(hand, keys)
      const ours = [layout.generation, layout.seal]
      for (const key of keys) {
        expect(await hand.del(key)).toBe(1)
        await eventually(`${key} is there again`, async () => (await hand.exists(key)) === 1, 15_000)
      }
      const after = await readContents(hand, keys)
      for (const key of keys) if (!ours.includes(key)) expect(after.get(key), key).toEqual(before.get(key))
      // Values may say when they were written.
      const names = (key: string, all: Contents) => [...(all.get(key)?.entries.keys() ?? [])].sort().join()
      for (const key of keys) {
        for (const { what, take } of await entriesOf(hand, key)) {
          expect(await take(), what).toBe(1)
          const isThere = async () => names(key, await readContents(hand, [key])) === names(key, before)
          await eventually(`${what} is there again`, isThere, 15_000)
        }
      }
    })

    it('lose within a look what somebody adds to an index of other readers', async () => {
      const writer = await manager(items('a', 'b'))
      await writer.remove('b')
      for (const key of (await hand.keys(use.pattern)).sort()) {
        const { kind } = (await readContents(hand, [key])).get(key) ?? {}
        if (kind === 'set') await hand.sadd(key, 'ghost')
        else if (kind === 'zset') await hand.zadd(key, 1, 'ghost')
        else continue
        const has = async () => (await readContents(hand, [key])).get(key)?.entries.has('ghost')
        await eventually(`${key} is without it`, async () => !(await has()), 15_000)
      }
    })

    it('are never taken for none: not in a new Redis, not after a flush, not from a few alone', async () => {
      const [writer, reader] = [await open(), await open()]
      expect(await reader.read()).toBeUndefined()
      await expect(writer.put({ name: 'a', variant: 1 })).rejects.toBeInstanceOf(StoreUnavailableError)
      await writer.resync(items('a', 'b'))
      await eventually('they are read', () => isRead(reader, items('a', 'b')))
      const generation = Number(await hand.get(layout.generation))
      let lost = 0
      writer.onLost(() => lost++)
      await hand.flushall()
      await eventually('the loss is noticed', async () => lost > 0 && (await reader.read()) === undefined)
      await expect(writer.put({ name: 'a', variant: 2 })).rejects.toThrow('written again as a whole')
      expect(await hand.keys('*')).toEqual([])
      await writer.resync(items('a', 'b'))
      await eventually('they are read', () => isRead(reader, items('a', 'b')))
      expect(Number(await hand.get(layout.generation))).toBeGreaterThan(generation)
      await writer.resync([])
      await eventually('that there are none is an answer', () => isRead(reader, []))
    })

    it('are refused where a dump of the past was put back, until a manager has written again', async () => {
      const [writer, reader] = [await open(60_000), await open()]
      await writer.resync(items('a'))
      await eventually('they are read', () => isRead(reader, items('a')))
      const past = await dump(damaged())
      await writer.put({ name: 'b', variant: 1 })
      await eventually('they are read', () => isRead(reader, items('a', 'b')))
      await putBack(damaged(), past)
      await eventually('it is refused', async () => (await reader.read()) === undefined)
      await writer.resync(items('a', 'b'))
      await eventually('they are read', () => isRead(reader, items('a', 'b')))
      // The next manager finds such a dump, and wants just that.
      await putBack(damaged(), past)
      await eventually('it is refused', async () => (await reader.read()) === undefined)
      await (await open(60_000)).resync(items('a'))
      await eventually('they are read', () => isRead(reader, items('a')))
    })

    it('are followed at once, and also where no announcement is heard', async () => {
      const writer = await open()
      await writer.resync(items('a'))
      const reader = await open(60_000)
      expect(await isRead(reader, items('a'))).toBe(true)
      await eventually('it listens', async () => Number((await hand.pubsub('NUMSUB', layout.channel))[1]) === 2)
      await writer.put({ name: 'b', variant: 1 })
      await eventually('the change is read', () => isRead(reader, items('a', 'b')))
      await hand.call('ACL', 'SETUSER', 'deaf', 'reset', 'on', '>secret', '~*', 'resetchannels', '+@all')
      const deaf = await open(50, connection({ username: 'deaf', password: 'secret' }))
      await writer.remove('a')
      await eventually('the change is found', () => isRead(deaf, items('b')))
    })

    it('are read anew over another connection where one goes silent', async () => {
      const writer = await open()
      await writer.resync(items('a'))
      await using proxy = await SilentProxy.before(server.port)
      const patience = { host: '127.0.0.1', port: proxy.port, commandTimeoutMs: 400, heartbeatMs: 150 }
      const [reader, other] = [await open(100, connection(patience)), await open(100, connection(patience))]
      expect(await isRead(reader, items('a'))).toBe(true)
      await other.put({ name: 'b', variant: 1 })
      expect(proxy.silence()).toBeGreaterThanOrEqual(5)
      await expect(other.put({ name: 'c', variant: 1 })).rejects.toBeInstanceOf(StoreUnavailableError)
      await writer.put({ name: 'd', variant: 1 })
      await eventually('the change is read', () => isRead(reader, items('a', 'b', 'd')))
      await eventually('it is written', () =>
        other.put({ name: 'c', variant: 1 }).then(
          () => true,
          () => false,
        ),
      )
      await eventually('that is read too', () => isRead(reader, items('a', 'b', 'c', 'd')))
    })

    it('are asked for at a pace while they cannot be read', async () => {
      await hand.set(layout.generation, '7')
      await open(60_000)
      const asked = async () => Number(/cmdstat_eval:calls=(\d+)/.exec(await hand.info('commandstats'))?.[1] ?? 0)
      const before = await asked()
      const began = performance.now()
      await eventually('it is asked again', async () => (await asked()) > before)
      await new Promise((resolve) => setTimeout(resolve, 2_000))
      const seconds = (performance.now() - began) / 1000
      expect((await asked()) - before).toBeLessThan(8 * seconds)
    })

    it('are looked at again where one changes between its digest and its document', async () => {
      const writer = await open(60_000)
      await writer.resync(items('a', 'b'))
      let meddlings = 3
      const meddle = async () => {
        if (meddlings-- > 0) for (const name of ['a', 'b']) await writer.put({ name, variant: (meddlings % 3) + 1 })
      }
      const read = async (key: string) => {
        await meddle()
        return layout.field === undefined ? hand.getBuffer(key) : hand.hgetBuffer(key, layout.field)
      }
      const meddled = { pipeline: (commands: never) => hand.pipeline(commands), getBuffer: read, hgetBuffer: read }
      const reader = new SetReader(meddled as unknown as Redis, layout, (_, text) => text, 'refused') // all that it uses
      const { documents } = await reader.load()
      for (const [name, { value, sha1: digest }] of documents) {
        expect(sha1(value ?? '')).toBe(digest)
        expect(value).toBe((await read(layout.documentKey(name)))?.toString())
      }
      meddlings = 1_000
      await writer.put({ name: 'a', variant: 3 })
      await expect(reader.load()).rejects.toThrow('change faster than they can be read')
    })

    it('are as of one moment, however fast they change', async () => {
      const writer = await open(60_000)
      const all = (variant: number) => Array.from({ length: 30 }, (_, i) => ({ name: `p${i}`, variant }))
      await writer.resync(all(1))
      const reader = await open(60_000)
      await eventually('it listens', async () => Number((await hand.pubsub('NUMSUB', layout.channel))[1]) === 2)
      let isWriting = true
      const seen = new Set<string>()
      const reading = (async () => {
        while (isWriting) {
          const variants = new Set((await reader.read())?.map((text) => text.split(' ')[1] ?? ''))
          expect(variants.size).toBe(1)
          for (const variant of variants) seen.add(variant)
          await new Promise((resolve) => setImmediate(resolve))
        }
      })()
      // A resync alone is not announced everywhere.
      for (let i = 2; i < 60 || (seen.size <= 3 && i < 600); i++) {
        await writer.resync(all(i))
        await hand.publish(layout.channel, '{}')
      }
      isWriting = false
      await reading
      expect(seen.size).toBeGreaterThan(3)
    })

    it('hold what both of two writers wrote at once', async () => {
      const [one, other] = [await open(60_000), await open(60_000)]
      await one.resync([])
      await other.resync([])
      const names = Array.from({ length: 10 }, (_, i) => `s${i}`)
      const puts = names.flatMap((name) => [
        one.put({ name, variant: 1 }),
        other.put({ name: `t-${name}`, variant: 1 }),
      ])
      await Promise.all(puts)
      await eventually('both read all', () => isRead(one, items(...names, ...names.map((name) => `t-${name}`))))
      await one.remove('s0')
      expect(await hand.scard(layout.members)).toBe(19)
    })

    // recorded.json: what a manager wrote before policies, MetricSources and registries were one kind of set.
    it('of former versions are read, and what is written stays as theirs', async () => {
      const recorded = Object.fromEntries(
        Object.entries(
          JSON.parse(await readFile(new URL('./testing/recorded.json', import.meta.url), 'utf8')) as Recorded,
        ).filter(([key]) => use.owns.test(key)),
      )
      for (const [key, value] of Object.entries(recorded)) await hand.pipeline([commandOf(key, value)]).exec()
      const reader = await open()
      expect(await reader.read()).toHaveLength(2)
      // Over it, and from nothing; what is ours alone counts anew.
      for (const from of ['recorded', 'nothing']) {
        if (from === 'nothing') await hand.flushall()
        await use.writeRecorded(connection())
        const written = await contents(hand)
        const [generation, seal] = [written[layout.generation], written[layout.seal]].map((one) => String(one?.string))
        expect(seal).toBe(String(recorded[layout.seal]?.string).replace(/^\d+/, String(generation)))
        const ours = { [layout.generation]: '', [layout.seal]: '' }
        expect({ ...written, ...ours }).toEqual({ ...recorded, ...ours })
      }
    })
  },
)

type Recorded = Readonly<Record<string, Readonly<Record<string, unknown>>>>

/** All keys, as in recorded.json. */
async function contents(redis: Redis): Promise<Recorded> {
  const all: Record<string, Readonly<Record<string, unknown>>> = {}
  for (const key of await redis.keys('*')) {
    const type = await redis.type(key)
    if (type === 'hash') all[key] = { hash: await redis.hgetall(key) }
    else if (type === 'set') all[key] = { set: (await redis.smembers(key)).sort() }
    else if (type === 'zset') all[key] = { zset: await redis.zrange(key, '0', '-1', 'WITHSCORES') }
    else if (type === 'list') all[key] = { list: await redis.lrange(key, 0, -1) }
    else all[key] = { string: await redis.get(key) }
  }
  return all
}

function commandOf(key: string, value: Recorded[string]): (string | number)[] {
  if (value.string !== undefined) return ['set', key, String(value.string)]
  if (value.hash) return ['hset', key, ...Object.entries(value.hash as Record<string, string>).flat()]
  if (value.set) return ['sadd', key, ...(value.set as string[])]
  if (value.list) return ['rpush', key, ...(value.list as string[])]
  const flat = value.zset as string[]
  return ['zadd', key, ...flat.flatMap((member, i) => (i % 2 === 0 ? [flat[i + 1] ?? '', member] : []))]
}
