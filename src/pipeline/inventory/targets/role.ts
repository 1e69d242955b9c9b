import type { GroupVersionKind } from '#kinds'
import type { ServedKind } from '#kube'
import { inventoryResources } from '../objects.ts'
import type { TargetSpec } from './compile.ts'
import type { Declarations } from './declared.ts'

/** Rights of one namespace, or of the cluster where it is ''. */
export interface NeededRole {
  readonly namespace: string
  readonly rules: readonly NeededRule[]
}

/** A rule as RBAC has it. */
export interface NeededRule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly verbs: readonly string[]
}

/** A sink, as far as it names Secrets. */
export interface SinkToRead {
  readonly namespace: string
  readonly spec: unknown
}

const READ = ['get', 'list', 'watch']

const kindKey = ({ group = '', version, kind }: GroupVersionKind): string => `${group}/${version}/${kind}`

/** Every kind that targets read, once. */
export function kindsOf({ profiles, targets, clusterTargets }: Declarations): readonly GroupVersionKind[] {
  const all = [...targets, ...clusterTargets].flatMap(({ spec, namespace }) => kindsOfTarget(spec, namespace, profiles))
  return [...new Map(all.map((gvk) => [kindKey(gvk), gvk])).values()]
}

/**
 * The least that an agent must be allowed for what is declared: to list and watch each kind, in the namespaces that targets name or over
 * the cluster where they choose by labels; and to get each Secret that a sink names. Sorted: equal declarations give equal roles.
 * @param served what kinds are called; those that the cluster does not have are left out
 * @param only an agent of these namespaces alone: nothing elsewhere, and what it needs whatever is declared
 */
export function neededRoles(
  declared: Declarations,
  sinks: readonly SinkToRead[],
  served: (gvk: GroupVersionKind) => ServedKind | undefined,
  only?: readonly string[],
): readonly NeededRole[] {
  const reads = new Map<string, Set<string>>()
  const add = (namespace: string, text: string) => {
    const of = reads.get(namespace) ?? new Set()
    reads.set(namespace, of.add(text))
  }
  for (const { spec, namespace } of [...declared.targets, ...declared.clusterTargets])
    for (const gvk of kindsOfTarget(spec, namespace, declared.profiles)) {
      const found = served(gvk)
      if (!found) continue
      const wanted = found.namespaced ? namespacesOf(spec, namespace) : ['']
      const isWide = found.namespaced && wanted.includes('')
      for (const where of only ? only.filter((one) => isWide || wanted.includes(one)) : wanted)
        add(where, JSON.stringify([gvk.group ?? '', found.plural]))
    }
  // What may be read everywhere need not be said of each namespace.
  const everywhere = reads.get('') ?? new Set()
  for (const [namespace, of] of reads) if (namespace !== '') for (const text of everywhere) of.delete(text)
  const secrets = new Map<string, Set<string>>()
  for (const { namespace, spec } of sinks)
    for (const name of secretsIn(spec)) secrets.set(namespace, (secrets.get(namespace) ?? new Set()).add(name))
  return [...new Set([...(only ?? [...reads.keys(), ...secrets.keys()])])].sort().flatMap((namespace) => {
    const rules = [
      ...(only ? ownRules('namespace') : []),
      ...rulesOf(reads.get(namespace) ?? new Set()),
      ...secretRules(secrets.get(namespace) ?? new Set()),
    ]
    return rules.length > 0 ? [{ namespace, rules }] : []
  })
}

/** What an agent needs whatever is declared: the objects of inventory, what it says in them and of them, and namespaces. */
export function ownRules(of: 'cluster' | 'namespace'): readonly NeededRule[] {
  const all = Object.values(inventoryResources).filter(({ namespaced }) => namespaced || of === 'cluster')
  const written = all.map(({ plural }) => plural).filter((plural) => !/(profiles|scopes)$/.test(plural))
  const kollect = { apiGroups: [inventoryResources.targets.group] }
  return [
    { ...kollect, resources: of === 'cluster' ? ['*'] : all.map(({ plural }) => plural).sort(), verbs: READ },
    // Finalizers, annotations that are answered, and statuses.
    { ...kollect, resources: written.flatMap((plural) => [plural, `${plural}/status`]).sort(), verbs: ['patch'] },
    // Tests go when their time to live has passed.
    { ...kollect, resources: ['kollectconnectiontests'], verbs: ['delete'] },
    { apiGroups: [''], resources: ['namespaces'], verbs: of === 'cluster' ? READ : ['get'] },
    { apiGroups: [''], resources: ['events'], verbs: ['create'] },
  ]
}

function rulesOf(reads: ReadonlySet<string>): NeededRule[] {
  const byGroup = new Map<string, string[]>()
  for (const text of [...reads].sort()) {
    const [group, plural] = JSON.parse(text) as [string, string] // written above
    byGroup.set(group, [...(byGroup.get(group) ?? []), plural])
  }
  return [...byGroup].map(([group, resources]) => ({ apiGroups: [group], resources, verbs: ['list', 'watch'] }))
}

const secretRules = (names: ReadonlySet<string>): NeededRule[] =>
  names.size === 0
    ? []
    : [{ apiGroups: [''], resources: ['secrets'], resourceNames: [...names].sort(), verbs: ['get'] }]

function kindsOfTarget(
  { profileRef, resourceRules = [] }: TargetSpec,
  own: string,
  profiles: Declarations['profiles'],
): readonly GroupVersionKind[] {
  if (resourceRules.length > 0) return resourceRules.map(({ gvk }) => gvk)
  const ref = typeof profileRef === 'string' ? { name: profileRef, namespace: own } : profileRef
  return profiles
    .filter(({ name, namespace }) => name === ref.name && namespace === ref.namespace)
    .map(({ spec }) => spec.targetGVK)
}

/** The namespaces a target names; [''] where it chooses by labels. */
function namespacesOf({ includedNamespaces = [], namespaceSelector }: TargetSpec, own: string): readonly string[] {
  if (includedNamespaces.length > 0) return includedNamespaces
  return namespaceSelector === undefined && own !== '' ? [own] : ['']
}

/** Names of the Secrets that a spec refers to, wherever in it. */
function secretsIn(spec: unknown): readonly string[] {
  if (typeof spec !== 'object' || spec === null) return []
  return Object.entries(spec).flatMap(([key, value]) => {
    const { name } = (value ?? {}) as { readonly name?: unknown }
    return /(secret|database)Ref$/i.test(key) && typeof name === 'string' ? [name] : secretsIn(value)
  })
}
