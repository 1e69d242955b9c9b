import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ScalarValue, scalarOf, Table, type TableRow } from '#model'
import { cpuMs } from '../../../test/cpu.ts'
import { type AggregationPlan, aggregate, MAX_GROUPS, sumsOfNothing, withoutSumsOfNothing } from './aggregate.ts'
import { compileMetricSource } from './compile.ts'
import type { AggregationFunction, FieldType, FilterOperator, SourceObject } from './types.ts'

type Aggregation = NonNullable<SourceObject['spec']['aggregations']>[number]

/** A source with these columns, of the types named, and these aggregations. */
function sourceOf(columns: Readonly<Record<string, FieldType>>, aggregations: readonly Aggregation[]) {
  const { source, findings } = compileMetricSource({
    metadata: { name: 's', namespace: 'n' },
    spec: {
      source: { apiVersion: 'v1', kind: 'Thing' },
      fields: Object.entries(columns).map(([name, type]) => ({ name, path: `.${name}`, type })),
      aggregations: [...aggregations],
    },
  })
  if (!source) throw new Error(JSON.stringify(findings))
  return source
}

const rowsOf = (values: readonly Readonly<Record<string, ScalarValue>>[], fields = ['v', 'g', 'f']): Table =>
  Table.of(
    fields,
    values.map(
      (one, i): TableRow => ({
        namespace: `ns-${i % 2}`,
        name: `o${String(i).padStart(5, '0')}`,
        labels: {},
        values: one,
      }),
    ),
  )

/** The result of one aggregation over rows with these values of `v`. */
function over(aggregation: Omit<Aggregation, 'name'>, values: readonly ScalarValue[], type: FieldType = 'float') {
  const rows = rowsOf(values.map((v) => ({ v })))
  return sourceOf({ v: type, g: 'string', f: 'string' }, [{ name: 'a', ...aggregation }]).aggregate(rows).a
}

