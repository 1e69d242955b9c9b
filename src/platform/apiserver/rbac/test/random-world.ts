import type { BindingObject, RoleObject, Subject } from '../objects.ts'
import type { PolicyRule } from '../rule.ts'

/** Roles and bindings of one round. */
export interface RbacWorld {
  readonly clusterRoles: readonly RoleObject[]
  readonly roles: readonly RoleObject[]
  readonly clusterRoleBindings: readonly BindingObject[]
  readonly roleBindings: readonly BindingObject[]
}

/** Somebody, as an access review and as impersonation name them. */
export interface Somebody {
  readonly user: string
  readonly groups: readonly string[]
}

const API_VERSION = 'rbac.authorization.k8s.io/v1'
const API_GROUP = 'rbac.authorization.k8s.io'

export const NAMESPACES = ['rbac-a', 'rbac-b']
/** who holds this group may write roles and bindings, as far as they hold what they grant */
export const WRITERS = 'writers'

const USERS = ['ann', 'bob', '*', 'rbac-a', 'system:anonymous', 'system:serviceaccount:robot'].concat(
  NAMESPACES.flatMap((namespace) => [
    `system:serviceaccount:${namespace}:robot`,
    `system:serviceaccount:${namespace}:`,
  ]),
)
const GROUPS = ['dev', 'ops', '*', 'ann', 'system:authenticated', 'system:unauthenticated', 'system:serviceaccounts']
const VERBS = ['get', 'list', 'watch', 'create', 'update', 'delete', 'bind', 'escalate', 'impersonate']
const API_GROUPS = ['', 'apps', API_GROUP, 'cluster.open-cluster-management.io']
const RESOURCES = ['pods', 'secrets', 'deployments', 'roles', 'clusterroles', 'managedclusters']
const SUBRESOURCES = ['log', 'status', 'accept']
const NAMES = ['web', 'db', 'c1']
const PATHS = ['/', '/healthz', '/healthz/', '/healthz/etcd', '/api', '/apis/apps', '/apisx', 'healthz', '*']
const RULE_PATHS = [...PATHS, '/healthz*', '/healthz/*', '/api*', '/apis/**', '/*/apps', '/*', '']
const LABELS = ['east', 'west']
/** Selectors that say what is not there would find the original's own roles as well. */
const MARK = { suite: 'yes' }

/** Everything of one seed, in the same order on every machine. */
export class RandomRbac {
  #state: number

  constructor(seed: number) {
    this.#state = seed
  }

  /** 0 to 1; mulberry32 */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  chance(of: number): boolean {
    return this.next() < of
  }

  count(most: number): number {
    return Math.floor(this.next() * (most + 1))
  }

  one<T>(list: readonly T[]): T {
    return list[Math.floor(this.next() * list.length)] as T
  }

  some<T>(list: readonly T[], most: number): T[] {
    return Array.from({ length: 1 + this.count(most - 1) }, () => this.one(list))
  }

