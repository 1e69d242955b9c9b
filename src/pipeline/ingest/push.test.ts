import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openEvents } from '#events'
import { samplesOf } from '#history'
import type { Batch, Change, Loss, NodeSnapshot, Part } from '#model'
import {
  AGENTS_RETURN_MS,
  awaitedUntil,
  HUB_RESTARTED,
  HUB_STARTED,
  HUB_STOPPED,
  StoreUnavailableError,
  systemClock,
} from '#model'
import { type LogDamage, type LogOptions, Metrics, openLog } from '#runtime'
import { EmbeddedStateStore } from '#state'
import { batchFromOriginal, encodeRequest, originalFromBatch, readOriginal } from '#wire'
import { aBatch, aNode, anAgent, complete, east, facts, T0, west } from '../state/test/fleet-words.ts'
import { eventually } from '../state/test/redis-server.ts'
import { BaseMismatchError, ClusterNotConnectedError, InvalidBatchError } from './errors.ts'
import { Ingester, type IngesterOptions } from './ingester.ts'
import { decodeLogEntry } from './log-record.ts'
import { FileHistory } from './test/file-history.ts'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'push-'))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const EVERY = 30_000
/** long after every batch of these tests */
const NOW = T0 + 10_000 * EVERY

/** A hub's write path over real files, with a history. */
async function aHub(
  options: Partial<IngesterOptions> & { readonly log?: never; logOptions?: Partial<LogOptions> } = {},
) {
  const { logOptions, ...rest } = options
  const log = await openLog({ directory: join(directory, 'log'), ...logOptions })
  const state = await EmbeddedStateStore.open({ directory: join(directory, 'state'), writeBehindMs: 10 })
  const history = await FileHistory.open(join(directory, 'history'))
  const events = openEvents({ kind: 'in-process' })
  const clock = { ...systemClock, now: () => NOW }
  const ingester = await Ingester.open({ log, state, events, history, random: () => 0.01, clock, ...rest })
  await ingester.connect(west, facts({ mode: 'push', intervalMs: EVERY }))
  return {
    log,
    state,
    history,
    events,
    ingester,
    nodes: () => [...(state.cluster('west')?.parts.node?.items.keys() ?? [])],
    /** of history, as rounds: T0 is 0 */
    rounds: () => history.timesOf('west').map((at) => (at - T0) / EVERY),
    settled: async () => {
      await ingester.flushed()
      await ingester.flushed('history')
    },
    async [Symbol.asyncDispose]() {
      await ingester[Symbol.asyncDispose]()
      await events[Symbol.asyncDispose]()
      await history[Symbol.asyncDispose]()
      await state[Symbol.asyncDispose]()
      await log[Symbol.asyncDispose]()
    },
  }
}

/** A batch of the agent whose buffer is `a`; collected in the round of its sequence. */
const pushed = (sequence: number, nodes: NodeSnapshot[] = [aNode(`n${sequence}`)], more: Partial<Batch> = {}) =>
  aBatch(west, sequence, [complete('node', ...nodes)], { origin: 'a', source: 'push', ...more })

const changed = (put: NodeSnapshot[], removed: string[] = []): Part<'node'> => ({
  type: 'node',
  collector: 'nodes',
  durationMs: 1,
  outcome: 'changed',
  put,
  removed,
})
const difference = (sequence: number, base: number, part: Part<'node'>, more: Partial<Batch> = {}) =>
  aBatch(west, sequence, [part], { origin: 'a', source: 'push', base, ...more })

const aLoss = (sequence: number, lost: Loss['lost'], more: Partial<Loss> = {}): Loss => ({
  origin: 'a',
  sequence,
  lost,
  from: T0,
  to: T0 + EVERY,
  cause: 'thinned',
  count: 2,
  keptEveryMs: 300_000,
  ...more,
})

