import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from 'react'

/** Lines on both sides, px. */
const frame = 2

/** How wide an element is within its frame, px, to the next eight below; of the window while the element is not there. */
export function useRoom(element: RefObject<HTMLElement | null>): number {
  const [room, setRoom] = useState(() => document.documentElement.clientWidth)
  const watched = useRef<HTMLElement>(null)
  const watcher = useRef<ResizeObserver>(undefined)
  // After each render: the element comes when there is something to show.
  useLayoutEffect(() => {
    const box = element.current
    if (box === watched.current) return
    watched.current = box
    watcher.current?.disconnect()
    if (!box) return
    const look = () => setRoom(Math.floor((box.clientWidth - frame) / 8) * 8)
    look()
    watcher.current = new ResizeObserver(look)
    watcher.current.observe(box)
  })
  useEffect(() => () => watcher.current?.disconnect(), [])
  return room
}
