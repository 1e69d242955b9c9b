import { isDeepStrictEqual } from 'node:util'
import {
  Controller,
  type ControllerOptions,
  changesSpec,
  Informer,
  onReferredChange,
  onSpecChange,
  type Trigger,
} from '#controller'
import { CredentialLedger } from '#credentials'
import type { KubeClient, KubeObject, ObjectKey } from '#kube'
import { type Clock, FleetError, systemClock } from '#model'
import type { OutboundGuard } from '#outbound'
import type { ProbeResult, RegistryStore } from '#registry'
import type { Logger, Metrics } from '#runtime'
import { RegistryReconciler } from './reconciler.ts'
import { type CredentialSecret, credentialSecrets, type Registry, registryResource } from './registry-resource.ts'
import { endpointOf, settingsOf } from './target.ts'

/** What the controller of RegistryConnections needs. */
export interface RegistriesOptions {
  /** the hub's own API, where the objects are */
  readonly hub: KubeClient
  /** RegistryConnections elsewhere are not looked at */
  readonly namespace: string
  readonly store: RegistryStore
  /** which addresses are dialed; default: as for every registry */
  readonly outbound?: OutboundGuard
  /** probes that run at once; default 8 */
  readonly concurrency?: number
  readonly logger: Logger
  readonly metrics?: Metrics
  readonly clock?: Clock
  readonly random?: () => number
}

/** Above this many registries the first probes are spread, so that later ones do not come all at once. */
const SPREAD_ABOVE = 16
const SPREAD_PER_KEY_MS = 100
const SPREAD_MAX_MS = 20_000

/** The controllers of this module, for a Manager. */
export function registryReconcilers(options: RegistriesOptions): readonly Controller[] {
  const { hub, namespace, store, logger, metrics, concurrency = 8 } = options
  const { clock = systemClock, random = Math.random } = options
  const shared = { kube: hub, namespace, logger, clock }
  const ledger = new CredentialLedger('RegistryConnection', endpointOf)
  const registries = new Informer<KubeObject>({
    ...shared,
    resource: registryResource,
    onEvent: (event) => ledger.see(event),
  })
  const secrets = new Informer<CredentialSecret>({ ...shared, resource: credentialSecrets })
  const onProbe = probeMetrics(metrics, store)
  const reconciler = new RegistryReconciler({
    hub,
    registries,
    secrets,
    namespace,
    ledger,
    store,
    onProbe,
    ...(options.outbound && { outbound: options.outbound }),
    clock,
    random,
    logger,
  })
  const referring = (secret: ObjectKey) =>
    registries
      .list()
      .filter((object) => refersTo(object, secret))
      .map(({ metadata }) => ({ name: metadata.name, namespace }))

  registries.onChange((change) => {
    if (changesSpec(change)) reconciler.interrupt(change.key.name)
  })
  secrets.onChange((change) => {
    if (change.kind === 'deleted') ledger.forget(change.previous.metadata.uid)
    if (change.kind === 'changed' && sameCredentials(change.object, change.previous)) return
    for (const { name } of referring(change.key)) reconciler.interrupt(name)
  })
  const controller: Controller = new RegistriesController(resyncing(store, registries, options), {
    reconciler,
    triggers: [
      withForgotten(onSpecChange(registries), store, namespace),
      // Any change frees credentials that are held, or binds them anew.
      onReferredChange(secrets, (change) => referring(change.key)),
    ],
    concurrency,
    spreadStartMs: (keys) => (keys > SPREAD_ABOVE ? Math.min(SPREAD_MAX_MS, keys * SPREAD_PER_KEY_MS) : 0),
    logger,
    clock,
    random,
  })
  // A store that is read late may hold what was deleted long ago. As long as the store: both end with the process.
  store.onChange((name) => {
    const key = { name, namespace }
    if (registries.isSynced && store.registry(name) && !registries.get(key)) controller.enqueue(key)
  })
  return [controller]
}

/** Tells the store what there is when it begins, and where the store lost it. */
class RegistriesController extends Controller {
  readonly #resync: () => () => void
  #stopResync: (() => void) | undefined

  constructor(resync: () => () => void, options: ControllerOptions) {
    super(options)
    this.#resync = resync
  }

  override start(): void {
    this.#stopResync ??= this.#resync()
    super.start()
  }

  override async stop(): Promise<void> {
    this.#stopResync?.()
    this.#stopResync = undefined
    await super.stop()
  }
}

const RESYNC_RETRY_MS = 1_000

/** @returns what begins it, and that what ends it */
function resyncing(
  store: RegistryStore,
  registries: Informer<KubeObject>,
  { namespace, logger, clock = systemClock }: RegistriesOptions,
) {
  return () => {
    const stopping = new AbortController()
    const { signal } = stopping
    let isRunning = false
    const begin = async () => {
      if (isRunning) return
      isRunning = true
      while (!signal.aborted) {
        try {
          const living = registries.list().filter(({ metadata }) => !metadata.deletionTimestamp)
          // Served under our schema.
          await store.resync(living.map((object) => settingsOf(object as unknown as Registry, namespace).target))
          break
        } catch (error) {
          logger.debug({ error: FleetError.from(error).message }, 'registries could not be written as a whole')
          await clock.sleep(RESYNC_RETRY_MS, signal)
        }
      }
      isRunning = false
    }
    const unsubscribe = store.onLost?.(() => void begin())
    void begin()
    return () => {
      stopping.abort()
      unsubscribe?.()
    }
  }
}

/** Registries the hub still knows whose object went while nobody looked: they are looked at once, and forgotten. */
function withForgotten(trigger: Trigger, store: RegistryStore, namespace: string): Trigger {
  const keysAtStart = () => {
    const keys = trigger.keysAtStart()
    const present = new Set(keys.map(({ name }) => name))
    const gone = store.registries().filter(({ facts }) => !present.has(facts.name))
    return [...gone.map(({ facts }) => ({ name: facts.name, namespace })), ...keys]
  }
  return { ...trigger, keysAtStart }
}

function refersTo({ metadata, spec }: KubeObject, secret: ObjectKey): boolean {
  const ref = (spec as { credentialsRef?: { name?: unknown; namespace?: unknown } } | undefined)?.credentialsRef
  return (
    ref?.name !== undefined && ref.name === secret.name && (ref.namespace || metadata.namespace) === secret.namespace
  )
}

const sameCredentials = (a: CredentialSecret, b: CredentialSecret): boolean =>
  a.username === b.username &&
  a.password === b.password &&
  isDeepStrictEqual(a.metadata.annotations, b.metadata.annotations)

function probeMetrics(metrics: Metrics | undefined, store: RegistryStore) {
  const probes = metrics?.counter('clusterpulse_registry_probes_total', 'Probes of registries by how they ended.', [
    'result',
  ])
  const durations = metrics?.histogram(
    'clusterpulse_registry_probe_duration_seconds',
    'Time from the start of a probe to its status.',
    [],
    [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  )
  metrics?.gauge('clusterpulse_registries', 'Registries by health.', ['health'], (gauge) => {
    gauge.reset()
    for (const { last } of store.registries()) gauge.inc({ health: last?.health ?? 'unknown' })
  })
  return ({ available }: ProbeResult, durationMs: number): void => {
    probes?.inc({ result: available ? 'available' : 'unavailable' })
    durations?.observe(durationMs / 1000)
  }
}
