import { type MonitorAccessPolicy, monitorAccessPolicy } from '#kinds'
import type { KubeObject, Resource } from '#kube'

/** MonitorAccessPolicies, as the API server has them; what it keeps for itself is left out. */
export const accessPolicyResource: Resource<KubeObject> = {
  group: monitorAccessPolicy.group,
  version: monitorAccessPolicy.version,
  plural: monitorAccessPolicy.plural,
  kind: monitorAccessPolicy.kind,
  namespaced: true,
  fromJson: ({ metadata: { managedFields: _, ...metadata }, ...object }) => ({ ...object, metadata }),
}

/** One of them, served under our schema. */
export type Policy = MonitorAccessPolicy & { readonly metadata: KubeObject['metadata'] }
