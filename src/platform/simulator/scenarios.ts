import { seconds } from '#model'
import type { ClusterScenario, NodePool, Scenario } from './types.ts'

const pool = (
  role: NodePool['role'],
  count: number,
  cpuCores: number,
  memoryGiB: number,
  machineType: string,
): NodePool => ({
  role,
  count,
  cpuCores,
  memoryGiB,
  machineType,
})

const prodEast: ClusterScenario = {
  name: 'prod-east',
  displayName: 'Production East',
  labels: { environment: 'production', region: 'us-east-1', tier: 'critical' },
  reachable: true,
  distribution: 'openshift',
  openshiftVersion: '4.20.14',
  kubernetesVersion: 'v1.33.6',
  architecture: 'amd64',
  region: 'us-east-1',
  pools: [
    pool('control-plane', 3, 8, 32, 'm6i.2xlarge'),
    pool('infra', 3, 8, 32, 'm6i.2xlarge'),
    pool('worker', 12, 16, 64, 'm6i.4xlarge'),
  ],
  pods: 640,
  load: 0.66,
  operators: [
    'openshift-gitops-operator',
    'openshift-pipelines-operator-rh',
    'cluster-logging',
    'loki-operator',
    'odf-operator',
    'rhacs-operator',
    'kiali-ossm',
    'servicemeshoperator3',
  ],
  metrics: true,
}

const prodWest: ClusterScenario = {
  ...prodEast,
  name: 'prod-west',
  displayName: 'Production West',
  labels: { environment: 'production', region: 'us-west-2', tier: 'critical' },
  openshiftVersion: '4.19.21',
  kubernetesVersion: 'v1.32.9',
  region: 'us-west-2',
  pools: [
    pool('control-plane', 3, 8, 32, 'm6i.2xlarge'),
    pool('infra', 2, 8, 32, 'm6i.2xlarge'),
    pool('worker', 9, 16, 64, 'm6i.4xlarge'),
  ],
  pods: 430,
  load: 0.48,
  operators: [
    'openshift-gitops-operator',
    'cluster-logging',
    'loki-operator',
    'odf-operator',
    'kubevirt-hyperconverged',
  ],
}

const staging: ClusterScenario = {
  name: 'staging',
  displayName: 'Staging',
  labels: { environment: 'staging', region: 'eu-central-1' },
  reachable: true,
  distribution: 'kubernetes',
  kubernetesVersion: 'v1.35.2',
  architecture: 'amd64',
  region: 'eu-central-1',
  pools: [pool('control-plane', 3, 4, 16, 'm7i.xlarge'), pool('worker', 6, 8, 32, 'm7i.2xlarge')],
  pods: 240,
  load: 0.35,
  operators: ['cert-manager', 'grafana-operator', 'strimzi-kafka-operator', 'cloudnative-pg', 'keycloak-operator'],
  metrics: true,
  storage: { lost: 1 },
}

const edgeParis: ClusterScenario = {
  name: 'edge-paris',
  displayName: 'Edge Paris',
  labels: { environment: 'edge', region: 'eu-west-3', site: 'paris-nord' },
  reachable: true,
  distribution: 'k3s',
  kubernetesVersion: 'v1.34.3+k3s1',
  architecture: 'arm64',
  region: 'eu-west-3',
  pools: [pool('control-plane', 1, 4, 8, 'rpi5'), pool('worker', 3, 4, 8, 'rpi5')],
  pods: 60,
  load: 0.72,
  operators: [],
  metrics: false,
}

const gpuLab: ClusterScenario = {
  name: 'gpu-lab',
  displayName: 'GPU Lab',
  labels: { environment: 'research', region: 'us-central-1', accelerator: 'nvidia' },
  reachable: true,
  distribution: 'kubernetes',
  kubernetesVersion: 'v1.34.5',
  architecture: 'amd64',
  region: 'us-central-1',
  pools: [
    pool('control-plane', 3, 8, 32, 'm6i.2xlarge'),
    pool('worker', 13, 32, 128, 'm6i.8xlarge'),
    { ...pool('gpu', 8, 96, 1152, 'p5.24xlarge'), gpus: 8 },
  ],
  pods: 900,
  load: 0.8,
  operators: ['gpu-operator-certified', 'cert-manager', 'prometheus', 'grafana-operator'],
  metrics: true,
  storage: { unused: 2 },
}

