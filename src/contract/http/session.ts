import { Type } from 'typebox'
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

export const authPermissions = {
  method: 'GET',
  url: '/api/v1/auth/permissions',
  access: 'filtered',
  schema: {
    operationId: 'authPermissions',
    summary: 'What the user may see',
    response: Type.Object({
      user: User,
      summary: Type.Object({ total_clusters: Type.Integer(), accessible_clusters: Type.Integer() }),
      clusters: Type.Record(
        Type.String(),
        Type.Object({ permissions: Type.Array(Type.String()), access_level: Type.String() }),
      ),
      accessible_cluster_names: Type.Array(Type.String()),
      evaluated_at: Type.String(),
    }),
  },
} as const satisfies RouteContract

export const authLogout = {
  method: 'POST',
  url: '/api/v1/auth/logout',
  access: 'authenticated',
  schema: {
    operationId: 'authLogout',
    summary: 'Says where the sign-out page of the proxy is; the server itself keeps no sign-in',
    response: Type.Object({ message: Type.String(), redirect: Type.Optional(Type.String()) }),
  },
} as const satisfies RouteContract
