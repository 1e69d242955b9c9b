import { describe, expect, it } from 'vitest'
import { readStoredPolicy } from './document.ts'
import { openAccess } from './open-access.ts'
import { printGo, printPlain } from './print-value.ts'
import { accessOf, storedDocument, storedOf, TestPolicies } from './testing/access-of.ts'
import {
  aStoredDocument,
  aStoredRule,
  cluster,
  names,
  namesOf,
  namespace,
  node,
  operator,
  pattern,
  person,
  podSummary,
  policy,
  type Resource,
} from './testing/words.ts'
import type { AccessView, PolicyObject, RowItem, Semantics } from './types.ts'

/** Section 14 of the specification, row by row: what the original did, and what we do. */
const alice = person('alice')
const c1 = cluster('c1', {
  node: [node('a', { zone: 'x' }), node('b')],
  namespace: [namespace('app', { team: 'red' }), namespace('kube-system')],
  operator: [operator('etcd', ['app', 'kube-system']), operator('lost', []), operator('mesh', ['*'])],
  podSummary: [podSummary({ app: 1, 'kube-system': 2 })],
})

type Given = PolicyObject | ReturnType<typeof storedDocument>
async function look(semantics: Semantics, ...policies: Given[]): Promise<AccessView> {
  const source = new TestPolicies()
  source.set(policies.map((given) => ('key' in given ? given : storedOf(given))))
  const clock = { now: () => Date.parse('2026-06-01T12:00:00Z'), sleep: () => Promise.resolve() }
  return openAccess({ source, semantics, administrators: { users: [], groups: [] }, clock }).viewOf(alice)
}

/** The same question in both semantics. */
const answers = async <T>(
  ask: (accessView: AccessView) => T,
  ...policies: Given[]
): Promise<{ original: T; strict: T }> => ({
  original: ask(await look('original', ...policies)),
  strict: ask(await look('strict', ...policies)),
})

const sees = (accessView: AccessView) => accessView.canSee(c1)
const nodes = (accessView: AccessView) => namesOf(accessView.visible(c1, 'node'))
const spaces = (accessView: AccessView) => namesOf(accessView.visible(c1, 'namespace'))
const operators = (accessView: AccessView) => accessView.visible(c1, 'operator').map(({ csv }) => csv)
const allow = (resources: Resource[], permissions?: { view?: boolean; viewMetrics?: boolean }, priority = 100) =>
  policy('Allow', [{ ...names('c1'), ...(permissions && { permissions }), resources }], { priority })
const filtered = (type: string, filters?: Resource['filters']): Resource => ({
  type,
  visibility: 'filtered',
  ...(filters && { filters }),
})
const item = (over: Partial<RowItem>): RowItem => ({ name: 'x', values: {}, ...over })

