import { IconDownload } from '@tabler/icons-react'
import {
  type ComponentProps,
  Fragment,
  memo,
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
import { NotUpdated } from '../../components/not-updated.tsx'
import { type Column, ColumnMenu, Grid, NoMatch, RowHeight, visibleColumns } from '../../components/resource-table.tsx'
import { RowLink } from '../../components/row-link.tsx'
import { SetChoice } from '../../components/set-choice.tsx'
import { Failure, Skeleton } from '../../components/states.tsx'
import { Age, Missing } from '../../components/text.tsx'
import { useHeldOrder } from '../../components/use-held-order.ts'
import { useMedia } from '../../components/use-media.ts'
import { useRoom } from '../../components/use-room.ts'
import {
  type Client,
  type ColumnView,
  type RowsPageQuery,
  type SourceView,
  type TableRowView,
  unitText,
} from '../../contract.ts'
import { useHub } from '../../live/hooks.ts'
import { RowList } from '../../live/row-list.ts'
import type { RowsPage, ShownRow } from '../../live/row-pages.ts'
import { useSetName } from '../../live/use-cluster-set.ts'
import { useRows } from '../../live/use-rows.ts'
import { rowLines } from '../../model/arrange.ts'
import { type ExportColumn, toJson } from '../../model/export.ts'
import { clusterNameExports } from '../../model/export-columns.ts'
import type { Value } from '../../model/filter.ts'
import { fitWidths } from '../../model/fit.ts'
import { formatCount, plural } from '../../model/format.ts'
import { keptNear } from '../../model/ordered-rows.ts'
import type { Counted } from '../../model/recount.ts'
import { cellValue, columnId, rowsQuestion, scalarOf, type Unit } from '../../model/row-values.ts'
import { usePreference } from '../../preferences.ts'
import { clusterPath, currentQuery, Link, setQuery, typePath, typesPath, useQueryValue } from '../../router.tsx'
import { ShareMeter } from './amounts.tsx'
import { ValueText } from './parts.tsx'
import { GroupSelect, groupColumns, RowGroups } from './row-groups.tsx'
import { Linked } from './row-links.tsx'
import { SeenOn, useReadAt, useSeenOn } from './seen-on.ts'
import { useRowHints } from './use-row-hints.ts'
import { useSample } from './use-sample.ts'

const unitWidth: Readonly<Record<Unit, number>> = {
  none: 0,
  bytes: 96,
  cores: 96,
  percent: 104,
  seconds: 110,
  time: 94,
}
const kindWidth = { string: 170, number: 112, boolean: 92, null: 92, any: 120 }

const isAmount = ({ kind, unit }: ColumnView) => kind === 'number' || unit === 'time'

/** The declared columns, as the table takes them. Their names stay as they are: filters and policies use them so. */
export function rowColumns<T extends TableRowView>(
  { columns, scope }: Pick<SourceView, 'columns' | 'scope'>,
  rowPath: (row: T) => string | null,
  clusterOf: (row: T) => string | null = () => null,
  seen: SeenOn = new SeenOn(),
): readonly Column<T>[] {
  const onOf = (row: T) => seen.get(clusterOf(row) ?? '')
  const linked = (row: T, column: string | null, text: ReactNode): ReactNode => {
    const cluster = clusterOf(row)
    if (cluster === null) return text
    return (
      <Linked cluster={cluster} row={row} column={column}>
        {text}
      </Linked>
    )
  }
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
      : [
          {
            id: 'namespace',
            header: 'Namespace',
            width: 180,
            value: ({ namespace }: TableRowView) => namespace,
            cell: (row: T) => linked(row, null, <Name text={row.namespace} />),
          },
        ]),
    ...columns.map(
      (column): Column<T> => ({
        id: columnId(column.name),
        header: column.label,
        ...(column.unit === 'time' && { kind: 'time' as const }),
        ...(unitText[column.unit] && { unit: unitText[column.unit] as string }),
        width: Math.max(unitWidth[column.unit] || kindWidth[column.kind], Math.min(220, column.label.length * 7 + 31)),
        ...(isAmount(column) && column.unit !== 'time' && { align: 'end' as const }),
        descendingFirst: isAmount(column),
        ...(column.kind === 'any' && { most: 520 }),
        extra: column.extra,
        value: (row) => cellValue(row, column),
        cell: (row) => {
          if (column.amount?.what === 'share')
            return (
              <MeasuredShare
                of={column.amount.of}
                row={row}
                columns={columns}
                seen={seen}
                cluster={clusterOf(row) ?? ''}
              />
            )
          const value = scalarOf(row.values[column.name])
          if (column.refersTo === 'object' && typeof value === 'string' && value.includes('/'))
            return <Reference value={value} linked={(name) => linked(row, column.name, name)} />
          if (column.measured)
            return (
              <MeasuredText
                value={row.values[column.name]}
                column={column}
                seen={seen}
                cluster={clusterOf(row) ?? ''}
              />
            )
          const text = <ValueText value={row.values[column.name]} column={column} on={onOf(row)} />
          return column.refersTo === null ? text : linked(row, column.name, text)
        },
      }),
    ),
  ]
}

