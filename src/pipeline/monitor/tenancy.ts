import { LRUCache } from 'lru-cache'
import {
  type Access,
  type AccessView,
  compilePolicy,
  MemoryPolicies,
  openAccess,
  type PolicyObject,
  type Principal,
  type StoredPolicy,
} from '#access'
import { type Clock, type ClusterState, invariant, type NamespaceSnapshot } from '#model'
import type { Caller } from './tokens.ts'

/** How namespaces tell whose they are. */
export interface TenancyRules {
  /** seen by administrators only, whatever its labels say */
  readonly systemNamespace: string
  /** namespaces of tenants begin with it: `compute-` */
  readonly tenantPrefix: string
  /** label with the exact id of the owner; it decides wherever a namespace has it */
  readonly ownerLabel: string
}

/** Administrators by their token: a group that no token can name otherwise. */
const ADMINISTRATORS = 'cluster-monitor:administrators'
const HIDDEN_TYPES = ['nodes', 'operators', 'alerts', 'events'] as const
const MAX_VIEWS = 20_000
/** What Kubernetes takes as the name of a namespace. In a policy anything else could be read as a pattern: it is nobody's. */
const NAMESPACE_NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/

/** The caller as the access core knows people. */
export const principalOf = ({ userId, isAdmin }: Caller): Principal => ({
  username: userId,
  email: '',
  groups: isAdmin ? [ADMINISTRATORS] : [],
  isServiceAccount: false,
  method: 'bearer-jwt',
})

/** Namespaces of each cluster that a user owns, by cluster; clusters where he owns none are not named. */
export type Owned = ReadonlyMap<string, readonly string[]>

/**
 * The policy that a user's token stands for: his own namespaces by name, in the clusters where he has some, with what runs in them.
 * @returns undefined: he owns nothing, and nothing is allowed
 */
export function tenantPolicy(userId: string, owned: Owned): PolicyObject | undefined {
  if (userId === '' || owned.size === 0) return undefined
  const rules = [...owned].map(([cluster, namespaces]) => ({
    selector: { matchNames: [cluster] },
    permissions: { view: true, viewMetrics: true },
    resources: [
      ...HIDDEN_TYPES.map((type) => ({ type, visibility: 'none' as const })),
      { type: 'namespaces', visibility: 'filtered' as const, filters: { names: { allowed: [...namespaces] } } },
      { type: 'pods', visibility: 'filtered' as const, filters: { namespaces: { allowed: [...namespaces] } } },
    ],
  }))
  return {
    metadata: { name: 'cluster-monitor-tenant', namespace: 'clusterpulse' },
    spec: {
      identity: { subjects: { users: [userId], groups: [], serviceAccounts: [] } },
      access: { effect: 'Allow' },
      scope: { clusters: { default: 'none', rules } },
    },
  }
}

interface KnownView {
  readonly view: AccessView
  /** what was owned when it was made, as text */
  readonly owned: string
  /** the namespaces there were when it was looked at last */
  readonly namespaces: object
}

/** From callers to access views: generated policies, decided by the access core. */
export class Tenancy {
  readonly #rules: TenancyRules
  readonly #clock: Clock
  readonly #access: Access
  /** by user */
  readonly #views = new LRUCache<string, KnownView>({ max: MAX_VIEWS })
  #seen: Seen = { clusters: [], namespaces: {} }
  readonly #owners = new WeakMap<object, OwnerIndex>()

  constructor(rules: TenancyRules, clock: Clock) {
    this.#rules = rules
    this.#clock = clock
    const administrators = { users: [], groups: [ADMINISTRATORS] }
    this.#access = openAccess({ source: new MemoryPolicies(), semantics: 'strict', administrators, clock })
  }

