import { type Static, Type } from 'typebox'
import type { RouteContract } from './contract.ts'
import { Filter, InSet, maxPageSize, Name, PageQuery } from './parameters.ts'
import { HealthSchema, PartViewSchema } from './views.ts'

/**
 * What MetricSources collect, as the API shows it: types (by `resourceTypeName`), their rows on one cluster, their aggregations.
 * Which types somebody sees is a matter of policies: without a grant a type does not exist for them.
 */
const nullable = <T extends import('typebox').TSchema>(schema: T) => Type.Union([schema, Type.Null()])
const Scalar = Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()])
/** Of kind `any` a list or an object, too. */
const Value = Type.Union([Scalar, Type.Array(Type.Unknown()), Type.Record(Type.String(), Type.Unknown())])
const Document = (description: string) =>
  Type.Object({}, { additionalProperties: true, description: `${description}; readers ignore unknown fields` })

const UnitSchema = Type.Enum(['none', 'bytes', 'cores', 'percent', 'seconds', 'time'])

export const ColumnViewSchema = Type.Object({
  name: Type.String(),
  kind: Type.Enum(['string', 'number', 'boolean', 'null', 'any']),
  label: Type.String({ description: 'for people' }),
  unit: UnitSchema,
  computed: Type.Boolean(),
  extra: Type.Boolean({ description: 'shown only where somebody asks for it' }),
  restricted: Type.Boolean({ description: 'null, too, where policies hide what it is taken from' }),
  absence: Type.Enum(['none', 'unknown'], {
    description: 'what null means: the object has none, or it was not measured, computed or told',
  }),
  health: nullable(
    Type.Record(Type.String(), HealthSchema, {
      description:
        'what a word says of the object, `degraded` where it is not named; rows are sorted by that, the worst first',
    }),
  ),
  amount: nullable(
    Type.Object(
      { of: Type.String(), what: Type.Enum(['share', 'used', 'requested', 'allocatable', 'capacity']) },
      {
        description:
          'one of the amounts of a resource; the share is the used, else the requested part of what is allocatable',
      },
    ),
  ),
  measured: Type.Optional(
    Type.Boolean({ description: 'taken from `measured` of the cluster, which has an age of its own' }),
  ),
  refersTo: nullable(
    Type.Enum(['node', 'object'], {
      description: 'values name a node of the cluster, or an object of the namespace as Kind/name',
    }),
  ),
})
/** One column of a kind of row: label, kind and unit. */
export type ColumnView = Static<typeof ColumnViewSchema>

export const AggregationInfoViewSchema = Type.Object({
  name: Type.String(),
  function: Type.String(),
  field: nullable(Type.String()),
  groupBy: nullable(Type.String()),
  unit: UnitSchema,
  hasHistory: Type.Boolean({ description: 'kept over time: a metric of scope custom' }),
})
/** How an aggregation is declared: what it computes, and its unit. */
export type AggregationInfoView = Static<typeof AggregationInfoViewSchema>

/** A value, or one per group; null: of nothing. */
export const AggregatedSchema = Type.Union([Scalar, Type.Record(Type.String(), Scalar)])
/** Result of one aggregation: a value, or a value per group; null: none, or hidden. */
export type AggregatedView = Static<typeof AggregatedSchema>

/** One MetricSource that is in force, without anything of the clusters. */
export const SourceViewSchema = Type.Object({
  id: Type.String({ description: 'namespace/name of a MetricSource; the plural of a kind that every cluster has' }),
  type: Type.String(),
  title: Type.String({ description: 'for people' }),
  names: Type.Array(Type.String(), { description: 'what people type for it: plural, singular, short names' }),
  isDeclared: Type.Boolean({ description: 'by a MetricSource; else it is a kind that is compiled in' }),
  apiVersion: Type.String(),
  kind: Type.String(),
  scope: Type.Enum(['Namespaced', 'Cluster', 'Fleet'], { description: '`Fleet`: rows stand on no cluster' }),
  hash: Type.String(),
  intervalMs: Type.Integer(),
  watch: Type.Boolean(),
  sort: Type.String({ description: 'the column of the usual order, with a minus before it for the greatest first' }),
  columns: Type.Array(ColumnViewSchema),
  aggregations: Type.Array(AggregationInfoViewSchema, { description: 'those the caller may see somewhere' }),
})
/** A kind of row as the API describes it: columns, aggregations, interval. */
export type SourceView = Static<typeof SourceViewSchema>

