import { describe, expect, it } from 'vitest'
import { type MonitorAccessPolicySpec, monitorAccessPolicy } from '#kinds'
import { cpuMs } from '../../../test/cpu.ts'
import { isAnchored } from './anchored.ts'
import { compilePolicy } from './compile.ts'
import { specHash } from './hash.ts'
import type { PolicyObject } from './types.ts'

const now = Date.UTC(2026, 0, 15, 10, 30, 0, 999)
const metadata = { name: 'dev-team', namespace: 'clusterpulse' }
const RULES = 'spec.scope.clusters.rules'

type Rule = NonNullable<MonitorAccessPolicySpec['scope']['clusters']['rules']>[number]
type Resource = NonNullable<Rule['resources']>[number]

const aRule = (over: Partial<Rule> = {}): Rule => ({ selector: { matchNames: ['dev-1'] }, ...over })
const anObject = (rules: readonly Rule[], effect: 'Allow' | 'Deny' = 'Allow'): PolicyObject => ({
  metadata,
  spec: {
    identity: { subjects: { groups: ['developers'] } },
    access: { effect },
    scope: { clusters: { rules: [...rules] } },
  },
})
const withSpec = (over: object): PolicyObject => {
  const base = anObject([aRule()])
  return { ...base, spec: { ...base.spec, ...over } }
}
const withResource = (resource: Resource, effect: 'Allow' | 'Deny' = 'Allow') =>
  anObject([aRule({ resources: [resource] })], effect)

const compiled = (object: PolicyObject) => compilePolicy(object, { now })
const found = (object: unknown) =>
  compilePolicy(object as PolicyObject, { now }).findings.map(
    ({ severity, code, path }) => `${severity} ${code} ${path}`,
  )

describe('the compiled document', () => {
  it('is the documented one', () => {
    const spec: MonitorAccessPolicySpec = {
      identity: {
        subjects: {
          groups: ['developers'],
          serviceAccounts: [{ name: 'bot', namespace: 'ci' }, { name: 'x' }, { name: 'y', namespace: '' }],
        },
      },
      access: { effect: 'Allow' },
      scope: {
        clusters: {
          rules: [
            {
              selector: { matchNames: ['dev-1'], matchPattern: '^dev-', matchLabels: { env: 'dev' } },
              resources: [
                {
                  type: 'namespaces',
                  visibility: 'filtered',
                  filters: { names: { allowed: ['default', 'app-*'], denied: ['x', '*-tmp'] } },
                },
                {
                  type: 'pvc',
                  visibility: 'filtered',
                  filters: {
                    namespaces: { allowed: ['a'], denied: ['b'] },
                    labels: { k: 'v' },
                    fields: { phase: { allowed: ['Bound'] } },
                  },
                  aggregations: { include: ['total'] },
                },
              ],
            },
          ],
        },
      },
    }
    expect(compiled({ metadata, spec })).toEqual({
      findings: [],
      document: {
        policy_name: 'dev-team',
        namespace: 'clusterpulse',
        priority: 100,
        effect: 'Allow',
        enabled: true,
        users: [],
        groups: ['developers'],
        service_accounts: [
          'system:serviceaccount:ci:bot',
          'system:serviceaccount:default:x',
          'system:serviceaccount:default:y',
        ],
        default_cluster_access: 'none',
        cluster_rules: [
          {
            cluster_selector: { matchNames: ['dev-1'], matchPattern: '^dev-', matchLabels: { env: 'dev' } },
            permissions: { view: true },
            resources: [
              {
                type: 'namespaces',
                visibility: 'filtered',
                allowed_names: ['default'],
                denied_names: ['x'],
                name_patterns: [['app-*', '^app-.*$']],
                deny_name_patterns: [['*-tmp', '^.*-tmp$']],
              },
              {
                type: 'pvc',
                visibility: 'filtered',
                allowed_ns: ['a'],
                denied_ns: ['b'],
                labels: { k: 'v' },
                field_filters: {
                  phase: {
                    allowed_literals: ['Bound'],
                    denied_literals: [],
                    allowed_patterns: [],
                    denied_patterns: [],
                  },
                },
                aggregation_rules: { include: ['total'], exclude: [] },
              },
            ],
          },
        ],
        not_before: null,
        not_after: null,
        compiled_at: '2026-01-15T10:30:00Z',
        hash: specHash(spec),
        custom_resource_types: ['pvc'],
      },
    })
  })

  it('has null for lists that were never filled, and the defaults', () => {
    const { document } = compiled({
      metadata: { name: 'p' },
      spec: { identity: { subjects: {} }, access: { effect: 'Deny' }, scope: { clusters: {} } },
    })
    expect(document).toMatchObject({
      namespace: 'default',
      users: [],
      service_accounts: [],
      default_cluster_access: 'none',
      cluster_rules: null,
      custom_resource_types: null,
    })
  })

  it.each([
    [undefined, { view: true }],
    [{}, { view: true }],
    [{ view: false }, { view: false }],
    [{ viewMetrics: true }, { viewMetrics: true }],
    [
      { view: true, viewMetrics: false },
      { view: true, viewMetrics: false },
    ],
  ])('reads the permissions %j as %j', (permissions, expected) => {
    const { document } = compiled(anObject([aRule(permissions && { permissions })]))
    expect(document?.cluster_rules?.[0]?.permissions).toEqual(expected)
  })

  it('counts types of MetricSources once and sorted, and none of the standard ones', () => {
    const types = ['vm', 'nodes', 'alerts', 'events', 'registries', 'pvc', 'pods', 'operators', 'namespaces']
    const rules = [aRule({ resources: types.map((type) => ({ type })) }), aRule({ resources: [{ type: 'vm' }] })]
    expect(compiled(anObject(rules)).document?.custom_resource_types).toEqual(['pvc', 'vm'])
  })

  it('keeps the bounds as they were written', () => {
    const validity = { notBefore: '2026-01-01T00:00:00.5+02:00', notAfter: '' }
    const { document } = compiled(withSpec({ lifecycle: { validity } }))
    expect([document?.not_before, document?.not_after]).toEqual(['2026-01-01T00:00:00.5+02:00', null])
  })

  it('is the same with nulls, which an API server leaves out', () => {
    const object = anObject([aRule()])
    const withNulls = JSON.parse(
      JSON.stringify({
        ...object,
        spec: { ...object.spec, lifecycle: null, identity: { ...object.spec.identity, priority: null } },
      }),
    ) as PolicyObject
    expect(compiled(withNulls)).toEqual(compiled(object))
  })
})

