import { mkdtemp, open as openForWriting, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Clock, metricPrefix, minutes, seconds } from '#model'
import { type Logger, silentLogger } from '#runtime'
import { DuckDbHistory, type DuckDbHistoryOptions } from './duckdb.ts'
import { aGroup, aSet, lost, pods } from './testing/sets.ts'
import type { HistoryRecord, RangeQuery } from './types.ts'

const day = 86_400_000
const t0 = 1_700_000_000_000 - (1_700_000_000_000 % day)
const podsTotal = `${metricPrefix.cluster}pods_total`

let directory: string
let now = t0
const stores: DuckDbHistory[] = []
// Time stands still until a test moves it; upkeep runs when it is told to.
const clock: Clock = {
  now: () => now,
  sleep: (_, signal) => new Promise((resolve) => signal?.addEventListener('abort', () => resolve(), { once: true })),
}

beforeEach(async () => {
  now = t0
  directory = await mkdtemp(join(tmpdir(), 'history-'))
})
afterEach(async () => {
  for (const store of stores.splice(0)) await store[Symbol.asyncDispose]()
  await rm(directory, { recursive: true, force: true })
})

async function open(options: Partial<DuckDbHistoryOptions> = {}): Promise<DuckDbHistory> {
  const store = await DuckDbHistory.open({ directory, clock, ...options })
  stores.push(store)
  return store
}
const keep = (store: DuckDbHistory, ...records: readonly HistoryRecord[]) =>
  store.append(records, store.position() + records.length)
const ask = (store: DuckDbHistory, over: Partial<RangeQuery> = {}, signal?: AbortSignal) =>
  store.range(
    {
      cluster: 'west',
      scope: 'cluster',
      metrics: [podsTotal],
      from: t0,
      to: t0 + minutes(30) - 1,
      stepMs: minutes(5),
      maxSeries: 50,
      ...over,
    },
    signal,
  )
const valuesOf = async (store: DuckDbHistory, over: Partial<RangeQuery> = {}) =>
  (await ask(store, over)).series.map(({ values }) => values)

async function damage(offset: number, bytes: Buffer, ending = ''): Promise<void> {
  const file = await openForWriting(join(directory, `history.duckdb${ending}`), 'r+')
  await file.write(bytes, 0, bytes.length, offset)
  await file.close()
}
const setAsideFiles = async () => (await readdir(directory)).filter((name) => name.includes('damaged'))

