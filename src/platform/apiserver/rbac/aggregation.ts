import { isDeepStrictEqual } from 'node:util'
import type { LabelSelector, RoleObject } from './objects.ts'
import type { PolicyRule } from './rule.ts'

/**
 * The rules of a ClusterRole that collects those of others: of each selector the roles in the order of their names, each rule once.
 * @returns undefined where it collects nothing, or holds exactly these already
 */
export function aggregatedRules(role: RoleObject, all: readonly RoleObject[]): readonly PolicyRule[] | undefined {
  if (!role.aggregationRule) return undefined
  const others = all.filter(({ metadata }) => metadata.name !== role.metadata.name)
  const sorted = others.sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
  const rules: PolicyRule[] = []
  for (const selector of role.aggregationRule.clusterRoleSelectors ?? [])
    for (const { rules: own } of sorted.filter((each) => selects(selector, each.metadata.labels ?? {})))
      for (const rule of own ?? []) if (!rules.some((known) => isDeepStrictEqual(known, rule))) rules.push(rule)
  return isDeepStrictEqual(rules, role.rules ?? []) ? undefined : rules
}

/** An empty selector selects everything; an operator that is none, nothing. */
function selects({ matchLabels, matchExpressions }: LabelSelector, labels: Readonly<Record<string, string>>): boolean {
  const equal = Object.entries(matchLabels ?? {}).every(([key, value]) => labels[key] === value)
  return (
    equal &&
    (matchExpressions ?? []).every(({ key, operator, values = [] }) => {
      const value = labels[key]
      if (operator === 'Exists') return value !== undefined
      if (operator === 'DoesNotExist') return value === undefined
      if (operator === 'In') return value !== undefined && values.includes(value)
      return operator === 'NotIn' && (value === undefined || !values.includes(value))
    })
  )
}
