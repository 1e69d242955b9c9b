import { isOlder, type KubeClient, type KubeObject, type ObjectKey, type Resource, type WatchEvent } from '#kube'
import { type Clock, FleetError, seconds, systemClock } from '#model'
import { backoffMs, type Logger } from '#runtime'
import { keyText } from './work-queue.ts'

/** What happened to one object, as far as we saw: several changes in between may look like one. */
export type ObjectChange<T> =
  | { readonly kind: 'added'; readonly key: ObjectKey; readonly object: T }
  | { readonly kind: 'changed'; readonly key: ObjectKey; readonly object: T; readonly previous: T }
  | { readonly kind: 'deleted'; readonly key: ObjectKey; readonly previous: T }

/** Tells of objects as a watch does: all of them at first and after a gap, then what becomes of them. */
export type ObjectSource<T extends KubeObject> = (how: {
  readonly signal: AbortSignal
  readonly onTrouble: (error: unknown) => void
  /** the source answers again, though nothing changed */
  readonly onOpen?: () => void
}) => AsyncIterable<WatchEvent<T>>

/** Which objects are listed and watched. */
export interface InformerOptions<T extends KubeObject> {
  readonly kube: KubeClient
  readonly resource: Resource<T>
  /** absent: all namespaces */
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
  /** Where objects come from instead of one list and watch, each object from one of them; []: there are none. */
  readonly sources?: readonly ObjectSource<T>[]
  /**
   * Which of the objects are wanted, where no selector can say it: others are neither kept nor told of, as if they did not
   * exist. Default: all.
   */
  readonly where?: (object: T) => boolean
  /** Hears everything first, also of objects that are not wanted. Must not wait and not throw. */
  readonly onEvent?: (event: WatchEvent<T>) => void
  readonly logger: Logger
  readonly clock?: Clock
}

/**
 * The objects of one resource, kept up to date by list and watch, and told to whoever listens. Listeners enqueue; they must
 * not wait and not throw. After a gap the differences are told as if they had just happened.
 */
export class Informer<T extends KubeObject> implements AsyncDisposable {
  readonly #options: InformerOptions<T>
  readonly #sources: readonly ObjectSource<T>[]
  readonly #objects = new Map<string, T>()
  /** which source an object is of, by its place */
  readonly #origins = new Map<string, number>()
  readonly #listeners = new Set<(change: ObjectChange<T>) => void>()
  readonly #recoveries = new Set<() => void>()
  readonly #stop = new AbortController()
  readonly #synced: Promise<void>
  #resolveSynced: () => void = () => undefined
  #rejectSynced: (error: Error) => void = () => undefined
  #isSynced = false
  /** sources whose first list is in */
  readonly #listed = new Set<number>()
  /** up to which the list and the watch of each source have brought everything */
  readonly #seen: string[] = []
  /** by source: since when it is not followed, and what it was answered last */
  readonly #troubles = new Map<number, { readonly since: number; readonly error: unknown }>()
  /** by source: ends its watch, which then begins with a list */
  readonly #again: AbortController[] = []
  /** by source: who waits for its next list */
  readonly #waiting: (() => void)[][] = []
  /** when a source was last followed again after a gap */
  #recoveredAt = Number.NEGATIVE_INFINITY
  #loop: Promise<void> | undefined

