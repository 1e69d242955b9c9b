import { type Static, Type } from 'typebox'
import { StatusConditions } from './conditions.ts'
import { defineKind, type KindObject } from './kind.ts'
import { OneOf } from './words.ts'

const Int32 = (minimum: number, description: string) =>
  Type.Integer({ minimum, maximum: 2147483647, format: 'int32', description })
const Text = (maxLength: number, description: string) => Type.String({ maxLength, description })
const Patterns = (description: string) =>
  Type.Optional(Type.Array(Text(253, 'pattern'), { maxItems: 1000, description }))

const Source = Type.Object(
  {
    apiVersion: Type.String({ maxLength: 253, description: '`v1`, or group/version such as `apps/v1`' }),
    kind: Type.String({ maxLength: 63, description: 'kind of the objects, such as PersistentVolumeClaim' }),
    resource: Type.Optional(
      Text(
        63,
        'plural name in the API, such as persistentvolumeclaims; default: what the cluster says the kind is called',
      ),
    ),
    scope: Type.Optional(
      OneOf(['Namespaced', 'Cluster'], {
        default: 'Namespaced',
        description: 'whether the objects live in namespaces',
      }),
    ),
    namespaces: Type.Optional(
      Type.Object(
        {
          include: Patterns('names or patterns (`*` any text, `?` one character); default: all'),
          exclude: Patterns('the same; wins over include'),
        },
        { description: 'which namespaces are read; ignored for scope Cluster' },
      ),
    ),
    labelSelector: Type.Optional(
      Type.Object(
        {
          matchLabels: Type.Optional(Type.Record(Type.String(), Type.String(), { description: 'label to value' })),
          matchExpressions: Type.Optional(
            Type.Array(
              Type.Object({
                key: Text(317, 'label'),
                operator: Text(64, 'In, NotIn, Exists or DoesNotExist'),
                values: Type.Optional(
                  Type.Array(Text(63, 'value'), { maxItems: 1000, description: 'for In and NotIn' }),
                ),
              }),
              { maxItems: 100, description: 'further conditions; all must hold' },
            ),
          ),
        },
        { description: 'only objects with these labels' },
      ),
    ),
  },
  { description: 'what is listed' },
)

const Field = Type.Object({
  name: Text(128, 'name in rows, expressions, filters and policies'),
  path: Text(
    1024,
    'where the value is, such as `.status.capacity.storage`, `.metadata.labels["app.kubernetes.io/name"]`, `.spec.containers[*].image` or `.status.conditions[?(@.type=="Ready")].status`',
  ),
  type: Type.Optional(
    OneOf(['string', 'integer', 'float', 'boolean', 'quantity', 'cpu', 'bytes', 'timestamp', 'arrayLength'], {
      default: 'string',
      description:
        'what it is read as. quantity: a Kubernetes quantity in its base unit, but text ending in m in thousandths; cpu: cores; bytes: bytes; timestamp: RFC 3339 text',
    }),
  ),
  default: Type.Optional(Text(1024, 'taken where nothing is found, or null, or what does not fit the type')),
})

const Computed = Type.Object({
  name: Text(128, 'name in rows, later expressions, filters and policies'),
  expression: Text(16_384, 'over fields and computed names above, such as `round((used / capacity) * 100, 2)`'),
  type: Type.Optional(
    OneOf(['string', 'integer', 'float', 'boolean'], {
      description: 'what the result is made; default: a number where the expression gives one, else as it is',
    }),
  ),
})

const Aggregation = Type.Object({
  name: Text(128, 'name of the result; with the prefix clusterpulse_custom_resource_ that of its history'),
  field: Type.Optional(Text(128, 'field or computed name; not for count')),
  function: OneOf(['count', 'sum', 'avg', 'min', 'max', 'percentile', 'distinct'], {
    description: 'what is made of the values',
  }),
  filter: Type.Optional(
    Type.Object(
      {
        field: Text(128, 'field or computed name'),
        operator: OneOf(
          ['equals', 'notEquals', 'contains', 'startsWith', 'endsWith', 'greaterThan', 'lessThan', 'in', 'matches'],
          { description: 'matches: a regular expression (RE2), found anywhere' },
        ),
        value: Text(4096, 'what the field is compared with; for in: a JSON list, or values with commas between'),
      },
      { description: 'only rows that pass' },
    ),
  ),
  groupBy: Type.Optional(Text(128, 'field or computed name: one result per value of it')),
  percentile: Type.Optional(Type.Integer({ description: '0 to 100; default 95' })),
})

const Collection = Type.Object(
  {
    intervalSeconds: Type.Optional(Int32(30, 'time between two collections; default 60')),
    timeoutSeconds: Type.Optional(Int32(5, 'limit of one collection of one cluster; default 30')),
    maxResources: Type.Optional(
      Int32(1, 'objects kept per cluster; more are left out and the result says so; default 5000'),
    ),
    batchSize: Type.Optional(Int32(10, 'objects per page; default 500')),
    retryAttempts: Type.Optional(Int32(0, 'further tries of a page that failed in passing; default 3')),
    parallelism: Type.Optional(Int32(1, 'namespaces listed at once; default 3')),
    watch: Type.Optional(
      Type.Boolean({
        description:
          'follow changes between collections: seen within seconds, at the price of one open watch per cluster',
      }),
    ),
  },
  { description: 'how often, how much' },
)

