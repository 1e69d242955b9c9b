import type { FastifyInstance } from 'fastify'
import type { Principal } from '#access'
import { authLogout, authMe, authPermissions, authStatus, getSession, v1ListRegistries } from '#http'
import { type Cors, requireSameSite } from '../gate.ts'
import { type Parts, principalOf, route, visibleClusters } from '../route.ts'

export interface SessionFacts {
  readonly version: string
  readonly cors: Cors
  readonly signOutUrl: string | undefined
}

/** Who am I, what may I see, where do I sign out. The server keeps no sign-in of its own. */
export function sessionRoutes(app: FastifyInstance, parts: Parts, { version, cors, signOutUrl }: SessionFacts): void {
  route(app, parts, getSession, ({ request: { principal } }) => ({
    fresh: {
      authenticated: principal !== null,
      user: principal && { ...user(principal), method: principal.method },
      version,
    },
  }))

  route(app, parts, authStatus, ({ request: { principal } }) => ({
    fresh: principal
      ? { authenticated: true, message: 'User is authenticated', user: user(principal) }
      : { authenticated: false, message: 'User is not authenticated' },
  }))

  route(app, parts, authMe, ({ request }) => ({ fresh: user(principalOf(request)) }))

  route(app, parts, authPermissions, ({ request, now }) => {
    const principal = principalOf(request)
    const names = visibleClusters(parts, principal).map(({ state }) => state.name)
    // Whoever sees a cluster today sees all of it; access policies will make finer levels.
    const full = { permissions: ['view', 'view_metrics'], access_level: 'full' }
    return {
      fresh: {
        user: user(principal),
        summary: { total_clusters: names.length, accessible_clusters: names.length },
        clusters: Object.fromEntries(names.map((name) => [name, full])),
        accessible_cluster_names: names,
        evaluated_at: new Date(now).toISOString().replace(/\.\d+Z$/, 'Z'),
      },
    }
  })

  route(app, parts, authLogout, ({ request }) => {
    requireSameSite(request.headers, cors)
    return { fresh: { message: 'Logout successful', ...(signOutUrl && { redirect: signOutUrl }) } }
  })

  // True as long as no registry can be registered.
  route(app, parts, v1ListRegistries, () => ({ fresh: [] }))
}

const user = ({ username, email, groups }: Principal) => ({ username, email, groups })
