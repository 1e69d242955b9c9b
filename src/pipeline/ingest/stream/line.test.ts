import { describe, expect, it } from 'vitest'
import type { Batch } from '#model'
import { StoreUnavailableError } from '#model'
import { SilentProxy } from '../../../../test/silent-proxy.ts'
import { aBatch, aNode, complete, west } from '../../state/test/fleet-words.ts'
import { eventually } from '../../state/test/redis-server.ts'
import type { StreamIngester } from './ingest-port.ts'
import { aHub } from './test/hub.ts'
import { OwnAgent } from './test/own-agent.ts'

const batch = (sequence: number, labels: Record<string, string> = {}) =>
  aBatch(west, sequence, [complete('node', aNode('n1', { labels }))], { source: 'push', collectedAt: Date.now() })

/** An ingester of which a test says when a batch is safe. */
function slowIngester() {
  const waiting: { readonly batch: Batch; readonly done: (error?: Error) => void }[] = []
  const ingester: StreamIngester = {
    accept: ({ batch: one }) =>
      new Promise((resolve, reject) => {
        const done = (error?: Error) => (error ? reject(error) : resolve({ sequence: one.sequence, duplicate: false }))
        waiting.push({ batch: one, done })
      }),
    lost: (_cluster, { sequence }) => Promise.resolve({ sequence, duplicate: false }),
    agent: () => Promise.resolve(),
    received: () => [],
    heardTo: () => undefined,
    knows: () => true,
  }
  return { ingester, waiting }
}

