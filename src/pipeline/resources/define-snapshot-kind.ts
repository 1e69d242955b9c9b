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
import { aggregationsOf, type ColumnSpec, columnsInfo, hashOf, type MeasuredSpec, measuredOf } from './define.ts'

/** Snapshots that are listed; the others say one thing of a whole cluster. */
export type ListedType = 'node' | 'namespace' | 'deployment' | 'operator' | 'clusterOperator'

/** A namespace with what is counted in it; null: not read, or not shown. */
export type CountedNamespace = NamespaceSnapshot & {
  readonly pods: PodCounts | null
  readonly deployments: number | null
}
export type Listed<T extends ListedType> = T extends 'namespace' ? CountedNamespace : SeenOf<T>

/** A kind of row that is made of things somebody may see, when somebody asks for it. */
interface SeenKind<S> extends RowKind {
  tableOf(seen: readonly S[]): Table
  /** the aggregations, without a table */
  count(seen: readonly S[]): Readonly<Record<string, Aggregated>>
}

/** A kind of row that is made of the snapshots every round brings. Access is theirs. */
export interface SnapshotKind<T extends ListedType = ListedType> extends SeenKind<Listed<T>> {
  readonly access: 'snapshot'
  readonly type: T
}

/** A kind of row that belongs to the fleet and stands on no cluster. */
export interface FleetKind<S> extends SeenKind<S> {
  readonly access: 'registry'
}

interface SeenKindSpec<S> {
  /** plural, lower case: the name in addresses and commands */
  readonly name: string
  readonly singular: string
  readonly shortNames?: readonly string[]
  readonly title: string
  readonly target: ResourceTarget
  /** time between two looks, ms; default 30 s */
  readonly everyMs?: number
  readonly place: (seen: S) => Pick<TableRow, 'namespace' | 'name'>
  readonly labels?: (seen: S) => TableRow['labels']
  readonly columns: Readonly<Record<string, ColumnSpec<(seen: S) => JsonValue>>>
  /** columns that are taken from another table of the cluster */
  readonly measured?: MeasuredSpec
  /** the column whose words are counted */
  readonly countBy: string
  /** the column of the usual order; default: the name */
  readonly sort?: string
}

interface SnapshotKindSpec<T extends ListedType> extends Omit<SeenKindSpec<Listed<T>>, 'place'> {
  readonly type: T
  /** default: in no namespace, under its own name */
  readonly place?: SeenKindSpec<Listed<T>>['place']
}

const NO_LABELS: TableRow['labels'] = Object.freeze({})

export function defineSnapshotKind<const T extends ListedType>(spec: SnapshotKindSpec<T>): SnapshotKind<T> {
  const kind = seenKind<Listed<T>>({ place: ({ name }) => ({ namespace: '', name }), ...spec })
  return Object.freeze({ ...kind, access: 'snapshot', type: spec.type })
}

export const defineFleetKind = <S>(spec: SeenKindSpec<S>): FleetKind<S> =>
  Object.freeze({ ...seenKind<S>(spec), access: 'registry' })

function seenKind<S>(spec: SeenKindSpec<S>): Omit<SeenKind<S>, 'access'> {
  const { name, target, columns, countBy, labels = () => NO_LABELS, place } = spec
  const entries = Object.entries(columns)
  const info = columnsInfo(columns)
  const fields = entries.map(([field]) => field)
  const word = columns[countBy]?.read
  if (!word) throw new Error(`${name} has no column ${countBy}`)
  const groups = `by${countBy.slice(0, 1).toUpperCase()}${countBy.slice(1)}`
  const reading = { fields, place, labels, values: entries.map(([, { read }]) => read) }
  const { singular, shortNames = [], title, sort, everyMs = seconds(30), measured } = spec
  const counted = aggregationsOf({ [groups]: { function: 'count', field: undefined, groupBy: countBy } }, columns)
  return {
    ...{ id: name, typeName: name, title, singular, shortNames, target, targets: [target] },
    hash: hashOf([target], info),
    columns: info,
    ...(sort !== undefined && { sort }),
    ...counted,
    ...(measured && measuredOf(measured, info, counted.aggregations)),
    filterAggregations: true,
    collection: { intervalMs: everyMs, watch: target.scope !== 'Fleet' },
    rowName: (key: string) => key,
    tableOf: (seen) => Table.reading(seen, reading),
    count(seen) {
      const counts = new Map<string, number>()
      for (const one of seen) {
        const group = String(word(one) ?? '_unknown_')
        counts.set(group, (counts.get(group) ?? 0) + 1)
      }
      return { [groups]: Object.fromEntries(counts) }
    },
  }
}

/** Of a name as `namespace/name`. */
export function placeOf({ name }: { readonly name: string }): Pick<TableRow, 'namespace' | 'name'> {
  const slash = name.indexOf('/')
  return { namespace: name.slice(0, slash), name: name.slice(slash + 1) }
}
