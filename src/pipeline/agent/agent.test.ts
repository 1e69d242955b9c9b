import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { KubeError } from '#kube'
import { parseClusterName } from '#model'
import { silentLogger } from '#runtime'
import { aNode } from '../state/test/fleet-words.ts'
import { Agent, type AgentOptions } from './agent.ts'
import { MemoryHub, type MemoryHubOptions } from './testing/memory-hub.ts'
import { aliveClient, countingCollector } from './testing/small-cluster.ts'
import { VirtualTime } from './testing/virtual-time.ts'

const START = Date.UTC(2026, 10, 1)
const HOUR = 3_600_000
const cluster = parseClusterName('west')
let directory = ''
let time = new VirtualTime(START)
const open: Agent[] = []

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'agent-'))
  time = new VirtualTime(START)
})
afterEach(async () => {
  for (const agent of open.splice(0)) await stopped(agent)
  await rm(directory, { recursive: true, force: true })
})

const aHub = (options: Partial<MemoryHubOptions> = {}) => new MemoryHub({ cluster, now: () => time.now(), ...options })

async function anAgent(hub: MemoryHub, options: Partial<AgentOptions> = {}): Promise<Agent> {
  const agent = await Agent.open({
    cluster,
    version: '1.2.3',
    transport: hub,
    token: () => Promise.resolve('secret'),
    kube: aliveClient,
    directory,
    plan: { intervalMs: 30_000 },
    collectors: [countingCollector()],
    clock: time,
    monotonic: time.monotonic,
    random: () => 0.5,
    ...options,
  })
  open.push(agent)
  return agent
}

/** Real disks take real time: things are settled when nothing changed for a few turns of the loop. */
async function settle(agent: Agent, hub: MemoryHub): Promise<void> {
  let same = 0
  for (let last = ''; same < 6; ) {
    await new Promise((resolve) => setImmediate(resolve))
    const { buffer, collection, uplink } = agent.status()
    const now = `${hub.arrivals.size} ${hub.losses.size} ${buffer.batches} ${buffer.losses} ${collection.rounds} ${uplink.sentBytes} ${uplink.phase}`
    same = now === last && !agent.isBusy ? same + 1 : 0
    last = now
  }
}

const pass = (ms: number, agent: Agent, hub: MemoryHub) => time.advance(ms, () => settle(agent, hub))

async function stopped(agent: Agent): Promise<void> {
  let isOver = false
  const stopping = agent.stop().finally(() => {
    isOver = true
  })
  while (!isOver) await time.advance(100, () => new Promise((resolve) => setImmediate(resolve)))
  await stopping
}

describe('an agent that may list nodes and no pods', () => {
  const unreadPods = {
    ...countingCollector(),
    name: 'nodes',
    types: ['node', 'podSummary'] as const,
    critical: true,
    open: () => ({
      take: () => true,
      parts: () => ({
        node: [aNode('n1', { pods: null, requested: null, kubeletVersion: `v${time.now()}` })],
        podSummary: { refused: new KubeError('forbidden', 'pods are not for us') },
      }),
    }),
  }
  const all = ['frames', 'deltas', 'deflate', 'loss', 'plan', 'custom-parts', 'steps', 'unread-pods']

  it.each([
    [
      'tells a hub its nodes without their pods',
      all,
      { node: 'complete', podSummary: 'forbidden', namespace: 'complete' },
    ],
    [
      'tells an older hub that the nodes are not known and why, and the rest',
      all.slice(0, -1),
      { node: 'forbidden', podSummary: 'forbidden', namespace: 'complete' },
    ],
  ])('%s, live and out of its buffer', async (_, capabilities, outcomes) => {
    const hub = aHub({ capabilities })
    hub.up = false
    const agent = await anAgent(hub, { collectors: [countingCollector(), unreadPods] })
    await pass(95_000, agent, hub)
    hub.up = true
    await pass(95_000, agent, hub)
    const arrivals = [...hub.arrivals.values()]
    expect(arrivals.length).toBeGreaterThanOrEqual(6)
    expect(new Set(arrivals.map(({ backfill }) => backfill)).size).toBe(2)
    for (const { batch, view } of arrivals) {
      expect(batch.failure?.message).toBe(
        outcomes.node === 'complete' ? undefined : 'failed to get node metrics: pods are not for us',
      )
      if (outcomes.node === 'complete') expect(view.node?.get('n1')).toMatchObject({ pods: null, requested: null })
      else
        expect(Object.fromEntries(batch.parts.map(({ type, outcome }) => [type, outcome]))).toMatchObject({
          node: 'forbidden',
        })
      expect(view.namespace?.size).toBeGreaterThan(0)
    }
  })
})

