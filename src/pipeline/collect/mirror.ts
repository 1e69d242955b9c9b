import { setMaxListeners } from 'node:events'
import type { KubeClient } from '#kube'
import { type Batch, type Clock, type ClusterName, FleetError, type RowsPart, type Source } from '#model'
import type { Logger } from '#runtime'
import { Collection, giveAll, type Reading, type WholePart, wantingOf } from './collection.ts'
import { WorkCost } from './cost.ts'
import { endingWith } from './ending.ts'
import { Following, nameOf } from './following.ts'
import { poll } from './poll.ts'
import { nextOnGrid } from './schedule.ts'
import { setsOf, stepOf } from './steps.ts'
import type { Collector, FoldContext, Read, ReadEvent } from './types.ts'
import type { WatchBudget } from './watch-budget.ts'

/** Changes that come so soon after a step are told together. */
const GATHER_MS = 100
/** Where nothing moved for longer: what comes together is told together, and waits for nothing else. */
const AT_ONCE_MS = 10
/** What changes all the time is told less often the more it costs: so many times what making it took. */
const PAUSE_PER_COST = 4

/** What could be followed and is polled is listed at a pace of its own, as somebody waits for it. */
export interface Relisting {
  readonly everyMs: number
  /** as roles write them, such as `deployments.apps` */
  readonly resources: readonly string[]
}

export interface MirrorOptions {
  readonly cluster: ClusterName
  /** of the steps */
  readonly source: Source
  /**
   * Takes what moved, as a step between two rounds whose sequence is 0 still; called in the order in which they were made. The next
   * is made when this one was taken: what moves meanwhile is gathered.
   */
  readonly onStep: (step: Batch) => Promise<void>
  readonly watches: WatchBudget
  /** what is listed between rounds as well; absent: nothing */
  readonly relisting?: Relisting
  readonly clock: Clock
  readonly random: () => number
  readonly logger: Logger
}

/**
 * What a cluster holds, as far as collectors want it: their folds stay open from round to round. A read with the verb `watch` is
 * listed once and followed from there, for all folds that want it; the others are polled by rounds, and between them where that is
 * wanted. What moves between two rounds becomes a step.
 */
export class Mirror {
  readonly #options: MirrorOptions
  readonly #cost = new WorkCost()
  readonly #collections = new Map<Collector, Collection>()
  #wanting: ReadonlyMap<Read, readonly Collection[]> = new Map()
  readonly #followings = new Map<Read, Following>()
  /** what was given of these is half of the truth now */
  readonly #listing = new Set<Read>()
  /** lists between two rounds that are under way */
  readonly #relists = new Map<Read, { readonly end: AbortController; readonly done: Promise<void> }>()
  #relisting: Promise<void> | undefined
  /** of the newest round */
  #kube: KubeClient | undefined
  readonly #leaving = new AbortController()
  /** before the first round there is nothing that steps could begin at */
  #isHeld = true
  #telling: Promise<void> | undefined

