import { type ReactNode, useMemo } from 'react'
import { ClusterName } from '../../components/cluster-name.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { EventItems } from '../../components/event-list.tsx'
import { HealthMark } from '../../components/health.tsx'
import { Jointed, Name } from '../../components/name.tsx'
import { NotUpdated } from '../../components/not-updated.tsx'
import { type Column, ResourceTable, type TableView } from '../../components/resource-table.tsx'
import { RowLink } from '../../components/row-link.tsx'
import { insteadOfSet, SetChoice } from '../../components/set-choice.tsx'
import { Empty, Failure, Skeleton } from '../../components/states.tsx'
import { Age, Missing, NotShown } from '../../components/text.tsx'
import { useNarrow } from '../../components/use-media.ts'
import { usePrinting } from '../../components/use-printing.ts'
import { formatCount, plural } from '../../model/format.ts'
import type { TimelineLine } from '../../model/kube-events.ts'
import { clusterPath, eventsPath, Link, namespacePath, navigate, typesPath, usePlace, withSet } from '../../router.tsx'
import { PageHeading } from '../../shell/page-heading.tsx'
import { CLUSTERS_ASKED, useTimeline } from './use-timeline.ts'

/** What happened in the fleet: Kubernetes events of all clusters and the hub's own, newest first, equal causes as one line. */
export function EventsPage(): ReactNode {
  const { paged, told, lines, again, askAgain, clusterCount, set } = useTimeline()
  const withoutSet = insteadOfSet(set)
  const { query } = usePlace()
  const columns = useMemo(() => columnsFor((key) => linePath(query, key)), [query])
  const isNarrow = useNarrow()
  const isPrinting = usePrinting()
  const instead = useMemo(() => listFor((key) => linePath(query, key)), [query])
  const open = lines.get(new URLSearchParams(query).get('line') ?? '')
  const here = paged.state === 'here' ? paged : null
  const isWithout = paged.state === 'failed' && paged.problem.code === 'type_not_found'
  const unread = (here?.page.on ?? []).filter(({ part }) => !['complete', 'absent'].includes(part.outcome))
  return (
    <>
      <PageHeading title="Events">Events</PageHeading>
      {withoutSet !== null ? (
        <>
          <p>
            <SetChoice />
          </p>
          {withoutSet}
        </>
      ) : paged.state === 'waiting' ? (
        <Skeleton label="Loading events" lines={12} />
      ) : paged.state === 'failed' && !isWithout ? (
        <Failure problem={paged.problem} onRetry={again} title="The events could not be loaded" />
      ) : (
        <div className="stack type-stack">
          {here && <NotUpdated problem={here.problem} onRetry={again} />}
          {isWithout && <p className="notice is-degraded">Kubernetes events are not read, or not shown to you.</p>}
          {told.state === 'failed' && (
            <p className="notice is-degraded">
              What the hub saw before now could not be loaded: {told.problem.message}{' '}
              <button type="button" className="text-button" onClick={askAgain}>
                Retry
              </button>
            </p>
          )}
          {unread.length > 0 && (
            <p className="notice is-degraded">
              <span>
                Kubernetes events are not those of now on {plural(unread.length, 'cluster')}:{' '}
                {unread.slice(0, 5).map(({ cluster, part }, place) => (
                  <span key={cluster}>
                    {place > 0 && ', '}
                    <Link to={clusterPath(cluster, 'types', 'kubernetes-events')}>
                      <ClusterName name={cluster} />
                    </Link>{' '}
                    ({part.outcome})
                  </span>
                ))}
                {unread.length > 5 && ` and ${formatCount(unread.length - 5)} more`}.
              </span>
            </p>
          )}
          <ResourceTable
            caption="Events of the fleet"
            id="fleet-events"
            noun={lines.size === 1 ? 'cause' : 'causes'}
            rows={lines}
            columns={columns}
            words={wordsOf}
            rowKey={keyOf}
            sort="when"
            example="type:* reason:* namespace:* when<10m words"
            instead={isNarrow && !isPrinting ? instead : undefined}
            note={
              <Note
                shown={here?.rows.size ?? 0}
                total={here?.page.total ?? 0}
                isTruncated={here?.page.on.some(({ truncated }) => truncated) ?? false}
                clusterCount={clusterCount}
              />
            }
            controls={
              <>
                <SetChoice />
                <Link to={withSet(typesPath('kubernetes-events'), query)} className="button">
                  Each by itself
                </Link>
              </>
            }
            empty={
              <Empty title="Nothing happened that is remembered">
                <p>Clusters forget their events after an hour, usually. New ones appear here by themselves.</p>
              </Empty>
            }
          />
          {open && <Unfolded line={open} onCloseTo={linePath(query, null)} />}
        </div>
      )}
    </>
  )
}

function Note({
  shown,
  total,
  isTruncated,
  clusterCount,
}: {
  shown: number
  total: number
  isTruncated: boolean
  clusterCount: number
}): ReactNode {
  const said = [
    ...(total > shown ? [`of the ${formatCount(total)} Kubernetes events the newest ${formatCount(shown)}`] : []),
    ...(isTruncated ? ['some clusters have more than are kept'] : []),
    ...(clusterCount > CLUSTERS_ASKED ? [`what the hub saw is of the first ${CLUSTERS_ASKED} clusters by name`] : []),
  ]
  return said.length > 0 ? <span className="fine">{said.join('; ')}</span> : null
}

