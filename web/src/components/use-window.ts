import { type RefObject, useCallback, useEffect, useLayoutEffect, useState } from 'react'
import { flushSync } from 'react-dom'
import { printedAtMost, usePrinting } from './use-printing.ts'

const spare = 12
const step = 8

/**
 * Which lines of equal height are in view, with some to spare on both sides. It moves in steps, so that most scrolling
 * renders nothing. Of other lines, as after a leap, those in view are drawn first, so that they are seen as soon as may be, and what is to spare after them.
 * @param question what the lines are the answer to
 */
export function useWindow(
  element: RefObject<HTMLElement | null>,
  count: number,
  lineHeight: number,
  question = '',
): { from: number; to: number } {
  const [view, setView] = useState({ top: 0, height: 1200, leaps: 0, below: step })
  const look = useCallback(() => {
    const box = element.current
    if (!box) return
    const { scrollTop } = box
    const top = Math.floor(scrollTop / lineHeight / step) * step * lineHeight
    const height = box.clientHeight
    setView((before) => {
      if (before.top === top && before.height === height) return before
      const isLeap = Math.abs(top - before.top) > height + spare * lineHeight
      if (!isLeap) return { top, height, leaps: before.leaps, below: step }
      return { top: scrollTop, height, leaps: before.leaps + 1, below: 0 }
    })
  }, [element, lineHeight])
  useLayoutEffect(() => {
    const box = element.current
    if (!box) return
    look()
    // In the frame of the scrolling itself: what else there is to render waits, so that no line is ever seen empty.
    const scrolled = () => flushSync(look)
    const size = new ResizeObserver(look)
    size.observe(box)
    box.addEventListener('scroll', scrolled, { passive: true })
    return () => {
      size.disconnect()
      box.removeEventListener('scroll', scrolled)
    }
  }, [element, look])
  const [drawn, setDrawn] = useState<string>()
  const lines = `${question} ${view.leaps}`
  const isDrawn = drawn === lines
  useEffect(() => (isDrawn ? undefined : afterPaint(() => setDrawn(lines))), [isDrawn, lines])
  const more = isDrawn ? spare : 1
  if (usePrinting()) return { from: 0, to: Math.min(count, printedAtMost) }
  const from = Math.max(0, Math.min(count, Math.floor(view.top / lineHeight) - more))
  const to = Math.min(count, Math.ceil((view.top + view.height) / lineHeight) + more + view.below)
  return { from, to }
}

/** @returns gives it up */
function afterPaint(act: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  const frame = requestAnimationFrame(() => {
    timer = setTimeout(act)
  })
  return () => {
    cancelAnimationFrame(frame)
    clearTimeout(timer)
  }
}
