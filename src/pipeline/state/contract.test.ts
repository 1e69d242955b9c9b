import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  type Batch,
  type Change,
  type ClusterState,
  incompleteMessage,
  ownerOf,
  type Part,
  ROWS_INCOMPLETE,
  Table,
} from '#model'
import { clusterOf } from './fleet.ts'
import { RedisMirror } from './mirror.ts'
import { openState } from './open.ts'
import {
  aBatch,
  aNode,
  anAgent,
  batchRecord,
  complete,
  connected,
  east,
  failed,
  partial,
  removed,
  seen,
  seenSince,
  sizes,
  T0,
  unseen,
  west,
} from './test/fleet-words.ts'
import { eventually, redisMissing, startRedis, type TestRedis } from './test/redis-server.ts'
import type { StateReader, StateStore } from './types.ts'

interface Opened extends AsyncDisposable {
  readonly store: StateStore
  /** what a reader sees, once it has everything that was applied */
  reader(): Promise<StateReader>
  /** the changes told so far */
  readonly told: Change[]
  apply: StateStore['apply']
}

interface Driver {
  open(): Promise<Opened>
}

const round = (cluster: typeof west, sequence: number, ...nodes: string[]) =>
  batchRecord(aBatch(cluster, sequence, [complete('node', ...nodes.map((name) => aNode(name)))]))

