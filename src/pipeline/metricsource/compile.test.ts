import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { metricSource } from '#kinds'
import { cpuMs } from '../../../test/cpu.ts'
import { compileMetricSource } from './compile.ts'
import { rowOf } from './run/testing/row-of.ts'
import type { SourceObject } from './types.ts'

type Spec = SourceObject['spec']
type Collection = NonNullable<Spec['collection']>

const metadata = { name: 'source', namespace: 'clusterpulse' }
const least: Spec = { source: { apiVersion: 'v1', kind: 'ConfigMap' }, fields: [{ name: 'a', path: '.data.a' }] }
/** The smallest declaration with some of it changed; anything may be put in, as anything may be applied. */
const declared = (changes: Readonly<Record<string, unknown>> = {}) =>
  compileMetricSource({ metadata, spec: { ...least, ...changes } } as unknown as SourceObject)
const withSource = (changes: Readonly<Record<string, unknown>>) => declared({ source: { ...least.source, ...changes } })
const withAggregation = (...aggregations: readonly Readonly<Record<string, unknown>>[]) =>
  declared({
    fields: [
      { name: 'used', path: '.used', type: 'bytes' },
      { name: 'phase', path: '.phase' },
      { name: 'ready', path: '.ready', type: 'boolean' },
      { name: 'at', path: '.at', type: 'timestamp' },
    ],
    aggregations: aggregations.map((one) => ({ name: 'x', function: 'count', ...one })),
  })
/** `severity code path` of all that was found. */
const told = ({ findings }: ReturnType<typeof declared>) =>
  findings.map(({ severity, code, path }) => `${severity} ${code} ${path}`)
const compiled = (result: ReturnType<typeof declared>) => {
  if (!result.source) throw new Error(JSON.stringify(result.findings))
  return result.source
}

describe('a declaration', () => {
  it('that is the shortest useful one compiles without a word', () => {
    const { source, findings } = compileMetricSource(metricSource.parse(metricSource.definition.example))
    expect(findings).toEqual([])
    expect(source).toMatchObject({ id: 'clusterpulse/pvc-capacity', typeName: 'pvc' })
  })

  it.each<[string, Readonly<Record<string, unknown>>, string]>([
    ['without an API version', { source: { kind: 'Pod' } }, 'error missing spec.source.apiVersion'],
    ['with an empty API version', { source: { apiVersion: '', kind: 'Pod' } }, 'error missing spec.source.apiVersion'],
    ['without a kind', { source: { apiVersion: 'v1' } }, 'error missing spec.source.kind'],
    ['without a source', { source: undefined }, 'error missing spec.source'],
    ['without fields', { fields: [] }, 'error fields_missing spec.fields'],
    ['with fields that are no list', { fields: {} }, 'error wrong_type spec.fields'],
    ['with a field that is nothing', { fields: [null] }, 'error wrong_type spec.fields[0]'],
    ['with a field without a name', { fields: [{ path: '.a' }] }, 'error missing spec.fields[0].name'],
    ['with a field without a path', { fields: [{ name: 'a' }] }, 'error missing spec.fields[0].path'],
    ['with a number for a name', { fields: [{ name: 5, path: '.a' }] }, 'error wrong_type spec.fields[0].name'],
    [
      'with an unknown type',
      { fields: [{ name: 'a', path: '.a', type: 'int' }] },
      'error field_type_unknown spec.fields[0].type',
    ],
    [
      'with a path that cannot be read',
      { fields: [{ name: 'a', path: '.a[' }] },
      'error field_path_invalid spec.fields[0].path',
    ],
    [
      'with two fields of a name',
      {
        fields: [
          { name: 'a', path: '.a' },
          { name: 'a', path: '.b' },
        ],
      },
      'error name_duplicate spec.fields[1].name',
    ],
    [
      'with a computed value called like a field',
      { computed: [{ name: 'a', expression: '1' }] },
      'error name_duplicate spec.computed[0].name',
    ],
    [
      'with a control character in a name',
      { fields: [{ name: 'a\0b', path: '.a' }] },
      'error name_invalid spec.fields[0].name',
    ],
    [
      'with a computed value without a name',
      { computed: [{ expression: '1' }] },
      'error missing spec.computed[0].name',
    ],
    [
      'with a computed value without expression',
      { computed: [{ name: 'b' }] },
      'error missing spec.computed[0].expression',
    ],
    [
      'with too many fields',
      { fields: Array.from({ length: 300 }, (_, i) => ({ name: `f${i}`, path: '.a' })) },
      'error too_many spec.fields',
    ],
    [
      'with a path of a megabyte',
      { fields: [{ name: 'a', path: 'x'.repeat(1e6) }] },
      'error too_long spec.fields[0].path',
    ],
    ['with a setting nobody knows', { agregations: [] }, 'warning unknown_key spec.agregations'],
  ])('%s is told', (_, changes, finding) => {
    const result = declared(changes)
    expect(told(result)).toContain(finding)
    expect(result.source === undefined).toBe(finding.startsWith('error'))
  })

  it('has every mistake named, not only the first', () => {
    const result = declared({
      source: { apiVersion: 'V1', kind: 'a b' },
      fields: [
        { name: 'a', path: '.a[' },
        { name: 'a', path: '.b' },
      ],
      computed: [{ name: 'c', expression: 'rond(a' }],
      collection: { intervalSeconds: 'often' },
    })
    expect(told(result)).toEqual(
      expect.arrayContaining([
        'error source_api_version_invalid spec.source.apiVersion',
        'error source_kind_invalid spec.source.kind',
        'error field_path_invalid spec.fields[0].path',
        'error name_duplicate spec.fields[1].name',
        'error wrong_type spec.collection.intervalSeconds',
      ]),
    )
    expect(told(result).some((one) => one.startsWith('warning expression_'))).toBe(true)
  })

  it('may be anything at all: nothing throws', () =>
    fc.assert(
      fc.property(fc.anything(), fc.anything(), (spec, whole) => {
        compileMetricSource({ metadata, spec } as unknown as SourceObject)
        compileMetricSource(whole as SourceObject)
        expect(declared({ fields: spec, computed: whole, aggregations: spec, rbac: whole }).findings).toBeInstanceOf(
          Array,
        )
      }),
    ))
})

