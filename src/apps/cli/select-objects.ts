import type { CompiledSource, SourceObject } from '#metricsource'
import { isRecord } from './manifest-files.ts'

/** Whether a source would see this object of a file: its kind, namespace and labels, as an API server would select them. */
export function isSelected(
  source: CompiledSource,
  { spec }: SourceObject,
  object: Readonly<Record<string, unknown>>,
): boolean {
  if (object.apiVersion !== source.target.apiVersion || object.kind !== source.target.kind) return false
  const metadata = isRecord(object.metadata) ? object.metadata : {}
  if (source.target.scope === 'Namespaced' && !source.wantsNamespace(String(metadata.namespace ?? ''))) return false
  const labels = isRecord(metadata.labels) ? metadata.labels : {}
  const { matchLabels = {}, matchExpressions = [] } = spec.source.labelSelector ?? {}
  return (
    Object.entries(matchLabels).every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value) &&
    matchExpressions.every(({ key, operator, values = [] }) => {
      const value = Object.hasOwn(labels, key) ? labels[key] : undefined
      if (operator === 'Exists') return value !== undefined
      if (operator === 'DoesNotExist') return value === undefined
      const isNamed = typeof value === 'string' && values.includes(value)
      // As Kubernetes has it: an object without the label is not "in", and passes "not in".
      return operator === 'In' ? isNamed : !isNamed
    })
  )
}
