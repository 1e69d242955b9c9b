import type { ReactNode } from 'react'
import { type ClusterView, unfinishedPods } from '../contract.ts'
import { formatCount } from '../model/format.ts'
import { Flash, Missing, NotShown } from './text.tsx'

interface OfProps {
  /** null: only how many there are is known */
  readonly part: number | null | undefined
  readonly all: number | undefined
  /** what the rest is: `not ready` */
  readonly lacking: string
  /** why it may not be known */
  readonly why: string
  /** it is not unknown but kept from whoever looks: the words for that */
  readonly hidden?: string | false
}

/** `ready/total`, the shortfall said in words. */
export function Of({ part, all, lacking, why, hidden = false }: OfProps): ReactNode {
  if (part === undefined || all === undefined) return hidden ? <NotShown what={hidden} /> : <Missing why={why} />
  if (part === null) return <Flash value={String(all)}>{formatCount(all)}</Flash>
  const short = all - part
  return (
    <Flash value={`${part}/${all}`}>
      <span className={short > 0 ? 'short' : ''} {...(short > 0 && { 'data-tip': `${formatCount(short)} ${lacking}` })}>
        {formatCount(part)}
        <span className="of">/{formatCount(all)}</span>
      </span>
    </Flash>
  )
}

/** A few pods are always on their way, and a large cluster always holds a failed one: a share of them is worth a look. */
const isMuch = ({ pending, failed, unknown, total }: NonNullable<ClusterView['pods']>): boolean =>
  failed + unknown > total / 100 || pending > Math.max(5, total / 20)

/** Running pods of those that are not finished. */
export function Pods({ pods, hidden = false }: { pods: ClusterView['pods']; hidden?: boolean }): ReactNode {
  if (!pods) return hidden ? <NotShown what="pods" /> : <Missing why="pods were never read" />
  const { running, pending, failed, succeeded, unknown, total } = pods
  const tip = `${running} running, ${pending} pending, ${failed} failed, ${succeeded} completed${unknown > 0 ? `, ${unknown} unknown` : ''}`
  return (
    <Flash value={`${running}/${total}`}>
      <span className={isMuch(pods) ? 'short' : ''} data-tip={tip}>
        {formatCount(running)}
        <span className="of">/{formatCount(unfinishedPods(pods))}</span>
      </span>
    </Flash>
  )
}
