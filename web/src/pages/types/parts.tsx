import {
  IconCircleDashed,
  IconClock,
  IconHourglass,
  IconLock,
  IconPlugConnectedX,
  IconPuzzleOff,
} from '@tabler/icons-react'
import type { ReactNode } from 'react'
import { HealthMark } from '../../components/health.tsx'
import { Name } from '../../components/name.tsx'
import { Absent, Age, Flash, Hidden, Missing } from '../../components/text.tsx'
import {
  type Absence,
  type AggregatedView,
  absenceOf,
  type ColumnView,
  momentOf,
  type SourceView,
  type TypeOnClusterView,
} from '../../contract.ts'
import { useAtTime } from '../../live/hooks.ts'
import { formatMoment, formatPercent, formatSpan, plural } from '../../model/format.ts'
import {
  type CellValue,
  type CollectionStatus,
  collectionStatusOf,
  collectionStatusWord,
  formatQuantity,
  isGroups,
  isIncomplete,
  type PastUsage,
  pastUsage,
  type Scalar,
  sayScalar,
  scalarOf,
  type Unit,
} from '../../model/row-values.ts'

const icons: Readonly<Record<Exclude<CollectionStatus, 'collected' | 'partly'>, typeof IconLock>> = {
  stale: IconClock,
  empty: IconCircleDashed,
  absent: IconPuzzleOff,
  forbidden: IconLock,
  unreachable: IconPlugConnectedX,
  waiting: IconHourglass,
}

/** Shape, word and colour of how a type stands on a cluster. */
export function CollectionStatusMark({ on }: { on: TypeOnClusterView }): ReactNode {
  const status = collectionStatusOf(on)
  const tip = on.part.message || undefined
  if (status === 'collected' || status === 'partly')
    return <HealthMark need={status === 'partly' ? 'degraded' : 'healthy'} word={collectionStatusWord[status]} />
  const Icon = icons[status]
  return (
    <span className={`custom-status is-${status}`} {...(tip && { 'data-tip': tip })}>
      <Icon size={16} aria-hidden="true" />
      {collectionStatusWord[status]}
    </span>
  )
}

/** The same as words, for filters, files and cells. */
export const notesOf = (on: TypeOnClusterView): string[] => [
  ...(on.truncated ? ['truncated'] : []),
  ...(on.outdated ? ['outdated'] : []),
  ...(on.errorCount > 0 ? [errorsWord(on)] : []),
  ...(pastUsage(on) ? ['old usage'] : []),
  ...(on.filtered ? ['filtered'] : []),
]

const errorsWord = (on: TypeOnClusterView): string => (isIncomplete(on) ? 'incomplete' : plural(on.errorCount, 'error'))

/** How it stands, and below what must be known of it. */
export function CollectionStatusCell({ on }: { on: TypeOnClusterView }): ReactNode {
  const notes = notesOf(on)
  if (notes.length === 0) return <CollectionStatusMark on={on} />
  const past = pastUsage(on)
  const warns = on.truncated || on.outdated || on.errorCount > 0 || past !== null
  return (
    <span className="state-cell">
      <CollectionStatusMark on={on} />
      <span
        className={warns ? 'fine state-notes short' : 'fine state-notes'}
        data-tip={errorTip(on) || past?.why || notes.join(', ')}
      >
        {notes.join(', ')}
      </span>
    </span>
  )
}

/** What must be known besides: cut off, by an older declaration, filtered, namespaces or usage that could not be read. */
export function CollectionStatusNotes({ on }: { on: TypeOnClusterView }): ReactNode {
  const { truncated, outdated, filtered, errorCount } = on
  const past = pastUsage(on)
  return (
    <>
      {truncated && (
        <span
          className="tag is-warning"
          data-tip="There are more objects than the MetricSource takes: rows and numbers are of a part."
        >
          ▲ truncated
        </span>
      )}
      {outdated && (
        <span
          className="tag is-warning"
          data-tip="Collected by an older version of the declaration; the next collection is by the new one."
        >
          ▲ outdated
        </span>
      )}
      {errorCount > 0 && (
        <span className="tag is-warning" data-tip={errorTip(on)}>
          ▲ {errorsWord(on)}
        </span>
      )}
      {past && (
        <span className="tag is-warning" data-tip={past.why}>
          ▲ old usage
        </span>
      )}
      {filtered && (
        <span className="tag" data-tip="Policies hide rows: counts and numbers are over what you may see.">
          filtered
        </span>
      )}
    </>
  )
}

const errorTip = ({ errors, errorCount }: TypeOnClusterView): string => {
  const named = errors.slice(0, 5).map(({ namespace, message }) => `${namespace || 'the list'}: ${message}`)
  return [...named, ...(errorCount > named.length ? [`and ${errorCount - named.length} more`] : [])].join('\n')
}

