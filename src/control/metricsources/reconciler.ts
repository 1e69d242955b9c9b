import { isDeepStrictEqual } from 'node:util'
import pLimit from 'p-limit'
import type { CatalogWriter, SourceCatalog } from '#catalog'
import { againAfter, done, type Informer, keyText, type Outcome, type Reconciler } from '#controller'
import type { MetricSourceStatus } from '#kinds'
import { isKubeError, type KubeClient, type KubeObject, type ObjectKey } from '#kube'
import { type CompilationResult, compileMetricSource, type SourceDefinition } from '#metricsource'
import {
  type Clock,
  type ClusterName,
  type ClusterState,
  FleetError,
  isDeclaredSource,
  type SourceId,
  seconds,
} from '#model'
import { backoffMs, type Logger } from '#runtime'
import type { StateReader } from '#state'
import { type Collected, collectedOf } from './collected.ts'
import { keyOfId, metricSourceResource, type SourceObject } from './source-resource.ts'
import { COUNTS_EVERY_MS, saysTheSame, sourceStatus, statusPatch } from './status.ts'

/** Stands for all sources at once; no object can have this name. */
const EVERYTHING = '*'

/** The key of all sources of a namespace at once. */
export const everything = (namespace: string): ObjectKey => ({ name: EVERYTHING, namespace })

/** What the reconciler asks of the ingester. */
export interface SourceRemover {
  /** Removes what the source saw on the cluster; unknown: nothing happens. May reject, as when the cluster's owner is away. */
  removeSource(cluster: ClusterName, source: SourceId): Promise<void>
}

/** What agents may not read though a source asks for it, as known to who gives them their roles. */
export interface AgentRoles {
  /** why the agent of the cluster may not read the kind, and what to do; undefined: that is not known */
  refusalOf(cluster: ClusterName, kind: { readonly group: string; readonly kind: string }): string | undefined
}

export interface SourceReconcilerOptions {
  readonly hub: KubeClient
  readonly catalog: SourceCatalog & CatalogWriter
  /** may be some seconds behind, as that of other processes is */
  readonly state: Pick<StateReader, 'availability' | 'clusters'>
  readonly ingester: SourceRemover
  /** absent: no agent is given a role by this hub */
  readonly agentRoles?: AgentRoles
  readonly objects: Pick<Informer<KubeObject>, 'get' | 'list'>
  readonly logger: Logger
  readonly clock: Clock
  readonly random: () => number
  readonly resyncEveryMs: number
  /** how often statuses are looked at though nothing was heard */
  readonly lookEveryMs: number
  readonly enqueue: (key: ObjectKey) => void
}

interface Compiled {
  readonly uid: string | undefined
  readonly generation: number | undefined
  readonly spec: unknown
  readonly result: CompilationResult
}

/** What collectors work by. */
interface InForce {
  readonly definition: SourceDefinition
  readonly hash: string
  readonly typeName: string
  /** undefined: of a revision that another process brought */
  readonly generation: number | undefined
}

/** Clusters that are rid of a source at once: each may be another process's, and that may be slow. */
const REMOVALS_AT_ONCE = 16
/** Compiled in a row before others get a turn. */
const SLICE = 20
const BACKOFF = { fromMs: 500, toMs: seconds(15) }

/**
 * Brings MetricSources from the API to the catalog: object → compile → catalog → status. A faulty revision does not replace
 * the one before it. What was deleted, while nobody looked too, goes from the catalog, and what it collected from the state.
 */
export class SourceReconciler implements Reconciler {
  readonly name = 'metric-sources'
  readonly #options: SourceReconcilerOptions
  readonly #compiled = new Map<SourceId, Compiled>()
  readonly #inForce = new Map<SourceId, InForce>()
  /** what the catalog took last */
  readonly #written = new Map<SourceId, SourceDefinition>()
  /** another object has the name by now: what the one before it collected goes with it */
  readonly #replaced = new Set<SourceId>()
  /** left the catalog in a resync, and not yet told */
  readonly #gone = new Set<SourceId>()
  /** told to be deleted, while state may not show yet that what they collected went */
  readonly #deleted = new Set<SourceId>()
  readonly #failures = new Map<SourceId, number>()
  /** statuses written over these versions, and when */
  readonly #said = new Map<SourceId, { over: string | undefined; status: MetricSourceStatus; at: number }>()
  #isSynced = false
  #resyncFailed = false
  #resyncedAt = Number.NEGATIVE_INFINITY
  /** counted, so that one during a resync is not taken for mended by it */
  #losses = 0

