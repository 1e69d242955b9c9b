import { type MetricSource, metricSource } from '#kinds'
import type { KubeObject, ObjectKey, Resource } from '#kube'
import type { SourceId } from '#model'

/** MetricSources, as the API server has them; what it keeps for itself is left out. */
export const metricSourceResource: Resource<KubeObject> = {
  group: metricSource.group,
  version: metricSource.version,
  plural: metricSource.plural,
  kind: metricSource.kind,
  namespaced: true,
  fromJson: ({ metadata: { managedFields: _, ...metadata }, ...object }) => ({ ...object, metadata }),
}

/** One of them, served under our schema. */
export type SourceObject = MetricSource & { readonly metadata: KubeObject['metadata'] }

/** The object that an id means. Ids come from stores too: what is no `namespace/name` is a name that no object has. */
export function keyOfId(id: SourceId): ObjectKey {
  const slash = id.indexOf('/')
  return slash < 0 ? { name: id } : { namespace: id.slice(0, slash), name: id.slice(slash + 1) }
}
