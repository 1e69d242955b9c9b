import { stringify } from 'yaml'
import type { Resource } from '#kube'

/** One rule of a ClusterRole. */
export interface RoleRule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly verbs: readonly string[]
}

/** Whatever reads of a cluster. */
interface Reader {
  readonly reads: readonly { readonly resource?: Pick<Resource, 'group' | 'plural'> }[]
}

/**
 * The least a member must allow for these collectors to work: `get` and `list` of exactly what they read. The connection
 * test lists namespaces, with or without the collector of that name.
 */
export function clusterRoleFor(collectors: readonly Reader[]): readonly RoleRule[] {
  const byGroup = new Map<string, Set<string>>([['', new Set(['namespaces'])]])
  for (const { resource } of collectors.flatMap(({ reads }) => reads)) {
    if (!resource) continue
    const { group, plural } = resource
    byGroup.set(group, (byGroup.get(group) ?? new Set()).add(plural))
  }
  return [...byGroup]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([group, resources]) => ({ apiGroups: [group], resources: [...resources].sort(), verbs: ['get', 'list'] }))
}

/** ServiceAccount, ClusterRole, binding and token Secret for a member, ready for `kubectl apply`. */
export function memberRoleYaml(collectors: readonly Reader[]): string {
  const name = 'clusterpulse-reader'
  const namespace = 'clusterpulse'
  const rbac = 'rbac.authorization.k8s.io'
  const objects = [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } },
    { apiVersion: `${rbac}/v1`, kind: 'ClusterRole', metadata: { name }, rules: clusterRoleFor(collectors) },
    {
      apiVersion: `${rbac}/v1`,
      kind: 'ClusterRoleBinding',
      metadata: { name },
      roleRef: { apiGroup: rbac, kind: 'ClusterRole', name },
      subjects: [{ kind: 'ServiceAccount', name, namespace }],
    },
    {
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'kubernetes.io/service-account-token',
      metadata: { name, namespace, annotations: { 'kubernetes.io/service-account.name': name } },
    },
  ]
  return objects.map((object) => stringify(object, { lineWidth: 0, aliasDuplicateObjects: false })).join('---\n')
}
