import { IconArrowDown, IconArrowUp, IconBaselineDensitySmall, IconColumns, IconDownload } from '@tabler/icons-react'
import {
  type CSSProperties,
  memo,
  type ReactNode,
  type RefObject,
  useCallback,
  useDeferredValue,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
} from 'react'
import { useHub, useNow } from '../live/hooks.ts'
import { arrange, groupLines, type Line, type Lines } from '../model/arrange.ts'
import { absenceIn, type ExportColumn, fileName, toCsv, toJson } from '../model/export.ts'
import { compileFilter, type Field, type FilterTarget, type Value } from '../model/filter.ts'
import { fitWidths } from '../model/fit.ts'
import { formatCount } from '../model/format.ts'
import { commonLabels, fillExample, filterHints } from '../model/hints.ts'
import { orderedRows } from '../model/ordered-rows.ts'
import { usePreference } from '../preferences.ts'
import { setQuery, usePlace, useQueryValue } from '../router.tsx'
import { useSeesAll } from '../session.ts'
import { download } from './download.ts'
import { FilterBox } from './filter-box.tsx'
import { Menu } from './menu.tsx'
import { Name } from './name.tsx'
import { Absent } from './text.tsx'
import { useHeldOrder } from './use-held-order.ts'
import { printedAtMost } from './use-printing.ts'
import { useRoom } from './use-room.ts'
import { useWindow } from './use-window.ts'

/** Its `value` is what the column says: it is filtered and exported by it, and sorted by it unless there is an `order`. */
export interface Column<T> extends ExportColumn<T> {
  /** where words have an order that is not the alphabet's; never shown, filtered by or exported */
  readonly order?: (row: T) => number | string | null
  /** what is exported instead, where a cell says more than one thing: ready and all; none: it only leads elsewhere */
  readonly exports?: readonly ExportColumn<T>[]
  readonly cell?: (row: T) => ReactNode
  /** px; the first column without it takes what is left */
  readonly width?: number
  /** px, below which it says too little: where there is little room it gives way down to this; default: it does not */
  readonly least?: number
  /** px: wider it does not get, however long its words are; default 230 */
  readonly most?: number
  readonly align?: 'end'
  /** shown only when chosen */
  readonly extra?: boolean
  /** numbers are of most interest when large */
  readonly descendingFirst?: boolean
}

export interface TableView<T> {
  readonly rows: readonly T[]
  readonly lines: readonly Line<T>[]
  readonly gone: ReadonlySet<string>
}

export interface ResourceTableProps<T> {
  /** names the table, its preferences and its exports: `nodes of west` */
  readonly caption: string
  readonly id: string
  readonly rows: ReadonlyMap<string, T>
  readonly columns: readonly Column<T>[]
  /** further fields of the filter that are no columns */
  readonly fields?: Readonly<Record<string, Field<T>>>
  readonly labels?: (row: T) => Readonly<Record<string, string>>
  readonly words: (row: T) => string
  readonly rowKey: (row: T) => string
  readonly sort: string
  /** a filter with `*` where something of the rows belongs: `health:* *=* cpu>80` */
  readonly example: string
  readonly empty: ReactNode
  /** one word for the rows: nodes */
  readonly noun: string
  readonly dim?: (row: T) => boolean
  readonly group?: { readonly of: (row: T) => string; readonly subtotal: (rows: readonly T[]) => ReactNode } | undefined
  readonly controls?: ReactNode
  /** another way to show the same rows */
  readonly instead?: ((view: TableView<T>) => ReactNode) | undefined
  readonly rowHeight?: number
  readonly note?: ReactNode
  /** how many there are, where not all of them are here yet */
  readonly total?: number | undefined
  /** what a file says of each row besides the columns: its cluster, when it was read */
  readonly alsoExported?: readonly ExportColumn<T>[] | undefined
}

