/**
 * Who may see what. Policies are compiled once per change, prepared once per generation, and asked on every request and every
 * frame of a stream; a principal's access view stands between the store and everything else, before counts, cursors, searches and
 * streams, so that nothing tells of what was hidden. Deny is the default, and what cannot be read counts against the reader.
 *
 *   MonitorAccessPolicy → compile → PolicyDocument → (store) → StoredPolicy → generation → prepared → access view → rows
 */
export {
  type AccessChange,
  asPrincipal,
  type Comparison,
  type Counts,
  compareAccess,
  countsOf,
  subjectsOf,
} from './compare.ts'
export { compilePolicy } from './compile.ts'
export { type CustomType, type CustomTypes, customTypeFindings } from './custom-types.ts'
export { readStoredPolicy } from './document.ts'
export { PoliciesUnavailableError } from './errors.ts'
export { type ManifestPolicies, policiesOfForeignManifest, policiesOfManifest } from './manifest.ts'
export { type AccessOptions, type Administrators, openAccess } from './open-access.ts'
export { MemoryPolicies } from './policies-memory.ts'
export { RedisPolicies, type RedisPoliciesOptions } from './policies-redis.ts'
export { accessPolicyResource } from './policy-resource.ts'
export { type AccessReconcilersOptions, accessReconcilers } from './reconciler.ts'
export { type SurveyedPolicy, surveyPolicies } from './survey.ts'
export type {
  Access,
  AccessView,
  Action,
  ClusterPermissions,
  Compilation,
  Decider,
  Decision,
  Explanation,
  FilterSummary,
  Finding,
  ListSummary,
  ObjectsOfEvents,
  OwnPolicy,
  PolicyDocument,
  PolicyGeneration,
  PolicyObject,
  PolicySource,
  PolicyWriter,
  Principal,
  Question,
  RowItem,
  RowsAccessView,
  SelectedCluster,
  Semantics,
  SignInMethod,
  SkippedPolicy,
  SkipReason,
  StandardResource,
  StandardType,
  StoredPolicy,
  ToldRow,
} from './types.ts'
export { standardTypes } from './types.ts'
