import type { PreparedPolicy, PreparedRule, PreparedSelector } from './prepare.ts'
import type { SelectedCluster } from './types.ts'

export type SelectedBy = 'name' | 'pattern' | 'labels' | 'fault'

/** A rule that selects the cluster, and what of its selector does. */
export interface Selected {
  readonly rule: PreparedRule
  readonly by: SelectedBy
}

/** Says of a rule whether it can answer the question at all. */
export type Suits = (rule: PreparedRule) => boolean

/**
 * The one rule lookup, for clusters, their rows, custom types and registries: the first rule of the policy that selects the
 * cluster and suits the question.
 */
export function firstRule(
  { rules }: PreparedPolicy,
  cluster: SelectedCluster,
  suits?: Suits,
  ignoresLabels = false,
): Selected | undefined {
  for (const rule of rules) {
    if (suits && !suits(rule)) continue
    const by = selectedBy(rule.selector, cluster, ignoresLabels)
    if (by) return { rule, by }
  }
  return undefined
}

/** All of them, for a Deny: its first rule must not let a later one be missed. */
export function everyRule({ rules }: PreparedPolicy, cluster: SelectedCluster): readonly Selected[] {
  let found: Selected[] | undefined
  for (const rule of rules) {
    const by = selectedBy(rule.selector, cluster)
    if (!by) continue
    found ??= []
    found.push({ rule, by })
  }
  return found ?? NONE
}

const NONE: readonly Selected[] = []

/** Names, pattern and labels are alternatives, in this order. */
export function selectedBy(
  selector: PreparedSelector,
  { name, labels }: SelectedCluster,
  ignoresLabels = false,
): SelectedBy | undefined {
  const { names, wildcards, pattern } = selector
  if (names.size > 0 && names.has(name)) return 'name'
  // This is asked of every rule of every policy of somebody: an iterator would cost more than what it walks over.
  for (let i = 0; i < wildcards.length; i++) if (wildcards[i]?.(name)) return 'name'
  if (pattern?.(name)) return 'pattern'
  if (!ignoresLabels && selector.labels && hasAll(labels, selector.labels)) return 'labels'
  return selector.isFaulty ? 'fault' : undefined
}

function hasAll(labels: Readonly<Record<string, string>>, wanted: readonly (readonly [string, string])[]): boolean {
  for (const [key, value] of wanted) if (!Object.hasOwn(labels, key) || labels[key] !== value) return false
  return true
}
