import type { Principal, Semantics } from '#access'
import type { MonitorAccessPolicySpec } from '#kinds'
import type { ResourceDescriptor } from '#metricsource'
import { resources } from '#resources'
import { Chance } from './random.ts'
import { takeable } from './sources.ts'
import { type PlainCluster, start, type World, type WrittenPolicy } from './world.ts'

type Rule = NonNullable<MonitorAccessPolicySpec['scope']['clusters']['rules']>[number]
type Resource = NonNullable<Rule['resources']>[number]
type Filters = NonNullable<Resource['filters']>

/*
 * Small alphabets, so that policies, principals and rows meet; evil names, because they are names.
 */
const users = [
  'alice',
  'bob',
  'a:b',
  'a,b',
  '__proto__',
  'system:serviceaccount:ci:bot',
  'al*ce',
  'ålice\n',
  'alice@example.com',
]
const groups = ['dev', 'ops', 'x,y', 'x', 'y', 'constructor', 'dev*', 'γ']
const emails = ['alice@example.com', 'bob@example.com', '']
const clusterNames = ['prod-1', 'prod-2', 'prod-12', 'dev-1', 'nonprod-1', 'c1', 'p']
const names = [
  'app-1',
  'app-2',
  'app-12',
  'a.b',
  'axb',
  'a:b',
  'a,b',
  '__proto__',
  'constructor',
  'kube-system',
  'line\nbreak',
  'naïve-𝒳',
  'app-*',
]
const wildcards = ['app-*', 'app-?', '*', 'a?b', 'a.*', '*-system', '*\n*', 'naïve-?', '?*', '__*', 'a*b', '**1']
/** Expressions to the original where they are denied; the compiler refuses them. */
const expressions = ['(app|kube)-*', 'a|kube-*', '(a|x)?']
const tamewildcards = ['app-*', 'app-?', '*', 'a?b', '*-system', '__*', 'a*b']
const versions = ['', '.v1', '.v2']
const labelKeys = ['env', 'team', '__proto__', 'constructor']
const labelValues = ['prod', 'dev', '', 'a']
const types = ['nodes', 'operators', 'namespaces', 'pods', 'alerts', 'events', 'registries'] as const
const customTypes = ['pvc', 'vm', '__proto__', 'deployments']
const kindNames = resources.flatMap(({ typeName }) => [typeName, `core/${typeName}`])
const eventTypes = [
  'cluster.added',
  'cluster.health',
  'cluster.reconciled',
  'cluster.version',
  'node.ready',
  'node.removed',
  'operator.failed',
  'cluster_operator.degraded',
  'agent.connected',
]
const badPatterns = ['[invalid', '(?=a)', '\\1', `${'a'.repeat(300)}`, 'a**b(']
const badTimes = [
  'soon',
  '2026-03-01',
  '2026-03-01 12:00:00',
  '2026-02-30T00:00:00Z',
  '2026-03-01T25:00:00Z',
  '1772366400',
]

/** Expressions that another engine, that of the language, reads alike. */
const judgedByOurs = (...texts: readonly string[]) =>
  Object.fromEntries(texts.map((text) => [text, (name: string) => new RegExp(text, 'u').test(name)] as const))

/** The patterns that policies use, each with what it finds: written by hand, so that no expression engine judges another. */
export const patterns: Readonly<Record<string, (name: string) => boolean>> = {
  '^prod-': (name) => name.startsWith('prod-'),
  prod: (name) => name.includes('prod'),
  '-1$': (name) => name.endsWith('-1'),
  '.*': () => true,
  '^(dev|c)': (name) => name.startsWith('dev') || name.startsWith('c'),
  '^prod-[12]$': (name) => name === 'prod-1' || name === 'prod-2',
  '(?i)PROD-1': (name) => name.includes('prod-1'),
  '^\\pL+-\\d$': (name) => ['prod-1', 'prod-2', 'dev-1', 'nonprod-1'].includes(name),
  ...judgedByOurs(
    '\\d\\d',
    '^p?rod',
    '^prod?-1',
    '^(prod|dev)-1$',
    '^prod-1$|c1',
    '^(?:non)?prod',
    '^(?:prod|non).*2',
    '^(prod-1)?$',
  ),
  ...judgedByOurs(
    '^prod{1}-',
    '^[pc]',
    '^(c|d)*ev',
    '^p|^c',
    '^(a|)prod-1',
    '^(?:(?:pro|de)[dv])-1$',
    'd-1+$',
    '^p(?:rod-1)*$',
    '^p+',
    '^\\w+$',
  ),
  '': () => false, // as if it were not there
}

