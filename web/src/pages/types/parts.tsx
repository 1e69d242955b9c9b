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
import { Age, Flash, Missing } from '../../components/text.tsx'
import { type AggregatedView, momentOf, type TypeOnClusterView } from '../../contract.ts'
import { useAtTime } from '../../live/hooks.ts'
import {
  formatQuantity,
  isGroups,
  type Scalar,
  type Standing,
  sayScalar,
  standingOf,
  standingWord,
  type Unit,
} from '../../model/custom.ts'
import { formatMoment, formatSpan, plural } from '../../model/format.ts'

const icons: Readonly<Record<Exclude<Standing, 'collected' | 'partly'>, typeof IconLock>> = {
  stale: IconClock,
  empty: IconCircleDashed,
  absent: IconPuzzleOff,
  forbidden: IconLock,
  unreachable: IconPlugConnectedX,
  waiting: IconHourglass,
}

/** Shape, word and colour of how a type stands on a cluster. */
export function StandingMark({ on }: { on: TypeOnClusterView }): ReactNode {
  const standing = standingOf(on)
  const tip = on.part.message || undefined
  if (standing === 'collected' || standing === 'partly')
    return <HealthMark need={standing === 'partly' ? 'degraded' : 'healthy'} word={standingWord[standing]} />
  const Icon = icons[standing]
  return (
    <span className={`custom-standing is-${standing}`} {...(tip && { 'data-tip': tip })}>
      <Icon size={16} aria-hidden="true" />
      {standingWord[standing]}
    </span>
  )
}

/** The same as words, for filters, files and cells. */
export const notesOf = ({ truncated, outdated, errorCount, filtered }: TypeOnClusterView): string[] => [
  ...(truncated ? ['truncated'] : []),
  ...(outdated ? ['outdated'] : []),
  ...(errorCount > 0 ? [plural(errorCount, 'error')] : []),
  ...(filtered ? ['filtered'] : []),
]

/** How it stands, and below what must be known of it. */
export function StandingCell({ on }: { on: TypeOnClusterView }): ReactNode {
  const notes = notesOf(on)
  if (notes.length === 0) return <StandingMark on={on} />
  const warns = on.truncated || on.outdated || on.errorCount > 0
  return (
    <span className="state-cell">
      <StandingMark on={on} />
      <span
        className={warns ? 'fine state-notes short' : 'fine state-notes'}
        data-tip={errorTip(on) || notes.join(', ')}
      >
        {notes.join(', ')}
      </span>
    </span>
  )
}

/** What must be known besides: cut off, by an older declaration, filtered, namespaces that could not be read. */
export function StandingNotes({ on }: { on: TypeOnClusterView }): ReactNode {
  const { truncated, outdated, filtered, errorCount } = on
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
          ▲ {plural(errorCount, 'error')}
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

/** A value as a cell shows it. What is not there is no zero. */
export function ScalarText({ value, unit }: { value: Scalar | undefined; unit: Unit }): ReactNode {
  if (value === undefined || value === null || value === '')
    return <Missing why={value === '' ? 'it is empty there' : 'nothing is there'} />
  const at = unit === 'time' ? momentOf(value) : undefined
  if (at !== undefined) return <Moment at={at} />
  const text = sayScalar(value, unit)
  return typeof value === 'string' && value.length > 18 ? (
    <span className="clip" data-tip={value}>
      {text}
    </span>
  ) : (
    text
  )
}

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
  if (at === undefined) return <span className="as-of">never read</span>
  return (
    <span className={on.stale ? 'as-of short' : 'as-of'}>
      as of <Age at={at} suffix=" ago" focusable />
    </span>
  )
}