const drSite: ClusterScenario = {
  ...prodEast,
  name: 'dr-site',
  displayName: 'DR site (off on purpose)',
  labels: { environment: 'disaster-recovery', region: 'us-east-2', tier: 'critical' },
  reachable: false,
  region: 'us-east-2',
}

/** Six clusters of all sorts that live, one of which cannot be reached. */
const demo: Scenario = {
  name: 'demo',
  clusters: [prodEast, prodWest, staging, edgeParis, gpuLab, drSite],
  pace: {
    churnMs: seconds(6),
    happeningMs: [seconds(10), seconds(20)],
    opening: [
      { afterMs: seconds(8), cluster: 'prod-east', stage: 'deploymentRollout' },
      { afterMs: seconds(14), cluster: 'staging', stage: 'nodeLost' },
      { afterMs: seconds(24), cluster: 'prod-west', stage: 'clusterOperatorDegrades' },
      { afterMs: seconds(36), cluster: 'gpu-lab', stage: 'crashLoop' },
      { afterMs: seconds(48), cluster: 'staging', stage: 'operatorFails' },
      { afterMs: seconds(54), cluster: 'prod-west', stage: 'volumePending' },
      { afterMs: seconds(60), cluster: 'prod-east', stage: 'clusterUpdate' },
    ],
  },
}

/** What is wrong in the demo on purpose, in words: what cannot be reached, and what the opening does within a minute. */
export const demoFaults: readonly string[] = [
  ...demo.clusters.filter(({ reachable }) => !reachable).map(({ name }) => `${name} cannot be reached`),
  'a claim of staging has lost its volume, and two of gpu-lab wait for a pod',
  'within a minute staging loses a node and has an operator that fails, an operator of prod-west degrades and pods of gpu-lab crash; they recover',
]

/** Sizes of a plain fleet. */
export interface PlainOptions {
  readonly clusters: number
  /** per cluster; the first is the control plane where there are more than two */
  readonly nodes: number
  /** per cluster */
  readonly pods: number
  /** default false: worlds that stand still */
  readonly lives?: boolean
  readonly seed?: number
  /** per cluster; default: one for two hundred pods, at least two */
  readonly services?: number
  /** per cluster, of StatefulSets; default: one for a hundred pods */
  readonly claims?: number
}

/** Clusters of equal size named sim-001, sim-002 …: for measuring, and for `clusterpulse simulate`. */
function plain(options: PlainOptions): Scenario {
  const { clusters, nodes, pods, lives = false, seed = 1 } = options
  const { services = Math.max(2, Math.ceil(pods / 200)), claims = Math.floor(pods / 100) } = options
  const digits = Math.max(3, String(clusters).length)
  const central = nodes > 2 ? 1 : 0
  return {
    name: 'plain',
    seed,
    clusters: Array.from({ length: clusters }, (_, index) => ({
      ...staging,
      name: `sim-${String(index + 1).padStart(digits, '0')}`,
      displayName: `Simulated ${index + 1}`,
      labels: {
        environment: ['production', 'staging', 'development'][index % 3] ?? '',
        region: REGIONS[index % REGIONS.length] ?? '',
      },
      region: REGIONS[index % REGIONS.length] ?? '',
      pools: [
        pool('control-plane', central, 8, 32, 'm6i.2xlarge'),
        pool('worker', nodes - central, 16, 64, 'm6i.4xlarge'),
      ],
      pods,
      load: 0.55,
      operators: index % 5 === 0 ? ['cert-manager', 'grafana-operator'] : [],
      metrics: index % 4 !== 3,
      services,
      storage: { claims },
    })),
    ...(lives ? { pace: livingPace(clusters) } : {}),
  }
}

/** The more clusters, the more happens: about one thing per cluster in two minutes, small changes twice a minute. */
const livingPace = (clusters: number) => ({
  churnMs: seconds(30),
  happeningMs: [Math.max(200, seconds(80) / clusters), Math.max(400, seconds(160) / clusters)] as const,
  opening: [],
})

const REGIONS = ['us-east-1', 'us-west-2', 'eu-central-1', 'eu-west-3', 'ap-southeast-2']

/** The scenarios that come with the simulator. */
export const scenarios = { demo, plain } as const
