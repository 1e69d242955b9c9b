import type { ApiObject, ApiServer } from '#apiserver'
import { metricSource, registryConnection } from '#kinds'
import type { DeclaredOnce } from './declared-once.ts'
import { HUB_NAMESPACE } from './object-names.ts'

const SOURCES = { group: metricSource.group, version: metricSource.version, plural: metricSource.plural }
const REGISTRIES = {
  group: registryConnection.group,
  version: registryConnection.version,
  plural: registryConnection.plural,
}
const labels = { 'app.kubernetes.io/part-of': 'clusterpulse-demo' }

/** What else the demo collects: a few of the shipped examples. Made once; changes stay. */
export async function declareDemoSources(declared: DeclaredOnce): Promise<void> {
  const { apiVersion, kind } = metricSource
  for (const [name, spec] of Object.entries(demoSources)) {
    const metadata = { name, namespace: HUB_NAMESPACE, labels }
    await declared.make(SOURCES, { apiVersion, kind, metadata, spec } as ApiObject)
  }
}

/** A registry that nothing listens for. */
export const offRegistry = 'old-registry'

/** The demo's registries: one that answers, and one that is not there. Their addresses are of this process, so they are set anew. */
export async function declareDemoRegistries(server: ApiServer, declared: DeclaredOnce, url: string): Promise<void> {
  await declareRegistry(server, declared, 'demo-registry', {
    displayName: 'Demo Registry',
    endpoint: url,
    type: 'distribution',
    insecure: true,
    monitoring: { interval: 30, checkCatalog: true },
    labels: { environment: 'production' },
  })
  await declareRegistry(server, declared, offRegistry, {
    displayName: 'Old Registry',
    // A port below 1024 that no service has: a connection is refused at once.
    endpoint: 'https://127.0.0.1:4',
    type: 'distribution',
    monitoring: { interval: 60, timeout: 5 },
    labels: { environment: 'disaster-recovery' },
  })
}

async function declareRegistry(
  server: ApiServer,
  declared: DeclaredOnce,
  name: string,
  spec: Record<string, unknown>,
): Promise<void> {
  const { apiVersion, kind } = registryConnection
  const metadata = { name, namespace: HUB_NAMESPACE, labels }
  const known = await declared.make(REGISTRIES, { apiVersion, kind, metadata, spec } as ApiObject)
  if (known) await server.objects.put({ ...known, spec: { ...(known.spec as object), endpoint: spec.endpoint } })
}

/** What the demo's registry holds. */
export const demoRepositories: readonly string[] = ['checkout', 'payments', 'catalog', 'search', 'identity'].flatMap(
  (team) => ['api', 'worker', 'migrations'].map((part) => `${team}/${part}`),
)

