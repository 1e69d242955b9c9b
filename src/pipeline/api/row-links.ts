import type { AccessView } from '#access'
import type { RowLinkView, RowsPageView } from '#http'
import type { RowKind } from '#metricsource'
import type { ClusterState } from '#model'
import { isFleetKind } from '#resources'
import type { Located } from './type-rows.ts'
import type { VisibleType, VisibleTypes } from './visible-types.ts'

/*
 * Where rows lead: to the node, the object and the namespace they name, and from an object to the rows that name it. Which columns
 * name something is said by descriptors. What the caller may not see, or nobody collected, is no link.
 */

type Columns = RowKind['columns']

/** Links of rows of one answer: what is looked up of a cluster is looked up once. */
export class RowLinks {
  readonly #types: VisibleTypes
  readonly #accessView: AccessView
  readonly #clusters = new Map<ClusterState, ClusterTargets>()

  constructor(types: VisibleTypes, accessView: AccessView) {
    this.#types = types
    this.#accessView = accessView
  }

  of({ type: { cluster, source, rows }, place }: Located): RowLinkView[] {
    if (isFleetKind(source)) return []
    const targets = this.#on(cluster)
    const namespace = rows.namespaceAt(place)
    const links = referring(source.columns).flatMap(({ name, refersTo, reverse }): RowLinkView[] => {
      const value = rows.column(name)?.(place)
      if (typeof value !== 'string') return []
      const node = refersTo === 'node' ? value : value.startsWith('Node/') ? value.slice('Node/'.length) : undefined
      if (node !== undefined) return targets.node(node) ? [{ column: name, type: 'nodes', id: node }] : []
      const found = targets.object(namespace, value.includes('/') ? value : `${reverse?.kinds[0]}/${value}`)
      return found ? [{ column: name, ...found }] : []
    })
    return namespace !== '' && targets.namespace(namespace)
      ? [...links, { column: null, type: 'namespaces', id: namespace }]
      : links
  }

  /** Columns, of all types that are collected on the cluster, whose values may name rows of this kind. */
  referringTo({ cluster, source: { targets } }: VisibleType): NonNullable<RowsPageView['referredBy']> {
    const isOurs = (kind: string) => targets.some((target) => target.kind === kind)
    return this.#on(cluster)
      .types()
      .flatMap(({ name: type, source: { columns } }) =>
        columns.flatMap(({ name: column, reverse }) => {
          const kinds = reverse?.kinds.filter(isOurs) ?? []
          return reverse && kinds.length > 0 ? [{ type, column, title: reverse.title, kinds }] : []
        }),
      )
  }

  #on(cluster: ClusterState): ClusterTargets {
    let targets = this.#clusters.get(cluster)
    if (!targets) {
      targets = new ClusterTargets(this.#types, this.#accessView, cluster)
      this.#clusters.set(cluster, targets)
    }
    return targets
  }
}

const referring = (columns: Columns): Columns => columns.filter(({ refersTo }) => refersTo !== undefined)

/** How other rows name the object of this row: `Kind/name`. */
export function referenceOf({ type: { source, rows }, place }: Located): string {
  const key = rows.nameAt(place)
  const name = source.rowName(key)
  // Rows of several kinds have theirs behind a colon.
  return `${source.targets.length === 1 ? source.target.kind : key.slice(name.length + 1)}/${name}`
}

/** What may be linked to on one cluster; what is not asked for is not looked at. */
class ClusterTargets {
  readonly #types: VisibleTypes
  readonly #accessView: AccessView
  readonly #cluster: ClusterState
  readonly #byKind = new Map<string, readonly VisibleType[]>()

  constructor(types: VisibleTypes, accessView: AccessView, cluster: ClusterState) {
    this.#types = types
    this.#accessView = accessView
    this.#cluster = cluster
  }

  /** What was collected there and may be seen, of these kinds. */
  types(isMeant: (kind: RowKind) => boolean = () => true): readonly VisibleType[] {
    return this.#types
      .kinds()
      .filter(isMeant)
      .flatMap((kind) => this.#types.on(this.#accessView, this.#cluster, kind) ?? [])
      .filter(({ state }) => state?.freshness)
  }

  node(name: string): boolean {
    return namesOf(this.#accessView.visible(this.#cluster, 'node')).has(name)
  }

  namespace(name: string): boolean {
    return namesOf(this.#accessView.visible(this.#cluster, 'namespace')).has(name)
  }

  /** @param reference `Kind/name` of an object in the namespace */
  object(namespace: string, reference: string): { type: string; id: string } | undefined {
    const [kind = '', name = ''] = reference.split('/')
    for (const type of this.#ofKind(kind)) {
      const { targets } = type.source
      const key = targets.length === 1 ? name : `${name}:${kind}`
      const place = type.placeOf(namespace, key)
      if (place >= 0) return { type: type.name, id: type.rows.idAt(place) }
    }
    return undefined
  }

  #ofKind(kind: string): readonly VisibleType[] {
    let types = this.#byKind.get(kind)
    if (!types) {
      types = this.types(
        ({ access, targets }) => access !== 'snapshot' && targets.some((target) => target.kind === kind),
      )
      this.#byKind.set(kind, types)
    }
    return types
  }
}

/** Of lists that stay the very same while other things change. */
const knownNames = new WeakMap<readonly unknown[], ReadonlySet<string>>()

function namesOf(snapshots: readonly { readonly name: string }[]): ReadonlySet<string> {
  const names = knownNames.get(snapshots) ?? new Set(snapshots.map(({ name }) => name))
  knownNames.set(snapshots, names)
  return names
}