describe('errors', () => {
  it.each<readonly [string, unknown, string]>([
    ['nothing at all', null, 'error field_invalid spec'],
    ['a name that cannot be', { ...anObject([]), metadata: { name: 'a\nb' } }, 'error name_invalid metadata.name'],
    [
      'a namespace that cannot be',
      { ...anObject([]), metadata: { name: 'a', namespace: 'A:B' } },
      'error name_invalid metadata.namespace',
    ],
    ['another effect', withSpec({ access: { effect: 'allow' } }), 'error effect_invalid spec.access.effect'],
    ['no effect', withSpec({ access: {} }), 'error effect_invalid spec.access.effect'],
    [
      'a priority of 0',
      withSpec({ identity: { subjects: {}, priority: 0 } }),
      'error priority_invalid spec.identity.priority',
    ],
    [
      'a priority above the highest',
      withSpec({ identity: { subjects: {}, priority: 10001 } }),
      'error priority_invalid spec.identity.priority',
    ],
    [
      'half a priority',
      withSpec({ identity: { subjects: {}, priority: 1.5 } }),
      'error priority_invalid spec.identity.priority',
    ],
    [
      'a list where a text belongs',
      withSpec({ identity: { subjects: { users: 'ann' } } }),
      'error field_invalid spec.identity.subjects.users',
    ],
    [
      'a pattern that is no RE2',
      anObject([aRule(), aRule({ selector: { matchPattern: '[invalid' } })]),
      `error pattern_invalid ${RULES}[1].selector.matchPattern`,
    ],
    [
      'a pattern that looks ahead',
      anObject([aRule({ selector: { matchPattern: '^(?!prod)' } })]),
      `error pattern_invalid ${RULES}[0].selector.matchPattern`,
    ],
    [
      'a pattern too long',
      anObject([aRule({ selector: { matchPattern: 'a'.repeat(257) } })]),
      `error pattern_invalid ${RULES}[0].selector.matchPattern`,
    ],
    [
      'a time in words',
      withSpec({ lifecycle: { validity: { notAfter: 'soon' } } }),
      'error time_invalid spec.lifecycle.validity.notAfter',
    ],
    [
      'a day that is none',
      withSpec({ lifecycle: { validity: { notBefore: '2026-02-30T00:00:00Z' } } }),
      'error time_invalid spec.lifecycle.validity.notBefore',
    ],
    [
      'a time without zone',
      withSpec({ lifecycle: { validity: { notBefore: '2026-02-03T00:00:00' } } }),
      'error time_invalid spec.lifecycle.validity.notBefore',
    ],
    [
      'bounds the wrong way round',
      withSpec({
        lifecycle: { validity: { notBefore: '2027-01-02T00:00:00Z', notAfter: '2027-01-02T00:30:00+01:00' } },
      }),
      'error validity_reversed spec.lifecycle.validity.notAfter',
    ],
    [
      'a user on two lines',
      withSpec({ identity: { subjects: { users: ['ann\n'] } } }),
      'error control_character spec.identity.subjects.users[0]',
    ],
    [
      'a cluster on two lines',
      anObject([aRule({ selector: { matchNames: ['a\n'] } })]),
      `error control_character ${RULES}[0].selector.matchNames[0]`,
    ],
    [
      'a hidden name on two lines',
      withResource({ type: 'namespaces', filters: { names: { denied: ['kube-*\n'] } } }),
      `error control_character ${RULES}[0].resources[0].filters.names.denied[0]`,
    ],
    [
      'a denied expression that reads like a wildcard',
      withResource({ type: 'vm', filters: { names: { denied: ['x', '(prod|stage)-*'] } } }),
      `error denied_looks_like_regex ${RULES}[0].resources[0].filters.names.denied[1]`,
    ],
    [
      'a denied expression among namespaces',
      withResource({ type: 'alerts', filters: { namespaces: { denied: ['prod|stage'] } } }),
      `error denied_looks_like_regex ${RULES}[0].resources[0].filters.namespaces.denied[0]`,
    ],
    [
      'a denied expression of a field',
      withResource({ type: 'vm', filters: { fields: { size: { denied: ['^a.*$'] } } } }),
      `error denied_looks_like_regex ${RULES}[0].resources[0].filters.fields.size.denied[0]`,
    ],
    [
      'an expression among the names of a Deny',
      withSpec({
        access: { effect: 'Deny' },
        scope: { clusters: { rules: [{ selector: { matchNames: ['(prod|stage)-1'] } }] } },
      }),
      `error name_looks_like_regex ${RULES}[0].selector.matchNames[0]`,
    ],
    [
      'an unknown visibility',
      withResource({ type: 'nodes', visibility: 'some' as 'all' }),
      `error field_invalid ${RULES}[0].resources[0].visibility`,
    ],
  ])('refuses %s', (_, object, expected) => {
    expect(found(object)).toContain(expected)
    expect(compilePolicy(object as PolicyObject, { now }).document).toBeUndefined()
  })

  it('are no expressions: names of alerts with brackets, and filters of a Deny, which are ignored', () => {
    const alert = withResource({ type: 'alerts', filters: { names: { denied: ['CPU (high)'] } } })
    const deny = withSpec({
      access: { effect: 'Deny' },
      scope: {
        clusters: {
          rules: [aRule({ resources: [{ type: 'nodes', filters: { names: { denied: ['(a|b)*'] } } }] })],
        },
      },
    })
    for (const object of [alert, deny]) expect(compilePolicy(object, { now }).document).toBeDefined()
  })

  it('come before warnings', () => {
    const object = withSpec({ identity: { subjects: {} }, lifecycle: { validity: { notAfter: 'soon' } } })
    expect(compiled(object).findings.map(({ severity }) => severity)).toEqual(['error', 'warning'])
  })
})

