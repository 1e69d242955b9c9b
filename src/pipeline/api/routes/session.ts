import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type AccessView, type Decider, type Principal, type StoredPolicy, standardTypes } from '#access'
import {
  authCacheClear,
  authCallback,
  authLogin,
  authLogout,
  authMe,
  authPassword,
  authPermissions,
  authPolicies,
  authStatus,
  getSession,
} from '#http'
import { type Identity, type SignInAnswer, SignInFailedError } from '#identity'
import type { ClusterState } from '#model'
import { acceptJson, bodyOf } from '../body.ts'
import { RefusedError, refusalOf } from '../problem.ts'
import { type Answer, accessViewOf, type Parts, principalOf, route, visibleClusters } from '../route.ts'
import { explainToPerson } from '../sign-in-page.ts'

export interface SessionFacts {
  readonly version: string
  readonly identity: Identity
  /** why nothing proves that the answers are whole; absent: they are */
  readonly provisional?: string | undefined
}

const maxBodyBytes = 16 * 1024

/** Who am I, what may I see, how do I come in and go out. */
export function sessionRoutes(
  app: FastifyInstance,
  parts: Parts,
  { version, identity, provisional }: SessionFacts,
): void {
  const { access } = parts

  route(app, parts, getSession, ({ request: { principal, actor, session } }) => ({
    fresh: {
      authenticated: principal !== null,
      user: principal && {
        ...user(principal),
        method: principal.method,
        administrator: access.isAdministrator(principal),
      },
      actor: actor?.username ?? null,
      sessionEndsAt: session?.expiresAt ?? null,
      signIn: identity.methods().map(({ method, title }) => ({ method, title })),
      provisional: provisional ?? null,
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
    const accessView = accessViewOf(request)
    const types = [...new Set([...standardTypes, ...accessView.namedTypes])]
    const clusters = visibleClusters(parts, accessView).map(({ state }) => {
      const { permissions, level, decidedBy, filters } = accessView.permissions(state)
      const visibility = Object.fromEntries([
        ...types.map((type) => [type, filters[type]?.visibility ?? 'all'] as const),
        ...typeVisibility(parts, accessView, state, types),
      ])
      const decided_by = decidedBy && deciderView(decidedBy)
      return [state.name, { permissions: permissions.toSorted(), access_level: level, visibility, filters, decided_by }]
    })
    const names = clusters.map(([name]) => name)
    return {
      fresh: {
        user: user(principalOf(request)),
        summary: { total_clusters: names.length, accessible_clusters: names.length },
        clusters: Object.fromEntries(clusters),
        accessible_cluster_names: names,
        evaluated_at: wholeSeconds(now),
      },
    }
  })

  route(app, parts, authPolicies, async ({ request, now }) => {
    const principal = principalOf(request)
    const own = await access.policiesOf(principal)
    return {
      fresh: {
        user: { username: principal.username, groups: principal.groups },
        total_policies: own.length,
        policies: own.map(({ source, policy, state, message }) => ({
          source,
          policy: aboutOnly(principal, policy),
          priority: policy.document.priority,
          state,
          message,
        })),
        evaluation_order: own.map(({ policy }) => policy.document.policy_name),
        retrieved_at: wholeSeconds(now),
      },
    }
  })

  route(app, parts, authCacheClear, ({ request }) => {
    const principal = principalOf(request)
    return {
      fresh: {
        message: 'Cache cleared successfully',
        rbac_entries_cleared: identity.forget(principal),
        user: principal.username,
      },
    }
  })

  /** A person is on the way between us and the provider: what goes wrong is told to them. */
  async function onTheWay(request: FastifyRequest, reply: FastifyReply, go: () => Promise<SignInAnswer>) {
    try {
      return signedIn(reply, await go())
    } catch (error) {
      if (!explainToPerson(error, request, reply)) throw error
      request.refusal = refusalOf(error)
      return 'sent' as const
    }
  }

  route(app, parts, authLogin, ({ request, reply, query }) =>
    onTheWay(request, reply, async () => {
      if (!identity.methods().some(({ method }) => method === 'oidc'))
        throw new RefusedError('sign_in_off', 'signing in by an identity provider is not configured here')
      return await identity.begin(pathOnly(query.returnTo), request.raw)
    }),
  )

  route(app, parts, authCallback, ({ request, reply }) =>
    onTheWay(request, reply, async () => {
      request.auditNote = { kind: 'sign_in_failed', method: 'oidc' }
      const answer = await identity.callback(new URL(request.url, 'http://callback'), request.raw)
      request.auditNote = signInNote(answer, 'oidc')
      return answer
    }),
  )

  app.register(async (bodies: FastifyInstance) => {
    acceptJson(bodies, maxBodyBytes)
    route(bodies, parts, authPassword, async ({ request, reply }) => {
      const { username, password } = bodyOf(authPassword, request)
      request.auditNote = { kind: 'sign_in_failed', method: 'password', username }
      const answer = await identity.password(username, password, request.raw)
      if (answer.status >= 400) throw new SignInFailedError('user name or password is wrong')
      request.auditNote = { username, ...signInNote(answer, 'password') }
      return signedIn(reply, { ...answer, body: answer.body ?? { message: 'Signed in' } })
    })
  })

  route(app, parts, authLogout, async ({ request, reply }) => {
    request.auditNote = { kind: 'sign_out' }
    const { cookies, redirect } = await identity.signOut(request.raw)
    setCookies(reply, cookies)
    return { fresh: { message: 'Logout successful', ...(redirect !== undefined && { redirect }) } }
  })
}

const reserved: ReadonlySet<string> = new Set([...standardTypes, 'registries'])

/** Of types with rows: every kind that is compiled in, and of what MetricSources collect what is seen or the own policies name. */
function typeVisibility(
  { types }: Parts,
  accessView: AccessView,
  cluster: ClusterState,
  named: readonly string[],
): readonly (readonly [type: string, visibility: 'all' | 'filtered' | 'none'])[] {
  const names = new Set([...types.kinds().map((kind) => types.nameOf(kind)), ...named])
  const visibilities: [string, 'all' | 'filtered' | 'none'][] = []
  for (const name of names) {
    if (reserved.has(name)) continue
    const [kind] = types.ofType(name)
    const resource = kind && types.standard(kind)
    const { result, whole } = resource ? accessView.resource(cluster, resource) : accessView.custom(cluster, name)
    if (result !== 'deny') visibilities.push([name, whole ? 'all' : 'filtered'])
    else if (resource || named.includes(name)) visibilities.push([name, 'none'])
  }
  return visibilities
}

const user = ({ username, email, groups }: Principal) => ({ username, email, groups })

const wholeSeconds = (at: number): string => new Date(at).toISOString().replace(/\.\d+Z$/, 'Z')

const deciderView = ({ policy, hash, effect, priority, rule, selectedBy }: Decider) => ({
  policy,
  hash,
  effect,
  priority,
  rule,
  selected_by: selectedBy,
})

/** Who else a policy names is nobody's business. */
function aboutOnly({ username, email, groups }: Principal, { document }: StoredPolicy) {
  const own = new Set([username, email])
  return {
    ...document,
    users: document.users.filter((name) => own.has(name)),
    groups: document.groups.filter((name) => groups.includes(name)),
    service_accounts: document.service_accounts.filter((name) => name === username),
  }
}

/** A path of this page, so that signing in sends nobody elsewhere. */
const pathOnly = (text = '/'): string => (/^\/(?![/\\])[^\s\\]*$/.test(text) ? text : '/')

const signInNote = ({ principal }: SignInAnswer, method: string) => ({
  kind: 'sign_in' as const,
  method,
  ...(principal && { username: principal.username, groups: principal.groups }),
})

function setCookies(reply: FastifyReply, cookies: readonly string[]): void {
  if (cookies.length > 0) reply.header('set-cookie', [...cookies])
}

/** Sends what #identity decided: a redirect, or an answer, with its cookies. */
export function signedIn(reply: FastifyReply, { status, location, cookies, body = {} }: SignInAnswer): Answer {
  setCookies(reply, cookies)
  if (location !== undefined) reply.header('location', location)
  return { fresh: body, status }
}
