import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type RowsState, Table, type TableRow } from '#model'
import { StoredRows } from './stored-rows.ts'

const FIELDS = ['phase', 'size']
const rowOf = (i: number, turn = 0): TableRow => ({
  namespace: `n${Math.floor(i / 1000)}`,
  name: `r${String(i).padStart(5, '0')}`,
  labels: { app: `a${i % 7}` },
  values: { phase: ['up', 'down'][(i + turn) % 2]!, size: i + turn / 2 },
})
const tableOf = (count: number) =>
  Table.of(
    FIELDS,
    Array.from({ length: count }, (_, i) => rowOf(i)),
  )
const stateOf = (rows: Table, durationMs = 1): RowsState => ({
  ...{ source: 'team/s', hash: 'h', durationMs, outcome: 'complete', code: '', message: '', attemptedAt: 5 },
  ...{ freshness: null, aggregations: {}, truncated: false, errors: [], errorCount: 0, reports: [] },
  rows,
})
const custom = (rows: Table, durationMs?: number) => new Map([['team/s', stateOf(rows, durationMs)]])

/** What a store does with fields. */
class Stored {
  fields: Record<string, string> = {}
  written: string[] = []

  rows = new StoredRows()

  take(...change: Parameters<StoredRows['changed']>): void {
    this.written = []
    for (const [field, text] of this.rows.changed(...change)) {
      if (text === undefined) delete this.fields[field]
      else {
        this.fields[field] = text
        this.written.push(field)
      }
    }
  }

  read(damaged: string[] = []) {
    // As another process, or this one after a start.
    this.rows = new StoredRows()
    return this.rows.read(this.fields, undefined, { onDamage: (source, field) => damaged.push(source, field) })
  }

  get chunks(): string[] {
    return Object.keys(this.fields).filter((field) => field.startsWith('rows:team/s:'))
  }

  get steps(): string[] {
    return Object.keys(this.fields).filter((field) => field.startsWith('step:team/s:'))
  }
}