describe('batches out of a buffer', () => {
  it('fill history in any order, each once, and leave state at the newest', async () => {
    await using hub = await aHub()
    await hub.ingester.accept({ batch: pushed(9) })
    for (const sequence of [3, 5, 3, 4, 9, 5])
      await hub.ingester.accept({ batch: pushed(sequence, undefined, { backfill: true }) })
    await hub.ingester.accept({ batch: pushed(10) })
    await hub.settled()
    expect(hub.nodes()).toEqual(['n10'])
    expect(hub.rounds()).toEqual([9, 3, 5, 4, 10])
    expect(hub.ingester.received(west, 'a')).toEqual([
      [3, 5],
      [9, 10],
    ])
  })

  it('are known as received after a restart, also where the ledger was lost or damaged', async () => {
    {
      await using hub = await aHub()
      for (const sequence of [2, 7, 3]) await hub.ingester.accept({ batch: pushed(sequence) })
      await hub.settled()
    }
    const check = async () => {
      await using hub = await aHub()
      expect(hub.ingester.received(west, 'a')).toEqual([
        [2, 3],
        [7, 7],
      ])
      for (const sequence of [2, 7, 3])
        expect((await hub.ingester.accept({ batch: pushed(sequence) })).duplicate).toBe(true)
      await hub.settled()
      expect(hub.rounds()).toEqual([2, 7, 3])
    }
    await check()
    const [name] = (await readdir(join(directory, 'log'))).filter((file) => file.startsWith('ledger.k'))
    await writeFile(join(directory, 'log', name as string), 'damaged')
    await check()
    await rm(join(directory, 'log', name as string))
    await check()
  })

  it('are known as received when the log that told of them is gone, which waits until the ledger is on disk', async () => {
    const logOptions = { segmentBytes: 2000, retainBytes: 0 }
    let now = NOW
    const clock = { ...systemClock, now: () => now }
    {
      await using hub = await aHub({ logOptions, clock })
      for (let sequence = 1; sequence <= 20; sequence++) {
        await hub.ingester.accept({ batch: pushed(sequence * 2) })
        now += 1_000 // long enough for the checkpoints of the stores
      }
      await hub.settled()
      await eventually('state is on disk', () => hub.state.position() >= hub.log.lastIndex())
      expect(hub.log.firstIndex()).toBe(0)
    }
    await using hub = await aHub({ logOptions })
    expect(hub.log.firstIndex()).toBeGreaterThan(10)
    expect(hub.ingester.received(west, 'a')).toHaveLength(20)
    expect((await hub.ingester.accept({ batch: pushed(2) })).duplicate).toBe(true)
    expect((await hub.ingester.accept({ batch: pushed(3) })).duplicate).toBe(false)
  })

  it('of two agents are kept apart by who numbered them', async () => {
    await using hub = await aHub()
    await hub.ingester.accept({ batch: pushed(5) })
    expect(
      (await hub.ingester.accept({ batch: pushed(5, [aNode('b5')], { origin: 'b', collectedAt: T0 + 6 * EVERY }) }))
        .duplicate,
    ).toBe(false)
    await hub.settled()
    expect(hub.nodes()).toEqual(['b5'])
    expect(hub.rounds()).toEqual([5, 6])
  })

  it('are not in history again where the hub had pulled', async () => {
    await using hub = await aHub()
    await hub.ingester.accept({ batch: pushed(1) })
    // The agent is away: the hub pulls for itself.
    for (let round = 3; round <= 6; round++) {
      const sequence = hub.ingester.nextSequence(west)
      const pulled = aBatch(west, sequence, [complete('node', aNode(`p${round}`))], {
        collectedAt: T0 + round * EVERY + 900,
      })
      await hub.ingester.accept({ batch: pulled })
    }
    await hub.settled()
    expect(hub.nodes()).toEqual(['p6'])
    for (let sequence = 2; sequence <= 7; sequence++) await hub.ingester.accept({ batch: pushed(sequence) })
    await hub.settled()
    expect(hub.nodes()).toEqual(['n7'])
    expect(hub.rounds()).toEqual([1, 3.03, 4.03, 5.03, 6.03, 2, 7])
    expect(hub.ingester.received(west, 'a')).toEqual([[1, 7]])
  })

  it('from a clock ahead of ours are taken as collected when they came', async () => {
    await using hub = await aHub()
    await hub.ingester.accept({ batch: pushed(1, undefined, { collectedAt: NOW + 86_400_000 }) })
    await hub.settled()
    expect(hub.history.timesOf('west')).toEqual([NOW])
    expect(hub.state.cluster('west')?.status.checkedAt).toBe(NOW)
  })

  it('waits for the first of the same number before a repeat is acknowledged', async () => {
    await using hub = await aHub()
    const answers = await Promise.all(Array.from({ length: 10 }, () => hub.ingester.accept({ batch: pushed(4) })))
    expect(answers.filter(({ duplicate }) => !duplicate)).toHaveLength(1)
    await hub.settled()
    expect(hub.rounds()).toEqual([4])
  })
})