describe('functions', () => {
  it.each<[AggregationFunction, readonly ScalarValue[], ScalarValue]>([
    ['count', [1, null, 'x', true], 4],
    ['count', [], 0],
    ['sum', [1, 2.5, null, true, 'x'], 3.5],
    ['sum', ['10', '2.5', '1e1', '1Gi'], 22.5],
    ['sum', [], 0],
    ['sum', [null], 0],
    ['sum', [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1], 1],
    ['sum', [9007199254740991, -9007199254740990], 1],
    ['sum', [1e308, 1e308], null],
    ['avg', [1, 2, null, 'x'], 1.5],
    ['avg', [], null],
    ['avg', [null, 'x'], null],
    ['min', [3, 1, 2], 1],
    ['max', [3, 1, 2], 3],
    ['min', [], null],
    ['max', [null], null],
    ['min', ['b', 'a', 'c'], 'a'],
    ['max', ['b', 'a', 'c', null], 'c'],
    ['max', ['9', '10'], '9'],
    ['max', ['b', 5], 5],
    ['max', ['7', 5], 7],
    ['min', [true, false], null],
    ['max', ['a', true], null],
    ['percentile', [], null],
    ['percentile', [7], 7],
    ['percentile', [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21], 20],
    ['percentile', ['x', null], null],
    ['distinct', [1, 1, 2, '1', true, true, null], 4],
    ['distinct', [], 0],
  ])('%s of %j is %j', (fn, values, result) => {
    expect(over(fn === 'count' ? { function: fn } : { function: fn, field: 'v' }, values)).toBe(result)
  })

  it.each([
    [0, 10],
    [50, 25],
    [25, 17.5],
    [100, 40],
  ])('percentile %d lies between its neighbours', (percentile, result) =>
    expect(over({ function: 'percentile', field: 'v', percentile }, [40, 10, 30, 20])).toBe(result),
  )

  it.each<[Omit<Aggregation, 'name'>, unknown]>([
    [{ function: 'sum', field: 'nothing' }, 0],
    [{ function: 'avg', field: 'nothing' }, null],
    [{ function: 'distinct', field: 'nothing' }, 0],
    [{ function: 'count', field: 'nothing' }, 2],
    [{ function: 'count', groupBy: 'nothing' }, { _unknown_: 2 }],
    [{ function: 'sum', field: 'v', groupBy: 'nothing' }, { _unknown_: 3 }],
    [{ function: 'count', filter: { field: 'nothing', operator: 'equals', value: 'x' } }, 0],
    [{ function: 'count', filter: { field: 'nothing', operator: 'notEquals', value: 'x' } }, 2],
    [{ function: 'sum' }, null],
  ])('of what is not declared see nothing: %j is %j', (aggregation, result) =>
    expect(over(aggregation, [1, 2])).toEqual(result),
  )

  it.each<[Omit<Aggregation, 'name'>, unknown]>([
    [
      { function: 'count', groupBy: 'namespace' },
      { 'ns-0': 2, 'ns-1': 1 },
    ],
    [
      { function: 'sum', field: 'v', groupBy: 'name' },
      { o00000: 1, o00001: 2, o00002: 4 },
    ],
    [{ function: 'distinct', field: 'namespace' }, 2],
    [{ function: 'count', filter: { field: 'namespace', operator: 'equals', value: 'ns-0' } }, 2],
  ])('know namespace and name of the object: %j is %j', (aggregation, result) => {
    const source = sourceOf({ v: 'float' }, [{ name: 'a', ...aggregation }])
    expect(source.aggregate(rowsOf([{ v: 1 }, { v: 2 }, { v: 4 }])).a).toEqual(result)
  })

  it('mean a field that is called namespace before they mean the namespace', () => {
    const source = sourceOf({ namespace: 'string' }, [{ name: 'a', function: 'count', groupBy: 'namespace' }])
    expect(source.aggregate(rowsOf([{ namespace: 'x' }, {}], ['namespace'])).a).toEqual({ x: 1, _unknown_: 1 })
  })

  it('of rows with other columns sees nothing there', () => {
    const source = sourceOf({ v: 'float' }, [
      { name: 's', function: 'sum', field: 'v' },
      { name: 'm', function: 'max', field: 'v' },
      { name: 'n', function: 'count' },
    ])
    expect(source.aggregate(rowsOf([{ other: 1 }], ['other']))).toEqual({ s: 0, m: null, n: 1 })
    expect(source.aggregate(Table.empty)).toEqual({ s: 0, m: null, n: 0 })
  })
})

