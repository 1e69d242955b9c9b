import { createSecretKey, type KeyObject } from 'node:crypto'
import { compactVerify, errors } from 'jose'
import type { Clock } from '#model'

/** Who asks, as a token of Cluster Monitor says it. */
export interface Caller {
  /** '' where the token names nobody: such a caller sees nothing */
  readonly userId: string
  readonly isAdmin: boolean
  /** ms since the Unix epoch; Infinity where it never ends */
  readonly expiresAt: number
}

/** Which tokens are taken. */
export interface TokenRules {
  /** shared with who signs; undefined: no token is valid */
  readonly secret: string | undefined
  /** texts that may stand in front of a token and are taken off; default none */
  readonly prefixes?: readonly string[]
  /** if given, what a token must say of itself */
  readonly issuer?: string
  readonly audience?: string
}

type Claims = Readonly<Record<string, unknown>>

/** Of one request: how it comes by its token, and by a ticket. */
export interface Presented {
  readonly token?: string
  readonly ticket?: string
}

/** Base64url without padding, which the library would take. */
const COMPACT = /^[\w-]+\.[\w-]+\.[\w-]+$/

const SCHEME = 'Bearer '

/**
 * The header where it is a bearer's, else the address: a bad token in the header is not rescued by a good one beside it.
 * @param authorization the header of that name
 */
export function presentedBy(authorization: string | undefined, query: URLSearchParams): Presented {
  if (authorization?.startsWith(SCHEME)) return { token: authorization.slice(SCHEME.length) }
  const [token, ticket] = [query.get('token'), query.get('ticket')]
  return token !== null ? { token } : ticket !== null ? { ticket } : {}
}

const ACCEPTED_TYPES: ReadonlySet<unknown> = new Set([undefined, null, '', 'api_token'])
const TEXTS = ['username', 'display_name', 'user_id', 'type', 'token_id', 'service_account_id', 'sub'] as const
// The largest time that a Date can hold, s.
const MAX_TIME = 8.64e12

/** Reads tokens: HS256 with the shared secret and nothing else. */
export class TokenReader {
  readonly #rules: TokenRules
  readonly #key: KeyObject | undefined
  readonly #clock: Clock

  constructor(rules: TokenRules, clock: Clock) {
    this.#rules = rules
    this.#key = rules.secret ? createSecretKey(rules.secret, 'utf8') : undefined
    this.#clock = clock
  }

  /** @returns undefined where the token is not valid */
  async read(token: string): Promise<Caller | undefined> {
    const stripped = this.#stripped(token)
    if (!this.#key || !COMPACT.test(stripped)) return undefined
    try {
      const { payload } = await compactVerify(stripped, this.#key, { algorithms: ['HS256'] })
      const claims: unknown = JSON.parse(Buffer.from(payload).toString('utf8'))
      if (typeof claims !== 'object' || claims === null || Array.isArray(claims)) return undefined
      return this.#isMeant(claims as Claims) ? callerOf(claims as Claims) : undefined
    } catch (error) {
      if (error instanceof errors.JOSEError || error instanceof TypeError || error instanceof SyntaxError)
        return undefined
      throw error
    }
  }

  /** For now, and for us. The library would refuse `null` as a time, which readers of the original take for none. */
  #isMeant({ exp, nbf, iss, aud }: Claims): boolean {
    const { issuer, audience } = this.#rules
    const now = this.#clock.now() / 1000
    if (exp != null && !(typeof exp === 'number' && now < exp)) return false
    if (nbf != null && !(typeof nbf === 'number' && now >= nbf)) return false
    return (issuer === undefined || iss === issuer) && (audience === undefined || [aud].flat().includes(audience))
  }

  #stripped(token: string): string {
    const prefix = this.#rules.prefixes?.find((text) => text !== '' && token.startsWith(text))
    return prefix === undefined ? token : token.slice(prefix.length)
  }
}

/** Claims of another JSON type than declared make a token invalid; null counts as absent. */
function callerOf(claims: Claims): Caller | undefined {
  const is = (name: string, type: string) => claims[name] == null || typeof claims[name] === type
  if (!TEXTS.every((name) => is(name, 'string')) || !is('is_admin', 'boolean') || !is('iat', 'number')) return undefined
  if (!ACCEPTED_TYPES.has(claims.type) || !areScopes(claims.scopes)) return undefined
  const { user_id: userId, is_admin: isAdmin, exp } = claims
  if (typeof exp === 'number' && !(Math.abs(exp) < MAX_TIME)) return undefined
  return {
    userId: typeof userId === 'string' ? userId : '',
    isAdmin: isAdmin === true,
    expiresAt: typeof exp === 'number' ? exp * 1000 : Number.POSITIVE_INFINITY,
  }
}

function areScopes(scopes: unknown): boolean {
  if (scopes == null) return true
  if (typeof scopes !== 'object' || Array.isArray(scopes)) return false
  return Object.values(scopes).every(
    (list) => list === null || (Array.isArray(list) && list.every((item) => typeof item === 'string')),
  )
}

const SECRET_PARAMETERS: ReadonlySet<string> = new Set(['token', 'ticket'])

/** An address as it may be logged: however the name of a parameter is written, a secret is none of its text. */
export function redactedUrl(url: string): string {
  const at = url.indexOf('?')
  if (at < 0) return url
  const parameters = url.slice(at + 1).split('&')
  return `${url.slice(0, at)}?${parameters.map(redactedParameter).join('&')}`
}

function redactedParameter(text: string): string {
  const [[name = ''] = []] = new URLSearchParams(text)
  return SECRET_PARAMETERS.has(name.trim().toLowerCase()) ? `${text.split('=', 1)[0]}=[secret]` : text
}
