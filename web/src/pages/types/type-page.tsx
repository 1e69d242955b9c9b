import { IconPencil, IconTableOff } from '@tabler/icons-react'
import { type ReactNode, useCallback, useEffect, useMemo, useState } from 'react'
import { ClusterCell, ClusterNames } from '../../components/cluster-name.tsx'
import { NotUpdated } from '../../components/not-updated.tsx'
import { SumAge } from '../../components/past.tsx'
import { type Column, ResourceTable } from '../../components/resource-table.tsx'
import { insteadOfSet, SetChoice } from '../../components/set-choice.tsx'
import { Empty, Failure, Skeleton } from '../../components/states.tsx'
import { Age, Missing } from '../../components/text.tsx'
import {
  type AggregatedView,
  type AggregationInfoView,
  type SourceView,
  type TypeOnClusterView,
  type TypeView,
  unitText,
} from '../../contract.ts'
import { useHub } from '../../live/hooks.ts'
import { useRefresh } from '../../live/refresh.ts'
import type { RowsPage, ShownRow } from '../../live/row-pages.ts'
import { ofSet, useClusterSet } from '../../live/use-cluster-set.ts'
import { useFresh } from '../../live/use-fresh.ts'
import type { Value } from '../../model/filter.ts'
import { formatCount, plural } from '../../model/format.ts'
import { type Counted, recounted } from '../../model/recount.ts'
import {
  collectionStatusOf,
  collectionStatusWord,
  type FleetTotal,
  fleetTotal,
  hasRows,
  isCurrentOn,
  isGroups,
  newestOf,
  sourceOf,
  titleOf,
  unreadWord,
  usageBasis,
} from '../../model/row-values.ts'
import type { Basis } from '../../model/sums.ts'
import {
  clusterPath,
  Link,
  membersPath,
  navigate,
  registriesPath,
  typeEditorPath,
  typePath,
  typesPath,
  usePlace,
  whyPath,
  withSet,
} from '../../router.tsx'
import { useSession } from '../../session.ts'
import { PageHeading } from '../../shell/page-heading.tsx'
import { isOnClusters } from '../../types-seen.ts'
import { HowToBegin } from './how-to-begin.tsx'
import { KindSummary } from './kind-summary.tsx'
import { AggregatedText, CollectionStatusCell, notesOf } from './parts.tsx'
import { RowBeside } from './row-beside.tsx'
import { RowsTable, rowPath } from './rows-table.tsx'
import { Tiles } from './tiles.tsx'
import { watchClusters } from './type-list.tsx'
import { useAsOfNow } from './use-as-of-now.ts'

const leastMs = 2000

/** One type on every cluster where somebody sees it. */
export function TypeAcrossClusters({ type }: { type: string }): ReactNode {
  const { client } = useHub()
  const ask = useCallback((signal: AbortSignal) => client.type(type, signal), [client, type])
  const [fresh, again] = useFresh(ask)
  useRefresh(watchClusters, again, leastMs)
  const set = useClusterSet()
  const whole = useAsOfNow(fresh.state === 'here' ? fresh.value : null)
  const view = useMemo(() => whole && ofSet(whole, set), [whole, set])
  const title = (view && sourceOf(view)?.title) ?? type
  const [counted, setCounted] = useState<Counted | null>(null)
  return (
    <>
      <PageHeading title={title} after={view && <StatusLine view={view} count={counted?.count ?? view.count} />}>
        {title}
      </PageHeading>
      {fresh.state === 'waiting' ? (
        <Skeleton label="Loading the type" />
      ) : fresh.state === 'failed' ? (
        fresh.problem.status === 404 ? (
          <NoSuchType type={type} />
        ) : (
          <Failure problem={fresh.problem} onRetry={again} title="The type could not be loaded" />
        )
      ) : (
        <>
          {fresh.value.type !== type && <Renamed to={typesPath(fresh.value.type)} />}
          {!isOnClusters(fresh.value) && (
            <Renamed to={fresh.value.type === 'registries' ? registriesPath() : membersPath()} />
          )}
          <NotUpdated problem={fresh.problem} onRetry={again} />
          {insteadOfSet(set) ?? <Across view={view ?? fresh.value} counted={counted} onCounted={setCounted} />}
        </>
      )}
    </>
  )
}