describe('warnings', () => {
  const ALL = `${RULES}[0].resources[0]`
  it.each<readonly [string, PolicyObject, string]>([
    ['nobody', withSpec({ identity: { subjects: {} } }), 'subjects_empty spec.identity.subjects'],
    [
      'a user with a star',
      withSpec({ identity: { subjects: { users: ['a*'] } } }),
      'subject_exact spec.identity.subjects.users[0]',
    ],
    [
      'a user without name',
      withSpec({ identity: { subjects: { users: [''] } } }),
      'text_empty spec.identity.subjects.users[0]',
    ],
    [
      'a service account written with its namespace',
      withSpec({ identity: { subjects: { serviceAccounts: [{ name: 'ci:bot' }] } } }),
      'subject_exact spec.identity.subjects.serviceAccounts[0]',
    ],
    ['no rules', anObject([]), `rules_empty ${RULES}`],
    [
      'a default that denies',
      withSpec({ scope: { clusters: { default: 'deny', rules: [aRule()] } } }),
      'default_denies_nothing spec.scope.clusters.default',
    ],
    [
      'a default in a Deny',
      withSpec({ access: { effect: 'Deny' }, scope: { clusters: { default: 'allow', rules: [aRule()] } } }),
      'default_ignored spec.scope.clusters.default',
    ],
    ['a selector that selects nothing', anObject([aRule({ selector: {} })]), `selector_empty ${RULES}[0].selector`],
    [
      'a name that is an expression',
      anObject([aRule({ selector: { matchNames: ['^dev'] } })]),
      `cluster_name_impossible ${RULES}[0].selector.matchNames[0]`,
    ],
    [
      'a pattern without anchor',
      anObject([aRule({ selector: { matchPattern: 'prod' } })]),
      `pattern_unanchored ${RULES}[0].selector.matchPattern`,
    ],
    [
      'metrics without view',
      anObject([aRule({ permissions: { viewMetrics: true } })]),
      `view_not_granted ${RULES}[0].permissions`,
    ],
    [
      'a grant of nothing',
      anObject([aRule({ permissions: { view: false } })]),
      `view_not_granted ${RULES}[0].permissions`,
    ],
    [
      'permissions in a Deny',
      anObject([aRule({ permissions: { viewMetrics: true } })], 'Deny'),
      `permissions_in_deny ${RULES}[0].permissions`,
    ],
    [
      'the same type twice',
      anObject([aRule({ resources: [{ type: 'nodes' }, { type: 'pods' }, { type: 'nodes' }] })]),
      `duplicate_type ${RULES}[0].resources[2]`,
    ],
    ['a letter too many', withResource({ type: 'nodess' }), `type_misspelled ${ALL}.type`],
    ['capitals', withResource({ type: 'Pods' }), `type_misspelled ${ALL}.type`],
    ['one of them', withResource({ type: 'namespace' }), `type_misspelled ${ALL}.type`],
    ['a type that follows another', withResource({ type: 'deployments' }), `type_misspelled ${ALL}.type`],
    [
      'filtered without filters',
      withResource({ type: 'nodes', visibility: 'filtered' }),
      `filter_empty ${ALL}.visibility`,
    ],
    [
      'filtered with empty filters',
      withResource({ type: 'nodes', visibility: 'filtered', filters: { names: {} } }),
      `filter_empty ${ALL}.visibility`,
    ],
    [
      'all with filters',
      withResource({ type: 'nodes', filters: { names: { allowed: ['a'] } } }),
      `filters_under_all ${ALL}.visibility`,
    ],
    [
      'none with filters',
      withResource({ type: 'nodes', visibility: 'none', filters: { names: { allowed: ['a'] } } }),
      `filters_under_none ${ALL}.visibility`,
    ],
    [
      'filters in a Deny',
      withResource({ type: 'nodes', visibility: 'filtered', filters: { names: { allowed: ['a'] } } }, 'Deny'),
      `filters_in_deny ${ALL}.filters`,
    ],
    [
      'namespaces of nodes',
      withResource({ type: 'nodes', visibility: 'filtered', filters: { namespaces: { allowed: ['a'] } } }),
      `namespaces_ignored ${ALL}.filters.namespaces`,
    ],
    [
      'labels of operators',
      withResource({ type: 'operators', visibility: 'filtered', filters: { labels: { a: 'b' } } }),
      `labels_never_match ${ALL}.filters.labels`,
    ],
    [
      'names of pods',
      withResource({ type: 'pods', visibility: 'filtered', filters: { names: { denied: ['a'] } } }),
      `names_never_match ${ALL}.filters.names`,
    ],
    [
      'fields of a standard type',
      withResource({ type: 'nodes', visibility: 'filtered', filters: { fields: { size: { allowed: ['1'] } } } }),
      `fields_never_match ${ALL}.filters.fields`,
    ],
    [
      'aggregations of a standard type',
      withResource({ type: 'nodes', aggregations: { include: ['a'] } }),
      `aggregations_ignored ${ALL}.aggregations`,
    ],
    [
      'aggregations in and out',
      withResource({ type: 'vm', aggregations: { include: ['a', 'b'], exclude: ['b'] } }),
      `aggregations_contradict ${ALL}.aggregations`,
    ],
    [
      'a filter that leaves nothing',
      withResource({
        type: 'nodes',
        visibility: 'filtered',
        filters: { names: { allowed: ['a', 'b*'], denied: ['b*', 'a'] } },
      }),
      `filter_hides_all ${ALL}.filters.names`,
    ],
    [
      'a wildcard that looks like an expression',
      withResource({ type: 'vm', visibility: 'filtered', filters: { fields: { 'a.b': { allowed: ['x', '^a.*$'] } } } }),
      `wildcard_looks_like_regex ${ALL}.filters.fields["a.b"].allowed[1]`,
    ],
    [
      'an end in the past',
      withSpec({ lifecycle: { validity: { notAfter: '2026-01-01T00:00:00Z' } } }),
      'validity_expired spec.lifecycle.validity.notAfter',
    ],
    [
      'a field that does not exist',
      anObject([{ ...aRule({ resources: [{ type: 'nodes', filter: { names: {} } } as Resource] }) }]),
      `field_unknown ${ALL}.filter`,
    ],
  ])('tells of %s, and compiles', (_, object, expected) => {
    expect(found(object)).toContain(`warning ${expected}`)
    expect(compiled(object).document).toBeDefined()
  })

  it.each<readonly [string, PolicyObject]>([
    ['the example of the kind', monitorAccessPolicy.definition.example as unknown as PolicyObject],
    ['a type of a MetricSource', withResource({ type: 'virtualmachines', aggregations: { include: ['total'] } })],
    ['short custom types', anObject([aRule({ resources: [{ type: 'vm' }, { type: 'pvc' }, { type: 'jobs' }] })])],
    [
      'labels where there are some',
      withResource({ type: 'nodes', visibility: 'filtered', filters: { labels: { a: 'b' } } }),
    ],
    ['a Deny of types', withResource({ type: 'operators' }, 'Deny')],
    ['a default alone', withSpec({ scope: { clusters: { default: 'allow' } } })],
    ['an end to come', withSpec({ lifecycle: { validity: { notAfter: '2026-01-15T10:30:01Z' } } })],
    [
      'a repeated pair of one name',
      withSpec({ identity: { subjects: { users: ['ann@example.com', 'system:admin'] } } }),
    ],
  ])('are silent about %s', (_, object) => expect(compiled(object).findings).toEqual([]))

  it('are sentences that end with what to do', () => {
    for (const { message } of compiled(withResource({ type: 'nodess', visibility: 'filtered' })).findings) {
      expect(message).toMatch(/(: |; )\w.*[^.]$/)
    }
  })
})

