import { isDeepStrictEqual } from 'node:util'
import { againAfter, done, type Informer, keyText, type Outcome, type Reconciler } from '#controller'
import { type Fault, type KollectKnown, kollectFaults } from '#kinds'
import { isKubeError, type KubeClient, type KubeObject, type ObjectKey } from '#kube'
import { type Clock, minutes, seconds } from '#model'
import type { Logger } from '#runtime'
import type { SinkFamily } from '#sinks'
import type { Binding, Seed } from '../bindings/binding.ts'
import { InventoryRun, type InventoryRunOptions } from '../bindings/inventory-run.ts'
import { type BindingPlan, type FoundSink, planBindings } from '../bindings/plan.ts'
import type { BindingView, RemovalView } from '../bindings/view.ts'
import { type Composition, compositionText, takesAllOf } from '../compose.ts'
import type { SinkDirectory } from '../declared/sink-directory.ts'
import { FOLLOWED_AGAIN_MS, type InventoryInformers, unfollowedOf } from '../objects.ts'
import { SecondLook } from '../second-look.ts'
import { placeText, type SinkPlace } from '../sink-place.ts'
import { isBeingRead } from '../status/inventory-conditions.ts'
import {
  exportsOf,
  type InventoryStatus,
  inventoryStatus,
  type StatusFacts,
  statusPatch,
  timeOf,
} from '../status/inventory-status.ts'
import type { EventRecorder, Said } from './event-recorder.ts'
import { addFinalizer, removeFinalizer } from './finalizer.ts'
import {
  type AnyInventory,
  type AnyInventorySpec,
  ceilingsOf,
  type InventoryKind,
  type NoTargets,
} from './inventory-kinds.ts'
import { news } from './news.ts'
import { GIVE_UP_CLEANUP } from './words.ts'

export interface InventoryReconcilerOptions {
  readonly of: InventoryKind
  readonly kube: KubeClient
  readonly objects: Informer<KubeObject>
  readonly informers: InventoryInformers
  readonly directory: SinkDirectory
  readonly known: KollectKnown
  readonly recorder: EventRecorder
  readonly run: Omit<InventoryRunOptions, 'namespace' | 'name' | 'epoch' | 'seeds' | 'onChange'>
  readonly logger: Logger
  readonly clock: Clock
  readonly enqueue: (key: ObjectKey, afterMs?: number) => void
  /** The status says something else of these sinks; `isNews`: more than counts and times. Must neither wait nor throw. */
  readonly onExports: (sinks: readonly SinkPlace[], isNews: boolean) => void
}

/** Reason of a binding whose sink nobody looked at since the process started. */
const UNSEEN = 'Unseen'
const isUnseen = ({ target }: BindingPlan) => target.kind === 'blocked' && target.reason === UNSEEN

/** Statuses that only count otherwise are written at most so often, ms. */
const COUNTS_EVERY_MS = seconds(5)
/** How often a roll-up without targets looks for some, ms. */
const TARGETS_AGAIN_MS = seconds(30)
/** What was said before a start is not taken back while all is read anew, as long as that takes no longer, ms. */
const READ_WITHIN_MS = seconds(10)
/** Who ends does not wait longer for the API, ms. */
const LAST_WORD_MS = seconds(2)

interface OneRun {
  readonly key: ObjectKey
  readonly uid: string
  readonly run: InventoryRun
  readonly since: number
}

/** Brings inventories of one kind from the API to their bindings, and how those stand back into their statuses. */
export class InventoryReconciler implements Reconciler {
  readonly name: string
  readonly #options: InventoryReconcilerOptions
  readonly #runs = new Map<string, OneRun>()
  readonly #writtenAt = new Map<string, number>()
  readonly #looks: SecondLook
  /** what would take rows away, by what was known before this look is over */
  readonly #looking = new Map<string, { readonly key: ObjectKey; readonly by: string; readonly look: number }>()
  #isClosed = false

