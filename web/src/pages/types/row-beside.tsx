import { type ReactNode, useCallback, useEffect, useState } from 'react'
import { Missing } from '../../components/text.tsx'
import type { SourceView, TableRowView, TypeOnClusterView } from '../../contract.ts'
import { History } from '../../history/history.tsx'
import { useCluster, useHub } from '../../live/hooks.ts'
import type { RowsPage } from '../../live/row-pages.ts'
import { useFresh } from '../../live/use-fresh.ts'
import { isCurrentOn } from '../../model/row-values.ts'
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
  const [fresh] = useFresh(ask)
  const far = fresh.state === 'here' ? fresh.value : null
  const reference = row?.reference ?? far?.row?.reference
  return (
    <RowDrawer
      cluster={cluster}
      type={type}
      id={id}
      source={source}
      row={row ? { ...row, ...(reference !== undefined && { reference }) } : far?.row}
      referredBy={referredBy ?? far?.referredBy ?? []}
      filtered={on?.filtered ?? false}
      asOf={on?.part.freshness ? <AsOf on={on} /> : <Missing why="it was never read" />}
      isPast={on !== undefined && !isCurrentOn(on)}
      isLoading={isLoading || (!isKnown && fresh.state === 'waiting')}
      onClose={onClose}
    >
      {source.id === 'nodes' && of && (
        <section className="drawer-history">
          <h3>History</h3>
          <History cluster={of} node={id} compact />
        </section>
      )}
    </RowDrawer>
  )
}
