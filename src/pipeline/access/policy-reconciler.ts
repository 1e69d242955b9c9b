import { againAfter, done, type Informer, keyText, type Outcome, type Reconciler } from '#controller'
import type { MonitorAccessPolicyStatus } from '#kinds'
import { isKubeError, type KubeClient, type KubeObject, type ObjectKey } from '#kube'
import { type Clock, FleetError, minutes, seconds } from '#model'
import { backoffMs, type Logger, type Metrics } from '#runtime'
import { parseBounds } from './bounds.ts'
import { type CustomTypes, customTypeFindings } from './custom-types.ts'
import { accessPolicyResource, type Policy } from './policy-resource.ts'
import { PolicyRevisions } from './policy-revisions.ts'
import { type InForce, policyStatus, statusPatch, storedStatus } from './policy-status.ts'
import type { Finding, PolicyDocument, PolicyWriter } from './types.ts'

/** Stands for all policies at once; no object can have this name. */
const EVERYTHING = '*'

/** The key of all policies of a namespace at once. */
export const everything = (namespace: string): ObjectKey => ({ name: EVERYTHING, namespace })

export interface PolicyReconcilerOptions {
  readonly hub: KubeClient
  readonly writer: PolicyWriter
  readonly logger: Logger
  readonly metrics?: Metrics
  readonly policies: Pick<Informer<KubeObject>, 'get' | 'list'>
  readonly types?: CustomTypes
  readonly clock: Clock
  readonly random: () => number
  readonly resyncEveryMs: number
  readonly enqueue: (key: ObjectKey) => void
}

interface Written {
  readonly document: PolicyDocument
  readonly note: string
}

interface Brought {
  readonly key: string
  readonly of: ObjectKey
  readonly inForce: InForce
  readonly note: Readonly<Record<string, unknown>>
}

/** Compiled in a row before others get a turn. */
const SLICE = 50
const STORE_BACKOFF = { fromMs: 500, toMs: seconds(15) }
/** A clock that is set meanwhile is noticed within this time. */
const LONGEST_WAIT_MS = minutes(1)

/**
 * Brings policies from the API to the store: object → compile → store → status. A faulty revision does not replace the one
 * before it. What was deleted while nobody looked goes with the next comparison of everything, at the start at the latest.
 */
export class PolicyReconciler implements Reconciler {
  readonly name = 'access-policies'
  readonly #options: PolicyReconcilerOptions
  readonly #revisions: PolicyRevisions
  /** what the store took last */
  readonly #written = new Map<string, Written>()
  readonly #failures = new Map<string, number>()
  /** statuses written over these versions */
  readonly #said = new Map<string, { readonly over: string | undefined; readonly status: MonitorAccessPolicyStatus }>()
  #isSynced = false
  #resyncFailed = false

  constructor(options: PolicyReconcilerOptions) {
    this.#options = options
    this.#revisions = new PolicyRevisions(options.clock, options.logger)
  }

  reconcile(key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    return key.name === EVERYTHING ? this.#resync(key, signal) : this.#bring(key, signal)
  }

  /** Nothing is known yet: while this process did not lead, another one wrote. */
  begin(): void {
    this.#isSynced = false
    this.#resyncFailed = false
    this.#forgetAllBut(new Set())
  }

