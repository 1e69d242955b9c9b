import { type Clock, FleetError, seconds } from '#model'
import type { Logger } from '#runtime'
import {
  comparePositions,
  type Delivery,
  type Receipt,
  SinkError,
  type SinkErrorClass,
  type SinkPool,
  type Writing,
} from '#sinks'
import type { Given, Snapshot, SnapshotChanges } from '../compose.ts'
import type { ExportMetrics } from '../metrics.ts'
import {
  type BindingState,
  begun,
  type Content,
  decide,
  exported,
  exportedInPart,
  failed,
  fresh,
  isCurrent,
  postponed,
  retried,
  seeded,
  touched,
} from '../schedule.ts'
import type { SinkPlace } from '../sink-place.ts'
import type { BindingPlan, ReadySink } from './plan.ts'
import type { SinkHealth } from './sink-health.ts'
import { type BindingView, REPLACED_WRITER, type RemovalView, WRITER_CONFLICT, WRITTEN_AGAIN } from './view.ts'
import { WakeUp } from './wake-up.ts'

/** What a binding exports. */
export interface BindingSource {
  /** of the spec of the inventory */
  readonly generation: number
  writing(cluster: string): Writing
  /** the latest; undefined before every list was read to its end */
  snapshot(): Snapshot | undefined
  changesSince(snapshot: Snapshot, given: Given): SnapshotChanges | undefined
  /** of the next position of a binding */
  epochOf(binding: string): bigint
  /** Greater than all before of this binding, also those of earlier processes. @param binding its name */
  nextPosition(binding: string): Delivery['position']
  /** The sink of a binding holds a later one: the next of that binding is greater, and no other's, which may be refused for good. */
  passed(binding: string, position: Delivery['position']): void
}

export interface BindingOptions {
  readonly source: BindingSource
  readonly pool: SinkPool
  readonly metrics: ExportMetrics
  readonly health: SinkHealth
  readonly logger: Logger
  /** goes only forward */
  readonly clock: Clock
  /** of the wall, ms since 1970 */
  readonly now: () => number
  readonly random: () => number
  /** What the view shows changed. Must neither wait nor throw. */
  readonly onChange: () => void
}

/** What the status says of an earlier process. Times are ms since 1970. */
export interface Seed {
  /** what the sink took last, where that was all */
  readonly exported?: {
    readonly checksum: string
    readonly at: number
    readonly identity: string
    readonly rows?: number
  }
  /** since when the sink lacks something, where that was late */
  readonly behindSince?: number
  /** path of the list of its documents in the sink */
  readonly listedAt?: string
}

/** What a sink lacks is late so long after its window: first tries and moments without a connection are over by then, ms. */
const LATE_AFTER_MS = seconds(60)

/** A sink that waits for its writers hears of this one so often, also where nothing is exported or everything fails, ms. */
const ALIVE_EVERY_MS = seconds(30)
/** and after so long where it did not hear it, ms */
const ALIVE_AGAIN_MS = seconds(10)

/** What a sink in trouble was spared is tried again after so long at least, ms: others may be trying. */
const SPARED_MS = seconds(2)
/** What was gone once may have been deleted by somebody; what was gone at so many of the last looks is not kept. */
const NOT_KEPT_LOOKS = 2
const LAST_LOOKS = 10
/** Where others push it out by turns it is there for a while: after so many looks that found it, it is kept. */
const KEPT_LOOKS = 4

type Goal =
  | { readonly kind: 'export'; readonly sink: ReadySink }
  | { readonly kind: 'remove'; readonly sink: ReadySink }
  | { readonly kind: 'rest' }

/** What went last to the sink, and stands there. */
interface Acknowledged extends Given {
  readonly position: Delivery['position']
}

const sameSink = (a: ReadySink | undefined, b: ReadySink | undefined) => a?.identity === b?.identity

/**
 * One inventory's way to one sink: exports when the schedule says so, by itself, and waits for no other. It takes what is latest when it is
 * allowed to, so that nothing queues up while a sink is away.
 */
