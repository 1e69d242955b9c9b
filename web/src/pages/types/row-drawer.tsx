import type { ReactNode } from 'react'
import { ClusterName } from '../../components/cluster-name.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { Name } from '../../components/name.tsx'
import { Empty } from '../../components/states.tsx'
import type { ColumnView, CustomRowView, SourceView } from '../../contract.ts'
import { sayScalar } from '../../model/custom.ts'
import { Link, whyPath } from '../../router.tsx'
import { Pairs } from '../cluster/node-drawer.tsx'
import { ScalarText } from './parts.tsx'

interface RowDrawerProps {
  readonly cluster: string
  readonly type: string
  readonly id: string
  readonly row: CustomRowView | undefined
  readonly source: SourceView
  readonly asOf: ReactNode
  readonly isLoading: boolean
  readonly onClose: () => void
}

/** Everything that was collected of one object, beside the list it stands in. */
export function RowDrawer({ cluster, type, id, row, source, asOf, isLoading, onClose }: RowDrawerProps): ReactNode {
  return (
    <Dialog title={<Name text={row?.name ?? id} className="mono" />} onClose={onClose} className="drawer">
      {row ? (
        <>
          <p className="drawer-lead">
            <span className="tag">{source.kind}</span>
            {row.namespace !== '' && <span className="tag mono">{row.namespace}</span>}
            {asOf}
          </p>
          <section>
            <h3>Fields</h3>
            <Values row={row} columns={source.columns.filter(({ computed }) => !computed)} />
          </section>
          {source.columns.some(({ computed }) => computed) && (
            <section>
              <h3>Computed</h3>
              <Values row={row} columns={source.columns.filter(({ computed }) => computed)} />
            </section>
          )}
          <section>
            <h3>Labels</h3>
            <Pairs pairs={row.labels} none="no labels" mono />
          </section>
        </>
      ) : (
        <Empty title={isLoading ? 'Loading the row' : 'This row is not there'}>
          {!isLoading && (
            <>
              <p>
                <ClusterName name={cluster} /> has no {type} {id} that you may see. It may have been removed since this
                link was made.
              </p>
              <Link to={whyPath({ cluster, type, name: id })} className="button">
                Why do I not see it?
              </Link>
            </>
          )}
        </Empty>
      )}
    </Dialog>
  )
}

/** Shown with its unit, and as it was read where that says more. */
function Values({ row, columns }: { row: CustomRowView; columns: readonly ColumnView[] }): ReactNode {
  return (
    <dl className="pairs">
      {columns.map(({ name, label, unit }) => {
        const value = row.values[name] ?? null
        const raw = value === null ? '' : String(value)
        const isPlain =
          unit !== 'time' && (unit === 'none' || unit === 'percent' || raw === '' || raw === sayScalar(value, unit))
        return (
          <div key={name}>
            <dt>{label}</dt>
            <dd>
              {typeof value === 'string' && unit !== 'time' && value !== '' ? (
                value
              ) : (
                <ScalarText value={value} unit={unit} />
              )}
              {!isPlain && <span className="sub mono">{raw}</span>}
            </dd>
          </div>
        )
      })}
    </dl>
  )
}
