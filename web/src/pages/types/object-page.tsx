import type { ComponentProps, ReactNode } from 'react'
import { Name } from '../../components/name.tsx'
import { ObjectEvents } from '../../components/object-events.tsx'
import { Empty, Failure, Skeleton } from '../../components/states.tsx'
import type { ColumnView, RowsPageQuery } from '../../contract.ts'
import type { ShownRow } from '../../live/row-pages.ts'
import { useFirstRows } from '../../live/use-rows.ts'
import { Link } from '../../router.tsx'
import { AsOf, ValueText } from './parts.tsx'
import { Linked } from './row-links.tsx'

interface ObjectPageProps {
  readonly cluster: string
  /** its kind: what a link and a sentence call one and many, and the kind of row it is */
  readonly words: { readonly one: string; readonly many: string }
  readonly type: string
  /** asks for it */
  readonly query: RowsPageQuery
  readonly isIt: (row: ShownRow) => boolean
  readonly name: string
  /** beside its name */
  readonly tags: ReactNode
  /** what is not among those that may be seen */
  readonly absent: ReactNode
  readonly allPath: string
  readonly whyPath: string
  readonly shows: (column: ColumnView, row: ShownRow) => boolean
  readonly events: Omit<ComponentProps<typeof ObjectEvents>, 'cluster' | 'withObject'>
  /** rows that have to do with it */
  readonly children: ReactNode
}

/** One thing of a cluster as a page of its own: what it says of itself, what happened to it, and what belongs to it. */
export function ObjectPage(props: ObjectPageProps): ReactNode {
  const { cluster, words, type, query, isIt, name, shows } = props
  const [paged, again] = useFirstRows(cluster, `core/${type}`, query, 10)
  if (paged.state === 'waiting') return <Skeleton label={`Loading the ${words.one}`} />
  if (paged.state === 'failed')
    return <Failure problem={paged.problem} onRetry={again} title={`The ${words.one} could not be loaded`} />
  const { rows, page } = paged
  const [on] = page.on
  const row = [...rows.values()].find(isIt)
  if (!row)
    return (
      <Empty title={on?.part.freshness ? `This ${words.one} is not there` : `${words.many} were not read yet`}>
        <p>{props.absent}</p>
        <p className="state-ways">
          <Link to={props.allPath} className="button">
            All {words.many.toLowerCase()}
          </Link>
          <Link to={props.whyPath} className="button">
            Why do I not see it?
          </Link>
        </p>
      </Empty>
    )
  return (
    <div className="stack type-stack">
      <div className="type-head">
        <h2>
          <Name text={name} />
        </h2>
        {props.tags}
        {on && <AsOf on={on} />}
      </div>
      <dl className="pairs object-facts">
        {page.source?.columns
          .filter((column) => shows(column, row))
          .map((column) => (
            <div key={column.name}>
              <dt>{column.label}</dt>
              <dd>
                <Linked cluster={cluster} row={row} column={column.name}>
                  <ValueText value={row.values[column.name]} column={column} on={on} />
                </Linked>
              </dd>
            </div>
          ))}
      </dl>
      <section className="panel" aria-label="Kubernetes events">
        <div className="type-head">
          <h2>Kubernetes events</h2>
        </div>
        <ObjectEvents cluster={cluster} withObject {...props.events} />
      </section>
      {props.children}
    </div>
  )
}
