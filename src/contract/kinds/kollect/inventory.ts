import { type Static, Type } from 'typebox'
import { defineKind, type KindObject } from '../kind.ts'
import { Conditions, keyedBy, LabelSelector, Moment, Text } from '../parts.ts'
import { OneOf } from '../words.ts'
import {
  DEFAULT_EXPORT_INTERVAL,
  DEFAULT_SINK_NAMESPACE,
  KOLLECT_GROUP,
  KOLLECT_VERSION,
  MAX_SINK_REFS,
} from './names.ts'
import { exportMinInterval, Names, ProfileRef, sinkRefs, snapshotWindow } from './parts.ts'

const Count = (description: string) => Type.Optional(Type.Integer({ minimum: 0, description }))

const times = { exportMinInterval: exportMinInterval({ default: DEFAULT_EXPORT_INTERVAL }), snapshotWindow }

const seen = {
  conditions: Conditions,
  observedGeneration: Type.Optional(
    Type.Integer({ format: 'int64', description: 'generation of the spec that the status is about' }),
  ),
  itemCount: Count('rows'),
  epoch: Type.Optional(
    Type.Integer({
      format: 'int64',
      minimum: 0,
      description: 'start of the agent that writes: greater with each, so that sinks know what is later',
    }),
  ),
  lastExportTime: Type.Optional(Moment('of the latest export to any sink')),
  sinkExports: Type.Optional(
    Type.Array(
      Type.Object({
        name: Text(317, 'family/name of the sink'),
        namespace: Type.Optional(Text(63, 'namespace of the sink')),
        lastExportTime: Type.Optional(Moment('when it last took an export')),
        lastChecksum: Type.Optional(
          Text(128, 'checksum of the rows that it last took; absent where those were not complete'),
        ),
        sinkIdentity: Type.Optional(
          Text(64, 'of the sink and its cluster when it last took something: of another one nothing is known'),
        ),
        itemCount: Count('rows that it last took'),
        manifest: Type.Optional(Text(1024, 'path of the list of its documents in the sink, where it keeps documents')),
        behindSince: Type.Optional(
          Moment(
            'of the oldest change that it lacks, where that is more than a minute later than its window; else absent',
          ),
        ),
        conditions: Conditions,
      }),
      { ...keyedBy('name'), maxItems: MAX_SINK_REFS, description: 'how each sink stands' },
    ),
  ),
}

const Spec = Type.Object(
  {
    ...sinkRefs,
    ...times,
    maxExportBytes: Type.Optional(
      Type.Integer({
        format: 'int64',
        description: 'ceiling of one part of an export in bytes; default and maximum: that of the process',
      }),
    ),
    suspend: Type.Optional(Type.Boolean({ description: 'export nothing' })),
    httpEndpoint: Type.Optional(
      Type.Object(
        {
          enabled: Type.Optional(Type.Boolean({ description: 'has no effect: the process says whether it serves' })),
          port: Type.Optional(
            Type.Integer({ minimum: 1, maximum: 65535, format: 'int32', description: 'has no effect' }),
          ),
        },
        { description: 'of older manifests; without effect' },
      ),
    ),
  },
  { description: 'what is wanted' },
)

const Status = Type.Object(seen, { description: 'what is seen; written by the agent' })

