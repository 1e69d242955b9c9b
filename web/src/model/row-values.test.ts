import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { aggregation, column } from '../../testing/customs.ts'
import { aCluster } from '../../testing/worlds.ts'
import { momentOf, type TypeOnClusterView } from '../contract.ts'
import {
  amountWord,
  asOfNow,
  barsOf,
  type CollectionStatus,
  collectionStatusOf,
  fleetTotal,
  formatNumber,
  formatQuantity,
  isWrong,
  newestOf,
  parseQuantityText,
  pastUsage,
  rowsQuestion,
  sayScalar,
  titleOf,
  unreadWord,
  usageBasis,
} from './row-values.ts'

const on = (wish: Partial<TypeOnClusterView> = {}): TypeOnClusterView => ({
  cluster: 'west',
  displayName: '',
  part: {
    outcome: 'complete',
    code: '',
    message: '',
    attemptedAt: 1000,
    freshness: { observedAt: 1000, receivedAt: 1000, source: 'pull' },
    count: 3,
  },
  truncated: false,
  errors: [],
  errorCount: 0,
  outdated: false,
  stale: false,
  filtered: false,
  aggregations: {},
  ...wish,
})
describe('usage, which has an age of its own', () => {
  const { freshness, ...read } = on().part
  const measured = (outcome: 'complete' | 'unreachable' | 'absent', at: number | null, message = '') => ({
    measured: {
      ...read,
      outcome,
      message,
      freshness: freshness && at !== null ? { ...freshness, observedAt: at } : null,
    },
  })

  it('is of the past from the first time it could not be read', () => {
    expect(pastUsage(on())).toBeNull()
    expect(pastUsage(on(measured('complete', 900)))).toBeNull()
    expect(pastUsage(on(measured('unreachable', 900, 'no answer')))).toEqual({ at: 900, why: 'no answer' })
    expect(pastUsage(on(measured('unreachable', null, 'no answer')))).toBeNull()
  })

  it('adds up to what is as old as its oldest number', () => {
    expect(usageBasis([on(), on(measured('absent', null))])).toBeNull()
    expect(
      usageBasis([
        on(measured('complete', 900)),
        on(measured('unreachable', 300)),
        on(measured('unreachable', null)),
        on(measured('absent', null)),
        on({ ...measured('complete', 800), stale: true }),
      ]),
    ).toEqual({ of: 4, counted: 3, current: 1, oldestAt: 300 })
  })
})

const failed = (outcome: 'absent' | 'forbidden' | 'unreachable') =>
  on({ part: { ...on().part, outcome, freshness: null, count: 0 }, aggregations: {} })

describe('values with their units', () => {
  it.each([
    [5 * 2 ** 30, 'bytes', '5 Gi'],
    [0.25, 'cores', '0.25 cores'],
    [49.9401, 'percent', '49.94 %'],
    [7200, 'seconds', '2 h'],
    [0.5, 'seconds', '0.5 s'],
    [-90, 'seconds', '−90 s'],
    [1234.5, 'none', '1,234.5'],
  ] as const)('says %d %s as %s', (value, unit, text) => expect(formatQuantity(value, unit)).toBe(text))
  it('rounds nothing that is not nothing to nothing', () => {
    expect(formatNumber(0.0004)).toBe('0.0004')
    expect(formatNumber(0)).toBe('0')
    fc.assert(
      fc.property(fc.double({ noNaN: true, min: 1e-12, max: 1e12 }), (value) => !/^[-−]?0$/.test(formatNumber(value))),
    )
  })
  it('tells nothing, no and zero apart', () => {
    expect(sayScalar(null, 'bytes')).toBe('none')
    expect(sayScalar(false, 'none')).toBe('no')
    expect(sayScalar(0, 'bytes')).toBe('0 B')
    expect(sayScalar('[["web",3,true],["log",0,false]]', 'none')).toBe('web 3, out of memory; log 0')
    for (const text of ['[[', '[[1]]', '[[a', '[]', '["web"]']) expect(sayScalar(text, 'none')).toBe(text)
  })
  it.each([
    ['2024-05-01T10:00:00Z', Date.UTC(2024, 4, 1, 10)],
    [1_714_557_600, Date.UTC(2024, 4, 1, 10)],
    [1_714_557_600_000, Date.UTC(2024, 4, 1, 10)],
    ['soon', undefined],
    [null, undefined],
    [true, undefined],
    [-5, undefined],
  ])('reads the moment %s as %s', (value, at) => expect(momentOf(value)).toBe(at))
})