export class Binding implements AsyncDisposable {
  readonly #options: BindingOptions
  readonly #stop = new AbortController()
  readonly #wake = new WakeUp()
  readonly #run: Promise<void>
  #plan: BindingPlan
  #goal: Goal = { kind: 'rest' }
  #state: BindingState = fresh
  #known: ReadySink | undefined
  /** checksum of what is on its way, or failed last */
  #given: string | undefined
  #acknowledged: Acknowledged | undefined
  #exported:
    | {
        readonly at: number
        readonly checksum: string | undefined
        readonly identity: string
        readonly rows?: number
      }
    | undefined
  /** checksum of what stands in the sink, whole and as far as we know */
  #standing: string | undefined
  #isOurs = false
  #failure: { readonly reason: string; readonly message: string } | undefined
  /** what is told of another cluster that wrote there before; for as long as this process runs */
  #replaced: string | undefined
  /** the last looks: whether one found the sink without what it had taken */
  #looks: readonly boolean[] = []
  /** where the sink keeps the list of its documents; of another place by the same name it is told */
  #listedAt: string | undefined
  /** which rows the sink has not deleted yet, and why */
  #waits: string | undefined
  #behindSince: number | undefined
  #isSuspended = false
  #overtakenTimes = 0
  #removal: RemovalView = { kind: 'running' }
  /** when the sink is told next that this writer lives */
  #aliveAt: number

  constructor(plan: BindingPlan, seed: Seed | undefined, options: BindingOptions) {
    this.#options = options
    this.#plan = plan
    this.#aliveAt = options.clock.now() + ALIVE_EVERY_MS
    this.#behindSince = seed?.behindSince
    this.#listedAt = seed?.listedAt
    if (seed?.exported) {
      const { checksum, at } = seed.exported
      const ageMs = Math.max(0, options.now() - at)
      this.#state = seeded(checksum, options.clock.now() - ageMs)
      this.#exported = seed.exported
      this.#standing = checksum
    }
    this.#run = this.#loop()
  }

  /** Goes by this plan from now on. What failed is tried again where the plan differs. */
  follow(plan: BindingPlan, isSuspended: boolean): void {
    const before = this.#plan
    if (before.namespace !== plan.namespace || plan.target.kind === 'blocked')
      this.#options.health.left(this.place, this.#inventory)
    this.#isSuspended = isSuspended
    this.#plan = plan
    this.#aim(plan, isSuspended ? 'rest' : 'export')
    if (JSON.stringify(before.pace) !== JSON.stringify(plan.pace) || before.maxPartBytes !== plan.maxPartBytes)
      this.retry()
    this.#wake.now()
  }

  /** Takes away what was written, and exports nothing any more. */
  remove(plan: BindingPlan): void {
    this.#plan = plan
    this.#aim(plan, 'remove')
    this.#wake.now()
  }

  /** There may be other rows. */
  changed(): void {
    this.#behindSince ??= this.#options.now()
    this.#wake.now()
  }

  /** What kept it from succeeding may be mended. */
  retry(): void {
    this.#state = retried(this.#state)
    this.#wake.now()
  }

  get removal(): RemovalView {
    return this.#removal
  }

  /** `family/name` */
  get name(): string {
    return this.#plan.name
  }

  /** the least time between two exports, ms */
  get windowMs(): number {
    return this.#plan.pace.windowMs
  }

  /** how long the sink has lacked something, ms; 0: it lacks nothing, or is not to get it */
  get lagMs(): number {
    return this.#behindSince === undefined || this.#isSuspended
      ? 0
      : Math.max(0, this.#options.now() - this.#behindSince)
  }

  /** From when on what the sink lacks is late, ms since 1970; undefined: it lacks nothing, or is not to get it. */
  get #lateAt(): number | undefined {
    return this.#behindSince === undefined || this.#isSuspended
      ? undefined
      : this.#behindSince + this.windowMs + LATE_AFTER_MS
  }

