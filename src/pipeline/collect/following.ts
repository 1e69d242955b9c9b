import { setMaxListeners } from 'node:events'
import { isConnectionTrouble, isKubeError, type KubeClient, KubeError, type WatchEvent } from '#kube'
import { type Clock, FleetError, seconds } from '#model'
import type { Reading } from './collection.ts'
import { endingWith } from './ending.ts'
import { type ListEnd, wantsObject } from './list.ts'
import { poll } from './poll.ts'
import type { Read, ReadEvent } from './types.ts'
import type { WatchBudget } from './watch-budget.ts'

/*
 *              list                 watch opens
 *   unread ──────────▶ (its ends) ──────────────▶ followed ⇄ interrupted    goes on from its last version; a round asks it to
 *     ▲                     │ no watch                │
 *     │ closed, not found   ▼                         ▼ 410: list again, once a minute at most
 *     └──────────────── polled: with each round, and why ◀── refused, or no good
 */

/** More lists than this are not watched one by one. */
const MAX_WATCHES = 8
/** A version that is gone is no reason to list more often. */
const LIST_AGAIN_MS = seconds(60)
/** After a watch was refused, or was no good, the next that is tried: roles are mended, and proxies. */
const WATCH_AGAIN_MS = seconds(300)
/** A round waits so long for a watch to go on. */
const OPEN_WITHIN_MS = seconds(5)
/** A cluster that does not answer its watch for so long, and answers others, is read without it. */
const MAX_INTERRUPTION_MS = seconds(60)

export interface FollowingOptions {
  /** @returns false where nobody wants more of it */
  readonly give: (event: ReadEvent) => boolean
  /** a list began, or is over: meanwhile what was given is half of the truth */
  readonly onListing: (isListing: boolean) => void
  readonly watches: WatchBudget
  /** ends everything */
  readonly signal: AbortSignal
  readonly clock: Clock
  readonly random: () => number
}

interface Watching {
  readonly kube: KubeClient
  readonly end: AbortController
  readonly places: number
  readonly open: Set<ListEnd>
  wasOpen: boolean
  interruptedAt: number
  /** why it is interrupted, since it was asked to go on */
  trouble: Error | undefined
}

/** One read of a cluster that is kept current: one list, then watches that begin where it ended. */
export class Following {
  readonly #read: Read
  readonly #options: FollowingOptions
  #watching: Watching | undefined
  #listing: Promise<void> | undefined
  #listedAt = Number.NEGATIVE_INFINITY
  /** its version went, and it was listed too lately */
  #isWaiting = false
  /** its watch is interrupted, and did not go on when it was asked to */
  #isBehind = false
  #refusedAt: number | undefined
  #why: string | undefined
  readonly #pauses = new Set<AbortController>()
  readonly #tasks = new Set<Promise<void>>()
  #onChange: () => void = () => undefined

  constructor(read: Read, options: FollowingOptions) {
    this.#read = read
    this.#options = options
  }

  get isFollowed(): boolean {
    return this.#watching !== undefined
  }

  /** What was given is of a time before, and there is nothing newer yet. */
  get isStale(): boolean {
    return this.#isWaiting || this.#isBehind
  }

  /** Why it is polled, for people; undefined: it is not, or was never read. */
  get why(): string | undefined {
    return this.#watching ? undefined : this.#why
  }

