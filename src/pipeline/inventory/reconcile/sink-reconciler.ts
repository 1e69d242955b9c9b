import { isDeepStrictEqual } from 'node:util'
import { againAfter, type Condition, done, type Informer, keyText, type Outcome, type Reconciler } from '#controller'
import type { KollectKnown, KollectSinkStatus } from '#kinds'
import { isKubeError, type KubeClient, type KubeObject, type ObjectKey, type Resource } from '#kube'
import { type Clock, minutes, seconds } from '#model'
import type { Logger } from '#runtime'
import type { SinkFamily, SinkPool, Writing } from '#sinks'
import type { Blocked, FoundSink, ReadySink } from '../bindings/plan.ts'
import type { SinkHealth } from '../bindings/sink-health.ts'
import { REPLACED_WRITER, WRITER_CONFLICT, WRITTEN_AGAIN } from '../bindings/view.ts'
import { hasSecrets, type Resolved, resolveSink, SINK_KINDS, type SinkResource } from '../declared/resolve-sink.ts'
import type { SinkDirectory } from '../declared/sink-directory.ts'
import type { ExportMetrics } from '../metrics.ts'
import { placeText, type SinkPlace } from '../sink-place.ts'
import type { WantedCondition } from '../status/inventory-conditions.ts'
import { statusPatch, timeText, withConditions } from '../status/inventory-status.ts'
import type { SinkExports } from '../status/sink-exports.ts'
import type { EventRecorder } from './event-recorder.ts'
import { lookAgainMs } from './look-pace.ts'
import { probeSink } from './probe-sink.ts'
import { PREVIEW, TEST_CONNECTION } from './words.ts'

export interface SinkReconcilerOptions {
  readonly family: SinkFamily
  readonly kube: KubeClient
  readonly resource: Resource<KubeObject>
  readonly objects: Informer<KubeObject>
  /** the scopes of a namespace */
  readonly scopesOf: (namespace: string) => readonly KubeObject[]
  /** why a sink is not to be used at all, by scopes */
  readonly denialOf: (place: SinkPlace) => Blocked | undefined
  readonly directory: SinkDirectory
  readonly pool: SinkPool
  readonly known: KollectKnown
  /** identity of this agent; '' where it has none */
  readonly cluster: string
  /** an inventory that is written there; undefined: there is none */
  readonly inventoryAt: (place: SinkPlace) => Pick<Writing, 'namespace' | 'inventory'> | undefined
  /** what inventories say of it */
  readonly exportsOf: (place: SinkPlace) => SinkExports
  readonly recorder: EventRecorder
  readonly metrics: ExportMetrics
  readonly health: SinkHealth
  /** A sink answers well that did not before. Must neither wait nor throw. */
  readonly onAnswer: (place: SinkPlace) => void
  readonly logger: Logger
  readonly clock: Clock
  readonly random: () => number
}

/** What was found when a sink was looked at last. */
interface Look {
  readonly identity: string
  readonly at: number
  readonly failures: number
  /** when a failed one is repeated */
  readonly againAt: number
  /** asked for by the annotation that stands there */
  readonly isAsked: boolean
}

/** Secrets are read again so often, ms: only those that sinks name, so nothing is watched. */
const SECRETS_EVERY_MS = seconds(30)
/** A sink that was spared a look is looked at no sooner than this, ms: others may be trying. */
const SPARED_MS = seconds(2)
/** No sooner than this, where deliveries put it in doubt, ms. */
const DOUBT_EVERY_MS = seconds(10)
const TYPES = ['ConnectionVerified', 'TLSInsecure', 'LoopbackAllowed', 'Degraded', 'Synced'] as const
/** What a preview is made of where no inventory names the sink. */
const SAMPLE = { namespace: 'team-a', inventory: 'api' } as const

/** Follows the references of sinks of one family, looks whether they can be written to, and says so in their statuses. */
export class SinkReconciler implements Reconciler {
  readonly name: string
  readonly #options: SinkReconcilerOptions
  readonly #looks = new Map<string, Look>()
  /** sinks whose deliveries say otherwise than the last look may have */
  readonly #doubts = new Set<string>()
  readonly #uids = new Map<string, string>()

