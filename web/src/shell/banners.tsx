import {
  IconAlertTriangle,
  IconCloudOff,
  IconDatabaseOff,
  IconEye,
  IconLock,
  IconPlayerPause,
} from '@tabler/icons-react'
import type { ReactNode } from 'react'
import { afloatId } from '../components/not-updated.tsx'
import { Age } from '../components/text.tsx'
import { isWhole, storeCause, storeTitle } from '../contract.ts'
import { useAtTime, useHub, useLive, useUnheard } from '../live/hooks.ts'
import { accessPath, Link, type Route } from '../router.tsx'
import { useSession } from '../session.ts'

/** how long the note stands where nobody dismisses it */
const noteMs = 60_000

/** What limits the truth of the whole page, said once: above it, or over its lower edge where that comes and goes. */
export function Banners({ route }: { route: Route }): ReactNode {
  const { store } = useHub()
  const link = useLive((live) => live.link)
  const data = useLive((live) => live.fleet.store)
  const heardAt = useLive((live) => live.heardAt)
  const problem = useLive((live) => live.problem)
  // Before anything is known, the page itself tells what is wrong.
  const loaded = useLive((live) => live.fleet.loaded)
  const asOf = heardAt !== null && (
    <>
      {' '}
      What is shown is as of <Age at={heardAt} suffix=" ago" />.
    </>
  )
  const unheard = useUnheard()
  const changedAt = useLive((live) => live.accessChangedAt)
  const provisional = useSession()?.provisional
  const changed = useAtTime((now) => changedAt !== null && now - changedAt < noteMs)
  return (
    <>
      <div role="status" className="banners">
        {provisional && (
          <p className="banner is-degraded">
            <IconAlertTriangle size={18} aria-hidden="true" />
            <span>
              <b>Not proved to be complete.</b> {provisional}
            </span>
          </p>
        )}
        {!loaded && problem?.code === 'policies_unavailable' && route.page === 'access' && (
          <p className="banner is-unhealthy">
            <IconLock size={18} aria-hidden="true" />
            <span>
              <b>The policies cannot be read.</b> No cluster is shown until they can. <code>{problem.code}</code>
            </span>
            <button type="button" className="text-button" onClick={() => store.refresh()}>
              Retry now
            </button>
          </p>
        )}
      </div>
      {/* These come and go by themselves: they move nothing that somebody reads or points at. */}
      <div role="status" className="banners is-afloat" id={afloatId}>
        {changed && (
          <p className="banner is-news">
            <IconEye size={18} aria-hidden="true" />
            <span>
              <b>What you may see has changed.</b> The page shows what it is now.{' '}
              <Link to={accessPath('me')}>What may I see?</Link>
            </span>
            <button type="button" className="text-button" onClick={() => store.noteRead()}>
              Dismiss
            </button>
          </p>
        )}
        {unheard === 'waiting' && (
          <p className="banner is-degraded">
            <IconCloudOff size={18} aria-hidden="true" />
            <span>
              <b>The hub is not heard.</b> It is waited for, and the stream is opened again as soon as it answers.{asOf}
            </span>
            <button type="button" className="text-button" onClick={() => store.refresh()}>
              Retry now
            </button>
          </p>
        )}
        {unheard === 'offline' && (
          <p className="banner is-unhealthy">
            <IconCloudOff size={18} aria-hidden="true" />
            <span>
              <b>Offline.</b> The hub cannot be reached.{asOf}
            </span>
            <button type="button" className="text-button" onClick={() => store.refresh()}>
              Retry now
            </button>
          </p>
        )}
        {loaded && link.state === 'polling' && problem && isWhole(data) && (
          <p className="banner is-degraded">
            <IconDatabaseOff size={18} aria-hidden="true" />
            <span>
              <b>The hub cannot answer.</b> {problem.message} <code>{problem.code}</code>
              {problem.requestId && <code>request {problem.requestId}</code>}
              {asOf}
            </span>
            <button type="button" className="text-button" onClick={() => store.refresh()}>
              Retry now
            </button>
          </p>
        )}
        {!isWhole(data) && (
          <p className="banner is-degraded">
            <IconDatabaseOff size={18} aria-hidden="true" />
            <span>
              <b>{storeTitle(data)}</b> {storeCause(data)}
              {data.since !== null && (
                <>
                  {' '}
                  It began <Age at={data.since} suffix=" ago" />.
                </>
              )}{' '}
              What is shown may be old.
            </span>
          </p>
        )}
        {link.state === 'paused' && (
          <p className="banner">
            <IconPlayerPause size={18} aria-hidden="true" />
            <span>
              <b>Paused</b>
              {link.by === 'hidden' ? ' while this tab was hidden.' : '.'}
              {asOf}
            </span>
            <button type="button" className="text-button" onClick={() => store.resume()}>
              Resume
            </button>
          </p>
        )}
      </div>
    </>
  )
}