/** The world of a seed. */
export function worldOf(seed: number): World {
  const chance = new Chance(seed)
  const semantics: Semantics = chance.often(0.75) ? 'strict' : 'original'
  const now = start + chance.int(-3, 3) * 500
  const two = seed % 8 === 0 ? new Chance(seed ^ 0x2b0b) : undefined
  const policies = [
    ...Array.from({ length: chance.int(0, 6) }, (_, index) => aPolicy(chance, semantics, index, now)),
    // By chance hardly anybody sees all rows of a type and not all of its sums.
    ...somePoliciesOfSums(new Chance(seed ^ 0x50f5)),
    ...somePoliciesOfTwo(two),
  ]
  const clusters = chance.some(clusterNames, 3, 1).map((name, index) => aCluster(chance, name, index))
  const taken = chance.often(0.3) ? chance.some(takeable, 2, 1) : []
  return {
    seed,
    semantics,
    now,
    administrators: chance.often(0.1)
      ? { users: ['root', 'bob'], groups: ['ops'] }
      : { users: ['root'], groups: ['admins'] },
    policies: semantics === 'original' ? distinctPriorities(policies) : policies,
    principals: two ? twoPrincipals(two) : somePrincipals(chance),
    clusters,
    taken,
  }
}

// Between equal priorities the original chose at random: nothing to compare with.
const distinctPriorities = (policies: readonly WrittenPolicy[]): WrittenPolicy[] =>
  policies.map((policy, index) => {
    const { identity } = policy.spec
    const priority = identity.priority ?? 100
    const known = priority < 1 || priority > 10_000
    return {
      ...policy,
      spec: { ...policy.spec, identity: { ...identity, priority: known ? priority : priority * 10 + index } },
    }
  })

/** Now and then two whose groups read the same once they are joined. */
function somePrincipals(chance: Chance): Principal[] {
  const all = Array.from({ length: chance.int(2, 4) }, () => aPrincipal(chance))
  const [first] = all
  if (!first || !chance.often(0.15)) return all
  const twin = (joined: boolean): Principal => ({ ...first, groups: joined ? ['x,y'] : ['x', 'y'] })
  return [twin(true), twin(false), ...all.slice(2)]
}

function aPrincipal(chance: Chance): Principal {
  const username = chance.often(0.5) ? 'alice' : chance.one([...users, 'root'])
  const verified = chance.one([true, false, undefined])
  return {
    username,
    email: chance.one(emails),
    ...(verified !== undefined && { emailVerified: verified }),
    groups: chance.some(groups, 3),
    isServiceAccount: username.startsWith('system:') ? chance.often(0.7) : chance.often(0.05),
    method: chance.often(0.03) ? 'local-administrator' : chance.one(['trusted-proxy', 'oidc', 'bearer-jwt']),
    ...(chance.often(0.05) && { actor: 'root' }),
  }
}