  /** What MetricSources collect changed: the policies that name such types may have to say something else. */
  typesChanged(): void {
    if (!this.#isSynced) return
    for (const policy of this.#all()) {
      const { document } = this.#revisions.compile(keyText(policy.metadata), policy)
      if (document?.custom_resource_types) this.#options.enqueue(objectKey(policy))
    }
  }

  /** Whatever the store held, it is written again. */
  forgetWritten(): void {
    this.#written.clear()
  }

  async #bring(key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    // Before the first comparison the store may hold a revision that a faulty one must not replace.
    if (!this.#isSynced && !this.#resyncFailed) return done
    const object = this.#options.policies.get(key)
    if (!object || !isWanted(object)) return this.#remove(key)
    const text = keyText(key)
    const policy = this.#policyOf(object)
    const wanted = this.#revisions.wanted(text, policy)
    // One moment for all that is said: writing takes time, and a bound that passes meanwhile is looked at next.
    const now = this.#options.clock.now()
    const status = this.#status(text, policy, wanted, now)
    const trouble = await this.#store(text, wanted, status)
    const said =
      trouble === undefined ? status : this.#status(text, policy, this.#revisions.earlier(text, policy), now, trouble)
    await this.#say(key, policy, said, signal)
    return trouble === undefined ? untilNextTurn(wanted, now, this.#options.clock.now()) : this.#tryAgain(text)
  }

  async #remove(key: ObjectKey): Promise<Outcome> {
    const { writer, logger } = this.#options
    const text = keyText(key)
    try {
      await writer.remove(text)
    } catch (error) {
      logger.warn(
        { policy: text, error: FleetError.from(error).message },
        'a deleted policy is still in the store; trying again',
      )
      return this.#tryAgain(text)
    }
    this.#forget(text)
    return done
  }

  /** @returns why the store did not take it; undefined: it did */
  async #store(
    key: string,
    wanted: InForce | undefined,
    status: MonitorAccessPolicyStatus,
  ): Promise<string | undefined> {
    const { writer, logger } = this.#options
    const known = this.#written.get(key)
    if (!wanted && !known) return undefined
    const note = storedStatus(status)
    const written = wanted && { document: wanted.document, note: JSON.stringify(note) }
    if (written && written.document === known?.document && written.note === known.note) return undefined
    try {
      if (wanted) await writer.put(wanted.document, note)
      else await writer.remove(key)
    } catch (error) {
      const { message } = FleetError.from(error)
      logger.warn({ policy: key, error: message }, 'the store did not take a policy; trying again')
      return message
    }
    this.#failures.delete(key)
    this.#keep(key, wanted, written)
    return undefined
  }

