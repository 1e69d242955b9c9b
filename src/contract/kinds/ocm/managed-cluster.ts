import { type Static, Type } from 'typebox'
import { defineKind, type Fault, type KindObject } from '../kind.ts'
import { Bytes, Conditions, keyedBy, Text, Word } from '../parts.ts'
import { OneOf } from '../words.ts'
import { CLUSTER_GROUP, DEFAULT_LEASE_SECONDS } from './names.ts'
import { Quantities } from './parts.ts'

const Taint = Type.Object({
  key: Type.String({
    maxLength: 316,
    pattern:
      '^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$',
    faultMessage: 'must be a name such as example.com/maintenance',
    description: 'what it is about, such as example.com/maintenance',
  }),
  value: Type.Optional(Text(1024, 'more on it')),
  effect: OneOf(['NoSelect', 'PreferNoSelect', 'NoSelectIfNew'], {
    description:
      'NoSelect: placements that do not tolerate it choose the cluster no more; PreferNoSelect: rather not; NoSelectIfNew: not anew',
  }),
  timeAdded: Type.Optional(
    Type.Union([Type.String({ format: 'date-time' }), Type.Null()], {
      description: 'since when; set by the hub, left out by people',
    }),
  ),
})

const Spec = Type.Object(
  {
    hubAcceptsClient: Type.Optional(
      Type.Boolean({
        default: false,
        description:
          'the hub takes this cluster as a member. Changing it needs the right to update managedclusters/accept of register.open-cluster-management.io',
      }),
    ),
    leaseDurationSeconds: Type.Optional(
      Type.Integer({
        minimum: -2147483648,
        maximum: 2147483647,
        format: 'int32',
        default: DEFAULT_LEASE_SECONDS,
        description: 'seconds between two heartbeats; 0: 60. After five of them without one the cluster is Unknown',
      }),
    ),
    managedClusterClientConfigs: Type.Optional(
      Type.Array(
        Type.Object({
          url: Text(2048, 'https address of its API'),
          caBundle: Type.Optional(
            Bytes('PEM of the CAs its certificate is verified with; absent: those of the system'),
          ),
        }),
        { description: 'how others may reach the API of the cluster' },
      ),
    ),
    taints: Type.Optional(Type.Array(Taint, { description: 'what keeps placements away from the cluster' })),
  },
  { description: 'what is wanted' },
)

const Status = Type.Object(
  {
    conditions: Conditions,
    capacity: Type.Optional(Quantities('what its nodes have, added up')),
    allocatable: Type.Optional(Quantities('what pods may use of it, on nodes that take pods')),
    version: Type.Optional(
      Type.Object(
        { kubernetes: Type.Optional(Text(256, 'version of its API server, such as v1.35.0')) },
        { description: 'its software' },
      ),
    ),
    clusterClaims: Type.Optional(
      Type.Array(
        Type.Object({
          name: Type.Optional(Word(253, 'name of the claim')),
          value: Type.Optional(Word(1024, 'what it says')),
        }),
        { description: 'what the cluster says of itself: its ClusterClaims' },
      ),
    ),
    managedNamespaces: Type.Optional(
      Type.Array(
        Type.Object({
          name: Word(63, 'name of the namespace'),
          clusterSet: Word(253, 'the set that asks for it'),
          conditions: Conditions,
        }),
        { ...keyedBy('clusterSet', 'name'), description: 'namespaces that its sets ask for' },
      ),
    ),
  },
  { description: 'what is seen; written by the agent and by the hub' },
)

const NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/

/** Why this cannot be the name of a cluster, which is the name of its namespace too; undefined where it can. */
export const clusterNameProblem = (name: string): string | undefined =>
  name.length <= 63 && NAME.test(name)
    ? undefined
    : 'must be the name of a namespace: small letters, digits and dashes, at most 63'

/** Why nobody should be sent to this address; undefined where it is an https address with a host. */
function addressProblem(url: string): string | undefined {
  // Read in terminals by who decides: nothing in it is hidden or turned around.
  if (!/^[\x21-\x7e]*$/.test(url)) return 'must be of printable ASCII characters, without spaces'
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  return parsed?.protocol === 'https:' && parsed.hostname !== ''
    ? undefined
    : 'must be an https address with a host, such as https://api.west.example.com:6443'
}

function rules({ metadata, spec }: Pick<KindObject<Static<typeof Spec>, unknown>, 'metadata' | 'spec'>): Fault[] {
  const name = clusterNameProblem(metadata?.name ?? '')
  const addresses = (spec.managedClusterClientConfigs ?? []).map(({ url }) => addressProblem(url))
  return [
    ...(name ? [{ path: 'metadata.name', message: name }] : []),
    ...addresses.flatMap((message, at) =>
      message ? [{ path: `spec.managedClusterClientConfigs[${at}].url`, message }] : [],
    ),
  ]
}

/** A cluster that asks to be a member of the hub, or is one. */
export const managedCluster = defineKind({
  group: CLUSTER_GROUP,
  version: 'v1',
  kind: 'ManagedCluster',
  plural: 'managedclusters',
  singular: 'managedcluster',
  shortNames: ['mcl', 'mcls'],
  categories: [],
  scope: 'Cluster',
  description:
    'A cluster that asks to be a member of the hub, or is one: two people consent, one on each side. Its name is the name of its namespace on the hub.',
  columns: [
    { name: 'Hub Accepted', type: 'boolean', jsonPath: '.spec.hubAcceptsClient' },
    { name: 'Managed Cluster URLs', type: 'string', jsonPath: '.spec.managedClusterClientConfigs[*].url' },
    { name: 'Joined', type: 'string', jsonPath: '.status.conditions[?(@.type=="ManagedClusterJoined")].status' },
    {
      name: 'Available',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="ManagedClusterConditionAvailable")].status',
    },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  spec: Spec,
  specOptional: true,
  rules,
  status: Status,
  example: {
    apiVersion: `${CLUSTER_GROUP}/v1`,
    kind: 'ManagedCluster',
    metadata: { name: 'west' },
    spec: { hubAcceptsClient: true, leaseDurationSeconds: 60 },
  },
})

/** What is wanted of a member: consent, heartbeat in seconds, taints. */
export type ManagedClusterSpec = Static<typeof Spec>
/** What the member and the hub report; quantities as Kubernetes writes them, times as RFC 3339. */
export type ManagedClusterStatus = Static<typeof Status>
/** The object as the hub's API keeps it. */
export type ManagedCluster = KindObject<ManagedClusterSpec, ManagedClusterStatus>
/** What keeps placements away from a cluster. */
export type ManagedClusterTaint = Static<typeof Taint>