describe('differences', () => {
  it('change what they name and leave the rest as it is, and as fresh as they are', async () => {
    await using hub = await aHub()
    const seen: Change[] = []
    await hub.ingester.accept({ batch: pushed(1, [aNode('same'), aNode('moves'), aNode('goes')]) })
    await hub.settled()
    hub.events.subscribe((events) => seen.push(...events.map(({ change }) => change)))
    const before = hub.state.cluster('west')?.parts.node?.items.get('same')
    await hub.ingester.accept({ batch: difference(2, 1, changed([aNode('moves', { ready: 'notReady' })], ['goes'])) })
    await hub.settled()
    const part = hub.state.cluster('west')?.parts.node
    expect(hub.nodes()).toEqual(['same', 'moves'])
    expect(part?.items.get('same')).toBe(before)
    expect(part?.freshness?.observedAt).toBe(T0 + 2 * EVERY)
    const snapshots = seen.flatMap((change) => (change.kind === 'snapshot' ? [`${change.op} ${change.name}`] : []))
    expect(snapshots).toEqual(['put moves', 'remove goes'])
  })

  it('bring history the samples that came with them', async () => {
    await using hub = await aHub()
    await hub.ingester.accept({ batch: pushed(1) })
    const batch = difference(2, 1, changed([]))
    const node = new Map([['n1', aNode('n1')]])
    await hub.ingester.accept({ batch, samples: samplesOf(batch, { node }) })
    await hub.settled()
    expect(hub.rounds()).toEqual([1, 2])
  })

  it('are refused where they are none to the newest batch here, and keep nothing', async () => {
    await using hub = await aHub()
    await expect(hub.ingester.accept({ batch: difference(2, 1, changed([])) })).rejects.toBeInstanceOf(
      BaseMismatchError,
    )
    await hub.ingester.accept({ batch: pushed(3) })
    await hub.ingester.accept({ batch: pushed(2, undefined, { backfill: true }) })
    for (const [sequence, base, more] of [
      [4, 2, {}],
      [4, 3, { origin: 'b' }],
    ] as const) {
      const refused = hub.ingester.accept({ batch: difference(sequence, base, changed([]), more) })
      await expect(refused).rejects.toBeInstanceOf(BaseMismatchError)
    }
    expect((await hub.ingester.accept({ batch: difference(4, 3, changed([aNode('n4')])) })).duplicate).toBe(false)
    // A round of the hub itself stands between them.
    await hub.ingester.accept({
      batch: aBatch(west, 1, [complete('node', aNode('pulled'))], { collectedAt: T0 + 4.5 * EVERY }),
    })
    await expect(hub.ingester.accept({ batch: difference(5, 4, changed([])) })).rejects.toBeInstanceOf(
      BaseMismatchError,
    )
    await hub.ingester.accept({ batch: pushed(5) })
    await hub.settled()
    expect(hub.nodes()).toEqual(['n5'])
  })

  it('go on over a restart', async () => {
    {
      await using hub = await aHub()
      await hub.ingester.accept({ batch: pushed(1, [aNode('n'), aNode('m')]) })
    }
    await using hub = await aHub()
    await hub.ingester.accept({ batch: difference(2, 1, changed([], ['m'])) })
    await hub.settled()
    expect(hub.nodes()).toEqual(['n'])
  })

  it('are asked for whole again when state lost what they build on', async () => {
    {
      await using hub = await aHub()
      await hub.ingester.accept({ batch: pushed(1) })
      await hub.settled()
    }
    await rm(join(directory, 'state'), { recursive: true })
    await rm(join(directory, 'log'), { recursive: true })
    {
      await using hub = await aHub()
      await expect(hub.ingester.accept({ batch: difference(2, 1, changed([])) })).rejects.toBeInstanceOf(
        BaseMismatchError,
      )
      await hub.ingester.accept({ batch: pushed(2) })
      await hub.settled()
    }
    await rm(join(directory, 'state'), { recursive: true })
    await using hub = await aHub({ logOptions: {} })
    await hub.settled()
    await hub.ingester.accept({ batch: difference(3, 2, changed([aNode('n3')])) })
    await hub.settled()
    expect(hub.nodes()).toEqual(['n2', 'n3']) // the log still held the base
  })

  it('that state cannot use are left out, and the next one is asked for whole', async () => {
    await using hub = await aHub()
    await hub.ingester.accept({ batch: pushed(1) })
    await hub.settled()
    // State misses a batch, as where its record was damaged in the log.
    const apply = hub.state.apply.bind(hub.state)
    hub.state.apply = (records, position, signal) =>
      apply(
        records.filter((record) => record.kind !== 'batch' || record.batch.sequence !== 2),
        position,
        signal,
      )
    await hub.ingester.accept({ batch: difference(2, 1, changed([aNode('n2')])) })
    await hub.settled()
    hub.state.apply = apply
    expect(hub.nodes()).toEqual(['n1'])
    await expect(hub.ingester.accept({ batch: difference(3, 2, changed([])) })).rejects.toBeInstanceOf(
      BaseMismatchError,
    )
    await hub.ingester.accept({ batch: pushed(3) })
    await hub.ingester.accept({ batch: difference(4, 3, changed([aNode('n4')])) })
    await hub.settled()
    expect(hub.nodes()).toEqual(['n3', 'n4'])
  })

  it('that break the contract are refused with their place', async () => {
    await using hub = await aHub()
    const bad: [Batch, string][] = [
      [pushed(1, undefined, { origin: '' }), 'origin'],
      [pushed(1, undefined, { origin: 'x'.repeat(2000) }), 'origin'],
      [difference(2, 0, changed([])), 'base'],
      [difference(2, 2, changed([])), 'base'],
      [aBatch(west, 2, [changed([])]), 'parts[0]'],
      [difference(2, 1, changed([{ name: 'n' } as never])), 'parts[0].put[0]'],
      [difference(2, 1, changed([aNode('')])), 'parts[0].put[0].name'],
      [difference(2, 1, changed([], [''])), 'parts[0].removed'],
      [pushed(1, undefined, { backfill: 1 as never }), 'backfill'],
    ]
    for (const [batch, where] of bad) {
      const error = await hub.ingester.accept({ batch }).catch((reason: unknown) => reason)
      expect(error, where).toBeInstanceOf(InvalidBatchError)
      expect((error as InvalidBatchError).where).toBe(where)
    }
    expect(hub.log.stats().appendedRecords).toBe(1)
  })
})

