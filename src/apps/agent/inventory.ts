import { mkdir } from 'node:fs/promises'
import { hostname } from 'node:os'
import { Manager } from '#controller'
import { InventoryEngine, InventoryTargets, inventoryInformers, measureWatches, ReconcileMetrics } from '#inventory'
import type { KollectKnown } from '#kinds'
import { isKubeError, type KubeClient, namespaces, whole } from '#kube'
import { systemClock } from '#model'
import { OutboundGuard } from '#outbound'
import { knownOf } from '../inventory-config.ts'
import { INVENTORY_WEBHOOKS, inventoryRules } from '../inventory-webhooks.ts'
import type { ServedWebhooks } from '../served-webhooks.ts'
import type { InventoryRunOptions, RunningInventory } from './inventory-options.ts'

/** Begins to collect and to write. Loaded where a cluster has the kinds of inventory. */
export async function openInventory(options: InventoryRunOptions): Promise<RunningInventory> {
  const { settings, cluster, kube, directory, logger, metrics, signal } = options
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const known = knownOf(settings)
  const informers = inventoryInformers(kube, logger)
  const { allowLoopback, allowPrivate, semantics } = settings
  const reconciles = new ReconcileMetrics(metrics)
  const engine = InventoryEngine.open({
    ...{ kube, informers, cluster, known, logger, metrics, reconciles },
    sinks: {
      guard: new OutboundGuard({ use: 'sink', allowLoopback, allowPrivate }),
      writer: await writerName(kube, signal),
      now: () => systemClock.now(),
      ...{ directory, logger, semantics },
    },
  })
  const targets = new InventoryTargets({
    ...{ kube, informers, known, logger, reconciles, rows: engine.rows },
    defaults: settings,
    watchNamespaces: settings.watchNamespaces,
  })
  measureWatches(metrics, targets)
  const manager = new Manager({
    name: 'inventory',
    controllers: [...targets.controllers, ...engine.controllers],
    whileLeading: async (leading) => {
      await Promise.all([engine.lead(leading), targets.run(leading)])
    },
    logger,
  })
  await manager.start()
  const webhooks = options.webhooks && (await answered(options.webhooks, known, options))
  const fault = () => {
    const found = webhooks?.fault()
    return found === undefined ? {} : { message: `the API server is not answered about objects of inventory: ${found}` }
  }
  return {
    feed: engine.feed,
    report: () =>
      manager.isSynced
        ? { phase: 'running', ...fault() }
        : { phase: 'reading', message: 'the objects of inventory are being read for the first time' },
    view: () => (manager.isSynced ? engine.view : undefined),
    async [Symbol.asyncDispose]() {
      await webhooks?.part.stop()
      await manager.stop()
      await Promise.all(Object.values(informers).map((informer) => informer.stop()))
      await engine[Symbol.asyncDispose]()
    },
  }
}

/** Answers the API server, whose configuration does not wait for us: what we would refuse is refused by reconcilers too. */
async function answered(
  { namespace, ...config }: NonNullable<InventoryRunOptions['webhooks']>,
  known: KollectKnown,
  { kube, logger, signal }: InventoryRunOptions,
): Promise<ServedWebhooks> {
  const { servedWebhooks } = await import('../served-webhooks.ts')
  const webhooks = servedWebhooks({
    ...{ config, namespace, logger },
    kube: () => kube,
    rules: inventoryRules(known),
    configuration: { name: INVENTORY_WEBHOOKS, sorts: ['Validating'], remedy: 'deploy/inventory' },
  })
  await webhooks.part.start(signal)
  return webhooks
}

/**
 * Who writes: this machine or pod, in this cluster. The same after a restart, and not that of another cluster whose agent was given our
 * name. (The namespace of the system is as old as its cluster, and its uid is that of no other.)
 */
async function writerName(kube: KubeClient, signal: AbortSignal): Promise<string> {
  try {
    const system = await kube.get(whole(namespaces), { name: 'kube-system' }, signal)
    if (system?.metadata.uid) return `${hostname()} in cluster ${system.metadata.uid.slice(0, 13)}`
  } catch (error) {
    if (!isKubeError(error, 'forbidden')) throw error
  }
  return `${hostname()} at ${kube.endpoint}`
}
