import type { Metrics } from '#runtime'
import type { InventoryTargets } from './runtime.ts'

/** How targets follow the cluster. */
export function measureWatches(metrics: Metrics, targets: Pick<InventoryTargets, 'load' | 'watches'>): void {
  metrics.gauge('kollect_informers', 'Open watches of objects that targets collect', [], (gauge) =>
    gauge.set(targets.load.watches),
  )
  const labels = ['group', 'version', 'kind', 'namespace'] as const
  metrics.gauge(
    'kollect_watch_stale_seconds',
    'How long a watch has not followed its kind: rows of it are as old; 0 while it does',
    labels,
    (gauge) => {
      gauge.reset()
      for (const { gvk, namespace, staleMs } of targets.watches())
        gauge.set({ group: gvk.group ?? '', version: gvk.version, kind: gvk.kind, namespace }, staleMs / 1000)
    },
  )
}
