import { IconLock, IconPencil, IconPlugConnectedX, IconPuzzleOff, IconTableOff } from '@tabler/icons-react'
import { type ReactNode, useCallback, useMemo, useState } from 'react'
import { NotUpdated } from '../../components/not-updated.tsx'
import { Empty, Failure, Skeleton } from '../../components/states.tsx'
import { Age, Cause } from '../../components/text.tsx'
import type { ClusterView, SourceView, TypeOnClusterView, TypeView } from '../../contract.ts'
import { History } from '../../history/history.tsx'
import { useHub } from '../../live/hooks.ts'
import type { Live } from '../../live/live-store.ts'
import { useRefresh } from '../../live/refresh.ts'
import type { RowsPage, ShownRow } from '../../live/row-pages.ts'
import { useFresh } from '../../live/use-fresh.ts'
import { kindParts } from '../../model/current.ts'
import { termText } from '../../model/filter.ts'
import { formatCount, formatSpan, plural } from '../../model/format.ts'
import { partTexts } from '../../model/part-texts.ts'
import { type Counted, recounted } from '../../model/recount.ts'
import { rowCharts } from '../../model/row-charts.ts'
import { asOfNow, isIncomplete, policyType, usageBasis } from '../../model/row-values.ts'
import { Link, navigate, setQuery, typeEditorPath, typePath, typesPath, usePlace, whyPath } from '../../router.tsx'
import { useSession } from '../../session.ts'
import { HowToBegin } from './how-to-begin.tsx'
import { KindSummary } from './kind-summary.tsx'
import { AsOf, CollectionStatusMark, CollectionStatusNotes } from './parts.tsx'
import { RowBeside } from './row-beside.tsx'
import { RowsTable, rowPath } from './rows-table.tsx'
import { Tiles } from './tiles.tsx'
import { TypeMeant } from './type-page.tsx'

interface TypeOnClusterProps {
  readonly cluster: ClusterView
  readonly type: string
  /** the kind of this name that every cluster has, whatever a MetricSource calls itself */
  readonly isCore?: boolean
  /** the row that is open, where the address does not say it */
  readonly row?: string | null
}

/** One type of one cluster: its numbers, its rows, its past. */
export function TypeOnCluster({ cluster, type, isCore = false, row = null }: TypeOnClusterProps): ReactNode {
  const { client } = useHub()
  const { name } = cluster
  const ask = useCallback((signal: AbortSignal) => client.types({ cluster: name }, signal), [client, name])
  const [fresh, again] = useFresh(ask)
  useRefresh(
    useCallback((live: Live) => live.fleet.clusters.get(name), [name]),
    again,
  )
  if (fresh.state === 'waiting') return <Skeleton label="Loading the type" />
  if (fresh.state === 'failed')
    return <Failure problem={fresh.problem} onRetry={again} title="The type could not be loaded" />
  const view = fresh.value.items.find(({ type: name, sources: [source] }) =>
    isCore ? source?.id === type && !source.isDeclared : name === type,
  )
  const told = view?.clusters.find(({ cluster: of }) => of === name)
  const on = told && asOfNow(told, cluster)
  const [first] = view?.sources ?? []
  if (isCore && !on)
    return (
      <Empty title={`The ${type.replace('-', ' ')} have not been read yet`}>
        <p>
          The first round of this cluster has not ended, or ended before it came to them. They appear here by
          themselves.
        </p>
      </Empty>
    )
  if (!view || !on || !first) return <TypeMeant type={type} cluster={name} />
  return (
    <>
      <NotUpdated problem={fresh.problem} onRetry={again} />
      <OfCluster cluster={cluster} view={view} first={{ source: first, on }} row={row} />
    </>
  )
}

interface Facts {
  readonly source: SourceView
  readonly on: TypeOnClusterView
}

interface OfClusterProps {
  readonly cluster: ClusterView
  readonly view: TypeView
  readonly first: Facts
  readonly row: string | null
}

