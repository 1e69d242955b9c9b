import { createHmac, randomBytes, randomUUID, timingSafeEqual } from 'node:crypto'
import type { Clock } from '#model'
import type { TokenHolders } from './authentication.ts'
import type { ObjectKey, ObjectStore } from './objects.ts'
import { ApiError } from './status.ts'
import { AUTHENTICATED, accountGroups, accountOf, accountUser, type User } from './user.ts'
import { timestamp } from './write-rules.ts'

/** What `kubectl create token` asks. */
export interface TokenRequest {
  readonly spec?: null | {
    readonly audiences?: readonly string[]
    readonly expirationSeconds?: number
    readonly boundObjectRef?: unknown
  }
}

const accounts = { group: '', version: 'v1', plural: 'serviceaccounts' }
const secrets = { group: '', version: 'v1', plural: 'secrets' }
const KEY = { namespace: 'kube-system', name: 'service-account-signing-key' }
const ISSUER = 'https://kubernetes.default.svc.cluster.local'
const HOUR_S = 3600
const SHORTEST_S = 600
const LONGEST_S = 24 * HOUR_S

interface Claims {
  readonly iss: string
  readonly sub: string
  readonly exp: number
  readonly uid: string
  readonly jti: string
}

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const header = encode({ alg: 'HS256', typ: 'JWT' })

/**
 * Tokens of service accounts: signed, with an end, and worthless once their account is gone. What
 * they let their account do is what bindings say. The key is a Secret, so tokens outlive a restart.
 */
export class ServiceAccountTokens implements TokenHolders {
  readonly #objects: ObjectStore
  readonly #clock: Clock
  #making: Promise<Buffer> | undefined

  constructor(objects: ObjectStore, clock: Clock) {
    this.#objects = objects
    this.#clock = clock
  }

  /** @throws ApiError NotFound for an account that is not there, Invalid for a life shorter than ten minutes */
  async issue(key: ObjectKey, { spec: asked }: TokenRequest, dryRun: boolean): Promise<object> {
    const spec = asked ?? {}
    const account = this.#objects.get(accounts, key)
    if (!account)
      throw new ApiError('NotFound', `serviceaccounts "${key.name}" not found`, {
        name: key.name,
        kind: 'serviceaccounts',
      })
    if (spec.boundObjectRef)
      throw new ApiError(
        'BadRequest',
        'tokens bound to an object are not issued here: ask again without --bound-object-kind',
      )
    const seconds = spec.expirationSeconds ?? HOUR_S
    if (!Number.isSafeInteger(seconds) || seconds < SHORTEST_S)
      throw new ApiError(
        'Invalid',
        `TokenRequest.authentication.k8s.io "${key.name}" is invalid: spec.expirationSeconds: Invalid value: ${seconds}: may not specify a duration less than 10 minutes`,
        { group: 'authentication.k8s.io', kind: 'TokenRequest', name: key.name },
      )
    const audiences = spec.audiences?.length ? spec.audiences : [ISSUER]
    if (!audiences.includes(ISSUER))
      throw new ApiError('BadRequest', `tokens are issued for ${ISSUER} only: ask again without --audience`)
    const iat = Math.floor(this.#clock.now() / 1000)
    const exp = iat + Math.min(seconds, LONGEST_S)
    const sub = accountUser({ namespace: key.namespace ?? '', name: key.name })
    const claims = {
      iss: ISSUER,
      aud: audiences,
      sub,
      iat,
      nbf: iat,
      exp,
      jti: randomUUID(),
      uid: account.metadata.uid,
    }
    const body = `${header}.${encode(claims)}`
    const token = dryRun ? '' : `${body}.${sign(body, await this.#key())}`
    return {
      kind: 'TokenRequest',
      apiVersion: 'authentication.k8s.io/v1',
      metadata: { name: key.name, namespace: key.namespace },
      spec: { audiences, expirationSeconds: exp - iat },
      status: { token, expirationTimestamp: timestamp(exp * 1000) },
    }
  }

  /** Whose token it is; undefined where it is none of ours, has ended, or its account is gone. */
  holder(token: string): User | undefined {
    const [head, body, signature, ...more] = token.split('.')
    const secret = head === header && more.length === 0 ? this.#kept() : undefined
    if (!secret || !body || !signature || !isEqual(signature, sign(`${head}.${body}`, secret))) return undefined
    const { sub, exp, uid, jti } = JSON.parse(Buffer.from(body, 'base64url').toString()) as Claims // signed by us
    const account = accountOf(sub)
    if (!account || exp * 1000 <= this.#clock.now() || this.#objects.get(accounts, account)?.metadata.uid !== uid)
      return undefined
    const extra = { 'authentication.kubernetes.io/credential-id': [`JTI=${jti}`] }
    return { name: sub, uid, groups: [...accountGroups(account.namespace), AUTHENTICATED], extra }
  }

  #kept(): Buffer | undefined {
    const data = this.#objects.get(secrets, KEY)?.data as { key?: string } | undefined
    const key = Buffer.from(data?.key ?? '', 'base64')
    return key.length === 32 ? key : undefined
  }

  /** Made once, however many ask for the first token at the same time. */
  async #key(): Promise<Buffer> {
    const kept = this.#kept()
    if (kept) return kept
    this.#making ??= this.#make().finally(() => {
      this.#making = undefined
    })
    return this.#making
  }

  async #make(): Promise<Buffer> {
    const key = randomBytes(32)
    await this.#objects.put({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: KEY,
      type: 'Opaque',
      data: { key: key.toString('base64') },
    })
    return key
  }
}

const sign = (text: string, key: Buffer): string => createHmac('sha256', key).update(text).digest('base64url')

function isEqual(given: string, expected: string): boolean {
  const [left, right] = [Buffer.from(given), Buffer.from(expected)]
  return left.length === right.length && timingSafeEqual(left, right)
}
