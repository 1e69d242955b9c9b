import {
  type Controller,
  changesSpec,
  type Informer,
  keyText,
  type ObjectChange,
  onReferredChange,
  type Trigger,
} from '#controller'
import type { KollectKnown } from '#kinds'
import type { KubeClient, KubeObject, ObjectKey, Resource } from '#kube'
import { type Clock, seconds, steadyClock, systemClock } from '#model'
import type { Logger, Metrics } from '#runtime'
import { type SinkContext, type SinkFamily, SinkPool } from '#sinks'
import { InventoryView } from './api/view.ts'
import { SinkHealth } from './bindings/sink-health.ts'
import type { BindingView } from './bindings/view.ts'
import { SinkDirectory } from './declared/sink-directory.ts'
import { InventoryFeed } from './hub/index.ts'
import { ExportMetrics, type Lag } from './metrics.ts'
import { type InventoryInformers, inventoryResources } from './objects.ts'
import { ConnectionTestReconciler } from './reconcile/connection-tests.ts'
import { EventRecorder } from './reconcile/event-recorder.ts'
import {
  clusterInventory,
  denialOfSink,
  exportsTo,
  type InventoryKind,
  inventoryAt,
  namespacedInventory,
} from './reconcile/inventory-kinds.ts'
import { InventoryReconciler, sinksOf } from './reconcile/inventory-reconciler.ts'
import { SinkReconciler } from './reconcile/sink-reconciler.ts'
import { changesChoice, keysOf, onSpecOrAnnotations } from './reconcile/triggers.ts'
import { ReconcileMetrics } from './reconcile-metrics.ts'
import { measureRows } from './row-metrics.ts'
import type { RowSink } from './rows.ts'
import type { SinkPlace } from './sink-place.ts'
import { sinkExports } from './status/sink-exports.ts'
import { DirtySet, RowStore } from './store/index.ts'

/** What inventories and sinks of one cluster need to run. */
export interface InventoryEngineOptions {
  /** of this cluster */
  readonly kube: KubeClient
  /** not started: a Manager does, with the controllers */
  readonly informers: InventoryInformers
  /** identity of this cluster in sinks that say none; '' : such sinks are refused */
  readonly cluster: string
  /** by what objects are judged, as at admission; without their scopes */
  readonly known: KollectKnown
  /** what sinks get from the process */
  readonly sinks: SinkContext
  /** default: one of its own */
  readonly pool?: SinkPool
  readonly logger: Logger
  readonly metrics: Metrics
  /** default: of its own */
  readonly reconciles?: ReconcileMetrics
  /** of the wall: times in statuses */
  readonly clock?: Clock
  /** measures how long something takes, whatever the clock of the wall is set to */
  readonly steady?: Clock
  readonly random?: () => number
}

/** Objects that are looked at at once, and of one namespace: what the API server takes long for holds up nobody else. */
const TURNS = { concurrency: 8, perNamespace: 3 }
const FAMILIES = ['database', 'snapshot', 'event'] as const
/** Namespaces come and change their labels by the hundred: roll-ups look once for all of them, after so long in ms. */
const NAMESPACES_CALM_MS = 500
/** Counts and times of a sink follow its inventories within so long, ms. */
const SINK_COUNTS_MS = seconds(10)

/**
 * Inventories of one cluster: takes the rows of targets, and runs what brings them to sinks. Its controllers go to a Manager, and `lead`
 * with them: what runs ends when this process does not lead any more.
 */
export class InventoryEngine implements AsyncDisposable {
  /** where targets put their rows */
  readonly rows: RowSink
  /** what a hub is told of them */
  readonly feed: InventoryFeed
  readonly controllers: readonly Controller[]
  /** what may be read of all this while it runs */
  readonly view: InventoryView
  readonly #store: RowStore
  readonly #dirty: DirtySet
  readonly #pool: SinkPool
  readonly #ownsPool: boolean
  readonly #inventories: readonly InventoryReconciler[]

  static open(options: InventoryEngineOptions): InventoryEngine {
    return new InventoryEngine(options)
  }

