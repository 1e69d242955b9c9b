import { setImmediate as nextTurn } from 'node:timers/promises'
import { HOME_OF_CLUSTER_OBJECTS, type NamespaceFacts } from '#extract'
import { isKubeError, type KubeClient, type KubeObject, type Resource } from '#kube'
import { type Clock, seconds } from '#model'
import { backoffMs, type Logger } from '#runtime'
import type { CompiledKind, Outcome } from './compile.ts'
import { FAILURE_BYTES } from './failures.ts'
import type { KindRows, Reduced, Taken } from './kind-rows.ts'
import type { Listed } from './list-pauses.ts'
import type { RowSpace } from './row-space.ts'

/** One target's interest in a kind, as it is now. */
export interface Subscription {
  readonly rows: KindRows
  readonly kind: CompiledKind
  readonly namespaces: ReadonlySet<string>
  readonly facts: ReadonlyMap<string, NamespaceFacts>
  /** whether it is still wanted as it is, of this namespace: not what a former form of a target takes, nor what it left */
  readonly isCurrent: (namespace?: string) => boolean
}

export interface FeedOptions {
  readonly kube: KubeClient
  readonly resource: Omit<Resource, 'fromJson' | 'fromProtobuf'>
  /** undefined: the whole cluster */
  readonly namespace: string | undefined
  readonly subscriptions: readonly Subscription[]
  /** equal feeds take the same of the same */
  readonly fingerprint: string
  /** by the rows of each subscription: equal ones take the same for it */
  readonly taken: ReadonlyMap<KindRows, string>
  readonly clock: Clock
  readonly logger: Logger
  /** something of its state is otherwise */
  readonly onChange: (feed: Feed) => void
}

interface Arrived extends Reduced {
  readonly version: string
  /** by the place of the subscription; of those that do not choose it there is none, nor of those that had no room to keep it */
  outcomes: ReadonlyMap<number, Outcome>
}

/** An object that not all subscriptions had yet. */
interface Unfinished {
  readonly object: KubeObject
  readonly arrived: Arrived
  readonly outcomes: Map<number, Outcome>
  /** the next subscription, of those that want its namespace */
  next: number
}

/** A list that is older than what another feed told of the same. */
interface Held {
  /** by uid, with what the watch told since */
  readonly items: Map<string, Arrived>
  readonly uncounted: ReadonlyMap<number, number>
}

/** What is wrong with a watch. */
export type FeedTrouble = { readonly error: Error; readonly since: number }

/** Work on a page of a list takes about so long, ms, and it has at most so many objects and bytes. */
const PAGE_MS = 100
const MAX_PAGE = 500
const MAX_PAGE_BYTES = 16 * 2 ** 20
/** Others have their turn after so long, ms; one target and object come on top. */
const TURN_MS = 20
/** What waits for its turn is kept, about so many bytes of it. */
const MAX_KEPT_BYTES = 48 * 2 ** 20
/** Nothing is known of the first page: so many of its objects, each for one target. */
const FIRST_PAGE = 64
/** A quiet watch is begun anew, from where it was: only where that does not go well, something may be lacking. */
const RENEWED_WITHIN_MS = seconds(15)
/** What was left out, as there was no time for it, is looked at again after so long. */
const AGAIN_MS = seconds(300)
/** A list that is older than the rows waits for its watch, but no longer than this: versions may go back, as of a restored cluster. */
const CATCH_UP_MS = seconds(30)
const BACKOFF = { fromMs: 1000, toMs: 60_000 }

/**
 * One list and watch of a kind, for all targets that want it. Objects become rows while they are read, and are not kept. A list that
 * breaks off changes nothing; one that was read to its end replaces what was there.
 */