/** `Deployment/cart`: the name first, whose kind is cut before it is. */
function Reference({ value, linked }: { value: string; linked: (name: ReactNode) => ReactNode }): ReactNode {
  const [kind, ...rest] = value.split('/')
  return (
    <span className="reference" title={value}>
      {linked(<Name text={rest.join('/')} />)}
      <span className="sub-inline">{kind}</span>
    </span>
  )
}

const clusterOf = ({ cluster }: ShownRow): string => cluster

/** The same over many clusters: of which one a row is, and of when. */
function fleetColumns(
  [name, ...own]: readonly Column<ShownRow>[],
  seen: SeenOn,
  clusters: readonly string[],
): readonly Column<ShownRow>[] {
  const shown = (cluster: string) => seen.get(cluster)?.displayName || cluster
  return [
    ...(name ? [name] : []),
    {
      id: 'cluster',
      header: 'Cluster',
      width: widthOf('Cluster', longestOf(clusters.map(shown)), 150),
      value: ({ cluster }) => cluster,
      exports: [],
      cell: ({ cluster }) => (
        <Link to={clusterPath(cluster)}>
          <Name text={shown(cluster)} />
        </Link>
      ),
    },
    ...own,
    asOfColumn(seen),
  ]
}

const isPlace = ({ id }: Column<ShownRow>): boolean => id === 'namespace' || id === 'cluster'

/** Where there is little room: in which namespace and cluster a row is stands below its name. */
function placeBelowName([name, ...rest]: readonly Column<ShownRow>[]): readonly Column<ShownRow>[] {
  const places = rest.filter(isPlace).reverse()
  if (!name || places.length === 0) return name ? [name, ...rest] : rest
  return [
    {
      ...name,
      cell: (row) => (
        <span className="name-cell">
          <span className="name-line">{name.cell?.(row)}</span>
          <span className="sub places">
            {places.map(({ id, cell }, place) => (
              <Fragment key={id}>
                {place > 0 && <span> · </span>}
                {cell?.(row)}
              </Fragment>
            ))}
          </span>
        </span>
      ),
    },
    ...rest.filter((column) => !isPlace(column)),
  ]
}

/** A measured number tells by itself that it could not be read since. */
function MeasuredText({
  seen,
  cluster,
  ...rest
}: Omit<ComponentProps<typeof ValueText>, 'on'> & { readonly seen: SeenOn; readonly cluster: string }): ReactNode {
  return <ValueText {...rest} on={useSeenOn(seen, cluster)} />
}

function MeasuredShare({
  seen,
  cluster,
  ...rest
}: Omit<ComponentProps<typeof ShareMeter>, 'on'> & { readonly seen: SeenOn; readonly cluster: string }): ReactNode {
  return <ShareMeter {...rest} on={useSeenOn(seen, cluster)} />
}

function ReadAt({ seen, cluster }: { seen: SeenOn; cluster: string }): ReactNode {
  const at = useReadAt(seen, cluster)
  return at === null ? <Missing why="it was never read" /> : <Age at={at} />
}

function asOfColumn(seen: SeenOn): Column<ShownRow> {
  return {
    id: 'asOf',
    header: 'As of',
    width: 78,
    align: 'end',
    kind: 'time',
    value: ({ cluster }) => seen.get(cluster)?.part.freshness?.observedAt ?? null,
    exports: [],
    cell: ({ cluster }) => <ReadAt seen={seen} cluster={cluster} />,
  }
}

