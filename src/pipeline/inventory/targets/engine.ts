import { setImmediate } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { HOME_OF_CLUSTER_OBJECTS, NAMESPACE_WATCH, type NamespaceFacts, WATCH } from '#extract'
import {
  type Fault,
  type KollectKnown,
  type KollectProfile,
  kollectClusterScope,
  kollectClusterTarget,
  kollectFaults,
  kollectProfile,
  kollectScope,
  kollectTarget,
} from '#kinds'
import type { KubeClient } from '#kube'
import type { Clock } from '#model'
import type { Logger } from '#runtime'
import type { RowSink, TargetKey, TargetRows } from '../rows.ts'
import type { SecondLook } from '../second-look.ts'
import { underScopes } from './ceiling.ts'
import {
  type CompiledKind,
  type CompiledTarget,
  compileTarget,
  kindText,
  type TargetDefaults,
  type TargetSpec,
} from './compile.ts'
import type { Declarations, Declared } from './declared.ts'
import type { ExtractionTimes } from './extraction-time.ts'
import { KindRows } from './kind-rows.ts'
import { type Interest, type KindState, KindWatch, type WatchFreshness } from './kind-watch.ts'
import { PausesOfKind } from './list-pauses.ts'
import type { RowSpaces } from './row-space.ts'

/** Why a target is not read, or not all of it. */
export interface Degradation {
  readonly reason:
    | 'Suspended'
    | 'TargetInvalid'
    | 'ProfileNotFound'
    | 'ProfileInvalid'
    | 'InformerRegistrationFailed'
    | 'ExtractionFailed'
    | 'AccessCheckFailed'
    | 'ScopeGVKDenied'
    | 'ScopeNamespaceDenied'
    | 'ScopeLookupFailed'
  readonly message: string
}

/** How a target is doing. */
export interface TargetState {
  /** of the spec that all this is about */
  readonly generation: number
  /** all that it chooses stands in its rows */
  readonly isComplete: boolean
  /** its lists are being read for the first time since it is as it is: the number of rows is not known yet */
  readonly isReading: boolean
  /** since when this process knows it, ms */
  readonly since: number
  readonly degraded?: Degradation
  /** what may not be listed, a sentence */
  readonly forbidden?: string
  /** all of what it reads is forbidden */
  readonly isBlind?: true
  /** what it asks for and can never bring, a sentence */
  readonly outside?: string
  readonly matchedNamespaces: readonly string[]
  readonly effectiveNamespaces: readonly string[]
  readonly activeRules: number
  /** undefined: none of its lists was read since the start, and what it had before still stands in sinks */
  readonly rows?: number
  readonly failures: number
  readonly lastFailure?: string
}

/** Everything that decides what is collected. */
export interface TargetWorld {
  readonly declared: Declarations
  readonly namespaces: readonly NamespaceFacts[]
  /**
   * What of all this is not followed now, and may be old, a sentence: what a target takes is not judged anew by it, so that none of its
   * rows goes
   */
  readonly unfollowed?: string
  /** Where all this can be read anew: what takes rows away is gone by once it holds by a look that began later. */
  readonly looks?: Pick<SecondLook, 'done' | 'ask'>
}

export interface TargetEngineOptions {
  readonly kube: KubeClient
  readonly rows: RowSink
  readonly defaults: TargetDefaults
  /** by what targets are judged, as at admission */
  readonly known: KollectKnown
  /** only these namespaces are ever read; []: all */
  readonly watchNamespaces: readonly string[]
  /** a target that no scope bounds collects nothing */
  readonly scopeRequired?: boolean
  readonly times: ExtractionTimes
  readonly spaces: RowSpaces
  readonly clock: Clock
  readonly logger: Logger
  /** the target is doing otherwise, or is not there any more */
  readonly onChange: (key: TargetKey) => void
}

/** as what is not followed is called */
const PROFILES = kollectProfile.definition.plural

const GATHER_MS = 100
/** Targets are prepared for no longer in one piece, ms; one takes what it takes. */
const TURN_MS = 10
/** What is wrong with the declaration itself, and not with what it reads. */
const MISTAKES: ReadonlySet<Degradation['reason']> = new Set(['TargetInvalid', 'ProfileNotFound', 'ProfileInvalid'])

