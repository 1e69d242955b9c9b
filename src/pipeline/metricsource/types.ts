import type { Collector } from '#collect'
import type { Kind } from '#expression'
import type { MetricSource, MetricSourceSpec } from '#kinds'
import type { KubeObject, Resource } from '#kube'
import type { Aggregated, FieldReport, Health, SourceId, Table, Telling } from '#model'

export type FieldType = NonNullable<MetricSourceSpec['fields'][number]['type']>
export type AggregationFunction = NonNullable<MetricSourceSpec['aggregations']>[number]['function']
export type FilterOperator = NonNullable<NonNullable<MetricSourceSpec['aggregations']>[number]['filter']>['operator']

/** Something about a declaration that its author should know. An `error` keeps it from coming into force. */
export interface Finding {
  readonly severity: 'error' | 'warning'
  /** stable, snake case, such as `field_path_invalid`, `expression_unknown_name`, `filter_unknown_field` */
  readonly code: string
  /** as people write it: `spec.computed[0].expression` */
  readonly path: string
  /** a sentence with the cause and what to do */
  readonly message: string
  /** the place within the text at `path`: UTF-16 offsets, `to` exclusive */
  readonly at?: { readonly text: string; readonly from: number; readonly to: number }
  readonly suggestion?: string
}

export interface CompilationResult {
  /** undefined where a finding is an error */
  readonly source: CompiledSource | undefined
  readonly findings: readonly Finding[]
}

/** `used` may be null where `requested` is not; `share` is the used, else the requested part of what is allocatable, in percent. */
export interface ResourceAmount {
  /** for people, such as Memory */
  readonly of: string
  readonly what: 'share' | 'used' | 'requested' | 'allocatable' | 'capacity'
}

/** One column of rows: a field or a computed value. */
export interface ColumnInfo {
  readonly name: string
  /** what people read above it; default: the name */
  readonly label?: string
  /** as declared; of computed ones what the expression gives */
  readonly kind: Kind
  readonly type: FieldType | 'any'
  readonly isComputed: boolean
  /** how people read it: from the type, and from names such as …Bytes, …Percent, …Seconds */
  readonly unit: 'none' | 'bytes' | 'cores' | 'percent' | 'seconds' | 'time'
  /** shown only where somebody asks for it */
  readonly isExtra?: boolean
  /** the same, for want of room: which columns these are says nothing of what is kept */
  readonly isWide?: boolean
  /** values name a node, which policies may hide: there they are null; or an object of the namespace, as `Kind/name` */
  readonly refersTo?: 'node' | 'object'
  /** what the rows are to objects of these kinds that they name, for a link from there: Pods of a Deployment */
  readonly reverse?: { readonly title: string; readonly kinds: readonly string[] }
  /** null, too, where policies hide what it is taken from */
  readonly isRestricted?: boolean
  /** what it says of namespaces besides that of the row: access decides how much of it is told */
  readonly tells?: Telling
  /** what null means of an object that was read; default: none, but of what is computed, measured or summed up it is not known */
  readonly absence?: 'none' | 'unknown'
  /** of what is measured, in a table of its own that has an age of its own; null, too, without the right to see measurements */
  readonly isMeasured?: boolean
  /** words are versions: rows are in the order of their numbers */
  readonly isVersion?: boolean
  /** one of the amounts of a resource, which belong together: what is used of the CPU, of what may be used */
  readonly amount?: ResourceAmount
  /** what a word in it says of the object; words that are not named are `degraded`. Rows are in the order of it, the worst first */
  readonly health?: Readonly<Record<string, Health>>
}

export interface AggregationInfo {
  readonly name: string
  readonly function: AggregationFunction
  readonly field: string | undefined
  readonly groupBy: string | undefined
  readonly unit: ColumnInfo['unit']
  /** numbers kept over time: not grouped, and of a function that gives a number */
  readonly hasHistory: boolean
}

/** Sums that are 0 because no row in them has a number: of one that is grouped, the groups. */
export type SumsOfNothing = ReadonlyMap<string, 'whole' | ReadonlySet<string>>

/** The compiled definition as documented in Redis and sent to agents (specification: state 5.1). Plain JSON. */
export type SourceDefinition = Readonly<Record<string, unknown>>

/** One sort of objects that is read. */
export interface ResourceTarget {
  readonly apiVersion: string
  readonly group: string
  readonly version: string
  readonly kind: string
  /** `Fleet`: its rows stand on no cluster */
  readonly scope: 'Namespaced' | 'Cluster' | 'Fleet'
  /** as declared, else guessed from the kind: only where the cluster's discovery cannot be asked */
  readonly plural: string
  readonly isPluralDeclared: boolean
  /** takes what columns need from an object's protobuf; present: protobuf is asked for */
  readonly fromProtobuf?: Resource['fromProtobuf']
}

