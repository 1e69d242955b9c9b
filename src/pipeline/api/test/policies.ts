import type { PolicyDocument } from '#access'

type RuleDocument = NonNullable<PolicyDocument['cluster_rules']>[number]
/** One type under a rule. */
export type ResourceDocument = NonNullable<RuleDocument['resources']>[number]

/** What a policy says, in few words. Who may see measurements is said by `metrics`; default: they may. */
export interface Words {
  readonly users?: readonly string[]
  readonly groups?: readonly string[]
  /** names of clusters, or a pattern; default all */
  readonly clusters?: readonly string[] | string
  /** instead of `clusters` */
  readonly labels?: Readonly<Record<string, string>>
  readonly metrics?: boolean
  readonly resources?: readonly ResourceDocument[]
  readonly priority?: number
  readonly from?: number
  readonly until?: number
}

/** A policy as compiled, that allows; for `users`, or the one called like the policy. */
export const allow = (name: string, words: Words = {}): PolicyDocument => policy(name, 'Allow', words)
export const deny = (name: string, words: Words = {}): PolicyDocument => policy(name, 'Deny', words)

function policy(name: string, effect: string, words: Words): PolicyDocument {
  const { users = words.groups ? [] : [name], groups = [], clusters = '.*', metrics = true, resources = null } = words
  const named = typeof clusters === 'string' ? { matchPattern: clusters } : { matchNames: clusters }
  const selector = words.labels ? { matchLabels: words.labels } : named
  return {
    policy_name: name,
    namespace: 'test',
    priority: words.priority ?? 100,
    effect,
    enabled: true,
    users,
    groups,
    service_accounts: [],
    default_cluster_access: 'none',
    cluster_rules: [
      {
        cluster_selector: selector,
        permissions: { view: true, viewMetrics: metrics },
        resources,
      },
    ],
    not_before: words.from === undefined ? null : new Date(words.from).toISOString(),
    not_after: words.until === undefined ? null : new Date(words.until).toISOString(),
    compiled_at: '2026-01-01T00:00:00Z',
    hash: '0123456789abcdef',
    custom_resource_types: null,
  }
}

/** Nothing of a type. */
export const none = (type: string): ResourceDocument => ({ type, visibility: 'none' })

/** Only what is called so; a star stands for any text. */
export function only(type: string, ...names: readonly string[]): ResourceDocument {
  const { literals, patterns } = sorted(names)
  return { type, visibility: 'filtered', allowed_names: literals, name_patterns: patterns }
}

/** All but what is called so. */
export function but(type: string, ...names: readonly string[]): ResourceDocument {
  const { literals, patterns } = sorted(names)
  return { type, visibility: 'filtered', denied_names: literals, deny_name_patterns: patterns }
}

/** Only what stands in these namespaces. */
export function within(type: string, ...names: readonly string[]): ResourceDocument {
  const { literals, patterns } = sorted(names)
  return { type, visibility: 'filtered', allowed_ns: literals, ns_patterns: patterns }
}

function sorted(names: readonly string[]) {
  const hasStar = (name: string): boolean => name.includes('*')
  const regex = (name: string) => `^${name.replaceAll('.', '\\.').replaceAll('*', '.*')}$`
  return {
    literals: names.filter((name) => !hasStar(name)),
    patterns: names.filter(hasStar).map((name) => [name, regex(name)] as const),
  }
}
