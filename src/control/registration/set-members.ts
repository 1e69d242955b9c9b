import { CLUSTER_SET_LABEL } from '#kinds'
import type { Said } from './availability.ts'
import type { LabelSelector, ManagedClusterSet } from './objects.ts'

type Labels = Readonly<Record<string, string>>

/**
 * Whether a cluster with these labels is in the set: by the label that names its one exclusive set, or by a selector. A selector
 * that is empty takes all; a set without one takes none, and so does a selector that cannot be read.
 */
export function isInSet(
  { metadata: { name }, spec }: Pick<ManagedClusterSet, 'metadata' | 'spec'>,
  labels: Labels,
): boolean {
  const { selectorType = 'ExclusiveClusterSetLabel', labelSelector } = spec?.clusterSelector ?? {}
  if (selectorType === 'ExclusiveClusterSetLabel') return labelOf(labels, CLUSTER_SET_LABEL) === name
  return selectorType === 'LabelSelector' && labelSelector !== undefined && selects(labelSelector, labels)
}

/** Whether labels fit a selector as Kubernetes evaluates it. */
export function selects({ matchLabels = {}, matchExpressions = [] }: LabelSelector, labels: Labels): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) => labelOf(labels, key) === value) &&
    matchExpressions.every(({ key, operator, values = [] }) => {
      const value = labelOf(labels, key)
      if (operator === 'Exists') return value !== undefined
      if (operator === 'DoesNotExist') return value === undefined
      if (operator === 'In') return value !== undefined && values.includes(value)
      return operator === 'NotIn' && (value === undefined || !values.includes(value))
    })
  )
}

const labelOf = (labels: Labels, key: string): string | undefined =>
  Object.hasOwn(labels, key) ? labels[key] : undefined

/** What a set says of how many it has. */
export const emptiness = (count: number): Said =>
  count === 0
    ? { status: 'True', reason: 'NoClusterMatched', message: 'No ManagedCluster selected' }
    : { status: 'False', reason: 'ClustersSelected', message: `${count} ManagedClusters selected` }