export class Feed {
  readonly #options: FeedOptions
  readonly #end = new AbortController()
  readonly #startedAt: number
  #isSynced = false
  #trouble: FeedTrouble | undefined
  /** ends the wait for a quiet watch to be open again */
  #renewal: AbortController | undefined
  #run: Promise<void> | undefined
  #lastList: Listed | undefined
  /** since when the present list is read; undefined: none is */
  #listingSince: number | undefined
  /** what the last list took, ms, but for waiting for its watch */
  #listedMs = 0
  readonly #subscriptionsOf = new Map<string, readonly (readonly [number, Subscription])[]>()
  /** Ends one reading, with the feed or for another one. One for each: what derives from a signal is remembered by it. */
  #turn = new AbortController()
  #leavesOut = false
  /** whether this reading has its list */
  #isListed = false
  /** up to which version the list and the watch have brought everything */
  #version = ''
  #held: Held | undefined
  /** false: a list waited for its watch in vain; the next one is taken as it is */
  #isPatient = true
  /** since the size of a page was asked for last */
  #read = { objects: 0, ms: 0 }
  /** read, and not worked on for all that want it */
  #unfinished: Unfinished[] = []
  #keptBytes = 0
  /** when this turn of the process ends; undefined: it is not ours */
  #until: number | undefined
  /** what was read and not handed over yet, bytes */
  readonly #arriving = new Map<RowSpace, number>()
  /** objects of which there was no room to keep that they have no row, by the place of the subscription, since the last list */
  #uncounted = new Map<number, number>()

  constructor(options: FeedOptions) {
    this.#options = options
    this.#startedAt = options.clock.now()
  }

  get fingerprint(): string {
    return this.#options.fingerprint
  }

  get taken(): ReadonlyMap<KindRows, string> {
    return this.#options.taken
  }

  /** Whether a list was read to its end, and all that came of it was handed over. */
  get isSynced(): boolean {
    return this.#isSynced
  }

  /** undefined while the watch is open, or the first list goes well */
  get trouble(): FeedTrouble | undefined {
    return this.#trouble
  }

  get startedAt(): number {
    return this.#startedAt
  }

  /** The last list that was read to its end. */
  get lastList(): Listed | undefined {
    return this.#lastList
  }

  /** How long the present list has been read; undefined: none is. */
  get listingMs(): number | undefined {
    return this.#listingSince === undefined ? undefined : this.#options.clock.now() - this.#listingSince
  }

  start(): void {
    this.#run ??= this.#watch()
  }

  async stop(): Promise<void> {
    this.#end.abort()
    this.#turn.abort()
    this.#renewal?.abort()
    await this.#run
    this.#arrived()
  }

