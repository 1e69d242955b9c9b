import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Chunk, sizeOf } from './chunk.ts'
import { columnOfOne } from './column.ts'
import type { JsonValue } from './json.ts'
import { type FormerRows, packTable, unpackTable } from './packed.ts'
import { chunkMapped } from './read-chunk.ts'
import { Table, type TableColumns, type TableRow } from './table.ts'

const names = fc.constantFrom('a', 'b', 'c', '__proto__', 'constructor', 'toString', 'ü', '', '0')
const scalars: fc.Arbitrary<JsonValue> = fc.oneof(
  fc.constantFrom<JsonValue>('', 'x', 'Running', '\ud800', 0, 1, true, false, null),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0),
  fc.string(),
)
const objects = <T>(values: fc.Arbitrary<T>) =>
  fc.array(fc.tuple(names, values), { maxLength: 4 }).map((all) => Object.fromEntries(all))
const cells: fc.Arbitrary<JsonValue> = fc.oneof(
  { weight: 6, arbitrary: scalars },
  fc.array(fc.oneof(scalars, objects(scalars)), { maxLength: 3 }),
  objects(scalars),
)
const row: fc.Arbitrary<TableRow> = fc.record({
  namespace: fc.constantFrom('', 'a', 'b', 'kube-system'),
  name: fc.constantFrom('x', 'y', 'z', '__proto__', 'z-1', 'Z', '😀'),
  labels: objects(fc.string({ maxLength: 3 })),
  values: objects(cells),
})
const fieldLists = fc.oneof(fc.constant(['a', 'b']), fc.uniqueArray(names, { maxLength: 5 }))
const tables = fc
  .tuple(fieldLists, fc.array(row, { maxLength: 14 }))
  .map(([fields, rows]) => ({ fields, rows, made: Table.of(fields, rows) }))

const changedIn = (table: Table, field: string, change: (value: JsonValue) => JsonValue) => {
  const at = table.fields.indexOf(field)
  return at < 0 ? table : table.mapChunks((chunk) => chunkMapped(chunk, at, change))
}
const idOf = ({ namespace, name }: TableRow) => (namespace === '' ? name : `${namespace}/${name}`)
const isBefore = (a: TableRow, b: TableRow) =>
  a.namespace < b.namespace || (a.namespace === b.namespace && a.name < b.name)
const plain = (value: unknown) => JSON.parse(JSON.stringify(value))
const stored = (table: Table) => unpackTable(plain(packTable(table)))

