import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compileMetricSource } from './compile.ts'
import { FIELD_TYPES, FUNCTIONS, OPERATORS } from './draft.ts'
import { readDefinition } from './read-definition.ts'
import { rowOf } from './run/testing/row-of.ts'
import type { SourceObject } from './types.ts'

const object: SourceObject = {
  metadata: { name: 'volumes', namespace: 'clusterpulse' },
  spec: {
    source: {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      scope: 'Namespaced',
      namespaces: { include: ['team-*'], exclude: ['team-x'] },
      labelSelector: { matchLabels: { a: '1' }, matchExpressions: [{ key: 'b', operator: 'Exists' }] },
    },
    fields: [
      { name: 'phase', path: '.status.phase', type: 'string' },
      { name: 'capacity', path: '.status.capacity.storage', type: 'quantity', default: '0' },
      { name: 'app', path: '.metadata.labels["app.kubernetes.io/name"]' },
      { name: 'mode', path: '.spec.accessModes[0]' },
      { name: 'ready', path: '.status.conditions[?(@.type=="Ready")].status', type: 'boolean' },
    ],
    computed: [
      { name: 'gib', expression: 'round(capacity / 1073741824, 2)', type: 'float' },
      { name: 'free', expression: 'gib > 1' },
    ],
    aggregations: [
      { name: 'total', function: 'sum', field: 'capacity' },
      { name: 'p', function: 'percentile', field: 'capacity' },
      { name: 'lowest', function: 'percentile', field: 'capacity', percentile: 0 },
      {
        name: 'bound',
        function: 'count',
        filter: { field: 'phase', operator: 'equals', value: 'Bound' },
        groupBy: 'app',
      },
    ],
    collection: { intervalSeconds: 120, maxResources: 10_000 },
    rbac: { resourceTypeName: 'pvc', filterableFields: ['phase'], filterAggregations: true },
  },
}
const compiledAt = Date.parse('2026-11-21T10:00:00.500Z')
const compile = (changes: Partial<SourceObject['spec']> = {}) => {
  const { source, findings } = compileMetricSource({ ...object, spec: { ...object.spec, ...changes } }, compiledAt)
  if (!source) throw new Error(JSON.stringify(findings))
  return source
}
const overTheWire = (document: unknown): unknown => JSON.parse(JSON.stringify(document))

/** What can be compared of a source: all but its functions. */
const facts = (source: object) =>
  Object.fromEntries(Object.entries(source).filter(([, value]) => typeof value !== 'function'))