  async #watch(): Promise<void> {
    const { kube, namespace, clock, logger, resource } = this.#options
    const { signal } = this.#end
    for (let attempt = 0; !signal.aborted; attempt++) {
      this.#turn = new AbortController()
      this.#leavesOut = false
      this.#isListed = false
      this.#listingSince = undefined
      this.#held = undefined
      this.#arrived()
      this.#letGo()
      this.#uncounted.clear()
      try {
        const events = kube.watch(
          { ...resource, fromJson: (object) => this.#reduce(object) },
          {
            ...(namespace !== undefined && { namespace }),
            isolated: true,
            maxPageBytes: MAX_PAGE_BYTES,
            pageSize: async () => {
              this.#listingSince ??= clock.now()
              await this.#finish()
              return this.#pageSize()
            },
            signal: this.#turn.signal,
            onOpen: () => this.#troubled(undefined),
            onTrouble: (error) => {
              this.#listingSince = undefined
              this.#letGo()
              if (!this.#held) {
                this.#arrived()
                this.#uncounted.clear()
              }
              this.#troubled(error)
            },
          },
        )
        for await (const event of events) {
          if (signal.aborted) return
          attempt = 0
          await this.#finish()
          if (signal.aborted) return
          this.#version = event.type === 'reset' ? event.resourceVersion : event.object.version
          if (event.type === 'reset') await this.#listed(event.items)
          else if (this.#held) await this.#caughtUp(this.#held, event.object, event.type === 'deleted')
          else if (event.type === 'deleted') this.#gone(event.object)
          else this.#take(event.object)
          if (!this.#held) this.#arrived()
        }
      } catch (error) {
        if (signal.aborted) return
        logger.warn({ resource: resource.plural, err: error }, 'a watch of inventory ended; it begins anew')
        this.#troubled(error instanceof Error ? error : new Error(String(error)))
      }
      await clock.sleep(backoffMs(attempt, BACKOFF), signal)
    }
  }

  /** Of the next one, by what the last took. */
  #pageSize(): number {
    const { objects, ms } = this.#read
    this.#read = { objects: 0, ms: 0 }
    const first = Math.max(1, Math.floor(FIRST_PAGE / this.#options.subscriptions.length))
    if (objects === 0) return first
    return Math.max(1, Math.min(MAX_PAGE, 4 * objects, Math.floor((PAGE_MS * objects) / Math.max(ms, 0.001))))
  }

  /** An object is worked on once for each target, and let go: at once, or where that takes long in turns, before anything else is read. */
  #reduce(object: KubeObject): Arrived {
    const { uid = '', namespace = '', name, resourceVersion: version = '' } = object.metadata
    const arrived: Arrived = { uid, namespace, name, version, outcomes: NONE }
    const one: Unfinished = { object, arrived, outcomes: new Map(), next: 0 }
    this.#read = { objects: this.#read.objects + 1, ms: this.#read.ms }
    const mayWait = this.#keptBytes < MAX_KEPT_BYTES
    if (!mayWait || (this.#unfinished.length === 0 && performance.now() < this.#endOfTurn())) {
      if (this.#advance(one, mayWait ? this.#endOfTurn() : Number.POSITIVE_INFINITY)) return arrived
    }
    this.#unfinished.push(one)
    this.#keptBytes += bytesIn(object, MAX_KEPT_BYTES)
    return arrived
  }

  /** @returns when the present turn ends */
  #endOfTurn(): number {
    if (this.#until !== undefined) return this.#until
    setImmediate(() => {
      this.#until = undefined
    })
    this.#until = performance.now() + TURN_MS
    return this.#until
  }

  async #finish(): Promise<void> {
    const { signal } = this.#turn
    while (this.#unfinished.length > 0 && !signal.aborted) {
      await nextTurn()
      const until = performance.now() + TURN_MS
      let done = 0
      for (const one of this.#unfinished) {
        if (performance.now() >= until || !this.#advance(one, until)) break
        done++
      }
      this.#unfinished.splice(0, done)
    }
    this.#letGo()
  }

  #letGo(): void {
    this.#unfinished = []
    this.#keptBytes = 0
  }

  /** What goes wrong with one object is its own failure. @returns whether all have it */
  #advance(one: Unfinished, until: number): boolean {
    const { object, arrived, outcomes } = one
    const home = homeOf(arrived)
    const subscriptions = this.#of(home)
    const began = performance.now()
    let now = began
    do {
      const next = subscriptions[one.next++]
      if (!next) break
      const [at, subscription] = next
      const outcome = subscription.isCurrent(home) ? outcomeIn(subscription, object, home) : undefined
      now = performance.now()
      if (!outcome) continue
      const kept = this.#withRoom(outcome, subscription.rows.space)
      if (kept) outcomes.set(at, kept)
      else this.#uncounted.set(at, (this.#uncounted.get(at) ?? 0) + 1)
      if (!kept || kept.isSkipped) this.#leaveOut()
    } while (now < until)
    if (outcomes.size > 0) arrived.outcomes = outcomes
    this.#read = { objects: this.#read.objects, ms: this.#read.ms + now - began }
    return one.next >= subscriptions.length
  }

  /** Those that want objects of a namespace, each with its place: most want those of one alone. */
  #of(home: string): readonly (readonly [number, Subscription])[] {
    const known = this.#subscriptionsOf.get(home)
    if (known) return known
    const found = [...this.#options.subscriptions.entries()].filter(([, { namespaces }]) => namespaces.has(home))
    this.#subscriptionsOf.set(home, found)
    return found
  }

  /** @returns undefined: there is not even room to keep that there was none */
  #withRoom(outcome: Outcome, space: RowSpace): Outcome | undefined {
    const failure: Outcome = outcome.row ? { failure: space.noRoom, isSkipped: true } : outcome
    for (const one of [outcome, failure]) {
      const bytes = one.row ? one.bytes : FAILURE_BYTES + one.failure.length
      if (!space.arrive(bytes)) continue
      this.#arriving.set(space, (this.#arriving.get(space) ?? 0) + bytes)
      return one
    }
    return undefined
  }

  /** What was read is handed over, or let go. */
  #arrived(): void {
    for (const [space, bytes] of this.#arriving) space.arrived(bytes)
    this.#arriving.clear()
  }

  /** A list is let finish, however long it takes. */
  #leaveOut(): void {
    if (this.#leavesOut) return
    this.#leavesOut = true
    if (this.#isListed) this.#againLater()
  }

  #againLater(): void {
    const turn = this.#turn
    void this.#options.clock.sleep(AGAIN_MS, turn.signal).then(() => turn.abort())
  }

  /** A first list takes nothing back that another feed told since. */
  async #listed(items: readonly Arrived[]): Promise<void> {
    this.#listedMs = this.listingMs ?? 0
    this.#listingSince = undefined
    const uncounted = this.#uncounted
    this.#uncounted = new Map()
    this.#held = undefined
    if (this.#isListed || !this.#isPatient || !this.#isBehind) return this.#replace(items, uncounted)
    const held = { items: new Map(items.map((item) => [item.uid, item])), uncounted }
    this.#held = held
    const turn = this.#turn
    void this.#options.clock.sleep(CATCH_UP_MS, turn.signal).then(() => {
      if (this.#held !== held) return
      this.#isPatient = false
      turn.abort()
    })
  }

