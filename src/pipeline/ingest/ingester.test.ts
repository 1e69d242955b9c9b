import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type EventBus, openEvents } from '#events'
import { type Change, StoreUnavailableError } from '#model'
import { type Log, Metrics, openLog } from '#runtime'
import { EmbeddedStateStore, type StateRecord, type StateStore } from '#state'
import { aBatch, aNode, complete, east, facts, T0, west } from '../state/test/fleet-words.ts'
import { eventually } from '../state/test/redis-server.ts'
import { ClusterNotConnectedError, IngestBusyError, InvalidBatchError } from './errors.ts'
import { Ingester, type IngesterOptions } from './ingester.ts'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'ingest-'))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

interface World extends AsyncDisposable {
  readonly log: Log
  readonly state: StateStore
  readonly events: EventBus
  readonly ingester: Ingester
}

/** A hub's write path over real files. */
async function aWorld(
  options: Partial<IngesterOptions> & {
    wrapState?: (state: StateStore) => StateStore
    openedLog?: () => Promise<Log>
  } = {},
): Promise<World> {
  const {
    wrapState = (state) => state,
    openedLog = () => openLog({ directory: join(directory, 'log') }),
    ...rest
  } = options
  const log = await openedLog()
  const store = await EmbeddedStateStore.open({ directory: join(directory, 'state'), writeBehindMs: 20 })
  const state = wrapState(store)
  const events = openEvents({ kind: 'in-process' })
  const ingester = await Ingester.open({ log, state, events, random: () => 0.01, ...rest })
  return {
    log,
    state,
    events,
    ingester,
    async [Symbol.asyncDispose]() {
      await ingester[Symbol.asyncDispose]()
      await events[Symbol.asyncDispose]()
      await store[Symbol.asyncDispose]()
      await log[Symbol.asyncDispose]()
    },
  }
}

const nodesOf = (state: StateStore, cluster: string) => [...(state.cluster(cluster)?.parts.node?.items.keys() ?? [])]

