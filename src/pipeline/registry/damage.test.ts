import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { closeRedis, type Redis, redisClient } from '#redis'
import { type Damaged, type Dump, damage, dump, harm } from '../../platform/redis/testing/damage.ts'
import { eventually, redisMissing, startRedis, type TestRedis } from '../state/test/redis-server.ts'
import { RedisRegistries } from './redis-registries.ts'
import { targetAt } from './testing/registry-server.ts'
import type { RegistryFacts } from './types.ts'

/** More by environment: DAMAGE_CASES=20000. */
const CASES = Number(process.env.DAMAGE_CASES ?? 60)

const facts = (name: string, endpoint = `https://${name}.example`): RegistryFacts => targetAt(endpoint, { name })
const world = fc.uniqueArray(
  fc
    .tuple(fc.constantFrom('a', 'b', 'c', 'd'), fc.constantFrom('https://one', 'https://two'))
    .map(([name, endpoint]) => facts(name, endpoint)),
  { selector: ({ name }) => name, maxLength: 4 },
)
const declared = (store: RedisRegistries) =>
  store
    .registries()
    .map((one) => `${one.facts.name} ${one.facts.endpoint}`)
    .sort()
const wanted = (all: readonly RegistryFacts[]) => all.map(({ name, endpoint }) => `${name} ${endpoint}`).sort()

const damaged = (redis: Redis): Damaged => ({
  redis,
  pattern: 'registr*',
  members: ['a', 'b', 'c', 'ghost'],
  another: (text) => text.replace('https://one', 'https://two'),
})

describe.skipIf(redisMissing)(
  `registries in a Redis that is damaged${redisMissing ? ` (skipped: ${redisMissing})` : ''}`,
  () => {
    let server: TestRedis
    let hand: Redis

    beforeAll(async () => {
      server = await startRedis()
      const { host, port } = server
      hand = redisClient({ host, port }, () => undefined)
      await hand.connect()
    })
    afterAll(async () => {
      await closeRedis(hand)
      await server[Symbol.asyncDispose]()
    })
    const open = (over: object = {}) =>
      RedisRegistries.open({ connection: { host: server.host, port: server.port }, checkEveryMs: 60_000, ...over })

    it('are those that the manager wrote, or it is said that they are not', async () => {
      let [refused, answered] = [0, 0]
      await using manager = await open()
      await fc.assert(
        fc.asyncProperty(
          fc.array(world, { minLength: 1, maxLength: 3 }),
          fc.array(damage, { minLength: 1, maxLength: 2 }),
          async (worlds, damages) => {
            await hand.flushall()
            const history: Dump[] = []
            for (const all of worlds) {
              await manager.resync(all)
              history.push(await dump(damaged(hand)))
            }
            for (const one of damages) await harm(damaged(hand), one, history.slice(0, -1))
            const seal = await hand.dumpBuffer('registries:digest')
            const older = worlds
              .filter((_, i) => seal && history[i]?.get('registries:digest')?.equals(seal))
              .map(wanted)
            const intact = wanted(worlds.at(-1) ?? [])
            await using api = await open({ sealed: true })
            if (api.unavailable()) refused++
            else {
              answered++
              expect([intact, ...older]).toContainEqual(declared(api))
            }
            await manager.resync(worlds.at(-1) ?? [])
            await using again = await open({ sealed: true })
            expect([again.unavailable(), declared(again)]).toEqual([undefined, intact])
          },
        ),
        { numRuns: CASES },
      )
      expect(refused).toBeGreaterThan(CASES / 3)
      expect(answered).toBeGreaterThan(0)
    }, 600_000)

    it('stay as they were known while something is missing, and are written again by a manager that lives', async () => {
      await hand.flushall()
      const all = [facts('a'), facts('b')]
      await using manager = await open({ checkEveryMs: 100 })
      manager.onLost(() => void manager.resync(all).catch(() => undefined))
      await using api = await open({ sealed: true, checkEveryMs: 100 })
      expect(api.unavailable()?.reason).toContain('not written yet')
      await manager.resync(all)
      for (const harmed of ['member', 'document', 'digest', 'generation'] as const) {
        await eventually('all is well', () => api.unavailable() === undefined && api.registries().length === 2)
        if (harmed === 'member') await hand.srem('registries:all', 'b')
        if (harmed === 'document') await hand.del('registry:b:spec')
        if (harmed === 'digest') await hand.del('registries:digest')
        if (harmed === 'generation') await hand.set('registries:generation', 'x')
        await eventually(
          `it is put right: ${harmed}`,
          async () =>
            (await hand.sismember('registries:all', 'b')) === 1 &&
            (await hand.exists('registries:digest', 'registry:b:spec')) === 2 &&
            (await hand.get('registries:generation')) !== 'x',
        )
        expect(api.registries().length).toBe(2)
      }
      await manager.remove('b')
      await manager.declare(facts('c'))
      await eventually('changes follow', () => declared(api).join() === wanted([facts('a'), facts('c')]).join())
      expect(api.unavailable()).toBeUndefined()
    })
  },
)