function aPolicy(chance: Chance, semantics: Semantics, index: number, now: number): WrittenPolicy {
  const byHand = chance.often(semantics === 'strict' ? 0.2 : 0.3)
  const faulty = chance.often(byHand ? 0.5 : 0.08)
  const effect = chance.often(0.7) ? 'Allow' : 'Deny'
  const rules = Array.from({ length: chance.one([0, 1, 1, 1, 2, 3]) }, () => aRule(chance, semantics, effect))
  const bounds = chance.often(0.3) ? someBounds(chance, now) : undefined
  const spec: MonitorAccessPolicySpec = {
    identity: {
      subjects: {
        ...(chance.often(0.7) && { users: ['alice', ...chance.some(users, 2)].slice(chance.int(0, 1)) }),
        ...(chance.often(0.6) && { groups: chance.some(groups, 3) }),
        ...(chance.often(0.3) && { serviceAccounts: [{ name: 'bot', ...(chance.often(0.7) && { namespace: 'ci' }) }] }),
      },
      ...(chance.often(0.8) && { priority: chance.one([1, 50, 100, 100, 200, 300]) }),
    },
    access: { effect, ...(chance.often(0.1) && { enabled: chance.often(0.3) }) },
    scope: {
      clusters: { ...(chance.often(0.3) && { default: chance.one(['allow', 'deny', 'none'] as const) }), rules },
    },
    ...(bounds && { lifecycle: { validity: bounds } }),
  }
  const policy = {
    namespace: chance.one(['clusterpulse', 'team']),
    name: `p${index}${byHand ? chance.one(['', ':x', '-*', '\n']) : ''}`,
    spec,
    byHand,
  }
  // The compiler refuses a line break wherever it stands; such policies mostly come by hand.
  const written = { ...policy, byHand: byHand || (JSON.stringify(spec).includes('\\n') && chance.often(0.95)) }
  return faulty ? withFault(chance, written) : written
}

/** Now and then one that shows every row of a type, and some of its sums. */
function somePoliciesOfSums(chance: Chance): WrittenPolicy[] {
  if (!chance.often(0.15)) return []
  const resource: Resource = {
    type: chance.one(customTypes),
    visibility: 'all',
    aggregations: { exclude: chance.some(['total', 'cost', 'count'], 2, 1) },
  }
  const spec: MonitorAccessPolicySpec = {
    identity: { subjects: { users: ['alice'] }, priority: chance.one([1, 100]) },
    access: { effect: 'Allow' },
    scope: {
      clusters: {
        rules: [
          {
            selector: { matchNames: ['*'] },
            permissions: { view: true, viewMetrics: true },
            resources: [resource],
          },
        ],
      },
    },
  }
  return [{ namespace: 'team', name: 'sums', spec, byHand: false }]
}

/** Two who see the same clusters, and of each type with rows other ones of them. */
function somePoliciesOfTwo(chance: Chance | undefined): WrittenPolicy[] {
  if (!chance) return []
  const type = chance.one([...customTypes, ...kindNames])
  return ['alice', 'bob'].map((name) => {
    const resource: Resource = {
      type,
      visibility: 'filtered',
      filters: { names: { allowed: chance.some(names.slice(0, 4), 3, 1) } },
    }
    const permissions = { view: true, viewMetrics: true }
    const rules: Rule[] = [{ selector: { matchNames: ['*'] }, permissions, resources: [resource] }]
    const identity = { subjects: { users: [name] }, priority: 1 }
    const spec: MonitorAccessPolicySpec = { identity, access: { effect: 'Allow' }, scope: { clusters: { rules } } }
    return { namespace: 'team', name: `of-${name}`, spec, byHand: false }
  })
}

const twoPrincipals = (chance: Chance): Principal[] =>
  ['alice', 'bob'].map((username) => ({ ...aPrincipal(chance), username, isServiceAccount: false, method: 'oidc' }))

/** One thing that no compiler lets pass. */
function withFault(chance: Chance, policy: WrittenPolicy): WrittenPolicy {
  const { spec } = policy
  const [first = { selector: {} }] = spec.scope.clusters.rules ?? []
  const faults: (() => MonitorAccessPolicySpec)[] = [
    // A fault in the only rule: what it might have selected is nobody else's to say.
    () => ({
      ...spec,
      scope: {
        clusters: {
          ...spec.scope.clusters,
          rules: [{ ...first, selector: { ...first.selector, matchPattern: chance.one(badPatterns) } }],
        },
      },
    }),
    () => ({ ...spec, lifecycle: { validity: { notBefore: chance.one(badTimes) } } }),
    () => ({ ...spec, lifecycle: { validity: { notAfter: chance.one(badTimes) } } }),
    ...(policy.byHand
      ? []
      : [() => ({ ...spec, identity: { ...spec.identity, priority: chance.one([0, 10_001, -5]) } })]),
  ]
  return { ...policy, spec: chance.one(faults)() }
}

