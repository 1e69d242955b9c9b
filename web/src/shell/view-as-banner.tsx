import { IconEye } from '@tabler/icons-react'
import { type ReactNode, useEffect, useState } from 'react'
import { useAtTime, useHub } from '../live/hooks.ts'
import { formatCountdown } from '../model/format.ts'
import { useSession } from '../session.ts'

/** Whose eyes this tab looked through last, until whoever looks ended that; over a loading anew, too. */
const VIEWED = 'clusterpulse.viewed'
const kept = {
  get(): string | null {
    try {
      return sessionStorage.getItem(VIEWED)
    } catch {
      return null // storage may be forbidden
    }
  },
  set(viewed: string | null): void {
    try {
      if (viewed === null) sessionStorage.removeItem(VIEWED)
      else sessionStorage.setItem(VIEWED, viewed)
    } catch {
      // then nothing is said when it ends
    }
  },
}

/** Above every page while an administrator looks through the eyes of somebody else: it must never be forgotten. */
export function ViewAsBanner(): ReactNode {
  const session = useSession()
  const { client } = useHub()
  const [state, setState] = useState<{ busy: boolean; fault: string }>({ busy: false, fault: '' })
  const left = useAtTime((now) => (session?.sessionEndsAt == null ? '' : formatCountdown(session.sessionEndsAt - now)))
  const viewed = session?.actor == null ? undefined : session.user?.username
  useEffect(() => {
    if (viewed !== undefined) kept.set(viewed)
  }, [viewed])
  if (session?.actor == null) return session?.user ? <Ended /> : null
  if (!session.user) return null
  const { username, groups } = session.user
  const stop = () => {
    setState({ busy: true, fault: '' })
    client.endViewAs().then(
      () => {
        kept.set(null)
        // Nothing that was read through the eyes of one is kept for the other.
        window.location.reload()
      },
      (cause: unknown) => setState({ busy: false, fault: cause instanceof Error ? cause.message : String(cause) }),
    )
  }
  return (
    <aside className="banner view-as" aria-label="Looking through other eyes">
      <IconEye size={18} aria-hidden="true" />
      <span>
        You are looking through the eyes of <b>{username}</b>{' '}
        {groups.length > 0 ? `(groups ${groups.join(', ')})` : '(in no group)'}: reading only
        {left && (
          <>
            {' '}
            · <span className="view-as-left">{left} left</span>
          </>
        )}
        {state.fault && <span role="alert"> · It could not be ended: {state.fault}</span>}
      </span>
      <button type="button" className="button" onClick={stop} disabled={state.busy}>
        Stop
      </button>
    </aside>
  )
}

/** That it ended without a click here: its time was over, the hub was started anew, or another tab ended it. */
function Ended(): ReactNode {
  const [viewed, setViewed] = useState(kept.get)
  if (viewed === null) return null
  const dismiss = () => {
    kept.set(null)
    setViewed(null)
  }
  return (
    <aside className="banner view-as" aria-label="Your own eyes">
      <IconEye size={18} aria-hidden="true" />
      <span role="status">
        You look with your own eyes again, and no longer through those of <b>{viewed}</b>: the hub ended that (its time
        was over, or the hub was started anew), or another tab did
      </span>
      <button type="button" className="button" onClick={dismiss}>
        Dismiss
      </button>
    </aside>
  )
}
