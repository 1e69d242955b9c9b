import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { closeRedis, type Redis, redisClient } from '#redis'
import { type Damaged, type Dump, damage, dump, harm } from '../../platform/redis/testing/damage.ts'
import { eventually, redisMissing, startRedis, type TestRedis } from '../state/test/redis-server.ts'
import { readStoredPolicy } from './document.ts'
import { PoliciesUnavailableError } from './errors.ts'
import { RedisPolicies } from './policies-redis.ts'
import { RedisPolicyReader } from './redis-reader.ts'
import { aDocument } from './testing/policies.ts'
import type { PolicyDocument } from './types.ts'

/** More by environment: DAMAGE_CASES=20000. */
const CASES = Number(process.env.DAMAGE_CASES ?? 300)

const every = (documents: readonly PolicyDocument[]) =>
  documents.map((document) => ({ document, status: { state: 'Active' } }))

const document = fc
  .record({
    name: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
    effect: fc.constantFrom('Allow' as const, 'Deny' as const),
    priority: fc.integer({ min: 1, max: 3 }),
    users: fc.subarray(['ann', 'bob']),
    groups: fc.subarray(['dev', 'ops']),
  })
  .map(({ name, ...over }) => aDocument(name, over))
const world = fc.uniqueArray(document, { selector: ({ policy_name }) => policy_name, maxLength: 5 })

const damaged = (redis: Redis): Damaged => ({
  redis,
  pattern: 'polic*',
  members: ['a', 'b', 'c', 'ghost'].map((name) => `policy:clusterpulse:${name}`),
  another: (text) => text.replace('Deny', 'Allow').replace('ann', 'eve'),
})

describe.skipIf(redisMissing)(
  `policies in a Redis that is damaged${redisMissing ? ` (skipped: ${redisMissing})` : ''}`,
  () => {
    let server: TestRedis
    let hand: Redis
    let manager: RedisPolicies

    beforeAll(async () => {
      server = await startRedis()
      const { host, port } = server
      hand = redisClient({ host, port }, () => undefined)
      await hand.connect()
      manager = await RedisPolicies.open({ connection: { host, port }, checkEveryMs: 60_000 })
    })
    afterAll(async () => {
      await manager?.[Symbol.asyncDispose]()
      await closeRedis(hand)
      await server[Symbol.asyncDispose]()
    })

    const read = async (reader: RedisPolicyReader) =>
      reader.load().then(
        ({ generation }) => generation.policies.map(({ document: one, faults }) => ({ document: one, faults })),
        (error: unknown) => {
          expect(error).toBeInstanceOf(PoliciesUnavailableError)
          return undefined
        },
      )
    const asRead = (documents: readonly PolicyDocument[]) =>
      [...documents]
        .sort((a, b) => (a.policy_name < b.policy_name ? -1 : 1))
        .map((one) => ({
          document: readStoredPolicy(`${one.namespace}/${one.policy_name}`, JSON.stringify(one)).document,
          faults: [],
        }))

    it('are those that the manager wrote, or none: nothing less and nothing else is answered by', async () => {
      let [refused, answered] = [0, 0]
      await fc.assert(
        fc.asyncProperty(
          fc.array(world, { minLength: 1, maxLength: 4 }),
          fc.array(damage, { minLength: 1, maxLength: 4 }),
          async (worlds, damages) => {
            await hand.flushall()
            const history: Dump[] = []
            for (const documents of worlds) {
              await manager.resync(every(documents))
              history.push(await dump(damaged(hand)))
            }
            // One that knows the policies, and one that starts after the damage.
            const [knows, starts] = [1, 2].map(() => new RedisPolicyReader(hand, readStoredPolicy, false))
            const intact = asRead(worlds.at(-1) ?? [])
            if (!knows || !starts) return
            expect(await read(knows)).toEqual(intact)
            for (const one of damages) await harm(damaged(hand), one, history.slice(0, -1))
            // All of an older generation, whole: that only the manager can tell from the newest.
            const seal = await hand.dumpBuffer('policies:digest')
            const older = worlds.filter((_, i) => seal && history[i]?.get('policies:digest')?.equals(seal)).map(asRead)
            for (const reader of [knows, starts]) {
              const found = await read(reader)
              if (found === undefined) refused++
              else {
                answered++
                expect([intact, ...older]).toContainEqual(found)
              }
            }
            await manager.resync(every(worlds.at(-1) ?? []))
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
      const documents = [aDocument('allow'), aDocument('deny', { effect: 'Deny' })]
      const { host, port } = server
      await using alive = await RedisPolicies.open({ connection: { host, port }, checkEveryMs: 50 })
      await alive.resync(every(documents))
      alive.onLost(() => void alive.resync(every(documents)).catch(() => undefined))
      await using api = await RedisPolicies.open({ connection: { host, port }, checkEveryMs: 50 })
      for (const harmed of ['member', 'document', 'digest', 'generation'] as const) {
        await eventually('all is well', async () => (await api.current().catch(() => undefined))?.policies.length === 2)
        if (harmed === 'member') await hand.srem('policies:all', 'policy:clusterpulse:deny')
        if (harmed === 'document') await hand.hdel('policy:clusterpulse:deny', 'data')
        if (harmed === 'digest') await hand.del('policies:digest')
        if (harmed === 'generation')
          await hand
            .lpush('policies:generation2', 'x')
            .then(() => hand.rename('policies:generation2', 'policies:generation'))
        await eventually(
          `it is put right: ${harmed}`,
          async () =>
            (await hand.type('policies:generation')) === 'string' &&
            (await hand.sismember('policies:all', 'policy:clusterpulse:deny')) === 1 &&
            (await hand.exists('policies:digest')) === 1 &&
            (await hand.hexists('policy:clusterpulse:deny', 'data')) === 1,
        )
      }
      await eventually('all is well', async () => (await api.current().catch(() => undefined))?.policies.length === 2)
    })
  },
)