const columns = [
  { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
  { name: 'Synced', type: 'string', jsonPath: '.status.conditions[?(@.type=="Synced")].status' },
  { name: 'Items', type: 'integer', jsonPath: '.status.itemCount' },
  { name: 'Exported', type: 'date', jsonPath: '.status.lastExportTime' },
  { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
] as const

/** The rows of the targets of a namespace, and where they go. */
export const kollectInventory = defineKind({
  group: KOLLECT_GROUP,
  version: KOLLECT_VERSION,
  kind: 'KollectInventory',
  plural: 'kollectinventories',
  singular: 'kollectinventory',
  shortNames: ['kinv'],
  categories: [],
  description: 'The rows of every target of its namespace, and the sinks of that namespace they go to.',
  columns,
  spec: Spec,
  status: Status,
  example: {
    apiVersion: `${KOLLECT_GROUP}/${KOLLECT_VERSION}`,
    kind: 'KollectInventory',
    metadata: { name: 'apps', namespace: 'team-a' },
    spec: { databaseSinkRefs: ['warehouse'], snapshotSinkRefs: [{ name: 'git', exportMinInterval: '5m' }] },
  },
})

const ClusterSpec = Type.Object(
  {
    profileRef: Type.Optional(ProfileRef('without effect; of older manifests')),
    targetRefs: Type.Optional(Names('name', 'names of cluster targets')),
    targetSelector: Type.Optional(
      LabelSelector('cluster targets with these labels, where targetRefs names none; neither: all of them'),
    ),
    namespaceSelector: LabelSelector('only rows of namespaces with these labels; at least one demand'),
    namespaces: Type.Optional(Names('namespace', 'only these of them')),
    ...sinkRefs,
    sinkNamespace: Type.Optional(
      Type.String({
        maxLength: 63,
        default: DEFAULT_SINK_NAMESPACE,
        description: 'namespace of the sinks that are named without one',
      }),
    ),
    ...times,
    dedupe: Type.Optional(
      OneOf(['keepAll', 'byResourceUID'], {
        default: 'keepAll',
        description: 'keepAll: a row of each target; byResourceUID: one row of each object',
      }),
    ),
    suspend: Type.Optional(Type.Boolean({ description: 'export nothing' })),
  },
  { description: 'what is wanted' },
)

const ClusterStatus = Type.Object(
  {
    ...seen,
    targetCount: Count('cluster targets that contribute'),
    namespaceShardCount: Count('namespaces with rows'),
    namespaceShards: Type.Optional(
      Type.Array(
        Type.Object({
          namespace: Text(63, 'namespace'),
          itemCount: Count('rows'),
          targetCount: Count('cluster targets'),
          checksum: Type.Optional(Text(128, 'checksum of the rows')),
        }),
        { ...keyedBy('namespace'), description: 'the rows of each namespace' },
      ),
    ),
  },
  { description: 'what is seen; written by the agent' },
)

/** The rows of cluster targets, together. */
export const kollectClusterInventory = defineKind({
  group: KOLLECT_GROUP,
  version: KOLLECT_VERSION,
  kind: 'KollectClusterInventory',
  plural: 'kollectclusterinventories',
  singular: 'kollectclusterinventory',
  shortNames: ['kcinv'],
  categories: [],
  scope: 'Cluster',
  description: 'The rows of cluster targets together, and the sinks they go to.',
  columns: [
    ...columns.slice(0, 2),
    { name: 'Targets', type: 'integer', jsonPath: '.status.targetCount' },
    ...columns.slice(2),
  ],
  spec: ClusterSpec,
  status: ClusterStatus,
  example: {
    apiVersion: `${KOLLECT_GROUP}/${KOLLECT_VERSION}`,
    kind: 'KollectClusterInventory',
    metadata: { name: 'teams' },
    spec: {
      namespaceSelector: { matchLabels: { team: 'true' } },
      databaseSinkRefs: [{ name: 'warehouse', namespace: 'kollect-system' }],
    },
  },
})

/** Sinks and times of an inventory of a namespace. */
export type KollectInventorySpec = Static<typeof Spec>
/** What the agent says of it: rows, and how each sink stands. */
export type KollectInventoryStatus = Static<typeof Status>
/** The object as the API keeps it. */
export type KollectInventory = KindObject<KollectInventorySpec, KollectInventoryStatus>
/** Targets, namespaces, sinks and times of a roll-up. */
export type KollectClusterInventorySpec = Static<typeof ClusterSpec>
/** What the agent says of it, by namespace as well. */
export type KollectClusterInventoryStatus = Static<typeof ClusterStatus>
/** The object as the API keeps it. */
export type KollectClusterInventory = KindObject<KollectClusterInventorySpec, KollectClusterInventoryStatus>
