/** A product of an operator catalogue. */
export interface OperatorProduct {
  /** of the package and of the subscription */
  readonly name: string
  readonly displayName: string
  readonly provider: string
  readonly version: string
  readonly channel: string
  readonly namespace: string
  /** watches all namespaces, else these */
  readonly scope: 'all' | readonly string[]
  readonly approval: 'Automatic' | 'Manual'
}

const product = (
  name: string,
  displayName: string,
  provider: string,
  version: string,
  namespace: string,
  scope: 'all' | readonly string[] = 'all',
  approval: 'Automatic' | 'Manual' = 'Automatic',
): OperatorProduct => ({ name, displayName, provider, version, channel: 'stable', namespace, scope, approval })

/** What simulated clusters can have installed by OLM. */
export const operatorCatalogue: readonly OperatorProduct[] = [
  product(
    'openshift-gitops-operator',
    'Red Hat OpenShift GitOps',
    'Red Hat Inc.',
    '1.18.1',
    'openshift-gitops-operator',
  ),
  product('openshift-pipelines-operator-rh', 'Red Hat OpenShift Pipelines', 'Red Hat', '1.20.0', 'openshift-operators'),
  product('cluster-logging', 'Red Hat OpenShift Logging', 'Red Hat, Inc', '6.3.1', 'openshift-logging', [
    'openshift-logging',
  ]),
  product('loki-operator', 'Loki Operator', 'Red Hat', '6.3.1', 'openshift-operators-redhat'),
  product(
    'odf-operator',
    'OpenShift Data Foundation',
    'Red Hat',
    '4.20.1',
    'openshift-storage',
    ['openshift-storage'],
    'Manual',
  ),
  product(
    'advanced-cluster-management',
    'Advanced Cluster Management for Kubernetes',
    'Red Hat, Inc',
    '2.15.0',
    'open-cluster-management',
    ['open-cluster-management'],
  ),
  product('rhacs-operator', 'Advanced Cluster Security for Kubernetes', 'Red Hat', '4.9.0', 'rhacs-operator'),
  product('kiali-ossm', 'Kiali Operator', 'Red Hat', '2.17.1', 'openshift-operators'),
  product('servicemeshoperator3', 'Red Hat OpenShift Service Mesh 3', 'Red Hat, Inc.', '3.1.3', 'openshift-operators'),
  product('kubevirt-hyperconverged', 'OpenShift Virtualization', 'Red Hat', '4.20.1', 'openshift-cnv', [
    'openshift-cnv',
  ]),
  product('nfd', 'Node Feature Discovery', 'Red Hat', '4.20.0', 'openshift-nfd', ['openshift-nfd']),
  product('gpu-operator-certified', 'NVIDIA GPU Operator', 'NVIDIA Corporation', '25.10.0', 'nvidia-gpu-operator', [
    'nvidia-gpu-operator',
  ]),
  product('cert-manager', 'cert-manager', 'The cert-manager maintainers', '1.19.1', 'operators'),
  product('grafana-operator', 'Grafana Operator', 'Grafana Labs', '5.20.0', 'operators'),
  product('strimzi-kafka-operator', 'Strimzi', 'Strimzi', '0.49.0', 'operators'),
  product('cloudnative-pg', 'CloudNativePG', 'The CloudNativePG Contributors', '1.27.1', 'operators'),
  product('keycloak-operator', 'Keycloak Operator', 'Keycloak Community', '26.4.2', 'identity', [
    'identity',
    'identity-staging',
  ]),
  product(
    'vault-secrets-operator',
    'HashiCorp Vault Secrets Operator',
    'HashiCorp',
    '1.1.0',
    'operators',
    'all',
    'Manual',
  ),
  product('prometheus', 'Prometheus Operator', 'Red Hat', '0.86.1', 'monitoring', ['monitoring']),
  product('external-secrets-operator', 'External Secrets Operator', 'External Secrets', '1.0.0', 'operators'),
]
