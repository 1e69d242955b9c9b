import { CAUGHT_UP_MS, Informer, type ObjectSource } from '#controller'
import {
  type Kind,
  type KollectClusterInventory,
  type KollectClusterScope,
  type KollectClusterTarget,
  type KollectConnectionTest,
  type KollectDatabaseSink,
  type KollectEventSink,
  type KollectInventory,
  type KollectProfile,
  type KollectScope,
  type KollectSnapshotSink,
  type KollectTarget,
  kollectClusterInventory,
  kollectClusterScope,
  kollectClusterTarget,
  kollectConnectionTest,
  kollectDatabaseSink,
  kollectEventSink,
  kollectInventory,
  kollectProfile,
  kollectScope,
  kollectSnapshotSink,
  kollectTarget,
} from '#kinds'
import { type KubeClient, type KubeObject, namespaces, type Resource, whole } from '#kube'
import { seconds, systemClock } from '#model'
import type { Logger } from '#runtime'
import { prunedSpec } from './pruned-spec.ts'

/** An object of inventory as the API server gives it: older ones may not fit our schema. */
export type Stored<T> = T & KubeObject

/** A kind of inventory as a resource; what the API server keeps for itself is left out. */
function resourceOf<T>({ group, version, plural, kind, definition }: Kind<unknown, unknown>): Resource<Stored<T>> {
  return {
    group,
    version,
    plural,
    kind,
    namespaced: definition.scope !== 'Cluster',
    fromJson: ({ metadata: { managedFields: _, ...metadata }, ...object }) =>
      ({ ...object, ...('spec' in object && { spec: prunedSpec(object.spec) }), metadata }) as Stored<T>,
  }
}

/** Every kind of inventory, as resources. */
export const inventoryResources = {
  profiles: resourceOf<KollectProfile>(kollectProfile),
  targets: resourceOf<KollectTarget>(kollectTarget),
  clusterTargets: resourceOf<KollectClusterTarget>(kollectClusterTarget),
  inventories: resourceOf<KollectInventory>(kollectInventory),
  clusterInventories: resourceOf<KollectClusterInventory>(kollectClusterInventory),
  databaseSinks: resourceOf<KollectDatabaseSink>(kollectDatabaseSink),
  snapshotSinks: resourceOf<KollectSnapshotSink>(kollectSnapshotSink),
  eventSinks: resourceOf<KollectEventSink>(kollectEventSink),
  scopes: resourceOf<KollectScope>(kollectScope),
  clusterScopes: resourceOf<KollectClusterScope>(kollectClusterScope),
  connectionTests: resourceOf<KollectConnectionTest>(kollectConnectionTest),
} as const

type Resources = typeof inventoryResources

/** Copies of all objects that inventory goes by, and of the namespaces. Whoever shares them watches each kind once. */
export type InventoryInformers = {
  readonly [K in keyof Resources]: Resources[K] extends Resource<infer T extends KubeObject> ? Informer<T> : never
} & { readonly namespaces: Informer<KubeObject> }

/**
 * What of these is not followed, or was not until a moment ago, a sentence; undefined: all is known as it is. What takes rows away waits
 * for that.
 */
export function unfollowedOf(
  informers: readonly Pick<Informer<KubeObject>, 'name' | 'isCurrent'>[],
): string | undefined {
  const names = [...new Set(informers.filter(({ isCurrent }) => !isCurrent).map(({ name }) => name))]
  return names.length === 0 ? undefined : `${names.join(', ')} cannot be followed`
}

/** After so long what is not followed is looked at again, ms. */
export const FOLLOWED_AGAIN_MS = CAUGHT_UP_MS + 100

/** Namespaces can only be read one by one without rights on the cluster. */
const READ_NAMESPACES_EVERY_MS = seconds(15)

/**
 * One informer for each kind of inventory, and one for namespaces; not started.
 * @param only of these namespaces, by rights of these alone, and nothing of the cluster; absent: of all of it
 */
export function inventoryInformers(kube: KubeClient, logger: Logger, only?: readonly string[]): InventoryInformers {
  const follow = <T extends KubeObject>(resource: Resource<T>) => {
    if (!only) return new Informer({ kube, resource, logger })
    const names = resource.namespaced ? only : []
    const sources = names.map(
      (namespace): ObjectSource<T> =>
        (how) =>
          kube.watch(resource, { namespace, ...how }),
    )
    return new Informer({ kube, resource, logger, sources })
  }
  const entries = Object.entries(inventoryResources).map(([name, resource]) => [
    name,
    follow(resource as unknown as Resource),
  ])
  // Each key has the informer of its own resource.
  const sources = only && [named(kube, only)]
  const ofNamespaces = new Informer({ kube, resource: whole(namespaces), logger, ...(sources && { sources }) })
  return { ...Object.fromEntries(entries), namespaces: ofNamespaces } as InventoryInformers
}

/** Namespaces by their names. @throws KubeError where one may not be read */
const named = (kube: KubeClient, names: readonly string[]): ObjectSource<KubeObject> =>
  async function* ({ signal }) {
    while (!signal.aborted) {
      const found = await Promise.all(names.map((name) => kube.get(whole(namespaces), { name }, signal)))
      yield { type: 'reset', items: found.filter((one) => one !== undefined), resourceVersion: '' }
      await systemClock.sleep(READ_NAMESPACES_EVERY_MS, signal)
    }
  }
