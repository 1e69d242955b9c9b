import { Controller, Informer, onSpecChange } from '#controller'
import type { MonitorAccessPolicyStatus } from '#kinds'
import type { KubeClient, KubeObject } from '#kube'
import { type Clock, minutes, systemClock } from '#model'
import type { Logger, Metrics } from '#runtime'
import type { CustomTypes } from './custom-types.ts'
import { everything, PolicyReconciler } from './policy-reconciler.ts'
import { accessPolicyResource } from './policy-resource.ts'
import type { PolicyWriter } from './types.ts'

/** What the controllers of MonitorAccessPolicies need. */
export interface AccessReconcilersOptions {
  /** the hub's own API, where the policies are */
  readonly hub: KubeClient
  /** policies elsewhere are not looked at */
  readonly namespace: string
  readonly writer: PolicyWriter
  /** what MetricSources collect, for warnings about policies that name it; absent: there are none */
  readonly types?: CustomTypes
  readonly logger: Logger
  readonly metrics?: Metrics
  readonly clock?: Clock
  readonly random?: () => number
  /** how often the store is compared as a whole, ms; default 10 min */
  readonly resyncEveryMs?: number
}

/** The controllers of this module, for a Manager: they make the store hold the policies of the hub, and say so in their status. */
export function accessReconcilers(options: AccessReconcilersOptions): readonly Controller[] {
  const { hub, namespace, writer, logger, metrics, clock = systemClock, random = Math.random } = options
  const informer = new Informer<KubeObject>({ kube: hub, resource: accessPolicyResource, namespace, logger, clock })
  const reconciler = new PolicyReconciler({
    ...options,
    policies: informer,
    clock,
    random,
    resyncEveryMs: options.resyncEveryMs ?? minutes(10),
    enqueue: (key) => controller.enqueue(key),
  })
  const controller: Controller = new Controller({
    reconciler,
    // One comparison of everything comes first; it asks for those whose status is to be written.
    triggers: [
      {
        ...onSpecChange(informer),
        keysAtStart: () => {
          reconciler.begin()
          return [everything(namespace)]
        },
      },
    ],
    concurrency: 8,
    logger,
    clock,
    random,
  })
  // As long as the store: both end with the process.
  writer.onLost?.(() => {
    reconciler.forgetWritten()
    controller.enqueue(everything(namespace))
  })
  options.types?.onChange(() => reconciler.typesChanged())
  metrics?.gauge('clusterpulse_access_policies', 'Access policies by state.', ['state'], (gauge) => {
    gauge.reset()
    for (const { status } of informer.list())
      gauge.inc({ state: (status as MonitorAccessPolicyStatus)?.state ?? 'Pending' })
  })
  return [controller]
}
