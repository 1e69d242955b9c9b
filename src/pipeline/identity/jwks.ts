import { type CryptoKey, calculateJwkThumbprint, importJWK, type JWK } from 'jose'
import type { Clock } from '#model'
import { IdentityUnavailableError, TokenRefusedError } from './errors.ts'
import { type Fetch, isSafeUrl } from './outbound.ts'

/** Signatures by public keys alone: with shared secrets whoever verifies could also sign, and `none` proves nothing. */
export const algorithms = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
] as const
export type Algorithm = (typeof algorithms)[number]
export const isAlgorithm = (text: unknown): text is Algorithm => (algorithms as readonly unknown[]).includes(text)

export interface VerificationKey {
  readonly kid: string | undefined
  /** RFC 7638: the key itself, whatever it is called */
  readonly thumbprint: string
  readonly jwk: JWK
}

/** Keys are asked for again in the background after this, ms. */
const refreshAfterMs = 5 * 60_000
/** Older keys verify nothing, ms. */
const maxAgeMs = 10 * 60_000
/** Between two questions that unknown key names cause, ms. */
const coolDownMs = 30_000
const pauseAfterFailureMs = 2000
const maxKeys = 100

/** The keys of one issuer as it publishes them now. */
export class KeySet {
  readonly #source: { readonly issuer: string; readonly jwksUri?: string }
  readonly #fetch: Fetch
  readonly #clock: Clock
  readonly #imported = new Map<string, Promise<CryptoKey>>()
  #keys: readonly VerificationKey[] = []
  #thumbprints: ReadonlySet<string> = new Set()
  #fetchedAt = Number.NEGATIVE_INFINITY
  #failure: { readonly at: number; readonly error: unknown } | undefined
  #running: Promise<void> | undefined

  constructor(source: { readonly issuer: string; readonly jwksUri?: string }, fetch: Fetch, clock: Clock) {
    this.#source = source
    this.#fetch = fetch
    this.#clock = clock
  }

  /**
   * The one key of this name for this algorithm. A name that is not known leads to one question to the issuer per cool-down.
   * @throws TokenRefusedError without such a key; IdentityUnavailableError where the issuer does not tell its keys
   */
  async find(kid: string | undefined, algorithm: Algorithm): Promise<{ thumbprint: string; key: CryptoKey }> {
    await this.#fresh()
    let found = this.#lookUp(kid, algorithm)
    if (!found && this.#age() >= coolDownMs) {
      await this.#refresh()
      found = this.#lookUp(kid, algorithm)
    }
    if (!found) throw new TokenRefusedError('no key of the issuer has this name and serves this algorithm')
    return { thumbprint: found.thumbprint, key: await this.#import(found, algorithm) }
  }

  /** Whether the issuer still publishes this key. @throws IdentityUnavailableError where it does not tell */
  async holds(thumbprint: string): Promise<boolean> {
    await this.#fresh()
    return this.#thumbprints.has(thumbprint)
  }

  #lookUp(kid: string | undefined, algorithm: Algorithm): VerificationKey | undefined {
    // Without a name only a key that stands alone can be meant.
    const named =
      kid === undefined ? (this.#keys.length === 1 ? this.#keys : []) : this.#keys.filter((key) => key.kid === kid)
    const serving = named.filter(({ jwk }) => serves(jwk, algorithm))
    return serving.length === 1 ? serving[0] : undefined
  }

  #import({ thumbprint, jwk }: VerificationKey, algorithm: Algorithm): Promise<CryptoKey> {
    const name = `${algorithm} ${thumbprint}`
    // Public keys only: `importJWK` gives bytes for shared secrets alone.
    const key = this.#imported.get(name) ?? (importJWK(jwk, algorithm) as Promise<CryptoKey>)
    this.#imported.set(name, key)
    return key
  }

