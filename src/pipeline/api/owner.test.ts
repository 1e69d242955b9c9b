import { Compile } from 'typebox/compile'
import { describe, expect, it } from 'vitest'
import { type ClusterView, ClusterViewSchema } from '#http'
import { allow, none } from './test/policies.ts'
import { StreamReader } from './test/stream-reader.ts'
import { aNode, aWorld, complete, proxy, type World } from './test/world.ts'

const viewOf = async (world: World, headers: Record<string, string> = {}): Promise<ClusterView> => {
  const { body } = await world.get('/api/v2/clusters/west', headers)
  expect([...Compile(ClusterViewSchema).Errors(body)]).toEqual([])
  return body as ClusterView
}
const nodes = [complete('node', [aNode('a')])]

describe('the owner of a cluster', () => {
  it('is told by /api/v2 and by the stream while several processes share the fleet, and by no documented route', async () => {
    await using world = await aWorld()
    await world.connect('west')
    await world.batch('west', nodes)
    const documented = ['/api/v1/clusters', '/api/v1/clusters/west', '/api/v1/clusters/west/nodes/a']
    const texts = () => Promise.all(documented.map(async (url) => (await world.get(url)).body))
    const before = await texts()
    expect(await viewOf(world)).not.toHaveProperty('owner')
    const reader = await StreamReader.open(`${await world.server.start()}/api/v1/stream`)
    const owners = () =>
      reader.frames
        .filter(({ event }) => event === 'change')
        .flatMap(({ data }) => data.changes as { type: string; view: ClusterView }[])
        .flatMap(({ type, view }) => (type === 'cluster' ? [view.owner] : []))
    await reader.until((frames) => frames.some(({ event }) => event === 'snapshot'))

    await world.connect('west', { owner: 'owner-2' })
    expect(await viewOf(world)).toMatchObject({ owner: 'owner-2' })
    expect((await world.get('/api/v2/clusters')).body).toMatchObject({ items: [{ name: 'west', owner: 'owner-2' }] })
    await reader.until(() => owners().includes('owner-2'))
    expect(await texts()).toEqual(before)

    await world.connect('west')
    expect(await viewOf(world)).not.toHaveProperty('owner')
    await reader.until(() => owners().at(-1) === undefined)
    reader.close()
  })

  it('is shown to who sees the cluster and its address, also where a part of it is hidden, and to nobody else', async () => {
    await using world = await aWorld({ identity: proxy, policies: [allow('bob', { resources: [none('nodes')] })] })
    await world.connect('west', { owner: 'owner-2' })
    await world.batch('west', nodes)
    const ask = (user: string) => ({ 'x-forwarded-user': user })
    expect(await viewOf(world, ask('bob'))).toMatchObject({
      filtered: true,
      endpoint: 'https://west.example:6443',
      owner: 'owner-2',
    })
    const stranger = await world.get('/api/v2/clusters/west', ask('eve'))
    expect(stranger.status).toBe(404)
    expect(JSON.stringify(stranger.body)).not.toContain('owner-2')
  })
})
