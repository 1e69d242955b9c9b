import { type DeploymentFacts, deployments } from '#kube'
import type { DeploymentSnapshot } from '#model'
import type { Collector } from './types.ts'

/** Deployments of one cluster, as numbers of replicas. */
export const deploymentCollector: Collector = {
  name: 'deployments',
  types: ['deployment'],
  reads: [deployments],
  critical: false,
  everyMs: 0,
  async collect({ kube }, signal) {
    const found = await kube.listAll(deployments, { signal })
    return { deployment: found.map(deploymentSnapshot) }
  },
}

export function deploymentSnapshot(facts: DeploymentFacts): DeploymentSnapshot {
  return { ...facts, name: `${facts.namespace}/${facts.name}` }
}
