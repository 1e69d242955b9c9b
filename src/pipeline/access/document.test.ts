import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { MonitorAccessPolicySpec } from '#kinds'
import { cpuMs } from '../../../test/cpu.ts'
import { policyDocument, readStoredPolicy } from './document.ts'
import { aDocument } from './testing/policies.ts'
import type { PolicyDocument, PolicyObject } from './types.ts'

const KEY = 'clusterpulse/p'
const read = (value: unknown) => readStoredPolicy(KEY, typeof value === 'string' ? value : JSON.stringify(value))
const faultsOf = (value: unknown) => read(value).faults.map(({ code, path }) => `${code} ${path}`)
const rulesOf = (value: unknown) => read(value).document.cluster_rules

const allow = (over: object) => ({ ...aDocument('p'), ...over })
const deny = (over: object) => allow({ effect: 'Deny', ...over })
const aRule = (over: object = {}) => ({
  cluster_selector: { matchNames: ['c1'] },
  permissions: { view: true },
  resources: null,
  ...over,
})
const withRule = (over: object) => ({ cluster_rules: [aRule(over)] })
const withResource = (over: object) => withRule({ resources: [{ type: 'nodes', visibility: 'filtered', ...over }] })

const everyCluster = { matchPattern: '.*' }
const denyAll = { cluster_selector: everyCluster, permissions: { view: true, viewMetrics: true }, resources: null }

// ── objects that somebody could have applied ─────────────────────────────────────────────────────────────────────────

const name = fc.constantFrom('a', 'app-1', 'kube-system', 'ünï', 'a:b', '__proto__', 'constructor', '10', 'x|y', '😀')
const text = fc.oneof(name, fc.constantFrom('app-*', '*', '?', 'a.b*', '(*', '[?', '^a$*', 'a\\*'))
const texts = fc.option(fc.array(text, { maxLength: 4 }), { nil: undefined })
const compact = <T extends object>(value: T): T => JSON.parse(JSON.stringify(value)) as T // leaves out what is undefined
const lists = fc.record({ allowed: texts, denied: texts })
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })
const labels = maybe(fc.dictionary(name, name, { maxKeys: 3 }))
const resource = fc.record({
  type: fc.constantFrom('nodes', 'pods', 'vm', 'namespaces', 'pvc'),
  visibility: maybe(fc.constantFrom('all' as const, 'none' as const, 'filtered' as const)),
  filters: maybe(
    fc.record({
      names: maybe(lists),
      namespaces: maybe(lists),
      labels,
      fields: maybe(fc.dictionary(name, lists, { maxKeys: 3 })),
    }),
  ),
  aggregations: maybe(fc.record({ include: texts, exclude: texts })),
})
const flag = maybe(fc.boolean())
const rule = fc.record({
  selector: fc.record({
    matchNames: texts,
    matchPattern: maybe(fc.constantFrom('', '^prod-', '.*', 'ü{2,3}', '(?i)a|b')),
    matchLabels: labels,
  }),
  permissions: maybe(fc.record({ view: flag, viewMetrics: flag })),
  resources: maybe(fc.array(resource, { maxLength: 3 })),
})
const account = fc.record({ name, namespace: maybe(name) })
const spec = fc.record({
  identity: fc.record({
    subjects: fc.record({ users: texts, groups: texts, serviceAccounts: maybe(fc.array(account, { maxLength: 3 })) }),
    priority: maybe(fc.integer({ min: 1, max: 10_000 })),
  }),
  access: fc.record({ effect: fc.constantFrom('Allow' as const, 'Deny' as const), enabled: flag }),
  scope: fc.record({
    clusters: fc.record({
      default: maybe(fc.constantFrom('allow' as const, 'deny' as const, 'none' as const)),
      rules: maybe(fc.array(rule, { maxLength: 4 })),
    }),
  }),
  lifecycle: maybe(
    fc.record({
      validity: maybe(
        fc.record({
          notBefore: maybe(fc.constantFrom('', '2025-01-01T00:00:00Z')),
          notAfter: maybe(fc.constantFrom('', '2027-01-01T00:00:00.123456+02:00')),
        }),
      ),
    }),
  ),
})
const documents = spec.map((value) => {
  const object = { metadata: { name: 'p', namespace: 'clusterpulse' }, spec: compact(value) as MonitorAccessPolicySpec }
  return policyDocument(object as PolicyObject, 0)
})