function OfCluster({ cluster, view, first, row }: OfClusterProps): ReactNode {
  const { query } = usePlace()
  const asked = new URLSearchParams(query)
  const wanted = asked.get('source') ?? ''
  const chosen = view.sources.find(({ id }) => id === wanted) ?? first.source
  const isFirst = chosen === view.sources[0]
  // Facts of the first source come with the list of types; of another one only with its rows.
  const [told, setTold] = useState<{ page: RowsPage; rows: ReadonlyMap<string, ShownRow> } | null>(null)
  const onPage = useCallback((page: RowsPage, rows: ReadonlyMap<string, ShownRow>) => setTold({ page, rows }), [])
  const [counted, setCounted] = useState<Counted | null>(null)
  const own = told && told.page.source?.id === chosen.id ? told : null
  const facts: Facts = isFirst
    ? { source: chosen, on: first.on }
    : { source: chosen, on: asOfNow(own?.page.on[0] ?? first.on, cluster) }
  const { on } = facts
  const source = useSame(facts.source)
  const plans = useMemo(() => rowCharts(source.aggregations), [source.aggregations])
  const isHistory = asked.get('view') === 'history' && plans.length > 0
  const groupLink = useCallback(
    (field: string, group: string) => {
      const changed = new URLSearchParams(query)
      changed.set('q', termText({ _namespace: 'namespace', _name: 'name' }[field] ?? field, ':', group))
      changed.delete('view')
      return `${typePath(cluster.name, view.type)}?${changed.toString()}`
    },
    [query, cluster.name, view.type],
  )
  const head = <Head cluster={cluster} view={view} facts={facts} />
  if (on.part.outcome === 'absent')
    return (
      <>
        {head}
        <Empty
          title={`This cluster does not serve ${source.kind} (${source.apiVersion})`}
          icon={<IconPuzzleOff size={30} aria-hidden="true" />}
        >
          <p>
            Nothing is wrong: there is nothing of this kind to show. It appears here by itself once it is installed.
          </p>
          <HowToBegin type={view.type} />
          <p className="fine">
            Looked for <Age at={on.part.attemptedAt} suffix=" ago" focusable />, every {formatSpan(source.intervalMs)}.
          </p>
        </Empty>
      </>
    )
  const failure = on.part.outcome === 'complete' ? null : <PartFailure facts={facts} />
  if (on.part.freshness === null)
    return (
      <>
        {head}
        {failure ?? (
          <Empty title="It has not been read yet">
            <p>The first collection of this cluster has not ended. Its rows appear here by themselves.</p>
          </Empty>
        )}
      </>
    )
  const stale = on.stale || failure !== null
  return (
    <div className="stack type-stack">
      {head}
      {failure}
      <Errors on={on} />
      {source.isDeclared ? (
        <Tiles aggregations={source.aggregations} values={on.aggregations} dim={stale} groupLink={groupLink} />
      ) : (
        <KindSummary
          aggregations={source.aggregations}
          columns={source.columns}
          values={
            counted?.rows && on.aggregations
              ? recounted(source.aggregations, on.aggregations, counted.rows)
              : on.aggregations
          }
          usage={usageBasis([on])}
          isPast={stale}
          path={(filter) => `${typePath(cluster.name, view.type)}?${new URLSearchParams({ q: filter })}`}
        />
      )}
      {plans.length > 0 && (
        <nav className="view-switch" aria-label="Rows or history">
          <Link
            to={viewPath(cluster.name, view.type, query, null)}
            {...(!isHistory && { 'aria-current': 'true' as const })}
          >
            Rows
          </Link>
          <Link
            to={viewPath(cluster.name, view.type, query, 'history')}
            {...(isHistory && { 'aria-current': 'true' as const })}
          >
            History
          </Link>
        </nav>
      )}
      {isHistory ? (
        <Past cluster={cluster} facts={facts} plans={plans} type={view.type} />
      ) : (
        <>
          <RowsTable
            key={source.id}
            cluster={cluster.name}
            type={view.type}
            source={view.sources.length > 1 ? source.id : ''}
            info={source}
            count={on.part.count}
            onCounted={setCounted}
            onPage={onPage}
            isPast={() => stale}
            empty={<NoRows cluster={cluster} type={view.type} on={on} />}
          />
          <RowBeside
            cluster={cluster.name}
            type={view.type}
            source={source}
            on={on}
            rows={own?.rows ?? null}
            id={asked.get('row') ?? row}
            referredBy={own?.page.referredBy ?? []}
            onClose={() => navigate(rowPath(cluster.name, view.type, null))}
          />
        </>
      )}
    </div>
  )
}