describe('stored rows', () => {
  // A Redis that lost all was given a table whose head counted steps that were not there.
  it('that were written in steps are whole where all is written again', () => {
    const stored = new Stored()
    const first = custom(tableOf(1000))
    stored.take(undefined, first)
    const rows = first.get('team/s')!.rows
    const second = custom(rows.patch(Table.of(FIELDS, [rowOf(7, 1)]), []))
    stored.take(first, second)
    expect(stored.steps).toHaveLength(1)
    stored.fields = {}
    stored.take(undefined, second)
    expect(stored.steps).toEqual([])
    const damaged: string[] = []
    expect(stored.read(damaged).get('team/s')?.rows.equals(second.get('team/s')!.rows)).toBe(true)
    expect(damaged).toEqual([])
  })

  it('are after any changes what was given, and no field is left that nobody needs', () => {
    const patches = fc.array(fc.record({ from: fc.nat(3000), count: fc.nat(40), isPut: fc.boolean() }), {
      maxLength: 6,
    })
    fc.assert(
      fc.property(fc.nat(2500), patches, (count, all) => {
        const stored = new Stored()
        let now = custom(tableOf(count))
        stored.take(undefined, now)
        for (const [turn, { from, count, isPut }] of all.entries()) {
          const rows = Array.from({ length: count }, (_, i) => rowOf(from + i, turn + 1))
          const before = now.get('team/s')!.rows
          const ids = rows.map(({ namespace, name }) => `${namespace}/${name}`)
          now = custom(isPut ? before.patch(Table.of(FIELDS, rows), []) : before.patch(Table.empty, ids))
          stored.take(custom(before), now)
          // What was touched, what had to be joined with it, the head and the list.
          expect(stored.written.length).toBeLessThanOrEqual(6)
          expect(stored.steps.length).toBeLessThanOrEqual(64 * stored.chunks.length)
          const { rows: table } = now.get('team/s')!
          expect(stored.chunks).toHaveLength(table.chunks.length)
          const writer = stored.rows
          expect(stored.read().get('team/s')?.rows.equals(table)).toBe(true)
          stored.rows = writer
        }
        stored.take(now, new Map())
        expect(stored.fields).toEqual({})
      }),
      { numRuns: 30 },
    )
  })

  it('that were read go on as they are stored, chunk by chunk', () => {
    const stored = new Stored()
    stored.take(undefined, custom(tableOf(2000)))
    const read = stored.read()
    const rows = read.get('team/s')!.rows.patch(Table.of(FIELDS, [rowOf(700, 9)]), [])
    stored.take(read, custom(rows))
    expect(stored.written.toSorted().map((field) => field.replace(/(team\/s):.*/, '$1:…'))).toEqual([
      'custom:team/s',
      'step:team/s:…',
    ])
    // Whoever follows takes what is known, and reads one step.
    const again = stored.rows.read(stored.fields, undefined, { known: read }).get('team/s')!.rows
    expect(again.equals(rows)).toBe(true)
    expect(again.chunks.filter((chunk) => !read.get('team/s')!.rows.chunks.includes(chunk))).toHaveLength(1)
    stored.take(custom(rows), custom(rows, 7))
    expect(stored.written).toEqual(['custom:team/s'])
  })

  it('change by steps beside their chunk, which is written anew once they hold 64 rows', () => {
    const stored = new Stored()
    let now = custom(tableOf(1200))
    stored.take(undefined, now)
    const { chunks } = stored
    for (let turn = 1; turn <= 64; turn++) {
      const rows = now.get('team/s')!.rows.patch(Table.of(FIELDS, [rowOf(turn % 5, turn)]), [])
      const next = custom(rows)
      stored.take(now, next)
      now = next
    }
    expect([stored.steps.length, stored.chunks]).toEqual([64, chunks])
    const last = custom(now.get('team/s')!.rows.patch(Table.empty, ['n0/r00003']))
    stored.take(now, last)
    expect([stored.steps.length, stored.chunks.filter((one) => chunks.includes(one)).length]).toEqual([0, 2])
    expect(stored.read().get('team/s')?.rows.equals(last.get('team/s')!.rows)).toBe(true)
  })

  it('change by steps where a few rows of every chunk do, and by chunks where all of them do', () => {
    const stored = new Stored()
    const table = tableOf(4000)
    const first = custom(table)
    stored.take(undefined, first)
    const some = Array.from({ length: 80 }, (_, i) => rowOf(i * 50, 3))
    const few = custom(table.patch(Table.of(FIELDS, some), []))
    stored.take(first, few)
    expect(stored.written.filter((field) => field.startsWith('step:'))).toHaveLength(table.chunks.length)
    const rows = Array.from({ length: 4000 }, (_, i) => rowOf(i, 5))
    const all = custom(few.get('team/s')!.rows.patch(Table.of(FIELDS, rows), []))
    stored.take(few, all)
    expect([stored.steps, stored.chunks.length]).toEqual([[], table.chunks.length])
    expect(stored.read().get('team/s')?.rows.equals(all.get('team/s')!.rows)).toBe(true)
  })

  it('are read on by whoever followed, also where several steps came, or all was written anew', () => {
    const writer = new Stored()
    const reader = new StoredRows()
    let now = custom(tableOf(1200))
    let known: ReturnType<StoredRows['read']> = new Map()
    writer.take(undefined, now)
    for (let turn = 0; turn < 30; turn++) {
      const next = custom(now.get('team/s')!.rows.patch(Table.of(FIELDS, [rowOf((turn * 53) % 1300, turn)]), []))
      if (turn % 11 === 10) {
        // After a loss: nothing that was there counts, and something of it may be left.
        writer.rows = new StoredRows()
        writer.take(undefined, next)
      } else writer.take(now, next)
      now = next
      if (turn % 3 !== 0) continue
      known = reader.read(writer.fields, undefined, { known })
      expect(known.get('team/s')?.rows.equals(now.get('team/s')!.rows)).toBe(true)
    }
  })

  it('of a former build are read, and all of them are in chunks with the first change', () => {
    const table = tableOf(1200)
    const { rows: _, ...head } = stateOf(table)
    const { fields, namespaces, names, values } = table.toColumns()
    const stored = new Stored()
    stored.fields = {
      'custom:team/s': JSON.stringify(head),
      'rows:team/s': JSON.stringify({
        ...{ fields, names, values, labels: [{ app: 'a0' }], labelOf: names.map(() => 0) },
        namespaces: [...new Set(namespaces)].map((one) => [one, namespaces.filter((other) => other === one).length]),
      }),
    }
    const read = stored.read()
    const rows = read.get('team/s')!.rows
    expect([rows.size, rows.row(1100).values.size]).toEqual([1200, 1100])
    // What only says that it was looked at again leaves them.
    stored.take(read, custom(rows, 9))
    expect([stored.written, stored.read().get('team/s')?.rows.size]).toEqual([['custom:team/s'], 1200])
    const next = rows.patch(Table.of(FIELDS, [rowOf(5, 3)]), [])
    stored.take(read, custom(next))
    expect(stored.chunks).toHaveLength(next.chunks.length)
    expect(stored.read().get('team/s')?.rows.equals(next)).toBe(true)
  })

  const INDEX = 'rows:team/s'
  const firstOf = ({ chunks: [field = ''] }: Stored) => field
  it.each<[string, (stored: Stored) => string, (text: string, stored: Stored) => string | undefined]>([
    ['a chunk that is missing', firstOf, () => undefined],
    ['a chunk of another', firstOf, (_, { fields, chunks: [, other = ''] }) => fields[other]],
    ['a chunk with another value', firstOf, (text) => text.replace(/r0000./, 'r0000a')],
    ['a list that is missing', () => INDEX, () => undefined],
    ['a list that is none', () => INDEX, () => 'x'],
    ['a list of something else', () => INDEX, () => '{}'],
    [
      'a list out of order',
      () => INDEX,
      (text) => JSON.stringify({ ...JSON.parse(text), ids: JSON.parse(text).ids.toReversed() }),
    ],
    ['a step that is missing', ({ steps: [, field = ''] }) => field, () => undefined],
    ['a step with another value', ({ steps: [field = ''] }) => field, (text) => text.replace('r00001', 'r00002')],
    ['a step that is none', ({ steps: [field = ''] }) => field, () => '[]'],
  ])('with %s are named and not served, and are whole again after the next collection', (_, fieldOf, damage) => {
    const stored = new Stored()
    let table = tableOf(1500)
    stored.take(undefined, custom(table))
    for (const turn of [1, 2, 3]) {
      const next = table.patch(Table.of(FIELDS, [rowOf(1, turn)]), [])
      stored.take(custom(table), custom(next))
      table = next
    }
    const field = fieldOf(stored)
    const text = damage(stored.fields[field]!, stored)
    if (text === undefined) delete stored.fields[field]
    else stored.fields[field] = text
    const damaged: string[] = []
    const read = stored.read(damaged)
    expect(damaged).toEqual(['team/s', field.startsWith('step:') ? 'step:team/s' : field])
    expect(read.size).toBe(0)
    stored.take(read, custom(table))
    expect(stored.read().get('team/s')?.rows.equals(table)).toBe(true)
  })
})
