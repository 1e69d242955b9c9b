import type { ReactNode } from 'react'
import { HealthMark } from '../../components/health.tsx'
import { pastClass, SumAge } from '../../components/past.tsx'
import type { AggregatedView, AggregationInfoView, ColumnView } from '../../contract.ts'
import { termText } from '../../model/filter.ts'
import { beginningSentence, formatCount } from '../../model/format.ts'
import { amountWord, isGroups, sayAmount } from '../../model/row-values.ts'
import { type Basis, isPastSum } from '../../model/sums.ts'
import { Link } from '../../router.tsx'

interface KindSummaryProps {
  readonly aggregations: readonly AggregationInfoView[]
  /** of the kind: what words of a group say */
  readonly columns: readonly ColumnView[]
  readonly values: Readonly<Record<string, AggregatedView | null>> | null
  /** the rows that a filter chooses */
  readonly path: (filter: string) => string
  readonly isPast: boolean
  /** of how many clusters, and of when; null: of the one the page is about */
  readonly basis?: Basis | null
  /** the same of what they use, which has an age of its own */
  readonly usage?: Basis | null
}

/** Most groups that are named: a table says the rest. */
const mostGroups = 9

/** What there is of a kind in one line: each group leads to its rows. */
export function KindSummary({
  aggregations,
  columns,
  values,
  path,
  isPast,
  basis = null,
  usage = null,
}: KindSummaryProps): ReactNode {
  if (values === null) return null
  const groups = aggregations.flatMap(({ name, groupBy }) => {
    const value = values[name]
    if (groupBy === null || value === undefined || !isGroups(value)) return []
    const counted = Object.entries(value).filter((entry): entry is [string, number] => typeof entry[1] === 'number')
    const named = counted.toSorted(([, a], [, b]) => b - a).slice(0, mostGroups)
    const health = columns.find(({ name }) => name === groupBy)?.health
    return named.length === 0 ? [] : [{ name, groupBy, health, named, more: counted.length - named.length }]
  })
  const measured = new Set(columns.flatMap((column) => (column.measured ? [column.name] : [])))
  const sumsWhere = (isUsage: boolean): readonly string[] =>
    aggregations.flatMap(({ name, unit, field, groupBy }) => {
      const value = values[name]
      if (groupBy !== null || isGroups(value) || (field !== null && measured.has(field)) !== isUsage) return []
      const word = amountWord({ name, unit, field }, { columns, isDeclared: false })
      return value === null || value === undefined ? [`${word} not known`] : [`${sayAmount(value, unit)} ${word}`]
    })
  const sums = sumsWhere(false)
  const used = sumsWhere(true)
  if (groups.length === 0) return null
  return (
    <div className={`kind-summary${isPast ? ' dim' : ''}`}>
      {groups.map(({ name, groupBy, health, named, more }) => (
        <p key={name} className="status-line">
          {named.map(([group, count]) => (
            <Link key={group} to={path(termText(groupBy, ':', group))} className="tag">
              <b>{formatCount(count)}</b>
              {health ? <HealthMark need={health[group] ?? 'degraded'} word={group} /> : group}
            </Link>
          ))}
          {more > 0 && <span className="sub">and {formatCount(more)} more</span>}
        </p>
      ))}
      <p className={isPast ? 'fine short' : 'fine'}>
        {beginningSentence(sums.join(' · '))}
        {sums.length > 0 && basis && ' · '}
        {basis && <SumAge basis={basis} />}
      </p>
      {used.length > 0 && (
        <p className={usage && isPastSum(usage) ? 'fine short' : 'fine'}>
          <span className={pastClass(usage)}>{beginningSentence(used.join(' · '))}</span>
          {basis && usage && ' · '}
          {basis && usage && <SumAge basis={usage} />}
        </p>
      )}
    </div>
  )
}
