import { type Static, Type } from 'typebox'
import { type authPolicies, FilterSummarySchema } from './access.ts'
import type { RouteContract } from './contract.ts'
import { SessionViewSchema } from './views.ts'

export const getSession = {
  method: 'GET',
  url: '/api/v1/session',
  access: 'public',
  schema: {
    operationId: 'getSession',
    summary: 'Who am I, and which version answers',
    response: SessionViewSchema,
  },
} as const satisfies RouteContract

const User = Type.Object({ username: Type.String(), email: Type.String(), groups: Type.Array(Type.String()) })

export const authStatus = {
  method: 'GET',
  url: '/api/v1/auth/status',
  access: 'public',
  schema: {
    operationId: 'authStatus',
    summary: 'Whether the request carries a user',
    response: Type.Object({ authenticated: Type.Boolean(), message: Type.String(), user: Type.Optional(User) }),
  },
} as const satisfies RouteContract

export const authMe = {
  method: 'GET',
  url: '/api/v1/auth/me',
  access: 'authenticated',
  schema: { operationId: 'authMe', summary: 'The user of the request', response: User },
} as const satisfies RouteContract

const ClusterPermissions = Type.Object({
  permissions: Type.Array(Type.String({ description: 'view, view_metrics' })),
  access_level: Type.Union([Type.Literal('none'), Type.Literal('limited'), Type.Literal('full')], {
    description: 'full: every action and nothing filtered',
  }),
  /** all, none or filtered, of every type that clusters have and of those a policy names besides */
  visibility: Type.Record(Type.String(), Type.String()),
  /** of the types that are not shown whole */
  filters: Type.Record(Type.String(), FilterSummarySchema),
  decided_by: Type.Union([
    Type.Object({
      policy: Type.String({ description: 'namespace/name' }),
      hash: Type.String(),
      effect: Type.String(),
      priority: Type.Integer(),
      rule: Type.Union([Type.Integer(), Type.Null()]),
      selected_by: Type.String(),
    }),
    Type.Null(),
  ]),
})

export const authPermissions = {
  method: 'GET',
  url: '/api/v1/auth/permissions',
  access: 'filtered',
  schema: {
    operationId: 'authPermissions',
    summary: 'What the user may see, cluster by cluster, and which policy decided',
    response: Type.Object({
      user: User,
      summary: Type.Object({ total_clusters: Type.Integer(), accessible_clusters: Type.Integer() }),
      clusters: Type.Record(Type.String(), ClusterPermissions),
      accessible_cluster_names: Type.Array(Type.String()),
      evaluated_at: Type.String(),
    }),
  },
} as const satisfies RouteContract
/** What the caller may see, cluster by cluster, and which policy decided. */
export type PermissionsView = Static<(typeof authPermissions)['schema']['response']>

export const authLogout = {
  method: 'POST',
  url: '/api/v1/auth/logout',
  access: 'authenticated',
  schema: {
    operationId: 'authLogout',
    summary: 'Ends the session everywhere, and says where the sign-out page of the provider or proxy is',
    response: Type.Object({ message: Type.String(), redirect: Type.Optional(Type.String()) }),
  },
} as const satisfies RouteContract

/** The policies about the caller; other subjects are left out. */
export type OwnPoliciesView = Static<(typeof authPolicies)['schema']['response']>
