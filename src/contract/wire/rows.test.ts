import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Batch, incompleteMessage, parseClusterName, ROWS_INCOMPLETE, type RowsPart, Table } from '#model'
import { decodeBody, encodeBody } from './body.ts'
import { Writer } from './bytes.ts'
import { WireError } from './errors.ts'
import { headOf } from './testing/arbitrary.ts'
import { plain, rowsParts } from './testing/rows.ts'
import { viewOf } from './view.ts'

const batch = (tables: readonly RowsPart[], more: Partial<Batch> = {}): Batch => ({
  cluster: parseClusterName('west'),
  origin: 'a1',
  sequence: 5,
  source: 'push',
  collectedAt: 1_700_000_000_000,
  durationMs: 12,
  parts: [],
  partial: true,
  ...(tables.length > 0 && { tables }),
  ...more,
})
const again = (one: Batch) => decodeBody(encodeBody(one), headOf(one))

describe('what MetricSources saw', () => {
  it('comes back exactly as it was', () => {
    fc.assert(
      fc.property(rowsParts(), fc.boolean(), (parts, partial) => {
        const { partial: _, ...round } = batch(parts)
        const sent = partial ? batch(parts) : round
        const { batch: decoded, view } = again(sent)
        expect(plain(decoded)).toEqual(plain(sent))
        expect(plain(view)).toEqual(plain(viewOf(sent)))
      }),
      { numRuns: 300 },
    )
  })

  it.each([false, true])(
    'leads as a difference from the view of any batch to that of any other (sums: %s)',
    (rowSums) => {
      const fields = fc.constantFrom(['f', 'g'], ['f'], undefined)
      fc.assert(
        fc.property(
          fields.chain((one) => fc.tuple(rowsParts(one), rowsParts(one))),
          ([before, after]) => {
            const [first, second] = [batch(before), batch(after, { sequence: 6 })]
            const body = encodeBody(second, viewOf(first), { rowSums })
            const { batch: told, view } = decodeBody(body, { ...headOf(second), base: 5 }, again(first).view)
            expect(plain(view.tableFacts)).toEqual(plain(viewOf(second, viewOf(first)).tableFacts))
            const expected = viewOf(second, viewOf(first)).tables
            expect([...(view.tables?.keys() ?? [])]).toEqual([...(expected?.keys() ?? [])])
            for (const [source, rows] of expected ?? []) expect(view.tables?.get(source)?.equals(rows)).toBe(true)
            expect(told.tables?.map(({ source }) => source)).toEqual(second.tables?.map(({ source }) => source))
          },
        ),
        { numRuns: 300 },
      )
    },
  )
})

