import { isKubeError, type KubeClient, type KubeErrorReason, type KubeObject, type Page, type Resource } from '#kube'
import type { Clock } from '#model'
import { backoffMs } from '#runtime'

export interface Patience {
  readonly signal: AbortSignal
  readonly clock: Clock
  readonly random: () => number
  /** further tries of one call; default 0 */
  readonly attempts?: number | undefined
}

const BACKOFF = { fromMs: 500, toMs: 8_000 }
/** What may be over in a moment. An open breaker is not: it says itself when to come again. */
const PASSING: readonly KubeErrorReason[] = ['throttled', 'server', 'timeout', 'unreachable']

/** Whether a try `failures + 1` is worth it; waits before it. */
async function worthAnother(error: unknown, failures: number, patience: Patience): Promise<boolean> {
  const { signal, clock, random, attempts = 0 } = patience
  if (!isKubeError(error) || !PASSING.includes(error.reason) || failures >= attempts || signal.aborted) return false
  const waitMs = (error.retryAfterMs ?? 0) + backoffMs(failures, { ...BACKOFF, random })
  await clock.sleep(waitMs, signal)
  return !signal.aborted
}

/** One call, repeated while what it fails of may be over in a moment. */
export async function patiently<T>(call: () => Promise<T>, patience: Patience): Promise<T> {
  for (let failures = 0; ; failures++) {
    try {
      return await call()
    } catch (error) {
      if (!(await worthAnother(error, failures, patience))) throw error
    }
  }
}

export interface PagesOptions extends Patience {
  readonly namespace?: string | undefined
  readonly labelSelector?: string | undefined
  readonly pageSize?: number | undefined
  readonly isIsolated?: boolean | undefined
}

/**
 * Pages of one list, each tried again where it fails in passing.
 * @throws KubeError `expired` where the list's version is gone: whoever took pages begins again
 */
export async function* pagesOf<T = KubeObject>(
  kube: KubeClient,
  resource: Resource<T>,
  options: PagesOptions,
): AsyncGenerator<Page<T>, void, undefined> {
  const { namespace, labelSelector, pageSize, isIsolated, signal } = options
  let next = ''
  for (let failures = 0; ; ) {
    try {
      const list = kube.list(resource, {
        ...(namespace !== undefined && { namespace }),
        ...(labelSelector !== undefined && { labelSelector }),
        ...(next !== '' && { continue: next }),
        ...(pageSize !== undefined && { pageSize }),
        ...(isIsolated && { isolated: true }),
        signal,
      })
      for await (const page of list) {
        failures = 0
        next = page.next
        yield page
      }
      return
    } catch (error) {
      if (!(await worthAnother(error, failures++, options))) throw error
    }
  }
}
