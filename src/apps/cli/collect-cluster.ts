import type { NamespaceFacts } from '#extract'
import {
  type CompiledTarget,
  collectTarget,
  type Declarations,
  declaredIn,
  type Target,
  type TargetResult,
  underScopes,
} from '#inventory'
import { type ClusterAccess, createKubeClient, isKubeError, type KubeClient, KubeError, type Resource } from '#kube'
import { seconds } from '#model'

/** What came of one cluster. */
export interface ClusterResult {
  /** name of its context */
  readonly cluster: string
  readonly targets: readonly TargetResult[]
  /** why nothing was read at all */
  readonly failure?: string
}

export interface ClusterWish {
  readonly cluster: string
  readonly access: ClusterAccess
  /** of files; absent: what the cluster itself declares */
  readonly declared: Declarations | undefined
  readonly namespace: string | undefined
  readonly signal: AbortSignal
  readonly onProgress: (text: string) => void
}

/** Namespaces with what targets choose them by. */
const namespaces: Resource<NamespaceFacts> = {
  ...{ group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', namespaced: false },
  fromJson: ({ metadata: { name, labels = {}, annotations = {} } }) => ({ name, labels, annotations }),
}

/** Reads every target of one cluster. Never throws but for the signal: what is wrong with a cluster is its result. */
export async function collectCluster({
  cluster,
  access,
  declared,
  namespace,
  signal,
  onProgress,
}: ClusterWish): Promise<ClusterResult> {
  try {
    await using kube = createKubeClient(access, { timeoutMs: seconds(30) })
    await kube.version(signal)
    const missing = namespace === undefined ? undefined : await missingNamespace(kube, namespace, signal)
    if (missing !== undefined) return { cluster, targets: [], failure: missing }
    const declarations = declared ?? (await declaredIn(kube, namespace, signal))
    if (typeof declarations === 'string') return { cluster, targets: [], failure: declarations }
    const targets = targetsOf(declarations)
    if (targets.length === 0)
      return { cluster, targets: [], failure: 'no KollectTarget is declared: there is nothing to collect' }
    const namespacesFor = namespaceReader(kube, signal)
    const results: TargetResult[] = []
    for (const target of targets) {
      const { title } = target
      if (!isWhole(target)) {
        results.push({ title, kind: '', state: 'invalid', rows: [], failed: 0, notes: [target.missing] })
        continue
      }
      const { namespace: own } = target.key
      const scopes =
        own === '' ? declarations.clusterScopes : declarations.scopes.filter((one) => one.namespace === own)
      results.push(
        await collectTarget(target, {
          ...{ kube, namespacesFor, namespace, signal },
          // Whoever collects reads with rights of their own.
          ceiling: (wanted) => underScopes(scopes, wanted),
          onObjects: (count) => onProgress(`${cluster}: ${title}: ${count} objects read`),
        }),
      )
    }
    return { cluster, targets: results }
  } catch (error) {
    signal.throwIfAborted()
    if (!(error instanceof KubeError)) throw error
    return { cluster, targets: [], failure: error.message }
  }
}

/** A namespace that is not there must not pass for an empty one. Where namespaces may not be read, the lists tell. */
async function missingNamespace(kube: KubeClient, name: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    if (await kube.get(namespaces, { name }, signal)) return undefined
    return `there is no namespace ${name}: check how it is written`
  } catch (error) {
    if (isKubeError(error, 'forbidden')) return undefined
    throw error
  }
}

/** A target whose profile is not there. */
interface Orphan {
  readonly title: string
  readonly missing: string
}
const isWhole = (target: Target | Orphan): target is Target => 'profile' in target

function targetsOf({ profiles, targets, clusterTargets }: Declarations): readonly (Target | Orphan)[] {
  const joined = (
    title: string,
    key: Target['key'],
    spec: Target['spec'],
    ref: { name: string; namespace: string },
  ) => {
    const profile = profiles.find((one) => one.name === ref.name && one.namespace === ref.namespace)
    if (!profile) return { title, missing: `the KollectProfile ${ref.namespace}/${ref.name} is not there` }
    return { title, key, spec, profile }
  }
  return [
    ...targets.map(({ name, namespace, spec }) =>
      joined(`${namespace}/${name}`, { namespace, name }, spec, { name: spec.profileRef, namespace }),
    ),
    ...clusterTargets.map(({ name, spec }) => joined(name, { namespace: '', name }, spec, spec.profileRef)),
  ]
}

/** Lists the namespaces once; where that is not allowed, asks for those that are named. */
function namespaceReader(
  kube: KubeClient,
  signal: AbortSignal,
): (compiled: CompiledTarget, target: Target) => Promise<readonly NamespaceFacts[]> {
  let all: Promise<readonly NamespaceFacts[]> | undefined
  return async ({ needsNamespaces }, { spec, key: { namespace } }) => {
    all ??= kube.listAll(namespaces, { signal })
    try {
      return await all
    } catch (error) {
      const named = spec.includedNamespaces?.length ? spec.includedNamespaces : namespace === '' ? [] : [namespace]
      if (needsNamespaces || named.length === 0) throw error
      const found = await Promise.all(named.map((name) => kube.get(namespaces, { name }, signal)))
      return found.filter((one) => one !== undefined)
    }
  }
}