describe('a table', () => {
  it('holds rows sorted, each once, the later of two, with every field and null where nothing is', () => {
    fc.assert(
      fc.property(tables, ({ fields, rows, made }) => {
        const last = new Map(rows.map((one) => [idOf(one), one]))
        const all = [...made.rows()]
        expect(made.size).toBe(last.size)
        for (const [i, one] of all.entries()) {
          const given = last.get(idOf(one))!
          expect(made.idAt(i)).toBe(idOf(one))
          expect(made.labelsAt(i)).toEqual(given.labels)
          expect(Object.keys(one.values).sort()).toEqual([...fields].sort())
          for (const field of fields) {
            const value = Object.hasOwn(given.values, field) ? given.values[field] : null
            expect(one.values[field]).toEqual(value)
            expect(made.column(field)?.(i)).toEqual(value)
          }
          if (i > 0) expect(isBefore(all[i - 1]!, one)).toBe(true)
          expect(made.indexOf(one.namespace, one.name)).toBe(i)
        }
        expect(made.indexOf('nowhere', 'x')).toBe(-1)
        expect(made.column('no such field')).toBeUndefined()
        for (const place of [made.size, -1, 0.5 - 1]) expect(() => made.row(place)).toThrow(RangeError)
      }),
    )
  })

  it('that reads its columns when somebody looks is the same, whatever is looked at first', () => {
    const reading = (fields: readonly string[], rows: readonly TableRow[]) =>
      Table.reading(rows, {
        fields,
        place: (one) => one,
        labels: ({ labels }) => labels,
        values: fields.map(
          (field) =>
            ({ values }) =>
              Object.hasOwn(values, field) ? (values[field] ?? null) : null,
        ),
      })
    const looks: readonly ((table: Table) => unknown)[] = [
      (table) => [...table.rows()],
      (table) => table.fields.map((field) => Array.from({ length: table.size }, (_, at) => table.column(field)?.(at))),
      (table) => Array.from({ length: table.size }, (_, at) => [table.idAt(at), table.labelsAt(at)]),
      (table) => table.toColumns(),
      (table) => changedIn(table, 'a', () => 1).toColumns(),
      (table) => plain(packTable(table)),
    ]
    fc.assert(
      fc.property(tables, fc.shuffledSubarray([...looks.keys()]), ({ fields, rows, made }, order) => {
        const lazy = reading(fields, rows)
        for (const at of order) expect(looks[at]?.(lazy)).toEqual(looks[at]?.(made))
        expect(lazy.equals(made)).toBe(true)
        expect(made.patch(lazy, [])).toBe(made)
        expect(lazy.patch(made, [])).toBe(lazy)
      }),
    )
  })

  it('comes back from its columns, in any order, and from what a store keeps', () => {
    fc.assert(
      fc.property(tables, fc.nat(), ({ made }, turn) => {
        expect(Table.from(plain(made.toColumns()))?.equals(made)).toBe(true)
        expect(stored(made)?.equals(made)).toBe(true)
        expect(stored(made)?.toColumns()).toEqual(plain(made.toColumns()))
        const by = made.size === 0 ? 0 : turn % made.size
        const turned = <T>(list: readonly T[]) => [...list.slice(by), ...list.slice(0, by)]
        const { fields, namespaces, names, labels, values } = made.toColumns()
        const rotated = Table.from({
          fields,
          namespaces: turned(namespaces),
          names: turned(names),
          labels: turned(labels),
          values: values.map(turned),
        })
        expect(rotated?.equals(made)).toBe(true)
      }),
    )
  })

  it('keeps equal labels once', () => {
    const labels = () => ({ app: 'x', __proto__: 'y' }) as unknown as Record<string, string>
    const made = Table.of(
      [],
      ['a', 'b'].map((name) => ({ namespace: '', name, labels: labels(), values: {} })),
    )
    expect(made.labelsAt(0)).toBe(made.labelsAt(1))
    expect(packTable(made).chunks[0]?.labels).toEqual({ words: [labels()] })
  })

  it('knows about what it keeps: a byte for one of few words, eight for a number, of texts their characters', () => {
    const of = (value: (i: number) => JsonValue) =>
      Table.of(
        ['f'],
        Array.from({ length: 5120 }, (_, i) => ({ namespace: 'n', name: `${i}`, labels: {}, values: { f: value(i) } })),
      ).bytes / 5120
    const without = of(() => 'Running')
    expect(of((i) => ['Running', 'Pending', null][i % 3]!) - without).toBeCloseTo(1, 0)
    expect(of((i) => i % 2 === 0) - without).toBeCloseTo(1, 0)
    expect(of((i) => i / 7) - without).toBeCloseTo(8, 0)
    const text = of((i) => `a text of its own ${i}`) - without
    expect(text).toBeGreaterThan(20)
    expect(text).toBeLessThan(32)
  })

  const good: TableColumns = { fields: ['f'], namespaces: ['n'], names: ['x'], labels: [{}], values: [[1]] }
  const deep = (depth: number): JsonValue => (depth === 0 ? 1 : [deep(depth - 1)])
  it.each<[string, unknown]>([
    ['nothing', null],
    ['a text', 'rows'],
    ['lists that are none', { ...good, names: 'x' }],
    ['a name too many', { ...good, names: ['x', 'y'] }],
    ['a namespace too few', { ...good, namespaces: [] }],
    ['labels too few', { ...good, labels: [] }],
    ['labels that are a list', { ...good, labels: [[]] }],
    ['a label that is a number', { ...good, labels: [{ a: 1 }] }],
    ['a column too many', { ...good, values: [[1], [2]] }],
    ['a column too short', { ...good, values: [[]] }],
    ['columns that are none', { ...good, values: [null] }],
    ['a field twice', { ...good, fields: ['f', 'f'], values: [[1], [1]] }],
    ['undefined', { ...good, values: [[undefined]] }],
    ['NaN', { ...good, values: [[Number.NaN]] }],
    ['NaN within', { ...good, values: [[{ a: [Number.NaN] }]] }],
    ['a value nested too deep', { ...good, values: [[deep(33)]] }],
    ['a hole', { ...good, values: [new Array(1)] }],
    ['a hole within', { ...good, values: [[new Array(1)]] }],
  ])('is not made of %s', (_, columns) => {
    expect(Table.from(columns as TableColumns)).toBeUndefined()
    expect(Table.from(good)?.size).toBe(1)
    expect(Table.from({ ...good, values: [[deep(32)]] })?.size).toBe(1)
  })

  it.each<[string, (chunk: Record<string, unknown>) => object]>([
    ['a chunk that is none', () => null as never],
    ['names that are none', (chunk) => ({ ...chunk, names: [1, 2, 3] })],
    ['a name too few', ({ names, ...chunk }) => ({ ...chunk, names: (names as string[]).slice(1) })],
    ['no rows', (chunk) => ({ ...chunk, names: [] })],
    ['names out of order', ({ names, ...chunk }) => ({ ...chunk, names: (names as string[]).toReversed() })],
    ['a namespace that is none', (chunk) => ({ ...chunk, namespaces: { words: [7] } })],
    ['labels that are none', (chunk) => ({ ...chunk, labels: { words: [[]] } })],
    ['a column too few', (chunk) => ({ ...chunk, values: [] })],
    ['a column too short', (chunk) => ({ ...chunk, values: [[1]] })],
    ['a column that is none', (chunk) => ({ ...chunk, values: [7] })],
    ['words without codes', (chunk) => ({ ...chunk, values: [{ words: [1, 2] }] })],
    ['a code too few', (chunk) => ({ ...chunk, values: [{ words: [1, 2], codes: '01' }] })],
    ['a code of no word', (chunk) => ({ ...chunk, values: [{ words: [1, 2], codes: '012' }] })],
    ['a code below the first', (chunk) => ({ ...chunk, values: [{ words: [1, 2], codes: '01/' }] })],
  ])('does not come back from %s', (_, damage) => {
    const three = ['x', 'y', 'z'].map((name, f) => ({ namespace: 'n', name, labels: {}, values: { f: f % 2 } }))
    const whole = plain(packTable(Table.of(['f'], three)))
    expect(whole.chunks[0].values).toEqual([{ words: [0, 1], codes: '010' }])
    expect(unpackTable(whole)?.size).toBe(3)
    expect(unpackTable({ ...whole, chunks: [damage(whole.chunks[0]) as never] })).toBeUndefined()
  })

  it('does not come back from chunks in another order', () => {
    const { fields, chunks } = plain(packTable(big(1200)))
    expect(unpackTable({ fields, chunks })?.size).toBe(1200)
    expect(unpackTable({ fields, chunks: chunks.toReversed() })).toBeUndefined()
    expect(unpackTable({ fields: [...fields, 'more'], chunks })).toBeUndefined()
    expect(unpackTable(null as never)).toBeUndefined()
  })

  const former: FormerRows = {
    fields: ['f'],
    namespaces: [
      ['', 1],
      ['n', 2],
    ],
    names: ['w', 'x', 'y'],
    labels: [{ app: 'a' }, {}],
    labelOf: [0, 1, 0],
    values: [[1, 'two', null]],
  }
  it('comes back from what a former build stored', () => {
    expect([...(unpackTable(former)?.rows() ?? [])]).toEqual([
      { namespace: '', name: 'w', labels: { app: 'a' }, values: { f: 1 } },
      { namespace: 'n', name: 'x', labels: {}, values: { f: 'two' } },
      { namespace: 'n', name: 'y', labels: { app: 'a' }, values: { f: null } },
    ])
  })
  it.each<[string, object]>([
    ['runs that say too much', { namespaces: [['n', 5]] }],
    ['a run of half a row', { namespaces: [['n', 0.5]] }],
    ['a place of labels that is none', { labelOf: [7, 0, 0] }],
    ['a run that is none', { namespaces: [null] }],
  ])('does not come back from %s of a former build', (_, damage) => {
    expect(unpackTable({ ...former, ...damage })).toBeUndefined()
  })
})

