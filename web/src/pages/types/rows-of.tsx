import type { ReactNode } from 'react'
import { Name } from '../../components/name.tsx'
import { Failure, Skeleton } from '../../components/states.tsx'
import { Cause } from '../../components/text.tsx'
import type { RowsPageQuery } from '../../contract.ts'
import { useFirstRows } from '../../live/use-rows.ts'
import { formatCount } from '../../model/format.ts'
import { linkPath } from '../../model/link-path.ts'
import { clusterPath, Link } from '../../router.tsx'
import { AsOf, ValueText } from './parts.tsx'

/** That many are shown; the whole table is a link away. */
const MOST = 20

interface RowsOfProps {
  readonly cluster: string
  /** plain name of a kind that is compiled in */
  readonly type: string
  readonly title: string
  readonly query: RowsPageQuery
  /** the same in the words of the table's filter */
  readonly filter: string
  /** of the kind, besides the name */
  readonly columns: readonly string[]
}

/** The first rows of a kind that something has to do with, and how many there are. */
export function RowsOf({ cluster, type, title, query, filter, columns: names }: RowsOfProps): ReactNode {
  const [paged, again] = useFirstRows(cluster, `core/${type}`, query, MOST)
  const all = `${clusterPath(cluster, 'types', type)}?${new URLSearchParams({ q: filter })}`
  const here = paged.state === 'here' ? paged : null
  const page = here?.page
  const [on] = page?.on ?? []
  const columns = names.flatMap((name) => page?.source?.columns.find((column) => column.name === name) ?? [])
  return (
    <section className="panel" aria-label={title}>
      <div className="type-head">
        <h2>
          {title} {page && on?.part.freshness && <span className="tab-count">{formatCount(page.total)}</span>}
        </h2>
        {on && <AsOf on={on} />}
      </div>
      {paged.state === 'waiting' && <Skeleton label={`Loading ${title}`} lines={3} />}
      {paged.state === 'failed' &&
        (paged.problem.code === 'type_not_found' ? (
          <p className="quiet">They are not read, or not shown to you.</p>
        ) : (
          <Failure problem={paged.problem} onRetry={again} title="They could not be loaded" />
        ))}
      {on && on.part.outcome !== 'complete' && (
        <p className="quiet">
          {on.part.outcome === 'absent' ? (
            'This cluster does not serve them.'
          ) : (
            <>
              They could not be read ({on.part.outcome}): <Cause message={on.part.message} />
            </>
          )}
        </p>
      )}
      {here && here.rows.size > 0 && (
        <div className="scroll-x">
          <table className="facts">
            <thead>
              <tr>
                <th scope="col">Name</th>
                {columns.map(({ name, label }) => (
                  <th key={name} scope="col">
                    {label}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {[...here.rows.values()].map((row) => (
                <tr key={row.id}>
                  <th scope="row">
                    <Link to={linkPath(cluster, { column: null, type, id: row.id })}>
                      <Name text={row.name} />
                    </Link>
                  </th>
                  {columns.map((column) => (
                    <td key={column.name}>
                      <ValueText value={row.values[column.name]} column={column} on={on} />
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {here?.rows.size === 0 && on?.part.outcome === 'complete' && (
        <p className="quiet">None{on.filtered ? ' that you may see' : ''}.</p>
      )}
      {here && here.page.total > 0 && (
        <p>
          <Link to={all}>
            {here.page.total > here.rows.size ? `All ${formatCount(here.page.total)} as a table` : 'As a table'}
          </Link>
        </p>
      )}
    </section>
  )
}