describe('the target', () => {
  it.each([
    ['v1', 'ConfigMap', '', 'v1', 'configmaps'],
    ['apps/v1', 'Deployment', 'apps', 'v1', 'deployments'],
    ['networking.k8s.io/v1', 'NetworkPolicy', 'networking.k8s.io', 'v1', 'networkpolicies'],
    ['networking.k8s.io/v1', 'Ingress', 'networking.k8s.io', 'v1', 'ingresses'],
    ['gateway.networking.k8s.io/v1', 'Gateway', 'gateway.networking.k8s.io', 'v1', 'gateways'],
    ['v1', 'Endpoints', '', 'v1', 'endpoints'],
    ['storage.k8s.io/v1', 'StorageClass', 'storage.k8s.io', 'v1', 'storageclasses'],
    ['policy/v1beta1', 'PodSecurityPolicy', 'policy', 'v1beta1', 'podsecuritypolicies'],
    ['v1', 'ResourceQuota', '', 'v1', 'resourcequotas'],
    ['v1', 'PersistentVolumeClaim', '', 'v1', 'persistentvolumeclaims'],
    ['example.org/v1', 'Box', 'example.org', 'v1', 'boxes'],
    ['example.org/v1', 'Batch', 'example.org', 'v1', 'batches'],
    ['example.org/v1', 'Bush', 'example.org', 'v1', 'bushes'],
    ['example.org/v1', 'Policy', 'example.org', 'v1', 'policies'],
  ])('%s %s is asked for as %s %s %s where the cluster cannot be asked', (apiVersion, kind, group, version, plural) =>
    expect(compiled(withSource({ apiVersion, kind })).target).toEqual({
      ...{ apiVersion, kind, group, version, plural, scope: 'Namespaced', isPluralDeclared: false },
    }),
  )

  it('is what the author says the plural is', () => {
    const { target } = compiled(
      withSource({ apiVersion: 'x.io/v1', kind: 'Cactus', resource: 'cacti', scope: 'Cluster' }),
    )
    expect(target).toMatchObject({ plural: 'cacti', isPluralDeclared: true, scope: 'Cluster' })
  })

  it.each([
    ['apiVersion', 'v1/../secrets'],
    ['apiVersion', 'apps/v1/x'],
    ['apiVersion', '/v1'],
    ['apiVersion', 'apps/'],
    ['apiVersion', 'Apps/v1'],
    ['kind', 'Config Map'],
    ['kind', '../Pod'],
    ['kind', '1Pod'],
    ['resource', 'pods/log'],
    ['resource', 'Pods'],
    ['resource', '..'],
  ])('is refused where %s is %j', (key, value) => expect(withSource({ [key]: value }).source).toBeUndefined())

  it.each([
    [{ apiVersion: 'v1', kind: 'Secret' }],
    [{ apiVersion: 'v1', kind: 'secret' }],
    [{ apiVersion: 'v1', kind: 'SECRET', resource: 'things' }],
    [{ apiVersion: 'v1', kind: 'Thing', resource: 'secrets' }],
  ])('is never a Secret: %j', (source) => {
    const result = declared({ source })
    expect(result.source).toBeUndefined()
    expect(told(result)).toContain('error source_kind_refused spec.source.kind')
  })

  it('may be something else that is called Secret', () =>
    expect(compiled(withSource({ apiVersion: 'vault.example.org/v1', kind: 'Secret' })).target.plural).toBe('secrets'))

  it.each(['namespaced', 'cluster', 'Global'])('is refused with the scope %s', (scope) =>
    expect(told(withSource({ scope }))).toContain('error source_scope_unknown spec.source.scope'),
  )
})