describe('an agent', () => {
  it('collects on aligned ticks, sends the first frame complete and then differences to what is acknowledged', async () => {
    const hub = aHub()
    const agent = await anAgent(hub)
    await pass(95_000, agent, hub)
    const arrived = [...hub.arrivals.values()]
    expect(arrived.map(({ batch }) => batch.collectedAt - START)).toEqual([0, 30_000, 60_000, 90_000])
    expect(arrived.map(({ base }) => base)).toEqual([0, 1, 2, 3])
    expect(arrived.every(({ backfill }) => !backfill)).toBe(true)
    expect(arrived.at(-1)?.view.namespace?.get('ns-0')?.labels.count).toBe('4')
    expect(arrived.at(-1)?.view.namespace?.size).toBe(5)
    expect(agent.status().buffer.batches).toBe(0)
  })

  const bridged =
    'bridges 24 hours without a hub: nothing is lost, original times, 20 times real time, live data at most 2 s late'
  it(bridged, { timeout: 400_000 }, () => bridges(300_000))
  // Ten times the batches.
  it(`${bridged}, read every 30 s`, { timeout: 400_000, tags: ['long'] }, () => bridges(30_000))

  async function bridges(intervalMs: number): Promise<void> {
    const hub = aHub({ backlogBytesPerSecond: 256 * 1024 })
    hub.up = false
    const agent = await anAgent(hub, { plan: { intervalMs }, collectors: [countingCollector(undefined, 50)] })
    await pass(24 * HOUR - 60_000, agent, hub)
    const { batches, lostBatches } = agent.status().buffer
    expect(batches).toBeGreaterThanOrEqual((24 * HOUR) / intervalMs - 2)
    expect(lostBatches).toBe(0)
    hub.up = true
    const backAt = time.now()
    const isLate = ({ backfill, batch, at }: { backfill: boolean; batch: { collectedAt: number }; at: number }) =>
      !backfill && at - batch.collectedAt > 2_000
    // The attempts are up to a minute apart; then 24 h of backlog take at most a twentieth of that.
    while (agent.status().buffer.batches > 0 && time.now() - backAt < 60_000 + (24 * HOUR) / 20) {
      await pass(10_000, agent, hub)
    }
    expect(agent.status().buffer.batches).toBe(0)
    const arrived = [...hub.arrivals.values()].sort((a, b) => a.batch.sequence - b.batch.sequence)
    expect(hub.received).toEqual([[1, arrived.length]])
    expect(arrived.map(({ batch }) => batch.collectedAt)).toEqual(arrived.map((_, i) => START + i * intervalMs))
    expect(hub.losses.size).toBe(0)
    expect(hub.repeats).toBe(0)
    expect(arrived.filter((arrival) => arrival.batch.collectedAt > backAt + 60_000).filter(isLate)).toEqual([])
    expect(arrived.every(({ at, batch, ageMs }) => ageMs === at - batch.collectedAt)).toBe(true)
  }

  it('sends again what a broken stream may have swallowed, and forgets what the hub has', async () => {
    const hub = aHub()
    const agent = await anAgent(hub)
    hub.onFrame = (sequence) => (sequence > 2 ? 'nothing' : undefined)
    await pass(100_000, agent, hub)
    expect(hub.received).toEqual([[1, 2]])
    hub.cut()
    hub.onFrame = undefined
    await pass(20_000, agent, hub)
    expect(hub.received).toEqual([[1, 5]])
    expect(agent.status().buffer.batches).toBe(0)
    expect(hub.streams).toBe(2)
  })

  it('ends a stream on which nothing is acknowledged, and opens another', async () => {
    const hub = aHub()
    const agent = await anAgent(hub)
    hub.onFrame = () => 'nothing'
    await pass(120_000, agent, hub)
    expect(hub.streams).toBeGreaterThanOrEqual(2)
    hub.onFrame = undefined
    await pass(240_000, agent, hub)
    expect(hub.received).toEqual([[1, agent.status().collection.rounds]])
  })

  it('sends a complete frame after a resync', async () => {
    const hub = aHub()
    const agent = await anAgent(hub)
    await pass(61_000, agent, hub)
    let refused = 0
    hub.onFrame = (sequence) => (sequence === 4 && refused++ === 0 ? 'resync' : undefined)
    await pass(30_000, agent, hub)
    expect(hub.arrivals.get(4)?.base).toBe(0)
    expect(hub.arrivals.get(4)?.backfill).toBe(false)
    expect(hub.repeats).toBe(0)
    await pass(30_000, agent, hub)
    expect(hub.arrivals.get(5)?.base).toBe(4)
  })

  it('pauses and sends again where the hub asks for it, and declares lost what it refuses for good', async () => {
    const hub = aHub()
    const refusal = (sequence: number, retryable: boolean) => ({
      payload: {
        case: 'ack' as const,
        value: { success: false, retryable, retryAfterMs: 5_000, received: [{ first: sequence, last: sequence }] },
      },
    })
    let times = 0
    hub.onFrame = (sequence) =>
      sequence === 2 && times++ === 0 ? refusal(2, true) : sequence === 3 ? refusal(3, false) : undefined
    const agent = await anAgent(hub)
    await pass(34_000, agent, hub)
    expect(hub.received).toEqual([[1, 1]])
    await pass(2_000, agent, hub)
    expect(hub.received).toEqual([[1, 2]])
    await pass(30_000, agent, hub)
    expect([...hub.losses.values()]).toMatchObject([{ lost: [[3, 3]], cause: 'damaged', count: 1 }])
    expect(hub.received).toEqual([[1, 4]])
  })

  it('waits as long as a goodbye asks', async () => {
    const hub = aHub()
    const agent = await anAgent(hub)
    await pass(10_000, agent, hub)
    hub.say({
      payload: { case: 'goodbye', value: { code: 'stopping', message: 'the hub stops', retryAfterMs: 45_000 } },
    })
    await pass(44_000, agent, hub)
    expect(hub.streams).toBe(1)
    expect(agent.status().uplink.reason).toBe('the hub stops')
    await pass(2_000, agent, hub)
    expect(hub.streams).toBe(2)
  })

  it('says why there is no stream at once, when that changes, and else ever more seldom, every ten minutes at last, with since when', async () => {
    const hub = aHub()
    hub.up = false
    const said: { reason: string; since: string }[] = []
    const pauses: number[] = []
    let last = START
    const logger = {
      ...silentLogger,
      warn: (facts: object, text: string) => {
        if (!text.startsWith('no stream to the hub')) return
        said.push(facts as { reason: string; since: string })
        pauses.push(time.now() - last)
        last = time.now()
      },
    }
    const agent = await anAgent(hub, { logger })
    await pass(29 * 60_000, agent, hub)
    expect(pauses.map((ms) => Math.round(ms / 15_000) / 4)).toEqual([0, 0.25, 0.5, 1, 2, 4, 8, 10])
    for (const one of said)
      expect(one).toMatchObject({ reason: 'the hub is away', since: new Date(START).toISOString() })
    expect(agent.status().uplink.awaySince).toBe(START)
    hub.up = true
    await pass(60_000, agent, hub)
    expect(agent.status().uplink.awaySince).toBeUndefined()
    const revoked = { code: 'revoked', message: 'the credential is no longer valid' }
    hub.say({ payload: { case: 'goodbye', value: { ...revoked, retryAfterMs: 0 } } })
    await pass(100, agent, hub)
    // Of one with a token, which cannot ask.
    expect(said.at(-1)?.reason).toMatch(
      /^the credential is no longer valid: .*`clusterpulse connect west --bearer-token`/,
    )
    expect(Date.parse(said.at(-1)?.since ?? '')).toBeGreaterThan(START + 29 * 60_000)
    expect(agent.status().uplink.refusal).toBe(said.at(-1)?.reason)
    await pass(120_000, agent, hub)
    expect(agent.status().uplink).toMatchObject({ phase: 'live', refusal: undefined })
  })

  it('works by the plan of the hub at once, and by the kept one after a restart without a hub', async () => {
    const hub = aHub()
    hub.plan = { version: 'p1', intervalMs: 10_000, timeoutMs: 5_000, operatorScanIntervalMs: 60_000, sources: [] }
    const agent = await anAgent(hub)
    await pass(31_000, agent, hub)
    expect(agent.status()).toMatchObject({ plan: 'p1', collection: { rounds: 4 } })
    expect(hub.streams).toBe(1)
    await stopped(agent)
    hub.up = false
    const again = await anAgent(hub)
    await pass(21_000, again, hub)
    expect(again.status()).toMatchObject({ plan: 'p1', collection: { rounds: 3 } })
  })

  it('speaks the protocol of the original to a hub of the original, and keeps batches until their ack', async () => {
    const hub = aHub({ speaks: 'original' })
    const agent = await anAgent(hub)
    await pass(4_000, agent, hub)
    expect(hub.originalIds).toEqual([])
    await pass(61_000, agent, hub)
    expect(hub.originalIds.map((id) => id.slice(id.lastIndexOf('-') + 1))).toEqual(['1', '2', '3'])
    expect(agent.status()).toMatchObject({ uplink: { protocol: 'original' }, buffer: { batches: 0 } })
  })

  it('makes a round that fails a batch that says so', async () => {
    const hub = aHub()
    const kube = () => ({ ...aliveClient(), ping: () => Promise.reject(new Error('no route to the API')) })
    const agent = await anAgent(hub, { kube })
    await pass(1_000, agent, hub)
    expect(hub.arrivals.get(1)?.batch.failure?.message).toMatch(/no route to the API/)
    expect(agent.status().collection.failedRounds).toBe(1)
  })

  it.each([
    ['between two rounds', 5_000],
    ['at the end of a round', 30_100],
  ])('says within 15 s that a cluster hangs, once, and keeps its interval: %s', async (_, hangsAfterMs) => {
    const hub = aHub()
    let hangs = false
    const silence = async (signal?: AbortSignal) => {
      await time.sleep(10_000, signal)
      throw new KubeError('timeout', 'nothing came for 10 s')
    }
    const kube = () => ({
      ...aliveClient(),
      ping: (signal?: AbortSignal) => (hangs ? silence(signal) : Promise.resolve()),
    })
    const agent = await anAgent(hub, { kube })
    await pass(hangsAfterMs, agent, hub)
    hangs = true
    await pass(15_000, agent, hub)
    const failures = () =>
      [...hub.arrivals.values()].flatMap(({ batch: { failure, collectedAt } }) =>
        failure ? [[failure.message, failure.code, collectedAt - START] as const] : [],
      )
    expect(failures()).toMatchObject([
      ['connection test failed: nothing came for 10 s', 'kube_timeout', expect.any(Number)],
    ])
    hangs = false
    const answersAt = time.now() - START
    await pass(60_000, agent, hub)
    expect(failures()).toHaveLength(1)
    const times = [...hub.arrivals.values()]
      .filter(({ batch }) => !batch.failure)
      .map(({ batch }) => batch.collectedAt - START)
    const sooner = times.filter((at) => at % 30_000 !== 0)
    expect(sooner.length).toBeLessThanOrEqual(1)
    expect(Math.min(...times.filter((at) => at > answersAt)) - answersAt).toBeLessThanOrEqual(15_000)
    expect(times.length).toBeGreaterThan(2)
  })

  it('keeps going at its interval while the clock of the wall jumps', async () => {
    const hub = aHub()
    const agent = await anAgent(hub)
    await pass(40_000, agent, hub)
    time.jump(-7 * 24 * HOUR)
    await pass(60_000, agent, hub)
    time.jump(400 * 24 * HOUR)
    await pass(60_000, agent, hub)
    expect(agent.status().collection.rounds).toBe(6)
    expect(hub.received).toEqual([[1, 6]])
    expect(hub.losses.size).toBe(0)
  })
})