function someBounds(chance: Chance, now: number) {
  const at = (offset: number): string => {
    const text = new Date(now + offset).toISOString()
    const moved = new Date(now + offset + 2 * 3_600_000).toISOString()
    return chance.one([text, text.replace('Z', '+00:00'), moved.replace('Z', '+02:00')])
  }
  const offset = () => chance.one([-86_400_000, -1000, -1, 0, 1, 1000, 86_400_000])
  return {
    ...(chance.often(0.6) && { notBefore: at(offset()) }),
    ...(chance.often(0.6) && { notAfter: at(offset()) }),
  }
}

const someNamespaces = (chance: Chance): Resource => ({
  type: 'namespaces',
  visibility: 'filtered',
  filters: {
    names: { [chance.one(['allowed', 'denied'])]: chance.some(['default', 'app-1', 'app-2', 'app-12'], 3, 1) },
  },
})

function aRule(chance: Chance, semantics: Semantics, effect: 'Allow' | 'Deny'): Rule {
  const some = Array.from({ length: chance.one([0, 0, 1, 1, 2, 3]) }, () => aResource(chance, semantics))
  // Who sees some namespaces and is denied nothing else has rows that speak of the others.
  const resources = effect === 'Allow' && chance.often(0.15) ? [someNamespaces(chance)] : some
  return {
    selector: {
      ...(chance.often(0.5) && { matchNames: chance.some([...clusterNames, 'prod-*', 'c?', '*-1', '*'], 2) }),
      ...(chance.often(0.4) && { matchPattern: chance.one(Object.keys(patterns).filter(Boolean)) }),
      ...(chance.often(0.3) && { matchLabels: someLabels(chance, 1) }),
    },
    ...(chance.often(effect === 'Deny' ? 0.3 : 0.6) && {
      permissions: chance.one([
        {},
        { view: true },
        { view: true, viewMetrics: true },
        { view: true, viewMetrics: true },
        { viewMetrics: true },
        { view: false },
        { view: false, viewMetrics: true },
        { view: true, viewMetrics: false },
      ]),
    }),
    ...(resources.length > 0 || chance.often(0.1) ? { resources } : {}),
  }
}

const wild = (semantics: Semantics) => (semantics === 'strict' ? wildcards : tamewildcards)

const someLists = (chance: Chance, texts: readonly string[], semantics: Semantics) => ({
  ...(chance.often(0.7) && { allowed: [...chance.some(texts, 3), ...chance.some(wild(semantics), 1)] }),
  ...(chance.often(0.4) && {
    denied: [
      ...chance.some(texts, 2),
      ...(chance.often(0.3) ? [chance.one(wild(semantics))] : []),
      ...(chance.often(0.04) ? [chance.one(expressions)] : []),
    ],
  }),
})

function aResource(chance: Chance, semantics: Semantics): Resource {
  const type = chance.often(0.6) ? chance.one(types) : chance.one(chance.often(0.5) ? customTypes : kindNames)
  const isCustom = !(types as readonly string[]).includes(type)
  const texts =
    type === 'events' ? [...eventTypes, ...names] : type === 'operators' ? [...names, 'Display app-1'] : names
  const filters: Filters = {
    ...(chance.often(0.5) && { names: someLists(chance, texts, semantics) }),
    ...(chance.often(0.3) && { namespaces: someLists(chance, names, semantics) }),
    ...(chance.often(0.12) && { labels: someLabels(chance, 1) }),
    ...(chance.often(isCustom ? 0.3 : 0.03) && {
      fields: {
        [chance.one(['size', 'phase', '__proto__', 'status', 'owner', 'node'])]: {
          allowed: chance.some(['107374182400', 'Bound', '1.5', 'true', 'app-1', 'app-2'], 2),
        },
      },
    }),
  }
  return {
    type,
    ...(chance.often(0.85) && { visibility: chance.one(['all', 'none', 'filtered', 'filtered', 'filtered'] as const) }),
    ...(chance.often(0.75) && { filters }),
    ...(chance.often(isCustom ? 0.4 : 0.05) && {
      aggregations: {
        ...(chance.often(0.6) && { include: chance.some(['total', 'cost', 'count', 'by_phase', 'byStatus'], 2) }),
        ...(chance.often(0.6) && { exclude: chance.some(['total', 'cost', 'count'], 2) }),
      },
    }),
  }
}

