import { type Static, type TSchema, Type } from 'typebox'

/**
 * What collectors say of one thing at one time. Base units: cores, bytes, ratios from 0 to 1, milliseconds since the Unix
 * epoch for every `…At`. `null` means "not known"; 0 is a measurement.
 */

const Labels = Type.Record(Type.String(), Type.String())
const nullable = <T extends import('typebox').TSchema>(schema: T) => Type.Union([schema, Type.Null()])
/** What was never null once: on the wire its parts keep columns of their own. */
const nullableFlat = <T extends import('typebox').TSchema>(schema: T) =>
  Type.Union([schema, Type.Null()], { flat: true })
const Instant = Type.Integer({ description: 'milliseconds since the Unix epoch' })

/** One condition of a Kubernetes status. */
export const ConditionSchema = Type.Object({
  type: Type.String(),
  status: Type.String({ description: 'True, False or Unknown' }),
  reason: Type.String(),
  message: Type.String(),
  lastTransitionAt: nullable(Instant),
})
/** One condition of a Kubernetes status. */
export type ResourceCondition = Static<typeof ConditionSchema>

const Amounts = Type.Object({
  cpuCores: nullable(Type.Number()),
  memoryBytes: nullable(Type.Number()),
  storageBytes: nullable(Type.Number({ description: 'ephemeral storage' })),
  pods: nullable(Type.Integer()),
})
/** Amounts of a node or of its pods in base units: cores and bytes. */
export type ResourceAmounts = Static<typeof Amounts>

/** Pods by phase. */
export const PodCountsSchema = Type.Object({
  total: Type.Integer(),
  running: Type.Integer(),
  pending: Type.Integer(),
  failed: Type.Integer(),
  succeeded: Type.Integer(),
  unknown: Type.Integer(),
})
/** Pods by phase. */
export type PodCounts = Static<typeof PodCountsSchema>

/** One node with the sums of its pods; those are null where pods may not be read. */
export const NodeSnapshotSchema = Type.Object({
  name: Type.String(),
  createdAt: nullable(Instant),
  ready: Type.Union([Type.Literal('ready'), Type.Literal('notReady'), Type.Literal('unknown')]),
  unschedulable: Type.Boolean(),
  roles: Type.Array(Type.String(), { description: 'sorted' }),
  conditions: Type.Array(ConditionSchema),
  capacity: Amounts,
  allocatable: Amounts,
  requested: nullableFlat(
    Type.Object(
      { cpuCores: Type.Number(), memoryBytes: Type.Number() },
      { description: "the scheduler's sum over pods that are not finished; null where pods may not be read" },
    ),
  ),
  used: nullable(
    Type.Object(
      { cpuCores: Type.Number(), memoryBytes: Type.Number() },
      { description: 'measured by metrics.k8s.io; null where not served' },
    ),
  ),
  pods: nullableFlat(PodCountsSchema),
  kernelVersion: Type.String(),
  osImage: Type.String(),
  containerRuntime: Type.String(),
  kubeletVersion: Type.String(),
  architecture: Type.String(),
  internalIp: Type.String(),
  externalIp: Type.String(),
  hostname: Type.String(),
  labels: Labels,
  annotations: Labels,
  taints: Type.Array(Type.Object({ key: Type.String(), value: Type.String(), effect: Type.String() })),
  imagesCount: Type.Integer(),
  volumesAttached: Type.Integer(),
})
/** One node as seen at one time, with the sums of its pods. */
export type NodeSnapshot = Static<typeof NodeSnapshotSchema>

/** What the cluster says of itself. One per cluster; `name` is always "cluster". */
export const ClusterSnapshotSchema = Type.Object({
  name: Type.Literal('cluster'),
  apiUrl: Type.String(),
  distribution: Type.Union([Type.Literal('kubernetes'), Type.Literal('openshift')]),
  version: nullable(Type.String({ description: 'gitVersion, or the desired OpenShift version' })),
  platform: nullable(Type.String({ description: 'OpenShift, or such as linux/amd64' })),
  channel: nullable(Type.String()),
  clusterId: nullable(Type.String()),
  image: nullable(Type.String()),
  updateVersion: nullable(Type.String({ description: 'first available update' })),
  versionState: nullable(Type.String()),
  versionStartedAt: nullable(Instant),
  versionCompletedAt: nullable(Instant),
  consoleUrl: nullable(Type.String()),
  conditions: Type.Array(ConditionSchema),
  claims: Type.Optional(
    Type.Record(Type.String(), Type.String(), {
      description:
        'statements of the cluster about itself; absent: not read, as by whoever is not the agent of a member',
    }),
  ),
})
/** What a cluster says of itself, as seen at one time. */
export type ClusterSnapshot = Static<typeof ClusterSnapshotSchema>

