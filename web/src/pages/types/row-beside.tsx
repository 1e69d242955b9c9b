import { type ReactNode, useCallback, useEffect, useRef, useState } from 'react'
import { ClusterName } from '../../components/cluster-name.tsx'
import { Jointed } from '../../components/name.tsx'
import { ObjectEvents } from '../../components/object-events.tsx'
import { Empty, Failure } from '../../components/states.tsx'
import { Missing } from '../../components/text.tsx'
import type { SourceView, TableRowView, TypeOnClusterView } from '../../contract.ts'
import { History } from '../../history/history.tsx'
import { useCluster, useHub } from '../../live/hooks.ts'
import type { RowsPage } from '../../live/row-pages.ts'
import { useFresh } from '../../live/use-fresh.ts'
import { isCurrentOn, policyType } from '../../model/row-values.ts'
import { Link, namespacePath, whyPath, workloadPath } from '../../router.tsx'
import { AsOf } from './parts.tsx'
import { RowDrawer } from './row-drawer.tsx'

type ReferredBy = NonNullable<RowsPage['referredBy']>

interface RowBesideProps {
  readonly cluster: string
  readonly type: string
  readonly source: SourceView
  readonly on: TypeOnClusterView | undefined
  /** those that are loaded, by the id that the address has; null: not yet */
  readonly rows: ReadonlyMap<string, TableRowView> | null
  /** the row that the address names; null: none */
  readonly id: string | null
  /** on its cluster, where the list is over many and its ids say the cluster as well */
  readonly rowId?: string
  /** null: the list does not say it */
  readonly referredBy: ReferredBy | null
  readonly onClose: () => void
}

/** The row that the address names, over its list. What the list does not have is asked of the cluster, by the name of the row. */
export function RowBeside({ rows, id, rowId, ...rest }: RowBesideProps): ReactNode {
  const near = id === null ? undefined : rows?.get(id)
  const [last, setLast] = useState<TableRowView | undefined>()
  useEffect(() => {
    if (near) setLast(near)
  }, [near])
  if (id === null) return null
  const row = near ?? (last?.id === id && rows === null ? last : undefined)
  return <Found key={id} {...rest} id={rowId ?? id} row={row} isLoading={rows === null} />
}

interface NotThereProps extends Pick<RowBesideProps, 'cluster' | 'type' | 'source' | 'on'> {
  readonly id: string
  /** it was shown before */
  readonly wasHere: boolean
}

function NotThere({ cluster, type, source, on, id, wasHere }: NotThereProps): ReactNode {
  const rows = source.title.toLowerCase()
  if (on && !on.part.freshness)
    return (
      <Empty title="This row is not known">
        <p>
          The {rows} of <ClusterName name={cluster} /> were never read: whether <b>{id}</b> is among them is not known.
        </p>
      </Empty>
    )
  return (
    <Empty title={wasHere ? 'This row is no longer there' : 'This row is not there'}>
      <p>
        <b>
          <Jointed text={id} />
        </b>{' '}
        is not among the {rows} of <ClusterName name={cluster} /> that you may see.
        {!wasHere && ' It may have been removed since this link was made.'}
      </p>
      {on && (
        <p>
          <AsOf on={on} />
        </p>
      )}
      <Link to={whyPath({ cluster, type: policyType(type), name: id })} className="button">
        Why do I not see it?
      </Link>
    </Empty>
  )
}

function pageOf(cluster: string, kind: string, id: string): string | undefined {
  if (kind === 'namespaces') return namespacePath(cluster, id)
  return kind === 'workloads' ? workloadPath(cluster, id) : undefined
}

/** Whether events may be about rows of this kind. */
const eventsOf = (columns: ReferredBy, reference: string | undefined): boolean =>
  reference !== undefined &&
  columns.some(
    ({ type, column, kinds }) =>
      type.endsWith('kubernetes-events') && column === 'object' && kinds.includes(reference.split('/', 1)[0] ?? ''),
  )

interface FoundProps extends Omit<RowBesideProps, 'rows' | 'id' | 'rowId'> {
  readonly id: string
  readonly row: TableRowView | undefined
  readonly isLoading: boolean
}

function Found({ cluster, type, source, on, id, row, isLoading, referredBy, onClose }: FoundProps): ReactNode {
  const { client } = useHub()
  const of = useCluster(cluster)
  const isKnown = isLoading || (row !== undefined && referredBy !== null)
  const ask = useCallback(
    async (signal: AbortSignal) => {
      if (isKnown) return null
      const slash = id.indexOf('/')
      const { items, referredBy } = await client.customRows(
        cluster,
        type,
        {
          limit: 1000,
          source: source.id,
          q: id.slice(slash + 1),
          ...(slash > 0 && { namespace: id.slice(0, slash) }),
        },
        signal,
      )
      return { row: items.find((each) => each.id === id), referredBy: referredBy ?? [] }
    },
    [client, cluster, type, id, source.id, isKnown],
  )
  const [fresh, again] = useFresh(ask)
  const readAt = on?.part.freshness?.observedAt
  const askedAt = useRef(readAt)
  useEffect(() => {
    // A row beside a list that does not have it is as old as the list says.
    if (askedAt.current === readAt) return
    askedAt.current = readAt
    again()
  }, [readAt, again])
  const far = fresh.state === 'here' ? fresh.value : null
  const [wasHere, setWasHere] = useState(false)
  const isHere = (row ?? far?.row) !== undefined
  useEffect(() => {
    if (isHere) setWasHere(true)
  }, [isHere])
  const absence =
    isLoading || fresh.state === 'waiting' ? (
      <Empty title="Loading the row" />
    ) : fresh.state === 'failed' ? (
      <Failure problem={fresh.problem} onRetry={again} title="The row could not be loaded" />
    ) : (
      <NotThere cluster={cluster} type={type} source={source} on={on} id={id} wasHere={wasHere} />
    )
  const reference = row?.reference ?? far?.row?.reference
  return (
    <RowDrawer
      cluster={cluster}
      id={id}
      source={source}
      row={row ? { ...row, ...(reference !== undefined && { reference }) } : far?.row}
      referredBy={referredBy ?? far?.referredBy ?? []}
      on={on}
      asOf={on?.part.freshness ? <AsOf on={on} /> : <Missing why="it was never read" />}
      isPast={on !== undefined && !isCurrentOn(on)}
      page={pageOf(cluster, source.id, id)}
      absence={absence}
      onClose={onClose}
    >
      {eventsOf(referredBy ?? far?.referredBy ?? [], reference) && (
        <section>
          <h3>Kubernetes events</h3>
          <ObjectEvents
            cluster={cluster}
            namespace={row?.namespace ?? far?.row?.namespace}
            where={[`object=${reference}`]}
            filter={`object:${reference}`}
          />
        </section>
      )}
      {source.id === 'nodes' && of && (
        <section className="drawer-history">
          <h3>History</h3>
          <History cluster={of} node={id} compact />
        </section>
      )}
    </RowDrawer>
  )
}