  /** What the caller sees of these clusters, as they are now. */
  viewOf(caller: Caller, clusters: readonly ClusterState[]): AccessView {
    const principal = principalOf(caller)
    if (caller.isAdmin) return this.#access.viewNow(principal)
    const { userId } = caller
    const namespaces = this.#namespacesOf(clusters)
    const known = this.#views.get(userId)
    const isValid = known !== undefined && known.view.validUntil > this.#clock.now()
    if (isValid && known.namespaces === namespaces) return known.view
    const owned = this.owned(userId, clusters)
    const text = JSON.stringify([...owned])
    const view =
      isValid && known.owned === text
        ? known.view
        : this.#access.withPolicies(this.#stored(userId, owned)).viewNow(principal)
    this.#views.set(userId, { view, owned: text, namespaces })
    return view
  }

  owned(userId: string, clusters: readonly ClusterState[]): Owned {
    const owned = new Map<string, readonly string[]>()
    if (userId === '') return owned
    for (const cluster of clusters) {
      const names = this.#indexOf(cluster)?.of(userId) ?? []
      if (names.length > 0) owned.set(cluster.name, names)
    }
    return owned
  }

  /** The very same object as long as no namespace of any cluster is another. */
  #namespacesOf(clusters: readonly ClusterState[]): object {
    const { clusters: before } = this.#seen
    const isSame = (cluster: ClusterState, at: number) =>
      cluster === before[at] ||
      (cluster.name === before[at]?.name && cluster.parts.namespace?.items === before[at]?.parts.namespace?.items)
    const namespaces =
      clusters === before || (clusters.length === before.length && clusters.every(isSame)) ? this.#seen.namespaces : {}
    this.#seen = { clusters, namespaces }
    return namespaces
  }

  #stored(userId: string, owned: Owned): readonly StoredPolicy[] {
    const policy = tenantPolicy(userId, owned)
    if (!policy) return []
    const { document, findings } = compilePolicy(policy, { now: this.#clock.now() })
    invariant(document, `a generated policy compiles: ${JSON.stringify(findings)}`)
    return [{ key: `${document.namespace}/${document.policy_name}`, document, faults: [] }]
  }

  #indexOf(cluster: ClusterState): OwnerIndex | undefined {
    const items = cluster.parts.namespace?.items
    if (!items) return undefined
    const known = this.#owners.get(items)
    if (known) return known
    const index = new OwnerIndex(items.values(), this.#rules)
    this.#owners.set(items, index)
    return index
  }
}

interface Seen {
  readonly clusters: readonly ClusterState[]
  readonly namespaces: object
}

/** Whose the namespaces of one cluster are. */
class OwnerIndex {
  readonly #prefix: string
  readonly #labelled = new Map<string, string[]>()
  /** without a label, sorted: their name alone says whose they are */
  readonly #unlabelled: readonly string[]

  constructor(namespaces: Iterable<NamespaceSnapshot>, { systemNamespace, tenantPrefix, ownerLabel }: TenancyRules) {
    this.#prefix = tenantPrefix
    const unlabelled: string[] = []
    for (const { name, labels } of namespaces) {
      if (name === systemNamespace || !name.startsWith(tenantPrefix) || !NAMESPACE_NAME.test(name)) continue
      const owner = Object.hasOwn(labels, ownerLabel) ? labels[ownerLabel] : undefined
      if (owner === undefined) unlabelled.push(name)
      else this.#labelled.set(owner, [...(this.#labelled.get(owner) ?? []), name])
    }
    this.#unlabelled = unlabelled.sort()
  }

  of(userId: string): readonly string[] {
    const prefix = `${this.#prefix}${userId}-`
    const named: string[] = []
    for (let at = this.#firstFrom(prefix); this.#unlabelled[at]?.startsWith(prefix); at++)
      named.push(this.#unlabelled[at] ?? '')
    return [...(this.#labelled.get(userId) ?? []), ...named].sort()
  }

  /** Place of the first name that does not stand before this text. */
  #firstFrom(text: string): number {
    let [low, high] = [0, this.#unlabelled.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#unlabelled[middle] ?? '') < text) low = middle + 1
      else high = middle
    }
    return low
  }
}