/** As in deploy/examples/metric-sources; a test holds them to it. */
export const demoSources: Readonly<Record<string, Record<string, unknown>>> = {
  'deployment-health': {
    source: {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      namespaces: {
        exclude: ['openshift-*', 'kube-*'],
      },
    },
    fields: [
      {
        name: 'replicas',
        path: '.spec.replicas',
        type: 'integer',
        default: '1',
      },
      {
        name: 'readyReplicas',
        path: '.status.readyReplicas',
        type: 'integer',
        default: '0',
      },
      {
        name: 'availableReplicas',
        path: '.status.availableReplicas',
        type: 'integer',
        default: '0',
      },
      {
        name: 'unavailableReplicas',
        path: '.status.unavailableReplicas',
        type: 'integer',
        default: '0',
      },
      {
        name: 'updatedReplicas',
        path: '.status.updatedReplicas',
        type: 'integer',
        default: '0',
      },
      {
        name: 'available',
        path: '.status.conditions[?(@.type=="Available")].status',
      },
      {
        name: 'images',
        path: '.spec.template.spec.containers[*].image',
      },
    ],
    computed: [
      {
        name: 'readyPercent',
        expression: 'round((readyReplicas / max(replicas, 1)) * 100, 1)',
        type: 'float',
      },
      {
        name: 'state',
        expression:
          'if(replicas == 0, "scaled to zero", if(readyReplicas >= replicas, "ready", if(readyReplicas > 0, "degraded", "down")))',
        type: 'string',
      },
    ],
    aggregations: [
      {
        name: 'total_deployments',
        function: 'count',
      },
      {
        name: 'total_desired_replicas',
        function: 'sum',
        field: 'replicas',
      },
      {
        name: 'total_ready_replicas',
        function: 'sum',
        field: 'readyReplicas',
      },
      {
        name: 'fully_available',
        function: 'count',
        filter: {
          field: 'unavailableReplicas',
          operator: 'equals',
          value: '0',
        },
      },
      {
        name: 'degraded',
        function: 'count',
        filter: {
          field: 'unavailableReplicas',
          operator: 'greaterThan',
          value: '0',
        },
      },
      {
        name: 'avg_ready_percent',
        function: 'avg',
        field: 'readyPercent',
      },
      {
        name: 'by_state',
        function: 'count',
        groupBy: 'state',
      },
    ],
    collection: {
      intervalSeconds: 60,
      maxResources: 5000,
      watch: true,
    },
    rbac: {
      resourceTypeName: 'deployment',
      filterableFields: ['readyPercent', 'state'],
    },
  },
  'node-pressure': {
    source: {
      apiVersion: 'v1',
      kind: 'Node',
      scope: 'Cluster',
    },
    fields: [
      {
        name: 'ready',
        path: '.status.conditions[?(@.type=="Ready")].status',
      },
      {
        name: 'memoryPressure',
        path: '.status.conditions[?(@.type=="MemoryPressure")].status',
        default: 'False',
      },
      {
        name: 'diskPressure',
        path: '.status.conditions[?(@.type=="DiskPressure")].status',
        default: 'False',
      },
      {
        name: 'pidPressure',
        path: '.status.conditions[?(@.type=="PIDPressure")].status',
        default: 'False',
      },
      {
        name: 'zone',
        path: '.metadata.labels["topology.kubernetes.io/zone"]',
      },
      {
        name: 'cpu',
        path: '.status.allocatable.cpu',
        type: 'cpu',
      },
      {
        name: 'memory',
        path: '.status.allocatable.memory',
        type: 'bytes',
      },
      {
        name: 'maxPods',
        path: '.status.allocatable.pods',
        type: 'integer',
      },
      {
        name: 'taints',
        path: '.spec.taints',
        type: 'arrayLength',
        default: '0',
      },
    ],
    computed: [
      {
        name: 'pressures',
        expression:
          'if(memoryPressure == "True", 1, 0) + if(diskPressure == "True", 1, 0) + if(pidPressure == "True", 1, 0)',
        type: 'integer',
      },
      {
        name: 'underPressure',
        expression: 'pressures > 0',
        type: 'boolean',
      },
    ],
    aggregations: [
      {
        name: 'nodes',
        function: 'count',
      },
      {
        name: 'nodes_under_pressure',
        function: 'count',
        filter: {
          field: 'pressures',
          operator: 'greaterThan',
          value: '0',
        },
      },
      {
        name: 'nodes_not_ready',
        function: 'count',
        filter: {
          field: 'ready',
          operator: 'notEquals',
          value: 'True',
        },
      },
      {
        name: 'allocatable_cpu_cores',
        function: 'sum',
        field: 'cpu',
      },
      {
        name: 'allocatable_memory_bytes',
        function: 'sum',
        field: 'memory',
      },
      {
        name: 'by_zone',
        function: 'count',
        groupBy: 'zone',
      },
    ],
    collection: {
      intervalSeconds: 60,
      watch: true,
    },
    rbac: {
      resourceTypeName: 'node-pressure',
      filterableFields: ['zone', 'ready', 'underPressure'],
    },
  },
  certificates: {
    source: {
      apiVersion: 'cert-manager.io/v1',
      kind: 'Certificate',
    },
    fields: [
      {
        name: 'secret',
        path: '.spec.secretName',
      },
      {
        name: 'issuer',
        path: '.spec.issuerRef.name',
      },
      {
        name: 'issuerKind',
        path: '.spec.issuerRef.kind',
        default: 'Issuer',
      },
      {
        name: 'names',
        path: '.spec.dnsNames',
        type: 'arrayLength',
        default: '0',
      },
      {
        name: 'ready',
        path: '.status.conditions[?(@.type=="Ready")].status',
        default: 'Unknown',
      },
      {
        name: 'reason',
        path: '.status.conditions[?(@.type=="Ready")].reason',
      },
      {
        name: 'notAfter',
        path: '.status.notAfter',
        type: 'timestamp',
      },
      {
        name: 'renewalTime',
        path: '.status.renewalTime',
        type: 'timestamp',
      },
    ],
    computed: [
      {
        name: 'daysLeft',
        expression: 'if(notAfter == null, null, round(-age(notAfter) / 86400, 1))',
        type: 'float',
      },
      {
        name: 'expiring',
        expression: 'daysLeft != null && daysLeft < 21',
        type: 'boolean',
      },
    ],
    aggregations: [
      {
        name: 'certificates',
        function: 'count',
      },
      {
        name: 'certificates_not_ready',
        function: 'count',
        filter: {
          field: 'ready',
          operator: 'notEquals',
          value: 'True',
        },
      },
      {
        name: 'certificates_expiring',
        function: 'count',
        filter: {
          field: 'expiring',
          operator: 'equals',
          value: 'true',
        },
      },
      {
        name: 'min_days_left',
        function: 'min',
        field: 'daysLeft',
      },
      {
        name: 'by_issuer',
        function: 'count',
        groupBy: 'issuer',
      },
    ],
    collection: {
      intervalSeconds: 300,
    },
    rbac: {
      resourceTypeName: 'certificate',
      filterableFields: ['issuer', 'ready', 'expiring'],
    },
  },
}