  constructor(options: InventoryReconcilerOptions) {
    this.name = options.of.isRollUp ? 'cluster-inventories' : 'inventories'
    this.#options = options
    const { informers, objects, clock, enqueue } = options
    const judgedBy = [objects, informers.clusterTargets, informers.namespaces] as const
    this.#looks = new SecondLook(judgedBy as unknown as readonly Informer<KubeObject>[], clock, () => {
      for (const { key } of this.#looking.values()) enqueue(key)
    })
  }

  /** Inventories that run here, by their keys. */
  runs(): Iterable<readonly [string, InventoryRun]> {
    return [...this.#runs].map(([key, { run }]) => [key, run] as const)
  }

  /** The one that runs under this key; undefined: none does. */
  running(key: string): InventoryRun | undefined {
    return this.#runs.get(key)?.run
  }

  /** Rows of targets in this namespace changed; '' for those of cluster targets. */
  rowsChanged(namespace: string): void {
    const { of, objects, enqueue } = this.#options
    for (const { metadata } of objects.list()) {
      const ofNamespace = of.isRollUp ? '' : (metadata.namespace ?? '')
      if (ofNamespace !== namespace) continue
      const key = keyOf(metadata)
      const run = this.running(keyText(key))
      run?.changed()
      // Its bindings go on at once; how many rows there are is told a little later.
      enqueue(key, run?.wasRead ? COUNTS_EVERY_MS : 0)
    }
  }

  /** A sink that did not answer well does again: what would wait there for minutes, or an hour, is tried now. */
  answered(place: SinkPlace): void {
    const text = placeText(place)
    for (const { run } of this.#runs.values())
      for (const binding of run.bindings)
        if (placeText(binding.place) === text && binding.view().state === 'failing') binding.retry()
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    const object = this.#options.objects.get(key) as AnyInventory | undefined // of this kind, under our schema
    if (!object) return this.#end(key)
    const { of, kube } = this.#options
    const hasFinalizer = object.metadata.finalizers?.includes(of.finalizer) ?? false
    if (object.metadata.deletionTimestamp) return hasFinalizer ? this.#cleanUp(key, object, signal) : this.#end(key)
    if (hasFinalizer) return this.#follow(key, object, signal)
    const ours = await addFinalizer(kube, of.resource, object as KubeObject, of.finalizer, signal)
    if (!ours) return done
    this.#options.objects.wrote(ours)
    return this.#follow(key, ours as AnyInventory, signal)
  }

  /** This process leads: inventories may run. */
  begin(): void {
    this.#isClosed = false
  }

  /** Ends all that runs, until `begin`. */
  async end(): Promise<void> {
    this.#isClosed = true
    const runs = [...this.#runs.values()]
    this.#runs.clear()
    await Promise.all(
      runs.map(async ({ key, run }) => {
        const { bindings } = run
        await run[Symbol.asyncDispose]()
        await this.#sayLast(key, bindings)
      }),
    )
  }

  /** What its sinks took since its status was written: the next start goes on from there. Onto the version that is known here. */
  async #sayLast(key: ObjectKey, bindings: readonly Binding[]): Promise<void> {
    const { kube, of, clock, objects, run } = this.#options
    const latest = objects.get(key) as AnyInventory | undefined
    // Of one that cannot even be planned, what was exported before still holds.
    if (!latest || bindings.length === 0) return
    const stored = (latest.status ?? {}) as InventoryStatus
    const sinkExports = exportsOf(
      stored,
      bindings.map((binding) => binding.lastView()),
      clock.now(),
    )
    const taken = (all: InventoryStatus['sinkExports'] = []) =>
      all.map(({ name, lastChecksum }) => [name, lastChecksum])
    if (isDeepStrictEqual(taken(sinkExports), taken(stored.sinkExports))) return
    const body = { metadata: { resourceVersion: latest.metadata.resourceVersion }, status: { sinkExports } }
    const signal = AbortSignal.timeout(LAST_WORD_MS)
    await kube
      .patch(of.resource, key, body, { kind: 'merge', subresource: 'status', signal })
      // Sinks are looked at when the process starts again.
      .catch((error: unknown) =>
        run.logger.warn({ inventory: key, err: error }, 'what was exported last is not written down'),
      )
  }

  async #follow(key: ObjectKey, object: AnyInventory, signal: AbortSignal): Promise<Outcome> {
    const { of, informers, clock } = this.#options
    const spec = object.spec as AnyInventorySpec
    const faults = this.#faults(object)
    const chosen = of.composition(object, informers, clock.now())
    const blocked = faults.length > 0 ? invalid(faults) : 'message' in chosen ? noTargets(chosen) : undefined
    const run = await this.#run(key, object, signal)
    if (!run) return done
    const bindings = faults.length > 0 ? [] : this.#plans(object, (place) => this.#find(place, 'now'))
    const composition = this.#composed(key, run, 'message' in chosen ? { targets: [], onceEach: false } : chosen)
    const isSuspended = spec.suspend === true
    const generation = object.metadata.generation ?? 0
    run.follow({ generation, composition, bindings, isSuspended: isSuspended || blocked !== undefined })
    // Sinks are looked at when the process starts: what was said of them until then still holds.
    if (bindings.some(isUnseen)) return done
    const snapshot = blocked ? undefined : run.latest()
    const facts: StatusFacts = {
      generation,
      isSuspended,
      isRollUp: of.isRollUp,
      ...(blocked && { blocked }),
      bindings: run.bindings.map((binding) => binding.view()),
      ...(snapshot && {
        rows: {
          itemCount: snapshot.itemCount,
          waitsFor: snapshot.waitsFor,
          isHindered: snapshot.isHindered,
          wasRead: run.wasRead,
        },
      }),
      ...(snapshot &&
        of.isRollUp && { rollUp: { targetCount: composition.targets.length, shards: snapshot.shards() } }),
    }
    const readMs = this.#readLeftMs(key, object, facts)
    if (readMs > 0) return againAfter(readMs)
    const laterMs = await this.#say(key, object, facts, signal)
    const waitsForTargets = 'message' in chosen && chosen.isYoung
    if (composition.isDoubtful) return againAfter(FOLLOWED_AGAIN_MS)
    if (waitsForTargets) return againAfter(TARGETS_AGAIN_MS)
    const lateMs = lateInMs(facts.bindings, clock.now())
    if (laterMs > 0) return againAfter(Math.min(laterMs, lateMs ?? laterMs))
    return lateMs === undefined ? done : againAfter(lateMs)
  }

  /**
   * What it took before stays, incomplete, while what chooses other rows is not followed: that may be old. What takes rows away is gone by
   * once it holds by a look that began later.
   */
  #composed(key: ObjectKey, { composition: before }: InventoryRun, now: Composition): Composition {
    const { of, informers } = this.#options
    const text = keyText(key)
    const looking = this.#looking.get(text)
    this.#looking.delete(text)
    if (!of.isRollUp) return now
    const isFollowed = unfollowedOf([informers.clusterTargets, informers.namespaces]) === undefined
    if (before && !before.isDoubtful && compositionText(before) === compositionText(now)) return now
    if (!isFollowed) return { ...(before ?? now), isDoubtful: true }
    if (!before || takesAllOf(before, now)) return now
    const by = compositionText(now)
    const asked = looking?.by === by ? looking : { key, by, look: this.#looks.ask() }
    if (this.#looks.done >= asked.look) return now
    this.#looking.set(text, asked)
    return before
  }

  /** How long it may still be read before that is told, ms; 0: there is something else to tell, or nothing that would be kept. */
  #readLeftMs(key: ObjectKey, object: AnyInventory, facts: StatusFacts): number {
    const now = this.#options.clock.now()
    const { observedGeneration, conditions = [] } = (object.status ?? {}) as InventoryStatus
    const isSaid = observedGeneration === facts.generation && conditions.some(({ type }) => type === 'Ready')
    if (!isSaid || !isBeingRead(facts, now)) return 0
    const elapsedMs = now - (this.#runs.get(keyText(key))?.since ?? 0)
    return elapsedMs < 0 ? 0 : Math.max(0, READ_WITHIN_MS - elapsedMs)
  }

  #faults(object: AnyInventory): readonly Fault[] {
    const { of, known, informers } = this.#options
    return kollectFaults(of.kind, object, { ...known, scopes: of.scopes(object, informers) })
  }

  #plans(object: AnyInventory, find: (place: SinkPlace) => FoundSink): readonly BindingPlan[] {
    const { of, informers, known } = this.#options
    return planBindings({
      spec: object.spec as AnyInventorySpec,
      namespace: of.sinkNamespace(object),
      ceilings: ceilingsOf(of.scopes(object, informers)),
      maxExportBytes: known.maxExportBytes,
      find: (family, namespace, name) => find({ family, namespace, name }),
    })
  }

  #find(place: SinkPlace, when: 'now' | 'cleaning'): FoundSink {
    const { directory, informers } = this.#options
    const found = when === 'cleaning' ? directory.forCleaning(place) : directory.get(place)
    if (found) return found
    const isThere = sinksOf(informers, place.family).get(place) !== undefined
    return {
      kind: 'blocked',
      blocked: isThere
        ? { reason: UNSEEN, message: 'the sink was not looked at yet', errorClass: 'transient' }
        : {
            reason: 'SinkNotFound',
            message: `there is no ${place.family} sink ${place.namespace}/${place.name}: create it, or name another one`,
            errorClass: 'terminal',
          },
    }
  }

  /** The run of this very object; made with an epoch greater than every one before. */
  async #run(key: ObjectKey, object: AnyInventory, signal: AbortSignal): Promise<InventoryRun | undefined> {
    const text = keyText(key)
    const uid = object.metadata.uid ?? ''
    const known = this.#runs.get(text)
    if (known?.uid === uid) return known.run
    if (known) await this.#stop(text)
    const epoch = await this.#nextEpoch(key, object, signal)
    if (epoch === undefined || this.#isClosed) return undefined
    const { run: options, enqueue } = this.#options
    const run = new InventoryRun({
      ...options,
      namespace: key.namespace ?? '',
      name: key.name,
      epoch: BigInt(epoch),
      seeds: seedsOf(object.status as InventoryStatus | undefined),
      onChange: () => enqueue(key),
    })
    this.#runs.set(text, { key, uid, run, since: this.#options.clock.now() })
    return run
  }

  /** Kept in the status, so that it grows although the clock was set back; onto the version that was read, so that two never share one. */
  async #nextEpoch(key: ObjectKey, object: AnyInventory, signal: AbortSignal): Promise<number | undefined> {
    const { kube, of, clock, objects } = this.#options
    const before = (object.status as InventoryStatus | undefined)?.epoch ?? 0
    const epoch = Math.max(before + 1, clock.now())
    const body = { metadata: { resourceVersion: object.metadata.resourceVersion }, status: { epoch } }
    try {
      objects.wrote(await kube.patch(of.resource, key, body, { kind: 'merge', subresource: 'status', signal }))
      return epoch
    } catch (error) {
      if (isKubeError(error, 'not_found')) return undefined
      throw error
    }
  }

  /** @returns after how long what was left out is due, ms; 0: nothing was */
  async #say(key: ObjectKey, object: AnyInventory, facts: StatusFacts, signal: AbortSignal): Promise<number> {
    const { kube, of, clock, objects, recorder, onExports } = this.#options
    const latest = (objects.get(key) ?? object) as AnyInventory
    const stored = (latest.status ?? {}) as InventoryStatus
    const wanted = inventoryStatus(stored, facts, clock.now())
    const patch = statusPatch(stored, wanted)
    if (!patch) return 0
    const text = keyText(key)
    const heard = news(stored, wanted)
    const elapsedMs = Math.max(0, clock.now() - (this.#writtenAt.get(text) ?? Number.NEGATIVE_INFINITY))
    if (!heard.isNews && elapsedMs < COUNTS_EVERY_MS) return COUNTS_EVERY_MS - elapsedMs
    try {
      objects.wrote(
        await kube.patch(of.resource, key, { status: patch }, { kind: 'merge', subresource: 'status', signal }),
      )
    } catch (error) {
      if (isKubeError(error, 'not_found')) return 0 // deleted meanwhile: its key comes again
      throw error
    }
    this.#writtenAt.set(text, clock.now())
    if (patch.sinkExports) onExports(placesIn(stored, wanted), heard.isNews)
    for (const said of heard.events) await recorder.say(named(latest, of), said, signal)
    return 0
  }

  async #cleanUp(key: ObjectKey, object: AnyInventory, signal: AbortSignal): Promise<Outcome> {
    const { of, kube } = this.#options
    if (object.metadata.annotations?.[GIVE_UP_CLEANUP] === 'true') {
      await this.#tell(
        object,
        { type: 'Warning', reason: 'CleanupGivenUp', message: 'what it wrote stays in its sinks' },
        signal,
      )
      await removeFinalizer(kube, of.resource, object as KubeObject, of.finalizer, signal)
      return this.#end(key)
    }
    const run = await this.#run(key, object, signal)
    if (!run) return done
    const written = new Set(
      (object.status as InventoryStatus | undefined)?.sinkExports
        ?.filter(({ lastExportTime }) => lastExportTime !== undefined)
        .map(({ name }) => name),
    )
    const plans = this.#plans(object, (place) => this.#find(place, 'cleaning'))
    if (plans.some(isUnseen)) return done
    // Where nothing ever arrived, and nothing can, there is nothing to take away.
    const bindings = plans.filter(({ name, target }) => target.kind === 'ready' || written.has(name))
    run.remove({
      generation: object.metadata.generation ?? 0,
      composition: { targets: [], onceEach: false },
      bindings,
      isSuspended: false,
    })
    const removals = run.bindings.map((binding) => binding.removal)
    if (removals.every(({ kind }) => kind === 'done')) {
      await removeFinalizer(kube, of.resource, object as KubeObject, of.finalizer, signal)
      return this.#end(key)
    }
    const blocked = cleanupOf(removals)
    if (!blocked) return done // it says when it ends
    const views = run.bindings.map((binding) => binding.view())
    await this.#say(
      key,
      object,
      { generation: object.metadata.generation ?? 0, isSuspended: false, blocked, bindings: views },
      signal,
    )
    return againAfter(minutes(60))
  }

  async #tell(object: AnyInventory, said: Said, signal: AbortSignal): Promise<void> {
    await this.#options.recorder.say(named(object, this.#options.of), said, signal)
  }

  async #end(key: ObjectKey): Promise<Outcome> {
    await this.#stop(keyText(key))
    this.#writtenAt.delete(keyText(key))
    return done
  }

  async #stop(text: string): Promise<void> {
    const known = this.#runs.get(text)
    this.#runs.delete(text)
    if (!known) return
    this.#options.onExports(
      known.run.bindings.map(({ place }) => place),
      true,
    )
    await known.run[Symbol.asyncDispose]()
  }
}

