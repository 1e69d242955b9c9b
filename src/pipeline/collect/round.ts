import { isKubeError, type KubeClient, KubeError, outcomeOf, throwOwnClose } from '#kube'
import { type Batch, type Clock, type ClusterName, FleetError, type Part, type Source, systemClock } from '#model'
import type { Collected, Collector } from './types.ts'

export interface RoundOptions {
  readonly kube: KubeClient
  readonly cluster: ClusterName
  /** the collectors that are due */
  readonly collectors: readonly Collector[]
  readonly source: Source
  /** of the batch to be */
  readonly sequence: number
  readonly signal: AbortSignal
  /** The reading part of the round ends after so long, with what it has; see `roundLimitMs`. Default: never. */
  readonly limitMs?: number
  readonly clock?: Clock
  /** Told of each quantity that could not be read; it counts as nothing. */
  readonly onMalformed?: (text: string) => void
  /** Runs the reading part of the round, when its turn comes; for a bound over many clusters. Default: at once. */
  readonly turn?: <T>(read: () => Promise<T>) => Promise<T>
}

/**
 * One round: tests the connection, then runs all collectors at once. Each stands for itself: what one could not read becomes
 * a part that says absent, forbidden or unreachable, and why. A critical one that cannot read fails the round; only where the
 * cluster may be in trouble are the others cancelled then, a refusal of one hides nothing that others may read.
 * Never throws, except when `signal` aborts or our own client was closed: then nothing is known and nothing must be said.
 */
export async function collectRound(options: RoundOptions): Promise<Batch> {
  const { cluster, source, sequence, clock = systemClock, turn = (read) => read() } = options
  const collectedAt = clock.now()
  const batch = (result: Pick<Batch, 'parts' | 'failure'>): Batch => ({
    cluster,
    sequence,
    source,
    collectedAt,
    durationMs: clock.now() - collectedAt,
    ...result,
  })
  try {
    await options.kube.ping(options.signal)
  } catch (error) {
    options.signal.throwIfAborted()
    // Who may not list namespaces was understood and known: the rest may be for them.
    if (!isKubeError(error, 'forbidden')) {
      return batch({ parts: [], failure: failureOf('connection test failed: ', error) })
    }
  }
  return batch(await turn(() => withinLimit(options, (end) => collectAll(options, collectedAt, end))))
}

/** Each request has a limit of its own; this one is for lists that go on and on: a minute, or what the cluster's own times allow. */
export function roundLimitMs({ intervalMs, timeoutMs }: { readonly intervalMs: number; readonly timeoutMs: number }) {
  return Math.max(60_000, 2 * intervalMs, 4 * timeoutMs)
}

/** @param work ends with the controller it is given, which the limit aborts */
async function withinLimit<T>(
  { limitMs, clock = systemClock }: RoundOptions,
  work: (end: AbortController) => Promise<T>,
): Promise<T> {
  const end = new AbortController()
  if (limitMs === undefined) return work(end)
  const over = new AbortController()
  void clock.sleep(limitMs, over.signal).then(() => {
    if (over.signal.aborted) return
    const why = `was not read to its end within the ${limitMs / 1000} s of a round; check the cluster's load, or give it a longer monitoring.interval`
    end.abort(new KubeError('timeout', why))
  })
  try {
    return await work(end)
  } finally {
    over.abort()
  }
}

async function collectAll(
  options: RoundOptions,
  now: number,
  end: AbortController,
): Promise<Pick<Batch, 'parts' | 'failure'>> {
  const signal = AbortSignal.any([options.signal, end.signal])
  let failure: Batch['failure']
  const results = await Promise.all(
    options.collectors.map(async (collector) => {
      const result = await collectOne(collector, options, now, signal).catch((error: unknown) => {
        end.abort(CANCELLED)
        throw error
      })
      if (collector.critical && 'error' in result) {
        failure ??= failureOf(`failed to get ${FAILED[collector.name] ?? collector.name}: `, result.error)
        if (!isKubeError(result.error, 'forbidden')) end.abort(CANCELLED)
      }
      return result.parts
    }),
  )
  options.signal.throwIfAborted()
  // What was read while the cluster was in trouble may be half of the truth: it is dropped, and what was known stays.
  if (failure && end.signal.reason === CANCELLED) return { parts: [], failure }
  return { parts: results.flat(), ...(failure && { failure }) }
}

const CANCELLED = 'a critical collector failed'

/** Words of the documented messages. */
const FAILED: Readonly<Record<string, string>> = { nodes: 'node metrics' }

type Collection = { readonly parts: readonly Part[]; readonly error?: unknown }

async function collectOne(
  collector: Collector,
  { kube, clock = systemClock, onMalformed }: RoundOptions,
  now: number,
  signal: AbortSignal,
): Promise<Collection> {
  const startedAt = clock.now()
  const said = () => ({ collector: collector.name, durationMs: clock.now() - startedAt })
  try {
    const result = await collector.collect({ kube, now, ...(onMalformed && { onMalformed }) }, signal)
    if (isAbsent(result)) {
      const absent = { ...said(), outcome: 'absent' as const, code: 'not_served', message: result.absent }
      return { parts: collector.types.map((type) => ({ type, ...absent })) }
    }
    return partsOf(collector, result, said())
  } catch (error) {
    const failed = { ...said(), ...unread(error) }
    return { parts: collector.types.map((type) => ({ type, ...failed })), error }
  }
}

function partsOf({ types }: Collector, result: Collected, said: { collector: string; durationMs: number }): Collection {
  const parts = types.map((type) => {
    const items = result[type] ?? []
    if ('refused' in items) return { type, ...said, ...unread(items.refused) }
    return { type, ...said, outcome: 'complete', items } as Part // the same `type` on both sides
  })
  const [first] = types.map((type) => result[type])
  return { parts, ...(first && 'refused' in first && { error: first.refused }) }
}

function unread(error: unknown) {
  const { code, message } = FleetError.from(error)
  return { outcome: outcomeOf(error), code, message }
}

function isAbsent(result: Collected | { readonly absent: string }): result is { readonly absent: string } {
  return 'absent' in result
}

/**
 * Why a round failed, for people: what was tried, then the cause with its next step.
 * @throws the error itself where we closed the client
 */
export function failureOf(prefix: string, error: unknown): { readonly code: string; readonly message: string } {
  throwOwnClose(error)
  const { code, message } = FleetError.from(error)
  return { code: isKubeError(error) ? error.code : code, message: `${prefix}${message}` }
}
