import type { ReactNode } from 'react'
import { Hidden } from '../../components/text.tsx'
import { useMemberRequests } from '../../live/use-members.ts'
import { formatCount, plural } from '../../model/format.ts'

/** How many requests to join wait, beside the way to them; nothing where none does. */
export function RequestIndicator(): ReactNode {
  const listed = useMemberRequests()
  if (listed.state !== 'here' || listed.total === 0) return null
  return (
    <span className="registry-count" data-tip={`${plural(listed.total, 'request')} to join`}>
      <span className="health is-degraded" aria-hidden="true">
        ▲
      </span>
      <span aria-hidden="true">{formatCount(listed.total)}</span>
      <Hidden>{plural(listed.total, 'request')} to join</Hidden>
    </span>
  )
}
