import { createHash } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { HOME_OF_CLUSTER_OBJECTS } from '#extract'
import type { GroupVersionKind } from '#kinds'
import { isKubeError, type KubeClient, reviewAccess, type ServedKind } from '#kube'
import { type Clock, FleetError, minutes, seconds } from '#model'
import type { Logger } from '#runtime'
import { kindText } from './compile.ts'
import { Feed, type Subscription } from './feed.ts'
import { type ListPauses, PausesOfKind } from './list-pauses.ts'

/** So many namespaces are watched one by one; more by one watch of the cluster, where that is allowed. */
const MAX_SINGLE = 8
/** Where it is not allowed: so many at most. */
const MAX_NAMESPACES = 200
/** After this a kind that was not there, or a question that failed, is looked at again. */
const LOOK_AGAIN_MS = seconds(30)
/** A first list that takes longer is told of. */
const REGISTER_WITHIN_MS = seconds(30)
/** Others wait so long at most for what is listed for the first time. */
const BEGINS_WITHIN_MS = minutes(5)
/** What may be read is asked so often. */
const REVIEW_EVERY_MS = seconds(60)

/** A target's interest, and what tells it from another. */
export interface Interest extends Omit<Subscription, 'isCurrent'> {
  /** of what it takes of these namespaces: equal ones need no new list */
  fingerprint(namespaces: readonly string[]): string
}

/** How reading a kind goes, for one target. */
export type KindState =
  /** `outside`: its objects can never be among those that are chosen, and why */
  | { readonly phase: 'live' | 'reading'; readonly outside?: string }
  /** these may not be listed; undefined: the whole cluster */
  | { readonly phase: 'forbidden'; readonly namespaces: readonly string[] | undefined; readonly message: string }
  | { readonly phase: 'absent' | 'failing'; readonly message: string }
  | { readonly phase: 'unchecked'; readonly message: string }

/** How fresh what is known of one place is. */
export interface WatchFreshness {
  readonly gvk: GroupVersionKind
  /** '': the whole cluster */
  readonly namespace: string
  /** how long it has not been followed, ms; 0: it is */
  readonly staleMs: number
  /** what is in the way, a sentence without a namespace */
  readonly why?: string
}

export interface KindWatchOptions {
  readonly gvk: GroupVersionKind
  readonly kube: KubeClient
  readonly clock: Clock
  readonly logger: Logger
  /** of this kind, which a former watch of it may have left */
  readonly pauses?: PausesOfKind
  /** something is otherwise for those who want the kind */
  readonly onChange: () => void
}

/** Of what is wanted of one place. */
interface Fingerprints {
  readonly whole: string
  readonly ofEach: ReadonlyMap<Subscription['rows'], string>
}

/** One place of a kind: the feed that serves it, and the one that shall. */
interface Place {
  readonly namespace: string | undefined
  readonly wantedAt: number
  readonly pauses: ListPauses
  active: Feed | undefined
  next: Feed | undefined
  /** it may not be listed: of this place, by an answer of the API server */
  isRefused: boolean
  reviewFault: string | undefined
}

/**
 * One kind, watched once for all targets that want it: namespace by namespace where those are few, else over the cluster. A kind that is
 * not installed, not permitted or slow is tried again in the background, and stops no other.
 */
export class KindWatch {
  readonly #options: KindWatchOptions
  readonly #end = new AbortController()
  readonly #wantedAt: number
  readonly #places = new Map<string | undefined, Place>()
  readonly #current = new Map<Subscription['rows'], Interest>()
  readonly #stopping = new Set<Promise<void>>()
  /** of what is wanted now */
  #scopesKnown: { readonly of: string; readonly scopes: readonly (string | undefined)[] } | undefined
  readonly #fingerprints = new Map<string | undefined, Fingerprints>()
  readonly #pauses: PausesOfKind
  /** since when a namespace is wanted without a break: what was missed before takes a new list */
  readonly #enrolments = new Map<Subscription['rows'], ReadonlyMap<string, number>>()
  #enrolled = 0
  #served: ServedKind | undefined
  #missing: string | undefined
  /** the whole cluster may not be listed */
  #isClusterRefused = false
  #loop: Promise<void> | undefined
  #wake: () => void = () => undefined

