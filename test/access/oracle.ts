import type { Action, Principal } from '#access'
import type { MonitorAccessPolicySpec } from '#kinds'
import type {
  ClusterState,
  FleetEvent,
  JsonValue,
  PodCounts,
  SeenOf,
  SnapshotOf,
  SnapshotType,
  SourceId,
  Telling,
} from '#model'
import { patterns } from './generate.ts'
import type { World, WrittenPolicy } from './world.ts'

/**
 * Who may see what, read off the specification and nothing else: every question is answered from the written policies
 * anew, slowly and plainly. It shares no line with what it judges.
 */
type Rule = NonNullable<MonitorAccessPolicySpec['scope']['clusters']['rules']>[number]
type Entry = NonNullable<Rule['resources']>[number]
type Lists = { readonly allowed?: readonly string[]; readonly denied?: readonly string[] }

/** What the filters of one entry are compared with. */
interface Item {
  /** any of them may be the name: allowed by one, denied by one */
  readonly names: readonly string[]
  /** undefined: it is in no namespace; '*': in all */
  readonly namespaces: readonly string[] | '*' | undefined
  /** undefined: it has none, and never will */
  readonly labels: Readonly<Record<string, string>> | undefined
  readonly fields?: Readonly<Record<string, unknown>>
}

export interface Verdict {
  readonly allowed: boolean
  /** of the deciding policy, `namespace/name` */
  readonly policy: string | null
  readonly rule: number | null
  /** of the deciding rule */
  readonly permissions: readonly Action[]
  /** of the type asked for; all must let an item pass */
  readonly entries: readonly Entry[]
}

const denied: Verdict = { allowed: false, policy: null, rule: null, permissions: [], entries: [] }

const timeShape = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/
const goodTimes = new Map<string, number>()

/** ms since the Unix epoch; undefined: not a time */
function timeOf(text: string): number | undefined {
  const at = goodTimes.get(text) ?? Date.parse(text)
  goodTimes.set(text, at)
  const day = new Date(`${text.slice(0, 10)}T00:00:00Z`)
  const isDay = !Number.isNaN(day.getTime()) && day.toISOString().slice(0, 10) === text.slice(0, 10)
  return timeShape.test(text) && isDay && !Number.isNaN(at) ? at : undefined
}

const keyOf = ({ namespace, name }: WrittenPolicy): string => `${namespace}/${name}`
const priorityOf = ({ spec }: WrittenPolicy): number => spec.identity.priority ?? 100
const isDeny = ({ spec }: WrittenPolicy): boolean => spec.access.effect === 'Deny'
const rulesOf = ({ spec }: WrittenPolicy): readonly Rule[] => spec.scope.clusters.rules ?? []
const own = <V>(record: Readonly<Record<string, V>>, key: string): V | undefined =>
  Object.hasOwn(record, key) ? record[key] : undefined
const smaller = (left: string, right: string): number => (left < right ? -1 : left > right ? 1 : 0)

/** Section 3 with the checks of section 14: a policy that cannot mean what it says never comes into force. */
export function isRefused({ spec }: WrittenPolicy): boolean {
  const priority = spec.identity.priority ?? 100
  const { notBefore, notAfter } = spec.lifecycle?.validity ?? {}
  return (
    priority < 1 ||
    priority > 10_000 ||
    (notBefore && notAfter && (timeOf(notAfter) ?? 0) < (timeOf(notBefore) ?? 0)) ||
    // A character that nobody sees is no part of a name.
    /\\[nrtbfu]/.test(JSON.stringify(spec)) ||
    [notBefore, notAfter].some((text) => text !== undefined && text !== '' && timeOf(text) === undefined) ||
    (spec.scope.clusters.rules ?? []).some(
      ({ selector: { matchNames = [] }, resources = [] }) =>
        (spec.access.effect === 'Deny' && matchNames.some((name) => /[\\|()[\]{}^$+]/.test(name))) ||
        // A Deny hides whole types, whatever its filters say.
        (spec.access.effect === 'Allow' &&
          resources.some(({ filters = {} }) =>
            [filters.names, filters.namespaces].some((lists) => lists?.denied?.some((text) => /[()|]/.test(text))),
          )),
    ) ||
    (spec.scope.clusters.rules ?? []).some(
      ({ selector }) => selector.matchPattern !== undefined && !own(patterns, selector.matchPattern),
    )
  )
}

function actionsOf({ permissions }: Rule): readonly Action[] {
  const set: Action[] = []
  if (permissions?.view) set.push('view')
  if (permissions?.viewMetrics) set.push('view_metrics')
  const says = permissions?.view !== undefined || permissions?.viewMetrics !== undefined
  return says ? set : ['view']
}

// ── texts ────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** "*" is any text, "?" is one character, both within a line (section 3); all else is itself. */
export function fits(wildcard: readonly string[], text: readonly string[]): boolean {
  const [first, ...rest] = wildcard
  const [here] = text
  if (first === undefined) return here === undefined
  if (first === '*') return fits(rest, text) || (here !== undefined && here !== '\n' && fits(wildcard, text.slice(1)))
  return here !== undefined && (first === '?' ? here !== '\n' : first === here) && fits(rest, text.slice(1))
}

