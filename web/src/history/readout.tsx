import type { ReactNode } from 'react'
import { Age } from '../components/text.tsx'
import { formatMoment, formatSpan } from '../model/format.ts'
import { ValueAt } from './chart.tsx'
import { useMark } from './crosshair.ts'
import { type ChartPlan, nearest, type Picture, sourceText, spansAt, type Way } from './picture.ts'
import { LineSwatch, SpanSwatch } from './swatch.tsx'
import { formatTime } from './units.ts'

/** A point that stands for so long is told to be an average, ms. */
const AVERAGED_MS = 120_000

interface ReadoutProps {
  readonly picture: Picture
  readonly plans: readonly ChartPlan[]
  readonly way: Way
  /** only when and how; the values stand at the charts */
  readonly brief: boolean
}

/** What is under the crosshair, on every chart: when, how it came, each value with its unit. Without one: the newest. */
export function Readout({ picture, plans, way, brief }: ReadoutProps): ReactNode {
  return (
    <aside className={brief ? 'readout is-brief' : 'readout'} aria-label="Values at one time">
      <When picture={picture} way={way} />
      {!brief && (
        <table>
          <caption className="vh">Values at this time</caption>
          {plans.map((plan) => (
            <tbody key={plan.id}>
              <tr>
                <th scope="rowgroup" colSpan={2}>
                  {plan.title}
                </th>
              </tr>
              {plan.lines.map((line) => (
                <tr key={line.metric}>
                  <th scope="row">
                    <LineSwatch stroke={line.stroke} /> {line.word}
                  </th>
                  <td>
                    <ValueAt plan={plan} line={line} picture={picture} />
                  </td>
                </tr>
              ))}
            </tbody>
          ))}
        </table>
      )}
    </aside>
  )
}

function When({ picture, way }: Pick<ReadoutProps, 'picture' | 'way'>): ReactNode {
  const pointed = useMark((mark) => mark.at)
  const at = pointed ?? picture.newest
  if (at === null) return <p className="readout-when">no samples</p>
  const index = nearest(picture.times, at)
  const moment = picture.times[index] ?? at
  const spans = spansAt(picture, moment)
  return (
    <>
      <p className="readout-when">
        <b data-tip={formatMoment(moment)}>{formatTime(moment)}</b>
        <span>
          {pointed === null && 'newest, '}
          <Age at={moment} suffix=" ago" />
          {picture.stepMs >= AVERAGED_MS && `, average of the ${formatSpan(picture.stepMs)} from then on`}
        </span>
      </p>
      <p className="readout-source">
        {spans.map(({ kind, from }) => (
          <SpanSwatch key={`${kind} ${from}`} kind={kind} />
        ))}
        {sourceText(picture, index, way)}
      </p>
    </>
  )
}
