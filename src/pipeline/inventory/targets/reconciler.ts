import { isDeepStrictEqual } from 'node:util'
import { againAfter, done, type Informer, type Outcome, type Reconciler } from '#controller'
import { type KollectTargetStatus, TARGET_FINALIZER } from '#kinds'
import { isKubeError, type KubeClient, type KubeObject, type ObjectKey, type Resource } from '#kube'
import { type Clock, seconds } from '#model'
import type { EventRecorder, Said } from '../reconcile/event-recorder.ts'
import { addFinalizer, removeFinalizer } from '../reconcile/finalizer.ts'
import type { TargetKey } from '../rows.ts'
import type { TargetState } from './engine.ts'
import { differsInCountOnly, statusOf, troubleOf } from './status.ts'

/** A number that changes all the time is written no more often. */
const COUNT_EVERY_MS = seconds(10)
/** What was said before a start is not taken back while all is read anew, as long as that takes no longer, ms. */
const READ_WITHIN_MS = seconds(10)

interface AnyTarget {
  readonly metadata: KubeObject['metadata']
  readonly status?: KollectTargetStatus
}

export interface TargetReconcilerOptions<T extends AnyTarget & KubeObject> {
  readonly name: string
  readonly kube: KubeClient
  readonly resource: Resource<T>
  readonly informer: Informer<T>
  /** undefined: it does not run (any more) */
  readonly stateOf: (key: TargetKey) => TargetState | undefined
  /** Makes sure that what is being deleted does not run any more. */
  readonly release: (key: TargetKey) => void
  readonly recorder: EventRecorder
  readonly clock: Clock
}

/** Tells of targets how they are doing, and lets those go that are deleted. Both kinds of targets have one. */
export class TargetReconciler<T extends AnyTarget & KubeObject> implements Reconciler {
  readonly #options: TargetReconcilerOptions<T>
  readonly #writtenAt = new Map<string, number>()

  constructor(options: TargetReconcilerOptions<T>) {
    this.#options = options
  }

  get name(): string {
    return this.#options.name
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    const { kube, informer, stateOf, resource } = this.#options
    const text = `${key.namespace ?? ''}/${key.name}`
    const target = informer.get(key)
    if (!target) {
      this.#writtenAt.delete(text)
      return done
    }
    if (target.metadata.deletionTimestamp !== undefined) return this.#letGo(target, key, signal)
    if (!target.metadata.finalizers?.includes(TARGET_FINALIZER)) {
      const written = await addFinalizer(kube, resource, target, TARGET_FINALIZER, signal)
      if (!written) return done
      informer.wrote(written)
      return againAfter(0)
    }
    const state = stateOf({ namespace: key.namespace ?? '', name: key.name })
    if (!state) return done // it is looked at soon, and asked for again
    return this.#write(target, key, state, { isOfCluster: !resource.namespaced, signal })
  }

  async #letGo(target: T, key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    const { kube, resource } = this.#options
    const { finalizers = [] } = target.metadata
    if (!finalizers.includes(TARGET_FINALIZER)) return done
    this.#options.release({ namespace: key.namespace ?? '', name: key.name })
    await removeFinalizer(kube, resource, target, TARGET_FINALIZER, signal)
    return done
  }

  async #write(
    target: T,
    key: ObjectKey,
    state: TargetState,
    { isOfCluster, signal }: { readonly isOfCluster: boolean; readonly signal: AbortSignal },
  ): Promise<Outcome> {
    const { kube, resource, informer, clock } = this.#options
    const before = target.status ?? {}
    const now = clock.now()
    const readMs = readLeftMs(state, before, now)
    if (readMs > 0) return againAfter(readMs)
    const status = statusOf(state, before, { isOfCluster, now })
    if (isDeepStrictEqual(status, before)) return done
    const text = `${key.namespace ?? ''}/${key.name}`
    const sinceMs = now - (this.#writtenAt.get(text) ?? Number.NEGATIVE_INFINITY)
    if (differsInCountOnly(status, before) && sinceMs >= 0 && sinceMs < COUNT_EVERY_MS)
      return againAfter(COUNT_EVERY_MS - sinceMs)
    const gone = Object.keys(before).filter((field) => !(field in status))
    const body = { status: { ...status, ...Object.fromEntries(gone.map((field) => [field, null])) } }
    try {
      informer.wrote(await kube.patch(resource, key, body, { kind: 'merge', subresource: 'status', signal }))
    } catch (error) {
      if (isKubeError(error, 'not_found')) return done
      throw error
    }
    this.#writtenAt.set(text, now)
    const said = eventOf(before, status)
    const { group, version, kind } = resource
    // Items of lists do not say what they are.
    const object = { ...target, apiVersion: `${group}/${version}`, kind }
    if (said) await this.#options.recorder.say(object, said, signal)
    return done
  }
}

/** How long it may still be read before that is told, ms; 0: there is something else to tell, or nothing that would be kept. */
function readLeftMs(state: TargetState, before: KollectTargetStatus, now: number): number {
  const { isReading, degraded, forbidden, since, generation } = state
  const isSaid = before.observedGeneration === generation && before.conditions?.some(({ type }) => type === 'Ready')
  if (!isSaid || !isReading || degraded || forbidden !== undefined || now < since) return 0
  return Math.max(0, READ_WITHIN_MS - (now - since))
}

/** What is worth an event: that something came in the way, or went out of it. */
function eventOf(before: KollectTargetStatus, now: KollectTargetStatus): Said | undefined {
  const of = (status: KollectTargetStatus, type: string) => status.conditions?.find((one) => one.type === type)
  const degraded = of(now, 'Degraded')
  const was = of(before, 'Degraded')
  if (degraded?.status === 'True') {
    const isNew = was?.status !== 'True' || was.reason !== degraded.reason
    if (!isNew || degraded.reason === 'Suspended') return undefined
    return { type: 'Warning', reason: degraded.reason, message: degraded.message }
  }
  const synced = of(now, 'Synced')
  if (synced?.reason === 'ScopeForbidden' && of(before, 'Synced')?.reason !== 'ScopeForbidden')
    return { type: 'Warning', reason: synced.reason, message: synced.message }
  const trouble = troubleOf(before)
  return trouble !== undefined && of(now, 'Ready')?.status === 'True'
    ? { type: 'Normal', reason: 'Recovered', message: `${trouble} is over` }
    : undefined
}
