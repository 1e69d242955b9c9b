import type { ApiObject } from '../types.ts'
import type { PolicyRule } from './rule.ts'

export const RBAC = 'rbac.authorization.k8s.io'

/** Where each kind is kept in the store. */
export const COLLECTIONS = {
  roles: `${RBAC}/roles`,
  clusterRoles: `${RBAC}/clusterroles`,
  roleBindings: `${RBAC}/rolebindings`,
  clusterRoleBindings: `${RBAC}/clusterrolebindings`,
} as const

export interface RoleRef {
  readonly apiGroup?: string
  readonly kind: string
  readonly name: string
}

export interface Subject {
  readonly kind: string
  readonly name: string
  readonly namespace?: string
  readonly apiGroup?: string
}

export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>
  readonly matchExpressions?: readonly {
    readonly key: string
    readonly operator: string
    readonly values?: readonly string[]
  }[]
}

/** A Role or ClusterRole as stored. */
export interface RoleObject extends ApiObject {
  rules?: readonly PolicyRule[] | null
  aggregationRule?: { readonly clusterRoleSelectors?: readonly LabelSelector[] } | null
}

/** A RoleBinding or ClusterRoleBinding as stored. */
export interface BindingObject extends ApiObject {
  subjects?: readonly Subject[] | null
  roleRef: RoleRef
}