/** A type on one cluster, for the caller. */
export const TypeOnClusterSchema = Type.Object({
  cluster: Type.String({ description: 'empty: of the fleet' }),
  displayName: Type.String(),
  part: PartViewSchema,
  truncated: Type.Boolean({ description: 'there are more objects than the source takes' }),
  errors: Type.Array(
    Type.Object({ namespace: Type.String(), outcome: Type.String(), code: Type.String(), message: Type.String() }),
    {
      description: 'namespaces that could not be read, as far as the caller may know of them',
    },
  ),
  errorCount: Type.Integer(),
  outdated: Type.Boolean({ description: 'collected by an older version of the declaration' }),
  stale: Type.Boolean({ description: 'older than three intervals' }),
  filtered: Type.Boolean({ description: 'policies hide rows: counts and aggregations are over what is shown' }),
  measured: Type.Optional(
    Type.Omit(PartViewSchema, ['count'], {
      description:
        'what measured columns are taken from: how it was last read, and when. Absent: nothing was, or it is not for the caller',
    }),
  ),
  aggregations: nullable(
    Type.Record(Type.String(), AggregatedSchema, { description: 'null: measurements are not for the caller' }),
  ),
})
/** How one type stands on one cluster: outcome, age, counts, errors. */
export type TypeOnClusterView = Static<typeof TypeOnClusterSchema>

export const TypeViewSchema = Type.Object({
  type: Type.String(),
  sources: Type.Array(SourceViewSchema, { description: 'of one type name there should be one; the first is shown' }),
  clusters: Type.Array(TypeOnClusterSchema, { description: 'clusters the caller sees it on, by name' }),
  count: nullable(Type.Integer({ description: 'rows the caller may see, over all clusters; null: none was read' })),
})
/** One type with how it stands on each cluster of the caller. */
export type TypeView = Static<typeof TypeViewSchema>

export const RowLinkViewSchema = Type.Object({
  column: nullable(Type.String({ description: 'whose value leads there; null: the namespace' })),
  type: Type.String({ description: 'nodes, namespaces, or a type of rows' }),
  id: Type.String({ description: 'of the row there' }),
})
export type RowLinkView = Static<typeof RowLinkViewSchema>

export const TableRowViewSchema = Type.Object({
  id: Type.String({ description: 'namespace/name, or name' }),
  namespace: Type.String({ description: 'empty for objects of the cluster' }),
  name: Type.String(),
  labels: Type.Record(Type.String(), Type.String()),
  values: Type.Record(Type.String(), Value),
  reference: Type.Optional(Type.String({ description: 'how other rows name it: Kind/name; where some may' })),
  links: Type.Optional(Type.Array(RowLinkViewSchema, { description: 'to what is collected and the caller may see' })),
})
/** One row of one type on one cluster. */
export type TableRowView = Static<typeof TableRowViewSchema>

/** Rows of one type on one cluster, with what goes for all of them. */
export const RowsPageSchema = Type.Object({
  items: Type.Array(TableRowViewSchema),
  total: Type.Integer({ description: 'rows the caller may see that pass the filters of the question' }),
  next: nullable(Type.String()),
  source: SourceViewSchema,
  on: TypeOnClusterSchema,
  referredBy: Type.Optional(
    Type.Array(
      Type.Object({
        type: Type.String(),
        column: Type.String(),
        title: Type.String({ description: 'what those rows are to the object they name' }),
        kinds: Type.Array(Type.String(), { description: 'of objects that are named so' }),
      }),
      {
        description: 'columns of types whose values may be references of these rows',
      },
    ),
  ),
})
/** One page of rows of one type on one cluster, with how they were collected. */
export type RowsPageView = Static<typeof RowsPageSchema>

const TypeName = Type.String({ minLength: 1, maxLength: 63, description: 'resource type name' })

export const listTypes = {
  method: 'GET',
  url: '/api/v2/types',
  access: 'filtered',
  schema: {
    operationId: 'listTypes',
    summary: 'Types that MetricSources collect, with what the caller sees of them on each cluster',
    querystring: Type.Object({ cluster: Filter('only what is on this cluster') }),
    response: Type.Object({ items: Type.Array(TypeViewSchema) }),
  },
} as const satisfies RouteContract

