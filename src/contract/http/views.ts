import { type Static, Type } from 'typebox'
import {
  ClusterOperatorSnapshotSchema,
  ClusterSnapshotSchema,
  DeploymentSnapshotSchema,
  NamespaceSnapshotSchema,
  NodeSnapshotSchema,
  OperatorSnapshotSchema,
  PodCountsSchema,
} from '#model'

/**
 * Snapshots as /api/v2 and /api/v1/stream show them: camelCase, base units, ages. The documented snake_case documents of
 * /api/v1 are in documents.ts. `null` is "not known".
 */
const nullable = <T extends import('typebox').TSchema>(schema: T) => Type.Union([schema, Type.Null()])

/** When a value was seen and received, and who collected it. */
export const FreshnessSchema = Type.Object({
  observedAt: Type.Integer({ description: "by the collector's clock, ms since the Unix epoch" }),
  receivedAt: Type.Integer({ description: "by the hub's clock, ms since the Unix epoch" }),
  source: Type.Union([Type.Literal('pull'), Type.Literal('push')]),
})

/** Health of a cluster as the state says it. */
export const HealthSchema = Type.Union([
  Type.Literal('healthy'),
  Type.Literal('degraded'),
  Type.Literal('unhealthy'),
  Type.Literal('unknown'),
])

/** How the last read of one type ended: absent, empty, forbidden and unreachable are four answers. */
export const PartViewSchema = Type.Object({
  outcome: Type.Union([
    Type.Literal('complete'),
    Type.Literal('absent'),
    Type.Literal('forbidden'),
    Type.Literal('unreachable'),
  ]),
  code: Type.String(),
  message: Type.String(),
  attemptedAt: Type.Integer(),
  freshness: nullable(FreshnessSchema),
  count: Type.Integer({ description: 'items the caller may see' }),
})
/** How the last read of one type of snapshot ended. */
export type PartView = Static<typeof PartViewSchema>

const Capacity = Type.Object({
  capacity: nullable(Type.Number()),
  allocatable: nullable(Type.Number()),
  requested: nullable(Type.Number()),
  used: nullable(Type.Number({ description: 'measured; null where metrics.k8s.io is not served' })),
})

/** The agent beside a cluster. */
export const AgentViewSchema = Type.Object({
  connected: Type.Boolean(),
  since: Type.Integer({ description: 'since when it is so, ms' }),
  reason: Type.String({ description: 'why the stream ended; empty while it lives' }),
  version: Type.String(),
  protocol: Type.Union([Type.Literal('original'), Type.Integer()]),
  heartbeatAt: Type.Integer(),
  bufferedBatches: Type.Integer(),
  bufferedBytes: Type.Integer(),
  oldestBufferedAt: nullable(Type.Integer()),
  lostBatches: Type.Integer(),
  clockOffsetMs: Type.Integer(),
  tls: Type.Boolean(),
  process: Type.Optional(
    Type.String({ description: 'which process of the hub owns the cluster and its stream; absent: one owns all' }),
  ),
})
/** The agent of one cluster as the API shows it. Times are milliseconds since the Unix epoch. */
export type AgentView = Static<typeof AgentViewSchema>

