import { isKubeError, type Resource } from '#kube'
import { type CustomPart, FleetError } from '#model'
import type { CollectSourceOptions, CompiledSource } from '../types.ts'
import { endingWith } from './ending.ts'
import type { Patience } from './pages.ts'
import { completePart, failedPart, saidOf } from './part.ts'
import { type Reading, readObjects } from './read-objects.ts'
import { nameOf, servedAs } from './served-as.ts'

/** A collection was not finished within its limit. */
class CollectionTimeoutError extends FleetError {
  override readonly name = 'CollectionTimeoutError'
  readonly code = 'collection_timeout'
  readonly retryable = true

  constructor(timeoutMs: number, rows: number) {
    super(`not finished within ${timeoutMs / 1000} s, after ${rows} rows; raise collection.timeoutSeconds or read less`)
  }
}

/** A collection, and what is needed to follow what comes after it. */
export interface Collection {
  readonly part: CustomPart
  /** undefined where there is nothing to follow: it failed, or is not whole */
  readonly seen: (Reading & { readonly resource: Resource; readonly limit: number }) | undefined
}

/**
 * Reads one cluster once, as the source declares it, within the source's time limit. What cannot be read is said in the part:
 * single namespaces by name beside the rows of the others, anything else as absent, forbidden or unreachable.
 * Never throws, except when `signal` aborts: then nothing is known and nothing must be said.
 */
export async function collectSource(options: CollectSourceOptions): Promise<CustomPart> {
  return (await collect(options)).part
}

/** The same, with what a watch goes on from. */
export async function collect(options: CollectSourceOptions & { readonly random?: () => number }): Promise<Collection> {
  const { source, clock, signal } = options
  signal.throwIfAborted()
  const beganAt = clock.now()
  const limit = Math.min(options.limit ?? Number.POSITIVE_INFINITY, source.collection.maxResources)
  const { end, release } = endingWith(signal)
  const over = new AbortController()
  let rows = 0
  const { timeoutMs } = source.collection
  const timer = clock.sleep(timeoutMs, over.signal).then(() => {
    if (!over.signal.aborted) end.abort(new CollectionTimeoutError(timeoutMs, rows))
  })
  const patience: Patience = {
    signal: end.signal,
    clock,
    random: options.random ?? Math.random,
    attempts: source.collection.retryAttempts,
  }
  const onProgress = (count: number) => {
    rows = count
    options.onProgress?.(count)
  }
  try {
    const seen = await attempt({ ...options, ...patience, limit, now: beganAt, onProgress })
    signal.throwIfAborted()
    const tookMs = () => clock.now() - beganAt
    if (!seen) return { part: failedPart(source, tookMs(), notServed(source)), seen: undefined }
    return { part: completePart(source, tookMs(), seen), seen: seen.ends.length > 0 ? { ...seen, limit } : undefined }
  } catch (error) {
    signal.throwIfAborted()
    return { part: failedPart(source, clock.now() - beganAt, saidOf(error)), seen: undefined }
  } finally {
    over.abort()
    release()
    await timer
  }
}

type Attempt = Omit<Parameters<typeof readObjects>[0], 'resource'>

/** @returns undefined: the cluster does not serve the kind (any more) */
async function attempt(options: Attempt): Promise<(Reading & { readonly resource: Resource }) | undefined> {
  const { kube, source } = options
  let resource = await servedAs(kube, source, options)
  for (let isAgain = false; resource; isAgain = true) {
    try {
      return { ...(await readObjects({ ...options, resource })), resource }
    } catch (error) {
      if (!isKubeError(error, 'not_found')) throw error
      // It went meanwhile, or came back under another name: the cluster is asked anew.
      const now = await servedAs(kube, source, options)
      if (isAgain || !now || isSame(now, resource)) return undefined
      resource = now
    }
  }
  return undefined
}

const isSame = (a: Resource, b: Resource) => a.plural === b.plural && a.namespaced === b.namespaced

const notServed = (source: CompiledSource) => ({
  outcome: 'absent' as const,
  code: 'not_served',
  message: `the cluster does not serve ${nameOf(source)}`,
})
