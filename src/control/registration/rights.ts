import { CLUSTER_LABEL } from '#authority'
import { ADDON_GROUP, CLUSTER_GROUP, REGISTER_GROUP, WORK_GROUP } from '#kinds'
import type { KubeObject, Resource } from '#kube'
import { clusterRoleBindings, clusterRoles, roleBindings } from './objects.ts'
import { FINALIZERS, groupsOf, MADE_FOR_MEMBERS } from './words.ts'

const RBAC = 'rbac.authorization.k8s.io'
const PREFIX = 'open-cluster-management:managedcluster'

/** An object that gives rights, and where it is kept. */
export interface Grant {
  readonly resource: Resource
  readonly object: KubeObject
}

interface Rule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly verbs: readonly string[]
}

const read = ['get', 'list', 'watch'] as const
const rule = (group: string, resources: readonly string[], verbs: readonly string[], name?: string): Rule => ({
  apiGroups: [group],
  resources,
  ...(name !== undefined && { resourceNames: [name] }),
  verbs,
})

/** In the namespace of its own cluster: its life and its add-ons. */
const ofRegistration: readonly Rule[] = [
  rule('coordination.k8s.io', ['leases'], [...read, 'update']),
  rule(ADDON_GROUP, ['managedclusteraddons'], read),
  rule(ADDON_GROUP, ['managedclusteraddons/status'], ['patch', 'update']),
  rule('events.k8s.io', ['events'], ['create']),
]
/** In the namespace of its own cluster: the works it carries out, which it neither makes nor deletes. */
const ofWork: readonly Rule[] = [
  { apiGroups: ['', 'events.k8s.io'], resources: ['events'], verbs: ['create', 'patch', 'update'] },
  rule(WORK_GROUP, ['manifestworks'], [...read, 'update', 'patch']),
  rule(WORK_GROUP, ['manifestworks/status'], ['patch', 'update']),
]
const ofMember = (cluster: string): readonly Rule[] => [
  rule('certificates.k8s.io', ['certificatesigningrequests'], ['create', ...read]),
  rule(REGISTER_GROUP, ['managedclusters/clientcertificates'], ['renew']),
  rule(CLUSTER_GROUP, ['managedclusters'], [...read, 'update'], cluster),
  rule(CLUSTER_GROUP, ['managedclusters/status'], ['patch', 'update'], cluster),
]
/** Who asks, or was denied, sees what became of it. */
const ofApplicant = (cluster: string): readonly Rule[] => [rule(CLUSTER_GROUP, ['managedclusters'], read, cluster)]

const role = (name: string, rules: readonly Rule[], labels: Record<string, string>): Grant => ({
  resource: clusterRoles,
  object: { apiVersion: `${RBAC}/v1`, kind: 'ClusterRole', metadata: { name, labels }, rules },
})

/** The roles that all members share; each is bound in the namespace of a cluster. */
export const sharedRoles: readonly Grant[] = [
  role(`${PREFIX}:registration`, ofRegistration, { [MADE_FOR_MEMBERS]: 'shared' }),
  role(`${PREFIX}:work`, ofWork, { [MADE_FOR_MEMBERS]: 'shared' }),
]

export const roleNameOf = (cluster: string): string => `${PREFIX}:${cluster}`

/** The bindings in the namespace of the cluster: what an accepted one has beyond the others. */
export const bindingsOf = (cluster: string): readonly Grant[] =>
  (['registration', 'work'] as const).map((shared) => ({
    resource: roleBindings,
    object: {
      apiVersion: `${RBAC}/v1`,
      kind: 'RoleBinding',
      metadata: {
        name: `${roleNameOf(cluster)}:${shared}`,
        namespace: cluster,
        labels: grantLabelsOf(cluster),
        // A namespace that ends must not take away what the agent needs to end its works.
        ...(shared === 'work' && { finalizers: [FINALIZERS.work] }),
      },
      roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: `${PREFIX}:${shared}` },
      subjects: subjectsOf(cluster),
    },
  }))

/** All that the identity of one cluster may do on the hub, beside what every authenticated user may. */
export function rightsOf(cluster: string, isAccepted: boolean): readonly Grant[] {
  const name = roleNameOf(cluster)
  const labels = grantLabelsOf(cluster)
  return [
    role(name, isAccepted ? ofMember(cluster) : ofApplicant(cluster), labels),
    {
      resource: clusterRoleBindings,
      object: {
        apiVersion: `${RBAC}/v1`,
        kind: 'ClusterRoleBinding',
        metadata: { name, labels },
        roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name },
        subjects: subjectsOf(cluster),
      },
    },
    ...(isAccepted ? bindingsOf(cluster) : []),
  ]
}

const grantLabelsOf = (cluster: string) => ({ ...labelsOf(cluster), [MADE_FOR_MEMBERS]: 'member' })

export const labelsOf = (cluster: string): Record<string, string> => ({ [CLUSTER_LABEL]: cluster })

const subjectsOf = (cluster: string) => groupsOf(cluster).map((name) => ({ apiGroup: RBAC, kind: 'Group', name }))

/** The cluster whose right it is, by the name of its role. */
export const clusterOfRole = ({ metadata: { name, labels } }: KubeObject): string | undefined => {
  const cluster = labels?.[CLUSTER_LABEL]
  return cluster !== undefined && name === roleNameOf(cluster) ? cluster : undefined
}