describe('rows of section 14', () => {
  it('RBAC-Q01: what is not permitted is not done', async () => {
    expect(await answers(sees, allow([], { viewMetrics: true }))).toEqual({ original: true, strict: false })
    expect(await answers((accessView) => accessView.usage(c1), allow([]))).toEqual({ original: true, strict: false })
    expect(await answers((accessView) => accessView.history(c1), allow([]))).toEqual({ original: false, strict: false })
    const used = (accessView: AccessView) => accessView.visible(c1, 'node').every((row) => row.used === null)
    expect(await answers(used, allow([]))).toEqual({ original: false, strict: true })
  })

  it('RBAC-Q01: a rule without view lets a lower policy decide, and withholds a default', async () => {
    const without = allow([], { view: false }, 200)
    expect(sees(await look('strict', without, allow([])))).toBe(true)
    expect(sees(await look('strict', without, policy('Allow', [], { default: 'allow' })))).toBe(false)
  })

  it('RBAC-Q02: labels of a cluster select', async () => {
    const byLabel = policy('Allow', [{ selector: { matchLabels: { env: 'prod' } } }])
    const prod = cluster('p', {}, { env: 'prod', more: 'x' })
    expect(await answers((accessView) => accessView.canSee(prod), byLabel)).toEqual({ original: false, strict: true })
    const two = policy('Allow', [{ selector: { matchLabels: { env: 'prod', tier: '1' } } }])
    expect((await look('strict', two)).canSee(prod)).toBe(false)
  })

  it('RBAC-Q03: an empty selector selects nothing, also where it is stored as an empty map', async () => {
    const empty = storedDocument(aStoredDocument({ cluster_rules: [aStoredRule({ cluster_selector: {} })] }))
    expect(await answers(sees, empty)).toEqual({ original: false, strict: false })
    const map = storedDocument(
      aStoredDocument({ cluster_rules: [aStoredRule({ cluster_selector: { matchLabels: {} } })] }),
    )
    expect(sees(await look('strict', map))).toBe(false)
  })

  it('RBAC-Q04: names of clusters take wildcards', async () => {
    expect(await answers(sees, policy('Allow', [names('c?')]))).toEqual({ original: false, strict: true })
    expect(
      sees(
        await look(
          'strict',
          policy('Allow', [names('c?'), names('*x')]),
          policy('Deny', [names('*1')], { priority: 500 }),
        ),
      ),
    ).toBe(false)
  })

  it('RBAC-Q05: a pattern is found anywhere in a name', async () =>
    expect(
      await answers((accessView) => accessView.canSee(cluster('nonprod')), policy('Allow', [pattern('prod')])),
    ).toEqual({
      original: true,
      strict: true,
    }))

  it('RBAC-Q06: a Deny with a pattern that is none denies every cluster', async () => {
    const broken = aStoredRule({ cluster_selector: { matchPattern: '^x(' } })
    const no = storedDocument(aStoredDocument({ effect: 'Deny', priority: 200, cluster_rules: [broken] }))
    expect(await answers(sees, no, allow([]))).toEqual({ original: true, strict: false })
  })

  it('RBAC-Q07: default allow shows clusters, and grants view alone', async () => {
    const open = policy('Allow', [], { default: 'allow' })
    expect(await answers(sees, open)).toEqual({ original: false, strict: true })
    expect((await look('strict', open)).permissions(c1)).toMatchObject({ permissions: ['view'], level: 'limited' })
  })

  it('RBAC-Q08: rules come before defaults, and a Deny has no default', async () => {
    const high = policy('Allow', [names('other')], { default: 'allow', priority: 300 })
    const low = allow([{ type: 'nodes', visibility: 'none' }])
    expect(await answers(nodes, high, low)).toEqual({ original: ['a', 'b'], strict: [] })
    const no = policy('Deny', [names('other')], { default: 'allow', priority: 300 })
    expect(await answers(nodes, no, allow([]))).toEqual({ original: [], strict: ['a', 'b'] })
  })

  it('RBAC-Q09: a Deny with types denies those types, one without denies the cluster', async () => {
    const no = policy('Deny', [{ ...names('c1'), resources: [filtered('nodes', { names: { allowed: ['a'] } })] }], {
      priority: 200,
    })
    expect(
      await answers((accessView) => [sees(accessView), nodes(accessView), spaces(accessView)], no, allow([])),
    ).toEqual({
      original: [false, [], []],
      strict: [true, [], ['app', 'kube-system']],
    })
    const both = policy('Deny', [{ ...names('c1'), resources: [{ type: 'nodes' }] }, names('*')], { priority: 200 })
    expect(sees(await look('strict', both, allow([])))).toBe(false)
    // Below the policy that decides it is not reached.
    const below = policy('Deny', [{ ...names('c1'), resources: [{ type: 'nodes' }] }], { priority: 50 })
    expect(nodes(await look('strict', below, allow([])))).toEqual(['a', 'b'])
  })

  it('RBAC-Q10: filtered without filters shows nothing', async () => {
    expect(await answers(nodes, allow([filtered('nodes')]))).toEqual({ original: ['a', 'b'], strict: [] })
    expect(nodes(await look('strict', allow([filtered('nodes', { names: { allowed: [] }, labels: {} })])))).toEqual([])
  })

  it('RBAC-Q11: all with filters filters', async () => {
    const some: Resource = { type: 'nodes', visibility: 'all', filters: { names: { denied: ['a'] } } }
    expect(await answers(nodes, allow([some]))).toEqual({ original: ['b'], strict: ['b'] })
  })

  it('RBAC-Q12: of entries of one type all have to let an item through', async () => {
    const twice = [
      filtered('nodes', { names: { allowed: ['a'] } }),
      filtered('nodes', { names: { allowed: ['b', 'a*'] } }),
    ]
    expect(await answers(nodes, allow(twice))).toEqual({ original: ['a', 'b'], strict: ['a'] })
    expect(nodes(await look('strict', allow([{ type: 'nodes' }, { type: 'nodes', visibility: 'none' }])))).toEqual([])
    const vm = allow([{ type: 'vm', visibility: 'none' }, { type: 'vm' }])
    expect(await answers((accessView) => accessView.custom(c1, 'vm').result, vm)).toEqual({
      original: 'allow',
      strict: 'deny',
    })
  })

  it('RBAC-Q13: none decides for a custom type', async () => {
    const hidden = allow([{ type: 'vm', visibility: 'none' }], undefined, 200)
    const result = (accessView: AccessView) => accessView.custom(c1, 'vm').result
    expect(await answers(result, hidden, allow([{ type: 'vm' }]))).toEqual({ original: 'allow', strict: 'deny' })
  })

  it('RBAC-Q14: standard types by the first policy, custom types by the first that names them', async () => {
    const first = allow([filtered('nodes', { names: { allowed: ['a'] } })], undefined, 200)
    const second = allow([filtered('nodes', { names: { allowed: ['b'] } }), { type: 'vm' }])
    const ask = (accessView: AccessView) => [nodes(accessView), accessView.custom(c1, 'vm').result]
    expect(await answers(ask, first, second)).toEqual({ original: [['a'], 'allow'], strict: [['a'], 'allow'] })
  })

  it('RBAC-Q15: a Deny of a custom type counts on the clusters it selects', async () => {
    const no = policy('Deny', [{ ...pattern('^prod-'), resources: [{ type: 'vm' }] }], { priority: 200 })
    const accessView = await look('strict', no, policy('Allow', [{ ...names('*'), resources: [{ type: 'vm' }] }]))
    expect(['prod-1', 'dev-1'].map((name) => accessView.custom(cluster(name), 'vm').result)).toEqual(['deny', 'allow'])
  })

  it('RBAC-Q16: stored labels are compared, and absence equals nothing', async () => {
    const red = allow([filtered('namespaces', { labels: { team: 'red' } })])
    expect(await answers(spaces, red)).toEqual({ original: [], strict: ['app'] })
    const empty = allow([filtered('nodes', { labels: { zone: '' } })])
    expect(await answers(nodes, empty)).toEqual({ original: ['b'], strict: [] })
    const custom = allow([filtered('vm', { labels: { team: 'red' } })])
    const shows = (accessView: AccessView) => accessView.custom(c1, 'vm').shows(item({ labels: { team: 'red' } }))
    expect(await answers(shows, custom)).toEqual({ original: false, strict: true })
    expect(operators(await look('strict', allow([filtered('operators', { labels: { a: '' } })])))).toEqual([])
  })

  it('RBAC-Q17: what has no namespace fails a filter of namespaces, and namespaces have their name', async () => {
    const app = { namespaces: { allowed: ['app'] } }
    expect(await answers(spaces, allow([filtered('namespaces', app)]))).toEqual({
      original: ['app', 'kube-system'],
      strict: ['app'],
    })
    const shows = (accessView: AccessView) => accessView.custom(c1, 'vm').shows(item({}))
    expect(await answers(shows, allow([filtered('vm', app)]))).toEqual({ original: true, strict: false })
    // On nodes it is ignored; alone under `filtered` it leaves nothing.
    expect(await answers(nodes, allow([{ type: 'nodes', filters: app }]))).toEqual({
      original: ['a', 'b'],
      strict: ['a', 'b'],
    })
    expect(await answers(nodes, allow([filtered('nodes', app)]))).toEqual({ original: ['a', 'b'], strict: [] })
  })

  it('RBAC-Q18: all namespaces of an operator count, and none is no namespace', async () => {
    const app = allow([filtered('operators', { namespaces: { allowed: ['app'] } })])
    expect(await answers(operators, app)).toEqual({ original: ['etcd', 'lost', 'mesh'], strict: ['etcd', 'mesh'] })
    const many = [...Array(30).keys()].map((n) => `n-${n}`)
    const far = cluster('c1', { operator: [operator('far', many)] })
    const last = allow([filtered('operators', { namespaces: { allowed: ['n-29'] } })])
    expect(await answers((accessView) => accessView.visible(far, 'operator').length, last)).toEqual({
      original: 0,
      strict: 1,
    })
  })

  it('RBAC-Q19: pods are counted as far as they may be seen', async () => {
    const counted = (accessView: AccessView) => accessView.visible(c1, 'podSummary')[0]?.counts.total ?? null
    const app = allow([filtered('pods', { namespaces: { allowed: ['app'] } })])
    expect(await answers(counted, app)).toEqual({ original: 3, strict: 1 })
    expect(await answers(counted, allow([{ type: 'pods', visibility: 'none' }]))).toEqual({ original: 3, strict: null })
  })

  it('RBAC-Q20: the six standard types are no custom types', async () => {
    const named = allow([{ type: 'alerts' }, { type: 'nodes' }, { type: 'registries' }])
    for (const type of ['alerts', 'nodes', 'registries']) {
      expect(await answers((accessView) => accessView.custom(c1, type).result, named)).toEqual({
        original: 'allow',
        strict: 'deny',
      })
    }
  })

  it('RBAC-Q21: what is excluded is not shown, included or not', async () => {
    const both: Resource = { type: 'vm', aggregations: { include: ['a', 'b'], exclude: ['b'] } }
    const shown = (accessView: AccessView) =>
      ['a', 'b', 'c'].filter((name) => accessView.custom(c1, 'vm').aggregation(name))
    expect(await answers(shown, allow([both]))).toEqual({ original: ['a'], strict: ['a'] })
  })

  it('RBAC-Q22: numbers are compared as people write them, and what is not there passes nothing', async () => {
    const shows = (allowed: string, values: Record<string, unknown>) =>
      answers(
        (accessView) => accessView.custom(c1, 'vm').shows(item({ values })),
        allow([filtered('vm', { fields: { size: { allowed: [allowed] } } })]),
      )
    expect(await shows('1000000', { size: 1_000_000 })).toEqual({ original: false, strict: true })
    expect(await shows('1e+06', { size: 1_000_000 })).toEqual({ original: true, strict: false })
    expect(await shows('', {})).toEqual({ original: true, strict: false })
    const none = allow([filtered('vm', { fields: { toString: { denied: ['x'] } } })])
    expect((await look('strict', none)).custom(c1, 'vm').shows(item({}))).toBe(false)
  })

  it('RBAC-Q23: of equal priority Deny comes first, then the key', async () => {
    const no = policy('Deny', [names('c1')], { name: 'z' })
    expect(await answers(sees, policy('Allow', [names('c1')], { name: 'a' }), no)).toEqual({
      original: false,
      strict: false,
    })
    const decided = (accessView: AccessView) => accessView.permissions(c1).decidedBy?.policy
    const [b, a] = ['b', 'a'].map((name) => policy('Allow', [names('c1')], { name }))
    expect(await answers(decided, b as PolicyObject, a as PolicyObject)).toEqual({
      original: 'clusterpulse/a',
      strict: 'clusterpulse/a',
    })
  })

  it('RBAC-Q24: a priority of 0 or less is never looked at; as a Deny it denies', async () => {
    const zero = storedDocument(aStoredDocument({ priority: 0 }))
    expect(await answers(sees, zero)).toEqual({ original: false, strict: false })
    const no = storedDocument(aStoredDocument({ priority: 0, effect: 'Deny' }))
    expect(await answers(sees, no, policy('Allow', [], { default: 'allow' }))).toEqual({
      original: false,
      strict: false,
    })
  })

  it('RBAC-Q25: a verified address counts', async () => {
    const access = accessOf([policy('Allow', [names('c1')], { users: ['a@example.com'] })])
    const who = { ...alice, email: 'a@example.com' }
    expect([await access.viewOf({ ...who, emailVerified: true }), await access.viewOf(who)].map(sees)).toEqual([
      true,
      false,
    ])
  })

  it('RBAC-Q26: in a wildcard everything but "*" and "?" is itself', async () => {
    const leaky = aStoredRule({
      resources: [{ type: 'nodes', visibility: 'filtered', name_patterns: [['a|b*', '^a|b.*$']] }],
    })
    const stored = storedDocument(aStoredDocument({ cluster_rules: [leaky] }))
    expect(await answers(nodes, stored)).toEqual({ original: ['a', 'b'], strict: [] })
  })

  it('RBAC-Q29: a Deny whose end cannot be read goes on', async () => {
    const no = storedDocument(aStoredDocument({ effect: 'Deny', priority: 200, not_after: '2026-02-30T00:00:00Z' }))
    expect(await answers(sees, no, allow([]))).toEqual({ original: true, strict: false })
  })

  it('RBAC-Q32: names with separators are other names', async () => {
    const access = accessOf([policy('Allow', [names('c1')], { users: ['a'], groups: ['b,c'] })])
    const seen = async (name: string, ...groups: string[]) => sees(await access.viewOf(person(name, ...groups)))
    expect(await seen('x', 'b,c')).toBe(true)
    expect(await seen('x', 'b', 'c')).toBe(false)
    expect(await seen('a:b', 'c')).toBe(false)
    expect(await seen('x","b,c')).toBe(false)
  })

  it('RBAC-Q33: nothing of a decision outlives a bound', async () => {
    const clock = { at: Date.parse('2026-06-01T12:00:00Z'), now: () => clock.at, sleep: () => Promise.resolve() }
    const access = accessOf([policy('Allow', [names('c1')], { notAfter: '2026-06-01T12:00:00Z' })], { clock })
    const { validUntil } = access.viewNow(alice)
    clock.at = validUntil
    expect(sees(access.viewNow(alice))).toBe(false)
  })

  it('RBAC-Q36: a stored expression that cannot be read opens nothing', async () => {
    const include = aStoredRule({
      resources: [{ type: 'nodes', visibility: 'filtered', name_patterns: [['a(*', '^a(.*$']] }],
    })
    const exclude = aStoredRule({
      resources: [{ type: 'nodes', visibility: 'all', deny_name_patterns: [['a(*', '^a(.*$']] }],
    })
    for (const broken of [include, exclude]) {
      const stored = storedDocument(aStoredDocument({ cluster_rules: [broken] }))
      expect(await answers(nodes, stored)).toEqual({ original: ['a', 'b'], strict: [] })
    }
  })

  it('RBAC-Q37: without policies nobody is answered', async () => {
    const access = accessOf([allow([])])
    access.source.lose()
    await expect(access.viewOf(alice)).rejects.toMatchObject({ code: 'policies_unavailable', retryable: true })
  })

  it.each(['original', 'strict'] as const)(
    'RBAC-Q37: a policy that cannot be read at all is an error in %s',
    async (semantics) => {
      for (const text of ['', '[]', '{"effect":"Deny","users":5}', '{"effect":5}']) {
        const lost = readStoredPolicy('ns/lost', text)
        const refused = look(semantics, allow([]), lost)
        await expect(refused).rejects.toMatchObject({ code: 'policies_unavailable' })
        await expect(refused).rejects.toThrow('the stored policy ns/lost cannot be read')
        await expect(refused).rejects.toThrow('delete policy:ns:lost in Redis')
      }
    },
  )

  it.each(['original', 'strict'] as const)(
    'RBAC-Q26: what an expression of the original hid stays hidden in %s',
    async (semantics) => {
      const rule = aStoredRule({
        resources: [{ type: 'namespaces', visibility: 'all', deny_name_patterns: [['(app|prod)*', '^(app|prod).*$']] }],
      })
      expect(spaces(await look(semantics, storedDocument(aStoredDocument({ cluster_rules: [rule] }))))).toEqual([
        'kube-system',
      ])
    },
  )
})

