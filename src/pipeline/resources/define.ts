import { createHash } from 'node:crypto'
import { type Collector, listOf, type Read as ReadOf } from '#collect'
import { type KubeObject, type Message, projected, type Resource } from '#kube'
import {
  type AggregationInfo,
  type AggregationPlan,
  aggregate,
  type BuiltInResource,
  type ColumnInfo,
  type ResourceDescriptor,
  type ResourceTarget,
  rowCollector,
  sumsOfNothing,
} from '#metricsource'
import type { Health, SourceId } from '#model'
import { type Read, ResourceRowBuilder } from './resource-row-builder.ts'

/** One column: what people read above it, and how it is read from an object. null: see `absence`. */
export interface ColumnSpec<R = Read> {
  readonly label: string
  /** `any`: a list or an object, for who looks at one row */
  readonly kind: 'string' | 'number' | 'boolean' | 'any'
  /** default none; times are milliseconds since the Unix epoch */
  readonly unit?: ColumnInfo['unit']
  /** the value names a node, or an object of the same namespace: as `Kind/name`, or by its name where `reverse` has one kind */
  readonly refersTo?: 'node' | 'object'
  /** what the rows are to objects of these kinds, where a link from there is worth it */
  readonly reverse?: ColumnInfo['reverse']
  /** shown only where somebody asks for it; default false */
  readonly isExtra?: boolean
  /** of a table that would else be wider than most screens: shown where somebody asks for it; default false */
  readonly isWide?: boolean
  /** what null means; default: none, but of what policies hide, and of amounts, it is not known */
  readonly absence?: ColumnInfo['absence']
  /** null, too, where policies hide what it is taken from; default false */
  readonly isRestricted?: boolean
  /** what it says of namespaces besides that of the row; default: nothing */
  readonly tells?: ColumnInfo['tells']
  readonly isVersion?: boolean
  readonly amount?: ColumnInfo['amount']
  /** what a word in it says of the object; other words are `degraded` */
  readonly health?: Readonly<Record<string, Health>>
  readonly read: R
}

export type Counts = Readonly<Record<string, Pick<AggregationPlan, 'function' | 'field' | 'groupBy'>>>

export interface ResourceSpec {
  /** plural, lower case: the name in policies, addresses and commands */
  readonly name: string
  readonly singular: string
  /** further names people type, such as pvc */
  readonly shortNames?: readonly string[]
  /** for people, such as Pods */
  readonly title: string
  /** lists of what it is made of; where it is more than one kind of object, keys of rows tell the kinds apart */
  readonly reads: readonly ListRead[]
  /** of objects that are in none themselves: the namespace their row stands in, '' for none */
  readonly namespaceOf?: (object: KubeObject) => string
  /**
   * `pods`: the filters that policies have for pods; `namespaced`: what stands in visible namespaces, narrowed by its own name;
   * `events`: the same, and only with the object it is about; `named`: what is of any kind, where a policy names it or filters nothing
   */
  readonly access: 'pods' | 'namespaced' | 'events' | 'named'
  /** time between two reads, ms */
  readonly everyMs: number
  /** rows of one cluster at most */
  readonly maxRows: number
  /** of what ages: how many of the newest, by the number in a column, are rows; default: all, up to `maxRows` */
  readonly newest?: { readonly column: string; readonly most: number }
  readonly columns: Readonly<Record<string, ColumnSpec>>
  /** columns that are taken from another table of the cluster */
  readonly measured?: MeasuredSpec
  /** the column of the usual order, with a minus before it for the greatest first; default: the name */
  readonly sort?: string
  /** what is counted over rows; groups are columns */
  readonly counts: Counts
}

/**
 * A kind of row that is compiled in: declared here once, and every channel is made of the declaration (collection, roles, wire,
 * state, access, API, CSV, stream, search, page, command line).
 */