  /** What the watch tells of a list that is held. */
  async #caughtUp(held: Held, object: Arrived, isGone: boolean): Promise<void> {
    if (isGone) held.items.delete(object.uid)
    else held.items.set(object.uid, object)
    if (!this.#isBehind) await this.#release(held)
  }

  #release({ items, uncounted }: Held): Promise<void> {
    this.#held = undefined
    const all = new Map(uncounted)
    for (const [at, count] of this.#uncounted) all.set(at, (all.get(at) ?? 0) + count)
    this.#uncounted = new Map()
    return this.#replace([...items.values()], all)
  }

  /** Whether what it read is older than what stands in the rows. */
  get #isBehind(): boolean {
    const { subscriptions, namespace } = this.#options
    const isOurs = (one: string) => namespace === undefined || one === namespace
    return subscriptions.some(
      ({ rows, isCurrent }) =>
        isCurrent() &&
        rows.isLaterThan(this.#version, (one) => isOurs(one) && isCurrent(one || HOME_OF_CLUSTER_OBJECTS)),
    )
  }

  async #replace(items: readonly Arrived[], uncounted: ReadonlyMap<number, number>): Promise<void> {
    const { subscriptions, namespace, clock } = this.#options
    const { signal } = this.#end
    const byHome = groupedByHome(items)
    let until = performance.now() + TURN_MS
    for (const [at, { rows, isCurrent, namespaces }] of subscriptions.entries()) {
      if (performance.now() > until) {
        await nextTurn()
        until = performance.now() + TURN_MS
      }
      if (signal.aborted) return
      if (!isCurrent()) continue
      const taken = takenAt(byHome, namespaces, at, isCurrent)
      const hadRoom = await rows.replace(namespace, taken, () => nextTurn(), uncounted.get(at))
      if (!hadRoom) this.#leaveOut()
    }
    if (signal.aborted) return
    if (this.#leavesOut && !this.#isListed) this.#againLater()
    this.#isListed = true
    this.#lastList = { endedAt: clock.now(), tookMs: this.#listedMs }
    this.#isSynced = true
    this.#options.onChange(this)
  }

