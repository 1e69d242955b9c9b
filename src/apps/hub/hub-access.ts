import { accessForContext, type ClusterAccess, inClusterAccess, loadKubeconfig } from '#kube'
import { FleetError } from '#model'

class NoHubError extends FleetError {
  override readonly name = 'NoHubError'
  readonly code = 'no_hub'
  readonly retryable = false
}

/** How the hub's own API server is reached: by the kubeconfig named, else by the account of the pod. @throws NoHubError */
export async function hubAccess(kubeconfig: string | undefined): Promise<ClusterAccess> {
  if (kubeconfig !== undefined) return accessForContext(await loadKubeconfig([kubeconfig]))
  const inCluster = await inClusterAccess()
  if (inCluster) return inCluster.access
  throw new NoHubError(
    'there is no hub cluster: give its kubeconfig with --kubeconfig or KUBECONFIG, or run in a pod with a service account',
  )
}
