import { describe, expect, it, vi } from 'vitest'
import { type Batch, type ClusterName, parseClusterName } from '#model'
import { aBatch, aNode, complete } from '../../state/test/fleet-words.ts'
import { eventually } from '../../state/test/redis-server.ts'
import { StreamClient } from '../stream/test/clients.ts'
import { hello, OwnAgent } from '../stream/test/own-agent.ts'
import { someOwners, type TestOwner } from './test/owners.ts'

const west = parseClusterName('west')
const batchOf = (cluster: ClusterName, sequence: number, origin = `buffer-of-${cluster}`): Batch =>
  aBatch(cluster, sequence, [complete('node', aNode(`n${sequence}`), aNode('always'))], {
    source: 'push',
    origin,
    collectedAt: Date.now(),
  })

const connect = ({ server }: TestOwner, cluster: string, origin = `buffer-of-${cluster}`) =>
  OwnAgent.connect({ address: server.address, token: `${cluster}-token`, cluster, origin })

const metricOf = async ({ metrics }: TestOwner, name: string) =>
  Number(new RegExp(`^${name} (\\d+)`, 'm').exec(await metrics.registry.metrics())?.[1])

describe('a stream that came to another owner', () => {
  it('is served by the owner of its cluster: welcome, acks, differences, facts', async () => {
    await using fleet = await someOwners()
    const { agent, welcome } = await connect(fleet.otherThan('west'), 'west')
    await using _agent = agent
    expect(welcome.received).toEqual([])
    agent.push(batchOf(west, 1))
    await agent.ackedTo(1)
    for (let sequence = 2; sequence <= 9; sequence++) {
      agent.push(batchOf(west, sequence), { base: sequence - 1 })
      await agent.ackedTo(sequence)
    }
    const owner = fleet.ownerOf('west')
    expect(owner.ingester.received(west, 'buffer-of-west')).toEqual([[1, 9]])
    expect(fleet.otherThan('west').ingester.received(west, 'buffer-of-west')).toEqual([])
    expect(owner.server.agents.isDelivering('west')).toBe(true)
    expect(owner.server.agents.facts('west')).toMatchObject({
      connected: true,
      process: `owner-${owner.place.index}`,
      method: 'token',
    })
    expect(await metricOf(owner, 'clusterpulse_agent_streams')).toBe(1)
    expect(await metricOf(owner, 'clusterpulse_agent_relayed_streams')).toBe(0)
    expect(await metricOf(fleet.otherThan('west'), 'clusterpulse_agent_streams')).toBe(0)
    expect(await metricOf(fleet.otherThan('west'), 'clusterpulse_agent_relayed_streams')).toBe(1)
    await agent[Symbol.asyncDispose]()
    await eventually('the owner knows that it went', () => owner.server.agents.facts('west')?.connected === false)
    await vi.waitFor(() => expect(fleet.otherThan('west').server.streams).toBe(0))
  })

  it('may show its token in the registration, and is refused as it would be at home', async () => {
    await using fleet = await someOwners()
    const { address } = fleet.otherThan('west').server
    await using agent = new StreamClient({ address })
    agent.send(hello({ cluster: 'west', token: 'west-token' }))
    await agent.next('welcome')
    for (const [token, cluster, code] of [
      ['nobody', 'west', 16],
      ['east-token', 'west', 7],
    ] as const) {
      const answers = []
      for (const owner of fleet.owners) {
        await using client = new StreamClient({ address: owner.server.address, token })
        client.send(hello({ cluster }))
        const goodbye = await client.next('goodbye')
        const { code, details } = await client.ended()
        answers.push({ ...goodbye, status: code, details })
      }
      expect(answers[0]?.status).toBe(code)
      expect(answers[1]).toEqual(answers[0])
    }
    expect(fleet.ownerOf('west').server.agents.facts('west')).toMatchObject({ connected: true })
  })
})
