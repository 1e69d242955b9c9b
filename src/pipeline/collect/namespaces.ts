import type { KubeObject, Resource } from '#kube'
import type { NamespaceSnapshot } from '#model'
import { fields, instant, text, textMap } from './read.ts'
import type { Collector } from './types.ts'

const namespaces: Resource<NamespaceSnapshot> = {
  group: '',
  version: 'v1',
  plural: 'namespaces',
  kind: 'Namespace',
  namespaced: false,
  fromJson: namespaceSnapshot,
}

/** Namespaces of one cluster: name, phase, age, labels. */
export const namespaceCollector: Collector = {
  name: 'namespaces',
  types: ['namespace'],
  reads: [namespaces],
  critical: false,
  everyMs: 0,
  async collect({ kube }, signal) {
    return { namespace: await kube.listAll(namespaces, { signal }) }
  },
}

export function namespaceSnapshot(object: KubeObject): NamespaceSnapshot {
  return {
    name: object.metadata.name,
    phase: text(fields(object.status).phase) || 'Active',
    createdAt: instant(object.metadata.creationTimestamp),
    labels: textMap(object.metadata.labels),
  }
}