describe('the label selector', () => {
  const text = (labelSelector: unknown) => compiled(withSource({ labelSelector })).labelSelector

  it('is text for the API, labels in order', () => {
    expect(text({ matchLabels: { b: '2', a: '1', 'x.io/c': '' } })).toBe('a=1,b=2,x.io/c=')
    const matchExpressions = [
      { key: 'tier', operator: 'In', values: ['web', 'api'] },
      { key: 'tier', operator: 'NotIn', values: ['old'] },
      { key: 'team', operator: 'Exists' },
      { key: 'gone', operator: 'DoesNotExist' },
    ]
    expect(text({ matchLabels: { a: '1' }, matchExpressions })).toBe(
      'a=1,tier in (web,api),tier notin (old),team,!gone',
    )
  })

  it('is nothing where it selects everything', () => {
    for (const selector of [undefined, {}, { matchLabels: {} }, { matchExpressions: [] }])
      expect(text(selector)).toBeUndefined()
  })

  it.each([
    [{ matchExpressions: [{ key: 'a', operator: 'in', values: ['x'] }] }, 'selector_operator_unknown'],
    [{ matchExpressions: [{ key: 'a', operator: 'Equals', values: ['x'] }] }, 'selector_operator_unknown'],
    [{ matchExpressions: [{ key: 'a', operator: 'In' }] }, 'selector_values_missing'],
    [{ matchExpressions: [{ key: 'a', operator: 'NotIn', values: [] }] }, 'selector_values_missing'],
    [{ matchExpressions: [{ operator: 'Exists' }] }, 'missing'],
    [{ matchExpressions: [{ key: 'a' }] }, 'missing'],
    [{ matchLabels: { 'a b': 'x' } }, 'selector_label_invalid'],
    [{ matchLabels: { 'a,b': 'x' } }, 'selector_label_invalid'],
    [{ matchLabels: { a: 'x,b=y' } }, 'selector_value_invalid'],
    [{ matchLabels: { a: 5 } }, 'wrong_type'],
    [{ matchExpressions: [{ key: 'a', operator: 'In', values: ['x)'] }] }, 'selector_value_invalid'],
  ])('is refused: %j', (labelSelector, code) => {
    const result = withSource({ labelSelector })
    expect(result.source).toBeUndefined()
    expect(result.findings.map((one) => one.code)).toContain(code)
  })

  it('suggests the operator that was meant', () =>
    expect(
      withSource({ labelSelector: { matchExpressions: [{ key: 'a', operator: 'exist' }] } }).findings,
    ).toMatchObject([{ suggestion: 'Exists' }]))
})

