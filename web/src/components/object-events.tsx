import type { ReactNode } from 'react'
import type { TypeOnClusterView } from '../contract.ts'
import { useFirstRows } from '../live/use-rows.ts'
import { formatCount } from '../model/format.ts'
import { kubeEvent, kubernetesEvents } from '../model/kube-events.ts'
import { clusterPath, Link } from '../router.tsx'
import { EventItems } from './event-list.tsx'
import { NotUpdated } from './not-updated.tsx'
import { Failure, Skeleton } from './states.tsx'
import { Age, Cause } from './text.tsx'

/** That many are shown; the list of all is a link away. */
const MOST = 50
/** Those of which some may be about something else. */
const ASKED = 500

interface ObjectEventsProps {
  readonly cluster: string
  /** '' where they are about nothing in a namespace; undefined: of all namespaces */
  readonly namespace?: string | undefined
  /** conditions that each event holds, as GET …/types/… takes them */
  readonly where: readonly string[]
  /** which of those that hold are meant; default: all */
  readonly keeps?: (object: string) => boolean
  /** they are about more than one thing */
  readonly withObject?: boolean
  /** the filter of the list of all */
  readonly filter: string
}

/** Kubernetes events of something, newest first, as they come. That there are none, that they may not be read, and that they are on their way are told apart. */
export function ObjectEvents(props: ObjectEventsProps): ReactNode {
  const { cluster, namespace, where, keeps = () => true, withObject = false, filter } = props
  const query = {
    ...{ sort: 'lastAt', order: 'desc' as const, where },
    ...(namespace ? { namespace } : {}),
  }
  const [paged, again] = useFirstRows(cluster, kubernetesEvents, query, ASKED)
  if (paged.state === 'waiting') return <Skeleton label="Loading events" lines={3} />
  if (paged.state === 'failed')
    return paged.problem.code === 'type_not_found' ? (
      <p className="quiet">Kubernetes events of this cluster are not read, or not shown to you.</p>
    ) : (
      <Failure problem={paged.problem} onRetry={again} title="The events could not be loaded" />
    )
  const { rows, page } = paged
  const [on] = page.on
  const events = [...rows.values()].map((row) => kubeEvent(cluster, row)).filter(({ object }) => keeps(object))
  return (
    <>
      <NotUpdated problem={paged.problem} inPlace onRetry={again} />
      {on && <HowRead on={on} />}
      {events.length > 0 && <EventItems events={events.slice(0, MOST)} withObject={withObject} />}
      {events.length === 0 && on?.part.freshness && (
        <p className="quiet">
          No events{on.filtered ? ' that you may see' : ''}. A cluster forgets its own after an hour, usually.
        </p>
      )}
      {events.length > MOST && (
        <p className="fine">
          The newest {MOST} of {formatCount(page.total > rows.size ? page.total : events.length)}
        </p>
      )}
      <p>
        <Link to={`${clusterPath(cluster, 'types', 'kubernetes-events')}?${new URLSearchParams({ q: filter })}`}>
          All as a table
        </Link>
      </p>
    </>
  )
}

/** Why what is shown is not what is true now. */
function HowRead({ on }: { on: TypeOnClusterView }): ReactNode {
  const { part, truncated } = on
  const at = part.freshness?.observedAt
  if (part.outcome === 'forbidden')
    return (
      <p className="notice is-degraded">
        ClusterPulse may not read events on this cluster: <Cause message={part.message} />
      </p>
    )
  if (part.outcome === 'absent') return <p className="quiet">This cluster does not serve events.</p>
  if (part.outcome === 'unreachable')
    return (
      <p className="notice is-unhealthy">
        Events could not be read: <Cause message={part.message} />
        {at !== undefined && (
          <>
            {' '}
            What is shown is as of <Age at={at} suffix=" ago" focusable />.
          </>
        )}
      </p>
    )
  if (at === undefined) return <p className="quiet">Events of this cluster have not been read yet.</p>
  return (
    <p className="fine">
      as of <Age at={at} suffix=" ago" focusable />
      {truncated && '; the cluster has more events than are kept, and only the newest are here'}
    </p>
  )
}
