import type { Collector } from '#collect'
import type { KubeClient } from '#kube'
import type { NamespaceSnapshot } from '#model'

/** A client that answers its ping, for collectors that read nothing from it. */
export function aliveClient(): KubeClient {
  return { ping: () => Promise.resolve() } as unknown as KubeClient // nothing else of it is used here
}

/** Namespaces of which one changes its labels at each round: what was seen when is told by the batch. */
export function countingCollector(onCollect: (count: number) => void = () => undefined, size = 5): Collector {
  let count = 0
  return {
    name: 'namespaces',
    types: ['namespace'],
    reads: [],
    critical: false,
    open: () => ({ take: () => true, parts }),
  }

  function parts() {
    onCollect(++count)
    const items: NamespaceSnapshot[] = Array.from({ length: size }, (_, i) => ({
      name: `ns-${i}`,
      phase: 'Active',
      createdAt: 1_700_000_000_000,
      labels: { count: i === 0 ? String(count) : 'same' },
    }))
    return { namespace: items }
  }
}