  constructor(options: MirrorOptions) {
    this.#options = options
    setMaxListeners(0, this.#leaving.signal) // all watches end with it
  }

  /** Collections of exactly these, in this order. One that is new gets all of its reads from their beginning. */
  open(collectors: readonly Collector[], context: Omit<FoldContext, 'now'>): void {
    const { clock } = this.#options
    for (const known of this.#collections.keys()) if (!collectors.includes(known)) this.#collections.delete(known)
    for (const collector of collectors) {
      if (this.#collections.has(collector)) continue
      this.#collections.set(collector, new Collection(collector, context, clock, true))
      for (const read of collector.reads) this.#followings.get(read)?.leave()
    }
    this.#wanting = wantingOf([...this.#collections.values()])
    for (const [read, following] of this.#followings) {
      if (this.#wanting.has(read)) continue
      following.leave()
      this.#followings.delete(read)
    }
  }

  collection(collector: Collector): Collection | undefined {
    return this.#collections.get(collector)
  }

  /** Makes every read of these current, all at the same time; what is followed is not read. None of them fails. */
  read(collectors: readonly Collector[], reading: Reading): ReadonlyMap<Read, Promise<void>> {
    this.#kube = reading.kube
    const { relisting } = this.#options
    if (relisting) this.#relisting ??= this.#relistEvery(relisting.everyMs)
    for (const collector of collectors) this.#collections.get(collector)?.begin()
    const wanted = new Set(collectors.flatMap(({ reads }) => reads))
    return new Map(
      [...wanted].map((read) => [read, isFollowable(read) ? this.#refresh(read, reading) : this.#poll(read, reading)]),
    )
  }

  /** What it would say is of a time before, or half of a list that is read anew: it is left out, and what is known keeps its age. */
  isStale(collector: Collector): boolean {
    const hasFailed = this.#collections.get(collector)?.hasFailed === true
    return collector.reads.some(
      (read) => this.#followings.get(read)?.isStale || (this.#listing.has(read) && !hasFailed),
    )
  }

  /** No step is made until `release`: a round is being handed in, and nothing of it may come after what is newer. */
  hold(): void {
    this.#isHeld = true
  }

  /** What a round says, which is being handed in. */
  told({ parts, tables = [] }: Pick<Batch, 'parts' | 'tables'>): void {
    for (const [{ name, rows }, one] of this.#collections) {
      const said = parts.filter(({ collector }) => collector === name)
      one.told({ parts: said, tables: tables.filter(isWhole).filter(({ source }) => source === rows?.id) })
    }
  }

  /** What was said last did not come to where steps go. */
  untold(): void {
    for (const one of this.#collections.values()) one.untold()
  }

  release(): void {
    if (!this.#isHeld) return
    this.#isHeld = false
    this.#tellSoon()
  }

  /** Reads that could be followed, and are polled: which and why, for people. Sorted. */
  polled(): readonly string[] {
    const all = [...this.#followings].flatMap(([{ resource }, { why }]) =>
      resource && why !== undefined ? [`${nameOf(resource)}: ${why}`] : [],
    )
    return all.sort()
  }

  /** Ends all watches, and tells nothing any more. Resolves when nothing runs. */
  async leave(): Promise<void> {
    this.#leaving.abort()
    await Promise.all([...this.#followings.values()].map((following) => following.left()))
    await this.#relisting
    await Promise.all([...this.#relists.values()].map(({ done }) => done))
    await this.#telling
  }

  async #refresh(read: Read, reading: Reading): Promise<void> {
    const known = this.#followings.get(read)
    if (known) return known.refresh(reading)
    const { watches, clock, random } = this.#options
    const following = new Following(read, {
      give: (event) => this.#give(read, event),
      onListing: (isListing) => {
        if (isListing) {
          this.#listing.add(read)
          // It would be the older of the two.
          this.#relists.get(read)?.end.abort()
        } else this.#listing.delete(read)
        this.#tellSoon()
      },
      watches,
      signal: this.#leaving.signal,
      clock,
      random,
    })
    this.#followings.set(read, following)
    return following.refresh(reading)
  }

  /** Given when it is whole: what others make of it meanwhile lacks nothing. */
  async #poll(read: Read, reading: Reading): Promise<void> {
    for (const event of await this.#listed(read, reading)) this.#give(read, event)
  }

  async #listed(read: Read, reading: Reading): Promise<readonly ReadEvent[]> {
    const events: ReadEvent[] = []
    await poll(read, { ...reading, take: (event) => events.push(event) > 0 })
    return events
  }

  /** Each read for itself, on one grid: a list that takes long leaves out the places it covers. */
  async #relistEvery(everyMs: number): Promise<void> {
    const { clock } = this.#options
    const { signal } = this.#leaving
    const anchor = clock.now()
    while (!signal.aborted) {
      const now = clock.now()
      await clock.sleep(nextOnGrid(anchor, everyMs, now) - now, signal)
      for (const read of this.#followings.keys()) if (this.#isRelisted(read)) this.#relist(read)
    }
  }

  #isRelisted(read: Read): boolean {
    const { resource } = read
    const isWanted = resource && this.#options.relisting?.resources.includes(nameOf(resource))
    return isWanted === true && this.#followings.get(read)?.why !== undefined
  }

  #relist(read: Read): void {
    const kube = this.#kube
    const { signal } = this.#leaving
    if (!kube || signal.aborted || this.#relists.has(read) || this.#listing.has(read)) return
    const { clock, random } = this.#options
    const { end, release } = endingWith(signal)
    const done = this.#listed(read, { kube, signal: end.signal, clock, random }).then((events) => {
      release()
      this.#relists.delete(read)
      // What is known stays until there is something newer; that it cannot be read is for the round to say.
      if (end.signal.aborted || events.some(({ type }) => type === 'failed')) return
      for (const event of events) this.#give(read, event)
    })
    this.#relists.set(read, { end, done })
  }

  #give(read: Read, event: ReadEvent): boolean {
    const isWanted = giveAll(this.#wanting.get(read) ?? [], read, event)
    if (!this.#listing.has(read)) this.#tellSoon()
    return isWanted
  }

  #tellSoon(): void {
    if (this.#leaving.signal.aborted) return
    this.#telling ??= this.#tell().finally(() => {
      this.#telling = undefined
      if (!this.#isHeld && this.#moved().length > 0) this.#tellSoon()
    })
  }

  async #tell(): Promise<void> {
    const { clock } = this.#options
    const { signal } = this.#leaving
    // The last step was a pause ago, or more.
    await clock.sleep(AT_ONCE_MS, signal)
    while (!signal.aborted && !this.#isHeld) {
      const moved = this.#moved()
      if (moved.length === 0) return
      const madeAt = clock.now()
      const { result: said, costMs } = this.#cost.of(() =>
        moved
          .map((one) => ({ one, ...one.news(madeAt) }))
          .filter(({ parts, tables }) => parts.length + tables.length > 0),
      )
      if (said.length > 0) await this.#hand(said, madeAt)
      await clock.sleep(Math.max(GATHER_MS, PAUSE_PER_COST * costMs), signal)
    }
  }

  async #hand(
    said: readonly ({ readonly one: Collection } & ReturnType<Collection['news']>)[],
    madeAt: number,
  ): Promise<void> {
    const { onStep, cluster, source, logger } = this.#options
    const head = { cluster, source, collectedAt: madeAt }
    const [first = [], ...more] = setsOf(said.flatMap(({ tables }) => tables))
    const steps = [
      stepOf(
        head,
        first,
        said.flatMap(({ parts }) => parts),
      ),
      ...more.map((tables) => stepOf(head, tables)),
    ]
    for (const { one, ...what } of said) one.told(what)
    try {
      // Begun at once, so that they are numbered in the order in which they were made.
      await Promise.all(steps.map((step) => onStep(step)))
    } catch (error) {
      // The next round says it.
      for (const { one } of said) one.untold()
      if (!this.#leaving.signal.aborted)
        logger.warn({ cluster, err: FleetError.from(error) }, 'what moved in a cluster could not be handed over')
    }
  }

  /** What something of was taken, and can be told. */
  #moved(): readonly Collection[] {
    return [...this.#collections.values()].filter(
      ({ hasMoved, hasFailed, collector: { reads } }) =>
        hasMoved &&
        !hasFailed &&
        reads.some((read) => this.#followings.get(read)?.isFollowed || this.#isRelisted(read)) &&
        !reads.some((read) => this.#listing.has(read)),
    )
  }
}

const isWhole = (part: RowsPart): part is WholePart => part.outcome !== 'changed'

/** Reads of namespaces that are named are those of collectors that are read by themselves. */
const isFollowable = ({ verbs, one, namespaces }: Read): boolean => verbs.includes('watch') && !one && !namespaces
