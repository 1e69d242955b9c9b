import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { CustomSight } from '#access'
import { type ClusterState, type CustomRow, type CustomValue, customRowId } from '#model'
import { Best } from './best.ts'
import { aSource, seenBy } from './test/sources.ts'
import { csvCell, rowsCsv as csvOf, orderedRows, pageOfRows as pageOf, type RowsQuery } from './type-rows.ts'
import { nobody } from './views.ts'
import { VisibleType } from './visible-types.ts'

const source = aSource()

/** Everything is seen, or what is at these places. */
function typeOf(rows: readonly CustomRow[], places?: readonly number[]): VisibleType {
  const state = seenBy(source, rows)
  const cluster: ClusterState = { ...nobody('west'), custom: new Map([[source.id, state]]) }
  const custom: CustomSight = {
    ...{ result: places ? 'partial' : 'allow', reason: '', whole: places === undefined, metrics: true },
    shows: () => true,
    aggregation: () => true,
    basis: [],
  }
  return new VisibleType(cluster, source, source.typeName, custom, (rows) => ({
    basis: [],
    places: places ?? [],
    rows,
    sums: new WeakMap(),
  }))
}

/** Of one cluster, as the places of its rows. */
const pageOfRows = (type: VisibleType, asked: Parameters<typeof pageOf>[1]) => {
  const { rows, ...page } = pageOf([type], asked)
  return { ...page, places: rows.map(({ place }) => place) }
}
const orderedPlaces = (type: VisibleType, asked: RowsQuery) => orderedRows([type], asked).map(({ place }) => place)
const rowsCsv = (type: VisibleType, places: readonly number[], headings: 'fields' | 'labels' = 'fields') =>
  csvOf(
    places.map((place) => ({ type, place })),
    type.source,
    headings,
  )

const text = fc.constantFrom('a', 'b', 'ab', 'B', '-', '')
const value: fc.Arbitrary<CustomValue> = fc.oneof(
  fc.constant(null),
  fc.integer({ min: -3, max: 3 }),
  fc.constantFrom('x', 'y', 'xy'),
  fc.boolean(),
)
const row: fc.Arbitrary<CustomRow> = fc.record({
  namespace: text,
  name: text.map((name) => `n${name}`),
  labels: fc.constant({}),
  values: fc.record({ size: value, phase: value }),
})
const query: fc.Arbitrary<RowsQuery> = fc.record(
  {
    sort: fc.constantFrom('name', 'namespace', 'size', 'phase'),
    order: fc.constantFrom('asc', 'desc'),
    namespace: text,
    q: fc.constantFrom('a', 'x', 'n b', ''),
    where: fc.array(fc.constantFrom('size>0', 'size<2', 'phase=x', 'phase!=y', 'size=', 'name!=na'), { maxLength: 2 }),
  },
  { requiredKeys: [] },
)

