import { fieldsOf, metadataOf, textOf, wholeOf } from './facts.ts'
import type { KubeObject } from './types.ts'

/** What is taken of a Deployment. */
export interface DeploymentFacts {
  readonly name: string
  readonly namespace: string
  /** wanted; 1 where the object does not say, as the API has it */
  readonly replicas: number
  readonly ready: number
  readonly available: number
  readonly updated: number
}

/** From a deployment, as its JSON or its protobuf gave it. */
export function deploymentFacts(object: KubeObject): DeploymentFacts {
  const metadata = metadataOf(object)
  const status = fieldsOf(object.status)
  const { replicas } = fieldsOf(object.spec)
  return {
    name: textOf(metadata.name),
    namespace: textOf(metadata.namespace),
    replicas: typeof replicas === 'number' ? wholeOf(replicas) : 1,
    ready: wholeOf(status.readyReplicas),
    available: wholeOf(status.availableReplicas),
    updated: wholeOf(status.updatedReplicas),
  }
}
