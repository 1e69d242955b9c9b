import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { RowsAccessView } from '#access'
import { type ClusterState, type RowsState, type ScalarValue, Table, type TableRow, tableRowId } from '#model'
import { cpuMs } from '../../../test/cpu.ts'
import { Best } from './best.ts'
import { setOfRows } from './row-set.ts'
import { aRow, aSource, seenBy } from './test/sources.ts'
import {
  csvCell,
  rowsCsv as csvOf,
  type Located,
  orderedRows,
  pageOfRows as pageOf,
  type RowsQuery,
} from './type-rows.ts'
import { nobody } from './views.ts'
import { VisibleType } from './visible-types.ts'

const source = aSource()

/** Everything is seen, or what is at these places. */
function typeOf(rows: readonly TableRow[], places?: readonly number[], of = source, on = 'west'): VisibleType {
  const state = seenBy(of, rows)
  const cluster: ClusterState = { ...nobody(on), tables: new Map([[of.id, state]]) }
  const custom: RowsAccessView = {
    ...{ result: places ? 'partial' : 'allow', reason: '', whole: places === undefined, metrics: true },
    shows: () => true,
    aggregation: () => true,
    basis: [],
  }
  const left = (rows: Table) => ({
    ...{ question: `${places}`, about: rows, places: places ?? [], count: places?.length ?? 0 },
    ...{ rows, sums: new WeakMap() },
    seenIn: (chunk: number) => {
      const [start, size] = [rows.startOf(chunk), rows.startOf(chunk + 1) - rows.startOf(chunk)]
      const own = (places ?? []).filter((place) => place >= start && place < start + size)
      return setOfRows(
        own.map((place) => place - start),
        size,
      )
    },
  })
  return new VisibleType({ cluster, source: of, name: of.typeName, custom, state, left })
}

/** Of one cluster, as the places of its rows. */
const pageOfRows = (type: VisibleType, asked: Parameters<typeof pageOf>[1]) => {
  const { rows, ...page } = pageOf([type], asked)
  return { ...page, places: rows.map(({ place }) => place) }
}
const orderedPlaces = (type: VisibleType, asked: RowsQuery) => orderedRows([type], asked).map(({ place }) => place)
const rowsCsv = (type: VisibleType, places: readonly number[], headings: 'fields' | 'labels' = 'fields') =>
  [
    ...csvOf(
      places.map((place) => ({ type, place })),
      type.source,
      { headings },
    ),
  ].join('')

