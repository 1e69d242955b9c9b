/**
 * The kinds of hub objects. One file per kind holds its schema; from it follow the static type, the validator with
 * sentences for people, the CustomResourceDefinition and the reference page, so that they cannot disagree.
 *
 *   schema (TypeBox) → type · faults()/parse() · crd() → deploy/crds, docs/reference/kinds.md
 *
 * Schemas accept what older manifests contain; the code clamps, the schema does not refuse. Pure: no input, no output.
 */
export type { AcceptedCredentials } from './accepted-credentials.ts'
export {
  type AdmissionOperation,
  type AdmissionRequest,
  type AdmissionRule,
  type AdmissionUser,
  type AdmittedObject,
  concerns,
  deniedBy,
  missingRight,
  type NeededRight,
  type ObjectReference,
  type ObjectSelection,
  refusalOf,
} from './admission.ts'
export {
  type ClusterConnection,
  type ClusterConnectionSpec,
  type ClusterConnectionStatus,
  clusterConnection,
} from './cluster-connection.ts'
export { StatusCondition } from './conditions.ts'
export { type StructuralSchema, toStructural } from './crd-schema.ts'
export {
  crdYaml,
  type GeneratedFile,
  generateKinds,
  kindReference,
  kinds,
  kollectKinds,
  ocmAdmission,
  ocmKinds,
} from './generate.ts'
export {
  type Column,
  type Conversion,
  type CustomResourceDefinition,
  type Fault,
  InvalidObjectError,
  type Kind,
  type KindObject,
  type VersionConverter,
} from './kind.ts'
export * from './kollect/index.ts'
export {
  type MetricSource,
  type MetricSourceSpec,
  type MetricSourceStatus,
  metricSource,
} from './metric-source.ts'
export {
  type MonitorAccessPolicy,
  type MonitorAccessPolicySpec,
  type MonitorAccessPolicyStatus,
  monitorAccessPolicy,
} from './monitor-access-policy.ts'
export * from './ocm/index.ts'
export {
  type RegistryConnection,
  type RegistryConnectionSpec,
  type RegistryConnectionStatus,
  registryConnection,
} from './registry-connection.ts'
