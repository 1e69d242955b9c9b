import { isKubeError, type KubeClient, type Resource } from '#kube'
import type { ResourceTarget } from '../types.ts'
import { type Patience, patiently } from './pages.ts'

/**
 * What the objects of a source are called on this cluster, and whether they live in namespaces: the cluster's own word counts
 * more than the declaration's. Where the cluster does not tell us, the declaration's, or the guess, is tried.
 * @returns undefined: the cluster does not serve them
 * @throws KubeError where the cluster cannot be asked, other than by being forbidden to
 */
export async function servedAs(
  kube: KubeClient,
  target: ResourceTarget,
  patience: Patience,
): Promise<Resource | undefined> {
  const { group, version, kind, plural, isPluralDeclared } = target
  const declared: Resource = { group, version, kind, plural, namespaced: target.scope === 'Namespaced' }
  const { signal } = patience
  try {
    const found = await patiently(() => kube.find(group, version, kind, signal), patience)
    if (!isPluralDeclared || found?.plural === plural) return found && { ...declared, ...found }
    // Two resources may share a kind; the one that is named is meant.
    return (await patiently(() => kube.serves(declared, signal), patience)) ? declared : undefined
  } catch (error) {
    if (isKubeError(error, 'forbidden')) return declared
    throw error
  }
}

/** As people name it: `certificates.cert-manager.io/v1`, `Certificate of cert-manager.io/v1`. */
export function nameOf({ isPluralDeclared, plural, kind, apiVersion }: ResourceTarget): string {
  return isPluralDeclared ? `${kind} (${plural}) of ${apiVersion}` : `${kind} of ${apiVersion}`
}