const someLabels = (chance: Chance, least = 0): Record<string, string> =>
  Object.fromEntries(chance.some(labelKeys, 2, least).map((key) => [key, chance.one(labelValues)]))

function aCluster(chance: Chance, name: string, at: number): PlainCluster {
  let number = 0
  const mark = (): string => `zq${at}x${++number}qz`
  const part = <T>(make: () => T): T | null => (chance.often(0.93) ? make() : null)
  const namespaces = chance.some(names, 5)
  const known = [...namespaces, 'default', 'app-1']
  const nodes = chance.some(names, 4)
  const operators = chance.some(names, 3).map((operator) => `${operator}${chance.one(versions)}`)
  const clusterOperators = chance.some(names, 3)
  return {
    name,
    mark: mark(),
    labels: chance.often(0.9) ? someLabels(chance) : null,
    nodes: part(() =>
      nodes.map((node) => ({
        name: node,
        mark: mark(),
        labels: someLabels(chance),
        ready: chance.often(0.6),
        role: chance.one(['worker', 'control-plane']),
        cpu: chance.int(1, 64),
        used: chance.often(0.7),
      })),
    ),
    namespaces: part(() =>
      namespaces.map((namespace) => ({ name: namespace, mark: mark(), labels: someLabels(chance) })),
    ),
    deployments: part(() =>
      Array.from({ length: chance.int(0, 4) }, () => ({ name: 'dep', namespace: chance.one(known), mark: mark() })),
    ),
    operators: part(() =>
      operators.map((operator) => ({
        name: operator,
        mark: mark(),
        namespace: chance.one(known),
        failed: chance.often(0.3),
        displayName: chance.one(['', `Display ${operator}`, 'Display app-1']),
        availableIn: chance.often(0.3) ? ['*'] : chance.some(known, 4),
      })),
    ),
    clusterOperators: part(() =>
      clusterOperators.map((operator) => ({
        name: operator,
        mark: mark(),
        degraded: chance.often(0.3),
        related: chance.some(['', ...known], 3),
      })),
    ),
    pods: part(() => ({
      unscheduled: chance.int(0, 3),
      by: chance
        .some([...new Set(known)], 5)
        .map((namespace) => ({ namespace, running: chance.int(0, 90), pending: chance.int(0, 9) })),
    })),
    events: Array.from({ length: chance.int(0, 8) }, () => {
      const type = chance.one(eventTypes)
      return {
        type,
        data: {
          note: mark(),
          ...(type.startsWith('node.') && { node: chance.one([...nodes, ...names]) }),
          ...(type.startsWith('operator.') && {
            operator: `${chance.one(known)}/${chance.one([...operators, ...names])}`,
            display_name: 'Display app-1',
          }),
          ...(type.startsWith('cluster_operator.') && { operator: chance.one([...clusterOperators, ...names]) }),
          ...(chance.often(0.2) && { namespace: chance.one(known) }),
        },
      }
    }),
    alerts: Array.from({ length: chance.int(0, 4) }, () => ({
      name: chance.one(names),
      severity: chance.one(['critical', 'warning']),
      note: mark(),
      ...(chance.often(0.5) && { namespace: chance.one(known) }),
      ...(chance.often(0.3) && { node: chance.one([...nodes, ...names]) }),
    })),
    custom: Array.from({ length: chance.int(0, 8) }, () => ({
      type: chance.one([...customTypes, ...customTypes, ...takeable]),
      name: chance.one(names),
      mark: mark(),
      labels: someLabels(chance),
      ...(chance.often(0.7) && { namespace: chance.one(known) }),
      values: {
        size: chance.one([107374182400, 1.5, 'Bound', true]),
        phase: chance.one(['Bound', 'Lost']),
        amount: chance.one([null, 1, 2, 30, 400]),
      },
    })),
    resources: someResourceRows(chance, { known, nodes, mark }),
    collected: chance.some([...customTypes, ...takeable], 6, 2),
    unread: Array.from({ length: chance.int(0, 2) }, () => ({
      type: chance.one(customTypes),
      name: chance.one(['', ...known, ...names]),
      mark: mark(),
    })),
    heartbeats: Array.from({ length: chance.int(0, 3) }, () =>
      chance.one(['healthy', 'degraded', 'unhealthy'] as const),
    ),
  }
}

