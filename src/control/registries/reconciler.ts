import { againAfter, done, type Informer, type Outcome, type Reconciler } from '#controller'
import type { CredentialLedger } from '#credentials'
import { isKubeError, type KubeClient, type KubeObject, type ObjectKey } from '#kube'
import { type Clock, elapsedMs, FleetError, seconds } from '#model'
import type { OutboundGuard } from '#outbound'
import { type ProbeResult, probeRegistry, type RegistryStore, type RegistryTarget } from '#registry'
import type { Logger } from '#runtime'
import { type CredentialSecret, credentialSecrets, type Registry, registryResource } from './registry-resource.ts'
import { statusPatch } from './status.ts'
import {
  type Credentials,
  credentialsOf,
  heldBack,
  type Lacking,
  lacking,
  nextProbeMs,
  type Settings,
  settingsOf,
} from './target.ts'

export interface ReconcilerOptions {
  readonly hub: KubeClient
  readonly registries: Pick<Informer<KubeObject>, 'get'>
  readonly secrets: Pick<Informer<CredentialSecret>, 'get'>
  /** of both informers; Secrets elsewhere are read one by one */
  readonly namespace: string
  /** of all registries */
  readonly ledger: CredentialLedger
  readonly store: RegistryStore
  /** which addresses are dialed; default: as for every registry */
  readonly outbound?: OutboundGuard
  readonly onProbe: (result: ProbeResult, durationMs: number) => void
  readonly clock: Clock
  readonly random: () => number
  readonly logger: Logger
}

/** What we remember of one registry between probes; a restart begins anew. */
interface Visit {
  /** ends the probe that runs now */
  running: AbortController | undefined
  /** in a row */
  failures: number
  wasAvailable: boolean | undefined
  /** what we wrote last, over which version of the object: the informer may not have seen it yet */
  said: { readonly over: string | undefined; readonly status: object } | undefined
  /** what the store did not take yet of the last probe, when that ended, ms since the Unix epoch, and after how long the next one is due */
  unstored: { readonly write: StoreWrite; readonly endedAt: number; readonly nextMs: number } | undefined
}

type StoreWrite = (store: RegistryStore) => Promise<void>

/** Between two tries to store what is known, ms: a store that is back has it soon, and the registry is not probed for that. */
const STORE_RETRY_MS = seconds(1)

/** Makes the hub know what a RegistryConnection says: the registry is probed, the result stored and written to its status. */
export class RegistryReconciler implements Reconciler {
  readonly name = 'registries'
  readonly #options: ReconcilerOptions
  readonly #visits = new Map<string, Visit>()

  constructor(options: ReconcilerOptions) {
    this.#options = options
  }

