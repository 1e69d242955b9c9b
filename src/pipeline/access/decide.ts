import { filterIn, type PreparedPolicy, type PreparedRule } from './prepare.ts'
import { everyRule, firstRule, type Selected, type SelectedBy } from './select.ts'
import { closedFilter, openFilter, type TypeFilter } from './type-filter.ts'
import type { SelectedCluster, Semantics, SkipReason } from './types.ts'
import { standardTypes } from './types.ts'

/*
 *  What a list of policies says of one cluster. The list holds the policies that touch somebody and count now, in order:
 *
 *    Deny, a rule selects   without resources: the cluster is hidden, nothing below is looked at
 *                           with resources: those types are hidden, and on we go
 *    Allow, a rule selects  with `view`: this rule decides for the cluster and its standard types
 *                           without: it grants nothing, and on we go
 *    the end                no Allow rule selected: the first `default: allow` grants view, and nothing else
 *
 *  `view_metrics` is answered by the rule that shows the cluster: permissions of several policies never add up.
 */

/** Which policy of the list and which of its rules. */
export interface Hit {
  /** place in the list */
  readonly at: number
  /** null: `default: allow` */
  readonly rule: number | null
  readonly by: SelectedBy | 'default'
}

export type Effect = 'allow' | 'partial' | 'deny'

/** The decision about one cluster. */
export interface Ruling {
  readonly result: Effect
  readonly by: Hit | null
  readonly view: boolean
  /** usage measured in rows */
  readonly usage: boolean
  /** values over time */
  readonly history: boolean
  /** of standard types and of whatever else is named; a type that is not here is shown whole */
  readonly filters: ReadonlyMap<string, TypeFilter>
  /** types that a Deny above the deciding policy hides, and which */
  readonly denied: ReadonlyMap<string, Hit>
}

/** The decision about one custom type on one cluster. */
export interface CustomRuling {
  readonly result: Effect
  readonly by: Hit | null
  readonly filter: TypeFilter
  readonly viewMetrics: boolean
}

/** Told of each policy that did not decide, for `explain`. */
export type Trace = (at: number, why: SkipReason) => void

const NO_FILTERS: ReadonlyMap<string, TypeFilter> = new Map()
const NO_HITS: ReadonlyMap<string, Hit> = new Map()

const denial = (by: Hit | null): Ruling => ({
  result: 'deny',
  by,
  view: false,
  usage: false,
  history: false,
  filters: NO_FILTERS,
  denied: NO_HITS,
})

export function decide(
  policies: readonly PreparedPolicy[],
  cluster: SelectedCluster,
  semantics: Semantics,
  trace?: Trace,
): Ruling {
  return semantics === 'strict' ? decideStrict(policies, cluster, trace) : decideOriginal(policies, cluster, trace)
}

/** The decision as it was for rows of standard types; ours is one for the cluster and all in it. */
export function decideRows(
  policies: readonly PreparedPolicy[],
  cluster: SelectedCluster,
  semantics: Semantics,
  trace?: Trace,
): Ruling {
  if (semantics === 'strict') return decideStrict(policies, cluster, trace)
  return originalRuling(firstOriginal(policies, cluster, true, trace))
}

const isReserved = (type: string): boolean =>
  type === 'registries' || standardTypes.some((standard) => standard === type)

/** @param cluster what `ruling` is about */
export function decideCustom(
  policies: readonly PreparedPolicy[],
  cluster: SelectedCluster,
  type: string,
  ruling: Ruling,
  semantics: Semantics,
  trace?: Trace,
): CustomRuling {
  if (!ruling.view) return customDenial(ruling.by)
  if (semantics === 'original') return customOriginal(policies, cluster, type, trace)
  // The six types of every cluster are decided with it, and registries are part of none (RBAC-Q20).
  return isReserved(type) ? customDenial(null) : customStrict(policies, cluster, type, trace)
}

// ── strict ───────────────────────────────────────────────────────────────────────────────────────────────────────────

