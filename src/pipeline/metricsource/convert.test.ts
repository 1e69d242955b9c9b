import { describe, expect, it } from 'vitest'
import type { ScalarValue } from '#model'
import { compileMetricSource } from './compile.ts'
import { MAX_TEXT } from './convert.ts'
import type { FieldType } from './types.ts'

const NONE = Symbol('the field is not there')

/** What one field of this type is in an object with this value, through the whole of compiling and collecting. */
function read(type: FieldType, value: unknown, more: { path?: string; default?: string } = {}) {
  const { source, findings } = compileMetricSource({
    metadata: { name: 's', namespace: 'n' },
    spec: {
      source: { apiVersion: 'v1', kind: 'Thing' },
      fields: [
        { name: 'v', path: more.path ?? '.x', type, ...(more.default === undefined ? {} : { default: more.default }) },
      ],
    },
  })
  if (!source) throw new Error(JSON.stringify(findings))
  const builder = source.collect(0)
  builder.add({ metadata: { name: 'o' }, ...(value === NONE ? {} : { x: value }) })
  const [report] = builder.reports()
  const column = builder.rows().column('v')
  return { value: column?.(0), missing: report?.missing, malformed: report?.malformed, example: report?.example }
}
const UNFIT = Symbol('null, and counted as malformed')

const table: Readonly<Record<FieldType, readonly (readonly [unknown, ScalarValue | typeof UNFIT])[]>> = {
  string: [
    ['text', 'text'],
    ['', ''],
    [5, '5'],
    [-0, '0'],
    [2.5, '2.5'],
    [1e21, '1000000000000000000000'],
    [1e-7, '0.0000001'],
    [true, 'true'],
    [false, 'false'],
    [['a', 'b'], '["a","b"]'],
    [{ a: 'x', b: [1, null] }, '{"a":"x","b":[1,null]}'],
    [[], '[]'],
    ['x'.repeat(MAX_TEXT), 'x'.repeat(MAX_TEXT)],
    ['x'.repeat(MAX_TEXT + 1), UNFIT],
    [['x'.repeat(MAX_TEXT)], UNFIT],
  ],
  integer: [
    ['12', 12],
    ['+12', 12],
    ['-12', -12],
    ['007', 7],
    [12, 12],
    [12.9, 12],
    [-12.9, -12],
    [-0.5, 0],
    [' 12', UNFIT],
    ['12.0', UNFIT],
    ['1e3', UNFIT],
    ['', UNFIT],
    ['twelve', UNFIT],
    ['9'.repeat(300), UNFIT],
    [true, UNFIT],
    [[], UNFIT],
    [{}, UNFIT],
  ],
  float: [
    ['12.5', 12.5],
    ['1e3', 1000],
    ['-.5', -0.5],
    [7, 7],
    [0.1, 0.1],
    ['NaN', UNFIT],
    ['Inf', UNFIT],
    ['1e999', UNFIT],
    ['', UNFIT],
    [false, UNFIT],
    [[1], UNFIT],
  ],
  boolean: [
    [true, true],
    [false, false],
    ['true', true],
    ['TRUE', true],
    ['True', true],
    ['1', true],
    ['false', false],
    ['yes', false],
    ['', false],
    [1, true],
    [0, false],
    [-0.5, true],
    [[], UNFIT],
    [{}, UNFIT],
  ],
  quantity: [
    ['500m', 500],
    ['1001m', 1001],
    ['5Gi', 5368709120],
    ['2', 2],
    ['0.5', 0.5],
    ['1k', 1000],
    ['10K', 10000],
    ['1.5K', 1500],
    ['-1K', -1000],
    [' 5Gi ', 5368709120],
    ['\t500m\n', 500],
    [' 2 ', 2],
    ['1e3', 1000],
    [3, 3],
    ['1KK', UNFIT],
    ['1e3K', UNFIT],
    ['K', UNFIT],
    ['  ', UNFIT],
    [0.25, 0.25],
    ['', UNFIT],
    ['5 Gi', UNFIT],
    [true, UNFIT],
    [['5Gi'], UNFIT],
  ],
  cpu: [
    ['500m', 0.5],
    ['1001m', 1.001],
    ['2', 2],
    ['100u', 0.0001],
    [' 2 ', UNFIT],
    ['1K', UNFIT],
    [0.5, 0.5],
    ['much', UNFIT],
    [true, UNFIT],
  ],
  bytes: [
    ['5Gi', 5368709120],
    ['9007199254740991', 9007199254740991],
    ['1500m', 2],
    ['0.1Gi', 107374183],
    [1024, 1024],
    [1.5, 2],
    ['big', UNFIT],
    [false, UNFIT],
  ],
  timestamp: [
    ['2026-11-21T10:00:00Z', '2026-11-21T10:00:00Z'],
    ['2026-11-21T10:00:00.123456789+01:00', '2026-11-21T10:00:00.123456789+01:00'],
    ['2024-02-29T00:00:00Z', '2024-02-29T00:00:00Z'],
    ['', ''],
    ['2026-11-21t10:00:00z', UNFIT],
    ['2026-11-21 10:00:00Z', UNFIT],
    ['2026-11-21T10:00:00', UNFIT],
    ['2026-13-01T10:00:00Z', UNFIT],
    ['2026-02-29T10:00:00Z', UNFIT],
    ['1900-02-29T10:00:00Z', UNFIT],
    ['2026-04-31T10:00:00Z', UNFIT],
    ['2026-11-21T24:00:00Z', UNFIT],
    ['2026-11-21T10:60:00Z', UNFIT],
    ['2026-11-21T10:00:60Z', UNFIT],
    ['2026-11-21T10:00:00+24:00', UNFIT],
    [1700000000, UNFIT],
    [true, UNFIT],
    [[], UNFIT],
  ],
  arrayLength: [
    [[], 0],
    [[1, null, 'x'], 3],
    ['3', UNFIT],
    [3, UNFIT],
    [{ a: 1, b: null }, 2],
    [{}, 0],
    [true, UNFIT],
  ],
}

