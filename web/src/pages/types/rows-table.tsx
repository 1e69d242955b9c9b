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
import { download } from '../../components/download.ts'
import { FilterBox } from '../../components/filter-box.tsx'
import { Menu } from '../../components/menu.tsx'
import { Name } from '../../components/name.tsx'
import { type Column, ColumnMenu, Grid, NoMatch, RowHeight, visibleColumns } from '../../components/resource-table.tsx'
import { RowLink } from '../../components/row-link.tsx'
import { Failure, Skeleton } from '../../components/states.tsx'
import { useHeldOrder } from '../../components/use-held-order.ts'
import { type ColumnView, type CustomPageView, type CustomRowView, type SourceView, unitText } from '../../contract.ts'
import { useHub } from '../../live/hooks.ts'
import { groupLines } from '../../model/arrange.ts'
import { cellValue, columnId, rowsQuestion, type Unit } from '../../model/custom.ts'
import { toJson } from '../../model/export.ts'
import { partExports } from '../../model/export-columns.ts'
import { formatCount, plural } from '../../model/format.ts'
import { usePreference } from '../../preferences.ts'
import { clusterPath, useQueryValue } from '../../router.tsx'
import { NotUpdated } from './not-updated.tsx'
import { ScalarText } from './parts.tsx'
import { useCustomRows } from './use-rows.ts'

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
export function rowColumns(
  { columns, scope }: Pick<SourceView, 'columns' | 'scope'>,
  rowPath: (id: string) => string | null,
): readonly Column<CustomRowView>[] {
  return [
    {
      id: 'name',
      header: 'Name',
      value: ({ name }) => name,
      cell: ({ id, name }) => {
        const to = rowPath(id)
        return to === null ? <Name text={name} className="row-name" /> : <RowLink to={to}>{name}</RowLink>
      },
    },
    ...(scope === 'Cluster'
      ? []
      : [{ id: 'namespace', header: 'Namespace', width: 180, value: ({ namespace }: CustomRowView) => namespace }]),
    ...columns.map(
      (column): Column<CustomRowView> => ({
        id: columnId(column.name),
        header: column.name,
        ...(column.unit === 'time' && { kind: 'time' as const }),
        ...(unitText[column.unit] && { unit: unitText[column.unit] as string }),
        width: Math.max(unitWidth[column.unit] || kindWidth[column.kind], Math.min(220, column.name.length * 7.6 + 34)),
        ...(isAmount(column) && column.unit !== 'time' && { align: 'end' as const }),
        descendingFirst: isAmount(column),
        value: (row) => cellValue(row, column),
        cell: (row) => <ScalarText value={row.values[column.name]} unit={column.unit} />,
      }),
    ),
  ]
}

interface RowsTableProps {
  readonly cluster: string
  readonly type: string
  /** which of several sources; '' where there is one */
  readonly source: string
  readonly info: SourceView
  /** told of each answer: what goes for all rows */
  readonly onPage: (page: CustomPageView, rows: ReadonlyMap<string, CustomRowView>) => void
  readonly dim: boolean
  readonly empty: ReactNode
}

/** Rows of one type on one cluster. Filter, order and pages are asked of the hub; they are loaded as somebody scrolls. */
export function RowsTable({ cluster, type, source, info, onPage, dim, empty }: RowsTableProps): ReactNode {
  const { client } = useHub()
  const [text, setText] = useQueryValue('q')
  const [order] = useQueryValue('sort')
  const [chosen, setChosen] = usePreference(`columns.type.${type}`, '')
  const columns = useMemo(() => rowColumns(info, (id) => rowPath(cluster, type, id)), [info, cluster, type])
  const visible = useMemo(() => visibleColumns(columns, chosen), [columns, chosen])
  const typed = useSettled(useDeferredValue(text))
  const { question, faults } = useMemo(() => rowsQuestion(typed, info.columns), [typed, info.columns])
  const descending = order.startsWith('-')
  const sortBy = columns.find(({ id }) => id === order.replace(/^-/, ''))?.id ?? 'name'
  const query = useMemo(
    () => ({
      ...question,
      ...(sortBy !== 'name' && !sortBy.startsWith('value.') && { sort: sortBy }),
      ...(descending && { order: 'desc' as const }),
      ...(source !== '' && { source }),
    }),
    [question, sortBy, descending, source],
  )
  const { paged, pending, want, again } = useCustomRows(cluster, type, query)
  const here = paged.state === 'here' ? paged : null
  useEffect(() => {
    if (here) onPage(here.page, here.rows)
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
  const names = useMemo(() => ['name', 'namespace', ...info.columns.map(({ name }) => name)], [info.columns])
  const seen = useCallback((to: number) => want(to + ahead), [want])
  const total = here?.page.total ?? 0
  const on = here?.page.on
  const exported = on
    ? [
        ...visible,
        ...partExports({ name: on.cluster, displayName: on.displayName }, on.part.freshness?.observedAt ?? null),
      ]
    : visible

  if (paged.state === 'waiting') return <Skeleton label="Loading the rows" />
  if (paged.state === 'failed' && paged.problem.status !== 400)
    return <Failure problem={paged.problem} onRetry={again} title="The rows could not be loaded" />
  return (
    <section className={`resource${pending ? ' is-pending' : ''}`} aria-label={`${type} of ${cluster}`}>
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
              href={client.customRowsCsvUrl(cluster, type, { ...query, headings: 'labels' })}
              download={`${type}-${cluster}.csv`}
            >
              CSV of {plural(total, 'row')}
            </a>
            <button
              type="button"
              className="menu-item"
              onClick={() => download(`${type}-${cluster}.json`, 'application/json', toJson(held.rows, exported))}
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
            caption={`${type} of ${cluster}`}
            columns={visible}
            lines={lines}
            gone={held.gone}
            rowHeight={38}
            sortBy={sortBy}
            descending={descending}
            rowCount={Math.max(total, lines.length)}
            onSeen={seen}
            dim={() => dim}
          />
        )}
      </div>
    </section>
  )
}

/** So many rows are loaded before they are scrolled to. */
const ahead = 600
const noRows: ReadonlyMap<string, CustomRowView> = new Map()
const keyOf = ({ id }: CustomRowView) => id

const countText = (page: CustomPageView | undefined, total: number, filtered: boolean): string => {
  const all = page?.on.part.count ?? total
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
