import type { CompiledSource, SourceObject } from '#metricsource'
import { selectsLabels } from '#model'
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
  return selectsLabels(spec.source.labelSelector ?? {}, labels as Readonly<Record<string, string>>)
}
