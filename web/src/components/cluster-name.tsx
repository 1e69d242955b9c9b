import { Fragment, type ReactNode } from 'react'
import { useCluster } from '../live/hooks.ts'
import { clusterName } from '../model/cluster.ts'
import { formatCount } from '../model/format.ts'
import { Name } from './name.tsx'
import { RowLink } from './row-link.tsx'

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

const namedAtMost = 3

/** Some clusters in a sentence, the first few by name. */
export function ClusterNames({ names }: { names: readonly string[] }): ReactNode {
  const more = names.length - namedAtMost
  return (
    <>
      {names.slice(0, namedAtMost).map((name, place) => (
        <Fragment key={name}>
          {place > 0 && ', '}
          <ClusterName name={name} />
        </Fragment>
      ))}
      {more > 0 && ` and ${formatCount(more)} more`}
    </>
  )
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
