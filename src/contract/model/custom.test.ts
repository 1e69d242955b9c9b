import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type CustomColumns, type CustomRow, CustomRows, type CustomValue } from './custom.ts'
import { packRows, unpackRows } from './custom-packed.ts'

const names = fc.constantFrom('a', 'b', 'c', '__proto__', 'constructor', 'toString', 'ü', '', '0')
const scalars: fc.Arbitrary<CustomValue> = fc.oneof(
  fc.constantFrom<CustomValue>('', 'x', 'Running', '\ud800', 0, -0, 1, true, false, null),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.string(),
)
const objects = <T>(values: fc.Arbitrary<T>) =>
  fc.array(fc.tuple(names, values), { maxLength: 4 }).map((all) => Object.fromEntries(all))
const row: fc.Arbitrary<CustomRow> = fc.record({
  namespace: fc.constantFrom('', 'a', 'b', 'kube-system'),
  name: fc.constantFrom('x', 'y', 'z', '__proto__', 'z-1', 'Z', '😀'),
  labels: objects(fc.string({ maxLength: 3 })),
  values: objects(scalars),
})
const fieldLists = fc.oneof(fc.constant(['a', 'b']), fc.uniqueArray(names, { maxLength: 5 }))
const tables = fc
  .tuple(fieldLists, fc.array(row, { maxLength: 14 }))
  .map(([fields, rows]) => ({ fields, rows, made: CustomRows.of(fields, rows) }))

const idOf = ({ namespace, name }: CustomRow) => (namespace === '' ? name : `${namespace}/${name}`)
const isBefore = (a: CustomRow, b: CustomRow) =>
  a.namespace < b.namespace || (a.namespace === b.namespace && a.name < b.name)

describe('rows of a source', () => {
  it('are sorted, each once, the later of two, with every field and null where nothing is', () => {
    fc.assert(
      fc.property(tables, ({ fields, rows, made }) => {
        const last = new Map(rows.map((one) => [idOf(one), one]))
        const all = [...made.rows()]
        expect(made.size).toBe(last.size)
        for (const [i, one] of all.entries()) {
          const given = last.get(idOf(one))!
          expect(made.idAt(i)).toBe(idOf(one))
          expect(one.labels).toEqual(given.labels)
          expect(Object.keys(one.values).sort()).toEqual([...fields].sort())
          for (const field of fields) {
            const value = Object.hasOwn(given.values, field) ? given.values[field] : null
            expect(one.values[field]).toBe(value)
            expect(made.column(field)?.[i]).toBe(value)
          }
          if (i > 0) expect(isBefore(all[i - 1]!, one)).toBe(true)
          expect(made.indexOf(one.namespace, one.name)).toBe(i)
        }
        expect(made.indexOf('nowhere', 'x')).toBe(-1)
        expect(made.column('no such field')).toBeUndefined()
        expect(() => made.row(made.size)).toThrow(RangeError)
      }),
    )
  })

  it('come back from their columns, in any order, and from what a store keeps', () => {
    fc.assert(
      fc.property(tables, fc.nat(), ({ made }, turn) => {
        const again = CustomRows.from(JSON.parse(JSON.stringify(made.columns)))
        expect(again?.equals(made)).toBe(true)
        const stored = unpackRows(JSON.parse(JSON.stringify(packRows(made))))
        expect(stored?.equals(made)).toBe(true)
        expect(stored?.columns).toEqual(JSON.parse(JSON.stringify(made.columns)))
        const by = made.size === 0 ? 0 : turn % made.size
        const turned = <T>(list: readonly T[]) => [...list.slice(by), ...list.slice(0, by)]
        const { fields, namespaces, names, labels, values } = made.columns
        const rotated = CustomRows.from({
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

  it('keep equal labels once', () => {
    const labels = () => ({ app: 'x', __proto__: 'y' }) as unknown as Record<string, string>
    const made = CustomRows.of(
      [],
      ['a', 'b'].map((name) => ({ namespace: '', name, labels: labels(), values: {} })),
    )
    expect(made.columns.labels[0]).toBe(made.columns.labels[1])
    expect(packRows(made).labels).toHaveLength(1)
  })

  const good: CustomColumns = { fields: ['f'], namespaces: ['n'], names: ['x'], labels: [{}], values: [[1]] }
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
    ['a value that is an object', { ...good, values: [[{}]] }],
    ['NaN', { ...good, values: [[Number.NaN]] }],
    ['a hole', { ...good, values: [new Array(1)] }],
  ])('are not made of %s', (_, columns) => {
    expect(CustomRows.from(columns as CustomColumns)).toBeUndefined()
    expect(CustomRows.from(good)?.size).toBe(1)
  })

  it.each<[string, unknown]>([
    ['nothing', null],
    ['runs that say too much', { namespaces: [['n', 5]] }],
    ['a run of half a row', { namespaces: [['n', 0.5]] }],
    ['a place of labels that is none', { labelOf: [7] }],
    ['a run that is none', { namespaces: [null] }],
  ])('do not come back from %s', (_, packed) => {
    const whole = packRows(CustomRows.from(good)!)
    expect(unpackRows((packed === null ? null : { ...whole, ...(packed as object) }) as typeof whole)).toBeUndefined()
    expect(unpackRows(whole)?.size).toBe(1)
  })
})

describe('a difference of rows', () => {
  it('leads from any rows to any others of the same fields', () => {
    const pairs = fieldLists.chain((fields) =>
      fc.tuple(fc.array(row, { maxLength: 14 }), fc.array(row, { maxLength: 14 })).map(([a, b]) => ({
        older: CustomRows.of(fields, a),
        // What did not change is mostly the same text, and often another object.
        newer: CustomRows.of(fields, [...a.slice(1).map((one) => structuredClone(one)), ...b]),
      })),
    )
    fc.assert(
      fc.property(pairs, ({ older, newer }) => {
        const { put, removed } = newer.since(older)
        expect(older.patched(put, removed).equals(newer)).toBe(true)
        expect(put.size + removed.length === 0).toBe(newer.equals(older))
        if (newer.equals(older)) expect(older.patched(put, removed)).toBe(older)
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
        const { put, removed } = newer.since(older)
        expect(older.patched(put, removed).equals(newer)).toBe(true)
      }),
      { numRuns: 500 },
    )
  })

  it('keeps the fields where only rows go', () => {
    const older = CustomRows.of(
      ['f'],
      ['a', 'b'].map((name) => ({ namespace: 'n', name, labels: {}, values: { f: 1 } })),
    )
    expect(older.patched(CustomRows.empty, ['n/a', 'n/other', 'b']).columns).toEqual({
      fields: ['f'],
      namespaces: ['n'],
      names: ['b'],
      labels: [{}],
      values: [[1]],
    })
    expect(older.patched(CustomRows.empty, [])).toBe(older)
  })
})

describe('equal rows', () => {
  it('are those with equal fields, keys, labels and values', () => {
    fc.assert(
      fc.property(tables, tables, ({ made: a }, { made: b }) => {
        // -0 is 0 in JSON as well.
        const same = JSON.stringify(packRows(a)) === JSON.stringify(packRows(b))
        if (same) expect(a.equals(b)).toBe(true)
        expect(a.equals(b)).toBe(b.equals(a))
        expect(a.equals(CustomRows.of(a.fields, a.rows()))).toBe(true)
      }),
    )
    const one = (value: CustomValue, labels = {}, field = 'f', name = 'x') =>
      CustomRows.of([field], [{ namespace: 'n', name, labels, values: { [field]: value } }])
    expect(one(0).equals(one(-0))).toBe(true)
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
})
