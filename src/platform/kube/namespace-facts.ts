import { fieldsOf, instantOf, metadataOf, readMeta, textMapOf, textOf } from './facts.ts'
import { ProtoReader } from './protobuf.ts'
import type { KubeObject } from './types.ts'

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

/** From a namespace's protobuf (v1.Namespace). */
export function namespaceFromProtobuf(bytes: Uint8Array): NamespaceFacts {
  const reader = new ProtoReader(bytes)
  let meta: ReturnType<typeof readMeta> | undefined
  let phase = ''
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === 10) meta = readMeta(reader, true)
    else if (tag === 26) {
      const outer = reader.enter()
      for (let field = reader.tag(); field !== 0; field = reader.tag()) {
        if (field === 10) phase = reader.shared()
        else reader.skip(field)
      }
      reader.leave(outer)
    } else reader.skip(tag)
  }
  return { name: meta?.name ?? '', phase, createdAt: meta?.createdAt ?? null, labels: meta?.labels ?? {} }
}
