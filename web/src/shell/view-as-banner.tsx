import { IconEye } from '@tabler/icons-react'
import { type ReactNode, useState } from 'react'
import { useAtTime, useHub } from '../live/hooks.ts'
import { formatCountdown } from '../model/format.ts'
import { useSession } from '../session.ts'

/** Above every page while an administrator looks through the eyes of somebody else: it must never be forgotten. */
export function ViewAsBanner(): ReactNode {
  const session = useSession()
  const { client } = useHub()
  const [state, setState] = useState<{ busy: boolean; fault: string }>({ busy: false, fault: '' })
  const left = useAtTime((now) => (session?.sessionEndsAt == null ? '' : formatCountdown(session.sessionEndsAt - now)))
  if (session?.actor == null || !session.user) return null
  const { username, groups } = session.user
  const stop = () => {
    setState({ busy: true, fault: '' })
    client.endViewAs().then(
      // Loaded anew: nothing that was read through the eyes of one is kept for the other.
      () => window.location.reload(),
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