/** The same object for as long as it says the same: a table is not made anew with each look at the hub. */
function useSame<T extends object>(value: T): T {
  const text = JSON.stringify(value)
  // biome-ignore lint/correctness/useExhaustiveDependencies: the text stands for the value
  return useMemo(() => value, [text])
}

function viewPath(cluster: string, type: string, query: string, to: 'history' | null): string {
  const changed = new URLSearchParams(query)
  changed.delete('row')
  if (to === null) changed.delete('view')
  else changed.set('view', to)
  const text = changed.toString()
  return `${typePath(cluster, type)}${text && `?${text}`}`
}

function Head({
  cluster,
  view,
  facts: { source, on },
}: {
  cluster: ClusterView
  view: TypeView
  facts: Facts
}): ReactNode {
  const administrator = useSession()?.user?.administrator === true
  const polled = source.watch ? polledFor(cluster, source) : undefined
  return (
    <div className="type-head">
      <h2>{source.title}</h2>
      <p className="status-line">
        <CollectionStatusMark on={on} />
        <span>
          {source.kind} <span className="mono sub-inline">{source.apiVersion}</span>
        </span>
        <AsOf on={on} />
        <span className="as-of">
          {source.watch && polled === undefined && cluster.polled ? 'watched, and ' : ''}every{' '}
          {formatSpan(source.intervalMs)}
        </span>
        {polled !== undefined && (
          <span className="short" data-tip={polled}>
            not watched: {polled.slice(polled.indexOf(': ') + 2)}
          </span>
        )}
        {on.filtered ? (
          <>
            <CollectionStatusNotes on={{ ...on, filtered: false }} />
            <Link
              className="tag"
              to={whyPath({ cluster: cluster.name, type: policyType(view.type) })}
              data-tip="Policies hide rows: counts and numbers are over what you may see."
            >
              filtered · why?
            </Link>
          </>
        ) : (
          <CollectionStatusNotes on={on} />
        )}
      </p>
      <p className="type-ways">
        {view.sources.length > 1 && (
          <label className="select">
            MetricSource
            <select value={source.id} onChange={(event) => setQuery({ source: event.target.value })}>
              {view.sources.map(({ id }) => (
                <option key={id}>{id}</option>
              ))}
            </select>
          </label>
        )}
        <Link to={typesPath(view.type)} className="button">
          All clusters
        </Link>
        {administrator && source.isDeclared && (
          <Link to={typeEditorPath(source.id)} className="button">
            <IconPencil size={15} aria-hidden="true" /> Declaration
          </Link>
        )}
      </p>
    </div>
  )
}

/** Its group, and the plural that kinds are mostly called by. */
function resourceOf({ apiVersion, kind }: SourceView): { readonly group: string; readonly plural: string } {
  const group = apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : ''
  const low = kind.toLowerCase()
  const plural = low.endsWith('s') ? `${low}es` : low.endsWith('y') ? `${low.slice(0, -1)}ies` : `${low}s`
  return { group, plural }
}

/** What the cluster says of this kind where it is read with rounds alone, though it could be followed. */
function polledFor({ polled = [] }: ClusterView, source: SourceView): string | undefined {
  const { group, plural } = resourceOf(source)
  return polled.find((said) => said.startsWith(`${plural}${group && `.${group}`}: `))
}