describe('a difference of tables', () => {
  it('leads from any rows to any others of the same fields', () => {
    const pairs = fieldLists.chain((fields) =>
      fc.tuple(fc.array(row, { maxLength: 14 }), fc.array(row, { maxLength: 14 })).map(([a, b]) => ({
        older: Table.of(fields, a),
        // What did not change is mostly the same text, and often another object.
        newer: Table.of(fields, [...a.slice(1).map((one) => structuredClone(one)), ...b]),
      })),
    )
    fc.assert(
      fc.property(pairs, ({ older, newer }) => {
        const { put, removed } = newer.diff(older)
        expect(older.patch(put, removed).equals(newer)).toBe(true)
        expect(put.size + removed.length === 0).toBe(newer.equals(older))
        if (newer.equals(older)) expect(older.patch(put, removed)).toBe(older)
        expect(newer.basedOn(older).equals(newer)).toBe(true)
        if (newer.equals(older)) expect(newer.basedOn(older)).toBe(older)
        // No more than needed: every row that is put differs, or is new.
        for (const one of put.rows()) {
          const place = older.indexOf(one.namespace, one.name)
          if (place >= 0) expect(older.row(place)).not.toEqual(one)
        }
      }),
      { numRuns: 500 },
    )
  })

  it('leads to other fields, as long as there is a field or a row', () => {
    fc.assert(
      fc.property(tables, tables, ({ made: older }, { made: newer }) => {
        fc.pre(newer.size > 0 || newer.fields.length > 0)
        const { put, removed } = newer.diff(older)
        expect(older.patch(put, removed).equals(newer)).toBe(true)
      }),
      { numRuns: 500 },
    )
  })

  it('keeps the fields where only rows go', () => {
    const older = Table.of(
      ['f'],
      ['a', 'b'].map((name) => ({ namespace: 'n', name, labels: {}, values: { f: 1 } })),
    )
    expect(older.patch(Table.empty, ['n/a', 'n/other', 'b']).toColumns()).toEqual({
      fields: ['f'],
      namespaces: ['n'],
      names: ['b'],
      labels: [{}],
      values: [[1]],
    })
    expect(older.patch(Table.empty, [])).toBe(older)
  })
})