describe('a source that did not change', () => {
  const fields = ['phase', 'cpu', 'memory', 'node', 'ready']
  const rowsOf = (count: number, changed = -1) =>
    Table.of(
      fields,
      Array.from({ length: count }, (_, i) => ({
        namespace: `team-${i % 40}`,
        name: `service-${i}`,
        labels: { app: `app-${i % 100}` },
        values: {
          phase: i === changed ? 'Failed' : 'Running',
          cpu: (i % 400) / 1000,
          memory: i * 2 ** 20,
          node: `n${i % 50}`,
          ready: true,
        },
      })),
    )
  const part = (rows: Table, durationMs: number): RowsPart => ({
    source: 'monitoring/pods',
    hash: '0123456789abcdef',
    durationMs,
    outcome: 'complete',
    rows,
    aggregations: { total: rows.size, cpu: 12.25, by: { Running: rows.size } },
    truncated: false,
    errors: [{ namespace: 'secret', outcome: 'forbidden', code: 'forbidden', message: 'may not be listed' }],
    errorCount: 1,
    reports: fields.map((field) => ({ field, missing: 3, malformed: 0, example: '' })),
  })

  it('costs at most 100 bytes however many rows it has, and one changed value not much more', () => {
    const first = batch([part(rowsOf(5_000), 812)])
    const base = again(first).view
    const quiet = encodeBody(batch([part(rowsOf(5_000), 790)], { sequence: 6 }), viewOf(first))
    expect(quiet.length).toBeLessThanOrEqual(100)
    const { batch: told, view } = decodeBody(quiet, { ...headOf(first), sequence: 6, base: 5 }, base)
    expect(told.tables).toMatchObject([{ outcome: 'changed', removed: [], durationMs: 790, hash: '0123456789abcdef' }])
    expect(view.tables?.get('monitoring/pods')).toBe(base.tables?.get('monitoring/pods'))
    const little = encodeBody(batch([part(rowsOf(5_000, 77), 790)], { sequence: 6 }), viewOf(first))
    expect(little.length).toBeLessThan(130)
  })

  it('carries lists and objects, whole and as a difference', () => {
    const conditions = (status: string) => [{ type: 'Ready', status, since: [1.5, null] }]
    const table = (changed: number) =>
      Table.of(
        ['conditions', 'phase'],
        Array.from({ length: 700 }, (_, i) => ({
          ...{ namespace: 'n', name: `o${i}`, labels: {} },
          values: { conditions: i % 3 ? conditions(i === changed ? 'False' : 'True') : null, phase: 'Running' },
        })),
      )
    const first = batch([part(table(-1), 5)])
    const base = again(first).view
    expect(base.tables?.get('monitoring/pods')?.equals(table(-1))).toBe(true)
    const change = encodeBody(batch([part(table(400), 5)], { sequence: 6 }), viewOf(first))
    expect(change.length).toBeLessThan(250)
    const { view } = decodeBody(change, { ...headOf(first), sequence: 6, base: 5 }, base)
    expect(view.tables?.get('monitoring/pods')?.equals(table(400))).toBe(true)
  })

  it.each([false, true])('is refused as a difference to other rows (sums: %s)', (rowSums) => {
    const first = batch([part(rowsOf(10), 5)])
    const change = encodeBody(batch([part(rowsOf(10, 3), 5)], { sequence: 6 }), viewOf(first), { rowSums })
    const head = { ...headOf(first), sequence: 6, base: 5 }
    const renamed = Table.of(rowsOf(10).fields, [...rowsOf(9).rows(), { ...rowsOf(10).row(9), name: 'other' }])
    for (const other of [{}, ...[rowsOf(11), renamed].map((rows) => again(batch([part(rows, 5)])).view)]) {
      expect(() => decodeBody(change, head, other)).toThrow(expect.objectContaining({ code: 'base_mismatch' }))
    }
    expect(() => decodeBody(change, head)).toThrow(expect.objectContaining({ code: 'base_mismatch' }))
  })

  it('is told whole where its fields are others', () => {
    const first = batch([part(rowsOf(10), 5)])
    const rows = Table.of(['other'], rowsOf(10).rows())
    const body = encodeBody(batch([part(rows, 5)], { sequence: 6 }), viewOf(first))
    const { batch: told } = decodeBody(body, { ...headOf(first), sequence: 6, base: 5 }, again(first).view)
    expect(told.tables).toMatchObject([{ outcome: 'complete' }])
  })

  it('is told whole again after it was incomplete: what stood beside it is in no base', () => {
    const incomplete = {
      namespace: 'shop',
      outcome: 'unreachable',
      code: ROWS_INCOMPLETE,
      message: 'not read',
    } as const
    const whole = part(rowsOf(10), 5)
    const some = { ...whole, errors: [incomplete], errorCount: 1 } as RowsPart
    const outcomes = [some, some, whole, whole].map((one, i, all) => {
      const before = all.slice(0, i).reduce((view, told) => viewOf(batch([told]), view), {})
      const body = encodeBody(batch([one], { sequence: 6 }), before)
      return decodeBody(body, { ...headOf(batch([one])), sequence: 6, base: 5 }, before).batch.tables?.[0]?.outcome
    })
    expect(outcomes).toEqual(['complete', 'changed', 'complete', 'changed'])
  })

  it('is told whole again when one of several targets is not incomplete any more', () => {
    const lacking = (...targets: string[]) => {
      const errors = targets.map((target) => ({
        ...({ namespace: 'shop', outcome: 'unreachable', code: ROWS_INCOMPLETE } as const),
        message: incompleteMessage(target, 'not read'),
      }))
      return { ...part(rowsOf(10), 5), errors, errorCount: errors.length } as RowsPart
    }
    const outcomes = [lacking('a/b', 'c'), lacking('c', 'a/b'), lacking('c'), lacking('c', 'd')].map((one, i, all) => {
      const before = all.slice(0, i).reduce((view, told) => viewOf(batch([told]), view), {})
      const body = encodeBody(batch([one], { sequence: 6 }), before)
      return decodeBody(body, { ...headOf(batch([one])), sequence: 6, base: 5 }, before).batch.tables?.[0]?.outcome
    })
    expect(outcomes).toEqual(['complete', 'changed', 'complete', 'changed'])
  })
})

describe('whatever the bytes', () => {
  it('of parts of sources, a body is read or refused, 20 000 times', () => {
    const samples = fc.sample(rowsParts(), { numRuns: 30, seed: 7 }).map((parts) => batch(parts))
    const base = again(samples[0]!).view
    const seeds = [
      ...samples.map((one) => encodeBody(one)),
      ...samples.flatMap((one) => [false, true].map((rowSums) => encodeBody(one, base, { rowSums }))),
    ]
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    let state = 5
    const random = (below: number) => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
      return Math.floor((state / 2 ** 32) * below)
    }
    let refused = 0
    for (let i = 0; i < 20_000; i++) {
      const bytes = Uint8Array.from(seeds[i % seeds.length]!)
      for (let hit = 0; hit <= random(4); hit++) bytes[random(bytes.length)] = random(256)
      try {
        const { batch: read } = decodeBody(bytes.subarray(0, bytes.length - random(3)), headOf(samples[0]!), base)
        for (const part of read.tables ?? []) if (part.outcome === 'complete') expect(part.rows.size).toBeLessThan(100)
      } catch (error) {
        if (!(error instanceof WireError)) throw error
        refused++
      }
    }
    Error.stackTraceLimit = stackTraceLimit
    expect(refused).toBeGreaterThan(5_000)
  })

  it.each([3_000, 190_000, 2 ** 40])('a few that claim %d rows are refused before anything is made', (rows) => {
    const body = new Writer()
    for (const byte of [1, 0, 0]) body.u8(byte)
    const texts = ['custom', 'team/a', 'f']
    body.varint(texts.length)
    for (const text of texts) body.varint(text.length)
    body.raw(new TextEncoder().encode(texts.join('')))
    for (const byte of [2, 0, 0]) body.u8(byte) // the duration 0
    body.varint(1)
    body.varint(0)
    body.sized(() => {
      body.u8(0)
      body.varint(1)
      for (const byte of [2, 0, 0]) body.u8(byte)
      // No hash, aggregations, errors and reports; twenty fields.
      for (const byte of [0, 2, 0, 0, 0, 0, 20]) body.u8(byte)
      for (let i = 0; i < 20; i++) body.varint(i % 3)
      body.varint(rows)
    })
    const before = process.memoryUsage().heapUsed
    expect(() => decodeBody(body.done(), headOf(batch([])))).toThrow(/more than its size allows|holds at most/)
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(8 * 1024 * 1024)
  })
})
