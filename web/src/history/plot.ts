import uPlot from 'uplot'
import type { Crosshair } from './crosshair.ts'
import { dashes, paintSpans, paintSpanWords, palette } from './paint.ts'
import { type ChartPlan, largestOf, lastingValues, nearest, type Picture, smallestOf } from './picture.ts'
import type { Bounds } from './range.ts'
import { timeLabel, timeTicks, type ValueAxis, valueAxis } from './units.ts'

export const plotHeight = 176
const axisWidth = 58
const leastBrush = 8

interface PlotOptions {
  readonly plan: ChartPlan
  readonly picture: Picture
  readonly crosshair: Crosshair
  readonly onBrush: (bounds: Bounds) => void
  readonly onReset: () => void
}

/** One chart on a canvas: lines, bands behind them, axes; it follows the crosshair of its view and moves it. */
export class Plot {
  readonly #plot: uPlot
  readonly #plan: ChartPlan
  readonly #crosshair: Crosshair
  readonly #endings: (() => void)[] = []
  #picture: Picture
  #axis: ValueAxis
  /** we move the crosshair ourselves */
  #own = false
  /** the button went down on this chart */
  #brushing = false
  #ended = false

  constructor(into: HTMLElement, { plan, picture, crosshair, onBrush, onReset }: PlotOptions) {
    this.#plan = plan
    this.#picture = picture
    this.#crosshair = crosshair
    this.#axis = axisOf(picture, plan)
    this.#plot = new uPlot(this.#options(into.clientWidth, onBrush, onReset), this.#data(), into)
    this.#endings.push(crosshair.subscribe(() => this.#follow()))
    this.#watchSize(into)
    this.#watchTheme()
    this.#watchPointer()
  }