interface RowsTableProps {
  /** null: rows of all clusters */
  readonly cluster: string | null
  readonly type: string
  /** which of several sources; '' where there is one */
  readonly source: string
  readonly info: SourceView
  /** how many rows the page says there are; null: it does not say it */
  readonly count: number | null
  /** told of what is counted here of all rows, which the page is to say as well; null: nothing is */
  readonly onCounted?: (counted: Counted | null) => void
  /** told of each answer: what goes for all rows */
  readonly onPage?: (page: RowsPage, rows: ReadonlyMap<string, ShownRow>) => void
  /** what is shown is of the past */
  readonly isPast?: (row: ShownRow) => boolean
  readonly empty: ReactNode
}

/** Rows of one type on one cluster, or on all. Filter, order and pages are asked of the hub; they are loaded as somebody scrolls. */
export const RowsTable = memo(function RowsTable(props: RowsTableProps): ReactNode {
  const { cluster, type, source, info, count, onCounted, onPage, isPast, empty } = props
  const { client } = useHub()
  const [text, setText] = useQueryValue('q')
  const [order] = useQueryValue('sort')
  const [group, setGroup] = useQueryValue('group')
  const setName = useSetName()
  const set = cluster === null ? setName : ''
  const groups = useMemo(() => (cluster === null ? groupColumns(info.columns, info.scope) : []), [cluster, info])
  const grouped = groups.find(([name]) => name === group)
  const [chosen, setChosen] = usePreference(`columns.type.${type}`, '')
  const [seenOn] = useState(() => new SeenOn())
  const isSmall = useMedia('(max-width: 510px)')
  const [shownOn, setShownOn] = useState('[]')
  const columns = useMemo(() => {
    const path = (row: ShownRow) => rowPath(cluster, type, row.id)
    const own = rowColumns<ShownRow>(info, path, clusterOf, seenOn)
    const clusters = (JSON.parse(shownOn) as [string][]).map(([name]) => name) // made below
    return cluster === null ? fleetColumns(own, seenOn, clusters) : own
  }, [info, cluster, type, seenOn, shownOn])
  const typed = useSettled(useDeferredValue(text))
  const { question, faults } = useMemo(() => rowsQuestion(typed, info.columns), [typed, info.columns])
  const descending = (order || info.sort).startsWith('-')
  const usual = cluster === null && info.sort === 'name' ? 'cluster' : info.sort.replace(/^-/, '')
  const sortBy = columns.find(({ id }) => id === order.replace(/^-/, ''))?.id ?? usual
  const query = useMemo(
    () => ({
      ...question,
      ...(sortBy !== (cluster === null ? 'cluster' : 'name') &&
        sortBy !== 'asOf' &&
        !sortBy.startsWith('value.') && { sort: sortBy }),
      ...(descending && { order: 'desc' as const }),
      ...(source !== '' && { source }),
      ...(set !== '' && { set }),
    }),
    [question, sortBy, cluster, descending, source, set],
  )
  const { paged, beyond, pending, want, look, keep, again } = useRows(cluster, type, query)
  const here = paged.state === 'here' ? paged : null
  useEffect(() => {
    if (!here) return
    seenOn.set(here.page.on)
    seenOn.tell()
    // What columns are made of.
    setShownOn(
      JSON.stringify(here.page.on.map(({ cluster, displayName, filtered }) => [cluster, displayName, filtered])),
    )
    onPage?.(here.page, here.rows)
  }, [here, onPage, seenOn])

  const rows = here?.rows ?? RowList.empty
  const isGrouped = grouped !== undefined
  const isAll = here?.isWhole === true && !pending && typed === '' && !isGrouped
  useLayoutEffect(() => {
    // Groups are counted by the hub, who says how many rows those were.
    if (!isGrouped) onCounted?.(isAll ? { count: rows.size, rows } : null)
  }, [onCounted, isGrouped, isAll, rows])
  useEffect(() => () => onCounted?.(null), [onCounted])
  const onTotal = useCallback(
    (all: number | null) => onCounted?.(all === null || typed !== '' ? null : { count: all, rows: null }),
    [onCounted, typed],
  )
  const sample = useSample(`${cluster} ${type} ${source}`, rows)
  const { example, labels, hints } = useRowHints({
    ...{ cluster, type, source, info, text: typed, sample, page: pending ? undefined : here?.page, faults },
  })
  const marked = useMemo(
    () => new Set(info.columns.filter(({ health }) => health !== null).map(({ name }) => columnId(name))),
    [info.columns],
  )
  const fitted = useMemo(
    () => columns.map((column) => fittedColumn(column, sample, marked.has(column.id))),
    [columns, sample, marked],
  )
  const list = useRef<HTMLDivElement>(null)
  const room = useRoom(list)
  const visible = useMemo(() => visibleColumns(fitted, chosen), [fitted, chosen])
  const shownColumns = useMemo(
    () => fittedTo(room, isSmall ? placeBelowName(visible) : visible, marked),
    [visible, isSmall, room, marked],
  )
  const held = useHeldOrder(rows, rows, pending ? 'pending' : JSON.stringify(query), list, beyond)
  const lines = useMemo(() => rowLines(held.rows, keyOf), [held.rows])
  const asked = JSON.stringify(query)
  // The old rows are there until the question is answered.
  const answered = useRef(asked)
  if (!pending) answered.current = asked
  const names = useMemo(
    () => [...(cluster === null ? ['cluster'] : []), 'name', 'namespace', ...info.columns.map(({ name }) => name)],
    [cluster, info.columns],
  )
  const sight = useRef<[from: number, to: number]>([0, 0])
  const seen = useCallback(
    (from: number, to: number) => {
      want(to + ahead)
      look(from, to)
      sight.current = [from, to]
    },
    [want, look],
  )
  useEffect(() => keep(() => (held.holding ? keptNear(held, beyond, ...sight.current) : [])))
  const total = here?.page.total ?? 0
  // Of all rows there is one number on a page: where they are not all here, that of the page.
  const shownTotal = isAll || typed !== '' || pending ? total : (count ?? total)
  const exported = [...visible.filter(({ id }) => id !== 'cluster' && id !== 'asOf'), ...originExports(seenOn)]
  const shownNames = info.columns
    .filter(({ name }) => visible.some(({ id }) => id === columnId(name)))
    .map(({ name }) => name)
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
          faults={paged.state === 'failed' ? [...faults, paged.problem.message] : [...faults, ...hints]}
          fields={names}
          labels={labels}
          example={example}
          what={`${type} rows`}
        />
        <div className="toolbar-end">
          {cluster === null && <SetChoice />}
          {groups.length > 0 && <GroupSelect columns={groups} by={grouped?.[0] ?? ''} onChange={setGroup} />}
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
              href={csvUrl(client, cluster, type, { ...query, columns: shownNames })}
              download={`${type}-${cluster ?? 'fleet'}.csv`}
            >
              CSV of {plural(shownTotal, 'row')}
            </a>
            <button
              type="button"
              className="menu-item"
              onClick={() =>
                download(
                  `${type}-${cluster ?? 'fleet'}.json`,
                  'application/json',
                  toJson([...held.rows.values()], exported),
                )
              }
            >
              JSON of the {formatCount(held.rows.size)} loaded
            </button>
          </Menu>
        </div>
      </div>
      {grouped ? (
        <RowGroups
          type={type}
          by={grouped[0]}
          label={grouped[1]}
          question={{ ...question, ...(source !== '' && { source }), ...(set !== '' && { set }) }}
          onTotal={onTotal}
          onChoose={(term) => setQuery({ q: `${text} ${term}`.trim(), group: null })}
        />
      ) : (
        <>
          <p className="count">
            <span role="status">{typed === '' ? plural(shownTotal, 'row') : countText(here?.page, total, count)}</span>
            {here && !here.isWhole && (
              <span className="quiet">{formatCount(rows.size)} loaded, more as you scroll</span>
            )}
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
            {held.rows.size === 0 ? (
              typed === '' ? (
                empty
              ) : (
                <NoMatch noun="rows" onClear={() => setText('')} />
              )
            ) : (
              <Grid
                caption={`${type} of ${where}`}
                columns={shownColumns}
                lines={lines}
                question={answered.current}
                restarts
                gone={held.gone}
                elsewhere={held.elsewhere}
                rowHeight={38}
                sortBy={sortBy}
                descending={descending}
                rowCount={Math.max(total, lines.length)}
                onSeen={seen}
                {...(isPast && { dim: isPast })}
              />
            )}
          </div>
        </>
      )}
    </section>
  )
})

