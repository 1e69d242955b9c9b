import { type ReactNode, useEffect, useRef } from 'react'
import { Link } from '../router.tsx'

interface Tab {
  readonly to: string
  readonly word: string
  /** beside the word, such as a count */
  readonly after?: ReactNode
  readonly isCurrent: boolean
}

/** Parts of a page, each with an address. On a narrow screen the row scrolls; the current one is brought into view. */
export function Tabs({ label, tabs }: { label: string; tabs: readonly Tab[] }): ReactNode {
  const row = useRef<HTMLElement>(null)
  const current = tabs.find(({ isCurrent }) => isCurrent)?.to
  // biome-ignore lint/correctness/useExhaustiveDependencies: another tab is to be brought into view
  useEffect(() => {
    const [box, tab] = [row.current, row.current?.querySelector<HTMLElement>('[aria-current]')]
    if (!box || !tab) return
    const [from, to] = [tab.offsetLeft - box.offsetLeft, tab.offsetLeft - box.offsetLeft + tab.offsetWidth]
    if (from < box.scrollLeft || to > box.scrollLeft + box.clientWidth) box.scrollLeft = from - 24
  }, [current])
  return (
    <nav className="tabs" aria-label={label} ref={row}>
      {tabs.map(({ to, word, after, isCurrent }) => (
        <Link key={to} to={to} {...(isCurrent && { 'aria-current': 'page' as const })}>
          {word}
          {after}
        </Link>
      ))}
    </nav>
  )
}
