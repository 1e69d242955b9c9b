import { useEffect, useRef } from 'react'
import { useLive } from './hooks.ts'
import type { Live } from './live-store.ts'

/** no frame tells of what is read from elsewhere, such as a declaration: look anyway */
const usualMs = 30_000

/**
 * Calls again when what is watched becomes another, at most once per `leastMs`, and every half minute; not while the page is
 * hidden or paused.
 */
export function useRefresh(watch: (live: Live) => unknown, call: () => void, leastMs = 1000): void {
  const watched = useLive(watch)
  const paused = useLive(({ link }) => link.state === 'paused')
  const state = useRef({ call, seen: watched, at: 0, timer: undefined as ReturnType<typeof setTimeout> | undefined })
  state.current.call = call

  useEffect(() => {
    const own = state.current
    if (own.seen === watched || paused) return
    own.seen = watched
    if (own.timer !== undefined) return
    const run = () => {
      own.timer = undefined
      own.at = performance.now()
      if (!document.hidden) own.call()
    }
    const wait = own.at + leastMs - performance.now()
    if (wait <= 0) run()
    else own.timer = setTimeout(run, wait)
  }, [watched, paused, leastMs])

  useEffect(() => {
    const own = state.current
    const again = () => {
      if (!document.hidden && !paused) own.call()
    }
    const timer = setInterval(again, usualMs)
    document.addEventListener('visibilitychange', again)
    return () => {
      clearInterval(timer)
      document.removeEventListener('visibilitychange', again)
      clearTimeout(own.timer)
      own.timer = undefined
    }
  }, [paused])
}
