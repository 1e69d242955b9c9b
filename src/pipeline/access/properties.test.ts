import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ClusterState, SnapshotType } from '#model'
import { openAccess } from './open-access.ts'
import { storedOf, TestPolicies } from './testing/access-of.ts'
import {
  cluster,
  clusterOperator,
  deployment,
  event,
  namespace,
  node,
  operator,
  person,
  podSummary,
  policy,
  type Resource,
} from './testing/words.ts'
import type { AccessView, PolicyGeneration, PolicyObject, Principal, Semantics, StoredPolicy } from './types.ts'

const noon = Date.parse('2026-06-01T12:00:00Z')
const clock = { now: () => noon, sleep: () => Promise.resolve() }
const semantics: readonly Semantics[] = ['strict', 'original']

async function accessViewOf(
  policies: readonly PolicyObject[],
  principal: Principal,
  by: Semantics = 'strict',
): Promise<AccessView> {
  const source = new UnsortedPolicies()
  source.set(policies.map((object) => storedOf(object, noon)))
  return openAccess({ source, semantics: by, administrators: { users: [], groups: [] }, clock }).viewOf(principal)
}

/** Gives policies in the order in which they were given, which no store promises to be any. */
class UnsortedPolicies extends TestPolicies {
  #policies: readonly StoredPolicy[] = []

  override set(policies: readonly StoredPolicy[]): void {
    this.#policies = policies
  }

