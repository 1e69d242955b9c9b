/**
 * The kinds of Open Cluster Management that a hub and its members keep, under their own names, groups and fields, so that its
 * agents and tools work here; what their schemas cannot say stands in the admission rules.
 */
export { type AddOnDeploymentConfig, addOnDeploymentConfig } from './add-on-deployment-config.ts'
export { type AppliedManifestWork, appliedManifestWork } from './applied-manifest-work.ts'
export { agentOf } from './asker.ts'
export * from './certificate-life.ts'
export { certificateRequestAdmission } from './certificate-request-admission.ts'
export { type ClusterClaim, clusterClaim } from './cluster-claim.ts'
export { type ClusterManagementAddOn, clusterManagementAddOn } from './cluster-management-add-on.ts'
export { type Klusterlet, klusterlet } from './klusterlet.ts'
export {
  clusterNameProblem,
  type ManagedCluster,
  type ManagedClusterSpec,
  type ManagedClusterStatus,
  type ManagedClusterTaint,
  managedCluster,
} from './managed-cluster.ts'
export { type ManagedClusterAddOn, managedClusterAddOn } from './managed-cluster-add-on.ts'
export { managedClusterAdmission } from './managed-cluster-admission.ts'
export { type ManagedClusterSet, managedClusterSet } from './managed-cluster-set.ts'
export { type ManagedClusterSetBinding, managedClusterSetBinding } from './managed-cluster-set-binding.ts'
export { type ManifestWork, manifestWork } from './manifest-work.ts'
export { manifestWorkAdmission } from './manifest-work-admission.ts'
export * from './names.ts'
export * from './noted-decision.ts'
export { setBindingAdmission } from './set-binding-admission.ts'
