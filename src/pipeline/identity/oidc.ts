import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import * as client from 'openid-client'
import type { Principal } from '#access'
import { type Clock, minutes } from '#model'
import type { Logger } from '#runtime'
import { type Claims, claimAt, principalOf } from './claims.ts'
import type { CookieJar } from './cookies.ts'
import { SignInFailedError, TokenRefusedError } from './errors.ts'
import { Lookups } from './lookups.ts'
import { boundedFetch, requireSafeUrl } from './outbound.ts'
import { rarely } from './rarely.ts'
import { localPath } from './return-to.ts'
import { clockSkewMs, type Seal } from './sealed.ts'
import type { OidcConfig, RevocationStore, SignInAnswer } from './types.ts'

/** Where the provider sends people back to, below the public address. */
const callbackPath = '/api/v1/auth/callback'
/** The token that names the session to the provider is needed there alone. */
const signOutPath = '/api/v1/auth/logout'
/** From the redirect to the provider until the person is back. */
const attemptMs = minutes(10)
const maxAttempts = 4
const attemptCookie = 'sign-in-'
const idTokenCookie = 'id-token'

interface Attempt {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
  readonly returnTo: string
  readonly endsAt: number
}

export interface SignedIn {
  readonly principal: Principal
  readonly returnTo: string
  /** cookies of the attempt that are done, and of what sign-out needs */
  readonly cookies: readonly string[]
}

/** Authorization code with PKCE at one provider. What waits for the person to come back waits sealed in their browser. */
export interface OidcWay extends Disposable {
  readonly title: string
  begin(returnTo: string, request: IncomingMessage): Promise<SignInAnswer>
  /** @throws SignInFailedError with the cookies to clear */
  finish(url: URL, request: IncomingMessage): Promise<SignedIn>
  /** Where the provider ends its own session; undefined: it offers no such place. */
  signOut(request: IncomingMessage): Promise<{ readonly redirect?: string; readonly cookies: readonly string[] }>
}

interface Parts {
  readonly seal: Seal
  readonly jar: CookieJar
  readonly revocations: RevocationStore
  readonly clock: Clock
  readonly logger: Logger
  readonly sessionMs: number
}

export function oidcWay(config: OidcConfig, parts: Parts): OidcWay {
  requireSafeUrl('OIDC_ISSUER', config.issuer)
  const { seal, jar, revocations, clock, logger } = parts
  const base = config.publicUrl.replace(/\/+$/, '')
  const mayWarn = rarely(clock, minutes(1))
  const provider = new Lookups<client.Configuration>({
    clock,
    ttlMs: () => minutes(10),
    staleMs: minutes(50),
    timeoutMs: 10_000,
    onFailure: (error) => {
      if (mayWarn())
        logger.warn({ reason: reasonOf(error), issuer: config.issuer }, 'the identity provider does not answer')
    },
  })
  const discover = (): Promise<client.Configuration> => discovered(config)
  const cookieOf = (state: string): string =>
    attemptCookie + createHash('sha256').update(state).digest('hex').slice(0, 16)

  const attemptOf = (state: string, request: IncomingMessage): Attempt | undefined => {
    const text = jar.read(request, cookieOf(state))
    // What opens was written by `begin`.
    const attempt = text === undefined ? undefined : (seal.open('sign-in', text) as Attempt | undefined)
    const left = attempt ? attempt.endsAt - clock.now() : 0
    return attempt?.state === state && left > 0 && left <= attemptMs + clockSkewMs ? attempt : undefined
  }

  const exchange = async (url: URL, attempt: Attempt): Promise<{ principal: Principal; idToken: string }> => {
    // Asked for anew, as keys may have changed since: people sign in rarely enough.
    const issuer = await discover().catch(async () => (await provider.get('', discover)).value)
    // The address as the provider knows it, whatever a proxy made of it.
    const current = new URL(base + callbackPath + url.search)
    const tokens = await client.authorizationCodeGrant(issuer, current, {
      pkceCodeVerifier: attempt.verifier,
      expectedState: attempt.state,
      expectedNonce: attempt.nonce,
      idTokenExpected: true,
    })
    const claims = tokens.claims()
    if (!claims || !tokens.id_token) throw new TokenRefusedError('the provider sent no ID token')
    const all = await withUserInfo(issuer, claims, tokens.access_token, config)
    return { principal: principalOf(all, config, 'oidc'), idToken: tokens.id_token }
  }

  return {
    title: new URL(config.issuer).host,

    async begin(returnTo, request) {
      const { value: issuer } = await provider.get('', discover)
      const attempt: Attempt = {
        state: client.randomState(),
        nonce: client.randomNonce(),
        verifier: client.randomPKCECodeVerifier(),
        returnTo: localPath(returnTo),
        endsAt: clock.now() + attemptMs,
      }
      const location = client.buildAuthorizationUrl(issuer, {
        redirect_uri: base + callbackPath,
        scope: scopesFor(config, issuer.serverMetadata().scopes_supported).join(' '),
        state: attempt.state,
        nonce: attempt.nonce,
        code_challenge: await client.calculatePKCECodeChallenge(attempt.verifier),
        code_challenge_method: 'S256',
      })
      // Attempts that somebody else's page begins in this browser must not fill its cookies.
      const earlier = jar.names(request, attemptCookie)
      const cleared = earlier.length >= maxAttempts ? earlier.flatMap((name) => jar.clear(request, name)) : []
      const sealed = seal.seal('sign-in', attempt)
      const kept = jar.write(request, cookieOf(attempt.state), sealed, { maxAgeMs: attemptMs, single: true })
      if (!kept) throw new SignInFailedError('the address to come back to is too long: sign in from the start page')
      return { status: 302, location: location.href, cookies: [...cleared, ...kept] }
    },

    async finish(url, request) {
      const states = url.searchParams.getAll('state')
      const [state = ''] = states
      const attempt = states.length === 1 ? attemptOf(state, request) : undefined
      if (!attempt)
        throw new SignInFailedError(
          'this sign-in was not begun in this browser, or is older than 10 minutes: begin again',
        )
      const cleared = jar.clear(request, cookieOf(state))
      const mark = `sign-in:${createHash('sha256').update(state).digest('base64url')}`
      if (await revocations.isRevoked(mark))
        throw new SignInFailedError('this sign-in is done already: begin again', { cookies: cleared })
      await revocations.revoke(mark, attempt.endsAt)
      try {
        const { principal, idToken } = await exchange(url, attempt)
        const options = { maxAgeMs: parts.sessionMs, path: signOutPath, single: true }
        // Too large for a cookie: the provider then asks the person whether to sign out.
        const hint = jar.write(request, idTokenCookie, seal.seal('id-token', { idToken }), options) ?? []
        return { principal, returnTo: attempt.returnTo, cookies: [...cleared, ...hint] }
      } catch (error) {
        logger.warn({ reason: reasonOf(error), issuer: config.issuer }, 'a sign-in at the identity provider failed')
        throw new SignInFailedError(sentenceFor(error), { cookies: cleared, cause: error })
      }
    },

    async signOut(request) {
      const cookies = jar.clear(request, idTokenCookie, { path: signOutPath })
      const text = jar.read(request, idTokenCookie, signOutPath)
      const kept = text === undefined ? undefined : (seal.open('id-token', text) as { idToken: string } | undefined)
      try {
        const { value: issuer } = await provider.get('', discover)
        if (!issuer.serverMetadata().end_session_endpoint) return { cookies }
        const redirect = client.buildEndSessionUrl(issuer, {
          post_logout_redirect_uri: `${base}/`,
          ...(kept && { id_token_hint: kept.idToken }),
        })
        return { redirect: redirect.href, cookies }
      } catch (error) {
        logger.warn(
          { reason: reasonOf(error) },
          'signed out here, but the identity provider does not say where to sign out',
        )
        return { cookies }
      }
    },

    [Symbol.dispose]: () => provider.close(),
  }
}