  override latest(): PolicyGeneration {
    return { generation: 'unsorted', policies: this.#policies }
  }
}

// ── random policies over a small world, so that they meet ────────────────────────────────────────────────────────────

const rows = (name: string, env: string): ClusterState =>
  cluster(
    name,
    {
      node: [node('a', { zone: 'x' }), node('b', { zone: 'y' }), node('c')],
      namespace: [namespace('a', { zone: 'x' }), namespace('b'), namespace('app-1')],
      deployment: [deployment('a', 'web'), deployment('b', 'web'), deployment('app-1', 'web')],
      operator: [operator('a', ['a', 'b'], 'B'), operator('b', ['*']), operator('c', ['app-1'])],
      clusterOperator: [clusterOperator('a', 'a', 'b'), clusterOperator('b', '')],
      podSummary: [podSummary({ a: 1, b: 2, 'app-1': 4 })],
    },
    { env },
  )
const world = [rows('east', 'prod'), rows('west', 'dev'), rows('prod-1', 'prod')]
const events = [
  event('cluster.health', { to: 'healthy' }),
  event('node.ready', { node: 'a' }),
  event('operator.failed', { operator: 'operators/a', display_name: 'B' }),
  event('pod.lost', { namespace: 'app-1' }),
]
const alerts = [
  { name: 'a', namespace: 'a', node: 'b' },
  { name: 'b', zone: 'x' },
]
const claims = [
  { name: 'a', namespace: 'a', labels: { zone: 'x' }, values: { size: 1 } },
  { name: 'b', values: {} },
]

const aText = fc.constantFrom<string[]>('a', 'b', 'c', 'app-*', '*', '?', 'x*')
const someTexts = fc.array(aText, { maxLength: 2 })
const aList = fc.record({ allowed: someTexts, denied: someTexts }, { requiredKeys: [] })
const labels = fc.constantFrom<Record<string, string>[]>({}, { zone: 'x' }, { zone: '' })
const aFilter = fc.record(
  {
    names: aList,
    namespaces: aList,
    labels,
    fields: fc.constantFrom<NonNullable<Filters['fields']>[]>(
      {},
      { size: { allowed: ['1'] } },
      { size: { denied: ['1'] } },
    ),
  },
  { requiredKeys: [] },
)
const aType = fc.constantFrom<string[]>(
  'nodes',
  'operators',
  'namespaces',
  'pods',
  'alerts',
  'events',
  'registries',
  'pvc',
  'vm',
)
const aResource: fc.Arbitrary<Resource> = fc.record(
  {
    type: aType,
    visibility: fc.constantFrom('all' as const, 'none' as const, 'filtered' as const),
    filters: aFilter,
    aggregations: fc.constantFrom<NonNullable<Resource['aggregations']>[]>(
      { include: ['total'] },
      { exclude: ['total'] },
    ),
  },
  { requiredKeys: ['type'] },
)
const aSelector = fc.constantFrom<Rule['selector'][]>(
  { matchNames: ['east'] },
  { matchNames: ['e*', 'west'] },
  { matchPattern: '^prod-' },
  { matchPattern: '.*' },
  { matchLabels: { env: 'prod' } },
  {},
)
const permissions = fc.constantFrom<NonNullable<Rule['permissions']>[]>(
  {},
  { view: true },
  { view: true, viewMetrics: true },
  { view: false },
  { viewMetrics: true },
)
const aRule = fc.record(
  { selector: aSelector, permissions, resources: fc.array(aResource, { maxLength: 3 }) },
  { requiredKeys: ['selector'] },
)
const words = fc.record(
  {
    priority: fc.constantFrom(100, 200, 300),
    users: fc.constantFrom(['alice', 'bob'], ['alice'], ['bob']),
    groups: fc.constantFrom(['dev'], []),
    enabled: fc.constantFrom(true, true, true, false),
    default: fc.constantFrom('allow' as const, 'none' as const),
    notBefore: fc.constantFrom('2026-06-01T12:00:00Z', '2026-05-01T12:00:01Z', '2026-06-01T12:00:01Z'),
  },
  { requiredKeys: [] },
)
const aPolicyOf = (effect: fc.Arbitrary<'Allow' | 'Deny'>) =>
  fc
    .record({ effect, rules: fc.array(aRule, { minLength: 1, maxLength: 2 }), words })
    .map(({ effect, rules, words }) => policy(effect, rules, words))
const aPolicy = aPolicyOf(fc.constantFrom('Allow', 'Allow', 'Deny'))
const somePolicies = fc.array(aPolicy, { minLength: 1, maxLength: 4 })
const somebody = fc.constantFrom(person('alice', 'dev'), person('bob'), person('carol', 'dev'))

// ── what an access view tells, and whether it tells no more than another ────────────────────────────────────────────────────

const types: readonly SnapshotType[] = ['node', 'namespace', 'deployment', 'operator', 'clusterOperator', 'podSummary']

/** Everything, as a flat set of statements: more statements, more seen. */
function told(accessView: AccessView): ReadonlySet<string> {
  const said = new Set<string>()
  const say = (...words: unknown[]) => said.add(JSON.stringify(words))
  for (const state of world) {
    const at = state.name
    if (accessView.canSee(state)) say(at, 'is seen')
    if (accessView.usage(state)) say(at, 'usage')
    if (accessView.history(state)) say(at, 'history')
    if (accessView.whole(state)) say(at, 'whole')
    for (const type of types) for (const row of accessView.visible(state, type)) sayRow(say, [at, type], row)
    for (const one of events) if (accessView.showsEvent(state, one)) say(at, one)
    for (const one of alerts) if (accessView.showsAlert(state, one)) say(at, one)
    for (const type of ['pvc', 'vm', 'nodes']) {
      const custom = accessView.custom(state, type)
      if (custom.result !== 'deny') say(at, type)
      for (const item of claims) if (custom.shows(item)) say(at, type, item)
      if (custom.aggregation('total')) say(at, type, 'total')
    }
    if (accessView.showsRegistry({ name: at, labels: state.connection?.labels ?? {} })) say(at, 'registry')
  }
  return said
}

/** A list says each of its items, a sum says every number up to it, null says nothing. */
function sayRow(say: (...words: unknown[]) => void, path: readonly unknown[], value: unknown): void {
  if (value === null || value === undefined) return
  if (typeof value === 'number') for (let n = 0; n <= value; n++) say(...path, n)
  else if (Array.isArray(value)) for (const item of value) say(...path, item)
  else if (typeof value !== 'object') say(...path, value)
  else {
    const name = 'name' in value ? value.name : ''
    for (const [key, inner] of Object.entries(value)) sayRow(say, [...path, name, key], inner)
  }
}

const more = (one: ReadonlySet<string>, than: ReadonlySet<string>): readonly string[] =>
  [...one].filter((said) => !than.has(said))

describe('decisions, at random', () => {
  it('a Deny that is added shows nobody more', () =>
    fc.assert(
      fc.asyncProperty(somePolicies, aPolicyOf(fc.constant('Deny')), somebody, async (policies, added, who) => {
        const before = told(await accessViewOf(policies, who))
        expect(more(told(await accessViewOf([...policies, added], who)), before)).toEqual([])
      }),
      { numRuns: 60 },
    ))

  it('a filter that is added shows no row more', () =>
    fc.assert(
      fc.asyncProperty(somePolicies, fc.nat(), aFilter, somebody, async (policies, place, filter, who) => {
        const before = told(await accessViewOf(policies, who))
        const after = told(await accessViewOf(withFilter(policies, place, filter), who))
        expect(more(after, before)).toEqual([])
      }),
      { numRuns: 60 },
    ))

  it('an entry that is added to the rule of an Allow shows no more of the six types', () =>
    fc.assert(
      fc.asyncProperty(somePolicies, fc.nat(), aResource, somebody, async (policies, place, resource, who) => {
        if (['pvc', 'vm'].includes(resource.type)) return // naming a custom type is what grants it
        const before = told(await accessViewOf(policies, who))
        const after = await accessViewOf(
          changed(
            policies,
            place,
            (rule) => ({ ...rule, resources: [...(rule.resources ?? []), alike(rule, resource)] }),
            'Allow',
          ),
          who,
        )
        expect(more(told(after), before)).toEqual([])
      }),
      { numRuns: 60 },
    ))

  it.each(semantics)('the order in which policies are stored plays no part, %s', (by) =>
    fc.assert(
      fc.asyncProperty(somePolicies, somebody, fc.integer(), async (policies, who, salt) => {
        const shuffled = policies.toSorted((a, b) => scramble(a, salt) - scramble(b, salt))
        const [one, other] = [await accessViewOf(policies, who, by), await accessViewOf(shuffled, who, by)]
        expect(one.fingerprint).toBe(other.fingerprint)
        expect([...told(one)]).toEqual([...told(other)])
      }),
      { numRuns: 40 },
    ),
  )

  it.each(semantics)('whoever has the same fingerprint sees the same, %s', (by) =>
    fc.assert(
      fc.asyncProperty(somePolicies, fc.nat(), aRule, somebody, somebody, async (policies, place, rule, who, other) => {
        const others = changed(policies, place, () => rule)
        const one = await accessViewOf(policies, who, by)
        for (const accessView of [
          await accessViewOf(policies, other, by),
          await accessViewOf(others, who, by),
          await accessViewOf(renamed(policies), who, by),
        ]) {
          if (accessView.fingerprint !== one.fingerprint) continue
          expect([...told(accessView)]).toEqual([...told(one)])
          for (const state of world) {
            const [mine, theirs] = [one.permissions(state), accessView.permissions(state)]
            expect([theirs.permissions, theirs.level, theirs.filters]).toEqual([
              mine.permissions,
              mine.level,
              mine.filters,
            ])
          }
        }
      }),
      { numRuns: 40 },
    ),
  )

  it('the same content under other names and for other people has the same fingerprint', () =>
    fc.assert(
      fc.asyncProperty(somePolicies, async (policies) => {
        const forAll = policies.map((object, i) => forUser(object, 'alice', `a-${i}`))
        const forBob = policies.map((object, i) => forUser(object, 'bob', `b-${i}`))
        const both = [...forAll, ...forBob]
        const [alice, bob] = [await accessViewOf(both, person('alice')), await accessViewOf(both, person('bob'))]
        expect(bob.fingerprint).toBe(alice.fingerprint)
      }),
      { numRuns: 50 },
    ))
})

type Rule = NonNullable<PolicyObject['spec']['scope']['clusters']['rules']>[number]

/** One of all rules, chosen by `place`, made into another. */
function changed(
  policies: readonly PolicyObject[],
  place: number,
  change: (rule: Rule) => Rule,
  effect?: string,
): readonly PolicyObject[] {
  const places = policies.flatMap((object, p) =>
    effect && object.spec.access.effect !== effect
      ? []
      : (object.spec.scope.clusters.rules ?? []).map((_, r) => [p, r] as const),
  )
  const [at, ruleAt] = places[place % Math.max(places.length, 1)] ?? [-1, -1]
  return policies.map((object, p) => {
    if (p !== at) return object
    const rules = (object.spec.scope.clusters.rules ?? []).map((rule, r) => (r === ruleAt ? change(rule) : rule))
    return { ...object, spec: { ...object.spec, scope: { clusters: { ...object.spec.scope.clusters, rules } } } }
  })
}

type Filters = NonNullable<Resource['filters']>
type Lists = NonNullable<Filters['names']>
const isEmptyList = ({ allowed = [], denied = [] }: Lists = {}) => allowed.length + denied.length === 0

/** A second entry of a type that is there already, if there is one: where they meet is where mistakes are. */
const alike = ({ resources = [] }: Rule, resource: Resource): Resource => {
  const [first] = resources.filter(({ type }) => type !== 'pvc' && type !== 'vm')
  return { ...resource, type: first?.type ?? resource.type }
}

/** Adds the lists that an entry does not have yet: a longer list of what is allowed would be another filter, not one more. */
function withFilter(policies: readonly PolicyObject[], place: number, added: Filters): readonly PolicyObject[] {
  return changed(policies, place, (rule) => ({
    ...rule,
    resources: (rule.resources ?? []).map((resource, i) => {
      const { filters = {}, visibility } = resource
      const isEmpty =
        isEmptyList(filters.names) &&
        isEmptyList(filters.namespaces) &&
        Object.keys(filters.labels ?? {}).length === 0 &&
        Object.values(filters.fields ?? {}).every(isEmptyList)
      // `filtered` without a filter shows nothing: there the first one lets something in.
      if (i !== place % (rule.resources ?? []).length || (visibility === 'filtered' && isEmpty)) return resource
      return {
        ...resource,
        filters: {
          ...filters,
          ...(isEmptyList(filters.names) && added.names && { names: added.names }),
          ...(isEmptyList(filters.namespaces) && added.namespaces && { namespaces: added.namespaces }),
          labels: { ...added.labels, ...filters.labels },
          ...(Object.keys(filters.fields ?? {}).length === 0 && added.fields && { fields: added.fields }),
        },
      }
    }),
  }))
}

const scramble = ({ metadata }: PolicyObject, salt: number): number => {
  let mixed = salt
  for (const letter of metadata.name) mixed = Math.imul(mixed ^ letter.charCodeAt(0), 0x01000193)
  return mixed
}

const renamed = (policies: readonly PolicyObject[]): readonly PolicyObject[] =>
  policies.map((object, i) => ({ ...object, metadata: { ...object.metadata, name: `other-${i}` } }))

const forUser = (object: PolicyObject, user: string, name: string): PolicyObject => ({
  metadata: { ...object.metadata, name },
  spec: { ...object.spec, identity: { ...object.spec.identity, subjects: { users: [user] } } },
})
