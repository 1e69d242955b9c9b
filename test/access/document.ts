import type { PolicyDocument } from '#access'
import type { MonitorAccessPolicySpec } from '#kinds'
import type { WrittenPolicy } from './world.ts'

type RuleDocument = NonNullable<PolicyDocument['cluster_rules']>[number]
type ResourceDocument = NonNullable<RuleDocument['resources']>[number]

type Rule = NonNullable<MonitorAccessPolicySpec['scope']['clusters']['rules']>[number]
type Resource = NonNullable<Rule['resources']>[number]
type Lists = { readonly allowed?: readonly string[]; readonly denied?: readonly string[] }

const isWildcard = (text: string): boolean => /[*?]/.test(text)
const pair = (text: string): readonly [string, string] => [
  text,
  `^${text.replaceAll('.', '\\.').replaceAll('*', '.*').replaceAll('?', '.')}$`,
]
const filled = <K extends string, T>(key: K, list: readonly T[]) => (list.length > 0 ? { [key]: list } : {})

/** The documented document of a policy (sections 3 and 4), written without a check: what a hand may put into the store. */
export function documentOf({ namespace, name, spec }: WrittenPolicy): PolicyDocument {
  const { subjects, priority = 100 } = spec.identity
  const standard = ['nodes', 'operators', 'namespaces', 'pods', 'alerts', 'events', 'registries']
  const types = (spec.scope.clusters.rules ?? []).flatMap(({ resources = [] }) => resources.map(({ type }) => type))
  const custom = [...new Set(types.filter((type) => !standard.includes(type)))].sort()
  return {
    policy_name: name,
    namespace,
    priority,
    effect: spec.access.effect,
    enabled: spec.access.enabled ?? true,
    users: subjects.users ?? [],
    groups: subjects.groups ?? [],
    service_accounts: (subjects.serviceAccounts ?? []).map(
      (account) => `system:serviceaccount:${account.namespace || 'default'}:${account.name}`,
    ),
    default_cluster_access: spec.scope.clusters.default ?? 'none',
    cluster_rules: spec.scope.clusters.rules?.map(ruleOf) ?? null,
    not_before: spec.lifecycle?.validity?.notBefore || null,
    not_after: spec.lifecycle?.validity?.notAfter || null,
    compiled_at: '2026-03-01T00:00:00Z',
    hash: '0123456789abcdef',
    custom_resource_types: custom.length > 0 ? custom : null,
  }
}

function ruleOf({ selector, permissions, resources }: Rule): RuleDocument {
  const says = permissions?.view !== undefined || permissions?.viewMetrics !== undefined
  return {
    cluster_selector: {
      ...(selector.matchNames?.length && { matchNames: selector.matchNames }),
      ...(selector.matchPattern && { matchPattern: selector.matchPattern }),
      ...(Object.keys(selector.matchLabels ?? {}).length > 0 && { matchLabels: selector.matchLabels ?? {} }),
    },
    permissions: says
      ? {
          ...(permissions?.view !== undefined && { view: permissions.view }),
          ...(permissions?.viewMetrics !== undefined && { viewMetrics: permissions.viewMetrics }),
        }
      : { view: true },
    resources: resources?.map(resourceOf) ?? null,
  }
}

function resourceOf({ type, visibility = 'all', filters = {}, aggregations }: Resource): ResourceDocument {
  const { names = {}, namespaces = {}, labels = {}, fields = {} } = filters
  const split = (lists: Lists, of: 'allowed' | 'denied') => ({
    literals: (lists[of] ?? []).filter((text) => !isWildcard(text)),
    patterns: (lists[of] ?? []).filter(isWildcard).map(pair),
  })
  return {
    type,
    visibility,
    ...filled('allowed_names', split(names, 'allowed').literals),
    ...filled('denied_names', split(names, 'denied').literals),
    ...filled('name_patterns', split(names, 'allowed').patterns),
    ...filled('deny_name_patterns', split(names, 'denied').patterns),
    ...filled('allowed_ns', split(namespaces, 'allowed').literals),
    ...filled('denied_ns', split(namespaces, 'denied').literals),
    ...filled('ns_patterns', split(namespaces, 'allowed').patterns),
    ...filled('deny_ns_patterns', split(namespaces, 'denied').patterns),
    ...(Object.keys(labels).length > 0 && { labels }),
    ...(Object.keys(fields).length > 0 && {
      field_filters: Object.fromEntries(
        Object.entries(fields).map(([field, lists]) => [
          field,
          {
            allowed_literals: split(lists, 'allowed').literals,
            denied_literals: split(lists, 'denied').literals,
            allowed_patterns: split(lists, 'allowed').patterns,
            denied_patterns: split(lists, 'denied').patterns,
          },
        ]),
      ),
    }),
    ...(aggregations && {
      aggregation_rules: { include: aggregations.include ?? [], exclude: aggregations.exclude ?? [] },
    }),
  } as ResourceDocument // the keys that `filled` makes are those of the document
}
