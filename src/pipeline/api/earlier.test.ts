import { describe, expect, it } from 'vitest'
import type { ClusterView } from '#http'
import { minutes, seconds } from '#model'
import { get } from './test/ask.ts'
import { allow, only } from './test/policies.ts'
import { aNode, aWorld, complete, failed, proxy, start, type World } from './test/world.ts'

const healthy = [complete('node', [aNode('a')])]
const dead = [failed('node', 'unreachable')]
const policies = [allow('all'), allow('part', { resources: [only('nodes', 'a')] })]

async function earlier(world: World, as: string): Promise<ClusterView['earlier']> {
  return ((await get(world, '/api/v2/clusters/west', { as })).body as ClusterView).earlier
}

describe('the health before the heartbeats', () => {
  it('is told of the last hour, with since when it is known', async () => {
    await using world = await aWorld({ identity: proxy, policies })
    await world.connect('west')
    let round = 0
    const read = (parts: typeof healthy) => {
      const collectedAt = start + round++ * seconds(30)
      world.clock.at = collectedAt
      return world.batch('west', parts, { collectedAt })
    }
    await read(healthy)
    await read(healthy)
    for (let at = 0; at < 58; at++) await read(dead)
    const turns = async () => ((await earlier(world, 'all'))?.turns ?? []).map(({ from, to }) => `${from} ${to}`)
    // The second turn is still one of the sixty heartbeats.
    expect(await turns()).toEqual(['unknown healthy'])
    const turned = start + seconds(60)
    for (let at = 0; at < 3; at++) await read(dead)
    expect(await turns()).toEqual(['unknown healthy', 'healthy unhealthy'])
    expect((await earlier(world, 'all'))?.turns[1]?.at).toBe(turned + 5) // when it was received
    expect((await earlier(world, 'all'))?.knownSince).toBe(world.clock.at - minutes(60))
    // Whoever sees a part hears only whether it answered: of that the heartbeats are the memory.
    expect(await earlier(world, 'part')).toEqual({ knownSince: start + seconds(90), turns: [] })
    while (world.clock.at < turned + minutes(60)) await read(dead)
    expect(await turns()).toEqual(['healthy unhealthy'])
    await read(dead)
    expect(await turns()).toEqual([])
  })
})