export const getType = {
  method: 'GET',
  url: '/api/v2/types/:type',
  access: 'filtered',
  schema: {
    operationId: 'getType',
    summary: 'One type',
    params: Type.Object({ type: TypeName }),
    response: TypeViewSchema,
  },
} as const satisfies RouteContract

/** Which rows of a type are meant. */
const RowsFilterQuery = {
  source: Filter('where several MetricSources have this type name: namespace/name of the one'),
  namespace: Filter('exact'),
  labels: Type.Optional(
    Type.String({
      maxLength: 1024,
      description: 'a label selector, as kubectl takes it: app=web,env in (prod,stage),!beta',
    }),
  ),
  q: Type.Optional(
    Type.String({ maxLength: 200, description: 'words; each must occur in the name, namespace or a value' }),
  ),
  where: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 512 }), {
      maxItems: 10,
      description:
        '`field=text`, `field~part`, `field>number`, and `!=`, `!~`, `<`, `>=`, `<=`; `*` is any field of `~`. `||` stands between alternatives (repeatable, all must hold)',
    }),
  ),
}

const ofClusters = Type.Optional(
  Type.Array(Type.String({ maxLength: 253 }), { maxItems: 1000, description: 'repeatable; default all' }),
)

const RowsQuery = {
  ...RowsFilterQuery,
  sort: Type.Optional(
    Type.String({
      maxLength: 128,
      description: 'name, namespace, cluster or a column; default name, or cluster over many',
    }),
  ),
  format: Type.Optional(Type.Union([Type.Literal('json'), Type.Literal('csv')])),
  headings: Type.Optional(
    Type.Union([Type.Literal('fields'), Type.Literal('labels')], {
      default: 'fields',
      description:
        'of the CSV; `labels`: units in the headings, times in RFC 3339, yes and no, and the columns Cluster, Display name and As of',
    }),
  ),
  columns: Type.Optional(
    Type.Array(Type.String({ maxLength: 128 }), {
      maxItems: 200,
      description: 'of the CSV: only columns of these names, besides where each row is (repeatable)',
    }),
  ),
  ...PageQuery,
}

export const FleetRowSchema = Type.Object({
  cluster: Type.String(),
  ...TableRowViewSchema.properties,
})
/** One row of one type, with its cluster. */
export type FleetRowView = Static<typeof FleetRowSchema>

/** Rows of one type over all clusters the caller sees it on. */
export const FleetPageSchema = Type.Object({
  items: Type.Array(FleetRowSchema),
  total: Type.Integer({ description: 'rows the caller may see that pass the filters of the question' }),
  next: nullable(Type.String()),
  source: nullable(SourceViewSchema),
  clusters: Type.Array(TypeOnClusterSchema, { description: 'how fresh the rows of each cluster are, by name' }),
})
/** One page of rows of one type over all clusters of the caller. */
export type FleetPageView = Static<typeof FleetPageSchema>

export const listFleetRows = {
  method: 'GET',
  url: '/api/v2/rows/:type',
  access: 'filtered',
  schema: {
    operationId: 'listFleetRows',
    summary: 'Rows of one type over all clusters; with format=csv or Accept: text/csv all of them as CSV',
    params: Type.Object({ type: TypeName }),
    querystring: Type.Object({
      cluster: ofClusters,
      ...InSet,
      aggregations: Type.Optional(
        Type.Boolean({
          default: true,
          description:
            'false: `clusters` without aggregations (null), which cost those who see a part a look at all their rows',
        }),
      ),
      ...RowsQuery,
    }),
    response: FleetPageSchema,
  },
} as const satisfies RouteContract

export const RowGroupSchema = Type.Object({
  values: Type.Array(Scalar, { description: 'of the columns of `by`, in their order; null: none' }),
  count: Type.Integer({ description: 'rows' }),
  health: nullable(HealthSchema),
})
/** Rows of one type that are equal in some columns: how many, and the worst they say of themselves. */
export type RowGroupView = Static<typeof RowGroupSchema>