function decideStrict(policies: readonly PreparedPolicy[], cluster: SelectedCluster, trace?: Trace): Ruling {
  let denied: Map<string, Hit> | undefined
  let byDefault = -1
  let isSelected = false
  let at = -1
  for (const policy of policies) {
    at++
    if (policy.effect === 'Deny') {
      const selected = everyRule(policy, cluster)
      const whole = selected.find(({ rule }) => deniesAll(rule))
      if (whole) return ended(policies, at, denial(hit(at, whole)), trace)
      if (selected.length > 0) denied = withTypes(denied, at, selected)
      trace?.(at, selected.length > 0 ? 'type_not_named' : 'no_rule_selects_the_cluster')
      continue
    }
    const found = firstRule(policy, cluster)
    if (found?.rule.view) return ended(policies, at, granted(hit(at, found), found.rule, denied ?? NO_HITS), trace)
    if (found) isSelected = true
    else if (policy.allowsByDefault && byDefault < 0) byDefault = at
    trace?.(
      at,
      found ? 'action_not_permitted' : policy.allowsByDefault ? 'default_not_reached' : 'no_rule_selects_the_cluster',
    )
  }
  // A rule that selects the cluster and withholds it means what it says: no default speaks against it.
  if (byDefault < 0 || isSelected) return denial(null)
  return defaultGrant(byDefault, denied ?? NO_HITS)
}

function ended<T>(policies: readonly PreparedPolicy[], at: number, ruling: T, trace: Trace | undefined): T {
  if (trace) for (let below = at + 1; below < policies.length; below++) trace(below, 'lower_than_the_deciding')
  return ruling
}

const hit = (at: number, { rule, by }: Selected): Hit => ({ at, rule: rule.index, by })
const deniesAll = ({ namesTypes }: PreparedRule): boolean => !namesTypes

/** The types that these rules of a Deny name, with the first rule that names each. */
function withTypes(known: Map<string, Hit> | undefined, at: number, selected: readonly Selected[]): Map<string, Hit> {
  const denied = known ?? new Map<string, Hit>()
  for (const found of selected) {
    for (const type of found.rule.filters.keys()) if (!denied.has(type)) denied.set(type, hit(at, found))
  }
  return denied
}

function granted(by: Hit, rule: PreparedRule, denied: ReadonlyMap<string, Hit>): Ruling {
  const { viewMetrics } = rule
  const filters = rule.hidesAll || denied.size > 0 ? reduced(rule, denied) : rule.filters
  const result = rule.namesTypes || rule.hidesAll || denied.size > 0 ? 'partial' : 'allow'
  return { result, by, view: true, usage: viewMetrics, history: viewMetrics, filters, denied }
}

function reduced(rule: PreparedRule, denied: ReadonlyMap<string, Hit>): ReadonlyMap<string, TypeFilter> {
  const filters = new Map(rule.filters)
  if (rule.hidesAll) for (const type of [...standardTypes, ...rule.filters.keys()]) filters.set(type, closedFilter)
  for (const type of denied.keys()) filters.set(type, closedFilter)
  return filters
}

function defaultGrant(at: number, denied: ReadonlyMap<string, Hit>): Ruling {
  const filters = new Map([...denied.keys()].map((type) => [type, closedFilter]))
  const by: Hit = { at, rule: null, by: 'default' }
  return {
    result: denied.size > 0 ? 'partial' : 'allow',
    by,
    view: true,
    usage: false,
    history: false,
    filters,
    denied,
  }
}

const customDenial = (by: Hit | null): CustomRuling => ({
  result: 'deny',
  by,
  filter: closedFilter,
  viewMetrics: false,
})

/** The first matching rule that names the type decides, `none` included (RBAC-Q13); a Deny of the whole cluster names it too. */
function customStrict(
  policies: readonly PreparedPolicy[],
  cluster: SelectedCluster,
  type: string,
  trace?: Trace,
): CustomRuling {
  const names = (rule: PreparedRule) => filterIn(rule, type) !== undefined
  for (const [at, policy] of policies.entries()) {
    const isDeny = policy.effect === 'Deny'
    const found = firstRule(policy, cluster, isDeny ? (rule) => deniesAll(rule) || names(rule) : names)
    if (found && isDeny) return ended(policies, at, customDenial(hit(at, found)), trace)
    if (found?.rule.view) return ended(policies, at, customGrant(hit(at, found), found.rule, type), trace)
    const why = found
      ? 'action_not_permitted'
      : firstRule(policy, cluster)
        ? 'type_not_named'
        : 'no_rule_selects_the_cluster'
    trace?.(at, why)
  }
  return customDenial(null)
}

function customGrant(by: Hit, rule: PreparedRule, type: string): CustomRuling {
  const filter = filterIn(rule, type) ?? closedFilter
  const hasAggregations = filter.entries.some(({ aggregations }) => aggregations !== null)
  const result = filter.isClosed ? 'deny' : filter.isOpen && !hasAggregations ? 'allow' : 'partial'
  return { result, by, filter, viewMetrics: rule.viewMetrics }
}

