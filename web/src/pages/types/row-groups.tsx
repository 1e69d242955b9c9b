import { type ReactNode, useCallback, useLayoutEffect } from 'react'
import { ClusterNames } from '../../components/cluster-name.tsx'
import { HealthMark } from '../../components/health.tsx'
import { NotUpdated } from '../../components/not-updated.tsx'
import { Failure, Skeleton } from '../../components/states.tsx'
import { Age } from '../../components/text.tsx'
import type { ColumnView, RowGroupsQuery, RowGroupsView, RowGroupView } from '../../contract.ts'
import { useDisplayName, useHub } from '../../live/hooks.ts'
import type { Live } from '../../live/live-store.ts'
import { useRefresh } from '../../live/refresh.ts'
import { useFresh } from '../../live/use-fresh.ts'
import { termText } from '../../model/filter.ts'
import { formatCount, plural } from '../../model/format.ts'

/** What rows can be counted by: words that several rows share. */
export function groupColumns(columns: readonly ColumnView[], scope: string): readonly (readonly [string, string])[] {
  return [
    ['cluster', 'Cluster'],
    ...(scope === 'Namespaced' ? [['namespace', 'Namespace'] as const] : []),
    ...columns
      .filter(({ kind, unit, extra }) => (kind === 'string' || kind === 'boolean') && unit === 'none' && !extra)
      .map(({ name, label }) => [name, label] as const),
  ]
}

interface GroupSelectProps {
  readonly columns: readonly (readonly [name: string, label: string])[]
  readonly by: string
  readonly onChange: (by: string | null) => void
}

export function GroupSelect({ columns, by, onChange }: GroupSelectProps): ReactNode {
  return (
    <label className="select">
      Group
      <select value={by} onChange={({ target }) => onChange(target.value || null)}>
        <option value="">none</option>
        {columns.map(([name, label]) => (
          <option key={name} value={name}>
            {label}
          </option>
        ))}
      </select>
    </label>
  )
}

const namedAtMost = 200
const leastMs = 2000

interface RowGroupsProps {
  readonly type: string
  readonly by: string
  readonly label: string
  /** which rows are counted */
  readonly question: Omit<RowGroupsQuery, 'by' | 'limit' | 'sort'>
  /** told how many rows were counted; null: none were */
  readonly onTotal: (total: number | null) => void
  /** somebody wants the rows of one group, which this filter chooses */
  readonly onChoose: (term: string) => void
}

/** Rows over all clusters, counted by one column: the largest group first, each with the worst that is said in it. */
export function RowGroups({ type, by, label, question, onTotal, onChoose }: RowGroupsProps): ReactNode {
  const { client } = useHub()
  const text = JSON.stringify({ ...question, by: [by], limit: namedAtMost })
  const ask = useCallback(
    (signal: AbortSignal) => client.rowGroups(type, JSON.parse(text) as RowGroupsQuery, signal),
    [client, type, text],
  )
  const [fresh, again] = useFresh(ask)
  useRefresh(
    useCallback((live: Live) => live.fleet.clusters, []),
    again,
    leastMs,
  )
  const counted = fresh.state === 'here' ? fresh.value.total : null
  useLayoutEffect(() => onTotal(counted), [onTotal, counted])
  if (fresh.state === 'waiting') return <Skeleton label="Counting" />
  if (fresh.state === 'failed')
    return <Failure problem={fresh.problem} onRetry={again} title="The rows could not be counted" />
  const { groups, others, total, unread, stale } = fresh.value
  const most = Math.max(1, ...groups.map(({ count }) => count))
  return (
    <>
      <NotUpdated problem={fresh.problem} onRetry={again} />
      <Basis view={fresh.value} />
      <div className="scroll-x">
        <table className="facts row-groups">
          <caption className="vh">
            {type} by {label.toLowerCase()}
          </caption>
          <thead>
            <tr>
              <th scope="col">{label}</th>
              <th scope="col" className="end">
                Rows
              </th>
              <th scope="col">Worst in it</th>
            </tr>
          </thead>
          <tbody>
            {groups.map((group) => (
              <Group key={JSON.stringify(group.values)} {...{ group, by, most, onChoose }} />
            ))}
          </tbody>
        </table>
      </div>
      {others.groups > 0 && (
        <p className="fine">
          and {plural(others.groups, 'more group')} with {plural(others.count, 'row')}
        </p>
      )}
      {total === 0 && unread.length === 0 && stale.length === 0 && <p className="fine">No row passes the filter.</p>}
    </>
  )
}

interface GroupProps {
  readonly group: RowGroupView
  readonly by: string
  /** rows of the largest group */
  readonly most: number
  readonly onChoose: (term: string) => void
}

function Group({ group: { values, count, health }, by, most, onChoose }: GroupProps): ReactNode {
  const displayName = useDisplayName()
  const [value = null] = values
  const word = value === null || value === '' ? 'none' : String(value)
  const shown = by === 'cluster' ? (displayName(word) ?? word) : word
  return (
    <tr>
      <th scope="row">
        <button
          type="button"
          className="text-button"
          onClick={() => onChoose(termText(by, ':', value === null ? '' : word))}
        >
          {shown}
        </button>
      </th>
      <td className="end">
        <span className="row-groups-bar" style={{ inlineSize: `${(count / most) * 100}%` }} aria-hidden="true" />
        {formatCount(count)}
      </td>
      <td>{health === null ? <span className="quiet">–</span> : <HealthMark need={health} />}</td>
    </tr>
  )
}

/** Of when the counts are, and what is not in them. */
function Basis({ view: { total, observedAt, stale, truncated, unread } }: { readonly view: RowGroupsView }): ReactNode {
  return (
    <>
      <p className="count">
        <span role="status">{total === null ? 'not read yet' : plural(total, 'row')}</span>
        {observedAt && (
          <span className="as-of">
            as of <Age at={observedAt.oldest} suffix=" ago" focusable />
          </span>
        )}
      </p>
      {unread.length > 0 && (
        <p className="fine short">
          ▲ Without {plural(unread.length, 'cluster')} of which no rows are known:{' '}
          <ClusterNames names={unread.map((one) => one.cluster)} />.
        </p>
      )}
      {stale.length > 0 && (
        <p className="fine short">
          ▲ With rows of the past of {plural(stale.length, 'cluster')}: <ClusterNames names={stale} />.
        </p>
      )}
      {truncated.length > 0 && (
        <p className="fine short">
          ▲ {plural(truncated.length, 'cluster')} {truncated.length === 1 ? 'has' : 'have'} more rows than were taken:{' '}
          <ClusterNames names={truncated} />.
        </p>
      )}
    </>
  )
}
