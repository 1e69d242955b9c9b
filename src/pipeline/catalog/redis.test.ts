import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { SourceDefinition } from '#metricsource'
import { StoreUnavailableError } from '#model'
import { closeRedis, type Redis, redisClient } from '#redis'
import { type Logger, silentLogger } from '#runtime'
import { eventually, redisMissing, startRedis, type TestRedis } from '../state/test/redis-server.ts'
import { RedisCatalog, type RedisCatalogOptions } from './index.ts'
import { aDefinition, readShallow } from './testing/definitions.ts'

const ids = (catalog: RedisCatalog) => catalog.sources().map(({ id }) => id)
const documentOf = (name: string) => `metricsource:clusterpulse:${name}`

describe.skipIf(redisMissing)(`a catalog in a real Redis${redisMissing ? ` (not run: ${redisMissing})` : ''}`, () => {
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

  async function open(over: Partial<RedisCatalogOptions> = {}): Promise<RedisCatalog> {
    const { host, port } = server
    const catalog = await RedisCatalog.open({ connection: { host, port }, read: readShallow, ...over })
    opened.push(catalog)
    return catalog
  }

  /** A writer that does again what was lost, as the reconciler does, and one that only reads. */
  async function writerAndReader(names: readonly string[]) {
    const writer = await open()
    await writer.resync(names.map((name) => aDefinition(name)))
    return { writer, reader: await open() }
  }

  async function contents(): Promise<Record<string, unknown>> {
    const all: Record<string, unknown> = {}
    for (const key of (await hand.keys('*')).sort()) {
      const type = await hand.type(key)
      if (type === 'hash') all[key] = await hand.hgetall(key)
      else all[key] = type === 'set' ? (await hand.smembers(key)).sort() : await hand.get(key)
    }
    return all
  }

  /** As it is in any generation. */
  async function ungenerated(): Promise<Record<string, unknown>> {
    const all = await contents()
    const seal = String(all['metricsources:digest']).replace(/^\d+/, '')
    return { ...all, 'metricsources:generation': '', 'metricsources:digest': seal }
  }

  it('writes the documented keys, and takes all of them away again', async () => {
    const catalog = await open()
    await catalog.resync([])
    await catalog.put(aDefinition('disks', { typeName: 'pvc' }))
    expect(await contents()).toEqual({
      'metricsource:clusterpulse:disks': JSON.stringify(aDefinition('disks', { typeName: 'pvc' })),
      'metricsource:clusterpulse:disks:meta': {
        compiledAt: '2026-05-04T10:00:00Z',
        hash: '0123456789abcdef',
        kind: 'ConfigMap',
        apiVersion: 'v1',
        resourceTypeName: 'pvc',
      },
      'metricsources:all': ['clusterpulse/disks'],
      'metricsources:by:resourcetype:pvc': ['clusterpulse/disks'],
      'metricsources:digest': expect.stringMatching(/^\d{13} 1 [0-9a-f]{40}$/),
      'metricsources:enabled': ['clusterpulse/disks'],
      'metricsources:generation': expect.stringMatching(/^\d{13}$/),
    })
    await catalog.remove('clusterpulse/disks')
    expect(await contents()).toEqual({
      'metricsources:digest': expect.stringMatching(/^\d{13} 0 [0-9a-f]{40}$/),
      'metricsources:generation': expect.stringMatching(/^\d{13}$/),
    })
  })

  it('leaves no entry of an old type name behind', async () => {
    const catalog = await open()
    await catalog.resync([])
    await catalog.put(aDefinition('disks', { typeName: 'old' }))
    await catalog.put(aDefinition('other', { typeName: 'old' }))
    await catalog.put(aDefinition('disks', { typeName: 'new' }))
    expect(await hand.smembers('metricsources:by:resourcetype:old')).toEqual(['clusterpulse/other'])
    expect(await hand.smembers('metricsources:by:resourcetype:new')).toEqual(['clusterpulse/disks'])
    // Left by another writer: only a resync looks for it.
    await hand.sadd('metricsources:by:resourcetype:older', 'clusterpulse/disks')
    await catalog.resync([aDefinition('disks', { typeName: 'new' })])
    expect(await hand.keys('metricsources:by:*')).toEqual(['metricsources:by:resourcetype:new'])
    expect(await hand.keys('metricsource:*other*')).toEqual([])
  })

  it('writes nothing where a resync finds everything right', async () => {
    const { writer } = await writerAndReader(['a', 'b'])
    const before = await contents()
    await writer.resync([aDefinition('b', { compiledAt: '2030-01-01T00:00:00Z' }), aDefinition('a')])
    expect(await contents()).toEqual(before)
  })

  it('mends keys that are something else than they should be', async () => {
    const { writer, reader } = await writerAndReader(['a', 'b'])
    const right = await ungenerated()
    let lost = 0
    writer.onLost(() => {
      lost++
      void writer.resync([aDefinition('a'), aDefinition('b')])
    })
    await hand.del('metricsources:enabled', documentOf('a'), `${documentOf('b')}:meta`)
    await hand.set('metricsources:enabled', 'a text')
    await hand.hset(documentOf('a'), 'a', 'hash')
    await hand.lpush(`${documentOf('b')}:meta`, 'a list')
    await expect.poll(ungenerated).toEqual(right)
    expect(lost).toBeGreaterThan(0)
    await expect.poll(() => reader.unavailable()).toBeUndefined()
    expect(ids(reader)).toEqual(['clusterpulse/a', 'clusterpulse/b'])
  })

  it('is followed by another process at once', async () => {
    const writer = await open()
    await writer.resync([aDefinition('a')])
    // It looks by itself only when this is over.
    const reader = await open({ checkEveryMs: 60_000 })
    expect(ids(reader)).toEqual(['clusterpulse/a'])
    const kept = reader.source('clusterpulse/a')
    let told = 0
    reader.onChange(() => told++)
    await eventually('it listens', async () => (await hand.pubsub('NUMSUB', 'metricsource-events'))[1] === 2)
    await writer.put(aDefinition('b'))
    await eventually('b is seen', () => reader.source('clusterpulse/b') !== undefined)
    await writer.remove('clusterpulse/b')
    await writer.announce('deleted', 'clusterpulse/b', null)
    await eventually('b is gone', () => reader.source('clusterpulse/b') === undefined)
    expect(reader.source('clusterpulse/a')).toBe(kept)
    expect(told).toBe(2)
  })

  it('sees what nobody announced at the next look', async () => {
    const ours = await open({ checkEveryMs: 50 })
    expect(ours.unavailable()).toMatchObject({ reason: expect.stringContaining('not written yet') })
    const reader = await open({ checkEveryMs: 50, takesUnsealed: true })
    expect(reader.unavailable()).toBeUndefined()
    // As the original wrote: no generation, no event.
    await hand.set(documentOf('a'), JSON.stringify(aDefinition('a')))
    await hand.sadd('metricsources:enabled', 'clusterpulse/a')
    await eventually('a is seen', () => reader.source('clusterpulse/a') !== undefined)
    expect(reader.unavailable()).toBeUndefined()
    // Nothing proves that there are no others, unless an original is known to write.
    expect(ours.unavailable()).toBeDefined()
  })

  it('tells other programs on the documented channel', async () => {
    const writer = await open()
    const heard: unknown[] = []
    const ear = redisClient({ host: server.host, port: server.port }, () => undefined)
    opened.push({ [Symbol.asyncDispose]: () => closeRedis(ear) })
    await ear.connect()
    ear.on('message', (_, text) => heard.push(JSON.parse(text)))
    await ear.subscribe('metricsource-events')
    await writer.announce('reconciled', 'clusterpulse/a', { resources: 3, clusters: 2, errors: 0 })
    await eventually('it was heard', () => heard.length > 0)
    expect(heard).toEqual([
      {
        type: 'reconciled',
        sourceId: 'clusterpulse/a',
        timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
        data: { resources: 3, clusters: 2, errors: 0 },
      },
    ])
  })

  it('skips definitions that cannot be used, says so once each, and shows the others', async () => {
    const said: unknown[] = []
    const logger: Logger = { ...silentLogger, warn: (facts: unknown) => void said.push(facts) }
    const bad: Readonly<Record<string, string | Buffer>> = {
      'no-json': '{',
      'no-object': '[]',
      'no-text': Buffer.from([0xff, 0xfe]),
      'no-fields': JSON.stringify({ ...aDefinition('no-fields'), fields: null }),
      'of-another': JSON.stringify(aDefinition('b')),
    }
    for (const [name, text] of Object.entries(bad)) await hand.set(documentOf(name), text)
    await hand.set(documentOf('a'), JSON.stringify(aDefinition('a')))
    const names = [...Object.keys(bad), 'missing', 'a']
    await hand.sadd('metricsources:enabled', 'odd', ...names.map((name) => `clusterpulse/${name}`))
    const reader = await open({ logger, checkEveryMs: 20, takesUnsealed: true })
    expect(ids(reader)).toEqual(['clusterpulse/a'])
    await hand.set(documentOf('missing'), JSON.stringify(aDefinition('missing')))
    await eventually('it is there', () => reader.source('clusterpulse/missing') !== undefined)
    expect(said.map((facts) => (facts as { source: string }).source).sort()).toEqual(
      ['odd', ...Object.keys(bad).map((name) => `clusterpulse/${name}`), 'clusterpulse/missing'].sort(),
    )
  })

  it('keeps the last picture while Redis is away, says so, and comes back by itself', async () => {
    const { writer, reader } = await writerAndReader(['a'])
    const lost: string[] = []
    writer.onLost(() => lost.push('lost'))
    const [before, version] = [Date.now(), reader.version()]
    await server.kill()
    await eventually('it is noticed', () => reader.unavailable() !== undefined)
    expect(reader.unavailable()?.since).toBeGreaterThanOrEqual(before)
    expect(reader.version()).toBeGreaterThan(version)
    expect(ids(reader)).toEqual(['clusterpulse/a'])
    await expect(writer.put(aDefinition('b'))).rejects.toThrow(StoreUnavailableError)
    await server.start()
    // Empty: its memory is gone, and the reader does not take that for an answer.
    await eventually('the writer notices', () => lost.length > 0)
    await eventually('the reader notices', () => reader.unavailable()?.reason.includes('not written yet') === true)
    expect(ids(reader)).toEqual(['clusterpulse/a'])
    // Until its connection is back as well, that is why it cannot.
    const refusal = () =>
      writer.put(aDefinition('b')).then(
        () => 'none',
        (error: unknown) => String(error),
      )
    await eventually('it must be written as a whole', async () =>
      (await refusal()).includes('written again as a whole'),
    )
    await writer.resync([aDefinition('a'), aDefinition('b')])
    await eventually('the reader is back', () => reader.unavailable() === undefined)
    expect(ids(reader)).toEqual(['clusterpulse/a', 'clusterpulse/b'])
  })

  it('opens while Redis is away, knowing nothing, and learns when it comes', async () => {
    await (await open()).resync([aDefinition('a')])
    await server.kill()
    const reader = await open()
    expect(reader.sources()).toEqual([])
    expect(reader.unavailable()).toBeDefined()
    await server.start()
    await eventually('the hand is connected', () => hand.status === 'ready')
    await (await open()).resync([aDefinition('b')])
    await eventually('b is seen', () => reader.source('clusterpulse/b') !== undefined)
  })

  it('holds after any writes what a first resync of the same sources would write', async () => {
    const definition = fc
      .tuple(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('x', 'y', ''), fc.constantFrom('1', '2'))
      .map(([name, typeName, hash]) => aDefinition(name, { typeName, hash }))
    const write = fc.oneof(
      fc.record({ put: definition }),
      fc.record({ remove: fc.constantFrom('a', 'b', 'c', 'd') }),
      fc.record({ resync: fc.uniqueArray(definition, { selector: ({ name }) => name }) }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(write, { maxLength: 12 }), async (writes) => {
        await hand.flushall()
        const catalog = await open()
        const model = new Map<unknown, SourceDefinition>()
        await catalog.resync([])
        for (const one of writes) {
          if ('put' in one) {
            await catalog.put(one.put)
            model.set(one.put.name, one.put)
          } else if ('remove' in one) {
            await catalog.remove(`clusterpulse/${one.remove}`)
            model.delete(one.remove)
          } else {
            await catalog.resync(one.resync)
            model.clear()
            for (const each of one.resync) model.set(each.name, each)
          }
        }
        expect(ids(catalog)).toEqual([...model.keys()].sort().map((name) => `clusterpulse/${name}`))
        const found = await ungenerated()
        await catalog[Symbol.asyncDispose]()
        await hand.flushall()
        await using fresh = await open()
        await fresh.resync([...model.values()])
        expect(found).toEqual(await ungenerated())
      }),
      { numRuns: 40 },
    )
  })
})