export const RowGroupsSchema = Type.Object({
  by: Type.Array(Type.String()),
  groups: Type.Array(RowGroupSchema, { description: 'the first `limit` of them' }),
  others: Type.Object(
    {
      groups: Type.Integer({ description: 'how many' }),
      count: Type.Integer({ description: 'rows in them' }),
      health: nullable(HealthSchema),
    },
    { description: 'the groups that are not named, as one' },
  ),
  total: nullable(
    Type.Integer({
      description: 'rows the caller may see that pass the filters of the question; null: no cluster was read',
    }),
  ),
  observedAt: nullable(
    Type.Object(
      { oldest: Type.Integer(), newest: Type.Integer() },
      { description: 'when the clusters that are counted were read, ms; null: none was' },
    ),
  ),
  stale: Type.Array(Type.String(), { description: 'clusters whose rows are counted and older than three intervals' }),
  truncated: Type.Array(Type.String(), { description: 'clusters that have more rows than were taken' }),
  unread: Type.Array(
    Type.Object({ cluster: Type.String(), outcome: PartViewSchema.properties.outcome, message: Type.String() }),
    {
      description: 'clusters of which no rows are known: they are not counted, and not 0',
    },
  ),
})
/** Rows of one type over all clusters of the caller, counted by the values of some columns. */
export type RowGroupsView = Static<typeof RowGroupsSchema>

export const groupFleetRows = {
  method: 'GET',
  url: '/api/v2/groups/:type',
  access: 'filtered',
  schema: {
    operationId: 'groupFleetRows',
    summary: 'How many rows of one type have each value of some columns, over all clusters',
    params: Type.Object({ type: TypeName }),
    querystring: Type.Object({
      by: Type.Array(Type.String({ minLength: 1, maxLength: 128 }), {
        minItems: 1,
        maxItems: 3,
        description: 'name, namespace, cluster or a column (repeatable: a group is of one value of each)',
      }),
      cluster: ofClusters,
      ...InSet,
      limit: Type.Optional(
        Type.Integer({ minimum: 1, maximum: maxPageSize, default: 20, description: 'groups that are named' }),
      ),
      sort: Type.Optional(
        Type.Union([Type.Literal('count'), Type.Literal('health')], {
          default: 'count',
          description: 'the largest first, or the worst',
        }),
      ),
      ...RowsFilterQuery,
    }),
    response: RowGroupsSchema,
  },
} as const satisfies RouteContract

export const listCustomRows = {
  method: 'GET',
  url: '/api/v2/clusters/:name/types/:type',
  access: 'filtered',
  schema: {
    operationId: 'listCustomRows',
    summary: 'Rows of one type on one cluster; with format=csv or Accept: text/csv all of them as CSV',
    params: Type.Object({ name: Name('cluster'), type: TypeName }),
    querystring: Type.Object(RowsQuery),
    response: RowsPageSchema,
  },
} as const satisfies RouteContract

// ── administrators: declarations ─────────────────────────────────────────────────────────────────────────────────────

export const SourceFindingSchema = Type.Object({
  severity: Type.Union([Type.Literal('error'), Type.Literal('warning')]),
  code: Type.String(),
  path: Type.String(),
  message: Type.String(),
  at: nullable(Type.Object({ text: Type.String(), from: Type.Integer(), to: Type.Integer() })),
  suggestion: nullable(Type.String()),
})
/** One thing the compiler says of a declaration, with its place. */
export type SourceFindingView = Static<typeof SourceFindingSchema>

export const SourceTrialSchema = Type.Object({
  findings: Type.Array(SourceFindingSchema),
  source: nullable(SourceViewSchema),
  /** null where nothing was read: findings are errors, no cluster was named, or it cannot be read from here */
  result: nullable(
    Type.Object({
      part: PartViewSchema,
      truncated: Type.Boolean(),
      durationMs: Type.Integer(),
      items: Type.Array(TableRowViewSchema, { description: 'the first 200' }),
      total: Type.Integer(),
      aggregations: Type.Record(Type.String(), AggregatedSchema),
      reports: Type.Array(
        Type.Object({
          field: Type.String(),
          missing: Type.Integer(),
          malformed: Type.Integer(),
          example: Type.String(),
        }),
      ),
      errors: Type.Array(
        Type.Object({ namespace: Type.String(), outcome: Type.String(), code: Type.String(), message: Type.String() }),
      ),
    }),
  ),
  /** why nothing was read, for people; null where something was, or nothing was asked for */
  note: nullable(Type.String()),
})
/** What a trial of a declaration found, and its rows where a cluster was named. */
export type SourceTrialView = Static<typeof SourceTrialSchema>

