import { createHash } from 'node:crypto'
import type { KubeObject } from '#kube'
import {
  type AggregationInfo,
  type AggregationPlan,
  aggregate,
  type ColumnInfo,
  type ResourceDescriptor,
  type ResourceTarget,
} from '#metricsource'
import type { CustomValue } from '#model'
import { RowCollecting } from './row-collecting.ts'

/** One column: what people read above it, and how it is read from an object. null: not known, or nothing. */
export interface ColumnSpec {
  readonly label: string
  readonly kind: 'string' | 'number' | 'boolean'
  /** default none; times are milliseconds since the Unix epoch */
  readonly unit?: ColumnInfo['unit']
  /** the value names an object of this kind, which policies may hide */
  readonly refersTo?: 'node'
  /** shown only where somebody asks for it; default false */
  readonly isExtra?: boolean
  /** @param kind of the object: items of a list do not say it */
  readonly read: Read
}

export type Read = (object: KubeObject, kind: string) => CustomValue

export interface ResourceSpec {
  /** plural, lower case: the name in policies, addresses and commands */
  readonly name: string
  readonly singular: string
  /** further names people type, such as pvc */
  readonly shortNames?: readonly string[]
  /** for people, such as Pods */
  readonly title: string
  /** what is read; where it is more than one kind of object, keys of rows tell the kinds apart */
  readonly targets: readonly ResourceTarget[]
  /** `pods`: the filters that policies have for pods; `namespaced`: what stands in visible namespaces, narrowed by its own name */
  readonly access: 'pods' | 'namespaced'
  /** time between two reads, ms */
  readonly everyMs: number
  /** rows of one cluster at most */
  readonly maxRows: number
  readonly columns: Readonly<Record<string, ColumnSpec>>
  /** what is counted over rows; groups are columns */
  readonly counts: Readonly<Record<string, Pick<AggregationPlan, 'function' | 'field' | 'groupBy'>>>
}

/**
 * A kind of row that is compiled in: declared here once, and every channel is made of the declaration (collection, roles, wire,
 * state, access, API, CSV, stream, search, page, command line).
 */
export function defineResource(spec: ResourceSpec): ResourceDescriptor {
  const { name, singular, shortNames = [], title, targets, access, everyMs, maxRows, columns, counts } = spec
  const entries = Object.entries(columns)
  const [first] = targets
  if (!first) throw new Error(`${name} reads nothing`)
  const isOne = targets.length === 1
  const info = entries.map(
    ([column, { label, kind, unit = 'none', refersTo, isExtra = false }]): ColumnInfo => ({
      name: column,
      label,
      kind,
      type: 'any',
      isComputed: false,
      unit,
      isExtra,
      ...(refersTo && { refersTo }),
    }),
  )
  const fields = entries.map(([column]) => column)
  const readers = entries.map(([, { read }]) => read)
  const plans = Object.entries(counts).map(
    ([count, plan]): AggregationPlan => ({ name: count, ...plan, filter: undefined, percentile: 0, isVoid: false }),
  )
  return Object.freeze({
    id: name,
    typeName: name,
    title,
    singular,
    shortNames,
    // From what is kept alone, so that every build that keeps the same names it alike.
    hash: createHash('sha256')
      .update(JSON.stringify([targets.map(({ kind }) => kind), info]))
      .digest('hex')
      .slice(0, 16),
    access,
    target: isOne ? first : { ...first, kind: title, apiVersion: apiVersionsOf(targets) },
    targets,
    labelSelector: undefined,
    wantsNamespace: () => true,
    exactNamespaces: undefined,
    wantsAllNamespaces: true,
    columns: info,
    aggregations: Object.entries(counts).map(
      ([count, { field, groupBy, function: how }]): AggregationInfo => ({
        name: count,
        function: how,
        field,
        groupBy,
        // A count has no unit; a sum has that of what it adds up.
        unit: how === 'count' || field === undefined ? 'none' : (columns[field]?.unit ?? 'none'),
        hasHistory: false,
      }),
    ),
    filterAggregations: true,
    collection: {
      intervalMs: everyMs,
      timeoutMs: Math.max(everyMs, 30_000),
      maxResources: maxRows,
      batchSize: 500,
      retryAttempts: 1,
      parallelism: 3,
      watch: false,
    },
    rowName: isOne ? (key: string) => key : (key: string) => key.slice(0, key.indexOf(':')),
    collect: (_now, { kind }) => new RowCollecting(fields, readers, { kind, isInKey: !isOne }),
    aggregate: (rows) => aggregate(plans, rows),
  } satisfies ResourceDescriptor)
}

const apiVersionsOf = (targets: readonly ResourceTarget[]) =>
  [...new Set(targets.map(({ apiVersion }) => apiVersion))].join(', ')

/** What is read of a kind that the API server has itself. */
export function builtIn(apiVersion: string, kind: string, plural: string): ResourceTarget {
  const slash = apiVersion.indexOf('/')
  return {
    apiVersion,
    group: slash < 0 ? '' : apiVersion.slice(0, slash),
    version: apiVersion.slice(slash + 1),
    kind,
    plural,
    scope: 'Namespaced',
    isPluralDeclared: true,
  }
}
