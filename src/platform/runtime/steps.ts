import type { Turns } from './turns.ts'

/*
 * Work over much is written as steps: a generator that yields where it may be interrupted. Whoever must not wait runs them at once,
 * a server in turns.
 */

/** Work that yields now and then, and returns what it was for. */
export type Steps<T> = Generator<void, T>

export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}

/**
 * Gives way to what else waits after every turn.
 * @param turns shared by all whose work is long
 * @returns undefined where the signal is aborted before the work is done
 */
export async function inTurns<T>(steps: Steps<T>, turns: Turns, signal: AbortSignal): Promise<T | undefined>
export async function inTurns<T>(steps: Steps<T>, turns: Turns): Promise<T>
export async function inTurns<T>(steps: Steps<T>, turns: Turns, signal?: AbortSignal): Promise<T | undefined> {
  for (;;) {
    const step = await turns.take((until) => {
      for (;;) {
        const step = steps.next()
        if (step.done || performance.now() >= until) return step
      }
    })
    if (step.done) return step.value
    if (signal?.aborted) return undefined
  }
}
