import type { StoreEvent, VersionedStore } from '../store.ts'
import { MASTERS, type User } from '../user.ts'
import { type Applying, Bindings } from './bindings.ts'
import { COLLECTIONS, RBAC, type RoleObject, type RoleRef } from './objects.ts'
import { type Attempt, type PolicyRule, ruleAllows } from './rule.ts'

/** Whether somebody may do something; `reason` is for people and may be empty. */
export interface Decision {
  readonly allowed: boolean
  readonly reason: string
}

/** All that somebody may do, as far as it can be known. */
export interface HeldRules {
  readonly rules: readonly PolicyRule[]
  /** roles that bindings name and that are not there */
  readonly faults: readonly string[]
}

const EVERYTHING: readonly PolicyRule[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
  { verbs: ['*'], nonResourceURLs: ['*'] },
]

const RIGHTS: ReadonlySet<string> = new Set(Object.values(COLLECTIONS))

type RuleSource = Pick<VersionedStore, 'get'>

/**
 * Decides by the Roles, ClusterRoles and bindings in the store, as they are at this moment. Rules only add up: what no rule
 * allows is not allowed. Members of system:masters may do everything. A role that is missing allows nothing and is named.
 */
export class Authorizer {
  readonly #store: RuleSource
  readonly #bindings: Bindings
  #version = 0

  constructor(store: VersionedStore) {
    this.#store = store
    this.#bindings = new Bindings(store)
  }

  /** Called with every change as it becomes visible. */
  saw(collection: string, event: StoreEvent): void {
    if (RIGHTS.has(collection)) this.#version++
    this.#bindings.saw(collection, event)
  }

  /** Another one as soon as a role or binding changed: what was decided before may be otherwise now. */
  get version(): number {
    return this.#version
  }

  decide(user: User, attempt: Attempt): Decision {
    if (user.groups.includes(MASTERS)) return { allowed: true, reason: '' }
    const namespace = 'path' in attempt ? '' : (attempt.namespace ?? '')
    const faults = new Set<string>()
    for (const scope of namespace ? ['', namespace] : [''])
      for (const applying of this.#bindings.of(user, scope)) {
        const rules = rulesOf(this.#store, applying.binding.roleRef, scope)
        if (typeof rules === 'string') faults.add(rules)
        else if (rules.some((rule) => ruleAllows(rule, attempt)))
          return { allowed: true, reason: `RBAC: allowed by ${described(applying)}` }
      }
    return { allowed: false, reason: faults.size > 0 ? `RBAC: ${joined([...faults])}` : '' }
  }

  /** @param namespace '': rules of the whole cluster alone */
  held(user: User, namespace: string): HeldRules {
    const rules: PolicyRule[] = user.groups.includes(MASTERS) ? [...EVERYTHING] : []
    const faults = new Set<string>()
    for (const scope of namespace ? ['', namespace] : [''])
      for (const { binding } of this.#bindings.of(user, scope)) {
        const found = rulesOf(this.#store, binding.roleRef, scope)
        if (typeof found === 'string') faults.add(found)
        else rules.push(...found)
      }
    return { rules, faults: [...faults] }
  }

  /** The rules of the role that a binding of this namespace names; a text: why there are none. */
  rulesOf(ref: RoleRef, namespace: string): readonly PolicyRule[] | string {
    return rulesOf(this.#store, ref, namespace)
  }
}

function rulesOf(store: RuleSource, { kind, name }: RoleRef, namespace: string): readonly PolicyRule[] | string {
  const ofCluster = kind === 'ClusterRole'
  if (!ofCluster && kind !== 'Role') return `unsupported role reference kind: ${JSON.stringify(kind)}`
  const role = ofCluster
    ? store.get(COLLECTIONS.clusterRoles, name)
    : store.get(COLLECTIONS.roles, `${namespace}/${name}`)
  if (!role) return `${kind.toLowerCase()}.${RBAC} ${JSON.stringify(name)} not found`
  return (role as RoleObject).rules ?? []
}

const joined = (faults: readonly string[]): string => (faults.length === 1 ? `${faults[0]}` : `[${faults.join(', ')}]`)

function described({ binding: { kind, metadata, roleRef }, subject }: Applying): string {
  const of = (name: string, namespace: string | undefined) => JSON.stringify(namespace ? `${name}/${namespace}` : name)
  const account = subject.kind === 'ServiceAccount' ? (subject.namespace ?? metadata.namespace) : undefined
  const to = `${subject.kind} ${of(subject.name, account)}`
  return `${kind} ${of(metadata.name, metadata.namespace)} of ${roleRef.kind} ${JSON.stringify(roleRef.name)} to ${to}`
}