describe('filters', () => {
  it.each<[FilterOperator, string, ScalarValue, boolean, FieldType?]>([
    ['equals', 'Bound', 'Bound', true],
    ['equals', 'Bound', 'bound', false],
    ['equals', '', '', true],
    ['equals', '', null, false],
    ['equals', '10', 10, true],
    ['equals', '10.0', 10, true],
    ['equals', '1e1', 10, true],
    ['equals', '10.5', 10.5, true],
    ['equals', 'ten', 10, false],
    ['equals', '', 0, false],
    ['equals', '1Gi', 1073741824, true, 'bytes'],
    ['equals', '500m', 500, true, 'quantity'],
    ['equals', '500m', 0.5, true, 'cpu'],
    ['equals', '10', '10.0', false, 'string'],
    ['equals', 'true', true, true, 'boolean'],
    ['equals', 'false', false, true, 'boolean'],
    ['equals', 'True', true, false, 'boolean'],
    ['equals', 'true', 'true', true, 'string'],
    ['equals', 'x', null, false],
    ['notEquals', 'x', 'y', true],
    ['notEquals', 'x', 'x', false],
    ['notEquals', '10.0', 10, false],
    ['notEquals', 'x', null, true],
    ['contains', 'oun', 'Bound', true],
    ['contains', 'OUN', 'Bound', false],
    ['contains', '5', 1.5, true],
    ['contains', 'ru', true, true],
    ['contains', '', null, false],
    ['contains', '"a"', '["a","b"]', true, 'string'],
    ['startsWith', 'Bo', 'Bound', true],
    ['startsWith', '1', 10, true],
    ['startsWith', 'x', null, false],
    ['endsWith', 'nd', 'Bound', true],
    ['endsWith', '.5', 2.5, true],
    ['endsWith', '', null, false],
    ['greaterThan', '5', 6, true],
    ['greaterThan', '5', 5, false],
    ['greaterThan', '5', '6', true],
    ['greaterThan', '-1', 'text', false],
    ['greaterThan', '-1', true, false],
    ['greaterThan', '-1', null, false],
    ['greaterThan', 'text', 5, false],
    ['greaterThan', '1Gi', 1073741825, true, 'bytes'],
    ['greaterThan', '500Mi', '1Gi', true, 'string'],
    ['greaterThan', '1Gi', '500Mi', false, 'string'],
    ['greaterThan', '250m', 0.5, true, 'cpu'],
    ['greaterThan', '2026-01-01T00:00:00Z', '2026-01-01T01:00:00+00:30', true, 'timestamp'],
    ['lessThan', '5', 4, true],
    ['lessThan', '5', 5, false],
    ['lessThan', '1', 'text', false],
    ['lessThan', '1', false, false],
    ['lessThan', '1', null, false],
    ['lessThan', 'text', -5, false],
    ['lessThan', '2026-01-01T00:00:00Z', '2025-12-31T23:59:59Z', true, 'timestamp'],
    ['in', 'a,b', 'a', true],
    ['in', 'a, b ', 'b', true],
    ['in', '[a, b]', 'b', true],
    ['in', '["a","b"]', 'b', true],
    ['in', "['a','b']", 'b', true],
    ['in', '"a","b"', 'a', true],
    ['in', '[[a]]', '[a]', true],
    ['in', 'a,b', 'c', false],
    ['in', 'a,,b', '', false],
    ['in', 'a,"",b', '', true],
    ['in', '["a",""]', '', true],
    ['in', '1,2', 2, true],
    ['in', '[1,2.0]', 2, true],
    ['in', '[true]', true, true, 'boolean'],
    ['in', '', '', false],
    ['in', 'a,b', null, false],
    ['matches', '^B.*d$', 'Bound', true],
    ['matches', 'oun', 'Bound', true],
    ['matches', '^oun', 'Bound', false],
    ['matches', '^1\\.5$', 1.5, true],
    ['matches', 'true', true, true],
    ['matches', '.*', null, false],
  ])('%s %j with %j: %j', (operator, value, found, passes, type) => {
    const filter = { field: 'v', operator, value }
    expect(over({ function: 'count', filter }, [found], type)).toBe(passes ? 1 : 0)
    // Filters that several aggregations share are worked out once: in groups, too.
    const rows = rowsOf([{ v: found, g: 'x' }])
    const grouped = sourceOf({ v: type ?? 'float', g: 'string' }, [
      { name: 'a', function: 'count', filter, groupBy: 'g' },
    ])
    expect(grouped.aggregate(rows).a).toEqual(passes ? { x: 1 } : {})
  })

  it('by a regular expression that would explode elsewhere answer in time', () => {
    const filter = { field: 'v', operator: 'matches' as const, value: '^(a+)+$' }
    const since = process.cpuUsage()
    expect(over({ function: 'count', filter }, ['a'.repeat(8000), `${'a'.repeat(8000)}!`], 'string')).toBe(1)
    expect(cpuMs(since)).toBeLessThan(3000)
  })

  it('by a regular expression look at no text longer than 8192', () => {
    const filter = { field: 'v', operator: 'matches' as const, value: 'a' }
    expect(over({ function: 'count', filter }, ['a'.repeat(8192), 'a'.repeat(8193)], 'string')).toBe(1)
  })

  it('by regular expressions that take more than a second together are null; the others are whole', () => {
    // Nothing in a text tells early that these cannot fit, and each text makes the engine build its states anew.
    const costly = (value: string) => ({ field: 'v', operator: 'matches' as const, value })
    const text = (seed: number) =>
      Array.from({ length: 8000 }, (_, i) => ((i * 2654435761 * seed) >>> 7) % 3)
        .map((n) => (n ? 'a' : 'b'))
        .join('')
    const source = sourceOf({ v: 'string' }, [
      { name: 'costly', function: 'count', filter: costly('[ab]*a[ab]{400}[yz]') },
      { name: 'grouped', function: 'count', filter: costly('[ab]*b[ab]{400}[yz]'), groupBy: '_namespace' },
      { name: 'cheap', function: 'count', filter: { field: 'v', operator: 'contains', value: 'a' } },
      { name: 'all', function: 'count' },
    ])
    const rows = rowsOf(Array.from({ length: 100 }, (_, i) => ({ v: text(2 * i + 1) })))
    const since = process.cpuUsage()
    expect(source.aggregate(rows)).toEqual({ costly: null, grouped: null, cheap: 100, all: 100 })
    expect(cpuMs(since)).toBeLessThan(10_000)
  })
})

