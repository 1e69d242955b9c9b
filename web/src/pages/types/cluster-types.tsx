import '../../styles/types.css'
import { IconTableOff } from '@tabler/icons-react'
import { type ReactNode, useCallback, useMemo } from 'react'
import { NotUpdated } from '../../components/not-updated.tsx'
import { type Column, ResourceTable } from '../../components/resource-table.tsx'
import { RowLink } from '../../components/row-link.tsx'
import { Empty, Failure, Skeleton } from '../../components/states.tsx'
import { Age, Missing } from '../../components/text.tsx'
import type { ClusterView, TypeOnClusterView, TypeView } from '../../contract.ts'
import { useHub } from '../../live/hooks.ts'
import type { Live } from '../../live/live-store.ts'
import { useRefresh } from '../../live/refresh.ts'
import { useFresh } from '../../live/use-fresh.ts'
import { formatCount } from '../../model/format.ts'
import {
  amountWord,
  asOfNow,
  collectionStatusOf,
  collectionStatusWord,
  hasRows,
  isCurrentOn,
  isGroups,
  sayAmount,
  sourceOf,
} from '../../model/row-values.ts'
import { clusterPath, kindTabs, Link, typeEditorPath, typesPath } from '../../router.tsx'
import { useSession } from '../../session.ts'
import { NamespacePage } from './namespace-page.tsx'
import { AggregatedText, CollectionStatusCell, KindLine, notesOf } from './parts.tsx'
import { TypeOnCluster } from './rows-page.tsx'
import { WorkloadPage } from './workload-page.tsx'

interface ClusterTypesProps {
  readonly cluster: ClusterView
  readonly type: string | null
  readonly isCore?: boolean
  readonly row?: string | null
  /** a namespace, or the row of a workload: its page */
  readonly object?: string | null
}

/** Tabs of a cluster: its types, or the rows of one. */
export function ClusterTypes({ type, object = null, ...rest }: ClusterTypesProps): ReactNode {
  if (object !== null && type === 'namespaces') return <NamespacePage cluster={rest.cluster} name={object} />
  if (object !== null) return <WorkloadPage cluster={rest.cluster} id={object} />
  return type === null ? <TypesOf cluster={rest.cluster} /> : <TypeOnCluster {...rest} type={type} />
}

interface Line {
  readonly type: TypeView
  readonly on: TypeOnClusterView
}

function TypesOf({ cluster }: { cluster: ClusterView }): ReactNode {
  const { client } = useHub()
  const { name } = cluster
  const administrator = useSession()?.user?.administrator === true
  const ask = useCallback((signal: AbortSignal) => client.types({ cluster: name }, signal), [client, name])
  const [fresh, again] = useFresh(ask)
  useRefresh(
    useCallback((live: Live) => live.fleet.clusters.get(name), [name]),
    again,
  )
  const items = fresh.state === 'here' ? fresh.value.items : null
  const rows = useMemo(
    () =>
      new Map(
        (items ?? []).flatMap((type): [string, Line][] => {
          // Those have a tab of their own.
          if (kindTabs.includes(sourceOf(type)?.id ?? '')) return []
          const on = type.clusters.find(({ cluster: of }) => of === name)
          return on ? [[type.type, { type, on: asOfNow(on, cluster) }]] : []
        }),
      ),
    [items, name, cluster],
  )
  const columns = useMemo(() => lineColumns(name), [name])
  if (fresh.state === 'waiting') return <Skeleton label="Loading the types" />
  if (fresh.state === 'failed')
    return <Failure problem={fresh.problem} onRetry={again} title="The types could not be loaded" />
  return (
    <>
      <NotUpdated problem={fresh.problem} onRetry={again} />
      <ResourceTable
        caption={`Types of ${name}`}
        id="cluster-types"
        noun={rows.size === 1 ? 'type' : 'types'}
        rows={rows}
        columns={columns}
        words={wordsOf}
        rowKey={keyOf}
        sort="type"
        rowHeight={48}
        example="state:* rows>100"
        dim={({ on }) => !isCurrentOn(on)}
        controls={
          <Link to={typesPath()} className="button">
            All clusters
          </Link>
        }
        empty={
          <Empty title="No type is collected here" icon={<IconTableOff size={30} aria-hidden="true" />}>
            <p>
              {administrator
                ? 'No MetricSource is in force, or this cluster was not asked yet.'
                : 'None is declared, or your access to this cluster reaches none of them.'}
            </p>
            {administrator && (
              <Link to={typeEditorPath()} className="button">
                Declare a type
              </Link>
            )}
          </Empty>
        }
      />
    </>
  )
}

const keyOf = ({ type }: Line) => type.type
const wordsOf = ({ type }: Line) =>
  `${type.type} ${type.sources.map(({ kind, apiVersion }) => `${kind} ${apiVersion}`)}`

const lineColumns = (cluster: string): readonly Column<Line>[] => [
  {
    id: 'type',
    header: 'Type',
    value: keyOf,
    cell: ({ type }) => (
      <span className="name-cell">
        <RowLink to={clusterPath(cluster, 'types', type.type)}>{sourceOf(type)?.title ?? type.type}</RowLink>
        <KindLine source={sourceOf(type)} />
      </span>
    ),
  },
  {
    id: 'state',
    header: 'State',
    width: 190,
    value: ({ on }) => collectionStatusWord[collectionStatusOf(on)],
    cell: ({ on }) => <CollectionStatusCell on={on} />,
  },
  {
    id: 'rows',
    header: 'Rows',
    width: 90,
    align: 'end',
    kind: 'number',
    descendingFirst: true,
    value: ({ on }) => (hasRows(on) ? on.part.count : null),
    cell: ({ on }) => (hasRows(on) ? formatCount(on.part.count) : <Missing why="there is nothing to count" />),
  },
  {
    id: 'numbers',
    header: 'Numbers',
    width: 460,
    value: (line) =>
      numbersOf(line).map(
        (info) => `${sayAmount(line.on.aggregations?.[info.name], info.unit)} ${amountWord(info, sourceOf(line.type))}`,
      ),
    cell: ({ type, on }) => <Numbers type={type} on={on} />,
  },
  {
    id: 'age',
    header: 'As of',
    width: 100,
    align: 'end',
    kind: 'time',
    value: ({ on }) => on.part.freshness?.observedAt ?? null,
    cell: ({ on }) =>
      on.part.freshness === null ? (
        <Missing why="it was never read" />
      ) : (
        <Age at={on.part.freshness.observedAt} suffix=" ago" />
      ),
  },
  { id: 'notes', header: 'Notes', width: 220, extra: true, value: ({ on }) => notesOf(on) },
]

/** The first few numbers of a type here that have a value. */
const numbersOf = ({ type, on }: Line) =>
  (sourceOf(type)?.aggregations ?? [])
    .filter(({ name, groupBy }) => {
      const value = on.aggregations?.[name]
      return groupBy === null && value !== undefined && value !== null && !isGroups(value)
    })
    .slice(0, 3)

function Numbers({ type, on }: Line): ReactNode {
  if (on.aggregations === null) return <Missing why="measurements of this cluster are not shown to you" />
  const numbers = numbersOf({ type, on })
  if (numbers.length === 0) return <Missing why="no number is declared, or none has a value" />
  return (
    <span className="highlights">
      {numbers.map((info) => (
        <span key={info.name} className="highlight">
          <b>
            <AggregatedText value={on.aggregations?.[info.name]} unit={info.unit} />
          </b>{' '}
          <span className="sub">{amountWord(info, sourceOf(type))}</span>
        </span>
      ))}
    </span>
  )
}