describe('titleOf', () => {
  it.each([
    ['total_capacity_bytes', 'bytes', 'Total capacity'],
    ['totalCapacity', 'none', 'Total capacity'],
    ['avg_used_percent', 'percent', 'Average used'],
    ['bytes', 'bytes', 'Bytes'],
    ['p95CPU', 'cores', 'P95 CPU'],
    ['___', 'none', '___'],
  ] as const)('writes %s (%s) as %s', (name, unit, title) => expect(titleOf(name, unit)).toBe(title))
})

describe('amountWord', () => {
  it.each([
    [false, 'OOM kills', 'OOM kills'],
    [false, 'Restarts', 'restarts'],
    [true, 'replicas', 'total desired'],
  ])('of a kind (declared: %s) with the column %s is %s', (isDeclared, label, word) => {
    const columns = [column('kills', { label })]
    expect(amountWord(aggregation('totalDesired', 'sum', { field: 'kills' }), { columns, isDeclared })).toBe(word)
  })
})

describe('asOfNow', () => {
  const { view } = aCluster('west', 9000)
  const unreached = { ...view, checkedAt: 2000, lastSyncAt: 900 }
  it('is old from the first round that failed, not only when its time is over', () => {
    expect(asOfNow(on(), unreached).stale).toBe(true)
    expect(asOfNow(on(), undefined).stale).toBe(false)
    expect(asOfNow(on(), { ...unreached, lastSyncAt: 2000 }).stale).toBe(false)
    expect(asOfNow(on(), { ...unreached, checkedAt: 1000 }).stale).toBe(false)
  })
  it('is not old where only nodes are refused', () => {
    const { node } = view.parts
    const refused = {
      ...unreached,
      parts: { ...view.parts, ...(node && { node: { ...node, outcome: 'forbidden' as const } }) },
    }
    expect(asOfNow(on(), refused).stale).toBe(false)
  })
})

describe('standingOf', () => {
  it.each<[CollectionStatus, TypeOnClusterView]>([
    ['collected', on()],
    ['empty', on({ part: { ...on().part, count: 0 } })],
    ['partly', on({ errorCount: 1 })],
    ['stale', on({ stale: true, errorCount: 1 })],
    ['absent', failed('absent')],
    ['forbidden', failed('forbidden')],
    ['unreachable', failed('unreachable')],
    ['waiting', on({ part: { ...on().part, freshness: null } })],
  ])('says %s', (status, of) => expect(collectionStatusOf(of)).toBe(status))
  it('does not call it trouble that a cluster serves no such kind, or has none', () => {
    expect([failed('absent'), on({ part: { ...on().part, count: 0 } }), on()].filter(isWrong)).toEqual([])
    expect([failed('forbidden'), failed('unreachable'), on({ stale: true })].filter(isWrong)).toHaveLength(3)
  })
})

