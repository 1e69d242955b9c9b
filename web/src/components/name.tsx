import type { ReactNode } from 'react'
import { useCluster } from '../live/hooks.ts'
import { clusterName } from '../model/cluster.ts'
import { cutAt } from '../model/cut.ts'
import { RowLink } from './row-link.tsx'

/**
 * A name that is cut in its middle where it does not fit: its end is what tells `…-worker-000122` from `…-worker-000123`. The whole
 * of it is the text of the document, for copying, finding and screen readers; what is drawn instead is not.
 */
export function Name({ text, className = '' }: { text: string; className?: string }): ReactNode {
  const [head, tail] = cutAt(text)
  if (tail === '') return className === '' ? text : <span className={className}>{text}</span>
  return (
    <span className={`name-cut ${className}`} title={text}>
      <span className="name-short" aria-hidden="true" data-head={head} data-tail={tail} />
      <span className="name-whole">{text}</span>
    </span>
  )
}

/** A sentence in which long names are cut in their middle, where there is little room. */
export const WithNames = ({ text }: { text: string }): ReactNode =>
  text.split(/(\S{20,})/).map((part, place) =>
    // biome-ignore lint/suspicious/noArrayIndexKey: parts of one sentence have no other identity
    place % 2 === 0 ? part : <Name key={place} text={part} className="name-in-text" />,
  )

interface ClusterProps {
  /** its technical name */
  readonly name: string
  /** where the answer says it itself; else as the fleet has it */
  readonly displayName?: string
}

/** A cluster in a line: what people call it, and its technical name where that is another. */
export function ClusterName({ name, displayName }: ClusterProps): ReactNode {
  const known = useCluster(name)?.displayName
  return <Name text={clusterName({ name, displayName: displayName ?? known ?? '' })} />
}

/** The same as the first cell of a row and the head of a card: on two lines. */
export function ClusterCell({
  name,
  displayName,
  to,
  children,
}: ClusterProps & { to: string; children?: ReactNode }): ReactNode {
  const known = useCluster(name)?.displayName
  const called = displayName || known || name
  return (
    <span className="name-cell">
      <span className="name-line">
        <RowLink to={to}>{called}</RowLink>
        {children}
      </span>
      {called !== name && (
        <span className="sub mono">
          <Name text={name} />
        </span>
      )}
    </span>
  )
}