  constructor(options: SinkReconcilerOptions) {
    this.name = `${options.family}-sinks`
    this.#options = options
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    const { objects, directory, family, pool, denialOf } = this.#options
    const place: SinkPlace = { family, namespace: key.namespace ?? '', name: key.name }
    const object = objects.get(key) as SinkResource | undefined // of this family, under our schema
    if (!object) return this.#forget(key, place)
    await this.#closeFormer(key, object)
    const denied = denialOf(place)
    const resolved = denied ? deniedSink(object, denied) : await this.#resolve(place, object, signal)
    const { found } = resolved
    if (directory.set(place, resolved)) this.#log(place, found)
    if (denied) await pool.forget(object.metadata.uid ?? '')
    const verified = found.kind === 'ready' ? await this.#look(key, object, found.sink, signal) : undefined
    await this.#say(key, object, found, verified, signal)
    return this.#next(key, object, found)
  }

  async #resolve(place: SinkPlace, object: SinkResource, signal: AbortSignal): Promise<Resolved> {
    const { family, kube, cluster, known, directory, scopesOf } = this.#options
    const context = { kube, cluster, known: { ...known, scopes: scopesOf(place.namespace) } }
    return resolveSink(family, object, context, directory.secretsOf(place), signal)
  }

  /** What deliveries do may differ from what was found: it is looked at soon. */
  doubt(key: ObjectKey): void {
    this.#doubts.add(keyText(key))
  }

  #log(place: SinkPlace, found: FoundSink): void {
    const { logger } = this.#options
    const sink = placeText(place)
    if (found.kind === 'ready') {
      logger.info({ sink, type: found.spec.type }, 'a sink is used')
    } else {
      const { reason, message } = found.blocked
      logger.warn({ sink, reason, why: message }, 'a sink cannot be used')
    }
  }

  async #forget(key: ObjectKey, place: SinkPlace): Promise<Outcome> {
    const text = keyText(key)
    this.#options.directory.delete(place)
    this.#options.health.forget(place)
    this.#looks.delete(text)
    this.#doubts.delete(text)
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
    const { family, pool, metrics, clock, random, onAnswer } = this.#options
    const text = keyText(key)
    const before = this.#looks.get(text)
    const isAsked = asksForTest(object)
    const isWanted = object.spec.connectionTest !== false || isAsked
    const isSame = before?.identity === sink.identity && (before.isAsked || !isAsked)
    const now = clock.now()
    const isDue = !isSame || now >= before.againAt || (this.#doubts.has(text) && now - before.at >= DOUBT_EVERY_MS)
    if (!isWanted || !isDue) {
      if (before && before.isAsked !== isAsked) this.#looks.set(text, { ...before, isAsked })
      return undefined
    }
    this.#doubts.delete(text)
    const { isVerified, message, isPassing, sparedMs } = await probeSink(pool, sink.object, signal)
    if (sparedMs !== undefined && isSame && before.failures > 0) {
      const at = clock.now()
      this.#looks.set(text, { ...before, at, againAt: at + Math.max(sparedMs, SPARED_MS), isAsked })
      return undefined // what was found last still holds
    }
    metrics.tested(object.spec.type, isVerified)
    const failures = isVerified ? 0 : (isSame ? before.failures : 0) + 1
    const at = clock.now()
    const againAt = at + lookAgainMs({ family, failures, isPassing: isPassing === true }, random)
    this.#looks.set(text, { identity: sink.identity, at, failures, againAt, isAsked })
    // It works again; or somebody asks for a look, who may have mended what no look shows, such as a limit.
    if (isVerified && ((before && before.failures > 0) || (isAsked && before?.isAsked !== true)))
      onAnswer({ family, namespace: key.namespace ?? '', name: key.name })
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
    const { kube, resource, objects, clock, recorder, family, known, exportsOf } = this.#options
    const latest = (objects.get(key) ?? object) as SinkResource
    const stored = (latest.status ?? {}) as KollectSinkStatus
    const before = stored.conditions?.find(({ type }) => type === 'ConnectionVerified')
    const connection = this.#connection(object, found, verified, before)
    const { counts, synced } = exportsOf({ family, namespace: key.namespace ?? '', name: key.name })
    const wanted = [...conditionsOf(object, found, known), ...connection, ...(synced ? [synced] : [])]
    const testedAt = verified ? timeText(clock.now()) : connection.length > 0 ? stored.lastTestedAt : undefined
    const cluster = found.kind === 'ready' ? found.sink.object.declaration.cluster : stored.cluster
    const preview = await this.#preview(key, object, found, stored.preview, signal)
    const status = {
      ...(cluster !== undefined && { cluster }),
      ...(testedAt !== undefined && { lastTestedAt: testedAt }),
      ...counts,
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
    const { group, version } = resource
    const named = { ...latest, apiVersion: `${group}/${version}`, kind: SINK_KINDS[family] }
    const isSaid = synced !== undefined && [WRITER_CONFLICT, REPLACED_WRITER, WRITTEN_AGAIN].includes(synced.reason)
    const wasKnown = stored.conditions?.some(({ reason }) => reason === synced?.reason)
    const trouble = [
      ...(verified?.status === 'False' && before?.status !== 'False' ? [verified] : []),
      ...(isSaid && !wasKnown ? [synced] : []),
    ]
    for (const { reason, message } of trouble) await recorder.say(named, { type: 'Warning', reason, message }, signal)
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
    key: ObjectKey,
    object: SinkResource,
    found: FoundSink,
    before: KollectSinkStatus['preview'],
    signal: AbortSignal,
  ): Promise<KollectSinkStatus['preview']> {
    if (object.metadata.annotations?.[PREVIEW] !== 'true' || found.kind === 'blocked') return undefined
    const { pool, clock, family, inventoryAt } = this.#options
    const { cluster } = found.sink.object.declaration
    const real = inventoryAt({ family, namespace: key.namespace ?? '', name: key.name })
    try {
      const shown = await pool.use(
        found.sink.object,
        (sink) => Promise.resolve(sink.preview({ ...(real ?? SAMPLE), cluster })),
        signal,
      )
      const { warnings, layout, ...rest } = shown
      const plain = {
        inputSampleSource: sourceOf(real),
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

  #next(key: ObjectKey, object: SinkResource, found: FoundSink): Outcome {
    const { clock } = this.#options
    const { spec } = object
    const isWanted = spec.connectionTest !== false || asksForTest(object)
    const look = isWanted ? this.#looks.get(keyText(key)) : undefined
    const waits: number[] = []
    if (hasSecrets(spec)) waits.push(SECRETS_EVERY_MS)
    if (found.kind === 'blocked' && found.blocked.errorClass === 'terminal') waits.push(minutes(60))
    if (found.kind === 'ready' && look) {
      const nextAt = this.#doubts.has(keyText(key)) ? Math.min(look.againAt, look.at + DOUBT_EVERY_MS) : look.againAt
      waits.push(Math.max(1000, nextAt - clock.now()))
    }
    return waits.length > 0 ? againAfter(Math.min(...waits)) : done
  }
}

/** Not even its Secret is read. */
const deniedSink = ({ spec }: SinkResource, blocked: Blocked): Resolved => ({
  ...{ found: { kind: 'blocked', spec, blocked }, secrets: new Map() },
})

const asksForTest = ({ metadata }: SinkResource): boolean => metadata.annotations?.[TEST_CONNECTION] === 'true'

/** What a preview was made of, for people. */
const sourceOf = (real: Pick<Writing, 'namespace' | 'inventory'> | undefined): string =>
  real
    ? `the inventory ${real.namespace === '' ? '' : `${real.namespace}/`}${real.inventory}; rows and numbers are made up`
    : `an inventory that is made up, ${SAMPLE.namespace}/${SAMPLE.inventory}: none names this sink`

function conditionsOf(
  { spec }: SinkResource,
  found: FoundSink,
  { allowFiles }: KollectKnown,
): readonly WantedCondition[] {
  const wanted: WantedCondition[] = []
  if (allowFiles === true)
    wanted.push({
      type: 'LoopbackAllowed',
      status: 'True',
      reason: 'SinkAllowLoopback',
      message:
        'SINK_ALLOW_LOOPBACK is set for the agent: sinks may be on its own machine and, with file://, in its files. Take it away where that is not meant',
    })
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