/** Below the name of a type: which objects it is read from. */
export const KindLine = ({ source }: { source: SourceView | undefined }): ReactNode =>
  source && (
    <span className="sub name-line">
      {source.kind}&nbsp;·&nbsp;
      <Name text={source.apiVersion} className="mono" />
      <span className="wide-only">
        &nbsp;·&nbsp;
        <Name text={source.isDeclared ? `declared by ${source.id}` : 'built in'} />
      </span>
    </span>
  )

/** A value as a cell shows it. What is not there is no zero. */
function ScalarText({ value, unit }: { value: NonNullable<Scalar>; unit: Unit }): ReactNode {
  if (value === '') return <span className="quiet">empty</span>
  const at = unit === 'time' ? momentOf(value) : undefined
  if (at !== undefined) return <Moment at={at} />
  const text = sayScalar(value, unit)
  if (typeof value === 'string' && !text.includes(' ')) return <Name text={text} />
  return typeof value === 'string' && value.length > 18 ? (
    <span className="clip" data-tip={text}>
      {text}
    </span>
  ) : (
    text
  )
}

/** A word that says how well something is with its mark, a share as a bar; other values as they are. */
export function ValueText({
  value,
  column,
  on,
}: {
  /** undefined: rows of an older declaration, which has no such column */
  value: CellValue | undefined
  column: ColumnView
  /** how the kind stands on the cluster of the row */
  on: RowsOn | undefined
}): ReactNode {
  const past = column.measured && on ? pastUsage(on) : null
  const text = <PlainValue value={value} column={column} on={on} />
  return past && typeof value === 'number' ? <PastValue {...past}>{text}</PastValue> : text
}

/** A number of the past, paler, with its age and why it is no newer. */
function PastValue({ at, why, children }: PastUsage & { children: ReactNode }): ReactNode {
  const text = useAtTime((now) => `As of ${formatSpan(now - at)} ago: ${why}`)
  return (
    <span className="past" data-tip={text}>
      {children}
      <Hidden> {text}</Hidden>
    </span>
  )
}

/** What must be known of a cluster to say what a value of its rows means. */
export type RowsOn = Pick<TypeOnClusterView, 'filtered' | 'measured'>

function PlainValue({ value: read, column, on }: Parameters<typeof ValueText>[0]): ReactNode {
  const { unit, health, label } = column
  const value = scalarOf(read)
  if (value === null) return <Absent absence={read === undefined ? 'unknown' : absentFor(column, on)} what={label} />
  if (health && typeof value === 'string')
    return (
      <Flash value={value}>
        <HealthMark need={health[value] ?? 'degraded'} word={value} tip={value} />
      </Flash>
    )
  if (unit !== 'percent' || typeof value !== 'number') return <ScalarText value={value} unit={unit} />
  const text = formatPercent(value / 100)
  return (
    <span className={`meter${value >= 90 ? ' is-high' : ''}`}>
      <span className="meter-text">
        <Flash value={text}>
          <b>{text}</b>
        </Flash>
      </span>
      <span className="meter-track" role="img" aria-label={text}>
        <span className="meter-used" style={{ width: `${Math.max(0, Math.min(100, value))}%` }} />
      </span>
    </span>
  )
}

/** Why a value is not there, for whoever looks. */
export const absentFor = (column: ColumnView, on: RowsOn | undefined): Absence =>
  absenceOf(column, on?.filtered ?? false, on?.measured !== undefined)

/** A moment as a distance: what is to come is told as such. */
export function Moment({ at }: { at: number }): ReactNode {
  const future = useAtTime((now) => (at > now ? formatSpan(at - now) : null))
  if (future === null) return <Age at={at} suffix=" ago" />
  return (
    <time dateTime={new Date(at).toISOString()} data-tip={formatMoment(at)}>
      in {future}
    </time>
  )
}

/** The number of an aggregation, lit up when it changes. */
export function AggregatedText({ value, unit }: { value: AggregatedView | undefined; unit: Unit }): ReactNode {
  if (value === undefined) return <Missing why="this cluster does not tell it" />
  if (isGroups(value)) return plural(Object.keys(value).length, 'group')
  if (value === null) return <Missing why="no row has a value for it" />
  const at = unit === 'time' ? momentOf(value) : undefined
  if (at !== undefined) return <Moment at={at} />
  const text = typeof value === 'number' ? formatQuantity(value, unit) : sayScalar(value, unit)
  return <Flash value={text}>{text}</Flash>
}

/** When it was read; it says so itself where it is old. */
export function AsOf({ on }: { on: TypeOnClusterView }): ReactNode {
  const at = on.part.freshness?.observedAt
  const usedAt = on.measured?.freshness?.observedAt
  if (at === undefined) return <span className="as-of">never read</span>
  return (
    <span className={on.stale || pastUsage(on) ? 'as-of short' : 'as-of'}>
      as of <Age at={at} suffix=" ago" focusable />
      {usedAt !== undefined && (
        <>
          {' '}
          · usage as of <Age at={usedAt} suffix=" ago" focusable />
        </>
      )}
    </span>
  )
}
