import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openEvents } from '#events'
import type { HistoryRecord, HistoryStore } from '#history'
import type { Batch, RowsPart } from '#model'
import { Table } from '#model'
import { openLog } from '#runtime'
import { EmbeddedStateStore } from '#state'
import {
  aBatch,
  aCluster,
  aNode,
  complete,
  facts,
  partial,
  seen,
  seenSince,
  sizes,
  T0,
  unseen,
  west,
} from '../state/test/fleet-words.ts'
import { batchCheck } from './check-batch.ts'
import { BaseMismatchError, InvalidBatchError } from './errors.ts'
import { Ingester } from './ingester.ts'
import { decodeLogEntry, encodeLogEntry } from './log-record.ts'
import { batchOf, plainBatch } from './stored-rows.ts'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'ingest-custom-'))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

/** Remembers what it is given; the samples of a set as `source metric value`. */
function aHistory() {
  const told: [at: number, ...samples: string[]][] = []
  let position = -1
  const store: Partial<HistoryStore> = {
    async append(records: readonly HistoryRecord[], last: number) {
      position = last
      for (const record of records) {
        if (record.kind !== 'samples') continue
        const { at, groups } = record.samples
        const custom = groups.filter(({ scope }) => scope === 'custom')
        told.push([
          at - T0,
          ...custom.flatMap(({ keys, columns }) =>
            columns.map(({ metric, values }) => `${keys[0]} ${metric.split('_').at(-1)} ${values[0]}`),
          ),
        ])
      }
    },
    position: () => position,
  }
  return { told, store: store as HistoryStore }
}

async function aHub(history?: HistoryStore) {
  const log = await openLog({ directory: join(directory, 'log') })
  const state = await EmbeddedStateStore.open({ directory: join(directory, 'state'), writeBehindMs: 5 })
  const events = openEvents({ kind: 'in-process' })
  const ingester = await Ingester.open({ log, state, events, random: () => 0.01, ...(history && { history }) })
  const sizesOf = () =>
    [...(state.cluster('west')?.tables.get('team/sizes')?.rows.rows() ?? [])].map((one) => [one.name, one.values.size])
  return {
    log,
    state,
    ingester,
    sizes: async () => {
      await ingester.flushed()
      return Object.fromEntries(sizesOf())
    },
    async [Symbol.asyncDispose]() {
      await ingester[Symbol.asyncDispose]()
      await events[Symbol.asyncDispose]()
      await state[Symbol.asyncDispose]()
      await log[Symbol.asyncDispose]()
    },
  }
}

const told = (sequence: number, custom: readonly RowsPart[], more: Partial<Batch> = {}) =>
  partial(west, sequence, custom, { origin: 'agent', source: 'push', ...more })

