import type { Principal } from '#access'
import { type KubeClient, type KubeObject, type Resource, whole } from '#kube'
import { type Clock, minutes, seconds } from '#model'
import type { Logger, Metrics } from '#runtime'
import { Lookups } from './lookups.ts'
import { rarely } from './rarely.ts'

const kind = (plural: string, name: string): Resource<KubeObject> =>
  whole({ group: 'user.openshift.io', version: 'v1', plural, kind: name, namespaced: false })
const users = kind('users', 'User')
const groups = kind('groups', 'Group')

/** Somebody who is not known may have been added a moment ago. */
const unknownMs = seconds(10)
const againMs = seconds(2)
/** How long the last good answer stands in while the API fails. */
const staleMs = minutes(5)

/** Users and Groups of OpenShift: what a person is called there, and which groups the person is in. */
export interface OpenShiftGroups extends Disposable {
  /**
   * The principal under the canonical name, with the memberships of every name that is proved to be theirs.
   * @throws IdentityUnavailableError where the API does not answer and what is known is too old
   */
  resolve(principal: Principal): Promise<Principal>
  /** @returns how many entries were forgotten */
  forget(principal: Principal): number
}

interface Looked {
  readonly value: readonly string[] | null
  readonly stale: boolean
}

type Memberships = ReadonlyMap<string, readonly string[]>

interface Parts {
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Metrics
}

/**
 * One cache for everybody: each User is asked for once per lifetime, all Groups together once, whoever asks. A failure is
 * never taken for "no groups": that could lift a Deny.
 */
export function openshiftGroups(
  kube: KubeClient,
  { ttlMs, asOriginal }: { readonly ttlMs: number; readonly asOriginal: boolean },
  { clock, logger, metrics }: Parts,
): OpenShiftGroups {
  const stale = metrics.counter(
    'clusterpulse_identity_stale_total',
    'people resolved from groups older than configured',
  )
  const mayWarn = rarely(clock, minutes(1))
  const onFailure = (error: unknown): void => {
    if (mayWarn()) logger.warn({ error }, 'Users and Groups of OpenShift cannot be read')
  }
  const shared = { clock, onFailure, staleMs }
  const people = new Lookups<readonly string[] | null>({
    ...shared,
    ttlMs: (found) => (found ? ttlMs : Math.min(ttlMs, unknownMs)),
  })
  const members = new Lookups<Memberships>({ ...shared, max: 1, ttlMs: () => ttlMs })
  // For who is in no group as far as we know: the list is as old as that answer may be.
  const readAt = new WeakMap<Memberships, number>()

  const ageOf = (read: Memberships): number => Math.abs(clock.now() - (readAt.get(read) ?? 0))
  let latest: Memberships | undefined

  const userOf = (name: string) =>
    people.get(name, async (signal) => {
      const user = isObjectName(name) ? await kube.get(users, { name }, signal) : undefined
      return user ? texts(user.groups) : null
    })
  const readMembers = async (signal: AbortSignal): Promise<Memberships> => {
    const read = membershipsOf(await kube.listAll(groups, { signal }))
    readAt.set(read, clock.now())
    latest = read
    return read
  }
  const membersFor = async (names: readonly string[]) => {
    const known = await members.get('', readMembers)
    if (known.stale || names.some((name) => known.value.has(name)) || ageOf(known.value) < Math.min(ttlMs, unknownMs))
      return known
    members.expire('')
    return await members.get('', readMembers)
  }

  /**
   * As the original: the memberships that the User itself lists, else those of the first name, canonical one first, that any
   * Group lists, and that name is then the person's. They never add up, and what a proxy says of groups is not heard. What the
   * original took for "no groups", an API that does not answer, is an error here as well: it could lift a Deny.
   */
  const resolveAsOriginal = async (
    principal: Principal,
    { names, found, at }: { names: readonly string[]; found: readonly Looked[]; at: number },
  ): Promise<Principal> => {
    const canonical = names[at]
    const own = found[at]?.value ?? []
    if (found.some((one) => one.stale)) stale.inc()
    if (canonical !== undefined && own.length > 0)
      return { ...principal, username: canonical, groups: [...new Set(own)] }
    const order = canonical === undefined ? names : [canonical, ...names.filter((name) => name !== canonical)]
    const listed = await membersFor(order)
    if (listed.stale) stale.inc()
    const known = order.find((name) => listed.value.has(name))
    const groups = known === undefined ? [] : (listed.value.get(known) ?? [])
    return { ...principal, username: known ?? canonical ?? principal.username, groups: [...new Set(groups)] }
  }

  return {
    async resolve(principal) {
      const names = namesOf(principal)
      // A service account is no User; groups may list it all the same.
      const found = principal.isServiceAccount ? [] : await Promise.all(names.map(userOf))
      const at = found.findIndex(({ value }) => value !== null)
      if (asOriginal) return await resolveAsOriginal(principal, { names, found, at })
      const canonical = names[at] ?? principal.username
      const listed = await membersFor(names)
      if (listed.stale || found.some((one) => one.stale)) stale.inc()
      const all = [
        ...principal.groups,
        ...found.flatMap(({ value }) => value ?? []),
        ...names.flatMap((name) => listed.value.get(name) ?? []),
      ]
      return { ...principal, username: canonical, groups: [...new Set(all)] }
    },
    forget(principal) {
      const forgotten = namesOf(principal).filter((name) => people.forget(name)).length
      // The list is everybody's: nobody can have it read in a loop.
      if (latest && ageOf(latest) >= againMs) members.expire('')
      return forgotten
    },
    [Symbol.dispose]() {
      people.close()
      members.close()
    },
  }
}

/** The name as it came, and the address where it is proved: OAuth proxies send its first half as the name. */
function namesOf({ username, email, emailVerified, isServiceAccount }: Principal): readonly string[] {
  return emailVerified && email !== '' && email !== username && !isServiceAccount ? [username, email] : [username]
}

function membershipsOf(list: readonly KubeObject[]): Memberships {
  const memberships = new Map<string, string[]>()
  for (const group of list)
    for (const user of texts(group.users)) {
      const names = memberships.get(user)
      if (names) names.push(group.metadata.name)
      else memberships.set(user, [group.metadata.name])
    }
  return memberships
}

// What Kubernetes lets stand in a path: other names are nobody's there.
const isObjectName = (name: string): boolean => name !== '.' && name !== '..' && !/[/%]/.test(name)

const texts = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string' && one !== '') : []