  // A clock that was set back makes keys old.
  #age(): number {
    const age = this.#clock.now() - this.#fetchedAt
    return age < 0 ? Number.POSITIVE_INFINITY : age
  }

  async #fresh(): Promise<void> {
    const age = this.#age()
    if (age >= maxAgeMs) return await this.#refresh()
    if (age < refreshAfterMs) return
    // In the background: a failure is kept in #failure, and told once the keys are too old.
    this.#refresh().catch(() => undefined)
  }

  async #refresh(): Promise<void> {
    const failure = this.#failure
    if (failure && Math.abs(this.#clock.now() - failure.at) < pauseAfterFailureMs) throw unavailable(failure.error)
    this.#running ??= this.#load().finally(() => {
      this.#running = undefined
    })
    try {
      await this.#running
    } catch (error) {
      throw unavailable(error)
    }
  }

  async #load(): Promise<void> {
    try {
      const keys = await readKeys(await this.#json(await this.#address()))
      this.#keys = keys
      this.#thumbprints = new Set(keys.map(({ thumbprint }) => thumbprint))
      for (const name of this.#imported.keys())
        if (!this.#thumbprints.has(name.split(' ')[1] ?? '')) this.#imported.delete(name)
      this.#fetchedAt = this.#clock.now()
      this.#failure = undefined
    } catch (error) {
      this.#failure = { at: this.#clock.now(), error }
      throw error
    }
  }

  async #address(): Promise<string> {
    const { issuer, jwksUri } = this.#source
    if (jwksUri !== undefined) return jwksUri
    const document = await this.#json(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)
    if (document.issuer !== issuer) throw new Error('the discovery document is that of another issuer')
    if (typeof document.jwks_uri !== 'string' || !isSafeUrl(document.jwks_uri))
      throw new Error('the discovery document names no safe address of keys')
    return document.jwks_uri
  }

  async #json(url: string): Promise<Readonly<Record<string, unknown>>> {
    const answer = await this.#fetch(url, { headers: { accept: 'application/json' } })
    if (answer.status !== 200) throw new Error(`${url} answered ${answer.status}`)
    const value: unknown = await answer.json()
    if (typeof value !== 'object' || value === null) throw new Error(`${url} answered no object`)
    return value as Readonly<Record<string, unknown>> // an object, by the line above
  }
}

const unavailable = (error: unknown): IdentityUnavailableError =>
  new IdentityUnavailableError('the issuer of the token does not tell its keys now: try again shortly', {
    cause: error,
  })

async function readKeys(document: Readonly<Record<string, unknown>>): Promise<readonly VerificationKey[]> {
  if (!Array.isArray(document.keys)) throw new Error('the answer holds no list of keys')
  if (document.keys.length > maxKeys) throw new Error(`the issuer publishes more than ${maxKeys} keys`)
  const keys: VerificationKey[] = []
  for (const jwk of document.keys as readonly unknown[]) {
    if (!isPublicSigningKey(jwk)) continue
    keys.push({ kid: jwk.kid, thumbprint: await calculateJwkThumbprint(jwk), jwk })
  }
  return keys
}

function isPublicSigningKey(value: unknown): value is JWK {
  if (typeof value !== 'object' || value === null) return false
  const { kty, crv, n, x, y, kid, use, key_ops: operations } = value as JWK // every field is looked at below
  if (kid !== undefined && typeof kid !== 'string') return false
  if (use !== undefined && use !== 'sig') return false
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes('verify'))) return false
  // 2048 bits: 342 characters of base64url without leading zeros.
  if (kty === 'RSA') return typeof n === 'string' && n.length >= 342 && typeof (value as JWK).e === 'string'
  if (kty === 'EC') return typeof x === 'string' && typeof y === 'string' && typeof crv === 'string'
  return kty === 'OKP' && crv === 'Ed25519' && typeof x === 'string'
}

const curves: Readonly<Record<string, string>> = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' }

function serves({ kty, crv, alg }: JWK, algorithm: Algorithm): boolean {
  const sameKind = algorithm === 'EdDSA' || algorithm === 'Ed25519' ? ['EdDSA', 'Ed25519'] : [algorithm]
  if (alg !== undefined && !sameKind.includes(alg)) return false
  if (kty === 'RSA') return /^[RP]S/.test(algorithm)
  return kty === 'EC' ? curves[algorithm] === crv : sameKind.includes('EdDSA')
}
