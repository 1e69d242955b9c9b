import { describe, expect, it } from 'vitest'
import { parseClusterName } from '#model'
import { leastOf } from '../../../platform/runtime/testing/least-of.ts'
import { slowness } from '../../../platform/runtime/testing/slowness.ts'
import { aBatch, aNode, complete, west } from '../../state/test/fleet-words.ts'
import { eventually } from '../../state/test/redis-server.ts'
import { StreamClient } from './test/clients.ts'
import { aHub, TestCredentials } from './test/hub.ts'
import { hello, OwnAgent } from './test/own-agent.ts'
import type { Peer, PeerVerifier } from './types.ts'

const batch = (sequence: number, cluster = west) =>
  aBatch(cluster, sequence, [complete('node', aNode('n1'))], { source: 'push', collectedAt: Date.now() })

describe('who speaks', () => {
  it('answers every credential that is not good alike, before the first message is looked at', async () => {
    await using hub = await aHub()
    hub.credentials.refuse('expired-token', 'expired')
    hub.credentials.refuse('revoked-token', 'revoked')
    const answers = []
    for (const token of ['wrong', 'expired-token', 'revoked-token', 'west-token2', ' ', 'x'.repeat(9000)]) {
      await using client = new StreamClient({ address: hub.server.address, token })
      client.send(hello({ token }))
      const { code, details } = await client.ended()
      answers.push(`${code} ${details}`)
    }
    expect(new Set(answers)).toEqual(new Set(['16 unauthenticated: the credential is not accepted']))
    expect(hub.server.agents.facts('west')).toBeUndefined()
  })

  it('says to one whose connection is still being made that it is, and when to come back', async () => {
    await using hub = await aHub()
    hub.credentials.refuse('early-token', 'not_yet')
    await using client = new StreamClient({ address: hub.server.address, token: 'early-token' })
    expect(await client.next('goodbye')).toMatchObject({ code: 'not_yet', retryAfterMs: 500 })
    expect(await client.ended()).toMatchObject({ code: 14 })
  })

  it('takes the token of the registration where the call showed none', async () => {
    await using hub = await aHub()
    await using client = new StreamClient({ address: hub.server.address })
    client.send(hello({ token: 'west-token' }))
    await client.next('welcome')
    await using liar = new StreamClient({ address: hub.server.address })
    liar.send(hello({ token: 'no' }))
    expect(await liar.next('goodbye')).toMatchObject({ code: 'unauthenticated' })
  })

  it('ends a stream whose batch or health names another cluster, and keeps nothing of it', async () => {
    await using hub = await aHub()
    for (const payload of [
      { case: 'health', value: { clusterName: 'east' } },
      { case: 'metrics', value: { clusterName: 'east', batchId: 'a' } },
      { case: 'register', value: { clusterName: 'east', token: 'west-token' } },
    ] as const) {
      await using client = new StreamClient({ address: hub.server.address, token: 'west-token' })
      client.send({ case: 'register', value: { clusterName: 'west', token: 'west-token' } })
      client.send(payload)
      expect((await client.ended()).details).toMatch(/^wrong_cluster: /)
    }
    await hub.ingester.flushed()
    expect(hub.state.cluster('east')?.parts).toEqual({})
  })

  it('refuses what comes before the registration', async () => {
    await using hub = await aHub()
    for (const payload of [
      { case: 'health', value: { clusterName: 'west' } },
      { case: 'metrics', value: { clusterName: 'west', batchId: 'a' } },
      { case: 'frame', value: { sequence: 1 } },
    ] as const) {
      await using client = new StreamClient({ address: hub.server.address, token: 'west-token' })
      client.send(payload)
      expect((await client.ended()).details).toMatch(/^not_registered: /)
    }
  })

  it('cuts open streams within five seconds when their credential is revoked, and no others', async () => {
    await using hub = await aHub()
    const { address } = hub.server
    const { agent } = await OwnAgent.connect({ address, token: 'west-token' })
    await using _agent = agent
    const other = (await OwnAgent.connect({ address, token: 'east-token', cluster: 'east' })).agent
    await using _other = other
    const begun = performance.now()
    hub.credentials.refuse('west-token', 'revoked')
    expect(await agent.next('goodbye')).toMatchObject({ code: 'revoked' })
    await agent.ended()
    expect((performance.now() - begun) / slowness).toBeLessThan(5_000)
    agent.push(batch(1))
    other.push(batch(1, parseClusterName('east')))
    await other.ackedTo(1)
    await hub.ingester.flushed()
    expect(hub.state.cluster('west')?.parts).toEqual({})
    await eventually('the facts tell', () => hub.state.cluster('west')?.agent?.connected === false)
    expect(hub.state.cluster('west')?.agent?.reason).toContain('no longer valid')
  })

  it('cuts a stream that reads nothing any more, too', async () => {
    await using hub = await aHub({ limits: { goodbyeMs: 200 } })
    const { agent } = await OwnAgent.connect({ address: hub.server.address, token: 'west-token' })
    await using _agent = agent
    agent.pause()
    hub.credentials.refuse('west-token', 'revoked')
    await eventually('the stream is gone', () => hub.server.agents.facts('west')?.connected === false)
  })

  it('slows down whoever keeps guessing, and not a good neighbour behind the same address', async () => {
    await using hub = await aHub()
    const { address } = hub.server
    const guess = async () => {
      await using client = new StreamClient({ address, token: 'guess' })
      const begun = performance.now()
      await client.ended()
      return performance.now() - begun
    }
    const quick = await Promise.all(Array.from({ length: 10 }, guess))
    // Each after those waits twice as long as the one before.
    expect(Math.max(...quick)).toBeLessThan(8_000)
    const slow = guess()
    const goodMs = await leastOf(4, 990, async () => {
      const begun = performance.now()
      await using _good = (await OwnAgent.connect({ address, token: 'west-token' })).agent
      return performance.now() - begun
    })
    expect(goodMs).toBeLessThan(990)
    expect(await slow).toBeGreaterThan(990)
  })

  it('is asked again of the stream of a cluster whose credentials changed, and of no other', async () => {
    const looks: string[] = []
    const credentials = new TestCredentials()
    for (const cluster of ['west', 'east']) credentials.grant(`${cluster}-token`, cluster)
    const verifier: PeerVerifier = {
      verify: (presented) => credentials.verify(presented),
      stillValid(peer) {
        looks.push(peer.cluster)
        return credentials.stillValid(peer)
      },
      onChange: (listener) => credentials.onChange(listener),
    }
    await using hub = await aHub({ verifier, limits: { sweepMs: 60_000 } })
    const { address } = hub.server
    await using _west = (await OwnAgent.connect({ address, token: 'west-token' })).agent
    await using _east = (await OwnAgent.connect({ address, token: 'east-token', cluster: 'east' })).agent
    looks.length = 0
    credentials.doubt('east')
    expect(looks).toEqual(['east'])
  })

  it('is asked of an open stream in every tenth sweep: ten thousand of them cost a tenth', async () => {
    const sweepMs = 20
    const looks: number[] = []
    const credentials = new TestCredentials()
    credentials.grant('west-token', 'west')
    const stillValid = (peer: Peer) => {
      looks.push(performance.now())
      return credentials.stillValid(peer)
    }
    const verifier: PeerVerifier = {
      verify: (presented) => credentials.verify(presented),
      stillValid,
      onChange: (listener) => credentials.onChange(listener),
    }
    await using hub = await aHub({ verifier, limits: { sweepMs } })
    await using _agent = (await OwnAgent.connect({ address: hub.server.address, token: 'west-token' })).agent
    looks.length = 0
    await eventually('it was looked at a few times', () => Promise.resolve(looks.length >= 5))
    // Sweeps may come late, and never early.
    expect((looks[4] ?? 0) - (looks[0] ?? 0)).toBeGreaterThan(4 * 10 * sweepMs * 0.8)
  })

  it('lets few wait who showed nothing, and only for a short time', async () => {
    await using hub = await aHub({ limits: { maxUnnamed: 2, registerMs: 300, sweepMs: 50 } })
    const { address } = hub.server
    await using one = new StreamClient({ address })
    await using two = new StreamClient({ address })
    await eventually('both are there', async () => (await hub.metrics.registry.metrics()).includes('agent_streams 2'))
    await using three = new StreamClient({ address })
    expect((await three.ended()).code).toBe(16)
    expect([(await one.ended()).code, (await two.ended()).code]).toEqual([16, 16])
  })
})