describe('namespaces', () => {
  const chosen = (namespaces?: unknown, scope?: string) => compiled(withSource({ namespaces, scope }))

  it('are all where nothing is chosen', () => {
    for (const source of [chosen(), chosen({}), chosen({ include: [] }), chosen({ include: ['*'] })]) {
      expect(source).toMatchObject({ wantsAllNamespaces: true, exactNamespaces: undefined })
      expect(source.wantsNamespace('anything')).toBe(true)
    }
  })

  it('are the names that are written out, without those excluded', () => {
    const source = chosen({ include: ['a', 'b', 'b', 'c-1'], exclude: ['c-*'] })
    expect(source).toMatchObject({ wantsAllNamespaces: false, exactNamespaces: ['a', 'b'] })
    expect(['a', 'b', 'c-1', 'd'].map(source.wantsNamespace)).toEqual([true, true, false, false])
  })

  it('are those that a pattern fits and none excludes', () => {
    const source = chosen({ include: ['team-*', 'kube-system'], exclude: ['*-test', 'team-?'] })
    expect(source).toMatchObject({ wantsAllNamespaces: false, exactNamespaces: undefined })
    const names = ['team-web', 'kube-system', 'team-test', 'team-a', 'default', 'Team-web']
    expect(names.filter(source.wantsNamespace)).toEqual(['team-web', 'kube-system'])
  })

  it('are all but the excluded', () => {
    const source = chosen({ exclude: ['openshift-*', 'kube-*'] })
    expect(source).toMatchObject({ wantsAllNamespaces: false, exactNamespaces: undefined })
    expect(['default', 'kube-system', 'openshift-', 'openshift'].filter(source.wantsNamespace)).toEqual([
      'default',
      'openshift',
    ])
  })

  it('do not matter to objects of the cluster', () => {
    const result = withSource({ scope: 'Cluster', namespaces: { include: ['a'] } })
    expect(compiled(result)).toMatchObject({ wantsAllNamespaces: true, exactNamespaces: undefined })
    expect(told(result)).toEqual(['warning namespaces_ignored spec.source.namespaces'])
  })

  it('that are all excluded are told', () => {
    expect(told(withSource({ namespaces: { include: ['a'], exclude: ['a'] } }))).toEqual([
      'warning namespaces_none spec.source.namespaces',
    ])
    expect(told(withSource({ namespaces: { exclude: ['*'] } }))).toEqual([
      'warning namespaces_none spec.source.namespaces',
    ])
  })
})