/** One cluster: health, ages, capacity and counts. Cores, bytes, milliseconds since the Unix epoch; null: not known, or hidden. */
export const ClusterViewSchema = Type.Object({
  name: Type.String(),
  displayName: Type.String(),
  endpoint: Type.String(),
  labels: Type.Record(Type.String(), Type.String()),
  mode: Type.Union([Type.Literal('pull'), Type.Literal('push')], { description: 'as declared' }),
  source: Type.Union([Type.Literal('pull'), Type.Literal('push')], { description: 'how the newest facts came' }),
  agent: nullable(AgentViewSchema),
  insecureSkipTlsVerify: Type.Boolean(),
  polled: Type.Optional(
    Type.Array(Type.String(), {
      description:
        'kinds that are read with every round though they could be followed, and why: `pods: the role lacks watch on pods`; empty: none. Absent for who sees only a part',
    }),
  ),
  owner: Type.Optional(
    Type.String({
      description: 'which process of the hub owns the cluster: its log and its state; absent: one owns all',
    }),
  ),
  health: HealthSchema,
  message: Type.String(),
  reasons: Type.Array(Type.Object({ code: Type.String(), message: Type.String() })),
  /** older than three intervals: shown health is of the past */
  stale: Type.Boolean(),
  staleAfterMs: Type.Integer({ description: 'an age of the facts above this makes them stale' }),
  intervalMs: Type.Integer(),
  operatorIntervalMs: Type.Integer({ description: 'operators are read no more often than this' }),
  checkedAt: nullable(Type.Integer()),
  lastSyncAt: nullable(Type.Integer()),
  facts: nullable(ClusterSnapshotSchema),
  nodes: nullable(
    Type.Object({
      total: Type.Integer(),
      ready: Type.Integer(),
      notReady: Type.Integer(),
      unschedulable: Type.Integer(),
    }),
  ),
  pods: nullable(PodCountsSchema),
  namespaces: nullable(Type.Integer()),
  deployments: nullable(
    Type.Object({
      total: Type.Integer(),
      ready: nullable(Type.Integer({ description: 'null: a collector counted them and told no more' })),
    }),
  ),
  operators: nullable(Type.Object({ total: Type.Integer(), failing: Type.Integer() })),
  clusterOperators: nullable(
    Type.Object({ total: Type.Integer(), degraded: Type.Integer(), unavailable: Type.Integer() }),
  ),
  cpuCores: Capacity,
  memoryBytes: Capacity,
  /** the caller sees only a part: sums are over that part, and health speaks of that part */
  filtered: Type.Boolean(),
  heartbeats: Type.Array(Type.Object({ at: Type.Integer(), health: HealthSchema, durationMs: Type.Integer() })),
  earlier: Type.Optional(
    Type.Object(
      {
        knownSince: Type.Integer(),
        turns: Type.Array(Type.Object({ at: Type.Integer(), from: HealthSchema, to: HealthSchema })),
      },
      {
        description:
          'where the heartbeats reach back less than an hour, and there were more: turns of health before them within that hour, oldest first, and since when all of them are known',
      },
    ),
  ),
  parts: Type.Record(Type.String(), PartViewSchema),
})
/** One cluster as one caller sees it. */
export type ClusterView = Static<typeof ClusterViewSchema>

/** One node with its freshness; null: not known, or hidden. */
export const NodeViewSchema = Type.Intersect([
  Type.Omit(NodeSnapshotSchema, ['pods', 'requested']),
  Type.Object({
    pods: nullable(PodCountsSchema),
    requested: nullable(NodeSnapshotSchema.properties.requested),
    cluster: Type.String(),
    freshness: FreshnessSchema,
  }),
])
/** One node as one caller sees it. */
export type NodeView = Static<typeof NodeViewSchema>
/** One namespace with its freshness and counts. */
export const NamespaceViewSchema = Type.Intersect([
  NamespaceSnapshotSchema,
  Type.Object({
    cluster: Type.String(),
    freshness: FreshnessSchema,
    pods: nullable(PodCountsSchema),
    deployments: nullable(Type.Integer()),
  }),
])
/** One namespace as one caller sees it. */
export type NamespaceView = Static<typeof NamespaceViewSchema>
/** One deployment with its freshness. */
export const DeploymentViewSchema = Type.Intersect([
  DeploymentSnapshotSchema,
  Type.Object({ cluster: Type.String(), freshness: FreshnessSchema }),
])
/** One deployment as one caller sees it. */
export type DeploymentView = Static<typeof DeploymentViewSchema>
/** One operator of OLM with its freshness. */
export const OperatorViewSchema = Type.Intersect([
  OperatorSnapshotSchema,
  Type.Object({ cluster: Type.String(), freshness: FreshnessSchema }),
])
/** One operator of OLM as one caller sees it. */
export type OperatorView = Static<typeof OperatorViewSchema>
/** One OpenShift cluster operator with its freshness. */
export const ClusterOperatorViewSchema = Type.Intersect([
  ClusterOperatorSnapshotSchema,
  Type.Object({ cluster: Type.String(), freshness: FreshnessSchema }),
])
/** One OpenShift cluster operator as one caller sees it. */
export type ClusterOperatorView = Static<typeof ClusterOperatorViewSchema>
/** One published change of a cluster. */
export const EventViewSchema = Type.Object({
  type: Type.String(),
  cluster: Type.String(),
  at: Type.Integer(),
  data: nullable(Type.Record(Type.String(), Type.Unknown())),
})
/** One published change of a cluster, as far as the caller may know of it. */
export type EventView = Static<typeof EventViewSchema>