/** The same place with a line unfolded, or with none. */
function linePath(query: string, key: string | null): string {
  const changed = new URLSearchParams(query)
  if (key === null) changed.delete('line')
  else changed.set('line', key)
  const text = changed.toString()
  return `${eventsPath}${text && `?${text}`}`
}

const keyOf = ({ key }: TimelineLine) => key
const wordsOf = ({ cluster, namespace, type, reason, about, object, text }: TimelineLine) =>
  [cluster, namespace, type, reason, about, object, text ?? ''].join(' ')

const columnsFor = (path: (key: string) => string): readonly Column<TimelineLine>[] => [
  {
    id: 'when',
    header: 'When',
    width: 96,
    kind: 'time',
    descendingFirst: true,
    value: ({ at }) => at,
    cell: ({ at }) => (at === null ? <Missing why="the event does not say it" /> : <Age at={at} suffix=" ago" />),
  },
  {
    id: 'reason',
    header: 'What',
    width: 190,
    value: ({ reason }) => reason,
    cell: ({ key, need, type, reason }) => (
      <span className="event-line">
        <HealthMark need={need} bare word={type} />
        <RowLink to={path(key)}>{reason || 'no reason'}</RowLink>
      </span>
    ),
  },
  {
    id: 'count',
    header: 'Count',
    width: 80,
    align: 'end',
    kind: 'number',
    descendingFirst: true,
    value: ({ count }) => count,
    cell: ({ count }) => formatCount(count),
  },
  {
    id: 'object',
    header: 'Object',
    width: 230,
    least: 140,
    value: ({ about }) => about || null,
    cell: ({ about }) => (about === '' ? <span className="quiet">none</span> : <Name text={about} />),
  },
  {
    id: 'namespace',
    header: 'Namespace',
    width: 140,
    least: 100,
    value: ({ namespace }) => namespace || null,
    cell: ({ cluster, namespace }) =>
      namespace === '' ? (
        <span className="quiet">none</span>
      ) : (
        <Link to={namespacePath(cluster, namespace)}>
          <Name text={namespace} />
        </Link>
      ),
  },
  {
    id: 'cluster',
    header: 'Cluster',
    width: 180,
    least: 120,
    value: ({ cluster }) => cluster,
    cell: ({ cluster }) => (
      <Link to={clusterPath(cluster)}>
        <ClusterName name={cluster} />
      </Link>
    ),
  },
  {
    id: 'message',
    header: 'Message',
    value: ({ text }) => text,
    cell: ({ text }) =>
      text === null ? (
        <NotShown what="the message" />
      ) : (
        <span className="clip" data-tip={text}>
          {text}
        </span>
      ),
  },
  { id: 'type', header: 'Type', width: 110, extra: true, value: ({ type }) => type },
  { id: 'from', header: 'Seen by', width: 120, extra: true, value: ({ from }) => from },
  {
    id: 'first',
    header: 'First',
    width: 96,
    extra: true,
    kind: 'time',
    value: ({ firstAt }) => firstAt,
    cell: ({ firstAt }) =>
      firstAt === null ? <Missing why="the event does not say it" /> : <Age at={firstAt} suffix=" ago" />,
  },
]

/** Where there is little room a sentence takes the lines it needs. */
const listFor =
  (path: (key: string) => string) =>
  ({ rows, gone }: TableView<TimelineLine>): ReactNode => (
    <ol className="event-list">
      {rows
        .filter(({ key }) => !gone.has(key))
        .map(({ key, need, type, reason, about, text, at, count, cluster, namespace }) => (
          <li key={key}>
            <HealthMark need={need} bare word={type} />
            <span>
              <RowLink to={path(key)}>{reason || 'no reason'}</RowLink>{' '}
              {text === null ? <NotShown what="the message" /> : <Jointed text={text} />}
            </span>
            <span className="fine">
              {about} {namespace && `in ${namespace}`} on <ClusterName name={cluster} />
              {', '}
              {at === null ? 'at a time that is not known' : <Age at={at} suffix=" ago" />}
              {count > 1 && `, ${formatCount(count)} times`}
            </span>
          </li>
        ))}
    </ol>
  )

/** The events of one line, each by itself. */
function Unfolded({ line, onCloseTo }: { line: TimelineLine; onCloseTo: string }): ReactNode {
  const { reason, about, cluster, namespace, from, members } = line
  return (
    <Dialog title={reason || 'Event'} onClose={() => navigate(onCloseTo)} className="drawer">
      <p className="drawer-lead">
        <Link to={clusterPath(cluster)}>
          <span className="tag">
            <ClusterName name={cluster} />
          </span>
        </Link>
        {namespace !== '' && (
          <Link to={namespacePath(cluster, namespace)}>
            <span className="tag mono">{namespace}</span>
          </Link>
        )}
        <span>{about}</span>
        <span className="fine">{from === 'hub' ? 'seen by the hub' : 'told by the cluster'}</span>
      </p>
      <EventItems events={members} withObject />
    </Dialog>
  )
}
