import type { ClusterState, SourceId } from '#model'
import { filterFor, type RowRules, showsNamespace, whyNodeHidden } from './row-filter.ts'
import { toldOf } from './told-namespaces.ts'
import { looksAt, openFilter, showsAggregation, type TypeFilter, type Why, whyHidden } from './type-filter.ts'
import type { RowItem, RowsAccessView, StandardResource } from './types.ts'

/*
 * Kinds of rows that are compiled in. The rule that decides for the cluster decides for them:
 *
 *   pods         the filter of `pods`, inside visible namespaces
 *   events       see event-access-view.ts
 *   namespaced   inside visible namespaces, narrowed by filters of the kind's name. A policy that filters or hides pods shows
 *                none of them unless it names the kind: it was written to hide what runs there
 *   named        holds objects of any kind: shown by a policy that names it, or that filters nothing at all; inside visible namespaces.
 *                What is in no namespace, only where nothing else is filtered
 *
 * `core/<name>` speaks for the kind too, and alone where a MetricSource has the name. Filters of either name narrow it all
 * the same, so that no MetricSource that comes or goes ever shows more.
 */

/** The filters that all have to let a row through; undefined: the kind is hidden. */
export function filtersOf({ filters }: RowRules, resource: StandardResource): readonly TypeFilter[] | undefined {
  const { name, rule } = resource
  const pods = filters.get('pods') ?? openFilter
  if (rule === 'namespaced' && !isNamed(filters, resource) && !pods.isOpen) return undefined
  if (rule === 'named' && !isNamed(filters, resource) && !areOpen(filters)) return undefined
  const own = [filters.get(name) ?? openFilter, filters.get(`core/${name}`) ?? openFilter]
  return rule === 'pods' ? [pods, ...own] : own
}

/** Whether the policy says something of the kind: then the kind does not follow pods. */
export const isNamed = (filters: ReadonlyMap<string, TypeFilter>, { name, isTaken }: StandardResource): boolean =>
  filters.has(`core/${name}`) || (!isTaken && filters.has(name))

const areOpen = (filters: RowRules['filters'], besides: readonly string[] = []): boolean =>
  [...filters].every(([type, { isOpen }]) => isOpen || besides.includes(type))

/** The row is of the cluster itself, and something else of the cluster is hidden. */
const isWithheld = ({ filters }: RowRules, { rule, name }: StandardResource, { namespace = '' }: RowItem): boolean =>
  rule === 'named' && namespace === '' && !areOpen(filters, [name, `core/${name}`])

const ofCluster = 'is in no namespace, and not all of the cluster is shown'
const inHiddenNamespace = 'is in a namespace that is not shown'
const followsPods = 'follows pods, of which not all are shown, and the policy does not name it'
const isNotNamed = 'is shown by a policy that names it, or that filters nothing; this one does neither'

/** What an explanation says of a row. */
interface ResourceExplanation {
  /** null: it is shown */
  readonly why: Why | string | null
  /** the filters that decide about the kind; undefined: it is hidden with the pods */
  readonly filters: readonly TypeFilter[] | undefined
}

/** @param item with the name people know it by */
export function explainResource(
  rules: RowRules,
  resource: StandardResource,
  item: RowItem,
  isNamespaceShown: (name: string) => boolean,
): ResourceExplanation {
  const filters = filtersOf(rules, resource)
  if (!filters) return { filters, why: resource.rule === 'named' ? isNotNamed : followsPods }
  const why = whyRowHidden(rules, filters, item, isNamespaceShown)
  return { filters, why: why ?? (isWithheld(rules, resource, item) ? ofCluster : null) }
}