/** A kind of row as it is shown: what a row holds, and who sees it. Immutable. */
export interface RowKind {
  /** names its rows in state and on the wire: `namespace/name` of a MetricSource; the plural of what is compiled in */
  readonly id: SourceId
  /** 16 hex digits; equal hashes collect the same */
  readonly hash: string
  /** name of the rows in policies, API and page; the lower-case kind where none is declared */
  readonly typeName: string
  /** for people, where it is not the type name */
  readonly title?: string
  readonly singular?: string
  readonly shortNames?: readonly string[]
  /**
   * `declared`: policies that name the type decide; without one nobody sees it. `pods`: the filters policies have for pods.
   * `namespaced`: what stands in visible namespaces, narrowed by a filter of the type's name. `events`: the same, and only with the
   * object it is about. `named`: objects of any kind, in visible namespaces, where a policy names it or filters nothing.
   * `snapshot`: as the snapshots it is made of.
   * `registry`: what is selected as a cluster is, narrowed by a filter of `registries`
   */
  readonly access: 'declared' | 'pods' | 'namespaced' | 'events' | 'named' | 'snapshot' | 'registry'
  /** as people read it: what is read, or the first of it */
  readonly target: ResourceTarget
  /** all that is read; of several each is a list of its own */
  readonly targets: readonly ResourceTarget[]
  readonly columns: readonly ColumnInfo[]
  /** Columns that are taken from another table of the same cluster, by namespace and name, when rows are shown. They are among `columns`. */
  readonly measured?: {
    readonly source: SourceId
    readonly fields: readonly string[]
    readonly sums: readonly string[]
  }
  /** the column of the usual order, with a minus before it for the greatest first; default: the name */
  readonly sort?: string
  readonly aggregations: readonly AggregationInfo[]
  /** aggregations are computed anew for people who see only a part */
  readonly filterAggregations: boolean
  readonly collection: { readonly intervalMs: number; readonly watch: boolean }
  /** what an object is called whose row has this name */
  rowName(name: string): string
  /**
   * All aggregations over these rows in one pass; of any rows with the columns of this source, and whatever rows are left out
   * for somebody. A thousand groups are named, further ones are `_other_`; rows without a value are `_unknown_`. null: of
   * nothing, of a column that is not there, or where regular expressions take more than a second.
   */
  aggregate(rows: Table): Readonly<Record<string, Aggregated>>
  /** which of these sums are 0 because none of the rows has a number: people are told that they are not known */
  sumsOfNothing(rows: Table): SumsOfNothing
}

/**
 * A kind of row with what is read for it. Compiled in (#resources), or made of a MetricSource; everything that collects, keeps,
 * shows and sums up rows knows this and nothing else.
 */
export interface ResourceDescriptor extends RowKind {
  readonly access: 'declared' | 'pods' | 'namespaced' | 'events' | 'named'
  /** text for the API; undefined: all */
  readonly labelSelector: string | undefined
  /** whether objects of this namespace are wanted; pure, linear time */
  readonly wantsNamespace: (name: string) => boolean
  /** the namespaces named without wildcards, where nothing else is included; undefined: patterns, or all */
  readonly exactNamespaces: readonly string[] | undefined
  /** every namespace is wanted */
  readonly wantsAllNamespaces: boolean
  readonly collection: {
    readonly intervalMs: number
    readonly timeoutMs: number
    readonly maxResources: number
    readonly batchSize: number
    readonly retryAttempts: number
    readonly parallelism: number
    readonly watch: boolean
  }
  /**
   * Begins one collection: objects go in, one by one, and nothing of them is kept but their values. Values of up to 64 Ki
   * characters, 32 Mi in all, and 256 labels of an object; what is beyond is null (and malformed), or left out.
   * @param target which of the targets the objects are of
   */
  collect(now: number, target: ResourceTarget): RowBuilder
}

/** A kind of row that is compiled in, and read with the rounds of a cluster. */
export interface BuiltInResource extends ResourceDescriptor {
  /** undefined: an agent hands its rows in, which are made of no list */
  readonly collector: Collector | undefined
}

/** A MetricSource that can be run; made by compileMetricSource or readDefinition. */
export interface CompiledSource extends ResourceDescriptor {
  readonly namespace: string
  readonly name: string
  readonly access: 'declared'
  /** policies may filter by these; undefined: by all */
  readonly filterableFields: readonly string[] | undefined
  readonly definition: SourceDefinition
  collect(now: number): RowBuilder
}

/** One collection under way. */
export interface RowBuilder {
  readonly size: number
  /** objects that are no rows because newer ones are; default: none */
  readonly leftOut?: number
  /** In any order; what has no name is no row. */
  add(object: KubeObject): void
  /** For watches, where `add` puts an object in place of its older self. Unknown: nothing happens. */
  remove(namespace: string, name: string): void
  /** as of now; the same value until something comes or goes */
  rows(): Table
  /** of the rows there are now, a field or computed value each, in the order of the columns */
  reports(): readonly FieldReport[]
}

/** A declaration as applied, or as somebody wrote it into a file. */
export type SourceObject = Pick<MetricSource, 'metadata' | 'spec'>
