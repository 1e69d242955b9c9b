import { clusterConnection } from '#kinds'
import type { KubeObject, Resource } from '#kube'

/** ClusterConnections, as the API server has them. */
export const connectionResource: Resource<KubeObject> = {
  group: clusterConnection.group,
  version: clusterConnection.version,
  plural: clusterConnection.plural,
  kind: clusterConnection.kind,
  namespaced: true,
}
