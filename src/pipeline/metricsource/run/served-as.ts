import { isKubeError, type KubeClient, type Resource } from '#kube'
import type { ResourceTarget } from '../types.ts'

/** The resource as it is declared, or guessed. */
export function declaredResource({ group, version, kind, plural, scope, fromProtobuf }: ResourceTarget): Resource {
  const named = { group, version, kind, plural, namespaced: scope === 'Namespaced' }
  return { ...named, ...(fromProtobuf && { fromProtobuf }) }
}

/**
 * What the objects of a source are called on this cluster, and whether they live in namespaces: the cluster's own word counts
 * more than the declaration's. Where the cluster does not tell us, the declaration's, or the guess, is tried.
 * @returns undefined: the cluster does not serve them
 * @throws KubeError where the cluster cannot be asked, other than by being forbidden to
 */
export async function servedAs(
  kube: KubeClient,
  target: ResourceTarget,
  signal: AbortSignal,
): Promise<Resource | undefined> {
  const { group, version, kind, plural, isPluralDeclared } = target
  const declared = declaredResource(target)
  try {
    const found = await kube.find(group, version, kind, signal)
    if (!isPluralDeclared || found?.plural === plural) return found && { ...declared, ...found }
    // Two resources may share a kind; the one that is named is meant.
    return (await kube.serves(declared, signal)) ? declared : undefined
  } catch (error) {
    if (isKubeError(error, 'forbidden')) return declared
    throw error
  }
}

/** As people name it: `certificates.cert-manager.io/v1`, `Certificate of cert-manager.io/v1`. */
export function nameOf({ isPluralDeclared, plural, kind, apiVersion }: ResourceTarget): string {
  return isPluralDeclared ? `${kind} (${plural}) of ${apiVersion}` : `${kind} of ${apiVersion}`
}