/** A singular or short name in the address becomes the name of the type, with what is asked of it. */
function Renamed({ to }: { to: string }): null {
  const { query } = usePlace()
  useEffect(() => navigate(query === '' ? to : `${to}?${query}`, { replace: true }), [to, query])
  return null
}

/** The page of what the hub takes the name for, which may be a singular or a short one. */
export function TypeMeant({ type, cluster }: { type: string; cluster: string }): ReactNode {
  const { client } = useHub()
  const [fresh] = useFresh(useCallback((signal: AbortSignal) => client.type(type, signal), [client, type]))
  if (fresh.state === 'waiting') return <Skeleton label="Loading the type" />
  if (fresh.state === 'here' && fresh.value.type !== type) return <Renamed to={typePath(cluster, fresh.value.type)} />
  return <NoSuchType type={type} cluster={cluster} />
}

function NoSuchType({ type, cluster }: { type: string; cluster?: string }): ReactNode {
  return (
    <Empty title="There is no such type, or you may not see it" icon={<IconTableOff size={30} aria-hidden="true" />}>
      <p>Its MetricSource may have been removed since this link was made, or what you may see has changed.</p>
      <p className="state-ways">
        <Link to={typesPath()} className="button">
          To the types
        </Link>
        {cluster !== undefined && (
          <Link to={whyPath({ cluster, type })} className="button">
            Why do I not see it?
          </Link>
        )}
      </p>
    </Empty>
  )
}

function StatusLine({ view, count }: { view: TypeView; count: number | null }): ReactNode {
  const administrator = useSession()?.user?.administrator === true
  const source = sourceOf(view)
  const newest = newestOf(view.clusters)
  return (
    <p className="status-line">
      {source && (
        <span>
          {source.kind} <span className="mono sub-inline">{source.apiVersion}</span>
        </span>
      )}
      <span>{count === null ? <Missing why={unreadWord(view)} /> : plural(count, 'row')}</span>
      <span className="as-of">
        {newest === null ? (
          unreadWord(view)
        ) : (
          <>
            newest of <Age at={newest} suffix=" ago" focusable />
          </>
        )}
      </span>
      {view.sources.length > 1 && (
        <span className="tag is-warning" data-tip={view.sources.map(({ id }) => id).join(', ')}>
          ▲ {view.sources.length} MetricSources have this name
        </span>
      )}
      {source?.isDeclared &&
        (administrator ? (
          <Link to={typeEditorPath(source.id)} className="tag">
            <IconPencil size={12} aria-hidden="true" /> {source.id}
          </Link>
        ) : (
          <span className="sub mono">{source.id}</span>
        ))}
    </p>
  )
}

interface AcrossProps {
  readonly view: TypeView
  /** what the table has before it */
  readonly counted: Counted | null
  readonly onCounted: (counted: Counted | null) => void
}

