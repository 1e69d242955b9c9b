import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Principal } from '#access'
import { type Clock, minutes } from '#model'
import type { CookieJar } from './cookies.ts'
import { SignInFailedError } from './errors.ts'
import { clockSkewMs, type Seal } from './sealed.ts'

/** How long one look through another's eyes lasts. */
const lifetimeMs = minutes(15)
const cookie = 'view-as'

export interface Eyes {
  readonly username: string
  readonly email?: string
  readonly groups: readonly string[]
  readonly isServiceAccount?: boolean
}

interface ViewDocument {
  readonly id: string
  readonly actor: string
  readonly as: Eyes
  readonly endsAt: number
}

export interface ViewAs {
  write(actor: Principal, as: Eyes, request: IncomingMessage | undefined): readonly string[]
  clear(request: IncomingMessage | undefined): readonly string[]
  /** Whom this person looks as; null: as themselves. The cookie of another person says nothing. */
  read(person: Principal, request: IncomingMessage): { principal: Principal; id: string; endsAt: number } | null
}

export function viewAs(seal: Seal, jar: CookieJar, clock: Clock): ViewAs {
  return {
    write(actor, as, request) {
      const document: ViewDocument = {
        id: `view-as:${randomBytes(12).toString('base64url')}`,
        actor: actor.actor ?? actor.username,
        as,
        endsAt: clock.now() + lifetimeMs,
      }
      const cookies = jar.write(request, cookie, seal.seal('view-as', document), { maxAgeMs: lifetimeMs })
      if (!cookies) throw new SignInFailedError('these are more groups than a view can hold')
      return cookies
    },
    clear: (request) => jar.clear(request, cookie),
    read(person, request) {
      const text = jar.read(request, cookie)
      // What opens was written by `write`.
      const document = text === undefined ? undefined : (seal.open('view-as', text) as ViewDocument | undefined)
      if (!document || document.actor !== person.username) return null
      const left = document.endsAt - clock.now()
      if (left <= 0 || left > lifetimeMs + clockSkewMs) return null
      return { principal: throughEyes(document.as, person), id: document.id, endsAt: document.endsAt }
    },
  }
}

function throughEyes({ username, email = '', groups, isServiceAccount = false }: Eyes, actor: Principal): Principal {
  return {
    username,
    email,
    emailVerified: email !== '',
    groups,
    isServiceAccount,
    // As such a person would come; never as the administrator came, whose way may open everything by itself.
    method: isServiceAccount ? 'token-review' : 'oidc',
    actor: actor.username,
  }
}
