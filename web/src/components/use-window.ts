import { type RefObject, useCallback, useLayoutEffect, useState } from 'react'
import { flushSync } from 'react-dom'
import { printedAtMost, usePrinting } from './use-printing.ts'

const spare = 16
const step = 8

/**
 * Which lines of equal height are in view, with some to spare on both sides. It moves in steps, so that most scrolling
 * renders nothing.
 */
export function useWindow(
  element: RefObject<HTMLElement | null>,
  count: number,
  lineHeight: number,
): { from: number; to: number } {
  const [view, setView] = useState({ top: 0, height: 1200 })
  const look = useCallback(() => {
    const box = element.current
    if (!box) return
    const top = Math.floor(box.scrollTop / lineHeight / step) * step * lineHeight
    const height = box.clientHeight
    setView((before) => (before.top === top && before.height === height ? before : { top, height }))
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
  if (usePrinting()) return { from: 0, to: Math.min(count, printedAtMost) }
  const from = Math.max(0, Math.min(count, Math.floor(view.top / lineHeight) - spare))
  const to = Math.min(count, Math.ceil((view.top + view.height) / lineHeight) + spare + step)
  return { from, to }
}