function Across({ view, counted, onCounted }: AcrossProps): ReactNode {
  const source = sourceOf(view)
  const { query } = usePlace()
  // Of a kind that every cluster has, people look for one of the things; of what is declared, at the clusters.
  const usual = source?.isDeclared ? 'clusters' : 'rows'
  const shown = new URLSearchParams(query).get('view') ?? usual
  const aggregations = source?.aggregations ?? []
  const totals = useMemo(() => {
    const found = new Map<string, FleetTotal>()
    for (const info of aggregations) {
      const total = fleetTotal(info, view.clusters)
      if (total) found.set(info.name, total)
    }
    return found
  }, [aggregations, view.clusters])
  const joined = aggregations.filter(({ name }) => totals.has(name))
  const rest = aggregations.filter(({ name, groupBy }) => !totals.has(name) && groupBy === null)
  const values = Object.fromEntries(joined.map(({ name }) => [name, totals.get(name)?.value ?? null]))
  const truncated = view.clusters.filter((on) => on.truncated).length
  const note = ({ name }: AggregationInfoView) => {
    const missing = totals.get(name)?.missing ?? 0
    return missing > 0 ? `without ${plural(missing, 'cluster')}` : null
  }
  // One collection tells all numbers of a cluster, so all of them are as old.
  const basis = basisOfTotals([...totals.values()])
  const rows = useMemo(() => new Map(view.clusters.map((on) => [on.cluster, on])), [view.clusters])
  const columns = useMemo(() => clusterColumns(view.type, aggregations), [view.type, aggregations])
  return (
    <div className="stack">
      <h2 className="vh">Over all clusters</h2>
      {source?.isDeclared === false ? (
        <KindSummary
          aggregations={joined}
          columns={source.columns}
          values={counted?.rows ? recounted(joined, values, counted.rows) : values}
          basis={basis}
          usage={usageBasis(view.clusters)}
          isPast={basis !== null && basis.current < basis.counted}
          path={(filter) => `${typesPath(view.type)}?${new URLSearchParams({ q: filter })}`}
        />
      ) : (
        <Tiles
          aggregations={joined}
          values={values}
          note={note}
          dim={basis !== null && basis.current < basis.counted}
        />
      )}
      {basis && source?.isDeclared !== false && (
        <p className={basis.current < basis.counted ? 'fine short' : 'fine'}>
          These numbers are <SumAge basis={basis} />.
        </p>
      )}
      {truncated > 0 && joined.length > 0 && (
        <p className="fine short">
          ▲ Rows of {plural(truncated, 'cluster')} are cut off at the limit of the MetricSource: these numbers are of
          what was taken.
        </p>
      )}
      {rest.length > 0 && (
        <p className="fine">
          {rest.map(({ name, unit }) => titleOf(name, unit)).join(', ')}: of each cluster, below; such numbers of
          several clusters do not make one.
        </p>
      )}
      {source && (
        <nav className="view-switch" aria-label="Rows or clusters">
          {(['rows', 'clusters'] as const).map((one) => (
            <Link
              key={one}
              to={withSet(`${typesPath(view.type)}${one === usual ? '' : `?view=${one}`}`, query)}
              {...(shown === one && { 'aria-current': 'true' as const })}
            >
              {one === 'rows' ? 'All rows' : 'By cluster'}
            </Link>
          ))}
        </nav>
      )}
      {source && shown === 'rows' ? (
        <FleetRows view={view} source={source} onCounted={onCounted} />
      ) : (
        <ResourceTable
          caption={`${view.type} by cluster`}
          id="type-clusters"
          noun={rows.size === 1 ? 'cluster' : 'clusters'}
          rows={rows}
          columns={columns}
          words={wordsOf}
          rowKey={keyOf}
          sort="cluster"
          rowHeight={44}
          example="state:* rows>100"
          controls={<SetChoice />}
          dim={(on) => !isCurrentOn(on)}
          empty={
            <Empty title="On no cluster yet" icon={<IconTableOff size={30} aria-hidden="true" />}>
              <p>The MetricSource is in force, and no cluster was asked for it so far. It appears here by itself.</p>
            </Empty>
          }
        />
      )}
    </div>
  )
}

/** Every row there is, of whichever cluster; those of a cluster that is not read now are of the past, and look so. */
function FleetRows({
  view,
  source,
  onCounted,
}: Pick<AcrossProps, 'view' | 'onCounted'> & { source: SourceView }): ReactNode {
  const old = view.clusters.flatMap((on) => (isCurrentOn(on) ? [] : on.cluster)).join(' ')
  const past = useMemo(() => new Set(old.split(' ')), [old])
  const isPast = useCallback(({ cluster }: { readonly cluster: string }) => past.has(cluster), [past])
  const unread = view.clusters.filter(({ part }) => part.freshness === null && part.outcome !== 'absent')
  const [told, setTold] = useState<{ page: RowsPage; rows: ReadonlyMap<string, ShownRow> } | null>(null)
  const onPage = useCallback((page: RowsPage, rows: ReadonlyMap<string, ShownRow>) => setTold({ page, rows }), [])
  const id = new URLSearchParams(usePlace().query).get('row')
  const [cluster = '', ...rowId] = id?.split('/') ?? []
  return (
    <>
      {unread.length > 0 && (
        <p className="fine short">
          ▲ Without {plural(unread.length, 'cluster')} that {unread.length === 1 ? 'was' : 'were'} never read:{' '}
          <ClusterNames names={unread.map(({ cluster }) => cluster)} />.
        </p>
      )}
      <RowsTable
        cluster={null}
        type={view.type}
        source={view.sources.length > 1 ? source.id : ''}
        info={source}
        count={view.count}
        onCounted={onCounted}
        onPage={onPage}
        isPast={isPast}
        empty={<NoneThere type={view.type} />}
      />
      <RowBeside
        cluster={cluster}
        type={view.type}
        source={source}
        on={view.clusters.find((on) => on.cluster === cluster)}
        rows={told?.rows ?? null}
        id={id}
        rowId={rowId.join('/')}
        referredBy={null}
        onClose={() => navigate(rowPath(null, view.type, null))}
      />
    </>
  )
}