/** Values take as much room as they need, as far as rows are known, so that more columns are in sight. */
function fittedColumn(column: Column<ShownRow>, rows: readonly ShownRow[], hasMark: boolean): Column<ShownRow> {
  if (column.width === undefined || ['name', 'cluster', 'asOf'].includes(column.id)) return column
  // A number without a unit is short; what is drawn beside one with a unit is not.
  if (column.align === 'end') return column.unit ? column : { ...column, width: widthOf(column.header, 6, 230) }
  const longest = longestOf(rows.slice(0, 200).map((row) => column.value(row)))
  if (longest === 0) return column
  // What says how something is may turn bad at any time, which is told by longer words.
  const letters = hasMark ? Math.max(longest, 'CrashLoopBackOff'.length) + 3 : longest
  return { ...column, width: widthOf(column.header, letters, column.most ?? 230) }
}

/**
 * Words give way to each other where else the table would scroll sideways: they are cut, and said in full on hover.
 * @param marked columns that say how something is, which is never cut
 */
function fittedTo(
  room: number,
  columns: readonly Column<ShownRow>[],
  marked: ReadonlySet<string>,
): readonly Column<ShownRow>[] {
  const widths = fitWidths(
    columns.map(({ id, width, align, kind, header }) => {
      const givesWay = width !== undefined && !align && !kind && !marked.has(id)
      return { width, least: givesWay ? Math.min(width, Math.max(100, widthOf(header, 0, 0))) : (width ?? 0) }
    }),
    room,
  )
  return columns.map((column, place) => {
    const width = widths[place]
    return width === undefined || width === column.width ? column : { ...column, width }
  })
}

