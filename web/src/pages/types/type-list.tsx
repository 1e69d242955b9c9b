import { IconPencil, IconPlus, IconTableOff } from '@tabler/icons-react'
import { type ReactNode, useCallback, useEffect, useMemo } from 'react'
import { CopyButton } from '../../components/copy-button.tsx'
import { Name } from '../../components/name.tsx'
import { NotUpdated } from '../../components/not-updated.tsx'
import { type Column, ResourceTable } from '../../components/resource-table.tsx'
import { RowLink } from '../../components/row-link.tsx'
import { insteadOfSet, SetChoice } from '../../components/set-choice.tsx'
import { Empty, Failure, Skeleton } from '../../components/states.tsx'
import { Age, Missing } from '../../components/text.tsx'
import type { TypeView } from '../../contract.ts'
import { useHub } from '../../live/hooks.ts'
import type { Live } from '../../live/live-store.ts'
import { useRefresh } from '../../live/refresh.ts'
import { ofSet, useClusterSet } from '../../live/use-cluster-set.ts'
import { useFresh } from '../../live/use-fresh.ts'
import { formatCount, plural } from '../../model/format.ts'
import {
  amountWord,
  fleetTotal,
  hasRows,
  isGroups,
  isWrong,
  newestOf,
  sayAmount,
  sourceOf,
} from '../../model/row-values.ts'
import { accessPath, Link, typeEditorPath, typesPath } from '../../router.tsx'
import { useSession } from '../../session.ts'
import { PageHeading } from '../../shell/page-heading.tsx'
import { isOnClusters, noteTypes } from '../../types-seen.ts'
import { AggregatedText, KindLine } from './parts.tsx'
import { templates } from './templates.ts'

/** Every frame of a fleet may touch a type: that many are not worth a look each. */
const leastMs = 3000
export const watchClusters = (live: Live): unknown => live.fleet.clusters

const wrongOf = ({ clusters }: TypeView): number => clusters.filter(isWrong).length
const withRows = ({ clusters }: TypeView): number => clusters.filter(hasRows).length

function typeColumns(administrator: boolean): readonly Column<TypeView>[] {
  return [
    {
      id: 'type',
      header: 'Type',
      value: ({ type }) => type,
      // As they are read: by the names that are shown.
      order: (row) => sourceOf(row)?.title ?? row.type,
      exports: [
        { id: 'title', header: 'Type', value: (row) => sourceOf(row)?.title ?? row.type },
        { id: 'type', header: 'Name', value: ({ type }) => type },
      ],
      cell: (row) => (
        <span className="name-cell">
          <RowLink to={typesPath(row.type)}>{sourceOf(row)?.title ?? row.type}</RowLink>
          <KindLine source={row.sources[0]} />
        </span>
      ),
    },
    {
      id: 'kind',
      header: 'Kind',
      width: 190,
      extra: true,
      value: (row) => sourceOf(row)?.kind ?? null,
    },
    {
      id: 'clusters',
      header: 'Clusters',
      width: 100,
      align: 'end',
      kind: 'number',
      descendingFirst: true,
      value: withRows,
      exports: [
        { id: 'clustersWithRows', header: 'Clusters with rows', value: withRows },
        { id: 'clusters', header: 'Clusters in all', value: ({ clusters }) => clusters.length },
      ],
      cell: (row) => (
        <span data-tip={`${plural(withRows(row), 'cluster')} with rows, of ${row.clusters.length} it is looked for on`}>
          {formatCount(withRows(row))} <span className="of">of {formatCount(row.clusters.length)}</span>
        </span>
      ),
    },
    {
      id: 'trouble',
      header: 'Trouble',
      width: 120,
      kind: 'number',
      descendingFirst: true,
      value: wrongOf,
      exports: [{ id: 'clustersInTrouble', header: 'Clusters in trouble', value: wrongOf }],
      cell: (row) =>
        wrongOf(row) === 0 ? (
          <span className="quiet">none</span>
        ) : (
          <span className="short">▲ {plural(wrongOf(row), 'cluster')}</span>
        ),
    },
    {
      id: 'rows',
      header: 'Rows',
      width: 100,
      align: 'end',
      kind: 'number',
      descendingFirst: true,
      value: ({ count }) => count,
      cell: ({ count }) => (count === null ? <Missing why="no cluster was read" /> : formatCount(count)),
    },
    {
      id: 'numbers',
      header: 'Over all clusters',
      width: 420,
      value: (type) =>
        highlightsOf(type).map(
          ({ info, total }) => `${sayAmount(total.value, info.unit)} ${amountWord(info, sourceOf(type))}`,
        ),
      cell: (row) => <Highlights type={row} />,
    },
    {
      id: 'newest',
      header: 'Newest',
      width: 100,
      align: 'end',
      kind: 'time',
      value: ({ clusters }) => newestOf(clusters),
      cell: ({ clusters }) => {
        const at = newestOf(clusters)
        return at === null ? <Missing why="nothing was collected yet" /> : <Age at={at} suffix=" ago" />
      },
    },
    {
      id: 'source',
      header: 'MetricSource',
      width: 230,
      extra: !administrator,
      value: ({ sources }) => sources.map(({ id, isDeclared }) => (isDeclared ? id : 'built in')),
      cell: ({ sources }) => (
        <span className="source-cell">
          {sources.length > 1 && <span className="short">▲ {formatCount(sources.length)}: </span>}
          {sources[0]?.isDeclared === false ? (
            <span className="quiet" data-tip="Read from every cluster that serves it: no MetricSource declares it.">
              built in
            </span>
          ) : administrator ? (
            <Link to={typeEditorPath(sources[0]?.id ?? '')} className="name-line">
              <IconPencil size={13} aria-hidden="true" /> <Name text={sources[0]?.id ?? ''} />
            </Link>
          ) : (
            <Name text={sources[0]?.id ?? ''} />
          )}
        </span>
      ),
    },
  ]
}

