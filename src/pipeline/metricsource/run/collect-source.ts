import { isKubeError, type Resource } from '#kube'
import { type CustomError, type CustomPart, FleetError, invariant } from '#model'
import type { CollectSourceOptions, ResourceDescriptor, ResourceTarget } from '../types.ts'
import { endingWith } from './ending.ts'
import type { Patience } from './pages.ts'
import { completePart, type Found, failedPart, saidOf } from './part.ts'
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
    return {
      part: completePart(source, tookMs(), seen),
      seen: 'ends' in seen && seen.ends.length > 0 ? { ...seen, limit } : undefined,
    }
  } catch (error) {
    signal.throwIfAborted()
    return { part: failedPart(source, clock.now() - beganAt, saidOf(error)), seen: undefined }
  } finally {
    over.abort()
    release()
    await timer
  }
}

type Attempt = Omit<Parameters<typeof readObjects>[0], 'resource' | 'target'>
type Seen = Reading & { readonly resource: Resource }

/** @returns undefined: the cluster does not serve the kind (any more) */
function attempt(options: Attempt): Promise<Found | Seen | undefined> {
  const [target, ...others] = options.source.targets
  invariant(target, 'a descriptor reads something')
  return others.length === 0 ? attemptOne({ ...options, target }) : attemptAll(options)
}

/**
 * Lists of several kinds as one table. A kind that is not served has no rows; one that is refused is named beside the rows of the
 * others. Anything else fails the whole: what was known stays.
 */
async function attemptAll(options: Attempt): Promise<Found | undefined> {
  const { source } = options
  const found: Seen[] = []
  const errors: CustomError[] = []
  let refusal: unknown
  let left = options.limit
  for (const target of source.targets) {
    try {
      const seen = await attemptOne({ ...options, target, limit: left })
      if (!seen) continue
      left -= seen.collecting.size
      found.push(seen)
    } catch (error) {
      if (!isKubeError(error, 'forbidden')) throw error
      refusal ??= error
      errors.push({ namespace: '', ...saidOf(error) })
    }
  }
  if (found.length === 0) {
    if (refusal) throw refusal
    return undefined
  }
  const rows = found.map(({ collecting }) => collecting.rows()).reduce((all, some) => all.patch(some, []))
  return {
    collecting: { rows: () => rows, reports: () => [] },
    truncated: found.some(({ truncated }) => truncated),
    errors: [...errors, ...found.flatMap((one) => one.errors)],
  }
}

async function attemptOne(options: Attempt & { readonly target: ResourceTarget }): Promise<Seen | undefined> {
  const { kube, target } = options
  let resource = await servedAs(kube, target, options)
  for (let isAgain = false; resource; isAgain = true) {
    try {
      return { ...(await readObjects({ ...options, resource })), resource }
    } catch (error) {
      if (!isKubeError(error, 'not_found')) throw error
      // It went meanwhile, or came back under another name: the cluster is asked anew.
      const now = await servedAs(kube, target, options)
      if (isAgain || !now || isSame(now, resource)) return undefined
      resource = now
    }
  }
  return undefined
}

const isSame = (a: Resource, b: Resource) => a.plural === b.plural && a.namespaced === b.namespaced

const notServed = ({ targets }: ResourceDescriptor) => ({
  outcome: 'absent' as const,
  code: 'not_served',
  message: `the cluster does not serve ${targets.map(nameOf).join(', nor ')}`,
})
