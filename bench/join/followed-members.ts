import { setTimeout as sleep } from 'node:timers/promises'
import { Informer } from '../../src/platform/controller/index.ts'
import type { KubeClient, KubeObject, Resource } from '../../src/platform/kube/index.ts'
import { silentLogger } from '../../src/platform/runtime/index.ts'
import { NAMESPACE } from './hub.ts'
import { conditionOf, managedClusters } from './membership.ts'

/** What is counted of an object; the rest is not kept. */
interface Counted extends KubeObject {
  readonly isAccepted: boolean
  readonly isAvailable: boolean
  readonly isSettled: boolean
}

const counted = ({ group, version, plural, kind, namespaced }: Resource): Resource<Counted> => ({
  ...{ group, version, plural, kind, namespaced },
  fromJson: (object) => ({
    metadata: { name: object.metadata.name, resourceVersion: object.metadata.resourceVersion ?? '' },
    isAccepted: conditionOf(object, 'HubAcceptedManagedCluster') === 'True',
    isAvailable: conditionOf(object, 'ManagedClusterConditionAvailable') === 'True',
    isSettled: (object.status as { conditions?: unknown } | undefined)?.conditions !== undefined,
  }),
})

const connections: Resource = {
  ...{ group: 'clusterpulse.io', version: 'v1alpha1', plural: 'clusterconnections', kind: 'ClusterConnection' },
  namespaced: true,
}
const LOOK_EVERY_MS = 250

/**
 * How far the hub is with its members, followed by watches as `kubectl get -w` does: lists of ten thousand, read again and again until
 * all are there, would cost the hub more than the members do.
 */
export class FollowedMembers implements AsyncDisposable {
  readonly #members: Informer<Counted>
  readonly #connections: Informer<Counted>

  constructor(kube: KubeClient) {
    const shared = { kube, logger: silentLogger }
    this.#members = new Informer({ ...shared, resource: counted(managedClusters) })
    this.#connections = new Informer({ ...shared, resource: counted(connections), namespace: NAMESPACE })
    this.#members.start()
    this.#connections.start()
  }

  get available(): number {
    return this.#members.list().filter(({ isAvailable }) => isAvailable).length
  }

  /** Resolves when so many are accepted, and their connections looked at. */
  settled(count: number): Promise<void> {
    const accepted = () => this.#members.list().filter(({ isAccepted }) => isAccepted).length
    const monitored = () => this.#connections.list().filter(({ isSettled }) => isSettled).length
    return until(() => accepted() >= count && monitored() >= count)
  }

  /** Resolves when so many are available. */
  availables(count: number): Promise<void> {
    return until(() => this.available >= count)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#members.stop(), this.#connections.stop()])
  }
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await sleep(LOOK_EVERY_MS)
}