describe('an alert without a name', () => {
  it.each([{ denied: ['Watchdog'] }, { allowed: ['*'] }])('passes no filter of names: %j', async (filter) => {
    const accessView = await look('strict', allow([filtered('alerts', { names: filter })]))
    expect([{ severity: 'info' }, { name: '' }, { name: 'Disk' }].map((one) => accessView.showsAlert(c1, one))).toEqual(
      [false, false, true],
    )
    const open = await look('strict', allow([]))
    expect(open.showsAlert(c1, { severity: 'info' })).toBe(true)
  })
})

describe('what people migrate, in the semantics of the original', () => {
  it('shows of a node and an operator all there is, to whoever may see them', async () => {
    const shown = await answers(
      (accessView) => ({
        pods: accessView.visible(c1, 'node').map(({ pods, requested }) => pods !== null && requested !== null),
        etcd: accessView.visible(c1, 'operator').find(({ csv }) => csv === 'etcd')?.availableInNamespaces,
      }),
      allow([filtered('namespaces', { names: { allowed: ['app'] } })]),
    )
    expect(shown.original).toEqual({ pods: [true, true], etcd: ['app', 'kube-system'] })
    expect(shown.strict).toEqual({ pods: [false, false], etcd: ['app'] })
  })

  it('compares fields of nodes by the names that documents have', async () => {
    const by = async (field: string, value: string) =>
      (await answers(nodes, allow([filtered('nodes', { fields: { [field]: { allowed: [value] } } })]))).original
    expect(await by('status', 'Ready')).toEqual(['a', 'b'])
    expect(await by('status', 'NotReady')).toEqual([])
    expect(await by('name', 'a')).toEqual(['a'])
    // A name that no document has is missing there, whatever we call it.
    expect(await by('ready', 'ready')).toEqual([])
  })

  it('names types to whom a rule gives them that selects no cluster, and shows none of their rows (RBAC-Q15)', async () => {
    const byLabels = policy('Allow', [{ selector: { matchLabels: { env: 'prod' } }, resources: [{ type: 'pvc' }] }])
    const deny = policy('Deny', [{ ...names('elsewhere'), resources: [{ type: 'pvc' }] }], { priority: 500 })
    const told = (accessView: AccessView) => [
      accessView.discovers('pvc'),
      accessView.discovers('vm'),
      accessView.custom(c1, 'pvc').result,
    ]
    const nothing = { listed: false, granted: false }
    expect(await answers(told, byLabels)).toEqual({
      original: [{ listed: true, granted: true }, nothing, 'deny'],
      strict: [null, null, 'deny'],
    })
    expect((await answers(told, byLabels, deny)).original).toEqual([{ listed: true, granted: false }, nothing, 'deny'])
    const hidden = allow([{ type: 'pvc', visibility: 'none' }])
    expect((await answers(told, hidden)).original[0]).toEqual(nothing)
  })
})

describe('values of fields', () => {
  it.each<[unknown, plain: string, go: string]>([
    ['text', 'text', 'text'],
    [true, 'true', 'true'],
    [0, '0', '0'],
    [-12.5, '-12.5', '-12.5'],
    [999_999, '999999', '999999'],
    [1_000_000, '1000000', '1e+06'],
    [107374182400, '107374182400', '1.073741824e+11'],
    [1e21, '1000000000000000000000', '1e+21'],
    [1.5e300, `15${'0'.repeat(299)}`, '1.5e+300'],
    [0.0001, '0.0001', '0.0001'],
    [0.00001, '0.00001', '1e-05'],
    [-1.25e-9, '-0.00000000125', '-1.25e-09'],
    [null, '', ''],
    [['a', 1_000_000, null], '[a 1000000 <nil>]', '[a 1e+06 <nil>]'],
    [{ b: 1, a: [] }, 'map[a:[] b:1]', 'map[a:[] b:1]'],
  ])('%j', (value, plain, go) => expect([printPlain(value), printGo(value)]).toEqual([plain, go]))
})