describe('embedded history', () => {
  it('gives any finite number back to the bit', async () => {
    const store = await open()
    const exact = [1 / 3, Math.PI, 5e-324, Number.MAX_VALUE, -1e300, Number.EPSILON, 2 ** 53]
    await keep(store, ...exact.map((value, i) => pods(t0 + seconds(i), value)))
    expect(await valuesOf(store, { stepMs: 1000, to: t0 + seconds(exact.length - 1) })).toEqual([exact])
  })

  it('has memory given back after its upkeep', async () => {
    const told: string[] = []
    const logger = { ...silentLogger, debug: (_: unknown, message?: string) => void told.push(message ?? '') }
    const store = await open({ logger: logger as Logger, memoryBytes: 100 * 2 ** 20 })
    await keep(store, pods(t0, 3))
    const run = vi.spyOn(DuckDBConnection.prototype, 'run')
    try {
      await store.upkeep()
      expect(run.mock.calls.at(-1)).toEqual(["SET memory_limit = '100MiB'"])
    } finally {
      run.mockRestore()
    }
    expect(told).toEqual([])
    expect(await valuesOf(store, { to: t0 })).toEqual([[3]])
  })

  it('answers as any sorting, rolling up and late arrival had not been', async () => {
    const sample = fc.record({ at: fc.integer({ min: 0, max: 6 * 3600 }), value: fc.integer({ min: -50, max: 50 }) })
    const step = fc.oneof(
      fc.record({ append: fc.array(sample, { minLength: 1, maxLength: 20 }) }),
      fc.record({ ageMs: fc.integer({ min: 0, max: 7 * 3_600_000 }) }),
    )
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 1, maxLength: 8 }),
        fc.constantFrom(5, 10, 60),
        async (steps, every) => {
          await rm(directory, { recursive: true, force: true })
          const store = await DuckDbHistory.open({ directory, clock, sortRows: 15, rawMs: 1000 })
          const all: { at: number; value: number }[] = []
          for (const one of steps) {
            if ('append' in one) {
              all.push(...one.append)
              await keep(store, ...one.append.map(({ at, value }) => pods(t0 + at * 1000, value)))
            } else {
              now = t0 + one.ageMs
              await store.upkeep()
            }
          }
          const stepMs = minutes(every)
          const answer = await ask(store, { to: t0 + 6 * 3_600_000, stepMs })
          await store[Symbol.asyncDispose]()
          const expected = Array.from({ length: answer.points }, (_, i) => {
            const inStep = all.filter(({ at }) => Math.floor((at * 1000) / stepMs) === i)
            return inStep.length === 0 ? null : inStep.reduce((sum, { value }) => sum + value, 0) / inStep.length
          })
          const found = answer.series[0]?.values ?? expected.map(() => null)
          for (const [i, value] of expected.entries()) {
            if (value === null) expect(found[i]).toBeNull()
            else expect(found[i]).toBeCloseTo(value, 9)
          }
        },
      ),
      { numRuns: 12 },
    )
  })

  it('keeps means of 5 minutes of what is older than raw samples are kept, and shows them in shorter steps', async () => {
    const store = await open({ rawMs: day })
    await keep(store, pods(t0, 10), pods(t0 + minutes(1), 20), pods(t0 + minutes(5), 7))
    now = t0 + 2 * day
    await store.upkeep()
    expect(await valuesOf(store)).toEqual([[15, 7, null, null, null, null]])
    const fine = await valuesOf(store, { stepMs: minutes(1), to: t0 + minutes(11) - 1 })
    expect(fine).toEqual([[15, 15, 15, 15, 15, 7, 7, 7, 7, 7, null]])
    // From the middle of a rolled row on.
    const middle = { from: t0 + minutes(3), to: t0 + minutes(4) }
    expect(await valuesOf(store, { ...middle, stepMs: minutes(1) })).toEqual([[15, 15]])
  })

  it('rolls up every family, and finds their keys as before', async () => {
    const store = await open({ rawMs: day })
    const node = { ready: { n1: 1 }, cpu_used: { n1: 2, n2: 4 } }
    const set = (at: number) => aSet(at, [aGroup('node', node), aGroup('custom', { x: { 'ns/a': at - t0 } })])
    await keep(store, { kind: 'samples', samples: set(t0) }, { kind: 'samples', samples: set(t0 + 1000) })
    now = t0 + 2 * day
    await store.upkeep()
    const nodes = { scope: 'node', metrics: [`${metricPrefix.node}cpu_used`, `${metricPrefix.node}ready`] } as const
    expect(await valuesOf(store, { ...nodes, to: t0 })).toEqual([[2], [4], [1]])
    const custom = { scope: 'custom', metrics: [`${metricPrefix.custom}x`] } as const
    expect(await valuesOf(store, { ...custom, to: t0 })).toEqual([[500]])
    const keys = { cluster: 'west', from: t0, to: t0 + 1000, limit: 9 }
    expect(await store.keys({ ...keys, scope: 'node' })).toEqual(['n1', 'n2'])
    expect(await store.keys({ ...keys, scope: 'custom' })).toEqual(['ns/a'])
  })

  it('removes what is older than the retention, losses and names as well', async () => {
    const store = await open({ retentionMs: 2 * day, rawMs: day })
    const many = Object.fromEntries(Array.from({ length: 50_001 }, (_, i) => [`n${i}`, 1]))
    await keep(store, { kind: 'samples', samples: aSet(t0, [aGroup('node', { ready: many })]) }, lost(t0, t0 + 1))
    await keep(store, pods(t0 + day, 3))
    now = t0 + 2 * day + 2
    await store.upkeep()
    const keys = { cluster: 'west', scope: 'node', from: 0, to: now, limit: 9 } as const
    expect(await store.keys(keys)).toEqual([])
    expect(await store.spans({ cluster: 'west', from: 0, to: now })).toEqual([])
    expect(await valuesOf(store, { from: t0 + day, to: t0 + day })).toEqual([[3]])
    await store[Symbol.asyncDispose]()
    const database = await DuckDBInstance.create(join(directory, 'history.duckdb'))
    const connection = await database.connect()
    const words = (await connection.runAndReadAll('SELECT word FROM words')).getColumns()
    connection.closeSync()
    database.closeSync()
    expect(words).toEqual([['west']])
  })

  it('tells spans of what is rolled up by their first and last batch', async () => {
    const store = await open({ rawMs: day })
    const repaired = { source: 'push', repaired: true } as const
    const at = (n: number) => t0 + seconds(40 * n)
    await keep(
      store,
      pods(at(0), 1, { source: 'push' }),
      pods(at(1), 1, repaired),
      pods(at(9), 1, repaired),
      pods(at(10), 1, { source: 'push' }),
    )
    now = t0 + 2 * day
    await store.upkeep()
    expect(await store.spans({ cluster: 'west', from: t0, to: t0 + day })).toEqual([
      { kind: 'repaired', from: at(1), to: at(9), cause: '', count: 2 },
    ])
  })

  it('refuses a second opener of its directory', async () => {
    await open()
    await expect(open()).rejects.toMatchObject({ code: 'directory_locked' })
  })

  it('takes metrics the catalogue did not know when the file was made', async () => {
    const store = await open()
    await keep(store, pods(t0, 1))
    await store[Symbol.asyncDispose]()
    const database = await DuckDBInstance.create(join(directory, 'history.duckdb'))
    const connection = await database.connect()
    for (const stage of ['recent', 'raw', 'rolled']) {
      await connection.run(`ALTER TABLE cluster_${stage} DROP COLUMN m_nodes_total`)
    }
    connection.closeSync()
    database.closeSync()
    const again = await open({ sortRows: 1 })
    const group = aGroup('cluster', { nodes_total: { '': 3 }, pods_total: { '': 5 }, operators_count: { '': 8 } })
    await keep(again, { kind: 'samples', samples: aSet(t0 + minutes(5), [group]) })
    const metrics = ['nodes_total', 'pods_total', 'operators_count'].map((name) => metricPrefix.cluster + name)
    expect(await valuesOf(again, { metrics, to: t0 + minutes(5) })).toEqual([
      [null, 3],
      [1, 5],
      [null, 8],
    ])
  })

  it('puts a file aside that is none of ours, and begins anew', async () => {
    await writeFile(join(directory, 'history.duckdb'), 'nothing of a database '.repeat(2000))
    const store = await open()
    expect(store.position()).toBe(-1)
    await keep(store, pods(t0, 1))
    expect(await valuesOf(store, { to: t0 })).toEqual([[1]])
    expect(await setAsideFiles()).toHaveLength(1)
  })

  it('puts a file aside whose head is damaged', async () => {
    const first = await open()
    await keep(first, pods(t0, 1))
    await first[Symbol.asyncDispose]()
    await damage(0, Buffer.alloc(12_288, 0x5a))
    const store = await open()
    expect(store.position()).toBe(-1)
    expect(await setAsideFiles()).toHaveLength(1)
  })

  it('finds damage in the middle at the latest when it reads there: it says so, and takes everything again', async () => {
    const first = await open({ sortRows: 1 })
    for (let i = 0; i < 40; i++) {
      const column = Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`n${n}`, Math.sin(i * n)]))
      await keep(first, { kind: 'samples', samples: aSet(t0 + i * 1000, [aGroup('node', { cpu_used: column })]) })
    }
    await first[Symbol.asyncDispose]()
    const { size } = await stat(join(directory, 'history.duckdb'))
    for (let offset = 12_288; offset < size; offset += 4096) await damage(offset, Buffer.alloc(4096))
    const store = await open().catch((error: unknown) => error)
    expect(store).toBeInstanceOf(DuckDbHistory)
    if (!(store instanceof DuckDbHistory)) return
    const nodes = { scope: 'node', metrics: [`${metricPrefix.node}cpu_used`], maxSeries: 1000 } as const
    await ask(store, nodes).catch((error: unknown) => expect(error).toMatchObject({ code: 'store_unavailable' }))
    // The first try may be the one that finds out: the caller offers again, from where the position says.
    await keep(store, pods(t0, 1)).catch((error: unknown) => expect(error).toMatchObject({ retryable: true }))
    if (store.position() === -1) await keep(store, pods(t0, 1))
    expect(await valuesOf(store, { to: t0 })).toEqual([[1]])
    expect(await setAsideFiles()).not.toEqual([])
  })

  it('ends a long question when its signal aborts, and answers the next', async () => {
    const store = await open()
    const column = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`n${n}`, n]))
    for (let i = 0; i < 10; i++) {
      await keep(store, { kind: 'samples', samples: aSet(t0 + i * 1000, [aGroup('node', { cpu_used: column })]) })
    }
    const nodes = { scope: 'node', metrics: [`${metricPrefix.node}cpu_used`], maxSeries: 100_000, stepMs: 1 } as const
    const controller = new AbortController()
    const answer = ask(store, { ...nodes, to: t0 + 10_000 }, controller.signal)
    controller.abort()
    await expect(answer).rejects.toMatchObject({ name: 'AbortError' })
    expect(await valuesOf(store, { ...nodes, stepMs: minutes(1), keys: ['n7'], to: t0 })).toEqual([[7]])
  })

  it('refuses questions beyond those that may wait, and answers the others', async () => {
    const store = await open()
    await keep(store, pods(t0, 1))
    const asked = await Promise.allSettled(Array.from({ length: 400 }, () => ask(store)))
    const refused = asked.filter(({ status }) => status === 'rejected')
    expect(refused.length).toBeGreaterThan(0)
    for (const one of refused) expect(one).toMatchObject({ reason: { code: 'store_unavailable' } })
    expect(asked.length - refused.length).toBeGreaterThanOrEqual(256)
  })

  it('refuses everything once it is closed', async () => {
    const store = await open()
    await store[Symbol.asyncDispose]()
    await expect(ask(store)).rejects.toMatchObject({ code: 'store_unavailable' })
    await expect(keep(store, pods(t0, 1))).rejects.toMatchObject({ code: 'store_unavailable' })
  })
})
