import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { KubeObject } from '#kube'
import { Table, tableRowId } from '#model'
import { compileMetricSource } from './compile.ts'
import type { SourceObject } from './types.ts'

function sourceOf(spec: Partial<SourceObject['spec']> = {}) {
  const { source, findings } = compileMetricSource({
    metadata: { name: 's', namespace: 'n' },
    spec: {
      source: { apiVersion: 'v1', kind: 'Thing' },
      fields: [
        { name: 'phase', path: '.status.phase' },
        { name: 'size', path: '.spec.size', type: 'integer' },
      ],
      computed: [{ name: 'double', expression: 'size * 2' }],
      ...spec,
    },
  })
  if (!source) throw new Error(JSON.stringify(findings))
  return source
}

/** Without a size or a phase where they are undefined. */
const thing = (namespace: string, name: string, ...[size, phase]: readonly unknown[]): KubeObject => ({
  metadata: namespace === '' ? { name } : { name, namespace },
  ...(size === undefined ? {} : { spec: { size } }),
  ...(phase === undefined ? {} : { status: { phase } }),
})

/** What a collection is, done plainly: every object kept as a row by its name, and put in order at the end. */
class Plainly {
  readonly rows = new Map<string, { namespace: string; name: string; size: unknown; phase: unknown }>()
  add(object: KubeObject) {
    const { namespace = '', name } = object.metadata
    const { size } = (object.spec ?? {}) as { size?: unknown }
    const { phase } = (object.status ?? {}) as { phase?: unknown }
    this.rows.set(tableRowId(namespace, name), { namespace, name, size, phase })
  }
  remove(namespace: string, name: string) {
    this.rows.delete(tableRowId(namespace, name))
  }
  sorted() {
    return [...this.rows.values()]
      .toSorted((a, b) =>
        a.namespace === b.namespace ? (a.name < b.name ? -1 : 1) : a.namespace < b.namespace ? -1 : 1,
      )
      .map(({ namespace, name, size, phase }) => {
        const whole = typeof size === 'number' ? size : null
        const values = { phase: phase ?? null, size: whole, double: whole === null ? 0 : whole * 2 }
        return { namespace, name, labels: {}, values }
      })
  }
  reports() {
    const all = [...this.rows.values()]
    return [
      {
        field: 'phase',
        missing: all.filter(({ phase }) => phase === undefined || phase === null).length,
        malformed: 0,
      },
      {
        field: 'size',
        missing: all.filter(({ size }) => size === undefined || size === null).length,
        malformed: all.filter(({ size }) => typeof size === 'string').length,
      },
      { field: 'double', missing: 0, malformed: 0 },
    ]
  }
}

