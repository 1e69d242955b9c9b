import type { ResourceTarget, RowKind } from '#metricsource'
import {
  type Aggregated,
  type JsonValue,
  type NamespaceSnapshot,
  type PodCounts,
  type SeenOf,
  seconds,
  Table,
  type TableRow,
} from '#model'
import { aggregationsOf, type ColumnSpec, columnsInfo, hashOf } from './define.ts'

/** Snapshots that are listed; the others say one thing of a whole cluster. */
export type ListedType = 'node' | 'namespace' | 'deployment' | 'operator' | 'clusterOperator'

/** A namespace with what is counted in it; null: not read, or not shown. */
export type CountedNamespace = NamespaceSnapshot & {
  readonly pods: PodCounts | null
  readonly deployments: number | null
}
export type Listed<T extends ListedType> = T extends 'namespace' ? CountedNamespace : SeenOf<T>

/** A kind of row that is made of the snapshots every round brings. Access is theirs: rows are made of what somebody may see. */
export interface SnapshotKind<T extends ListedType = ListedType> extends RowKind {
  readonly access: 'snapshot'
  readonly type: T
  tableOf(snapshots: readonly Listed<T>[]): Table
  /** the aggregations, without a table */
  count(snapshots: readonly Listed<T>[]): Readonly<Record<string, Aggregated>>
}

type Column<T extends ListedType> = ColumnSpec<(snapshot: Listed<T>) => JsonValue>

interface SnapshotKindSpec<T extends ListedType> {
  readonly type: T
  /** plural, lower case: the name in addresses and commands */
  readonly name: string
  readonly singular: string
  readonly shortNames?: readonly string[]
  readonly title: string
  readonly target: ResourceTarget
  /** default: in no namespace, under its own name */
  readonly place?: (snapshot: Listed<T>) => Pick<TableRow, 'namespace' | 'name'>
  readonly labels?: (snapshot: Listed<T>) => TableRow['labels']
  readonly columns: Readonly<Record<string, Column<T>>>
  /** the column whose words are counted */
  readonly countBy: string
  /** the column of the usual order; default: the name */
  readonly sort?: string
}

const NO_LABELS: TableRow['labels'] = Object.freeze({})

export function defineSnapshotKind<const T extends ListedType>(spec: SnapshotKindSpec<T>): SnapshotKind<T> {
  const { type, name, target, columns, countBy, labels = () => NO_LABELS } = spec
  const { place = ({ name }) => ({ namespace: '', name }) } = spec
  const entries = Object.entries(columns)
  const info = columnsInfo(columns)
  const fields = entries.map(([field]) => field)
  const word = columns[countBy]?.read
  if (!word) throw new Error(`${name} has no column ${countBy}`)
  const groups = `by${countBy.slice(0, 1).toUpperCase()}${countBy.slice(1)}`
  const reading = { fields, place, labels, values: entries.map(([, { read }]) => read) }
  const { singular, shortNames = [], title, sort } = spec
  return Object.freeze({
    ...{ id: name, typeName: name, title, singular, shortNames, type, target, targets: [target] },
    hash: hashOf([target], info),
    access: 'snapshot',
    columns: info,
    ...(sort !== undefined && { sort }),
    ...aggregationsOf({ [groups]: { function: 'count', field: undefined, groupBy: countBy } }, columns),
    filterAggregations: true,
    collection: { intervalMs: seconds(30), watch: false },
    rowName: (key: string) => key,
    tableOf: (snapshots) => Table.reading(snapshots, reading),
    count(snapshots) {
      const counts = new Map<string, number>()
      for (const snapshot of snapshots) {
        const group = String(word(snapshot) ?? '_unknown_')
        counts.set(group, (counts.get(group) ?? 0) + 1)
      }
      return { [groups]: Object.fromEntries(counts) }
    },
  } satisfies SnapshotKind<T>)
}

/** Of a name as `namespace/name`. */
export function placeOf({ name }: { readonly name: string }): Pick<TableRow, 'namespace' | 'name'> {
  const slash = name.indexOf('/')
  return { namespace: name.slice(0, slash), name: name.slice(slash + 1) }
}
