import { type Collector, clusterRoleFor, type RoleRule } from '#collect'
import type { KubeClient } from '#kube'
import type { ResourceDescriptor } from '#metricsource'

/** What one kind of row reads, before a member said what it calls it. */
export interface SourceReads {
  readonly group: string
  readonly version: string
  readonly kind: string
  /** as declared, else guessed */
  readonly plural: string
  readonly isPluralDeclared: boolean
  readonly watch: boolean
}

/** What an agent may read of one resource. */
export interface RoleRead {
  readonly group: string
  readonly plural: string
  readonly watch: boolean
}

/** What sources read, each once, in an order of its own: equal sets of sources give equal reads. */
export function readsOf(sources: readonly ResourceDescriptor[]): readonly SourceReads[] {
  const reads = new Map<string, SourceReads>()
  for (const { group, version, kind, plural, isPluralDeclared, collection } of sources.flatMap(
    ({ targets, collection }) => targets.map((target) => ({ ...target, collection })),
  )) {
    const key = JSON.stringify([group, version, kind, plural, isPluralDeclared])
    const watch = collection.watch || reads.get(key)?.watch === true
    reads.set(key, { group, version, kind, plural, isPluralDeclared, watch })
  }
  return [...reads].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, read]) => read)
}

/** As the member calls it; as declared or guessed where it does not say. Never throws but for an abort. */
export async function resolvedReads(
  kube: Pick<KubeClient, 'find'>,
  reads: readonly SourceReads[],
  signal: AbortSignal,
): Promise<readonly RoleRead[]> {
  const resolved: RoleRead[] = []
  for (const { group, version, kind, plural, isPluralDeclared, watch } of reads) {
    let found: string | undefined
    try {
      found = isPluralDeclared ? undefined : (await kube.find(group, version, kind, signal))?.plural
    } catch {
      signal.throwIfAborted() // else the guess must do: what follows tells whether the member answers
    }
    resolved.push({ group, plural: found ?? plural, watch })
  }
  return resolved
}

/**
 * The least an agent must be allowed: what its collectors read, and what MetricSources read. Never Secrets, whatever a source
 * says: nobody shall give away more by a MetricSource than by a policy.
 */
export function agentRole(collectors: readonly Collector[], reads: readonly RoleRead[]): readonly RoleRule[] {
  const base = clusterRoleFor(collectors)
  const wanted = reads.filter(({ group, plural }) => !(group === '' && plural === 'secrets'))
  const groups = [...new Set([...base.flatMap(({ apiGroups }) => apiGroups), ...wanted.map(({ group }) => group)])]
  return groups.sort().flatMap((group) => {
    const ofGroup = wanted.filter((read) => read.group === group)
    const watched = new Set(ofGroup.filter(({ watch }) => watch).map(({ plural }) => plural))
    const known = base.filter(({ apiGroups }) => apiGroups.includes(group)).flatMap(({ resources }) => resources)
    const read = new Set([...known, ...ofGroup.map(({ plural }) => plural)].filter((plural) => !watched.has(plural)))
    return [rule(group, read, ['get', 'list']), rule(group, watched, ['get', 'list', 'watch'])].filter(
      ({ resources }) => resources.length > 0,
    )
  })
}

const rule = (group: string, plurals: ReadonlySet<string>, verbs: readonly string[]): RoleRule => ({
  apiGroups: [group],
  resources: [...plurals].sort(),
  verbs,
})
