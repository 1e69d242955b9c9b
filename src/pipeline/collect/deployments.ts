import type { KubeObject, Resource } from '#kube'
import type { DeploymentSnapshot } from '#model'
import { count, fields } from './read.ts'
import type { Collector } from './types.ts'

const deployments: Resource<DeploymentSnapshot> = {
  group: 'apps',
  version: 'v1',
  plural: 'deployments',
  kind: 'Deployment',
  namespaced: true,
  fromJson: deploymentSnapshot,
}

/** Deployments of one cluster, as numbers of replicas. */
export const deploymentCollector: Collector = {
  name: 'deployments',
  types: ['deployment'],
  reads: [deployments],
  critical: false,
  everyMs: 0,
  async collect({ kube }, signal) {
    return { deployment: await kube.listAll(deployments, { signal }) }
  },
}

export function deploymentSnapshot(object: KubeObject): DeploymentSnapshot {
  const { name, namespace = '' } = object.metadata
  const { replicas } = fields(object.spec)
  const status = fields(object.status)
  return {
    name: `${namespace}/${name}`,
    namespace,
    replicas: replicas === undefined ? 1 : count(replicas), // absent means one
    ready: count(status.readyReplicas),
    available: count(status.availableReplicas),
    updated: count(status.updatedReplicas),
  }
}