  /** Ends the probe of a registry that changed, or whose credentials did: its result must not be taken any more. */
  interrupt(name: string): void {
    const visit = this.#visits.get(name)
    if (!visit) return
    visit.failures = 0
    visit.unstored = undefined
    visit.running?.abort()
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    const object = this.#options.registries.get(key)
    if (!object || object.metadata.deletionTimestamp) {
      await this.#options.store.remove(key.name)
      this.#visits.delete(key.name)
      return done
    }
    const visit = this.#visits.get(key.name) ?? newVisit()
    this.#visits.set(key.name, visit)
    const running = new AbortController()
    visit.running = running
    const end = () => running.abort(signal.reason)
    signal.addEventListener('abort', end, { once: true })
    if (signal.aborted) end()
    try {
      const { unstored } = visit
      if (unstored && elapsedMs(this.#options.clock, unstored.endedAt) < unstored.nextMs)
        return await this.#storeAgain(key.name, visit, unstored)
      return await this.#visit(object as unknown as Registry, visit, running.signal) // served under our schema
    } catch (error) {
      if (running.signal.aborted && !signal.aborted) return done // the change that ended it has asked for the next look
      throw error
    } finally {
      signal.removeEventListener('abort', end)
      visit.running = undefined
    }
  }

  async #visit(object: Registry, visit: Visit, signal: AbortSignal): Promise<Outcome> {
    const { clock, random, namespace, onProbe, outbound } = this.#options
    const startedAt = clock.now()
    const settings = settingsOf(object, namespace)
    const credentials = await this.#credentials(settings.target, signal)
    const target: RegistryTarget =
      credentials?.kind === 'found' ? { ...settings.target, credentials: credentials.credentials } : settings.target
    await this.#keep(target.name, (store) => store.declare(settings.target))
    await this.#write(object, visit, { settings, credentials, result: undefined }, signal)
    const probed = await probeRegistry(target, { signal, clock, ...(outbound && { outbound }) })
    const result = credentials?.kind === 'lacking' ? withWarning(probed, credentials) : probed
    signal.throwIfAborted()
    const write: StoreWrite = async (store) => {
      // Also where it was away before: without the one the other has no place.
      await store.declare(settings.target)
      await store.record(target.name, result)
    }
    const isStored = await this.#keep(target.name, write)
    await this.#write(object, visit, { settings, credentials, result }, signal)
    this.#note(target.name, visit, result)
    const tookMs = elapsedMs(clock, startedAt)
    onProbe(result, tookMs)
    const nextMs = nextProbeMs(target.intervalMs, visit.failures, tookMs, random())
    signal.throwIfAborted()
    visit.unstored = isStored ? undefined : { write, endedAt: clock.now(), nextMs }
    return againAfter(isStored ? nextMs : Math.min(nextMs, STORE_RETRY_MS))
  }

  async #storeAgain(name: string, visit: Visit, unstored: NonNullable<Visit['unstored']>): Promise<Outcome> {
    const isStored = await this.#keep(name, unstored.write, 'debug')
    // A change meanwhile has forgotten it, and asked for the next look.
    if (isStored && visit.unstored === unstored) visit.unstored = undefined
    const leftMs = Math.max(0, unstored.nextMs - elapsedMs(this.#options.clock, unstored.endedAt))
    return againAfter(isStored ? leftMs : Math.min(leftMs, STORE_RETRY_MS))
  }

  /** The Secret, as far as one is named. */
  async #credentials(target: RegistryTarget, signal: AbortSignal): Promise<Credentials | undefined> {
    const { credentialsRef } = target
    if (!credentialsRef) return undefined
    const { hub, secrets, namespace, ledger } = this.#options
    try {
      const secret =
        credentialsRef.namespace === namespace
          ? secrets.get(credentialsRef)
          : await hub.get(credentialSecrets, credentialsRef, signal)
      const credentials = credentialsOf(target, credentialsRef, secret)
      const held = credentials.kind === 'found' ? ledger.hold(credentials.question) : undefined
      return held ? heldBack(held) : credentials
    } catch (error) {
      signal.throwIfAborted()
      const { message } = FleetError.from(error)
      const name = `${credentialsRef.namespace}/${credentialsRef.name}`
      return lacking('SecretUnreadable', `credentials of Secret ${name} cannot be read: ${message}`)
    }
  }

  /**
   * A store that is away keeps no registry from being probed.
   * @returns whether it is stored
   */
  async #keep(registry: string, write: StoreWrite, level: 'warn' | 'debug' = 'warn'): Promise<boolean> {
    try {
      await write(this.#options.store)
      return true
    } catch (error) {
      const { message } = FleetError.from(error)
      this.#options.logger[level]({ registry, error: message }, 'what is known of a registry could not be stored')
      return false
    }
  }

  /** Writes what differs from the stored status. A failure to do so is logged: the next probe says it again. */
  async #write(
    object: Registry,
    visit: Visit,
    said: {
      readonly settings: Settings
      readonly credentials: Credentials | undefined
      readonly result: ProbeResult | undefined
    },
    signal: AbortSignal,
  ): Promise<void> {
    const { hub, clock, logger, registries, ledger } = this.#options
    const { name, namespace } = object.metadata
    const key: ObjectKey = namespace ? { name, namespace } : { name }
    const current = (registries.get(key) as unknown as Registry | undefined) ?? object
    const version = current.metadata.resourceVersion
    const stored = visit.said && visit.said.over === version ? visit.said.status : current.status
    const { target, adjustments } = said.settings
    const patch = statusPatch({
      stored,
      generation: object.metadata.generation,
      target,
      adjustments,
      credentials: said.credentials,
      accept: (question) => ledger.accept(question),
      result: said.result,
      now: clock.now(),
    })
    if (!patch) return
    try {
      await hub.patch(registryResource, key, { status: patch }, { kind: 'merge', subresource: 'status', signal })
      visit.said = { over: version, status: { ...stored, ...patch } }
    } catch (error) {
      signal.throwIfAborted()
      if (isKubeError(error, 'not_found')) return // deleted meanwhile: its key comes again
      logger.warn({ registry: name, err: FleetError.from(error) }, 'the status of a registry could not be written')
    }
  }

  #note(registry: string, visit: Visit, { available, message, health }: ProbeResult): void {
    const { logger } = this.#options
    visit.failures = available ? 0 : visit.failures + 1
    const facts = { registry, health, message }
    if (visit.wasAvailable === available) logger.debug(facts, 'a registry was probed')
    else if (available) logger.info(facts, 'a registry is available')
    // What was so at the first look is no news: its condition says it.
    else logger[visit.wasAvailable === undefined ? 'info' : 'warn'](facts, 'a registry is not available')
    visit.wasAvailable = available
  }
}

const newVisit = (): Visit => ({
  running: undefined,
  failures: 0,
  wasAvailable: undefined,
  said: undefined,
  unstored: undefined,
})

/** Whoever named a Secret that is not there did not mean to ask anonymously. */
function withWarning(result: ProbeResult, { message, held }: Lacking): ProbeResult {
  const warning = held ? { code: 'credentials_held', message: HELD } : { code: 'credentials_missing', message }
  return { ...result, warnings: [warning, ...result.warnings] }
}

/** Everyone who sees the registry may read a warning; where credentials lie is said in its condition. */
const HELD = 'its credentials are held back, as they are for another endpoint; the registry is asked anonymously'