  /** Reads nothing where it is followed; else it is listed. Resolves when all that comes of it was given. Never throws. */
  async refresh(reading: Reading): Promise<void> {
    if (this.#listing) await this.#listing
    else if (this.#watching?.kube === reading.kube) await this.#reopen(this.#watching, reading.signal)
    else this.leave()
    if (this.#watching || this.#isWaiting) return
    await this.#list(reading)
  }

  /** Whoever wants it now must have it from its beginning: the next refresh lists it. */
  leave(): void {
    if (this.#watching) this.#end(this.#watching)
  }

  /** Resolves when nothing of it runs any more; its signal has aborted, or nobody refreshes it. */
  async left(): Promise<void> {
    this.leave()
    this.#wake()
    await Promise.all(this.#tasks)
  }

  #list(reading: Omit<Reading, 'onPage'>): Promise<void> {
    const { give, onListing, clock } = this.#options
    this.#listedAt = clock.now()
    this.#isWaiting = false
    this.#isBehind = false
    onListing(true)
    const listing = poll(this.#read, { ...reading, take: give })
      .then((ends) => {
        if (ends.length > 0 && !reading.signal.aborted) this.#begin(reading.kube, ends)
      })
      .finally(() => {
        this.#listing = undefined
        onListing(false)
      })
    this.#listing = listing
    return listing
  }

  #begin(kube: KubeClient, ends: readonly ListEnd[]): void {
    const { watches, signal } = this.#options
    if (signal.aborted || this.#isSoonAfter(this.#refusedAt, WATCH_AGAIN_MS)) return
    if (ends.length > MAX_WATCHES) {
      this.#why = `it is ${ends.length} lists, and more than ${MAX_WATCHES} are not watched one by one`
      return
    }
    if (!watches.take(ends.length)) {
      this.#why = watches.why
      return
    }
    const { end, release } = endingWith(signal)
    setMaxListeners(0, end.signal)
    const { clock } = this.#options
    const watching = {
      kube,
      end,
      places: ends.length,
      open: new Set<ListEnd>(),
      wasOpen: false,
      interruptedAt: clock.now(),
      trouble: undefined,
    }
    this.#watching = watching
    this.#why = undefined
    const run = Promise.all(ends.map((place) => this.#follow(watching, place))).then(release)
    this.#track(run)
  }

  async #follow(watching: Watching, place: ListEnd): Promise<void> {
    const { give, clock } = this.#options
    const { resource, ...from } = place
    const { labelSelector } = this.#read
    const { signal } = watching.end
    try {
      const events = watching.kube.watch(resource, {
        ...from,
        ...(labelSelector !== undefined && { labelSelector }),
        signal,
        relist: false,
        // What was no good before must show that it is now: it would be believed for more than a minute.
        mustProve: this.#refusedAt !== undefined,
        pause: (ms) => this.#pause(ms, signal),
        onOpen: () => {
          watching.open.add(place)
          if (isOpen(watching)) {
            this.#isBehind = false
            watching.wasOpen = true
          }
          this.#onChange()
        },
        onTrouble: (trouble) => {
          if (isOpen(watching)) watching.interruptedAt = clock.now()
          watching.open.delete(place)
          watching.trouble = trouble
          this.#onChange()
        },
      })
      for await (const event of events) {
        if (signal.aborted) return
        if (event.type === 'reset') throw new KubeError('protocol', 'the watch began anew')
        if (wantsObject({ read: this.#read, resource }, event.object) && !give(changeOf(event)))
          throw new KubeError('protocol', 'there are more objects than are kept')
      }
    } catch (error) {
      if (!signal.aborted) this.#ended(watching, error)
    }
  }

  #ended(watching: Watching, error: unknown): void {
    this.#end(watching)
    if (isKubeError(error, 'closed') || isKubeError(error, 'not_found')) return
    if (isKubeError(error, 'expired')) {
      this.#track(this.#listAgain(watching.kube))
      return
    }
    this.#refuse(isKubeError(error, 'forbidden') ? lacksWatch(this.#read) : FleetError.from(error).message)
    // What it did not tell may be older than a round.
    if (watching.wasOpen && !this.#listing) this.#track(this.#listNow(watching.kube))
  }

  #refuse(why: string): void {
    this.#why = cut(why)
    this.#refusedAt = this.#options.clock.now()
  }

  #end(watching: Watching): void {
    if (this.#watching !== watching) return
    this.#watching = undefined
    this.#isBehind = false
    this.#options.watches.give(watching.places)
    watching.end.abort()
    this.#onChange()
  }

  async #listAgain(kube: KubeClient): Promise<void> {
    const { clock, signal } = this.#options
    this.#isWaiting = true
    const sinceMs = clock.now() - this.#listedAt
    // A clock that was set back must not keep us from it.
    await this.#pause(Math.min(LIST_AGAIN_MS, Math.max(0, LIST_AGAIN_MS - sinceMs)), signal)
    if (!this.#isWaiting || signal.aborted || this.#listing) return
    await this.#listNow(kube)
  }

  #listNow(kube: KubeClient): Promise<void> {
    const { clock, random, signal } = this.#options
    return this.#list({ kube, signal, clock, random })
  }

  /**
   * Wakes what waits for its next try. Where the cluster answers it with an error the list says what is wrong, at once; where nothing
   * comes the round is told without it, and after a minute it is polled.
   */
  async #reopen(watching: Watching, signal: AbortSignal): Promise<void> {
    if (isOpen(watching)) return
    const { clock } = this.#options
    const { end, release } = endingWith(signal)
    this.#onChange = () => {
      if (this.#watching !== watching || isOpen(watching) || isAnswer(watching.trouble)) end.abort()
    }
    this.#ask(watching)
    await clock.sleep(OPEN_WITHIN_MS, end.signal)
    release()
    this.#onChange = () => undefined
    if (this.#watching !== watching || isOpen(watching) || signal.aborted) return
    const { trouble, wasOpen, interruptedAt } = watching
    this.#isBehind = !isAnswer(trouble) && this.#isSoonAfter(interruptedAt, MAX_INTERRUPTION_MS)
    if (this.#isBehind) return
    this.#end(watching)
    const why = `its watch cannot be opened: ${trouble?.message ?? 'no answer'}`
    // One that was good is tried again with the next list.
    if (isAnswer(trouble) && wasOpen) this.#why = cut(why)
    else this.#refuse(why)
  }

  #ask(watching: Watching): void {
    watching.trouble = undefined
    this.#wake()
  }

  #isSoonAfter(at: number | undefined, ms: number): boolean {
    const now = this.#options.clock.now()
    return at !== undefined && now >= at && now - at < ms
  }

  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    const { end, release } = endingWith(signal)
    this.#pauses.add(end)
    await this.#options.clock.sleep(ms, end.signal)
    this.#pauses.delete(end)
    release()
  }

  #wake(): void {
    for (const pause of this.#pauses) pause.abort()
  }

  #track(task: Promise<void>): void {
    const tracked = task.finally(() => this.#tasks.delete(tracked))
    this.#tasks.add(tracked)
  }
}

const cut = (why: string): string => why.slice(0, 500)

/** The cluster itself said it, or what stands before it. */
const isAnswer = (error: unknown): boolean =>
  isKubeError(error) && !isConnectionTrouble(error) && !isKubeError(error, 'timeout')

const isOpen = ({ open, places }: Watching): boolean => open.size === places

const lacksWatch = ({ resource }: Read): string => `the role lacks watch on ${resource ? nameOf(resource) : 'it'}`

/** As roles and people write it, such as `deployments.apps`. */
export const nameOf = ({ plural, group }: Pick<NonNullable<Read['resource']>, 'plural' | 'group'>): string =>
  group ? `${plural}.${group}` : plural

/** No object is kept here: what it was stands for by its name. */
export function changeOf({ type, object }: Exclude<WatchEvent<unknown>, { type: 'reset' }>): ReadEvent {
  const before = type === 'added' ? undefined : object
  return { type: 'changed', before, after: type === 'deleted' ? undefined : object }
}
