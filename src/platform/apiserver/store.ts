import { ApiError } from './status.ts'
import type { ObjectStorage, StorageFault, StoredChange } from './storage.ts'
import type { ApiObject } from './types.ts'

/** One change of a collection; `previous` is what stood there before. */
export interface StoreEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly resourceVersion: number
  /** after the change; for a deletion the last state, with the version of the deletion */
  readonly object: ApiObject
  readonly previous: ApiObject | undefined
}

export type StoreListener = (event: StoreEvent) => void

/** All objects of one resource (`group/plural`), in the order of their keys, with their recent history. */
class Collection {
  readonly objects = new Map<string, ApiObject>()
  readonly listeners = new Set<StoreListener>()
  /** sorted */
  keys: string[] = []
  /** oldest first, at `start` */
  history: StoreEvent[] = []
  start = 0
  /** changes up to this version are forgotten */
  compacted: number
  readonly maxHistory: number

  constructor(compacted: number, maxHistory: number) {
    this.compacted = compacted
    this.maxHistory = maxHistory
  }

  /** Index of the first key not before `key`. */
  seek(key: string): number {
    let low = 0
    let high = this.keys.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.keys[middle] ?? '') < key) low = middle + 1
      else high = middle
    }
    return low
  }

  set(key: string, object: ApiObject): void {
    if (!this.objects.has(key)) {
      const last = this.keys.at(-1)
      if (last === undefined || last < key) this.keys.push(key)
      else this.keys.splice(this.seek(key), 0, key)
    }
    this.objects.set(key, object)
  }

  drop(key: string): void {
    if (this.objects.delete(key)) this.keys.splice(this.seek(key), 1)
  }

  remember(event: StoreEvent): void {
    this.history.push(event)
    if (this.history.length - this.start <= this.maxHistory) return
    this.compacted = this.history[this.start]?.resourceVersion ?? this.compacted
    this.start++
    // The dead front is cut off once it is as long as the living rest: constant cost per event.
    if (this.start > this.maxHistory) {
      this.history = this.history.slice(this.start)
      this.start = 0
    }
  }

  /** Events after a version, oldest first. */
  since(resourceVersion: number): StoreEvent[] {
    let low = this.start
    let high = this.history.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.history[middle]?.resourceVersion ?? 0) <= resourceVersion) low = middle + 1
      else high = middle
    }
    return this.history.slice(low)
  }
}

interface Mutation {
  readonly collection: string
  readonly key: string
  readonly event: StoreEvent
}

/** What a piece of work sees and changes. All of its changes take effect, or none. */
export interface Transaction {
  get(collection: string, key: string): ApiObject | undefined
  /** Objects whose key starts with the prefix, in order. */
  list(collection: string, prefix: string): ApiObject[]
  /** Stores the object under a new version, which is written into it. The object must be the caller's own. */
  put(collection: string, key: string, object: ApiObject): ApiObject
  /**
   * Removes an object; `last` is its last state where the removal ends it together with a change.
   * @returns that state, with the version of the deletion.
   */
  remove(collection: string, key: string, last?: ApiObject): ApiObject | undefined
}

/** Changes that are decided but not yet on disk, seen by the work that follows in the same batch. */
class Pending {
  readonly changed = new Map<string, Map<string, ApiObject | null>>()
  readonly mutations: Mutation[] = []
  resourceVersion: number

  constructor(resourceVersion: number) {
    this.resourceVersion = resourceVersion
  }

  set(collection: string, key: string, object: ApiObject | null): void {
    let keys = this.changed.get(collection)
    if (!keys) {
      keys = new Map()
      this.changed.set(collection, keys)
    }
    keys.set(key, object)
  }
}

interface QueuedWork {
  readonly run: (transaction: Transaction) => unknown
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

/** Work that waits to be written; beyond this the server says it is busy. */
const MAX_QUEUE = 10_000
/** Pieces of work that share one write to disk. */
const MAX_BATCH = 512

/**
 * The versioned heart: objects in memory, one rising version over all resources, recent history per resource.
 *
 * Readers see only what is on disk: work runs against the state plus what waits to be written, a batch of work is
 * written at once, and only then becomes visible, in order. With a storage that needs no waiting, work takes effect
 * before `transact` returns.
 */
export class VersionedStore implements AsyncDisposable {
  readonly #storage: ObjectStorage
  readonly #collections = new Map<string, Collection>()
  readonly #maxHistory: number
  readonly #opened: number
  readonly #queue: QueuedWork[] = []
  readonly #onCommit: (collection: string, event: StoreEvent) => void
  #resourceVersion: number
  #running: Promise<void> | undefined
  #draining = false
  #closed = false

