import { Manager } from '#controller'
import { InventoryEngine, InventoryTargets, inventoryInformers, measureWatches, ReconcileMetrics } from '#inventory'
import { isKubeError, namespaces, whole } from '#kube'
import { systemClock } from '#model'
import { OutboundGuard } from '#outbound'
import { knownOf } from '../inventory-config.ts'
import type { InventoryRunOptions, RunningInventory } from './inventory-options.ts'

/** Begins to collect and to write. Loaded where a cluster has the kinds of inventory. */
export async function openInventory(options: InventoryRunOptions): Promise<RunningInventory> {
  const { settings, cluster, kube, directory, logger, metrics } = options
  const known = knownOf(settings)
  const informers = inventoryInformers(kube, logger, settings.tenantMode ? settings.watchNamespaces : undefined)
  const { allowLoopback, allowPrivate, semantics } = settings
  const reconciles = new ReconcileMetrics(metrics)
  const engine = InventoryEngine.open({
    ...{ kube, informers, cluster, known, logger, metrics, reconciles },
    sinks: {
      guard: new OutboundGuard({ use: 'sink', allowLoopback, allowPrivate }),
      writer: await writerName(options),
      now: () => systemClock.now(),
      ...{ directory, logger, semantics },
      ...(options.mustLead && { mustLead: options.mustLead }),
    },
  })
  const targets = new InventoryTargets({
    ...{ kube, informers, known, logger, reconciles, rows: engine.rows },
    defaults: settings,
    watchNamespaces: settings.watchNamespaces,
    scopeRequired: settings.scopeRequired,
    maxRowBytes: settings.maxRowBytes,
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
  return {
    feed: engine.feed,
    report: () => {
      const fault = [...manager.faults(), ...targets.faults()].join('; ') || undefined
      if (manager.isSynced) return { phase: 'running', ...(fault !== undefined && { message: fault }) }
      const why = fault === undefined ? '' : `: ${fault}`
      return { phase: 'reading', message: `the objects of inventory are being read for the first time${why}` }
    },
    view: () => (manager.isSynced ? engine.view : undefined),
    async [Symbol.asyncDispose]() {
      await manager.stop()
      await Promise.all(Object.values(informers).map((informer) => informer.stop()))
      await engine[Symbol.asyncDispose]()
    },
  }
}

/**
 * Who writes, in this cluster. The same after a restart, and not that of another cluster whose agent was given our
 * name. (The namespace of the system is as old as its cluster, and its uid is that of no other; a tenant knows its own namespace only.)
 */
async function writerName({ kube, process, settings, signal }: InventoryRunOptions): Promise<string> {
  const [name = 'kube-system'] = settings.tenantMode ? settings.watchNamespaces : []
  try {
    const found = await kube.get(whole(namespaces), { name }, signal)
    const what = settings.tenantMode ? 'namespace' : 'cluster'
    if (found?.metadata.uid) return `${process} in ${what} ${found.metadata.uid.slice(0, 13)}`
  } catch (error) {
    if (!isKubeError(error, 'forbidden')) throw error
  }
  return `${process} at ${kube.endpoint}`
}
