import {
  fieldsOf,
  instantOf,
  listOf,
  metadataOf,
  quantityOf,
  readInstant,
  readMeta,
  readQuantity,
  textMapOf,
  textOf,
} from './facts.ts'
import { ProtoReader } from './protobuf.ts'
import type { KubeObject } from './types.ts'

/** Amounts of a node as quantity text; '' where the node does not say. */
export interface NodeAmounts {
  readonly cpu: string
  readonly memory: string
  readonly ephemeralStorage: string
  readonly pods: string
}

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

/** From a node's JSON. */
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

type Mutable<T> = { -readonly [K in keyof T]: T[K] }
interface Draft extends Omit<Mutable<NodeFacts>, 'taints' | 'conditions' | 'addresses' | 'capacity' | 'allocatable'> {
  taints: NodeFacts['taints'][number][]
  conditions: ConditionFacts[]
  addresses: NodeFacts['addresses'][number][]
  capacity: Mutable<NodeAmounts>
  allocatable: Mutable<NodeAmounts>
}

/** From a node's protobuf (v1.Node). */
export function nodeFromProtobuf(bytes: Uint8Array): NodeFacts {
  const reader = new ProtoReader(bytes)
  const node: Draft = {
    name: '',
    createdAt: null,
    labels: {},
    annotations: {},
    unschedulable: false,
    taints: [],
    capacity: { cpu: '', memory: '', ephemeralStorage: '', pods: '' },
    allocatable: { cpu: '', memory: '', ephemeralStorage: '', pods: '' },
    conditions: [],
    addresses: [],
    kernelVersion: '',
    osImage: '',
    containerRuntime: '',
    kubeletVersion: '',
    architecture: '',
    imagesCount: 0,
    volumesAttached: 0,
  }
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === 10) {
      const { name, createdAt, labels, annotations } = readMeta(reader, true)
      Object.assign(node, { name, createdAt, labels, annotations })
    } else if (tag === 18) readSpec(reader, node)
    else if (tag === 26) readNodeStatus(reader, node)
    else reader.skip(tag)
  }
  return node
}

function readSpec(reader: ProtoReader, node: Draft): void {
  const outer = reader.enter()
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === 32) node.unschedulable = reader.bool()
    else if (tag === 42) {
      const [key, value, effect] = readThree(reader)
      node.taints.push({ key, value, effect })
    } else reader.skip(tag)
  }
  reader.leave(outer)
}

function readNodeStatus(reader: ProtoReader, node: Draft): void {
  const outer = reader.enter()
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    switch (tag) {
      case 10:
        readAmount(reader, node.capacity)
        break
      case 18:
        readAmount(reader, node.allocatable)
        break
      case 34:
        node.conditions.push(readNodeCondition(reader))
        break
      case 42: {
        const [type, address] = readThree(reader)
        node.addresses.push({ type, address })
        break
      }
      case 58:
        readNodeInfo(reader, node)
        break
      case 66:
        node.imagesCount++
        reader.skip(tag)
        break
      case 82:
        node.volumesAttached++
        reader.skip(tag)
        break
      default:
        reader.skip(tag)
    }
  }
  reader.leave(outer)
}

/** Fields 1, 2 and 3 of a message of texts. */
function readThree(reader: ProtoReader): [string, string, string] {
  const outer = reader.enter()
  const texts: [string, string, string] = ['', '', '']
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === 10) texts[0] = reader.shared()
    else if (tag === 18) texts[1] = reader.shared()
    else if (tag === 26) texts[2] = reader.shared()
    else reader.skip(tag)
  }
  reader.leave(outer)
  return texts
}

function readAmount(reader: ProtoReader, into: Mutable<NodeAmounts>): void {
  const outer = reader.enter()
  let key = ''
  let amount = ''
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === 10) key = reader.shared()
    else if (tag === 18) amount = readQuantity(reader)
    else reader.skip(tag)
  }
  reader.leave(outer)
  if (key === 'cpu' || key === 'memory' || key === 'pods') into[key] = amount
  else if (key === 'ephemeral-storage') into.ephemeralStorage = amount
}

function readNodeCondition(reader: ProtoReader): ConditionFacts {
  const outer = reader.enter()
  const condition: Mutable<ConditionFacts> = { type: '', status: '', reason: '', message: '', lastTransitionAt: null }
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === 10) condition.type = reader.shared()
    else if (tag === 18) condition.status = reader.shared()
    else if (tag === 34) condition.lastTransitionAt = readInstant(reader)
    else if (tag === 42) condition.reason = reader.shared()
    else if (tag === 50) condition.message = reader.shared()
    else reader.skip(tag)
  }
  reader.leave(outer)
  return condition
}

function readNodeInfo(reader: ProtoReader, node: Draft): void {
  const outer = reader.enter()
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === 34) node.kernelVersion = reader.shared()
    else if (tag === 42) node.osImage = reader.shared()
    else if (tag === 50) node.containerRuntime = reader.shared()
    else if (tag === 58) node.kubeletVersion = reader.shared()
    else if (tag === 82) node.architecture = reader.shared()
    else reader.skip(tag)
  }
  reader.leave(outer)
}
