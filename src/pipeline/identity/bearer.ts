import { errors, jwtVerify } from 'jose'
import { LRUCache } from 'lru-cache'
import type { Principal } from '#access'
import type { Clock } from '#model'
import { type Claims, principalOf } from './claims.ts'
import { TokenRefusedError } from './errors.ts'
import { isAlgorithm, KeySet } from './jwks.ts'
import { boundedFetch, requireSafeUrl } from './outbound.ts'
import { parseStrictObject } from './strict-json.ts'
import { tokenKey, tokenParts } from './token.ts'
import type { BearerConfig } from './types.ts'

export interface VerifiedToken {
  readonly principal: Principal
  /** ms since the epoch */
  readonly expiresAt: number
}

/** Tokens of configured issuers. */
export interface BearerWay {
  /** the token calls itself one of a configured issuer: nobody else is asked about it */
  claims(token: string): boolean
  /** @throws TokenRefusedError, IdentityUnavailableError */
  verify(token: string): Promise<VerifiedToken>
  forget(matches: (principal: Principal) => boolean): number
}

interface Issuer {
  readonly config: BearerConfig
  readonly keys: KeySet
}

interface Kept extends VerifiedToken {
  readonly issuer: Issuer
  readonly thumbprint: string
}

/** What clocks may differ by, s. */
const skewSeconds = 30
const maxVerified = 10_000
// The largest time that a Date can hold, s: larger numbers are tricks.
const maxTime = 8.64e12

export function bearerWay(configs: readonly BearerConfig[], clock: Clock): BearerWay {
  const issuers = configs.map((config): Issuer => {
    requireSafeUrl('JWT_ISSUER', config.issuer)
    if (config.jwksUri !== undefined) requireSafeUrl('JWT_JWKS_URI', config.jwksUri)
    const { ca, outboundAllow: allow = [] } = config
    return { config, keys: new KeySet(config, boundedFetch({ allow, ...(ca !== undefined && { ca }) }), clock) }
  })
  const verified = new LRUCache<string, Kept>({ max: maxVerified })

  const known = async (key: string): Promise<VerifiedToken | undefined> => {
    const kept = verified.get(key)
    if (!kept) return undefined
    if (kept.expiresAt + skewSeconds * 1000 > clock.now() && (await kept.issuer.keys.holds(kept.thumbprint)))
      return kept
    verified.delete(key)
    return undefined
  }

  return {
    claims: (token) => candidates(issuers, payloadOf(token)).length > 0,
    async verify(token) {
      const key = tokenKey(token)
      const before = await known(key)
      if (before) return before
      const fresh = await verify(token, issuers, clock)
      verified.set(key, fresh)
      return fresh
    },
    forget(matches) {
      const keys = [...verified.entries()].filter(([, { principal }]) => matches(principal)).map(([key]) => key)
      for (const key of keys) verified.delete(key)
      return keys.length
    },
  }
}

const payloadOf = (token: string): Claims | undefined => {
  const parts = tokenParts(token)
  return parts && parseStrictObject(parts.payload)
}

// The same issuer may be configured for several audiences.
const candidates = (issuers: readonly Issuer[], payload: Claims | undefined): readonly Issuer[] =>
  issuers.filter(({ config }) => config.issuer === payload?.iss)

async function verify(token: string, issuers: readonly Issuer[], clock: Clock): Promise<Kept> {
  const parts = tokenParts(token)
  const header = parts && parseStrictObject(parts.header)
  const payload = parts && parseStrictObject(parts.payload)
  if (!header || !payload) throw new TokenRefusedError('no signed token of three parts, each key once')
  const mine = candidates(issuers, payload)
  const issuer = mine.find(({ config }) => [payload.aud].flat().includes(config.audience))
  if (!issuer) throw new TokenRefusedError(mine.length > 0 ? 'meant for another audience' : 'of an unknown issuer')

  const { alg, kid, typ } = header
  if (!isAlgorithm(alg)) throw new TokenRefusedError('the algorithm is not allowed')
  // No extension is understood here, so none that must be understood is accepted.
  if ('crit' in header || 'b64' in header) throw new TokenRefusedError('the header names extensions')
  if (typ !== undefined && !(typeof typ === 'string' && /^(application\/)?(at\+)?jwt$/i.test(typ)))
    throw new TokenRefusedError('a signed thing of another type')
  if (kid !== undefined && typeof kid !== 'string') throw new TokenRefusedError('the name of the key is no text')
  checkTimes(payload, clock)

  // The key comes from the issuer's list and nowhere else; jwk, jku, x5u and x5c of the header are not looked at.
  const { key, thumbprint } = await issuer.keys.find(kid, alg)
  try {
    await jwtVerify(token, key, {
      algorithms: [alg],
      issuer: issuer.config.issuer,
      audience: issuer.config.audience,
      clockTolerance: skewSeconds,
      currentDate: new Date(clock.now()),
      requiredClaims: ['iss', 'aud', 'sub', 'exp'],
    })
  } catch (error) {
    if (error instanceof errors.JOSEError) throw new TokenRefusedError(`not verified: ${error.code}`, { cause: error })
    throw error
  }
  const principal = principalOf(payload, issuer.config, 'bearer-jwt')
  return { principal, expiresAt: Number(payload.exp) * 1000, issuer, thumbprint }
}

/** Numbers that JSON can write and time cannot hold; what lies ahead is compared by jose, except `iat`. */
function checkTimes(payload: Claims, clock: Clock): void {
  for (const name of ['exp', 'nbf', 'iat'])
    if (name in payload) {
      const value = payload[name]
      if (typeof value !== 'number' || !(Math.abs(value) < maxTime)) throw new TokenRefusedError(`${name} is no time`)
    }
  if (Number(payload.iat ?? 0) > clock.now() / 1000 + skewSeconds) throw new TokenRefusedError('issued in the future')
}
