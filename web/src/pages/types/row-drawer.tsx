import type { ReactNode } from 'react'
import { ClusterName } from '../../components/cluster-name.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { Jointed, Name } from '../../components/name.tsx'
import { Pairs } from '../../components/pairs.tsx'
import type { ColumnView, RowsPageView, SourceView, TableRowView } from '../../contract.ts'
import { sayScalar, scalarOf } from '../../model/row-values.ts'
import { clusterPath, Link } from '../../router.tsx'
import { AmountsTable, ShareMeter } from './amounts.tsx'
import { NestedValue } from './nested-value.tsx'
import { type RowsOn, ValueText } from './parts.tsx'
import { Linked, ReferredBy } from './row-links.tsx'

interface RowDrawerProps {
  readonly cluster: string
  readonly id: string
  readonly row: TableRowView | undefined
  readonly source: SourceView
  readonly referredBy: NonNullable<RowsPageView['referredBy']>
  readonly asOf: ReactNode
  /** the cluster was not read since */
  readonly isPast: boolean
  /** how the kind stands on the cluster; undefined: not known */
  readonly on: RowsOn | undefined
  /** where there is a page of this row */
  readonly page?: string | undefined
  /** what else is known of the row */
  readonly children?: ReactNode
  /** what is said where there is no row */
  readonly absence: ReactNode
  readonly onClose: () => void
}

/** Everything that was collected of one object, beside the list it stands in. */
export function RowDrawer(props: RowDrawerProps): ReactNode {
  const { cluster, id, row, source, referredBy, asOf, isPast, on, page, absence, onClose, children } = props
  return (
    <Dialog
      title={<Name text={row?.name ?? id} className="mono" />}
      onClose={onClose}
      className={isPast ? 'drawer dim' : 'drawer'}
    >
      {row ? (
        <>
          <p className="drawer-lead">
            <span className="tag">{source.kind}</span>
            <Link to={clusterPath(cluster)}>
              <span className="tag">
                <ClusterName name={cluster} />
              </span>
            </Link>
            {row.namespace !== '' && (
              <Linked cluster={cluster} row={row} column={null}>
                <span className="tag mono">{row.namespace}</span>
              </Linked>
            )}
            {asOf}
            {page !== undefined && <Link to={page}>Its page</Link>}
          </p>
          <ReferredBy cluster={cluster} row={row} columns={referredBy} />
          <section>
            <h3>Fields</h3>
            <Values
              cluster={cluster}
              row={row}
              columns={source.columns.filter(
                ({ computed, amount }) => !computed && (!amount || amount.what === 'share'),
              )}
              all={source.columns}
              on={on}
            />
          </section>
          <AmountsTable row={row} columns={source.columns} on={on} />
          {children}
          {source.columns.map(({ name, label }) => (
            <NestedValue key={name} label={label} value={row.values[name]} />
          ))}
          {source.columns.some(({ computed }) => computed) && (
            <section>
              <h3>Computed</h3>
              <Values cluster={cluster} row={row} columns={source.columns.filter(({ computed }) => computed)} on={on} />
            </section>
          )}
          <section>
            <h3>Labels</h3>
            <Pairs pairs={row.labels} none="no labels" mono />
          </section>
        </>
      ) : (
        absence
      )}
    </Dialog>
  )
}

/** Shown with its unit, and as it was read where that says more. */
interface ValuesProps {
  readonly cluster: string
  readonly row: TableRowView
  readonly columns: readonly ColumnView[]
  /** default: the same; the amounts that a share is made of stand elsewhere */
  readonly all?: readonly ColumnView[]
  readonly on: RowsOn | undefined
}

function Values({ cluster, row, columns, all = columns, on }: ValuesProps): ReactNode {
  return (
    <dl className="pairs">
      {columns.map((column) => {
        const { name, label, unit, health, amount } = column
        if (typeof row.values[name] === 'object' && row.values[name] !== null) return null
        const value = scalarOf(row.values[name])
        const raw = rawText(value, unit)
        const isPlain =
          unit !== 'time' && (unit === 'none' || unit === 'percent' || raw === '' || raw === sayScalar(value, unit))
        return (
          <div key={name}>
            <dt>{label}</dt>
            <dd>
              {amount?.what === 'share' ? (
                <ShareMeter of={amount.of} row={row} columns={all} on={on} />
              ) : typeof value === 'string' && unit !== 'time' && value !== '' && !health ? (
                <Linked cluster={cluster} row={row} column={name}>
                  <Jointed text={sayScalar(value, unit)} />
                </Linked>
              ) : (
                <ValueText value={row.values[name]} column={column} on={on} />
              )}
              {!isPlain && (
                <span className="sub mono">
                  <Jointed text={raw} />
                </span>
              )}
            </dd>
          </div>
        )
      })}
    </dl>
  )
}

/** The value as it was read; a time that the calendar knows as RFC 3339. */
function rawText(value: unknown, unit: string): string {
  if (value === null) return ''
  const at = unit === 'time' && typeof value === 'number' ? new Date(value) : undefined
  return at && !Number.isNaN(at.getTime()) ? at.toISOString() : String(value)
}