/** A moment is sorted by its age: the youngest first. */
function sortValueOf<T>({ order, value, kind }: Column<T>): (row: T) => Value {
  if (order) return order
  if (kind !== 'time') return value
  return (row) => {
    const at = value(row)
    return typeof at === 'number' ? -at : null
  }
}

const scrollPlaces = new Map<string, number>()

/** Sorts, filters, groups, shows and exports rows; holds still while somebody reads. Filter and order are in the address. */
export function ResourceTable<T>(props: ResourceTableProps<T>): ReactNode {
  const { caption, id, rows, columns, fields, labels, words, rowKey, group, noun, rowHeight = 40 } = props
  const { clock } = useHub().store
  const [text, setText] = useQueryValue('q')
  const [order] = useQueryValue('sort')
  const [chosen, setChosen] = usePreference(`columns.${id}`, '')
  const box = useRef<HTMLElement>(null)
  const room = useRoom(box)
  const visible = useMemo(() => fittedTo(room, visibleColumns(columns, chosen)), [columns, chosen, room])
  const descending = order.startsWith('-')
  const sortBy = columns.find((column) => column.id === (order.replace(/^-/, '') || props.sort)) ?? columns[0]

  const typed = useDeferredValue(text)
  // Ages are the only thing that time alone moves through a filter.
  const now = useNow(typed === '' ? 86_400_000 : 5000)
  const target = useMemo((): FilterTarget<T> => {
    const own = Object.fromEntries(
      columns.map((column): [string, Field<T>] => [column.id, { kind: column.kind ?? 'text', read: column.value }]),
    )
    return { fields: { ...own, ...fields }, words, ...(labels && { labels }) }
  }, [columns, fields, labels, words])
  const filter = useMemo(() => compileFilter(typed, target, now), [typed, target, now])
  const all = useMemo(() => [...rows.values()], [rows])
  const hints = useMemo(() => filterHints(typed, target, all, noun), [typed, target, all, noun])
  // Of the rows as they first came: an example that changes while one reads it is none.
  const firstRows = useRef(all)
  if (firstRows.current.length === 0) firstRows.current = all
  const sample = firstRows.current
  const [example, someLabels] = useMemo(
    () => [fillExample(props.example, target, sample), commonLabels(target, sample)],
    [props.example, target, sample],
  )
  const arranged = useMemo(
    () =>
      orderedRows(
        arrange(all, { filter, sortValue: sortBy ? sortValueOf(sortBy) : () => null, descending, name: rowKey }),
        rowKey,
      ),
    [all, filter, sortBy, descending, rowKey],
  )
  const list = useRef<HTMLDivElement>(null)
  const held = useHeldOrder(arranged, rows, `${typed} ${order}`, list)
  const shown = useMemo(() => [...held.rows.values()], [held.rows])
  const groupOf = group?.of
  const lines = useMemo(() => groupLines(shown, rowKey, groupOf), [shown, rowKey, groupOf])

  const names = useMemo(
    () => [...new Set([...columns.map((column) => column.id), ...Object.keys(fields ?? {})])],
    [columns, fields],
  )
  const save = (format: 'csv' | 'json') => {
    const exported = [...visible.flatMap((column) => column.exports ?? [column]), ...(props.alsoExported ?? [])]
    const content = format === 'csv' ? toCsv(shown, exported) : toJson(shown, exported)
    download(fileName(caption, clock.now(), format), format === 'csv' ? 'text/csv' : 'application/json', content)
  }
  const { total } = props
  const what =
    total !== undefined && total > rows.size
      ? `the ${formatCount(shown.length)} of ${formatCount(total)} that are here so far`
      : 'what is shown'
  return (
    <section className="resource" aria-label={caption} ref={box}>
      <div className="toolbar">
        <FilterBox
          text={text}
          onText={setText}
          faults={[...filter.faults, ...hints]}
          fields={names}
          labels={someLabels}
          example={example}
          what={noun}
        />
        <p className="count">
          <span role="status">{countText(shown.length, rows.size, props.total, noun)}</span>
          {text !== '' && <span className="on-paper">filter: {text}</span>}
          {props.note}
          {held.moved && (
            <span className="held">
              order held while you read ·{' '}
              <button type="button" className="text-button" onClick={held.release}>
                apply now
              </button>
            </span>
          )}
        </p>
        <div className="toolbar-end">
          {props.controls}
          {!props.instead && <RowHeight />}
          <ColumnMenu columns={columns} visible={visible} onChange={setChosen} />
          <Menu
            label={
              <>
                <IconDownload size={16} aria-hidden="true" /> <span className="wide-only">Export</span>
              </>
            }
            title="Export"
          >
            <button type="button" className="menu-item" onClick={() => save('csv')}>
              CSV of {what}
            </button>
            <button type="button" className="menu-item" onClick={() => save('json')}>
              JSON of {what}
            </button>
          </Menu>
        </div>
      </div>
      <div ref={list} {...held.guard}>
        {shown.length === 0 ? (
          rows.size === 0 ? (
            props.empty
          ) : (
            <NoMatch noun={noun} onClear={() => setText('')} />
          )
        ) : props.instead ? (
          props.instead({ rows: shown, lines: lines.slice(0, lines.length), gone: held.gone })
        ) : (
          <Grid
            {...props}
            columns={visible}
            lines={lines}
            question={`${typed} ${order}`}
            gone={held.gone}
            rowHeight={rowHeight}
            sortBy={sortBy?.id ?? ''}
            descending={descending}
          />
        )}
      </div>
    </section>
  )
}