export function defineResource(spec: ResourceSpec): BuiltInResource & { readonly collector: Collector } {
  const { name, singular, shortNames = [], title, reads, namespaceOf, access, everyMs, maxRows, columns, counts } = spec
  const { sort, newest, measured } = spec
  const entries = Object.entries(columns)
  const targets = reads.map(({ resource }) => targetFrom(resource))
  const [first] = targets
  if (!first) throw new Error(`${name} reads nothing`)
  const isOne = targets.length === 1
  const info = columnsInfo(columns)
  const aggregated = aggregationsOf(counts, columns)
  const fields = entries.map(([column]) => column)
  const readers = entries.map(([, { read }]) => read)
  const kind = {
    id: name,
    typeName: name,
    title,
    singular,
    shortNames,
    hash: hashOf(targets, info),
    access,
    target: isOne
      ? { ...first, ...(namespaceOf && { scope: 'Namespaced' as const }) }
      : { ...first, kind: title, apiVersion: apiVersionsOf(targets) },
    targets,
    labelSelector: undefined,
    wantsNamespace: () => true,
    exactNamespaces: undefined,
    wantsAllNamespaces: true,
    columns: info,
    ...(sort !== undefined && { sort }),
    ...aggregated,
    ...(measured && measuredOf(measured, info, aggregated.aggregations)),
    filterAggregations: true,
    collection: { ...collectionOf(everyMs, maxRows), watch: true },
    rowName: isOne ? (key: string) => key : (key: string) => key.slice(0, key.indexOf(':')),
    collect: (_now, { kind }) =>
      new ResourceRowBuilder(fields, readers, { kind, isInKey: !isOne, namespaceOf, newest }),
  } satisfies ResourceDescriptor
  return Object.freeze({ ...kind, collector: rowCollector(kind, reads) })
}

/** A kind whose rows an agent hands in: they are made of no list. */
export interface HandedSpec
  extends Pick<
    ResourceSpec,
    'name' | 'singular' | 'shortNames' | 'title' | 'access' | 'everyMs' | 'maxRows' | 'sort' | 'counts'
  > {
  /** for people: where rows come from */
  readonly target: ResourceTarget
  readonly columns: Readonly<Record<string, ColumnSpec<undefined>>>
  readonly rowName: ResourceDescriptor['rowName']
}

export function defineHandedResource(spec: HandedSpec): BuiltInResource {
  const {
    name,
    singular,
    shortNames = [],
    title,
    access,
    everyMs,
    maxRows,
    columns,
    counts,
    target,
    sort,
    rowName,
  } = spec
  const info = columnsInfo(columns)
  return Object.freeze({
    ...{ id: name, typeName: name, title, singular, shortNames, access, target, rowName },
    hash: hashOf([target], info),
    targets: [],
    labelSelector: undefined,
    wantsNamespace: () => true,
    exactNamespaces: undefined,
    wantsAllNamespaces: true,
    columns: info,
    ...(sort !== undefined && { sort }),
    ...aggregationsOf(counts, columns),
    filterAggregations: true,
    collection: { ...collectionOf(everyMs, maxRows), watch: true },
    collect() {
      throw new Error(`${name} is read of no list`)
    },
    collector: undefined,
  } satisfies BuiltInResource)
}

const collectionOf = (everyMs: number, maxRows: number) => ({
  intervalMs: everyMs,
  timeoutMs: Math.max(everyMs, 30_000),
  maxResources: maxRows,
  batchSize: 500,
  retryAttempts: 1,
  parallelism: 3,
})

/** What is measured of the objects is in another table: it moves all the time. */
export interface MeasuredSpec {
  readonly source: SourceId
  /** by its field there; those that the kind has itself are overlaid */
  readonly columns: Readonly<Record<string, MeasuredColumn>>
  /** which of them are summed over rows, under their own names */
  readonly sums?: readonly string[]
}

type MeasuredColumn = Pick<ColumnSpec, 'label' | 'unit' | 'isExtra' | 'isWide' | 'amount'>

/** What a kind says of columns that are not its own; they are no part of what its hash is of. */
export function measuredOf(
  { source, columns, sums = [] }: MeasuredSpec,
  own: readonly ColumnInfo[],
  aggregations: readonly AggregationInfo[],
): Pick<ResourceDescriptor, 'measured' | 'columns' | 'aggregations'> {
  const infos = columnsInfo(
    Object.fromEntries(
      Object.entries(columns).map(([name, column]) => [
        name,
        { ...column, kind: 'number', absence: 'unknown', isRestricted: true, read: undefined } as const,
      ]),
    ),
  ).map((info) => ({ ...info, isMeasured: true }))
  const isOwn = (name: string) => own.some((column) => column.name === name)
  return {
    measured: { source, fields: Object.keys(columns), sums },
    columns: [
      ...own.map((column) => (columns[column.name] ? { ...column, isMeasured: true } : column)),
      ...infos.filter(({ name }) => !isOwn(name)),
    ],
    aggregations: [
      ...aggregations,
      ...sums.map((name) => ({
        ...({ name, function: 'sum', field: name, groupBy: undefined, unit: columns[name]?.unit ?? 'none' } as const),
        hasHistory: false,
      })),
    ],
  }
}