describe('groups', () => {
  const grouped = (values: readonly ScalarValue[], more: Partial<Aggregation> = {}) => {
    const rows = rowsOf(values.map((g, i) => ({ g, v: i })))
    return sourceOf({ g: 'string', v: 'float' }, [{ name: 'a', function: 'count', groupBy: 'g', ...more }]).aggregate(
      rows,
    ).a
  }

  it('are called by the text of their value', () =>
    expect(grouped(['a', '', null, 1, 65, 1.5, true, false, 'a'])).toEqual({
      a: 2,
      '': 1,
      _unknown_: 1,
      1: 1,
      65: 1,
      '1.5': 1,
      true: 1,
      false: 1,
    }))

  it('of no rows are none', () => expect(grouped([])).toEqual({}))

  it('hold only what passed the filter', () =>
    expect(grouped(['a', 'b', 'b'], { filter: { field: 'v', operator: 'greaterThan', value: '0' } })).toEqual({ b: 2 }))

  it('have a percentile each, at the place that was asked for', () => {
    const percentile = { function: 'percentile', field: 'v', percentile: 100 } as const
    expect(grouped(['a', 'a', 'b', 'b'], percentile)).toEqual({ a: 1, b: 3 })
    expect(grouped(['a', 'a', 'a'], { function: 'percentile', field: 'v' })).toEqual({ a: 1.9 })
  })

  it('keep the names of objects apart from what objects inherit', () => {
    const result = grouped(['__proto__', 'constructor', 'toString', '__proto__'])
    expect(Object.entries(result ?? {}).toSorted()).toEqual([
      ['__proto__', 2],
      ['constructor', 1],
      ['toString', 1],
    ])
    expect(JSON.parse(JSON.stringify(result))).toEqual(result)
  })

  it('beyond a thousand are one', () => {
    const many = Array.from({ length: MAX_GROUPS + 500 }, (_, i) => `group-${i}`)
    const result = grouped(many) as Readonly<Record<string, number>>
    expect(Object.keys(result)).toHaveLength(MAX_GROUPS + 1)
    expect(result._other_).toBe(500)
    expect(Object.values(result).reduce((sum, one) => sum + one, 0)).toBe(many.length)
  })

  it('have names of bounded length', () => {
    const result = grouped(['x'.repeat(1_000_000), 'x'.repeat(1_000_000)])
    expect(Object.keys(result ?? {})).toEqual([`${'x'.repeat(255)}…`])
  })

  it('can be namespaces', () => {
    const rows = rowsOf([{ v: 1 }, { v: 2 }, { v: 4 }])
    const source = sourceOf({ v: 'float' }, [{ name: 'a', function: 'sum', field: 'v', groupBy: '_namespace' }])
    expect(source.aggregate(rows).a).toEqual({ 'ns-0': 5, 'ns-1': 2 })
  })
})

// ── against a reference that takes its time ─────────────────────────────────────────────────────────────────────────

const decimal = (value: ScalarValue) =>
  typeof value === 'number'
    ? value
    : typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value)
      ? Number(value)
      : undefined

