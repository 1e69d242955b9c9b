import type { KubeClient } from '#kube'
import type { Clock } from '#model'
import type { Collection, WholePart } from './collection.ts'
import { WorkCost } from './cost.ts'
import { endingWith } from './ending.ts'
import { changeOf } from './following.ts'
import { type ListEnd, wantsObject } from './list.ts'
import type { Read, ReadEvent } from './types.ts'

/** More lists than this are not watched one by one. */
const MAX_WATCHES = 8
/** Changes that come together are told together. */
const GATHER_MS = 100
/** What changes all the time is told less often the more it costs: so many times what making it took. */
const PAUSE_PER_COST = 4

export interface FollowOptions {
  readonly kube: KubeClient
  readonly collection: Collection
  /** where each of its reads ended */
  readonly ends: ReadonlyMap<Read, readonly ListEnd[]>
  /** ends it: the next collection is due, or none is wanted any more */
  readonly signal: AbortSignal
  readonly clock: Clock
  /** Takes the whole as it is now; further changes are gathered meanwhile. Never throws. */
  readonly onPart: (part: WholePart, collectedAt: number) => Promise<void>
}

/**
 * Feeds a collection by watches that begin where its lists ended, and tells the whole whenever something changed.
 * @returns why it ended before `signal` did: a watch in trouble, or more rows than there may be. The next collection knows.
 */
export async function follow(options: FollowOptions): Promise<Error | undefined> {
  const { collection, ends, signal } = options
  const places = [...ends].flatMap(([read, all]) => all.map((end) => ({ read, end })))
  if (places.length > MAX_WATCHES) return new Error(`more than ${MAX_WATCHES} lists are not watched one by one`)
  const { end, release } = endingWith(signal)
  let trouble: Error | undefined
  const fail = (error: Error) => {
    if (end.signal.aborted) return
    trouble = error
    end.abort(error)
  }
  const changes = new Changes(options, end.signal)
  const feed = async ({ read, end: place }: (typeof places)[number]) => {
    const take = (event: ReadEvent) => {
      if (!collection.take(read, event)) fail(new Error(`nothing more is taken after ${collection.size} rows`))
      else changes.note()
    }
    await watchFrom({ ...options, signal: end.signal, read, place, take, fail })
  }
  try {
    await Promise.all(places.map(feed))
    await changes.told()
    return trouble
  } finally {
    release()
  }
}

interface Watching {
  readonly kube: KubeClient
  readonly read: Read
  readonly place: ListEnd
  readonly signal: AbortSignal
  readonly take: (event: ReadEvent) => void
  readonly fail: (error: Error) => void
}

/** Ends with its signal, or in trouble. */
async function watchFrom({ kube, read, place, signal, take, fail }: Watching): Promise<void> {
  const { resource, ...from } = place
  const { labelSelector } = read
  try {
    const options = { ...from, ...(labelSelector !== undefined && { labelSelector }), signal, onTrouble: fail }
    for await (const event of kube.watch(resource, options)) {
      if (signal.aborted) return
      if (event.type === 'reset') return fail(new Error('the watch had to begin anew'))
      if (wantsObject({ read, resource }, event.object)) take(changeOf(event))
    }
  } catch (error) {
    fail(error instanceof Error ? error : new Error(String(error)))
  }
}

/** Tells the whole of a collection after it changed. What changed before the signal, and was not told, is told by the next. */
class Changes {
  readonly #options: FollowOptions
  readonly #cost = new WorkCost()
  readonly #signal: AbortSignal
  #isDirty = false
  #telling: Promise<void> | undefined

  constructor(options: FollowOptions, signal: AbortSignal) {
    this.#options = options
    this.#signal = signal
  }

  note(): void {
    this.#isDirty = true
    this.#telling ??= this.#tell().finally(() => {
      this.#telling = undefined
    })
  }

  /** Resolves when nothing is being told. */
  async told(): Promise<void> {
    await this.#telling
  }

  async #tell(): Promise<void> {
    const { clock, collection, onPart } = this.#options
    while (this.#isDirty) {
      await clock.sleep(GATHER_MS, this.#signal)
      if (this.#signal.aborted) return
      this.#isDirty = false
      const madeAt = clock.now()
      const { result, costMs } = this.#cost.of(() => collection.result(madeAt, madeAt))
      for (const part of result.tables) await onPart(part, madeAt)
      await clock.sleep(PAUSE_PER_COST * costMs, this.#signal)
    }
  }
}
