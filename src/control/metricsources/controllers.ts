import type { CatalogWriter, SourceCatalog } from '#catalog'
import { Controller, Informer, onSpecChange } from '#controller'
import type { EventBus } from '#events'
import type { MetricSourceStatus } from '#kinds'
import type { KubeClient, KubeObject } from '#kube'
import { type Clock, isDeclaredSource, minutes, seconds, systemClock } from '#model'
import type { Logger, Metrics } from '#runtime'
import type { StateReader } from '#state'
import { type AgentRoles, everything, SourceReconciler, type SourceRemover } from './reconciler.ts'
import { keyOfId, metricSourceResource } from './source-resource.ts'

/** What the controller of MetricSources needs. */
export interface MetricSourcesOptions {
  /** the hub's own API, where the objects are */
  readonly hub: KubeClient
  /** sources elsewhere are not looked at */
  readonly namespace: string
  readonly catalog: SourceCatalog & CatalogWriter
  /** what was collected, for statuses and for removal */
  readonly state: Pick<StateReader, 'availability' | 'clusters'>
  readonly ingester: SourceRemover
  /** absent: no agent is given a role by this hub */
  readonly agentRoles?: AgentRoles
  /** told of what is collected, so that statuses follow within a second; absent: they follow every `lookEveryMs` */
  readonly events?: Pick<EventBus, 'subscribe'>
  readonly logger: Logger
  readonly metrics?: Metrics
  readonly clock?: Clock
  readonly random?: () => number
  /** how often the catalog is compared as a whole, ms; default 10 min */
  readonly resyncEveryMs?: number
  /** default 10 s */
  readonly lookEveryMs?: number
}

/** Collections of many clusters end together: one look for all of them. */
const CALM_MS = 500

/** The controllers of this module, for a Manager: they make the catalog hold the sources of the hub, and say how they do. */
export function metricSourceReconcilers(options: MetricSourcesOptions): readonly Controller[] {
  const { hub, namespace, catalog, logger, metrics, clock = systemClock, random = Math.random } = options
  const informer = new Informer<KubeObject>({ kube: hub, resource: metricSourceResource, namespace, logger, clock })
  const reconciler = new SourceReconciler({
    ...options,
    objects: informer,
    clock,
    random,
    resyncEveryMs: options.resyncEveryMs ?? minutes(10),
    lookEveryMs: options.lookEveryMs ?? seconds(10),
    enqueue: (key) => controller.enqueue(key),
  })
  const controller: Controller = new Controller({
    reconciler,
    // One comparison of everything comes first; it asks for each of them.
    triggers: [
      {
        ...onSpecChange(informer),
        keysAtStart: () => {
          reconciler.begin()
          return [everything(namespace)]
        },
      },
    ],
    concurrency: 4,
    logger,
    clock,
    random,
  })
  // As long as the catalog and the bus: all end with the process.
  catalog.onLost?.(() => {
    reconciler.forgetWritten()
    controller.enqueue(everything(namespace))
  })
  options.events?.subscribe((events) => {
    const sources = events.flatMap(({ change }) => (change.kind === 'custom' ? [change.source] : []))
    for (const source of new Set(sources.filter(isDeclaredSource))) controller.enqueue(keyOfId(source), CALM_MS)
  })
  metrics?.gauge('clusterpulse_metric_sources', 'MetricSources by phase.', ['phase'], (gauge) => {
    gauge.reset()
    for (const { status } of informer.list()) {
      gauge.inc({ phase: (status as MetricSourceStatus | undefined)?.phase ?? 'Pending' })
    }
  })
  return [controller]
}
