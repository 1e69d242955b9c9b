import { type RefObject, useMemo } from 'react'

/**
 * Keeps the height of an element while the pointer is below it: what grows above must not push away what
 * somebody reads.
 * Its style may bound what is in it by `--held`.
 * @returns handlers for what stands below
 */
export function useStill(element: RefObject<HTMLElement | null>): {
  readonly onPointerEnter: () => void
  readonly onPointerLeave: () => void
} {
  return useMemo(
    () => ({
      onPointerEnter: () => {
        const box = element.current
        if (!box) return
        const height = `${box.getBoundingClientRect().height}px`
        box.style.height = height
        box.style.setProperty('--held', height)
      },
      onPointerLeave: () => {
        for (const name of ['height', '--held']) element.current?.style.removeProperty(name)
      },
    }),
    [element],
  )
}
