import type { ReactNode } from 'react'
import type { ClusterView } from '../contract.ts'
import { useAtTime } from '../live/hooks.ts'
import { type PartType, pastText } from '../model/current.ts'
import { formatCount } from '../model/format.ts'
import { type Basis, isPastSum } from '../model/sums.ts'
import { Age, Hidden } from './text.tsx'

/** A number of one cluster: paler, and with its time, from the first round that did not read it. */
export function Kept({
  cluster,
  type,
  children,
}: {
  cluster: ClusterView
  type: PartType
  children: ReactNode
}): ReactNode {
  const text = useAtTime((now) => pastText(cluster, type, now))
  if (text === '') return children
  return (
    <span className="past" data-tip={text}>
      {children}
      <Hidden> {text}</Hidden>
    </span>
  )
}

export const pastClass = (basis: Pick<Basis, 'counted' | 'current'> | null): string =>
  basis !== null && isPastSum(basis) ? 'past' : ''

/** How old a sum is, which is as old as its oldest part, and of how many clusters it is current. */
export function SumAge({ basis }: { basis: Basis }): ReactNode {
  const { of, current, oldestAt } = basis
  return (
    <>
      <span className="unbroken">
        as of <Age at={oldestAt} suffix=" ago" />
        {current < of && ';'}
      </span>
      {current < of && <span className="unbroken"> {`${formatCount(current)} of ${formatCount(of)} current`}</span>}
    </>
  )
}
