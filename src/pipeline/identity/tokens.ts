import type { IncomingMessage } from 'node:http'
import type { Principal } from '#access'
import { minutes } from '#model'
import { bearerWay } from './bearer.ts'
import { TokenRefusedError, UnsafeConfigurationError } from './errors.ts'
import { bearerToken } from './headers.ts'
import { rarely } from './rarely.ts'
import { parseStrictObject } from './strict-json.ts'
import { maxTokenBytes, tokenId, tokenParts } from './token.ts'
import { tokenReviewer } from './token-review.ts'
import type { Identified, IdentityOptions, RevocationStore } from './types.ts'

/** A token whose end only Kubernetes knows is asked about again after this: streams that stand on it begin anew. */
const reviewedMs = minutes(10)
/** How long a sign-out of a token counts that states no end of itself. */
const unknownEndMs = minutes(7 * 24 * 60)
/** Tokens count a little beyond their end, as clocks differ; so do their sign-outs. */
const marginMs = minutes(1)

/** Bearer tokens, whoever vouches for them. */
export interface TokenWay extends Disposable {
  /**
   * undefined: the request carries none.
   * @throws TokenRefusedError for one that does not count: no other way decides about such a request
   */
  identify(request: IncomingMessage): Promise<Identified | undefined>
  /** The token counts no longer, anywhere. @returns false: the request carries none */
  signOut(request: IncomingMessage): Promise<boolean>
  forget(principal: Principal): number
}

/** undefined where neither issuers nor TokenReview are configured: then the header says nothing. */
export function tokenWay(options: IdentityOptions, revocations: RevocationStore): TokenWay | undefined {
  const { config, clock, logger } = options
  const issuers = config.bearer ?? []
  if (issuers.length === 0 && !config.tokenReview) return undefined
  const bearer = bearerWay(issuers, clock)
  const [mayWarn, mayTell] = [rarely(clock, minutes(1)), rarely(clock, 1000)]
  const onFailure = (error: unknown): void => {
    if (mayWarn()) logger.warn({ error }, 'the hub cannot have tokens reviewed')
  }
  const reviewer = config.tokenReview && tokenReviewer(hubOf(options), config.tokenReview, { clock, onFailure })

  const decide = async (token: string): Promise<{ readonly principal: Principal; readonly expiresAt: number }> => {
    if (bearer.claims(token)) return await bearer.verify(token)
    const principal = (await reviewer?.review(token)) ?? null
    if (!principal) throw new TokenRefusedError(reviewer ? 'not known to Kubernetes' : 'of no configured issuer')
    return { principal, expiresAt: Math.min(endOf(token) ?? Number.POSITIVE_INFINITY, clock.now() + reviewedMs) }
  }

  /** null: none at all */
  const tokenOf = (request: IncomingMessage): string | null => {
    const token = bearerToken(request)
    if (token === undefined) throw new TokenRefusedError('not one well-formed bearer token')
    if (token !== null && token.length > maxTokenBytes) throw new TokenRefusedError('too large')
    return token
  }

  const identify = async (request: IncomingMessage): Promise<Identified | undefined> => {
    const token = tokenOf(request)
    if (token === null) return undefined
    const { principal, expiresAt } = await decide(token)
    const id = tokenId(token)
    if (await revocations.isRevoked(id)) throw new TokenRefusedError('signed out')
    return { principal, session: { id, expiresAt }, byCookie: false }
  }

  return {
    async identify(request) {
      try {
        return await identify(request)
      } catch (error) {
        // The answer does not say why: whoever forges learns nothing from it.
        if (error instanceof TokenRefusedError && mayTell())
          logger.info({ reason: error.reason, address: request.socket.remoteAddress }, 'a bearer token was refused')
        throw error
      }
    },
    async signOut(request) {
      const token = tokenOf(request)
      if (token === null) return false
      // Only what counts can be signed out: nobody fills the store with what they made up.
      await decide(token)
      await revocations.revoke(tokenId(token), (endOf(token) ?? clock.now() + unknownEndMs) + marginMs)
      return true
    },
    forget(principal) {
      const same = ({ username, method }: Principal): boolean =>
        method === principal.method && username === principal.username
      return bearer.forget(same) + (reviewer?.forget(same) ?? 0)
    },
    [Symbol.dispose]: () => reviewer?.[Symbol.dispose](),
  }
}

/** The hub's own Kubernetes. @throws UnsafeConfigurationError where a way needs it and there is none */
export function hubOf({ kube }: IdentityOptions): NonNullable<IdentityOptions['kube']> {
  if (kube) return kube
  throw new UnsafeConfigurationError(
    "TOKEN_REVIEW and OPENSHIFT_GROUPS need the hub's Kubernetes: turn them off, or run where there is one",
  )
}

/** The end that a token states of itself, ms; undefined where it states none. */
function endOf(token: string): number | undefined {
  const parts = tokenParts(token)
  const end = parts && parseStrictObject(parts.payload)?.exp
  return typeof end === 'number' && end > 0 && end < 8.64e12 ? end * 1000 : undefined
}