describe('a collection', () => {
  it('of objects in any order gives rows in theirs', () => {
    const builder = sourceOf().collect(0)
    for (const one of [thing('b', 'x', 1), thing('a', 'z', 2), thing('a', 'y', 3), thing('', 'w', 4)]) builder.add(one)
    const rows = builder.rows()
    expect(rows.fields).toEqual(['phase', 'size', 'double'])
    expect([...rows.rows()].map(({ namespace, name, values }) => [namespace, name, values.double])).toEqual([
      ['', 'w', 8],
      ['a', 'y', 6],
      ['a', 'z', 4],
      ['b', 'x', 2],
    ])
    expect(builder.size).toBe(4)
  })

  it('of nothing has the fields', () => {
    const builder = sourceOf().collect(0)
    expect(builder.rows().size).toBe(0)
    expect(builder.rows().fields).toEqual(['phase', 'size', 'double'])
    expect(builder.reports()).toEqual([
      { field: 'phase', missing: 0, malformed: 0, example: '' },
      { field: 'size', missing: 0, malformed: 0, example: '' },
      { field: 'double', missing: 0, malformed: 0, example: '' },
    ])
  })

  it('keeps the later of two objects of a name, as a list that was read again has', () => {
    const builder = sourceOf().collect(0)
    for (const size of [1, 2, 3]) builder.add(thing('a', 'x', size))
    expect([...builder.rows().rows()].map(({ values }) => values.size)).toEqual([3])
    expect(builder.size).toBe(1)
  })

  it('follows a watch: put in place, removed, come again', () => {
    const builder = sourceOf().collect(0)
    for (const name of ['a', 'b', 'c']) builder.add(thing('n', name, 1))
    const before = builder.rows()
    expect(builder.rows()).toBe(before)
    builder.add(thing('n', 'b', 5))
    builder.remove('n', 'c')
    builder.remove('n', 'nobody')
    builder.add(thing('n', 'd', 7))
    expect(builder.size).toBe(3)
    const after = builder.rows()
    expect([...after.rows()].map(({ name, values }) => [name, values.size])).toEqual([
      ['a', 1],
      ['b', 5],
      ['d', 7],
    ])
    expect([...before.rows()].map(({ name }) => name)).toEqual(['a', 'b', 'c'])
    const { put, removed } = after.diff(before)
    expect([put.size, removed]).toEqual([2, ['n/c']])
  })

  it('removes before rows were asked for', () => {
    const builder = sourceOf().collect(0)
    builder.add(thing('n', 'a'))
    builder.add(thing('n', 'b'))
    builder.remove('n', 'a')
    expect(builder.size).toBe(1)
    expect([...builder.rows().rows()].map(({ name }) => name)).toEqual(['b'])
  })

  it('reports what is missing and malformed of what is there now', () => {
    const builder = sourceOf().collect(0)
    builder.add(thing('n', 'a', 'many', undefined))
    builder.add(thing('n', 'b', undefined, 'Up'))
    expect(builder.reports()).toEqual([
      { field: 'phase', missing: 1, malformed: 0, example: '' },
      { field: 'size', missing: 1, malformed: 1, example: 'many' },
      { field: 'double', missing: 0, malformed: 0, example: '' },
    ])
    builder.add(thing('n', 'a', 5, 'Up'))
    expect(builder.reports()[1]).toEqual({ field: 'size', missing: 1, malformed: 0, example: '' })
    builder.remove('n', 'b')
    expect(builder.reports()[1]).toEqual({ field: 'size', missing: 0, malformed: 0, example: '' })
  })

  it('is what the plain reference is, whatever comes and goes and whenever it is asked', () => {
    const object = fc.record({
      namespace: fc.constantFrom('', 'a', 'b'),
      name: fc.constantFrom('x', 'y', 'z', 'x-1'),
      size: fc.constantFrom<unknown>(1, 2, 3, undefined, null, 'many'),
      phase: fc.constantFrom<unknown>('Up', 'Down', undefined, null),
    })
    const step = fc.oneof(
      { weight: 5, arbitrary: object.map((one) => ({ kind: 'add' as const, ...one })) },
      { weight: 2, arbitrary: object.map((one) => ({ kind: 'remove' as const, ...one })) },
      { weight: 1, arbitrary: fc.constant({ kind: 'rows' as const }) },
      { weight: 1, arbitrary: fc.constant({ kind: 'reports' as const }) },
    )
    const source = sourceOf()
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const [builder, plainly] = [source.collect(0), new Plainly()]
        for (const one of [...steps, { kind: 'rows' as const }, { kind: 'reports' as const }]) {
          if (one.kind === 'add') {
            for (const each of [builder, plainly]) each.add(thing(one.namespace, one.name, one.size, one.phase))
          } else if (one.kind === 'remove') {
            for (const each of [builder, plainly]) each.remove(one.namespace, one.name)
          } else if (one.kind === 'rows') {
            const rows = builder.rows()
            expect([...rows.rows()]).toEqual(plainly.sorted())
            expect(builder.size).toBe(plainly.rows.size)
            expect(Table.from(rows.toColumns())?.equals(rows)).toBe(true)
          } else {
            expect(builder.reports().map(({ example: _, ...report }) => report)).toEqual(plainly.reports())
          }
        }
      }),
      { numRuns: 500 },
    )
  })

  it('gives the same in one go as in pieces', () => {
    const source = sourceOf()
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom('a', 'b'), fc.string({ minLength: 1, maxLength: 3 }), fc.nat(9))),
        (all) => {
          const [whole, pieces] = [source.collect(0), source.collect(0)]
          for (const [namespace, name, size] of all) {
            whole.add(thing(namespace, name, size))
            pieces.add(thing(namespace, name, size))
            pieces.rows()
          }
          expect(pieces.rows().equals(whole.rows())).toBe(true)
        },
      ),
    )
  })
})

