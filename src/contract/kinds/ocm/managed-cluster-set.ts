import { type Static, Type } from 'typebox'
import { defineKind, type KindObject } from '../kind.ts'
import { Conditions, keyedBy, LabelSelector, NamespaceName } from '../parts.ts'
import { OneOf } from '../words.ts'
import { CLUSTER_GROUP } from './names.ts'

const Spec = Type.Object(
  {
    clusterSelector: Type.Optional(
      Type.Object(
        {
          selectorType: Type.Optional(
            OneOf(['ExclusiveClusterSetLabel', 'LabelSelector'], {
              default: 'ExclusiveClusterSetLabel',
              description:
                'ExclusiveClusterSetLabel: clusters whose label cluster.open-cluster-management.io/clusterset names the set, so that each is in one; LabelSelector: clusters that labelSelector selects',
            }),
          ),
          labelSelector: Type.Optional(
            LabelSelector('for selectorType LabelSelector; empty selects all clusters, absent none'),
          ),
        },
        { default: { selectorType: 'ExclusiveClusterSetLabel' }, description: 'which clusters are in it' },
      ),
    ),
    managedNamespaces: Type.Optional(
      Type.Array(Type.Object({ name: NamespaceName('name of the namespace') }), {
        ...keyedBy('name'),
        description: 'namespaces that every cluster of the set shall have',
      }),
    ),
  },
  {
    default: { clusterSelector: { selectorType: 'ExclusiveClusterSetLabel' } },
    description: 'what is wanted',
  },
)

const Status = Type.Object({ conditions: Conditions }, { description: 'what is seen; written by the hub' })

/** A named group of clusters: the unit in which clusters are handed to people. */
export const managedClusterSet = defineKind({
  group: CLUSTER_GROUP,
  version: 'v1beta2',
  kind: 'ManagedClusterSet',
  plural: 'managedclustersets',
  singular: 'managedclusterset',
  shortNames: ['mclset', 'mclsets'],
  categories: [],
  scope: 'Cluster',
  description:
    'A named group of clusters: the unit in which clusters are handed to people. `default` holds those that name no set, `global` all.',
  columns: [
    { name: 'Empty', type: 'string', jsonPath: '.status.conditions[?(@.type=="ClusterSetEmpty")].status' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  spec: Spec,
  specOptional: true,
  status: Status,
  example: {
    apiVersion: `${CLUSTER_GROUP}/v1beta2`,
    kind: 'ManagedClusterSet',
    metadata: { name: 'production' },
    spec: { clusterSelector: { selectorType: 'ExclusiveClusterSetLabel' } },
  },
})

/** Which clusters are in a set. */
export type ManagedClusterSetSpec = Static<typeof Spec>
/** Whether any cluster is in it. */
export type ManagedClusterSetStatus = Static<typeof Status>
/** The object as the hub's API keeps it. */
export type ManagedClusterSet = KindObject<ManagedClusterSetSpec, ManagedClusterSetStatus>