describe('fleetTotal', () => {
  const sum = aggregation('capacity', 'sum')
  const two = [on({ aggregations: { capacity: 5 } }), on({ cluster: 'east', aggregations: { capacity: 7 } })]
  it('adds counts and sums, and takes the least of the least', () => {
    expect(fleetTotal(sum, two)).toEqual({ value: 12, clusters: 2, missing: 0, current: 2, oldestAt: 1000 })
    expect(fleetTotal(aggregation('capacity', 'min'), two)?.value).toBe(5)
    expect(fleetTotal(aggregation('capacity', 'max'), two)?.value).toBe(7)
  })
  it.each(['avg', 'percentile', 'distinct'])('makes no number of several %s', (kind) =>
    expect(fleetTotal(aggregation('capacity', kind), two)).toBeUndefined(),
  )
  it('says how many clusters do not tell theirs, and leaves out those that do not serve the kind', () => {
    const more = [...two, on({ cluster: 'south', aggregations: null }), failed('forbidden'), failed('absent')]
    expect(fleetTotal(sum, more)).toMatchObject({ value: 12, clusters: 2, missing: 2 })
    expect(fleetTotal(sum, [failed('unreachable')])).toBeUndefined()
  })
  it('does not take a sum of nothing that was read for 0, of a cluster or of a group', () => {
    const nothing = on({ cluster: 'south', aggregations: { capacity: null } })
    expect(fleetTotal(sum, [...two, nothing])).toMatchObject({ value: 12, clusters: 2, missing: 1, current: 2 })
    expect(fleetTotal(sum, [nothing])).toMatchObject({ value: null, clusters: 0, missing: 1, current: 0 })
    expect(fleetTotal(sum, [on({ aggregations: { capacity: 0 } }), nothing])).toMatchObject({ value: 0, clusters: 1 })
    const groups = (capacity: Record<string, number | null>) => on({ aggregations: { capacity } })
    const total = fleetTotal({ ...sum, groupBy: 'class' }, [groups({ fast: null, slow: null }), groups({ slow: 0 })])
    expect(total?.value).toEqual({ fast: null, slow: 0 })
  })
  it('is current of the clusters whose last collection ended well, and as old as the oldest', () => {
    const [west, east] = two as [TypeOnClusterView, TypeOnClusterView]
    const failing = { ...east, part: { ...east.part, outcome: 'unreachable' as const } }
    expect(fleetTotal(sum, [west, failing])).toMatchObject({ value: 12, clusters: 2, current: 1 })
    const old = {
      ...east,
      stale: true,
      part: { ...east.part, freshness: { ...east.part.freshness!, observedAt: 400 } },
    }
    expect(fleetTotal(sum, [west, old])).toMatchObject({ current: 1, oldestAt: 400 })
  })
  it('knows no sum where no cluster has a value: nothing is not zero', () => {
    expect(fleetTotal(sum, [on({ aggregations: { capacity: null } })])?.value).toBeNull()
  })
  it('adds groups by their names', () => {
    const grouped = aggregation('by', 'count', { groupBy: 'class' })
    const clusters = [on({ aggregations: { by: { a: 1, b: 2 } } }), on({ aggregations: { by: { b: 3, c: null } } })]
    expect(fleetTotal(grouped, clusters)?.value).toEqual({ a: 1, b: 5, c: null })
  })
  it('does not depend on the order of clusters', () => {
    const clusters = fc.array(fc.option(fc.integer({ min: -1000, max: 1000 })), { minLength: 1, maxLength: 8 })
    fc.assert(
      fc.property(clusters, fc.constantFrom('sum', 'count', 'min', 'max'), (values, kind) => {
        const all = values.map((capacity) => on({ aggregations: { capacity } }))
        const info = aggregation('capacity', kind)
        expect(fleetTotal(info, all.toReversed())).toEqual(fleetTotal(info, all))
      }),
    )
  })
})

describe('barsOf', () => {
  it('puts the greatest first, equals by name, and what has no value last', () => {
    expect(barsOf({ b: 2, none: null, c: 4, a: 2 }).map(({ group, share }) => [group, share])).toEqual([
      ['c', 1],
      ['a', 0.5],
      ['b', 0.5],
      ['none', 0],
    ])
  })
  it('draws nothing for what is below nothing', () => {
    expect(barsOf({ a: -4, b: 0 }).map(({ share }) => share)).toEqual([0, 0])
  })
})

it('newestOf is the newest collection of any cluster, and null without one', () => {
  const later = { ...on().part, freshness: { observedAt: 5000, receivedAt: 5000, source: 'push' as const } }
  expect(newestOf([on(), on({ part: later }), failed('absent')])).toBe(5000)
  expect(newestOf([failed('absent')])).toBeNull()
})