/** What the specification says, row by row. */
function plainly(aggregation: Aggregation, rows: readonly TableRow[]): unknown {
  const { filter, groupBy, function: fn, field = '', percentile = 95 } = aggregation
  const passed = rows.filter(
    ({ values }) => !filter || plainFilter(filter.operator, filter.value, scalarOf(values[filter.field] ?? null)),
  )
  if (groupBy !== undefined) {
    const groups: [string, TableRow[]][] = []
    for (const row of passed) {
      const value = row.values[groupBy] ?? null
      const key = value === null ? '_unknown_' : String(value)
      const group = groups.find(([one]) => one === key)
      if (group) group[1].push(row)
      else groups.push([key, [row]])
    }
    const { groupBy: _, filter: __, ...rest } = aggregation
    return Object.fromEntries(groups.map(([key, members]) => [key, plainly(rest, members)]))
  }
  const all = passed.map(({ values }) => scalarOf(values[field] ?? null)).filter((value) => value !== null)
  const numbers = all.map(decimal).filter((number) => number !== undefined)
  const sorted = numbers.toSorted((a, b) => a - b)
  const allText = all.length > 0 && all.every((value) => typeof value === 'string')
  switch (fn) {
    case 'count':
      return passed.length
    case 'sum':
      return numbers.reduce((sum, number) => sum + number, 0)
    case 'avg':
      return numbers.length === 0 ? null : numbers.reduce((sum, number) => sum + number, 0) / numbers.length
    case 'min':
      return (allText ? all.toSorted()[0] : sorted[0]) ?? null
    case 'max':
      return (allText ? all.toSorted().at(-1) : sorted.at(-1)) ?? null
    case 'distinct':
      return new Set(all.map((value) => `${typeof value} ${value}`)).size
    case 'percentile': {
      if (sorted.length === 0) return null
      const place = (percentile / 100) * (sorted.length - 1)
      const [low = 0, high = 0] = [sorted[Math.floor(place)], sorted[Math.ceil(place)]]
      return low + (high - low) * (place - Math.floor(place))
    }
  }
}

function plainFilter(operator: FilterOperator, wanted: string, value: ScalarValue): boolean {
  if (operator === 'notEquals') return !plainFilter('equals', wanted, value)
  if (value === null) return false
  const [number, limit] = [decimal(value), decimal(wanted)]
  switch (operator) {
    case 'equals':
      return typeof value === 'number' ? value === limit : String(value) === wanted
    case 'contains':
      return String(value).includes(wanted)
    case 'startsWith':
      return String(value).startsWith(wanted)
    case 'endsWith':
      return String(value).endsWith(wanted)
    case 'greaterThan':
      return number !== undefined && limit !== undefined && number > limit
    case 'lessThan':
      return number !== undefined && limit !== undefined && number < limit
    case 'in':
      return wanted.split(',').some((item) => plainFilter('equals', item, value))
    case 'matches':
      return new RegExp(wanted).test(String(value))
  }
}