const shown = (value: unknown) => (JSON.stringify(value) ?? 'nothing').slice(0, 60)

describe('a field', () => {
  for (const [type, rows] of Object.entries(table)) {
    it.each(rows.map(([value, expected]) => [shown(value), value, expected] as const))(
      `of type ${type} reads %s`,
      (_, value, expected) => {
        const result = read(type as FieldType, value)
        expect(result).toMatchObject(
          expected === UNFIT
            ? { value: null, malformed: 1, missing: 0 }
            : { value: expected, malformed: 0, missing: 0 },
        )
      },
    )
    it(`of type ${type} is null where nothing is there, or null`, () => {
      expect(read(type as FieldType, NONE)).toMatchObject({ value: null, missing: 1, malformed: 0 })
      expect(read(type as FieldType, null)).toMatchObject({ value: null, missing: 1, malformed: 0 })
    })
  }

  it.each([
    ['string', 'Filesystem', 'Filesystem'],
    ['integer', '1', 1],
    ['float', '0.5', 0.5],
    ['boolean', '1', true],
    ['boolean', 'TRUE', true],
    ['boolean', 'no', false],
    ['quantity', '500m', 500],
    ['quantity', '1Gi', 1073741824],
    ['cpu', '500m', 0.5],
    ['bytes', '1Ki', 1024],
    ['timestamp', '2026-01-01T00:00:00Z', '2026-01-01T00:00:00Z'],
    ['arrayLength', '0', 0],
  ] as const)('of type %s takes its default %j where it is missing, null or malformed', (type, text, value) => {
    expect(read(type, NONE, { default: text })).toMatchObject({ value, missing: 1, malformed: 0 })
    expect(read(type, null, { default: text })).toMatchObject({ value, missing: 1, malformed: 0 })
    if (type === 'string' || type === 'boolean') return
    expect(read(type, true, { default: text })).toMatchObject({ value, missing: 0, malformed: 1 })
  })

  it('of a path of several ways is the one value it finds', () => {
    const options = { path: '.x[?(@.type=="Ready")].status' }
    expect(read('string', [{ type: 'Ready', status: 'True' }], options).value).toBe('True')
    expect(read('boolean', [{ type: 'Ready', status: 'True' }, { type: 'Other' }], options).value).toBe(true)
    expect(read('string', [{ type: 'Other' }], options)).toMatchObject({ value: null, missing: 1 })
  })

  it('of a path of several ways is the list of what it finds, as text; no number', () => {
    const two = [{ n: 1 }, { n: 2 }]
    expect(read('string', two, { path: '.x[*].n' }).value).toBe('[1,2]')
    const malformed = { value: null, malformed: 1, example: '2 values: [1,2]' }
    expect(read('integer', two, { path: '.x[*].n' })).toMatchObject(malformed)
    expect(read('bytes', two, { path: '.x[*].n' })).toMatchObject(malformed)
  })

  it('of type arrayLength counts what a path of several ways finds, 0 where nothing fits', () => {
    expect(read('arrayLength', [{ n: 1 }, { n: 2 }, {}], { path: '.x[*].n' }).value).toBe(2)
    expect(read('arrayLength', [{ n: 1 }, { n: 2 }], { path: '.x[?(@.n>5)]' }).value).toBe(0)
    expect(read('arrayLength', NONE, { path: '.x[?(@.n>5)]' })).toMatchObject({ value: null, missing: 1 })
  })

  it('shows what did not fit, cut', () => {
    expect(read('integer', 'twelve').example).toBe('twelve')
    expect(read('integer', 'x'.repeat(1_000_000)).example).toHaveLength(80)
    expect(read('integer', ['a', { b: 1 }]).example).toBe('["a",{"b":1}]')
    expect(read('string', ['x'.repeat(1_000_000)]).example).toBe('a long list')
  })
})