describe('pages of rows', () => {
  it('one after the other are the whole, in order, whatever is asked', () =>
    fc.assert(
      fc.property(fc.array(row, { maxLength: 30 }), query, fc.integer({ min: 1, max: 5 }), (rows, asked, limit) => {
        const type = typeOf(rows)
        const seen: number[] = []
        let cursor: string | undefined
        do {
          const page = pageOfRows(type, { ...asked, limit, ...(cursor !== undefined && { cursor }) })
          expect(page.places.length).toBeLessThanOrEqual(limit)
          seen.push(...page.places)
          cursor = page.next ?? undefined
        } while (cursor !== undefined)
        const { sort = 'name' } = asked
        expect(seen).toEqual(orderedPlaces(type, { ...asked, sort }))
        expect(pageOfRows(type, asked).total).toBe(seen.length)
      }),
    ))

  it('of what is seen are those of a fleet that holds nothing else', () =>
    fc.assert(
      fc.property(fc.array(row, { maxLength: 30 }), query, fc.integer(), (rows, asked, chance) => {
        const all = typeOf(rows)
        const places = Array.from({ length: all.rows.size }, (_, place) => place).filter(
          (place) => (chance >> place) & 1,
        )
        const some = typeOf(rows, places)
        const alone = typeOf([...all.rows.only(places).rows()])
        const told = (type: VisibleType) => {
          const page = pageOfRows(type, { ...asked, limit: 3 })
          return { ...page, places: page.places.map((place) => type.rows.idAt(place)) }
        }
        expect(told(some)).toEqual(told(alone))
        expect(rowsCsv(some, orderedPlaces(some, asked))).toBe(rowsCsv(alone, orderedPlaces(alone, asked)))
      }),
    ))

  it('of a hundred thousand rows take moments', () => {
    const many = Array.from({ length: 100_000 }, (_, at) => ({
      namespace: `team-${at % 100}`,
      name: `claim-${(at * 7919) % 100_003}`,
      labels: {},
      values: { size: (at * 31) % 1000, phase: at % 3 === 0 ? 'Bound' : 'Lost' },
    }))
    const type = typeOf(many)
    const began = performance.now()
    expect(pageOfRows(type, { sort: 'size', order: 'desc', q: 'team-7 bound' }).places).toHaveLength(100)
    expect(pageOfRows(type, {}).total).toBe(100_000)
    // Some 60 ms on an idle core; this only catches what takes ten times as long.
    expect(performance.now() - began).toBeLessThan(5000)
    expect(type.rows.idAt(pageOfRows(type, {}).places[0] ?? -1)).toBe(customRowId('team-0', 'claim-0'))
  })
})

describe('the best', () => {
  it('are those that a sort puts first', () =>
    fc.assert(
      fc.property(fc.uniqueArray(fc.integer()), fc.nat(10), (items, most) => {
        const best = new Best<number>(most, (left, right) => left - right)
        for (const item of items) best.add(item)
        expect(best.sorted()).toEqual(items.toSorted((left, right) => left - right).slice(0, most))
      }),
    ))
})

describe('a file with labels', () => {
  it('says units, moments, yes and no as people read them, and of which cluster and when', () => {
    const columns = [
      ...source.columns,
      { ...source.columns[0], name: 'free', kind: 'number', unit: 'percent' },
      { ...source.columns[0], name: 'expires', kind: 'any', unit: 'time' },
    ] as typeof source.columns
    const declared = aSource('pvc', { columns })
    const state = seenBy(declared, [
      {
        namespace: 'shop',
        name: 'cart',
        labels: {},
        values: { size: 10, phase: '=cmd()', free: 7.5, expires: 1_760_000_000 },
      },
      { namespace: 'shop', name: 'db', labels: {}, values: { size: null, phase: true, free: null, expires: 'never' } },
    ])
    const cluster: ClusterState = { ...nobody('west'), custom: new Map([[declared.id, state]]) }
    const type = new VisibleType(cluster, declared, declared.typeName, typeOf([]).custom, (rows) => ({
      ...{ basis: [], places: [], rows, sums: new WeakMap() },
    }))
    const asOf = new Date(state.freshness?.observedAt ?? 0).toISOString()
    expect(rowsCsv(type, [0, 1], 'labels').split('\r\n')).toEqual([
      'Namespace,Name,size (bytes),phase,free (%),expires,Cluster,Display name,As of',
      `shop,cart,10,'=cmd(),7.5,2025-10-09T08:53:20.000Z,west,,${asOf}`,
      `shop,db,,yes,,never,west,,${asOf}`,
      '',
    ])
    expect(rowsCsv(type, [0]).split('\r\n')[0]).toBe('namespace,name,size,phase,free,expires')
  })
})

describe('a cell', () => {
  it.each([
    [null, ''],
    [-5, '-5'],
    [true, 'true'],
    ['plain', 'plain'],
    ['=1+1', "'=1+1"],
    ['+1', "'+1"],
    ['@x', "'@x"],
    ['-x', "'-x"],
    ['\tx', "'\tx"],
    ['a,"b"\n', '"a,""b""\n"'],
    ['=a,b', '"\'=a,b"'],
  ])('of %j is %j', (given, expected) => expect(csvCell(given)).toBe(expected))
})