/** The sinks that statuses speak of. */
const placesIn = (...statuses: readonly InventoryStatus[]): readonly SinkPlace[] =>
  statuses.flatMap(({ sinkExports = [] }) =>
    sinkExports.map(({ name, namespace = '' }): SinkPlace => {
      const [family = '', ...rest] = name.split('/')
      return { family: family as SinkFamily, namespace, name: rest.join('/') } // bindings are named so
    }),
  )

/** Why what was written is still there; undefined: it is on its way. */
function cleanupOf(
  removals: readonly RemovalView[],
): { readonly reason: string; readonly message: string } | undefined {
  const failed = removals.flatMap((removal) => (removal.kind === 'failed' ? [removal] : []))
  const waits = removals.flatMap((removal) => (removal.kind === 'waiting' ? [removal.message] : []))
  const leave = `or annotate the inventory with ${GIVE_UP_CLEANUP}=true to leave it there`
  if (failed.length > 0)
    return {
      reason: failed.some(({ errorClass }) => errorClass === 'terminal') ? 'CleanupTerminal' : 'Progressing',
      message: `what it wrote cannot be taken away: ${failed.map(({ message }) => message).join('; ')}. Mend the sink, ${leave}`,
    }
  if (waits.length === 0) return undefined
  return { reason: 'CleanupWaits', message: `what it wrote is taken away later: ${waits.join('; ')}. Wait, ${leave}` }
}