describe('equal tables', () => {
  it('have equal fields, keys, labels and values', () => {
    fc.assert(
      fc.property(tables, tables, ({ made: a }, { made: b }) => {
        const same = JSON.stringify(a.toColumns()) === JSON.stringify(b.toColumns())
        if (same) expect(a.equals(b)).toBe(true)
        expect(a.equals(b)).toBe(b.equals(a))
        expect(a.equals(Table.of(a.fields, a.rows()))).toBe(true)
      }),
    )
    const one = (value: JsonValue, labels = {}, field = 'f', name = 'x') =>
      Table.of([field], [{ namespace: 'n', name, labels, values: { [field]: value } }])
    expect(one(0).equals(one(-0))).toBe(true)
    expect(one({ a: [1], b: 0 }).equals(one({ b: 0, a: [1] }))).toBe(true)
    expect(one({ a: [1] }).equals(one({ a: [2] }))).toBe(false)
    expect(one([]).equals(one({}))).toBe(false)
    expect(one({ a: 1 }).equals(one({ a: 1, b: 1 }))).toBe(false)
    expect(one(1).equals(one('1'))).toBe(false)
    expect(one(null).equals(one(false))).toBe(false)
    expect(one(1).equals(one(1, { a: 'b' }))).toBe(false)
    expect(one(1).equals(one(1, {}, 'g'))).toBe(false)
    expect(one(1).equals(one(1, {}, 'f', 'y'))).toBe(false)
  })
})

