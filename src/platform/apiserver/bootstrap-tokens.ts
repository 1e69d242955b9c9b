import { timingSafeEqual } from 'node:crypto'
import type { Clock } from '#model'
import type { TokenHolders } from './authentication.ts'
import type { ObjectStore } from './objects.ts'
import { AUTHENTICATED, type User } from './user.ts'

const secrets = { group: '', version: 'v1', plural: 'secrets' }
const TOKEN = /^([a-z0-9]{6})\.([a-z0-9]{16})$/
const GROUP = /^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$/

/**
 * Tokens for who is not known yet, such as an agent that asks for its first certificate: Secrets of type
 * `bootstrap.kubernetes.io/token` in kube-system. What they let their holder do is what bindings of their groups say.
 */
export class BootstrapTokens implements TokenHolders {
  readonly #objects: ObjectStore
  readonly #clock: Clock

  constructor(objects: ObjectStore, clock: Clock) {
    this.#objects = objects
    this.#clock = clock
  }

  holder(token: string): User | undefined {
    const [, id = '', given = ''] = TOKEN.exec(token) ?? []
    if (id === '') return undefined
    const secret = this.#objects.get(secrets, { namespace: 'kube-system', name: `bootstrap-token-${id}` })
    if (secret?.type !== 'bootstrap.kubernetes.io/token' || secret.metadata.deletionTimestamp) return undefined
    const data = secret.data as Readonly<Record<string, string>> | undefined
    const text = (field: string): string => Buffer.from(data?.[field] ?? '', 'base64').toString()
    const groups = text('auth-extra-groups').split(',').filter(Boolean)
    const counts =
      isEqual(given, text('token-secret')) &&
      text('token-id') === id &&
      text('usage-bootstrap-authentication') === 'true' &&
      !this.#isOver(text('expiration')) &&
      groups.every((group) => GROUP.test(group))
    if (!counts) return undefined
    const name = `system:bootstrap:${id}`
    return { name, groups: ['system:bootstrappers', ...[...new Set(groups)].sort(), AUTHENTICATED] }
  }

  /** An end that cannot be read is over. */
  #isOver(expiration: string): boolean {
    if (expiration === '') return false
    const endsMs = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/.test(expiration) ? Date.parse(expiration) : Number.NaN
    return !(this.#clock.now() <= endsMs)
  }
}

function isEqual(given: string, kept: string): boolean {
  const [left, right] = [Buffer.from(given), Buffer.from(kept)]
  return left.length === right.length && timingSafeEqual(left, right)
}
