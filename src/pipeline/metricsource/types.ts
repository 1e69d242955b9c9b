import type { Kind } from '#expression'
import type { MetricSource, MetricSourceSpec } from '#kinds'
import type { KubeClient, KubeObject } from '#kube'
import type { Aggregated, Clock, ClusterName, CustomPart, CustomRow, FieldReport, SourceId, Table } from '#model'
import type { Logger, Metrics } from '#runtime'

// ── compile ──────────────────────────────────────────────────────────────────────────────────────────────────────────

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
  /** values name objects of this kind, which policies may hide: there they are null */
  readonly refersTo?: 'node'
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

/** The compiled definition as documented in Redis and sent to agents (specification: state 5.1). Plain JSON. */
export type SourceDefinition = Readonly<Record<string, unknown>>

/** One sort of objects that is read. */
export interface ResourceTarget {
  readonly apiVersion: string
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly scope: 'Namespaced' | 'Cluster'
  /** as declared, else guessed from the kind: only where the cluster's discovery cannot be asked */
  readonly plural: string
  readonly isPluralDeclared: boolean
}

/**
 * A kind of row: what is read for it, what a row holds, and who sees it. Compiled in (#resources), or made of a MetricSource;
 * everything that collects, keeps, shows and sums up rows knows this and nothing else. Immutable.
 */
export interface ResourceDescriptor {
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
   * `namespaced`: what stands in visible namespaces, narrowed by a filter of the type's name
   */
  readonly access: 'declared' | 'pods' | 'namespaced'
  /** as people read it: what is read, or the first of it */
  readonly target: ResourceTarget
  /** all that is read; of several each is a list of its own */
  readonly targets: readonly ResourceTarget[]
  /** text for the API; undefined: all */
  readonly labelSelector: string | undefined
  /** whether objects of this namespace are wanted; pure, linear time */
  readonly wantsNamespace: (name: string) => boolean
  /** the namespaces named without wildcards, where nothing else is included; undefined: patterns, or all */
  readonly exactNamespaces: readonly string[] | undefined
  /** every namespace is wanted */
  readonly wantsAllNamespaces: boolean
  readonly columns: readonly ColumnInfo[]
  readonly aggregations: readonly AggregationInfo[]
  /** aggregations are computed anew for people who see only a part */
  readonly filterAggregations: boolean
  readonly collection: {
    readonly intervalMs: number
    readonly timeoutMs: number
    readonly maxResources: number
    readonly batchSize: number
    readonly retryAttempts: number
    readonly parallelism: number
    readonly watch: boolean
  }
  /** what an object is called whose row has this name */
  rowName(name: string): string
  /**
   * Begins one collection: objects go in, one by one, and nothing of them is kept but their values. Values of up to 64 Ki
   * characters, 32 Mi in all, and 256 labels of an object; what is beyond is null (and malformed), or left out.
   * @param target which of the targets the objects are of
   */
  collect(now: number, target: ResourceTarget): Collecting
  /**
   * All aggregations over these rows in one pass; of any rows with the columns of this source, and whatever rows are left out
   * for somebody. A thousand groups are named, further ones are `_other_`; rows without a value are `_unknown_`. null: of
   * nothing, of a column that is not there, or where regular expressions take more than a second.
   */
  aggregate(rows: Table): Readonly<Record<string, Aggregated>>
}

/** A MetricSource that can be run; made by compileMetricSource or readDefinition. */
export interface CompiledSource extends ResourceDescriptor {
  readonly namespace: string
  readonly name: string
  readonly access: 'declared'
  /** policies may filter by these; undefined: by all */
  readonly filterableFields: readonly string[] | undefined
  readonly definition: SourceDefinition
  collect(now: number): Collecting
}

/** One collection under way. */
export interface Collecting {
  readonly size: number
  /** In any order; what has no name is no row. */
  add(object: KubeObject): void
  /** For watches, where `add` puts an object in place of its older self. Unknown: nothing happens. */
  remove(namespace: string, name: string): void
  /** as of now; the same value until something comes or goes */
  rows(): Table
  /** of the rows there are now, a field or computed value each, in the order of the columns */
  reports(): readonly FieldReport[]
  /** one object on its own, for previews */
  row(object: KubeObject): CustomRow
}

/** A declaration as applied, or as somebody wrote it into a file. */
export type SourceObject = Pick<MetricSource, 'metadata' | 'spec'>

// ── run ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface CollectSourceOptions {
  readonly kube: KubeClient
  readonly source: ResourceDescriptor
  /** ends it; its own limit is `source.collection.timeoutMs` */
  readonly signal: AbortSignal
  readonly clock: Clock
  /** at most this many rows, whatever the source says; for previews */
  readonly limit?: number
  /** told of rows so far, for progress */
  readonly onProgress?: (rows: number) => void
}

export interface SourceLoopOptions {
  readonly cluster: ClusterName
  /** the cluster's client; asked for each collection; undefined: there is no way in now */
  readonly kube: () => Promise<KubeClient | undefined>
  /**
   * Takes what was collected, one or several sources at once; the next collection of these waits for it. Never throws.
   * @param collectedAt by the collector's clock, when the oldest of them began
   */
  readonly onParts: (parts: readonly CustomPart[], collectedAt: number) => Promise<void>
  readonly clock: Clock
  readonly random?: () => number
  /** shared by many loops: bounds the collections that read at once */
  readonly turn?: <T>(read: () => Promise<T>) => Promise<T>
  readonly logger: Logger
  readonly metrics?: Metrics
}
