import { IconPlayerPause, IconPlayerPlay, IconRefresh } from '@tabler/icons-react'
import type { ReactNode } from 'react'
import { Menu } from '../components/menu.tsx'
import { Age } from '../components/text.tsx'
import { isWhole } from '../contract.ts'
import { useAtTime, useHub, useLive } from '../live/hooks.ts'
import type { Link } from '../live/live-store.ts'
import { useUnread } from '../live/unanswered.ts'
import { formatSpan } from '../model/format.ts'

/**
 * `behind`: the stream is live, and the hub itself hears nothing new, or a part of the page says that it is of the past
 * `returning`: the stream is live, and what could not be read for want of the hub is not read yet
 */
type Shown = Link['state'] | 'behind' | 'returning'

const words: Readonly<Record<Shown, string>> = {
  connecting: 'Connecting',
  live: 'Live',
  behind: 'Behind',
  returning: 'Catching up',
  reconnecting: 'Reconnecting',
  polling: 'Polling',
  offline: 'Offline',
  paused: 'Paused',
  refused: 'Refused',
}

const sentences: Readonly<Record<Shown, string>> = {
  connecting: 'The stream of changes is being opened.',
  live: 'Changes arrive as they happen.',
  behind: 'The hub answers, and does not hear or cannot read everything: what is shown may be old.',
  returning: 'The hub is heard again; what could not be read meanwhile is read now.',
  reconnecting: 'The stream broke off; it is being opened again.',
  polling: 'The stream does not get through; everything is read every 30 s until it does.',
  offline: 'Nothing answers. It is tried again by itself every few seconds.',
  paused: 'Nothing is read.',
  refused: 'The hub refuses to answer you.',
}

const ofUnread = { unanswered: 'returning', old: 'behind' } as const

/** How this tab hears from the hub, and when it last did. */
export function LinkIndicator(): ReactNode {
  const { store } = useHub()
  const link = useLive((live) => live.link)
  const isWholeNow = useLive((live) => isWhole(live.fleet.store))
  const unread = useUnread()
  const shown: Shown = link.state !== 'live' ? link.state : !isWholeNow ? 'behind' : unread ? ofUnread[unread] : 'live'
  const heardAt = useLive((live) => live.heardAt)
  // While live only a growing silence is worth a number: heartbeats come every 5 s.
  const age = useAtTime((now) =>
    heardAt === null || (link.state === 'live' && now - heardAt < 10_000) ? '' : formatSpan(now - heardAt),
  )
  return (
    <Menu
      className={`link is-${shown}`}
      title={`Connection: ${words[shown]}${age && ` ${age} since the last update`}`}
      label={
        <>
          <span className="link-dot" aria-hidden="true" />
          <span className="link-word">{words[shown]}</span> {age && <span className="link-age">{age}</span>}
        </>
      }
    >
      <div className="menu-text">
        <p>{sentences[shown]}</p>
        {heardAt !== null && (
          <p>
            Last update <Age at={heardAt} suffix=" ago" />
          </p>
        )}
      </div>
      <button type="button" className="menu-item" onClick={() => store.refresh()}>
        <IconRefresh size={15} aria-hidden="true" /> Read everything now
      </button>
      {link.state === 'paused' ? (
        <button type="button" className="menu-item" onClick={() => store.resume()}>
          <IconPlayerPlay size={15} aria-hidden="true" /> Resume
        </button>
      ) : (
        <button type="button" className="menu-item" onClick={() => store.pause()}>
          <IconPlayerPause size={15} aria-hidden="true" /> Pause
        </button>
      )}
    </Menu>
  )
}
