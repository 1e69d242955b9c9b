import type { ReactNode } from 'react'
import type { ClusterView } from '../contract.ts'
import { loadOf } from '../model/cluster.ts'
import { formatBytes, formatCores, formatPercent } from '../model/format.ts'
import { Flash, Missing, NotShown } from './text.tsx'

type Amounts = ClusterView['cpuCores']
const format = { CPU: formatCores, Memory: formatBytes }

/**
 * In words: every part with its unit, and what it is measured against.
 * @param hidden what is null may be so because it is kept from whoever looks
 */
export function loadText(
  what: keyof typeof format,
  { capacity, allocatable, requested, used }: Amounts,
  hidden = false,
): string {
  const limit = allocatable ?? capacity
  const say = format[what]
  const share = (amount: number) => (limit ? ` (${formatPercent(amount / limit)})` : '')
  const parts = [
    used === null
      ? hidden
        ? 'use not shown to you or not measured'
        : 'use not measured'
      : `${say(used)} used${share(used)}`,
    requested === null
      ? hidden
        ? 'requests not shown to you'
        : 'requests not known'
      : `${say(requested)} requested${share(requested)}`,
    limit === null
      ? 'no allocatable amount known'
      : `of ${say(limit)} ${allocatable === null ? 'capacity' : 'allocatable'}`,
  ]
  return `${what}: ${parts.join(', ')}`
}

/** Used (solid) over requested (hatched) within what pods may use; the number says which of the two it is. */
export function LoadMeter({
  what,
  amounts,
  wide = false,
  hidden = false,
}: {
  what: keyof typeof format
  amounts: Amounts
  wide?: boolean
  /** what is null may be so because it is kept from whoever looks */
  hidden?: boolean
}): ReactNode {
  const load = loadOf(amounts)
  if (!load && hidden) return <NotShown what={`how much ${what} is used or asked for`} />
  if (!load) return <Missing why={`${what.toLowerCase()} was not read`} />
  const share = (amount: number | null) => `${Math.min(100, ((amount ?? 0) / load.limit) * 100)}%`
  const text = loadText(what, amounts, hidden)
  const percent = formatPercent(load.ratio)
  return (
    <span className={`meter${load.ratio >= 0.9 ? ' is-high' : ''}${wide ? ' is-wide' : ''}`} data-tip={text}>
      <span className="meter-text">
        <Flash value={percent}>
          <b>{percent}</b>
        </Flash>{' '}
        <span className="meter-basis">{load.basis === 'used' ? 'used' : 'req.'}</span>
      </span>
      <span className="meter-track" role="img" aria-label={text}>
        <span className="meter-requested" style={{ width: share(amounts.requested) }} />
        <span className="meter-used" style={{ width: share(amounts.used) }} />
      </span>
    </span>
  )
}