describe('declared losses', () => {
  it('count as received, have a name in history and among the events, and are taken once', async () => {
    await using hub = await aHub()
    await hub.ingester.accept({ batch: pushed(6) })
    const loss = aLoss(5, [[2, 3]])
    expect((await hub.ingester.lost(west, loss)).duplicate).toBe(false)
    expect((await hub.ingester.lost(west, loss)).duplicate).toBe(true)
    await hub.settled()
    expect(hub.ingester.received(west, 'a')).toEqual([
      [2, 3],
      [5, 6],
    ])
    expect(hub.history.lossesOf('west')).toEqual([loss])
    const [event] = hub.state.cluster('west')?.events ?? []
    expect(event).toMatchObject({ type: 'collection.lost', data: { from: T0, cause: 'thinned', count: 2 } })
    expect(hub.nodes()).toEqual(['n6'])
  })

  it('leave out what came after all', async () => {
    await using hub = await aHub()
    await hub.ingester.accept({ batch: pushed(2) })
    await hub.ingester.lost(west, aLoss(9, [[1, 3]], { count: 3 }))
    await hub.ingester.accept({ batch: pushed(10) })
    await hub.ingester.lost(west, aLoss(11, [[10, 10]], { count: 1 }))
    await hub.settled()
    expect(hub.history.lossesOf('west').map(({ lost, count }) => [lost, count])).toEqual([
      [
        [
          [1, 1],
          [3, 3],
        ],
        2,
      ],
    ])
    expect(hub.ingester.received(west, 'a')).toEqual([
      [1, 3],
      [9, 11],
    ])
  })

  it('that make no sense are refused', async () => {
    await using hub = await aHub()
    for (const more of [
      { lost: [[3, 2]] },
      { lost: [[0, 2]] },
      { origin: '' },
      { cause: 'forgotten' },
      { to: T0 - 1 },
      { count: Number.NaN },
    ]) {
      const refused = hub.ingester.lost(west, aLoss(5, [[1, 2]], more as Partial<Loss>))
      await expect(refused, JSON.stringify(more)).rejects.toBeInstanceOf(InvalidBatchError)
    }
    await expect(hub.ingester.lost(east, aLoss(5, [[1, 2]]))).rejects.toBeInstanceOf(ClusterNotConnectedError)
  })
})

