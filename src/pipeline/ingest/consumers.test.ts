import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openEvents } from '#events'
import { StoreUnavailableError, systemClock } from '#model'
import { type LogOptions, Metrics, openLog, silentLogger } from '#runtime'
import { EmbeddedStateStore } from '#state'
import { aBatch, aNode, complete, connected, facts, removed, T0, west } from '../state/test/fleet-words.ts'
import { eventually } from '../state/test/redis-server.ts'
import { divideLogs } from './division.ts'
import { Ingester, type IngesterOptions } from './ingester.ts'
import type { LogSink } from './log-consumer.ts'
import { decodeLogEntry, type LogEntry } from './log-record.ts'
import { FileHistory } from './test/file-history.ts'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'consumers-'))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

/** One more consumer, with a place of its own: what it was given outlives the hub of a test. */
class Inventory implements LogSink<LogEntry> {
  readonly name = 'inventory'
  readonly want = 'record'
  readonly given: string[] = []
  isAway = false
  #position = -1

  take(entry: LogEntry): LogEntry {
    return entry
  }

  async apply(entries: readonly LogEntry[], position: number): Promise<void> {
    if (this.isAway) throw new StoreUnavailableError('inventory', 'it is away')
    for (const { record } of entries) {
      const { outcome, items } = (record.kind === 'batch' && record.batch.parts[0]) as never as Record<
        string,
        unknown[]
      >
      this.given.push(record.kind === 'batch' ? `${record.batch.sequence} ${outcome} ${items?.length}` : record.kind)
    }
    this.#position = position
  }

  position(): number {
    return this.#position
  }
}

async function aHub(options: Partial<IngesterOptions> & { readonly logOptions?: Partial<LogOptions> } = {}) {
  const { logOptions, ...rest } = options
  const log = await openLog({ directory: join(directory, 'log'), ...logOptions })
  const state = await EmbeddedStateStore.open({ directory: join(directory, 'state'), writeBehindMs: 5 })
  const history = await FileHistory.open(join(directory, 'history'))
  const events = openEvents({ kind: 'in-process' })
  const clock = { ...systemClock, now: () => T0 + 30_000_000 }
  const ingester = await Ingester.open({ log, state, events, history, clock, random: () => 0.01, ...rest })
  return {
    log,
    state,
    history,
    ingester,
    async [Symbol.asyncDispose]() {
      await ingester[Symbol.asyncDispose]()
      await events[Symbol.asyncDispose]()
      await history[Symbol.asyncDispose]()
      await state[Symbol.asyncDispose]()
      await log[Symbol.asyncDispose]()
    },
  }
}

const round = (sequence: number, more: object = {}) =>
  aBatch(west, sequence, [complete('node', aNode(`n${sequence}`))], { origin: 'a', source: 'push', ...more })

