import type { Clock } from '#model'

/** How waits between attempts grow; ms. */
export interface BackoffOptions {
  /** first ceiling, ms */
  readonly fromMs: number
  /** last ceiling, ms */
  readonly toMs: number
  readonly random?: () => number
}

/** The wait before attempt `attempt` (0 is the first retry): full jitter below a doubling ceiling. */
export function backoffMs(attempt: number, { fromMs, toMs, random = Math.random }: BackoffOptions): number {
  const ceiling = Math.min(toMs, fromMs * 2 ** Math.min(attempt, 30))
  return Math.round(ceiling * random())
}

/** Repeats until it succeeds, the signal ends it, or `retry` says an error is final (then it is thrown). */
export async function retryForever<T>(
  action: (attempt: number) => Promise<T>,
  options: BackoffOptions & { clock: Clock; signal: AbortSignal; retry?: (error: unknown, attempt: number) => boolean },
): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    options.signal.throwIfAborted()
    try {
      return await action(attempt)
    } catch (error) {
      if (options.retry && !options.retry(error, attempt)) throw error
      await options.clock.sleep(backoffMs(attempt, options), options.signal)
    }
  }
}