/** What every store promises, whatever stands behind it. */
function promises(driver: () => Driver): void {
  let opened: Opened
  let state: StateReader
  const open = async () => {
    opened = await driver().open()
  }
  const close = async () => opened[Symbol.asyncDispose]()
  const apply = async (records: Parameters<StateStore['apply']>[0], position: number) => {
    const changes = await opened.apply(records, position)
    state = await opened.reader()
    return changes
  }
  const restart = async () => {
    await close()
    await open()
    state = await opened.reader()
  }
  beforeEach(open)
  afterEach(close)

  it('begins empty, available, before every position', async () => {
    state = await opened.reader()
    expect(state.availability()).toEqual({ state: 'available' })
    expect(state.clusters()).toEqual([])
    expect(state.cluster('west')).toBeUndefined()
    expect(opened.store.position()).toBe(-1)
    expect(opened.store.sequence(west)).toBe(0)
  })

  it('shows a declared cluster before anything was collected: unknown, never healthy', async () => {
    const changes = await apply([connected(west)], 0)
    expect(state.cluster('west')).toMatchObject({
      name: 'west',
      status: { health: 'unknown', checkedAt: null },
      connection: { displayName: 'West' },
    })
    expect(changes.map(({ kind }) => kind)).toEqual(['cluster', 'event'])
  })

  it('keeps the snapshots of a batch, with both of its times', async () => {
    await apply([connected(west), round(west, 1, 'n1', 'n2')], 1)
    const west1 = state.cluster('west') as ClusterState
    expect([...(west1.parts.node?.items.values() ?? [])]).toEqual([aNode('n1'), aNode('n2')])
    expect(west1.parts.node?.freshness).toEqual({ observedAt: T0 + 30_000, receivedAt: T0 + 30_050, source: 'pull' })
    expect(west1.status).toMatchObject({ health: 'healthy', checkedAt: T0 + 30_000, lastSyncAt: T0 + 30_000 })
    expect(west1.heartbeats).toEqual([{ at: T0 + 30_000, health: 'healthy', durationMs: 120 }])
    expect(opened.store.sequence(west)).toBe(1)
  })

  it('lists clusters by name and changes its version with every change, not without', async () => {
    await apply([connected(west), connected(east)], 1)
    expect(state.clusters().map(({ name }) => name)).toEqual(['east', 'west'])
    const before = state.version()
    await apply([round(west, 1, 'n1')], 2)
    const after = state.version()
    expect(after).toBeGreaterThan(before)
    await apply([round(west, 1, 'n1')], 3)
    expect(state.version()).toBe(after)
  })

  it('drops a batch that is not newer', async () => {
    await apply([connected(west), round(west, 5, 'new')], 1)
    expect(await opened.apply([round(west, 5, 'old'), round(west, 4, 'old')], 3)).toEqual([])
    state = await opened.reader()
    expect([...(state.cluster('west')?.parts.node?.items.keys() ?? [])]).toEqual(['new'])
  })

  it('tells what changed in the turn in which it can be read', async () => {
    const { store } = opened
    const read: (number | undefined)[] = []
    const look = () => void read.push(store.cluster('west')?.parts.node?.items.size)
    await store.apply([connected(west), round(west, 1, 'a', 'b')], 1, undefined, (changes) => {
      expect(changes.map(({ kind }) => kind)).toContain('snapshot')
      look()
      queueMicrotask(look)
    })
    expect(read[0]).toBe(2)
    await store.apply([removed(west)], 2, undefined, look)
    expect(read.at(-1)).toBeUndefined()
  })

  it('tells every difference once, in order, and no more', async () => {
    await apply([connected(west), round(west, 1, 'a', 'b')], 1)
    opened.told.length = 0
    const next = batchRecord(aBatch(west, 2, [complete('node', aNode('a'), aNode('c'))]))
    await apply([next], 2)
    const named = opened.told.map((change) =>
      change.kind === 'snapshot'
        ? `${change.op} ${change.name}`
        : change.kind === 'event'
          ? change.event.type
          : change.kind,
    )
    expect(named.toSorted()).toEqual(['cluster', 'node.added', 'node.removed', 'put c', 'remove b'])
    expect(named.indexOf('put c')).toBeLessThan(named.indexOf('cluster'))
  })

  it('keeps what was read when a later read fails, and says how it ended', async () => {
    await apply([connected(west), round(west, 1, 'n1')], 1)
    await apply([batchRecord(aBatch(west, 2, [failed('node', 'forbidden', 'nodes is forbidden')]))], 2)
    const part = state.cluster('west')?.parts.node
    expect(part).toMatchObject({ outcome: 'forbidden', message: 'nodes is forbidden', attemptedAt: T0 + 60_000 })
    expect([...(part?.items.keys() ?? [])]).toEqual(['n1'])
    expect(part?.freshness?.observedAt).toBe(T0 + 30_000)
    expect(state.cluster('west')?.status.health).toBe('unhealthy')
  })

  it('removes every trace of a removed cluster and takes a new one of its name', async () => {
    await apply([connected(west), connected(east), round(west, 7, 'n1')], 2)
    await apply([removed(west)], 3)
    expect(state.clusters().map(({ name }) => name)).toEqual(['east'])
    expect(opened.store.sequence(west)).toBe(0)
    await apply([connected(west), round(west, 1, 'n2')], 5)
    expect([...(state.cluster('west')?.parts.node?.items.keys() ?? [])]).toEqual(['n2'])
    expect(state.cluster('west')?.heartbeats).toHaveLength(1)
  })

  it('is after a restart what it was, and knows its place in the log', async () => {
    await apply([connected(west), connected(east), round(west, 3, 'n1', 'n2')], 40)
    await apply([batchRecord(aBatch(west, 4, [failed('operator', 'absent')])), removed(east)], 42)
    const before = state.clusters()
    const version = state.version()
    await restart()
    expect(opened.store.position()).toBe(42)
    expect(state.clusters()).toEqual(before)
    expect(state.version()).toBeGreaterThanOrEqual(version)
    expect(opened.store.sequence(west)).toBe(4)
    await apply([round(west, 5, 'n3')], 43)
    expect(state.version()).toBeGreaterThan(version)
  })

  it('keeps who numbered a batch, what its differences made of it, and the agent, over a restart', async () => {
    const push = (sequence: number, part: Part, more: Partial<Batch> = {}) =>
      batchRecord(aBatch(west, sequence, [part], { origin: 'a', source: 'push', ...more }))
    const agent = { kind: 'agent', cluster: west, agent: anAgent(), at: T0 } as const
    await apply([connected(west), agent, push(1, complete('node', aNode('n1'), aNode('n2')))], 3)
    const changed = { type: 'node', collector: 'test', durationMs: 1, outcome: 'changed' } as const
    await apply([push(2, { ...changed, put: [aNode('n3')], removed: ['n1'] }, { base: 1 })], 4)
    const check = () => {
      const known = state.cluster('west')
      expect([known?.origin, known?.sequence, known?.source]).toEqual(['a', 2, 'push'])
      expect(known?.agent).toEqual({ ...anAgent(), heartbeatAt: known?.parts.node?.freshness?.receivedAt })
      expect([...(known?.parts.node?.items.keys() ?? [])]).toEqual(['n2', 'n3'])
      expect(known?.events.map(({ type }) => type)).toContain('agent.connected')
    }
    check()
    await restart()
    check()
    await apply([push(3, { ...changed, put: [], removed: ['n3'] }, { base: 2 })], 5)
    expect([...(state.cluster('west')?.parts.node?.items.keys() ?? [])]).toEqual(['n2'])
  })

  describe('what MetricSources saw', () => {
    const custom = () => state.cluster('west')?.tables.get('team/sizes')
    const rows = () => Object.fromEntries([...(custom()?.rows.rows() ?? [])].map((row) => [row.name, row.values.size]))
    const between = (sequence: number, ...parts: Parameters<typeof partial>[2]) =>
      batchRecord(partial(west, sequence, parts))

    it('is kept with its rows and facts, over a restart', async () => {
      await apply([connected(west), between(1, seen(sizes({ 'a/x': 1, y: null }), { truncated: true }))], 1)
      const check = () => {
        expect(rows()).toEqual({ x: 1, y: null })
        const { rows: all, ...facts } = custom()!
        const { rows: _, ...told } = seen(sizes({}), { truncated: true, aggregations: { total: 2 } })
        expect(facts).toEqual({
          ...told,
          code: '',
          message: '',
          attemptedAt: T0 + 30_000,
          freshness: { observedAt: T0 + 30_000, receivedAt: T0 + 30_050, source: 'pull' },
        })
        expect(all.row(1).labels).toEqual({ app: 'x' })
      }
      check()
      await restart()
      check()
    })

    it('says nothing of the health of the cluster, nor that it was looked at', async () => {
      await apply([connected(west), round(west, 1, 'n1')], 1)
      const before = state.cluster('west')!
      opened.told.length = 0
      await apply([between(2, seen(sizes({ x: 1 })))], 2)
      const after = state.cluster('west')!
      expect(after.status).toEqual(before.status)
      expect(after.heartbeats).toEqual(before.heartbeats)
      expect(after.parts).toEqual(before.parts)
      expect(after.events).toEqual(before.events)
      expect(after.version).toBeGreaterThan(before.version)
      expect(opened.store.sequence(west)).toBe(2)
      expect(opened.told.map(({ kind }) => kind)).toEqual(['custom', 'cluster'])
      expect(opened.told[0]).toMatchObject({ source: 'team/sizes', rows: true, op: 'put' })
    })

    it('is the very same rows where nothing changed, and no change of rows is told', async () => {
      await apply([connected(west), between(1, seen(sizes({ x: 1 })))], 1)
      const before = custom()?.rows
      opened.told.length = 0
      await apply([between(2, seen(sizes({ x: 1 })))], 2)
      expect(custom()?.rows).toBe(before)
      expect(custom()?.freshness?.observedAt).toBe(T0 + 60_000)
      expect(opened.told).toMatchObject([{ kind: 'custom', rows: false }, { kind: 'cluster' }])
    })

    it('takes rows as gone by nothing that is incomplete', async () => {
      const incomplete = { namespace: 'a', outcome: 'unreachable', code: ROWS_INCOMPLETE, message: 'not read' } as const
      const some = { errors: [incomplete], errorCount: 1 }
      await apply([connected(west), between(1, seen(sizes({ x: 1, y: 2 })))], 1)
      await apply([between(2, seen(sizes({ y: 3, z: 4 }), some))], 2)
      expect(rows()).toEqual({ x: 1, y: 3, z: 4 })
      expect(custom()).toMatchObject({ outcome: 'complete', errorCount: 1 })
      await restart()
      expect(rows()).toEqual({ x: 1, y: 3, z: 4 })
      await apply([between(3, seen(sizes({ z: 4 })))], 3)
      expect(rows()).toEqual({ z: 4 })
    })

    it('loses what is gone of targets that are complete or deleted while others are incomplete', async () => {
      const of = (all: Readonly<Record<string, string>>) => {
        const named = Object.entries(all).map(([name, target]) => ({
          ...{ namespace: 'shop', name, labels: {}, values: { target } },
        }))
        return seen(Table.of(['target'], named), { reports: [] })
      }
      const lacking = (...targets: string[]) => ({
        errors: targets.map((target) => ({
          ...({ namespace: '', outcome: 'unreachable', code: ROWS_INCOMPLETE } as const),
          message: incompleteMessage(target, 'it may not be read'),
        })),
        errorCount: targets.length,
      })
      const names = () => [...(custom()?.rows.rows() ?? [])].map(({ name }) => name).join(' ')
      const all = of({ a1: 'a/one', a2: 'a/one', b1: 'b/two', c1: 'cluster', d1: 'd/gone' })
      await apply([connected(west), between(1, all)], 1)
      const some = of({ a2: 'a/one' })
      // Not all are named, or rows were left out: any may be there.
      await apply([between(2, { ...some, ...lacking('b/two'), errorCount: 2 })], 2)
      await apply([between(3, { ...some, ...lacking('b/two'), truncated: true })], 3)
      expect(names()).toBe('a1 a2 b1 c1 d1')
      await apply([between(4, { ...some, ...lacking('b/two', 'cluster') })], 4)
      expect(names()).toBe('a2 b1 c1')
      await restart()
      expect(names()).toBe('a2 b1 c1')
      await apply([between(5, { ...some, ...lacking('b/two') })], 5)
      expect(names()).toBe('a2 b1')
    })

    it('is kept when a later collection fails, and says why and since when', async () => {
      await apply([connected(west), between(1, seen(sizes({ x: 1 })))], 1)
      await apply([between(2, unseen('may not list things'), unseen('never read', 'team/other'))], 2)
      const check = () => {
        expect(rows()).toEqual({ x: 1 })
        expect(custom()).toMatchObject({
          outcome: 'forbidden',
          message: 'may not list things',
          hash: '0123456789abcdef',
          failedHash: 'fedcba9876543210',
          attemptedAt: T0 + 60_000,
          freshness: { observedAt: T0 + 30_000 },
          aggregations: { total: 1 },
        })
        expect(state.cluster('west')?.tables.get('team/other')).toMatchObject({ freshness: null, outcome: 'forbidden' })
        expect(state.cluster('west')?.tables.get('team/other')?.rows.size).toBe(0)
      }
      check()
      await restart()
      check()
      await apply([between(3, { ...unseen(), hash: 'another', source: 'team/other' }, seen(sizes({ x: 1 })))], 3)
      expect(custom()).not.toHaveProperty('failedHash')
      expect(state.cluster('west')?.tables.get('team/other')?.hash).toBe('another')
    })

    it('is told as differences, to what is here and nothing else', async () => {
      const [one, two, three] = [sizes({ x: 1, y: 2, z: 3 }), sizes({ y: 5, z: 3 }), sizes({ y: 5, z: 4, w: 1 })]
      await apply([connected(west), between(1, seen(one))], 1)
      await apply([batchRecord(partial(west, 2, [seenSince(two, one)], { base: 1 }))], 2)
      expect(rows()).toEqual({ y: 5, z: 3 })
      await apply([batchRecord(partial(west, 4, [seenSince(three, two)], { base: 3 }))], 3)
      expect(rows()).toEqual({ y: 5, z: 3 })
      await restart()
      await apply([batchRecord(partial(west, 3, [seenSince(three, two)], { base: 2 }))], 4)
      expect(rows()).toEqual({ y: 5, z: 4, w: 1 })
    })

    it('goes when its source is removed, and does not come back with a restart', async () => {
      const other = seen(sizes({ o: 1 }), { source: 'team/other' })
      await apply([connected(west), between(1, seen(sizes({ x: 1 })), other)], 1)
      opened.told.length = 0
      const gone = { kind: 'source-removed', cluster: west, source: 'team/sizes', at: T0 } as const
      await apply([gone], 2)
      expect(opened.told).toMatchObject([{ kind: 'custom', source: 'team/sizes', op: 'remove' }, { kind: 'cluster' }])
      expect([...(state.cluster('west')?.tables.keys() ?? [])]).toEqual(['team/other'])
      expect(await opened.apply([gone], 3)).toEqual([])
      await restart()
      expect([...(state.cluster('west')?.tables.keys() ?? [])]).toEqual(['team/other'])
      await apply([between(2, seen(sizes({ y: 2 })))], 4)
      expect(rows()).toEqual({ y: 2 })
    })

    it('goes with its cluster', async () => {
      await apply([connected(west), between(1, seen(sizes({ x: 1 })))], 1)
      await apply([removed(west)], 2)
      await apply([connected(west)], 3)
      expect(state.cluster('west')?.tables.size).toBe(0)
      await restart()
      expect(state.cluster('west')?.tables.size).toBe(0)
    })
  })

  it('keeps which process has a cluster, over a restart', async () => {
    await apply([connected(west, { owner: 'owner-2' })], 0)
    expect(state.cluster('west')?.connection?.owner).toBe('owner-2')
    await restart()
    expect(state.cluster('west')?.connection?.owner).toBe('owner-2')
    await apply([connected(west)], 1)
    expect(state.cluster('west')?.connection).not.toHaveProperty('owner')
  })

  it('gives the same when records are offered again', async () => {
    const records = [connected(west), round(west, 1, 'n1'), round(west, 2, 'n2'), connected(east), removed(east)]
    await apply(records, 4)
    const before = state.clusters()
    await apply(records.slice(0, 3), 4)
    expect(state.clusters()).toEqual(before)
  })
}

