import type { ClusterState } from '#model'
import { filterFor, type RowRules, showsNamespace, whyNodeHidden } from './row-filter.ts'
import { openFilter, showsAggregation, type TypeFilter, type Why, whyHidden } from './type-filter.ts'
import type { CustomItem, CustomSight, StandardResource } from './types.ts'

/*
 * Kinds of rows that are compiled in. The rule that decides for the cluster decides for them:
 *
 *   pods         the filter of `pods`, inside visible namespaces
 *   namespaced   inside visible namespaces, narrowed by filters of the kind's name. A policy that filters or hides pods shows
 *                none of them unless it names the kind: it was written to hide what runs there
 *
 * `core/<name>` speaks for the kind too, and alone where a MetricSource has the name. Filters of either name narrow it all
 * the same, so that no MetricSource that comes or goes ever shows more.
 */

/** The filters that all have to let a row through; undefined: the kind is hidden. */
function filtersOf(
  { filters }: RowRules,
  { name, rule, isTaken }: StandardResource,
): readonly TypeFilter[] | undefined {
  const pods = filters.get('pods') ?? openFilter
  const plain = filters.get(name)
  const own = filters.get(`core/${name}`)
  const isNamed = rule === 'pods' || own !== undefined || (plain !== undefined && !isTaken)
  if (!isNamed && !pods.isOpen) return undefined
  return [rule === 'pods' ? pods : openFilter, plain ?? openFilter, own ?? openFilter]
}

/** Why a row is hidden; null: it is shown. @param item with the name people know it by */
export function whyResourceHidden(
  rules: RowRules,
  cluster: ClusterState,
  resource: StandardResource,
  { name, namespace = '', labels, values }: CustomItem,
): Why | null {
  const filters = filtersOf(rules, resource)
  if (!filters) return 'visibility'
  if (!showsNamespace(rules, cluster, namespace)) return 'namespace'
  for (const filter of filters) {
    const why = whyHidden(filter, rules.semantics, name, null, [namespace], labels ?? null, values)
    if (why !== null) return why
  }
  return null
}

/** @param cluster one that is seen */
export function resourceSight(rules: RowRules, cluster: ClusterState, resource: StandardResource): CustomSight {
  const filters = filtersOf(rules, resource)
  const { namespace, node } = cluster.parts
  if (!filters || filters.some(({ isClosed }) => isClosed)) return hiddenResource
  const nodes = filterFor(rules, 'nodes')
  const namesNodes = resource.rule === 'pods'
  const namespaces = filterFor(rules, 'namespaces')
  const whole = [...filters, namespaces, ...(namesNodes ? [nodes] : [])].every(({ isOpen }) => isOpen)
  return {
    result: whole ? 'allow' : 'partial',
    reason: '',
    whole,
    metrics: true,
    shows: (item) => whyResourceHidden(rules, cluster, resource, item) === null,
    ...(namesNodes &&
      !nodes.isOpen && {
        showsNode: (name: string) => whyNodeHidden(rules, name, node?.items.get(name)?.labels ?? null) === null,
      }),
    aggregation: (name) => filters.every((filter) => showsAggregation(filter, name)),
    basis: [cluster.connection?.labels, hasLabels(namespaces) && namespace?.items, hasLabels(nodes) && node?.items],
  }
}

const hasLabels = ({ entries }: TypeFilter): boolean => entries.some(({ labels }) => labels.length > 0)

export const hiddenResource: CustomSight = {
  result: 'deny',
  reason: '',
  whole: false,
  metrics: false,
  shows: () => false,
  aggregation: () => false,
  basis: [],
}
