import type { ApiObject } from '#apiserver'
import type { OperatorFacts } from '../facts.ts'
import { uuidFrom } from '../random.ts'
import { timestamp } from './meta.ts'

export const csvName = (operator: OperatorFacts): string => `${operator.product.name}.v${operator.version}`

export function subscriptionObject(operator: OperatorFacts): ApiObject {
  const { name, channel, approval } = operator.product
  const csv = csvName(operator)
  return {
    apiVersion: 'operators.coreos.com/v1alpha1',
    kind: 'Subscription',
    metadata: {
      name,
      namespace: operator.namespace,
      uid: operator.uid,
      generation: 1,
      creationTimestamp: timestamp(operator.createdAt),
      labels: { [`operators.coreos.com/${name}.${operator.namespace}`.slice(0, 63).replace(/[-.]+$/, '')]: '' },
    },
    spec: {
      channel,
      installPlanApproval: approval,
      name,
      source: 'catalogue',
      sourceNamespace: 'openshift-marketplace',
      startingCSV: csv,
    },
    status: {
      currentCSV: csv,
      installedCSV: csv,
      installPlanGeneration: 1,
      lastUpdated: timestamp(operator.changedAt),
      state: operator.phase === 'Succeeded' ? 'AtLatestKnown' : 'UpgradePending',
      conditions: [
        {
          type: 'CatalogSourcesUnhealthy',
          status: 'False',
          reason: 'AllCatalogSourcesHealthy',
          message: 'all available catalogsources are healthy',
          lastTransitionTime: timestamp(operator.createdAt),
        },
      ],
    },
  }
}

export function csvObject(operator: OperatorFacts): ApiObject {
  const { name, displayName, provider, scope } = operator.product
  const all = scope === 'all'
  const supported: Readonly<Record<string, boolean>> = {
    OwnNamespace: !all,
    SingleNamespace: !all,
    MultiNamespace: !all && scope.length > 1,
    AllNamespaces: all,
  }
  return {
    apiVersion: 'operators.coreos.com/v1alpha1',
    kind: 'ClusterServiceVersion',
    metadata: {
      name: csvName(operator),
      namespace: operator.namespace,
      uid: uuidFrom(`${operator.uid}/${operator.version}`),
      generation: 1,
      creationTimestamp: timestamp(operator.createdAt),
      annotations: {
        capabilities: 'Full Lifecycle',
        categories: 'Cloud Provider',
        'olm.operatorGroup': `${operator.namespace}-group`,
        'olm.operatorNamespace': operator.namespace,
        'olm.targetNamespaces': all ? '' : scope.join(','),
      },
    },
    spec: {
      displayName,
      version: operator.version,
      provider: { name: provider },
      description: `${displayName}: installs and looks after its instances in this cluster.`,
      maturity: 'stable',
      minKubeVersion: '1.27.0',
      installModes: Object.entries(supported).map(([type, is]) => ({ type, supported: is })),
      install: { strategy: 'deployment', spec: { deployments: [{ name: `${name}-controller-manager` }] } },
      links: [{ name: displayName, url: `https://example.com/${name}` }],
    },
    status: {
      phase: operator.phase,
      reason: operator.reason,
      message: operator.message,
      lastUpdateTime: timestamp(operator.changedAt),
      lastTransitionTime: timestamp(operator.changedAt),
    },
  }
}
