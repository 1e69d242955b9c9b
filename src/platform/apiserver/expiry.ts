import type { Clock } from '#model'
import type { Logger } from '#runtime'
import type { ObjectStore } from './objects.ts'
import type { ResourceName } from './served.ts'
import { ApiError } from './status.ts'
import type { ApiObject } from './types.ts'

/** Between two looks, while there are objects. */
const LOOK_MS = 60_000

/** A kind whose objects are deleted when they have served their time. */
export interface ExpiringKind {
  readonly resource: ResourceName
  readonly collection: string
  isOver(object: ApiObject, nowMs: number): boolean
}

/** Deletes objects of one kind that have served their time. */
export class Expiry implements AsyncDisposable {
  readonly #kind: ExpiringKind
  readonly #objects: ObjectStore
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #stop = new AbortController()
  #looking: Promise<void> | undefined

  constructor(
    kind: ExpiringKind,
    parts: { readonly objects: ObjectStore; readonly clock: Clock; readonly logger: Logger },
  ) {
    this.#kind = kind
    this.#objects = parts.objects
    this.#clock = parts.clock
    this.#logger = parts.logger
  }

  /** Called with every change as it becomes visible. */
  saw(collection: string): void {
    if (collection === this.#kind.collection) this.start()
  }

  /** Looks as long as there are objects. */
  start(): void {
    if (!this.#stop.signal.aborted) this.#looking ??= this.#look()
  }

  async #look(): Promise<void> {
    const { signal } = this.#stop
    const list = () => this.#objects.list(this.#kind.resource)
    await Promise.resolve() // not within the write that called for it
    while (!signal.aborted && list().length > 0) {
      for (const object of list())
        if (!signal.aborted && this.#kind.isOver(object, this.#clock.now())) await this.#remove(object)
      await this.#clock.sleep(LOOK_MS, signal)
    }
    this.#looking = undefined
  }

  async #remove({ kind, metadata }: ApiObject): Promise<void> {
    const { name, namespace, uid = '', resourceVersion = '' } = metadata
    try {
      await this.#objects.delete(this.#kind.resource, { name, namespace }, { preconditions: { uid, resourceVersion } })
    } catch (error) {
      if (error instanceof ApiError && ['Conflict', 'NotFound'].includes(error.reason)) return // changed just now
      this.#logger.warn(
        { err: error, kind, namespace, name },
        'an object that has served its time could not be deleted',
      )
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#looking
  }
}
