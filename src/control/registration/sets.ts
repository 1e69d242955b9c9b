import { isDeepStrictEqual } from 'node:util'
import { done, type Informer, type Outcome, type Reconciler, setCondition } from '#controller'
import { CLUSTER_GROUP, DEFAULT_CLUSTER_SET, GLOBAL_CLUSTER_SET } from '#kinds'
import { isKubeError, type KubeClient, type ObjectKey } from '#kube'
import type { Clock } from '#model'
import {
  type ManagedCluster,
  type ManagedClusterSet,
  type ManagedClusterSetBinding,
  managedClusterSetBindings,
  managedClusterSets,
} from './objects.ts'
import { emptiness, isInSet } from './set-members.ts'
import { keyOf, type SaidOf, say, versionOf } from './status.ts'
import { AUTO_UPDATE } from './words.ts'

export interface SetsOptions {
  readonly hub: KubeClient
  readonly members: Pick<Informer<ManagedCluster>, 'list'>
  readonly sets: Pick<Informer<ManagedClusterSet>, 'get'>
  readonly clock: Clock
}

/** Sets every hub has: the one of clusters that name none, and the one of all. */
export const builtInSets: Readonly<Record<string, ManagedClusterSet['spec']>> = {
  [DEFAULT_CLUSTER_SET]: { clusterSelector: { selectorType: 'ExclusiveClusterSetLabel' } },
  [GLOBAL_CLUSTER_SET]: { clusterSelector: { selectorType: 'LabelSelector', labelSelector: {} } },
}

/** Says of each set how many clusters it has, and keeps the built-in ones as they are meant. */
export class SetReconciler implements Reconciler {
  readonly name = 'cluster-sets'
  readonly #options: SetsOptions

  constructor(options: SetsOptions) {
    this.#options = options
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    const { hub, members, sets, clock } = this.#options
    const stored = sets.get(key)
    const set = Object.hasOwn(builtInSets, key.name) ? await this.#kept(key.name, stored, signal) : stored
    if (!set || set.metadata.deletionTimestamp) return done
    const count = members.list().filter(({ metadata }) => isInSet(set, metadata.labels ?? {})).length
    const { status, reason, message } = emptiness(count)
    const before = set.status?.conditions ?? []
    // The count is in the message: unlike others it is written when it moves.
    const conditions = setCondition(before, { type: 'ClusterSetEmpty', status, reason, message }, clock.now())
    if (conditions === before) return done
    const patch = { metadata: versionOf(set), status: { conditions } }
    await hub.patch(managedClusterSets, key, patch, { kind: 'merge', subresource: 'status', signal })
    return done
  }

  async #kept(
    name: string,
    stored: ManagedClusterSet | undefined,
    signal: AbortSignal,
  ): Promise<ManagedClusterSet | undefined> {
    const { hub } = this.#options
    const spec = builtInSets[name]
    const wanted = { apiVersion: `${CLUSTER_GROUP}/v1beta2`, kind: 'ManagedClusterSet', metadata: { name }, spec }
    if (!stored) {
      try {
        return await hub.create(managedClusterSets, wanted, signal)
      } catch (error) {
        if (isKubeError(error, 'already_exists')) return undefined // the informer brings it
        throw error
      }
    }
    if (stored.metadata.annotations?.[AUTO_UPDATE] === 'false') return stored
    if (isDeepStrictEqual(stored.spec?.clusterSelector, spec?.clusterSelector)) return stored
    // A merge would keep what of a selector it does not name.
    const patch = [
      { op: 'test', path: '/metadata/resourceVersion', value: stored.metadata.resourceVersion },
      { op: 'add', path: '/spec', value: { ...stored.spec, ...spec } },
    ]
    return hub.patch(managedClusterSets, keyOf(stored), patch, { kind: 'json', signal })
  }
}

interface BindingsOptions extends Pick<SetsOptions, 'hub' | 'sets' | 'clock'> {
  readonly bindings: Pick<Informer<ManagedClusterSetBinding>, 'get' | 'wrote'>
}

/** Says of each binding whether there is the set that it names. */
export class BindingReconciler implements Reconciler {
  readonly name = 'cluster-set-bindings'
  readonly #options: BindingsOptions

  constructor(options: BindingsOptions) {
    this.#options = options
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    const { hub, sets, bindings, clock } = this.#options
    const binding = bindings.get(key)
    if (!binding || binding.metadata.deletionTimestamp) return done
    const name = binding.spec?.clusterSet ?? ''
    const set = sets.get({ name })
    const isThere = set !== undefined && !set.metadata.deletionTimestamp
    const missing = `There is no ManagedClusterSet ${name}; make it, or bind another.`
    const said: SaidOf = isThere
      ? { type: 'Bound', status: 'True', reason: 'ClusterSetBound', message: '' }
      : { type: 'Bound', status: 'False', reason: 'ClusterSetNotFound', message: missing }
    await say(hub, managedClusterSetBindings, binding, { to: bindings, said: [said], now: clock.now(), signal })
    return done
  }
}
