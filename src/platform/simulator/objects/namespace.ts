import type { ApiObject } from '#apiserver'
import type { NamespaceFacts } from '../facts.ts'
import { timestamp } from './meta.ts'

export const namespaceObject = (namespace: NamespaceFacts): ApiObject => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: {
    name: namespace.name,
    uid: namespace.uid,
    creationTimestamp: timestamp(namespace.createdAt),
    labels: { 'kubernetes.io/metadata.name': namespace.name, ...namespace.labels },
  },
  spec: { finalizers: ['kubernetes'] },
  status: { phase: 'Active' },
})