describe('facts of an agent', () => {
  it('are in state, tell when it comes and goes, and touch no snapshot', async () => {
    await using hub = await aHub()
    await hub.ingester.accept({ batch: pushed(1) })
    await hub.ingester.agent(west, anAgent())
    await hub.settled()
    const before = hub.state.cluster('west')
    const records = hub.log.stats().appendedRecords
    await hub.ingester.agent(west, anAgent())
    expect(hub.log.stats().appendedRecords).toBe(records)
    await hub.ingester.agent(west, anAgent({ heartbeatAt: T0 + 5 }))
    await hub.ingester.agent(west, anAgent({ connected: false, since: T0 + 9, reason: 'the stream ended' }))
    await hub.settled()
    const after = hub.state.cluster('west')
    expect(after?.agent).toMatchObject({ connected: false, reason: 'the stream ended' })
    expect(after?.parts).toBe(before?.parts)
    expect(after?.status).toBe(before?.status)
    expect(after?.heartbeats).toBe(before?.heartbeats)
    expect(after?.events.map(({ type }) => type).filter((type) => type.startsWith('agent'))).toEqual([
      'agent.disconnected',
      'agent.connected',
    ])
  })

  it('are there after a restart', async () => {
    const gone = anAgent({ connected: false, reason: 'the connection ended' })
    {
      await using hub = await aHub()
      await hub.ingester.agent(west, gone)
    }
    await using hub = await aHub()
    await hub.settled()
    expect(hub.state.cluster('west')?.agent).toEqual(gone)
    const records = hub.log.stats().appendedRecords
    await hub.ingester.agent(west, gone)
    expect(hub.log.stats().appendedRecords).toBe(records)
  })

  it('say at once that an agent is waited for by a hub that was killed and started anew, and later that it has not come back', async () => {
    {
      await using hub = await aHub()
      await hub.ingester.connect(east, facts())
      for (const cluster of [west, east]) await hub.ingester.agent(cluster, anAgent())
    }
    let pass = () => {}
    const patience = new Promise<void>((resolve) => (pass = resolve))
    const clock = { now: () => NOW, sleep: (ms: number) => (ms === AGENTS_RETURN_MS ? patience : Promise.resolve()) }
    await using hub = await aHub({ clock })
    await hub.ingester.agent(east, anAgent({ since: T0 + 1 }))
    const agentOf = (name: string) => hub.state.cluster(name)?.agent
    await eventually('it is waited for', () => agentOf('west')?.reason === HUB_STARTED)
    expect(agentOf('west')).toMatchObject({ connected: false, since: NOW })
    expect(awaitedUntil(agentOf('west')!)).toBe(NOW + AGENTS_RETURN_MS)
    const told = () => hub.state.cluster('west')?.events.map(({ type }) => type)
    expect(told(), 'the hub was away, and not the agent').not.toContain('agent.disconnected')
    pass()
    await eventually('it is given up', () => agentOf('west')?.reason === HUB_RESTARTED)
    expect(agentOf('west')).toMatchObject({ connected: false, since: NOW })
    expect(told()).toContain('agent.disconnected')
    expect(hub.state.cluster('east')?.agent?.connected).toBe(true)
  })

  it('wait for it for as long as no agent can reach the hub, and from then on', async () => {
    {
      await using hub = await aHub()
      await hub.ingester.agent(west, anAgent())
    }
    let now = NOW
    let pass = () => {}
    const sleep = (ms: number, signal?: AbortSignal) =>
      ms === AGENTS_RETURN_MS
        ? Promise.race([ended(signal), new Promise<void>((resolve) => (pass = resolve))])
        : Promise.resolve()
    await using hub = await aHub({ clock: { now: () => now, sleep } })
    const agentOf = () => hub.state.cluster('west')?.agent
    await eventually('it is waited for', () => agentOf()?.reason === HUB_STARTED)
    for (let kept = 0; kept < 5; kept++) {
      now += 30_000
      await hub.ingester.agentsKeptOut()
      await eventually('it has time from then on', () => agentOf()?.since === now)
      expect(agentOf()).toMatchObject({ connected: false, reason: HUB_STARTED })
      await hub.ingester.agentsKeptOut() // said too often
      pass()
    }
    now += AGENTS_RETURN_MS
    pass()
    await eventually('it is given up', () => agentOf()?.reason === HUB_RESTARTED)
    expect(agentOf()?.since).toBe(now - AGENTS_RETURN_MS)
  })

  it('say the same of one whose stream the hub ended as it stopped, once, and nothing of one that was away before', async () => {
    const restart = async (now: number): Promise<void> => {
      const clock = { now: () => now, sleep: () => Promise.resolve() }
      await using hub = await aHub({ clock })
      await eventually('it is given up', () => hub.state.cluster('west')?.agent?.reason === HUB_RESTARTED)
      expect(hub.state.cluster('west')?.agent?.since).toBe(NOW)
      expect(hub.state.cluster('east')?.agent?.reason).toBe('the connection ended')
    }
    {
      await using hub = await aHub()
      await hub.ingester.connect(east, facts())
      for (const cluster of [west, east]) await hub.ingester.agent(cluster, anAgent())
      await hub.ingester.agent(west, anAgent({ connected: false, reason: HUB_STOPPED }))
      await hub.ingester.agent(east, anAgent({ connected: false, reason: 'the connection ended' }))
      await hub.settled()
      const ends = (name: string) =>
        hub.state.cluster(name)?.events.filter(({ type }) => type === 'agent.disconnected').length
      expect([ends('west'), ends('east')], 'that the hub stopped is no absence of an agent').toEqual([0, 1])
    }
    await restart(NOW)
    await restart(NOW + 1)
  })

  it('wait for it again where the hub ended while it waited', async () => {
    {
      await using hub = await aHub()
      await hub.ingester.agent(west, anAgent())
    }
    const begin = async (now: number): Promise<void> => {
      const sleep = (ms: number, signal?: AbortSignal) => (ms === AGENTS_RETURN_MS ? ended(signal) : Promise.resolve())
      const clock = { now: () => now, sleep }
      await using hub = await aHub({ clock })
      await eventually('it is waited for', () => hub.state.cluster('west')?.agent?.since === now)
      expect(hub.state.cluster('west')?.agent).toMatchObject({ connected: false, reason: HUB_STARTED })
    }
    await begin(NOW)
    await begin(NOW + 1)
  })
})

