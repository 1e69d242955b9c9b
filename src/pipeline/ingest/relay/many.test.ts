import { describe, expect, it } from 'vitest'
import { ownerOf, parseClusterName } from '#model'
import { OwnAgent } from '../stream/test/own-agent.ts'
import { someOwners } from './test/owners.ts'
import { batchOf } from './test/words.ts'

/** A cheap source of numbers, so that a failure can be repeated. */
function numbers(seed: number) {
  let state = seed
  return (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return (state >>> 8) % below
  }
}

describe('a hundred streams over three owners', () => {
  it('are each acknowledged by the owner of their cluster, exactly, while they come, go and come by other doors', async () => {
    const OF = 3
    const LAST = 6
    const clusters = Array.from({ length: 100 }, (_, i) => parseClusterName(`c${i}`))
    await using fleet = await someOwners({ of: OF, clusters })
    const pick = numbers(11)
    const run = async (cluster: (typeof clusters)[number]) => {
      const origin = `buffer-of-${cluster}`
      for (let next = 1; next <= LAST; ) {
        const owner = fleet.owners[pick(OF)] ?? fleet.ownerOf(cluster)
        const options = { address: owner.server.address, token: `${cluster}-token`, cluster, origin }
        const { agent, welcome } = await OwnAgent.connect(options)
        expect(welcome.received).toMatchObject(next === 1 ? [] : [{ first: 1, last: next - 1 }])
        const until = Math.min(LAST, next + pick(6))
        for (const first = next; next <= until; next++) {
          agent.push(batchOf(cluster, next), next > first && pick(2) === 0 ? { base: next - 1 } : {})
          await agent.ackedTo(next)
        }
        if (pick(2) === 0) agent.finish()
        else await agent[Symbol.asyncDispose]()
      }
    }
    await Promise.all(clusters.map(run))
    for (const { ingester, place, state, server } of fleet.owners) {
      await ingester.flushed()
      for (const cluster of clusters) {
        const isOwner = ownerOf(cluster, OF) === place.index
        expect(ingester.received(cluster, `buffer-of-${cluster}`)).toEqual(isOwner ? [[1, LAST]] : [])
        const nodes = [...(state.cluster(cluster)?.parts.node?.items.keys() ?? [])]
        expect(nodes.sort()).toEqual(isOwner ? ['always', `n${LAST}`] : [])
        if (isOwner) expect(server.agents.facts(cluster)?.process).toBe(`owner-${place.index}`)
        else expect(server.agents.facts(cluster)).toBeUndefined()
      }
    }
  })
})
