import { type KeyboardEvent, type ReactNode, useLayoutEffect, useMemo, useRef } from 'react'
import { Missing } from '../components/text.tsx'
import { useCrosshair, useMark } from './crosshair.ts'
import { type ChartPlan, chartText, hasValues, type Line, lastingValues, nearest, type Picture } from './picture.ts'
import { Plot } from './plot.ts'
import type { Bounds } from './range.ts'
import { LineSwatch } from './swatch.tsx'
import { formatTime, formatValue, unitWord } from './units.ts'

/** What a chart asks of its view. */
export interface ChartMoves {
  readonly brush: (bounds: Bounds) => void
  /** back to the whole range; false where nothing was zoomed */
  readonly reset: () => boolean
  readonly zoom: (factor: number, about: number | null) => void
}

interface ChartProps {
  readonly plan: ChartPlan
  readonly picture: Picture
  readonly moves: ChartMoves
  /** values stand in the legend, because there is no readout beside the charts */
  readonly values: boolean
  readonly faded: boolean
}

export function Chart({ plan, picture, moves, values, faded }: ChartProps): ReactNode {
  const here = hasValues(picture, plan)
  const text = useMemo(() => chartText(picture, plan, formatValue), [picture, plan])
  return (
    <figure className={`chart${faded ? ' is-faded' : ''}`} aria-label={plan.title}>
      <figcaption>
        <h3>
          {plan.title} <span className="chart-unit">{unitWord[plan.unit]}</span>
        </h3>
        <Legend plan={plan} picture={picture} values={values} />
        <span className="vh">{text}</span>
      </figcaption>
      <Canvas plan={plan} picture={picture} moves={moves} />
      {!here && <p className="chart-none">not collected in this range</p>}
    </figure>
  )
}

function Legend({ plan, picture, values }: Pick<ChartProps, 'plan' | 'picture' | 'values'>): ReactNode {
  return (
    <ul className={values ? 'legend has-values' : 'legend'}>
      {plan.lines.map((line) => (
        <li key={line.metric}>
          <LineSwatch stroke={line.stroke} />
          <span>{line.word}</span>
          {values && (
            <b>
              <ValueAt plan={plan} line={line} picture={picture} />
            </b>
          )}
        </li>
      ))}
    </ul>
  )
}

/** The value under the crosshair, else the newest. */
export function ValueAt({ plan, line, picture }: { plan: ChartPlan; line: Line; picture: Picture }): ReactNode {
  const at = useMark((mark) => mark.at) ?? picture.newest
  const value = at === null ? null : (lastingValues(picture, line)[nearest(picture.times, at)] ?? null)
  return value === null ? <Missing why="no sample" /> : formatValue(plan.unit, value)
}

function Canvas({ plan, picture, moves }: Pick<ChartProps, 'plan' | 'picture' | 'moves'>): ReactNode {
  const crosshair = useCrosshair()
  const element = useRef<HTMLDivElement>(null)
  const plot = useRef<Plot | null>(null)
  const latest = useRef({ picture, moves })
  latest.current = { picture, moves }

  useLayoutEffect(() => {
    const into = element.current
    if (!into) return
    const made = new Plot(into, {
      plan,
      picture: latest.current.picture,
      crosshair,
      onBrush: (bounds) => latest.current.moves.brush(bounds),
      onReset: () => void latest.current.moves.reset(),
    })
    plot.current = made
    return () => {
      made.end()
      plot.current = null
    }
  }, [plan, crosshair])
  useLayoutEffect(() => plot.current?.show(picture), [picture])

  const tell = () => {
    const box = element.current
    if (!box) return
    const at = crosshair.current().at
    box.setAttribute('aria-valuenow', String(Math.round((at ?? latest.current.picture.to) / 1000)))
    box.setAttribute('aria-valuetext', valueText(plan, latest.current.picture, at))
  }
  const press = (event: KeyboardEvent<HTMLDivElement>) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    if (!act(event.key, event.shiftKey)) return
    event.preventDefault()
    event.stopPropagation()
    tell()
  }
  const act = (key: string, far: boolean): boolean => {
    const { times, newest } = latest.current.picture
    const { at } = crosshair.current()
    crosshair.stir()
    const walk = (by: number) => {
      const start = at ?? newest
      const index = start === null ? times.length - 1 : nearest(times, start) + (at === null ? 0 : by)
      crosshair.point(times[Math.max(0, Math.min(times.length - 1, index))] ?? null)
      return true
    }
    switch (key) {
      case 'ArrowLeft':
        return walk(far ? -10 : -1)
      case 'ArrowRight':
        return walk(far ? 10 : 1)
      case 'PageUp':
        return walk(-10)
      case 'PageDown':
        return walk(10)
      case 'Home':
        crosshair.point(times[0] ?? null)
        return true
      case 'End':
        crosshair.point(times.at(-1) ?? null)
        return true
      case '+':
      case '=':
        moves.zoom(0.5, at)
        return true
      case '-':
        moves.zoom(2, at)
        return true
      case 'Escape':
        if (at !== null) {
          crosshair.point(null)
          return true
        }
        return moves.reset()
      default:
        return false
    }
  }
  return (
    <div
      ref={element}
      className="plot"
      role="slider"
      tabIndex={0}
      aria-label={`${plan.title}: time under the crosshair`}
      aria-orientation="horizontal"
      aria-valuemin={Math.round(picture.from / 1000)}
      aria-valuemax={Math.round(picture.to / 1000)}
      aria-valuenow={Math.round(picture.to / 1000)}
      aria-valuetext={valueText(plan, picture, null)}
      aria-keyshortcuts="ArrowLeft ArrowRight Home End Plus - Escape"
      onKeyDown={press}
      onBlur={() => crosshair.point(null)}
    />
  )
}

function valueText(plan: ChartPlan, picture: Picture, at: number | null): string {
  const moment = at ?? picture.newest
  if (moment === null) return 'no samples'
  const index = nearest(picture.times, moment)
  const texts = plan.lines.map((line) => {
    const value = lastingValues(picture, line)[index] ?? null
    return `${line.word} ${value === null ? 'no sample' : formatValue(plan.unit, value)}`
  })
  return `${at === null ? 'newest, ' : ''}${formatTime(moment)}: ${texts.join(', ')}`
}