const ended = (signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve) => signal?.addEventListener('abort', () => resolve()))

describe('a batch of the original', () => {
  it('that is in the log as it was told is in state and in history after a restart', async () => {
    const whole = aBatch(west, 1, [complete('node', aNode('n1'), aNode('n2')), complete('namespace')])
    const told = encodeRequest({
      payload: { case: 'metrics', value: originalFromBatch({ ...whole, deploymentCount: 7 }) },
    })
    const read = readOriginal(told)
    if (!read) throw new Error('it is one')
    const head = { cluster: west, origin: 'original', sequence: 1, collectedAt: NOW - 5 }
    const batch = batchFromOriginal(read.metrics, head, undefined, read.nodes)
    {
      await using hub = await aHub()
      hub.history.trouble = () => new StoreUnavailableError('history', 'it is down')
      hub.state.apply = () => Promise.reject(new StoreUnavailableError('state', 'it is down'))
      await hub.ingester.accept({ batch, message: told })
    }
    await using hub = await aHub()
    await hub.settled()
    const { parts, deploymentCount } = hub.state.cluster('west') ?? {}
    expect([...(parts?.node?.items.values() ?? [])]).toEqual(read.nodes)
    expect(deploymentCount).toBe(7)
    expect(hub.history.timesOf('west')).toEqual([NOW - 5])
  })
})