/** The first few numbers that are true of all clusters together. */
const highlightsOf = (type: TypeView) =>
  (sourceOf(type)?.aggregations ?? [])
    .flatMap((info) => {
      const total = info.groupBy === null ? fleetTotal(info, type.clusters) : undefined
      return total && !isGroups(total.value) && total.value !== null ? [{ info, total }] : []
    })
    .slice(0, 3)

function Highlights({ type }: { type: TypeView }): ReactNode {
  const numbers = highlightsOf(type)
  if (numbers.length === 0) return <Missing why="no count or sum is declared, or shown to you" />
  return (
    <span className="highlights">
      {numbers.map(({ info, total }) => (
        <span key={info.name} className="highlight">
          <b>
            <AggregatedText value={total.value} unit={info.unit} />
          </b>{' '}
          <span className="sub">{amountWord(info, sourceOf(type))}</span>
        </span>
      ))}
    </span>
  )
}

const keyOf = ({ type }: TypeView) => type
const wordsOf = ({ type, sources }: TypeView) =>
  `${type} ${sources.map(({ kind, apiVersion, id }) => `${kind} ${apiVersion} ${id}`).join(' ')}`
const fields = {
  cluster: { kind: 'text' as const, read: (row: TypeView) => row.clusters.map(({ cluster }) => cluster) },
}

export function TypeList(): ReactNode {
  const { client } = useHub()
  const session = useSession()
  const administrator = session?.user?.administrator === true
  const ask = useCallback((signal: AbortSignal) => client.types({}, signal), [client])
  const [fresh, again] = useFresh(ask)
  useRefresh(watchClusters, again, leastMs)
  const items = fresh.state === 'here' ? fresh.value.items : null
  useEffect(() => {
    if (items) noteTypes(items)
  }, [items])
  const set = useClusterSet()
  const rows = useMemo(() => {
    const shown = (items ?? []).filter(isOnClusters).map((type) => ofSet(type, set))
    return new Map(shown.map((type) => [type.type, type]))
  }, [items, set])
  const columns = useMemo(() => typeColumns(administrator), [administrator])
  return (
    <>
      <PageHeading
        title="Collected types"
        after={
          administrator && (
            <Link to={typeEditorPath()} className="button heading-way">
              <IconPlus size={16} aria-hidden="true" /> Declare a type
            </Link>
          )
        }
      >
        Collected types
      </PageHeading>
      {fresh.state === 'waiting' ? (
        <Skeleton label="Loading the types" />
      ) : fresh.state === 'failed' ? (
        <Failure problem={fresh.problem} onRetry={again} title="The types could not be loaded" />
      ) : (
        <>
          <NotUpdated problem={fresh.problem} onRetry={again} />
          {insteadOfSet(set) ?? (
            <ResourceTable
              caption="Collected types"
              id="types"
              noun={rows.size === 1 ? 'type' : 'types'}
              rows={rows}
              columns={columns}
              fields={fields}
              words={wordsOf}
              rowKey={keyOf}
              sort="type"
              rowHeight={48}
              example="trouble>0 cluster:*"
              controls={<SetChoice />}
              empty={administrator ? <NoTypes /> : <NothingShared />}
            />
          )}
        </>
      )}
    </>
  )
}

const NothingShared = (): ReactNode => (
  <Empty title="No type is shared with you" icon={<IconTableOff size={30} aria-hidden="true" />}>
    <p>
      Types hold what this hub collects. Your access reaches none of them. Whoever runs this hub can change that with a
      policy.
    </p>
    <Link to={accessPath('me')} className="button">
      What may I see?
    </Link>
  </Empty>
)

const NoTypes = (): ReactNode => (
  <Empty title="Nothing is declared yet" icon={<IconTableOff size={30} aria-hidden="true" />}>
    <p>
      A MetricSource names a kind of the clusters' API, the values of it that matter, and what to sum up. Write one in
      the editor and see at once what it would give, or apply this one:
    </p>
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
    <pre className="manifest-example" tabIndex={0}>
      {templates[0]?.manifest}
    </pre>
    <p className="state-ways">
      <Link to={typeEditorPath()} className="button is-primary">
        <IconPencil size={16} aria-hidden="true" /> Open the editor
      </Link>
      <CopyButton text={templates[0]?.manifest ?? ''} />
    </p>
  </Empty>
)
