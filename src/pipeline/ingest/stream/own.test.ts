import { describe, expect, it } from 'vitest'
import { type Batch, HUB_STOPPED, type Part, type Plan, seconds } from '#model'
import { decodePlan } from '#wire'
import { aBatch, aNode, complete, west } from '../../state/test/fleet-words.ts'
import { eventually } from '../../state/test/redis-server.ts'
import { StreamClient } from './test/clients.ts'
import { aHub, type TestHub } from './test/hub.ts'
import { hello, OwnAgent } from './test/own-agent.ts'

const plan = (version: string): Plan => ({
  version,
  intervalMs: 30_000,
  timeoutMs: 10_000,
  operatorScanIntervalMs: 300_000,
  sources: [],
})

const nodes = (...names: string[]): Part[] => [complete('node', ...names.map((name) => aNode(name)))]
const live = (sequence: number, parts: Part[], more: Partial<Batch> = {}) =>
  aBatch(west, sequence, parts, { source: 'push', collectedAt: Date.now(), ...more })
const shown = async ({ ingester, state }: TestHub) => {
  await ingester.flushed()
  return [...(state.cluster('west')?.parts.node?.items.keys() ?? [])]
}

describe('an agent of ours', () => {
  it('is told what the hub has, then its plan, and again when the plan changes', async () => {
    await using hub = await aHub()
    hub.plans.set(west, plan('one'))
    const { agent, welcome } = await OwnAgent.connect({ address: hub.server.address, token: 'west-token' })
    await using _agent = agent
    expect(welcome).toMatchObject({ version: 1, received: [], maxMessageBytes: 16 * 2 ** 20 })
    expect(decodePlan((await agent.next('plan')).json)).toEqual(plan('one'))
    hub.plans.set(west, plan('two'))
    expect((await agent.next('plan')).version).toBe('two')
  })

  it('has its batches acknowledged once they are safe, and told again on the next stream', async () => {
    await using hub = await aHub()
    const first = await OwnAgent.connect({ address: hub.server.address, token: 'west-token' })
    await using _first = first.agent
    first.agent.push(live(1, nodes('n1')))
    first.agent.push(live(2, nodes('n1', 'n2')))
    await first.agent.ackedTo(2)
    expect(await shown(hub)).toEqual(['n1', 'n2'])
    const second = await OwnAgent.connect({ address: hub.server.address, token: 'west-token' })
    await using _second = second.agent
    expect(second.welcome.received).toMatchObject([{ first: 1, last: 2 }])
    expect(second.welcome.epoch).toBeGreaterThan(first.welcome.epoch)
    expect(await first.agent.next('goodbye')).toMatchObject({ code: 'replaced' })
    expect(hub.server.agents.facts('west')).toMatchObject({ connected: true, epoch: second.welcome.epoch })
  })

  describe('of a hub whose folder was put back from an older copy', () => {
    const losses = async ({ ingester, state }: TestHub) => {
      await ingester.flushed()
      return (state.cluster('west')?.events ?? []).flatMap(({ type, data }) =>
        type === 'collection.lost' ? [data] : [],
      )
    }
    const connect = async (hub: TestHub, pending: readonly [number, number] = [0, 0]) =>
      (await OwnAgent.connect({ address: hub.server.address, token: 'west-token', pending })).agent
    const minutesAgo = (minutes: number) => ({ ageMs: minutes * 60_000 })

    it('hears within one round what the hub acknowledged and has no more, once', async () => {
      await using hub = await aHub()
      await using before = await connect(hub)
      before.push(live(4, nodes('n1')), minutesAgo(10))
      await before.ackedTo(4)
      for (const sequence of [7, 8]) {
        await using agent = await connect(hub)
        agent.push(live(sequence, nodes('n1')), minutesAgo(8 - sequence))
        await agent.ackedTo(sequence)
        await eventually('it is declared', async () => (await losses(hub)).length === 1)
      }
      const [lost] = await losses(hub)
      expect(lost).toMatchObject({ cause: 'restored', count: 2, origin: 'buffer-1' })
      expect(Number(lost?.to) - Number(lost?.from)).toBeGreaterThan(60_000)
      expect(hub.ingester.received(west, 'buffer-1')).toEqual([[4, 8]])
    })

    it('takes nothing for lost that still waits in the buffer', async () => {
      await using hub = await aHub()
      await using before = await connect(hub)
      before.push(live(1, nodes('n1')))
      await before.ackedTo(1)
      await using agent = await connect(hub, [3, 4])
      agent.push(live(5, nodes('n1')))
      agent.push(live(3, nodes('n1'), { backfill: true }))
      agent.push(live(4, nodes('n1'), { backfill: true }))
      await eventually('they are here', () => hub.ingester.received(west, 'buffer-1').some(([n]) => n === 3))
      await eventually('all of them', () => hub.ingester.received(west, 'buffer-1').at(-1)?.[0] === 3)
      expect(await losses(hub)).toEqual([])
      agent.push(live(6, nodes('n1')))
      await eventually('the one is declared', async () => (await losses(hub)).length === 1)
      expect((await losses(hub))[0]).toMatchObject({ cause: 'restored', count: 1 })
    })
  })

  it('whose clock is ahead declares a loss of the time it was, and none of what has not come yet', async () => {
    await using hub = await aHub()
    const aheadMs = 3_600_000
    const now = () => Date.now() + aheadMs
    const { agent } = await OwnAgent.connect({ address: hub.server.address, token: 'west-token', now })
    await using _agent = agent
    const [fromMs, toMs] = [now() - 600_000, now() - 300_000]
    agent.send({
      case: 'loss',
      value: { sequence: 3, lost: [{ first: 1, last: 1 }], fromMs, toMs, cause: 'dropped', count: 1 },
    })
    agent.send({
      case: 'loss',
      value: { sequence: 4, lost: [{ first: 2, last: 2 }], fromMs, toMs: now() + 1e12, cause: 'dropped', count: 1 },
    })
    await agent.ackedTo(4)
    await hub.ingester.flushed()
    const told = (hub.state.cluster('west')?.events ?? []).flatMap(({ type, data }) =>
      type === 'collection.lost' ? [data] : [],
    )
    const [right, endless] = told.toSorted((a, b) => Number(a?.to) - Number(b?.to))
    expect(Math.abs(Number(right?.from) - (fromMs - aheadMs))).toBeLessThan(60_000)
    expect(Math.abs(Number(right?.to) - (toMs - aheadMs))).toBeLessThan(60_000)
    expect(Number(endless?.to)).toBeLessThanOrEqual(Date.now())
  })

  it('that takes the place of another is not told which buffer the other has', async () => {
    await using hub = await aHub()
    const goodbyes: string[] = []
    const address = { address: hub.server.address, token: 'west-token' }
    for (const origin of ['rightful', 'thief', 'rightful', 'thief']) {
      const { agent } = await OwnAgent.connect({ ...address, origin })
      void agent.next('goodbye').then(
        ({ message }) => goodbyes.push(message),
        () => undefined,
      )
    }
    await eventually('three were replaced', () => goodbyes.length === 3)
    expect(goodbyes.at(-1)).toMatch(/another agent uses the identity/)
    expect(goodbyes.join()).not.toMatch(/rightful|thief/)
    expect(hub.server.agents.facts('west')?.reason).toMatch(/rightful.*thief|thief.*rightful/)
  })

  it('sends differences to what was acknowledged, and may lag one ack behind', async () => {
    await using hub = await aHub()
    const { agent } = await OwnAgent.connect({ address: hub.server.address, token: 'west-token' })
    await using _agent = agent
    agent.push(live(1, nodes('n1', 'n2', 'n3')))
    await agent.ackedTo(1)
    agent.push(live(2, nodes('n1', 'n2')), { base: 1 })
    await agent.ackedTo(2)
    expect(await shown(hub)).toEqual(['n1', 'n2'])
    agent.push(live(3, nodes('n1', 'n2', 'n4')), { base: 1 })
    await agent.ackedTo(3)
    expect((await shown(hub)).sort()).toEqual(['n1', 'n2', 'n4'])
  })

  it('is asked for a complete frame when the hub does not know the base', async () => {
    await using hub = await aHub()
    const { agent } = await OwnAgent.connect({ address: hub.server.address, token: 'west-token' })
    await using _agent = agent
    agent.views.set(7, { node: new Map() })
    agent.push(live(8, nodes('n1')), { base: 7 })
    await agent.next('resync')
    expect(await agent.next('ack')).toMatchObject({ success: false, retryable: true, code: 'base_mismatch' })
    agent.push(live(8, nodes('n1')))
    await agent.ackedTo(8)
    expect(await shown(hub)).toEqual(['n1'])
  })

  it('keeps its differences when the hub itself read the cluster in between', async () => {
    await using hub = await aHub()
    const { agent } = await OwnAgent.connect({ address: hub.server.address, token: 'west-token' })
    await using _agent = agent
    agent.push(live(1, nodes('n1', 'n2')))
    await agent.ackedTo(1)
    const sequence = hub.ingester.nextSequence(west)
    await hub.ingester.accept({ batch: aBatch(west, sequence, nodes('pulled'), { collectedAt: Date.now() }) })
    agent.push(live(2, nodes('n1', 'n2', 'n3'), { collectedAt: Date.now() }), { base: 1 })
    await agent.ackedTo(2)
    expect(await shown(hub)).toEqual(['n1', 'n2', 'n3'])
  })

  it('declares losses, which are acknowledged like batches', async () => {
    await using hub = await aHub()
    const { agent } = await OwnAgent.connect({ address: hub.server.address, token: 'west-token' })
    await using _agent = agent
    agent.send({
      case: 'loss',
      value: { sequence: 9, lost: [{ first: 1, last: 8 }], fromMs: 1, toMs: 2, cause: 'dropped', count: 8 },
    })
    await agent.ackedTo(9)
  })

  it('keeps its stream when one batch is refused, and is told that it will never be taken', async () => {
    await using hub = await aHub()
    const { agent } = await OwnAgent.connect({ address: hub.server.address, token: 'west-token' })
    await using _agent = agent
    agent.push(live(1, [complete('node', aNode('n1', { imagesCount: 0.5 }))]))
    expect(await agent.next('ack')).toMatchObject({
      success: false,
      retryable: false,
      received: [{ first: 1, last: 1 }],
    })
    agent.push(live(2, nodes('n1')))
    await agent.ackedTo(2)
  })

  it('whose clock is years off has its batches where they belong', async () => {
    await using hub = await aHub()
    const years = 5 * 365 * 86_400_000
    const now = () => Date.now() - years
    const { agent } = await OwnAgent.connect({ address: hub.server.address, token: 'west-token', now })
    await using _agent = agent
    agent.push(live(1, nodes('n1'), { collectedAt: now() - 20_000 }), { ageMs: 20_000 })
    await agent.ackedTo(1)
    await shown(hub)
    const observedAt = hub.state.cluster('west')?.parts.node?.freshness?.observedAt ?? 0
    expect(Math.abs(Date.now() - 20_000 - observedAt)).toBeLessThan(15_000)
    expect(hub.server.agents.facts('west')?.clockOffsetMs).toBeLessThan(-years + 60_000)
  })

  it('counts as delivering from its first live batch, and is in state with its facts', async () => {
    await using hub = await aHub()
    const { agent } = await OwnAgent.connect({ address: hub.server.address, token: 'west-token' })
    await using _agent = agent
    expect(hub.server.agents.isDelivering('west')).toBe(false)
    agent.push(live(1, nodes('n1'), { backfill: true, collectedAt: Date.now() - 60_000 }))
    await agent.ackedTo(1)
    expect(hub.server.agents.isDelivering('west')).toBe(false)
    agent.push(live(2, nodes('n1')))
    await agent.ackedTo(2)
    expect(hub.server.agents.isDelivering('west')).toBe(true)
    await eventually('state knows the agent', () => hub.state.cluster('west')?.agent?.connected === true)
    expect(hub.state.cluster('west')?.agent).toMatchObject({ protocol: 1, reason: '', method: 'token', tls: false })
    await agent[Symbol.asyncDispose]()
    await eventually('state knows that it went', () => hub.state.cluster('west')?.agent?.connected === false)
    expect(hub.server.agents.isDelivering('west')).toBe(false)
  })

  it('has what is under way acknowledged before the hub stops', async () => {
    await using hub = await aHub()
    const { agent } = await OwnAgent.connect({ address: hub.server.address, token: 'west-token' })
    await using _agent = agent
    for (let sequence = 1; sequence <= 8; sequence++) agent.push(live(sequence, nodes('n1')))
    await agent.next('ack')
    await hub.server[Symbol.asyncDispose]()
    expect(await agent.next('goodbye')).toMatchObject({ code: 'stopping', message: 'the hub is stopping' })
    // What is read of it, maybe by the next hub, stays true until the agent is back.
    expect(hub.server.agents.facts('west')).toMatchObject({ connected: false, reason: HUB_STOPPED })
  })

  it('is given up when two of them share one identity: both are slowed down, and the page is told', async () => {
    await using hub = await aHub()
    const address = hub.server.address
    const open = async (origin: string) => (await OwnAgent.connect({ address, token: 'west-token', origin })).agent
    await using one = await open('buffer-1')
    await using two = await open('buffer-2')
    expect(await one.next('goodbye')).toMatchObject({ code: 'replaced', retryAfterMs: 0 })
    expect(hub.server.agents.facts('west')?.reason).toBe('')
    await using _again = await open('buffer-1')
    const goodbye = await two.next('goodbye')
    expect(goodbye.retryAfterMs).toBeGreaterThan(seconds(10))
    expect(hub.server.agents.facts('west')?.reason).toContain('buffer-2')
  })

  it('of an unknown cluster, version or name is told so', async () => {
    await using hub = await aHub()
    const address = hub.server.address
    hub.credentials.grant('ghost-token', 'ghost')
    const cases = [
      { token: 'ghost-token', payload: hello({ cluster: 'ghost' }), code: 'not_connected' },
      { token: 'west-token', payload: hello({ cluster: 'east' }), code: 'wrong_cluster' },
      { token: 'west-token', payload: hello({ origin: 'not an origin' }), code: 'invalid_hello' },
    ]
    for (const { token, payload, code } of cases) {
      await using client = new StreamClient({ address, token })
      client.send(payload)
      expect(await client.next('goodbye')).toMatchObject({ code })
      expect((await client.ended()).details).toContain(code)
    }
  })
})