describe("a damaged place of the hub's log", () => {
  it('costs the records it touches, in state and in history, and nothing else', async () => {
    const count = 12
    {
      await using hub = await aHub()
      hub.history.trouble = () => new StoreUnavailableError('history', 'it is down')
      hub.state.apply = () => Promise.reject(new StoreUnavailableError('state', 'it is down'))
      for (let sequence = 1; sequence <= count; sequence++) await hub.ingester.accept({ batch: pushed(sequence) })
    }
    const path = join(directory, 'log', '0000000000000000.segment')
    const good = await readFile(path)
    const marker = good.subarray(36, 40)
    expect(good.toString('latin1').split(marker.toString('latin1'))).toHaveLength(count + 2)
    for (let i = 0; i < 20; i++) {
      const bytes = Buffer.from(good)
      // Behind the first record, which declares the cluster.
      const at = 1000 + Math.floor(Math.random() * (bytes.length - 1000))
      if (i % 2 === 0) bytes[at] = (bytes[at] as number) ^ (1 << (i % 8))
      else bytes.fill(0, at, Math.min(at + 4096, bytes.length))
      await writeFile(path, bytes)
      for (const store of ['state', 'history']) await rm(join(directory, store), { recursive: true, force: true })
      const damage: LogDamage[] = []
      await using hub = await aHub({ logOptions: { onDamage: (place) => damage.push(place) } })
      await hub.settled()
      const served: number[] = []
      for await (const { payload } of hub.log.read(0)) {
        const record = decodeLogEntry(payload)?.record
        if (record?.kind === 'batch') served.push(record.batch.sequence)
      }
      expect(damage.length, `damage at ${at}`).toBeGreaterThan(0)
      expect(served.length).toBeLessThan(count)
      expect(served.length).toBeGreaterThanOrEqual(count - 5)
      expect(hub.rounds()).toEqual(served)
      expect(hub.nodes()).toEqual([`n${served.at(-1)}`])
    }
  })
})

describe('a history that comes back empty', () => {
  it.each(['found with the next record', 'found by a failing append'])(
    'has everything that the log still has, each once: %s',
    async (how) => {
      await using hub = await aHub()
      for (const sequence of [1, 2, 3]) await hub.ingester.accept({ batch: pushed(sequence) })
      await hub.settled()
      hub.history.forget()
      if (how.startsWith('found by')) {
        let refusals = 1
        hub.history.trouble = () =>
          refusals-- > 0 ? new StoreUnavailableError('history', 'it came back empty') : undefined
      }
      for (const sequence of [4, 5]) await hub.ingester.accept({ batch: pushed(sequence) })
      await eventually('it has all of them', () => hub.rounds().length >= 5)
      expect(hub.rounds()).toEqual([1, 2, 3, 4, 5])
      expect(hub.nodes()).toEqual(['n5'])
    },
  )
})