describe('Ingester', () => {
  it('brings an accepted batch into state, then publishes what changed', async () => {
    await using world = await aWorld()
    const seen: Change[] = []
    world.events.subscribe((events) => seen.push(...events.map(({ change }) => change)))
    await world.ingester.connect(west, facts())
    const accepted = await world.ingester.accept({ batch: aBatch(west, 1, [complete('node', aNode('n1'))]) })
    expect(accepted).toEqual({ sequence: 1, duplicate: false })
    await world.ingester.flushed()
    expect(nodesOf(world.state, 'west')).toEqual(['n1'])
    expect(seen.filter(({ kind }) => kind === 'snapshot')).toMatchObject([{ type: 'node', name: 'n1', op: 'put' }])
  })

  it('acknowledges an old sequence and drops it', async () => {
    await using world = await aWorld()
    await world.ingester.connect(west, facts())
    await world.ingester.accept({ batch: aBatch(west, 5, [complete('node', aNode('new'))]) })
    for (const sequence of [5, 4]) {
      const answer = await world.ingester.accept({ batch: aBatch(west, sequence, [complete('node', aNode('old'))]) })
      expect(answer).toEqual({ sequence, duplicate: true })
    }
    await world.ingester.flushed()
    expect(nodesOf(world.state, 'west')).toEqual(['new'])
    expect(world.log.stats().appendedRecords).toBe(2)
  })

  it('takes the same batch offered many times at once exactly once', async () => {
    await using world = await aWorld()
    await world.ingester.connect(west, facts())
    const batch = aBatch(west, 1, [complete('node', aNode('n1'))])
    const answers = await Promise.all(Array.from({ length: 20 }, () => world.ingester.accept({ batch })))
    expect(answers.filter(({ duplicate }) => !duplicate)).toHaveLength(1)
    expect(world.log.stats().appendedRecords).toBe(2)
  })

  it('refuses batches of clusters nobody declared, and of removed ones until they are declared again', async () => {
    await using world = await aWorld()
    const batch = aBatch(west, 1, [complete('node', aNode('n1'))])
    await expect(world.ingester.accept({ batch })).rejects.toBeInstanceOf(ClusterNotConnectedError)
    await world.ingester.connect(west, facts())
    await world.ingester.accept({ batch })
    await world.ingester.remove(west)
    await expect(world.ingester.accept({ batch: { ...batch, sequence: 2 } })).rejects.toBeInstanceOf(
      ClusterNotConnectedError,
    )
    await world.ingester.flushed()
    expect(world.state.cluster('west')).toBeUndefined()
    await world.ingester.connect(west, facts())
    const sequence = world.ingester.nextSequence(west)
    expect(sequence).toBeGreaterThan(1)
    expect((await world.ingester.accept({ batch: { ...batch, sequence } })).duplicate).toBe(false)
    await world.ingester.flushed()
    expect(nodesOf(world.state, 'west')).toEqual(['n1'])
  })

  it('writes nothing for a connection that is declared as it was', async () => {
    await using world = await aWorld()
    for (let i = 0; i < 5; i++) await world.ingester.connect(west, facts())
    expect(world.log.stats().appendedRecords).toBe(1)
    await world.ingester.connect(west, facts({ displayName: 'Far west' }))
    await world.ingester.flushed()
    expect(world.state.cluster('west')?.connection?.displayName).toBe('Far west')
  })

  it('gives out rising sequences, also after a restart', async () => {
    {
      await using world = await aWorld()
      await world.ingester.connect(west, facts())
      expect([1, 2, 3].map(() => world.ingester.nextSequence(west))).toEqual([1, 2, 3])
      await world.ingester.accept({ batch: aBatch(west, 7, []) })
    }
    await using world = await aWorld()
    expect(world.ingester.nextSequence(west)).toBe(8)
    expect(world.ingester.nextSequence(east)).toBe(1)
  })

  it('refuses batches that break the contract, and says where', async () => {
    await using world = await aWorld()
    await world.ingester.connect(west, facts())
    const bad: [unknown, string][] = [
      [null, 'it'],
      [aBatch('No Name' as typeof west, 1, []), 'cluster'],
      [aBatch(west, 0, []), 'sequence'],
      [aBatch(west, 1.5, []), 'sequence'],
      [aBatch(west, 1, [], { collectedAt: Number.NaN }), 'collectedAt'],
      [aBatch(west, 1, [], { collectedAt: 9e15 }), 'collectedAt'],
      [
        aBatch(west, 1, [complete('node', aNode('n', { requested: { cpuCores: Infinity, memoryBytes: 0 } }))]),
        'parts[0].items[0]',
      ],
      [aBatch(west, 1, [complete('node', { name: 'n' } as never)]), 'parts[0].items[0]'],
      [aBatch(west, 1, [complete('node', aNode('n', { labels: { a: 1 } as never }))]), 'parts[0].items[0]'],
      [aBatch(west, 1, [complete('node', aNode('n', { labels: { 'a\nb': 1 } as never }))]), 'parts[0].items[0]'],
      [aBatch(west, 1, [complete('node', aNode('n', { annotations: ['x'] as never }))]), 'parts[0].items[0]'],
      [aBatch(west, 1, [complete('node', aNode(''))]), 'parts[0].items[0].name'],
      [aBatch(west, 1, [complete('constructor' as never)]), 'parts[0]'],
      [aBatch(west, 1, [complete('node'), complete('node')]), 'parts[1]'],
    ]
    for (const [batch, where] of bad) {
      const error = await world.ingester.accept({ batch: batch as never }).catch((reason: unknown) => reason)
      expect(error).toBeInstanceOf(InvalidBatchError)
      expect((error as InvalidBatchError).where).toBe(where)
    }
    expect(world.log.stats().appendedRecords).toBe(1)
  })

  it('takes what says nothing of claims, as whoever is not the agent of a member, and refuses claims that are no texts', async () => {
    await using world = await aWorld()
    await world.ingester.connect(west, facts())
    const said = {
      ...{ name: 'cluster', distribution: 'kubernetes', version: 'v1.33.1', platform: null, apiUrl: '' },
      ...{ channel: null, clusterId: null, image: null, updateVersion: null, versionState: null },
      ...{ versionStartedAt: null, versionCompletedAt: null, consoleUrl: null, conditions: [] },
    }
    const tell = (sequence: number, more: object) =>
      world.ingester.accept({ batch: aBatch(west, sequence, [complete('cluster', { ...said, ...more } as never)]) })
    await tell(1, {})
    await tell(2, { claims: { 'id.k8s.io': 'x' } })
    await expect(tell(3, { claims: { 'id.k8s.io': 1 } })).rejects.toBeInstanceOf(InvalidBatchError)
  })

  it('bounds what waits for one cluster', async () => {
    await using world = await aWorld({ maxWaitingPerCluster: 3 })
    await world.ingester.connect(west, facts())
    const answers = await Promise.allSettled(
      [1, 2, 3, 4].map((n) => world.ingester.accept({ batch: aBatch(west, n, []) })),
    )
    expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled', 'rejected'])
    expect((answers[3] as PromiseRejectedResult).reason).toBeInstanceOf(IngestBusyError)
  })

  it('takes what a connection says however much waits for its cluster, and ends with what was said last', async () => {
    await using world = await aWorld({ maxWaitingPerCluster: 2 })
    const labelled = (team: string) => ({ ...facts(), labels: { team } })
    await world.ingester.connect(west, labelled('a'))
    const batches = [1, 2].map((n) => world.ingester.accept({ batch: aBatch(west, n, []) }))
    // The state, and the log, still say what the last of these says.
    await Promise.all([...batches, ...['b', 'a'].map((team) => world.ingester.connect(west, labelled(team)))])
    await eventually('it is safe in state', () => world.ingester.backlog() === 0)
    expect(world.state.cluster(west)?.connection?.labels).toEqual({ team: 'a' })
    const full = [3, 4].map((n) => world.ingester.accept({ batch: aBatch(west, n, []) }))
    await Promise.all([...full, world.ingester.remove(west)])
    await eventually('it is gone', () => world.state.cluster(west) === undefined)
  })

  it('says in numbers what it did', async () => {
    const metrics = new Metrics({}, { processMetrics: false })
    await using world = await aWorld({ metrics })
    await world.ingester.connect(west, facts())
    await world.ingester.accept({ batch: aBatch(west, 1, []) })
    await world.ingester.accept({ batch: aBatch(west, 1, []) })
    await eventually('it is safe in state', () => world.ingester.backlog() === 0)
    const text = await metrics.registry.metrics()
    expect(text).toContain('clusterpulse_ingest_batches_total{result="accepted"} 1')
    expect(text).toContain('clusterpulse_ingest_batches_total{result="duplicate"} 1')
    expect(text).toContain('clusterpulse_ingest_backlog_records{consumer="state"} 0')
  })
})