/** Rows of every kind; events come last, and are about some of the others. */
function someResourceRows(
  chance: Chance,
  { known, nodes, mark }: { known: readonly string[]; nodes: readonly string[]; mark: () => string },
): ReturnType<typeof aResourceRow>[] {
  const rows: ReturnType<typeof aResourceRow>[] = []
  for (const kind of resources)
    for (let left = chance.int(0, 4); left > 0; left--) {
      const row = aResourceRow(chance, kind, { known, nodes, mark: mark() })
      rows.push(kind.access === 'events' ? aboutOne(chance, row, rows) : row)
    }
  return rows
}

/** The event, often about a pod that is there. */
function aboutOne<T extends { type: string; name: string; namespace: string; values: object }>(
  chance: Chance,
  event: T,
  rows: readonly T[],
): T {
  const pods = rows.filter(({ type }) => type === 'pods')
  if (pods.length === 0 || chance.often(0.5)) return event
  const { name, namespace } = chance.one(pods)
  return { ...event, namespace, values: { ...event.values, object: `Pod/${name}` } }
}

/** What events are about: kinds with rows, those that follow others, and one that nobody knows. */
const objectKinds = [
  ...['Pod', 'Pod', 'Node', 'Node', 'Deployment', 'ReplicaSet', 'Job', 'PersistentVolumeClaim', 'Service', 'Widget'],
  ...['PersistentVolume', 'ClusterServiceVersion', 'ClusterOperator', 'Namespace'],
  ...['KollectTarget', 'KollectInventory', 'KollectClusterTarget'],
]

/** Values of every sort of column; what names a node names one that is there, or is not. */
function aResourceRow(
  chance: Chance,
  { typeName, columns, targets }: ResourceDescriptor,
  { known, nodes, mark }: { known: readonly string[]; nodes: readonly string[]; mark: string },
) {
  const texts = [mark, 'Bound', 'app-1', 'app-2']
  const isEvent = typeName === 'kubernetes-events'
  const ofCluster = targets.some(({ scope }) => scope === 'Cluster') && columns.some(({ tells }) => tells)
  const inNone = isEvent ? 0.1 : targets.length === 0 || ofCluster ? 0.3 : 0
  const valueIn = ({ name, kind, refersTo, tells }: (typeof columns)[number]) => {
    if (isEvent && name === 'object')
      return chance.one([...objectKinds.map((one) => `${one}/${chance.one(names)}`), null])
    if (isEvent && name === 'message')
      return `${mark} was assigned to ${chance.one([...nodes, ...known.flatMap((one) => [one, `${one}/x`, `x/${one}/x`]), 'somewhere'].filter((word) => /^[\w./-]+$/.test(word)))}`
    if (tells === 'namespaces') return chance.often(0.1) ? null : chance.some(known, 3, 1).join(', ')
    if (tells === 'object') return chance.one([`${chance.one(known)}/${chance.one(names)}`, 'app-1'])
    if (refersTo === 'node') return chance.one([...nodes, ...names.slice(0, 3), null])
    if (kind === 'boolean') return chance.often(0.5)
    return kind === 'number' ? chance.one([null, 0, 1, 2, 30]) : chance.one(texts)
  }
  // Where two kinds of objects are one kind of row, the key of a row tells them apart. No object has a colon in its name.
  // Rows of any kind have their target and a mark in the key, behind a letter that no name has.
  const suffix = targets.length > 1 ? `:${chance.one(targets).kind}` : targets.length === 0 ? `%a%${mark}` : ''
  return {
    type: typeName,
    name: `${chance.one(names.filter((name) => !name.includes(':')))}${suffix}`,
    namespace: chance.often(inNone) ? '' : chance.one(known),
    mark,
    labels: someLabels(chance),
    values: Object.fromEntries(columns.map((column) => [column.name, valueIn(column)])),
  }
}
