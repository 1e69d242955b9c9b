import type { ReactNode } from 'react'
import { guidePath, Link } from '../../router.tsx'

/** Kinds that nobody has without doing something for it, and the guide that says what. */
const guides: Readonly<Record<string, string>> = {
  inventory: 'inventory',
  kollecttargets: 'inventory',
  kollectinventories: 'inventory',
  kollectsinks: 'inventory',
}

/** Of a kind that somebody has to begin with: where that is explained. */
export function HowToBegin({ type }: { type: string }): ReactNode {
  const guide = guides[type.replace(/^core\//, '')]
  return (
    guide && (
      <p className="state-ways">
        <Link to={guidePath(guide)} className="button">
          How to begin
        </Link>
      </p>
    )
  )
}
