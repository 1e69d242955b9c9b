import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { AUTHENTICATED, type User } from './user.ts'

/** Who somebody with this token is. Members of the group `system:masters` may do everything. */
export interface TokenGrant {
  readonly token: string
  readonly user: string
  readonly groups?: readonly string[]
}

/** One way to tell by a bearer token who calls. */
export interface TokenHolders {
  /** @returns undefined for a token that is none of these, or no longer counts */
  holder(token: string): User | undefined
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Tokens that are given once and for all. */
export class StaticTokens implements TokenHolders {
  readonly #grants: readonly { readonly digest: Buffer; readonly user: User }[]

  constructor(grants: readonly TokenGrant[]) {
    this.#grants = grants.map(({ token, user, groups = [] }) => ({
      digest: digest(token),
      user: { name: user, groups: [...groups, AUTHENTICATED] },
    }))
  }

  /** Takes the same time for every token. */
  holder(token: string): User | undefined {
    const given = digest(token)
    let found: User | undefined
    for (const grant of this.#grants) if (timingSafeEqual(grant.digest, given)) found = grant.user
    return found
  }
}

export const bearerToken = ({ headers }: Pick<IncomingMessage, 'headers'>): string | undefined =>
  /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1]