/** What says how a column is shown. */
const NOT_KEPT: ReadonlySet<string> = new Set<keyof ColumnInfo>([
  ...(['health', 'isRestricted', 'tells', 'isVersion', 'amount', 'absence', 'isWide'] as const),
])

/** From what is kept alone, so that every build that keeps the same names it alike. */
export const hashOf = (targets: readonly ResourceTarget[], info: readonly ColumnInfo[]): string =>
  createHash('sha256')
    .update(
      JSON.stringify([
        targets.map(({ kind }) => kind),
        info.map((column) =>
          Object.fromEntries(Object.entries(column).filter(([property]) => !NOT_KEPT.has(property))),
        ),
      ]),
    )
    .digest('hex')
    .slice(0, 16)

export const columnsInfo = (columns: Readonly<Record<string, ColumnSpec<unknown>>>): readonly ColumnInfo[] =>
  Object.entries(columns).map(
    ([
      name,
      {
        label,
        kind,
        unit = 'none',
        isExtra = false,
        refersTo,
        reverse,
        isRestricted,
        tells,
        isVersion,
        amount,
        health,
        absence,
        isWide,
      },
    ]) => ({
      ...{ name, label, kind },
      type: 'any',
      isComputed: false,
      ...{ unit, isExtra },
      ...(refersTo && { refersTo }),
      ...(reverse && { reverse }),
      ...(isRestricted && { isRestricted }),
      ...(tells && { tells }),
      ...(isVersion && { isVersion }),
      ...(amount && { amount }),
      ...(health && { health }),
      ...(absence && { absence }),
      ...(isWide && { isWide }),
    }),
  )

/** What is counted over rows, and how it is told. */
export function aggregationsOf(
  counts: Counts,
  columns: Readonly<Record<string, ColumnSpec<unknown>>>,
): Pick<ResourceDescriptor, 'aggregations' | 'aggregate' | 'sumsOfNothing'> {
  const plans = Object.entries(counts).map(
    ([name, plan]): AggregationPlan => ({ name, ...plan, filter: undefined, percentile: 0, isVoid: false }),
  )
  return {
    aggregations: Object.entries(counts).map(
      ([name, { field, groupBy, function: how }]): AggregationInfo => ({
        ...{ name, function: how, field, groupBy },
        // A count has no unit; a sum has that of what it adds up.
        unit: how === 'count' || field === undefined ? 'none' : (columns[field]?.unit ?? 'none'),
        hasHistory: false,
      }),
    ),
    aggregate: (rows) => aggregate(plans, rows),
    sumsOfNothing: (rows) => sumsOfNothing(plans, rows),
  }
}

const apiVersionsOf = (targets: readonly ResourceTarget[]) =>
  [...new Set(targets.map(({ apiVersion }) => apiVersion))].join(', ')

export type ListRead = ReadOf<KubeObject> & { readonly resource: Resource }

/**
 * The list of a kind that the API server has itself.
 * @param fields what columns need of its protobuf: see messages.ts of #kube
 */
export function builtIn(
  apiVersion: string,
  kind: string,
  plural: string,
  fields: Message,
  scope: ResourceTarget['scope'] = 'Namespaced',
): ListRead {
  const { group, version } = targetOf(apiVersion, kind, plural, scope)
  return listOf(
    { group, version, plural, kind, namespaced: scope === 'Namespaced', fromProtobuf: projected(fields) },
    { isOptional: true },
  )
}

const targetFrom = ({ group, version, kind, plural, namespaced, fromProtobuf }: Resource): ResourceTarget => ({
  ...targetOf(group === '' ? version : `${group}/${version}`, kind, plural, namespaced ? 'Namespaced' : 'Cluster'),
  ...(fromProtobuf && { fromProtobuf }),
})

export function targetOf(
  apiVersion: string,
  kind: string,
  plural: string,
  scope: ResourceTarget['scope'],
): ResourceTarget {
  const slash = apiVersion.indexOf('/')
  return {
    apiVersion,
    group: slash < 0 ? '' : apiVersion.slice(0, slash),
    version: apiVersion.slice(slash + 1),
    kind,
    plural,
    scope,
    isPluralDeclared: true,
  }
}