/** Compiles, and reads a chosen cluster once; stores nothing. */
export const trySource = {
  method: 'POST',
  url: '/api/v2/metric-sources/try',
  access: 'administrator',
  schema: {
    operationId: 'trySource',
    summary:
      'What a MetricSource would give: findings, and rows and aggregations of a chosen cluster; nothing is stored',
    body: Type.Object({
      manifest: Type.String({ minLength: 1, maxLength: 262_144, description: 'YAML or JSON, one MetricSource' }),
      cluster: Type.Optional(Type.String({ minLength: 1, maxLength: 253 })),
    }),
    response: SourceTrialSchema,
  },
} as const satisfies RouteContract

export const DeclaredSourceSchema = Type.Object({
  source: SourceViewSchema,
  manifest: Type.String({ description: 'as YAML, ready for kubectl apply' }),
  clusters: Type.Integer({ description: 'that have rows of it' }),
  rows: Type.Integer(),
  errors: Type.Integer({ description: 'clusters whose last collection failed or was not whole' }),
})
/** A MetricSource in force, with its declaration. */
export type DeclaredSourceView = Static<typeof DeclaredSourceSchema>

export const listSources = {
  method: 'GET',
  url: '/api/v2/metric-sources',
  access: 'administrator',
  schema: {
    operationId: 'listSources',
    summary: 'MetricSources that are in force, with their declarations; and functions of the expression language',
    response: Type.Object({
      items: Type.Array(DeclaredSourceSchema),
      functions: Type.Array(Type.Object({ name: Type.String(), signature: Type.String(), description: Type.String() })),
    }),
  },
} as const satisfies RouteContract
/** MetricSources in force, and the functions of the expression language. */
export type SourcesView = Static<(typeof listSources)['schema']['response']>

// ── the documented routes ────────────────────────────────────────────────────────────────────────────────────────────

export const v1CustomResources = {
  method: 'GET',
  url: '/api/v1/clusters/:name/custom/:type',
  access: 'filtered',
  schema: {
    operationId: 'v1CustomResources',
    summary: 'Rows of one type on one cluster, with its aggregations',
    params: Type.Object({ name: Name('cluster'), type: TypeName }),
    querystring: Type.Object({
      namespace: Filter('exact'),
      sort_by: Filter('_name, _namespace, _id, or a field'),
      sort_order: Filter('desc reverses'),
      page: Filter('from 1; what is no positive number counts as 1'),
      page_size: Filter('1 to 10 000; what is no positive number counts as 100'),
      include_aggregations: Filter('false leaves them out'),
    }),
    response: Document('resourceTypeName, cluster, items, filtered, pagination, collectedAt, truncated, aggregations'),
  },
} as const satisfies RouteContract

export const v1CustomTypes = {
  method: 'GET',
  url: '/api/v1/custom-types',
  access: 'filtered',
  schema: {
    operationId: 'v1CustomTypes',
    summary: 'Types the caller sees on some cluster, by name',
    querystring: Type.Object({
      include_source_details: Filter('exactly true'),
      include_cluster_availability: Filter('exactly true'),
    }),
    response: Type.Array(Document('resourceTypeName, sourceId')),
  },
} as const satisfies RouteContract

export const v1CustomTypeClusters = {
  method: 'GET',
  url: '/api/v1/custom-types/clusters',
  access: 'filtered',
  schema: {
    operationId: 'v1CustomTypeClusters',
    summary: 'Counts and aggregations of types, cluster by cluster',
    querystring: Type.Object({
      type: Type.Optional(
        Type.Array(Type.String({ maxLength: 253 }), { maxItems: 100, description: 'required; repeatable' }),
      ),
      clusters: Type.Optional(
        Type.Array(Type.String({ maxLength: 253 }), { maxItems: 1000, description: 'repeatable; default all' }),
      ),
      include_aggregations: Filter('exactly true'),
    }),
    response: Type.Array(Document('cluster, resourceTypeName, count, lastCollection, aggregations')),
  },
} as const satisfies RouteContract