  constructor(
    storage: ObjectStorage,
    options: { maxHistory: number; onCommit: (collection: string, event: StoreEvent) => void },
  ) {
    this.#storage = storage
    this.#maxHistory = options.maxHistory
    this.#onCommit = options.onCommit
    const { resourceVersion, objects } = storage.load()
    this.#resourceVersion = resourceVersion
    this.#opened = resourceVersion
    for (const [path, object] of objects) {
      const [collection, key] = splitPath(path)
      this.#collection(collection).set(key, object)
    }
  }

  /** The version of the newest visible change. */
  get resourceVersion(): number {
    return this.#resourceVersion
  }

  /** Why nothing can be written now; undefined where it can. */
  async fault(): Promise<StorageFault | undefined> {
    return this.#storage.fault?.()
  }

  /** Names of the collections that hold or held something. */
  get collections(): string[] {
    return [...this.#collections.keys()]
  }

  #collection(name: string): Collection {
    let collection = this.#collections.get(name)
    if (!collection) {
      collection = new Collection(this.#opened, this.#maxHistory)
      this.#collections.set(name, collection)
    }
    return collection
  }

  get(collection: string, key: string): ApiObject | undefined {
    return this.#collections.get(collection)?.objects.get(key)
  }

  count(collection: string): number {
    return this.#collections.get(collection)?.keys.length ?? 0
  }

  /** Objects whose key starts with the prefix, in order of their keys. */
  list(collection: string, prefix = ''): ApiObject[] {
    return this.entries(collection, prefix).map(([, object]) => object)
  }

  entries(name: string, prefix = ''): [string, ApiObject][] {
    const collection = this.#collections.get(name)
    if (!collection) return []
    const found: [string, ApiObject][] = []
    for (let at = collection.seek(prefix); at < collection.keys.length; at++) {
      const key = collection.keys[at] ?? ''
      if (!key.startsWith(prefix)) break
      const object = collection.objects.get(key)
      if (object) found.push([key, object])
    }
    return found
  }

  /**
   * The same as it was at an earlier version.
   * @returns undefined where that version is forgotten.
   */
  entriesAt(name: string, prefix: string, resourceVersion: number): [string, ApiObject][] | undefined {
    const collection = this.#collection(name)
    if (resourceVersion < collection.compacted) return undefined
    const later = collection.since(resourceVersion)
    if (later.length === 0) return this.entries(name, prefix)
    const then = new Map<string, ApiObject | undefined>()
    for (const event of later) {
      const key = keyOf(event.object)
      if (key.startsWith(prefix) && !then.has(key)) then.set(key, event.previous)
    }
    const found = this.entries(name, prefix).filter(([key]) => !then.has(key))
    for (const [key, object] of then) if (object) found.push([key, object])
    return found.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  }

  /**
   * Hands over the events after a version, then every further one as it becomes visible. The listener must not throw.
   * @returns a function that ends it, or undefined where the version is forgotten.
   */
  watch(name: string, resourceVersion: number, listener: StoreListener): (() => void) | undefined {
    const collection = this.#collection(name)
    if (resourceVersion < collection.compacted) return undefined
    for (const event of collection.since(resourceVersion)) listener(event)
    collection.listeners.add(listener)
    return () => collection.listeners.delete(listener)
  }

  /**
   * Runs a piece of work as one step. What it throws is thrown here and undoes its own changes only.
   * @throws ApiError where the changes could not be written; then nothing happened.
   */
  transact<T>(work: (transaction: Transaction) => T): Promise<T> {
    if (this.#closed) return Promise.reject(new ApiError('ServiceUnavailable', 'the API server is shutting down'))
    if (this.#queue.length >= MAX_QUEUE)
      return Promise.reject(new ApiError('TooManyRequests', 'too many writes are waiting; try again later'))
    const done = new Promise<T>((resolve, reject) => {
      this.#queue.push({ run: work, resolve: resolve as (value: unknown) => void, reject })
    })
    if (!this.#running && !this.#draining) this.#drain()
    return done
  }

  /** Runs batches until one has to be waited for; then goes on after it. Never inside itself: listeners may write. */
  #drain(): void {
    this.#draining = true
    try {
      while (this.#queue.length > 0) {
        const waiting = this.#runBatch(this.#queue.splice(0, MAX_BATCH))
        if (!waiting) continue
        this.#running = waiting.then(() => {
          this.#running = undefined
          this.#drain()
        })
        return
      }
    } finally {
      this.#draining = false
    }
  }

  #runBatch(batch: readonly QueuedWork[]): Promise<void> | undefined {
    const pending = new Pending(this.#resourceVersion)
    // Failures too wait for the write: they may rest on a change of the same batch.
    const answers: (() => void)[] = []
    for (const { run, resolve, reject } of batch) {
      const own = new OwnChanges(this, pending)
      try {
        const value = run(own)
        own.merge()
        answers.push(() => resolve(value))
      } catch (error) {
        answers.push(() => reject(error))
      }
    }
    const finish = () => {
      this.#apply(pending)
      for (const answer of answers) answer()
    }
    if (pending.mutations.length === 0) {
      finish()
      return undefined
    }
    const fail = (error: unknown) => {
      for (const { reject } of batch) reject(error)
    }
    try {
      const written = this.#storage.write(storedChanges(pending), pending.resourceVersion)
      if (written) return written.then(finish, fail)
    } catch (error) {
      fail(error)
      return undefined
    }
    finish()
    return undefined
  }

  #apply(pending: Pending): void {
    for (const { collection: name, key, event } of pending.mutations) {
      const collection = this.#collection(name)
      if (event.type === 'DELETED') collection.drop(key)
      else collection.set(key, event.object)
      this.#resourceVersion = event.resourceVersion
      collection.remember(event)
      for (const listener of collection.listeners) listener(event)
      this.#onCommit(name, event)
    }
  }

