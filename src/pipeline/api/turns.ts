/*
 * Work over many chunks is written as steps: a generator that yields where it may be interrupted. Whoever must not wait runs them at
 * once, a route in turns.
 */

/** Work that yields now and then, and returns what it was for. */
export type Steps<T> = Generator<void, T>

/** Others wait no longer than this for their turn, ms; a step of the work comes on top. */
const TURN_MS = 10

export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}

/**
 * Gives way to what else waits after every turn.
 * @returns undefined where the signal is aborted before the work is done
 */
export async function inTurns<T>(steps: Steps<T>, signal: AbortSignal): Promise<T | undefined> {
  for (;;) {
    const began = performance.now()
    do {
      const { done, value } = steps.next()
      if (done) return value
    } while (performance.now() - began < TURN_MS)
    await new Promise<void>((resolve) => setImmediate(resolve))
    if (signal.aborted) return undefined
  }
}
