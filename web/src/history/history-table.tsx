import { type ReactNode, useMemo, useRef } from 'react'
import { Hidden, Missing } from '../components/text.tsx'
import { useWindow } from '../components/use-window.ts'
import { formatMoment } from '../model/format.ts'
import { type ChartPlan, columnsOf, type Picture, sourceText, spansAt, type Way } from './picture.ts'
import { SpanSwatch } from './swatch.tsx'
import { formatTime, formatValue, unitWord } from './units.ts'

const lineHeight = 30

/** The same points as numbers, newest first. */
export function HistoryTable({
  caption,
  picture,
  plans,
  way,
  faded,
}: {
  caption: string
  picture: Picture
  plans: readonly ChartPlan[]
  way: Way
  faded: boolean
}): ReactNode {
  const scroll = useRef<HTMLElement>(null)
  const columns = useMemo(() => columnsOf(picture, plans), [picture, plans])
  const count = picture.times.length
  const { from, to } = useWindow(scroll, count, lineHeight)
  const rows = Array.from({ length: Math.max(0, to - from) }, (_, offset) => count - 1 - from - offset)
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section ref={scroll} className={`history-table${faded ? ' is-faded' : ''}`} aria-label={caption} tabIndex={0}>
      <table aria-rowcount={count + 2}>
        <caption className="vh">{caption}</caption>
        <thead>
          <tr aria-rowindex={1}>
            <th scope="col" rowSpan={2}>
              Time
            </th>
            <th scope="col" rowSpan={2} className="is-source">
              How it came
            </th>
            {plans.map(({ id, title, unit, lines }) => (
              <th key={id} scope="colgroup" colSpan={lines.length}>
                {title} <span className="chart-unit">{unitWord[unit]}</span>
              </th>
            ))}
          </tr>
          <tr aria-rowindex={2}>
            {columns.map(({ id, line }) => (
              <th key={id} scope="col">
                {line.word}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <Space lines={from} />
          {rows.map((index) => {
            const at = picture.times[index] ?? 0
            return (
              <tr key={at} aria-rowindex={count - index + 2}>
                <th scope="row" data-tip={formatMoment(at)}>
                  {formatTime(at)}
                </th>
                <td className="is-source">
                  <Source picture={picture} index={index} way={way} />
                </td>
                {columns.map(({ id, chart, values }) => {
                  const value = values[index] ?? null
                  return (
                    <td key={id}>{value === null ? <Missing why="no sample" /> : formatValue(chart.unit, value)}</td>
                  )
                })}
              </tr>
            )
          })}
          <Space lines={count - to} />
        </tbody>
      </table>
    </section>
  )
}

/** In a word or two; the whole of it on hover, and for those who listen. */
function Source({ picture, index, way }: { picture: Picture; index: number; way: Way }): ReactNode {
  const text = sourceText(picture, index, way)
  const spans = spansAt(picture, picture.times[index] ?? 0)
  if (spans.length === 0) return text.startsWith('live') ? <span data-tip={text}>live</span> : text
  return (
    <span data-tip={text}>
      {spans.map(({ kind, from }) => (
        <span key={`${kind} ${from}`} className="table-span" aria-hidden="true">
          <SpanSwatch kind={kind} /> {kind}
        </span>
      ))}
      <Hidden>{text}</Hidden>
    </span>
  )
}

const Space = ({ lines }: { lines: number }): ReactNode =>
  lines > 0 && (
    <tr className="space">
      <td style={{ height: lines * lineHeight }} />
    </tr>
  )
