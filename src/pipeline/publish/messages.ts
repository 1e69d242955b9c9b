import type { ClusterName, Table } from '#model'
import { ProtoWriter } from './proto-writer.ts'

/*
 * ClusterMetrics and PodStatusSnapshot, in parts that are messages by themselves. Both have the metadata as field 1 and what they list
 * as field 2, so a part is its metadata with whole entries behind it.
 */

/** A node as ClusterMetrics tells it. */
export interface PublishedNode {
  readonly name: string
  readonly cpu_percent: number
  readonly memory_percent: number
  readonly disk_percent: number
  readonly conditions?: readonly { readonly type: string; readonly status: string }[]
}

/** Metadata of one event. */
export interface EventHead {
  readonly cluster: ClusterName
  /** when it is made, ms */
  readonly at: number
  /** of each part one of its own, all of one length */
  readonly eventId: () => string
  /** bytes of a part, at most; one entry that is larger is a part all the same */
  readonly maxBytes: number
}

/** Who publishes, in the words of the original. */
const SOURCE = 'cluster-monitor'
const METADATA = 1
const ENTRIES = 2

/** One part of an event. */
export interface EventPart {
  readonly eventId: string
  readonly bytes: Uint8Array
}

/** ClusterMetrics of these nodes, also of none. */
export function metricsParts(nodes: Iterable<PublishedNode>, head: EventHead): readonly EventPart[] {
  const entries = new Entries(head)
  const { to } = entries
  for (const node of nodes) {
    entries.add(() => {
      to.text(1, node.name)
      to.double(2, node.cpu_percent)
      to.double(3, node.memory_percent)
      to.double(4, node.disk_percent)
      for (const { type, status } of node.conditions ?? []) {
        to.message(5, () => {
          to.text(1, type)
          to.text(2, status)
        })
      }
    })
  }
  return entries.parts()
}

/**
 * PodStatusSnapshot of the containers of these rows, also of none.
 * @param pods rows of the kind `pods`; of those that were collected before it had `containerRestarts` nothing is told
 */
export function podParts(pods: Table, isWanted: (namespace: string) => boolean, head: EventHead): readonly EventPart[] {
  const entries = new Entries(head)
  const { to } = entries
  const column = pods.column('containerRestarts')
  let container: ContainerRestarts = ['', 0, false]
  let [name, namespace] = ['', '']
  const write = (): void => {
    to.text(1, name)
    to.text(2, namespace)
    to.integer(3, container[1])
    to.boolean(4, container[2])
    to.text(5, container[0])
  }
  const known = new Map<unknown, readonly ContainerRestarts[]>()
  for (let place = 0; column && place < pods.size; place++) {
    const value = column(place)
    if (value === null) continue
    namespace = pods.namespaceAt(place)
    if (!isWanted(namespace)) continue
    name = pods.nameAt(place)
    const containers = known.get(value) ?? containersIn(value)
    known.set(value, containers)
    for (container of containers) entries.add(write)
  }
  return entries.parts()
}

type ContainerRestarts = readonly [name: string, restarts: number, oomKilled: boolean]

/** What a batch brings in this column is any text; what is nothing of the sort is left out. */
function containersIn(value: unknown): readonly ContainerRestarts[] {
  let list: unknown
  try {
    list = JSON.parse(String(value))
  } catch {
    return []
  }
  return (Array.isArray(list) ? list : []).flatMap((one): ContainerRestarts[] => {
    if (!Array.isArray(one)) return []
    const [name, restarts, oomKilled] = one as readonly unknown[]
    if (typeof name !== 'string' || !Number.isSafeInteger(restarts)) return []
    return [[name, Math.min(Math.max(restarts as number, 0), 2 ** 31 - 1), oomKilled === true]]
  })
}

/** Entries under way, and where a part ends. */
class Entries {
  readonly to = new ProtoWriter()
  readonly #head: EventHead
  readonly #room: number
  /** where parts begin */
  readonly #starts = [0]

  constructor(head: EventHead) {
    this.#head = head
    this.#room = head.maxBytes - metadata(head, head.eventId()).length
  }

  add(write: () => void): void {
    const start = this.to.length
    this.to.message(ENTRIES, write)
    const first = this.#starts.at(-1) as number
    if (start > first && this.to.length - first > this.#room) this.#starts.push(start)
  }

  parts(): readonly EventPart[] {
    return this.#starts.map((start, i) => {
      const eventId = this.#head.eventId()
      const entries = this.to.slice(start, this.#starts[i + 1] ?? this.to.length)
      return { eventId, bytes: Buffer.concat([metadata(this.#head, eventId), entries]) }
    })
  }
}

function metadata({ cluster, at }: EventHead, eventId: string): Uint8Array {
  const to = new ProtoWriter(256)
  to.message(METADATA, () => {
    to.text(1, eventId)
    to.text(2, cluster)
    to.message(3, () => to.integer(1, Math.floor(at / 1000)))
    to.text(4, SOURCE)
  })
  return to.slice(0, to.length)
}