describe('a stored policy', () => {
  it('reads back as it was written, without faults', () => {
    fc.assert(
      fc.property(documents, (document) => {
        expect(read(document)).toEqual({ key: KEY, document, faults: [] })
      }),
      { numRuns: 200 },
    )
  })

  it('does not tell null, absent and empty apart, and ignores keys it does not know', () => {
    for (const [list, map] of [
      [[], {}],
      [null, null],
      [undefined, undefined],
    ]) {
      const { document, faults } = read({
        ...aDocument('p'),
        users: list,
        custom_resource_types: list,
        not_before: list === undefined ? undefined : null,
        audit_config: { level: 'full' },
        cluster_rules: [
          {
            cluster_selector: {
              matchNames: ['c1'],
              matchPattern: list === undefined ? undefined : '',
              matchLabels: map,
            },
            permissions: { view: true },
            resources: [
              {
                type: 'nodes',
                visibility: 'filtered',
                allowed_names: list,
                name_patterns: list,
                labels: map,
                field_filters: map,
                added_later: 1,
              },
            ],
          },
        ],
      })
      expect(faults).toEqual([])
      expect(document).toEqual({
        ...aDocument('p'),
        cluster_rules: [
          {
            cluster_selector: { matchNames: ['c1'] },
            permissions: { view: true },
            resources: [{ type: 'nodes', visibility: 'filtered' }],
          },
        ],
      })
    }
  })

  it('is read whichever of the two translations its wildcards have', () => {
    for (const regex of ['^a|b.*$', '^a\\|b.*$']) {
      expect(faultsOf(allow(withResource({ name_patterns: [['a|b*', regex]] })))).toEqual([])
    }
  })

  it.each([
    ['broken JSON', '{"effect":'],
    ['no text', ''],
    ['null', 'null'],
    ['a list', '[]'],
    ['a number', '7'],
    ['an object of something else', '{}'],
    ['a Deny of nobody knows whom', deny({ users: ['ann', 7] })],
    ['an unknown effect for nobody knows whom', allow({ effect: 'Maybe', groups: 'all' })],
  ])('is unreadable as a whole where it is %s', (_, value) => {
    const { document, faults } = read(value)
    expect(faults.map(({ code }) => code)).toContain('document_unreadable')
    expect(document).toMatchObject({
      policy_name: 'p',
      namespace: 'clusterpulse',
      users: [],
      groups: [],
      cluster_rules: [denyAll],
    })
  })
})

describe('what is wrong in a stored policy', () => {
  it.each([
    ['effect_unknown effect', allow({ effect: 'Maybe' })],
    ['type_wrong enabled', allow({ enabled: 'true' })],
    ['type_wrong priority', allow({ priority: '100' })],
    ['type_wrong priority', allow({ priority: null })],
    ['priority_invalid priority', allow({ priority: 0 })],
    ['time_invalid not_before', deny({ not_before: 'soon' })],
    ['type_wrong not_after', deny({ not_after: 5 })],
    ['type_wrong users[1]', allow({ users: ['ann', null] })],
    ['control_character users[0]', deny({ users: ['ann\nbob'] })],
    ['control_character policy_name', allow({ policy_name: 'a\r\nb' })],
    ['type_wrong cluster_rules', allow({ cluster_rules: {} })],
    ['type_wrong cluster_rules[1]', allow({ cluster_rules: [aRule(), 'x'] })],
    ['type_wrong cluster_rules[0].cluster_selector', allow(withRule({ cluster_selector: ['c1'] }))],
    [
      'type_wrong cluster_rules[0].cluster_selector.matchNames[1]',
      allow(withRule({ cluster_selector: { matchNames: ['a', 1] } })),
    ],
    [
      'pattern_invalid cluster_rules[0].cluster_selector.matchPattern',
      deny(withRule({ cluster_selector: { matchPattern: '[invalid' } })),
    ],
    [
      'type_wrong cluster_rules[0].cluster_selector.matchLabels["a/b"]',
      allow(withRule({ cluster_selector: { matchLabels: { 'a/b': 1 } } })),
    ],
    ['type_wrong cluster_rules[0].permissions.view', allow(withRule({ permissions: { view: 'yes' } }))],
    ['type_wrong cluster_rules[0].resources', allow(withRule({ resources: 'nodes' }))],
    ['type_wrong cluster_rules[0].resources[0].type', allow(withResource({ type: '' }))],
    ['visibility_unknown cluster_rules[0].resources[0].visibility', allow(withResource({ visibility: 'some' }))],
    ['control_character cluster_rules[0].resources[0].denied_names[0]', allow(withResource({ denied_names: ['a\n'] }))],
    ['type_wrong cluster_rules[0].resources[0].name_patterns[0]', allow(withResource({ name_patterns: [['a*']] }))],
    [
      'pattern_invalid cluster_rules[0].resources[0].deny_ns_patterns[0]',
      allow(withResource({ deny_ns_patterns: [['a(*', '^a(.*$']] })),
    ],
    [
      'pattern_invalid cluster_rules[0].resources[0].ns_patterns[1]',
      allow(
        withResource({
          ns_patterns: [
            ['a*', '^a.*$'],
            ['b*', '^.*$'],
          ],
        }),
      ),
    ],
    ['type_wrong cluster_rules[0].resources[0].labels.team', allow(withResource({ labels: { team: 1, env: 'x' } }))],
    [
      'type_wrong cluster_rules[0].resources[0].field_filters.phase.allowed_literals',
      allow(withResource({ field_filters: { phase: { allowed_literals: 'Bound' } } })),
    ],
    [
      'type_wrong cluster_rules[0].resources[0].aggregation_rules.exclude',
      allow(withResource({ aggregation_rules: { exclude: true } })),
    ],
    ['type_wrong hash', allow({ hash: 5 })],
  ])('is named: %s', (fault, value) => expect(faultsOf(value)).toContain(fault))

  it('does not hide the faults beside it', () => {
    const value = allow({ priority: 'x', hash: 1, cluster_rules: [aRule({ permissions: 1 }), aRule({ resources: 1 })] })
    expect(faultsOf(value)).toEqual([
      'type_wrong priority',
      'type_wrong cluster_rules[0].permissions',
      'type_wrong cluster_rules[1].resources',
      'type_wrong hash',
    ])
  })

  it('is counted where there is too much of it', () => {
    const { faults } = read(allow({ users: Array.from({ length: 1500 }, () => 1) }))
    expect(faults).toHaveLength(1001)
    expect(faults.at(-1)).toMatchObject({ code: 'more_faults', message: expect.stringContaining('500 more') as string })
  })
})