describe('what MetricSources saw', () => {
  it('comes into state from a batch between two rounds, and from a round', async () => {
    await using hub = await aHub()
    await hub.ingester.connect(west, facts())
    await hub.ingester.accept({ batch: told(1, [seen(sizes({ x: 1 }))]) })
    expect(await hub.sizes()).toEqual({ x: 1 })
    expect(hub.state.cluster('west')?.heartbeats).toEqual([])
    const round = aBatch(west, 2, [complete('node', aNode('n1'))], {
      origin: 'agent',
      source: 'push',
      base: 1,
      tables: [seenSince(sizes({ x: 1, y: 2 }), sizes({ x: 1 }))],
    })
    await hub.ingester.accept({ batch: round })
    expect(await hub.sizes()).toEqual({ x: 1, y: 2 })
    expect(hub.state.cluster('west')?.heartbeats).toHaveLength(1)
  })

  it('is read again from the log where state was lost', async () => {
    {
      await using hub = await aHub()
      await hub.ingester.connect(west, facts())
      await hub.ingester.accept({ batch: told(1, [seen(sizes({ x: 1, y: null }), { truncated: true })]) })
      const difference = seenSince(sizes({ y: 3 }), sizes({ x: 1, y: null }))
      await hub.ingester.accept({ batch: told(2, [difference, unseen('no', 'team/other')], { base: 1 }) })
      expect(await hub.sizes()).toEqual({ y: 3 })
    }
    await rm(join(directory, 'state'), { recursive: true })
    await using hub = await aHub()
    expect(await hub.sizes()).toEqual({ y: 3 })
    expect(hub.state.cluster('west')?.tables.get('team/other')).toMatchObject({ outcome: 'forbidden' })
    // What the next difference is to is known as well.
    await hub.ingester.accept({ batch: told(3, [seenSince(sizes({ y: 4 }), sizes({ y: 3 }))], { base: 2 }) })
    expect(await hub.sizes()).toEqual({ y: 4 })
  })

  it('is no difference to rows that were removed, never taken, or of another batch', async () => {
    await using hub = await aHub()
    await hub.ingester.connect(west, facts())
    await hub.ingester.accept({ batch: told(1, [seen(sizes({ x: 1 })), unseen('no', 'team/other')]) })
    const change = seenSince(sizes({ x: 2 }), sizes({ x: 1 }))
    const other = { ...change, source: 'team/other' }
    await expect(hub.ingester.accept({ batch: told(2, [other], { base: 1 }) })).rejects.toBeInstanceOf(
      BaseMismatchError,
    )
    await expect(hub.ingester.accept({ batch: told(3, [change], { base: 2 }) })).rejects.toBeInstanceOf(
      BaseMismatchError,
    )
    await hub.ingester.removeSource(west, 'team/sizes')
    await expect(hub.ingester.accept({ batch: told(2, [change], { base: 1 }) })).rejects.toBeInstanceOf(
      BaseMismatchError,
    )
    expect(await hub.sizes()).toEqual({})
    await hub.ingester.accept({ batch: told(2, [seen(sizes({ x: 2 }))]) })
    await hub.ingester.accept({ batch: told(3, [seenSince(sizes({ x: 3 }), sizes({ x: 2 }))], { base: 2 }) })
    expect(await hub.sizes()).toEqual({ x: 3 })
  })

  it('goes with its source, which costs nothing where it is gone, and stays gone after a restart', async () => {
    {
      await using hub = await aHub()
      await hub.ingester.connect(west, facts())
      await hub.ingester.accept({ batch: told(1, [seen(sizes({ x: 1 })), unseen('no', 'team/other')]) })
      for (let i = 0; i < 3; i++) await hub.ingester.removeSource(west, 'team/sizes')
      await hub.ingester.removeSource(west, 'team/never')
      expect(hub.log.stats().appendedRecords).toBe(3)
      expect(await hub.sizes()).toEqual({})
    }
    await using hub = await aHub()
    await hub.ingester.removeSource(west, 'team/sizes')
    expect(hub.log.stats().appendedRecords).toBe(0)
    await hub.ingester.removeSource(west, 'team/other')
    await hub.ingester.flushed()
    expect(hub.state.cluster('west')?.tables.size).toBe(0)
  })

  it('has a bound of sources, whoever names them', async () => {
    await using hub = await aHub()
    await hub.ingester.connect(west, facts())
    const some = (from: number, count: number) =>
      Array.from({ length: count }, (_, i) => unseen('no', `team/s${from + i}`))
    for (const from of [0, 200]) await hub.ingester.accept({ batch: told(from + 1, some(from, 200)) })
    await expect(hub.ingester.accept({ batch: told(401, some(400, 101)) })).rejects.toBeInstanceOf(InvalidBatchError)
    await hub.ingester.accept({ batch: told(402, some(400, 100)) })
    await expect(hub.ingester.accept({ batch: told(403, some(600, 1)) })).rejects.toBeInstanceOf(InvalidBatchError)
    await hub.ingester.removeSource(west, 'team/s7')
    expect((await hub.ingester.accept({ batch: told(404, some(600, 1)) })).duplicate).toBe(false)
  })
})

