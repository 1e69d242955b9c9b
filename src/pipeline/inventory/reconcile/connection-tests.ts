import { againAfter, done, type Outcome, type Reconciler } from '#controller'
import { type KollectConnectionTest, type KollectKnown, kollectConnectionTest, kollectFaults } from '#kinds'
import { isKubeError, type KubeClient, type KubeObject, type ObjectKey } from '#kube'
import { type Clock, seconds } from '#model'
import type { SinkFamily, SinkPool } from '#sinks'
import { denialOf } from '../bindings/plan.ts'
import { SINK_KINDS } from '../declared/resolve-sink.ts'
import type { SinkDirectory } from '../declared/sink-directory.ts'
import type { ExportMetrics } from '../metrics.ts'
import { type InventoryInformers, inventoryResources, type Stored } from '../objects.ts'
import type { SinkPlace } from '../sink-place.ts'
import { timeOf, timeText, withConditions } from '../status/inventory-status.ts'
import { ceilingsOf, scopesIn } from './inventory-kinds.ts'
import { sinksOf } from './inventory-reconciler.ts'
import { probeSink } from './probe-sink.ts'

export interface ConnectionTestOptions {
  readonly kube: KubeClient
  readonly informers: InventoryInformers
  readonly directory: SinkDirectory
  readonly pool: SinkPool
  readonly known: KollectKnown
  readonly metrics: ExportMetrics
  readonly clock: Clock
}

interface Result {
  readonly isVerified: boolean
  readonly reason: string
  readonly message: string
  readonly latencyMs?: number
}

const FIELDS = [
  ['snapshotSinkRef', 'snapshot'],
  ['databaseSinkRef', 'database'],
  ['eventSinkRef', 'event'],
] as const
const DEFAULT_TTL_S = 300
/** A sink that was declared a moment ago is waited for, ms. */
const SINK_AGAIN_MS = seconds(1)
/** A test that is applied together with its sink may come first: it waits so long, ms. */
const YOUNG_MS = seconds(10)

/** Looks at a sink once for each test, says what came of it, and deletes the test when its time is over. */
export class ConnectionTestReconciler implements Reconciler {
  readonly name = 'connection-tests'
  readonly #options: ConnectionTestOptions

  constructor(options: ConnectionTestOptions) {
    this.#options = options
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    const { informers, known } = this.#options
    const test = informers.connectionTests.get(key)
    if (!test || test.metadata.deletionTimestamp) return done
    if (test.status?.completed) return this.#expire(key, test, signal)
    const faults = kollectFaults('KollectConnectionTest', test, known)
    if (faults.length > 0) {
      const message = faults.map((fault) => `${fault.path} ${fault.message}`).join('; ')
      return this.#finish(key, test, failed(message), signal)
    }
    const place = placeOf(test)
    const sink = sinksOf(informers, place.family).get(place)
    if (!sink) {
      const ageMs = this.#options.clock.now() - timeOf(test.metadata.creationTimestamp)
      if (ageMs >= 0 && ageMs < YOUNG_MS) return againAfter(SINK_AGAIN_MS)
      const message = `there is no ${place.family} sink ${place.namespace}/${place.name}: create it, then make a new test`
      return this.#finish(key, test, { isVerified: false, reason: 'SinkNotFound', message }, signal)
    }
    await this.#own(key, test, sink, place.family, signal)
    const result = await this.#look(place, signal)
    return result ? this.#finish(key, test, result, signal) : againAfter(SINK_AGAIN_MS)
  }

  async #look(place: SinkPlace, signal: AbortSignal): Promise<Result | undefined> {
    const { informers, directory, pool, metrics, clock } = this.#options
    const found = directory.get(place)
    if (!found) return undefined
    // A sink that no inventory of this namespace may use is not called well.
    const denied = denialOf(ceilingsOf(scopesIn(place.namespace, informers)), place)
    if (denied) return failed(denied.message)
    if (found.kind === 'blocked') return failed(found.blocked.message)
    const startedAt = clock.now()
    const { isVerified, message } = await probeSink(pool, found.sink.object, signal)
    metrics.tested(found.spec.type, isVerified)
    const latencyMs = Math.max(0, Math.round(clock.now() - startedAt))
    return { isVerified, reason: isVerified ? 'ProbeSucceeded' : 'ConnectionTestFailed', message, latencyMs }
  }

  async #finish(
    key: ObjectKey,
    test: Stored<KollectConnectionTest>,
    result: Result,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const { kube, informers, clock } = this.#options
    const { isVerified, reason, message, latencyMs } = result
    const status = isVerified ? ('True' as const) : ('False' as const)
    const conditions = ['ConnectionVerified', 'Ready'].map((type) => ({ type, status, reason, message }))
    const { generation } = test.metadata
    const body = {
      status: {
        conditions: withConditions(test.status?.conditions, conditions, generation, clock.now()),
        ...(generation !== undefined && { observedGeneration: generation }),
        ...(latencyMs !== undefined && { latencyMs }),
        completed: true,
        completedAt: timeText(clock.now()),
      },
    }
    try {
      const written = await kube.patch(inventoryResources.connectionTests, key, body, {
        kind: 'merge',
        subresource: 'status',
        signal,
      })
      informers.connectionTests.wrote(written)
      return this.#expire(key, written, signal)
    } catch (error) {
      if (isKubeError(error, 'not_found')) return done
      throw error
    }
  }

  async #expire(
    key: ObjectKey,
    { metadata, spec, status }: Stored<KollectConnectionTest>,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const { kube, clock } = this.#options
    const ttlMs = seconds(spec.ttlSecondsAfterFinished ?? DEFAULT_TTL_S)
    const leftMs = timeOf(status?.completedAt) + ttlMs - clock.now()
    if (leftMs > 0 && ttlMs > 0) return againAfter(leftMs)
    try {
      const { uid } = metadata
      await kube.delete(inventoryResources.connectionTests, key, signal, uid === undefined ? {} : { uid })
    } catch (error) {
      if (!isKubeError(error, 'not_found') && !isKubeError(error, 'conflict')) throw error
    }
    return done
  }

  /** The test goes when its sink goes. */
  async #own(
    key: ObjectKey,
    { metadata, spec }: Stored<KollectConnectionTest>,
    sink: KubeObject,
    family: SinkFamily,
    signal: AbortSignal,
  ): Promise<void> {
    const { uid = '', name } = sink.metadata
    const owners = metadata.ownerReferences ?? []
    if (spec.ownerSink === false || owners.some((owner) => owner.uid === uid)) return
    const owner = { apiVersion: kollectConnectionTest.apiVersion, kind: SINK_KINDS[family], name, uid }
    const body = {
      metadata: { resourceVersion: metadata.resourceVersion, ownerReferences: [...owners, owner] },
    }
    const { kube, informers } = this.#options
    informers.connectionTests.wrote(
      await kube.patch(inventoryResources.connectionTests, key, body, { kind: 'merge', signal }),
    )
  }
}

const failed = (message: string): Result => ({ isVerified: false, reason: 'ConnectionTestFailed', message })

/** Exactly one reference is there: else the test has faults. */
function placeOf({ metadata, spec }: Stored<KollectConnectionTest>): SinkPlace {
  const [field, family] = FIELDS.find(([name]) => spec.sinkRef[name]) ?? FIELDS[0]
  return { family, namespace: metadata.namespace ?? '', name: spec.sinkRef[field] ?? '' }
}
