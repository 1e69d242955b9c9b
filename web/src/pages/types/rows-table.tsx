import { IconDownload } from '@tabler/icons-react'
import {
  type ReactNode,
  useCallback,
  useDeferredValue,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from 'react'
import { ClusterCell } from '../../components/cluster-name.tsx'
import { download } from '../../components/download.ts'
import { FilterBox } from '../../components/filter-box.tsx'
import { Menu } from '../../components/menu.tsx'
import { Name } from '../../components/name.tsx'
import { type Column, ColumnMenu, Grid, NoMatch, RowHeight, visibleColumns } from '../../components/resource-table.tsx'
import { RowLink } from '../../components/row-link.tsx'
import { Failure, Skeleton } from '../../components/states.tsx'
import { Age, Missing } from '../../components/text.tsx'
import { useHeldOrder } from '../../components/use-held-order.ts'
import {
  type Client,
  type ColumnView,
  type CustomRowsQuery,
  type CustomRowView,
  type SourceView,
  type TypeOnClusterView,
  unitText,
} from '../../contract.ts'
import { useHub } from '../../live/hooks.ts'
import type { RowsPage, ShownRow } from '../../live/row-pages.ts'
import { groupLines } from '../../model/arrange.ts'
import { cellValue, columnId, rowsQuestion, type Unit } from '../../model/custom.ts'
import { type ExportColumn, toJson } from '../../model/export.ts'
import { clusterNameExports } from '../../model/export-columns.ts'
import { formatCount, plural } from '../../model/format.ts'
import { usePreference } from '../../preferences.ts'
import { clusterPath, Link, useQueryValue } from '../../router.tsx'
import { NotUpdated } from './not-updated.tsx'
import { ScalarText } from './parts.tsx'
import { useRows } from './use-rows.ts'

const unitWidth: Readonly<Record<Unit, number>> = {
  none: 0,
  bytes: 118,
  cores: 118,
  percent: 104,
  seconds: 110,
  time: 118,
}
const kindWidth = { string: 170, number: 112, boolean: 92, null: 92, any: 150 }

const isAmount = ({ kind, unit }: ColumnView) => kind === 'number' || unit === 'time'

/** The declared columns, as the table takes them. Their names stay as they are: filters and policies use them so. */
export function rowColumns<T extends CustomRowView>(
  { columns, scope }: Pick<SourceView, 'columns' | 'scope'>,
  rowPath: (row: T) => string | null,
  nodePath: (row: T, node: string) => string | null = () => null,
): readonly Column<T>[] {
  return [
    {
      id: 'name',
      header: 'Name',
      value: ({ name }) => name,
      cell: (row) => {
        const to = rowPath(row)
        return to === null ? <Name text={row.name} className="row-name" /> : <RowLink to={to}>{row.name}</RowLink>
      },
    },
    ...(scope === 'Cluster'
      ? []
      : [{ id: 'namespace', header: 'Namespace', width: 180, value: ({ namespace }: CustomRowView) => namespace }]),
    ...columns.map(
      (column): Column<T> => ({
        id: columnId(column.name),
        header: column.label,
        ...(column.unit === 'time' && { kind: 'time' as const }),
        ...(unitText[column.unit] && { unit: unitText[column.unit] as string }),
        width: Math.max(
          unitWidth[column.unit] || kindWidth[column.kind],
          Math.min(220, column.label.length * 7.6 + 34),
        ),
        ...(isAmount(column) && column.unit !== 'time' && { align: 'end' as const }),
        descendingFirst: isAmount(column),
        extra: column.extra,
        value: (row) => cellValue(row, column),
        cell: (row) => {
          const value = row.values[column.name]
          const to = column.refersTo === 'node' && typeof value === 'string' ? nodePath(row, value) : null
          return to === null ? <ScalarText value={value} unit={column.unit} /> : <Link to={to}>{value}</Link>
        },
      }),
    ),
  ]
}

const nodeOf = ({ cluster }: ShownRow, node: string): string => clusterPath(cluster, 'nodes', node)

/** Which cluster a row is of, and of when it is: where a list is over many. */
function fleetColumns(on: ReadonlyMap<string, TypeOnClusterView>): readonly Column<ShownRow>[] {
  return [
    {
      id: 'cluster',
      header: 'Cluster',
      width: 180,
      value: ({ cluster }) => cluster,
      exports: [],
      cell: ({ cluster }) => (
        <ClusterCell name={cluster} displayName={on.get(cluster)?.displayName ?? cluster} to={clusterPath(cluster)} />
      ),
    },
  ]
}

function asOfColumn(on: ReadonlyMap<string, TypeOnClusterView>): Column<ShownRow> {
  const at = ({ cluster }: ShownRow) => on.get(cluster)?.part.freshness?.observedAt ?? null
  return {
    id: 'asOf',
    header: 'As of',
    width: 96,
    align: 'end',
    kind: 'time',
    value: at,
    exports: [],
    cell: (row) => {
      const read = at(row)
      return read === null ? <Missing why="it was never read" /> : <Age at={read} suffix=" ago" />
    },
  }
}

interface RowsTableProps {
  /** null: rows of all clusters */
  readonly cluster: string | null
  readonly type: string
  /** which of several sources; '' where there is one */
  readonly source: string
  readonly info: SourceView
  /** told of each answer: what goes for all rows */
  readonly onPage?: (page: RowsPage, rows: ReadonlyMap<string, ShownRow>) => void
  /** what is shown is of the past */
  readonly isPast?: (row: ShownRow) => boolean
  readonly empty: ReactNode
}

/** Rows of one type on one cluster, or on all. Filter, order and pages are asked of the hub; they are loaded as somebody scrolls. */
export function RowsTable({ cluster, type, source, info, onPage, isPast, empty }: RowsTableProps): ReactNode {
  const { client } = useHub()
  const [text, setText] = useQueryValue('q')
  const [order] = useQueryValue('sort')
  const [chosen, setChosen] = usePreference(`columns.type.${type}`, '')
  const [on, setOn] = useState<ReadonlyMap<string, TypeOnClusterView>>(nowhere)
  const columns = useMemo(() => {
    const path = (row: ShownRow) =>
      cluster === null
        ? `${clusterPath(row.cluster, 'types', type)}?${new URLSearchParams({ row: row.rowId })}`
        : rowPath(cluster, type, row.rowId)
    const own = rowColumns<ShownRow>(info, path, nodeOf)
    return cluster === null ? [...fleetColumns(on), ...own, asOfColumn(on)] : own
  }, [info, cluster, type, on])
  const visible = useMemo(() => visibleColumns(columns, chosen), [columns, chosen])
  const typed = useSettled(useDeferredValue(text))
  const { question, faults } = useMemo(() => rowsQuestion(typed, info.columns), [typed, info.columns])
  const descending = order.startsWith('-')
  const usual = cluster === null ? 'cluster' : 'name'
  const sortBy = columns.find(({ id }) => id === order.replace(/^-/, ''))?.id ?? usual
  const query = useMemo(
    () => ({
      ...question,
      ...(sortBy !== usual && sortBy !== 'asOf' && !sortBy.startsWith('value.') && { sort: sortBy }),
      ...(descending && { order: 'desc' as const }),
      ...(source !== '' && { source }),
    }),
    [question, sortBy, usual, descending, source],
  )
  const { paged, pending, want, again } = useRows(cluster, type, query)
  const here = paged.state === 'here' ? paged : null
  useEffect(() => {
    if (!here) return
    onPage?.(here.page, here.rows)
    setOn(new Map(here.page.on.map((one) => [one.cluster, one])))
  }, [here, onPage])

  const rows = here?.rows ?? noRows
  const arranged = useMemo(() => [...rows.values()], [rows])
  const held = useHeldOrder(arranged, rows, keyOf, pending ? 'pending' : JSON.stringify(query))
  const lines = useMemo(() => groupLines(held.rows, keyOf), [held.rows])
  const list = useRef<HTMLDivElement>(null)
  const asked = JSON.stringify(query)
  const shown = useRef(asked)
  useLayoutEffect(() => {
    if (pending || shown.current === asked) return
    shown.current = asked
    // Another question has another first row. The same one keeps its place, however often it is answered.
    list.current?.querySelector('.table-scroll')?.scrollTo(0, 0)
  }, [pending, asked])
  const names = useMemo(
    () => [...(cluster === null ? ['cluster'] : []), 'name', 'namespace', ...info.columns.map(({ name }) => name)],
    [cluster, info.columns],
  )
  const seen = useCallback((to: number) => want(to + ahead), [want])
  const total = here?.page.total ?? 0
  const exported = [...visible.filter(({ id }) => id !== 'cluster' && id !== 'asOf'), ...originExports(on)]
  const where = cluster ?? 'all clusters'

  if (paged.state === 'waiting') return <Skeleton label="Loading the rows" />
  if (paged.state === 'failed' && paged.problem.status !== 400)
    return <Failure problem={paged.problem} onRetry={again} title="The rows could not be loaded" />
  return (
    <section className={`resource${pending ? ' is-pending' : ''}`} aria-label={`${type} of ${where}`}>
      <div className="toolbar">
        <FilterBox
          text={text}
          onText={setText}
          faults={paged.state === 'failed' ? [...faults, paged.problem.message] : faults}
          fields={names}
          labels={[]}
          example={exampleOf(info)}
          what={`${type} rows`}
        />
        <div className="toolbar-end">
          <RowHeight />
          <ColumnMenu columns={columns} visible={visible} onChange={setChosen} />
          <Menu
            label={
              <>
                <IconDownload size={16} aria-hidden="true" /> <span className="wide-only">Export</span>
              </>
            }
            title="Export"
          >
            <a
              className="menu-item"
              href={csvUrl(client, cluster, type, query)}
              download={`${type}-${cluster ?? 'fleet'}.csv`}
            >
              CSV of {plural(total, 'row')}
            </a>
            <button
              type="button"
              className="menu-item"
              onClick={() =>
                download(`${type}-${cluster ?? 'fleet'}.json`, 'application/json', toJson(held.rows, exported))
              }
            >
              JSON of the {formatCount(held.rows.length)} loaded
            </button>
          </Menu>
        </div>
      </div>
      <p className="count">
        <span role="status">{countText(here?.page, total, typed !== '')}</span>
        {here && !here.isWhole && <span className="quiet">{formatCount(rows.size)} loaded, more as you scroll</span>}
        {held.moved && (
          <span className="held">
            order held while you read ·{' '}
            <button type="button" className="text-button" onClick={held.release}>
              apply now
            </button>
          </span>
        )}
      </p>
      <NotUpdated problem={here?.problem ?? null} onRetry={again} />
      <div ref={list} {...held.guard}>
        {held.rows.length === 0 ? (
          typed === '' ? (
            empty
          ) : (
            <NoMatch noun="rows" onClear={() => setText('')} />
          )
        ) : (
          <Grid
            caption={`${type} of ${where}`}
            columns={visible}
            lines={lines}
            gone={held.gone}
            rowHeight={38}
            sortBy={sortBy}
            descending={descending}
            rowCount={Math.max(total, lines.length)}
            onSeen={seen}
            {...(isPast && { dim: isPast })}
          />
        )}
      </div>
    </section>
  )
}

/** So many rows are loaded before they are scrolled to. */
const ahead = 600
const noRows: ReadonlyMap<string, ShownRow> = new Map()
const nowhere: ReadonlyMap<string, TypeOnClusterView> = new Map()
const keyOf = ({ id }: ShownRow) => id

const csvUrl = (client: Client, cluster: string | null, type: string, query: CustomRowsQuery): string =>
  cluster === null
    ? client.fleetRowsCsvUrl(type, { ...query, headings: 'labels' })
    : client.customRowsCsvUrl(cluster, type, { ...query, headings: 'labels' })

/** Of which cluster a row is, and of when. */
const originExports = (on: ReadonlyMap<string, TypeOnClusterView>): readonly ExportColumn<ShownRow>[] => [
  ...clusterNameExports.map((column) => ({
    ...column,
    value: ({ cluster }: ShownRow) => column.value({ name: cluster, displayName: on.get(cluster)?.displayName ?? '' }),
  })),
  {
    id: 'asOf',
    header: 'As of',
    kind: 'time',
    value: ({ cluster }) => on.get(cluster)?.part.freshness?.observedAt ?? null,
  },
]

const countText = (page: RowsPage | undefined, total: number, filtered: boolean): string => {
  const all = page?.on.reduce((sum, { part }) => sum + part.count, 0) ?? total
  return filtered && all !== total ? `${formatCount(total)} of ${plural(all, 'row')}` : plural(total, 'row')
}

/** The row beside its table; filter and order stay. */
export function rowPath(cluster: string, type: string, id: string | null): string {
  const query = new URLSearchParams(window.location.search)
  if (id === null) query.delete('row')
  else query.set('row', id)
  const text = query.toString()
  return `${clusterPath(cluster, 'types', type)}${text && `?${text}`}`
}

function exampleOf({ columns }: SourceView): string {
  const text = columns.find(({ kind, unit }) => kind === 'string' && unit !== 'time')
  const amount = columns.find(({ kind }) => kind === 'number')
  const sample =
    amount && { bytes: '10Gi', percent: '80', cores: '2', seconds: '1h', time: '0', none: '0' }[amount.unit]
  return [text && `${text.name}:text`, amount && `${amount.name}>${sample}`, 'words'].filter(Boolean).join(' ')
}

const settleMs = 180

/** What is typed, once typing pauses: each question is one for the hub. */
function useSettled(text: string): string {
  const [settled, setSettled] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), settleMs)
    return () => clearTimeout(timer)
  }, [text])
  return settled
}
