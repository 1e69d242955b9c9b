import { type Controller, changesSpec, type Informer, onSpecChange } from '#controller'
import type { NamespaceFacts } from '#extract'
import type { KollectTargetStatus } from '#kinds'
import type { KubeObject } from '#kube'
import { type Clock, systemClock } from '#model'
import { FOLLOWED_AGAIN_MS, type InventoryInformers, inventoryResources, unfollowedOf } from '../objects.ts'
import { EventRecorder } from '../reconcile/event-recorder.ts'
import type { ReconcileMetrics } from '../reconcile-metrics.ts'
import type { TargetKey } from '../rows.ts'
import { SecondLook } from '../second-look.ts'
import { kindText } from './compile.ts'
import type { Declarations, Declared } from './declared.ts'
import { TargetEngine, type TargetEngineOptions, type TargetWorld } from './engine.ts'
import { ExtractionTimes } from './extraction-time.ts'
import { TargetReconciler } from './reconciler.ts'
import { RowSpaces } from './row-space.ts'

export interface InventoryTargetsOptions extends Omit<TargetEngineOptions, 'onChange' | 'clock' | 'times' | 'spaces'> {
  readonly informers: InventoryInformers
  /** measures its controllers */
  readonly reconciles: ReconcileMetrics
  readonly clock?: Clock
  /** of the rows of one namespace; default 128 MiB */
  readonly maxRowBytes?: number | undefined
}

const DEFAULT_MAX_ROW_BYTES = 128 * 2 ** 20

/** As many as a sentence names. */
const MAX_KINDS = 10

/** Changes come in crowds: the world is looked at once for all of them. */
const GATHER_MS = 50
/** Where looking takes long it is done less often: so many times what it took. */
const PAUSE_PER_LOOK = 10

/**
 * Targets of a cluster, from the objects that declare them to what is said about them. Its controllers run in a manager; `run` beside them.
 */
export class InventoryTargets {
  readonly controllers: readonly Controller[]
  readonly #options: InventoryTargetsOptions
  readonly #engine: TargetEngine
  readonly #clock: Clock
  readonly #looks: SecondLook
  #onLooked: () => void = () => undefined
  #isDirty = false
  #looking: Promise<void> | undefined
  /** something was judged by what is not followed: it is looked at again */
  #isDoubtful = false

