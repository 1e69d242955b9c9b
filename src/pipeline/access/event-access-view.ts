import type { ClusterState, NamedElsewhere } from '#model'
import { filtersOf, hiddenResource, isNamed, saidBy, whyRowHidden } from './resource-access-view.ts'
import { filterFor, type RowRules, showsNamespace, whyNodeHidden } from './row-filter.ts'
import { toldOf } from './told-namespaces.ts'
import { showsAggregation, type Why, whyHidden } from './type-filter.ts'
import type { ObjectsOfEvents, RowItem, RowsAccessView, StandardResource } from './types.ts'

/*
 * Events of clusters: rows about objects. One is shown where its own filters and its namespace let it through, and only with its object:
 *
 *   Pod                        the filters of `pods`
 *   Node                       the filter of `nodes`, and of no namespace: the API keeps these where nodes are not
 *   kinds with rows            their rules; a ReplicaSet is its Deployment
 *   parts of operators         the filter of `operators`, by name
 *   Namespace                  as itself
 *   whatever else              as its namespace
 *
 * A policy that filters or hides pods shows only those of pods and of nodes, unless it names the events.
 */

interface EventObject {
  readonly kind: string
  readonly name: string
}

/** What is known of an object: the labels and values its row has. null: it has no row */
type Known = Pick<RowItem, 'labels' | 'values'> | null

/** What decides besides the rules. */
interface Surroundings {
  readonly isNamespaceShown: (name: string) => boolean
  /** @param objects its kind of row; undefined: it is a node */
  readonly known: (objects: ObjectsOfEvents | undefined, object: EventObject, namespace: string) => Known
}

const OF_OPERATORS: ReadonlySet<string> = new Set(['ClusterServiceVersion', 'ClusterOperator'])
const withItsObject = 'is about an object that is not shown'
const followsPods = 'is about what runs pods, of which not all are shown, and the policy does not name it'

function objectOf({ values }: RowItem): EventObject | undefined {
  const text = Object.hasOwn(values, 'object') ? values.object : undefined
  const slash = typeof text === 'string' ? text.indexOf('/') : -1
  if (typeof text !== 'string' || slash <= 0) return undefined
  const [kind, name] = [text.slice(0, slash), text.slice(slash + 1)]
  return kind === 'ReplicaSet' ? { kind: 'Deployment', name: name.replace(/-[^-]*$/, '') } : { kind, name }
}

/** @param item with the name people know it by */
export function whyEventRowHidden(
  rules: RowRules,
  resource: StandardResource,
  item: RowItem,
  { isNamespaceShown, known }: Surroundings,
): Why | string | null {
  const { filters, semantics } = rules
  const object = objectOf(item)
  const isNode = object?.kind === 'Node'
  const why = whyRowHidden(rules, filtersOf(rules, resource) ?? [], item, isNode ? () => true : isNamespaceShown)
  if (why !== null) return why
  const { namespace = '' } = item
  if (isNode) {
    const labels = known(undefined, object, namespace)?.labels ?? null
    return whyNodeHidden(rules, object.name, labels) === null ? null : withItsObject
  }
  const isFree = filterFor(rules, 'pods').isOpen || isNamed(filters, resource)
  if (object?.kind !== 'Pod' && !isFree) return followsPods
  if (!object) return null
  if (OF_OPERATORS.has(object.kind)) {
    const isHidden = whyHidden(filterFor(rules, 'operators'), semantics, object.name, null, [], null) !== null
    return isHidden ? withItsObject : null
  }
  if (object.kind === 'Namespace') return isNamespaceShown(object.name) ? null : withItsObject
  const objects = resource.about?.find(({ kinds }) => kinds.includes(object.kind))
  if (!objects) return null
  const its = filtersOf(rules, objects)
  if (!its) return withItsObject
  const row = { name: object.name, namespace, values: {}, ...known(objects, object, namespace) }
  return whyRowHidden(rules, its, row, isNamespaceShown) === null ? null : withItsObject
}

/** Whatever they are about, none is shown. */
export function areEventsHidden(rules: RowRules, resource: StandardResource): boolean {
  const own = filtersOf(rules, resource) ?? []
  const ofOthers = [filterFor(rules, 'pods'), filterFor(rules, 'nodes')]
  return (
    own.some(({ isClosed }) => isClosed) ||
    (!isNamed(rules.filters, resource) && ofOthers.every(({ isClosed }) => isClosed))
  )
}