describe('some of the rows', () => {
  it('are what is at their places', () => {
    fc.assert(
      fc.property(tables, fc.array(fc.boolean(), { minLength: 14, maxLength: 14 }), ({ made }, picks) => {
        const places = Array.from({ length: made.size }, (_, i) => i).filter((i) => picks[i])
        const some = made.only(places)
        expect([...some.rows()]).toEqual(places.map((place) => made.row(place)))
        expect(some.fields).toBe(made.fields)
        if (places.length === made.size) expect(some).toBe(made)
      }),
    )
  })

  it('are in the very same chunks where these are whole', () => {
    const table = big(3000)
    const [first = 0] = table.chunks.map(sizeOf)
    const places = Array.from({ length: table.size }, (_, i) => i)
    const some = table.only(places.filter((i) => i !== first))
    expect(some.chunks[0]).toBe(table.chunks[0])
    expect(some.chunks.filter((chunk) => !table.chunks.includes(chunk))).toHaveLength(1)
  })
})

describe('rows of a table of which all are told again', () => {
  const table = big(3000)
  const places = Array.from({ length: table.size }, (_, i) => i)
  const told = places.map((i) => (i < table.size / 2 ? (table.column('cpu')?.(i) ?? null) : i / 3))
  const expected = Table.of(
    FIELDS,
    [...table.rows()].map((row, i) => ({ ...row, values: { ...row.values, cpu: told[i] as JsonValue } })),
  )

  it.each([
    ['a difference', table.patch(table.changedAt(places, undefined, [undefined, told]) as Table, [])],
    ['a whole', expected.basedOn(table)],
  ])('keep keys, and what did not change, as %s', (_, next) => {
    expect(next.equals(expected)).toBe(true)
    expect(table.equals(next)).toBe(false)
    expect(next.keys).toBe(table.keys)
    expect(next.chunks[0]).toBe(table.chunks[0])
    const [before, after] = [table, next].map(({ chunks }) => chunks.at(-1) as Chunk)
    expect(after?.keys).toBe(before?.keys)
    expect(after?.labels).toBe(before?.labels)
    expect(after?.columns.map((column, at) => column === before?.columns[at])).toEqual(
      FIELDS.map((field) => field !== 'cpu'),
    )
  })

  it('are the very same table where nothing differs', () => {
    expect(table.patch(table.changedAt(places, undefined, []) as Table, [])).toBe(table)
    expect(big(3000).basedOn(table)).toBe(table)
  })

  it('are others where their names hold the same characters otherwise cut', () => {
    const named = (...names: string[]) => {
      const more = Array.from({ length: 40 }, (_, i) => `z${i}`)
      return Table.of(
        [],
        [...names, ...more].map((name) => ({ namespace: '', name, labels: {}, values: {} })),
      )
    }
    const [one, other] = [named('a', 'b\nc'), named('a\nb', 'c')]
    expect(other.basedOn(one).row(0).name).toBe('a\nb')
    expect(one.equals(other)).toBe(false)
  })
})

// ── many rows ────────────────────────────────────────────────────────────────────────────────────────────────────────

const FIELDS = ['phase', 'cpu', 'ip', 'ready', 'taints', 'any']
const keyOf = (i: number) => ({ namespace: `ns-${Math.floor(i / 700)}`, name: `pod-${String(i).padStart(6, '0')}` })
function podOf(i: number, turn: number): TableRow {
  const mixed: readonly JsonValue[] = [turn, `t${turn}`, null, true, [turn], { turn }]
  return {
    ...keyOf(i),
    labels: { app: `app-${i % 40}` },
    values: {
      phase: ['Running', 'Pending', null][(i + turn) % 3]!,
      cpu: turn % 11 === 0 ? null : i / 7 + turn,
      ip: `10.${i % 256}.${turn}`,
      ready: (i + turn) % 5 > 0,
      taints: turn % 4 === 0 ? [{ key: 'k', value: `${turn}` }] : [],
      any: mixed[(i * 7 + turn) % mixed.length]!,
    },
  }
}
const big = (rows: number) =>
  Table.of(
    FIELDS,
    Array.from({ length: rows }, (_, i) => podOf(i, 0)),
  )