describe('rowsQuestion', () => {
  const columns = [
    column('phase'),
    column('capacity', { kind: 'number', unit: 'bytes' }),
    column('usedPercent', { kind: 'number', unit: 'percent' }),
    column('pending', { kind: 'boolean' }),
  ]
  const ask = (text: string) => rowsQuestion(text, columns)
  it.each([
    ['data payments', { q: 'data payments' }],
    ['"two words"', { q: 'two words' }],
    ['phase:Bound', { where: ['phase=Bound'] }],
    ['-phase:Bound', { where: ['phase!=Bound'] }],
    ['phase!=Bound', { where: ['phase!=Bound'] }],
    ['PHASE:Bound', { where: ['phase=Bound'] }],
    ['capacity>10Gi usedpercent<80%', { where: [`capacity>${10 * 2 ** 30}`, 'usedPercent<80'] }],
    ['capacity:1Ki', { where: ['capacity=1024'] }],
    ['pending:yes', { where: ['pending=true'] }],
    ['phase:none', { where: ['phase='] }],
    ['namespace:payments', { namespace: 'payments' }],
    ['namespace!=payments', { where: ['namespace!=payments'] }],
    ['name:web', { where: ['name=web'] }],
    ['phase~Bo -phase~x', { where: ['phase~Bo', 'phase!~x'] }],
    ['phase:a,b', { where: ['phase=a||phase=b'] }],
    ['-phase:a,b', { where: ['phase!=a', 'phase!=b'] }],
    ['capacity>=1Ki -capacity>2Ki', { where: ['capacity>=1024', 'capacity<=2048'] }],
    ['phase>=v1.29', { where: ['phase>=v1.29'] }],
    ['-word', { where: ['*!~word'] }],
    ['namespace:a namespace:b', { namespace: 'a', where: ['namespace=b'] }],
    ['team:core -tier:db,cache owner:none', { labels: 'team in (core),tier notin (db,cache),!owner' }],
  ])('asks %s as %j', (text, question) => expect(ask(text)).toEqual({ question, faults: [] }))
  it('asks for moments by their age', () => {
    const { question } = rowsQuestion('createdAt<1h', [column('createdAt', { kind: 'number', unit: 'time' })])
    const [, at] = /^createdAt>(\d+)$/.exec(question.where?.[0] ?? '') ?? []
    expect(Math.abs(Date.now() - 3_600_000 - Number(at))).toBeLessThan(60_000)
  })
  it('takes a column by what it is headed with', () => {
    const created = column('createdAt', { label: 'Created', kind: 'number', unit: 'time' })
    const used = column('cpuCores', { label: 'CPU used', kind: 'number' })
    expect(rowsQuestion('created<1h', [created]).question.where?.[0]).toMatch(/^createdAt>\d+$/)
    expect(rowsQuestion('cpuused>0.01', [used])).toEqual({ question: { where: ['cpuCores>0.01'] }, faults: [] })
    for (const text of ['cpu used>0.01', '"CPU used">0.01', 'CPU  used >0.01'])
      expect(rowsQuestion(`${text} web`, [used])).toEqual({
        question: { q: 'web', where: ['cpuCores>0.01'] },
        faults: [],
      })
    expect(rowsQuestion('-cpu used>1 "the cpu used"', [used]).question).toEqual({
      q: 'the cpu used',
      where: ['cpuCores<=1'],
    })
  })
  it.each([
    ['"as of">10', /^asOf>10 is left out: when a row was read is no column that can be asked for/],
    ['as of>10', /^asOf>10 is left out: when a row was read is no column/],
    ['"no such">10', /^"no such">10 is left out: no such is no column here; the \? in the box lists them$/],
    ['"no such":a', /^"no such":a is left out: no such is no column here/],
    ['capacity > 10', /^> has no column before it/],
  ])('asks nothing of %s, and says why', (text, why) => {
    expect(ask(text).faults).toEqual([expect.stringMatching(why)])
    expect(ask(text).question.where).toBeUndefined()
  })
  it.each(['owner>me', 'capacity>many', 'phase:', 'owner:"a b"', 'phsae:Bound'])(
    'leaves out what cannot be asked, and says so: %s',
    (text) => expect(ask(text).faults).toHaveLength(1),
  )
  it('never asks for more than the hub takes, whatever is typed', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 300 }), (text) => {
        const { question } = ask(text)
        expect(question.where?.length ?? 0).toBeLessThanOrEqual(10)
        expect(question.q?.length ?? 0).toBeLessThanOrEqual(200)
      }),
    )
  })
})

describe('parseQuantityText', () => {
  it.each([
    ['250m', 'cores', 0.25],
    ['1.5Gi', 'bytes', 1.5 * 2 ** 30],
    ['2k', 'bytes', 2000],
    ['1h', 'seconds', 3600],
    ['80', 'percent', 80],
    ['-3', 'none', -3],
  ] as const)('reads %s as %s: %d', (text, unit, value) => expect(parseQuantityText(text, unit)).toBe(value))
  it.each([
    ['1Gi', 'none'],
    ['', 'bytes'],
    ['abc', 'seconds'],
    ['1 2', 'none'],
  ] as const)('reads no number in %j (%s)', (text, unit) => expect(parseQuantityText(text, unit)).toBeUndefined())
})

it.each([
  ['no cluster serves it', ['absent', 'absent']],
  ['ClusterPulse may not read it on any cluster that serves it', ['forbidden', 'absent']],
  ['never read', ['unreachable', 'absent']],
  ['never read', []],
] as const)('says %s of a type that is %j', (word, outcomes) => {
  const clusters = outcomes.map((outcome) => ({ part: { outcome } }) as TypeOnClusterView)
  expect(unreadWord({ clusters })).toBe(word)
})
