import type { ReactNode } from 'react'
import type { ClusterView } from '../contract.ts'
import { useAtTime } from '../live/hooks.ts'
import { pushStatus } from '../model/push.ts'
import { Hidden } from './text.tsx'

/** Pull: the hub reaches out. Push: an agent reaches in. Broken: it is not as declared. */
const arrows = {
  pull: 'M12 3.5H8.5M12 3.5V7M12 3.5 4.5 11M3 13.5h10',
  push: 'M4.5 3.5v3.5M4.5 7H8M4.5 7 12 3M3 13.5h10',
} as const

export function ModeMark({
  mode,
  source = mode,
  odd = false,
}: {
  mode: ClusterView['mode']
  /** how the facts come instead */
  source?: ClusterView['mode']
  odd?: boolean
}): ReactNode {
  return (
    <span className={`tag mode-mark${odd ? ' is-warning' : ''}`}>
      <svg viewBox="0 0 16 16" width="13" height="13" aria-hidden="true">
        <path d={arrows[mode]} />
      </svg>
      {mode}
      {source !== mode && ` → ${source}ed`}
    </span>
  )
}

/** As declared, and under it what is otherwise: for a row or a card. */
export function ModeCell({ cluster }: { cluster: ClusterView }): ReactNode {
  const text = useAtTime((now) => {
    const { text, notes } = pushStatus(cluster, now)
    return [text, ...notes.map((note) => note.text)].join('. ')
  })
  const instead = useAtTime((now) => pushStatus(cluster, now).short)
  const first = useAtTime((now) => pushStatus(cluster, now).notes[0]?.short ?? '')
  const warns = useAtTime((now) => pushStatus(cluster, now).notes[0]?.isWarning ?? false)
  const said = instead || first
  const odd = instead !== '' || warns
  return (
    <span className="mode-cell" data-tip={text}>
      <ModeMark mode={cluster.mode} odd={odd} {...(cluster.lastSyncAt !== null && { source: cluster.source })} />
      {said && (
        <span className={`sub clip${odd ? ' short' : ''}`}>
          {odd && <Warned />}
          {said}
        </span>
      )}
      <Hidden>{text}</Hidden>
    </span>
  )
}

/** Stands where the mark of a health would: it is the agent that needs somebody, not the cluster. */
export const AgentMark = (): ReactNode => (
  <span className="health agent-mark">
    <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d={arrows.push} />
    </svg>
    <span className="vh">Agent</span>
  </span>
)

/** The shape that goes with the colour of a warning. */
export const Warned = (): ReactNode => <span aria-hidden="true">▲ </span>
