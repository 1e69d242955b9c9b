import type { KubeObject, Resource } from '#kube'
import { type NodeSnapshot, parseBytes, parseQuantity, type ResourceAmounts } from '#model'
import type { ContainerRequests } from './pod-requests.ts'
import type { PodLoad } from './pod-sums.ts'
import { conditions, fields, instant, items, text, textMap } from './read.ts'

/** A node without what its pods and the metrics server add. */
export type NodeFacts = Omit<NodeSnapshot, 'requested' | 'used' | 'pods'>

export const nodes: Resource<NodeFacts> = {
  group: '',
  version: 'v1',
  plural: 'nodes',
  kind: 'Node',
  namespaced: false,
  fromJson: nodeFacts,
}

export const pods: Resource<PodLoad> = {
  group: '',
  version: 'v1',
  plural: 'pods',
  kind: 'Pod',
  namespaced: true,
  fromJson: podLoad,
}

const ROLE = 'node-role.kubernetes.io/'

export function nodeFacts(object: KubeObject): NodeFacts {
  const spec = fields(object.spec)
  const status = fields(object.status)
  const info = fields(status.nodeInfo)
  const labels = textMap(object.metadata.labels)
  const stated = conditions(status.conditions)
  return {
    name: object.metadata.name,
    createdAt: instant(object.metadata.creationTimestamp),
    ready: readiness(stated.findLast(({ type }) => type === 'Ready')?.status),
    unschedulable: spec.unschedulable === true,
    roles: rolesOf(labels),
    conditions: stated,
    capacity: amounts(status.capacity),
    allocatable: amounts(status.allocatable),
    kernelVersion: text(info.kernelVersion),
    osImage: text(info.osImage),
    containerRuntime: text(info.containerRuntimeVersion),
    kubeletVersion: text(info.kubeletVersion),
    architecture: text(info.architecture),
    internalIp: addressOf(status.addresses, 'InternalIP'),
    externalIp: addressOf(status.addresses, 'ExternalIP'),
    hostname: addressOf(status.addresses, 'Hostname'),
    labels,
    annotations: textMap(object.metadata.annotations),
    taints: items(spec.taints).map(({ key, value, effect }) => ({
      key: text(key),
      value: text(value),
      effect: text(effect),
    })),
    imagesCount: items(status.images).length,
    volumesAttached: items(status.volumesAttached).length,
  }
}

/** A kubelet that stopped reporting has condition status Unknown: that node is not ready. No condition: nobody knows. */
export function readiness(status: string | undefined): NodeSnapshot['ready'] {
  if (status === undefined) return 'unknown'
  return status === 'True' ? 'ready' : 'notReady'
}

/** The roles that labels name, sorted; `node-role.kubernetes.io/` with nothing behind it names none. */
export function rolesOf(labels: Readonly<Record<string, string>>): string[] {
  return Object.keys(labels)
    .filter((label) => label.startsWith(ROLE) && label.length > ROLE.length)
    .map((label) => label.slice(ROLE.length))
    .sort()
}

/** The last address of a type counts. */
function addressOf(addresses: unknown, type: string): string {
  return text(items(addresses).findLast((address) => address.type === type)?.address)
}

/** Amounts of a capacity; what is missing or unreadable is null, never 0. */
export function amounts(value: unknown): ResourceAmounts {
  const written = fields(value)
  const read = (key: string, parse: (quantity: string) => number | undefined) => {
    const amount = written[key]
    return typeof amount === 'string' || typeof amount === 'number' ? (parse(String(amount)) ?? null) : null
  }
  return {
    cpuCores: read('cpu', parseQuantity),
    memoryBytes: read('memory', parseBytes),
    storageBytes: read('ephemeral-storage', parseBytes),
    pods: read('pods', parseBytes),
  }
}

export function podLoad(object: KubeObject): PodLoad {
  const spec = fields(object.spec)
  return {
    namespace: object.metadata.namespace ?? '',
    nodeName: text(spec.nodeName),
    phase: text(fields(object.status).phase),
    containers: items(spec.containers).map((container) => requests(container.resources)),
    initContainers: items(spec.initContainers).map((container) => ({
      ...requests(container.resources),
      restartable: container.restartPolicy === 'Always',
    })),
    ...(spec.overhead !== undefined && { overhead: written(spec.overhead) }),
    ...(spec.resources !== undefined && { pod: requests(spec.resources) }),
  }
}

const requests = (resources: unknown) => written(fields(resources).requests)

function written(value: unknown): ContainerRequests {
  const { cpu, memory } = fields(value)
  return { ...quantity('cpu', cpu), ...quantity('memory', memory) }
}

const quantity = (key: 'cpu' | 'memory', value: unknown) =>
  typeof value === 'string' || typeof value === 'number' ? { [key]: String(value) } : {}
