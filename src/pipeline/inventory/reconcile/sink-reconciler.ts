import { isDeepStrictEqual } from 'node:util'
import { againAfter, type Condition, done, type Informer, keyText, type Outcome, type Reconciler } from '#controller'
import type { KollectKnown, KollectSinkStatus } from '#kinds'
import { isKubeError, type KubeClient, type KubeObject, type ObjectKey, type Resource } from '#kube'
import { type Clock, minutes, seconds } from '#model'
import { backoffMs } from '#runtime'
import type { SinkFamily, SinkPool } from '#sinks'
import type { FoundSink, ReadySink } from '../bindings/plan.ts'
import { hasSecrets, resolveSink, SINK_KINDS, type SinkResource } from '../declared/resolve-sink.ts'
import type { SinkDirectory, SinkPlace } from '../declared/sink-directory.ts'
import type { ExportMetrics } from '../metrics.ts'
import type { WantedCondition } from '../status/inventory-conditions.ts'
import { statusPatch, timeText, withConditions } from '../status/inventory-status.ts'
import type { EventRecorder } from './event-recorder.ts'
import { probeSink } from './probe-sink.ts'
import { PREVIEW, TEST_CONNECTION } from './words.ts'

export interface SinkReconcilerOptions {
  readonly family: SinkFamily
  readonly kube: KubeClient
  readonly resource: Resource<KubeObject>
  readonly objects: Informer<KubeObject>
  /** the scopes of a namespace */
  readonly scopesOf: (namespace: string) => readonly KubeObject[]
  readonly directory: SinkDirectory
  readonly pool: SinkPool
  readonly known: KollectKnown
  /** identity of this agent; '' where it has none */
  readonly cluster: string
  readonly recorder: EventRecorder
  readonly metrics: ExportMetrics
  readonly clock: Clock
  readonly random: () => number
}

/** What was found when a sink was looked at last. */
interface Look {
  readonly identity: string
  readonly failures: number
  /** when a failed one is repeated */
  readonly againAt: number
  /** asked for by the annotation that stands there */
  readonly isAsked: boolean
}

/** Secrets are read again so often, ms: only those that sinks name, so nothing is watched. */
const SECRETS_EVERY_MS = seconds(30)
const PROBE_BACKOFF = { fromMs: seconds(10), toMs: minutes(5) }
const TYPES = ['ConnectionVerified', 'TLSInsecure', 'Degraded'] as const
/** What a preview is made of. */
const SAMPLE = { namespace: 'team-a', inventory: 'api' } as const

/** Follows the references of sinks of one family, looks whether they can be written to, and says so in their statuses. */
export class SinkReconciler implements Reconciler {
  readonly name: string
  readonly #options: SinkReconcilerOptions
  readonly #looks = new Map<string, Look>()
  readonly #uids = new Map<string, string>()

  constructor(options: SinkReconcilerOptions) {
    this.name = `${options.family}-sinks`
    this.#options = options
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    const { objects, directory, family, kube, known, cluster, scopesOf } = this.#options
    const place: SinkPlace = { family, namespace: key.namespace ?? '', name: key.name }
    const object = objects.get(key) as SinkResource | undefined // of this family, under our schema
    if (!object) return this.#forget(key, place)
    await this.#closeFormer(key, object)
    const context = { kube, cluster, known: { ...known, scopes: scopesOf(place.namespace) } }
    const resolved = await resolveSink(family, object, context, directory.secretsOf(place), signal)
    directory.set(place, resolved)
    const { found } = resolved
    const verified = found.kind === 'ready' ? await this.#look(key, object, found.sink, signal) : undefined
    await this.#say(key, object, found, verified, signal)
    return this.#next(key, object, found)
  }

