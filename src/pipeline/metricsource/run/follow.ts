import type { KubeClient, KubeObject } from '#kube'
import type { Clock, CustomPart } from '#model'
import type { ResourceDescriptor } from '../types.ts'
import type { Collection } from './collect-source.ts'
import { endingWith } from './ending.ts'
import { completePart } from './part.ts'

/** More namespaces than this are not watched one by one. */
const MAX_WATCHES = 8
/** Changes that come together are told together. */
const GATHER_MS = 500
/** A source whose rows change all the time is told less often the more rows it has, ms per row. */
const PAUSE_PER_ROW_MS = 0.5

export interface FollowOptions {
  readonly kube: KubeClient
  readonly source: ResourceDescriptor
  readonly seen: NonNullable<Collection['seen']>
  /** ends it: the next collection is due, or none is wanted any more */
  readonly signal: AbortSignal
  readonly clock: Clock
  /** takes the whole as it is now; further changes are gathered meanwhile */
  readonly onPart: (part: CustomPart, collectedAt: number) => Promise<void>
}

/**
 * Follows what was collected by watches that begin where its lists ended, and tells the whole whenever something changed.
 * @returns why it ended before `signal` did: a watch in trouble, or more rows than there may be. The next collection knows.
 */
export async function follow(options: FollowOptions): Promise<Error | undefined> {
  const { seen, signal } = options
  if (seen.ends.length > MAX_WATCHES) return new Error(`more than ${MAX_WATCHES} namespaces are not watched one by one`)
  const { end, release } = endingWith(signal)
  let trouble: Error | undefined
  const fail = (error: Error) => {
    if (signal.aborted || end.signal.aborted) return
    trouble = error
    end.abort(error)
  }
  const changes = new Changes(options, end.signal)
  try {
    await Promise.all([
      changes.tell(),
      ...seen.ends.map((place) => watchFrom(options, place, { changes, signal: end.signal, fail })),
    ])
    return trouble
  } finally {
    release()
  }
}

type Place = NonNullable<Collection['seen']>['ends'][number]

interface Watching {
  readonly changes: Changes
  readonly signal: AbortSignal
  readonly fail: (error: Error) => void
}

async function watchFrom(options: FollowOptions, place: Place, { changes, signal, fail }: Watching): Promise<void> {
  const { kube, source, seen } = options
  const { labelSelector } = source
  try {
    const events = kube.watch(seen.resource, {
      ...place,
      ...(labelSelector !== undefined && { labelSelector }),
      signal,
      onTrouble: fail,
    })
    for await (const event of events) {
      if (signal.aborted) return
      if (event.type === 'reset') return fail(new Error('the watch had to begin anew'))
      const full = changes.take(event)
      if (full) return fail(full)
    }
  } catch (error) {
    fail(error instanceof Error ? error : new Error(String(error)))
  }
}

/** The collection as it changes, and the telling of it. */
class Changes {
  readonly #options: FollowOptions
  readonly #signal: AbortSignal
  #isDirty = false
  #wake: (() => void) | undefined

  constructor(options: FollowOptions, signal: AbortSignal) {
    this.#options = options
    this.#signal = signal
    signal.addEventListener('abort', () => this.#wake?.(), { once: true })
  }

  /** @returns why it cannot go on */
  take(event: { readonly type: 'added' | 'modified' | 'deleted'; readonly object: KubeObject }): Error | undefined {
    const { source, seen } = this.#options
    const { collecting, limit, resource } = seen
    const { name, namespace = '' } = event.object.metadata
    if (resource.namespaced && !source.wantsNamespace(namespace)) return undefined
    if (event.type === 'deleted') collecting.remove(namespace, name)
    else collecting.add(event.object)
    const isFull = collecting.size > limit
    if (isFull) collecting.remove(namespace, name)
    else this.#isDirty = true
    this.#wake?.()
    return isFull ? new Error(`there are more than ${limit} objects`) : undefined
  }

  /** Until the signal; what changed before it, and was not told, is told by the next collection. */
  async tell(): Promise<void> {
    const { clock, source, seen, onPart } = this.#options
    while (!this.#signal.aborted) {
      await this.#changed()
      await clock.sleep(GATHER_MS, this.#signal)
      if (this.#signal.aborted) return
      this.#isDirty = false
      const madeAt = clock.now()
      const part = completePart(source, 0, seen)
      await onPart({ ...part, durationMs: Math.max(0, clock.now() - madeAt) }, madeAt)
      await clock.sleep(seen.collecting.size * PAUSE_PER_ROW_MS, this.#signal)
    }
  }

  #changed(): Promise<void> {
    if (this.#isDirty || this.#signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      this.#wake = () => {
        this.#wake = undefined
        resolve()
      }
    })
  }
}