  view(): BindingView {
    const { name, family, namespace, target } = this.#plan
    const [behindSince, lateAt] = [this.#behindSince, this.#lateAt]
    const known = {
      name,
      family,
      namespace,
      ...(this.#exported && { lastExportAt: this.#exported.at, identity: this.#exported.identity }),
      ...(this.#exported?.checksum !== undefined && { lastChecksum: this.#exported.checksum }),
      ...(this.#exported?.rows !== undefined && { rows: this.#exported.rows }),
      ...(behindSince !== undefined && { behindSince }),
      ...(lateAt !== undefined && { lateAt }),
      ...(this.#listedAt !== undefined && { listedAt: this.#listedAt }),
    }
    if (target.kind === 'blocked')
      return {
        ...known,
        state: 'blocked',
        reason: target.reason,
        message: target.message,
        errorClass: target.errorClass,
      }
    if (this.#failure)
      return {
        ...known,
        state: 'failing',
        ...this.#failure,
        errorClass: this.#state.failure?.errorClass ?? 'transient',
      }
    if (this.#waits !== undefined) return { ...known, state: 'waiting', reason: 'DeletionsWait', message: this.#waits }
    if (!this.#exported) return { ...known, state: 'pending', reason: 'Pending', message: 'nothing was exported yet' }
    if (this.#replaced !== undefined)
      return { ...known, state: 'exported', reason: REPLACED_WRITER, message: this.#replaced }
    if (this.#missed >= NOT_KEPT_LOOKS)
      return {
        ...{ ...known, state: 'exported', reason: WRITTEN_AGAIN },
        message: `the sink was without it at ${this.#missed} of its last ${this.#looks.length} looks, and took it again each time: its limits let go of it, or somebody deletes it, so that readers find it only for a while`,
      }
    if (this.#isOurs)
      return { ...known, state: 'exported', reason: 'Exported', message: 'the sink holds what was exported' }
    return { ...known, state: 'current', reason: 'UpToDate', message: 'the sink holds what an earlier start exported' }
  }

  /** What is said of it in the end: no content of which it is not sure that it stands there. */
  lastView(): BindingView {
    const view = this.view()
    if (this.#standing !== undefined && this.#standing === view.lastChecksum) return view
    const { lastChecksum: _, ...unsure } = view
    return unsure as BindingView
  }

  /** Ends what runs; what the sink has not taken yet is given again after a restart. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    this.#wake.now()
    await this.#run
    this.#options.health.left(this.place, this.#inventory)
  }

  /** the sink */
  get place(): SinkPlace {
    const { family, namespace, sinkName } = this.#plan
    return { family, namespace, name: sinkName }
  }

  /** as people and logs call it */
  get #inventory(): string {
    const { namespace, inventory } = this.#options.source.writing('')
    return namespace === '' ? inventory : `${namespace}/${inventory}`
  }

  #aim(plan: BindingPlan, kind: 'export' | 'remove' | 'rest'): void {
    if (kind === 'remove' && plan.deletionPolicy === 'Retain') {
      if (this.#removal.kind !== 'done' && plan.target.kind === 'ready') void this.#leave(plan.target.sink)
      this.#goal = { kind: 'rest' }
      this.#removal = { kind: 'done' }
      return
    }
    if (plan.target.kind === 'blocked') {
      this.#goal = { kind: 'rest' }
      if (!this.#exported) this.#behindSince ??= this.#options.now()
      if (kind === 'remove')
        this.#removal = { kind: 'failed', message: plan.target.message, errorClass: plan.target.errorClass }
      return
    }
    const { sink } = plan.target
    if (!sameSink(this.#known, sink)) this.#meet(sink)
    if (kind === 'remove' && this.#goal.kind !== 'remove') {
      this.#removal = { kind: 'running' }
      this.#state = retried(this.#state)
    }
    this.#goal = kind === 'rest' ? { kind } : { kind, sink }
  }

  /** Another sink, or the same under other credentials or another identity: nothing is known of what it holds. */
  #meet(sink: ReadySink): void {
    const isFirst = this.#known === undefined
    this.#known = sink
    this.#acknowledged = undefined
    this.#failure = undefined
    this.#waits = undefined
    this.#replaced = undefined
    this.#looks = []
    if (isFirst && this.#exported?.identity === sink.identity) return
    this.#state = fresh
    this.#exported = undefined
    this.#standing = undefined
    this.#isOurs = false
    if (!isFirst) this.#behindSince ??= this.#options.now()
  }

  /** The sink lacks nothing, or only what changed since. @returns whether it was late, and is not any more */
  #caughtUp(behindSince?: number): boolean {
    const isLate = () => this.#lateAt !== undefined && this.#options.now() >= this.#lateAt
    const wasLate = isLate()
    this.#behindSince = behindSince
    return wasLate && !isLate()
  }

  async #loop(): Promise<void> {
    const { signal } = this.#stop
    while (!signal.aborted) {
      const woken = this.#wake.next()
      try {
        const stepMs = await this.#step()
        const aliveMs = await this.#sayAlive()
        const waitMs = aliveMs === undefined ? stepMs : Math.min(stepMs ?? aliveMs, aliveMs)
        if (waitMs === undefined) await woken.promise
        else if (waitMs > 0) await this.#options.clock.sleep(waitMs, woken.signal)
      } catch (error) {
        if (signal.aborted) return
        // Nothing in here may end the binding: it counts as a failure, and is tried again.
        this.#fail(error)
      }
    }
  }

  /** @returns how long there is nothing to do, ms; undefined: until something changes */
  async #step(): Promise<number | undefined> {
    const goal = this.#goal
    if (goal.kind === 'rest') return undefined
    if (goal.kind === 'remove') return this.#takeAway(goal.sink)
    const { clock, source } = this.#options
    let snapshot: Snapshot | undefined
    const content = () => {
      snapshot = source.snapshot()
      return snapshot && { checksum: snapshot.checksum, isComplete: snapshot.isComplete }
    }
    const decision = decide(this.#state, this.#plan.pace, content, clock.now())
    if (snapshot && this.#holds(snapshot)) {
      if (this.#caughtUp()) this.#options.onChange()
    } else if (decision.kind === 'export') {
      this.#behindSince ??= this.#options.now()
    }
    if (decision.kind === 'wait') return decision.ms
    if (decision.kind === 'idle' || !snapshot) return undefined
    await this.#deliver(goal.sink, snapshot)
    return 0
  }

  /** At fixed times, whatever the schedule makes of failures and of its interval. @returns until the next time, ms; undefined: never */
  async #sayAlive(): Promise<number | undefined> {
    const { clock, pool, source } = this.#options
    const { family, target } = this.#plan
    if (family !== 'database' || target.kind === 'blocked' || this.#goal.kind === 'remove') return undefined
    const leftMs = this.#aliveAt - clock.now()
    if (leftMs > 0) return leftMs
    const { object } = target.sink
    const writing = source.writing(object.declaration.cluster)
    const epoch = source.epochOf(this.name)
    // What is wrong with the sink is said by exports.
    const answer = await pool
      .use(
        object,
        async (open, signal) => ({ conflict: await open.alive?.(writing, epoch, signal) }),
        this.#stop.signal,
      )
      .catch(() => undefined)
    const waitMs = answer ? ALIVE_EVERY_MS : ALIVE_AGAIN_MS
    this.#aliveAt = clock.now() + waitMs
    const isOfNow = this.#goal.kind === 'export' && sameSink(this.#goal.sink, target.sink)
    return answer && isOfNow && this.#heedConflict(answer.conflict) ? 0 : waitMs
  }

  /** A conflict is told, and is over, when the sink says so, whenever the next export is. @returns whether that is news */
  #heedConflict(conflict: string | undefined): boolean {
    const isKnown = this.#failure?.reason === WRITER_CONFLICT
    if (isKnown === (conflict !== undefined)) return false
    if (conflict === undefined) this.#state = retried(this.#state)
    else this.#conflict(conflict)
    return true
  }

  /** Whether the sink lacks nothing of it, though it may not answer now. */
  #holds(content: Content): boolean {
    return isCurrent(this.#state, content) || this.#standing === content.checksum
  }

  async #deliver(sink: ReadySink, snapshot: Snapshot): Promise<void> {
    const { clock, now, metrics, health, logger, onChange } = this.#options
    const type = sink.object.declaration.spec.type
    const content = { checksum: snapshot.checksum, isComplete: snapshot.isComplete }
    const isHeartbeat = isCurrent(this.#state, content)
    this.#given = content.checksum
    // Of what is not taken whole, parts may stand there.
    if (!isHeartbeat && this.#standing !== content.checksum) this.#standing = undefined
    const startedAt = clock.now()
    const takenAt = now()
    // A look says nothing new of what stands there: that it is read anew meanwhile changes no row of it.
    const isAsHeld = isHeartbeat && this.#plan.family !== 'database' && this.#state.held?.isComplete === true
    const delivery = {
      ...this.#delivery(sink, snapshot, takenAt),
      ...(isAsHeld && { complete: true }),
      isLook: isHeartbeat,
    }
    let receipt: Receipt
    try {
      receipt = await this.#options.pool.use(
        sink.object,
        (open, signal) => open.deliver(delivery, signal),
        this.#stop.signal,
      )
      this.#aliveAt = clock.now() + ALIVE_EVERY_MS
    } catch (error) {
      if (sameSink(this.#known, sink)) throw error
      return // what was wrong with it may be mended in what it became
    } finally {
      if (!isHeartbeat) metrics.took(type, clock.now() - startedAt)
    }
    if (!sameSink(this.#known, sink)) return // replaced meanwhile: what it holds says nothing of the other one
    if (!isHeartbeat) metrics.wrote(type, receipt)
    if (receipt.conflict !== undefined) return this.#conflict(receipt.conflict)
    if (comparePositions(receipt.position, delivery.position) > 0) return this.#overtaken(receipt)
    this.#overtakenTimes = 0
    if (receipt.isPartial) return this.#goOn()
    const { waits } = receipt
    const lags = keptWords(receipt)
    this.#acknowledge(delivery, snapshot, snapshot.isComplete && !waits)
    if (!isHeartbeat || waits) this.#standing = snapshot.isComplete && !waits ? snapshot.checksum : undefined
    if (isHeartbeat && !waits) {
      this.#state = touched(this.#state, clock.now())
    } else {
      this.#state = waits ? exportedInPart(content, clock.now(), waits.ms) : exported(this.#state, content, clock.now())
      this.#exported = {
        at: takenAt,
        checksum: content.isComplete && !waits ? content.checksum : undefined,
        identity: sink.identity,
        rows: snapshot.itemCount,
      }
      this.#isOurs = true
    }
    if (receipt.replaced !== undefined) {
      this.#replaced = receipt.replaced
      logger.warn(
        { binding: this.name, inventory: this.#inventory, why: receipt.replaced },
        'a sink had another writer',
      )
    }
    const wasMissed = this.#missed
    if (isHeartbeat && this.#plan.family !== 'database') this.#note(receipt.written > 0)
    const isMissedNews = wasMissed !== this.#missed && Math.max(wasMissed, this.#missed) >= NOT_KEPT_LOOKS
    const isMoved = receipt.listedAt !== this.#listedAt
    this.#listedAt = receipt.listedAt
    const isNews =
      isMissedNews ||
      isMoved ||
      !isHeartbeat ||
      waits !== undefined ||
      this.#failure !== undefined ||
      this.#waits !== lags
    this.#failure = undefined
    this.#waits = lags
    health.took(this.place, this.#inventory, snapshot.itemCount)
    if (receipt.warnsAnew) health.doubt(this.place)
    // What changed while it was on its way is what the sink lacks now.
    const before = this.#behindSince
    const wasLate = this.#caughtUp(waits || (before !== undefined && before > takenAt) ? before : undefined)
    if (isNews || wasLate) onChange()
  }

  /** @param isGone a look found the sink without what it had taken */
  #note(isGone: boolean): void {
    const looks = [...this.#looks, isGone].slice(-LAST_LOOKS)
    this.#looks = looks.slice(-KEPT_LOOKS).includes(true) ? looks : []
  }

  get #missed(): number {
    return this.#looks.filter(Boolean).length
  }

  #delivery(sink: ReadySink, snapshot: Snapshot, takenAt: number): Delivery {
    const { source } = this.#options
    const base = this.#acknowledged
    const changes = base && source.changesSince(snapshot, base)
    return {
      writing: source.writing(sink.object.declaration.cluster),
      position: source.nextPosition(this.name),
      generation: source.generation,
      complete: snapshot.isComplete,
      checksum: snapshot.checksum,
      itemCount: snapshot.itemCount,
      takenAt,
      rows: () => snapshot.rows(),
      ...(this.#listedAt !== undefined && { formerList: this.#listedAt }),
      ...(changes && { changes: { base: base.position, ...changes } }),
      maxPartBytes: this.#plan.maxPartBytes,
    }
  }

  /** The rest follows at once, of the latest snapshot. */
  #goOn(): void {
    this.#acknowledged = undefined
    this.#state = begun(this.#state)
    if (this.#failure === undefined) return
    this.#failure = undefined
    this.#options.onChange()
  }

  /** @param isWhole the sink lacks nothing of it, and holds nothing else */
  #acknowledge({ position }: Delivery, { sequence, composition }: Snapshot, isWhole: boolean): void {
    // What an incomplete snapshot left in the sink is taken away by the next complete one, if all in between is known.
    const cleared = isWhole ? sequence : this.#acknowledged?.clearedAt
    this.#acknowledged = cleared === undefined ? undefined : { position, sequence, composition, clearedAt: cleared }
  }

  /** The sink has something later of ours, as after a clock was set back: our next snapshot is later than that. */
  #overtaken({ position }: Receipt): void {
    this.#acknowledged = undefined
    this.#standing = undefined
    this.#options.source.passed(this.name, position)
    if (this.#overtakenTimes++ === 0) return
    throw new SinkError(
      'transient',
      'the sink holds later snapshots than this agent writes: another one writes there as well',
    )
  }

  #conflict(who: string): void {
    this.#options.metrics.conflict()
    this.#standing = undefined
    this.#record('forbidden', WRITER_CONFLICT, `${who}. Give one of both clusters another identity, or stop one`)
  }

  /** Others need not wait for what is written no more. Where that cannot be said, they find out by themselves. */
  async #leave({ object }: ReadySink): Promise<void> {
    const { source, pool } = this.#options
    const writing = source.writing(object.declaration.cluster)
    await pool.use(object, async (open) => open.leave?.(writing), this.#stop.signal).catch(() => undefined)
  }

  async #takeAway(sink: ReadySink): Promise<number | undefined> {
    const { source, pool, clock, onChange } = this.#options
    if (this.#removal.kind === 'done') return undefined
    const waitMs = (this.#state.failure?.retryAt ?? 0) - clock.now()
    if (waitMs > 0) return waitMs
    const writing = source.writing(sink.object.declaration.cluster)
    const position = source.nextPosition(this.name)
    const list = this.#listedAt
    await pool.use(sink.object, (open, signal) => open.remove(writing, position, signal, list), this.#stop.signal)
    this.#removal = { kind: 'done' }
    this.#options.health.left(this.place, this.#inventory)
    onChange()
    return undefined
  }

  #fail(error: unknown): void {
    if (error instanceof SinkError && error.retryAfterMs !== undefined) {
      this.#postpone(error.message, error.retryAfterMs)
      return
    }
    if (error instanceof SinkError && error.sparedMs !== undefined && this.#failure) {
      // What was met last still holds; it was not tried, so that nothing is waited for any longer.
      const waitMs = Math.max(SPARED_MS, error.sparedMs) * (1 + this.#options.random() / 2)
      this.#state = postponed(this.#state, waitMs, this.#options.clock.now())
      return
    }
    const errorClass = error instanceof SinkError ? error.errorClass : 'transient'
    // Only what a driver says of its sink is for people; anything else may hold what it must not.
    const message =
      error instanceof SinkError ? error.message : 'the export failed for a reason that stands in the log of the agent'
    if (!(error instanceof SinkError)) {
      const { code } = FleetError.from(error)
      this.#options.logger.warn({ binding: this.#plan.name, code, at: placesOf(error) }, 'an export failed')
    }
    this.#record(errorClass, REASONS[errorClass], message)
  }

  /** Nothing is wrong: it is too early. */
  #postpone(message: string, waitMs: number): void {
    const { clock, onChange } = this.#options
    this.#state = postponed(this.#state, waitMs, clock.now())
    this.#failure = undefined
    if (this.#goal.kind === 'remove') this.#removal = { kind: 'waiting', message }
    else this.#waits = message
    onChange()
  }

  #record(errorClass: SinkErrorClass, reason: string, message: string): void {
    const { clock, random, metrics, health, onChange } = this.#options
    metrics.failed(errorClass)
    this.#state = failed(this.#state, errorClass, clock.now(), random(), this.#given)
    // A sink that does not answer holds what it held; one that is not as it was, perhaps not.
    if (errorClass === 'terminal') this.#standing = undefined
    this.#failure = { reason, message }
    this.#waits = undefined
    health.refused(this.place, this.#inventory, this.#failure)
    if (this.#goal.kind === 'remove') this.#removal = { kind: 'failed', message, errorClass }
    onChange()
  }
}

/** Which rows are there still, and until when; undefined: none that are to go. */
function keptWords({ kept = 0, waits }: Receipt): string | undefined {
  const which = kept === 1 ? '1 row that is gone stands' : `${kept} rows that are gone stand`
  if (waits) return `${kept === 0 ? 'rows that are gone stand' : which} there still: ${waits.message}`
  if (kept === 0) return undefined
  const missing = kept === 1 ? '1 row that was not read stands' : `${kept} rows that were not read stand`
  return `${missing} there still: none is deleted before every target is read to its end`
}

/** Where an error came from, without its words, which may hold a credential. */
const placesOf = (error: unknown): readonly string[] =>
  (error instanceof Error ? (error.stack ?? '').split('\n') : []).filter((line) => /^\s+at /.test(line)).slice(0, 8)

const REASONS: Readonly<Record<SinkErrorClass, string>> = {
  terminal: 'Terminal',
  forbidden: 'Forbidden',
  transient: 'Transient',
}