/** As the original translates it: "." of an expression stops at the end of a line. */
function fitsOriginal(wildcard: string, text: string): boolean {
  if (!/[*?]/.test(wildcard)) return wildcard === text
  const source = wildcard.replaceAll('.', '\\.').replaceAll('*', '[^\\n]*').replaceAll('?', '[^\\n]')
  return new RegExp(`^${source}$`, 'u').test(text)
}

const kept = new Map<string, boolean>()

export class Oracle {
  readonly #world: World
  readonly #strict: boolean
  readonly #now: number
  readonly #inForce: readonly WrittenPolicy[]

  constructor(world: World, now = world.now) {
    this.#world = world
    this.#strict = world.semantics === 'strict'
    this.#now = now
    // Two objects of one name are one: the later stands.
    const byKey = new Map(
      world.policies.filter((policy) => policy.byHand || !isRefused(policy)).map((policy) => [keyOf(policy), policy]),
    )
    this.#inForce = [...byKey.values()].sort(
      (left, right) =>
        priorityOf(right) - priorityOf(left) ||
        Number(isDeny(right)) - Number(isDeny(left)) ||
        smaller(keyOf(left), keyOf(right)),
    )
  }

  isAdministrator({ method, username, groups, actor }: Principal): boolean {
    const { administrators } = this.#world
    return (
      // Who is looked through did not sign in.
      (actor === undefined && (method === 'local-administrator' || method === 'password')) ||
      administrators.users.some((user) => user !== '' && user === username) ||
      administrators.groups.some((group) => group !== '' && groups.includes(group))
    )
  }

  eyes(principal: Principal): Eyes {
    return new Eyes(this, principal)
  }

  /** the policies about somebody, in the order in which they are looked at */
  policiesOf(principal: Principal): readonly WrittenPolicy[] {
    return this.#inForce.filter(({ spec }) => {
      const { users = [], groups = [], serviceAccounts = [] } = spec.identity.subjects
      return (
        users.includes(principal.username) ||
        (this.#strict &&
          principal.emailVerified === true &&
          principal.email !== '' &&
          users.includes(principal.email)) ||
        groups.some((group) => principal.groups.includes(group)) ||
        (principal.isServiceAccount &&
          serviceAccounts.some(
            ({ name, namespace }) => principal.username === `system:serviceaccount:${namespace || 'default'}:${name}`,
          ))
      )
    })
  }

  get strict(): boolean {
    return this.#strict
  }

  /** Is it on, and is it time? A Deny whose bounds nobody can read counts all the same. */
  isActive(policy: WrittenPolicy): boolean {
    const { spec } = policy
    if (spec.access.enabled === false) return false
    const { notBefore, notAfter } = spec.lifecycle?.validity ?? {}
    const from = notBefore ? timeOf(notBefore) : Number.NEGATIVE_INFINITY
    const to = notAfter ? timeOf(notAfter) : Number.POSITIVE_INFINITY
    const unread = this.#strict && isDeny(policy)
    return (from === undefined ? unread : this.#now >= from) && (to === undefined ? unread : this.#now <= to)
  }

  /** moments after now at which something begins or ends for these policies */
  bounds(policies: readonly WrittenPolicy[]): number {
    const moments = policies
      .filter(({ spec }) => spec.access.enabled !== false)
      .flatMap(({ spec }) => {
        const { notBefore, notAfter } = spec.lifecycle?.validity ?? {}
        return [notBefore && timeOf(notBefore), notAfter && (timeOf(notAfter) ?? Number.NaN) + 1]
      })
    return Math.min(
      Number.POSITIVE_INFINITY,
      ...moments.filter((at): at is number => typeof at === 'number' && at > this.#now),
    )
  }

  matches(wildcard: string, text: string): boolean {
    const key = JSON.stringify([this.#strict, wildcard, text])
    let is = kept.get(key)
    if (is === undefined) {
      is = this.#strict ? fits([...wildcard], [...text]) : fitsOriginal(wildcard, text)
      if (kept.size > 50_000) kept.clear()
      kept.set(key, is)
    }
    return is
  }

  selects(policy: WrittenPolicy, { selector }: Rule, cluster: ClusterState, labelsCount = true): boolean {
    const { matchNames = [], matchPattern = '', matchLabels = {} } = selector
    const byName = this.#strict
      ? matchNames.some((name) => this.matches(name, cluster.name))
      : matchNames.includes(cluster.name)
    if (byName) return true
    if (matchPattern !== '') {
      const finds = own(patterns, matchPattern)
      if (finds ? finds(cluster.name) : this.#strict && isDeny(policy)) return true
    }
    // The original never gave labels to compare with.
    if (!this.#strict || !labelsCount) return false
    const pairs = Object.entries(matchLabels)
    const labels = cluster.connection?.labels ?? {}
    return pairs.length > 0 && pairs.every(([key, value]) => own(labels, key) === value)
  }

  // ── one list of one entry ────────────────────────────────────────────────────────────────────────────────────────

  listPasses({ allowed = [], denied = [] }: Lists, texts: readonly string[]): boolean {
    const isDenied = (wildcard: string, text: string) =>
      // An original manager stored an expression: what either reading hides is hidden.
      this.matches(wildcard, text) || (/[()|]/.test(wildcard) && fitsOriginal(wildcard, text))
    if (denied.some((wildcard) => texts.some((text) => isDenied(wildcard, text)))) return false
    return allowed.length === 0 || allowed.some((wildcard) => texts.some((text) => this.matches(wildcard, text)))
  }

  entryPasses({ type, visibility = 'all', filters = {} }: Entry, item: Item): boolean {
    if (visibility === 'none') return false
    const has = (lists: Lists | undefined): lists is Lists =>
      lists !== undefined && (lists.allowed ?? []).length + (lists.denied ?? []).length > 0
    const names = has(filters.names) ? filters.names : undefined
    // Nodes and registries are in no namespace, and a namespace is one: there the filter is about names.
    const isAsked = has(filters.namespaces) && type !== 'nodes' && type !== 'registries'
    const namespaces = isAsked ? filters.namespaces : undefined
    const labels = Object.entries(filters.labels ?? {})
    const fields = Object.entries(filters.fields ?? {}).filter(([, lists]) => has(lists))
    if (visibility === 'filtered' && !names && !namespaces && labels.length === 0 && fields.length === 0) return false
    if (names && !this.listPasses(names, item.names)) return false
    if (namespaces) {
      const of = type === 'namespaces' ? item.names : item.namespaces
      if (of === undefined) return false
      if (of !== '*' && !this.anyPasses(namespaces, of)) return false
    }
    if (labels.some(([key, value]) => !item.labels || own(item.labels, key) !== value)) return false
    return fields.every(([field, lists]) => {
      const value = item.fields && own(item.fields, field)
      return value !== undefined && value !== null && this.listPasses(lists, [String(value)])
    })
  }

  /** one visible namespace suffices */
  anyPasses(lists: Lists, namespaces: readonly string[]): boolean {
    return namespaces.some((namespace) => this.listPasses(lists, [namespace]))
  }
}

/** Leaves everything, whatever comes, and nobody meant anything else: a filter that is ignored was meant to hide. */
const isOpen = ({ visibility = 'all', filters = {} }: Entry): boolean => {
  const { names, namespaces, labels, fields } = filters
  const lists = [names, namespaces, ...Object.values(fields ?? {})]
  const texts = lists.flatMap((one) => [...(one?.allowed ?? []), ...(one?.denied ?? [])])
  return visibility === 'all' && texts.length === 0 && Object.keys(labels ?? {}).length === 0
}

/** none, filtered by nothing, or by fields of a type that declares none */
export const leavesNothing = ({ type, visibility = 'all', filters = {} }: Entry): boolean => {
  const { names, namespaces, labels, fields } = filters
  const texts = (lists: readonly (Lists | undefined)[]): number =>
    lists.flatMap((one) => [...(one?.allowed ?? []), ...(one?.denied ?? [])]).length
  const ofFields = texts(Object.values(fields ?? {}))
  const isEmpty =
    texts([names, type === 'nodes' ? undefined : namespaces]) + ofFields + Object.keys(labels ?? {}).length === 0
  if (standardTypes.includes(type) && ofFields > 0) return true
  return visibility === 'none' || (visibility === 'filtered' && isEmpty)
}

const leavesNoPods = ({ visibility = 'all', filters = {} }: Entry): boolean => {
  const count = (lists: Lists | undefined): number => (lists?.allowed ?? []).length + (lists?.denied ?? []).length
  const fields = Object.values(filters.fields ?? {}).reduce((sum, lists) => sum + count(lists), 0)
  const others = count(filters.names) + Object.keys(filters.labels ?? {}).length + fields
  return visibility === 'none' || others > 0 || (visibility === 'filtered' && count(filters.namespaces) === 0)
}

const standardTypes = ['nodes', 'operators', 'namespaces', 'pods', 'alerts', 'events']

/** What one principal sees. */
export class Eyes {
  readonly #oracle: Oracle
  readonly principal: Principal
  readonly administrator: boolean

  constructor(oracle: Oracle, principal: Principal) {
    this.#oracle = oracle
    this.principal = principal
    this.administrator = oracle.isAdministrator(principal)
  }

  get strict(): boolean {
    return this.#oracle.strict
  }

  validUntilAtMost(): number {
    return this.administrator ? Number.POSITIVE_INFINITY : this.#oracle.bounds(this.#oracle.policiesOf(this.principal))
  }

  /** Section 16, steps 2 to 6; in the original semantics section 8. */
  decide(action: Action, cluster: ClusterState, type: string | null): Verdict {
    return this.#oracle.strict ? this.#decideStrict(action, cluster, type) : this.#decideOriginal(cluster, type)
  }

  #decideStrict(action: Action, cluster: ClusterState, type: string | null): Verdict {
    const oracle = this.#oracle
    const policies = oracle.policiesOf(this.principal).filter((policy) => oracle.isActive(policy))
    let isSelected = false
    for (const policy of policies) {
      const rules = rulesOf(policy)
      if (isDeny(policy)) {
        // Of a Deny every rule counts that selects the cluster and is meant for what is asked. Its permissions are not looked
        // at: stricter than step 4 of section 16, so that no Deny is weaker than it reads.
        const index = rules.findIndex(
          (rule) =>
            oracle.selects(policy, rule, cluster) &&
            ((rule.resources ?? []).length === 0 || (rule.resources ?? []).some((entry) => entry.type === type)),
        )
        if (index >= 0) return { ...denied, policy: keyOf(policy), rule: index }
        continue
      }
      // Of an Allow the first rule that selects the cluster. What it shows it answers for: nothing adds up (example 10).
      const index = rules.findIndex((rule) => oracle.selects(policy, rule, cluster))
      const rule = rules[index]
      if (!rule) continue
      isSelected = true
      const permissions = actionsOf(rule)
      if (!permissions.includes('view')) continue
      const entries = (rule.resources ?? []).filter((entry) => entry.type === type)
      return { allowed: permissions.includes(action), policy: keyOf(policy), rule: index, permissions, entries }
    }
    const open = policies.find((policy) => !isDeny(policy) && policy.spec.scope.clusters.default === 'allow')
    if (!open || isSelected || action !== 'view') return denied
    return { allowed: true, policy: keyOf(open), rule: null, permissions: ['view'], entries: [] }
  }

  #decideOriginal(cluster: ClusterState, type: string | null): Verdict {
    const oracle = this.#oracle
    for (const policy of oracle.policiesOf(this.principal).filter((one) => oracle.isActive(one))) {
      const index = rulesOf(policy).findIndex((rule) => oracle.selects(policy, rule, cluster, false))
      const rule = rulesOf(policy)[index]
      const byDefault = !rule && type !== null && policy.spec.scope.clusters.default === 'allow'
      if (!rule && !byDefault) continue
      if (isDeny(policy)) return { ...denied, policy: keyOf(policy), rule: rule ? index : null }
      const entries = (rule?.resources ?? []).filter((entry) => entry.type === type)
      const permissions = rule ? actionsOf(rule) : (['view'] as const)
      return {
        allowed: true,
        policy: keyOf(policy),
        rule: rule ? index : null,
        permissions,
        entries: entries.slice(-1),
      }
    }
    return denied
  }

  canSee(cluster: ClusterState): boolean {
    return this.administrator || this.decide('view', cluster, null).allowed
  }

  usage(cluster: ClusterState): boolean {
    if (this.administrator) return true
    if (!this.canSee(cluster)) return false
    // The original never compared the action.
    return !this.#oracle.strict || this.decide('view_metrics', cluster, null).allowed
  }

  history(cluster: ClusterState): boolean {
    if (this.administrator) return true
    if (!this.canSee(cluster)) return false
    if (this.#oracle.strict) return this.decide('view_metrics', cluster, null).allowed
    return this.decide('view', cluster, null).permissions.includes('view_metrics')
  }

  /** nothing of this type is or can be hidden */
  isWholeType(cluster: ClusterState, type: string): boolean {
    if (this.administrator) return true
    const { allowed, entries } = this.decide('view', cluster, type)
    return allowed && entries.every(isOpen)
  }

  /** standard ones, and whatever the policies in force name */
  types(): readonly string[] {
    const named = this.#oracle
      .policiesOf(this.principal)
      .filter((policy) => this.#oracle.isActive(policy))
      .flatMap((policy) => rulesOf(policy).flatMap(({ resources = [] }) => resources.map(({ type }) => type)))
    return [...new Set([...standardTypes, ...named])]
  }

  /** Of no type that every cluster has anything can be hidden. */
  whole(cluster: ClusterState): boolean {
    return (
      this.administrator || (this.canSee(cluster) && standardTypes.every((type) => this.isWholeType(cluster, type)))
    )
  }

  /** Nothing at all can be hidden, whoever collects it. */
  full(cluster: ClusterState): boolean {
    return this.whole(cluster) && (this.administrator || this.types().every((type) => this.isWholeType(cluster, type)))
  }

  shows(cluster: ClusterState, type: string, item: Item): boolean {
    if (this.administrator) return true
    const { allowed, entries } = this.decide('view', cluster, type)
    if (!this.canSee(cluster) || !allowed) return false
    return this.#oracle.strict
      ? entries.every((entry) => this.#oracle.entryPasses(entry, item))
      : entries.every((entry) => this.#passesOriginal(entry, item))
  }

  /** Section 8.1, with an item as section 10 describes it. */
  #passesOriginal({ visibility, filters = {} }: Entry, item: Item): boolean {
    if (visibility === 'none') return false
    const oracle = this.#oracle
    const has = (lists: Lists | undefined): lists is Lists =>
      (lists?.allowed ?? []).length + (lists?.denied ?? []).length > 0
    if (has(filters.names) && (item.names.length === 0 || !oracle.listPasses(filters.names, item.names))) return false
    if (
      has(filters.namespaces) &&
      Array.isArray(item.namespaces) &&
      !oracle.anyPasses(filters.namespaces, item.namespaces)
    )
      return false
    for (const [key, value] of Object.entries(filters.labels ?? {}))
      if (!item.labels || (own(item.labels, key) ?? '') !== value) return false
    return Object.entries(filters.fields ?? {}).every(
      ([field, lists]) => !has(lists) || oracle.listPasses(lists, [printed(item.fields && own(item.fields, field))]),
    )
  }

  // ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  showsNode(cluster: ClusterState, name: string): boolean {
    return this.shows(cluster, 'nodes', {
      names: [name],
      namespaces: undefined,
      labels: cluster.parts.node?.items.get(name)?.labels,
    })
  }

  showsNamespace(cluster: ClusterState, name: string): boolean {
    const labels = this.#oracle.strict ? cluster.parts.namespace?.items.get(name)?.labels : undefined
    return this.shows(cluster, 'namespaces', { names: [name], namespaces: undefined, labels })
  }

  showsOperator(
    cluster: ClusterState,
    { csv, displayName, availableInNamespaces: all }: SnapshotOf<'operator'>,
  ): boolean {
    const isEverywhere = all.length === 1 && all[0] === '*'
    if (this.#oracle.strict)
      return this.shows(cluster, 'operators', {
        names: [csv, displayName].filter(Boolean),
        namespaces: isEverywhere ? '*' : all,
        labels: undefined,
      })
    const namespaces = isEverywhere || all.length === 0 ? undefined : all.slice(0, 20)
    return this.shows(cluster, 'operators', {
      names: [csv || displayName].filter(Boolean),
      namespaces,
      labels: undefined,
    })
  }

  showsClusterOperator(cluster: ClusterState, name: string): boolean {
    return this.shows(cluster, 'operators', { names: [name], namespaces: '*', labels: undefined })
  }

  /** every pod of the cluster, whichever namespace it is in */
  allPods(cluster: ClusterState): boolean {
    return (!this.#oracle.strict || this.isWholeType(cluster, 'pods')) && this.isWholeType(cluster, 'namespaces')
  }

  podSummary(cluster: ClusterState): readonly SeenOf<'podSummary'>[] {
    const [summary] = cluster.parts.podSummary?.items.values() ?? []
    if (!summary || !this.canSee(cluster)) return []
    if (this.allPods(cluster)) return [summary]
    // In the original a filter of pods has no effect. In ours counts have no names and no labels to compare: such a filter
    // leaves nothing at all, like one that is empty.
    const { allowed, entries } = this.#oracle.strict
      ? this.decide('view', cluster, 'pods')
      : { allowed: true, entries: [] }
    if (!allowed || entries.some(leavesNoPods)) return []
    const byNamespace = Object.fromEntries(
      Object.entries(summary.byNamespace).filter(
        ([namespace]) =>
          this.showsNamespace(cluster, namespace) &&
          entries.every((entry) =>
            this.#oracle.entryPasses(entry, { names: [], namespaces: [namespace], labels: undefined }),
          ),
      ),
    )
    const counts: PodCounts = { total: 0, running: 0, pending: 0, failed: 0, succeeded: 0, unknown: 0 }
    for (const one of Object.values(byNamespace))
      for (const phase of Object.keys(counts) as (keyof PodCounts)[]) counts[phase] += one[phase]
    return [{ name: 'pods', counts, unscheduled: null, byNamespace }]
  }

  /** in no order */
  rows<T extends SnapshotType>(cluster: ClusterState, type: T): readonly SeenOf<T>[] {
    const all = [...(cluster.parts[type]?.items.values() ?? [])]
    return (this.administrator
      ? all
      : this.canSee(cluster)
        ? this.#rows(cluster, type)
        : []) as unknown as readonly SeenOf<T>[]
  }

  #rows(cluster: ClusterState, type: SnapshotType): readonly unknown[] {
    const { parts } = cluster
    // The original leaves a node or an operator that it shows as it is.
    const { strict } = this.#oracle
    const namespaces = (list: readonly string[]) =>
      list.filter((name) => !strict || name === '*' || this.showsNamespace(cluster, name))
    switch (type) {
      case 'cluster':
        return [...(parts.cluster?.items.values() ?? [])]
      case 'podSummary':
        return this.podSummary(cluster)
      case 'node':
        return [...(parts.node?.items.values() ?? [])]
          .filter(({ name }) => this.showsNode(cluster, name))
          .map((node) => ({
            ...node,
            used: !strict || this.usage(cluster) ? node.used : null,
            pods: !strict || this.allPods(cluster) ? node.pods : null,
            requested: !strict || this.allPods(cluster) ? node.requested : null,
          }))
      case 'namespace':
        return [...(parts.namespace?.items.values() ?? [])].filter(({ name }) => this.showsNamespace(cluster, name))
      case 'deployment':
        return [...(parts.deployment?.items.values() ?? [])].filter(({ namespace }) =>
          this.showsNamespace(cluster, namespace),
        )
      case 'operator':
        return [...(parts.operator?.items.values() ?? [])]
          .filter((operator) => this.showsOperator(cluster, operator))
          .map((operator) => ({ ...operator, availableInNamespaces: namespaces(operator.availableInNamespaces) }))
      case 'clusterOperator':
        return [...(parts.clusterOperator?.items.values() ?? [])]
          .filter(({ name }) => this.showsClusterOperator(cluster, name))
          .map((operator) => ({
            ...operator,
            relatedObjects: operator.relatedObjects.filter(({ group, resource, namespace, name }) => {
              if (namespace !== '') return this.showsNamespace(cluster, namespace)
              return group !== '' || resource !== 'namespaces' || this.showsNamespace(cluster, name)
            }),
          }))
    }
  }

  // ── events, alerts, custom types ─────────────────────────────────────────────────────────────────────────────────

  showsEvent(cluster: ClusterState, { type, data }: FleetEvent): boolean {
    if (this.administrator) return true
    if (!this.canSee(cluster)) return false
    if (['cluster.health', 'cluster.reconciled'].includes(type) && !this.whole(cluster)) return false
    const text = (key: string): string | undefined => {
      const value = data && own(data, key)
      return typeof value === 'string' ? value : undefined
    }
    const [node, operator, namespace] = [text('node'), text('operator'), text('namespace')]
    // The original stored neither a name nor a namespace of an event.
    const strict = this.#oracle.strict
    const item = {
      names: strict ? [type, node, operator].filter((name) => name !== undefined) : [],
      namespaces: !strict || namespace === undefined ? undefined : [namespace],
      labels: undefined,
    }
    if (!this.shows(cluster, 'events', item)) return false
    if (node !== undefined && !this.showsNode(cluster, node)) return false
    if (namespace !== undefined && !this.showsNamespace(cluster, namespace)) return false
    return operator === undefined || this.#showsNamedOperator(cluster, type, operator, text('display_name'))
  }

  #showsNamedOperator(
    cluster: ClusterState,
    eventType: string,
    name: string,
    displayName: string | undefined,
  ): boolean {
    if (eventType.startsWith('cluster_operator.')) return this.showsClusterOperator(cluster, name)
    const known = cluster.parts.operator?.items.get(name)
    if (known) return this.showsOperator(cluster, known)
    const csv = name.slice(name.indexOf('/') + 1)
    return this.shows(cluster, 'operators', {
      names: [csv, this.#oracle.strict ? displayName : undefined].filter((one) => one !== undefined),
      namespaces: undefined,
      labels: undefined,
    })
  }

  showsAlert(cluster: ClusterState, alert: Readonly<Record<string, string>>): boolean {
    if (this.administrator) return true
    const { name, namespace, node } = alert
    const item = {
      names: name === undefined ? [] : [name],
      namespaces: namespace === undefined ? undefined : [namespace],
      labels: undefined,
    }
    if (!this.shows(cluster, 'alerts', this.#oracle.strict ? item : { ...item, namespaces: undefined })) return false
    return (
      (node === undefined || this.showsNode(cluster, node)) &&
      (namespace === undefined || this.showsNamespace(cluster, namespace))
    )
  }

  /** A registry is selected as a cluster of its name and labels is. To the original nothing of registries was hidden. */
  showsRegistry(like: ClusterState): boolean {
    const item = { names: [like.name], namespaces: undefined, labels: like.connection?.labels ?? {} }
    return !this.#oracle.strict || this.shows(like, 'registries', item)
  }

  /**
   * Rows of a kind that is compiled in (docs/spec/access.md). Pods follow the entries about pods; other kinds stand in visible
   * namespaces, narrowed by entries of their name. Who filters or hides pods sees none of the others, unless an entry names
   * the kind. Inventory, whose rows are of any kind, takes an entry that names it, or that nothing at all is filtered; of it what is in no
   * namespace takes that nothing else is. Where a MetricSource has the name, only `core/<name>` names the kind; what narrows it narrows it all the same.
   */
  resource(cluster: ClusterState, kind: Kind, isTaken: boolean): CustomVerdict {
    if (this.administrator) return everything
    if (kind.rule === 'events') return this.#eventRows(cluster, kind, isTaken)
    const { name, rule } = kind
    const ofName = this.decide('view', cluster, name)
    const ofCore = this.decide('view', cluster, `core/${name}`)
    const ofPods = this.decide('view', cluster, 'pods')
    const meant = rule === 'pods' ? [ofPods, ofName, ofCore] : [ofName, ofCore]
    const isNamed = rule === 'pods' || ofCore.entries.length > 0 || (!isTaken && ofName.entries.length > 0)
    // Inventory may hold anything: who is shown less than all of the cluster sees it where an entry names it.
    const isWhole = this.types().every((type) => this.isWholeType(cluster, type))
    const follows = rule === 'named' ? isWhole : ofPods.allowed && ofPods.entries.every(isOpen)
    if (!this.canSee(cluster) || meant.some(({ allowed }) => !allowed) || !(isNamed || follows)) return hidden
    const others = this.types().filter((type) => type !== name && type !== `core/${name}`)
    const isOfClusterShown = rule !== 'named' || others.every((type) => this.isWholeType(cluster, type))
    const entries = meant.flatMap((one) => one.entries)
    const strict = this.#oracle.strict
    if (strict ? entries.some(leavesNothing) : entries.some(({ visibility }) => visibility === 'none')) return hidden
    return {
      allowed: true,
      whole:
        entries.every(isOpen) &&
        this.isWholeType(cluster, 'namespaces') &&
        (rule !== 'pods' || this.isWholeType(cluster, 'nodes')) &&
        (rule !== 'named' || isWhole),
      metrics: true,
      shows: ({ name: row, namespace = '', labels, values }) => {
        const item = { names: [row], namespaces: [namespace], labels, fields: values }
        const passes = (entry: Entry) =>
          strict ? this.#oracle.entryPasses(entry, item) : this.#passesOriginal(entry, item)
        if (namespace === '' && !isOfClusterShown) return false
        return this.showsNamespace(cluster, namespace) && entries.every(passes)
      },
      tells: (tells, value, row) => this.#told(cluster, tells, value, row),
      aggregation: (sum) => entries.every((entry) => leavesSum(entry, sum)),
    }
  }

  /** What a row says of namespaces (docs/spec/access.md): nothing of those that are hidden. */
  #told(cluster: ClusterState, tells: Telling, value: JsonValue, row: RowItem): JsonValue {
    if (value === null || this.isWholeType(cluster, 'namespaces')) return value
    const namesIn = (text: unknown): readonly string[] | null =>
      typeof text === 'string' && text !== '' ? text.split(', ') : null
    if (tells === 'namespaces') {
      const left = namesIn(value)?.filter((name) => this.showsNamespace(cluster, name)) ?? []
      return left.length > 0 ? left.join(', ') : null
    }
    if (tells === 'object') {
      const [, namespace = ''] = /^([^/]*)\//s.exec(String(value)) ?? []
      return this.showsNamespace(cluster, namespace) ? value : null
    }
    const { source, column, withCluster } = tells
    const { namespace: own = '' } = row
    const others = [...(cluster.tables.get(source ?? '')?.rows.rows() ?? [])].filter(
      ({ namespace }) => namespace === own || (withCluster && namespace === ''),
    )
    const about = (source === null ? [row] : others).map(({ values }) => namesIn(values[column]))
    const isKnown = source === null || cluster.tables.has(source)
    if (isKnown && about.every((names) => names?.every((name) => this.showsNamespace(cluster, name)))) return value
    return typeof value === 'string' ? 'hidden: it may be about a namespace that is not shown' : null
  }

  /**
   * Events of a cluster (docs/spec/access.md): with the object they are about, which has a kind and a name. Of a policy that filters
   * or hides pods, only those of pods and nodes, unless an entry names the events.
   */
  #eventRows(cluster: ClusterState, { name, about = [] }: Kind, isTaken: boolean): CustomVerdict {
    const ofName = this.decide('view', cluster, name)
    const ofCore = this.decide('view', cluster, `core/${name}`)
    const entries = [...ofName.entries, ...ofCore.entries]
    const strict = this.#oracle.strict
    if (!this.canSee(cluster) || !ofName.allowed || !ofCore.allowed) return hidden
    if (strict ? entries.some(leavesNothing) : entries.some(({ visibility }) => visibility === 'none')) return hidden
    const isNamed = ofCore.entries.length > 0 || (!isTaken && ofName.entries.length > 0)
    const isNone = (type: string): boolean => {
      const { allowed, entries: of } = this.decide('view', cluster, type)
      return !allowed || (strict ? of.some(leavesNothing) : of.some(({ visibility }) => visibility === 'none'))
    }
    if (!isNamed && isNone('pods') && isNone('nodes')) return hidden
    const areAllPods = this.isWholeType(cluster, 'pods')
    const passes = (item: Item) =>
      entries.every((entry) => (strict ? this.#oracle.entryPasses(entry, item) : this.#passesOriginal(entry, item)))
    const showsObject = (object: unknown, namespace: string): boolean => {
      const [, kind = '', objectName = ''] = /^([^/]+)\/(.*)$/s.exec(String(object)) ?? []
      if (kind === 'Node') return this.showsNode(cluster, objectName)
      if (kind === 'Namespace' && !this.showsNamespace(cluster, objectName)) return false
      if (kind !== 'Pod' && !areAllPods && !isNamed) return false
      if (kind === 'ClusterServiceVersion' || kind === 'ClusterOperator')
        return this.shows(cluster, 'operators', { names: [objectName], namespaces: [], labels: undefined })
      // A replica set is called after its deployment, with a hash behind the last dash.
      const isSet = kind === 'ReplicaSet'
      const dash = isSet ? objectName.lastIndexOf('-') : -1
      const [rowKind, rowName] = [isSet ? 'Deployment' : kind, dash < 0 ? objectName : objectName.slice(0, dash)]
      const its = about.find(({ kinds }) => kinds.includes(rowKind))
      if (!its) return true
      const key = its.kinds.length > 1 ? `${rowName}:${rowKind}` : rowName
      const row = [...(cluster.tables.get(its.rows)?.rows.rows() ?? [])].find(
        (one) => one.namespace === namespace && one.name === key,
      )
      return this.resource(cluster, its, its.isTaken).shows({
        ...{ name: rowName, namespace },
        ...{ labels: row?.labels, values: row?.values ?? {} },
      })
    }
    return {
      allowed: true,
      whole:
        entries.every(isOpen) &&
        ['namespaces', 'pods', 'nodes', 'operators'].every((type) => this.isWholeType(cluster, type)) &&
        about.every((its) => ['', 'core/'].every((prefix) => this.isWholeType(cluster, `${prefix}${its.name}`))),
      metrics: true,
      shows: ({ name: row, namespace = '', labels, values }) => {
        const isOfNode = String(values.object).startsWith('Node/')
        if (!isOfNode && !this.showsNamespace(cluster, namespace)) return false
        if (!passes({ names: [row], namespaces: [namespace], labels, fields: values })) return false
        return showsObject(values.object, namespace)
      },
      withholds: (event) => {
        const { object, node, message } = event.values
        const isHidden = (one: string) => !this.showsNode(cluster, one)
        const known = [...(cluster.parts.node?.items.keys() ?? []), ...(typeof node === 'string' ? [node] : [])]
        const words = String(message).split(' ')
        const places = [...(cluster.parts.namespace?.items.keys() ?? [])]
        const namesPlace = places.some(
          (place) => words.some((word) => word.startsWith(`${place}/`)) && !this.showsNamespace(cluster, place),
        )
        const targets = { source: 'kollecttargets', column: 'about', withCluster: true } as const
        const namesHidden = places.some(
          (place) => words.some((word) => word.split('/').includes(place)) && !this.showsNamespace(cluster, place),
        )
        const isOfHidden =
          String(object).startsWith('Kollect') &&
          typeof message === 'string' &&
          !this.isWholeType(cluster, 'namespaces') &&
          (namesHidden || this.#told(cluster, targets, message, event) !== message)
        const isOther = !['Pod/', 'Node/'].some((kind) => String(object).startsWith(kind))
        return [
          ...(typeof node === 'string' && isHidden(node) ? ['node'] : []),
          ...((isOther && !areAllPods) ||
          isOfHidden ||
          namesPlace ||
          known.some((one) => words.includes(one) && isHidden(one))
            ? ['message']
            : []),
        ]
      },
      aggregation: (sum) => entries.every((entry) => leavesSum(entry, sum)),
    }
  }

  /** Section 9, steps 4 and 5, without a cluster, and section 11 for the list; ours has no such thing. */
  discovers(type: string): { listed: boolean; granted: boolean } | null {
    if (this.administrator || this.#oracle.strict) return null
    const oracle = this.#oracle
    const entries = oracle
      .policiesOf(this.principal)
      .filter((policy) => oracle.isActive(policy))
      .flatMap((policy) => rulesOf(policy).map((rule) => ({ isDeny: isDeny(policy), resources: rule.resources ?? [] })))
      .flatMap(({ isDeny, resources }) => resources.map((entry) => ({ ...entry, isDeny })))
      .filter((entry) => entry.type === type && (entry.isDeny || entry.visibility !== 'none'))
    return { listed: entries.some(({ isDeny }) => !isDeny), granted: entries[0]?.isDeny === false }
  }

  /** Section 16, step 6; in the original semantics section 9. */
  custom(cluster: ClusterState, type: string): CustomVerdict {
    if (this.administrator) return everything
    if (!this.canSee(cluster)) return hidden
    const oracle = this.#oracle
    for (const policy of oracle.policiesOf(this.principal).filter((one) => oracle.isActive(one))) {
      for (const rule of rulesOf(policy).filter((one) => oracle.selects(policy, one, cluster))) {
        const entries = (rule.resources ?? []).filter((entry) => entry.type === type)
        if (isDeny(policy)) {
          const meant = entries.length > 0 || (oracle.strict && (rule.resources ?? []).length === 0)
          if (meant) return hidden
          continue
        }
        // The first rule of an Allow that names the type counts for it.
        if (oracle.strict && entries.length > 0 && !actionsOf(rule).includes('view')) break
        const counted = oracle.strict ? entries : entries.filter(({ visibility }) => visibility !== 'none').slice(0, 1)
        if (counted.length === 0) continue
        if (oracle.strict && counted.some(leavesNothing)) return hidden
        return {
          allowed: true,
          whole: counted.every(isOpen),
          // The original never compared the action.
          metrics: !oracle.strict || actionsOf(rule).includes('view_metrics'),
          shows: ({ name, namespace, labels, values }) =>
            counted.every((entry) =>
              oracle.strict
                ? oracle.entryPasses(entry, {
                    names: [name],
                    namespaces: namespace === undefined ? undefined : [namespace],
                    labels,
                    fields: values,
                  })
                : this.#passesOriginal(entry, {
                    names: [name],
                    namespaces: namespace === undefined ? undefined : [namespace],
                    labels: undefined,
                    fields: values,
                  }),
            ),
          aggregation: (name) => counted.every((entry) => leavesSum(entry, name)),
        }
      }
    }
    return hidden
  }
}

const leavesSum = ({ aggregations: { include = [], exclude = [] } = {} }: Entry, name: string): boolean =>
  !exclude.includes(name) && (include.length === 0 || include.includes(name))

const everything: CustomVerdict = {
  ...{ allowed: true, whole: true, metrics: true },
  shows: () => true,
  aggregation: () => true,
}
const hidden: CustomVerdict = {
  ...{ allowed: false, whole: false, metrics: false },
  shows: () => false,
  aggregation: () => false,
}

/** A kind of rows that is compiled in, as the specification speaks of it. */
export interface Kind {
  readonly name: string
  readonly rule: 'pods' | 'namespaced' | 'events' | 'named'
  /** of events: kinds of rows whose objects they are about */
  readonly about?: readonly (Kind & {
    readonly rows: SourceId
    readonly kinds: readonly string[]
    readonly isTaken: boolean
  })[]
}

interface RowItem {
  readonly name: string
  readonly namespace?: string
  /** undefined: they are not known */
  readonly labels: Readonly<Record<string, string>> | undefined
  readonly values: Readonly<Record<string, unknown>>
}

export interface CustomVerdict {
  readonly allowed: boolean
  /** no row can be hidden */
  readonly whole: boolean
  readonly metrics: boolean
  shows(item: RowItem): boolean
  /** what a row tells of a value that says something of namespaces; default: all of it */
  tells?(tells: Telling, value: JsonValue, row: RowItem): JsonValue
  /** columns that a row which is shown does not tell; default: none */
  withholds?(item: RowItem): readonly string[]
  aggregation(name: string): boolean
}

/** As Go prints a value (section 10), for those that the worlds hold. */
function printed(value: unknown): string {
  if (value === undefined || value === null) return ''
  if (typeof value !== 'number' || (Number.isInteger(value) && value < 1_000_000)) return String(value)
  if (value < 1e21 && value < 1_000_000) return String(value)
  return value.toExponential().replace(/e\+(\d)$/, 'e+0$1')
}
