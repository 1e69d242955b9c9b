import type { ApiObject } from '#apiserver'
import type { NodeFacts } from '../facts.ts'
import { hexOf } from '../random.ts'
import type { ClusterScenario } from '../types.ts'
import { condition, fieldsOf, managedBy, timestamp } from './meta.ts'
import type { TemplateCatalogue } from './pod-template.ts'

/** What all nodes of a cluster have in common; drawn once. */
export interface NodeSurroundings {
  readonly scenario: ClusterScenario
  readonly images: readonly unknown[]
}

export const nodeSurroundings = (
  scenario: ClusterScenario,
  apps: readonly string[],
  templates: TemplateCatalogue,
): NodeSurroundings => ({
  scenario,
  // The kubelet reports fifty at most.
  images: Object.freeze(
    [...apps, 'pause', 'network-plugin', 'kube-proxy'].slice(0, 50).map((app) => templates.image(app)),
  ),
})

export const nodeIp = (node: NodeFacts): string => `10.0.${Math.floor(node.index / 200) + 1}.${(node.index % 200) + 10}`

/** Most pods a kubelet of this cluster takes. */
export function maxPods({ distribution, pods, pools }: ClusterScenario): number {
  const perNode =
    pods /
    Math.max(
      1,
      pools.reduce((sum, { count }) => sum + count, 0),
    )
  if (perNode > 200) return 500
  return distribution === 'openshift' || perNode > 90 ? 250 : 110
}

/** Disk of the machine in bytes. */
export const diskBytes = 125_293_548 * 1024

/** Memory of the machine in bytes: a little less than the offer says, as firmware keeps some. */
export const capacityBytes = ({ pool }: NodeFacts): number => Math.floor(pool.memoryGiB * 2 ** 20 * 0.977) * 1024

export const allocatableCores = ({ pool }: NodeFacts): number => pool.cpuCores - 0.09
export const allocatableBytes = (node: NodeFacts): number => Math.floor(capacityBytes(node) / 2 ** 20 - 1126) * 2 ** 20

export function nodeObject(node: NodeFacts, { scenario, images }: NodeSurroundings): ApiObject {
  const taints = nodeTaints(node)
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: node.name,
      uid: node.uid,
      creationTimestamp: timestamp(node.createdAt),
      labels: nodeLabels(node, scenario),
      annotations: {
        'node.alpha.kubernetes.io/ttl': '0',
        'volumes.kubernetes.io/controller-managed-attach-detach': 'true',
        'csi.volume.kubernetes.io/nodeid': `{"csi.example.com":"${node.name}"}`,
      },
      managedFields: [
        managedBy('kubelet', 'v1', KUBELET_SPEC, node.createdAt),
        managedBy('kubelet', 'v1', KUBELET_STATUS, node.heartbeatAt, 'status'),
      ],
    },
    spec: {
      podCIDR: `10.128.${node.index % 256}.0/24`,
      podCIDRs: [`10.128.${node.index % 256}.0/24`],
      providerID: `${scenario.distribution === 'k3s' ? 'k3s' : 'aws'}:///${node.zone}/i-${hexOf(node.uid, 17)}`,
      ...(node.cordoned ? { unschedulable: true } : {}),
      ...(taints.length > 0 ? { taints } : {}),
    },
    status: {
      addresses: [
        { type: 'InternalIP', address: nodeIp(node) },
        ...(scenario.distribution === 'k3s' ? [{ type: 'ExternalIP', address: `203.0.113.${10 + node.index}` }] : []),
        { type: 'Hostname', address: node.name },
      ],
      allocatable: amounts(node, scenario, true),
      capacity: amounts(node, scenario, false),
      conditions: nodeConditions(node),
      daemonEndpoints: { kubeletEndpoint: { Port: 10250 } },
      images,
      nodeInfo: nodeInfo(node, scenario),
      ...(node.pool.role === 'worker'
        ? { volumesAttached: [{ name: `kubernetes.io/csi/csi.example.com^vol-${hexOf(node.uid, 8)}`, devicePath: '' }] }
        : {}),
    },
  }
}

function nodeLabels(node: NodeFacts, { architecture, region, distribution }: ClusterScenario): Record<string, string> {
  const { role, machineType, gpus } = node.pool
  const roles: Readonly<Record<typeof role, readonly string[]>> = {
    'control-plane': distribution === 'openshift' ? ['control-plane', 'master'] : ['control-plane'],
    worker: ['worker'],
    infra: ['infra', 'worker'],
    gpu: ['gpu', 'worker'],
  }
  return {
    'beta.kubernetes.io/arch': architecture,
    'beta.kubernetes.io/os': 'linux',
    'kubernetes.io/arch': architecture,
    'kubernetes.io/hostname': node.name,
    'kubernetes.io/os': 'linux',
    'node.kubernetes.io/instance-type': machineType,
    ...Object.fromEntries(roles[role].map((name) => [`node-role.kubernetes.io/${name}`, ''])),
    ...(gpus ? { 'nvidia.com/gpu.present': 'true', 'nvidia.com/gpu.count': String(gpus) } : {}),
    'topology.kubernetes.io/region': region,
    'topology.kubernetes.io/zone': node.zone,
  }
}

