import { describe, expect, it } from 'vitest'
import type { Principal, Semantics } from '#access'
import type { MonitorAccessPolicySpec } from '#kinds'
import { Oracle } from './oracle.ts'
import { type PlainCluster, start, stateOf, type World, type WrittenPolicy } from './world.ts'

type Rule = NonNullable<MonitorAccessPolicySpec['scope']['clusters']['rules']>[number]
type Resource = NonNullable<Rule['resources']>[number]

const alice: Principal = { username: 'alice', email: '', groups: [], isServiceAccount: false, method: 'oidc' }

interface Short {
  readonly effect?: 'Allow' | 'Deny'
  readonly priority?: number
  readonly users?: readonly string[]
  readonly groups?: readonly string[]
  readonly serviceAccounts?: readonly { name: string; namespace: string }[]
  readonly names?: readonly string[]
  readonly pattern?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly permissions?: { view?: boolean; viewMetrics?: boolean }
  readonly resources?: readonly Resource[]
  readonly open?: boolean
  readonly rules?: readonly Rule[]
  readonly enabled?: boolean
  readonly notAfter?: string
  readonly byHand?: boolean
}

const policy = (short: Short, index: number): WrittenPolicy => {
  const { names, pattern, labels, permissions, resources } = short
  const rule: Rule = {
    selector: {
      ...(names && { matchNames: [...names] }),
      ...(pattern !== undefined && { matchPattern: pattern }),
      ...(labels && { matchLabels: labels }),
    },
    ...(permissions && { permissions }),
    ...(resources && { resources: [...resources] }),
  }
  return {
    namespace: 'n',
    name: `p${index}`,
    byHand: short.byHand ?? true,
    spec: {
      identity: {
        subjects: {
          users: [...(short.users ?? (short.groups || short.serviceAccounts ? [] : ['alice']))],
          groups: [...(short.groups ?? [])],
          serviceAccounts: [...(short.serviceAccounts ?? [])],
        },
        priority: short.priority ?? 100,
      },
      access: { effect: short.effect ?? 'Allow', enabled: short.enabled ?? true },
      scope: {
        clusters: { ...(short.open && { default: 'allow' as const }), rules: short.rules ? [...short.rules] : [rule] },
      },
      ...(short.notAfter && { lifecycle: { validity: { notAfter: short.notAfter } } }),
    },
  }
}

const cluster = (name: string, changes: Partial<PlainCluster> = {}) =>
  stateOf({
    ...{ name, mark: 'm', labels: {}, nodes: null, namespaces: null, deployments: null, operators: null, pods: null },
    ...{
      clusterOperators: null,
      events: [],
      alerts: [],
      custom: [],
      resources: [],
      collected: [],
      unread: [],
      heartbeats: [],
    },
    ...changes,
  })

const node = (name: string) => ({ name, mark: name, labels: {}, ready: true, role: 'worker', cpu: 1, used: true })
const plain = (name: string) => ({ name, mark: name, labels: {} })

function eyes(semantics: Semantics, policies: readonly Short[], principal: Partial<Principal> = {}) {
  const world: World = {
    ...{
      seed: 0,
      semantics,
      now: start,
      administrators: { users: [], groups: [] },
      principals: [],
      clusters: [],
      taken: [],
    },
    policies: policies.map(policy),
  }
  return new Oracle(world).eyes({ ...alice, ...principal })
}

const deny = 'Deny' as const
type Seen = readonly [original: boolean, strict: boolean]
const both = (is: boolean): Seen => [is, is]