  private constructor(options: InventoryEngineOptions) {
    const { kube, informers, known, logger, random = Math.random } = options
    const [clock, steady] = [options.clock ?? systemClock, options.steady ?? steadyClock]
    const now = () => clock.now()
    this.#pool = options.pool ?? new SinkPool({ context: options.sinks })
    this.#ownsPool = options.pool === undefined
    this.#store = new RowStore((namespace) => this.#dirty.add(namespace), { now })
    this.#dirty = new DirtySet((namespaces) => {
      for (const namespace of namespaces) for (const one of this.#inventories) one.rowsChanged(namespace)
      this.view.changes.tell()
      this.feed.changed()
    }, steady)
    this.feed = new InventoryFeed(this.#store, informers)
    this.view = new InventoryView({
      ...{ store: this.#store, informers, now },
      bindings: (namespace, name) => this.#bindings(namespace, name),
    })
    this.rows = this.#store
    const metrics = new ExportMetrics(options.metrics, () => this.#lags())
    const reconciles = options.reconciles ?? new ReconcileMetrics(options.metrics)
    measureRows(options.metrics, { store: this.#store, informers, itemCounts: () => this.#itemCounts(), clock: steady })
    const directory = new SinkDirectory(now)
    const recorder = new EventRecorder(kube, logger, now)
    const shared = { kube, directory, pool: this.#pool, known, recorder, metrics, clock, random }
    const controllers = new Map<string, Controller>()
    const add = (controller: Controller) => controllers.set(controller.name, controller)
    const sinks = new Map<SinkFamily, SinkReconciler>()
    const lookAgain = ({ family, ...key }: SinkPlace, afterMs = 0) =>
      controllers.get(`${family}-sinks`)?.enqueue(key, afterMs)
    const onDoubt = (place: SinkPlace) => {
      const { family, ...key } = place
      sinks.get(family)?.doubt(key)
      lookAgain(place)
    }
    const health = new SinkHealth({ logger, now, onDoubt })

    const inventories = [namespacedInventory, clusterInventory].map((of) => {
      const objects = objectsOf(of, informers)
      const reconciler: InventoryReconciler = new InventoryReconciler({
        ...shared,
        of,
        objects,
        informers,
        logger,
        run: { pool: this.#pool, metrics, health, logger, clock: steady, now, random, store: this.#store },
        enqueue: (key, afterMs) => controllers.get(reconciler.name)?.enqueue(key, afterMs),
        onExports: (places, isNews) => {
          for (const place of places) lookAgain(place, isNews ? 0 : SINK_COUNTS_MS)
        },
      })
      add(
        reconciles.controller(of.kind, {
          reconciler,
          triggers: of.isRollUp ? rollUpTriggers(informers, controllers) : inventoryTriggers(informers),
          ...TURNS,
          logger,
          clock: steady,
          random,
        }),
      )
      return { reconciler, objects }
    })
    this.#inventories = inventories.map(({ reconciler }) => reconciler)
    // What a sink is decides over every inventory that may name it.
    directory.onChange(({ namespace }) => {
      for (const { reconciler, objects } of inventories) {
        const own = reconciler.name === 'inventories' ? namespace : undefined
        for (const key of keysOf(objects, own)) controllers.get(reconciler.name)?.enqueue(key)
      }
    })
    for (const family of FAMILIES) {
      const objects = sinksOf(informers, family)
      const reconciler = new SinkReconciler({
        ...shared,
        family,
        objects,
        resource: SINK_RESOURCES[family],
        cluster: options.cluster,
        logger,
        health,
        onAnswer: (place) => {
          for (const { reconciler } of inventories) reconciler.answered(place)
        },
        denialOf: (place) => denialOfSink(place, informers),
        inventoryAt: (place) => inventoryAt(place, informers),
        exportsOf: (place) => sinkExports(exportsTo(place, informers)),
        scopesOf: (namespace) => informers.scopes.list().filter(({ metadata }) => metadata.namespace === namespace),
      })
      sinks.set(family, reconciler)
      const ofScopes = onReferredChange(informers.scopes, ({ key }) => keysOf(objects, key.namespace))
      const all = (change: ObjectChange<KubeObject>) => (changesSpec(change) ? keysOf(objects) : [])
      const ofRollUps = [informers.clusterScopes, informers.clusterInventories].map((of) =>
        onReferredChange(of as unknown as Informer<KubeObject>, all),
      )
      const triggers = [onSpecOrAnnotations(objects), ofScopes, ...ofRollUps]
      add(
        reconciles.controller(SINK_RESOURCES[family].kind, {
          reconciler,
          triggers,
          ...TURNS,
          logger,
          clock: steady,
          random,
        }),
      )
    }
    const tests = new ConnectionTestReconciler({ ...shared, informers })
    const triggers = [onSpecOrAnnotations(informers.connectionTests)]
    const { kind } = inventoryResources.connectionTests
    add(reconciles.controller(kind, { reconciler: tests, triggers, ...TURNS, logger, clock: steady, random }))
    this.controllers = [...controllers.values()]
  }

  /** Lets inventories run until the signal, and then ends them: for `whileLeading` of the Manager. */
  async lead(signal: AbortSignal): Promise<void> {
    for (const one of this.#inventories) one.begin()
    this.feed.changed() // all that is declared is known
    if (!signal.aborted)
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
    await this.#end()
  }

  /** Ends what runs and closes the sinks; the Manager has stopped the controllers before. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#dirty[Symbol.asyncDispose]()
    await this.#end()
    if (this.#ownsPool) await this.#pool[Symbol.asyncDispose]()
  }

  async #end(): Promise<void> {
    await Promise.all(this.#inventories.map((one) => one.end()))
  }

  *#itemCounts(): Generator<number | undefined> {
    for (const one of this.#inventories) for (const [, run] of one.runs()) yield run.latest()?.itemCount
  }

  #bindings(namespace: string, name: string): readonly BindingView[] | undefined {
    const key = keyText({ namespace, name })
    for (const one of this.#inventories) {
      const run = one.running(key)
      if (run) return run.bindings.map((binding) => binding.view())
    }
    return undefined
  }

  *#lags(): Generator<Lag> {
    for (const one of this.#inventories) {
      for (const [key, run] of one.runs()) {
        const slash = key.indexOf('/')
        const of = { namespace: slash < 0 ? '' : key.slice(0, slash), inventory: key.slice(slash + 1) }
        for (const binding of run.bindings)
          yield { ...of, sink: binding.name, lagMs: binding.lagMs, windowMs: binding.windowMs }
      }
    }
  }
}

const SINK_RESOURCES: Readonly<Record<SinkFamily, Resource<KubeObject>>> = {
  database: inventoryResources.databaseSinks as unknown as Resource<KubeObject>,
  snapshot: inventoryResources.snapshotSinks as unknown as Resource<KubeObject>,
  event: inventoryResources.eventSinks as unknown as Resource<KubeObject>,
}

const objectsOf = ({ isRollUp }: InventoryKind, { inventories, clusterInventories }: InventoryInformers) =>
  (isRollUp ? clusterInventories : inventories) as unknown as Informer<KubeObject> // read by its own kind only

function inventoryTriggers(informers: InventoryInformers): readonly Trigger[] {
  const inventories = informers.inventories as unknown as Informer<KubeObject>
  const ofNamespace = ({ namespace }: ObjectKey) => keysOf(inventories, namespace ?? '')
  return [
    onSpecOrAnnotations(inventories),
    onReferredChange(informers.targets, (change) => (change.kind === 'changed' ? [] : ofNamespace(change.key))),
    onReferredChange(informers.scopes, ({ key }) => ofNamespace(key)),
    ...FAMILIES.map((family) => onReferredChange(sinksOf(informers, family), comingAndGoing(ofNamespace))),
  ]
}

function rollUpTriggers(
  informers: InventoryInformers,
  controllers: ReadonlyMap<string, Controller>,
): readonly Trigger[] {
  const rollUps = informers.clusterInventories as unknown as Informer<KubeObject>
  const all = () => keysOf(rollUps)
  return [
    onSpecOrAnnotations(rollUps),
    onReferredChange(informers.clusterTargets, (change) => (changesChoice(change) ? all() : [])),
    onReferredChange(informers.clusterScopes, all),
    onReferredChange(informers.namespaces, (change) => {
      if (changesChoice(change))
        for (const key of all()) controllers.get('cluster-inventories')?.enqueue(key, NAMESPACES_CALM_MS)
      return []
    }),
    ...FAMILIES.map((family) => onReferredChange(sinksOf(informers, family), comingAndGoing(all))),
  ]
}

/** That a sink is there, or is not, says the informer; what it is, the directory. */
const comingAndGoing =
  (keys: (key: ObjectKey) => readonly ObjectKey[]) =>
  ({ kind, key }: { readonly kind: string; readonly key: ObjectKey }) =>
    kind === 'changed' ? [] : keys(key)