describe('samples of MetricSources', () => {
  const at = (seconds: number, sequence: number, total: number, more: Partial<Batch> = {}) =>
    told(sequence, [seen(sizes({}), { aggregations: { total, by: { a: 1 }, none: null } })], {
      collectedAt: T0 + seconds * 1000,
      ...more,
    })

  it('are at most one in ten seconds; the last of what waited goes with the next batch', async () => {
    const history = aHistory()
    await using hub = await aHub(history.store)
    await hub.ingester.connect(west, facts())
    let sequence = 0
    for (let second = 0; second < 25; second++) await hub.ingester.accept({ batch: at(second, ++sequence, second) })
    const round = aBatch(west, ++sequence, [complete('node', aNode('n1'))], {
      origin: 'agent',
      source: 'push',
      collectedAt: T0 + 40_000,
    })
    await hub.ingester.accept({ batch: round })
    await hub.ingester.accept({ batch: { ...round, sequence: ++sequence, collectedAt: T0 + 70_000 } })
    await hub.ingester.flushed('history')
    expect(history.told).toEqual([
      [0, 'team/sizes total 0'],
      [10_000, 'team/sizes total 10'],
      [20_000, 'team/sizes total 20'],
      [40_000, 'team/sizes total 24'],
      [70_000],
    ])
  })

  it('that come late out of a buffer have their own time, thinned alike', async () => {
    const history = aHistory()
    await using hub = await aHub(history.store)
    await hub.ingester.connect(west, facts())
    await hub.ingester.accept({ batch: at(600, 100, 7) })
    for (const [i, second] of [0, 4, 11, 15, 22].entries())
      await hub.ingester.accept({ batch: at(second, i + 1, second, { backfill: true }) })
    await hub.ingester.flushed('history')
    expect(history.told.map(([time]) => time)).toEqual([600_000, 0, 11_000, 22_000])
  })

  it('hide no round that another origin read at that time', async () => {
    const history = aHistory()
    await using hub = await aHub(history.store)
    await hub.ingester.connect(west, facts())
    await hub.ingester.accept({ batch: partial(west, 1, [seen(sizes({}))], { collectedAt: T0 + 1_000 }) })
    await hub.ingester.accept({
      batch: aBatch(west, 1, [complete('node', aNode('n1'))], {
        origin: 'agent',
        source: 'push',
        collectedAt: T0 + 1_500,
        backfill: true,
      }),
    })
    await hub.ingester.flushed('history')
    expect(history.told.map(([time]) => time)).toEqual([1_000, 1_500])
  })
})

describe('records of the log and between processes', () => {
  it('bring back rows, facts and differences', () => {
    const [before, after] = [sizes({ 'a/x': 1, y: 'two', z: null }), sizes({ 'a/x': 1, y: 'three' })]
    const errors = [{ namespace: 'a', outcome: 'forbidden', code: 'forbidden', message: 'no' }] as const
    const batch = told(
      2,
      [
        seen(before, { errors, errorCount: 1 }),
        { ...seenSince(after, before), source: 'team/b' },
        unseen('no', 'team/c'),
      ],
      { base: 1 },
    )
    const record = { kind: 'batch', batch, receivedAt: 5 } as const
    const read = decodeLogEntry(encodeLogEntry({ record }))?.record
    const again = batchOf(JSON.parse(JSON.stringify(plainBatch(batch))))
    for (const one of [read?.kind === 'batch' ? read.batch : undefined, again]) {
      expect(one).toMatchObject({ partial: true, base: 1 })
      const [whole, change, failed] = one?.tables ?? []
      expect(whole).toMatchObject({ outcome: 'complete', errors, aggregations: { total: 3 } })
      expect(whole?.outcome === 'complete' && whole.rows.equals(before)).toBe(true)
      expect(change?.outcome === 'changed' && before.patch(change.put, change.removed).equals(after)).toBe(true)
      expect(failed).toEqual(unseen('no', 'team/c'))
    }
    const gone = { kind: 'source-removed', cluster: west, source: 'team/sizes', at: 5 } as const
    expect(decodeLogEntry(encodeLogEntry({ record: gone }))).toEqual({ record: gone })
  })
})