/** A page of a list. `total` counts what the caller may see after filters; `next` is the cursor of the next page. */
export const PageOf = <T extends import('typebox').TSchema>(item: T) =>
  Type.Object({
    items: Type.Array(item),
    total: Type.Integer(),
    next: nullable(Type.String()),
    part: nullable(PartViewSchema),
  })
/** One page of a list. `next` is the cursor of the page after it. */
export interface PageView<T> {
  readonly items: readonly T[]
  readonly total: number
  readonly next: string | null
  /** of the list's snapshot type; null where the list is not of one type (clusters, events, search) */
  readonly part: PartView | null
}

/** One hit of search as you type, best first. */
export const SearchHitSchema = Type.Object({
  kind: Type.Union([
    Type.Literal('cluster'),
    Type.Literal('node'),
    Type.Literal('namespace'),
    Type.Literal('operator'),
    Type.Literal('custom'),
  ]),
  cluster: Type.String(),
  name: Type.String(),
  detail: Type.String(),
  health: HealthSchema,
  type: Type.Optional(Type.String({ description: 'of kind custom: its resource type name' })),
  namespace: Type.Optional(Type.String({ description: 'of kind custom: empty for objects of the cluster' })),
})
/** One thing that a search found, with its cluster. */
export type SearchHit = Static<typeof SearchHitSchema>

/** Every answer of 400 and more. */
export const ProblemSchema = Type.Object({
  error: Type.String({ description: 'a sentence for people' }),
  code: Type.String({ description: 'stable snake_case, for programs' }),
  requestId: Type.String(),
  retryAfterSeconds: Type.Optional(Type.Integer()),
})
/** The body of every error: a stable code, a sentence for people, the id of the request. */
export type Problem = Static<typeof ProblemSchema>

/** Types of snapshot that have rows of their own on a cluster. */
export type RowType = 'node' | 'namespace' | 'deployment' | 'operator' | 'clusterOperator'
/** A row of any type, as one caller sees it. */
export type RowView = NodeView | NamespaceView | DeploymentView | OperatorView | ClusterOperatorView
/** One difference that a stream tells its client. */
export type StreamChange =
  | { op: 'put'; type: 'cluster'; view: ClusterView }
  | { op: 'remove'; type: 'cluster'; cluster: string }
  | { op: 'put'; type: RowType; cluster: string; view: RowView }
  | { op: 'remove'; type: RowType; cluster: string; name: string }
  /** every row of this type of this cluster was read again at this time: rows without a change are as old as this */
  | { op: 'part'; type: RowType; cluster: string; part: PartView }
  | { op: 'event'; type: 'event'; view: EventView }

/** GET /api/v1/session: who am I, for the page. */
export const SessionViewSchema = Type.Object({
  authenticated: Type.Boolean(),
  user: nullable(
    Type.Object({
      username: Type.String(),
      email: Type.String(),
      groups: Type.Array(Type.String()),
      method: Type.String(),
      administrator: Type.Boolean({ description: 'sees everything and may look through the eyes of others' }),
    }),
  ),
  /** set while an administrator looks through another's eyes: `user` is whose, this is who */
  actor: nullable(Type.String()),
  /** ms since the Unix epoch; null where nothing ends by itself */
  sessionEndsAt: nullable(Type.Integer()),
  /** ways to sign in here, for the sign-in page */
  signIn: Type.Array(
    Type.Object({ method: Type.Union([Type.Literal('oidc'), Type.Literal('password')]), title: Type.String() }),
  ),
  /** why what is shown may lack something, as long as this hub works as it does; null where it is proved to be whole */
  provisional: nullable(Type.String()),
  version: Type.String(),
})
/** Who asks, how to sign in, and which version answers. */
export type SessionView = Static<typeof SessionViewSchema>
