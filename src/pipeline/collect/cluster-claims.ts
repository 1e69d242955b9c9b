import type { KubeObject, Resource } from '#kube'
import { listOf } from './fold.ts'
import { fields, text } from './read.ts'
import type { Read } from './types.ts'

const claims: Resource = {
  ...{ group: 'cluster.open-cluster-management.io', version: 'v1alpha1' },
  ...{ plural: 'clusterclaims', kind: 'ClusterClaim', namespaced: false },
}
/** What people and tools claim on a member, where it knows the kind. */
export const clusterClaims = listOf(claims, { isOptional: true })

const namespace: Resource = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', namespaced: false }
/** Its uid is what names a cluster that has no other id (KEP-2149). */
export const kubeSystem: Read<KubeObject> = {
  ...{ resource: namespace, verbs: ['get', 'list'] },
  one: (kube, signal) => kube.get(namespace, { name: 'kube-system' }, signal),
}

const SPOKE_ONLY = 'open-cluster-management.io/spoke-only'

/** name and value; undefined: it is to stay at home */
export function claimOf({ metadata, spec }: KubeObject): readonly [name: string, value: string] | undefined {
  if (metadata.labels?.[SPOKE_ONLY] !== undefined) return undefined
  return [metadata.name, text(fields(spec).value)]
}

const PRODUCTS: readonly (readonly [RegExp, string])[] = [
  [/-eks-/, 'EKS'],
  [/-gke\./, 'GKE'],
  [/\+k3s/, 'K3s'],
  [/\+rke2/, 'RKE2'],
  [/\+IKS/, 'IKS'],
  [/\+k0s/, 'k0s'],
]

/** Which distribution the version of an API server names; undefined: none, which is no word about it. */
export const productOf = (gitVersion: string): string | undefined =>
  PRODUCTS.find(([pattern]) => pattern.test(gitVersion))?.[1]