describe('one more consumer of the log', () => {
  it('gets what comes within a while in one step, unless somebody waits for it or the hub stops', async () => {
    const steps: number[] = []
    class Gathering extends Inventory {
      readonly gatherMs = 600_000
      override async apply(entries: readonly LogEntry[], position: number): Promise<void> {
        steps.push(entries.length)
        await super.apply(entries, position)
      }
    }
    const inventory = new Gathering()
    {
      await using hub = await aHub({ consumers: [inventory] })
      await hub.ingester.connect(west, facts({ mode: 'push' }))
      for (const sequence of [1, 2, 3]) await hub.ingester.accept({ batch: round(sequence) })
      await hub.ingester.flushed('state')
      expect(steps).toEqual([])
      await hub.ingester.flushed('inventory')
      expect(steps).toEqual([4])
      await hub.ingester.accept({ batch: round(4) })
    }
    await using hub = await aHub({ consumers: [inventory] })
    await hub.ingester.flushed('inventory')
    expect(inventory.given.at(-1)).toBe('4 complete 1')
  })

  it('gets what happens in order, with its parts, also what is too old for state; a restart goes on where it was', async () => {
    const inventory = new Inventory()
    const consumers = [inventory]
    {
      await using hub = await aHub({ consumers })
      await hub.ingester.connect(west, facts({ mode: 'push' }))
      await hub.ingester.accept({ batch: round(9) })
      await hub.ingester.accept({ batch: round(4, { backfill: true }) })
      await hub.ingester.flushed('inventory')
      expect(inventory.given).toEqual(['connection', '9 complete 1', '4 complete 1'])
      inventory.isAway = true
      await hub.ingester.accept({ batch: round(10) })
      await hub.ingester.flushed()
      await hub.ingester.flushed('history')
      expect([...(hub.state.cluster('west')?.parts.node?.items.keys() ?? [])]).toEqual(['n10'])
      expect(hub.history.timesOf('west')).toHaveLength(3)
    }
    inventory.isAway = false
    await using hub = await aHub({ consumers })
    await hub.ingester.flushed('inventory')
    expect(inventory.given).toEqual(['connection', '9 complete 1', '4 complete 1', '10 complete 1'])
    expect(hub.history.timesOf('west')).toHaveLength(3)
  })

  it('says itself which batches are for it, once, and the log remembers', async () => {
    const inventory = Object.assign(new Inventory(), {
      wants: (_: unknown, { sequence }: { readonly sequence: number }) => sequence % 2 === 0,
    })
    await using hub = await aHub({ consumers: [inventory] })
    await hub.ingester.connect(west, facts({ mode: 'push' }))
    for (const sequence of [1, 2, 3, 4]) await hub.ingester.accept({ batch: round(sequence) })
    await hub.ingester.flushed('inventory')
    expect(inventory.given).toEqual(['connection', '2 complete 1', '4 complete 1'])
    const names: string[][] = []
    for await (const { payload } of hub.log.read(1)) names.push([...(decodeLogEntry(payload)?.audience ?? [])].sort())
    expect(names).toEqual([
      ['history', 'state'],
      ['history', 'inventory', 'state'],
      ['history', 'state'],
      ['history', 'inventory', 'state'],
    ])
  })

  it('holds back what it has not taken and nobody else, is measured, and has a checkpoint of its own', async () => {
    const inventory = new Inventory()
    const metrics = new Metrics({}, { processMetrics: false })
    const logOptions = { segmentBytes: 4_000, retainBytes: 0, retainMs: 0 }
    inventory.isAway = true
    await using hub = await aHub({ consumers: [inventory], metrics, logOptions })
    await hub.ingester.connect(west, facts({ mode: 'push' }))
    for (let sequence = 1; sequence <= 20; sequence++) await hub.ingester.accept({ batch: round(sequence) })
    await hub.ingester.flushed()
    expect(await metrics.registry.metrics()).toContain('backlog_records{consumer="inventory"} 21')
    expect(hub.log.firstIndex()).toBe(0)
    inventory.isAway = false
    await hub.ingester.flushed('inventory')
    expect(inventory.given).toHaveLength(21)
    await hub.ingester.flushed('history')
    await hub.state.flush()
    await hub.ingester[Symbol.asyncDispose]()
    expect(hub.log.checkpoints().get('inventory')).toBe(20)
    expect(hub.log.firstIndex()).toBeGreaterThan(0)
  })

  it('is given by a division what it lacks, and state and history nothing of it again', async () => {
    const inventory = new Inventory()
    inventory.isAway = true
    const first = await aHub({ consumers: [inventory] })
    await first.ingester.connect(west, facts({ mode: 'push' }))
    await first.ingester.accept({ batch: round(1) })
    await first.ingester.remove(west)
    await first.ingester.connect(west, facts({ mode: 'push' }))
    await first.ingester.accept({ batch: round(2) })
    await first.ingester.flushed()
    await first.ingester.flushed('history')
    await first.ingester[Symbol.asyncDispose]()
    const last = first.log.lastIndex()
    const to = await openLog({ directory: join(directory, 'new') })
    const from = [{ log: first.log, positions: { state: last, history: last } }]
    expect(await divideLogs({ from, to: [to], logger: silentLogger })).toMatchObject({ records: 5 })
    for await (const { payload } of to.read(0))
      expect(decodeLogEntry(payload, 'samples')?.audience).toEqual(new Set(['inventory']))
    inventory.isAway = false
    const events = openEvents({ kind: 'in-process' })
    const { state, history } = first
    await using ingester = await Ingester.open({ log: to, state, events, history, consumers: [inventory] })
    await Promise.all(['state', 'history', 'inventory'].map((name) => ingester.flushed(name)))
    expect(inventory.given).toEqual(['connection', '1 complete 1', 'removed', 'connection', '2 complete 1'])
    expect(state.cluster('west')?.sequence).toBe(2)
    expect(history.timesOf('west')).toHaveLength(2)
    await ingester[Symbol.asyncDispose]()
    await to[Symbol.asyncDispose]()
    await first[Symbol.asyncDispose]()
  })
})

describe('a consumer that is there no more', () => {
  it('holds nothing back: the log does not fill up with what nobody reads', async () => {
    const logOptions = { maxBytes: 60_000, segmentBytes: 4_000, retainBytes: 0 }
    {
      await using hub = await aHub({ logOptions })
      await hub.ingester.connect(west, facts({ mode: 'push' }))
      await hub.ingester.accept({ batch: round(1) })
      await hub.ingester.flushed('history')
    }
    const checkpoints = async () =>
      (await readdir(join(directory, 'log'))).filter((name) => name.endsWith('.checkpoint'))
    expect(await checkpoints()).toContain('history.checkpoint')
    await using hub = await aHub({ logOptions, history: undefined as never })
    expect(await checkpoints()).not.toContain('history.checkpoint')
    for (let sequence = 2; sequence <= 200; sequence++)
      await eventually('it is taken', () =>
        hub.ingester.accept({ batch: round(sequence) }).then(
          () => true,
          () => false,
        ),
      )
    await hub.ingester.flushed()
    expect(hub.state.cluster('west')?.sequence).toBe(200)
  })
})

it('records without an audience are for everyone', async () => {
  const inventory = new Inventory()
  {
    const log = await openLog({ directory: join(directory, 'log') })
    for (const record of [connected(west), removed(west)]) await log.append(Buffer.from(`1${JSON.stringify(record)}`))
    await log[Symbol.asyncDispose]()
  }
  await using hub = await aHub({ consumers: [inventory] })
  await hub.ingester.flushed('inventory')
  expect(inventory.given).toEqual(['connection', 'removed'])
})