describe('the oracle answers the worked examples about clusters', () => {
  const withLabels = { labels: { env: 'prod' } }
  type Case = readonly [number, string, readonly Short[], string, Seen, Partial<Principal>?]
  const cases: readonly Case[] = [
    [1, 'nothing without policies', [], 'c1', both(false)],
    [2, 'what a policy names', [{ names: ['c1'] }], 'c1', both(true)],
    [3, 'not what it does not name', [{ names: ['c1'] }], 'c2', both(false)],
    [4, 'by pattern', [{ pattern: '^prod-' }], 'prod-1', both(true)],
    [4, 'not against the pattern', [{ pattern: '^prod-' }], 'dev-1', both(false)],
    [5, 'a pattern found anywhere', [{ pattern: 'prod' }], 'nonprod-1', both(true)],
    [6, 'wildcards in names', [{ names: ['prod-*'] }], 'prod-1', [false, true]],
    [7, 'labels', [{ labels: { env: 'prod' } }], 'c1', [false, true]],
    [8, 'alternatives', [{ names: ['a'], pattern: '^(dev|c)', labels: { a: 'b' } }], 'c1', both(true)],
    [9, 'an empty selector', [{}], 'c1', both(false)],
    [
      11,
      'a Deny above',
      [{ effect: deny, priority: 200, names: ['prod-1'] }, { pattern: '.*' }],
      'prod-1',
      both(false),
    ],
    [
      11,
      'a Deny above of another cluster',
      [{ effect: deny, priority: 200, names: ['prod-1'] }, { pattern: '.*' }],
      'dev-1',
      both(true),
    ],
    [
      12,
      'a Deny below',
      [{ effect: deny, priority: 50, names: ['prod-1'] }, { names: ['prod-1'] }],
      'prod-1',
      both(true),
    ],
    [
      13,
      'a Deny of a group',
      [{ effect: deny, priority: 300, groups: ['contractors'], pattern: '^prod-' }, { pattern: '.*' }],
      'prod-1',
      both(false),
      { groups: ['contractors'] },
    ],
    [15, 'a policy that is off', [{ names: ['c1'], enabled: false }], 'c1', both(false)],
    [
      16,
      'an expired Deny',
      [{ effect: deny, priority: 200, names: ['c1'], notAfter: '2026-03-01T11:59:59Z' }, { names: ['c1'] }],
      'c1',
      both(true),
    ],
    [
      17,
      'a Deny until nobody knows when',
      [{ effect: deny, priority: 200, names: ['c1'], notAfter: 'soon' }, { names: ['c1'] }],
      'c1',
      [true, false],
    ],
    [
      18,
      'a Deny of a pattern that is none',
      [{ effect: deny, priority: 200, pattern: '[invalid' }, { pattern: '.*' }],
      'c1',
      [true, false],
    ],
    [19, 'default allow', [{ open: true, rules: [] }], 'c1', [false, true]],
    [
      20,
      'default allow above a rule',
      [
        { priority: 200, open: true, names: ['other'] },
        { names: ['c1'], resources: [{ type: 'nodes', visibility: 'none' }] },
      ],
      'c1',
      both(true),
    ],
    [
      21,
      'default allow of a Deny',
      [{ effect: deny, priority: 200, open: true, names: ['x'] }, { pattern: '.*' }],
      'c1',
      both(true),
    ],
    [
      22,
      'a Deny of one type',
      [{ effect: deny, priority: 200, names: ['c1'], resources: [{ type: 'operators' }] }, { pattern: '.*' }],
      'c1',
      [false, true],
    ],
    [23, 'without view', [{ names: ['c1'], permissions: { view: false } }], 'c1', [true, false]],
    [
      40,
      'by email, verified',
      [{ users: ['alice@example.com'], names: ['c1'] }],
      'c1',
      [false, true],
      { email: 'alice@example.com', emailVerified: true },
    ],
    [
      40,
      'by email, not verified',
      [{ users: ['alice@example.com'], names: ['c1'] }],
      'c1',
      both(false),
      { email: 'alice@example.com' },
    ],
    [
      41,
      'a service account',
      [{ serviceAccounts: [{ name: 'bot', namespace: 'ci' }], names: ['c1'] }],
      'c1',
      both(true),
      { username: 'system:serviceaccount:ci:bot', isServiceAccount: true },
    ],
    [
      41,
      'who only calls itself one',
      [{ serviceAccounts: [{ name: 'bot', namespace: 'ci' }], names: ['c1'] }],
      'c1',
      both(false),
      { username: 'system:serviceaccount:ci:bot' },
    ],
    [42, 'priority 0', [{ priority: 0, names: ['c1'], byHand: false }], 'c1', both(false)],
    [44, 'after the last second', [{ names: ['c1'], notAfter: '2026-03-01T11:59:59.999Z' }], 'c1', both(false)],
  ]
  it.each(cases.map((one) => [one[0], one[1], one] as const))(
    '%i: %s',
    (_, __, [, , policies, name, seen, principal]) => {
      const [original, strict] = seen
      const state = cluster(name, name === 'c1' ? withLabels : {})
      expect([
        eyes('original', policies, principal).canSee(state),
        eyes('strict', policies, principal).canSee(state),
      ]).toEqual([original, strict])
    },
  )
})