describe('computed values', () => {
  const computing = (...computed: readonly Readonly<Record<string, unknown>>[]) =>
    declared({
      fields: [
        { name: 'used', path: '.used', type: 'bytes' },
        { name: 'phase', path: '.phase' },
      ],
      computed: computed.map((one, i) => ({ name: `c${i}`, ...one })),
    })
  const valuesOf = (result: ReturnType<typeof declared>, object: object = {}) =>
    rowOf(
      compiled(result),
      { metadata: { name: 'o' }, used: 2048, phase: 'Bound', ...object },
      Date.parse('2026-11-21T10:00:00Z'),
    ).values

  it('know fields and what was computed before', () =>
    expect(valuesOf(computing({ expression: 'used / 1024' }, { expression: 'c0 + 1' }))).toMatchObject({
      c0: 2,
      c1: 3,
    }))

  it('are of the kind the expression gives, where no type is declared', () => {
    const result = computing(
      { expression: 'used * 2' },
      { expression: 'concat(phase, "!")' },
      { expression: 'used > 1' },
    )
    expect(valuesOf(result)).toMatchObject({ c0: 4096, c1: 'Bound!', c2: true })
    expect(compiled(result).columns.slice(2)).toMatchObject([
      { kind: 'number', type: 'float', isComputed: true },
      { kind: 'string', type: 'string' },
      { kind: 'boolean', type: 'boolean' },
    ])
  })

  it.each([
    ['used / 3', 'integer', 682],
    ['0 - used / 3', 'integer', -682],
    ['used / 4', 'float', 512],
    ['used', 'string', '2048'],
    ['used', 'boolean', true],
    ['used - used', 'boolean', false],
    ['phase', 'boolean', true],
    ['used > 1', 'string', 'true'],
    ['used > 1', 'integer', 1],
    ['concat("1", "2")', 'integer', 12],
    ['concat("1", ".5")', 'float', 1.5],
    ['null', 'integer', null],
    ['null', 'string', null],
  ])('%s as %s is %j', (expression, type, value) => expect(valuesOf(computing({ expression, type })).c0).toBe(value))

  it('of text that is no number are null as a number, and told', () => {
    const result = computing({ expression: 'phase', type: 'float' })
    expect(told(result)).toEqual(['warning computed_type_unlikely spec.computed[0].type'])
    const builder = compiled(result).collect(0)
    builder.add({ metadata: { name: 'o' }, phase: 'Bound' })
    expect(builder.rows().column('c0')?.(0)).toBeNull()
    expect(builder.reports().at(-1)).toEqual({ field: 'c0', missing: 0, malformed: 1, example: 'Bound' })
  })

  it('are never NaN or infinite', () =>
    expect(
      valuesOf(computing({ expression: 'used / (used - used)' }, { expression: 'used % (used - used)' })),
    ).toMatchObject({ c0: null, c1: null }))

  it('see the time of the collection', () =>
    expect(valuesOf(computing({ expression: 'age("2026-11-21T09:59:00Z")' })).c0).toBe(60))

  it('name the place of a mistake and what was meant', () => {
    const { findings } = computing({ expression: 'round(usd, 2)' })
    expect(findings).toMatchObject([
      {
        ...{
          severity: 'warning',
          message: 'there is no field or computed value usd: "c0" is null in every object',
          code: 'expression_unknown_name',
          path: 'spec.computed[0].expression',
          suggestion: 'used',
        },
        at: { text: 'round(usd, 2)', from: 6, to: 9 },
      },
    ])
  })

  it.each(['if(', 'used +', 'used used', 'a = 1', '"open', 'rond(used)', 'round()', 'used ? 1 : 2', 'c1', 'c0'])(
    'that cannot be compiled cost their column, and nothing else: %j',
    (expression) => {
      const result = computing(
        { expression, type: 'float' },
        { expression: 'coalesce(c0, used)' },
        { expression: 'used' },
      )
      expect(told(result)[0]).toMatch(/^warning (expression|computed)_\w+ spec\.computed\[0\]\.expression$/)
      const source = compiled(result)
      expect(source.columns.map(({ name }) => name)).toEqual(['used', 'phase', 'c0', 'c1', 'c2'])
      const builder = source.collect(0)
      builder.add({ metadata: { name: 'o' }, used: 2048, phase: 'Bound' })
      expect(builder.rows().row(0).values).toMatchObject({
        c0: null,
        c1: 2048,
        c2: 2048,
      })
      expect(builder.reports()[2]).toMatchObject({ field: 'c0', malformed: 1 })
    },
  )

  it('that are empty are refused', () => expect(computing({ expression: '' }).source).toBeUndefined())

  it('of a constant that cannot be computed are null, and told', () => {
    const result = computing({ expression: '0 / 0' }, { expression: 'c0 ?? 1' })
    expect(told(result)).toEqual(['warning expression_division_by_zero spec.computed[0].expression'])
    expect(valuesOf(result)).toMatchObject({ c0: null, c1: 1 })
  })

  it('that need a later one say so', () =>
    expect(computing({ expression: 'c1 + 1' }, { expression: 'used' }).findings[0]).toMatchObject({
      ...{ severity: 'warning', code: 'computed_order', path: 'spec.computed[0].expression' },
      message: 'c1 is computed after it: put c1 above c0: "c0" is null in every object',
      at: { from: 0, to: 2 },
    }))

  it('that need themselves name the circle', () => {
    expect(computing({ expression: 'c0 + 1' }).findings[0]).toMatchObject({
      code: 'computed_circle',
      message: 'it needs itself: c0 → c0: "c0" is null in every object',
    })
    const three = computing({ expression: 'c1' }, { expression: 'c2' }, { expression: 'c0 + used' })
    expect(three.findings.map(({ code, message }) => [code, message]).slice(0, 2)).toEqual([
      ['computed_circle', 'it needs itself: c0 → c1 → c2 → c0: "c0" is null in every object'],
      ['computed_circle', 'it needs itself: c1 → c2 → c0 → c1: "c1" is null in every object'],
    ])
  })

  it('are told from what only looks like a circle', () => {
    const named = computing({ expression: 'c1 + c2' }, { expression: 'concat("c0", phase)' }, { expression: 'c0' })
    expect(named.findings.map(({ code, at }) => [code, at?.from])).toEqual([
      ['computed_order', 0],
      ['computed_circle', 5],
    ])
  })

  it('by the hundred, each naming all the others, are checked in time', () => {
    const all = Array.from({ length: 256 }, (_, i) => `c${i}`).join(' + ')
    const since = process.cpuUsage()
    const { findings } = computing(...Array.from({ length: 256 }, () => ({ expression: all })))
    expect(findings).toHaveLength(100)
    expect(cpuMs(since)).toBeLessThan(5000)
  })

  it('cannot name a field with a dot, which is told', () => {
    expect(told(declared({ fields: [{ name: 'a.b', path: '.a' }] }))).toEqual([
      'warning name_not_identifier spec.fields[0].name',
    ])
    expect(told(declared({ fields: [{ name: 'true', path: '.a' }] }))).toEqual([
      'warning name_not_identifier spec.fields[0].name',
    ])
  })
})