describe('a store that is down', () => {
  /** Refuses until `up`; then does its work. */
  function gate(up: { now: boolean; tries: number }) {
    return (state: StateStore): StateStore =>
      new Proxy(state, {
        get: (target, key) => {
          if (key === 'apply') {
            return (...given: Parameters<StateStore['apply']>) => {
              up.tries++
              if (!up.now) return Promise.reject(new StoreUnavailableError('test', 'it is down'))
              return target.apply(...given)
            }
          }
          const value = Reflect.get(target, key, target) as unknown
          return typeof value === 'function' ? value.bind(target) : value
        },
      })
  }

  it.each([
    ['kept in memory', 64 * 2 ** 20],
    ['beyond what memory may hold', 2000],
  ])('acknowledges on and catches up in order: %s', async (_, maxPendingBytes) => {
    const up = { now: false, tries: 0 }
    await using world = await aWorld({ wrapState: gate(up), maxPendingBytes })
    await world.ingester.connect(west, facts())
    for (let n = 1; n <= 40; n++)
      await world.ingester.accept({ batch: aBatch(west, n, [complete('node', aNode(`n${n}`))]) })
    expect(world.ingester.backlog()).toBe(41)
    expect(world.state.cluster('west')).toBeUndefined()
    up.now = true
    const seen: Change[] = []
    world.events.subscribe((events) => seen.push(...events.map(({ change }) => change)))
    await world.ingester.flushed()
    expect(nodesOf(world.state, 'west')).toEqual(['n40'])
    const put = seen.flatMap((change) => (change.kind === 'snapshot' && change.op === 'put' ? [change.name] : []))
    expect(put).toEqual(Array.from({ length: 40 }, (_, i) => `n${i + 1}`))
    await world.ingester.accept({ batch: aBatch(west, 41, [complete('node', aNode('last'))]) })
    await world.ingester.flushed()
    expect(nodesOf(world.state, 'west')).toEqual(['last'])
  })

  it('applies after a restart what it never reached', async () => {
    {
      await using world = await aWorld({ wrapState: gate({ now: false, tries: 0 }) })
      await world.ingester.connect(west, facts())
      await world.ingester.accept({ batch: aBatch(west, 1, [complete('node', aNode('n1'))]) })
    }
    await using world = await aWorld()
    expect((await world.ingester.accept({ batch: aBatch(west, 1, []) })).duplicate).toBe(true)
    await world.ingester.flushed()
    expect(nodesOf(world.state, 'west')).toEqual(['n1'])
  })

  it('leaves out a record that no try can apply, and goes on', async () => {
    const metrics = new Metrics({}, { processMetrics: false })
    const poison = (state: StateStore): StateStore =>
      new Proxy(state, {
        get: (target, key) => {
          if (key === 'apply') {
            return (records: readonly StateRecord[], position: number) => {
              if (records.some((record) => record.kind === 'batch' && record.batch.sequence === 2)) {
                return Promise.reject(new TypeError('a bug'))
              }
              return target.apply(records, position)
            }
          }
          const value = Reflect.get(target, key, target) as unknown
          return typeof value === 'function' ? value.bind(target) : value
        },
      })
    await using world = await aWorld({ wrapState: poison, metrics })
    await world.ingester.connect(west, facts())
    await Promise.all(
      [1, 2, 3].map((n) => world.ingester.accept({ batch: aBatch(west, n, [complete('node', aNode(`n${n}`))]) })),
    )
    await world.ingester.flushed()
    expect(nodesOf(world.state, 'west')).toEqual(['n3'])
    expect(await metrics.registry.metrics()).toContain('clusterpulse_ingest_records_skipped_total{consumer="state"} 1')
  })
})