describe('the oracle answers the worked examples about rows', () => {
  const c1 = cluster('c1', {
    nodes: ['w-1', 'w-2', 'm-1'].map(node),
    namespaces: ['app-1', 'app-internal', 'default', 'kube-system'].map(plain),
    operators: [
      { ...plain('a'), namespace: 'x', displayName: '', availableIn: ['app-1'], failed: false },
      { ...plain('b'), namespace: 'x', displayName: '', availableIn: ['kube-system'], failed: false },
      { ...plain('g'), namespace: 'x', displayName: '', availableIn: ['*'], failed: false },
    ],
  })
  const all = ['m-1', 'w-1', 'w-2']
  const lists = { allowed: ['app-*', 'default'], denied: ['app-internal'] }
  const none = { type: 'nodes', visibility: 'none' } as const
  type Rows = readonly [original: readonly string[], strict: readonly string[]]
  const cases: readonly (readonly [number, string, readonly Short[], 'node' | 'namespace' | 'operator', Rows])[] = [
    [19, 'default allow', [{ open: true, rules: [] }], 'node', [[], all]],
    [
      20,
      'default allow above a rule',
      [
        { priority: 200, open: true, names: ['x'] },
        { names: ['c1'], resources: [none] },
      ],
      'node',
      [all, []],
    ],
    [
      21,
      'default allow of a Deny',
      [{ effect: deny, priority: 200, open: true, names: ['x'] }, { pattern: '.*' }],
      'node',
      [[], all],
    ],
    [
      25,
      'names of namespaces',
      [{ names: ['c1'], resources: [{ type: 'namespaces', visibility: 'filtered', filters: { names: lists } }] }],
      'namespace',
      [
        ['app-1', 'default'],
        ['app-1', 'default'],
      ],
    ],
    [
      26,
      'namespaces of namespaces',
      [
        {
          names: ['c1'],
          resources: [{ type: 'namespaces', visibility: 'filtered', filters: { namespaces: { allowed: ['app-*'] } } }],
        },
      ],
      'namespace',
      [
        ['app-1', 'app-internal', 'default', 'kube-system'],
        ['app-1', 'app-internal'],
      ],
    ],
    [
      27,
      'filtered by nothing',
      [{ names: ['c1'], resources: [{ type: 'nodes', visibility: 'filtered' }] }],
      'node',
      [all, []],
    ],
    [
      28,
      'operators by namespace',
      [
        {
          names: ['c1'],
          resources: [{ type: 'operators', visibility: 'filtered', filters: { namespaces: { allowed: ['app-*'] } } }],
        },
      ],
      'operator',
      [
        ['x/a', 'x/g'],
        ['x/a', 'x/g'],
      ],
    ],
    [
      29,
      'a type that is not named',
      [{ names: ['c1'], resources: [{ type: 'operators', visibility: 'none' }] }],
      'node',
      [all, all],
    ],
    [30, 'none and all', [{ names: ['c1'], resources: [none, { type: 'nodes' }] }], 'node', [all, []]],
    [
      31,
      'the first policy alone',
      [
        { priority: 200, names: ['c1'], resources: [{ type: 'nodes', filters: { names: { allowed: ['w-1'] } } }] },
        { names: ['c1'], resources: [{ type: 'nodes', filters: { names: { allowed: ['m-1'] } } }] },
      ],
      'node',
      [['w-1'], ['w-1']],
    ],
  ]
  it.each(cases)('%i: %s', (_, __, policies, type, [original, strict]) => {
    const names = (semantics: Semantics) =>
      eyes(semantics, policies)
        .rows(c1, type)
        .map(({ name }) => name)
        .sort()
    expect([names('original'), names('strict')]).toEqual([original, strict])
  })
})

