import { type NamespaceFacts, namespaces } from '#kube'
import { fed, foldOf, Kept, listOf } from './fold.ts'
import type { Collector } from './types.ts'

const all = listOf(namespaces)

/** Namespaces of one cluster: name, phase, age, labels. */
export const namespaceCollector: Collector = {
  name: 'namespaces',
  types: ['namespace'],
  reads: [all],
  critical: false,
  open() {
    const kept = new Kept({ key: ({ name }: NamespaceFacts) => name, of: snapshot })
    return foldOf([fed(all, kept)], () => ({ namespace: kept.values() }))
  },
}

const snapshot = (facts: NamespaceFacts) => ({ ...facts, labels: { ...facts.labels } })