describe('hostile objects', () => {
  it('without a name are no rows', () => {
    const builder = sourceOf().collect(0)
    for (const one of [
      null,
      undefined,
      'text',
      {},
      { metadata: null },
      { metadata: {} },
      { metadata: { name: 5 } },
      { metadata: { name: '' } },
      { metadata: { name: 'a/b' } },
    ]) {
      builder.add(one as unknown as KubeObject)
    }
    expect(builder.rows().size).toBe(0)
  })

  it('with fields, labels and values called like what objects inherit are rows like others', () => {
    const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty']
    const source = sourceOf({
      fields: names.map((name) => ({ name, path: `.spec["${name}"]` })),
      computed: [],
      aggregations: [{ name: 'n', function: 'count', groupBy: '__proto__' }],
    })
    const builder = source.collect(0)
    const text = '{"__proto__":"__proto__","constructor":"b","toString":"c"}'
    const object = JSON.parse(
      `{"metadata":{"name":"__proto__","namespace":"constructor","labels":${text}},"spec":${text}}`,
    )
    builder.add(object)
    const row = builder.rows().row(0)
    expect(Object.entries(row.values)).toEqual([
      ['__proto__', '__proto__'],
      ['constructor', 'b'],
      ['toString', 'c'],
      ['hasOwnProperty', null],
    ])
    expect(Object.entries(row.labels)).toEqual(Object.entries(JSON.parse(text)))
    expect(Object.entries(source.aggregate(builder.rows()).n ?? {})).toEqual([['__proto__', 1]])
    expect(({} as Readonly<Record<string, unknown>>).b).toBeUndefined()
  })

  it('with a bomb of labels keep a few of them', () => {
    const labels = Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`label-${i}`, 'x'.repeat(60)]))
    const builder = sourceOf().collect(0)
    builder.add({ metadata: { name: 'bomb', labels } })
    expect(Object.keys(builder.rows().row(0).labels)).toHaveLength(256)
  })

  it('with labels that are no texts keep those that are', () => {
    const builder = sourceOf().collect(0)
    for (const [i, labels] of [{ a: 5, b: 'x' }, null, 'text', ['x'], { c: null }].entries()) {
      builder.add({ metadata: { name: `o${i}`, labels: labels as never } })
    }
    expect([...builder.rows().rows()].map((row) => row.labels)).toEqual([{ b: 'x' }, {}, {}, {}, {}])
  })

  it('of any shape never break a collection', () => {
    const source = sourceOf({
      fields: [
        { name: 'a', path: '.a' },
        { name: 'all', path: '.a[*]' },
        { name: 'n', path: '.a[?(@.b>1)].c', type: 'bytes' },
        { name: 'l', path: '.a', type: 'arrayLength' },
        { name: 't', path: '.a', type: 'timestamp' },
      ],
      computed: [{ name: 'c', expression: 'n / l + len(a)', type: 'integer' }],
      aggregations: [{ name: 's', function: 'sum', field: 'n', groupBy: 'a' }],
    })
    fc.assert(
      fc.property(fc.array(fc.jsonValue(), { maxLength: 5 }), (values) => {
        const builder = source.collect(0)
        for (const [i, a] of values.entries()) builder.add({ metadata: { name: `o${i}` }, a })
        const rows = builder.rows()
        expect(rows.size).toBe(values.length)
        expect(Table.from(JSON.parse(JSON.stringify(rows.toColumns())))?.equals(rows)).toBe(true)
        expect(JSON.parse(JSON.stringify(source.aggregate(rows)))).toEqual(source.aggregate(rows))
      }),
    )
  })

  it('full of text do not fill the memory: beyond 32 Mi characters values are null, and told', () => {
    const source = sourceOf({ fields: [{ name: 'text', path: '.text' }], computed: [] })
    const builder = source.collect(0)
    const object = (i: number, text: string): KubeObject => ({
      metadata: { name: `o${String(i).padStart(4, '0')}` },
      text,
    })
    const long = 'x'.repeat(65_536)
    for (let i = 0; i < 600; i++) builder.add(object(i, long))
    const texts = () => [...builder.rows().rows()].map(({ values }) => values.text)
    const kept = texts().filter((value) => value !== null)
    expect(kept).toHaveLength(512)
    expect(builder.reports()).toMatchObject([
      { missing: 0, malformed: 88, example: expect.stringContaining('too much text') },
    ])
    // Short values still find room; and what goes makes room again when rows were asked for.
    builder.add(object(600, 'short'))
    builder.add(object(601, long))
    for (let i = 0; i < 600; i++) builder.remove('', `o${String(i).padStart(4, '0')}`)
    expect(builder.rows().size).toBe(2)
    for (let i = 700; i < 1000; i++) builder.add(object(i, long))
    expect(texts().filter((value) => value === null)).toHaveLength(1)
    expect(texts()[0]).toBe('short')
  })

  it('many and alike cost little: equal labels and texts are kept once', () => {
    const builder = sourceOf().collect(0)
    for (let i = 0; i < 1000; i++) {
      const phase = ['Pend', 'ing'].join('')
      builder.add({ metadata: { name: `o${i}`, labels: { app: `a${i % 3}` } }, status: { phase } })
    }
    expect(new Set(builder.rows().toColumns().labels).size).toBe(3)
  })
})