describe('in an Allow, what cannot be read grants nothing', () => {
  const nothing = { view: false, viewMetrics: false }
  it.each<readonly [string, object, object]>([
    ['it being enabled', { enabled: 'true' }, { enabled: false }],
    ['its default', { default_cluster_access: ['allow'] }, { default_cluster_access: 'none' }],
    [
      'its priority',
      { priority: 'high', default_cluster_access: 'allow' },
      { priority: 1, default_cluster_access: 'none', cluster_rules: null },
    ],
    ['a priority that was never looked at', { priority: 0 }, { cluster_rules: null }],
    ['a bound', { not_after: 5 }, { not_after: 'unreadable' }],
    [
      'its rules',
      { cluster_rules: 'x' },
      { cluster_rules: [{ cluster_selector: {}, permissions: nothing, resources: null }] },
    ],
    ['a subject', { users: ['ann', 5] }, { users: ['ann'] }],
  ])('%s', (_, value, expected) => expect(read(allow(value)).document).toMatchObject(expected))

  it('a name among names', () =>
    expect(
      rulesOf(allow(withRule({ cluster_selector: { matchNames: ['a', 5], matchLabels: { a: 'b', c: 1 } } }))),
    ).toEqual([aRule({ cluster_selector: { matchNames: ['a'] } })]))
  it('a permission', () =>
    expect(rulesOf(allow(withRule({ permissions: { view: 1, viewMetrics: true } })))).toEqual([
      aRule({ permissions: { viewMetrics: true } }),
    ]))
  it.each([
    { denied_names: [5] },
    { name_patterns: 'x' },
    { labels: { a: 1 } },
    { field_filters: [] },
    { visibility: 7 },
    { aggregation_rules: { exclude: [1] } },
  ])('a filter: %j', (over) =>
    expect(rulesOf(allow(withResource(over)))).toEqual([aRule({ resources: [{ type: 'nodes', visibility: 'none' }] })]),
  )
  it('a type, which may have been any', () => {
    const [rule] = rulesOf(allow(withRule({ resources: [{ type: 'vm', visibility: 'all' }, 5] }))) ?? []
    expect(rule?.resources?.slice(0, 2)).toEqual([
      { type: 'vm', visibility: 'all' },
      { type: '', visibility: 'none' },
    ])
    expect(rule?.resources?.slice(2).map(({ type, visibility }) => `${type} ${visibility}`)).toEqual([
      'nodes none',
      'operators none',
      'namespaces none',
      'pods none',
      'alerts none',
      'events none',
    ])
  })
})

