import fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type ClusterName, ownerOf, parseClusterName, Table } from '#model'
import { openState, RedisMirror, type RedisStateOptions, type StateReader, type StateStore } from '#state'
import {
  aBatch,
  aNode,
  batchRecord,
  complete,
  connected,
  partial,
  removed,
  seen,
  T0,
} from '../state/test/fleet-words.ts'
import { laggingRedis } from '../state/test/lagging-redis.ts'
import { eventually, redisMissing, startRedis, type TestRedis } from '../state/test/redis-server.ts'
import { openEvents } from './open.ts'
import type { EventBus, NumberedChange, Subscription } from './types.ts'

const names = ['north', 'east', 'south', 'west'].map(parseClusterName)
const wide = (turn: number): Table =>
  Table.of(
    ['a', 'b'],
    Array.from({ length: 5_000 }, (_, i) => ({
      ...{ namespace: 'n', name: `r${String(i).padStart(5, '0')}`, labels: {} },
      values: { a: i * turn, b: `${i}-${turn}` },
    })),
  )

/** One `api` process: a mirror, its bus, and which state it showed by which id. */
class Replica implements AsyncDisposable {
  readonly mirror: RedisMirror
  readonly bus: EventBus
  readonly states = new Map<string, string>()
  /** groups of more than one entry: a cluster was read too early */
  merged = 0

  constructor(connection: RedisStateOptions['connection']) {
    this.mirror = new RedisMirror({ connection, waitMs: 100, random: () => 0.1 })
    this.bus = openEvents({ kind: 'follow', source: this.mirror })
    this.bus.subscribe((events) => {
      const id = events.at(-1)!.id
      expect(id).toBe(this.bus.head())
      if (new Set(events.map(({ id }) => id)).size > 1) this.merged++
      this.note()
    })
  }

  note(): void {
    this.states.set(this.bus.head(), said(this.mirror))
  }

  async [Symbol.asyncDispose]() {
    await this.bus[Symbol.asyncDispose]()
    await this.mirror[Symbol.asyncDispose]()
  }
}

const said = (state: StateReader) =>
  state
    .clusters()
    .map(({ name, version }) => `${name} ${version}`)
    .join()

/** What every entry of the stream is called, in its order. */
async function idsOf(redis: Redis): Promise<string[]> {
  const entries = await redis.xrange('clusterpulse:changes', '-', '+')
  return entries.map(([id, fields]) => `${id}.${fields[fields.indexOf('s') + 1]}.${fields[fields.indexOf('n') + 1]}`)
}

/** Follows one replica after the other, and writes down what it was told. */
class Client {
  readonly told: NumberedChange[][] = [[]]
  resets = 0
  #subscription: Subscription | undefined
  #last: string | undefined