  constructor(options: KindWatchOptions) {
    this.#options = options
    this.#wantedAt = options.clock.now()
    this.#pauses = options.pauses ?? new PausesOfKind()
    setMaxListeners(0, this.#end.signal)
  }

  get gvk(): GroupVersionKind {
    return this.#options.gvk
  }

  get isWanted(): boolean {
    return this.#current.size > 0
  }

  /** Whether it lists something for the first time, and that goes well. */
  get isBeginning(): boolean {
    const { clock } = this.#options
    const isYoung = (at: number) => clock.now() - at < BEGINS_WITHIN_MS
    if (!this.isWanted || this.#missing !== undefined) return false
    if (!this.#served || this.#places.size === 0) return isYoung(this.#wantedAt)
    return [...this.#places.values()].some(
      ({ active, next }) => !active && next && !next.isSynced && !next.trouble && isYoung(next.startedAt),
    )
  }

  /** feeds that are open, for metrics */
  get watches(): number {
    return [...this.#places.values()].reduce((sum, { active, next }) => sum + (active ? 1 : 0) + (next ? 1 : 0), 0)
  }

  /** How fresh each place of it is; a kind that the cluster does not have counts as one place, stale since it is wanted. */
  freshness(): readonly WatchFreshness[] {
    const { gvk, clock } = this.#options
    const since = (at: number | undefined) => (at === undefined ? 0 : Math.max(0, clock.now() - at))
    const because = (why: string | undefined) => (why === undefined ? {} : { why })
    if (!this.#served) return [{ gvk, namespace: '', staleMs: since(this.#wantedAt), ...because(this.#missing) }]
    return [...this.#places.values()].map(({ namespace = '', wantedAt, active, next }) => {
      const feed = active ?? next
      const staleSince = feed?.isSynced ? feed.trouble?.since : (feed?.startedAt ?? wantedAt)
      const why = isForbidden(feed) ? 'the agent may not list and watch them' : feed?.trouble?.error.message
      return { gvk, namespace, staleMs: since(staleSince), ...because(why) }
    })
  }

  /** What targets want of it now. Whoever is not named any more gets nothing. */
  want(interests: readonly Interest[]): void {
    this.#current.clear()
    this.#fingerprints.clear()
    this.#scopesKnown = undefined
    for (const one of interests) this.#current.set(one.rows, one)
    for (const rows of this.#enrolments.keys()) if (!this.#current.has(rows)) this.#enrolments.delete(rows)
    for (const { rows, namespaces } of interests) {
      const known = this.#enrolments.get(rows)
      this.#enrolments.set(rows, new Map([...namespaces].map((name) => [name, known?.get(name) ?? ++this.#enrolled])))
    }
    this.#loop ??= this.#run()
    this.#wake()
  }

  /** How reading goes for one of those who want it. */
  stateFor(rows: Subscription['rows']): KindState {
    const interest = this.#current.get(rows)
    if (!interest || interest.namespaces.size === 0) return { phase: 'live' }
    if (this.#missing !== undefined) return { phase: 'absent', message: this.#missing }
    const places = this.#placesOf(interest)
    if (places === undefined) return { phase: 'reading' }
    const refused = places.filter(({ isRefused, active, next }) => isRefused || isForbidden(next ?? active))
    if (refused.length > 0) return this.#refusal(refused)
    const unchecked = places.find(({ reviewFault }) => reviewFault !== undefined)
    if (unchecked?.reviewFault !== undefined) return { phase: 'unchecked', message: unchecked.reviewFault }
    for (const place of places) {
      const feed = this.#isServed(place, rows) ? place.active : (place.next ?? place.active)
      const failure = feed && this.#failureOf(feed)
      if (failure !== undefined) return { phase: 'failing', message: failure }
    }
    const isLive = places.every((place) => this.#isServed(place, rows) && !place.active?.trouble)
    const outside = this.#outside(interest)
    return { phase: isLive ? 'live' : 'reading', ...(outside !== undefined && { outside }) }
  }

  /** Whether what is followed there is what it wants, whatever others want besides. */
  #isServed({ active, namespace }: Place, rows: Subscription['rows']): boolean {
    const wanted = this.#fingerprintsOf(namespace).ofEach.get(rows)
    return active?.isSynced === true && active.taken.get(rows) === wanted
  }

  #outside({ namespaces }: Interest): string | undefined {
    if (this.#served?.namespaced !== false || namespaces.has(HOME_OF_CLUSTER_OBJECTS)) return undefined
    return `${this.#options.gvk.kind} belongs to no namespace and counts as of ${HOME_OF_CLUSTER_OBJECTS}, which is none of those that are read`
  }

  async stop(): Promise<void> {
    this.#end.abort()
    this.#wake()
    // At once: whoever wants the kind next goes by it.
    for (const place of this.#places.values()) this.#breakOff(place)
    await this.#loop
    for (const place of this.#places.values()) this.#close(place)
    await Promise.all(this.#stopping)
  }

  async #run(): Promise<void> {
    const { signal } = this.#end
    let reviewedAt = this.#options.clock.now()
    while (!signal.aborted) {
      const woken = this.#woken()
      await this.#find()
      if (signal.aborted) return
      if (this.#served) this.#arrange()
      if (this.#served && this.#options.clock.now() - reviewedAt >= REVIEW_EVERY_MS) {
        await this.#review()
        reviewedAt = this.#options.clock.now()
        this.#arrange()
      }
      if (signal.aborted) return
      this.#options.onChange()
      await woken(LOOK_AGAIN_MS)
    }
  }

  /** @returns waits until `want` or a feed asks for a look, or for so long */
  #woken(): (ms: number) => Promise<void> {
    const { clock } = this.#options
    const nap = new AbortController()
    this.#wake = () => nap.abort()
    return async (ms) => {
      if (this.#end.signal.aborted) return
      await clock.sleep(Math.min(ms, this.#pauseLeftMs() ?? ms), nap.signal)
      nap.abort()
    }
  }

  async #find(): Promise<void> {
    if (this.#served) return
    const { kube, gvk } = this.#options
    const { signal } = this.#end
    try {
      this.#served = await kube.find(gvk.group ?? '', gvk.version, gvk.kind, signal)
      this.#missing = this.#served
        ? undefined
        : `the cluster does not have ${kindText(gvk)}: it is looked for again; install it, or mend the profile`
    } catch (error) {
      if (!signal.aborted)
        this.#missing = `whether the cluster has ${kindText(gvk)} is not known: ${FleetError.from(error).message}`
    }
  }

  /** Makes places of what is wanted, and gives each the feed it needs. */
  #arrange(): void {
    const wanted = this.#scopes()
    for (const namespace of wanted) {
      const place = this.#places.get(namespace) ?? {
        ...{ namespace, wantedAt: this.#options.clock.now(), pauses: this.#pauses.of(namespace) },
        ...{ active: undefined, next: undefined, isRefused: false, reviewFault: undefined },
      }
      this.#places.set(namespace, place)
      this.#feed(place)
    }
    // What is wider or narrower takes over first: until then the former one goes on.
    const isServed = wanted.every((namespace) => this.#places.get(namespace)?.active?.isSynced)
    for (const [namespace, place] of this.#places) {
      if (wanted.includes(namespace) || (!isServed && wanted.length > 0)) continue
      this.#close(place)
      this.#places.delete(namespace)
    }
    this.#pauses.forget(this.#options.clock.now(), (namespace) => this.#places.has(namespace))
  }

  #scopes(): readonly (string | undefined)[] {
    const of = `${this.#served?.namespaced} ${this.#isClusterRefused}`
    if (this.#scopesKnown?.of !== of) this.#scopesKnown = { of, scopes: this.#scopesNow() }
    return this.#scopesKnown.scopes
  }

  #scopesNow(): readonly (string | undefined)[] {
    const interests = [...this.#current.values()].filter(({ namespaces }) => namespaces.size > 0)
    if (interests.length === 0) return []
    if (!this.#served?.namespaced) return [undefined]
    const namespaces = [...new Set(interests.flatMap((one) => [...one.namespaces]))].sort()
    if (namespaces.length <= MAX_SINGLE) return namespaces
    return this.#isClusterRefused ? namespaces.slice(0, MAX_NAMESPACES) : [undefined]
  }

  #interestsIn(namespace: string | undefined): readonly Interest[] {
    return [...this.#current.values()].filter(({ namespaces }) =>
      namespace === undefined ? namespaces.size > 0 : namespaces.has(namespace),
    )
  }

  #fingerprint(namespace: string | undefined): string {
    return this.#fingerprintsOf(namespace).whole
  }

  #fingerprintsOf(namespace: string | undefined): Fingerprints {
    const known = this.#fingerprints.get(namespace)
    if (known) return known
    const ofEach = new Map(
      this.#interestsIn(namespace).map((one) => {
        const names = namespace === undefined ? [...one.namespaces].sort() : [namespace]
        const enrolments = this.#enrolments.get(one.rows)
        return [one.rows, digestOf([one.fingerprint(names), names.map((name) => enrolments?.get(name))])]
      }),
    )
    const made = { whole: digestOf([...ofEach.values()]), ofEach }
    this.#fingerprints.set(namespace, made)
    return made
  }

  /** Whose targets want otherwise than what is read of a place. */
  #changed(place: Place): readonly object[] {
    return [...this.#fingerprintsOf(place.namespace).ofEach].flatMap(([rows, fingerprint]) =>
      (place.next ?? place.active)?.taken.get(rows) === fingerprint ? [] : rows.space,
    )
  }

  #feed(place: Place): void {
    const fingerprint = this.#fingerprint(place.namespace)
    const { active, next } = place
    if ((next ?? active)?.fingerprint === fingerprint) return
    // One that reads well is let finish, so that change upon change does not keep it from ever being read.
    if (next && !next.trouble) return
    const isEnough = active?.fingerprint === fingerprint
    if (!isEnough && this.#pauseOf(place) > 0) return
    const spaces = this.#changed(place)
    if (next) this.#leave(next)
    place.next = undefined
    if (isEnough) return
    const { gvk, kube, clock, logger } = this.#options
    const { group = '', version, kind } = gvk
    const { plural, namespaced } = this.#served as ServedKind // arranged only where it is served
    const feed = new Feed({
      ...{ kube, clock, logger, fingerprint, namespace: place.namespace },
      taken: this.#fingerprintsOf(place.namespace).ofEach,
      resource: { group, version, kind, plural, namespaced },
      subscriptions: this.#interestsIn(place.namespace).map((one) => ({
        ...one,
        isCurrent: (of?: string) => {
          const now = this.#current.get(one.rows)
          return now?.kind === one.kind && (of === undefined || now.namespaces.has(of))
        },
      })),
      onChange: (fed) => this.#fed(place, fed),
    })
    place.pauses.begin(spaces, clock.now())
    place.next = feed
    feed.start()
  }

  #fed(place: Place, feed: Feed): void {
    if (feed.lastList) place.pauses.ended(feed.lastList)
    if (feed === place.next && feed.isSynced) {
      if (place.active) this.#leave(place.active)
      place.active = feed
      place.next = undefined
      place.isRefused = false
      this.#wake()
    } else if (place.namespace === undefined && isForbidden(feed) && this.#served?.namespaced) {
      if (!this.#isClusterRefused) this.#wake()
      this.#isClusterRefused = true
    }
    this.#options.onChange()
  }

  /** How long a place is left alone yet, ms. */
  #pauseOf(place: Place): number {
    return place.pauses.leftMs(this.#changed(place), this.#options.clock.now())
  }

  /** undefined: nothing waits for its pause */
  #pauseLeftMs(): number | undefined {
    const waiting = this.#scopes()
      .flatMap((namespace) => this.#places.get(namespace) ?? [])
      .filter(
        ({ namespace, active, next }) =>
          (!next || next.trouble) && (next ?? active)?.fingerprint !== this.#fingerprint(namespace),
      )
    if (waiting.length === 0) return undefined
    return Math.max(1, Math.min(...waiting.map((place) => this.#pauseOf(place))))
  }

  #placesOf({ namespaces }: Interest): readonly Place[] | undefined {
    if (!this.#served) return undefined
    const scopes = this.#scopes().filter((one) => one === undefined || namespaces.has(one))
    const places = scopes.map((one) => this.#places.get(one))
    return places.some((one) => one === undefined) ? undefined : (places as readonly Place[]) // just looked at
  }

  #refusal(places: readonly Place[]): KindState {
    const { gvk } = this.#options
    const plural = `${this.#served?.plural}${gvk.group ? `.${gvk.group}` : ''}`
    const names = places.flatMap(({ namespace }) => namespace ?? [])
    const isCluster = names.length < places.length
    const where = isCluster
      ? 'in the cluster'
      : `in ${names.slice(0, 10).join(', ')}${names.length > 10 ? ' and others' : ''}`
    const message = `${plural} may not be listed and watched ${where}: grant that to the agent (\`clusterpulse inventory-role\` prints the role); rows that are there stay`
    return { phase: 'forbidden', namespaces: isCluster ? undefined : names, message }
  }

  #failureOf(feed: Feed): string | undefined {
    const { clock, gvk } = this.#options
    if (feed.trouble && clock.now() - feed.trouble.since >= REGISTER_WITHIN_MS / 3)
      return `${kindText(gvk)}: ${feed.trouble.error.message}`
    if (!feed.isSynced && clock.now() - feed.startedAt >= REGISTER_WITHIN_MS)
      return `${kindText(gvk)}: the first list takes more than ${REGISTER_WITHIN_MS / 1000} s; it is waited for`
    return undefined
  }

  /** Asks what may be read: a watch that is open goes on for minutes after the permission is gone. */
  async #review(): Promise<void> {
    const { group = '' } = this.#options.gvk
    const { plural } = this.#served as ServedKind // reviewed only where it is served
    const ask = async (namespace: string | undefined) => {
      const attributes = { group, resource: plural, ...(namespace !== undefined && { namespace }) }
      for (const verb of ['list', 'watch'])
        if (!(await reviewAccess(this.#options.kube, undefined, { ...attributes, verb }, this.#end.signal)))
          return false
      return true
    }
    for (const place of this.#places.values()) {
      try {
        place.isRefused = !(await ask(place.namespace))
        place.reviewFault = undefined
      } catch (error) {
        if (this.#end.signal.aborted) return
        // A cluster that is away says nothing of rights; its watches tell.
        if (isKubeError(error, 'forbidden') || isKubeError(error, 'not_found'))
          place.reviewFault = `what may be read is not known: ${error.message}`
      }
    }
    if (!this.#isClusterRefused) return
    this.#isClusterRefused = !(await ask(undefined).catch(() => false))
  }

  #breakOff({ next, pauses }: Place): void {
    const tookMs = next?.listingMs
    if (tookMs !== undefined) pauses.brokenOff({ endedAt: this.#options.clock.now(), tookMs })
  }

  #close(place: Place): void {
    this.#breakOff(place)
    for (const feed of [place.active, place.next]) if (feed) this.#leave(feed)
    place.active = undefined
    place.next = undefined
  }

  #leave(feed: Feed): void {
    const stopping = feed.stop().finally(() => this.#stopping.delete(stopping))
    this.#stopping.add(stopping)
  }
}

const isForbidden = (feed: Feed | undefined): boolean => isKubeError(feed?.trouble?.error, 'forbidden')

const digestOf = (what: unknown): string => createHash('sha256').update(JSON.stringify(what)).digest('hex')