  constructor(options: InformerOptions<T>) {
    this.#options = options
    this.#sources = options.sources ?? [(how) => this.#listAndWatch(how)]
    this.#synced = new Promise((resolve, reject) => {
      this.#resolveSynced = resolve
      this.#rejectSynced = reject
    })
    this.#synced.catch(() => undefined) // told to those who wait in `synced`; nobody may be waiting
  }

  get name(): string {
    return this.#options.resource.plural
  }

  /** Whether the first list is in. */
  get isSynced(): boolean {
    return this.#isSynced
  }

  /** Why what is known may be old, and since when, ms; undefined: every source is followed. */
  get trouble(): { readonly since: number; readonly error: unknown } | undefined {
    return [...this.#troubles.values()].sort((a, b) => a.since - b.since)[0]
  }

  /**
   * Whether what is known is what there is, as far as a watch tells: all is followed, and was for long enough that what happened in a gap
   * has come. What takes something away is not to be judged by anything else.
   */
  get isCurrent(): boolean {
    const { clock = systemClock } = this.#options
    const forMs = clock.now() - this.#recoveredAt
    return this.#isSynced && this.#troubles.size === 0 && (forMs < 0 || forMs >= CAUGHT_UP_MS)
  }

  /** Begins to list and watch; a second call does nothing. */
  start(): void {
    this.#loop ??= Promise.all(this.#sources.map((_, at) => this.#run(at))).then(() => undefined)
    this.#syncedOnceAllAre()
  }

  /** Resolves when the first list is in. Rejects when the signal aborts or the informer stops before. */
  async synced(signal?: AbortSignal): Promise<void> {
    await unlessAborted(this.#synced, signal)
  }

  /** What is known of the object now; undefined: it does not exist, as far as we saw. Never to be changed. */
  get(key: ObjectKey): T | undefined {
    return this.#objects.get(keyText(key))
  }

  /** Every object known now. */
  list(): readonly T[] {
    return [...this.#objects.values()]
  }

  /**
   * Takes what a write of ours was answered with, so that whoever looks next knows it; the watch brings the same a little later. What the
   * watch has passed already is not taken. For objects that the informer follows, in its own form.
   */
  wrote(object: T): void {
    if (!this.#isSynced || this.#stop.signal.aborted) return
    const version = object.metadata.resourceVersion
    const text = keyText(keyOf(object))
    const known = this.#objects.get(text)
    const at = this.#sources.length === 1 ? 0 : this.#origins.get(text)
    if (
      at === undefined ||
      !isLater(version, this.#seen[at]) ||
      (known && !isLater(version, known.metadata.resourceVersion))
    )
      return
    this.#put(object, at)
  }

  /** Calls the listener for every change from now on; the returned function ends that. */
  onChange(listener: (change: ObjectChange<T>) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Calls the listener whenever a source is followed again; the returned function ends that. */
  onRecovered(listener: () => void): () => void {
    this.#recoveries.add(listener)
    return () => this.#recoveries.delete(listener)
  }

  /**
   * Reads everything from its sources anew, as it is now or later: a watch may be late, and is then later than another one. Resolves when
   * it is in, which is never while a source does not answer, or when the informer stops.
   */
  async renew(): Promise<void> {
    if (this.#stop.signal.aborted) return
    this.start()
    const lists = this.#sources.map((_, at) => {
      this.#again[at]?.abort()
      return new Promise<void>((resolve) => {
        this.#waiting[at] = [...(this.#waiting[at] ?? []), resolve]
      })
    })
    await Promise.all(lists)
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    for (const resolve of this.#waiting.flat()) resolve()
    this.#rejectSynced(new Error(`the informer of ${this.name} was stopped`))
    await this.#loop
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  async #run(at: number): Promise<void> {
    const { clock = systemClock, logger } = this.#options
    const { signal } = this.#stop
    for (let attempt = 0; !signal.aborted; attempt++) {
      const again = new AbortController()
      this.#again[at] = again
      const either = AbortSignal.any([signal, again.signal])
      try {
        await this.#watch(at, either, () => {
          attempt = 0
        })
      } catch (error) {
        if (!either.aborted) {
          this.#troubled(at, error)
          logger.warn({ resource: this.name, ...causeOf(error) }, 'watch ended; starting it anew')
        }
      }
      if (!again.signal.aborted) await clock.sleep(backoffMs(attempt, { fromMs: 500, toMs: 30_000 }), either)
    }
  }

  #troubled(at: number, error: unknown): void {
    const { clock = systemClock } = this.#options
    this.#troubles.set(at, { since: this.#troubles.get(at)?.since ?? clock.now(), error })
  }

  #followed(at: number): void {
    if (!this.#troubles.delete(at)) return
    const { clock = systemClock } = this.#options
    this.#recoveredAt = clock.now()
    for (const listener of this.#recoveries) listener()
  }

  #listAndWatch(how: Parameters<ObjectSource<T>>[0]): AsyncIterable<WatchEvent<T>> {
    const { kube, resource, namespace, labelSelector, fieldSelector } = this.#options
    return kube.watch(resource, {
      ...(namespace !== undefined && { namespace }),
      ...(labelSelector !== undefined && { labelSelector }),
      ...(fieldSelector !== undefined && { fieldSelector }),
      ...how,
    })
  }

  async #watch(at: number, signal: AbortSignal, onProgress: () => void): Promise<void> {
    const { where, onEvent, logger } = this.#options
    const events = this.#sources[at]?.({
      signal,
      onTrouble: (error) => {
        if (signal.aborted) return
        this.#troubled(at, error)
        logger.debug({ resource: this.name, err: error }, 'watch was interrupted; it goes on')
      },
      onOpen: () => this.#followed(at),
    })
    for await (const event of events ?? []) {
      // What was under way is older than what is asked for now.
      if (signal.aborted) return
      onProgress()
      this.#followed(at)
      onEvent?.(event)
      if (event.type === 'reset') {
        this.#seen[at] = event.resourceVersion
        this.#reset(where ? event.items.filter(where) : event.items, at)
        for (const resolve of this.#waiting[at]?.splice(0) ?? []) resolve()
        continue
      }
      const { resourceVersion = '' } = event.object.metadata
      this.#seen[at] = resourceVersion
      // We wrote a later one ourselves: what came before it is known, and where it was another object, told as deleted.
      const known = this.#objects.get(keyText(keyOf(event.object)))
      if (isLater(known?.metadata.resourceVersion, resourceVersion)) continue
      if (event.type === 'deleted' || where?.(event.object) === false) this.#remove(keyOf(event.object))
      else this.#put(event.object, at)
    }
  }

  #reset(items: readonly T[], at: number): void {
    const present = new Set(items.map((item) => keyText(keyOf(item))))
    for (const [text, object] of this.#objects)
      if (this.#origins.get(text) === at && !present.has(text)) this.#remove(keyOf(object))
    for (const item of items) this.#put(item, at)
    this.#listed.add(at)
    this.#syncedOnceAllAre()
  }

  #syncedOnceAllAre(): void {
    if (this.#listed.size < this.#sources.length) return
    this.#isSynced = true
    this.#resolveSynced()
  }

  #put(object: T, at: number): void {
    const key = keyOf(object)
    const previous = this.#objects.get(keyText(key))
    this.#objects.set(keyText(key), object)
    this.#origins.set(keyText(key), at)
    const isNew = !previous || previous.metadata.uid !== object.metadata.uid
    // Deleted and made anew while we did not look: two objects, whatever their name.
    if (previous && isNew) this.#tell({ kind: 'deleted', key, previous })
    if (!previous || isNew) this.#tell({ kind: 'added', key, object })
    else if (!sameVersion(previous, object)) this.#tell({ kind: 'changed', key, object, previous })
  }

  #remove(key: ObjectKey): void {
    const previous = this.#objects.get(keyText(key))
    if (!previous) return
    this.#objects.delete(keyText(key))
    this.#origins.delete(keyText(key))
    this.#tell({ kind: 'deleted', key, previous })
  }

  #tell(change: ObjectChange<T>): void {
    for (const listener of this.#listeners) listener(change)
  }
}