function fittedTo<T>(room: number, columns: readonly Column<T>[]): readonly Column<T>[] {
  const widths = fitWidths(
    columns.map(({ width, least = width ?? 0 }) => ({ width, least })),
    room,
  )
  return columns.map((column, place) => {
    const width = widths[place]
    return width === undefined ? column : { ...column, width }
  })
}

function countText(shown: number, here: number, total: number | undefined, noun: string): string {
  if (total !== undefined && total > here)
    return `${formatCount(here)} of ${formatCount(total)} ${noun} so far, the others are coming`
  return shown === here ? `${formatCount(here)} ${noun}` : `${formatCount(shown)} of ${formatCount(here)} ${noun}`
}

export function NoMatch({ noun, onClear }: { noun: string; onClear: () => void }): ReactNode {
  return (
    <div className="state">
      <p className="state-title">No {noun} match this filter</p>
      <div className="state-text">
        <button type="button" className="button" onClick={onClear}>
          Clear the filter
        </button>
      </div>
    </div>
  )
}

/** The choice is kept as the ids that differ from the default, so that new columns appear for everybody. */
export function visibleColumns<T>(columns: readonly Column<T>[], chosen: string): readonly Column<T>[] {
  const turned = new Set(chosen.split(' '))
  return columns.filter((column, index) => index === 0 || turned.has(column.id) === (column.extra === true))
}

export function ColumnMenu<T>({
  columns,
  visible,
  onChange,
}: {
  columns: readonly Column<T>[]
  visible: readonly Column<T>[]
  onChange: (chosen: string) => void
}): ReactNode {
  const turn = (turned: Column<T>) => {
    const shown = new Set(visible)
    if (!shown.delete(turned)) shown.add(turned)
    onChange(
      columns
        .filter((column, index) => index > 0 && shown.has(column) === (column.extra === true))
        .map(({ id }) => id)
        .join(' '),
    )
  }
  return (
    <Menu
      label={
        <>
          <IconColumns size={16} aria-hidden="true" /> <span className="wide-only">Columns</span>
        </>
      }
      title="Columns"
    >
      <fieldset className="menu-choices">
        <legend className="vh">Columns</legend>
        {columns.slice(1).map((column) => (
          <label key={column.id}>
            <input type="checkbox" checked={visible.includes(column)} onChange={() => turn(column)} /> {column.header}
          </label>
        ))}
      </fieldset>
    </Menu>
  )
}

const compactHeight = 30