async function discovered(config: OidcConfig): Promise<client.Configuration> {
  const { issuer, clientId, clientSecret, ca, outboundAllow: allow = [] } = config
  const fetch = boundedFetch({ allow, ...(ca !== undefined && { ca }) })
  const found = await client.discovery(new URL(issuer), clientId, undefined, authentication(clientSecret), {
    timeout: 5,
    execute: [client.enableNonRepudiationChecks, ...(issuer.startsWith('http:') ? [client.allowInsecureRequests] : [])],
    [client.customFetch]: (url, { method, headers, body, signal }) => fetch(url, { method, headers, body, signal }),
  })
  found[client.customFetch] = (url, { method, headers, body, signal }) => fetch(url, { method, headers, body, signal })
  return found
}

/** As the provider wants it: in the header unless it says it takes only the form (OpenID Connect Discovery, section 3). */
function authentication(secret: string | undefined): client.ClientAuth {
  if (secret === undefined) return client.None()
  const basic = client.ClientSecretBasic(secret)
  const post = client.ClientSecretPost(secret)
  return (server, ...rest) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
    return (methods.includes('client_secret_basic') ? basic : post)(server, ...rest)
  }
}

const usualScopes = ['openid', 'profile', 'email', 'groups']

/** The usual ones as far as the provider offers them, as some refuse what they do not know; others as configured. */
function scopesFor({ scopes = [] }: OidcConfig, supported: readonly string[] | undefined): readonly string[] {
  const usual = scopes.length === 0 || scopes.join(' ') === usualScopes.join(' ')
  if (!usual) return scopes.includes('openid') ? scopes : ['openid', ...scopes]
  return usualScopes.filter((scope) => scope === 'openid' || !supported || supported.includes(scope))
}

/** Some providers tell names and groups at their user info endpoint alone. What the signed token says goes first. */
async function withUserInfo(
  issuer: client.Configuration,
  claims: client.IDToken,
  accessToken: string,
  { username, groups = 'groups' }: OidcConfig,
): Promise<Claims> {
  const complete = [username ?? 'preferred_username', groups, 'email'].every(
    (name) => claimAt(claims, name) !== undefined,
  )
  if (complete || !issuer.serverMetadata().userinfo_endpoint) return claims
  return { ...(await client.fetchUserInfo(issuer, accessToken, claims.sub)), ...claims }
}

/** For the log: codes alone, as messages of a provider may repeat what it was sent. */
function reasonOf(error: unknown): string {
  if (error instanceof TokenRefusedError) return error.reason
  if (error instanceof client.AuthorizationResponseError || error instanceof client.ResponseBodyError)
    return error.error
  const { name, code } = error as { readonly name?: unknown; readonly code?: unknown } // for any value: both may be missing
  return [name, code].filter((part) => typeof part === 'string').join(' ') || 'unexpected'
}

function sentenceFor(error: unknown): string {
  if (error instanceof client.AuthorizationResponseError && error.error === 'access_denied')
    return 'the identity provider refused the sign-in: choose another account, or ask for access there'
  if (error instanceof TokenRefusedError) return `the identity provider named nobody we can take: ${error.reason}`
  return 'the sign-in could not be finished at the identity provider: begin again'
}
