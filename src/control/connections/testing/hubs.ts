import { clusterConnection } from '#kinds'
import type { KubeClient, KubeObject } from '#kube'
import { type HubApi, hubApis } from '../../../../test/hub-apis.ts'
import { connectionResource } from '../connection-resource.ts'

export const HUB_NAMESPACE = 'clusterpulse'

export type TestApi = HubApi
export const { both: apis } = hubApis({ kinds: [clusterConnection] })

/** A connection in push mode that the hub cannot reach, unless `spec` says otherwise. */
export function declare(kube: KubeClient, name: string, spec: object = {}): Promise<KubeObject> {
  return kube.create(connectionResource, {
    apiVersion: clusterConnection.apiVersion,
    kind: clusterConnection.kind,
    metadata: { name, namespace: HUB_NAMESPACE },
    spec: { collectionMode: 'push', ...spec },
  })
}