/** Sorted, none too large, none too small but the only one. */
function expectSound(table: Table): void {
  const sizes = table.chunks.map(sizeOf)
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(table.size)
  expect(Math.max(0, ...sizes)).toBeLessThanOrEqual(512)
  if (sizes.length > 1) expect(Math.min(...sizes)).toBeGreaterThanOrEqual(128)
  for (const { keys, labels, columns } of table.chunks)
    for (const column of [keys.namespaces, labels, ...columns]) expect(column.words.length).toBeLessThanOrEqual(512)
  expect(Table.ofChunks(table.fields, table.chunks)?.size).toBe(table.size)
}

describe('a table of many rows', () => {
  const step = fc.record({
    // Rows beside each other, or all over the table.
    from: fc.nat(4000),
    count: fc.oneof(fc.nat(4), fc.nat(900)),
    stride: fc.constantFrom(1, 1, 2, 37),
    op: fc.constantFrom('put', 'put', 'remove'),
  })

  it('is after any patches what a map is, and shares every chunk that no patch touched', () => {
    fc.assert(
      fc.property(fc.nat(2500), fc.array(step, { minLength: 1, maxLength: 8 }), (rows, steps) => {
        let table = big(rows)
        const oracle = new Map([...table.rows()].map((one) => [idOf(one), one]))
        for (const [turn, { from, count, stride, op }] of steps.entries()) {
          const before = table
          const touched = Array.from({ length: count }, (_, i) => from + i * stride)
          const ids = touched.map((i) => idOf(podOf(i, 0)))
          if (op === 'put') {
            const put = touched.map((i) => podOf(i, turn + 1))
            for (const one of put) oracle.set(idOf(one), one)
            table = table.patch(Table.of(FIELDS, put), [])
          } else {
            for (const id of ids) oracle.delete(id)
            table = table.patch(Table.empty, ids)
          }
          expectSound(table)
          const inOrder = [...oracle.values()].sort((a, b) => (isBefore(a, b) ? -1 : 1))
          expect([...table.rows()]).toEqual(inOrder)
          const { put, removed } = table.diff(before)
          expect(before.patch(put, removed).equals(table)).toBe(true)
          expect(put.size).toBeLessThanOrEqual(op === 'put' ? count : 0)
          expect(removed.length).toBeLessThanOrEqual(op === 'put' ? 0 : count)
          // A chunk that held none of the rows is the same, but for two beside those that had to be joined.
          const isTouched = (chunk: Table['chunks'][number]) =>
            touched.some((i) => {
              const { namespace, name } = keyOf(i)
              const place = [...chunk.keys.names].indexOf(name)
              return place >= 0 && chunk.keys.namespaces.at(place) === namespace
            })
          const lost = before.chunks.filter((chunk) => !table.chunks.includes(chunk) && !isTouched(chunk))
          if (count <= 4) expect(lost.length).toBeLessThanOrEqual(2)
          expect(stored(table)?.equals(table)).toBe(true)
          const anew = Table.of(FIELDS, table.rows())
          expect(anew.equals(table)).toBe(true)
          expect(anew.basedOn(table)).toBe(table)
        }
      }),
      { numRuns: 60 },
    )
  })

  it('leaves no dust and no words behind after thousands of small patches', () => {
    let table = big(4000)
    for (let turn = 1; turn < 4000; turn++) {
      const [at, gone] = [(turn * 769) % 4000, (turn * 331) % 4000]
      table = table.patch(Table.of(FIELDS, [podOf(at, turn)]), [idOf(podOf(gone, 0))])
    }
    expectSound(table)
    expect(table.size / table.chunks.length).toBeGreaterThan(128)
    expect(table.bytes).toBeLessThan(1.75 * Table.of(FIELDS, structuredClone([...table.rows()])).bytes)
  })

  it('copies one chunk for one row, and of it only what differs', () => {
    const table = big(3000)
    const place = 1500
    const { values, ...one } = table.row(place)
    const next = table.patch(Table.of(FIELDS, [{ ...one, values: { ...values, cpu: 12345.5 } }]), [])
    const at = next.chunks.findIndex((chunk, i) => chunk !== table.chunks[i])
    expect(next.chunks.filter((chunk) => !table.chunks.includes(chunk))).toHaveLength(1)
    const [before, after] = [table.chunks[at]!, next.chunks[at]!]
    expect(after.keys).toBe(before.keys)
    expect(after.labels).toBe(before.labels)
    expect(after.columns.filter((column, i) => column !== before.columns[i])).toHaveLength(1)
    expect(next.column('cpu')?.(place)).toBe(12345.5)
    expect(table.column('cpu')?.(place)).toBe(values.cpu)
  })

  it('changes every value of a field, and no chunk where none changes', () => {
    const table = big(2000)
    for (const field of FIELDS) {
      const mapped = changedIn(table, field, (value) =>
        typeof value === 'string' || typeof value === 'number' ? `${value}!` : value,
      )
      expect([...mapped.rows()]).toEqual(
        [...table.rows()].map(({ values, ...row }) => {
          const value = values[field] ?? null
          const isChanged = typeof value === 'string' || typeof value === 'number'
          return { ...row, values: { ...values, [field]: isChanged ? `${value}!` : value } }
        }),
      )
      expect(stored(mapped)?.equals(mapped)).toBe(true)
      expect(changedIn(table, field, (value) => value)).toBe(table)
    }
  })

  it('takes further columns beside its own, chunk by chunk', () => {
    const table = big(2000)
    const wider = table.mapChunks(
      (chunk) => ({ ...chunk, columns: [...chunk.columns, columnOfOne<JsonValue>('x')] }),
      [...FIELDS, 'more'],
    )
    expect(wider.row(1234)).toEqual({ ...table.row(1234), values: { ...table.row(1234).values, more: 'x' } })
    expect(wider.equals(table)).toBe(false)
    expect(wider.changes(table).changed).toHaveLength(2000)
  })

  it('keeps every chunk where a patch says what is there', () => {
    const table = big(2000)
    expect(table.patch(table.only([3, 700, 1999]), ['nobody'])).toBe(table)
    expect(table.patch(Table.of(FIELDS, [podOf(700, 0)]), [])).toBe(table)
  })

  it('names tables of equal keys alike, and no others; gives a step that is asked for again the very same table', () => {
    const table = big(2000)
    const put = Table.of(FIELDS, [{ ...podOf(700, 3), labels: { step: '1' } }])
    const removed: string[] = []
    const stepped = table.patch(put, removed)
    expect(stepped).not.toBe(table)
    expect(stepped.keys).toBe(table.keys)
    expect(table.patch(put, removed)).toBe(stepped)
    expect(table.patch(put, [stepped.idAt(0)]).keys).not.toBe(table.keys)
    expect(table.patch(Table.of(FIELDS, [{ ...podOf(700, 3), name: 'new' }]), []).keys).not.toBe(table.keys)
    expect([...stepped.rows()]).toEqual([...table.rows()].map((row, i) => (i === 700 ? put.row(0) : row)))
  })

  it('reads at random places what it reads in order', () => {
    const table = big(2000)
    const [ip, all] = [table.column('ip')!, [...table.rows()]]
    fc.assert(
      fc.property(fc.nat(1999), (place) => {
        expect(ip(place)).toBe(all[place]?.values.ip)
        expect(table.nameAt(place)).toBe(all[place]?.name)
        expect(table.firstNotBefore(keyOf(place).namespace, `${keyOf(place).name}!`)).toBe(place + 1)
      }),
    )
    expect(() => ip(2000)).toThrow(RangeError)
  })
})