describe('the document of a source', () => {
  it('is the documented one', () =>
    expect(compile().definition).toEqual({
      name: 'volumes',
      namespace: 'clusterpulse',
      source: {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        scope: 'Namespaced',
        group: '',
        version: 'v1',
        resource: 'persistentvolumeclaims',
        labelSelector: 'a=1,b',
        namespaces: { include: ['team-*'], exclude: ['team-x'] },
      },
      fields: [
        { name: 'phase', path: '.status.phase', pathSegments: ['status', 'phase'], type: 'string', index: 0 },
        {
          name: 'capacity',
          path: '.status.capacity.storage',
          pathSegments: ['status', 'capacity', 'storage'],
          type: 'quantity',
          default: '0',
          index: 1,
        },
        {
          name: 'app',
          path: '.metadata.labels["app.kubernetes.io/name"]',
          pathSegments: ['metadata', 'labels', 'app.kubernetes.io/name'],
          type: 'string',
          index: 2,
        },
        {
          name: 'mode',
          path: '.spec.accessModes[0]',
          pathSegments: ['spec', 'accessModes', '[0]'],
          type: 'string',
          index: 3,
        },
        {
          name: 'ready',
          path: '.status.conditions[?(@.type=="Ready")].status',
          pathSegments: ['status', 'conditions', '[?(@.type=="Ready")]', 'status'],
          type: 'boolean',
          index: 4,
        },
      ],
      computed: [
        { name: 'gib', expression: 'round(capacity / 1073741824, 2)', type: 'float' },
        { name: 'free', expression: 'gib > 1', type: '' },
      ],
      aggregations: [
        { name: 'total', field: 'capacity', function: 'sum' },
        { name: 'p', field: 'capacity', function: 'percentile', percentile: 95 },
        { name: 'lowest', field: 'capacity', function: 'percentile', percentile: 0 },
        {
          name: 'bound',
          function: 'count',
          filter: { field: 'phase', operator: 'equals', value: 'Bound' },
          groupBy: 'app',
        },
      ],
      collection: {
        intervalSeconds: 120,
        timeoutSeconds: 30,
        maxResources: 10_000,
        batchSize: 500,
        retryAttempts: 3,
        parallelism: 3,
      },
      rbac: { resourceTypeName: 'pvc', filterableFields: ['phase'], filterAggregations: true },
      compiledAt: '2026-11-21T10:00:00Z',
      hash: expect.stringMatching(/^[0-9a-f]{16}$/),
    }))

  it('is read back as the same source', () => {
    for (const source of [
      compile(),
      compile({ collection: { watch: true, retryAttempts: 0 }, computed: [], aggregations: [] }),
      compile({ source: { apiVersion: 'x.io/v1', kind: 'Cactus', resource: 'cacti', scope: 'Cluster' } }),
      compile({ rbac: { resourceTypeName: 'pvc', filterAggregations: false } }),
    ]) {
      const again = readDefinition(overTheWire(source.definition))
      expect(facts(again ?? {})).toEqual(facts(source))
      expect(again?.wantsNamespace('team-a')).toBe(source.wantsNamespace('team-a'))
      const rows = [source, again].map((one) =>
        one ? rowOf(one, { metadata: { name: 'o', labels: {} }, status: { phase: 'Bound' } }) : undefined,
      )
      expect(rows[1]).toEqual(rows[0])
    }
  })

  it('is read back as the same source, whatever it declares', () => {
    const name = fc.constantFrom('a', 'b', 'c', 'x.y', '__proto__', 'constructor')
    const field = fc.record(
      {
        name,
        path: fc.constantFrom('.a', '.a[0]', '.a["b.c"]', '.a[*].b', '.a[?(@.b=="c")].d', '$', '{.a}', '.a..b'),
        type: fc.constantFrom(...FIELD_TYPES),
        default: fc.constantFrom('', '0', '1Gi', 'text', 'true'),
      },
      { requiredKeys: ['name', 'path'] },
    )
    const aggregation = fc.record(
      {
        name: fc.constantFrom('n', 'm'),
        function: fc.constantFrom(...FUNCTIONS),
        field: name,
        groupBy: name,
        percentile: fc.integer({ min: 0, max: 100 }),
        filter: fc.record({
          field: name,
          operator: fc.constantFrom(...OPERATORS),
          value: fc.constantFrom('', 'a', '5', '[1]'),
        }),
      },
      { requiredKeys: ['name', 'function'] },
    )
    const seconds = fc.integer({ min: -1, max: 1000 })
    const spec = fc.record(
      {
        source: fc.constantFrom(object.spec.source, {
          apiVersion: 'x.io/v1',
          kind: 'Thing',
          scope: 'Cluster',
          resource: 'thingies',
        }),
        fields: fc.uniqueArray(field, { minLength: 1, maxLength: 4, selector: (one) => one.name }),
        computed: fc.constantFrom(
          [],
          [{ name: 'd', expression: '1 + 1' }],
          [{ name: 'd', expression: 'now()', type: 'string' }],
        ),
        aggregations: fc.array(aggregation, { maxLength: 4 }),
        collection: fc.record(
          { intervalSeconds: seconds, retryAttempts: seconds, watch: fc.boolean() },
          { requiredKeys: [] },
        ),
        rbac: fc.record(
          {
            resourceTypeName: fc.constantFrom('', 't'),
            filterableFields: fc.array(name),
            filterAggregations: fc.boolean(),
          },
          { requiredKeys: [] },
        ),
      },
      { requiredKeys: ['source', 'fields'] },
    )
    const objects = ['x', 5, ['1Gi', { b: 'c', d: 7 }], { b: '2026-01-01T00:00:00Z', 'b.c': true }].map((a, i) => ({
      metadata: { name: `o${i}` },
      a,
    }))
    fc.assert(
      fc.property(spec, (one) => {
        const { source, findings } = compileMetricSource(
          { metadata: object.metadata, spec: one } as unknown as SourceObject,
          compiledAt,
        )
        expect(findings.filter(({ severity }) => severity === 'error')).toEqual([])
        const again = readDefinition(overTheWire(source?.definition))
        expect(facts(again ?? {})).toEqual(facts(source ?? {}))
        const [first, second] = [source, again].map((compiled) => {
          const builder = compiled?.collect(0)
          for (const each of objects) builder?.add(each)
          return {
            rows: builder?.rows(),
            reports: builder?.reports(),
            sums: builder && compiled?.aggregate(builder.rows()),
          }
        })
        expect(second?.rows?.toColumns()).toEqual(first?.rows?.toColumns())
        expect([second?.reports, second?.sums]).toEqual([first?.reports, first?.sums])
      }),
      { numRuns: 300 },
    )
  })

  it('says a later aggregation of the same name, once', () => {
    const twice = [
      { name: 'n', function: 'sum', field: 'capacity' },
      { name: 'n', function: 'count' },
    ] as const
    expect(compile({ aggregations: [...twice] }).definition.aggregations).toEqual([{ name: 'n', function: 'count' }])
  })
})

