import type {
  KollectClusterInventory,
  KollectClusterInventorySpec,
  KollectClusterScopeSpec,
  KollectInventory,
  KollectInventorySpec,
} from '#kinds'
import { DEFAULT_SINK_NAMESPACE } from '#kinds'
import type { KubeObject, Resource } from '#kube'
import { minutes, selectsLabels } from '#model'
import type { Writing } from '#sinks'
import { type Blocked, denialOf, REF_FIELDS, type SinkCeiling } from '../bindings/plan.ts'
import type { Composition } from '../compose.ts'
import { type InventoryInformers, inventoryResources, type Stored } from '../objects.ts'
import type { TargetKey } from '../rows.ts'
import type { SinkPlace } from '../sink-place.ts'
import { timeOf } from '../status/inventory-status.ts'
import type { SinkExport } from '../status/sink-exports.ts'
import { CLUSTER_INVENTORY_FINALIZER, INVENTORY_FINALIZER } from './words.ts'

/** An inventory of either kind. */
export type AnyInventory = Stored<KollectInventory> | Stored<KollectClusterInventory>
/** The spec of either kind. */
export type AnyInventorySpec = KollectInventorySpec & Partial<KollectClusterInventorySpec>

/** What is different between an inventory of a namespace and a roll-up. */
export interface InventoryKind {
  readonly kind: string
  readonly resource: Resource<KubeObject>
  readonly finalizer: string
  readonly isRollUp: boolean
  /** namespace of sinks that are named without one */
  sinkNamespace(object: AnyInventory): string
  /** the scopes it stands under, as objects */
  scopes(object: AnyInventory, informers: InventoryInformers): readonly KubeObject[]
  /** which rows it takes; a sentence where there are none to take */
  composition(object: AnyInventory, informers: InventoryInformers, now: number): Composition | NoTargets
}

/** A roll-up without targets. */
export interface NoTargets {
  /** may they still come */
  readonly isYoung: boolean
  readonly message: string
}

/** A roll-up waits so long for its first targets, ms. */
const YOUNG_MS = minutes(5)

export const namespacedInventory: InventoryKind = {
  kind: 'KollectInventory',
  resource: inventoryResources.inventories as unknown as Resource<KubeObject>,
  finalizer: INVENTORY_FINALIZER,
  isRollUp: false,
  sinkNamespace: ({ metadata }) => metadata.namespace ?? '',
  scopes: ({ metadata }, informers) => scopesIn(metadata.namespace ?? '', informers),
  composition: ({ metadata }, { targets }) => ({
    targets: targets
      .list()
      .filter((target) => target.metadata.namespace === metadata.namespace)
      .map(({ metadata: { name, namespace = '' } }) => ({ name, namespace })),
    onceEach: false,
  }),
}

export const clusterInventory: InventoryKind = {
  kind: 'KollectClusterInventory',
  resource: inventoryResources.clusterInventories as unknown as Resource<KubeObject>,
  finalizer: CLUSTER_INVENTORY_FINALIZER,
  isRollUp: true,
  sinkNamespace: ({ spec }) => (spec as AnyInventorySpec).sinkNamespace || DEFAULT_SINK_NAMESPACE,
  scopes: (_, { clusterScopes }) => clusterScopes.list(),
  composition: rollUpOf,
}

function rollUpOf(object: AnyInventory, informers: InventoryInformers, now: number): Composition | NoTargets {
  const spec = object.spec as KollectClusterInventorySpec // the kind says so
  const namespaces = namespacesOf(spec, informers)
  const targets = targetsOf(spec, informers, namespaces)
  const composition: Composition = { targets, namespaces, onceEach: spec.dedupe === 'byResourceUID' }
  // What was exported once and has no targets any more was emptied: that is exported, too.
  const hasExported = timeOf(object.status?.lastExportTime) > 0
  if (targets.length > 0 || hasExported) return composition
  const isYoung = now - timeOf(object.metadata.creationTimestamp) < YOUNG_MS
  return { isYoung, message: 'no cluster target is chosen by targetRefs, targetSelector and namespaceSelector' }
}

