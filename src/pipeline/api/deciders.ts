import type { Access, Principal } from '#access'
import type { HubUser, MemberDecision } from '#model'
import type { ServedMembers } from './types.ts'

/** Ways of signing in that give no name the hub's API could know. */
const nameless: ReadonlySet<string> = new Set(['local-administrator', 'password', 'development'])

/**
 * Who may decide about members: whom the hub's API lets, by its own rights. Where the hub is its own API, its administrators may as
 * well: they hold it.
 */
export class Deciders {
  readonly #access: Access
  readonly #members: ServedMembers

  constructor(access: Access, members: ServedMembers) {
    this.#access = access
    this.#members = members
  }

  /**
   * What somebody lacks for a decision, each as kubectl would name it; none: they may.
   * @throws FleetError `rights_unknown` where the hub's API does not say
   */
  async lacks(principal: Principal, decision: MemberDecision, cluster?: string): Promise<readonly string[]> {
    const { administratorsDecide, lackedRights } = this.#members
    if (principal.actor !== undefined) return ['eyes of your own: you look through those of another']
    if (administratorsDecide && this.#access.isAdministrator(principal)) return []
    const user = hubUserOf(principal)
    return typeof user === 'string' ? [user] : lackedRights(user, decision, cluster)
  }
}

/** As the hub's API knows somebody who signed in here; a text says why it does not. */
function hubUserOf({ username, groups, method, extra }: Principal): HubUser | string {
  if (method === 'token-review') return { username, groups, ...(extra && { extra }) }
  if (nameless.has(method)) return "a name that the hub's API knows: you signed in here without one"
  // Whoever signs people in for us does not speak for the API server: these names are its own.
  if (isReserved(username)) return `a name that is not the API server's own (${username}): show its token instead`
  return { username, groups: [...groups.filter((group) => !isReserved(group)), 'system:authenticated'] }
}

const isReserved = (name: string): boolean => name.startsWith('system:')
