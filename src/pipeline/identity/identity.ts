import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import type { Principal, SignInMethod } from '#access'
import { FleetError, minutes, seconds } from '#model'
import { cookieJar } from './cookies.ts'
import { defaultPrincipalOf } from './default-principal.ts'
import {
  SignInFailedError,
  SignInOffError,
  SignInThrottledError,
  TokenRefusedError,
  UnsafeConfigurationError,
} from './errors.ts'
import { oidcWay } from './oidc.ts'
import { openshiftGroups } from './openshift.ts'
import { passwordWay } from './password.ts'
import { plainAddress } from './peers.ts'
import { trustedProxy } from './proxy.ts'
import { rarely } from './rarely.ts'
import { guarded, localRevocations } from './revocations.ts'
import { sealer } from './sealed.ts'
import { sessions as openSessions, type Session } from './sessions.ts'
import { hubOf, tokenWay } from './tokens.ts'
import type { Identified, Identity, IdentityOptions, SignInAnswer } from './types.ts'
import { viewAs } from './view-as.ts'

const defaultGroupTtlMs = seconds(60)

/**
 * Checks the configuration as a whole and opens every way in it. Providers are asked when somebody comes, not here.
 * @throws UnsafeConfigurationError for what would let in somebody it should not
 */
export async function openIdentity(options: IdentityOptions): Promise<Identity> {
  const { config, clock, logger, metrics } = options
  const defaultPrincipal = defaultPrincipalOf(config)
  const revocations = guarded(options.revocations ?? localRevocations(clock))
  const counted = metrics.counter(
    'clusterpulse_identifications_total',
    'requests by what said who asks, and its result',
    ['method', 'result'],
  )
  const signIns = metrics.counter('clusterpulse_sign_ins_total', 'sign-ins of people, by method and result', [
    'method',
    'result',
  ])
  const publicUrl = config.publicUrl ?? config.oidc?.publicUrl
  if (publicUrl !== undefined && !/^https?:\/\//i.test(publicUrl))
    throw new UnsafeConfigurationError('PUBLIC_URL must begin with https:// or http://')
  const seal = sealer(config.session?.secret)
  const jar = cookieJar(publicUrl)
  const sessions = openSessions({ seal, jar, revocations, clock }, config.session ?? {})
  const views = viewAs(seal, jar, clock)

  const proxy = config.proxy && trustedProxy(config.proxy, clock)
  const mayWarn = rarely(clock, minutes(1))
  const tokens = tokenWay(options, revocations)
  const groups =
    config.openshiftGroups &&
    openshiftGroups(
      hubOf(options),
      {
        ttlMs: config.openshiftGroups.cacheTtlMs ?? defaultGroupTtlMs,
        asOriginal: config.openshiftGroups.asOriginal ?? false,
      },
      { clock, logger, metrics },
    )
  const sessionMs = config.session?.lifetimeMs ?? minutes(12 * 60)
  const oidc = config.oidc && oidcWay(config.oidc, { seal, jar, revocations, clock, logger, sessionMs })
  const password = config.password && passwordWay(config.password, clock)
  const oidcBasis = createHash('sha256')
    .update(JSON.stringify([config.oidc?.issuer, config.oidc?.clientId]))
    .digest('hex')
  /** What sessions of each method must stand on to count. */
  const bases: Partial<Record<SignInMethod, string>> = {
    ...(oidc && { oidc: oidcBasis.slice(0, 16) }),
    ...(password && { password: password.basis }),
  }

  /** Under what name those came whom OpenShift calls by another. */
  const origins = new WeakMap<Principal, Principal>()
  const resolved = async (principal: Principal): Promise<Principal> => {
    // Kubernetes has resolved whom it reviewed; a local administrator is no User of OpenShift.
    if (!groups || principal.method === 'token-review' || principal.method === 'password') return principal
    const found = await groups.resolve(principal)
    origins.set(found, principal)
    return found
  }

  const sessionOf = async (request: IncomingMessage): Promise<Session | null> => {
    const session = await sessions.read(request)
    return session && session.basis === bases[session.principal.method] ? session : null
  }

  const fromSession = async (session: Session): Promise<Identified> => ({
    principal: await resolved(session.principal),
    session: { id: session.id, expiresAt: session.idleEndsAt },
    byCookie: true,
    ...(session.renewal && { renewal: session.renewal }),
  })

  /** Who really asks, whoever they look as. */
  const whoAsks = async (request: IncomingMessage): Promise<Identified | null> => {
    const token = await tokens?.identify(request)
    if (token) return { ...token, principal: await resolved(token.principal) }
    const fromProxy = proxy?.read(request) ?? 'no-proxy'
    if (typeof fromProxy === 'object' && 'refused' in fromProxy) {
      counted.inc({ method: 'trusted-proxy', result: 'refused' })
      if (mayWarn()) logger.warn({ reason: fromProxy.refused }, 'the headers of the proxy name nobody')
      return null
    }
    if (typeof fromProxy === 'object') return { principal: await resolved(fromProxy), byCookie: true }
    const session = await sessionOf(request)
    if (session) return await fromSession(session)
    return defaultPrincipal ? { principal: defaultPrincipal, byCookie: true } : null
  }

  const throughTheirEyes = (found: Identified, request: IncomingMessage): Identified => {
    const view = found.byCookie ? views.read(found.principal, request) : null
    if (!view) return found
    const expiresAt = Math.min(view.endsAt, found.session?.expiresAt ?? Number.POSITIVE_INFINITY)
    return {
      ...found,
      actor: found.principal,
      principal: view.principal,
      session: { id: found.session?.id ?? view.id, expiresAt },
    }
  }

  const clientAddress = (request: IncomingMessage): string => {
    const peer = plainAddress(request.socket.remoteAddress ?? '')
    if (!proxy?.isProxy(request)) return peer
    // The last entry is what our proxy saw; those before it are what it was told.
    const forwarded = [request.headers['x-forwarded-for'] ?? ''].flat().join(',').split(',').at(-1)?.trim() ?? ''
    return isIP(forwarded) === 0 ? peer : plainAddress(forwarded)
  }

  const started = (principal: Principal, request: IncomingMessage): readonly string[] => {
    const cookies = sessions.start(principal, bases[principal.method] ?? '', request)
    logger.info({ username: principal.username, method: principal.method }, 'somebody signed in')
    return [...cookies, ...views.clear(request)]
  }

  /** Counts how a person's sign-in ended. */
  const signingIn = async (method: 'oidc' | 'password', work: () => Promise<SignInAnswer>): Promise<SignInAnswer> => {
    try {
      const answer = await work()
      signIns.inc({ method, result: 'ok' })
      return answer
    } catch (error) {
      signIns.inc({ method, result: resultOf(error) })
      throw error
    }
  }

  return {
    async identify(request) {
      try {
        const found = await whoAsks(request)
        if (!found) return null
        counted.inc({ method: found.principal.method, result: 'ok' })
        return throughTheirEyes(found, request)
      } catch (error) {
        counted.inc({ method: error instanceof TokenRefusedError ? 'bearer' : 'unknown', result: resultOf(error) })
        throw error
      }
    },

    methods: () => [
      ...(oidc ? [{ method: 'oidc' as const, title: oidc.title }] : []),
      ...(password ? [{ method: 'password' as const, title: 'Administrator' }] : []),
    ],

    async begin(returnTo, request) {
      if (!oidc) throw new SignInOffError('an identity provider')
      return await oidc.begin(returnTo, request)
    },

    async callback(url, request) {
      if (!oidc) throw new SignInOffError('an identity provider')
      return await signingIn('oidc', async () => {
        const { principal, returnTo, cookies } = await oidc.finish(url, request)
        try {
          return { status: 302, location: returnTo, cookies: [...cookies, ...started(principal, request)], principal }
        } catch (error) {
          throw error instanceof SignInFailedError ? new SignInFailedError(error.message, { cookies }) : error
        }
      })
    },

    async password(name, secret, request) {
      if (!password) throw new SignInOffError('password')
      return await signingIn('password', async () => {
        const principal = await password.signIn(name, secret, clientAddress(request))
        return { status: 200, cookies: started(principal, request), body: { message: 'signed in' }, principal }
      })
    },

    async signOut(request) {
      if (await tokens?.signOut(request)) return { status: 200, cookies: [] }
      const session = await sessionOf(request)
      if (session) await sessions.end(session)
      const fromProvider = session?.principal.method === 'oidc' ? await oidc?.signOut(request) : undefined
      const redirect = fromProvider?.redirect ?? (session ? undefined : config.proxy?.signOutUrl)
      return {
        status: 200,
        cookies: [...sessions.clear(request), ...views.clear(request), ...(fromProvider?.cookies ?? [])],
        ...(redirect !== undefined && { redirect }),
      }
    },

    forget(principal) {
      const origin = origins.get(principal) ?? principal
      return (groups?.forget(origin) ?? 0) + (tokens?.forget(origin) ?? 0)
    },

    viewAs: (actor, as, request) => ({ status: 200, cookies: views.write(actor, as, request) }),
    endViewAs: (request) => ({ status: 200, cookies: views.clear(request) }),
    onEnded: (listener) => revocations.onRevoked(listener),

    async [Symbol.asyncDispose]() {
      tokens?.[Symbol.dispose]()
      groups?.[Symbol.dispose]()
      oidc?.[Symbol.dispose]()
    },
  }
}

function resultOf(error: unknown): string {
  if (error instanceof SignInThrottledError) return 'throttled'
  if (error instanceof TokenRefusedError || error instanceof SignInFailedError) return 'refused'
  return error instanceof FleetError ? 'unavailable' : 'failed'
}