describe('aggregations', () => {
  it.each<[string, Readonly<Record<string, unknown>>, string]>([
    [
      'of an unknown field',
      { function: 'sum', field: 'usd' },
      'warning aggregation_unknown_field spec.aggregations[0].field',
    ],
    ['without a field', { function: 'sum' }, 'warning aggregation_field_missing spec.aggregations[0]'],
    [
      'filtered by an unknown field',
      { filter: { field: 'fase', operator: 'equals', value: 'x' } },
      'warning filter_unknown_field spec.aggregations[0].filter.field',
    ],
    ['grouped by an unknown field', { groupBy: 'fase' }, 'warning group_unknown_field spec.aggregations[0].groupBy'],
    [
      'that sum up text',
      { function: 'sum', field: 'phase' },
      'warning aggregation_type_unlikely spec.aggregations[0].field',
    ],
    [
      'that average booleans',
      { function: 'avg', field: 'ready' },
      'warning aggregation_type_unlikely spec.aggregations[0].field',
    ],
    [
      'of times',
      { function: 'percentile', field: 'at' },
      'warning aggregation_type_unlikely spec.aggregations[0].field',
    ],
    [
      'compared with what has no order',
      { filter: { field: 'used', operator: 'greaterThan', value: 'much' } },
      'warning filter_value_unlikely spec.aggregations[0].filter.value',
    ],
    [
      'with an empty list',
      { filter: { field: 'used', operator: 'in', value: '[]' } },
      'warning filter_value_unlikely spec.aggregations[0].filter.value',
    ],
    ['without a name', { name: '' }, 'error missing spec.aggregations[0].name'],
    [
      'of an unknown function',
      { function: 'average' },
      'error aggregation_function_unknown spec.aggregations[0].function',
    ],
    ['without a function', { function: undefined }, 'error missing spec.aggregations[0].function'],
    [
      'with an unknown operator',
      { filter: { field: 'used', operator: 'equal', value: 'x' } },
      'error filter_operator_unknown spec.aggregations[0].filter.operator',
    ],
    [
      'with half a filter',
      { filter: { field: 'used', operator: 'equals' } },
      'error missing spec.aggregations[0].filter.value',
    ],
    [
      'with a pattern that cannot be read',
      { filter: { field: 'phase', operator: 'matches', value: '(' } },
      'error filter_pattern_invalid spec.aggregations[0].filter.value',
    ],
    [
      'with a pattern that RE2 does not know',
      { filter: { field: 'phase', operator: 'matches', value: '(?=x)' } },
      'error filter_pattern_invalid spec.aggregations[0].filter.value',
    ],
    [
      'with a pattern that grows beyond bounds',
      { filter: { field: 'phase', operator: 'matches', value: '(.{0,500}){0,4}' } },
      'error filter_pattern_invalid spec.aggregations[0].filter.value',
    ],
    [
      'with a percentile above 100',
      { function: 'percentile', field: 'used', percentile: 101 },
      'error percentile_out_of_range spec.aggregations[0].percentile',
    ],
    [
      'with a percentile below 0',
      { function: 'percentile', field: 'used', percentile: -1 },
      'error percentile_out_of_range spec.aggregations[0].percentile',
    ],
  ])('%s are told', (_, aggregation, finding) => {
    const result = withAggregation(aggregation)
    expect(told(result)).toEqual([finding])
    expect(result.source === undefined).toBe(finding.startsWith('error'))
  })

  it('suggest what was meant', () =>
    expect(withAggregation({ function: 'sum', field: 'usd' }).findings).toMatchObject([{ suggestion: 'used' }]))

  it('of one name: the last counts, as it always did, and it is told', () => {
    const result = withAggregation({ name: 'n', function: 'sum', field: 'used' }, { name: 'n', function: 'count' })
    expect(told(result)).toEqual(['warning aggregation_name_duplicate spec.aggregations[0].name'])
    expect(compiled(result).aggregations).toMatchObject([{ name: 'n', function: 'count' }])
  })

  it('may be called like something every object has', () => {
    const source = compiled(withAggregation({ name: '__proto__' }, { name: 'constructor' }))
    const results = source.aggregate(source.collect(0).rows())
    expect(Object.entries(results)).toEqual([
      ['__proto__', 0],
      ['constructor', 0],
    ])
  })

  it.each([
    [{ function: 'count' }, { unit: 'none', hasHistory: true }],
    [
      { function: 'distinct', field: 'phase' },
      { unit: 'none', hasHistory: true },
    ],
    [
      { function: 'sum', field: 'used' },
      { unit: 'bytes', hasHistory: true },
    ],
    [
      { function: 'max', field: 'used' },
      { unit: 'bytes', hasHistory: true },
    ],
    [
      { function: 'max', field: 'phase' },
      { unit: 'none', hasHistory: false },
    ],
    [
      { function: 'min', field: 'at' },
      { unit: 'time', hasHistory: false },
    ],
    [
      { function: 'sum', field: 'used', groupBy: 'phase' },
      { unit: 'bytes', hasHistory: false },
    ],
    [
      { name: 'avg_ready_pct', function: 'avg', field: 'phase' },
      { unit: 'percent', hasHistory: true },
    ],
  ])('%j are read by people as %j', (aggregation, info) =>
    expect(compiled(withAggregation(aggregation)).aggregations[0]).toMatchObject(info),
  )
})