  #take(object: Arrived): void {
    for (const [at, { rows, isCurrent }] of this.#of(homeOf(object))) {
      if (!isCurrent(homeOf(object))) continue
      rows.tell(object.namespace, object.version)
      // Where something had no room lately, what has no outcome may be that.
      const lacking = this.#uncounted.has(at) ? { failure: rows.space.noRoom, isSkipped: true as const } : undefined
      if (!rows.take([object, object.outcomes.get(at) ?? lacking])) this.#leaveOut()
    }
    this.#options.onChange(this)
  }

  #gone(object: Arrived): void {
    for (const [, { rows, isCurrent }] of this.#of(homeOf(object))) {
      if (!isCurrent()) continue
      rows.tell(object.namespace, object.version)
      rows.gone(object.uid)
    }
    this.#options.onChange(this)
  }

  #troubled(error: Error | undefined): void {
    const isQuiet = error !== undefined && !this.#trouble && isKubeError(error, 'timeout')
    if (isQuiet && this.#renewal) return
    this.#renewal?.abort()
    this.#renewal = undefined
    if (isQuiet) void this.#awaitRenewal(error)
    else this.#setTrouble(error)
  }

  async #awaitRenewal(error: Error): Promise<void> {
    const { clock } = this.#options
    const renewal = new AbortController()
    this.#renewal = renewal
    await clock.sleep(RENEWED_WITHIN_MS, renewal.signal)
    if (!renewal.signal.aborted) this.#setTrouble(error)
  }

  #setTrouble(error: Error | undefined): void {
    if (this.#end.signal.aborted || (error === undefined && this.#trouble === undefined)) return
    this.#trouble = error && { error, since: this.#trouble?.since ?? this.#options.clock.now() }
    this.#options.onChange(this)
  }
}

/** About what an object takes of memory, as far as it matters. */
function bytesIn(object: object, enough: number): number {
  let bytes = 0
  const left: unknown[] = [object]
  while (left.length > 0 && bytes < enough) {
    const value = left.pop()
    bytes += BYTES_OF_VALUE
    if (typeof value === 'string') bytes += value.length
    else if (typeof value === 'object' && value !== null) for (const part of Object.values(value)) left.push(part)
  }
  return bytes
}

/** With its place in a map or list. */
const BYTES_OF_VALUE = 64

const NONE: ReadonlyMap<number, Outcome> = new Map()

function outcomeIn({ kind, facts }: Subscription, object: KubeObject, home: string): Outcome | undefined {
  try {
    return kind.take(object, facts.get(home))
  } catch {
    const { namespace = '', name } = object.metadata
    return { failure: `${namespace === '' ? name : `${namespace}/${name}`}: it cannot be read` }
  }
}

/** Where an object counts as living. */
const homeOf = ({ namespace }: Reduced): string => (namespace === '' ? HOME_OF_CLUSTER_OBJECTS : namespace)

function groupedByHome(items: readonly Arrived[]): ReadonlyMap<string, readonly Arrived[]> {
  const groups = new Map<string, Arrived[]>()
  for (const item of items) {
    const group = groups.get(homeOf(item))
    if (group) group.push(item)
    else groups.set(homeOf(item), [item])
  }
  return groups
}

function* takenAt(
  items: ReadonlyMap<string, readonly Arrived[]>,
  namespaces: Iterable<string>,
  at: number,
  isCurrent: Subscription['isCurrent'],
): Generator<Taken> {
  for (const home of namespaces)
    if (isCurrent(home)) for (const item of items.get(home) ?? []) yield [item, item.outcomes.get(at)]
}
