import { Compile } from 'typebox/compile'
import { describe, expect, it } from 'vitest'
import { type ClusterView, ClusterViewSchema } from '#http'
import { StreamReader } from './test/stream-reader.ts'
import { aNode, aWorld, complete, start, type World } from './test/world.ts'

const viewOf = async (world: World, cluster = 'west'): Promise<ClusterView> => {
  const { body } = await world.get(`/api/v2/clusters/${cluster}`)
  expect([...Compile(ClusterViewSchema).Errors(body)]).toEqual([])
  return body as ClusterView
}
const nodes = [complete('node', [aNode('a')])]

describe('the agent beside a cluster', () => {
  it('is null as long as none was there, and the source is how the newest facts came', async () => {
    await using world = await aWorld()
    await world.connect('west', { mode: 'push' })
    await world.batch('west', nodes)
    expect(await viewOf(world)).toMatchObject({ mode: 'push', source: 'pull', agent: null })
    await world.agent('west')
    await world.batch('west', nodes, { source: 'push' })
    expect(await viewOf(world)).toMatchObject({ mode: 'push', source: 'push', agent: { connected: true } })
    await world.batch('west', nodes, { source: 'pull' })
    expect(await viewOf(world)).toMatchObject({ source: 'pull', agent: { connected: true } })
  })

  it('tells what it holds back, what it lost and why it went, and nothing of how it is let in', async () => {
    await using world = await aWorld()
    await world.connect('west', { mode: 'push' })
    await world.agent('west', { bufferedBatches: 12, bufferedBytes: 3456, oldestBufferedAt: start - 360_000 })
    await world.agent('west', {
      connected: false,
      since: start + 5,
      reason: 'the stream was replaced by a newer one',
      bufferedBatches: 12,
      bufferedBytes: 3456,
      oldestBufferedAt: start - 360_000,
      lostBatches: 3,
      clockOffsetMs: -1500,
      protocol: 'original',
      tls: false,
    })
    const { agent } = await viewOf(world)
    expect(agent).toEqual({
      connected: false,
      since: start + 5,
      reason: 'the stream was replaced by a newer one',
      version: '1.2.3',
      protocol: 'original',
      heartbeatAt: start,
      bufferedBatches: 12,
      bufferedBytes: 3456,
      oldestBufferedAt: start - 360_000,
      lostBatches: 3,
      clockOffsetMs: -1500,
      tls: false,
    })
    const { body } = await world.get('/api/v2/clusters')
    expect(JSON.stringify(body)).not.toMatch(/the-plan|4711|"token"/)
  })

  it('is forgotten when the hub reads the cluster again and its stream is gone', async () => {
    await using world = await aWorld()
    await world.connect('west', { mode: 'push' })
    await world.agent('west')
    await world.connect('west', { mode: 'pull' })
    expect(await viewOf(world)).toMatchObject({ mode: 'pull', agent: { connected: true } })
    await world.agent('west', { connected: false, reason: 'the agent was removed' })
    expect(await viewOf(world)).toMatchObject({ mode: 'pull', agent: null })
    await world.connect('west', { mode: 'push' })
    expect(await viewOf(world)).toMatchObject({ mode: 'push', agent: { connected: false } })
  })

  it('is told by the stream when it comes, falls behind and goes', async () => {
    await using world = await aWorld()
    await world.connect('west', { mode: 'push' })
    await world.agent('west')
    const reader = await StreamReader.open(`${await world.server.start()}/api/v1/stream`)
    const agents = () =>
      reader.frames
        .filter(({ event }) => event === 'change')
        .flatMap(({ data }) => data.changes as { type: string; view: ClusterView }[])
        .filter(({ type }) => type === 'cluster')
        .map(({ view }) => view.agent)
    await reader.until((frames) => frames.some(({ event }) => event === 'snapshot'))
    const snapshot = reader.frames.find(({ event }) => event === 'snapshot')
    expect(snapshot?.data).toMatchObject({
      clusters: [{ name: 'west', agent: { connected: true, bufferedBatches: 0 } }],
    })
    await world.agent('west', { bufferedBatches: 7 })
    await reader.until(() => agents().some((agent) => agent?.bufferedBatches === 7))
    await world.agent('west', { connected: false, reason: 'gone' })
    await reader.until(() => agents().some((agent) => agent?.reason === 'gone'))
    reader.close()
  })

  it('makes another answer of /api/v2, and no other of the documented routes', async () => {
    await using world = await aWorld()
    await world.connect('west', { mode: 'push' })
    await world.batch('west', nodes, { source: 'push' })
    const documented = ['/api/v1/clusters', '/api/v1/clusters/west', '/api/v1/clusters/west/nodes/a']
    const texts = async () => Promise.all(documented.map(async (url) => (await world.get(url)).body))
    const before = { documents: await texts(), etag: (await world.get('/api/v2/clusters/west')).headers.etag }
    await world.agent('west', { bufferedBatches: 1 })
    expect(await texts()).toEqual(before.documents)
    expect((await world.get('/api/v2/clusters/west')).headers.etag).not.toBe(before.etag)
  })

  it('goes with its cluster', async () => {
    await using world = await aWorld()
    await world.connect('west', { mode: 'push' })
    await world.agent('west')
    await world.remove('west')
    await world.connect('west', { mode: 'push' })
    expect((await viewOf(world)).agent).toBe(null)
  })
})