/** Pods of the whole cluster, unscheduled ones included. One per cluster; `name` is always "pods". */
export const PodSummarySchema = Type.Object({
  name: Type.Literal('pods'),
  counts: PodCountsSchema,
  unscheduled: Type.Integer(),
  byNamespace: Type.Record(Type.String(), PodCountsSchema),
})
/** Pods of a cluster, counted by phase and namespace. */
export type PodSummary = Static<typeof PodSummarySchema>

/** One namespace as seen at one time. */
export const NamespaceSnapshotSchema = Type.Object({
  name: Type.String(),
  phase: Type.String(),
  createdAt: nullable(Instant),
  labels: Labels,
})
/** One namespace as seen at one time. */
export type NamespaceSnapshot = Static<typeof NamespaceSnapshotSchema>

/** `name` is `namespace/name`. */
export const DeploymentSnapshotSchema = Type.Object({
  name: Type.String(),
  namespace: Type.String(),
  replicas: Type.Integer(),
  ready: Type.Integer(),
  available: Type.Integer(),
  updated: Type.Integer(),
})
/** One deployment as seen at one time. */
export type DeploymentSnapshot = Static<typeof DeploymentSnapshotSchema>

/** An operator installed by OLM. `name` is `namespace/csv-name`. */
export const OperatorSnapshotSchema = Type.Object({
  name: Type.String(),
  csv: Type.String({ description: 'name of the ClusterServiceVersion, with its version' }),
  displayName: Type.String(),
  version: Type.String(),
  provider: Type.String(),
  status: Type.String({ description: 'CSV phase; Unknown without one' }),
  namespace: Type.String({ description: 'namespace of the CSV' }),
  installModes: Type.Array(Type.String()),
  installMode: Type.String(),
  clusterWide: Type.Boolean(),
  availableInNamespaces: Type.Array(Type.String(), { description: '["*"] for all' }),
  createdAt: nullable(Instant),
  updatedAt: nullable(Instant),
})
/** One operator of OLM as seen at one time. */
export type OperatorSnapshot = Static<typeof OperatorSnapshotSchema>

/** An OpenShift ClusterOperator. */
export const ClusterOperatorSnapshotSchema = Type.Object({
  name: Type.String(),
  version: Type.String(),
  available: Type.Boolean(),
  progressing: Type.Boolean(),
  degraded: Type.Boolean(),
  upgradeable: Type.Boolean(),
  message: Type.String(),
  reason: Type.String(),
  lastTransitionAt: nullable(Instant),
  conditions: Type.Array(ConditionSchema),
  versions: Type.Array(Type.Object({ name: Type.String(), version: Type.String() })),
  relatedObjects: Type.Array(
    Type.Object({ group: Type.String(), resource: Type.String(), namespace: Type.String(), name: Type.String() }),
  ),
})
/** One OpenShift cluster operator as seen at one time. */
export type ClusterOperatorSnapshot = Static<typeof ClusterOperatorSnapshotSchema>

/** Every type of snapshot by its name on the wire and in the stores. */
export interface SnapshotTypes {
  cluster: ClusterSnapshot
  node: NodeSnapshot
  podSummary: PodSummary
  namespace: NamespaceSnapshot
  deployment: DeploymentSnapshot
  operator: OperatorSnapshot
  clusterOperator: ClusterOperatorSnapshot
}
/** The types of snapshot that rounds collect. */
export type SnapshotType = keyof SnapshotTypes
/** The snapshot of this type. */
export type SnapshotOf<T extends SnapshotType> = SnapshotTypes[T]
/** One thing of any type as seen at one time. */
export type Snapshot = SnapshotTypes[SnapshotType]

/** All types of snapshot. */
export const snapshotTypes: readonly SnapshotType[] = [
  'cluster',
  'node',
  'podSummary',
  'namespace',
  'deployment',
  'operator',
  'clusterOperator',
]

/** The shape of each type: what a codec or a check is made from, so that a new type needs no other list. */
export const snapshotSchemas: { readonly [T in SnapshotType]: TSchema } = {
  cluster: ClusterSnapshotSchema,
  node: NodeSnapshotSchema,
  podSummary: PodSummarySchema,
  namespace: NamespaceSnapshotSchema,
  deployment: DeploymentSnapshotSchema,
  operator: OperatorSnapshotSchema,
  clusterOperator: ClusterOperatorSnapshotSchema,
}
