import { isDeepStrictEqual } from 'node:util'
import type { ObjectStore } from '../objects.ts'
import type { ApiObject } from '../types.ts'
import { type DefaultRole, defaultRoles } from './default-roles.ts'
import { type BindingObject, RBAC, type RoleObject, type Subject } from './objects.ts'
import { uncovered } from './rule.ts'

const API_VERSION = `${RBAC}/v1`
const UPDATES = 'rbac.authorization.kubernetes.io/autoupdate'
const named = { group: RBAC, version: 'v1' }

/**
 * Makes the roles and bindings every cluster has. What is there already gets back what it lost, and keeps what was added;
 * an object whose annotation `rbac.authorization.kubernetes.io/autoupdate` is "false" is left alone.
 */
export async function seedDefaultRoles(objects: ObjectStore): Promise<void> {
  const isKept = (stored: ApiObject) => stored.metadata.annotations?.[UPDATES] === 'false'
  await Promise.all(
    defaultRoles.flatMap((role) => {
      const { name } = role
      const stored = objects.get({ ...named, plural: 'clusterroles' }, { name }) as RoleObject | undefined
      const bound = objects.get({ ...named, plural: 'clusterrolebindings' }, { name }) as BindingObject | undefined
      return [
        ...(stored ? (isKept(stored) ? [] : [mendRole(objects, stored, role)]) : [objects.create(roleObject(role))]),
        ...(!role.groups
          ? []
          : bound
            ? isKept(bound)
              ? []
              : [mendBinding(objects, bound, role)]
            : [objects.create(bindingObject(role))]),
      ]
    }),
  )
}

const metadata = (name: string, collectedBy?: string): ApiObject['metadata'] => ({
  name,
  labels: { 'kubernetes.io/bootstrapping': 'rbac-defaults', ...(collectedBy && { [collectedBy]: 'true' }) },
  annotations: { [UPDATES]: 'true' },
})

const roleObject = ({ name, rules, collects, collectedBy }: DefaultRole): RoleObject => ({
  apiVersion: API_VERSION,
  kind: 'ClusterRole',
  metadata: metadata(name, collectedBy),
  ...(collects
    ? { aggregationRule: { clusterRoleSelectors: [{ matchLabels: { [collects]: 'true' } }] } }
    : { rules: [...(rules ?? [])] }),
})

const subjectsOf = ({ groups = [] }: DefaultRole): Subject[] =>
  groups.map((name) => ({ apiGroup: RBAC, kind: 'Group', name }))

const bindingObject = (role: DefaultRole): BindingObject => ({
  apiVersion: API_VERSION,
  kind: 'ClusterRoleBinding',
  metadata: metadata(role.name),
  roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: role.name },
  subjects: subjectsOf(role),
})

async function mendRole(objects: ObjectStore, stored: RoleObject, role: DefaultRole): Promise<void> {
  const missing = uncovered(stored.rules ?? [], role.rules ?? [])
  const wanted = roleObject(role)
  const labelled = withLabels(stored, wanted)
  const changed = { ...labelled, ...(missing.length > 0 ? { rules: [...(stored.rules ?? []), ...missing] } : {}) }
  if (!isDeepStrictEqual(changed, stored)) await objects.update(changed as ApiObject)
}

async function mendBinding(objects: ObjectStore, stored: BindingObject, role: DefaultRole): Promise<void> {
  const own = stored.subjects ?? []
  const missing = subjectsOf(role).filter(
    ({ kind, name }) => !own.some((subject) => subject.kind === kind && subject.name === name),
  )
  const labelled = withLabels(stored, bindingObject(role))
  const changed = missing.length > 0 ? { ...labelled, subjects: [...own, ...missing] } : labelled
  if (!isDeepStrictEqual(changed, stored)) await objects.update(changed)
}

function withLabels<T extends ApiObject>(stored: T, wanted: ApiObject): T {
  const labels = { ...stored.metadata.labels, ...wanted.metadata.labels }
  const annotations = { ...stored.metadata.annotations, ...wanted.metadata.annotations }
  return { ...stored, metadata: { ...stored.metadata, labels, annotations } }
}
