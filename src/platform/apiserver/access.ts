import { createHash, timingSafeEqual } from 'node:crypto'

/** Who calls. */
export interface User {
  readonly name: string
  readonly uid?: string
  readonly groups: readonly string[]
}

/** What a token lets its holder do: everything, or read everything but secrets. */
export type Role = 'admin' | 'view'

/** Who somebody with this token is, and what they may do. */
export interface TokenGrant {
  readonly token: string
  readonly user: string
  readonly role: Role
  readonly groups?: readonly string[]
}

/** What somebody wants to do, as SubjectAccessReview says it. */
export interface Attempt {
  readonly verb: string
  readonly group?: string
  readonly resource?: string
  readonly subresource?: string
  readonly namespace?: string
  readonly name?: string
  readonly path?: string
}

interface Caller {
  readonly user: User
  readonly role: Role
}

const READING = new Set(['get', 'list', 'watch', 'head', 'options'])
const SELF_REVIEWS = new Set(['selfsubjectaccessreviews', 'selfsubjectrulesreviews', 'selfsubjectreviews'])

/** In-process calls and tests: everything is allowed. */
const LOCAL: Caller = {
  user: { name: 'system:local', groups: ['system:masters', 'system:authenticated'] },
  role: 'admin',
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

export const bearerToken = (authorization: string | undefined): string | undefined =>
  /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1]

/** Static bearer tokens and what they allow. Without any grant every caller is the local administrator. */
export class Access {
  readonly #grants: readonly { readonly digest: Buffer; readonly caller: Caller }[]
  readonly open: boolean

  constructor(grants: readonly TokenGrant[] | 'everybody') {
    this.open = grants === 'everybody'
    this.#grants = (grants === 'everybody' ? [] : grants).map(({ token, user, role, groups }) => ({
      digest: digest(token),
      caller: {
        role,
        user: {
          name: user,
          groups: [...(groups ?? []), ...(role === 'admin' ? ['system:masters'] : []), 'system:authenticated'],
        },
      },
    }))
  }

  /** @returns the holder of the token; undefined for a token nobody was given. Takes the same time for every token. */
  holder(token: string): User | undefined {
    return this.#caller(token)?.user
  }

  #caller(token: string): Caller | undefined {
    const given = digest(token)
    let found: Caller | undefined
    for (const grant of this.#grants) if (timingSafeEqual(grant.digest, given)) found = grant.caller
    return found
  }

  /** Who sends this Authorization header; undefined where nobody we know does. */
  identify(authorization: string | undefined): User | undefined {
    if (this.open) return LOCAL.user
    const token = bearerToken(authorization)
    return token ? this.holder(token) : undefined
  }

  #roleOf(user: { readonly name: string; readonly groups: readonly string[] }): Role | undefined {
    if (user.groups.includes('system:masters')) return 'admin'
    return this.#grants.find(({ caller }) => caller.user.name === user.name)?.caller.role
  }

  allows(user: { readonly name: string; readonly groups: readonly string[] }, attempt: Attempt): boolean {
    const role = this.#roleOf(user)
    if (role === 'admin') return true
    if (role === undefined) return false
    if (SELF_REVIEWS.has(attempt.resource ?? '')) return true
    return READING.has(attempt.verb) && attempt.resource !== 'secrets'
  }

  /** What a user may do, as SelfSubjectRulesReview lists it. */
  rulesOf(user: User): { resourceRules: object[]; nonResourceRules: object[] } {
    const role = this.#roleOf(user)
    const everything = role === 'admin'
    if (role === undefined) return { resourceRules: [], nonResourceRules: [] }
    const verbs = everything ? ['*'] : ['get', 'list', 'watch']
    const self = {
      verbs: ['create'],
      apiGroups: ['authorization.k8s.io', 'authentication.k8s.io'],
      resources: [...SELF_REVIEWS],
    }
    return {
      resourceRules: [{ verbs, apiGroups: ['*'], resources: ['*'] }, ...(everything ? [] : [self])],
      nonResourceRules: [{ verbs: everything ? ['*'] : ['get'], nonResourceURLs: ['*'] }],
    }
  }
}