describe('embedded', () => {
  let directory: string
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'state-'))
  })
  afterEach(() => rm(directory, { recursive: true, force: true }))

  promises(() => ({
    async open() {
      const store = await openState({ kind: 'embedded', directory, writeBehindMs: 5 })
      return withItself(store, async () => store[Symbol.asyncDispose]())
    },
  }))
})

describe.skipIf(redisMissing)(`redis${redisMissing ? ` (skipped: ${redisMissing})` : ''}`, () => {
  let server: TestRedis
  let control: Redis
  beforeAll(async () => {
    server = await startRedis()
    control = new Redis(server.port, server.host)
  })
  afterAll(async () => {
    control.disconnect()
    await server[Symbol.asyncDispose]()
  })
  beforeEach(() => control.flushall())

  describe('the writer', () => {
    promises(() => ({
      async open() {
        const store = await openState({ kind: 'redis', connection: server, checkEveryMs: 60_000 })
        return withItself(store, async () => store[Symbol.asyncDispose]())
      },
    }))
  })

  const following = async (
    stores: readonly StateStore[],
    store: StateStore,
    apply: StateStore['apply'],
  ): Promise<Opened> => {
    const mirror = new RedisMirror({ connection: server, waitMs: 200 })
    await eventually('the mirror has loaded', () => mirror.availability().state === 'available')
    const told: Change[] = []
    mirror.onSteps((steps) => told.push(...steps.flatMap(({ changes, isPast }) => (isPast ? [] : changes))))
    const versions = (states: readonly StateReader[]) =>
      states
        .flatMap((state) => state.clusters().map(({ name, version }) => `${name} ${version}`))
        .sort()
        .join()
    return {
      store,
      told,
      apply,
      async reader() {
        await eventually('the mirror has everything', () => versions([mirror]) === versions(stores))
        return mirror
      },
      async [Symbol.asyncDispose]() {
        await mirror[Symbol.asyncDispose]()
        for (const one of stores) await one[Symbol.asyncDispose]()
      },
    }
  }

  describe('a mirror that follows', () => {
    promises(() => ({
      async open() {
        const store = await openState({ kind: 'redis', connection: server, checkEveryMs: 60_000 })
        await store.apply([], store.position()) // marks an empty Redis as ours
        return following([store], store, (records, position) => store.apply(records, position))
      },
    }))
  })

  describe('a mirror that follows several owners', () => {
    const of = 4
    const storeOf = (stores: readonly StateStore[], name: typeof west) => stores[ownerOf(name, of) - 1] as StateStore
    promises(() => ({
      async open() {
        const stores: StateStore[] = []
        for (let index = 1; index <= of; index++) {
          const owner = { index, of }
          const logId = `log-${index}`
          stores.push(await openState({ kind: 'redis', connection: server, checkEveryMs: 60_000, owner, logId }))
        }
        // It is the owner of `west` whose position is looked at.
        const first = storeOf(stores, west)
        return following(stores, first, async (records, position) => {
          const changes: Change[] = []
          for (const record of records)
            changes.push(...(await storeOf(stores, clusterOf(record)).apply([record], position)))
          await first.apply([], position)
          return changes
        })
      },
    }))

    it('has clusters of more than one', () => {
      expect(ownerOf(east, of)).not.toBe(ownerOf(west, of))
    })
  })
})

function withItself(store: StateStore, close: () => Promise<void>): Opened {
  const told: Change[] = []
  return {
    store,
    told,
    async apply(records, position) {
      const changes = await store.apply(records, position)
      told.push(...changes)
      return changes
    },
    reader: async () => store,
    [Symbol.asyncDispose]: close,
  }
}