// ── original ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Section 8: the first policy that selects decides alone, once for the cluster and once, with defaults, for its rows. */
function decideOriginal(policies: readonly PreparedPolicy[], cluster: SelectedCluster, trace?: Trace): Ruling {
  const ruling = originalRuling(firstOriginal(policies, cluster, false, trace))
  if (!ruling.view) return ruling
  return { ...ruling, filters: originalRuling(firstOriginal(policies, cluster, true)).filters }
}

function originalRuling(found: OriginalHit | undefined): Ruling {
  if (found?.policy.effect !== 'Allow') return { ...denial(found?.by ?? null), filters: allClosed }
  const { rule, by } = found
  return {
    result: rule?.namesTypes ? 'partial' : 'allow',
    by,
    view: true,
    usage: true, // the action is never compared (RBAC-Q01)
    history: rule?.viewMetrics ?? false,
    filters: rule?.filters ?? NO_FILTERS,
    denied: NO_HITS,
  }
}

const allClosed: ReadonlyMap<string, TypeFilter> = new Map(standardTypes.map((type) => [type, closedFilter]))

interface OriginalHit {
  readonly policy: PreparedPolicy
  readonly rule: PreparedRule | null
  readonly by: Hit
}

/** @param isRow rows look at no labels, and `default: allow` of any policy answers for them (RBAC-Q08) */
function firstOriginal(
  policies: readonly PreparedPolicy[],
  cluster: SelectedCluster,
  isRow: boolean,
  trace?: Trace,
): OriginalHit | undefined {
  for (const [at, policy] of policies.entries()) {
    const found = firstRule(policy, UNLABELLED(cluster), undefined, isRow)
    if (policy.effect !== 'neither') {
      if (found) return ended(policies, at, { policy, rule: found.rule, by: hit(at, found) }, trace)
      if (isRow && policy.allowsByDefault) return { policy, rule: null, by: { at, rule: null, by: 'default' } }
    }
    trace?.(at, 'no_rule_selects_the_cluster')
  }
  return undefined
}

const UNLABELLED = ({ name }: SelectedCluster): SelectedCluster => ({ name, labels: {} })

/** Section 9: a `none` is passed over (RBAC-Q13), standard types are types like any other (RBAC-Q20). */
function customOriginal(
  policies: readonly PreparedPolicy[],
  cluster: SelectedCluster,
  type: string,
  trace?: Trace,
): CustomRuling {
  const names = ({ entries }: PreparedRule) => entries.some((entry) => entry.type === type)
  const shows = ({ entries }: PreparedRule) => entries.some((entry) => entry.type === type && !entry.filter.isClosed)
  for (const [at, policy] of policies.entries()) {
    const isDeny = policy.effect === 'Deny'
    const found = firstRule(policy, UNLABELLED(cluster), isDeny ? names : shows, true)
    if (found && isDeny) return ended(policies, at, customDenial(hit(at, found)), trace)
    if (found && policy.effect === 'Allow') {
      const filter =
        found.rule.entries.find((entry) => entry.type === type && !entry.filter.isClosed)?.filter ?? openFilter
      const result = filter.isOpen ? 'allow' : 'partial'
      return ended(policies, at, { result, by: hit(at, found), filter, viewMetrics: true }, trace)
    }
    trace?.(
      at,
      firstRule(policy, UNLABELLED(cluster), undefined, true) ? 'type_not_named' : 'no_rule_selects_the_cluster',
    )
  }
  return customDenial(null)
}

/**
 * A type where no cluster is named: selectors play no part, and the list of types looks at no Deny (RBAC-Q15). So who has types
 * by rules that select no cluster, such as ones of labels, finds their names and no rows.
 */
export function discoverOriginal(
  policies: readonly PreparedPolicy[],
  type: string,
): { readonly listed: boolean; readonly granted: boolean } {
  const names = ({ effect, rules }: PreparedPolicy) =>
    rules.some(({ entries }) =>
      entries.some((entry) => entry.type === type && (effect === 'Deny' || !entry.filter.isClosed)),
    )
  const first = policies.find((policy) => policy.effect !== 'neither' && names(policy))
  return {
    listed: policies.some((policy) => policy.effect === 'Allow' && names(policy)),
    granted: first?.effect === 'Allow',
  }
}