  #or(star: number, list: readonly string[], most: number): string[] {
    return this.chance(star) ? ['*'] : this.some(list, most)
  }

  #resource(): string {
    const resource = this.chance(0.1) ? '*' : this.one(RESOURCES)
    return this.chance(0.3) ? `${resource}/${this.chance(0.1) ? '*' : this.one(SUBRESOURCES)}` : resource
  }

  rule(ofCluster: boolean): PolicyRule {
    const verbs = this.#or(0.15, VERBS, 4)
    if (ofCluster && this.chance(0.2)) return { verbs, nonResourceURLs: this.some(RULE_PATHS, 3) }
    return {
      verbs,
      apiGroups: this.#or(0.2, API_GROUPS, 2),
      resources: this.chance(0.1) ? ['*'] : Array.from({ length: 1 + this.count(2) }, () => this.#resource()),
      ...(this.chance(0.25) ? { resourceNames: this.some([...NAMES, '*', ''], 2) } : {}),
    }
  }

  rules(ofCluster: boolean): PolicyRule[] {
    return Array.from({ length: this.count(3) }, () => this.rule(ofCluster))
  }

  clusterRole(name: string, collecting = false): RoleObject {
    const labels = Object.fromEntries(
      LABELS.filter(() => this.chance(0.5)).map((label) => [label, this.one(['yes', 'no'])]),
    )
    const expression = () => {
      const operator = this.one(['In', 'NotIn', 'Exists', 'DoesNotExist'])
      return {
        key: this.one(LABELS),
        operator,
        ...(operator.endsWith('In') ? { values: [this.one(['yes', 'no'])] } : {}),
      }
    }
    const selector = () => ({
      matchLabels: { ...MARK, ...(this.chance(0.5) ? { [this.one(LABELS)]: 'yes' } : {}) },
      ...(this.chance(0.6) ? { matchExpressions: Array.from({ length: 1 + this.count(1) }, expression) } : {}),
    })
    return {
      apiVersion: API_VERSION,
      kind: 'ClusterRole',
      metadata: { name, labels: { ...labels, ...MARK } },
      ...(collecting
        ? { aggregationRule: { clusterRoleSelectors: Array.from({ length: 1 + this.count(1) }, selector) } }
        : { rules: this.rules(true) }),
    }
  }

  role(name: string, namespace: string): RoleObject {
    return { apiVersion: API_VERSION, kind: 'Role', metadata: { name, namespace }, rules: this.rules(false) }
  }

  #subject(): Subject {
    const kind = this.one(['User', 'Group', 'ServiceAccount'])
    if (kind !== 'ServiceAccount')
      return { kind, apiGroup: API_GROUP, name: this.one(kind === 'User' ? USERS : GROUPS) }
    return { kind, name: this.one(['robot', 'robot.two', 'ann']), namespace: this.one(NAMESPACES) }
  }

  clusterRoleBinding(name: string, roles: readonly string[]): BindingObject {
    return {
      apiVersion: API_VERSION,
      kind: 'ClusterRoleBinding',
      metadata: { name },
      roleRef: { apiGroup: API_GROUP, kind: 'ClusterRole', name: this.one(roles) },
      subjects: Array.from({ length: this.count(3) }, () => this.#subject()),
    }
  }

  roleBinding(
    name: string,
    namespace: string,
    clusterRoles: readonly string[],
    roles: readonly string[],
  ): BindingObject {
    const kind = this.one(['Role', 'ClusterRole'])
    const subjects = Array.from({ length: this.count(3) }, () => this.#subject()).map((subject) => {
      const { namespace: _, ...homeless } = subject
      return subject.kind === 'ServiceAccount' && this.chance(0.3) ? homeless : subject
    })
    return {
      apiVersion: API_VERSION,
      kind: 'RoleBinding',
      metadata: { name, namespace },
      roleRef: { apiGroup: API_GROUP, kind, name: this.one(kind === 'Role' ? roles : clusterRoles) },
      subjects,
    }
  }

  /** Lets its holders grant what they do not hold, in one of the ways. */
  #power(name: string): RoleObject {
    const verbs = [this.one(['bind', 'escalate'])]
    const resources = this.some(['roles', 'clusterroles'], 2)
    const rules = [{ verbs, apiGroups: [API_GROUP], resources }]
    return { apiVersion: API_VERSION, kind: 'ClusterRole', metadata: { name }, rules }
  }

  /** @param round part of every name, so that no round meets what is left of another */
  world(round: string): RbacWorld {
    const names = (kind: string, count: number) => Array.from({ length: count }, (_, at) => `${round}-${kind}-${at}`)
    const plain = names('role', 6)
    const collecting = names('sum', 4)
    const power = `${round}-power`
    const [, ...named] = [...plain, ...collecting]
    const referred = [...named, `${round}-missing`]
    return {
      clusterRoles: [
        ...plain.map((name) => this.clusterRole(name)),
        ...collecting.map((name) => this.clusterRole(name, true)),
        this.#power(power),
      ],
      roles: NAMESPACES.flatMap((namespace) => plain.map((name) => this.role(name, namespace))),
      clusterRoleBindings: [
        ...names('binding', 5).map((name) => this.clusterRoleBinding(name, referred)),
        ...names('power', 2).map((name) => this.clusterRoleBinding(name, [power])),
      ],
      roleBindings: NAMESPACES.flatMap((namespace) =>
        names('binding', 4).map((name) => this.roleBinding(name, namespace, referred, referred)),
      ),
    }
  }

  somebody(): Somebody {
    const groups = this.chance(0.03) ? ['system:masters'] : this.some([...GROUPS, ''], 3)
    return { user: this.one(USERS), groups: this.chance(0.3) ? [] : groups }
  }

  /** The spec of a SubjectAccessReview: half of them about what a binding of this world grants, or nearly so. */
  question(world: RbacWorld): Question {
    const random = this.#anyQuestion()
    const granted = this.chance(0.6) ? this.#grantedBy(world) : undefined
    if (!granted) return random
    if (this.chance(0.5)) return granted
    const { resourceAttributes: asked } = random
    const { resourceAttributes: own } = granted
    if (!asked || !own) return this.chance(0.5) ? { ...granted, user: random.user } : random
    const field = this.one(['verb', 'group', 'resource', 'subresource', 'namespace', 'name'] as const)
    return { ...granted, resourceAttributes: { ...own, [field]: asked[field] } }
  }

  #grantedBy({ clusterRoles, roles, clusterRoleBindings, roleBindings }: RbacWorld): Question | undefined {
    const { roleRef, metadata, subjects } = this.one([...clusterRoleBindings, ...roleBindings])
    const kept =
      roleRef.kind === 'Role' ? roles.filter((role) => role.metadata.namespace === metadata.namespace) : clusterRoles
    const rules = kept.find((role) => role.metadata.name === roleRef.name)?.rules
    if (!rules?.length || !subjects?.length) return undefined
    const { verbs, apiGroups = [], resources = [], resourceNames, nonResourceURLs } = this.one(rules)
    const who = this.#named(this.one(subjects), metadata.namespace)
    const verb = this.one(verbs) === '*' ? this.one(VERBS) : this.one(verbs)
    if (nonResourceURLs) {
      const path = this.one(nonResourceURLs).replace(/\*$/, () => this.one(['', 'etcd', '/etcd']))
      return { ...who, nonResourceAttributes: { verb, path } }
    }
    const whole = this.one(resources)
    const [resource = '', subresource] = (
      whole === '*' ? this.one(RESOURCES) : whole.replace(/^\*/, this.one(RESOURCES))
    ).split('/')
    const group = this.one(apiGroups) === '*' ? this.one(API_GROUPS) : this.one(apiGroups)
    const namespace = metadata.namespace ?? this.one(['', ...NAMESPACES])
    const name = resourceNames && this.chance(0.6) ? this.one(resourceNames) : this.one(['', ...NAMES])
    return { ...who, resourceAttributes: { verb, group, resource, subresource: subresource ?? '', namespace, name } }
  }

  #named({ kind, name, namespace }: Subject, home: string | undefined): Somebody {
    if (kind === 'Group') return { user: this.one(USERS), groups: [...this.some(GROUPS, 2), name] }
    const user = kind === 'User' ? name : `system:serviceaccount:${namespace ?? home}:${name}`
    return { user, groups: this.chance(0.5) ? [] : this.some(GROUPS, 2) }
  }

  /** Somebody who holds rules of this world, and rules that are the same or a little more. */
  nearlyHeld({ clusterRoles, clusterRoleBindings }: RbacWorld): { who: Somebody; rules: PolicyRule[] } | undefined {
    const { roleRef, subjects } = this.one(clusterRoleBindings)
    const rules = clusterRoles.find(({ metadata }) => metadata.name === roleRef.name)?.rules
    if (!rules?.length || !subjects?.length) return undefined
    return { who: this.#named(this.one(subjects), undefined), rules: rules.map((rule) => this.#nearly(rule)) }
  }

  #nearly(rule: PolicyRule): PolicyRule {
    const { resourceNames: _, ...unnamed } = rule
    const other = this.rule(true)
    if (rule.nonResourceURLs || other.nonResourceURLs) return this.chance(0.7) ? rule : other
    return this.one([
      rule,
      rule,
      unnamed,
      { ...rule, resourceNames: this.some(NAMES, 2) },
      { ...rule, resources: other.resources ?? [] },
      { ...rule, resources: (rule.resources ?? []).map((each) => (each.includes('/') ? each : `${each}/status`)) },
      { ...rule, verbs: other.verbs },
      { ...rule, apiGroups: other.apiGroups ?? [] },
    ])
  }

  #anyQuestion(): Question {
    const who = this.chance(0.05) ? { user: '', groups: this.some(GROUPS, 2) } : this.somebody()
    const verb = this.chance(0.05) ? this.one(['*', '', 'GET', 'approve']) : this.one(VERBS)
    if (this.chance(0.2)) return { ...who, nonResourceAttributes: { verb, path: this.one(RULE_PATHS) } }
    const [resource = '', subresource = ''] = this.#resource().split('/')
    return {
      ...who,
      resourceAttributes: {
        verb,
        group: this.chance(0.05) ? '*' : this.one(API_GROUPS),
        resource,
        subresource,
        namespace: this.chance(0.3) ? '' : this.one([...NAMESPACES, 'rbac-nowhere', '*']),
        name: this.chance(0.4) ? '' : this.one([...NAMES, '*']),
      },
    }
  }
}

interface Question extends Somebody {
  readonly resourceAttributes?: Readonly<
    Record<'verb' | 'group' | 'resource' | 'subresource' | 'namespace' | 'name', string>
  >
  readonly nonResourceAttributes?: { readonly verb: string; readonly path: string }
}
