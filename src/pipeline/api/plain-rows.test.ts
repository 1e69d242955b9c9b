import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type JsonValue, Table, type TableRow, tableRowId } from '#model'
import { atOnce } from '#runtime'
import { groupSteps } from './row-groups.ts'
import { searchFleet } from './search-index.ts'
import { type PlainCluster, plainGroups, plainRows, plainSearch, type Shown, typesOf } from './test/plain-rows.ts'
import { orderedRows, pageOfRows, type RowsQuery } from './type-rows.ts'

// The fast way over chunks, with what it keeps of them from question to question, and the plain way over rows.

const FIELDS = ['size', 'phase']
const sizes: readonly JsonValue[] = [null, 0, 1, 2, 3, 4.5, 'x', true, ['a', 'b'], []]
const phases: readonly JsonValue[] = [null, 'Running', 'Pending', 'CrashLoopBackOff', 'x', '']

/** Rows of a seed: some columns have few values, some a value per row. */
function rowOf(number: number, seed: number): TableRow {
  const mixed = Math.imul(number + 1, 0x9e3779b1 ^ seed) >>> 0
  const isPlain = (seed & 1) === 0
  return {
    namespace: ['', 'shop', 'team-a', 'team-b'][mixed % 4] ?? '',
    name: `${seed & 8 && mixed % 3 === 0 ? 'Web' : 'web'}-${(mixed >>> 3) % 50}-${number}`,
    labels: { app: ['web', 'db'][mixed % 2] ?? '', ...(seed & 4 ? { number: `${number % 300}` } : {}) },
    values: {
      size: isPlain ? (mixed % 7 === 0 ? null : mixed % 1000) : (sizes[mixed % sizes.length] ?? null),
      phase: seed & 2 ? `p${mixed % 700}` : (phases[(mixed >>> 5) % phases.length] ?? null),
    },
  }
}

const tableOf = (size: number, seed: number): Table =>
  Table.of(
    FIELDS,
    Array.from({ length: size }, (_, number) => rowOf(number, seed)),
  )

/** A few rows of the table with other values and labels: so few that the names are known to be the same. */
const withOtherValues = (rows: Table): Table =>
  Table.of(
    FIELDS,
    [...rows.rows()]
      .slice(0, 8)
      .map((row) => ({ ...row, labels: { app: 'db' }, values: { ...row.values, phase: 'x' } })),
  )

const clusters = fc.array(fc.record({ size: fc.constantFrom(0, 1, 40, 600, 1400), seed: fc.nat(1000) }), {
  maxLength: 3,
})
const query: fc.Arbitrary<RowsQuery> = fc.record(
  {
    sort: fc.constantFrom('name', 'namespace', 'cluster', 'size', 'phase'),
    order: fc.constantFrom('asc', 'desc'),
    namespace: fc.constantFrom('shop', '', 'nowhere'),
    labels: fc.constantFrom('app=web', 'number=17', 'app=none'),
    q: fc.constantFrom('web', 'b-1', 'run', '4', 'shop 1', 'x', ''),
    where: fc.array(
      fc.constantFrom(
        ...[
          'size>1',
          'size<2',
          'size=',
          'size=a',
          'size!=3',
          'phase=running',
          'phase!=x',
          'phase=x||size=0',
          'name~-1',
        ],
        ...['phase!~run', 'namespace=team-a', 'cluster=c1', 'name=web-1-1', 'size~0'],
      ),
      { maxLength: 2 },
    ),
  },
  { requiredKeys: [] },
)
const people: readonly (Shown | undefined)[] = [
  undefined,
  { shows: ({ namespace }) => namespace !== 'shop', looksAt: { names: false, labels: false, fields: false } },
  { shows: ({ name }) => !name.endsWith('7'), looksAt: { names: true, labels: false, fields: false } },
  { shows: ({ labels }) => labels?.app === 'web', looksAt: { names: false, labels: true, fields: false } },
  { shows: ({ values }) => values?.phase !== 'x', looksAt: { names: false, labels: false, fields: true } },
  { shows: () => false, looksAt: { names: false, labels: false, fields: false } },
]
const world = fc.record({
  made: clusters,
  asked: fc.array(fc.tuple(query, fc.nat(people.length - 1)), { minLength: 1, maxLength: 3 }),
  steps: fc.array(fc.record({ cluster: fc.nat(2), number: fc.nat(1500), seed: fc.nat(1000) }), { maxLength: 4 }),
  limit: fc.integer({ min: 1, max: 150 }),
})
const idOf = (cluster: string, namespace: string, name: string) => `${cluster} ${tableRowId(namespace, name)}`

