import { type Static, Type } from 'typebox'
import { defineKind, type KindObject } from '../kind.ts'
import { Word } from '../parts.ts'
import { CLUSTER_GROUP } from './names.ts'

const Spec = Type.Object(
  { value: Type.Optional(Word(1024, 'what is claimed')) },
  { description: 'what the cluster says of itself' },
)

/** A statement of a member about itself, kept on the member. */
export const clusterClaim = defineKind({
  group: CLUSTER_GROUP,
  version: 'v1alpha1',
  kind: 'ClusterClaim',
  plural: 'clusterclaims',
  singular: 'clusterclaim',
  shortNames: [],
  categories: [],
  scope: 'Cluster',
  description:
    'A statement of a member about itself, such as its platform or its region, kept on the member and shown in the status of its ManagedCluster.',
  columns: [],
  spec: Spec,
  specOptional: true,
  example: {
    apiVersion: `${CLUSTER_GROUP}/v1alpha1`,
    kind: 'ClusterClaim',
    metadata: { name: 'id.k8s.io' },
    spec: { value: '5f4e1c0a-west' },
  },
})

/** What is claimed. */
export type ClusterClaimSpec = Static<typeof Spec>
/** The object as the member's API keeps it. */
export type ClusterClaim = KindObject<ClusterClaimSpec, unknown>
