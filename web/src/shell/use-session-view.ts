import { useEffect, useState } from 'react'
import type { SessionView } from '../contract.ts'
import { useHub } from '../live/hooks.ts'
import type { Link } from '../live/live-store.ts'

/** Who looks. Asked at the start, and again when the connection comes back or is refused: a sign-in may have ended. */
export function useSessionView(link: Link['state']): SessionView | null {
  const { client } = useHub()
  const [session, setSession] = useState<SessionView | null>(null)
  const phase = link === 'live' || link === 'refused' ? link : 'other'
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new phase asks again
  useEffect(() => {
    const asking = new AbortController()
    client.session(asking.signal).then(setSession, (cause: unknown) => {
      // The connection indicator tells of a hub that does not answer; who looks is not known then.
      if (!asking.signal.aborted) console.warn('the session could not be read', cause)
    })
    return () => asking.abort()
  }, [client, phase])
  return session
}