  async moveTo({ bus }: Replica): Promise<void> {
    await this.#subscription?.[Symbol.asyncDispose]()
    this.#subscription = bus.subscribe((events) => {
      this.told.at(-1)?.push(...events)
      this.#last = events.at(-1)?.id
    }, this.#last)
    if (!this.#subscription.reset && this.#last !== undefined) return
    if (this.#last !== undefined) this.resets++
    this.#last = this.#subscription.head
    this.told.push([{ id: this.#last, change: null as never }])
  }

  /** Each run is what the stream holds between its first and last id, once, and in order. */
  expectWhole(ids: readonly string[]): void {
    for (const run of this.told.filter(({ length }) => length > 1)) {
      const seen = [...new Set(run.map(({ id }) => id))]
      const from = ids.indexOf(seen[0]!)
      expect(seen).toEqual(ids.slice(from, from + seen.length))
      const clusters = run.slice(1).filter(({ change }) => change.kind === 'cluster')
      expect(clusters).toHaveLength(new Set(clusters.map(({ id }) => id)).size)
    }
  }
}

describe.skipIf(redisMissing)(`api processes side by side${redisMissing ? ` (skipped: ${redisMissing})` : ''}`, () => {
  let server: TestRedis
  let redis: Redis
  beforeAll(async () => {
    server = await startRedis()
    redis = new Redis(server.port, server.host)
  })
  afterAll(async () => {
    redis.disconnect()
    await server[Symbol.asyncDispose]()
  })
  beforeEach(() => redis.flushall())

  const owners = (of: number) =>
    Promise.all(
      Array.from({ length: of }, (_, i) =>
        openState({
          ...{ kind: 'redis', connection: server, checkEveryMs: 60_000, logId: `log-${i + 1}` },
          owner: { index: i + 1, of },
        }),
      ),
    )

  it('give a client that goes to and fro all of it once, and no id that means another state elsewhere', async () => {
    const step = fc.record({
      cluster: fc.constantFrom(...names),
      what: fc.constantFrom('round', 'rows', 'wide', 'wide', 'removed'),
      hold: fc.constantFrom(undefined, 0, 1),
      move: fc.constantFrom(undefined, undefined, 0, 1),
      rests: fc.boolean(),
    })
    let met = 0
    let resumed = 0
    let merged = 0
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 30 }), fc.constantFrom(1, 3), async (steps, of) => {
        await redis.flushall()
        const stores = await owners(of)
        const storeOf = (name: ClusterName) => stores[ownerOf(name, of) - 1] as StateStore
        for (const store of stores) await store.apply([], store.position())
        const lines = [await laggingRedis(server), await laggingRedis(server)]
        const replicas = lines.map((line) => new Replica(line))
        await eventually('both have read', () =>
          replicas.every(({ mirror }) => mirror.availability().state === 'available'),
        )
        for (const replica of replicas) replica.note()
        const client = new Client()
        await client.moveTo(replicas[0]!)
        for (const [i, { cluster, what, hold, move, rests }] of steps.entries()) {
          const store = storeOf(cluster)
          if (hold !== undefined) lines[hold]?.hold()
          if (move !== undefined) await client.moveTo(replicas[move]!)
          const sequence = store.sequence(cluster) + 1
          const more = { collectedAt: T0 + i * 1000 }
          await store.apply(
            what === 'removed'
              ? [removed(cluster)]
              : what === 'round'
                ? [connected(cluster), batchRecord(aBatch(cluster, sequence, [complete('node', aNode(`n${i}`))], more))]
                : [
                    batchRecord(
                      partial(cluster, sequence, [seen(what === 'wide' ? wide(i + 1) : wide(1).only([i]))], more),
                    ),
                  ],
            i,
          )
          if (rests) for (const line of lines) line.release()
          if (rests) await new Promise((resolve) => setTimeout(resolve, 15))
        }
        for (const line of lines) line.release()
        const versions = () =>
          stores
            .map(said)
            .filter((text) => text !== '')
            .join()
            .split(',')
            .sort()
            .join()
        await eventually('both have all', () =>
          replicas.every(({ mirror }) => said(mirror).split(',').sort().join() === versions()),
        )
        const ids = await idsOf(redis)
        await eventually('both stand at the end', () => replicas.every(({ bus }) => bus.head() === ids.at(-1)))
        await client.moveTo(replicas[1]!)
        client.expectWhole(ids)
        resumed += client.told.length === client.resets + 2 ? 1 : 0
        merged += replicas.reduce((sum, replica) => sum + replica.merged, 0)
        const [one, other] = replicas.map(({ states }) => states)
        for (const [id, state] of one!) {
          if (!other!.has(id)) continue
          met++
          expect(other!.get(id)).toBe(state)
        }
        for (const one of [...replicas, ...lines, ...stores]) await one[Symbol.asyncDispose]()
      }),
      { numRuns: 12, endOnFailure: true },
    )
    expect(met).toBeGreaterThan(50)
    expect(resumed).toBe(12)
    expect(merged).toBeGreaterThan(0)
  }, 300_000)

  it('resume at an id of before they were started anew', async () => {
    const [store] = await owners(1)
    await store!.apply([connected(names[0]!), connected(names[1]!)], 0)
    let id = ''
    {
      await using first = new Replica(server)
      await eventually('it has read', () => first.mirror.availability().state === 'available')
      await eventually('both are there', () => first.mirror.clusters().length === 2)
      id = first.bus.head()
    }
    for (let n = 1; n <= 5; n++) {
      await store!.apply([batchRecord(aBatch(names[0]!, n, [complete('node', aNode(`n${n}`))]))], n)
      await eventually('it is written', () => store!.position() === n)
    }
    await using again = new Replica(server)
    await eventually('it has read', () => again.mirror.availability().state === 'available')
    const told: NumberedChange[] = []
    await using missed = again.bus.subscribe((events) => told.push(...events), id)
    expect(missed.reset).toBe(false)
    await eventually('it was told', () => told.length > 0)
    expect(told.flatMap(({ change }) => (change.kind === 'snapshot' ? [`${change.op} ${change.name}`] : []))).toEqual([
      ...['put n1', 'put n2', 'remove n1', 'put n3', 'remove n2', 'put n4', 'remove n3', 'put n5', 'remove n4'],
    ])
    expect(told.at(-1)?.id).toBe(again.bus.head())
    await using stranger = again.bus.subscribe(() => {}, `${id}0`)
    expect(stranger.reset).toBe(true)
    await store![Symbol.asyncDispose]()
  })

  it('say the same where an older manager tells only that a cluster moved', async () => {
    const [name] = names as [ClusterName]
    {
      const [store] = await owners(1)
      await store!.apply([connected(name), batchRecord(aBatch(name, 1, [complete('node', aNode('n1'))]))], 0)
      await store![Symbol.asyncDispose]()
    }
    await using one = new Replica(server)
    await using other = new Replica(server)
    const both = [one, other]
    await eventually('both have read', () => both.every(({ mirror }) => mirror.cluster(name)?.sequence === 1))
    const [last] = await redis.xrevrange('clusterpulse:changes', '+', '-', 'COUNT', '1')
    const of = (field: string) => last![1][last![1].indexOf(field) + 1]!
    const meta = JSON.parse((await redis.hget(`clusterpulse:cluster:${name}`, 'meta')) ?? '{}') as { version: number }
    const entry = ['op', 'put', 'c', name, 'v', String(meta.version + 1), 'o', '1', 'g', of('g'), 's', of('s')]
    await redis
      .multi()
      .hset(`clusterpulse:cluster:${name}`, 'meta', JSON.stringify({ ...meta, sequence: 2, version: meta.version + 1 }))
      .xadd('clusterpulse:changes', '*', ...entry, 'n', String(Number(of('n')) + 1))
      .exec()
    await eventually('both have it', () => both.every(({ mirror }) => mirror.cluster(name)?.sequence === 2))
    expect(one.bus.head()).toBe((await idsOf(redis)).at(-1))
    expect(other.bus.head()).toBe(one.bus.head())
    expect(said(other.mirror)).toBe(said(one.mirror))
  })

  it('read nothing again for one row that changes, and only what is named where much does', async () => {
    const [store] = await owners(1)
    const [name] = names as [ClusterName]
    await store!.apply([connected(name), batchRecord(partial(name, 1, [seen(wide(1))]))], 0)
    await using replica = new Replica(server)
    await eventually('it has read', () => replica.mirror.cluster(name)?.sequence === 1)
    const calls = async () => {
      const stats = await redis.info('commandstats')
      return ['hgetall', 'hmget'].map((command) =>
        Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0),
      )
    }
    // Owners look at their share with each write.
    const ofOwners = async (work: () => Promise<void>) => {
      const before = await calls()
      await work()
      const after = await calls()
      return after.map((count, i) => count - before[i]!)
    }
    const rows = wide(1).patch(wide(2).only([77]), [])
    const [, one] = await ofOwners(async () => {
      await store!.apply([batchRecord(partial(name, 2, [seen(rows)]))], 1)
      await eventually('it has it', () => replica.mirror.cluster(name)?.sequence === 2)
    })
    expect(one).toBe(0)
    expect(replica.mirror.cluster(name)?.tables.get('team/sizes')?.rows.equals(rows)).toBe(true)
    const [, all] = await ofOwners(async () => {
      await store!.apply([batchRecord(partial(name, 3, [seen(wide(3))]))], 2)
      await eventually('it has it', () => replica.mirror.cluster(name)?.sequence === 3)
    })
    expect(all).toBe(1)
    expect(replica.mirror.cluster(name)?.tables.get('team/sizes')?.rows.equals(wide(3))).toBe(true)
    await store![Symbol.asyncDispose]()
  })
})