describe('a batch is refused', () => {
  const check = batchCheck()
  const part = seen(sizes({ x: 1 }))
  const rows = (name: string, namespace = 'a', value: unknown = 1, labels: unknown = {}) =>
    Table.of(['f'], [{ namespace, name, labels: labels as never, values: { f: value as never } }])
  const many = <T>(count: number, one: T) => Array.from({ length: count }, () => one)

  it.each<[string, unknown]>([
    ['custom that is no list', {}],
    ['a part that is nothing', [null]],
    ['a source twice', [part, part]],
    ['201 sources', Array.from({ length: 201 }, (_, i) => ({ ...part, source: `a/s${i}` }))],
    ['a source that is neither a namespace and name, nor a kind', [{ ...part, source: 'Sizes' }]],
    ['a source of three', [{ ...part, source: 'a/b/c' }]],
    ['a source that is a long text', [{ ...part, source: `a/${'b'.repeat(300)}` }]],
    ['no hash', [{ ...part, hash: 5 }]],
    ['a negative duration', [{ ...part, durationMs: -1 }]],
    ['an unknown outcome', [{ ...part, outcome: 'other' }]],
    ['rows that are a list', [{ ...part, rows: [] }]],
    ['a row without a name', [{ ...part, rows: rows('') }]],
    ['a name with a slash', [{ ...part, rows: rows('a/b') }]],
    ['a namespace with a slash', [{ ...part, rows: rows('a', 'b/c') }]],
    ['NaN', [{ ...part, rows: rows('x', 'a', Number.NaN) }]],
    ['an infinite number', [{ ...part, rows: rows('x', 'a', Number.POSITIVE_INFINITY) }]],
    ['a value that is no JSON', [{ ...part, rows: rows('x', 'a', [undefined]) }]],
    ['an object without end', [{ ...part, rows: rows('x', 'a', { a: ['x'.repeat(20_000)] }) }]],
    ['a text without end', [{ ...part, rows: rows('x', 'a', 'x'.repeat(20_000)) }]],
    ['a label that is a number', [{ ...part, rows: rows('x', 'a', 1, { a: 1 }) }]],
    ['a difference without a base', [seenSince(sizes({ x: 1 }), sizes({}))]],
    ['no word on truncation', [{ ...part, truncated: undefined }]],
    ['a count of errors that is none', [{ ...part, errorCount: Number.NaN }]],
    ['too many errors', [{ ...part, errors: many(21, { namespace: '', outcome: 'absent', code: '', message: '' }) }]],
    ['an error of no outcome', [{ ...part, errors: [{ namespace: '', outcome: 'complete', code: '', message: '' }] }]],
    ['a report of no field', [{ ...part, reports: [{ missing: 0, malformed: 0, example: '' }] }]],
    ['aggregations that are none', [{ ...part, aggregations: null }]],
    ['an aggregation that is a list', [{ ...part, aggregations: { a: [1] } }]],
    ['an infinite aggregation', [{ ...part, aggregations: { a: Number.POSITIVE_INFINITY } }]],
    ['201 aggregations', [{ ...part, aggregations: Object.fromEntries(many(201, 1).map((v, i) => [`a${i}`, v])) }]],
    ['a failure without a message', [{ ...unseen(), message: undefined }]],
  ])('with %s', (_, custom) => {
    expect(() => check({ ...told(1, []), tables: custom as RowsPart[] })).toThrow(InvalidBatchError)
    check(told(1, [part]))
  })

  it('not without what may be absent: only the agent of a member says what its cluster claims', () => {
    const claiming = (claims: unknown) => check(aBatch(west, 1, [complete('cluster', aCluster({ claims } as never))]))
    check(aBatch(west, 1, [complete('cluster', aCluster())]))
    claiming({ zone: 'a' })
    expect(() => claiming({ zone: 1 })).toThrow(InvalidBatchError)
  })

  it('not with a value that is an object', () => {
    check(told(1, [{ ...part, rows: rows('x', 'a', { conditions: [{ type: 'Ready', status: true }] }) }]))
  })

  it('that says it is between rounds and has the failure of one', () => {
    expect(() => check({ ...told(1, [part]), failure: { code: 'c', message: 'm' } })).toThrow(InvalidBatchError)
    expect(() => check({ ...told(1, [part]), partial: 1 as never })).toThrow(InvalidBatchError)
  })
})