export function whyRowHidden(
  { semantics }: RowRules,
  filters: readonly TypeFilter[],
  { name, namespace = '', labels, values }: RowItem,
  isNamespaceShown: (name: string) => boolean,
): Why | string | null {
  if (filters.some(({ isClosed }) => isClosed)) return 'visibility'
  if (!isNamespaceShown(namespace)) return inHiddenNamespace
  for (const filter of filters) {
    const why = whyHidden(filter, semantics, name, null, [namespace], labels ?? null, values)
    if (why !== null) return why
  }
  return null
}

/** What the rules say of a kind wherever it is. */
interface KindRules {
  /** undefined: nothing of it is shown */
  readonly filters: readonly TypeFilter[] | undefined
  readonly whole: boolean
  readonly looksAt: ReturnType<typeof looksAt>
  readonly aggregation: (name: string) => boolean
  readonly nodes: TypeFilter
  readonly namespaces: TypeFilter
}

// Rules never change: what they say of a kind is found out once.
const known = new WeakMap<RowRules, Map<string, KindRules>>()

function kindRules(rules: RowRules, resource: StandardResource): KindRules {
  const ofRules = known.get(rules) ?? new Map<string, KindRules>()
  known.set(rules, ofRules)
  const key = `${resource.rule} ${resource.isTaken} ${resource.name}`
  const made = ofRules.get(key) ?? newKindRules(rules, resource)
  ofRules.set(key, made)
  return made
}

function newKindRules(rules: RowRules, resource: StandardResource): KindRules {
  const filters = filtersOf(rules, resource)
  const [nodes, namespaces] = [filterFor(rules, 'nodes'), filterFor(rules, 'namespaces')]
  const all = [...(filters ?? []), namespaces, ...(resource.rule === 'pods' ? [nodes] : [])]
  return {
    filters: filters?.some(({ isClosed }) => isClosed) ? undefined : filters,
    whole: all.every(({ isOpen }) => isOpen) && (resource.rule !== 'named' || areOpen(rules.filters)),
    looksAt: looksAt(filters ?? []),
    aggregation: (name) => filters?.every((filter) => showsAggregation(filter, name)) ?? false,
    nodes,
    namespaces,
  }
}

/** @param cluster one that is seen */
export function resourceAccessView(rules: RowRules, cluster: ClusterState, resource: StandardResource): RowsAccessView {
  const { filters, whole, looksAt, aggregation, nodes, namespaces } = kindRules(rules, resource)
  if (!filters) return hiddenResource
  const { namespace, node } = cluster.parts
  const isNamespaceShown = (name: string) => showsNamespace(rules, cluster, name)
  return {
    result: whole ? 'allow' : 'partial',
    reason: '',
    whole,
    metrics: true,
    shows: (item) =>
      whyRowHidden(rules, filters, item, isNamespaceShown) === null && !isWithheld(rules, resource, item),
    looksAt,
    ...(resource.rule === 'pods' &&
      !nodes.isOpen && {
        showsNode: (name: string) => whyNodeHidden(rules, name, node?.items.get(name)?.labels ?? null) === null,
      }),
    ...(!namespaces.isOpen && { tells: (tells, value, row) => toldOf(rules, cluster, tells, value, row) }),
    aggregation,
    basis: [
      ...[cluster.connection?.labels, hasLabels(namespaces) && namespace?.items, hasLabels(nodes) && node?.items],
      ...(namespaces.isOpen ? [] : (resource.toldBy ?? []).flatMap((source) => saidBy(cluster, source))),
    ],
  }
}

/** What a decision hangs on where a table says what rows are about: whether it is all there, too. */
export function saidBy({ tables }: ClusterState, source: SourceId): readonly unknown[] {
  const state = tables.get(source)
  return [state?.rows, state && !state.truncated && state.freshness !== null]
}

const hasLabels = ({ entries }: TypeFilter): boolean => entries.some(({ labels }) => labels.length > 0)

export const hiddenResource: RowsAccessView = {
  result: 'deny',
  reason: '',
  whole: false,
  metrics: false,
  shows: () => false,
  aggregation: () => false,
  basis: [],
}
