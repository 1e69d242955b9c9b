import { type Static, Type } from 'typebox'
import { defineKind, type KindObject } from '../kind.ts'
import { Conditions, Word } from '../parts.ts'
import { CLUSTER_GROUP } from './names.ts'

const Spec = Type.Object(
  {
    clusterSet: Type.Optional(
      Word(253, 'name of the set, and of the binding; it needs the right to create managedclustersets/bind'),
    ),
  },
  { description: 'what is wanted' },
)

const Status = Type.Object({ conditions: Conditions }, { description: 'what is seen; written by the hub' })

/** Lets placements of a namespace choose among the clusters of a set. */
export const managedClusterSetBinding = defineKind({
  group: CLUSTER_GROUP,
  version: 'v1beta2',
  kind: 'ManagedClusterSetBinding',
  plural: 'managedclustersetbindings',
  singular: 'managedclustersetbinding',
  shortNames: ['mclsetbinding', 'mclsetbindings'],
  categories: [],
  description: 'Lets placements of its namespace choose among the clusters of a set. It has the name of the set.',
  columns: [],
  spec: Spec,
  specOptional: true,
  rules: ({ metadata, spec }) =>
    spec.clusterSet === metadata?.name
      ? []
      : [{ path: 'spec.clusterSet', message: `must be ${JSON.stringify(metadata?.name)}, the name of the binding` }],
  status: Status,
  example: {
    apiVersion: `${CLUSTER_GROUP}/v1beta2`,
    kind: 'ManagedClusterSetBinding',
    metadata: { name: 'production', namespace: 'team-a' },
    spec: { clusterSet: 'production' },
  },
})

/** Which set is bound. */
export type ManagedClusterSetBindingSpec = Static<typeof Spec>
/** Whether the set exists. */
export type ManagedClusterSetBindingStatus = Static<typeof Status>
/** The object as the hub's API keeps it. */
export type ManagedClusterSetBinding = KindObject<ManagedClusterSetBindingSpec, ManagedClusterSetBindingStatus>
