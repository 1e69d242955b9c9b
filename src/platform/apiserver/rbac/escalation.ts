import { isDeepStrictEqual } from 'node:util'
import { ApiError } from '../status.ts'
import type { ApiObject } from '../types.ts'
import { MASTERS, type User } from '../user.ts'
import type { Authorizer } from './authorizer.ts'
import { type BindingObject, RBAC, type RoleObject } from './objects.ts'
import { type PolicyRule, uncovered } from './rule.ts'

export const isRbac = (group: string): boolean => group === RBAC

/** A write of a role or a binding. `name` is that of the request: a new object has none there. */
export interface RbacWrite {
  readonly plural: string
  readonly namespace: string | undefined
  readonly name: string | undefined
  readonly object: ApiObject
  readonly before: ApiObject | undefined
}

const EVERYTHING: readonly PolicyRule[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
  { verbs: ['*'], nonResourceURLs: ['*'] },
]

/**
 * Nobody grants what they do not hold: who writes a role holds its rules, or may `escalate`; who writes a binding holds the
 * rules of its role, or may `bind` it.
 * @throws ApiError Forbidden, naming what is missing
 */
export function refuseEscalation(authorizer: Authorizer, user: User, write: RbacWrite): void {
  if (user.groups.includes(MASTERS) || isOnlyUpkeep(write)) return
  const { plural, namespace = '', object } = write
  const may = (verb: string, resource: string, name: string | undefined) =>
    authorizer.decide(user, { verb, group: RBAC, resource, namespace, ...(name ? { name } : {}) }).allowed
  if (plural === 'roles' || plural === 'clusterroles') {
    if (may('escalate', plural, write.name)) return
    requireHeld(authorizer, user, { ...write, rules: (object as RoleObject).rules ?? [] })
    // What a role collects grows by itself: who makes it collect, or stop, holds all there is.
    if (collects(object) || collects(write.before)) requireEverything(authorizer, user, write)
    return
  }
  const { roleRef } = object as BindingObject
  if (may('bind', roleRef.kind === 'ClusterRole' ? 'clusterroles' : 'roles', roleRef.name)) return
  const rules = authorizer.rulesOf(roleRef, namespace)
  if (typeof rules === 'string')
    throw new ApiError('NotFound', rules, { name: roleRef.name, group: RBAC, kind: `${roleRef.kind.toLowerCase()}s` })
  requireHeld(authorizer, user, { ...write, rules })
}

const collects = (role: RoleObject | undefined): boolean =>
  (role?.aggregationRule?.clusterRoleSelectors?.length ?? 0) > 0

function requireEverything(authorizer: Authorizer, user: User, { plural, object }: RbacWrite): void {
  if (uncovered(authorizer.held(user, '').rules, EVERYTHING).length === 0) return
  const { name } = object.metadata
  throw new ApiError(
    'Forbidden',
    `${plural}.${RBAC} "${name}" is forbidden: must have cluster-admin privileges to use the aggregationRule`,
    { name, group: RBAC, kind: plural },
  )
}

/** Owners and finalizers may be changed by who cleans up. */
function isOnlyUpkeep({ object, before }: RbacWrite): boolean {
  const rest = ({ metadata, ...fields }: ApiObject) => {
    const { ownerReferences: _, finalizers: __, managedFields: ___, resourceVersion: ____, ...kept } = metadata
    return { ...fields, metadata: kept }
  }
  return before !== undefined && isDeepStrictEqual(rest(object), rest(before))
}

function requireHeld(
  authorizer: Authorizer,
  user: User,
  { rules, plural, namespace = '', object }: RbacWrite & { readonly rules: readonly PolicyRule[] },
): void {
  const { rules: held, faults } = authorizer.held(user, namespace)
  const missing = uncovered(held, rules)
  if (missing.length === 0) return
  const groups = user.groups.map((group) => JSON.stringify(group)).join(' ')
  const lines = [...new Set(missing.map(text))].join('\n')
  const also = faults.length > 0 ? `; resolution errors: ${JSON.stringify(faults)}` : ''
  const { name } = object.metadata
  throw new ApiError(
    'Forbidden',
    `${plural}.${RBAC} "${name}" is forbidden: user "${user.name}" (groups=[${groups}]) is attempting to grant RBAC permissions not currently held:\n${lines}${also}`,
    { name, group: RBAC, kind: plural },
  )
}

function text({ apiGroups, resources, resourceNames, nonResourceURLs, verbs }: PolicyRule): string {
  const parts = {
    APIGroups: apiGroups,
    Resources: resources,
    ResourceNames: resourceNames,
    NonResourceURLs: nonResourceURLs,
    Verbs: verbs,
  }
  return `{${Object.entries(parts)
    .filter(([, list]) => list?.length)
    .map(([name, list]) => `${name}:${JSON.stringify(list)}`)
    .join(', ')}}`
}