describe('what is answered over chunks', () => {
  it('is what rows say one by one, whoever asks, page by page, before and after rows change', () =>
    fc.assert(
      fc.property(world, ({ made, asked, steps, limit }) => {
        let all: PlainCluster[] = made.map(({ size, seed }, i) => ({ name: `c${i}`, rows: tableOf(size, seed) }))
        const check = () => {
          for (const [question, who] of asked) {
            const shown = people[who]
            const types = typesOf(all, `person ${who}`, shown)
            const plain = plainRows(all, shown, question).map((row) => idOf(row.cluster, row.namespace, row.name))
            const { sort = 'name' } = question
            const sorted = orderedRows(types, { ...question, sort })
            const ids = (rows: typeof sorted) =>
              rows.map(({ type, place }) =>
                idOf(type.cluster.name, type.rows.namespaceAt(place), type.rows.nameAt(place)),
              )
            expect(ids(sorted)).toEqual(plain)
            const first = pageOfRows(types, { ...question, limit })
            expect(ids(first.rows)).toEqual(plain.slice(0, limit))
            expect(first.total).toBe(plain.length)
            if (first.next === null) continue
            const second = pageOfRows(types, { ...question, limit, cursor: first.next })
            expect(ids(second.rows)).toEqual(plain.slice(limit, 2 * limit))
          }
        }
        check()
        for (const { cluster, number, seed } of steps)
          all = all.map((one, i) =>
            i === cluster ? { ...one, rows: one.rows.patch(Table.of(FIELDS, [rowOf(number, seed)]), []) } : one,
          )
        check()
      }),
      { numRuns: 200, endOnFailure: true },
    ))

  it('counts groups as rows do, names the largest, and the rest as one', () =>
    fc.assert(
      fc.property(
        clusters,
        query,
        fc.nat(people.length - 1),
        fc.uniqueArray(fc.constantFrom('cluster', 'namespace', 'size', 'phase', 'name'), {
          minLength: 1,
          maxLength: 3,
        }),
        fc.integer({ min: 1, max: 30 }),
        (made, question, who, by, limit) => {
          const all = made.map(({ size, seed }, i) => ({ name: `c${i}`, rows: tableOf(size, seed) }))
          const rows = plainRows(all, people[who], question)
          const plain = plainGroups(rows, by)
          const { groups, others, total } = atOnce(
            groupSteps(typesOf(all, `person ${who}`, people[who]), { ...question, by, limit, sort: 'count' }),
          )
          expect(total).toBe(rows.length)
          expect(groups).toHaveLength(Math.min(limit, plain.size))
          for (const { values, count } of groups) expect(plain.get(JSON.stringify(values))?.count).toBe(count)
          const largest = [...plain.values()].map(({ count }) => count).sort((a, b) => b - a)
          expect(groups.map(({ count }) => count)).toEqual(largest.slice(0, limit))
          const rest = largest.slice(limit)
          expect([others.groups, others.count]).toEqual([rest.length, rest.reduce((sum, count) => sum + count, 0)])
        },
      ),
      { numRuns: 150, endOnFailure: true },
    ))

  it('finds names as rows do, best first, also letter by letter and again after rows change', () =>
    fc.assert(
      fc.property(
        clusters,
        fc.nat(people.length - 1),
        fc.uniqueArray(fc.constantFrom('web', 'eb', '-1', '1', 'web-1-1', 'shop', 'team', '-a', 'nothing'), {
          minLength: 1,
          maxLength: 3,
        }),
        fc.integer({ min: 1, max: 60 }),
        (made, who, words, limit) => {
          let all = made.map(({ size, seed }, i) => ({ name: `k${'l'.repeat(i)}`, rows: tableOf(size, seed) }))
          const check = (asked: readonly string[]): void => {
            const plain = plainSearch(plainRows(all, people[who], { sort: 'cluster' }), asked)
            const types = typesOf(all, `person ${who}`, people[who])
            const { items, total } = atOnce(searchFleet([], types, asked.join(' '), limit))
            expect(total).toBe(plain.length)
            expect(items.map(({ cluster, namespace, name }) => `${cluster} ${namespace} ${name}`)).toEqual(
              plain.slice(0, limit),
            )
          }
          const [first = ''] = words
          for (let length = 1; length <= first.length; length++) check([first.slice(0, length)])
          check(words)
          all = all.map(({ name, rows }) => ({ name, rows: rows.patch(tableOf(40, 7), []) }))
          check(words)
          // The names stay, and other rows may be seen.
          all = all.map(({ name, rows }) => ({ name, rows: rows.patch(withOtherValues(rows), []) }))
          check(words)
        },
      ),
      { numRuns: 150, endOnFailure: true },
    ))
})