/** Low rows, on every table of this browser. */
export function RowHeight(): ReactNode {
  const [height, setHeight] = usePreference('rows', 'roomy')
  const isCompact = height === 'compact'
  return (
    <button
      type="button"
      className="button row-height"
      aria-pressed={isCompact}
      aria-label="Compact rows"
      data-tip="Compact rows"
      onClick={() => setHeight(isCompact ? 'roomy' : 'compact')}
    >
      <IconBaselineDensitySmall size={16} aria-hidden="true" />
    </button>
  )
}

interface GridProps<T> extends Pick<ResourceTableProps<T>, 'caption' | 'columns' | 'dim' | 'group'> {
  readonly lines: Lines<T>
  /** what the lines are the answer to */
  readonly question: string
  /** the answer to another one is shown from its first line on */
  readonly restarts?: boolean
  readonly gone: ReadonlySet<string>
  /** rows that keep their place only while the order is held, and whether they are known to be elsewhere */
  readonly elsewhere?: ReadonlyMap<string, boolean>
  readonly rowHeight: number
  readonly sortBy: string
  readonly descending: boolean
  /** of all, where `lines` are only those that are loaded */
  readonly rowCount?: number
  /** which lines somebody sees, as they come into view */
  readonly onSeen?: (from: number, to: number) => void
}