function nodeTaints(node: NodeFacts): Record<string, string>[] {
  const taints: Record<string, string>[] = []
  const since = timestamp(node.stateSince)
  if (node.pool.role === 'control-plane')
    taints.push({ key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' })
  if (node.pool.role === 'infra')
    taints.push({ key: 'node-role.kubernetes.io/infra', value: 'reserved', effect: 'NoSchedule' })
  if (node.pool.role === 'gpu') taints.push({ key: 'nvidia.com/gpu', value: 'present', effect: 'NoSchedule' })
  if (node.cordoned) taints.push({ key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' })
  if (node.state !== 'ready') {
    const key = `node.kubernetes.io/${node.state === 'lost' ? 'unreachable' : 'not-ready'}`
    taints.push({ key, effect: 'NoSchedule', timeAdded: since }, { key, effect: 'NoExecute', timeAdded: since })
  }
  return taints
}

/** Quantities in the forms real kubelets write: whole cores and Ki as capacity, milli cores and Mi as allocatable. */
function amounts(node: NodeFacts, scenario: ClusterScenario, allocatable: boolean): Record<string, string> {
  const { cpuCores, gpus } = node.pool
  const memory = allocatable ? `${allocatableBytes(node) / 2 ** 20}Mi` : `${capacityBytes(node) / 1024}Ki`
  return {
    cpu: allocatable ? `${Math.round(allocatableCores(node) * 1000)}m` : String(cpuCores),
    'ephemeral-storage': allocatable ? '114397340160' : `${diskBytes / 1024}Ki`,
    'hugepages-1Gi': '0',
    'hugepages-2Mi': '0',
    memory,
    ...(gpus ? { 'nvidia.com/gpu': String(gpus) } : {}),
    pods: String(maxPods(scenario)),
  }
}

const PRESSURES = [
  ['MemoryPressure', 'KubeletHasSufficientMemory', 'kubelet has sufficient memory available'],
  ['DiskPressure', 'KubeletHasNoDiskPressure', 'kubelet has no disk pressure'],
  ['PIDPressure', 'KubeletHasSufficientPID', 'kubelet has sufficient PID available'],
] as const

function nodeConditions(node: NodeFacts): Record<string, unknown>[] {
  const lastHeartbeatTime = timestamp(node.heartbeatAt)
  if (node.state === 'lost') {
    const gone = { lastHeartbeatTime, reason: 'NodeStatusUnknown', message: 'Kubelet stopped posting node status.' }
    return [...PRESSURES.map(([type]) => type), 'Ready'].map((type) =>
      condition(type, 'Unknown', node.stateSince, gone),
    )
  }
  const pressures = PRESSURES.map(([type, reason, message]) =>
    condition(type, false, node.createdAt, { lastHeartbeatTime, reason, message }),
  )
  const ready =
    node.state === 'ready'
      ? { reason: 'KubeletReady', message: 'kubelet is posting ready status' }
      : {
          reason: 'KubeletNotReady',
          message:
            'container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized',
        }
  return [...pressures, condition('Ready', node.state === 'ready', node.stateSince, { lastHeartbeatTime, ...ready })]
}

function nodeInfo(node: NodeFacts, scenario: ClusterScenario): Record<string, string> {
  const machineID = hexOf(node.uid, 32)
  return {
    architecture: scenario.architecture,
    bootID: node.uid,
    ...SYSTEMS[scenario.distribution],
    kubeProxyVersion: scenario.kubernetesVersion,
    kubeletVersion: scenario.kubernetesVersion,
    machineID,
    operatingSystem: 'linux',
    systemUUID: node.uid,
  }
}

const SYSTEMS = {
  openshift: {
    containerRuntimeVersion: 'cri-o://1.33.5-2.rhaos4.20.git1b2c3d4.el9',
    kernelVersion: '5.14.0-570.62.1.el9_6.x86_64',
    osImage: 'Red Hat Enterprise Linux CoreOS 9.6.20261014-0',
  },
  kubernetes: {
    containerRuntimeVersion: 'containerd://2.1.5',
    kernelVersion: '6.8.0-86-generic',
    osImage: 'Ubuntu 24.04.3 LTS',
  },
  k3s: {
    containerRuntimeVersion: 'containerd://2.1.5-k3s1',
    kernelVersion: '6.12.47+rpt-rpi-2712',
    osImage: 'Debian GNU/Linux 13 (trixie)',
  },
} as const

const KUBELET_SPEC = fieldsOf([
  'metadata>annotations>.',
  'metadata>labels>.',
  ...['kubernetes.io/arch', 'kubernetes.io/hostname', 'kubernetes.io/os'].map((label) => `metadata>labels>${label}`),
  'spec>providerID',
])
const KUBELET_STATUS = fieldsOf([
  ...['DiskPressure', 'MemoryPressure', 'PIDPressure', 'Ready'].flatMap((type) =>
    ['lastHeartbeatTime', 'lastTransitionTime', 'message', 'reason', 'status'].map(
      (field) => `status>conditions>k:{"type":"${type}"}>${field}`,
    ),
  ),
  ...['cpu', 'memory', 'pods'].flatMap((name) => [`status>allocatable>${name}`, `status>capacity>${name}`]),
  'status>images',
])