  show(picture: Picture): void {
    this.#picture = picture
    this.#axis = axisOf(picture, this.#plan)
    this.#plot.setData(this.#data())
    queueMicrotask(() => this.#follow()) // after uPlot has taken the new scale, in a microtask of its own
  }

  end(): void {
    this.#ended = true
    for (const end of this.#endings) end()
    this.#plot.destroy()
  }

  #data(): uPlot.AlignedData {
    const columns = this.#plan.lines.map((line) => lastingValues(this.#picture, line) as (number | null)[]) // uPlot only reads
    return [this.#picture.seconds as number[], ...columns]
  }

  #options(width: number, onBrush: (bounds: Bounds) => void, onReset: () => void): uPlot.Options {
    return {
      width: Math.max(width, 120),
      height: plotHeight,
      padding: [6, 22, 0, 0],
      legend: { show: false },
      scales: {
        x: { time: false, range: () => [this.#picture.from / 1000, this.#picture.to / 1000] },
        y: { range: () => [this.#axis.min, this.#axis.max] },
      },
      axes: [this.#timeAxis(), this.#valueAxis()],
      series: [{}, ...this.#plan.lines.map((line, index) => this.#series(line.stroke, index))],
      cursor: {
        y: false,
        drag: { x: true, y: false, setScale: false, dist: leastBrush },
        points: { size: 7, width: 2, fill: () => palette().ground },
        bind: {
          mousedown: (_plot, _target, handler) => (event) => {
            this.#brushing = event.button === 0
            this.#crosshair.brush(this.#brushing)
            return handler(event)
          },
          mouseup: (_plot, _target, handler) => (event) => {
            this.#brushing = false
            this.#crosshair.brush(false)
            return handler(event)
          },
          dblclick: () => () => {
            onReset()
            return null
          },
        },
      },
      hooks: {
        drawAxes: [(plot) => paintSpans(plot, this.#picture.spans)],
        draw: [(plot) => paintSpanWords(plot, this.#picture.spans)],
        setCursor: [(plot) => this.#moved(plot)],
        setSelect: [(plot) => this.#brushed(plot, onBrush)],
      },
    }
  }

  #timeAxis(): uPlot.Axis {
    return {
      stroke: () => palette().ink,
      font: palette().font,
      size: 26,
      gap: 5,
      grid: { stroke: () => palette().grid, width: 1 },
      ticks: { stroke: () => palette().grid, size: 4, width: 1 },
      splits: (plot) => {
        const { from, to } = this.#picture
        return timeTicks(from, to, Math.max(2, Math.floor((plot.width - axisWidth) / 74))).map((at) => at / 1000)
      },
      values: (_plot, splits) => splits.map((at) => timeLabel(at * 1000)),
    }
  }

  #valueAxis(): uPlot.Axis {
    return {
      stroke: () => palette().ink,
      font: palette().font,
      size: axisWidth,
      gap: 5,
      grid: { stroke: () => palette().grid, width: 1 },
      ticks: { show: false },
      splits: () => [...this.#axis.ticks],
      values: () => [...this.#axis.labels],
    }
  }

  #series(stroke: keyof typeof dashes, index: number): uPlot.Series {
    const isOnly = this.#plan.unit === 'flag' || this.#plan.lines.length === 1
    const stepped = this.#plan.unit === 'flag' ? uPlot.paths.stepped?.({ align: 1 }) : undefined
    return {
      stroke: () => palette().lines[stroke],
      width: stroke === 'first' ? 2 : 1.5,
      dash: [...dashes[stroke]],
      spanGaps: false,
      ...(index === 0 && (isOnly || stroke === 'first') && { fill: () => palette().area }),
      ...(stepped && { paths: stepped }),
      // A value between two holes has no line; it is drawn as a point.
      points: { show: true, size: 4, filter: (plot, series) => alone(plot.data[series] ?? []) },
    }
  }

  #moved(plot: uPlot): void {
    if (this.#own) return
    if (this.#brushing) this.#crosshair.brush(true, this.#selected(plot))
    const { left, idx } = plot.cursor
    if (left === undefined || left < 0 || idx === null || idx === undefined) this.#crosshair.point(null)
    else this.#crosshair.point(this.#picture.times[idx] ?? null)
  }

  #brushed(plot: uPlot, onBrush: (bounds: Bounds) => void): void {
    const bounds = this.#selected(plot)
    if (!bounds) return
    plot.setSelect(nothing, false)
    this.#crosshair.brush(false)
    onBrush(bounds)
  }

  #selected(plot: uPlot): Bounds | null {
    const { left, width } = plot.select
    if (width < leastBrush) return null
    return { from: plot.posToVal(left, 'x') * 1000, to: plot.posToVal(left + width, 'x') * 1000 }
  }

  /** To where the crosshair of the view is, whoever moved it. */
  #follow(): void {
    if (this.#ended) return
    const { at, brushed } = this.#crosshair.current()
    if (this.#brushing) return // its pointer moves it; a cursor that is put elsewhere would drag the brush along
    this.#shade(brushed)
    const index = at === null ? -1 : nearest(this.#picture.times, at)
    const second = this.#picture.seconds[index]
    this.#own = true
    if (second === undefined) this.#plot.setCursor({ left: -10, top: -10 })
    else this.#plot.setCursor({ left: this.#plot.valToPos(second, 'x'), top: 0 })
    this.#own = false
  }

  /** What is brushed on one chart shows on all. */
  #shade(brushed: Bounds | null): void {
    if (!brushed) {
      if (this.#plot.select.width > 0) this.#plot.setSelect(nothing, false)
      return
    }
    const left = this.#plot.valToPos(brushed.from / 1000, 'x')
    const width = this.#plot.valToPos(brushed.to / 1000, 'x') - left
    this.#plot.setSelect({ left, top: 0, width, height: this.#plot.over.clientHeight }, false)
  }

  #watchSize(into: HTMLElement): void {
    const size = new ResizeObserver(() => {
      const width = into.clientWidth
      if (width > 0 && width !== this.#plot.width) this.#plot.setSize({ width, height: plotHeight })
    })
    size.observe(into)
    this.#endings.push(() => size.disconnect())
  }

  #watchTheme(): void {
    const theme = new MutationObserver(() => this.#plot.redraw(false))
    theme.observe(document.documentElement, { attributeFilter: ['data-theme'] })
    this.#endings.push(() => theme.disconnect())
  }

  /** A finger points by moving sideways; up and down scrolls the page. */
  #watchPointer(): void {
    const { over } = this.#plot
    let last = ''
    const point = (event: PointerEvent) => {
      // A browser also tells of a pointer that rests while the page changes under it.
      const place = `${event.clientX} ${event.clientY}`
      if (place !== last || event.type === 'pointerdown') this.#crosshair.stir()
      last = place
      if (event.pointerType === 'mouse') return
      const at = this.#plot.posToVal(event.clientX - over.getBoundingClientRect().left, 'x') * 1000
      this.#crosshair.point(this.#picture.times[nearest(this.#picture.times, at)] ?? null)
    }
    over.addEventListener('pointerdown', point)
    over.addEventListener('pointermove', point)
  }
}

const axisOf = (picture: Picture, plan: ChartPlan): ValueAxis =>
  valueAxis(plan.unit, largestOf(picture, plan), 4, smallestOf(picture, plan))

const nothing = { left: 0, top: 0, width: 0, height: 0 }

/** Values with a hole on both sides. */
function alone(values: ArrayLike<number | null | undefined>): number[] {
  const found: number[] = []
  const isHole = (value: number | null | undefined) => value === null || value === undefined
  for (let index = 0; index < values.length; index++) {
    if (!isHole(values[index]) && isHole(values[index - 1]) && isHole(values[index + 1])) found.push(index)
  }
  return found
}
