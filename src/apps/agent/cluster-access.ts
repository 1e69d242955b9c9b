import { accessForContext, type ClusterAccess, inClusterAccess, loadKubeconfig } from '#kube'
import { FleetError } from '#model'
import type { AgentConfig } from './config.ts'

class NoClusterAccessError extends FleetError {
  override readonly name = 'NoClusterAccessError'
  readonly code = 'no_cluster_access'
  readonly retryable = false
}

/** The way into the cluster that the agent is of. @throws NoClusterAccessError, and as loadKubeconfig */
export async function clusterAccess({
  kubeconfig,
  context,
}: Pick<AgentConfig, 'kubeconfig' | 'context'>): Promise<ClusterAccess> {
  if (kubeconfig !== undefined) return accessForContext(await loadKubeconfig([kubeconfig]), context)
  const inCluster = await inClusterAccess()
  if (inCluster) return inCluster.access
  throw new NoClusterAccessError(
    'there is no way into a cluster: name a kubeconfig with KUBECONFIG, or run in a pod with a service account',
  )
}
