import { useEffect, useRef, useState } from 'react'
import { useHub, useLive } from './hooks.ts'
import type { Live } from './live-store.ts'

/** no frame tells of what is read from elsewhere, such as a declaration: look anyway */
const usualMs = 30_000

/**
 * Calls again when what is watched becomes another, at most once per `leastMs`, and every half minute; not while the page is
 * hidden or paused. Nothing is drawn for it: what is watched may move with every message of the stream.
 */
export function useRefresh(watch: (live: Live) => unknown, call: () => void, leastMs = 1000): void {
  const { store } = useHub()
  const paused = useLive(({ link }) => link.state === 'paused')
  const [seen] = useState(() => watch(store.current()))
  const state = useRef({ call, seen, at: 0, timer: undefined as ReturnType<typeof setTimeout> | undefined })
  state.current.call = call

  useEffect(() => {
    const own = state.current
    const run = () => {
      own.timer = undefined
      own.at = performance.now()
      if (!document.hidden) own.call()
    }
    const look = () => {
      const watched = watch(store.current())
      if (own.seen === watched || paused) return
      own.seen = watched
      if (own.timer !== undefined) return
      const wait = own.at + leastMs - performance.now()
      if (wait <= 0) run()
      else own.timer = setTimeout(run, wait)
    }
    look()
    return store.subscribe(look)
  }, [store, watch, paused, leastMs])

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
