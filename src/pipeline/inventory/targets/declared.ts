import {
  type KollectClusterScopeSpec,
  type KollectClusterTargetSpec,
  type KollectProfile,
  type KollectScopeSpec,
  type KollectTargetSpec,
  kollectClusterScope,
  kollectClusterTarget,
  kollectProfile,
  kollectScope,
  kollectTarget,
} from '#kinds'
import { isKubeError, type KubeClient, type KubeObject, outcomeOf, type Resource } from '#kube'

/** What is to be collected: of files, the same for every cluster, or of the cluster itself. */
export interface Declarations {
  readonly profiles: readonly Declared<KollectProfile['spec']>[]
  readonly targets: readonly Declared<KollectTargetSpec>[]
  readonly clusterTargets: readonly Declared<KollectClusterTargetSpec>[]
  readonly scopes: readonly Declared<KollectScopeSpec>[]
  readonly clusterScopes: readonly Declared<KollectClusterScopeSpec>[]
}

/** One object, as far as it is needed. */
export interface Declared<Spec> {
  readonly name: string
  /** '' for objects of the cluster */
  readonly namespace: string
  readonly annotations: Readonly<Record<string, string>>
  readonly spec: Spec
  readonly generation?: number
  /** what was said of it last, also by earlier starts; absent: nothing ever was */
  readonly said?: {
    /** rows it had */
    readonly count: number
    /** why it was not read; absent: it was */
    readonly degraded?: string
  }
}

/** Objects of inventory by their kinds; others are passed over. */
export function declarationsOf(objects: readonly KubeObject[]): Declarations {
  // Whoever calls has checked them against their schemas.
  const of = <Spec>({ definition: { kind } }: { readonly definition: { readonly kind: string } }) =>
    objects
      .filter((object) => object.kind === kind)
      .map(({ metadata, spec }) => ({
        name: metadata.name,
        namespace: metadata.namespace ?? '',
        annotations: metadata.annotations ?? {},
        spec: spec as Spec,
      }))
  return {
    profiles: of(kollectProfile),
    targets: of(kollectTarget),
    clusterTargets: of(kollectClusterTarget),
    scopes: of(kollectScope),
    clusterScopes: of(kollectClusterScope),
  }
}

const KINDS = [kollectProfile, kollectTarget, kollectClusterTarget, kollectScope, kollectClusterScope].map(
  ({ definition }) => definition,
)

/**
 * What is declared in a cluster.
 * @param namespace only there; absent: in all
 * @returns a sentence where the cluster has no such kinds, or does not let us read them
 * @throws KubeError where the cluster cannot be reached
 */
export async function declaredIn(
  kube: KubeClient,
  namespace: string | undefined,
  signal: AbortSignal,
): Promise<Declarations | string> {
  const objects: KubeObject[] = []
  for (const { group, version, kind, plural, scope } of KINDS) {
    const resource: Resource = { group, version, plural, kind, namespaced: scope !== 'Cluster' }
    if (!(await kube.serves(resource, signal))) {
      if (kind !== kollectTarget.definition.kind && kind !== kollectProfile.definition.kind) continue
      return `the cluster does not have ${plural}.${group}: name files of them with --config, or install the kinds (\`clusterpulse crds --kollect | kubectl apply -f -\`)`
    }
    try {
      const where = resource.namespaced && namespace !== undefined ? { namespace } : {}
      for (const object of await kube.listAll(resource, { ...where, signal })) objects.push({ ...object, kind })
    } catch (error) {
      if (!isKubeError(error) || outcomeOf(error) !== 'forbidden') throw error
      return `${plural}.${group} may not be read${namespace === undefined ? ' in all namespaces: name one with --namespace' : ` in ${namespace}`}, or name files with --config`
    }
  }
  return declarationsOf(objects)
}
