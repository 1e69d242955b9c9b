import { type ReactNode, useLayoutEffect, useRef } from 'react'
import { type Absence, absenceWord, causeIn } from '../contract.ts'
import { useAtTime } from '../live/hooks.ts'
import { dash, formatMoment, formatSpan, formatUtc } from '../model/format.ts'
import { Jointed } from './name.tsx'

/** Only for those who listen. */
export const Hidden = ({ children }: { children: ReactNode }): ReactNode => <span className="vh">{children}</span>

/** A value that is not known, and why. Never a zero. */
export function Missing({ why, focusable = false }: { why: string; focusable?: boolean }): ReactNode {
  return (
    <span className="missing" data-tip={why} {...(focusable && { tabIndex: 0 })}>
      <span aria-hidden="true">{dash}</span>
      <Hidden>not known: {why}</Hidden>
    </span>
  )
}

/** A value that is known to the hub, and that policies keep from whoever looks. It has a sign of its own: it is not unknown. */
export function NotShown({ what, focusable = false }: { what: string; focusable?: boolean }): ReactNode {
  return (
    <span className="missing not-shown" data-tip={`Not shown to you: ${what}`} {...(focusable && { tabIndex: 0 })}>
      <span aria-hidden="true">
        {dash}
        <svg viewBox="0 0 10 12" width="8" height="10" aria-hidden="true">
          <path d="M2.8 5V3.4a2.2 2.2 0 0 1 4.4 0V5M1.6 5h6.8v5.8H1.6z" />
        </svg>
      </span>
      <Hidden>not shown to you: {what}</Hidden>
    </span>
  )
}

/** Why something failed; all that is known of it, with the request that was tried, on hover and focus. */
export function Cause({ message }: { message: string }): ReactNode {
  const cause = causeIn(message)
  return (
    <span {...(cause !== message && { 'data-tip': message, tabIndex: 0 })}>
      <Jointed text={cause} />
    </span>
  )
}

/** What stands where there is no value. */
export function Absent({ absence, what }: { absence: Absence; what: string }): ReactNode {
  switch (absence) {
    case 'none':
      return <span className="quiet">{absenceWord.none}</span>
    case 'hidden':
      return <NotShown what={what} />
    case 'unknown':
      return <Missing why={`${what} was not read, or could not be made out`} />
    default:
      return <Missing why={`${what}: ${absenceWord[absence]}`} />
  }
}

/** How long ago, true to the second; the moment itself on hover and focus. */
export function Age({
  at,
  suffix = '',
  focusable = false,
}: {
  at: number
  suffix?: string
  focusable?: boolean
}): ReactNode {
  const text = useAtTime((now) => formatSpan(now - at))
  return (
    <time
      dateTime={safeIso(at)}
      data-tip={formatMoment(at)}
      data-print={formatUtc(at)}
      {...(focusable && { tabIndex: 0 })}
    >
      <span className="on-screen">
        {text}
        {suffix}
      </span>
    </time>
  )
}

const safeIso = (at: number): string => {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? '' : date.toISOString()
}

const still = matchMedia('(prefers-reduced-motion: reduce)')

/** Lights up for a moment when its value changes; nothing moves, and nothing at all where motion is unwelcome. */
export function Flash({ value, children }: { value: string | number | null; children: ReactNode }): ReactNode {
  const element = useRef<HTMLSpanElement>(null)
  const before = useRef(value)
  useLayoutEffect(() => {
    if (before.current === value) return
    before.current = value
    if (still.matches) return
    element.current?.animate([{ backgroundColor: 'var(--flash)' }, { backgroundColor: 'transparent' }], {
      duration: 1600,
      easing: 'ease-out',
    })
  }, [value])
  return (
    <span className="flash" ref={element}>
      {children}
    </span>
  )
}