describe('hostile values', () => {
  const nested = (depth: number) => JSON.parse(`${'['.repeat(depth)}${']'.repeat(depth)}`)

  it('nested ten thousand deep are malformed, and nothing breaks', () => {
    expect(read('string', nested(10_000))).toMatchObject({ value: null, malformed: 1 })
    expect(read('arrayLength', nested(10_000)).value).toBe(1)
    expect(read('integer', nested(10_000))).toMatchObject({ value: null, malformed: 1 })
    expect(read('string', nested(50)).value).toBe('['.repeat(50) + ']'.repeat(50))
  })

  it('of a megabyte are too long', () => {
    const wide = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`key-${i}`, i]))
    expect(read('string', wide)).toMatchObject({ value: null, malformed: 1, example: 'a large object' })
    expect(read('arrayLength', 'x'.repeat(1_000_000))).toMatchObject({ value: null, malformed: 1 })
  })

  it('more than a path may find are malformed', () => {
    const many = Array.from({ length: 20_000 }, (_, i) => i)
    expect(read('string', many, { path: '.x[*]' })).toMatchObject({
      value: null,
      malformed: 1,
      example: 'too many values',
    })
    expect(read('arrayLength', many, { path: '.x[*]' })).toMatchObject({ value: null, malformed: 1 })
    expect(read('arrayLength', many).value).toBe(20_000)
  })

  it('are never what an object inherits', () => {
    for (const path of ['.x.__proto__', '.x.constructor', '.x["toString"]', '.x.constructor.name']) {
      expect(read('string', {}, { path })).toMatchObject({ value: null, missing: 1 })
    }
    expect(read('string', JSON.parse('{"__proto__": "own"}'), { path: '.x.__proto__' }).value).toBe('own')
  })
})