  async #forget(key: ObjectKey, place: SinkPlace): Promise<Outcome> {
    const text = keyText(key)
    this.#options.directory.delete(place)
    this.#looks.delete(text)
    const uid = this.#uids.get(text)
    this.#uids.delete(text)
    // An inventory that goes with it opens it again for as long as it cleans up.
    if (uid !== undefined) await this.#options.pool.forget(uid)
    return done
  }

  /** Another object of the name: the one before it is closed. */
  async #closeFormer(key: ObjectKey, { metadata: { uid = '' } }: KubeObject): Promise<void> {
    const text = keyText(key)
    const before = this.#uids.get(text)
    this.#uids.set(text, uid)
    if (before !== undefined && before !== uid) await this.#options.pool.forget(before)
  }

  /** @returns what is said of its connection; undefined: nothing new */
  async #look(
    key: ObjectKey,
    object: SinkResource,
    sink: ReadySink,
    signal: AbortSignal,
  ): Promise<WantedCondition | undefined> {
    const { pool, metrics, clock, random } = this.#options
    const text = keyText(key)
    const before = this.#looks.get(text)
    const isAsked = object.metadata.annotations?.[TEST_CONNECTION] === 'true'
    const isWanted = object.spec.connectionTest !== false || isAsked
    const isSame = before?.identity === sink.identity && (before.isAsked || !isAsked)
    const isDue = !isSame || (before.failures > 0 && clock.now() >= before.againAt)
    if (!isWanted || !isDue) {
      if (before && before.isAsked !== isAsked) this.#looks.set(text, { ...before, isAsked })
      return undefined
    }
    const { isVerified, message } = await probeSink(pool, sink.object, signal)
    metrics.tested(object.spec.type, isVerified)
    const failures = isVerified ? 0 : (isSame ? before.failures : 0) + 1
    const againAt = clock.now() + PROBE_BACKOFF.fromMs / 2 + backoffMs(failures - 1, { ...PROBE_BACKOFF, random }) / 2
    this.#looks.set(text, { identity: sink.identity, failures, againAt, isAsked })
    if (isVerified && isAsked && object.spec.connectionTest === false) await this.#answer(key, signal)
    return {
      type: 'ConnectionVerified',
      status: isVerified ? 'True' : 'False',
      reason: isVerified ? 'ConnectionOK' : 'ConnectionTestFailed',
      message,
    }
  }

  /** The annotation asked for one look, and that went well. */
  async #answer(key: ObjectKey, signal: AbortSignal): Promise<void> {
    const { kube, resource, objects } = this.#options
    try {
      const body = { metadata: { annotations: { [TEST_CONNECTION]: null } } }
      objects.wrote(await kube.patch(resource, key, body, { kind: 'merge', signal }))
    } catch (error) {
      if (!isKubeError(error, 'not_found')) throw error
    }
  }

  async #say(
    key: ObjectKey,
    object: SinkResource,
    found: FoundSink,
    verified: WantedCondition | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const { kube, resource, objects, clock, recorder, family } = this.#options
    const latest = (objects.get(key) ?? object) as SinkResource
    const stored = (latest.status ?? {}) as KollectSinkStatus
    const before = stored.conditions?.find(({ type }) => type === 'ConnectionVerified')
    const wanted = [...conditionsOf(object, found), ...this.#connection(object, found, verified, before)]
    const preview = await this.#preview(object, found, stored.preview, signal)
    const status = {
      conditions: withConditions(stored.conditions, wanted, object.metadata.generation, clock.now(), TYPES),
      ...(preview && { preview }),
    }
    const patch = statusPatch(stored as Record<string, unknown>, status)
    if (!patch) return
    try {
      objects.wrote(
        await kube.patch(resource, key, { status: patch }, { kind: 'merge', subresource: 'status', signal }),
      )
    } catch (error) {
      if (isKubeError(error, 'not_found')) return
      throw error
    }
    if (verified?.status !== 'False' || before?.status === 'False') return
    const { group, version } = resource
    const named = { ...latest, apiVersion: `${group}/${version}`, kind: SINK_KINDS[family] }
    await recorder.say(named, { type: 'Warning', reason: verified.reason, message: verified.message }, signal)
  }

  /** What was found before holds until it is looked at again, or nobody wants to know. */
  #connection(
    object: SinkResource,
    found: FoundSink,
    verified: WantedCondition | undefined,
    before: Condition | undefined,
  ): readonly WantedCondition[] {
    if (verified) return [verified]
    if (found.kind === 'blocked') {
      const { message } = found.blocked
      return [{ type: 'ConnectionVerified', status: 'False', reason: 'ConnectionTestFailed', message }]
    }
    const isKept = before && (object.spec.connectionTest !== false || before.status === 'True')
    return isKept ? [before] : []
  }

  async #preview(
    object: SinkResource,
    found: FoundSink,
    before: KollectSinkStatus['preview'],
    signal: AbortSignal,
  ): Promise<KollectSinkStatus['preview']> {
    if (object.metadata.annotations?.[PREVIEW] !== 'true' || found.kind === 'blocked') return undefined
    const { pool, clock } = this.#options
    const { cluster } = found.sink.object.declaration
    try {
      const shown = await pool.use(
        found.sink.object,
        (sink) => Promise.resolve(sink.preview({ ...SAMPLE, cluster })),
        signal,
      )
      const { warnings, layout, ...rest } = shown
      const plain = {
        inputSampleSource: 'a made-up example: the inventory team-a/api with 42 items',
        ...rest,
        ...(layout && { layout: { ...layout, samplePaths: [...layout.samplePaths] } }),
        ...(warnings && { warnings: [...warnings] }),
      }
      const { renderedAt, ...known } = before ?? {}
      return {
        renderedAt: renderedAt && isDeepStrictEqual(known, plain) ? renderedAt : timeText(clock.now()),
        ...plain,
      }
    } catch {
      signal.throwIfAborted()
      return before // why it cannot be opened stands in ConnectionVerified
    }
  }

  #next(key: ObjectKey, { spec }: SinkResource, found: FoundSink): Outcome {
    const { clock } = this.#options
    const look = this.#looks.get(keyText(key))
    const waits: number[] = []
    if (hasSecrets(spec)) waits.push(SECRETS_EVERY_MS)
    if (found.kind === 'blocked' && found.blocked.errorClass === 'terminal') waits.push(minutes(60))
    if (found.kind === 'ready' && look && look.failures > 0) waits.push(Math.max(1000, look.againAt - clock.now()))
    return waits.length > 0 ? againAfter(Math.min(...waits)) : done
  }
}

function conditionsOf({ spec }: SinkResource, found: FoundSink): readonly WantedCondition[] {
  const wanted: WantedCondition[] = []
  if (spec.tls?.insecureSkipVerify === true)
    wanted.push({
      type: 'TLSInsecure',
      status: 'True',
      reason: 'InsecureSkipVerify',
      message: 'its certificate is not verified: anyone in between can read what is sent. Give a CA instead',
    })
  if (found.kind === 'blocked') {
    const { reason, message } = found.blocked
    wanted.push({ type: 'Degraded', status: 'True', reason, message: message.slice(0, 4096) })
  }
  return wanted
}
