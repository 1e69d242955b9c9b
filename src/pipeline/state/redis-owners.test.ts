import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  type Change,
  type ClusterName,
  type OwnerPlace,
  ownerOf,
  parseClusterName,
  StoreUnavailableError,
} from '#model'
import { closeRedis, redisClient } from '#redis'
import { type Logger, silentLogger } from '#runtime'
import { RedisMirror } from './mirror.ts'
import { beginDivision, forgetPositions, positionsIn } from './redis-division.ts'
import { namesText } from './redis-names.ts'
import { refuseOthers, whileDivided } from './redis-owners.ts'
import { RedisStateStore } from './redis-store.ts'
import { aBatch, aNode, batchRecord, complete, connected, removed, T0 } from './test/fleet-words.ts'
import { eventually, redisMissing, startRedis, type TestRedis } from './test/redis-server.ts'
import type { StateReader, StateRecord } from './types.ts'

const fleet = Array.from({ length: 12 }, (_, i) => parseClusterName(`cluster-${i + 1}`))
const ofOwner = ({ index, of }: OwnerPlace) => fleet.filter((name) => ownerOf(name, of) === index)

const round = (cluster: ClusterName, sequence: number, ...nodes: string[]): StateRecord =>
  batchRecord(aBatch(cluster, sequence, [complete('node', ...nodes.map((name) => aNode(name)))]))

const summary = (reader: StateReader) =>
  reader.clusters().map(({ name, version, parts }) => `${name} ${version} ${[...(parts.node?.items.keys() ?? [])]}`)

