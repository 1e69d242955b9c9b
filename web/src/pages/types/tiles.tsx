import { IconLock } from '@tabler/icons-react'
import { type ReactNode, useState } from 'react'
import { Missing } from '../../components/text.tsx'
import type { AggregatedView, AggregationInfoView } from '../../contract.ts'
import { formatCount } from '../../model/format.ts'
import { barsOf, explainAggregation, isGroups, type Scalar, sayScalar, titleOf } from '../../model/row-values.ts'
import { Link } from '../../router.tsx'
import { AggregatedText } from './parts.tsx'

interface TilesProps {
  readonly aggregations: readonly AggregationInfoView[]
  /** null: not for whoever looks */
  readonly values: Readonly<Record<string, AggregatedView>> | null
  /** what must be known of a number, such as over how many clusters it is */
  readonly note?: (aggregation: AggregationInfoView) => string | null
  /** where the rows of a group are */
  readonly groupLink?: (field: string, group: string) => string
  readonly dim?: boolean
}

/** Aggregations: one number is a tile, numbers of groups are bars. */
export function Tiles({ aggregations, values, note, groupLink, dim = false }: TilesProps): ReactNode {
  if (aggregations.length === 0) return null
  if (values === null)
    return (
      <p className="notice">
        <IconLock size={18} aria-hidden="true" />
        <span>
          <b>Aggregations are not shown to you.</b> Your access to measurements does not reach this type here.
        </span>
      </p>
    )
  const single = aggregations.filter(({ name, groupBy }) => groupBy === null && !isGroups(values[name]))
  const grouped = aggregations.filter((each) => !single.includes(each))
  return (
    <div className={dim ? 'custom-tiles is-dim' : 'custom-tiles'}>
      {single.length > 0 && (
        <dl className="tiles">
          {single.map((each) => (
            <div className="tile" key={each.name}>
              <dt data-tip={`${each.name}: ${explainAggregation(each)}`}>{titleOf(each.name, each.unit)}</dt>
              <dd className="tile-value">
                <AggregatedText value={values[each.name]} unit={each.unit} />
              </dd>
              <dd className="fine">
                {explainAggregation(each)}
                {note?.(each) && <span className="short"> · {note(each)}</span>}
              </dd>
            </div>
          ))}
        </dl>
      )}
      {grouped.length > 0 && (
        <div className="bar-charts">
          {grouped.map((each) => {
            const value = values[each.name]
            return (
              <BarChart
                key={each.name}
                info={each}
                groups={isGroups(value) ? value : {}}
                note={note?.(each) ?? null}
                {...(groupLink &&
                  each.groupBy !== null && { link: (group: string) => groupLink(each.groupBy ?? '', group) })}
              />
            )
          })}
        </div>
      )}
    </div>
  )
}

const few = 8

interface BarChartProps {
  readonly info: AggregationInfoView
  readonly groups: Readonly<Record<string, Scalar>>
  readonly note: string | null
  readonly link?: (group: string) => string
}

/** Groups as bars: the length repeats what the number says. */
export function BarChart({ info, groups, note, link }: BarChartProps): ReactNode {
  const [all, setAll] = useState(false)
  const bars = barsOf(groups)
  const shown = all ? bars.slice(0, mostBars) : bars.slice(0, few)
  return (
    <section className="bar-chart" aria-label={titleOf(info.name, info.unit)}>
      <h3>
        {titleOf(info.name, info.unit)} <span className="fine">{explainAggregation(info)}</span>
      </h3>
      {note && <p className="fine short">{note}</p>}
      {bars.length === 0 ? (
        <p className="fine">No row, so no group.</p>
      ) : (
        <ol className="bars">
          {shown.map(({ group, value, share }) => (
            <li key={group}>
              <span className="bar-name clip" data-tip={groupTip(group)}>
                <GroupName group={group} {...(link && { link })} />
              </span>
              <span className="bar-track" aria-hidden="true">
                {share > 0 && <span style={{ width: `${share * 100}%` }} />}
              </span>
              <span className="bar-value">
                {value === null ? (
                  <Missing why="no row of this group has a value for it" focusable />
                ) : (
                  sayScalar(value, info.unit)
                )}
              </span>
            </li>
          ))}
        </ol>
      )}
      {bars.length > few && (
        <button type="button" className="text-button" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? 'Fewer' : `All ${formatCount(bars.length)}`}
        </button>
      )}
      {all && bars.length > mostBars && <p className="fine">The first {formatCount(mostBars)} are shown.</p>}
    </section>
  )
}
const mostBars = 200

/** Names that the hub gives to groups which have none of their own. */
const [unknownGroup, otherGroup] = ['_unknown_', '_other_']
const groupTip = (group: string): string => {
  if (group === unknownGroup || group === '') return 'rows without a value'
  return group === otherGroup ? 'all further groups together' : group
}

function GroupName({ group, link }: { group: string; link?: (group: string) => string }): ReactNode {
  if (group === otherGroup) return <i>all others</i>
  const isNone = group === unknownGroup || group === ''
  const name = isNone ? <i>no value</i> : group
  // A name that was cut cannot be asked for.
  return link && !group.endsWith('…') ? <Link to={link(isNone ? 'none' : group)}>{name}</Link> : name
}