const longestOf = (texts: readonly Value[]): number =>
  texts.reduce<number>((most, text) => Math.max(most, typeof text === 'string' ? text.length : 0), 0)

/** Of so many letters, in px, with padding. */
const widthOf = (header: string, letters: number, most: number): number =>
  Math.round(Math.max(header.length * 7.2 + 36, Math.min(most, letters * 7.6 + 30)))

/** So many rows are loaded before they are scrolled to. */
const ahead = 600
const keyOf = ({ id }: ShownRow) => id

const csvUrl = (
  client: Client,
  cluster: string | null,
  type: string,
  query: RowsPageQuery & { columns: readonly string[] },
): string =>
  cluster === null
    ? client.fleetRowsCsvUrl(type, { ...query, headings: 'labels' })
    : client.rowsCsvUrl(cluster, type, { ...query, headings: 'labels' })

/** Of which cluster a row is, and of when. */
const originExports = (on: SeenOn): readonly ExportColumn<ShownRow>[] => [
  ...clusterNameExports.map((column) => ({
    ...column,
    absence: 'none' as const,
    value: ({ cluster }: ShownRow) => column.value({ name: cluster, displayName: on.get(cluster)?.displayName ?? '' }),
  })),
  {
    id: 'asOf',
    header: 'As of',
    kind: 'time',
    value: ({ cluster }) => on.get(cluster)?.part.freshness?.observedAt ?? null,
  },
]

/** @param total that pass the filter @param count of all, as the page says it */
const countText = (page: RowsPage | undefined, total: number, count: number | null): string => {
  const all = count ?? page?.on.reduce((sum, { part }) => sum + part.count, 0) ?? total
  return all > total ? `${formatCount(total)} of ${plural(all, 'row')}` : plural(total, 'row')
}

/**
 * The row beside its table; filter and order stay.
 * @param cluster null: over all clusters
 */
export function rowPath(cluster: string | null, type: string, id: string | null): string {
  const query = new URLSearchParams(currentQuery())
  if (id === null) query.delete('row')
  else query.set('row', id)
  const text = query.toString()
  return `${cluster === null ? typesPath(type) : typePath(cluster, type)}${text && `?${text}`}`
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
