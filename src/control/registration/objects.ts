import type { Condition } from '#controller'
import { ADDON_GROUP, CLUSTER_GROUP, clusterConnection, managedClusterAddOn, WORK_GROUP } from '#kinds'
import type { KubeObject, Resource } from '#kube'
import { CONDITIONS } from './words.ts'

export interface Taint {
  readonly key: string
  readonly value?: string
  readonly effect: 'NoSelect' | 'PreferNoSelect' | 'NoSelectIfNew'
  readonly timeAdded?: string
}

/** A member, or one that asks to be, as far as the hub reads it. */
export interface ManagedCluster extends KubeObject {
  readonly spec?: {
    readonly hubAcceptsClient?: boolean
    readonly leaseDurationSeconds?: number
    readonly taints?: readonly Taint[]
  }
  readonly status?: {
    readonly conditions?: readonly Condition[]
    readonly version?: { readonly kubernetes?: string }
    readonly capacity?: Readonly<Record<string, string>>
    readonly allocatable?: Readonly<Record<string, string>>
    readonly clusterClaims?: readonly Claim[]
  }
}

/** What a member says of itself. */
export interface Claim {
  readonly name: string
  readonly value: string
}

export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>
  readonly matchExpressions?: readonly {
    readonly key: string
    readonly operator: string
    readonly values?: readonly string[]
  }[]
}

export interface ManagedClusterSet extends KubeObject {
  readonly spec?: {
    readonly clusterSelector?: { readonly selectorType?: string; readonly labelSelector?: LabelSelector }
  }
  readonly status?: { readonly conditions?: readonly Condition[] }
}

export interface ManagedClusterSetBinding extends KubeObject {
  readonly spec?: { readonly clusterSet?: string }
  readonly status?: { readonly conditions?: readonly Condition[] }
}

export interface Lease extends KubeObject {
  readonly spec?: { readonly holderIdentity?: string; readonly renewTime?: string }
}

/** What the API server keeps for itself is not held a second time here. */
const lean = <T extends KubeObject>({ metadata: { managedFields: _, ...metadata }, ...object }: KubeObject): T =>
  ({ ...object, metadata }) as T // served under the schema of its kind

/** Kept without its spec: what matters is that it is there, whose it is, and in which set. */
const nameOnly = ({
  metadata: { name, namespace, uid, resourceVersion, ownerReferences, labels },
}: KubeObject): KubeObject => ({
  metadata: {
    name,
    ...(namespace && { namespace }),
    ...(uid && { uid }),
    ...(resourceVersion && { resourceVersion }),
    ...(ownerReferences && { ownerReferences }),
    ...(labels && { labels }),
  },
})

const cluster = (plural: string, kind: string) => ({ group: CLUSTER_GROUP, version: 'v1', plural, kind })
const rbac = (plural: string, kind: string) => ({ group: 'rbac.authorization.k8s.io', version: 'v1', plural, kind })

export const managedClusters: Resource<ManagedCluster> = {
  ...cluster('managedclusters', 'ManagedCluster'),
  namespaced: false,
  fromJson: lean,
}
export const managedClusterSets: Resource<ManagedClusterSet> = {
  ...{ ...cluster('managedclustersets', 'ManagedClusterSet'), version: 'v1beta2' },
  namespaced: false,
  fromJson: lean,
}
export const managedClusterSetBindings: Resource<ManagedClusterSetBinding> = {
  ...{ ...cluster('managedclustersetbindings', 'ManagedClusterSetBinding'), version: 'v1beta2' },
  namespaced: true,
  fromJson: lean,
}
export const manifestWorks: Resource = {
  ...{ group: WORK_GROUP, version: 'v1', plural: 'manifestworks', kind: 'ManifestWork' },
  namespaced: true,
}
export const managedClusterAddOns: Resource = {
  ...{ group: ADDON_GROUP, version: managedClusterAddOn.version },
  ...{ plural: 'managedclusteraddons', kind: 'ManagedClusterAddOn' },
  namespaced: true,
}
export const clusterLeases: Resource<Lease> = {
  ...{ group: 'coordination.k8s.io', version: 'v1', plural: 'leases', kind: 'Lease' },
  namespaced: true,
  fromJson: lean,
}
export const clusterNamespaces: Resource = {
  ...{ group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace' },
  namespaced: false,
  fromJson: lean,
}
export const clusterRoles: Resource = { ...rbac('clusterroles', 'ClusterRole'), namespaced: false, fromJson: lean }
export const clusterRoleBindings: Resource = {
  ...rbac('clusterrolebindings', 'ClusterRoleBinding'),
  namespaced: false,
  fromJson: lean,
}
export const roleBindings: Resource = { ...rbac('rolebindings', 'RoleBinding'), namespaced: true, fromJson: lean }
/** Of the hub's namespace: whether a member is monitored. */
export const monitored: Resource = {
  group: clusterConnection.group,
  version: clusterConnection.version,
  plural: clusterConnection.plural,
  kind: clusterConnection.kind,
  namespaced: true,
  fromJson: nameOnly,
}

export const conditionOf = (
  { status }: { readonly status?: { readonly conditions?: readonly Condition[] } },
  type: string,
): Condition | undefined => status?.conditions?.find((one) => one.type === type)

/** Somebody decided on it once, whatever they said: from then on its life is judged. */
export const isJudged = (member: ManagedCluster): boolean => conditionOf(member, CONDITIONS.accepted) !== undefined