/** The sinks of a family. */
export const sinksOf = (informers: InventoryInformers, family: SinkFamily): Informer<KubeObject> => {
  const { databaseSinks, snapshotSinks, eventSinks } = informers
  return { database: databaseSinks, snapshot: snapshotSinks, event: eventSinks }[
    family
  ] as unknown as Informer<KubeObject>
}

const keyOf = ({ name, namespace }: KubeObject['metadata']): ObjectKey => (namespace ? { name, namespace } : { name })

/** Objects of lists do not say their kind. */
const named = (object: AnyInventory, { kind, resource: { group, version } }: InventoryKind): KubeObject => ({
  ...object,
  apiVersion: `${group}/${version}`,
  kind,
})

const invalid = (faults: readonly Fault[]) => ({
  reason: 'InvalidSpec',
  message: faults
    .map(({ path, message }) => `${path} ${message}`)
    .join('; ')
    .slice(0, 4096),
})

const noTargets = ({ isYoung, message }: NoTargets) => ({ reason: isYoung ? 'Progressing' : 'NoTargets', message })

/** What earlier starts exported, and what they owed, as the status says it. */
function seedsOf(status: InventoryStatus | undefined): ReadonlyMap<string, Seed> {
  const seeds = new Map<string, Seed>()
  for (const {
    name,
    lastChecksum,
    lastExportTime,
    sinkIdentity,
    itemCount,
    behindSince,
    manifest,
  } of status?.sinkExports ?? [])
    seeds.set(name, {
      ...(lastChecksum &&
        sinkIdentity && {
          exported: {
            ...{ checksum: lastChecksum, at: timeOf(lastExportTime), identity: sinkIdentity },
            ...(itemCount !== undefined && { rows: itemCount }),
          },
        }),
      ...(behindSince !== undefined && { behindSince: timeOf(behindSince) }),
      ...(manifest !== undefined && { listedAt: manifest }),
    })
  return seeds
}

/** How long until something that a sink lacks becomes late, ms; undefined: nothing will. */
function lateInMs(bindings: readonly BindingView[], now: number): number | undefined {
  const waits = bindings.flatMap(({ lateAt }) => (lateAt !== undefined && lateAt > now ? [lateAt - now] : []))
  return waits.length === 0 ? undefined : Math.min(...waits)
}