describe('any aggregations over any rows', () => {
  const values = fc.constantFrom<ScalarValue>(
    null,
    true,
    false,
    '',
    'a',
    'b',
    'ab',
    '10',
    '2.5',
    0,
    1,
    2.5,
    10,
    -3,
    1000,
  )
  const row = fc.record({ v: values, g: values, f: values })
  const aggregation: fc.Arbitrary<Omit<Aggregation, 'name'>> = fc
    .record(
      {
        function: fc.constantFrom<AggregationFunction>('count', 'sum', 'avg', 'min', 'max', 'percentile', 'distinct'),
        field: fc.constantFrom('v', 'g', 'f'),
        groupBy: fc.constantFrom('v', 'g', 'f'),
        percentile: fc.integer({ min: 0, max: 100 }),
        filter: fc.record({
          field: fc.constantFrom('v', 'g', 'f'),
          operator: fc.constantFrom<FilterOperator>(
            ...(['equals', 'notEquals', 'contains', 'startsWith', 'endsWith', 'greaterThan', 'lessThan'] as const),
            ...(['in', 'matches'] as const),
          ),
          value: fc.constantFrom('a', 'b', '1', '10', '2.5', 'true', '0', 'a,10'),
        }),
      },
      { requiredKeys: ['function', 'field'] },
    )
    .map(({ ...one }) => one)

  it('are what the plain reference computes', () =>
    fc.assert(
      fc.property(
        fc.array(row, { maxLength: 30 }),
        fc.array(aggregation, { minLength: 1, maxLength: 8 }),
        (all, some) => {
          const named = some.map((one, i) => ({ name: `a${i}`, ...one }))
          const rows = rowsOf(all)
          const results = sourceOf({ v: 'float', g: 'float', f: 'float' }, named).aggregate(rows)
          for (const one of named) {
            const expected = plainly(one, [...rows.rows()])
            if (typeof expected === 'number') expect(results[one.name]).toBeCloseTo(expected, 9)
            else if (one.groupBy === undefined) expect(results[one.name]).toEqual(expected)
            else expectClose(results[one.name], expected)
          }
        },
      ),
      { numRuns: 500 },
    ))

  it('are the same in whatever order rows came, and finite', () =>
    fc.assert(
      fc.property(
        fc.array(fc.double({ noNaN: true, noDefaultInfinity: true }), { maxLength: 20 }),
        fc.constantFrom<AggregationFunction>('sum', 'avg', 'min', 'max', 'percentile', 'distinct'),
        (numbers, fn) => {
          const result = over({ function: fn, field: 'v' }, numbers)
          expect(result === null || Number.isFinite(result)).toBe(true)
        },
      ),
    ))

  function expectClose(found: unknown, expected: unknown) {
    const [left, right] = [Object.entries(found as object), Object.entries(expected as object)]
    expect(left.map(([key]) => key).toSorted()).toEqual(right.map(([key]) => key).toSorted())
    for (const [key, value] of right) {
      const one = (found as Readonly<Record<string, unknown>>)[key]
      if (typeof value === 'number') expect(one).toBeCloseTo(value, 9)
      else expect(one).toEqual(value)
    }
  }
})

describe('sumsOfNothing', () => {
  const rowsOf = (...values: readonly (number | null)[]) =>
    Table.of(
      ['v', 'g'],
      values.map((v, i) => ({ namespace: '', name: `n${i}`, labels: {}, values: { v, g: v === null ? 'b' : 'a' } })),
    )
  const plan = (wish: Partial<AggregationPlan>): AggregationPlan => ({
    ...{ name: 'total', function: 'sum', field: 'v', filter: undefined, groupBy: undefined, percentile: 0 },
    ...{ isVoid: false, ...wish },
  })
  const told = (rows: Table, wish: Partial<AggregationPlan> = {}) =>
    withoutSumsOfNothing(aggregate([plan(wish)], rows), sumsOfNothing([plan(wish)], rows)).total
  it('tells a sum of rows without a number from one that is 0', () => {
    expect(told(rowsOf(null, null))).toBeNull()
    expect(told(rowsOf(0, null))).toBe(0)
    expect(told(rowsOf(5, -5))).toBe(0)
    expect(told(rowsOf(5, null))).toBe(5)
  })
  it('lets the sum of no rows be 0: they were read, and there is none', () => expect(told(rowsOf())).toBe(0))
  it('knows of no number in a column that is not there', () => {
    expect(told(rowsOf(1, 2), { field: 'w' })).toBeNull()
    expect(aggregate([plan({ field: 'w' })], rowsOf(1, 2))).toEqual({ total: 0 })
  })
  it('tells them apart in each group', () =>
    expect(told(rowsOf(0, null, null), { groupBy: 'g' })).toEqual({ a: 0, b: null }))
  it('leaves counts and other functions as they are', () => {
    expect(told(rowsOf(null), { function: 'count', field: undefined })).toBe(1)
    expect(told(rowsOf(null), { function: 'distinct' })).toBe(0)
  })
})