/**
 * Targets that run: what is declared becomes watches, and what those bring becomes rows. One watch for each kind, whatever number of
 * targets wants it; but what a namespace wants whose targets are slow is read apart, and after what others begin with, so that nobody
 * waits for its lists. What a scope denies, what is deleted and what is not chosen any more loses its rows; what cannot be read keeps them.
 */
export class TargetEngine {
  readonly #options: TargetEngineOptions
  readonly #targets = new Map<string, RunningTarget>()
  /** prepared, and not running yet */
  readonly #coming = new Map<string, RunningTarget>()
  readonly #watches = new Map<string, KindWatch>()
  /** of what is watched, or was lately, by the names of watches */
  readonly #pauses = new Map<string, PausesOfKind>()
  readonly #stopping = new Set<Promise<void>>()
  readonly #stop = new AbortController()
  #telling: Promise<void> | undefined
  /** false: a namespace is to be read apart from now on */
  #isDivided = true
  /** something is read apart once others have begun */
  #isWaiting = false

  constructor(options: TargetEngineOptions) {
    this.#options = options
    options.times.onSlow = () => {
      this.#isDivided = false
      this.#tellSoon()
    }
  }

  /** How a target is doing; undefined: it was never heard of, or is gone. */
  state(key: TargetKey): TargetState | undefined {
    return this.#targets.get(textOf(key))?.state
  }

