import { deploymentFacts, deployments, type KubeObject } from '#kube'
import type { DeploymentSnapshot } from '#model'
import { fed, foldOf, Kept, listOf, placeOf } from './fold.ts'
import type { Collector } from './types.ts'

/** Shared with whoever wants deployments as well. */
export const allDeployments = listOf(deployments)

/** Deployments of one cluster, as numbers of replicas. */
export const deploymentCollector: Collector = {
  name: 'deployments',
  types: ['deployment'],
  reads: [allDeployments],
  critical: false,
  open() {
    const kept = new Kept({ key: placeOf, of: deploymentSnapshot })
    return foldOf([fed(allDeployments, kept)], () => ({ deployment: kept.values() }))
  },
}

export function deploymentSnapshot(object: KubeObject): DeploymentSnapshot {
  const facts = deploymentFacts(object)
  return { ...facts, name: `${facts.namespace}/${facts.name}` }
}