describe('a document of the original', () => {
  const original = {
    name: 'default-deployment-health',
    namespace: 'clusterpulse',
    source: {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      scope: 'Namespaced',
      group: 'apps',
      version: 'v1',
      resource: 'deployments',
      labelSelector: 'b=2,a=1',
      namespaces: { exclude: ['openshift-*', 'kube-*'] },
    },
    fields: [
      {
        name: 'replicas',
        path: '.spec.replicas',
        pathSegments: ['spec', 'replicas'],
        type: 'integer',
        default: '1',
        index: 0,
      },
      { name: 'strange', path: '.spec.strange', pathSegments: ['spec', 'strange'], type: 'uuid', index: 1 },
      { name: 'bySteps', pathSegments: ['spec', 'list', '[0]'], type: 'string', index: 2 },
    ],
    computed: [{ name: 'double', expression: 'replicas * 2', type: 'float' }],
    aggregations: [
      { name: 'total', field: 'replicas', function: 'sum' },
      { name: 'p', field: 'replicas', function: 'percentile' },
      { name: 'median', field: 'replicas', function: 'median' },
      { name: 'odd', function: 'count', filter: { field: 'replicas', operator: 'isOdd', value: '' } },
    ],
    collection: {
      intervalSeconds: 60,
      timeoutSeconds: 30,
      maxResources: 5000,
      batchSize: 500,
      retryAttempts: 0,
      parallelism: 3,
    },
    rbac: { resourceTypeName: 'deployment', filterableFields: null, filterAggregations: true },
    compiledAt: '2026-11-21T10:00:00Z',
    hash: '0123456789abcdef',
  }

  it('is run as it is, with what it says of itself', () => {
    const source = readDefinition(original)
    expect(source).toMatchObject({
      ...{
        id: 'clusterpulse/default-deployment-health',
        hash: '0123456789abcdef',
        typeName: 'deployment',
        labelSelector: 'b=2,a=1',
      },
      target: { group: 'apps', version: 'v1', plural: 'deployments', isPluralDeclared: false },
      collection: { retryAttempts: 0 },
    })
    expect(source?.columns.map(({ name, type }) => [name, type])).toEqual([
      ['replicas', 'integer'],
      ['strange', 'string'],
      ['bySteps', 'string'],
      ['double', 'float'],
    ])
    expect(source?.aggregations.map(({ name }) => name)).toEqual(['total', 'p'])
    const row = source && rowOf(source, { metadata: { name: 'd' }, spec: { strange: 5, list: ['first'] } })
    expect(row?.values).toEqual({ replicas: 1, strange: '5', bySteps: 'first', double: 2 })
  })

  it.each([
    [undefined],
    [null],
    ['text'],
    [[]],
    [{}],
    [{ ...original, name: 5 }],
    [{ ...original, source: null }],
    [{ ...original, fields: [] }],
    [{ ...original, fields: [{ name: 'a', path: '.a[' }] }],
    [{ ...original, source: { ...original.source, apiVersion: 'v1', kind: 'Secret' } }],
    [{ ...original, rbac: { resourceTypeName: 'nodes' } }],
  ])('that cannot be run is nothing: %#', (document) => expect(readDefinition(document)).toBeUndefined())

  it('may be anything: nothing throws', () =>
    fc.assert(
      fc.property(
        fc.anything(),
        fc.constantFrom('source', 'fields', 'computed', 'aggregations', 'collection', 'rbac', 'hash', 'name'),
        (value, key) => {
          readDefinition(value)
          readDefinition({ ...original, [key]: value })
          readDefinition({ ...original, fields: [value], aggregations: [value], computed: [value] })
        },
      ),
      { numRuns: 500 },
    ))
})
