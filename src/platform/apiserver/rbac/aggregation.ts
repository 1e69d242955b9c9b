import { isDeepStrictEqual } from 'node:util'
import type { StoreEvent } from '../store.ts'
import type { LabelSelector, RoleObject } from './objects.ts'
import type { PolicyRule } from './rule.ts'

/**
 * The rules of a ClusterRole that collects those of others: of each selector the roles in the order of their names, each rule once.
 * @returns undefined where it collects nothing, or holds exactly these already
 */
export function aggregatedRules(role: RoleObject, all: readonly RoleObject[]): readonly PolicyRule[] | undefined {
  if (!role.aggregationRule) return undefined
  const others = all.filter(({ metadata }) => metadata.name !== role.metadata.name)
  const rules: PolicyRule[] = []
  for (const selector of role.aggregationRule.clusterRoleSelectors ?? []) {
    const selected = others.filter((other) => selects(selector, other))
    for (const { rules: own } of selected.sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1)))
      for (const rule of own ?? []) if (!rules.some((known) => isDeepStrictEqual(known, rule))) rules.push(rule)
  }
  return isDeepStrictEqual(rules, role.rules ?? []) ? undefined : rules
}

/** The ClusterRoles that collect: a handful, while there may be one role for each member. */
export class CollectingRoles {
  readonly #roles = new Map<string, RoleObject>()

  get names(): readonly string[] {
    return [...this.#roles.keys()]
  }

  add(role: RoleObject): void {
    if (role.aggregationRule) this.#roles.set(role.metadata.name, role)
  }

  /** @returns whether a role may now collect something else than before */
  saw({ type, object, previous }: StoreEvent): boolean {
    const { name } = object.metadata
    const known = this.#roles.delete(name)
    if (type !== 'DELETED') this.add(object)
    const collects = this.#roles.has(name)
    return known || collects || this.#isCollected(object) || (previous !== undefined && this.#isCollected(previous))
  }

  #isCollected(role: RoleObject): boolean {
    for (const { aggregationRule } of this.#roles.values())
      if (aggregationRule?.clusterRoleSelectors?.some((selector) => selects(selector, role))) return true
    return false
  }
}

/** An empty selector selects everything; an operator that is none, nothing. */
function selects({ matchLabels, matchExpressions }: LabelSelector, { metadata: { labels = {} } }: RoleObject): boolean {
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
