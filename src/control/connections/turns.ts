import pLimit from 'p-limit'
import type { Clock } from '#model'

/** Whoever reads for longer mostly waits for its cluster. */
const LEND_AFTER_MS = 2_000
/** Lent places have an end too: each reader holds what it has read so far. */
const LENT_FACTOR = 4

export type Turn = <T>(work: () => Promise<T>) => Promise<T>

/**
 * Bounds the work done at once, over all clusters. A place is lent to the next in line once its holder took longer than two
 * seconds: clusters that hang delay the others by that, and not by their timeouts.
 */
export function turns(places: number, clock: Clock): Turn {
  const holding = pLimit(places)
  const working = pLimit(places * LENT_FACTOR)
  return <T>(work: () => Promise<T>) =>
    working(
      () =>
        new Promise<T>((resolve, reject) => {
          void holding(async () => {
            const ended = new AbortController()
            const end = () => ended.abort()
            const result = work()
            result.then(resolve, reject)
            result.then(end, end)
            await clock.sleep(LEND_AFTER_MS, ended.signal)
          })
        }),
    )
}
