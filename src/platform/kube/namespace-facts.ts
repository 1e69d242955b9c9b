import { fieldsOf, instantOf, metadataOf, textMapOf, textOf } from './facts.ts'
import { message, objectMeta, projected } from './projection.ts'
import type { KubeObject } from './types.ts'

/** What is taken of a Namespace. */
export interface NamespaceFacts {
  readonly name: string
  /** Active or Terminating */
  readonly phase: string
  /** ms since the Unix epoch */
  readonly createdAt: number | null
  readonly labels: Readonly<Record<string, string>>
}

/** From a namespace's JSON. */
export function namespaceFromJson(object: KubeObject): NamespaceFacts {
  const metadata = metadataOf(object)
  return {
    name: textOf(metadata.name),
    phase: textOf(fieldsOf(object.status).phase),
    createdAt: instantOf(metadata.creationTimestamp),
    labels: textMapOf(metadata.labels),
  }
}

const readNamespace = projected(message({ metadata: [1, objectMeta], status: [3, message({ phase: [1, 'word'] })] }))

/** From a namespace's protobuf (v1.Namespace). */
export const namespaceFromProtobuf = (bytes: Uint8Array): NamespaceFacts => namespaceFromJson(readNamespace(bytes))