describe('the oracle answers the worked examples about custom types', () => {
  const state = cluster('prod-1')
  const pvc = (namespace: string, storageClass: unknown, labels = {}) => ({
    name: 'p',
    namespace,
    labels,
    values: { storageClass, size: 107374182400 },
  })
  const custom = (semantics: Semantics, policies: readonly Short[], type: string) =>
    eyes(semantics, policies).custom(state, type)
  it('32: nothing that no policy names', () => {
    for (const semantics of ['strict', 'original'] as const)
      expect(custom(semantics, [{ pattern: '.*' }], 'pvc').allowed).toBe(false)
  })
  it('33: by a lower policy', () => {
    const policies = [
      { priority: 300, names: ['prod-1'] },
      { names: ['prod-1'], resources: [{ type: 'vm' }] },
    ]
    for (const semantics of ['strict', 'original'] as const)
      expect(custom(semantics, policies, 'vm').allowed).toBe(true)
  })
  it('34: none decides', () => {
    const policies: Short[] = [
      { priority: 200, names: ['prod-1'], resources: [{ type: 'vm', visibility: 'none' }] },
      { names: ['prod-1'], resources: [{ type: 'vm' }] },
    ]
    expect([custom('original', policies, 'vm').allowed, custom('strict', policies, 'vm').allowed]).toEqual([
      true,
      false,
    ])
  })
  it('36: by namespace and field', () => {
    const filters = { namespaces: { allowed: ['app-*'] }, fields: { storageClass: { allowed: ['gp3', 'io2'] } } }
    const { shows } = custom(
      'strict',
      [{ pattern: '.*', resources: [{ type: 'pvc', visibility: 'filtered', filters }] }],
      'pvc',
    )
    expect([pvc('app-1', 'gp3'), pvc('app-1', 'std'), pvc('kube-system', 'gp3')].map(shows)).toEqual([
      true,
      false,
      false,
    ])
  })
  it('37: exclude wins', () => {
    const { aggregation } = custom(
      'strict',
      [
        {
          pattern: '.*',
          resources: [{ type: 'pvc', aggregations: { include: ['total', 'cost'], exclude: ['cost'] } }],
        },
      ],
      'pvc',
    )
    expect(['total', 'cost', 'other'].map(aggregation)).toEqual([true, false, false])
  })
  it('38 and 39: labels and numbers', () => {
    const labels: Short[] = [
      { pattern: '.*', resources: [{ type: 'pvc', visibility: 'filtered', filters: { labels: { team: 'a' } } }] },
    ]
    const sizes: Short[] = [
      {
        pattern: '.*',
        resources: [
          { type: 'pvc', visibility: 'filtered', filters: { fields: { size: { allowed: ['107374182400'] } } } },
        ],
      },
    ]
    const item = pvc('a', 'gp3', { team: 'a' })
    expect([custom('original', labels, 'pvc').shows(item), custom('strict', labels, 'pvc').shows(item)]).toEqual([
      false,
      true,
    ])
    expect([custom('original', sizes, 'pvc').shows(item), custom('strict', sizes, 'pvc').shows(item)]).toEqual([
      false,
      true,
    ])
  })
})
