import { createKubeClient } from './client.ts'
import { KubeError } from './errors.ts'
import { fieldsOf, listOf, textOf } from './facts.ts'
import type { ClusterAccess, KubeObject } from './types.ts'

const DEFAULT_PORT = 10_250

/** Where the kubelet of a node listens: at the node's own address. @returns undefined where the node has none */
export function kubeletUrl({ status }: KubeObject): string | undefined {
  const { addresses, daemonEndpoints } = fieldsOf(status)
  const { Port: port } = fieldsOf(fieldsOf(daemonEndpoints).kubeletEndpoint)
  const address = listOf(addresses)
    .map(fieldsOf)
    .find(({ type }) => type === 'InternalIP')
  const host = textOf(address?.address)
  if (host === '') return undefined
  return `https://${host.includes(':') ? `[${host}]` : host}:${typeof port === 'number' && port > 0 ? port : DEFAULT_PORT}`
}

/**
 * Reads the summary of a kubelet at its own port, with the credentials of an access into its cluster.
 * @param verifyTls false: whoever answers at the address of a node gets those credentials
 */
export function kubeletSummaries({ ca, credentials }: Pick<ClusterAccess, 'ca' | 'credentials'>, verifyTls: boolean) {
  return async (node: KubeObject, timeoutMs: number, signal: AbortSignal): Promise<unknown> => {
    const server = kubeletUrl(node)
    if (server === undefined)
      throw new KubeError('invalid', 'the node has no InternalIP, at which its kubelet would be asked')
    // A connection kept to every kubelet would cost more than the handshake.
    await using kubelet = createKubeClient(
      { server, ...(ca !== undefined && { ca }), verifyTls, credentials },
      { timeoutMs },
    )
    return await kubelet.request('GET', '/stats/summary', { signal })
  }
}