/** The table itself: only the lines in view are rendered, all of one height. */
export function Grid<T>({
  caption,
  columns,
  lines,
  question,
  restarts = false,
  gone,
  elsewhere,
  rowHeight: roomyHeight,
  sortBy,
  descending,
  dim,
  group,
  rowCount,
  onSeen,
}: GridProps<T>): ReactNode {
  const scroller = useRef<HTMLElement>(null)
  const { key, path } = usePlace()
  const list = `${path} ${caption}`
  const before = useRef('')
  const blank = !useSeesAll()
  const isCompact = usePreference('rows', 'roomy')[0] === 'compact'
  const rowHeight = isCompact ? compactHeight : roomyHeight
  // Known, not read: to read it where rows were just drawn lays all of them out.
  const top = useRef(0)
  const goTo = useCallback((place: number) => {
    if (!scroller.current || top.current === place) return
    scroller.current.scrollTop = place
    top.current = place
  }, [])
  useLayoutEffect(() => {
    const box = scroller.current
    const placeKey = `${key} ${caption}`
    // The same list under another address, as with a row open beside it, stays where it is.
    goTo(scrollPlaces.get(placeKey) ?? (before.current === list ? top.current : 0))
    before.current = list
    scrollPlaces.set(placeKey, top.current)
    // Asked before those that draw what comes into view.
    const remember = () => {
      if (!box) return
      top.current = box.scrollTop
      scrollPlaces.set(placeKey, top.current)
    }
    box?.addEventListener('scroll', remember, { passive: true, capture: true })
    return () => box?.removeEventListener('scroll', remember, { capture: true })
  }, [key, caption, list, goTo])
  const asked = useRef(question)
  useLayoutEffect(() => {
    if (restarts && asked.current !== question) goTo(0)
    asked.current = question
  }, [restarts, question, goTo])
  const { from, to } = useWindow(scroller, lines.length, rowHeight, question)
  useRowKeys(scroller, lines, rowHeight)
  useFits(scroller)
  useEffect(() => onSeen?.(from, to), [onSeen, from, to])

  const sort = useCallback(
    (column: Column<T>) => {
      const same = column.id === sortBy
      const down = same ? !descending : column.descendingFirst === true
      setQuery({ sort: `${down ? '-' : ''}${column.id}` })
    },
    [sortBy, descending],
  )
  const frame = isCompact ? 'table-scroll is-compact' : 'table-scroll'
  const widths = columnWidths(columns)
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section className={frame} ref={scroller} tabIndex={0} aria-label={`${caption}, scrolls`}>
      <table
        aria-rowcount={(rowCount ?? lines.length) + 1}
        style={{ minWidth: `calc(${widths.least.join(' + ')})`, '--row': `${rowHeight}px` } as CSSProperties}
      >
        <caption className="vh">{caption}</caption>
        <colgroup>
          {columns.map(({ id }, place) => (
            <col key={id} style={{ width: widths.own[place] }} />
          ))}
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map((column) => (
              <th
                key={column.id}
                scope="col"
                className={column.align === 'end' ? 'end' : ''}
                aria-sort={column.id === sortBy ? (descending ? 'descending' : 'ascending') : 'none'}
              >
                <button type="button" onClick={() => sort(column)}>
                  {column.header}
                  {column.id === sortBy &&
                    (descending ? (
                      <IconArrowDown size={13} aria-hidden="true" />
                    ) : (
                      <IconArrowUp size={13} aria-hidden="true" />
                    ))}
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {from > 0 && <Spacer height={from * rowHeight} columns={columns.length} />}
          {lines.slice(from, to).map((line, offset) =>
            line.kind === 'group' ? (
              <tr key={line.key} className="group" aria-rowindex={from + offset + 2}>
                <th colSpan={columns.length} scope="rowgroup">
                  <span className="group-name">{line.group}</span>{' '}
                  <span className="group-sum">{group?.subtotal(line.rows)}</span>
                </th>
              </tr>
            ) : (
              <Row
                key={line.key}
                row={line.row}
                columns={columns as readonly Column<unknown>[]}
                index={from + offset}
                dim={dim?.(line.row) ?? false}
                gone={gone.has(line.key)}
                elsewhere={elsewhere?.get(line.key)}
                blank={blank && (gone.has(line.key) || elsewhere?.get(line.key) === false)}
              />
            ),
          )}
          {to < lines.length && <Spacer height={(lines.length - to) * rowHeight} columns={columns.length} />}
          {lines.length > printedAtMost && (
            <tr className="on-paper">
              <td colSpan={columns.length}>
                and {formatCount(lines.length - printedAtMost)} more, which an export has
              </td>
            </tr>
          )}
        </tbody>
      </table>
    </section>
  )
}

/**
 * The first column stays where it is while others scroll: where there is little room it takes two fifths of it at most, and the
 * column without a width, which names the row, fits beside it. A name that comes first leaves room for the column beside it.
 */
function columnWidths<T>(columns: readonly Column<T>[]) {
  const own = columns.map(({ width }, place) =>
    width === undefined ? 'auto' : place === 0 ? `min(${width}px, 40cqi)` : `${width}px`,
  )
  const [first, second = '0px'] = own
  const leastName = first === 'auto' ? `max(140px, min(220px, 100cqi - ${second}))` : `min(220px, 100cqi - ${first})`
  const least = own.map((width) => (width === 'auto' ? leastName : width))
  return { own, least }
}

const Spacer = ({ height, columns }: { height: number; columns: number }) => (
  // biome-ignore lint/a11y/noAriaHiddenOnFocusable: a spacer cannot take focus; it stands for rows that are not rendered
  <tr aria-hidden="true" className="spacer">
    <td colSpan={columns} style={{ height: `${height}px` }} />
  </tr>
)

interface RowProps {
  readonly row: unknown
  readonly columns: readonly Column<unknown>[]
  readonly index: number
  readonly dim: boolean
  readonly gone: boolean
  /** it keeps its place only while the order is held, and whether it is known to be elsewhere; undefined: it stands in order */
  readonly elsewhere: boolean | undefined
  /** only its place is kept */
  readonly blank: boolean
}

/** Anywhere on a row follows the row's link; by keyboard the link itself does. */
function followRow(event: { target: EventTarget; currentTarget: Element }): void {
  if (!(event.target instanceof Element) || event.target.closest('a, button, input')) return
  if (window.getSelection()?.toString()) return
  event.currentTarget.querySelector<HTMLAnchorElement>('[data-row-link]')?.click()
}

const knownElsewhere = 'It stands elsewhere in the list by now'
const notKnown = 'It is none of the rows that are loaded, so that what became of it is not known'
const notKnownAge = <span className="missing">not known</span>

const Row = memo(function Row({ row, columns, index, dim, gone, elsewhere, blank }: RowProps): ReactNode {
  if (blank)
    return (
      <tr data-index={index} aria-rowindex={index + 2} className="blank">
        <td colSpan={columns.length}>no longer here</td>
      </tr>
    )
  const isKept = elsewhere !== undefined
  return (
    <tr
      data-index={index}
      aria-rowindex={index + 2}
      className={`${dim || isKept ? 'dim' : ''}${gone ? ' gone' : ''}${isKept ? ' elsewhere' : ''}`}
      {...(isKept && {
        title: `${elsewhere ? knownElsewhere : notKnown}, and keeps this place while the order is held`,
      })}
      onClick={followRow}
    >
      {columns.map((column, place) => {
        // What is not known of a row is not known as of now either.
        const isUnknown = elsewhere === false && column.id === 'asOf'
        const content = isUnknown ? notKnownAge : column.cell ? column.cell(row) : plain(column, row)
        const className = column.align === 'end' ? 'end' : ''
        return place === 0 ? (
          <th key={column.id} scope="row" className={className}>
            {content}
          </th>
        ) : (
          <td key={column.id} className={className}>
            {content}
          </td>
        )
      })}
    </tr>
  )
})

function plain(column: Column<unknown>, row: unknown): ReactNode {
  const value = column.value(row)
  if (value === null) return <Absent absence={absenceIn(column, row)} what={column.header} />
  if (value === '') return <span className="quiet">empty</span>
  if (typeof value === 'number') return formatCount(value)
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  return <Name text={typeof value === 'object' ? value.join(', ') : value} />
}

/** Says on the element whether its table is no wider: what is drawn where it is costs every frame that scrolls. */
function useFits(scroller: RefObject<HTMLElement | null>): void {
  useLayoutEffect(() => {
    const box = scroller.current
    const table = box?.firstElementChild
    if (!box || !table) return
    const size = new ResizeObserver(() => box.toggleAttribute('data-fits', box.scrollWidth <= box.clientWidth))
    size.observe(box)
    size.observe(table)
    return () => size.disconnect()
  }, [scroller])
}

/** j and k walk from row to row, whether or not the next one is rendered yet. */
function useRowKeys<T>(scroller: { readonly current: HTMLElement | null }, lines: Lines<T>, rowHeight: number): void {
  const latest = useRef(lines)
  latest.current = lines
  useEffect(() => {
    const walk = (event: Event) => {
      const box = scroller.current
      const by = (event as CustomEvent<number>).detail
      if (!box) return
      const here = document.activeElement?.closest('tr[data-index]')
      // What was scrolled out of sight is not there any more to be walked on from: it goes on where the eye is.
      const first = Math.ceil(box.scrollTop / rowHeight)
      const last = Math.floor((box.scrollTop + box.clientHeight) / rowHeight) - 1
      let index = here && box.contains(here) ? Number(here.getAttribute('data-index')) + by : by > 0 ? first : last - 1
      const kindAt = (at: number) => (at < 0 ? undefined : latest.current.slice(at, at + 1)[0]?.kind)
      while (kindAt(index) === 'group') index += by
      if (kindAt(index) !== 'row') return
      const [top, bottom] = [index * rowHeight, (index + 2) * rowHeight]
      if (top < box.scrollTop) box.scrollTop = top
      else if (bottom > box.scrollTop + box.clientHeight) box.scrollTop = bottom - box.clientHeight
      const focus = () => box.querySelector<HTMLElement>(`tr[data-index="${index}"] [data-row-link]`)?.focus()
      focus()
      requestAnimationFrame(focus)
    }
    document.addEventListener('clusterpulse:walk', walk)
    return () => document.removeEventListener('clusterpulse:walk', walk)
  }, [scroller, rowHeight])
}