const Rbac = Type.Object(
  {
    resourceTypeName: Text(63, 'name under which policies, the API and the page know these rows'),
    filterableFields: Type.Optional(
      Type.Array(Text(128, 'field'), {
        maxItems: 1000,
        description: 'fields that policies may filter by; default: all',
      }),
    ),
    filterAggregations: Type.Optional(
      Type.Boolean({
        default: true,
        description: 'compute aggregations anew for people who see only a part; false: they see the whole numbers',
      }),
    ),
  },
  { description: 'who sees what is declared in MonitorAccessPolicies by this name' },
)

const Spec = Type.Object(
  {
    source: Source,
    fields: Type.Array(Field, { maxItems: 256, description: 'values taken from each object; at least one' }),
    computed: Type.Optional(
      Type.Array(Computed, { maxItems: 256, description: 'values computed from them, in order' }),
    ),
    aggregations: Type.Optional(Type.Array(Aggregation, { maxItems: 256, description: 'summaries per cluster' })),
    collection: Type.Optional(Collection),
    rbac: Type.Optional(Rbac),
  },
  { description: 'what is wanted' },
)

const Count = (description: string) => Type.Optional(Type.Integer({ minimum: 0, description }))
const Status = Type.Object(
  {
    phase: Type.Optional(
      OneOf(['Pending', 'Active', 'Degraded', 'Error', 'Disabled'], {
        description:
          'Pending: no cluster was read by this revision yet; Active: every cluster that answers and serves the kind was; Degraded: some could not be read; Error: none could, none serves the kind, or the declaration cannot be used',
      }),
    ),
    lastCollectionTime: Type.Optional(
      Type.String({
        format: 'date-time',
        description:
          'of the newest collection of any cluster; written at most once a minute while nothing else changes',
      }),
    ),
    lastCollectionDuration: Type.Optional(Text(64, 'of the slowest cluster, such as 1.234s')),
    resourcesCollected: Count('rows over all clusters'),
    clustersCollected: Count('clusters that were read'),
    errorsLastRun: Count('clusters and namespaces that could not be read'),
    message: Type.Optional(Text(32_768, 'for people')),
    conditions: Type.Optional(StatusConditions),
    fieldValidation: Type.Optional(
      Type.Array(
        Type.Object({
          field: Text(128, 'field or computed name'),
          status: OneOf(['valid', 'invalid', 'warning'], { description: 'how it can be read' }),
          message: Type.Optional(Text(4096, 'why, and how often')),
        }),
        { maxItems: 512, description: 'each field as it was read in the last collections' },
      ),
    ),
    clusters: Type.Optional(
      Type.Array(
        Type.Object({
          name: Text(253, 'cluster'),
          collected: Type.Boolean({ description: 'the last collection was complete' }),
          resources: Count('rows'),
          truncated: Type.Optional(Type.Boolean({ description: 'there are more objects than maxResources' })),
          errors: Count('namespaces, or the cluster itself, that could not be read'),
          reason: Type.Optional(Text(64, 'code of the first error')),
          message: Type.Optional(Text(1024, 'the first error, for people')),
          lastCollectionTime: Type.Optional(
            Type.String({ format: 'date-time', description: 'of the last complete collection' }),
          ),
        }),
        { maxItems: 50, description: 'those with errors first, then by name; at most 50' },
      ),
    ),
  },
  { description: 'what is seen; written by the hub' },
)

/** What else to read from clusters: any kind, its fields, what is computed from them, and their sums. */
export const metricSource = defineKind({
  group: 'clusterpulse.io',
  version: 'v1alpha1',
  kind: 'MetricSource',
  plural: 'metricsources',
  singular: 'metricsource',
  shortNames: ['ms', 'metricsrc'],
  description:
    'What else to read from clusters: objects of any kind, the fields that matter, values computed from them, and sums over them. Seen in lists, charts and policies under its resource type name.',
  columns: [
    { name: 'Source Kind', type: 'string', jsonPath: '.spec.source.kind' },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
    { name: 'Resources', type: 'integer', jsonPath: '.status.resourcesCollected' },
    { name: 'Clusters', type: 'integer', jsonPath: '.status.clustersCollected' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    { name: 'Type', type: 'string', jsonPath: '.spec.rbac.resourceTypeName', priority: 1 },
    { name: 'Errors', type: 'integer', jsonPath: '.status.errorsLastRun', priority: 1 },
    { name: 'Message', type: 'string', jsonPath: '.status.message', priority: 1 },
  ],
  spec: Spec,
  status: Status,
  example: {
    apiVersion: 'clusterpulse.io/v1alpha1',
    kind: 'MetricSource',
    metadata: { name: 'pvc-capacity', namespace: 'clusterpulse' },
    spec: {
      source: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespaces: { exclude: ['kube-*'] } },
      fields: [
        { name: 'phase', path: '.status.phase' },
        { name: 'capacity', path: '.status.capacity.storage', type: 'bytes' },
      ],
      computed: [{ name: 'capacityGiB', expression: 'if(capacity > 0, round(capacity / 1073741824, 2), null)' }],
      aggregations: [{ name: 'total_capacity_bytes', function: 'sum', field: 'capacity' }],
      rbac: { resourceTypeName: 'pvc' },
    },
  },
})

/** Which objects are read, which fields become columns, what is computed and aggregated; intervals in seconds. */
export type MetricSourceSpec = Static<typeof Spec>
/** What the hub found: phase, conditions, findings of the compilation, and how collection stands on each cluster. */
export type MetricSourceStatus = Static<typeof Status>
/** The object as the hub's API keeps it. */
export type MetricSource = KindObject<MetricSourceSpec, MetricSourceStatus>
