/**
 * Kinds of rows that are compiled in: one file each, and a line in the list. Collection, roles, wire, state, access, API, CSV,
 * search, page and command line are made of the descriptors; a MetricSource compiles to the same at run time (#metricsource).
 */
import type { BuiltInResource, RowKind } from '#metricsource'
import { clusterOperators } from './cluster-operators.ts'
import type { SnapshotKind } from './define-snapshot-kind.ts'
import { deployments } from './deployments.ts'
import { inventory } from './inventory.ts'
import { kollectInventories } from './kollect-inventories.ts'
import { kollectSinks } from './kollect-sinks.ts'
import { kollectTargets } from './kollect-targets.ts'
import { kubernetesEvents } from './kubernetes-events.ts'
import { memberRequests, members } from './members.ts'
import { namespaces } from './namespaces.ts'
import { nodes } from './nodes.ts'
import { operators } from './operators.ts'
import { persistentVolumeClaims } from './persistent-volume-claims.ts'
import { persistentVolumes } from './persistent-volumes.ts'
import { pods } from './pods.ts'
import { registries } from './registries.ts'
import { services } from './services.ts'
import { workloads } from './workloads.ts'

export type { CountedNamespace, FleetKind, Listed, ListedType, SnapshotKind } from './define-snapshot-kind.ts'

/** Read with the rounds, or handed in by agents, as rows. Adding a kind is one line here. */
export const resources: readonly BuiltInResource[] = [
  pods,
  workloads,
  persistentVolumeClaims,
  persistentVolumes,
  services,
  kubernetesEvents,
  inventory,
  kollectTargets,
  kollectInventories,
  kollectSinks,
]

/** Made of the snapshots of every round. */
export const snapshotKinds = [nodes, namespaces, deployments, operators, clusterOperators] as const

/** All of them; registries and members belong to the fleet. */
export const kinds: readonly RowKind[] = [...snapshotKinds, ...resources, registries, members, memberRequests]
export { memberRequests, members, registries }

/** What a policy, an address or a command names: `services`, or `core/services` where a MetricSource has the plain name. */
export function kindNamed(name: string): RowKind | undefined {
  const plain = name.startsWith('core/') ? name.slice('core/'.length) : name
  return kinds.find(({ typeName }) => typeName === plain)
}

export const isSnapshotKind = (kind: RowKind): kind is SnapshotKind => kind.access === 'snapshot'

/** Rows stand on no cluster. */
export const isFleetKind = ({ target }: Pick<RowKind, 'target'>): boolean => target.scope === 'Fleet'

/** The same, of those that have collections of their own: the only ones whose rows policies name. */
export const resourceNamed = (name: string): BuiltInResource | undefined =>
  resources.find((one) => one === kindNamed(name))

/** What is compiled in under this id; undefined: nothing. */
export const resourceOf = (id: string): BuiltInResource | undefined => resources.find((one) => one.id === id)