const NoneThere = ({ type }: { type: string }): ReactNode => (
  <Empty title="None there" icon={<IconTableOff size={30} aria-hidden="true" />}>
    <p>No cluster that was read has any that you may see.</p>
    <HowToBegin type={type} />
  </Empty>
)

/** Of the total that is over the most clusters: the others are over a part of them. */
function basisOfTotals(totals: readonly FleetTotal[]): Basis | null {
  const [widest] = totals.toSorted((a, b) => b.clusters - a.clusters)
  if (!widest || widest.clusters === 0) return null
  const { clusters: counted, missing, current } = widest
  return { of: counted + missing, counted, current, oldestAt: Math.min(...totals.map(({ oldestAt }) => oldestAt)) }
}

const keyOf = ({ cluster }: TypeOnClusterView) => cluster
const wordsOf = ({ cluster, displayName }: TypeOnClusterView) => `${cluster} ${displayName}`

const tableValue = (value: AggregatedView | undefined): Value =>
  value === undefined ? null : isGroups(value) ? Object.keys(value).length : value

function clusterColumns(
  type: string,
  aggregations: readonly AggregationInfoView[],
): readonly Column<TypeOnClusterView>[] {
  return [
    {
      id: 'cluster',
      header: 'Cluster',
      value: ({ cluster }) => cluster,
      exports: [
        { id: 'cluster', header: 'Cluster', value: ({ cluster }) => cluster },
        { id: 'displayName', header: 'Display name', value: ({ displayName }) => displayName || null, absence: 'none' },
      ],
      cell: ({ cluster, displayName }) => (
        <ClusterCell name={cluster} displayName={displayName} to={clusterPath(cluster, 'types', type)} />
      ),
    },
    {
      id: 'state',
      header: 'State',
      width: 190,
      value: (on) => collectionStatusWord[collectionStatusOf(on)],
      cell: (on) => <CollectionStatusCell on={on} />,
    },
    {
      id: 'rows',
      header: 'Rows',
      width: 90,
      align: 'end',
      kind: 'number',
      descendingFirst: true,
      value: (on) => (hasRows(on) ? on.part.count : null),
      cell: (on) => (hasRows(on) ? formatCount(on.part.count) : <Missing why={noRowsWhy(on)} />),
    },
    ...aggregations
      .filter(({ groupBy }) => groupBy === null)
      .map(
        (info, place): Column<TypeOnClusterView> => ({
          id: info.name,
          header: titleOf(info.name, info.unit),
          width: Math.max(110, Math.min(220, titleOf(info.name, info.unit).length * 7.4 + 36)),
          align: 'end',
          kind: info.unit === 'bytes' ? 'bytes' : 'number',
          ...(unitText[info.unit] && { unit: unitText[info.unit] as string }),
          descendingFirst: true,
          extra: place >= 5,
          value: ({ aggregations: values }) => tableValue(values?.[info.name]),
          cell: (on) =>
            on.aggregations === null ? (
              <Missing why="measurements of this cluster are not shown to you" />
            ) : hasRows(on) ? (
              <AggregatedText value={on.aggregations[info.name]} unit={info.unit} />
            ) : (
              <Missing why={noRowsWhy(on)} />
            ),
        }),
      ),
    {
      id: 'age',
      header: 'As of',
      width: 100,
      align: 'end',
      kind: 'time',
      value: ({ part }) => part.freshness?.observedAt ?? null,
      cell: (on) =>
        on.part.freshness === null ? (
          <Missing why="it was never read" />
        ) : (
          <span className={on.stale ? 'short' : ''}>
            <Age at={on.part.freshness.observedAt} suffix=" ago" />
          </span>
        ),
    },
    { id: 'notes', header: 'Notes', width: 220, extra: true, value: notesOf },
  ]
}

const noRowsWhy = (on: TypeOnClusterView): string => {
  switch (collectionStatusOf(on)) {
    case 'absent':
      return 'this cluster does not serve the kind'
    case 'forbidden':
      return 'ClusterPulse may not read it there'
    case 'unreachable':
      return 'the cluster could not be read'
    default:
      return 'it was not read yet'
  }
}