describe('stores that do not agree with the log', () => {
  it('goes on when the log was lost and state was not', async () => {
    {
      await using world = await aWorld()
      await world.ingester.connect(west, facts())
      for (let n = 1; n <= 5; n++)
        await world.ingester.accept({ batch: aBatch(west, n, [complete('node', aNode(`n${n}`))]) })
      await world.ingester.flushed()
    }
    await rm(join(directory, 'log'), { recursive: true })
    {
      await using world = await aWorld()
      await world.ingester.accept({ batch: aBatch(west, 6, [complete('node', aNode('n6'))]) })
    }
    await using world = await aWorld()
    await world.ingester.flushed()
    expect(nodesOf(world.state, 'west')).toEqual(['n6'])
  })

  it('builds state again from the log when state was lost', async () => {
    {
      await using world = await aWorld()
      await world.ingester.connect(west, facts())
      await world.ingester.accept({ batch: aBatch(west, 1, [complete('node', aNode('n1'))]) })
      await world.ingester.flushed()
    }
    await rm(join(directory, 'state'), { recursive: true })
    await using world = await aWorld()
    await world.ingester.flushed()
    expect(nodesOf(world.state, 'west')).toEqual(['n1'])
    expect((await world.ingester.accept({ batch: aBatch(west, 1, []) })).duplicate).toBe(true)
  })
})

describe('a log that cannot be written', () => {
  it('refuses with the cause, keeps nothing, and heals', async () => {
    const full = { now: false }
    await using world = await aWorld()
    const append = world.log.append.bind(world.log)
    const { LogFullError } = await import('#runtime')
    world.log.append = (payload, onSynced) =>
      full.now ? Promise.reject(new LogFullError('log', 'no space left on the disk')) : append(payload, onSynced)
    await world.ingester.connect(west, facts())
    full.now = true
    const batch = aBatch(west, 1, [complete('node', aNode('n1'))])
    const error = await world.ingester.accept({ batch }).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(StoreUnavailableError)
    expect((error as Error).message).toContain('no space left on the disk')
    expect(world.ingester.logFault()).toContain('no space left on the disk')
    full.now = false
    expect((await world.ingester.accept({ batch })).duplicate).toBe(false)
    expect(world.ingester.logFault()).toBeUndefined()
    await world.ingester.flushed()
    expect(nodesOf(world.state, 'west')).toEqual(['n1'])
  })

  it('never stays full once state has what it holds', async () => {
    // A clock that stands still: no checkpoint falls due by itself.
    const clock = { now: () => T0, sleep: () => Promise.resolve() }
    const maxBytes = 200_000
    const openedLog = () => openLog({ directory: join(directory, 'log'), maxBytes, retainBytes: 0, clock })
    await using world = await aWorld({ openedLog, clock })
    await world.ingester.connect(west, facts())
    let refused = 0
    for (let n = 1; n <= 400; n++) {
      const batch = aBatch(west, n, [complete('node', aNode('n1', { annotations: { filler: 'x'.repeat(2000) } }))])
      await eventually('the batch is taken', () =>
        world.ingester.accept({ batch }).then(
          () => true,
          (error: unknown) => {
            expect(error).toBeInstanceOf(StoreUnavailableError)
            refused++
            return false
          },
        ),
      )
      expect(world.log.stats().bytes).toBeLessThanOrEqual(maxBytes)
    }
    await world.ingester.flushed()
    expect(world.state.sequence(west)).toBe(400)
    expect(refused).toBeLessThan(400)
  })
})