describe.skipIf(redisMissing)(`several owners of one Redis${redisMissing ? ` (skipped: ${redisMissing})` : ''}`, () => {
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
  beforeEach(async () => {
    await redis.flushall()
    await redis.config('SET', 'maxmemory', '0')
  })

  const clock = {
    now: () => T0 + 60_000,
    sleep: (ms: number, signal?: AbortSignal) =>
      new Promise<void>((resolve) => {
        if (signal?.aborted) return resolve()
        const timer = setTimeout(resolve, ms)
        signal?.addEventListener('abort', () => {
          clearTimeout(timer)
          resolve()
        })
      }),
  }
  type Options = Partial<Parameters<typeof RedisStateStore.open>[0]>
  const open = (index: number, of: number, more: Options = {}) =>
    RedisStateStore.open({
      connection: server,
      clock,
      checkEveryMs: 30,
      owner: { index, of },
      logId: `log-${index}-${of}`,
      ...more,
    })

  class Owners implements AsyncDisposable {
    readonly stores: RedisStateStore[]
    readonly #sequences = new Map<string, number>()
    #position = 0
    constructor(stores: RedisStateStore[]) {
      this.stores = stores
    }
    static async open(of: number, more: Options = {}): Promise<Owners> {
      const indexes = Array.from({ length: of }, (_, i) => i + 1)
      return new Owners(await Promise.all(indexes.map((index) => open(index, of, more))))
    }
    storeOf(name: ClusterName): RedisStateStore {
      return this.stores[ownerOf(name, this.stores.length) - 1] as RedisStateStore
    }
    /** Connects the cluster and has one more round of it, which sees these nodes. */
    async see(name: ClusterName, ...nodes: string[]): Promise<void> {
      const sequence = Math.max(this.#sequences.get(name) ?? 0, this.storeOf(name).sequence(name)) + 1
      this.#sequences.set(name, sequence)
      await this.storeOf(name).apply([connected(name), round(name, sequence, ...nodes)], ++this.#position)
    }
    async flush(): Promise<void> {
      await Promise.all(this.stores.map((store) => store.flush()))
    }
    async seeAll(...nodes: string[]): Promise<void> {
      for (const name of fleet) await this.see(name, ...nodes)
      await this.flush()
    }
    summary(): string[] {
      return this.stores.flatMap(summary).sort()
    }
    async [Symbol.asyncDispose](): Promise<void> {
      await Promise.all(this.stores.map((store) => store[Symbol.asyncDispose]()))
    }
  }

  /** A mirror, and what it was told and why it read everything again. */
  function aMirror(): { mirror: RedisMirror; reloads: string[]; told: Change[] } & AsyncDisposable {
    const reloads: string[] = []
    const told: Change[] = []
    const logger: Logger = {
      ...silentLogger,
      info: (facts) => void reloads.push((facts as { why: string }).why),
    }
    const mirror = new RedisMirror({ connection: server, waitMs: 50, logger, random: () => 0.1 })
    mirror.onSteps((steps) => told.push(...steps.flatMap(({ changes, isPast }) => (isPast ? [] : changes))))
    return { mirror, reloads, told, [Symbol.asyncDispose]: () => mirror[Symbol.asyncDispose]() }
  }
  const isAvailable = (mirror: RedisMirror) => mirror.availability().state === 'available'
  const follows = (mirror: RedisMirror, owners: Owners) =>
    eventually(
      'the mirror has what the owners have',
      () => isAvailable(mirror) && summary(mirror).join() === owners.summary().join(),
    )
  const fields = async () => Object.keys(await redis.hgetall('clusterpulse:owners')).sort()

  it.each([2, 3])(
    'lets %d owners write side by side, and a mirror follow all of them without reading again',
    async (of) => {
      await using owners = await Owners.open(of)
      await owners.seeAll('n1')
      expect(new Set(fleet.map((name) => ownerOf(name, of))).size).toBe(of)
      const indexes = Array.from({ length: of }, (_, i) => `${i + 1}`)
      expect(await fields()).toEqual([
        ...indexes,
        'count',
        ...indexes.map((index) => `names:${index}`),
        ...indexes.map((index) => `writer:${index}`),
      ])
      expect(await redis.exists('clusterpulse:generation')).toBe(0)
      await using seen = aMirror()
      await follows(seen.mirror, owners)
      for (let n = 2; n < 12; n++) {
        // Both write at once, in turns that nobody orders.
        await owners.seeAll('n1', `n${n}`)
      }
      await follows(seen.mirror, owners)
      expect(seen.reloads).toEqual([])
      expect(seen.told.filter((change) => change.kind === 'snapshot' && change.name === 'n11')).toHaveLength(
        fleet.length,
      )
      expect((await redis.smembers('clusters:all')).sort()).toEqual([...fleet].sort())
    },
  )

  it('has each owner load its own clusters and its own position', async () => {
    {
      await using owners = await Owners.open(3)
      await owners.seeAll('n1')
    }
    for (const index of [1, 2, 3]) {
      await using store = await open(index, 3)
      expect(store.clusters().map(({ name }) => name)).toEqual(ofOwner({ index, of: 3 }).sort())
      expect(store.position()).toBe(Math.max(...fleet.map((name, i) => (ownerOf(name, 3) === index ? i + 1 : -1))))
    }
  })

  it('keeps which owner has a cluster, and does not show it in the documented spec', async () => {
    const name = fleet[0] as ClusterName
    const index = ownerOf(name, 2)
    await using other = await open(3 - index, 2)
    await other.flush()
    {
      await using store = await open(index, 2)
      await store.apply([connected(name, { owner: `owner-${index}` })], 1)
    }
    await using store = await open(index, 2)
    expect(store.cluster(name)?.connection?.owner).toBe(`owner-${index}`)
    await using seen = aMirror()
    await eventually('it has loaded', () => isAvailable(seen.mirror))
    expect(seen.mirror.cluster(name)?.connection?.owner).toBe(`owner-${index}`)
    expect(await redis.get(`cluster:${name}:spec`)).not.toContain('owner')
  })

  it('lets the mirror wait until every owner has written its share', async () => {
    await using first = await open(1, 2)
    await first.apply([connected(ofOwner({ index: 1, of: 2 })[0] as ClusterName)], 1)
    await first.flush()
    await using seen = aMirror()
    const [before] = await positions()
    await eventually('it has looked twice', async () => ((await positions())[0] ?? 0) > (before ?? 0) + 2)
    expect(seen.mirror.availability()).toEqual({ state: 'loading', missing: expect.stringContaining('owner-2') })
    await using second = await open(2, 2)
    await second.flush()
    await eventually('it has loaded', () => isAvailable(seen.mirror))
    expect(seen.mirror.clusters()).toHaveLength(1)

    // A share that goes later: what was read stays.
    await redis.hdel('clusterpulse:owners', '2')
    await second[Symbol.asyncDispose]()
    await redis.hdel('clusterpulse:owners', '2')
    await eventually('it has noticed', () => !isAvailable(seen.mirror))
    expect(seen.mirror.availability()).toMatchObject({
      state: 'unavailable',
      reason: expect.stringContaining('Redis lacks the state of owner-2'),
    })
    expect(seen.mirror.clusters()).toHaveLength(1)
  })
  /** How often the server was asked for the stream, a sign that a mirror looks. */
  const positions = async () => [Number(/cmdstat_xread:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1] ?? 0)]

  it('follows one owner that was started anew, and the others meanwhile', async () => {
    await using owners = await Owners.open(2)
    await owners.seeAll('n1')
    await using seen = aMirror()
    await follows(seen.mirror, owners)
    await owners.stores[0]?.[Symbol.asyncDispose]()
    owners.stores[0] = await open(1, 2)
    await owners.seeAll('n1', 'n2')
    await follows(seen.mirror, owners)
    expect(seen.reloads).toEqual(['another process writes'])
    await owners.seeAll('n1')
    await follows(seen.mirror, owners)
    expect(seen.reloads).toHaveLength(1)
  })

  it('has all shares come back into a Redis that lost its memory, and only then shows it', async () => {
    await using owners = await Owners.open(3, { checkEveryMs: 60_000 })
    await owners.seeAll('n1')
    await using seen = aMirror()
    await follows(seen.mirror, owners)
    await redis.flushall()
    await eventually('it has noticed', () => !isAvailable(seen.mirror))
    const states: boolean[] = []
    for (const store of owners.stores) {
      states.push(isAvailable(seen.mirror))
      expect(seen.mirror.clusters()).toHaveLength(fleet.length)
      await store.flush()
      const name = store.clusters()[0]?.name as ClusterName
      await owners.see(name, 'n9')
      await store.flush()
    }
    expect(states).toEqual([false, false, false])
    await follows(seen.mirror, owners)
    expect((await redis.smembers('clusterpulse:clusters')).sort()).toEqual([...fleet].sort())
    expect(
      seen.told.filter(({ kind }) => kind === 'cluster').every((change) => 'op' in change && change.op === 'put'),
    ).toBe(true)
  })

  it('has them come back by themselves, whoever notices first', async () => {
    await using owners = await Owners.open(3)
    await owners.seeAll('n1')
    await using seen = aMirror()
    await follows(seen.mirror, owners)
    for (let n = 0; n < 3; n++) {
      const before = await redis.hgetall('clusterpulse:owners')
      await redis.flushall()
      await eventually('all shares are there again', async () => {
        const after = await redis.hgetall('clusterpulse:owners')
        return ['1', '2', '3'].every((index) => after[index] !== undefined && after[index] !== before[index])
      })
      await follows(seen.mirror, owners)
      expect((await redis.smembers('clusters:all')).sort()).toEqual([...fleet].sort())
    }
  })

  it('survives a Redis that is killed while all of them write, and comes back empty', async () => {
    await using other = await startRedis()
    await using owners = await Owners.open(3, { connection: other })
    await owners.seeAll('n1')
    await using mirror = new RedisMirror({ connection: other, waitMs: 50, random: () => 0.1 })
    await follows(mirror, owners)
    const writing = owners.seeAll('n1', 'n2').catch((error: unknown) => error)
    await other.kill()
    await writing
    await eventually('the mirror has noticed', () => !isAvailable(mirror))
    expect(mirror.clusters()).toHaveLength(fleet.length)
    for (const name of fleet) await owners.see(name, 'n3')
    await other.start()
    await follows(mirror, owners)
    expect(mirror.clusters().every(({ parts }) => parts.node?.items.has('n3'))).toBe(true)
    await eventually('all owners say so', () =>
      owners.stores.every((store) => store.availability().state === 'available'),
    )
  })

  it('shows no part of a share for all of it, when one cluster of one owner is lost', async () => {
    {
      await using owners = await Owners.open(3)
      await owners.seeAll('n1')
    }
    await redis.srem('clusterpulse:clusters', fleet[0] ?? '')
    await using seen = aMirror()
    await eventually('it says what is missing', () =>
      JSON.stringify(seen.mirror.availability()).includes('clusterpulse:clusters'),
    )
    expect(seen.mirror.clusters()).toEqual([])
    await using owners = await Owners.open(3)
    await owners.seeAll('n2')
    await follows(seen.mirror, owners)
    expect(seen.mirror.clusters()).toHaveLength(fleet.length)
  })

  it('removes a cluster of one owner, of which a mirror hears', async () => {
    await using owners = await Owners.open(2)
    await owners.seeAll('n1')
    await using seen = aMirror()
    await follows(seen.mirror, owners)
    const name = fleet[3] as ClusterName
    await owners.storeOf(name).apply([removed(name)], 100)
    await follows(seen.mirror, owners)
    expect(seen.mirror.cluster(name)).toBeUndefined()
    expect(await redis.keys(`*${name}:*`)).toEqual([])
    expect(seen.reloads).toEqual([])
  })

  it('keeps every cluster through other numbers of owners, and no version goes back', async () => {
    await using seen = aMirror()
    const versions = new Map<string, number>()
    let n = 0
    for (const of of [1, 2, 3, 1, 3]) {
      await beginDivision(server, of)
      await beginDivision(server, of) // nothing happens twice
      await using owners = await Owners.open(of)
      expect(owners.stores.flatMap((store) => store.clusters()).length).toBe(n === 0 ? 0 : fleet.length)
      await owners.seeAll('n1', `n${++n}`)
      for (const { name, version } of owners.stores.flatMap((store) => store.clusters())) {
        expect(version).toBeGreaterThan(versions.get(name) ?? 0)
        versions.set(name, version)
      }
      await follows(seen.mirror, owners)
      expect(await redis.exists('clusterpulse:generation')).toBe(of === 1 ? 1 : 0)
    }
    expect(seen.told.some((change) => 'op' in change && change.kind === 'cluster' && change.op === 'remove')).toBe(
      false,
    )
    expect(seen.mirror.cluster(fleet[0] as ClusterName)?.sequence).toBe(5)
  })

  it('stays available to a mirror while what is whole is divided anew', async () => {
    {
      await using owners = await Owners.open(2)
      await owners.seeAll('n1')
    }
    await using seen = aMirror()
    await eventually('it has loaded', () => isAvailable(seen.mirror))
    const before = summary(seen.mirror)
    await beginDivision(server, 3)
    await eventually('it has read it again', () => seen.reloads.length > 0)
    await using owners = await Owners.open(3)
    await follows(seen.mirror, owners)
    expect(summary(seen.mirror)).toEqual(before)
    expect(seen.told).toEqual([])
  })

  it('lets no store of a former division write, nor open', async () => {
    await using former = await Owners.open(2, { checkEveryMs: 60_000 })
    await former.seeAll('n1')
    await beginDivision(server, 3)
    const dump = async () => {
      const keys = (await redis.keys('*')).sort()
      return Promise.all(keys.map(async (key) => `${key} ${(await redis.dumpBuffer(key))?.toString('hex')}`))
    }
    const before = await dump()
    for (const store of former.stores) {
      const name = store.clusters()[0]?.name as ClusterName
      await former.see(name, 'late')
      const error = await store.flush().catch((reason: unknown) => reason)
      expect(error).toBeInstanceOf(StoreUnavailableError)
      expect((error as StoreUnavailableError).reason).toMatch(
        /another division of owners holds this Redis: it is written by 3 owners, this process is one of 2\. .* let one manager/,
      )
      expect(store.availability()).toMatchObject({
        state: 'unavailable',
        reason: (error as StoreUnavailableError).reason,
      })
      await expect(store.apply([removed(name)], 99)).rejects.toBeInstanceOf(StoreUnavailableError)
    }
    await expect(open(1, 2)).rejects.toBeInstanceOf(StoreUnavailableError)
    await expect(open(1, 1)).rejects.toThrow(/another division/)
    await former[Symbol.asyncDispose]()
    expect(await dump()).toEqual(before)
  })

  it('says so by itself, while nothing is to be written', async () => {
    await using former = await open(1, 1)
    await former.flush()
    await beginDivision(server, 2)
    await eventually('it has noticed', () => former.availability().state === 'unavailable')
    await beginDivision(server, 1)
    await eventually('it writes again', () => former.availability().state === 'available')
  })

  describe('between the look and the write', () => {
    /** Runs commands of a sole owner; `meanwhile` happens after each look, before the commands are sent. */
    async function write(meanwhile: () => Promise<unknown>) {
      const client = redisClient(server, () => undefined)
      await client.connect()
      const multi = client.multi.bind(client) as (commands: unknown[][]) => ReturnType<typeof client.multi>
      const later = (commands: unknown[][]) => ({ exec: () => meanwhile().then(() => multi(commands).exec()) })
      Object.assign(client, { multi: later })
      try {
        return await whileDivided(client, (division) => {
          refuseOthers(division, { index: 1, of: 1 })
          return [['SET', 'written', 'by one']]
        })
      } finally {
        await closeRedis(client)
      }
    }

    it('another division may begin, and nothing is written', async () => {
      await beginDivision(server, 1)
      await expect(write(() => beginDivision(server, 2))).rejects.toThrow(/another division/)
      expect(await redis.exists('written')).toBe(0)
    })

    it('a former version may write its mark, or Redis lose its memory, and it is looked again', async () => {
      await beginDivision(server, 1)
      let looks = 0
      const marks = async () => {
        looks++
        if (looks === 1) await redis.set('clusterpulse:generation', 'other')
        if (looks === 2) await redis.flushall()
      }
      expect(await write(marks)).toEqual(['OK'])
      expect(looks).toBe(3)
    })

    it('it gives up where that has no end', async () => {
      let n = 0
      await expect(write(() => redis.hset('clusterpulse:owners', { count: 1, 1: `${n++}` }))).rejects.toThrow(
        /change again and again/,
      )
      expect(await redis.exists('written')).toBe(0)
    })
  })

  it('has nothing of a former division, whenever the new one begins', async () => {
    await using former = await open(1, 1, { checkEveryMs: 60_000 })
    await former.flush()
    const name = fleet[0] as ClusterName
    for (let n = 0; n < 20; n++) {
      await former.apply([connected(name), round(name, n + 1, `n${n}`)], n)
      const flushed = former.flush().catch(() => undefined)
      await beginDivision(server, 2)
      const stored = async () => [
        await redis.hget(`clusterpulse:cluster:${name}`, 'meta'),
        await redis.hget('clusterpulse:positions', 'log-1-1'),
      ]
      const before = await stored()
      await flushed
      await expect(former.flush()).rejects.toBeInstanceOf(StoreUnavailableError)
      expect(await stored()).toEqual(before)
      await beginDivision(server, 1)
      await former.flush()
    }
    expect(former.position()).toBe(19)
  })

  it('does not make whole what was not: each of the new owners writes what it has', async () => {
    {
      await using owners = await Owners.open(2)
      await owners.seeAll('n1')
    }
    await redis.hdel('clusterpulse:owners', '2')
    expect([...(await positionsIn(server, ['log-1-2'])).values()]).toEqual([-1])
    await beginDivision(server, 3)
    expect(await fields()).toEqual(['count'])
    await using seen = aMirror()
    await using owners = await Owners.open(3)
    expect(owners.stores.map((store) => store.position())).toEqual([-1, -1, -1])
    await owners.flush()
    await follows(seen.mirror, owners)
    expect(seen.mirror.clusters()).toHaveLength(fleet.length)
  })

  it('takes over what a version that knew one owner alone has left, and is followed by it', async () => {
    {
      await using owners = await Owners.open(1)
      await owners.seeAll('n1')
    }
    const generation = await redis.get('clusterpulse:generation')
    expect(await redis.hgetall('clusterpulse:owners')).toEqual({
      count: '1',
      1: generation,
      'names:1': namesText(fleet),
      'writer:1': expect.any(String) as string,
    })
    // What it left: no hash, and entries without an owner.
    const forget = async () => {
      await redis.del('clusterpulse:owners', 'clusterpulse:writers')
      const entries = await redis.xrange('clusterpulse:changes', '-', '+')
      await redis.del('clusterpulse:changes')
      for (const [id, all] of entries) {
        const pairs = all.flatMap((field, i) => (i % 2 === 0 && field !== 'o' ? [field, all[i + 1] ?? ''] : []))
        await redis.xadd('clusterpulse:changes', id, ...pairs)
      }
    }
    await forget()
    await using seen = aMirror()
    await eventually('it has loaded', () => isAvailable(seen.mirror))
    expect(seen.mirror.clusters()).toHaveLength(fleet.length)
    expect([...(await positionsIn(server, ['log-1-1', 'none']))]).toEqual([
      ['log-1-1', fleet.length],
      ['none', -1],
    ])
    {
      await using owners = await Owners.open(1)
      expect(owners.stores[0]?.position()).toBe(fleet.length)
      await owners.seeAll('n2')
      await follows(seen.mirror, owners)
      // The mark is the same in both places: nothing was written anew.
      expect(await redis.hgetall('clusterpulse:owners')).toEqual({
        count: '1',
        1: generation,
        'names:1': namesText(fleet),
        'writer:1': expect.any(String) as string,
      })
      expect(await redis.get('clusterpulse:generation')).toBe(generation)
    }
    await forget()
    await beginDivision(server, 2)
    await using owners = await Owners.open(2)
    expect(owners.stores.flatMap((store) => store.clusters())).toHaveLength(fleet.length)
    await follows(seen.mirror, owners)
  })

  it('takes nothing of a writer any more once another has taken over, whatever that still has to say and how it ends', async () => {
    const [west] = fleet as [ClusterName]
    const nodes = (reader: StateReader) => [...(reader.cluster(west)?.parts.node?.items.keys() ?? [])]
    const former = await open(1, 1)
    await former.apply([connected(west), round(west, 1, 'old')], 1)
    await former.flush()
    await using mirror = new RedisMirror({ connection: server, clock, waitMs: 30 })
    const seen: string[] = []
    mirror.onSteps(() => seen.push(nodes(mirror).join()))
    await eventually('it is followed', () => nodes(mirror).length === 1)
    await using store = await open(1, 1, { logId: 'another' })
    await store.apply([round(west, 2, 'new')], 1)
    await store.flush()
    await eventually('it is followed', () => nodes(mirror).join() === 'new')
    const written = await redis.hgetall('clusterpulse:cluster:west')
    await former.apply([round(west, 9, 'late', 'later')], 9)
    await expect(former.flush()).rejects.toThrow('another process took over')
    expect(former.availability()).toMatchObject({ state: 'unavailable', reason: expect.stringContaining('took over') })
    await former.apply([removed(west)], 10).catch(() => undefined)
    await former[Symbol.asyncDispose]()
    expect(await redis.hgetall('clusterpulse:cluster:west')).toEqual(written)
    // Not even where Redis forgets all: who leads writes it again.
    await redis.flushall()
    await eventually('it is there again', async () => (await redis.hget('clusterpulse:owners', '1')) !== null)
    await store.apply([round(west, 3, 'newer')], 2)
    await eventually('it is followed', () => nodes(mirror).join() === 'newer')
    expect(seen.filter((one) => one.includes('late'))).toEqual([])
  })

  it('believes the mark of a version that knew one owner alone, where that came back after several', async () => {
    {
      await using owners = await Owners.open(2)
      await owners.seeAll('n1')
    }
    // It finds nothing, and writes what it has.
    await redis.set('clusterpulse:generation', 'older')
    await expect(open(1, 2)).rejects.toThrow(/written by one owner/)
    await using store = await open(1, 1)
    expect(store.clusters()).toHaveLength(fleet.length)
    await store.flush()
    await eventually('both places agree', async () => (await redis.hget('clusterpulse:owners', '1')) === 'older')
    expect(await fields()).toEqual(['1', 'count', 'names:1', 'writer:1'])
  })

  it('starts from what is there where only the marks are gone, and reads the log from its beginning', async () => {
    {
      await using owners = await Owners.open(1)
      await owners.seeAll('n1')
    }
    await redis.del('clusterpulse:owners', 'clusterpulse:generation')
    await using store = await open(1, 1)
    expect(store.position()).toBe(-1)
    expect(store.clusters()).toHaveLength(fleet.length)
    await store.flush()
    expect(await redis.scard('clusters:all')).toBe(fleet.length)
    expect(await fields()).toEqual(['1', 'count', 'names:1', 'writer:1'])
  })

  it('leaves no cluster in Redis that its owner does not have, when that came back with an old memory', async () => {
    await using owners = await Owners.open(2)
    await owners.seeAll('n1')
    const name = fleet[5] as ClusterName
    const old = await redis.hgetall(`clusterpulse:cluster:${name}`)
    await owners.storeOf(name).apply([removed(name)], 50)
    // At one moment, as a dump comes: an owner looks every now and then.
    await redis
      .multi()
      .sadd('clusterpulse:clusters', name)
      .hset(`clusterpulse:cluster:${name}`, old)
      .set(`cluster:${name}:status`, '{}')
      .hset('clusterpulse:owners', { 1: 'old', 2: 'old' })
      .exec()
    await using seen = aMirror()
    await follows(seen.mirror, owners)
    expect(await redis.keys(`*${name}:*`)).toEqual([])
  })

  it('knows how far each log is, and forgets logs that are gone', async () => {
    expect([...(await positionsIn(server, ['log-1-2']))]).toEqual([['log-1-2', -1]])
    expect([...(await positionsIn(server, []))]).toEqual([])
    await using owners = await Owners.open(2)
    await owners.seeAll('n1')
    const known = await positionsIn(server, ['log-1-2', 'log-2-2'])
    expect([...known.values()]).toEqual(owners.stores.map((store) => store.position()))
    await redis.hset('clusterpulse:positions', 'gone', 7)
    await forgetPositions(server, ['log-1-2', 'log-2-2'])
    await forgetPositions(server, ['log-1-2', 'log-2-2'])
    expect(await positionsIn(server, ['log-1-2', 'log-2-2'])).toEqual(known)
    expect(await redis.hexists('clusterpulse:positions', 'gone')).toBe(0)
  })

  it('says which Redis is not there, or what it refuses', async () => {
    const nowhere = { host: '127.0.0.1', port: 1 }
    await expect(beginDivision(nowhere, 2)).rejects.toBeInstanceOf(StoreUnavailableError)
    await expect(positionsIn(nowhere, ['x'])).rejects.toThrow(/ECONNREFUSED/)
    await expect(forgetPositions(nowhere, [])).rejects.toBeInstanceOf(StoreUnavailableError)
    await redis.config('SET', 'maxmemory', '1')
    await expect(beginDivision(server, 2)).rejects.toThrow(/maxmemory/)
    expect(await redis.exists('clusterpulse:owners')).toBe(0)
  })
})
