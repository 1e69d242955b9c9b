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
  readonly reads: readonly {
    readonly resource?: Pick<Resource, 'group' | 'plural'>
    readonly verbs: readonly string[]
  }[]
}

const READ = ['get', 'list']

/**
 * The least a member must allow for these collectors to work: `get` and `list` of exactly what they read, and `watch` of what is
 * followed. The connection test lists namespaces, with or without the collector of that name.
 */
export function clusterRoleFor(collectors: readonly Reader[]): readonly RoleRule[] {
  const watched = new Map<string, Map<string, boolean>>([['', new Map([['namespaces', false]])]])
  for (const { resource, verbs } of collectors.flatMap(({ reads }) => reads)) {
    if (!resource) continue
    const { group, plural } = resource
    const ofGroup = watched.get(group) ?? new Map<string, boolean>()
    watched.set(group, ofGroup.set(plural, ofGroup.get(plural) === true || verbs.includes('watch')))
  }
  const rules = [...watched]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([group, ofGroup]) => {
      const named = (isWatched: boolean) =>
        [...ofGroup].flatMap(([plural, is]) => (is === isWatched ? plural : [])).sort()
      return [
        { apiGroups: [group], resources: named(false), verbs: READ },
        { apiGroups: [group], resources: named(true), verbs: [...READ, 'watch'] },
      ]
    })
  return rules.filter(({ resources }) => resources.length > 0)
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
