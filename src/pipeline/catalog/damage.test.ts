import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { StoreUnavailableError } from '#model'
import { closeRedis, type Redis, redisClient } from '#redis'
import { silentLogger } from '#runtime'
import { type Damaged, type Dump, damage, dump, harm } from '../../platform/redis/testing/damage.ts'
import { eventually, redisMissing, startRedis, type TestRedis } from '../state/test/redis-server.ts'
import { RedisCatalog } from './index.ts'
import { RedisCatalogReader } from './redis-reader.ts'
import { aDefinition, readShallow } from './testing/definitions.ts'

/** More by environment: DAMAGE_CASES=20000. */
const CASES = Number(process.env.DAMAGE_CASES ?? 200)

const definition = fc
  .tuple(fc.constantFrom('a', 'b', 'c', 'd'), fc.constantFrom('x', 'y'), fc.constantFrom('1', '2'))
  .map(([name, typeName, hash]) => aDefinition(name, { typeName, hash }))
const world = fc.uniqueArray(definition, { selector: ({ name }) => name, maxLength: 4 })

const damaged = (redis: Redis): Damaged => ({
  redis,
  pattern: 'metricsource*',
  members: ['a', 'b', 'c', 'ghost'].map((name) => `clusterpulse/${name}`),
  another: (text) => text.replace('"hash":"1"', '"hash":"3"').replace('configmaps', 'secrets'),
})

describe.skipIf(redisMissing)(
  `MetricSources in a Redis that is damaged${redisMissing ? ` (skipped: ${redisMissing})` : ''}`,
  () => {
    let server: TestRedis
    let hand: Redis
    let manager: RedisCatalog

    beforeAll(async () => {
      server = await startRedis()
      const { host, port } = server
      hand = redisClient({ host, port }, () => undefined)
      await hand.connect()
      manager = await RedisCatalog.open({ connection: { host, port }, checkEveryMs: 60_000, read: readShallow })
    })
    afterAll(async () => {
      await manager?.[Symbol.asyncDispose]()
      await closeRedis(hand)
      await server[Symbol.asyncDispose]()
    })

    const read = async (reader: RedisCatalogReader) =>
      reader.load().then(
        ({ picture }) => picture.sources.map((source) => source.definition),
        (error: unknown) => {
          expect(error).toBeInstanceOf(StoreUnavailableError)
          return undefined
        },
      )

    it('are those that the manager wrote, or none is told: nothing less, and nothing else', async () => {
      let [refused, answered] = [0, 0]
      await fc.assert(
        fc.asyncProperty(
          fc.array(world, { minLength: 1, maxLength: 4 }),
          fc.array(damage, { minLength: 1, maxLength: 3 }),
          async (worlds, damages) => {
            await hand.flushall()
            const history: Dump[] = []
            for (const definitions of worlds) {
              await manager.resync(definitions)
              history.push(await dump(damaged(hand)))
            }
            const sorted = (one: (typeof worlds)[number] = []) =>
              [...one].sort((a, b) => (String(a.name) < String(b.name) ? -1 : 1))
            // One that knows the sources, and one that starts after the damage.
            const [knows, starts] = [1, 2].map(() => new RedisCatalogReader(hand, readShallow, silentLogger, false))
            const intact = sorted(worlds.at(-1))
            if (!knows || !starts) return
            expect(await read(knows)).toEqual(intact)
            for (const one of damages) await harm(damaged(hand), one, history.slice(0, -1))
            // All of an older generation, whole: that only the manager can tell from the newest.
            const seal = await hand.dumpBuffer('metricsources:digest')
            const older = worlds
              .filter((_, i) => seal && history[i]?.get('metricsources:digest')?.equals(seal))
              .map(sorted)
            for (const reader of [knows, starts]) {
              const found = await read(reader)
              if (found === undefined) refused++
              else {
                answered++
                expect([intact, ...older]).toContainEqual(found)
              }
            }
            await manager.resync(worlds.at(-1) ?? [])
            for (const reader of [knows, starts]) expect(await read(reader)).toEqual(intact)
          },
        ),
        { numRuns: CASES },
      )
      // Both happen: what other readers use is damaged without harm to ours.
      expect(refused).toBeGreaterThan(CASES / 2)
      expect(answered).toBeGreaterThan(CASES / 20)
    }, 600_000)

    it('are written again by a manager that lives', async () => {
      const definitions = [aDefinition('a'), aDefinition('b')]
      const { host, port } = server
      const options = { connection: { host, port }, checkEveryMs: 50, read: readShallow }
      await using alive = await RedisCatalog.open(options)
      await alive.resync(definitions)
      alive.onLost(() => void alive.resync(definitions).catch(() => undefined))
      await using api = await RedisCatalog.open(options)
      for (const harmed of ['member', 'document', 'digest', 'generation'] as const) {
        await eventually('all is well', () => api.unavailable() === undefined && api.sources().length === 2)
        if (harmed === 'member') await hand.srem('metricsources:enabled', 'clusterpulse/b')
        if (harmed === 'document') await hand.del('metricsource:clusterpulse:b')
        if (harmed === 'digest') await hand.del('metricsources:digest')
        if (harmed === 'generation')
          await hand.multi().del('metricsources:generation').lpush('metricsources:generation', 'x').exec()
        await eventually(
          `it is put right: ${harmed}`,
          async () =>
            (await hand.type('metricsources:generation')) === 'string' &&
            (await hand.sismember('metricsources:enabled', 'clusterpulse/b')) === 1 &&
            (await hand.exists('metricsources:digest', 'metricsource:clusterpulse:b')) === 2,
        )
        expect(api.sources().length).toBe(2)
      }
      await eventually('all is well', () => api.unavailable() === undefined)
    })
  },
)