describe('columns', () => {
  it.each([
    ['capacity', 'bytes', 'bytes', 'number'],
    ['load', 'cpu', 'cores', 'number'],
    ['createdAt', 'timestamp', 'time', 'string'],
    ['usedBytes', 'quantity', 'bytes', 'number'],
    ['used_bytes', 'integer', 'bytes', 'number'],
    ['readyPct', 'float', 'percent', 'number'],
    ['usedPercent', 'float', 'percent', 'number'],
    ['ageSeconds', 'float', 'seconds', 'number'],
    ['cpuCores', 'float', 'cores', 'number'],
    ['megabytes', 'integer', 'none', 'number'],
    ['usedBytes', 'string', 'none', 'string'],
    ['replicas', 'integer', 'none', 'number'],
    ['images', 'arrayLength', 'none', 'number'],
    ['ready', 'boolean', 'none', 'boolean'],
    ['score', 'integer', 'none', 'number'],
  ])('%s of type %s have the unit %s', (name, type, unit, kind) =>
    expect(compiled(declared({ fields: [{ name, path: '.a', type }] })).columns).toEqual([
      { name, type, unit, kind, isComputed: false },
    ]),
  )
})

describe('names of types', () => {
  it.each(['nodes', 'operators', 'namespaces', 'pods', 'alerts', 'events', 'registries', 'clusters', 'Pods'])(
    '%s is there already',
    (resourceTypeName) =>
      expect(told(declared({ rbac: { resourceTypeName } }))).toEqual([
        'error type_name_reserved spec.rbac.resourceTypeName',
      ]),
  )

  it('are the kind in lower case where none is declared', () => {
    expect(compiled(declared()).typeName).toBe('configmap')
    expect(compiled(declared({ rbac: {} })).typeName).toBe('configmap')
    expect(compiled(declared({ rbac: { resourceTypeName: 'pvc' } })).typeName).toBe('pvc')
  })

  it('cannot hold a slash, and may hold what must be escaped', () => {
    expect(told(declared({ rbac: { resourceTypeName: 'a/b' } }))).toEqual([
      'error type_name_invalid spec.rbac.resourceTypeName',
    ])
    expect(told(declared({ rbac: { resourceTypeName: 'a b' } }))).toEqual([
      'warning type_name_unusual spec.rbac.resourceTypeName',
    ])
  })

  it('have fields that policies may filter by: those that are there', () => {
    const result = declared({
      rbac: { resourceTypeName: 'x', filterableFields: ['a', 'b'], filterAggregations: false },
    })
    expect(told(result)).toEqual(['warning filterable_unknown_field spec.rbac.filterableFields[1]'])
    expect(compiled(result)).toMatchObject({ filterableFields: ['a', 'b'], filterAggregations: false })
    expect(compiled(declared())).toMatchObject({ filterableFields: undefined, filterAggregations: true })
  })
})

describe('collections', () => {
  const collection = (given?: Collection) => compiled(declared({ collection: given })).collection
  const usual = {
    ...{ intervalMs: 60_000, timeoutMs: 30_000, maxResources: 5000, batchSize: 500, retryAttempts: 3, parallelism: 3 },
    watch: false,
  }

  it('are usual where nothing is said, or nothing positive', () => {
    expect(collection()).toEqual(usual)
    expect(
      collection({ intervalSeconds: 0, timeoutSeconds: -1, maxResources: 0, batchSize: 0, parallelism: 0 }),
    ).toEqual(usual)
  })

  it('are as declared', () =>
    expect(
      collection({
        intervalSeconds: 120,
        timeoutSeconds: 10,
        maxResources: 7,
        batchSize: 50,
        retryAttempts: 0,
        parallelism: 9,
        watch: true,
      }),
    ).toEqual({
      intervalMs: 120_000,
      timeoutMs: 10_000,
      maxResources: 7,
      batchSize: 50,
      retryAttempts: 0,
      parallelism: 9,
      watch: true,
    }))

  it('below what the schema asks for are told', () =>
    expect(told(declared({ collection: { intervalSeconds: 10, timeoutSeconds: 5, batchSize: 0 } }))).toEqual([
      'warning collection_below_minimum spec.collection.intervalSeconds',
      'warning collection_below_minimum spec.collection.batchSize',
    ]))

  it('that may take longer than their interval are told', () =>
    expect(told(declared({ collection: { intervalSeconds: 30, timeoutSeconds: 60 } }))).toEqual([
      'warning collection_timeout_above_interval spec.collection.timeoutSeconds',
    ]))
})

