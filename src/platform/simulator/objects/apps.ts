import type { ClusterScenario } from '../types.ts'

/** Namespaces that people made, and what runs in them. */
export const businessApps: Readonly<Record<string, readonly string[]>> = {
  checkout: ['checkout-api', 'checkout-web', 'cart', 'pricing', 'promotions'],
  payments: ['payments-api', 'payments-worker', 'ledger', 'fraud-check', 'settlement'],
  catalog: ['catalog-api', 'catalog-indexer', 'image-resizer', 'reviews'],
  search: ['search-api', 'search-gateway', 'suggest'],
  identity: ['login', 'session-store', 'profile-api', 'consent'],
  notifications: ['notify-api', 'mail-sender', 'push-sender', 'template-renderer'],
  shipping: ['shipping-api', 'label-printer', 'tracking', 'route-planner'],
  analytics: ['event-collector', 'event-router', 'report-builder', 'dashboards'],
  recommendations: ['recommend-api', 'feature-server', 'ranker'],
  inventory: ['stock-api', 'stock-sync', 'warehouse-gateway'],
  'data-platform': ['stream-processor', 'schema-registry', 'query-gateway'],
  ci: ['build-controller', 'artifact-cache', 'runner'],
}

/** What keeps its pods by number. */
export const statefulApps: readonly (readonly [namespace: string, app: string])[] = [
  ['payments', 'payments-postgres'],
  ['catalog', 'catalog-postgres'],
  ['search', 'opensearch'],
  ['data-platform', 'kafka'],
  ['identity', 'redis'],
  ['analytics', 'clickhouse'],
]

export const cronApps: readonly (readonly [namespace: string, app: string])[] = [
  ['payments', 'nightly-settlement'],
  ['catalog', 'reindex'],
  ['analytics', 'hourly-rollup'],
  ['data-platform', 'compact-topics'],
  ['ci', 'prune-cache'],
]

interface SystemApps {
  /** in the order of their importance: small clusters run the first only */
  readonly everywhere: readonly (readonly [namespace: string, app: string])[]
  /** on the control plane */
  readonly central: readonly (readonly [namespace: string, app: string])[]
  /** on infra nodes where there are any */
  readonly infra: readonly (readonly [namespace: string, app: string])[]
  readonly namespaces: readonly string[]
}

const KUBERNETES: SystemApps = {
  everywhere: [
    ['kube-system', 'cilium'],
    ['monitoring', 'node-exporter'],
    ['kube-system', 'csi-node'],
    ['logging', 'fluent-bit'],
  ],
  central: [
    ['kube-system', 'coredns'],
    ['kube-system', 'cilium-operator'],
    ['kube-system', 'csi-controller'],
  ],
  infra: [
    ['ingress-nginx', 'ingress-nginx-controller'],
    ['monitoring', 'prometheus'],
    ['monitoring', 'kube-state-metrics'],
  ],
  namespaces: ['default', 'kube-public', 'kube-node-lease'],
}

const K3S: SystemApps = {
  everywhere: [
    ['kube-system', 'svclb-traefik'],
    ['monitoring', 'node-exporter'],
  ],
  central: [
    ['kube-system', 'coredns'],
    ['kube-system', 'local-path-provisioner'],
  ],
  infra: [['kube-system', 'traefik']],
  namespaces: ['default', 'kube-public', 'kube-node-lease'],
}

const OPENSHIFT: SystemApps = {
  everywhere: [
    ['openshift-ovn-kubernetes', 'ovnkube-node'],
    ['openshift-monitoring', 'node-exporter'],
    ['openshift-dns', 'dns-default'],
    ['openshift-machine-config-operator', 'machine-config-daemon'],
    ['openshift-logging', 'collector'],
  ],
  central: [
    ['openshift-apiserver', 'apiserver'],
    ['openshift-authentication', 'oauth-openshift'],
    ['openshift-console', 'console'],
    ['openshift-etcd-operator', 'etcd-operator'],
    ['openshift-kube-apiserver-operator', 'kube-apiserver-operator'],
    ['openshift-machine-api', 'machine-api-controllers'],
    ['openshift-operator-lifecycle-manager', 'olm-operator'],
    ['openshift-ovn-kubernetes', 'ovnkube-control-plane'],
  ],
  infra: [
    ['openshift-ingress', 'router-default'],
    ['openshift-image-registry', 'image-registry'],
    ['openshift-monitoring', 'thanos-querier'],
    ['openshift-monitoring', 'kube-state-metrics'],
  ],
  namespaces: [
    'default',
    'kube-public',
    'kube-node-lease',
    'kube-system',
    'openshift',
    'openshift-config',
    'openshift-config-managed',
    'openshift-console',
    'openshift-etcd',
    'openshift-infra',
    'openshift-kube-apiserver',
    'openshift-kube-controller-manager',
    'openshift-kube-scheduler',
    'openshift-marketplace',
    'openshift-network-operator',
    'openshift-node',
    'openshift-operators',
    'openshift-user-workload-monitoring',
  ],
}

export const systemApps = ({ distribution }: ClusterScenario): SystemApps =>
  ({ openshift: OPENSHIFT, kubernetes: KUBERNETES, k3s: K3S })[distribution]

/** What needs devices. */
export const gpuApps: readonly string[] = [
  'train-vision',
  'train-speech',
  'embedding-server',
  'llm-gateway',
  'notebook',
]
