import { fieldsOf, instantOf, listOf, metadataOf, quantityOf, textMapOf, textOf } from './facts.ts'
import { message, projected } from './projection.ts'
import type { KubeObject } from './types.ts'

/** Amounts of a node as quantity text; '' where the node does not say. */
export interface NodeAmounts {
  readonly cpu: string
  readonly memory: string
  readonly ephemeralStorage: string
  readonly pods: string
}

/** What is taken of a node's condition. */
export interface ConditionFacts {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
  /** ms since the Unix epoch */
  readonly lastTransitionAt: number | null
}

/** What a NodeSnapshot needs of a node, not yet interpreted. */
export interface NodeFacts {
  readonly name: string
  /** ms since the Unix epoch */
  readonly createdAt: number | null
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly unschedulable: boolean
  readonly taints: readonly { readonly key: string; readonly value: string; readonly effect: string }[]
  readonly capacity: NodeAmounts
  readonly allocatable: NodeAmounts
  readonly conditions: readonly ConditionFacts[]
  /** type is InternalIP, ExternalIP, Hostname, …; in the node's order */
  readonly addresses: readonly { readonly type: string; readonly address: string }[]
  readonly kernelVersion: string
  readonly osImage: string
  readonly containerRuntime: string
  readonly kubeletVersion: string
  readonly architecture: string
  readonly imagesCount: number
  readonly volumesAttached: number
}

/** From a node's JSON, or what is read of its protobuf. */
export function nodeFromJson(object: KubeObject): NodeFacts {
  const metadata = metadataOf(object)
  const spec = fieldsOf(object.spec)
  const status = fieldsOf(object.status)
  const info = fieldsOf(status.nodeInfo)
  return {
    name: textOf(metadata.name),
    createdAt: instantOf(metadata.creationTimestamp),
    labels: textMapOf(metadata.labels),
    annotations: textMapOf(metadata.annotations),
    unschedulable: spec.unschedulable === true,
    taints: listOf(spec.taints).map((value) => {
      const taint = fieldsOf(value)
      return { key: textOf(taint.key), value: textOf(taint.value), effect: textOf(taint.effect) }
    }),
    capacity: amountsFrom(status.capacity),
    allocatable: amountsFrom(status.allocatable),
    conditions: listOf(status.conditions).map(conditionFrom),
    addresses: listOf(status.addresses).map((value) => {
      const address = fieldsOf(value)
      return { type: textOf(address.type), address: textOf(address.address) }
    }),
    kernelVersion: textOf(info.kernelVersion),
    osImage: textOf(info.osImage),
    containerRuntime: textOf(info.containerRuntimeVersion),
    kubeletVersion: textOf(info.kubeletVersion),
    architecture: textOf(info.architecture),
    imagesCount: listOf(status.images).length,
    volumesAttached: listOf(status.volumesAttached).length,
  }
}

function amountsFrom(value: unknown): NodeAmounts {
  const amounts = fieldsOf(value)
  return {
    cpu: quantityOf(amounts.cpu),
    memory: quantityOf(amounts.memory),
    ephemeralStorage: quantityOf(amounts['ephemeral-storage']),
    pods: quantityOf(amounts.pods),
  }
}

function conditionFrom(value: unknown): ConditionFacts {
  const condition = fieldsOf(value)
  return {
    type: textOf(condition.type),
    status: textOf(condition.status),
    reason: textOf(condition.reason),
    message: textOf(condition.message),
    lastTransitionAt: instantOf(condition.lastTransitionTime),
  }
}

const nodeMessage = message({
  metadata: [
    1,
    message({ name: [1, 'text'], creationTimestamp: [8, 'time'], labels: [11, 'words'], annotations: [12, 'words'] }),
  ],
  spec: [
    2,
    message({
      unschedulable: [4, 'bool'],
      taints: [5, [message({ key: [1, 'word'], value: [2, 'word'], effect: [3, 'word'] })]],
    }),
  ],
  status: [
    3,
    message({
      capacity: [1, 'quantities'],
      allocatable: [2, 'quantities'],
      conditions: [
        4,
        [
          message({
            type: [1, 'word'],
            status: [2, 'word'],
            lastTransitionTime: [4, 'time'],
            reason: [5, 'word'],
            message: [6, 'word'],
          }),
        ],
      ],
      addresses: [5, [message({ type: [1, 'word'], address: [2, 'word'] })]],
      nodeInfo: [
        7,
        message({
          kernelVersion: [4, 'word'],
          osImage: [5, 'word'],
          containerRuntimeVersion: [6, 'word'],
          kubeletVersion: [7, 'word'],
          architecture: [10, 'word'],
        }),
      ],
      // Counted only.
      images: [8, [message({})]],
      volumesAttached: [10, [message({})]],
    }),
  ],
})

const readNode = projected(nodeMessage)

/** From a node's protobuf (v1.Node). */
export const nodeFromProtobuf = (bytes: Uint8Array): NodeFacts => nodeFromJson(readNode(bytes))