describe('the hash', () => {
  const hash = (spec: unknown) => compileMetricSource({ metadata, spec } as SourceObject).source?.hash
  // Written out by hand from the specification: keys in its order, nothing empty, map keys sorted, <, > and & escaped.
  const minimal =
    '{"source":{"apiVersion":"v1","kind":"ConfigMap"},"fields":[{"name":"a","path":".data.a"}],"collection":{},"rbac":{"resourceTypeName":""}}'
  const full =
    '{"source":{"apiVersion":"apps/v1","kind":"Deployment","scope":"Namespaced","namespaces":{"include":["team-*"],"exclude":["team-x"]},"labelSelector":{"matchLabels":{"a":"1","b":"2"},"matchExpressions":[{"key":"tier","operator":"In","values":["web","api"]},{"key":"old","operator":"DoesNotExist"}]}},"fields":[{"name":"replicas","path":".spec.replicas","type":"integer","default":"1"},{"name":"image","path":".spec.template.spec.containers[0].image"}],"computed":[{"name":"few","expression":"replicas \\u003c 2 \\u0026\\u0026 replicas \\u003e 0","type":"boolean"}],"aggregations":[{"name":"total","field":"replicas","function":"sum"},{"name":"p","field":"replicas","function":"percentile","filter":{"field":"image","operator":"contains","value":"x"},"groupBy":"image","percentile":90}],"collection":{"intervalSeconds":60,"timeoutSeconds":30,"maxResources":5000,"batchSize":500,"retryAttempts":3,"parallelism":3},"rbac":{"resourceTypeName":"deployment","filterableFields":["replicas"],"filterAggregations":true}}'

  it('is that of the text in its fixed form', () => {
    expect(createHash('sha256').update(minimal).digest('hex').slice(0, 16)).toBe('e4673bc18a459939')
    expect(hash(least)).toBe('e4673bc18a459939')
    expect(createHash('sha256').update(full).digest('hex').slice(0, 16)).toBe('0f1364240806c472')
    expect(hash(JSON.parse(full))).toBe('0f1364240806c472')
  })

  it('does not depend on the order of keys, nor on what is empty', () => {
    const shuffled = {
      rbac: { filterAggregations: false, filterableFields: [] },
      aggregations: [],
      computed: [],
      collection: { intervalSeconds: 0 },
      fields: [{ path: '.data.a', default: '', name: 'a' }],
      source: { kind: 'ConfigMap', apiVersion: 'v1' },
    }
    expect(hash(shuffled)).toBe(hash(least))
    const selected = (matchLabels: object) =>
      hash({ ...least, source: { ...least.source, labelSelector: { matchLabels } } })
    expect(selected({ a: '1', b: '2' })).toBe(selected({ b: '2', a: '1' }))
  })

  it('has keys that are digits in the order of letters', () => {
    const source = { ...least.source, labelSelector: { matchLabels: { a: '1', 9: 'nine', 10: 'ten' } } }
    const text = minimal.replace(
      '},"fields"',
      ',"labelSelector":{"matchLabels":{"10":"ten","9":"nine","a":"1"}}},"fields"',
    )
    expect(hash({ ...least, source })).toBe(createHash('sha256').update(text).digest('hex').slice(0, 16))
  })

  it('differs with everything that makes a difference', () => {
    const p = (percentile?: number) => ({
      ...least,
      aggregations: [{ name: 'p', function: 'percentile', field: 'a', percentile }],
    })
    const all = [
      least,
      { ...least, source: { ...least.source, resource: 'configmaps' } },
      { ...least, collection: { watch: true } },
      { ...least, collection: { retryAttempts: 0 } },
      { ...least, collection: { intervalSeconds: 60 } },
      p(),
      p(0),
      p(95),
    ]
    expect(new Set(all.map(hash)).size).toBe(all.length)
  })
})
