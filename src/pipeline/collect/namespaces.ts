import { namespaces } from '#kube'
import type { Collector } from './types.ts'

/** Namespaces of one cluster: name, phase, age, labels. */
export const namespaceCollector: Collector = {
  name: 'namespaces',
  types: ['namespace'],
  reads: [namespaces],
  critical: false,
  everyMs: 0,
  async collect({ kube }, signal) {
    const found = await kube.listAll(namespaces, { signal })
    return { namespace: found.map((namespace) => ({ ...namespace, labels: { ...namespace.labels } })) }
  },
}