describe('the line to an agent', () => {
  const limits = { pingMs: 50, silentMs: 600, sweepMs: 50 }

  it('that fell silent is noticed by the hub, and the place of the cluster is free', async () => {
    await using hub = await aHub({ limits })
    await using line = await SilentProxy.before(hub.server.address.port)
    const { agent } = await OwnAgent.connect({ address: { host: '127.0.0.1', port: line.port }, token: 'west-token' })
    await using _agent = agent
    agent.push(batch(1))
    await agent.ackedTo(1)
    expect(hub.server.agents.isDelivering('west')).toBe(true)
    const silentAt = Date.now()
    line.silence()
    await eventually('the hub notices', () => hub.server.agents.facts('west')?.connected === false)
    expect(hub.server.agents.isDelivering('west')).toBe(false)
    const { since = 0, reason } = hub.server.agents.facts('west') ?? {}
    expect(reason).toBe('nothing was heard of it')
    // Away since the last sign of life, not since that was noticed.
    expect(since - silentAt).toBeLessThan(limits.silentMs)
    expect(Date.now() - since).toBeGreaterThanOrEqual(limits.silentMs)
  })

  it('lives on while one end is busy for a while: the peer for less than the hub waits, the hub itself for as long as it is', async () => {
    await using hub = await aHub({ limits })
    await using line = await SilentProxy.before(hub.server.address.port)
    const { agent } = await OwnAgent.connect({ address: { host: '127.0.0.1', port: line.port }, token: 'west-token' })
    await using _agent = agent
    agent.push(batch(1))
    await agent.ackedTo(1)
    const { epoch } = hub.server.agents.facts('west') ?? {}
    line.silence()
    await new Promise((resolve) => setTimeout(resolve, limits.silentMs / 2))
    line.speak()
    agent.push(batch(2))
    await agent.ackedTo(2)
    const stillness = new Int32Array(new SharedArrayBuffer(4))
    Atomics.wait(stillness, 0, 0, 4 * limits.silentMs)
    agent.push(batch(3))
    await agent.ackedTo(3)
    expect(hub.server.agents.facts('west')).toMatchObject({ connected: true, epoch })
    expect(line.taken).toBe(1)
  })

  it('fills up while the log takes nothing: the hub holds a bounded number, and the rest waits with the agent', async () => {
    const { ingester, waiting } = slowIngester()
    await using hub = await aHub({ ingester, limits: { maxUnacked: 4 } })
    const { agent } = await OwnAgent.connect({ address: hub.server.address, token: 'west-token' })
    await using _agent = agent
    const labels = { text: 'x'.repeat(1_000) }
    for (let sequence = 1; sequence <= 600; sequence++) agent.push(batch(sequence, labels), { plain: true })
    await eventually('four are held', () => waiting.length === 4)
    const seen = Number(/received_bytes_total (\d+)/.exec(await hub.metrics.registry.metrics())?.[1])
    expect(seen).toBeLessThan(64 * 1024)
    let safe = 0
    void (async () => {
      while (safe < 600) {
        for (const { done } of waiting.splice(0)) {
          done()
          safe++
        }
        await new Promise((resolve) => setImmediate(resolve))
      }
    })()
    await agent.ackedTo(600)
  })

  it('holds many batches for a log that takes nothing without a warning of the process', async () => {
    const warnings: string[] = []
    const hear = (warning: Error) => warnings.push(`${warning.name}: ${warning.message}`)
    process.on('warning', hear)
    const { ingester, waiting } = slowIngester()
    await using hub = await aHub({ ingester, limits: { maxUnacked: 40 } })
    const { agent } = await OwnAgent.connect({ address: hub.server.address, token: 'west-token' })
    await using _agent = agent
    for (let sequence = 1; sequence <= 40; sequence++) agent.push(batch(sequence), { plain: true })
    await eventually('all are offered', () => waiting.length === 40)
    for (const { done } of waiting.splice(0)) done(new StoreUnavailableError("the hub's log", 'its disk is full'))
    await eventually('all are offered again', () => waiting.length === 40)
    for (const { done } of waiting.splice(0)) done()
    await agent.ackedTo(40)
    process.off('warning', hear)
    expect(warnings.filter((text) => text.startsWith('MaxListeners'))).toEqual([])
  })

  it('keeps a batch that the hub cannot take for the agent, which hears when to send it again', async () => {
    const { ingester, waiting } = slowIngester()
    await using hub = await aHub({ ingester, limits: { holdMs: 150 } })
    const { agent } = await OwnAgent.connect({ address: hub.server.address, token: 'west-token' })
    await using _agent = agent
    agent.push(batch(1))
    const refusing = setInterval(() => {
      for (const { done } of waiting.splice(0)) done(new StoreUnavailableError("the hub's log", 'its disk is full'))
    }, 5)
    const ack = await agent.next('ack')
    clearInterval(refusing)
    expect(ack).toMatchObject({ success: false, retryable: true, code: 'store_unavailable' })
    expect(ack.retryAfterMs).toBeGreaterThan(1_000)
    agent.push(batch(1))
    await eventually('it is offered again', () => waiting.length === 1)
    waiting[0]?.done()
    await agent.ackedTo(1)
  })

  it('of one cluster that the hub cannot take does not slow the others', async () => {
    const { ingester, waiting } = slowIngester()
    await using hub = await aHub({ ingester })
    const { address } = hub.server
    const { agent: stuck } = await OwnAgent.connect({ address, token: 'west-token' })
    await using _stuck = stuck
    const { agent: free } = await OwnAgent.connect({ address, token: 'east-token', cluster: 'east' })
    await using _free = free
    for (let sequence = 1; sequence <= 100; sequence++) stuck.push(batch(sequence))
    await eventually('one is stuck', () => waiting.length > 0)
    free.push(batch(1))
    const ofEast = () => waiting.find((one) => one.batch.cluster !== west)
    await eventually('the other is offered', () => ofEast() !== undefined)
    ofEast()?.done()
    await free.ackedTo(1)
  })

  it('is told to slow down only by waiting: a burst over the rate arrives whole, later', async () => {
    await using hub = await aHub({ limits: { messagesPerSecond: 50 } })
    const { agent } = await OwnAgent.connect({ address: hub.server.address, token: 'west-token' })
    await using _agent = agent
    const begun = performance.now()
    for (let sequence = 1; sequence <= 150; sequence++) agent.push(batch(sequence))
    await agent.ackedTo(150)
    expect(performance.now() - begun).toBeGreaterThan(700) // 100 at once, then 50 a second
  })
})