describe('a history that is down', () => {
  it('delays neither acks nor state, is measured, and gets everything in order when it is back', async () => {
    const metrics = new Metrics({}, { processMetrics: false })
    let now = NOW
    const clock = { ...systemClock, now: () => now }
    await using hub = await aHub({ metrics, clock, maxPendingBytes: 3000 })
    hub.history.trouble = () => new StoreUnavailableError('history', 'it is down')
    for (let sequence = 1; sequence <= 40; sequence++) await hub.ingester.accept({ batch: pushed(sequence) })
    await hub.ingester.flushed()
    expect(hub.nodes()).toEqual(['n40'])
    await eventually('it is safe in state', () => hub.ingester.backlog() === 0)
    now += 7_000
    const text = await metrics.registry.metrics()
    expect(text).toMatch(/backlog_records\{consumer="history"\} 4[01]\n/)
    expect(text).toContain('clusterpulse_ingest_lag_seconds{consumer="history"} 7')
    expect(text).toContain('clusterpulse_ingest_lag_seconds{consumer="state"} 0')
    hub.history.trouble = undefined
    await hub.ingester.flushed('history')
    expect(hub.rounds()).toEqual(Array.from({ length: 40 }, (_, i) => i + 1))
    expect(await metrics.registry.metrics()).toContain('clusterpulse_ingest_backlog_records{consumer="history"} 0')
  })

  it('keeps the log from deleting what it has not, until the log is full and nothing more is taken', async () => {
    await using hub = await aHub({ logOptions: { maxBytes: 100_000, retainBytes: 0 } })
    hub.history.trouble = () => new StoreUnavailableError('history', 'it is down')
    let taken = 0
    const fill = async () => {
      for (;;) {
        await hub.ingester.accept({
          batch: pushed(taken + 1, [aNode('n', { annotations: { filler: 'x'.repeat(2000) } })]),
        })
        taken++
      }
    }
    await expect(fill()).rejects.toBeInstanceOf(StoreUnavailableError)
    expect(taken).toBeGreaterThan(10)
    await hub.ingester.flushed()
    hub.history.trouble = undefined
    await hub.ingester.flushed('history')
    expect(hub.rounds()).toEqual(Array.from({ length: taken }, (_, i) => i + 1))
    await eventually('it takes again', () =>
      hub.ingester.accept({ batch: pushed(taken + 1) }).then(
        () => true,
        () => false,
      ),
    )
  })

  it('loses nothing over a restart', async () => {
    {
      await using hub = await aHub()
      hub.history.trouble = () => new StoreUnavailableError('history', 'it is down')
      for (let sequence = 1; sequence <= 5; sequence++) await hub.ingester.accept({ batch: pushed(sequence) })
      await hub.ingester.flushed()
    }
    await using hub = await aHub()
    await hub.settled()
    expect(hub.rounds()).toEqual([1, 2, 3, 4, 5])
  })

  it('that never takes a record goes on without that one, and says so', async () => {
    const metrics = new Metrics({}, { processMetrics: false })
    await using hub = await aHub({ metrics })
    const poison = T0 + 3 * EVERY
    hub.history.trouble = (records) =>
      records.some((record) => record.kind === 'samples' && record.samples.at === poison)
        ? new TypeError('it cannot be read')
        : undefined
    await Promise.all([1, 2, 3, 4, 5].map((sequence) => hub.ingester.accept({ batch: pushed(sequence) })))
    await hub.settled()
    expect(hub.rounds()).toEqual([1, 2, 4, 5])
    expect(hub.nodes()).toEqual(['n5'])
    expect(await metrics.registry.metrics()).toContain(
      'clusterpulse_ingest_records_skipped_total{consumer="history"} 1',
    )
  })

  it('that was lost is filled with what the log still holds', async () => {
    {
      await using hub = await aHub()
      for (let sequence = 1; sequence <= 3; sequence++) await hub.ingester.accept({ batch: pushed(sequence) })
      await hub.settled()
    }
    await rm(join(directory, 'history'))
    await using hub = await aHub()
    await hub.settled()
    expect(hub.rounds()).toEqual([1, 2, 3])
  })
})

describe('batches of the past, many at once', () => {
  const past = (...sequences: number[]) =>
    sequences.map((n) => ({ batch: pushed(n, undefined, { backfill: true }), samples: undefined }))

  it('are kept each once, in few syncs, and state stays with what is newer', async () => {
    await using hub = await aHub()
    await hub.ingester.accept({ batch: pushed(99, [aNode('now')], { origin: 'live' }) })
    const syncs = hub.log.stats().syncs
    const accepted = await hub.ingester.acceptPast(past(1, 2, 3, 4, 5, 6, 7, 8))
    expect(accepted.map(({ duplicate }) => duplicate)).not.toContain(true)
    expect(hub.log.stats().syncs - syncs).toBeLessThan(4)
    const again = await hub.ingester.acceptPast(past(7, 8, 9))
    expect(again.map(({ duplicate }) => duplicate)).toEqual([true, true, false])
    await hub.settled()
    expect(hub.rounds()).toEqual([99, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    expect(hub.nodes()).toEqual(['now'])
  })

  it.each([
    ['one that is live', [{ batch: pushed(1), samples: undefined }]],
    ['numbers that fall', past(2, 1)],
    ['a number twice', past(1, 1)],
    ['two origins', [...past(1), { batch: pushed(2, undefined, { backfill: true, origin: 'b' }), samples: undefined }]],
  ])('are refused whole with %s', async (_name, batches) => {
    await using hub = await aHub()
    await expect(hub.ingester.acceptPast(batches)).rejects.toThrow(InvalidBatchError)
    await hub.settled()
    expect(hub.rounds()).toEqual([])
  })
})