/** @param cluster one that is seen */
export function eventsAccessView(rules: RowRules, cluster: ClusterState, resource: StandardResource): RowsAccessView {
  const { node, namespace } = cluster.parts
  const own = filtersOf(rules, resource) ?? []
  if (areEventsHidden(rules, resource)) return hiddenResource
  const about = resource.about ?? []
  const ofObjects = about.flatMap((objects) => filtersOf(rules, objects) ?? [])
  const [nodes, pods] = [filterFor(rules, 'nodes'), filterFor(rules, 'pods')]
  const namespaces = filterFor(rules, 'namespaces')
  const others = [namespaces, nodes, pods, filterFor(rules, 'operators')]
  const whole = [...own, ...ofObjects, ...others].every(({ isOpen }) => isOpen)
  const surroundings: Surroundings = {
    isNamespaceShown: (name) => showsNamespace(rules, cluster, name),
    known: (objects, object, place) => knownOf(cluster, objects, object, place),
  }
  const isComparing = [...ofObjects, pods].some(({ entries }) =>
    entries.some(({ labels, fields }) => labels.length + fields.length > 0),
  )
  return {
    result: whole ? 'allow' : 'partial',
    reason: '',
    whole,
    metrics: true,
    shows: (item) => whyEventRowHidden(rules, resource, item, surroundings) === null,
    ...((!nodes.isOpen || !pods.isOpen || !namespaces.isOpen) && {
      withholds: (item: RowItem) => withheldOf(rules, cluster, item),
    }),
    aggregation: (name) => own.every((filter) => showsAggregation(filter, name)),
    basis: [
      ...[cluster.connection?.labels, !namespaces.isOpen && namespace?.items, !nodes.isOpen && node?.items],
      ...(isComparing ? about.map(({ rows }) => cluster.tables.get(rows)?.rows) : []),
      ...(namespaces.isOpen ? [] : saidBy(cluster, TARGETS)),
    ],
  }
}

function knownOf(
  cluster: ClusterState,
  objects: ObjectsOfEvents | undefined,
  { kind, name }: EventObject,
  namespace: string,
): Known {
  if (!objects) {
    const labels = cluster.parts.node?.items.get(name)?.labels
    return labels ? { labels, values: {} } : null
  }
  const rows = cluster.tables.get(objects.rows)?.rows
  const place = rows?.indexOf(namespace, objects.kinds.length > 1 ? `${name}:${kind}` : name) ?? -1
  return place < 0 ? null : (rows?.row(place) ?? null)
}

/** What separates words in a message; names hold none of it. */
const BETWEEN_WORDS = /[\s"'`,;=()[\]{}]+/

/** Objects of inventory speak of whatever their targets choose, in words that have no form: of those of the namespace, and of the cluster. */
const TARGETS = 'kollecttargets'
const ofTargets: NamedElsewhere = { source: TARGETS, column: 'about', withCluster: true }
const isOfInventory = (kind: string | undefined): boolean => kind?.startsWith('Kollect') ?? false

/**
 * What a row that is shown does not say: the name of a hidden node, a message that names one or what is in a hidden namespace
 * (`namespace/name`), and, where not all pods are shown, what is said of anything else, such as which pods it made. What is said of an
 * object of inventory, for whatever reason, it says only where all namespaces are shown that targets there may be about, and where no
 * word is the name of a hidden one.
 */
function withheldOf(rules: RowRules, cluster: ClusterState, item: RowItem): readonly string[] {
  const { node, message } = item.values
  const nodes = cluster.parts.node?.items
  const isHidden = (name: string) => whyNodeHidden(rules, name, nodes?.get(name)?.labels ?? null) !== null
  const kind = objectOf(item)?.kind
  const isOfPods = !filterFor(rules, 'pods').isOpen && kind !== 'Pod' && kind !== 'Node'
  const words =
    typeof message === 'string' ? message.split(BETWEEN_WORDS).map((word) => word.replace(/[.:]+$/, '')) : []
  const places = cluster.parts.namespace?.items
  const isHiddenPlace = (name: string) => places?.has(name) === true && !showsNamespace(rules, cluster, name)
  const namesPlace = words.some((word) => word.includes('/') && isHiddenPlace(word.slice(0, word.indexOf('/'))))
  const isOfHidden =
    isOfInventory(kind) &&
    !filterFor(rules, 'namespaces').isOpen &&
    typeof message === 'string' &&
    (toldOf(rules, cluster, ofTargets, message, { namespace: item.namespace ?? '', value: () => undefined }) !==
      message ||
      words.some((word) => word.split('/').some(isHiddenPlace)))
  const namesNode = words.some((word) => (word === node || nodes?.has(word)) && isHidden(word))
  return [
    ...(typeof node === 'string' && isHidden(node) ? ['node'] : []),
    ...(isOfPods || namesNode || namesPlace || isOfHidden ? ['message'] : []),
  ]
}
