import { setMaxListeners } from 'node:events'
import { isKubeError, type KubeClient, KubeError, throwOwnClose } from '#kube'
import { type Batch, type Clock, type ClusterName, FleetError, type Source, systemClock } from '#model'
import { collectOne } from './collect-one.ts'
import { Collection, nothingOf, readFor, type Said } from './collection.ts'
import { withinLimit } from './ending.ts'
import type { Mirror } from './mirror.ts'
import type { Collector, Read } from './types.ts'

/** What one round over a cluster needs. */
export interface RoundOptions {
  readonly kube: KubeClient
  readonly cluster: ClusterName
  /** the collectors that are due */
  readonly collectors: readonly Collector[]
  readonly source: Source
  readonly signal: AbortSignal
  /** The reading part of the round ends after so long, with what it has; see `roundLimitMs`. Default: never. */
  readonly limitMs?: number
  readonly clock?: Clock
  /** Told of each quantity that could not be read; it counts as nothing. */
  readonly onMalformed?: (text: string) => void
  /** Runs the reading part of the round, when its turn comes; for a bound over many clusters. Default: at once. */
  readonly turn?: <T>(read: () => Promise<T>) => Promise<T>
  /** where the collectors are open already, and what is followed is not read; default: all is read */
  readonly mirror?: Mirror
}

type ReadParts = Pick<Batch, 'parts' | 'tables' | 'failure'>

/**
 * One round: tests the connection, then makes all reads at once, each for all collectors that want it. Each collector stands for
 * itself: what one could not read becomes a part that says absent, forbidden or unreachable, and why. A critical one that cannot
 * read fails the round; only where the cluster may be in trouble are the others cancelled then, a refusal of one hides nothing
 * that others may read.
 * Never throws, except when `signal` aborts or our own client was closed: then nothing is known and nothing must be said.
 * @returns a batch whose sequence is 0 still
 */
export async function collectRound(options: RoundOptions): Promise<Batch> {
  const { cluster, source, clock = systemClock, turn = (read) => read() } = options
  const collectedAt = clock.now()
  const batch = (result: ReadParts): Batch => ({
    cluster,
    sequence: 0,
    source,
    collectedAt,
    durationMs: clock.now() - collectedAt,
    ...(result.failure && unreachedRows(options.collectors, result.failure)),
    ...result,
  })
  try {
    await options.kube.ping(options.signal)
  } catch (error) {
    options.signal.throwIfAborted()
    // Who may not list namespaces was understood and known: the rest may be for them.
    if (!isKubeError(error, 'forbidden')) {
      return batch({ parts: [], failure: untestedOf(error) })
    }
  }
  const limit = { signal: options.signal, limitMs: options.limitMs, clock, over: () => roundOver(options.limitMs ?? 0) }
  return batch(await turn(() => withinLimit(limit, (end) => collectAll(options, collectedAt, end))))
}

/** Each request has a limit of its own; this one is for lists that go on and on: a minute, or what the cluster's own times allow. */
export function roundLimitMs({ intervalMs, timeoutMs }: { readonly intervalMs: number; readonly timeoutMs: number }) {
  return Math.max(60_000, 2 * intervalMs, 4 * timeoutMs)
}

function roundOver(limitMs: number): KubeError {
  const why = `was not read to its end within the ${limitMs / 1000} s of a round; check the cluster's load, or give it a longer monitoring.interval`
  return new KubeError('timeout', why)
}

/** What a round that failed says of the rows it would have read; it may know better. */
function unreachedRows(
  collectors: readonly Collector[],
  { code, message }: NonNullable<Batch['failure']>,
): Pick<Batch, 'tables'> {
  const why = { outcome: 'unreachable', code, message } as const
  const tables = collectors.flatMap((collector) => nothingOf(collector, why, 0).tables)
  return tables.length > 0 ? { tables } : {}
}

async function collectAll(options: RoundOptions, now: number, end: AbortController): Promise<ReadParts> {
  const { kube, clock = systemClock, onMalformed = () => undefined } = options
  const { signal } = end
  setMaxListeners(0, signal) // all reads at once end with it
  const reading = { kube, signal, clock, random: Math.random }
  const { mirror } = options
  const collections = options.collectors.map(
    (collector) =>
      mirror?.collection(collector) ?? new Collection(collector, { endpoint: kube.endpoint, onMalformed }, clock),
  )
  const made: ReadonlyMap<Read, Promise<unknown>> = mirror
    ? mirror.read(options.collectors, reading)
    : readFor(collections, reading)
  let failure: Batch['failure']
  /** how much was taken when it was said: a step that was made since may have said more */
  const takenBy = new Map<Collection, number>()
  const firstSaid = await Promise.all(
    collections.map(async (one): Promise<Said> => {
      const { name, critical, reads, rows } = one.collector
      // The first read without which nothing is told ends the wait for the others.
      await Promise.race([one.failed, Promise.all(reads.map((read) => made.get(read)))])
      takenBy.set(one, one.taken)
      if (mirror?.isStale(one.collector)) return { parts: [], tables: [] }
      const said = one.result(now, now)
      const { error } = said
      if (critical && error !== undefined) {
        failure ??= failureOf(`failed to get ${FAILED[name] ?? name}: `, error)
        if (!isKubeError(error, 'forbidden')) end.abort(CANCELLED)
      }
      if (!rows?.ifRefused || !isKubeError(error, 'forbidden')) return said
      const allowed = collectOne({ collector: rows.ifRefused, kube, signal, clock })
      return allowed.then(({ part }) => ({ ...said, tables: [part] })).catch(() => said)
    }),
  ).catch((error: unknown) => {
    end.abort(CANCELLED)
    throw error
  })
  options.signal.throwIfAborted()
  // What was read while the cluster was in trouble may be half of the truth: it is dropped, and what was known stays.
  if (failure && end.signal.reason === CANCELLED) return { parts: [], failure }
  // From here on nothing is told beside it: a step that was made later must not come before it.
  mirror?.hold()
  const results = collections.map((one, i): Said => {
    const said = firstSaid[i] ?? { parts: [], tables: [] }
    const isOld = one.taken !== takenBy.get(one) && said.error === undefined
    return mirror && isOld && !mirror.isStale(one.collector) ? one.result(now, now) : said
  })
  const tables = results.flatMap((one) => one.tables)
  return {
    parts: results.flatMap((one) => one.parts),
    ...(tables.length > 0 && { tables }),
    ...(failure && { failure }),
  }
}

const CANCELLED = 'a critical collector failed'

/** Words of the documented messages. */
const FAILED: Readonly<Record<string, string>> = { nodes: 'node metrics' }

const untestedOf = (error: unknown) => failureOf('connection test failed: ', error)

/** The round of a cluster whose connection test has failed already. */
export function silentRound(
  { cluster, source }: Pick<Batch, 'cluster' | 'source'>,
  at: number,
  trouble: KubeError,
): Batch {
  const failure = untestedOf(trouble)
  return { cluster, source, sequence: 0, collectedAt: at, durationMs: 0, parts: [], failure }
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
