import { CredentialLedger } from '#credentials'
import { type ClientPool, type KubeClient, throwOwnClose } from '#kube'
import { type CompiledSource, collectSource } from '#metricsource'
import { type Clock, FleetError, type RowsPart, systemClock } from '#model'
import { accessSecrets, isReachable, serverOf } from './cluster-access.ts'
import { connectionResource } from './connection-resource.ts'
import { poolKey, readConnection, resolveEndpoint } from './endpoint.ts'
import { LocalKubeconfigs } from './local-kubeconfig.ts'
import type { Defaults } from './settings.ts'

/** What trying a MetricSource on a cluster, without declaring it, needs. */
export interface SourceTrialOptions {
  /** the hub's own API, where the connections are */
  readonly hub: KubeClient
  readonly namespace: string
  /** the same as that of the connections: a cluster has one client and one circuit breaker */
  readonly clients: Pick<ClientPool, 'get'>
  readonly defaults: Defaults
  /** as in ConnectionsOptions */
  readonly allowLocalKubeconfig?: boolean
  readonly clock?: Clock
}

/**
 * Reads a cluster once with a source that need be in force nowhere, by the way its ClusterConnection names.
 * @returns undefined: there is no such connection, or it names no way in (an agent pushes)
 * The function it makes throws where its signal aborts, and where the hub's own API cannot be asked.
 */
export function sourceTrial(options: SourceTrialOptions) {
  const { hub, namespace, clients, defaults, allowLocalKubeconfig, clock = systemClock } = options
  const localKubeconfigs = allowLocalKubeconfig ? new LocalKubeconfigs() : undefined
  return async (
    cluster: string,
    source: CompiledSource,
    { limit, signal }: { readonly limit: number; readonly signal: AbortSignal },
  ): Promise<RowsPart | undefined> => {
    const object = await hub.get(connectionResource, { name: cluster, namespace }, signal)
    if (!object || object.metadata.deletionTimestamp) return undefined
    const { connection, settings, fault } = readConnection(object, defaults, true)
    if (fault || !isReachable(connection.spec)) return undefined
    const secret = (key: { name: string; namespace?: string }) => hub.get(accessSecrets, key, signal)
    const ledger = new CredentialLedger('ClusterConnection', serverOf)
    const items = await hub.listAll(connectionResource, { namespace, signal })
    ledger.see({ type: 'reset', items, resourceVersion: '' })
    const inputs = { namespace, secret, ledger, ...(localKubeconfigs && { localKubeconfigs }) }
    const endpoint = await resolveEndpoint(connection, inputs, signal)
    const failed = ({ code, message }: { readonly code: string; readonly message: string }): RowsPart => ({
      source: source.id,
      hash: source.hash,
      durationMs: 0,
      outcome: 'unreachable',
      code,
      message,
    })
    if ('end' in endpoint) return failed(endpoint.end)
    let kube: KubeClient
    try {
      const { timeoutMs } = settings.facts
      kube = await clients.get(poolKey(object.metadata), endpoint.access, { timeoutMs }, signal)
    } catch (error) {
      signal.throwIfAborted()
      throwOwnClose(error)
      return failed(FleetError.from(error))
    }
    return collectSource({ kube, source, limit, signal, clock })
  }
}