  /** Waits for what is queued, then closes the storage. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    while (this.#running) await this.#running
    await this.#storage[Symbol.asyncDispose]()
  }
}

class OwnChanges implements Transaction {
  readonly #store: VersionedStore
  readonly #pending: Pending
  readonly #own: Pending

  constructor(store: VersionedStore, pending: Pending) {
    this.#store = store
    this.#pending = pending
    this.#own = new Pending(pending.resourceVersion)
  }

  get(collection: string, key: string): ApiObject | undefined {
    for (const layer of [this.#own, this.#pending]) {
      const found = layer.changed.get(collection)?.get(key)
      if (found !== undefined) return found ?? undefined
    }
    return this.#store.get(collection, key)
  }

  list(collection: string, prefix: string): ApiObject[] {
    const found = new Map(this.#store.entries(collection, prefix))
    for (const layer of [this.#pending, this.#own])
      for (const [key, object] of layer.changed.get(collection) ?? []) {
        if (!key.startsWith(prefix)) continue
        if (object) found.set(key, object)
        else found.delete(key)
      }
    return [...found].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object)
  }

  put(collection: string, key: string, object: ApiObject): ApiObject {
    const previous = this.get(collection, key)
    const resourceVersion = ++this.#own.resourceVersion
    object.metadata.resourceVersion = String(resourceVersion)
    this.#own.set(collection, key, object)
    const type = previous ? 'MODIFIED' : 'ADDED'
    this.#own.mutations.push({ collection, key, event: { type, resourceVersion, object, previous } })
    return object
  }

  remove(collection: string, key: string, last?: ApiObject): ApiObject | undefined {
    const previous = this.get(collection, key)
    if (!previous) return undefined
    const resourceVersion = ++this.#own.resourceVersion
    const end = last ?? previous
    const object = { ...end, metadata: { ...end.metadata, resourceVersion: String(resourceVersion) } }
    this.#own.set(collection, key, null)
    this.#own.mutations.push({ collection, key, event: { type: 'DELETED', resourceVersion, object, previous } })
    return object
  }

  merge(): void {
    for (const [collection, keys] of this.#own.changed)
      for (const [key, object] of keys) this.#pending.set(collection, key, object)
    this.#pending.mutations.push(...this.#own.mutations)
    this.#pending.resourceVersion = this.#own.resourceVersion
  }
}

/** The key of an object within its collection: `namespace/name`, or `name` without a namespace. */
export const keyOf = ({ metadata }: ApiObject): string =>
  metadata.namespace ? `${metadata.namespace}/${metadata.name}` : metadata.name

function* pathsOf(pending: Pending): Iterable<StoredChange> {
  for (const [collection, keys] of pending.changed)
    for (const [key, object] of keys) yield { key: `${collection}/${key}`, object }
}

const storedChanges = (pending: Pending): StoredChange[] => [...pathsOf(pending)]

/** `group/plural/key` → `group/plural` and `key`; the core group is the empty text. */
function splitPath(path: string): [collection: string, key: string] {
  const first = path.indexOf('/')
  const second = path.indexOf('/', first + 1)
  return [path.slice(0, second), path.slice(second + 1)]
}
