import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { accessForContext, type ClusterAccess, inClusterAccess, loadKubeconfig } from '#kube'
import { type ClusterName, FleetError, parseClusterName } from '#model'
import type { Env } from './config.ts'

/** How a command finds the objects of a hub. */
export interface HubObjectsOptions {
  readonly kubeconfig?: string
  readonly environment: Env
}

/** What is wrong with how a command about a cluster was called, or with the hub it was called for. */
export class ConnectError extends FleetError {
  override readonly name = 'ConnectError'
  readonly retryable = false
  readonly code:
    | 'no_hub'
    | 'no_address'
    | 'no_tls'
    | 'no_members'
    | 'invalid_cluster'
    | 'invalid_rights'
    | 'unknown_cluster'
    | 'monitored_already'
    | 'leaving'

  constructor(code: ConnectError['code'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** Where the objects of the hub are: its kubeconfig, else that of a hub started here, else KUBECONFIG, else the pod's own cluster. */
export async function hubAccess({ kubeconfig, environment }: HubObjectsOptions): Promise<ClusterAccess> {
  const ofUp = join(environment.DATA_DIR ?? './data', 'kubeconfig')
  const file = kubeconfig ?? (existsSync(ofUp) ? ofUp : environment.KUBECONFIG)
  if (file !== undefined && file !== '') return accessForContext(await loadKubeconfig([file]))
  const inCluster = await inClusterAccess()
  if (inCluster) return inCluster.access
  throw new ConnectError(
    'no_hub',
    `there are no objects of a hub: neither ${ofUp} of a hub started with \`clusterpulse up\`, nor KUBECONFIG; give --kubeconfig`,
  )
}

/** @throws ConnectError where it cannot be the name of a cluster */
export function clusterNameOf(text: string): ClusterName {
  try {
    return parseClusterName(text)
  } catch (error) {
    throw new ConnectError(
      'invalid_cluster',
      `${JSON.stringify(text)} is no name of a cluster: lower-case letters, digits, - and . only, at most 253`,
      { cause: error },
    )
  }
}
