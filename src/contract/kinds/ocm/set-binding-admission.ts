import type { AdmissionRule } from '../admission.ts'
import { managedClusterSetBinding } from './managed-cluster-set-binding.ts'
import { CLUSTER_GROUP } from './names.ts'

/** Who may bind a set, and how bindings are called. */
export const setBindingAdmission: AdmissionRule = {
  name: 'managedclustersetbindings.admission.clusterpulse.io',
  group: CLUSTER_GROUP,
  versions: ['v1beta2'],
  resources: ['managedclustersetbindings'],
  operations: ['CREATE', 'UPDATE'],
  namespaced: true,
  rights: ({ operation, object }) => {
    const set = (object?.spec as { readonly clusterSet?: unknown } | undefined)?.clusterSet
    return operation === 'CREATE' && typeof set === 'string' && set !== ''
      ? [
          {
            verb: 'create',
            group: CLUSTER_GROUP,
            resource: 'managedclustersets',
            subresource: 'bind',
            name: set,
            purpose: `bind the set "${set}"`,
          },
        ]
      : []
  },
  faults: ({ object }) => managedClusterSetBinding.faults(object),
}
