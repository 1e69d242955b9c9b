import type { Clock } from '#model'

/** Whether it is time to say it again: what comes with every request must not fill a log. */
export function rarely(clock: Clock, everyMs: number): () => boolean {
  let last = Number.NEGATIVE_INFINITY
  return () => {
    const now = clock.now()
    if (Math.abs(now - last) < everyMs) return false
    last = now
    return true
  }
}