/** The rule that lets us read it. */
function grantOf(source: SourceView): string {
  const { group, plural } = resourceOf(source)
  return `apiGroups: ["${group}"]\nresources: ["${plural}"]\nverbs: ["get", "list", "watch"]`
}

function PartFailure({ facts: { source, on } }: { facts: Facts }): ReactNode {
  const { part } = on
  const kept = part.freshness ? ' What is shown was read before.' : ''
  const tried = (
    <>
      <code>{part.code}</code> tried <Age at={part.attemptedAt} suffix=" ago" focusable />
    </>
  )
  if (part.outcome === 'forbidden')
    return (
      <div className="notice is-degraded">
        <IconLock size={20} aria-hidden="true" />
        <div>
          <p>
            <b>ClusterPulse may not read {source.kind} on this cluster:</b> <Cause message={part.message} /> {tried}.
            {kept}
          </p>
          <p>Give its account a ClusterRole with this rule:</p>
          <pre>{partTexts[kindParts[source.id] ?? '']?.grant ?? grantOf(source)}</pre>
        </div>
      </div>
    )
  return (
    <div className="notice is-unhealthy">
      <IconPlugConnectedX size={20} aria-hidden="true" />
      <p>
        <b>{source.kind} could not be read:</b> <Cause message={part.message} /> {tried}; the next collection tries
        again.{kept}
      </p>
    </div>
  )
}

/** Namespaces that could not be read, or targets that are not read to their end, each with its cause. */
function Errors({ on }: { on: TypeOnClusterView }): ReactNode {
  const { errors, errorCount } = on
  if (errorCount === 0) return null
  return (
    <details className="notice is-degraded custom-errors" open={errors.length <= 3}>
      <summary>
        {isIncomplete(on) ? (
          <>
            <b>{plural(errorCount, 'target')} of it incomplete.</b> What is gone there may still be shown here.
          </>
        ) : (
          <>
            <b>{plural(errorCount, 'namespace')} could not be read.</b> Rows of them are missing here.
          </>
        )}
      </summary>
      <div className="scroll-x">
        <table className="facts">
          <thead>
            <tr>
              <th scope="col">Namespace</th>
              <th scope="col">Outcome</th>
              <th scope="col">Why</th>
            </tr>
          </thead>
          <tbody>
            {errors.map(({ namespace, outcome, code, message }) => (
              <tr key={`${namespace} ${code} ${message}`}>
                <th scope="row" className="mono">
                  {namespace || 'all'}
                </th>
                <td>{outcome}</td>
                <td>
                  {message} <code>{code}</code>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {errorCount > errors.length && <p className="fine">and {formatCount(errorCount - errors.length)} more</p>}
    </details>
  )
}

function NoRows({ cluster, type, on }: { cluster: ClusterView; type: string; on: TypeOnClusterView }): ReactNode {
  return (
    <Empty
      title={on.filtered ? `No ${type.replace('-', ' ')} are shown to you` : 'None there'}
      icon={<IconTableOff size={30} aria-hidden="true" />}
    >
      <p>The cluster was read, and it has no {type} that you may see.</p>
      {!on.filtered && <HowToBegin type={type} />}
      {on.filtered && (
        <Link to={whyPath({ cluster: cluster.name, type: policyType(type) })} className="button">
          Why?
        </Link>
      )}
    </Empty>
  )
}

/** Ages and steps are those of the collection, not of the cluster's rounds. */
function Past({
  cluster,
  facts: { source },
  plans,
  type,
}: {
  cluster: ClusterView
  facts: Facts
  plans: ReturnType<typeof rowCharts>
  type: string
}): ReactNode {
  const { intervalMs, id } = source
  const asCollected = useMemo(() => ({ ...cluster, intervalMs, staleAfterMs: 3 * intervalMs }), [cluster, intervalMs])
  const of = useMemo(() => ({ type, source: id, plans }), [type, id, plans])
  return <History cluster={asCollected} of={of} />
}