  /** kinds that are watched, and open watches */
  get load(): { readonly kinds: number; readonly watches: number } {
    return {
      kinds: new Set([...this.#watches.values()].map(({ gvk }) => kindText(gvk))).size,
      watches: [...this.#watches.values()].reduce((sum, { watches }) => sum + watches, 0),
    }
  }

  /** Every place that is watched. */
  watches(): readonly WatchFreshness[] {
    return [...this.#watches.values()].flatMap((watch) => watch.freshness())
  }

  /** Takes the world as it is now. */
  update(world: TargetWorld): void {
    if (this.#stop.signal.aborted) return
    const present = new Set<string>()
    for (const { key, declared } of allTargets(world.declared)) {
      const text = textOf(key)
      present.add(text)
      const known = this.#targets.get(text)
      const running = known ?? this.#coming.get(text) ?? new RunningTarget(key, this.#options)
      this.#targets.set(text, running)
      running.update(declared, world)
    }
    this.#coming.clear()
    for (const [text, target] of this.#targets) {
      if (present.has(text)) continue
      target.drop()
      this.#targets.delete(text)
      this.#options.onChange(target.key)
    }
    this.#watch()
    this.#tellSoon()
  }

  /** Judges and compiles targets that do not run yet, a little at a time: of many targets together it takes long. `update` takes it over. */
  async prepare(world: TargetWorld): Promise<void> {
    let until = performance.now() + TURN_MS
    for (const { key, declared } of allTargets(world.declared)) {
      if (this.#stop.signal.aborted) return
      const text = textOf(key)
      if (this.#targets.has(text)) continue
      const running = this.#coming.get(text) ?? new RunningTarget(key, this.#options)
      this.#coming.set(text, running)
      running.prepare(declared, world)
      if (performance.now() < until) continue
      await setImmediate()
      until = performance.now() + TURN_MS
    }
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await Promise.all([...this.#watches.values()].map((watch) => watch.stop()))
    await Promise.all(this.#stopping)
    await this.#telling
  }

  #watch(): void {
    const { kube, clock, logger } = this.#options
    this.#isDivided = true
    const wanted = new Map<
      string,
      { readonly kind: CompiledKind; readonly interests: Interest[]; readonly isApart: boolean }
    >()
    for (const target of this.#targets.values())
      for (const { kind, interest } of target.interests) {
        const name = this.#watchName(kind, target.key)
        const isApart = this.#isApart(target.key)
        const of = wanted.get(name) ?? { kind, interests: [], isApart }
        wanted.set(name, of)
        of.interests.push(interest)
      }
    const isBeginning = this.#isBeginning
    this.#isWaiting = false
    for (const [name, { kind, interests, isApart }] of wanted) {
      const known = this.#watches.get(name)
      if (isApart && isBeginning && !known) {
        this.#isWaiting = true
        continue
      }
      const pauses = this.#pauses.get(name) ?? new PausesOfKind()
      this.#pauses.set(name, pauses)
      const onChange = () => this.#tellSoon()
      const watch = known ?? new KindWatch({ gvk: kind.gvk, kube, clock, logger, pauses, onChange })
      this.#watches.set(name, watch)
      watch.want(interests)
    }
    for (const [name, watch] of this.#watches) {
      if (wanted.has(name)) continue
      this.#watches.delete(name)
      const stopping = watch.stop().finally(() => this.#stopping.delete(stopping))
      this.#stopping.add(stopping)
    }
    for (const [name, pauses] of this.#pauses)
      if (!this.#watches.has(name) && pauses.forget(clock.now(), () => false)) this.#pauses.delete(name)
  }

  /** Whether what is read together is listed for the first time. */
  get #isBeginning(): boolean {
    return [...this.#watches].some(([name, watch]) => name === kindText(watch.gvk) && watch.isBeginning)
  }

  #isApart({ namespace }: TargetKey): boolean {
    return this.#options.times.of(namespace).isSlow
  }

  #watchName({ gvk }: CompiledKind, key: TargetKey): string {
    return this.#isApart(key) ? `${kindText(gvk)} of ${key.namespace}` : kindText(gvk)
  }

  /** Much happens at once: what it makes of targets is looked at after a moment, for all of them. */
  #tellSoon(): void {
    if (this.#stop.signal.aborted) return
    this.#telling ??= this.#options.clock.sleep(GATHER_MS, this.#stop.signal).then(() => {
      this.#telling = undefined
      if (this.#stop.signal.aborted) return
      if (!this.#isDivided || (this.#isWaiting && !this.#isBeginning)) this.#watch()
      for (const target of this.#targets.values())
        if (target.look((kind) => this.#watches.get(this.#watchName(kind, target.key))))
          this.#options.onChange(target.key)
    })
  }
}

const textOf = ({ namespace, name }: TargetKey): string => `${namespace}/${name}`

function* allTargets({ targets, clusterTargets }: Declarations) {
  for (const declared of targets) yield { key: { namespace: declared.namespace, name: declared.name }, declared }
  for (const declared of clusterTargets) yield { key: { namespace: '', name: declared.name }, declared }
}

/** And no pattern of names. */
const isName = (text: string): boolean => /^[a-z0-9-]+$/.test(text)

type Plan =
  | {
      readonly reads: readonly { readonly kind: CompiledKind; readonly interest: Interest }[]
      readonly degraded?: never
      readonly matched: readonly string[]
      readonly effective: readonly string[]
      /** namespaces it names that this agent never reads, a sentence */
      readonly outside?: string
    }
  | {
      readonly degraded: Degradation
      /** what was read before may not be any more */
      readonly isDenied?: boolean
      readonly reads?: never
      readonly matched?: readonly string[]
    }

/** A plan that waits for the end of a look. */
interface Looking {
  readonly by: unknown
  readonly look: number
}

/** One target, and what was made of it so far. */
class RunningTarget {
  readonly key: TargetKey
  state: TargetState | undefined
  readonly #options: TargetEngineOptions
  readonly #since: number
  #rows: TargetRows | undefined
  #isDropped = false
  /** form of which all was read once: what is read again, such as for a namespace more, does not take that back */
  #readRevision = -1
  #prepared: Prepared | undefined
  #revision = 0
  #plan: Plan = { degraded: { reason: 'ProfileNotFound', message: '' } }
  #isPlanned = false
  /** it would be read otherwise by what is known, which may be old */
  #doubt: Degradation | undefined
  /** it would take rows away, by what was known before this look is over */
  #looking: Looking | undefined
  #rules = 0
  #generation = 0
  readonly #held = new Map<string, KindRows>()

  constructor(key: TargetKey, options: TargetEngineOptions) {
    this.key = key
    this.#options = options
    this.#since = options.clock.now()
  }

  get interests(): readonly { readonly kind: CompiledKind; readonly interest: Interest }[] {
    return this.#plan.reads ?? []
  }

  /** What `update` does first, where it costs something. */
  prepare(declared: Declared<TargetSpec>, world: TargetWorld): void {
    if (declared.spec.suspend) return
    try {
      const { of } = this.#scopes(world)
      if (of) this.#prepare(declared, world, of)
    } catch {
      // It is told by `update`.
    }
  }

  update(declared: Declared<TargetSpec>, world: TargetWorld): void {
    this.#generation = declared.generation ?? 0
    this.#rules = declared.spec.resourceRules?.length ?? 0
    const [prepared, revision] = [this.#prepared, this.#revision]
    const plan = this.#planOf(declared, world)
    this.#doubt = this.#doubtOf(plan, world)
    this.#looking = this.#doubt ? undefined : this.#lookFor(plan, declared, world)
    if (this.#doubt || this.#looking) {
      this.#prepared = prepared
      this.#revision = revision
      this.#rows?.setComplete(false, this.#doubt !== undefined)
      if (!this.#isPlanned && this.#doubt) this.#plan = { degraded: this.#doubt }
      return
    }
    this.#plan = plan
    this.#isPlanned = true
    if (this.#plan.degraded) {
      // What was read stays, though nobody keeps it up to date; only what may not be read goes.
      if (this.#plan.isDenied || this.#neverHadRows(declared, this.#plan.degraded)) this.drop()
      else this.#rows?.setComplete(false)
      return
    }
    if (this.#plan.effective.length === 0) {
      this.drop()
      return
    }
    this.#isDropped = false
    const kinds = new Set(this.#plan.reads.map(({ kind }) => kindText(kind.gvk)))
    for (const [name, rows] of this.#held) {
      if (kinds.has(name)) continue
      rows.limitTo(() => false)
      this.#held.delete(name)
    }
    for (const { interest } of this.#plan.reads)
      interest.rows.limitTo((namespace) => interest.namespaces.has(namespace || HOME_OF_CLUSTER_OBJECTS))
  }

  #planOf(declared: Declared<TargetSpec>, world: TargetWorld): Plan {
    try {
      return this.#planned(declared, world)
    } catch (error) {
      // An object that no schema has seen, such as one of a former version: it stops nobody but itself.
      this.#options.logger.error({ target: this.key, err: error }, 'a target of inventory cannot be planned')
      return { degraded: { reason: 'TargetInvalid', message: 'it, its profile or a scope cannot be read' } }
    }
  }

  /** Why a plan is not gone by: it would take rows away, or read others, and is made by what may be old. */
  #doubtOf(plan: Plan, { unfollowed }: TargetWorld): Degradation | undefined {
    // A profile that is not known may have been made since.
    const mayBeMade = plan.degraded?.reason === 'ProfileNotFound' && unfollowed?.includes(PROFILES)
    const takesNothing = plan.degraded && !plan.isDenied && !mayBeMade
    if (unfollowed === undefined || takesNothing || (!mayBeMade && this.#isPlanned && isSamePlan(plan, this.#plan)))
      return undefined
    return {
      reason: 'ScopeLookupFailed',
      message: `${unfollowed}: what it takes now is judged once that is over; until then its rows stay`,
    }
  }

  /**
   * A plan that takes rows away waits for a second look, and for one more where it is another by then. What an earlier start brought
   * stands in sinks, and no plan is known by which it came: the first one of now may take it away.
   */
  #lookFor(plan: Plan, { spec, said }: Declared<TargetSpec>, { looks }: TargetWorld): Looking | undefined {
    const takesNothing = plan.degraded && !plan.isDenied
    const isNew = !this.#rows && said === undefined
    if (!looks || takesNothing || isNew || (this.#isPlanned && takesAllOf(this.#plan, plan))) return undefined
    const by = [takenBy(plan), spec]
    const looking = isDeepStrictEqual(by, this.#looking?.by) ? this.#looking : { by, look: looks.ask() }
    return looking && looks.done >= looking.look ? undefined : looking
  }

  /** A mistake in what never brought a row must not hold up what other targets bring; and nothing of it can be lost. */
  #neverHadRows({ said }: Declared<TargetSpec>, { reason }: Degradation): boolean {
    // Numbers are written a little late: of one that was read last there may be rows in sinks, and that it has none says nothing.
    const wasMistake = said === undefined || (said.count === 0 && MISTAKES.has(said.degraded as Degradation['reason']))
    return !this.#isOfCluster && !this.#rows && wasMistake && MISTAKES.has(reason)
  }

  /** Its rows go, and that it has none is all there is to know. */
  drop(): void {
    if (this.#isDropped) return
    const rows = this.#rows ?? this.#options.rows.target(this.key)
    rows.drop()
    this.#isDropped = true
    this.#readRevision = -1
    this.#rows = undefined
    for (const held of this.#held.values()) held.release()
    this.#held.clear()
  }

  /** Looks how it is doing. @returns whether that is otherwise than before */
  look(watchOf: (kind: CompiledKind) => KindWatch | undefined): boolean {
    const before = this.state
    const now = this.#looked(watchOf)
    this.state = now
    const isHindered = now.degraded !== undefined || now.forbidden !== undefined
    if (this.#plan.reads) this.#rows?.setComplete(now.isComplete, isHindered, this.#readRevision >= 0)
    // Of what is declared so that it reads nothing nobody waits for a list: others go on, and its rows stay in sinks.
    else if (!this.#isDropped)
      this.#options.rows.target(this.key).setComplete(false, !now.isReading, this.#isPlanned && !this.#doubt)
    return !isDeepStrictEqual(before, now)
  }

  #looked(watchOf: (kind: CompiledKind) => KindWatch | undefined): TargetState {
    const plan = this.#plan
    const states = (plan.reads ?? []).map(
      ({ kind, interest }): KindState => watchOf(kind)?.stateFor(interest.rows) ?? { phase: 'reading' },
    )
    if (plan.reads && states.every(({ phase }) => phase === 'live')) this.#readRevision = this.#revision
    const isCounted = this.#isDropped || this.#readRevision >= 0 || states.some(({ phase }) => phase === 'live')
    const held = [...this.#held.values()]
    const failures = held.reduce((sum, rows) => sum + rows.failures, 0)
    const lastFailure = held.map((rows) => rows.lastFailure).find((one) => one !== undefined)
    const base = {
      generation: this.#generation,
      since: this.#since,
      matchedNamespaces: plan.matched ?? [],
      effectiveNamespaces: plan.reads ? plan.effective : [],
      activeRules: this.#rules,
      ...(isCounted && { rows: this.#rows?.size ?? 0 }),
      failures,
      ...(lastFailure !== undefined && { lastFailure }),
    }
    if (!this.#isPlanned && this.#looking) return { ...base, isComplete: false, isReading: true }
    if (plan.degraded) return { ...base, isComplete: false, isReading: false, degraded: this.#doubt ?? plan.degraded }
    const forbidden = states.flatMap((one) => (one.phase === 'forbidden' ? [one.message] : []))
    const degraded = this.#doubt ?? degradationOf(states, failures, lastFailure)
    const outside = [plan.outside ?? [], ...states.map((one) => ('outside' in one && one.outside) || [])].flat()
    return {
      ...base,
      isComplete: states.every(({ phase }) => phase === 'live') && !degraded && !this.#looking,
      isReading: this.#readRevision !== this.#revision && states.some(({ phase }) => phase === 'reading'),
      ...(degraded && { degraded }),
      ...(forbidden.length > 0 && { forbidden: forbidden.join('; ') }),
      ...(forbidden.length > 0 && forbidden.length === states.length && { isBlind: true as const }),
      ...(outside.length > 0 && { outside: outside.join('; ') }),
    }
  }

  #planned(target: Declared<TargetSpec>, world: TargetWorld): Plan {
    const { spec } = target
    if (spec.suspend)
      return { degraded: { reason: 'Suspended', message: 'it is suspended: its rows stay as they are' } }
    const { known, watchNamespaces } = this.#options
    const scopes = this.#scopes(world)
    if (!scopes.of) return { degraded: { reason: 'ScopeLookupFailed', message: scopes.fault } }
    if (this.#options.scopeRequired && scopes.of.length === 0) {
      const where = this.#isOfCluster ? 'KollectClusterScope' : `KollectScope in ${this.key.namespace}`
      const message = `no ${where} bounds it, and the agent collects nothing without one (SCOPE_REQUIRED)`
      return { degraded: { reason: 'ScopeLookupFailed', message }, isDenied: true }
    }
    const prepared = this.#prepare(target, world, scopes.of)
    if (!prepared.target) return prepared.refusal
    const { namespaces } = world
    const inReach =
      watchNamespaces.length === 0 ? namespaces : namespaces.filter(({ name }) => watchNamespaces.includes(name))
    const matched = [...prepared.target.namespaces(inReach)].sort()
    const wanted = { kinds: prepared.target.kinds.map(({ gvk }) => gvk), namespaces: matched }
    const needsConsent = !this.#isOfCluster && known.semantics === 'strict'
    const { reach, denied } = underScopes(scopes.of, wanted, needsConsent ? this.key.namespace : undefined)
    if (!reach) return { degraded: denied, isDenied: true, matched }
    const kinds = prepared.target.kinds.filter(({ gvk }) => reach.kinds.includes(gvk))
    const reads = this.#reads(kinds, reach.namespaces, namespaces)
    const beyond =
      watchNamespaces.length === 0
        ? []
        : (spec.includedNamespaces ?? []).filter((name) => isName(name) && !watchNamespaces.includes(name))
    const outside =
      beyond.length > 0
        ? `this agent reads ${watchNamespaces.join(', ')} alone (WATCH_NAMESPACES), and not ${beyond.join(', ')}`
        : undefined
    return { reads, matched, effective: reach.namespaces, ...(outside !== undefined && { outside }) }
  }

  get #isOfCluster(): boolean {
    return this.key.namespace === ''
  }

  /** The scopes that bound it; one that cannot be used might have said no. */
  #scopes({
    declared,
  }: TargetWorld): { readonly of: readonly AnyScope[] } | { readonly of?: never; readonly fault: string } {
    const of: readonly AnyScope[] = this.#isOfCluster
      ? declared.clusterScopes
      : declared.scopes.filter(({ namespace }) => namespace === this.key.namespace)
    const { kind } = (this.#isOfCluster ? kollectClusterScope : kollectScope).definition
    for (const { name, namespace, spec } of of) {
      const faults = kollectFaults(kind, { metadata: { name, namespace }, spec }, this.#options.known)
      if (faults.length > 0) return { fault: `the scope ${name} cannot be used: ${sentence(faults)}` }
    }
    return { of }
  }

  /** Judged and compiled once for each form of target and profile. */
  #prepare(
    { spec, annotations }: Declared<TargetSpec>,
    { declared }: TargetWorld,
    scopes: readonly AnyScope[],
  ): Prepared {
    const { known, defaults, times } = this.#options
    const ref =
      typeof spec.profileRef === 'string' ? { name: spec.profileRef, namespace: this.key.namespace } : spec.profileRef
    const refusing = scopes.find(({ spec: scope }) => {
      const allowed = ('allowedStaticRefNamespaces' in scope && scope.allowedStaticRefNamespaces) || []
      return allowed.length > 0 && !allowed.includes(ref?.namespace)
    })
    if (refusing) {
      const message = `the scope ${refusing.name} does not allow profiles of the namespace ${ref.namespace}`
      return { refusal: { degraded: { reason: 'ScopeNamespaceDenied', message }, isDenied: true } }
    }
    const profile = declared.profiles.find(({ name, namespace }) => name === ref?.name && namespace === ref.namespace)
    const source = { spec, profile: profile && { spec: profile.spec, annotations: profile.annotations } }
    if (this.#prepared && isDeepStrictEqual(source, this.#prepared.source)) return this.#prepared
    this.#revision++
    const prepared = (): Prepared => {
      const { kind } = (this.#isOfCluster ? kollectClusterTarget : kollectTarget).definition
      const faults = kollectFaults(kind, { metadata: { ...this.key, annotations }, spec }, known)
      if (faults.length > 0) return refused('TargetInvalid', sentence(faults))
      if (!source.profile) {
        const which = `${ref.namespace}/${ref.name}`
        return refused('ProfileNotFound', `there is no KollectProfile ${which}: make it, or mend profileRef`)
      }
      const metadata = { name: ref.name, namespace: ref.namespace, annotations: source.profile.annotations }
      const ofProfile = faultsOfProfile(metadata, source.profile.spec, known)
      if (ofProfile.length > 0) return refused('ProfileInvalid', sentence(ofProfile))
      const compiled = compileTarget(
        { key: this.key, spec, profile: source.profile },
        defaults,
        times.of(this.key.namespace),
      )
      return compiled.target ? { target: compiled.target } : refused('ProfileInvalid', sentence(compiled.faults))
    }
    this.#prepared = { ...prepared(), source }
    return this.#prepared
  }

  #reads(kinds: readonly CompiledKind[], effective: readonly string[], known: readonly NamespaceFacts[]) {
    if (effective.length === 0) return []
    const namespaces = new Set(effective)
    const facts = new Map(known.filter(({ name }) => namespaces.has(name)).map((one) => [one.name, one]))
    const revision = this.#revision
    return kinds.map((kind) => {
      const fingerprint = (of: readonly string[]): string =>
        JSON.stringify([textOf(this.key), revision, of.map((name) => shown(facts.get(name), kind.needsLabels))])
      return { kind, interest: { rows: this.#rowsOf(kind), kind, namespaces, facts, fingerprint } }
    })
  }

  #rowsOf(kind: CompiledKind): KindRows {
    const name = kindText(kind.gvk)
    const held = this.#held.get(name)
    if (held) return held
    this.#rows ??= this.#options.rows.target(this.key)
    const made = new KindRows(this.key, this.#rows, this.#options.spaces.of(this.key.namespace))
    this.#held.set(name, made)
    return made
  }
}

/** Whether two take the same. */
const isSamePlan = (a: Plan, b: Plan): boolean => isDeepStrictEqual(takenBy(a), takenBy(b))

/** Whether what one takes is all taken by the other as well, in the same form. */
function takesAllOf(one: Plan, other: Plan): boolean {
  if (!one.reads || !other.reads) return isSamePlan(one, other)
  const namespaces = new Set(other.effective)
  const kinds = new Map(other.reads.map(({ kind, interest }) => [kindText(kind.gvk), interest]))
  return (
    one.effective.every((name) => namespaces.has(name)) &&
    one.reads.every(({ kind, interest }) => {
      const now = kinds.get(kindText(kind.gvk))
      return now?.fingerprint(one.effective) === interest.fingerprint(one.effective)
    })
  )
}

const takenBy = (plan: Plan): unknown => [
  plan.degraded,
  plan.degraded && plan.isDenied,
  plan.matched,
  plan.reads && [
    plan.effective,
    plan.reads.map(({ kind, interest }) => [kindText(kind.gvk), interest.fingerprint(plan.effective)]),
  ],
]

type AnyScope = Declarations['scopes'][number] | Declarations['clusterScopes'][number]

/** What became of a target and its profile. */
type Prepared = { readonly source?: unknown } & (
  | { readonly target: CompiledTarget; readonly refusal?: never }
  | { readonly refusal: Extract<Plan, { readonly degraded: Degradation }>; readonly target?: never }
)

/** By the profile as it was read. */
const judgedProfiles = new WeakMap<KollectProfile['spec'], { readonly as: string; readonly faults: readonly Fault[] }>()

/** A profile is judged once for all targets that name it. */
function faultsOfProfile(metadata: object, spec: KollectProfile['spec'], known: KollectKnown): readonly Fault[] {
  const as = JSON.stringify([metadata, known])
  const before = judgedProfiles.get(spec)
  if (before?.as === as) return before.faults
  const faults = kollectFaults(kollectProfile.definition.kind, { metadata, spec }, known)
  judgedProfiles.set(spec, { as, faults })
  return faults
}

const refused = (reason: Degradation['reason'], message: string): Prepared => ({
  refusal: { degraded: { reason, message } },
})

/** What of a namespace decides about its objects. */
function shown(facts: NamespaceFacts | undefined, needsLabels: boolean): unknown {
  if (!facts) return null
  const { name, labels, annotations } = facts
  if (needsLabels) return [name, Object.entries(labels).sort(), annotations?.[NAMESPACE_WATCH]]
  return [name, labels[WATCH], annotations?.[NAMESPACE_WATCH]]
}

function degradationOf(
  states: readonly KindState[],
  failures: number,
  lastFailure: string | undefined,
): Degradation | undefined {
  for (const state of states) {
    if (state.phase === 'absent' || state.phase === 'failing')
      return { reason: 'InformerRegistrationFailed', message: state.message }
    if (state.phase === 'unchecked') return { reason: 'AccessCheckFailed', message: state.message }
  }
  if (failures === 0) return undefined
  return { reason: 'ExtractionFailed', message: `${failures} object(s) have no row; the last is ${lastFailure}` }
}

const sentence = (faults: readonly Fault[]): string =>
  faults.map(({ path, message }) => `${path} ${message}`).join('; ')