const text = fc.constantFrom('a', 'b', 'ab', 'B', '-', '')
const value: fc.Arbitrary<ScalarValue> = fc.oneof(
  fc.constant(null),
  fc.integer({ min: -3, max: 3 }),
  fc.constantFrom('x', 'y', 'xy'),
  fc.boolean(),
)
const row: fc.Arbitrary<TableRow> = fc.record({
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
  it('of versions are in the order of their numbers, a pre-release before its release', () => {
    const versions = ['v1.9.12', 'v1.29.4', 'v1.29.4+k3s1', '4.16.0-rc.2', '4.16.0-rc.10', '4.16.0', '4.16', '10.1']
    const written = versions.map((version, i) => ({
      namespace: '',
      name: `n${7 - i}`,
      labels: {},
      values: { phase: version },
    }))
    const columns = source.columns.map((one) => (one.name === 'phase' ? { ...one, isVersion: true } : one))
    const type = typeOf(written, undefined, { ...source, columns })
    const inOrder = orderedPlaces(type, { sort: 'phase' }).map((place) => type.rows.row(place).values.phase)
    expect(inOrder).toEqual([
      'v1.9.12',
      'v1.29.4',
      'v1.29.4+k3s1',
      '4.16',
      '4.16.0-rc.2',
      '4.16.0-rc.10',
      '4.16.0',
      '10.1',
    ])
  })

  it('are compared with words in either case, items of a list as well', () => {
    const type = typeOf([
      { namespace: '', name: 'a', labels: {}, values: { phase: 'CrashLoopBackOff', size: ['Control', 'worker'] } },
      { namespace: '', name: 'b', labels: {}, values: { phase: 'Running', size: 3 } },
    ])
    const found = (where: string) => pageOfRows(type, { where: [where] }).places
    expect(found('phase=crashloopbackoff')).toEqual([0])
    expect(found('phase!=CRASHLOOPBACKOFF')).toEqual([1])
    expect(found('size=control')).toEqual([0])
    expect(found('size=3.0')).toEqual([1])
  })

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

  it('go on where the last one ended, over several clusters, as far as they are seen, also where its last row has gone', () => {
    const cluster = fc.record({ rows: fc.array(row, { maxLength: 12 }), hidden: fc.nat(), isOne: fc.boolean() })
    const order = fc.record({
      sort: fc.constantFrom('cluster', 'namespace', 'name'),
      order: fc.constantFrom('asc', 'desc'),
    })
    fc.assert(
      fc.property(fc.array(cluster, { maxLength: 3 }), order, fc.integer({ min: 1, max: 4 }), (made, asked, limit) => {
        const clusters = made.map(({ rows, hidden, isOne }, at) => {
          const own = typeOf(rows.map((one) => (isOne ? { ...one, namespace: 'only' } : one))).rows
          const places = Array.from({ length: own.size }, (_, place) => place).filter(
            (place) => !((hidden >> place) & 1),
          )
          return { name: `c${at}`, rows: [...own.rows()], places: hidden % 2 ? places : undefined }
        })
        const types = (without?: string) =>
          clusters.map(({ name, rows, places }) => {
            const left = rows.map((one, at) => ({ one, isSeen: !places || places.includes(at) }))
            const kept = left.filter(({ one }) => `${name} ${tableRowId(one.namespace, one.name)}` !== without)
            const seen = kept.flatMap(({ isSeen }, at) => (isSeen ? [at] : []))
            return typeOf(
              kept.map(({ one }) => one),
              places && seen,
              source,
              name,
            )
          })
        const ids = (page: readonly Located[]) =>
          page.map(({ type, place }) => `${type.cluster.name} ${type.rows.idAt(place)}`)
        const whole = ids(orderedRows(types(), asked))
        const paged: string[] = []
        for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
          const page = pageOf(types(paged.at(-1)), { ...asked, limit, ...(cursor !== undefined && { cursor }) })
          expect(page.total).toBe(whole.length - (paged.length > 0 ? 1 : 0))
          paged.push(...ids(page.rows))
          cursor = page.next ?? undefined
        }
        expect(paged).toEqual(whole)
      }),
      { numRuns: 300 },
    )
  })

  it.each(['asc', 'desc'] as const)(
    'by name, %s, go on where those that are left are of one namespace and those before were not',
    (order) => {
      const [first, other, same] = ['b/m', 'a/n', 'a/m'].map((id) => {
        const [namespace = '', name = ''] = id.split('/')
        return { namespace, name, labels: {}, values: {} }
      })
      for (const left of [[other], [same], [other, same]].map((rows) => rows.flatMap((one) => one ?? []))) {
        const all = [first, ...left].flatMap((one) => one ?? [])
        const ids = (type: VisibleType, places: readonly number[]) => places.map((place) => type.rows.idAt(place))
        const whole = ids(typeOf(all), orderedPlaces(typeOf(all), { sort: 'name', order }))
        const at = whole.indexOf('b/m')
        const { next } = pageOfRows(typeOf(all), { sort: 'name', order, limit: at + 1 })
        if (next === null) continue
        const after = pageOfRows(typeOf(left), { sort: 'name', order, cursor: next })
        expect(ids(typeOf(left), after.places)).toEqual(whole.slice(at + 1))
      }
    },
  )

  it('read nothing of the rows that are not on them, where those lie in order', () => {
    const looked = new Set<string>()
    const rows = Table.reading(
      Array.from({ length: 5000 }, (_, at) => ({ name: `n${(at * 7) % 5000}` })),
      {
        fields: ['size'],
        place: ({ name }) => ({ namespace: '', name }),
        labels: () => ({}),
        values: [({ name }) => looked.add(name).size],
      },
    )
    const type = typeOf([])
    const many = new VisibleType({ ...type, state: { ...seenBy(source, []), rows } })
    const { rows: page, total, next } = pageOf([many], { sort: 'name', limit: 50 })
    expect([page.length, total, next]).toEqual([50, 5000, expect.any(String)])
    expect(page.map(({ place }) => many.rows.row(place).values.size)).toHaveLength(50)
    expect(looked.size).toBe(50)
  })

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
      // Thirty rows take hours to be made smaller: what failed is told as it was found.
      { endOnFailure: true },
    ))

  it('of a hundred thousand rows take moments', () => {
    const many = Array.from({ length: 100_000 }, (_, at) => ({
      namespace: `team-${at % 100}`,
      name: `claim-${(at * 7919) % 100_003}`,
      labels: {},
      values: { size: (at * 31) % 1000, phase: at % 3 === 0 ? 'Bound' : 'Lost' },
    }))
    const type = typeOf(many)
    const began = process.cpuUsage()
    expect(pageOfRows(type, { sort: 'size', order: 'desc', q: 'team-7 bound' }).places).toHaveLength(100)
    expect(pageOfRows(type, {}).total).toBe(100_000)
    // Some 60 ms on an idle core; this only catches what takes ten times as long.
    expect(cpuMs(began)).toBeLessThan(5000)
    expect(type.rows.idAt(pageOfRows(type, {}).places[0] ?? -1)).toBe(tableRowId('team-0', 'claim-0'))
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
      { ...source.columns[0], name: 'free', kind: 'number', unit: 'percent', isComputed: true },
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
    const cluster: ClusterState = { ...nobody('west'), tables: new Map([[declared.id, state]]) }
    const type = new VisibleType({
      cluster,
      source: declared,
      name: declared.typeName,
      custom: typeOf([]).custom,
      state,
    })
    const asOf = new Date(state.freshness?.observedAt ?? 0).toISOString()
    expect(rowsCsv(type, [0, 1], 'labels').split('\r\n')).toEqual([
      'Namespace,Name,size (bytes),phase,free (%),expires,Cluster,Display name,As of',
      `shop,cart,10,'=cmd(),7.5,2025-10-09T08:53:20.000Z,west,none,${asOf}`,
      `shop,db,none,yes,unknown,never,west,none,${asOf}`,
      '',
    ])
    expect(rowsCsv(type, [0]).split('\r\n')[0]).toBe('namespace,name,size,phase,free,expires')
  })

  it('tells what an object has none of from what is not known and from what is hidden', () => {
    const columns = [
      ...source.columns,
      { ...source.columns[0], name: 'used', isRestricted: true },
      { ...source.columns[1], name: 'node', refersTo: 'node' },
      { ...source.columns[0], name: 'later' },
    ] as typeof source.columns
    const declared = aSource('pvc', { columns })
    const rows = Table.of(['size', 'phase', 'used', 'node'], [aRow('shop', 'db')])
    const cells = (whole: boolean, reports: RowsState['reports'] = []) => {
      const state = seenBy(declared, [], { rows, reports })
      const custom = { ...typeOf([]).custom, whole, shows: () => true }
      const type = new VisibleType({ cluster: nobody('west'), source: declared, name: 'pvc', custom, state })
      return rowsCsv(type, [0], 'labels').split('\r\n')[1]?.split(',').slice(2, 7)
    }
    expect(cells(true)).toEqual(['none', 'none', 'unknown', 'none', 'unknown'])
    expect(cells(false)).toEqual(['none', 'none', 'hidden', 'hidden', 'unknown'])
    // One of several did not fit its type: which one is null for that is not kept.
    const unfit = [{ field: 'size', missing: 0, malformed: 1, example: 'many' }]
    expect(cells(true, unfit)).toEqual(['unknown', 'none', 'unknown', 'none', 'unknown'])
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
