import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import protobuf from 'protobufjs'

const folder = fileURLToPath(new URL('../../../../proto', import.meta.url))

/** The published files, read by another implementation than ours. */
const published = new protobuf.Root()
published.resolvePath = (_, path) => join(folder, path)
published.loadSync('cluster/events.proto', { keepCase: true })

export interface SeenEvent {
  readonly metadata: {
    readonly event_id: string
    readonly entity_id: string
    readonly source: string
    readonly timestamp: { readonly seconds: number }
  }
  readonly pods?: readonly Readonly<Record<string, unknown>>[]
  readonly nodes?: readonly Readonly<Record<string, unknown>>[]
}

/** What a consumer reads in a message of this kind. */
export function readEvent(kind: 'metrics' | 'pods', bytes: Uint8Array): SeenEvent {
  const type = published.lookupType(kind === 'pods' ? 'cluster.PodStatusSnapshot' : 'cluster.ClusterMetrics')
  return type.toObject(type.decode(bytes), { longs: Number, defaults: true, arrays: true }) as SeenEvent
}