  #keep(key: string, inForce: InForce | undefined, written: Written | undefined): void {
    this.#revisions.nowInForce(key, inForce)
    if (written) this.#written.set(key, written)
    else this.#written.delete(key)
  }

  /** Writes what differs from the stored status. */
  async #say(key: ObjectKey, policy: Policy, wanted: MonitorAccessPolicyStatus, signal: AbortSignal): Promise<void> {
    const patch = statusPatch(policy.status, wanted)
    if (!patch) return
    try {
      const body = { status: patch }
      await this.#options.hub.patch(accessPolicyResource, key, body, { kind: 'merge', subresource: 'status', signal })
      this.#said.set(keyText(key), { over: policy.metadata.resourceVersion, status: wanted })
    } catch (error) {
      if (!isKubeError(error, 'not_found')) throw error // deleted meanwhile: its key comes again
    }
  }

  async #resync(key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    const { writer, logger, resyncEveryMs } = this.#options
    try {
      await this.#prepare(signal)
      // From here to the call nothing is awaited: what changes meanwhile is written after it, not before.
      const brought = this.#all().flatMap((policy) => this.#brought(policy))
      this.#synced(
        brought,
        await writer.resync(brought.map(({ inForce: { document }, note }) => ({ document, status: note }))),
      )
    } catch (error) {
      if (signal.aborted) throw error
      this.#resyncFailed = true
      const { message } = FleetError.from(error)
      logger.warn({ error: message }, 'the store of access policies could not be compared; trying again')
      return this.#tryAgain(keyText(key))
    }
    this.#failures.delete(keyText(key))
    return againAfter(resyncEveryMs)
  }

  /** Compiles what is new, and looks for the revisions that faulty ones must not replace. */
  async #prepare(signal: AbortSignal): Promise<void> {
    let compiled = 0
    for (const policy of this.#all()) {
      const key = keyText(policy.metadata)
      if (!this.#revisions.isCompiled(key, policy) && ++compiled % SLICE === 0) {
        await new Promise((resolve) => setImmediate(resolve))
        signal.throwIfAborted()
      }
      const { document } = this.#revisions.compile(key, policy)
      const { generationInForce, hash } = policy.status ?? {}
      if (document || hash === undefined || this.#revisions.earlier(key, policy)) continue
      const earlier = await this.#options.writer.stored?.(key)
      // Only what the status tells of: anything else was put there by somebody else.
      if (earlier?.hash !== hash) continue
      const { uid } = policy.metadata
      this.#revisions.nowInForce(key, { document: earlier, generation: generationInForce, uid })
    }
  }

  #brought(policy: Policy): Brought[] {
    const key = keyText(policy.metadata)
    const inForce = this.#revisions.wanted(key, policy)
    return inForce
      ? [
          {
            key,
            of: objectKey(policy),
            inForce,
            note: storedStatus(this.#status(key, policy, inForce, this.#options.clock.now())),
          },
        ]
      : []
  }

  #synced(brought: readonly Brought[], mended: readonly string[]): void {
    const { logger, enqueue, clock, metrics } = this.#options
    if (this.#isSynced && mended.length > 0) {
      metrics
        ?.counter(
          'clusterpulse_access_policies_mended_total',
          'Policies written again, as the store was not as written.',
        )
        .inc(mended.length)
      const facts = { count: mended.length, policies: mended.slice(0, 10) }
      logger.warn(facts, 'the store of access policies was not as written; it is again')
    }
    this.#isSynced = true
    this.#resyncFailed = false
    const all = this.#all()
    const present = new Set(all.map(({ metadata }) => keyText(metadata)))
    this.#forgetAllBut(present)
    for (const { key, inForce, note, of } of brought) {
      this.#keep(key, inForce, { document: inForce.document, note: JSON.stringify(note) })
      // Deleted while the store took everything: its own key may have come and gone before we were ready for it.
      if (!present.has(key)) enqueue(of)
    }
    const now = clock.now()
    for (const policy of all) {
      const key = keyText(policy.metadata)
      const inForce = this.#revisions.earlier(key, policy)
      const isToSay = statusPatch(policy.status, this.#status(key, policy, inForce, now)) !== undefined
      if (isToSay || nextTurn(inForce, now) < Number.POSITIVE_INFINITY) enqueue(objectKey(policy))
    }
  }

  #all(): Policy[] {
    return this.#options.policies
      .list()
      .filter(isWanted)
      .map((object) => this.#policyOf(object))
  }

  /** The object with the status we wrote last, which the informer may not have seen yet. */
  #policyOf(object: KubeObject): Policy {
    const policy = object as unknown as Policy // served under our schema
    const said = this.#said.get(keyText(object.metadata))
    return said && said.over === object.metadata.resourceVersion ? { ...policy, status: said.status } : policy
  }

  #forget(key: string): void {
    this.#revisions.forget(key)
    for (const map of [this.#written, this.#failures, this.#said]) map.delete(key)
  }

  #forgetAllBut(present: ReadonlySet<string>): void {
    const maps = [this.#written, this.#failures, this.#said]
    const known = new Set([...this.#revisions.keys(), ...maps.flatMap((map) => [...map.keys()])])
    for (const key of known) if (!present.has(key)) this.#forget(key)
  }

  #status(
    key: string,
    policy: Policy,
    inForce: InForce | undefined,
    now: number,
    storeTrouble?: string,
  ): MonitorAccessPolicyStatus {
    return policyStatus({
      generation: policy.metadata.generation,
      stored: policy.status,
      findings: this.#findings(key, policy),
      inForce,
      storeTrouble,
      now,
    })
  }

  #findings(key: string, policy: Policy): readonly Finding[] {
    const { document, findings } = this.#revisions.compile(key, policy)
    const { types } = this.#options
    // With a list of its own the compiled one stays the very same.
    return document?.custom_resource_types && types ? [...findings, ...customTypeFindings(document, types)] : findings
  }

  #tryAgain(key: string): Outcome {
    const failures = this.#failures.get(key) ?? 0
    this.#failures.set(key, failures + 1)
    return againAfter(backoffMs(failures, { ...STORE_BACKOFF, random: this.#options.random }))
  }
}

const isWanted = ({ metadata }: KubeObject): boolean => metadata.deletionTimestamp === undefined

function objectKey({ metadata: { name, namespace } }: Policy): ObjectKey {
  return namespace ? { name, namespace } : { name }
}

/** When the clock alone changes the state next, ms since the Unix epoch. */
function nextTurn(inForce: InForce | undefined, now: number): number {
  if (!inForce) return Number.POSITIVE_INFINITY
  const { from, to } = parseBounds(inForce.document.not_before, inForce.document.not_after)
  // Both are inclusive: it ends with the first millisecond after.
  return Math.min(...[from, to + 1].filter((turn) => turn > now), Number.POSITIVE_INFINITY)
}

/** @param lookedAt the moment that the status is of */
function untilNextTurn(inForce: InForce | undefined, lookedAt: number, now: number): Outcome {
  const turn = nextTurn(inForce, lookedAt)
  return turn === Number.POSITIVE_INFINITY ? done : againAfter(Math.max(0, Math.min(turn - now, LONGEST_WAIT_MS)))
}