describe('an anchored pattern', () => {
  it.each([
    '^prod',
    '^prod-.*$',
    '(?i)^prod',
    '\\Aprod',
    '.*',
    '.+-prod$',
    '^a|^b',
    '(^a|^b)x',
    '(?:^a|.*b)',
    '(?P<n>^a)',
    '(?i:^a)',
  ])('%s is one', (pattern) => expect(isAnchored(pattern)).toBe(true))
  it.each(['prod', 'prod$', '^a|b', '(^a|b)', '(^a)?b', '(^a)*', '[\\^]a', '\\^a', '[^a]', 'a|^b', '', '[)]^'])(
    '%s is none',
    (pattern) => expect(isAnchored(pattern)).toBe(false),
  )
})

describe('size', () => {
  it('takes 10 000 rules, and lists no more than a thousand warnings', () => {
    const rules = Array.from({ length: 10_000 }, (_, i) =>
      aRule({
        selector: { matchNames: [`c-${i}`], matchPattern: `c-${i}$` },
        resources: [{ type: 'nodes', visibility: 'filtered' }],
      }),
    )
    const started = process.cpuUsage()
    const { document, findings } = compiled(anObject(rules))
    expect(cpuMs(started)).toBeLessThan(5000)
    expect(document?.cluster_rules).toHaveLength(10_000)
    expect(findings).toHaveLength(1001)
    expect(findings.at(-1)).toMatchObject({
      code: 'more_findings',
      message: expect.stringContaining('19000') as string,
    })
  })

  it('refuses a rule more than that', () => {
    expect(found(anObject(Array.from({ length: 10_001 }, () => aRule())))).toContain(`error field_invalid ${RULES}`)
  })
})
