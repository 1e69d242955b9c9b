import { type ComponentType, type ReactNode, Suspense } from 'react'
import { ClusterHealth } from '../../components/cluster-health.tsx'
import { FilteredTag } from '../../components/filtered.tsx'
import { Kept } from '../../components/past.tsx'
import { Empty, ErrorBoundary, Skeleton } from '../../components/states.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { Age } from '../../components/text.tsx'
import type { ClusterView } from '../../contract.ts'
import { History } from '../../history/history.tsx'
import { useAtTime, useCluster } from '../../live/hooks.ts'
import { clusterName, factsAt, isServed } from '../../model/cluster.ts'
import { isCurrent, kindParts } from '../../model/current.ts'
import { formatCount } from '../../model/format.ts'
import { type ClusterTab, clusterPath, clusterTabs, Link, whyPath } from '../../router.tsx'
import { PageHeading } from '../../shell/page-heading.tsx'
import { useSeesTypes } from '../../types-seen.ts'
import { PushStatusLine } from './agent.tsx'
import { EventsTab } from './events.tsx'
import { OverviewTab } from './overview.tsx'

const tabWord: Readonly<Record<ClusterTab, string>> = {
  overview: 'Overview',
  nodes: 'Nodes',
  namespaces: 'Namespaces',
  deployments: 'Deployments',
  operators: 'Operators',
  'cluster-operators': 'Cluster operators',
  events: 'Events',
  types: 'Types',
  history: 'History',
}

function tabCount(cluster: ClusterView, tab: ClusterTab): number | null {
  switch (tab) {
    case 'nodes':
      return cluster.nodes?.total ?? null
    case 'namespaces':
      return cluster.namespaces
    case 'deployments':
      return cluster.deployments?.total ?? null
    case 'operators':
      return cluster.operators?.total ?? null
    case 'cluster-operators':
      return cluster.clusterOperators?.total ?? null
    default:
      return null
  }
}

const TabCount = ({ cluster, tab, count }: { cluster: ClusterView; tab: ClusterTab; count: number }): ReactNode => (
  <span className="tab-count">
    <Kept cluster={cluster} type={kindParts[tab] ?? 'node'}>
      {formatCount(count)}
    </Kept>
  </span>
)

/** A tab of a kind that this cluster does not serve would lead to nothing. */
function isTabShown(cluster: ClusterView, tab: ClusterTab, seesTypes: boolean): boolean {
  if (tab === 'types') return seesTypes
  if (tab === 'operators') return isServed(cluster, 'operator')
  return tab !== 'cluster-operators' || isServed(cluster, 'clusterOperator')
}

interface ClusterPageProps {
  readonly name: string
  readonly tab: ClusterTab
  readonly node: string | null
  readonly type: string | null
  /** a namespace or a workload with a page of its own */
  readonly object: string | null
  /** the tab of the kinds of rows that MetricSources declare */
  readonly TypesTab: ComponentType<{
    cluster: ClusterView
    type: string | null
    isCore?: boolean
    row?: string | null
    object?: string | null
  }>
}

export function ClusterPage({ name, tab, node, type, object, TypesTab }: ClusterPageProps): ReactNode {
  const cluster = useCluster(name)
  const seesTypes = useSeesTypes()
  if (!cluster) {
    return (
      <>
        <PageHeading title={name}>{name}</PageHeading>
        <Empty title="There is no such cluster, or you may not see it">
          <p>It may have been disconnected since this link was made, or what you may see has changed.</p>
          <p className="state-ways">
            <Link to="/" className="button">
              To the fleet
            </Link>
            <Link to={whyPath({ cluster: name })} className="button">
              Why do I not see it?
            </Link>
          </p>
        </Empty>
      </>
    )
  }
  return (
    <>
      <PageHeading
        title={`${clusterName(cluster)} · ${object ?? type ?? tabWord[tab]}`}
        after={<StatusLine cluster={cluster} />}
      >
        {cluster.displayName || name}
      </PageHeading>
      <Tabs
        label="Parts of this cluster"
        tabs={clusterTabs
          .filter((each) => each === tab || isTabShown(cluster, each, seesTypes))
          .map((each) => {
            const count = tabCount(cluster, each)
            return {
              to: clusterPath(name, each),
              word: tabWord[each],
              isCurrent: each === tab,
              ...(count !== null && { after: <TabCount cluster={cluster} tab={each} count={count} /> }),
            }
          })}
      />
      <ErrorBoundary key={`${name} ${tab}`} view={`cluster ${tab}`}>
        <TabView cluster={cluster} tab={tab} node={node} type={type} object={object} TypesTab={TypesTab} />
      </ErrorBoundary>
    </>
  )
}

function TabView({
  cluster,
  tab,
  node,
  type,
  object,
  TypesTab,
}: Omit<ClusterPageProps, 'name'> & { readonly cluster: ClusterView }): ReactNode {
  switch (tab) {
    case 'overview':
      return <OverviewTab cluster={cluster} />
    case 'events':
      return <EventsTab cluster={cluster} />
    case 'types':
      return (
        <Suspense fallback={<Skeleton label="Loading the page" />}>
          <TypesTab key={`${type} ${object}`} cluster={cluster} type={type} object={object} />
        </Suspense>
      )
    case 'history':
      return <History cluster={cluster} />
    default:
      return (
        <Suspense fallback={<Skeleton label="Loading the page" />}>
          <TypesTab key={`${tab} ${object}`} cluster={cluster} type={tab} isCore row={node} object={object} />
        </Suspense>
      )
  }
}

/** Its age is that of its nodes; others may be read without them. */
const neverRead = ({ parts }: ClusterView): string =>
  Object.values(parts).some((part) => part?.freshness) ? 'nodes never read' : 'never read'

function StatusLine({ cluster }: { cluster: ClusterView }): ReactNode {
  const at = factsAt(cluster)
  const past = useAtTime((now) => !isCurrent(cluster, 'node', now))
  return (
    <p className="status-line">
      <ClusterHealth cluster={cluster} />
      {cluster.displayName && cluster.displayName !== cluster.name && <span className="mono sub">{cluster.name}</span>}
      {cluster.facts?.version && (
        <span className="mono">
          <Kept cluster={cluster} type="cluster">
            {cluster.facts.version}
          </Kept>
        </span>
      )}
      <span className={past ? 'as-of short' : 'as-of'}>
        {at === null ? (
          neverRead(cluster)
        ) : (
          <>
            as of <Age at={at} suffix=" ago" focusable />
          </>
        )}
      </span>
      {cluster.filtered && <FilteredTag cluster={cluster} />}
      <PushStatusLine cluster={cluster} />
    </p>
  )
}
