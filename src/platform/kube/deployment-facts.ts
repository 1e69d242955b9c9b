import { fieldsOf, metadataOf, readMeta, textOf, wholeOf } from './facts.ts'
import { ProtoReader } from './protobuf.ts'
import type { KubeObject } from './types.ts'

export interface DeploymentFacts {
  readonly name: string
  readonly namespace: string
  /** wanted; 1 where the object does not say, as the API has it */
  readonly replicas: number
  readonly ready: number
  readonly available: number
  readonly updated: number
}

/** From a deployment's JSON. */
export function deploymentFromJson(object: KubeObject): DeploymentFacts {
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

/** From a deployment's protobuf (apps/v1 Deployment). */
export function deploymentFromProtobuf(bytes: Uint8Array): DeploymentFacts {
  const reader = new ProtoReader(bytes)
  const facts = { name: '', namespace: '', replicas: 1, ready: 0, available: 0, updated: 0 }
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === 10) {
      const { name, namespace } = readMeta(reader, false)
      Object.assign(facts, { name, namespace })
    } else if (tag === 18) {
      const outer = reader.enter()
      for (let field = reader.tag(); field !== 0; field = reader.tag()) {
        if (field === 8) facts.replicas = reader.int32()
        else reader.skip(field)
      }
      reader.leave(outer)
    } else if (tag === 26) {
      const outer = reader.enter()
      for (let field = reader.tag(); field !== 0; field = reader.tag()) {
        if (field === 24) facts.updated = reader.int32()
        else if (field === 32) facts.available = reader.int32()
        else if (field === 56) facts.ready = reader.int32()
        else reader.skip(field)
      }
      reader.leave(outer)
    } else reader.skip(tag)
  }
  return facts
}
