import type { ReactNode } from 'react'
import type { TimelineEvent } from '../model/kube-events.ts'
import { linkPath } from '../model/link-path.ts'
import { Link } from '../router.tsx'
import { HealthMark } from './health.tsx'
import { Name, WithNames } from './name.tsx'
import { Age, NotShown } from './text.tsx'

/** The object of an event, as a link where the hub knows one. */
function About({ event: { cluster, object, links } }: { event: TimelineEvent }): ReactNode {
  const link = links?.find(({ column }) => column === 'object')
  if (object === '') return null
  return link ? (
    <Link to={linkPath(cluster, link)}>
      <Name text={object} />
    </Link>
  ) : (
    <Name text={object} />
  )
}

/** Events, newest first: what happened, why, to what, how often and when. @param withObject they are about more than one thing */
export const EventItems = ({
  events,
  withObject = false,
}: {
  events: readonly TimelineEvent[]
  withObject?: boolean
}): ReactNode => (
  <ol className="event-list">
    {events.map((event) => (
      <li key={event.key}>
        <HealthMark need={event.need} bare word={event.type} />
        <span>
          <b>{event.reason}</b>{' '}
          {event.text === null ? <NotShown what="the message" /> : <WithNames text={event.text} />}
        </span>
        <span className="fine">
          {withObject && event.object !== '' && (
            <>
              <About event={event} />{' '}
            </>
          )}
          {event.at === null ? 'at a time that is not known' : <Age at={event.at} suffix=" ago" focusable />}
          {event.count > 1 && (
            <>
              , {event.count} times
              {event.firstAt !== null && (
                <>
                  {' '}
                  in <Age at={event.firstAt} focusable />
                </>
              )}
            </>
          )}
        </span>
      </li>
    ))}
  </ol>
)