describe('in a Deny, what cannot be read denies all that it could have named', () => {
  it.each<readonly [string, object, object]>([
    ['it being enabled', { enabled: 'false' }, { enabled: true }],
    ['its priority', { priority: {} }, { priority: 10_000 }],
    ['its rules', { cluster_rules: 'x' }, { cluster_rules: [denyAll] }],
    ['a rule', { cluster_rules: [aRule(), 5] }, { cluster_rules: [aRule(), denyAll] }],
    ['its selector', withRule({ cluster_selector: 5 }), { cluster_rules: [aRule({ cluster_selector: everyCluster })] }],
    [
      'a name among names',
      withRule({ cluster_selector: { matchNames: ['a', 5] } }),
      { cluster_rules: [aRule({ cluster_selector: everyCluster })] },
    ],
    [
      'its permissions',
      withRule({ permissions: 'x' }),
      { cluster_rules: [aRule({ permissions: denyAll.permissions })] },
    ],
    [
      'no permissions',
      withRule({ permissions: null }),
      { cluster_rules: [aRule({ permissions: denyAll.permissions })] },
    ],
    ['a type', withRule({ resources: [{ type: 'vm', visibility: 'all' }, { type: 5 }] }), { cluster_rules: [aRule()] }],
  ])('%s', (_, value, expected) => {
    expect(read(deny(value)).document).toMatchObject(expected)
    expect(read({ ...deny(value), effect: 'deny' }).document).toMatchObject(expected)
  })

  it('and what has only a wrong content stays for who decides as the original did', () => {
    const value = deny({ ...withRule({ cluster_selector: { matchPattern: '[invalid' } }), not_after: 'soon' })
    expect(read(value).document).toEqual(value)
  })
})

describe('any text at all', () => {
  const isShaped = (document: PolicyDocument): boolean =>
    [document.policy_name, document.namespace, document.effect, document.default_cluster_access, document.hash].every(
      (value) => typeof value === 'string',
    ) &&
    Number.isSafeInteger(document.priority) &&
    typeof document.enabled === 'boolean' &&
    [document.users, document.groups, document.service_accounts].every((list) =>
      list.every((one) => typeof one === 'string'),
    ) &&
    (document.cluster_rules ?? []).every(
      ({ cluster_selector, permissions, resources }) =>
        typeof cluster_selector === 'object' &&
        typeof permissions === 'object' &&
        (resources ?? []).every(({ type, visibility }) => typeof type === 'string' && typeof visibility === 'string'),
    )

  it('is read without throwing', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: 'binary' }),
          fc.json(),
          fc.jsonValue().map((v) => JSON.stringify({ effect: 'Allow', ...Object(v) })),
        ),
        (value) => isShaped(readStoredPolicy(KEY, value).document),
      ),
      { numRuns: 300 },
    )
  })

  it('stays in shape with anything put in any place, and has a fault unless it says something as good', () => {
    const places = (value: unknown): (readonly (string | number)[])[] =>
      typeof value !== 'object' || value === null
        ? [[]]
        : [[], ...Object.entries(value).flatMap(([key, inner]) => places(inner).map((rest) => [key, ...rest]))]
    const put = (value: unknown, [key, ...rest]: readonly (string | number)[], put1: unknown): unknown => {
      if (key === undefined) return put1
      const copy: Record<string, unknown> = Array.isArray(value) ? ([...value] as never) : { ...(value as object) }
      copy[key] = put(copy[key], rest, put1)
      return copy
    }
    fc.assert(
      fc.property(documents, fc.nat(), fc.jsonValue(), (document, at, value) => {
        const all = places(document)
        const mutated = put(document, all[at % all.length] ?? [], value)
        const stored = read(mutated)
        expect(isShaped(stored.document)).toBe(true)
        // Read again as it was understood, it has nothing more to complain of than content that cannot be used.
        const again = read(stored.document)
        if (!stored.faults.some(({ code }) => code === 'document_unreadable')) {
          expect(again.faults.filter(({ code, path }) => code === 'type_wrong' && !path.endsWith('.type'))).toEqual([])
        }
      }),
      { numRuns: 500 },
    )
  })

  it('is read when it is huge and deep', () => {
    const rules = Array.from({ length: 10_000 }, (_, i) => aRule({ cluster_selector: { matchNames: [`c-${i}`] } }))
    const started = process.cpuUsage()
    expect(read(allow({ cluster_rules: rules })).faults).toEqual([])
    expect(faultsOf(`{"effect":"Allow","cluster_rules":${'['.repeat(100_000)}${']'.repeat(100_000)}}`)).toContain(
      'type_wrong cluster_rules[0]',
    )
    expect(cpuMs(started)).toBeLessThan(2000)
  })
})
