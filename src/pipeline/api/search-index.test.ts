import { describe, expect, it } from 'vitest'
import type { PageView, SearchHit } from '#http'
import { cpuMs } from '../../../test/cpu.ts'
import { aNode, aWorld, complete, proxy } from './test/world.ts'

describe('search', () => {
  it('puts the name itself first, then beginnings, then beginnings of words, then the rest', async () => {
    await using world = await aWorld()
    await world.connect('west', { displayName: 'West' })
    const names = ['my-db', 'db', 'mydb', 'db-1']
    await world.batch('west', [
      complete(
        'node',
        names.map((name) => aNode(name)),
      ),
    ])
    const found = async (q: string) =>
      ((await world.get(`/api/v2/search?q=${encodeURIComponent(q)}`)).body as PageView<SearchHit>).items
    expect((await found('db')).map(({ name }) => name)).toEqual(['db', 'db-1', 'my-db', 'mydb'])
    expect((await found(' DB  1 ')).map(({ name }) => name)).toEqual(['db-1'])
    expect((await found('west'))[0]).toMatchObject({ kind: 'cluster', name: 'west' })
    expect((await found('env=test')).map(({ kind }) => kind)).toEqual(['cluster'])
    expect(await found('   ')).toEqual([])
    expect(await found('.*')).toEqual([])
  })

  it('finds what is on a cluster by its name and the name of the cluster, and does not list all of a cluster', async () => {
    await using world = await aWorld()
    for (const name of ['eu-prod-1', 'eu-prod-2']) {
      await world.connect(name, { displayName: name === 'eu-prod-2' ? 'Europe production' : '' })
      await world.batch(name, [complete('node', [aNode('worker-5'), aNode('worker-6')])])
    }
    const found = async (q: string) =>
      ((await world.get(`/api/v2/search?q=${encodeURIComponent(q)}`)).body as PageView<SearchHit>).items
    const only = [{ kind: 'node', cluster: 'eu-prod-2', name: 'worker-6' }]
    expect(await found('prod-2 worker-6')).toMatchObject(only)
    expect(await found('worker-6 europe')).toMatchObject(only)
    expect((await found('prod-2')).map(({ kind }) => kind)).toEqual(['cluster'])
  })

  it('finds what was meant where nothing is called so, in names with hyphens too', async () => {
    await using world = await aWorld()
    await world.connect('prod-east', { displayName: 'Shop east' })
    await world.batch('prod-east', [complete('node', [aNode('gpu-worker-17')])])
    const found = async (q: string) =>
      ((await world.get(`/api/v2/search?q=${encodeURIComponent(q)}`)).body as PageView<SearchHit>).items
    expect(await found('prdo-east')).toMatchObject([{ kind: 'cluster', name: 'prod-east' }])
    expect(await found('gpu-wroker-17')).toMatchObject([{ kind: 'node', cluster: 'prod-east', name: 'gpu-worker-17' }])
    expect(await found('gpu-worker-17')).toHaveLength(1)
    expect(await found('zebra-north')).toEqual([])
  })

  it('puts names that have each part of a word before those that a slip finds, and takes no number for another', async () => {
    await using world = await aWorld()
    for (const side of ['east', 'west']) {
      await world.connect(`prod-${side}`)
      const nodes = ['infra-2a-x1-1', 'worker-2a-x2-6', 'worker-2a-x3-5'].map((name) => aNode(`prod-${side}-${name}`))
      await world.batch(`prod-${side}`, [complete('node', nodes)])
    }
    const { items } = (await world.get('/api/v2/search?q=prod-west%20worker-6')).body as PageView<SearchHit>
    expect(items.map(({ name }) => name)).toEqual(['prod-west-worker-2a-x2-6', 'prod-east-worker-2a-x2-6'])
  })

  it('compares a bounded number of names letter by letter', async () => {
    await using world = await aWorld()
    await world.connect('west')
    const nodes = Array.from({ length: 30_000 }, (_, n) => aNode(`node-of-a-rather-long-name-${n}`))
    await world.batch('west', [complete('node', nodes)])
    await world.get('/api/v2/search?q=warm')
    const since = process.cpuUsage()
    expect((await world.get('/api/v2/search?q=nothing-of-such-a-nmae')).body).toMatchObject({ total: 0 })
    expect(cpuMs(since)).toBeLessThan(1000)
  })

  it('bounds what it gives and says how many there are', async () => {
    await using world = await aWorld()
    await world.connect('west')
    const nodes = Array.from({ length: 30 }, (_, n) => aNode(`node-${n}`))
    await world.batch('west', [complete('node', nodes)])
    const { body } = await world.get('/api/v2/search?q=node&limit=7')
    expect(body).toMatchObject({ total: 30, items: { length: 7 } })
  })

  it('finds what came and forgets what went', async () => {
    await using world = await aWorld()
    await world.connect('west')
    const total = async (q: string) => ((await world.get(`/api/v2/search?q=${q}`)).body as PageView<SearchHit>).total
    await world.batch('west', [complete('node', [aNode('old')])])
    expect([await total('old'), await total('new')]).toEqual([1, 0])
    await world.batch('west', [complete('node', [aNode('new')])])
    expect([await total('old'), await total('new')]).toEqual([0, 1])
  })

  it('finds nothing for those who may see nothing, and does not count it either', async () => {
    await using world = await aWorld({ identity: proxy })
    await world.connect('west')
    const { body } = await world.get('/api/v2/search?q=west', { 'x-forwarded-user': 'ann' })
    expect(body).toEqual({ items: [], total: 0, next: null, part: null })
  })
})
