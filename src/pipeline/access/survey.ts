import type { ClusterState } from '#model'
import { parseBounds } from './bounds.ts'
import { inOrder, type PreparedRule, preparePolicy } from './prepare.ts'
import { selectedBy } from './select.ts'
import { filterSummary } from './type-filter.ts'
import type { Action, FilterSummary, Finding, OwnPolicy, Semantics, StoredPolicy } from './types.ts'

/** One policy as administrators read it. */
export interface SurveyedPolicy {
  readonly key: string
  readonly state: OwnPolicy['state']
  readonly message: string
  readonly effect: string
  readonly priority: number
  readonly enabled: boolean
  readonly users: readonly string[]
  readonly groups: readonly string[]
  readonly serviceAccounts: readonly string[]
  readonly notBefore: string | null
  readonly notAfter: string | null
  readonly hash: string
  readonly compiledAt: string
  readonly customTypes: readonly string[]
  /** clusters that a rule of it selects now */
  readonly clusters: readonly string[]
  readonly findings: readonly Finding[]
  readonly rules: readonly {
    readonly selector: {
      readonly names: readonly string[]
      readonly pattern: string
      readonly labels: Readonly<Record<string, string>>
    }
    readonly permissions: readonly Action[]
    readonly filters: Readonly<Record<string, FilterSummary>>
  }[]
  readonly defaultAccess: string
}

/** All policies in the order in which they are looked at, with their state and the clusters they select. */
export function surveyPolicies(
  policies: readonly StoredPolicy[],
  clusters: readonly ClusterState[],
  { now, semantics }: { readonly now: number; readonly semantics: Semantics },
): SurveyedPolicy[] {
  const selected = clusters.map(({ name, connection }) => ({ name, labels: connection?.labels ?? {} }))
  return policies
    .map((stored) => preparePolicy(stored, semantics))
    .sort(inOrder)
    .map(({ stored, rules }) => {
      const { document, faults } = stored
      const isSelected = (cluster: (typeof selected)[number]) =>
        rules.some(({ selector }) => selectedBy(selector, cluster, semantics === 'original') !== undefined)
      return {
        key: stored.key,
        ...stateOf(stored, now),
        effect: document.effect,
        priority: document.priority,
        enabled: document.enabled,
        users: document.users,
        groups: document.groups,
        serviceAccounts: document.service_accounts,
        notBefore: document.not_before,
        notAfter: document.not_after,
        hash: document.hash,
        compiledAt: document.compiled_at,
        customTypes: document.custom_resource_types ?? [],
        clusters: selected.filter(isSelected).map(({ name }) => name),
        findings: faults,
        rules: (document.cluster_rules ?? []).map((rule, at) => ({
          selector: {
            names: rule.cluster_selector.matchNames ?? [],
            pattern: rule.cluster_selector.matchPattern ?? '',
            labels: rule.cluster_selector.matchLabels ?? {},
          },
          permissions: permissionsOf(rules.find(({ index }) => index === at)),
          filters: filtersOf(rules.find(({ index }) => index === at)),
        })),
        defaultAccess: document.default_cluster_access,
      }
    })
}

const permissionsOf = (rule: PreparedRule | undefined): Action[] => [
  ...(rule?.view ? (['view'] as const) : []),
  ...(rule?.viewMetrics ? (['view_metrics'] as const) : []),
]

const filtersOf = (rule: PreparedRule | undefined): Record<string, FilterSummary> =>
  Object.fromEntries([...(rule?.filters ?? [])].map(([type, filter]) => [type, filterSummary(filter)]))

/** Whether it takes part in decisions now, and why not. */
export function stateOf({ document, faults }: StoredPolicy, now: number): Pick<OwnPolicy, 'state' | 'message'> {
  const fault = faults.find(({ severity }) => severity === 'error')
  if (fault) return { state: 'Error', message: `${fault.path} ${fault.message}`.trim() }
  const { from, to, areReadable } = parseBounds(document.not_before, document.not_after)
  if (!areReadable) return { state: 'Error', message: 'its validity cannot be read' }
  if (now < from) return { state: 'Inactive', message: 'Policy not yet valid' }
  if (now > to) return { state: 'Expired', message: 'Policy expired' }
  if (!document.enabled) return { state: 'Inactive', message: 'Policy is disabled' }
  return { state: 'Active', message: 'Policy is active' }
}
