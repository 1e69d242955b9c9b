import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Principal } from '#access'
import { type Clock, minutes } from '#model'
import type { CookieJar } from './cookies.ts'
import { SignInFailedError } from './errors.ts'
import { clockSkewMs, type Seal } from './sealed.ts'
import type { RevocationStore } from './types.ts'

/** As kept in the browser, sealed. Times are ms since the epoch. */
interface SessionDocument {
  readonly id: string
  readonly principal: Principal
  readonly endsAt: number
  /** when the cookie was last written: a session in use is written anew */
  readonly seenAt: number
  /** of the credentials it stands on: when they change, it ends */
  readonly basis: string
}

export interface Session {
  readonly id: string
  readonly principal: Principal
  readonly basis: string
  readonly endsAt: number
  /** unless it is used again */
  readonly idleEndsAt: number
  /** cookies that keep it going; absent: the ones it came with are young enough */
  readonly renewal?: readonly string[]
}

export interface Sessions {
  /** @throws SignInFailedError where the person has more groups than cookies can hold */
  start(principal: Principal, basis: string, request: IncomingMessage): readonly string[]
  /** null: no session, or none any more. @throws where the store of sign-outs cannot be asked */
  read(request: IncomingMessage): Promise<Session | null>
  end(session: Pick<Session, 'id' | 'endsAt'>): Promise<void>
  clear(request: IncomingMessage): readonly string[]
}

const cookie = 'session'

export function sessions(
  parts: { readonly seal: Seal; readonly jar: CookieJar; readonly revocations: RevocationStore; readonly clock: Clock },
  { lifetimeMs = minutes(12 * 60), idleMs = minutes(60) }: { readonly lifetimeMs?: number; readonly idleMs?: number },
): Sessions {
  const { seal, jar, revocations, clock } = parts
  const renewAfterMs = Math.min(minutes(1), idleMs / 4)

  const write = (document: SessionDocument, request: IncomingMessage): readonly string[] => {
    const maxAgeMs = Math.min(document.endsAt - document.seenAt, idleMs)
    const cookies = jar.write(request, cookie, seal.seal('session', document), { maxAgeMs })
    if (cookies) return cookies
    throw new SignInFailedError('you are in more groups than a session can hold: ask for a provider that sends fewer')
  }

  return {
    start(principal, basis, request) {
      const now = clock.now()
      const id = `session:${randomBytes(18).toString('base64url')}`
      return write({ id, principal, basis, seenAt: now, endsAt: now + lifetimeMs }, request)
    },
    async read(request) {
      const text = jar.read(request, cookie)
      // What opens was written by `start`.
      const document = text === undefined ? undefined : (seal.open('session', text) as SessionDocument | undefined)
      if (!document) return null
      const { id, principal, basis, endsAt, seenAt } = document
      const now = clock.now()
      const idleEndsAt = Math.min(endsAt, seenAt + idleMs)
      // Also checked backwards: a clock set back must not lengthen a session beyond its whole life.
      if (now >= idleEndsAt || endsAt - now > lifetimeMs + clockSkewMs) return null
      if (await revocations.isRevoked(id)) return null
      const renew = now - seenAt >= renewAfterMs
      return {
        id,
        principal,
        basis,
        endsAt,
        idleEndsAt: renew ? Math.min(endsAt, now + idleMs) : idleEndsAt,
        ...(renew && { renewal: write({ ...document, seenAt: now }, request) }),
      }
    },
    end: ({ id, endsAt }) => revocations.revoke(id, endsAt),
    clear: (request) => jar.clear(request, cookie),
  }
}
