import { isDeepStrictEqual } from 'node:util'
import { nameFaults } from '../names.ts'
import { RBAC } from '../rbac/objects.ts'
import type { ApiObject, FieldFault } from '../types.ts'
import { type Fields, fields, items, type KindRule, required, unsupported, wrong } from './rule.ts'

function ruleFaults(rule: Fields, path: string, ofCluster: boolean): FieldFault[] {
  const count = (name: string): number => items(rule[name]).length
  const noVerb = count('verbs') === 0 ? [required(`${path}.verbs`, 'verbs must contain at least one value')] : []
  const onPaths = (why: string) => [...noVerb, wrong(`${path}.nonResourceURLs`, rule.nonResourceURLs, why)]
  if (count('nonResourceURLs') > 0) {
    if (!ofCluster) return onPaths('namespaced rules cannot apply to non-resource URLs')
    if (count('apiGroups') + count('resources') + count('resourceNames') > 0)
      return onPaths('rules cannot apply to both regular resources and non-resource URLs')
    return noVerb
  }
  return [
    ...noVerb,
    ...(count('apiGroups') === 0
      ? [required(`${path}.apiGroups`, 'resource rules must supply at least one api group')]
      : []),
    ...(count('resources') === 0
      ? [required(`${path}.resources`, 'resource rules must supply at least one resource')]
      : []),
  ]
}

const rulesFaults = ({ rules }: ApiObject, ofCluster: boolean): FieldFault[] =>
  items(rules).flatMap((rule, at) => ruleFaults(fields(rule), `rules[${at}]`, ofCluster))

export const roleRule: KindRule = { faults: (role) => rulesFaults(role, false) }

export const clusterRoleRule: KindRule = {
  faults: (role) => [
    ...rulesFaults(role, true),
    ...(role.aggregationRule && items(fields(role.aggregationRule).clusterRoleSelectors).length === 0
      ? [
          required(
            'aggregationRule.clusterRoleSelectors',
            'at least one clusterRoleSelector required if aggregationRule is non-nil',
          ),
        ]
      : []),
  ],
}

function subjectFaults({ kind, name, namespace, apiGroup }: Fields, path: string, ofCluster: boolean): FieldFault[] {
  const unnamed = !name
    ? [required(`${path}.name`)]
    : kind === 'ServiceAccount'
      ? nameFaults(String(name), 'subdomain', `${path}.name`)
      : []
  if (kind !== 'ServiceAccount' && kind !== 'User' && kind !== 'Group')
    return [...unnamed, unsupported(`${path}.kind`, kind, ['ServiceAccount', 'User', 'Group'])]
  const wanted = kind === 'ServiceAccount' ? '' : RBAC
  return [
    ...unnamed,
    ...((apiGroup ?? '') === wanted ? [] : [unsupported(`${path}.apiGroup`, apiGroup, [wanted])]),
    ...(kind === 'ServiceAccount' && ofCluster && !namespace ? [required(`${path}.namespace`)] : []),
  ]
}

const bindingRule = (kinds: readonly string[]): KindRule => ({
  prepare: (object) => ({
    ...object,
    roleRef: { apiGroup: RBAC, ...fields(object.roleRef) },
    ...(Array.isArray(object.subjects)
      ? {
          subjects: object.subjects.map((subject) =>
            fields(subject).kind === 'ServiceAccount' ? subject : { apiGroup: RBAC, ...fields(subject) },
          ),
        }
      : {}),
  }),
  faults: ({ roleRef, subjects }, before) => {
    const { apiGroup, kind, name } = fields(roleRef)
    return [
      ...(apiGroup === RBAC ? [] : [unsupported('roleRef.apiGroup', apiGroup, [RBAC])]),
      ...(kinds.includes(String(kind)) ? [] : [unsupported('roleRef.kind', kind, kinds)]),
      ...(name ? [] : [required('roleRef.name')]),
      ...items(subjects).flatMap((subject, at) =>
        subjectFaults(fields(subject), `subjects[${at}]`, !kinds.includes('Role')),
      ),
      // Else who may write the binding could change what it grants, not only to whom.
      ...(before && !isDeepStrictEqual(before.roleRef, roleRef)
        ? [wrong('roleRef', roleRef, 'cannot change roleRef')]
        : []),
    ]
  },
})

export const roleBindingRule = bindingRule(['ClusterRole', 'Role'])
export const clusterRoleBindingRule = bindingRule(['ClusterRole'])
