import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { redisMissing, startRedis, type TestRedis } from '../state/test/redis-server.ts'
import { type CatalogWriter, MemoryCatalog, RedisCatalog, type SourceCatalog } from './index.ts'
import { aDefinition, readShallow } from './testing/definitions.ts'

type Catalog = SourceCatalog & CatalogWriter
const read = readShallow

let redis: TestRedis
beforeAll(async () => {
  if (redisMissing === undefined) redis = await startRedis()
})
afterAll(() => redis?.[Symbol.asyncDispose]())

let database = 0
const drivers: readonly {
  readonly title: string
  readonly skip: boolean
  readonly open: () => Promise<Catalog & AsyncDisposable>
}[] = [
  {
    title: 'memory',
    skip: false,
    open: async () => Object.assign(new MemoryCatalog({ read }), { [Symbol.asyncDispose]: async () => undefined }),
  },
  {
    title: `Redis${redisMissing === undefined ? '' : ` (not run: ${redisMissing})`}`,
    skip: redisMissing !== undefined,
    open: () => RedisCatalog.open({ connection: { host: '127.0.0.1', port: redis.port, db: ++database }, read }),
  },
]

const ids = (catalog: SourceCatalog) => catalog.sources().map(({ id }) => id)

for (const { title, skip, open } of drivers) {
  describe.skipIf(skip)(`a catalog in ${title}`, () => {
    it('holds what was put, sorted by id, and answers by id and by type name', async () => {
      await using catalog = await open()
      await catalog.resync([])
      expect(catalog.sources()).toEqual([])
      await catalog.put(aDefinition('b', { typeName: 'pvc' }))
      await catalog.put(aDefinition('a', { typeName: 'pvc' }))
      await catalog.put(aDefinition('c'))
      expect(ids(catalog)).toEqual(['clusterpulse/a', 'clusterpulse/b', 'clusterpulse/c'])
      expect(catalog.source('clusterpulse/b')?.typeName).toBe('pvc')
      expect(catalog.source('clusterpulse/x')).toBeUndefined()
      expect(catalog.ofType('pvc')?.id).toBe('clusterpulse/a')
      expect(catalog.allOfType('pvc').map(({ id }) => id)).toEqual(['clusterpulse/a', 'clusterpulse/b'])
      expect(catalog.ofType('toString')).toBeUndefined()
      expect(catalog.allOfType('x')).toEqual([])
      expect(catalog.unavailable()).toBeUndefined()
      expect(await catalog.stored?.('clusterpulse/c')).toEqual(aDefinition('c'))
      expect(await catalog.stored?.('clusterpulse/x')).toBeUndefined()
    })

    it('keeps the very same object and version where a definition was only compiled anew', async () => {
      await using catalog = await open()
      await catalog.resync([aDefinition('a'), aDefinition('b')])
      const [source, version] = [catalog.source('clusterpulse/a'), catalog.version()]
      let told = 0
      catalog.onChange(() => told++)
      await catalog.put(aDefinition('a', { compiledAt: '2027-01-01T00:00:00Z' }))
      await catalog.resync([aDefinition('a', { compiledAt: '2028-01-01T00:00:00Z' }), aDefinition('b')])
      expect(catalog.source('clusterpulse/a')).toBe(source)
      expect(catalog.version()).toBe(version)
      expect(told).toBe(0)
      await catalog.put(aDefinition('b', { hash: 'ffffffffffffffff' }))
      expect(catalog.source('clusterpulse/a')).toBe(source)
      expect(catalog.source('clusterpulse/b')?.hash).toBe('ffffffffffffffff')
      expect(catalog.version()).toBeGreaterThan(version)
      expect(told).toBe(1)
    })

    it('forgets what was removed, and its type name; unknown ids do no harm', async () => {
      await using catalog = await open()
      await catalog.resync([aDefinition('a', { typeName: 'pvc' }), aDefinition('b', { typeName: 'pvc' })])
      await catalog.remove('clusterpulse/a')
      await catalog.remove('clusterpulse/x')
      expect(ids(catalog)).toEqual(['clusterpulse/b'])
      expect(catalog.ofType('pvc')?.id).toBe('clusterpulse/b')
      await catalog.remove('clusterpulse/b')
      expect(catalog.ofType('pvc')).toBeUndefined()
    })

    it('moves a source to another type name', async () => {
      await using catalog = await open()
      await catalog.resync([])
      await catalog.put(aDefinition('a', { typeName: 'old' }))
      await catalog.put(aDefinition('a', { typeName: 'new' }))
      expect(catalog.ofType('old')).toBeUndefined()
      expect(catalog.ofType('new')?.id).toBe('clusterpulse/a')
    })

    it('holds exactly what a resync brings', async () => {
      await using catalog = await open()
      await catalog.resync([])
      await catalog.put(aDefinition('old'))
      await catalog.put(aDefinition('kept'))
      await catalog.resync([aDefinition('new'), aDefinition('kept')])
      expect(ids(catalog)).toEqual(['clusterpulse/kept', 'clusterpulse/new'])
      await catalog.resync([])
      expect(ids(catalog)).toEqual([])
      expect(catalog.unavailable()).toBeUndefined()
    })

    it('takes many at once', async () => {
      await using catalog = await open()
      await catalog.resync([])
      const names = Array.from({ length: 30 }, (_, i) => `s${String(i).padStart(2, '0')}`)
      await Promise.all(names.map((name) => catalog.put(aDefinition(name))))
      expect(ids(catalog)).toEqual(names.map((name) => `clusterpulse/${name}`))
      await Promise.all(names.slice(1).map((name) => catalog.remove(`clusterpulse/${name}`)))
      expect(ids(catalog)).toEqual(['clusterpulse/s00'])
    })

    it('tells listeners until they leave', async () => {
      await using catalog = await open()
      await catalog.resync([])
      let told = 0
      const leave = catalog.onChange(() => told++)
      await catalog.put(aDefinition('a'))
      expect(told).toBe(1)
      leave()
      await catalog.remove('clusterpulse/a')
      expect(told).toBe(1)
    })
  })
}
