import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { rowFilter } from './filter.ts'
import { readQuestion } from './query.ts'
import { Refusal } from './refusal.ts'
import { reviewOf, routeOf } from './routes.ts'
import { aRow, World } from './testing/world.ts'

const read = (query: string) => readQuestion(new URLSearchParams(query), 'rows')

describe('questions', () => {
  it.each([
    ['', { limit: 500, offset: 0 }],
    ['limit=0&offset=-3', { limit: 500, offset: 0 }],
    ['limit=-1', { limit: 500, offset: 0 }],
    ['limit=20&offset=40', { limit: 20, offset: 40 }],
    ['limit=999999', { limit: 5000, offset: 0 }],
    ['limit=&offset=', { limit: 500, offset: 0 }],
  ])('read %j as the page %j', (query, paging) => expect(read(query).paging).toEqual(paging))

  it.each([
    ['limit=ten', /limit must be a whole number/],
    ['offset=1.5', /offset must be a whole number/],
    ['namepsace=a', /no parameter "namepsace" here; there are namespace, /],
    ['kind=Pod&kind=Node', /kind is given twice/],
    ['namespace=Team', /namespace is "Team"/],
    ['inventory=../x', /no object can have that name/],
    ['offset=1&continue=x', /exclude each other/],
    ['continue=x', /none that was given here/],
  ])('refuse %j, and say which parameter and why', (query, sentence) => {
    expect(() => read(query)).toThrow(sentence)
    expect(() => read(query)).toThrow(Refusal)
  })

  it('are never read as anything else than numbers within their bounds', () =>
    fc.assert(
      fc.property(fc.webQueryParameters(), (query) => {
        try {
          const { paging } = read(query)
          expect(paging.limit).toBeGreaterThanOrEqual(1)
          expect(paging.limit).toBeLessThanOrEqual(5000)
          expect(paging.offset).toBeGreaterThanOrEqual(0)
        } catch (error) {
          expect(error).toBeInstanceOf(Refusal)
        }
      }),
      { numRuns: 30 },
    ))
})

describe('paths', () => {
  const asked = (path: string, query = '') => {
    const route = routeOf(path)
    if (!route) return undefined
    return reviewOf(route, readQuestion(new URLSearchParams(query), route.form, route.named))
  }

  it.each([
    ['/v1alpha1/inventory', '', { verb: 'list', resource: 'kollectinventories' }],
    ['/v1alpha1/inventory', 'namespace=n', { verb: 'list', resource: 'kollectinventories', namespace: 'n' }],
    ['/v1alpha1/inventory', 'inventory=i', { verb: 'list', resource: 'kollectinventories' }],
    [
      '/v1alpha1/inventory',
      'namespace=n&inventory=i',
      { verb: 'get', resource: 'kollectinventories', namespace: 'n', name: 'i' },
    ],
    ['/v1alpha1/inventory/n/i', '', { verb: 'get', resource: 'kollectinventories', namespace: 'n', name: 'i' }],
    ['/v1alpha1/inventory/watch', '', { verb: 'list', resource: 'kollectinventories' }],
    [
      '/v1alpha1/inventory/watch',
      'namespace=n&inventory=i',
      { verb: 'list', resource: 'kollectinventories', namespace: 'n' },
    ],
    ['/v1alpha1/status/inventories', 'namespace=n', { verb: 'list', resource: 'kollectinventories', namespace: 'n' }],
    ['/v1alpha1/status/targets', '', { verb: 'list', resource: 'kollecttargets' }],
    [
      '/inventory',
      'namespace=n&inventory=i',
      { verb: 'get', resource: 'kollectinventories', namespace: 'n', name: 'i' },
    ],
    ['/inventory/watch', '', { verb: 'list', resource: 'kollectinventories' }],
  ])('%s?%s asks for the right that section 21 names', (path, query, review) =>
    expect(asked(path, query)).toEqual(review),
  )

  it.each([
    '/',
    '/v1alpha1',
    '/v1alpha1/inventory/',
    '/v1alpha1/inventory/n',
    '/v1alpha1/inventory/n/i/x',
    '/__proto__',
  ])('%s is nothing', (path) => expect(routeOf(path)).toBeUndefined())

  it('take no name from the query where the path has one', () => {
    expect(() => asked('/v1alpha1/inventory/n/i', 'namespace=other')).toThrow(/no parameter "namespace" here/)
    expect(() => asked('/v1alpha1/inventory/n/%2e%2e')).toThrow(/no object can have that name/)
  })
})

describe('filters', () => {
  const some = <T>(...values: readonly T[]) => fc.option(fc.constantFrom(...values), { nil: undefined })
  const filters = fc.record(
    {
      namespace: some('team-a', 'team-b', 'nowhere'),
      target: some('apps', 'nodes'),
      group: some('apps', 'batch'),
      version: some('v1', 'v2'),
      kind: some('Deployment', 'Node'),
      name: some('web', 'db'),
    },
    { requiredKeys: [] },
  )
  const rows = fc.array(
    fc.record({
      targetNamespace: fc.constantFrom('team-a', 'team-b', ''),
      targetName: fc.constantFrom('apps', 'nodes'),
      namespace: fc.constantFrom('team-a', 'team-b', ''),
      name: fc.constantFrom('web', 'db'),
      group: fc.constantFrom('apps', 'batch'),
      version: fc.constantFrom('v1', 'v2'),
      kind: fc.constantFrom('Deployment', 'Node'),
    }),
    { maxLength: 20 },
  )

  it('take exactly the rows that match every one of them, in canonical order', () =>
    fc.assert(
      fc.property(rows, filters, (all, given) => {
        const filter = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
        const world = new World()
        const byKey = new Map(
          all.map((row) => [[row.targetNamespace, row.targetName, row.namespace, row.name].join('/'), row]),
        )
        for (const row of byKey.values()) {
          const { targetNamespace: namespace, targetName: name } = row
          world.store.target({ namespace, name }).put([aRow(row)])
        }
        const found = [...world.view.read(filter).rows()]
        const expected = [...byKey.entries()]
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([, row]) => row)
          .filter(
            (row) =>
              (filter.namespace === undefined ||
                row.namespace === filter.namespace ||
                row.targetNamespace === filter.namespace) &&
              (filter.target === undefined || row.targetName === filter.target) &&
              (['group', 'version', 'kind', 'name'] as const).every(
                (field) => filter[field] === undefined || row[field] === filter[field],
              ),
          )
        expect(
          found.map(({ targetNamespace, targetName, namespace, name }) => [
            targetNamespace,
            targetName,
            namespace,
            name,
          ]),
        ).toEqual(expected.map((row) => [row.targetNamespace, row.targetName, row.namespace, row.name]))
      }),
    ))

  it('take of a named inventory what its own targets chose, wherever the objects are', () => {
    const { hasKey } = rowFilter({ namespace: 'team-a', inventory: 'apps' }, new Set(['team-a']))
    expect(hasKey(aRow({ namespace: 'elsewhere' }))).toBe(true)
    expect(hasKey(aRow({ targetNamespace: 'team-b', namespace: 'team-a' }))).toBe(false)
    expect(hasKey(aRow({ targetNamespace: '', namespace: 'team-a' }))).toBe(false)
  })
})
