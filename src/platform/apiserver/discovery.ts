import { reviewKinds } from './reviews.ts'
import { groupVersion, type Resource, type ServedResources } from './served.ts'

const VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'] as const
const SUB_VERBS = ['get', 'patch', 'update'] as const

/** Something the API offers under a name: a resource, a subresource, a review. */
interface Entry {
  readonly name: string
  readonly singularName: string
  readonly namespaced: boolean
  readonly kind: string
  readonly verbs: readonly string[]
  readonly group?: string
  readonly version?: string
  readonly shortNames?: readonly string[]
  readonly categories?: readonly string[]
}

function verbsOf(resource: Resource): readonly string[] {
  if (resource.list) return ['get', 'list']
  return resource.collection === '/namespaces' ? VERBS.filter((verb) => verb !== 'deletecollection') : VERBS
}

function entriesOf(resource: Resource): Entry[] {
  const { plural, singular, kind, namespaced, shortNames, categories } = resource
  const entries: Entry[] = [
    {
      name: plural,
      singularName: singular,
      namespaced,
      kind,
      verbs: verbsOf(resource),
      ...(shortNames.length > 0 ? { shortNames } : {}),
      ...(categories.length > 0 ? { categories } : {}),
    },
  ]
  const sub = { singularName: '', namespaced, kind }
  if (resource.collection === '/namespaces') entries.push({ ...sub, name: `${plural}/finalize`, verbs: ['update'] })
  if (resource.collection === '/serviceaccounts')
    entries.push({
      ...sub,
      name: `${plural}/token`,
      kind: 'TokenRequest',
      group: 'authentication.k8s.io',
      version: 'v1',
      verbs: ['create'],
    })
  if (resource.scale)
    entries.push({
      ...sub,
      name: `${plural}/scale`,
      kind: 'Scale',
      group: 'autoscaling',
      version: 'v1',
      verbs: SUB_VERBS,
    })
  if (resource.approval) entries.push({ ...sub, name: `${plural}/approval`, verbs: SUB_VERBS })
  if (resource.status) entries.push({ ...sub, name: `${plural}/status`, verbs: SUB_VERBS })
  return entries
}

interface GroupVersion {
  readonly group: string
  readonly version: string
}

interface VersionEntries extends GroupVersion {
  readonly entries: readonly Entry[]
}

/**
 * Every group and version with what it offers; the order of versions is that of preference.
 * @param isWanted default: all are
 */
export function versionsOf(
  served: ServedResources,
  isWanted: (one: GroupVersion) => boolean = () => true,
): VersionEntries[] {
  const byVersion = new Map<string, { group: string; version: string; entries: Entry[] }>()
  const into = (group: string, version: string) => {
    const key = groupVersion({ group, version })
    const found = byVersion.get(key) ?? { group, version, entries: [] }
    byVersion.set(key, found)
    return found.entries
  }
  for (const resource of served.all().filter(isWanted))
    into(resource.group, resource.version).push(...entriesOf(resource))
  for (const { group, version, plural, kind, namespaced } of reviewKinds.filter(isWanted))
    into(group, version).push({
      name: plural,
      singularName: kind.toLowerCase(),
      namespaced,
      kind,
      verbs: ['create'],
    })
  const versions = [...byVersion.values()]
  for (const { entries } of versions) entries.sort((a, b) => (a.name < b.name ? -1 : 1))
  return versions.sort((a, b) => compare(a.group, b.group) || compareVersions(a.version, b.version))
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** Kubernetes' order: stable before beta before alpha, newer before older, everything else by name after them. */
export function compareVersions(a: string, b: string): number {
  const rank = (version: string): readonly number[] => {
    const match = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version)
    if (!match) return [0, 0, 0]
    const [, major, stage, minor] = match
    return [stage === undefined ? 3 : stage === 'beta' ? 2 : 1, Number(major), Number(minor ?? 0)]
  }
  const left = rank(a)
  const right = rank(b)
  for (let at = 0; at < 3; at++) {
    const difference = (right[at] ?? 0) - (left[at] ?? 0)
    if (difference !== 0) return difference
  }
  return compare(a, b)
}

function groups(served: ServedResources): Map<string, VersionEntries[]> {
  const byGroup = new Map<string, VersionEntries[]>()
  for (const version of versionsOf(served)) byGroup.set(version.group, [...(byGroup.get(version.group) ?? []), version])
  return byGroup
}

function groupDocument(name: string, versions: readonly VersionEntries[]): object {
  const list = versions.map((each) => ({ groupVersion: groupVersion(each), version: each.version }))
  return { name, versions: list, preferredVersion: list[0] }
}

export const coreVersions = (host: string): object => ({
  kind: 'APIVersions',
  versions: ['v1'],
  serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress: host }],
})

export const groupList = (served: ServedResources): object => ({
  kind: 'APIGroupList',
  apiVersion: 'v1',
  groups: [...groups(served)].filter(([name]) => name !== '').map(([name, versions]) => groupDocument(name, versions)),
})

export function groupOf(served: ServedResources, name: string): object | undefined {
  const versions = groups(served).get(name)
  return versions && { kind: 'APIGroup', apiVersion: 'v1', ...groupDocument(name, versions) }
}

export function resourceList(served: ServedResources, group: string, version: string): object | undefined {
  const [found] = versionsOf(served, (one) => one.group === group && one.version === version)
  return (
    found && {
      kind: 'APIResourceList',
      apiVersion: 'v1',
      groupVersion: groupVersion(found),
      resources: found.entries,
    }
  )
}

/** apidiscovery.k8s.io: everything at once, which is what kubectl asks for first. */
export function aggregated(served: ServedResources, core: boolean, version: string): object {
  return {
    kind: 'APIGroupDiscoveryList',
    apiVersion: `apidiscovery.k8s.io/${version}`,
    metadata: {},
    items: [...groups(served)]
      .filter(([name]) => (name === '') === core)
      .map(([name, versions]) => ({
        metadata: name ? { name, creationTimestamp: null } : { creationTimestamp: null },
        versions: versions.map((each) => ({
          version: each.version,
          resources: aggregatedResources(each),
          freshness: 'Current',
        })),
      })),
  }
}

function aggregatedResources({ group, version, entries }: VersionEntries): object[] {
  const responseKind = (entry: Entry) => ({
    group: entry.group ?? group,
    version: entry.version ?? version,
    kind: entry.kind,
  })
  return entries
    .filter(({ name }) => !name.includes('/'))
    .map((entry) => {
      const subresources = entries
        .filter(({ name }) => name.startsWith(`${entry.name}/`))
        .map((sub) => ({
          subresource: sub.name.slice(entry.name.length + 1),
          responseKind: responseKind(sub),
          verbs: sub.verbs,
        }))
      return {
        resource: entry.name,
        responseKind: responseKind(entry),
        scope: entry.namespaced ? 'Namespaced' : 'Cluster',
        singularResource: entry.singularName,
        verbs: entry.verbs,
        ...(entry.shortNames ? { shortNames: entry.shortNames } : {}),
        ...(entry.categories ? { categories: entry.categories } : {}),
        ...(subresources.length > 0 ? { subresources } : {}),
      }
    })
}