  constructor(options: SourceReconcilerOptions) {
    this.#options = options
  }

  reconcile(key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    return key.name === EVERYTHING ? this.#everything(key, signal) : this.#one(key, signal)
  }

  /** Nothing is known yet: while this process did not lead, another one wrote. */
  begin(): void {
    this.#isSynced = false
    this.#resyncFailed = false
    for (const known of [this.#compiled, this.#inForce, this.#written, this.#failures, this.#said]) known.clear()
    for (const marks of [this.#gone, this.#deleted, this.#replaced]) marks.clear()
  }

  /** Whatever the catalog held, it is written again as a whole. */
  forgetWritten(): void {
    this.#losses++
    this.#written.clear()
    this.#resyncedAt = Number.NEGATIVE_INFINITY
  }

  async #one(key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    // Before the first comparison the store may hold a revision that a faulty one must not replace.
    if (!this.#isSynced && !this.#resyncFailed) return done
    const id = keyText(key)
    const object = this.#options.objects.get(key)
    if (!object || !isWanted(object)) return this.#remove(id)
    const source = this.#sourceOf(object)
    this.#deleted.delete(id)
    this.#compile(id, source)
    if (this.#replaced.has(id)) {
      // What is collected may be of the object before it, and is not known yet.
      if (!this.#clusters()) return againAfter(seconds(1))
      const left = await this.#remove(id)
      if (left !== done) return left
      this.#compile(id, source)
    }
    const trouble = await this.#store(id)
    await this.#say(id, source, trouble, signal)
    return trouble === undefined ? againAfter(this.#options.lookEveryMs) : this.#tryAgain(id)
  }

  async #remove(id: SourceId): Promise<Outcome> {
    const { catalog, logger } = this.#options
    const typeName = (this.#inForce.get(id) ?? catalog.source(id))?.typeName
    const clusters = this.#clusters()?.filter(({ tables }) => tables.has(id)) ?? []
    const isNews = this.#gone.has(id) || typeName !== undefined || (clusters.length > 0 && !this.#deleted.has(id))
    try {
      await catalog.remove(id)
      await this.#removeFrom(clusters, id)
    } catch (error) {
      const facts = { source: id, error: FleetError.from(error).message }
      logger.warn(facts, 'a deleted MetricSource is still in the store; trying again')
      return this.#tryAgain(id)
    }
    this.#forget(id)
    if (typeName !== undefined) this.#askForPeers([typeName])
    if (isNews) {
      this.#deleted.add(id)
      await this.#announce('deleted', id, null)
    }
    // What is collected is not known yet, and may be of this source.
    return this.#clusters() ? done : againAfter(seconds(1))
  }

  /** From all of them, whichever refuse. @throws what the first one said that did */
  async #removeFrom(clusters: readonly ClusterState[], id: SourceId): Promise<void> {
    const { ingester } = this.#options
    const limit = pLimit(REMOVALS_AT_ONCE)
    const ends = await Promise.allSettled(clusters.map(({ name }) => limit(() => ingester.removeSource(name, id))))
    const refused = ends.find((end) => end.status === 'rejected')
    if (refused) throw refused.reason
  }

  /** @returns why the catalog did not take it; undefined: it did */
  async #store(id: SourceId): Promise<string | undefined> {
    const { catalog, logger } = this.#options
    const inForce = this.#inForce.get(id)
    if (!inForce || this.#written.get(id) === inForce.definition) return undefined
    const before = catalog.source(id)?.typeName
    try {
      await catalog.put(inForce.definition)
    } catch (error) {
      const { message } = FleetError.from(error)
      logger.warn({ source: id, error: message }, 'the store did not take a MetricSource; trying again')
      return message
    }
    this.#failures.delete(id)
    this.#written.set(id, inForce.definition)
    if (before !== inForce.typeName) this.#askForPeers([before, inForce.typeName], id)
    return undefined
  }

  /** Writes what differs from the stored status: at once where it says something new, else at a bounded rate. */
  async #say(id: SourceId, source: SourceObject, trouble: string | undefined, signal: AbortSignal): Promise<void> {
    const { hub, clock } = this.#options
    const now = clock.now()
    const collected = this.#collected(id)
    const wanted = this.#status(id, source, collected, trouble, now)
    const patch = statusPatch(source.status, wanted)
    if (!patch) return
    const saidAt = this.#said.get(id)?.at ?? Number.NEGATIVE_INFINITY
    if (saysTheSame(source.status, wanted) && now - saidAt < COUNTS_EVERY_MS) return
    try {
      const body = { status: patch }
      await hub.patch(metricSourceResource, keyOfId(id), body, { kind: 'merge', subresource: 'status', signal })
    } catch (error) {
      if (!isKubeError(error, 'not_found')) throw error // deleted meanwhile: its key comes again
      return
    }
    this.#said.set(id, { over: source.metadata.resourceVersion, status: wanted, at: now })
    if (!collected || patch.lastCollectionTime === undefined) return
    const { resources, clustersCollected: clusters, errors } = collected
    await this.#announce('reconciled', id, { resources, clusters, errors })
  }

  #status(
    id: SourceId,
    source: SourceObject,
    collected: Collected | undefined,
    storeTrouble: string | undefined,
    now: number,
  ): MetricSourceStatus {
    const inForce = this.#inForce.get(id)
    const owner = inForce && this.#options.catalog.ofType(inForce.typeName)
    return sourceStatus({
      generation: source.metadata.generation,
      spec: source.spec,
      stored: source.status,
      findings: this.#compiled.get(id)?.result.findings ?? [],
      inForce,
      storeTrouble,
      collected,
      typeNameOf: owner && owner.id !== id ? { typeName: owner.typeName, source: owner.id } : undefined,
      now,
    })
  }

  async #everything(key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    const { clock, logger, resyncEveryMs, lookEveryMs } = this.#options
    if (this.#isSynced && clock.now() - this.#resyncedAt < resyncEveryMs) {
      const inState = this.#idsInState()
      for (const id of this.#deleted) if (this.#clusters() && !inState.includes(id)) this.#deleted.delete(id)
      this.#askForGone(inState)
      return againAfter(lookEveryMs)
    }
    const [resyncedAt, losses] = [clock.now(), this.#losses]
    try {
      await this.#resync(signal)
    } catch (error) {
      if (signal.aborted) throw error
      this.#resyncFailed = true
      const { message } = FleetError.from(error)
      logger.warn({ error: message }, 'the store of MetricSources could not be compared; trying again')
      for (const object of this.#objects()) this.#options.enqueue(objectKey(object))
      return this.#tryAgain(keyText(key))
    }
    this.#failures.delete(keyText(key))
    if (losses === this.#losses) this.#resyncedAt = resyncedAt
    return againAfter(lookEveryMs)
  }

  async #resync(signal: AbortSignal): Promise<void> {
    const { catalog, enqueue } = this.#options
    await this.#prepare(signal)
    // From here to the call nothing is awaited: what changes meanwhile is written after it, not before.
    const present = new Set(this.#objects().map(({ metadata }) => keyText(metadata)))
    for (const id of this.#inForce.keys()) if (!present.has(id)) this.#forget(id)
    const brought = [...this.#inForce.entries()]
    const before = catalog.sources().map(({ id }) => id)
    await catalog.resync(brought.map(([, { definition }]) => definition))
    for (const [id, { definition }] of brought) this.#written.set(id, definition)
    this.#isSynced = true
    this.#resyncFailed = false
    this.#askForGone([...before, ...this.#idsInState()])
    for (const object of this.#objects()) enqueue(objectKey(object))
    // Deleted while the store took everything: its own key may have come and gone before we were ready for it.
    for (const [id] of brought) if (!this.#options.objects.get(keyOfId(id))) enqueue(keyOfId(id))
  }

  /** Compiles what is new, and looks for the revisions that faulty ones must not replace. */
  async #prepare(signal: AbortSignal): Promise<void> {
    const { catalog } = this.#options
    let compiled = 0
    for (const object of this.#objects()) {
      const id = keyText(object.metadata)
      if (this.#compile(id, this.#sourceOf(object)) && ++compiled % SLICE === 0) {
        await new Promise((resolve) => setImmediate(resolve))
        signal.throwIfAborted()
      }
      if (this.#inForce.has(id)) continue
      const definition = await catalog.stored?.(id)
      if (!definition || !mayBeOf(definition, object)) continue
      const { hash, rbac } = definition as { readonly hash?: unknown; readonly rbac?: { resourceTypeName?: unknown } }
      const typeName = catalog.source(id)?.typeName ?? String(rbac?.resourceTypeName ?? '')
      this.#inForce.set(id, { definition, hash: String(hash), typeName, generation: undefined })
    }
  }

  /** Without errors it comes into force. @returns whether it was new */
  #compile(id: SourceId, source: SourceObject): boolean {
    const { uid, generation } = source.metadata
    const known = this.#compiled.get(id)
    const isKnown =
      known?.uid === uid &&
      known?.generation === generation &&
      (generation !== undefined || isDeepStrictEqual(known?.spec, source.spec))
    if (known && isKnown) return false
    if (known && known.uid !== uid) {
      this.#inForce.delete(id)
      this.#replaced.add(id)
    }
    const result = compileMetricSource(source, this.#options.clock.now())
    this.#compiled.set(id, { uid, generation, spec: source.spec, result })
    if (!result.source) return true
    const { definition, hash, typeName } = result.source
    this.#inForce.set(id, { definition, hash, typeName, generation })
    return true
  }

  #askForGone(ids: readonly SourceId[]): void {
    for (const id of new Set(ids)) {
      const object = this.#options.objects.get(keyOfId(id))
      if (object && isWanted(object)) continue
      if (!this.#deleted.has(id)) this.#gone.add(id)
      this.#options.enqueue(keyOfId(id))
    }
  }

  /** Who else has one of these type names may have to say something new. */
  #askForPeers(typeNames: readonly (string | undefined)[], but?: SourceId): void {
    for (const [id, { typeName }] of this.#inForce)
      if (id !== but && typeNames.includes(typeName)) this.#options.enqueue(keyOfId(id))
  }

  async #announce(
    type: 'reconciled' | 'deleted',
    id: SourceId,
    data: Readonly<Record<string, unknown>> | null,
  ): Promise<void> {
    const { catalog, logger } = this.#options
    await catalog.announce(type, id, data).catch((error: unknown) => {
      // News for other programs, which look for themselves too.
      logger.debug({ source: id, type, error: FleetError.from(error).message }, 'an event was not told')
    })
  }

  /** undefined while state is being loaded */
  #clusters() {
    const { state } = this.#options
    return state.availability().state === 'loading' ? undefined : state.clusters()
  }

  #collected(id: SourceId): Collected | undefined {
    const { catalog, agentRoles } = this.#options
    const clusters = this.#clusters()
    const target = catalog.source(id)?.target
    const refusalOf = (cluster: ClusterName) => target && agentRoles?.refusalOf(cluster, target)
    return clusters && collectedOf(id, clusters, this.#inForce.get(id)?.hash, refusalOf)
  }

  #idsInState(): readonly SourceId[] {
    return [...new Set((this.#clusters() ?? []).flatMap(({ tables }) => [...tables.keys()].filter(isDeclaredSource)))]
  }

  #objects(): readonly KubeObject[] {
    return this.#options.objects.list().filter(isWanted)
  }

  /** The object with the status we wrote last, which the informer may not have seen yet. */
  #sourceOf(object: KubeObject): SourceObject {
    const source = object as unknown as SourceObject // served under our schema
    const said = this.#said.get(keyText(object.metadata))
    return said && said.over === object.metadata.resourceVersion ? { ...source, status: said.status } : source
  }

  #forget(id: SourceId): void {
    for (const known of [this.#compiled, this.#inForce, this.#written, this.#failures, this.#said]) known.delete(id)
    for (const marks of [this.#gone, this.#replaced]) marks.delete(id)
  }

  #tryAgain(key: string): Outcome {
    const failures = this.#failures.get(key) ?? 0
    this.#failures.set(key, failures + 1)
    return againAfter(backoffMs(failures, { ...BACKOFF, random: this.#options.random }))
  }
}

/** Whether it was of this very object: of one that had its name before, it neither has a status nor was it there already. */
function mayBeOf({ compiledAt }: SourceDefinition, { status, metadata }: KubeObject): boolean {
  return status !== undefined || Date.parse(String(compiledAt)) >= Date.parse(metadata.creationTimestamp ?? '')
}

const isWanted = ({ metadata }: KubeObject): boolean => metadata.deletionTimestamp === undefined
const objectKey = ({ metadata }: KubeObject): ObjectKey => keyOfId(keyText(metadata))