function namespacesOf(spec: KollectClusterInventorySpec, { namespaces }: InventoryInformers): ReadonlySet<string> {
  const named = spec.namespaces && spec.namespaces.length > 0 ? new Set(spec.namespaces) : undefined
  const chosen = namespaces
    .list()
    .filter(
      ({ metadata: { name, labels = {} } }) =>
        (named?.has(name) ?? true) && selectsLabels(spec.namespaceSelector, labels),
    )
  return new Set(chosen.map(({ metadata }) => metadata.name))
}

/** Those that are named count although they are not there: their rows are missing. */
function targetsOf(
  spec: KollectClusterInventorySpec,
  { clusterTargets, namespaces }: InventoryInformers,
  chosen: ReadonlySet<string>,
): readonly TargetKey[] {
  if (spec.targetRefs && spec.targetRefs.length > 0) return spec.targetRefs.map((name) => ({ namespace: '', name }))
  const labelsOf = new Map(namespaces.list().map(({ metadata }) => [metadata.name, metadata.labels ?? {}]))
  return clusterTargets
    .list()
    .filter(({ metadata }) => !spec.targetSelector || selectsLabels(spec.targetSelector, metadata.labels ?? {}))
    .filter((target) =>
      [...chosen].some((name) => selectsLabels(target.spec.namespaceSelector, labelsOf.get(name) ?? {})),
    )
    .map(({ metadata: { name } }) => ({ namespace: '', name }))
}

/** The ceilings of a namespace. */
export const scopesIn = (namespace: string, { scopes }: InventoryInformers): readonly KubeObject[] =>
  scopes.list().filter((scope) => scope.metadata.namespace === namespace)

/** What scopes say about sinks and intervals. */
export const ceilingsOf = (scopes: readonly KubeObject[]): readonly SinkCeiling[] =>
  scopes.map(({ metadata, spec }) => ({ name: metadata.name, ...(spec as KollectClusterScopeSpec) }))

/** Why a sink is not to be used at all: the scopes of its namespace deny it, and no roll-up names it that may. */
export function denialOfSink(place: SinkPlace, informers: InventoryInformers): Blocked | undefined {
  const denied = denialOf(ceilingsOf(scopesIn(place.namespace, informers)), place)
  if (!denied) return undefined
  const isOfRollUp =
    !denialOf(ceilingsOf(informers.clusterScopes.list()), place) &&
    informers.clusterInventories
      .list()
      .some((object) => namesSink(object.spec as AnyInventorySpec, clusterInventory.sinkNamespace(object), place))
  return isOfRollUp ? undefined : denied
}

/** The first inventory that names this sink, by its name; undefined: none does. */
export function inventoryAt(
  place: SinkPlace,
  { inventories, clusterInventories }: InventoryInformers,
): Pick<Writing, 'namespace' | 'inventory'> | undefined {
  const all = [
    ...inventories.list().map((object) => ({ of: namespacedInventory, object })),
    ...clusterInventories.list().map((object) => ({ of: clusterInventory, object })),
  ]
  return all
    .filter(({ of, object }) => namesSink(object.spec as AnyInventorySpec, of.sinkNamespace(object), place))
    .map(({ object: { metadata } }) => ({ namespace: metadata.namespace ?? '', inventory: metadata.name }))
    .sort((a, b) => (`${a.namespace}/${a.inventory}` < `${b.namespace}/${b.inventory}` ? -1 : 1))[0]
}

/** What statuses of inventories say of this sink. */
export const exportsTo = (
  { family, namespace, name }: SinkPlace,
  { inventories, clusterInventories }: InventoryInformers,
): readonly SinkExport[] =>
  [...inventories.list(), ...clusterInventories.list()].flatMap(({ metadata, status }) => {
    const inventory = metadata.namespace ? `${metadata.namespace}/${metadata.name}` : metadata.name
    return (status?.sinkExports ?? [])
      .filter((one) => one.name === `${family}/${name}` && one.namespace === namespace)
      .map((one) => ({ ...one, inventory }))
  })

function namesSink(spec: AnyInventorySpec, usual: string, { family, namespace, name }: SinkPlace): boolean {
  return REF_FIELDS.filter(([of]) => of === family)
    .flatMap(([, field]) => spec[field] ?? [])
    .map((ref) => (typeof ref === 'string' ? { name: ref } : ref))
    .some((ref) => ref.name === name && (ref.namespace ?? usual) === namespace)
}
