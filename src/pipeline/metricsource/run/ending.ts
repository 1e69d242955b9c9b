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