  constructor(options: InventoryTargetsOptions) {
    const { kube, informers, reconciles, clock = systemClock, logger } = options
    this.#options = options
    this.#clock = clock
    this.#looks = new SecondLook(this.informers, clock, () => this.#onLooked())
    const stateOf = (key: TargetKey) => this.#engine.state(key)
    const release = () => this.#look()
    const recorder = new EventRecorder(kube, logger, () => clock.now())
    const of = <T extends KubeObject>(
      name: string,
      resource: ConstructorParameters<typeof TargetReconciler<T>>[0]['resource'],
      informer: Informer<T>,
    ) =>
      reconciles.controller(resource.kind, {
        reconciler: new TargetReconciler({ name, kube, resource, informer, stateOf, release, recorder, clock }),
        triggers: [onSpecChange(informer)],
        ...{ concurrency: 8, perNamespace: 3 },
        ...{ logger, clock },
      })
    const targets = of('targets', inventoryResources.targets, informers.targets)
    const clusterTargets = of('cluster-targets', inventoryResources.clusterTargets, informers.clusterTargets)
    this.controllers = [targets, clusterTargets]
    this.#engine = new TargetEngine({
      ...options,
      times: new ExtractionTimes(clock),
      spaces: new RowSpaces(options.maxRowBytes ?? DEFAULT_MAX_ROW_BYTES),
      clock,
      onChange: ({ namespace, name }) =>
        namespace === '' ? clusterTargets.enqueue({ name }) : targets.enqueue({ namespace, name }),
    })
  }

  /** Open watches, and for how long each has not followed its kind. */
  watches(): ReturnType<TargetEngine['watches']> {
    return this.#engine.watches()
  }

  /** What of their objects cannot be followed, for people who may not know of whose namespaces. */
  faults(): readonly string[] {
    const troubled = this.watches().filter(({ why }) => why !== undefined)
    const [longest] = troubled.sort((a, b) => b.staleMs - a.staleMs)
    if (!longest) return []
    const kinds = [...new Set(troubled.map(({ gvk }) => kindText(gvk)))]
    const names = `${kinds.slice(0, MAX_KINDS).join(', ')}${kinds.length > MAX_KINDS ? ` and ${kinds.length - MAX_KINDS} more` : ''}`
    const since = new Date(this.#clock.now() - longest.staleMs).toISOString()
    return [`objects of targets (${names}) cannot be followed since ${since}: ${longest.why}`]
  }

  get load(): TargetEngine['load'] {
    return this.#engine.load
  }

  /** Informers that must have their first list before anything is read; a manager starts those of its controllers. */
  get informers(): readonly Informer<KubeObject>[] {
    const { profiles, targets, clusterTargets, scopes, clusterScopes, namespaces } = this.#options.informers
    const all = [profiles, targets, clusterTargets, scopes, clusterScopes, namespaces]
    return all as unknown as readonly Informer<KubeObject>[] // they are only listened to
  }

  /** Reads what is declared, and keeps to it, until the signal ends it. */
  async run(signal: AbortSignal): Promise<void> {
    const { informers } = this
    for (const informer of informers) informer.start()
    const { targets, clusterTargets } = this.#options.informers
    // What is said about targets does not change what they want.
    const ofTargets: readonly unknown[] = [targets, clusterTargets]
    const unsubscribe = informers.map((informer) =>
      informer.onChange((change) => {
        if (!ofTargets.includes(informer) || changesSpec(change)) this.#lookSoon(signal)
      }),
    )
    this.#onLooked = () => this.#lookSoon(signal)
    try {
      // Their first lists are of several moments: what has rows in sinks, perhaps, is read after one look more.
      await Promise.all(informers.map((informer) => informer.synced(signal)))
      await this.#prepare()
      this.#look()
      while (!signal.aborted) {
        await this.#clock.sleep(FOLLOWED_AGAIN_MS, signal)
        if (this.#isDoubtful) this.#lookSoon(signal)
      }
    } catch (error) {
      if (!signal.aborted) throw error
    } finally {
      for (const end of unsubscribe) end()
      await this.#looking
      await this.#engine.stop()
    }
  }

  #lookSoon(signal: AbortSignal): void {
    this.#isDirty = true
    this.#looking ??= this.#lookWhileDirty(signal).finally(() => {
      this.#looking = undefined
      if (this.#isDirty && !signal.aborted) this.#lookSoon(signal)
    })
  }

  async #lookWhileDirty(signal: AbortSignal): Promise<void> {
    while (this.#isDirty && !signal.aborted) {
      await this.#clock.sleep(GATHER_MS, signal)
      if (signal.aborted) return
      this.#isDirty = false
      await this.#prepare()
      const startedAt = performance.now()
      this.#look()
      await this.#clock.sleep((performance.now() - startedAt) * PAUSE_PER_LOOK, signal)
    }
  }

  async #prepare(): Promise<void> {
    if (this.#isKnown) await this.#engine.prepare(worldOf(this.#options.informers))
  }

  #look(): void {
    if (!this.#isKnown) return
    const unfollowed = unfollowedOf(this.informers)
    this.#isDoubtful = unfollowed !== undefined
    this.#engine.update({
      ...worldOf(this.#options.informers),
      ...(unfollowed !== undefined && { unfollowed }),
      looks: this.#looks,
    })
  }

  get #isKnown(): boolean {
    return this.informers.every(({ isSynced }) => isSynced)
  }
}

function worldOf({
  profiles,
  targets,
  clusterTargets,
  scopes,
  clusterScopes,
  namespaces,
}: InventoryInformers): TargetWorld {
  const declared: Declarations = {
    profiles: declaredBy(profiles.list()),
    targets: declaredBy(targets.list()),
    clusterTargets: declaredBy(clusterTargets.list()),
    scopes: declaredBy(scopes.list()),
    clusterScopes: declaredBy(clusterScopes.list()),
  }
  return {
    declared,
    namespaces: namespaces
      .list()
      .map(({ metadata: { name, labels = {}, annotations } }): NamespaceFacts => ({ name, labels, annotations })),
  }
}

function saidOf({ collectedCount = 0, conditions = [] }: KollectTargetStatus): Declared<unknown>['said'] {
  if (conditions.length === 0) return undefined
  const degraded = conditions.find(({ type, status }) => type === 'Degraded' && status === 'True')?.reason
  return { count: collectedCount, ...(degraded !== undefined && { degraded }) }
}

/** What is being deleted is not declared any more. */
const declaredBy = <Spec>(
  objects: readonly {
    readonly metadata: KubeObject['metadata']
    readonly spec: Spec
    readonly status?: unknown
  }[],
): readonly Declared<Spec>[] =>
  objects
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .map(({ metadata: { name, namespace = '', annotations = {}, generation }, spec, status }) => {
      const said = saidOf((status ?? {}) as KollectTargetStatus) // other kinds have no such fields
      return {
        ...{ name, namespace, annotations, spec },
        ...(generation !== undefined && { generation }),
        ...(said && { said }),
      }
    })
