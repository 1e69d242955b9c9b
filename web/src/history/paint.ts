import type uPlot from 'uplot'
import type { SpanView } from '../contract.ts'
import type { Stroke } from './picture.ts'

/** The colours of the page as a canvas needs them. */
export interface Palette {
  readonly lines: Readonly<Record<Stroke, string>>
  readonly area: string
  readonly ink: string
  readonly grid: string
  readonly spans: Readonly<Record<SpanView['kind'], string>>
  readonly ground: string
  readonly font: string
}

let read: { theme: string | undefined; palette: Palette } | undefined

/** Read once per theme. */
export function palette(): Palette {
  const root = document.documentElement
  const { theme } = root.dataset
  if (read && read.theme === theme) return read.palette
  const style = getComputedStyle(root)
  const of = (name: string) => style.getPropertyValue(name).trim()
  read = {
    theme,
    palette: {
      lines: { first: of('--line-1'), second: of('--line-2'), third: of('--line-3'), fourth: of('--line-4') },
      area: of('--area-1'),
      ink: of('--ink-2'),
      grid: of('--line'),
      spans: {
        repaired: of('--span-repaired'),
        pulled: of('--span-pulled'),
        lost: of('--span-lost'),
        simulated: of('--span-simulated'),
      },
      ground: of('--surface'),
      font: `11px ${of('--sans')}`,
    },
  }
  return read.palette
}

/** Each word of a line has dashes of its own, so that colour only repeats them. */
export const dashes: Readonly<Record<Stroke, readonly number[]>> = {
  first: [],
  second: [7, 4],
  third: [2, 3],
  fourth: [10, 3, 2, 3],
}

const side = 8
const shapes: Readonly<Record<SpanView['kind'], (pen: CanvasRenderingContext2D) => void>> = {
  repaired: (pen) => {
    // strokes that rise
    for (const start of [-side, 0, side]) segment(pen, start, side, start + side, 0)
  },
  pulled: (pen) => segment(pen, 2, 2, 3.6, 2),
  // its edge alone: it lies behind most of what there is to see
  simulated: () => undefined,
  lost: (pen) => {
    for (const start of [-side, 0, side]) {
      segment(pen, start, side, start + side, 0)
      segment(pen, start, 0, start + side, side)
    }
  },
}

function segment(pen: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number): void {
  pen.moveTo(x0, y0)
  pen.lineTo(x1, y1)
}

const patterns = new Map<string, CanvasPattern | null>()

function patternOf(kind: SpanView['kind'], color: string, ratio: number, on: CanvasRenderingContext2D) {
  const key = `${kind} ${color} ${ratio}`
  const known = patterns.get(key)
  if (known !== undefined) return known
  const tile = document.createElement('canvas')
  tile.width = tile.height = Math.round(side * ratio)
  const pen = tile.getContext('2d')
  if (!pen) return null
  pen.scale(tile.width / side, tile.height / side)
  pen.strokeStyle = color
  pen.lineWidth = kind === 'pulled' ? 1.6 : 1
  pen.beginPath()
  shapes[kind](pen)
  pen.stroke()
  const pattern = on.createPattern(tile, 'repeat')
  patterns.set(key, pattern)
  return pattern
}

const words: Readonly<Record<SpanView['kind'], string>> = {
  repaired: 'repaired',
  pulled: 'pulled',
  lost: 'lost',
  simulated: 'simulated',
}
const strength: Readonly<Record<SpanView['kind'], number>> = {
  repaired: 0.55,
  pulled: 0.75,
  lost: 0.85,
  simulated: 0,
}

/** Where a band lies on the canvas; a short one is still seen. */
function placeOf(plot: uPlot, { from, to }: SpanView): { start: number; width: number } {
  const start = plot.valToPos(from / 1000, 'x', true)
  return { start, width: Math.max(plot.valToPos(to / 1000, 'x', true) - start, 3 * ratioNow()) }
}

const ratioNow = (): number => devicePixelRatio || 1

function withinPlot({ ctx: pen, bbox }: uPlot, paint: (pen: CanvasRenderingContext2D) => void): void {
  pen.save()
  pen.beginPath()
  pen.rect(bbox.left, bbox.top, bbox.width, bbox.height)
  pen.clip()
  paint(pen)
  pen.restore()
}

/** Bands behind the lines: hatched, dotted or crossed, with an edge on top. */
export function paintSpans(plot: uPlot, spans: readonly SpanView[]): void {
  const { top, height } = plot.bbox
  const ratio = ratioNow()
  withinPlot(plot, (pen) => {
    for (const span of spans) {
      const { start, width } = placeOf(plot, span)
      const color = palette().spans[span.kind]
      pen.globalAlpha = 0.08
      pen.fillStyle = color
      pen.fillRect(start, top, width, height)
      pen.globalAlpha = strength[span.kind]
      pen.fillStyle = patternOf(span.kind, color, ratio, pen) ?? color
      pen.fillRect(start, top, width, height)
      pen.globalAlpha = 1
      pen.fillStyle = color
      pen.fillRect(start, top, width, 2.5 * ratio)
    }
  })
}

/** The word of each band, above the lines, where there is room for it. */
export function paintSpanWords(plot: uPlot, spans: readonly SpanView[]): void {
  const { left, top, width: plotWidth } = plot.bbox
  const ratio = ratioNow()
  const colors = palette()
  withinPlot(plot, (pen) => {
    pen.font = `${10 * ratio}px ${colors.font.slice(5)}`
    pen.textBaseline = 'top'
    pen.textAlign = 'left'
    let end = Number.NEGATIVE_INFINITY
    for (const span of spans) {
      const { start, width } = placeOf(plot, span)
      const visible = Math.max(start, left)
      const room = Math.min(start + width, left + plotWidth) - visible
      const text = pen.measureText(words[span.kind]).width
      if (room < text + 8 * ratio || visible < end) continue
      pen.globalAlpha = 0.88
      pen.fillStyle = colors.ground
      pen.fillRect(visible + 2 * ratio, top + 4.5 * ratio, text + 5 * ratio, 13 * ratio)
      pen.globalAlpha = 1
      pen.fillStyle = colors.spans[span.kind]
      pen.fillText(words[span.kind], visible + 4.5 * ratio, top + 6 * ratio)
      end = visible + text + 8 * ratio
    }
  })
}
