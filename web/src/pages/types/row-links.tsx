import type { ReactNode } from 'react'
import type { RowsPageView, TableRowView } from '../../contract.ts'
import { linkPath } from '../../model/link-path.ts'
import { clusterPath, Link } from '../../router.tsx'

/** The value of this column, or the namespace (null), as a link where the hub knows one. */
export function Linked({
  cluster,
  row,
  column,
  children,
}: {
  cluster: string
  row: Pick<TableRowView, 'links'>
  column: string | null
  children: ReactNode
}): ReactNode {
  const link = row.links?.find((one) => one.column === column)
  return link ? <Link to={linkPath(cluster, link)}>{children}</Link> : children
}

type Referring = NonNullable<RowsPageView['referredBy']>[number]

/** The rows that name this one, as a list that is filtered. */
export function referringPath(
  cluster: string,
  { namespace, reference }: Pick<TableRowView, 'namespace' | 'reference'>,
  { type, column }: Pick<Referring, 'type' | 'column'>,
): string {
  const place = namespace === '' ? '' : `namespace:${namespace} `
  return `${clusterPath(cluster, 'types', type)}?${new URLSearchParams({ q: `${place}${column}:${reference}` })}`
}

/** Lists of the rows that name this one: the pods of a workload. */
export function ReferredBy({
  cluster,
  row,
  columns,
}: {
  cluster: string
  row: TableRowView
  columns: readonly Referring[]
}): ReactNode {
  const kind = row.reference?.split('/', 1)[0]
  const shown = columns.filter(({ kinds }) => kind !== undefined && kinds.includes(kind))
  if (shown.length === 0) return null
  return (
    <p className="drawer-lead">
      {shown.map((one) => (
        <Link key={`${one.type} ${one.column}`} className="button" to={referringPath(cluster, row, one)}>
          {one.title}
        </Link>
      ))}
    </p>
  )
}
