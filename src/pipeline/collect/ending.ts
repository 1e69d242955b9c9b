import type { Clock } from '#model'

/**
 * A controller that ends with this signal too, until it is released. Not AbortSignal.any: a signal that lives as long as its
 * process would remember everything that was ever made of it.
 */
export function endingWith(signal: AbortSignal): { readonly end: AbortController; readonly release: () => void } {
  const end = new AbortController()
  const stop = () => end.abort(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  return { end, release: () => signal.removeEventListener('abort', stop) }
}

export interface LimitOptions {
  readonly signal: AbortSignal
  /** undefined: none */
  readonly limitMs: number | undefined
  readonly clock: Clock
  /** why it ends at its limit */
  readonly over: () => Error
}

/** @param work ends with the controller it is given, which the signal and the limit abort */
export async function withinLimit<T>(
  { signal, limitMs, clock, over }: LimitOptions,
  work: (end: AbortController) => Promise<T>,
): Promise<T> {
  const { end, release } = endingWith(signal)
  const done = new AbortController()
  const timer = limitMs === undefined ? undefined : clock.sleep(limitMs, done.signal)
  const limit = timer?.then(() => done.signal.aborted || end.abort(over()))
  try {
    return await work(end)
  } finally {
    done.abort()
    release()
    await limit
  }
}
