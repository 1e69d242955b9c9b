import { type ReactNode, useCallback } from 'react'
import { Name } from '../../components/name.tsx'
import { Failure, Skeleton } from '../../components/states.tsx'
import { Cause } from '../../components/text.tsx'
import type { RowsPageQuery, RowsPageView } from '../../contract.ts'
import { useHub } from '../../live/hooks.ts'
import type { Live } from '../../live/live-store.ts'
import { useRefresh } from '../../live/refresh.ts'
import { type Fresh, useFresh } from '../../live/use-fresh.ts'
import { formatCount } from '../../model/format.ts'
import { linkPath } from '../../model/link-path.ts'
import { clusterPath, Link } from '../../router.tsx'
import { AsOf, ValueText } from './parts.tsx'

/** That many are shown; the whole table is a link away. */
const MOST = 20

/** Rows of a kind on a cluster, read again when the cluster is. */
export function useRowsOf(
  cluster: string,
  type: string,
  query: RowsPageQuery,
): [fresh: Fresh<RowsPageView>, again: () => void] {
  const { client } = useHub()
  const key = JSON.stringify(query)
  const ask = useCallback(
    // What was made a text above.
    (signal: AbortSignal) => client.customRows(cluster, `core/${type}`, JSON.parse(key) as RowsPageQuery, signal),
    [client, cluster, type, key],
  )
  const [fresh, again] = useFresh(ask)
  useRefresh(
    useCallback((live: Live) => live.fleet.clusters.get(cluster), [cluster]),
    again,
  )
  return [fresh, again]
}

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
  const [fresh, again] = useRowsOf(cluster, type, { limit: MOST, ...query })
  const all = `${clusterPath(cluster, 'types', type)}?${new URLSearchParams({ q: filter })}`
  const page = fresh.state === 'here' ? fresh.value : null
  const columns = names.flatMap((name) => page?.source.columns.find((column) => column.name === name) ?? [])
  return (
    <section className="panel" aria-label={title}>
      <div className="type-head">
        <h2>
          {title} {page?.on.part.freshness && <span className="tab-count">{formatCount(page.total)}</span>}
        </h2>
        {page && <AsOf on={page.on} />}
      </div>
      {fresh.state === 'waiting' && <Skeleton label={`Loading ${title}`} lines={3} />}
      {fresh.state === 'failed' &&
        (fresh.problem.code === 'type_not_found' ? (
          <p className="quiet">They are not read, or not shown to you.</p>
        ) : (
          <Failure problem={fresh.problem} onRetry={again} title="They could not be loaded" />
        ))}
      {page && page.on.part.outcome !== 'complete' && (
        <p className="quiet">
          {page.on.part.outcome === 'absent' ? (
            'This cluster does not serve them.'
          ) : (
            <>
              They could not be read ({page.on.part.outcome}): <Cause message={page.on.part.message} />
            </>
          )}
        </p>
      )}
      {page && page.items.length > 0 && (
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
              {page.items.map((row) => (
                <tr key={row.id}>
                  <th scope="row">
                    <Link to={linkPath(cluster, { column: null, type, id: row.id })}>
                      <Name text={row.name} />
                    </Link>
                  </th>
                  {columns.map((column) => (
                    <td key={column.name}>
                      <ValueText value={row.values[column.name]} column={column} filtered={page.on.filtered} />
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {page && page.items.length === 0 && page.on.part.outcome === 'complete' && (
        <p className="quiet">None{page.on.filtered ? ' that you may see' : ''}.</p>
      )}
      {page && page.total > 0 && (
        <p>
          <Link to={all}>
            {page.total > page.items.length ? `All ${formatCount(page.total)} as a table` : 'As a table'}
          </Link>
        </p>
      )}
    </section>
  )
}