async function unlessAborted(promise: Promise<unknown>, signal?: AbortSignal): Promise<void> {
  if (!signal) return void (await promise)
  signal.throwIfAborted()
  let abort: () => void = () => undefined
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
  })
  try {
    await Promise.race([promise, aborted])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

/** What happened while nobody watched comes within this time after a watch was opened again, ms. */
export const CAUGHT_UP_MS = seconds(5)

/** A watch that breaks off goes on in a moment, as a rule. */
const PASSING_MS = seconds(10)

/** What may have heard nothing for a while. */
export interface Troubled {
  /** since when, ms, and what came instead; undefined: it hears */
  readonly trouble: { readonly since: number; readonly error: unknown } | undefined
}

/** Since when one of them is not followed, ms, and why; undefined: all are, or it may pass. A clock that is set back hides nothing. */
export function lastingTrouble(
  informers: readonly Troubled[],
  clock: Clock,
): { readonly since: number; readonly message: string } | undefined {
  const [first] = informers.flatMap(({ trouble }) => trouble ?? []).sort((a, b) => a.since - b.since)
  const forMs = first ? clock.now() - first.since : 0
  if (!first || (forMs >= 0 && forMs < PASSING_MS)) return undefined
  return { since: first.since, message: FleetError.from(first.error).message }
}

/** A fault that was foreseen needs no stack. */
export const causeOf = (error: unknown): object =>
  error instanceof FleetError ? { why: error.message } : { err: error }

const sameVersion = ({ metadata: a }: KubeObject, { metadata: b }: KubeObject) =>
  a.resourceVersion !== undefined && a.resourceVersion === b.resourceVersion

const isLater = (version = '', than = ''): boolean => isOlder(than, version)

/** The key of an object. */
export function keyOf({ metadata: { name, namespace } }: KubeObject): ObjectKey {
  return namespace ? { name, namespace } : { name }
}

/** Whether a reconciler of the object cares: it came, went, is going, or its spec changed. Not status, not labels. */
export function changesSpec(change: ObjectChange<KubeObject>): boolean {
  if (change.kind !== 'changed') return true
  const { metadata: now } = change.object
  const { metadata: before } = change.previous
  return now.generation !== before.generation || now.deletionTimestamp !== before.deletionTimestamp
}
