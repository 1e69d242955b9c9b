/** A manifest, and what is wrong with copies of it: a field by its path, and the value it gets (undefined: it goes). */
export interface KindCase {
  readonly name: string
  /** path of the collection; `{namespace}` is filled in */
  readonly path: string
  readonly object: Readonly<Record<string, unknown>>
  /** refused, or filled in, when created */
  readonly created?: readonly Change[]
  /** refused, or taken, when an object that exists is written again */
  readonly updated?: readonly Change[]
  /** written through the status subresource */
  readonly status?: Readonly<Record<string, unknown>>
}

export type Change = readonly [path: string, value: unknown]

const container = { name: 'main', image: 'registry.example/main:1.0', command: ['run'] }
const labels = { app: 'sample' }
const template = { metadata: { labels }, spec: { containers: [container] } }
const once = { metadata: { labels }, spec: { containers: [container], restartPolicy: 'Never' } }
const selector = { matchLabels: labels }
const at = '2026-01-02T03:04:05Z'

const TEMPLATE_FAULTS: readonly Change[] = [
  ['spec.template.spec.containers', []],
  ['spec.template.spec.containers.0.image', undefined],
  ['spec.template.spec.containers.0.name', undefined],
  ['spec.template.spec.restartPolicy', 'Sometimes'],
]

const WORKLOAD_FAULTS: readonly Change[] = [
  ...TEMPLATE_FAULTS,
  ['spec.template.metadata.labels', { app: 'other' }],
  ['spec.selector', undefined],
  ['spec.template', undefined],
  ['spec.template.spec.restartPolicy', 'Never'],
  ['spec.minReadySeconds', -1],
]

const claim = {
  accessModes: ['ReadWriteOnce'],
  storageClassName: 'fast',
  resources: { requests: { storage: '10Gi' } },
}

export const kindCases: readonly KindCase[] = [
  {
    name: 'PersistentVolumeClaim',
    path: '/api/v1/namespaces/{namespace}/persistentvolumeclaims',
    object: { metadata: { name: 'sample', labels }, spec: claim },
    status: { phase: 'Bound', accessModes: ['ReadWriteOnce'], capacity: { storage: '10Gi' } },
    created: [
      ['spec.accessModes', undefined],
      ['spec.accessModes', []],
      ['spec.accessModes', ['Sometimes']],
      ['spec.accessModes', ['ReadWriteOncePod', 'ReadWriteOnce']],
      ['spec.resources', undefined],
      ['spec.resources.requests', { cpu: '1' }],
      ['spec.resources.requests.storage', '0'],
      ['spec.resources.requests.storage', '-1Gi'],
      ['spec.storageClassName', 'Not_A_Name'],
      ['spec.volumeMode', 'Raw'],
      ['spec.dataSource', { kind: 'VolumeSnapshot', name: 'before', apiGroup: 'snapshot.storage.k8s.io' }],
      ['spec.selector', { matchLabels: { tier: 'gold' } }],
      ['spec', undefined],
    ],
    updated: [
      ['spec.storageClassName', 'slow'],
      ['spec.accessModes', ['ReadWriteMany']],
      ['spec.volumeMode', 'Block'],
      ['spec.resources.requests.storage', '20Gi'],
      ['spec.resources.requests.storage', '5Gi'],
      ['metadata.labels', { app: 'other' }],
    ],
  },
  {
    name: 'PersistentVolume',
    path: '/api/v1/persistentvolumes',
    object: {
      metadata: { name: 'sample' },
      spec: {
        capacity: { storage: '10Gi' },
        accessModes: ['ReadWriteOnce', 'ReadOnlyMany'],
        storageClassName: 'fast',
        csi: { driver: 'csi.example.com', volumeHandle: 'v-1', fsType: 'ext4' },
        claimRef: { kind: 'PersistentVolumeClaim', apiVersion: 'v1', namespace: 'default', name: 'sample', uid: 'u' },
      },
    },
    status: { phase: 'Bound' },
    created: [
      ['spec.capacity', undefined],
      ['spec.capacity', { cpu: '1' }],
      ['spec.capacity.storage', '0'],
      ['spec.accessModes', undefined],
      ['spec.accessModes', ['Sometimes']],
      ['spec.csi', undefined],
      ['spec.hostPath', { path: '/data' }],
      ['spec.persistentVolumeReclaimPolicy', 'Delete'],
      ['spec.persistentVolumeReclaimPolicy', 'Burn'],
      ['spec.storageClassName', 'Not_A_Name'],
      ['spec.volumeMode', 'Raw'],
      ['spec.volumeMode', 'Block'],
      ['spec', undefined],
    ],
    updated: [
      ['spec.csi.volumeHandle', 'v-2'],
      ['spec.capacity.storage', '20Gi'],
      ['spec.persistentVolumeReclaimPolicy', 'Delete'],
      ['spec.volumeMode', 'Block'],
      ['spec.storageClassName', 'slow'],
    ],
  },
  {
    name: 'StorageClass',
    path: '/apis/storage.k8s.io/v1/storageclasses',
    object: {
      metadata: { name: 'sample', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
      provisioner: 'csi.example.com',
      parameters: { type: 'ssd' },
      allowVolumeExpansion: true,
      volumeBindingMode: 'WaitForFirstConsumer',
      allowedTopologies: [{ matchLabelExpressions: [{ key: 'topology.kubernetes.io/zone', values: ['a', 'b'] }] }],
    },
    created: [
      ['provisioner', undefined],
      ['provisioner', 'no such name'],
      ['reclaimPolicy', 'Retain'],
      ['reclaimPolicy', 'Burn'],
      ['volumeBindingMode', 'Later'],
      ['volumeBindingMode', undefined],
      ['allowVolumeExpansion', undefined],
      ['metadata.annotations', undefined],
    ],
    updated: [
      ['provisioner', 'other.example.com'],
      ['parameters', { type: 'disk' }],
      ['reclaimPolicy', 'Retain'],
      ['volumeBindingMode', 'Immediate'],
      ['allowVolumeExpansion', false],
    ],
  },
  {
    name: 'Job',
    path: '/apis/batch/v1/namespaces/{namespace}/jobs',
    object: { metadata: { name: 'sample', labels }, spec: { template: once } },
    status: { startTime: at, active: 1, ready: 1 },
    created: [
      ...TEMPLATE_FAULTS,
      ['spec.template.spec.restartPolicy', 'Always'],
      ['spec.template.spec.restartPolicy', undefined],
      ['spec.template', undefined],
      ['spec.parallelism', -1],
      ['spec.completions', -1],
      ['spec.completions', 5],
      ['spec.parallelism', 3],
      ['spec.backoffLimit', -1],
      ['spec.backoffLimit', 2],
      ['spec.activeDeadlineSeconds', -1],
      ['spec.ttlSecondsAfterFinished', -1],
      ['spec.completionMode', 'Random'],
      ['spec.completionMode', 'Indexed'],
      ['spec.selector', { matchLabels: { app: 'sample' } }],
      ['spec.template.metadata.labels', { app: 'sample', 'job-name': 'another' }],
      ['spec.suspend', true],
      ['spec', undefined],
    ],
    updated: [
      ['spec.template.spec.containers.0.image', 'registry.example/main:2.0'],
      ['spec.selector', { matchLabels: { app: 'sample' } }],
      ['spec.completions', 3],
      ['spec.parallelism', 3],
      ['spec.completionMode', 'Indexed'],
      ['spec.backoffLimit', 2],
      ['spec.ttlSecondsAfterFinished', 60],
    ],
  },
  {
    name: 'CronJob',
    path: '/apis/batch/v1/namespaces/{namespace}/cronjobs',
    object: {
      metadata: { name: 'sample', labels },
      spec: { schedule: '*/5 * * * *', jobTemplate: { spec: { template: once } } },
    },
    status: { lastScheduleTime: at, lastSuccessfulTime: at },
    created: [
      ['spec.schedule', undefined],
      ['spec.schedule', 'every day'],
      ['spec.schedule', '61 * * * *'],
      ['spec.schedule', '*/0 * * * *'],
      ['spec.schedule', '5-1 * * * *'],
      ['spec.schedule', '0 0 0 * *'],
      ['spec.schedule', '1-2-3 * * * *'],
      ['spec.schedule', '* * * * 7'],
      ['spec.schedule', '* x * * *'],
      ['spec.schedule', '*/5/2 * * * *'],
      ['spec.schedule', '@sometimes'],
      ['spec.schedule', '@every 1h30m'],
      ['spec.schedule', '@hourly'],
      ['spec.schedule', '0 4 * * mon-fri'],
      ['spec.schedule', 'TZ=UTC 0 4 * * *'],
      ['spec.timeZone', 'Europe/Paris'],
      ['spec.timeZone', 'Moon/Crater'],
      ['spec.timeZone', ''],
      ['spec.timeZone', 'Local'],
      ['spec.concurrencyPolicy', 'Never'],
      ['spec.startingDeadlineSeconds', -1],
      ['spec.successfulJobsHistoryLimit', -1],
      ['spec.failedJobsHistoryLimit', -1],
      ['spec.jobTemplate', undefined],
      ['spec.jobTemplate.spec.template.spec.restartPolicy', 'Always'],
      ['spec.jobTemplate.spec.template.spec.containers.0.image', undefined],
      ['spec.jobTemplate.spec.selector', { matchLabels: { app: 'sample' } }],
      ['spec.jobTemplate.spec.backoffLimit', -1],
      ['metadata.name', 'a-name-that-is-longer-than-a-cron-job-may-have-one-and-a-bit'],
      ['spec', undefined],
    ],
    updated: [
      ['spec.schedule', '0 4 * * *'],
      ['spec.schedule', 'soon'],
      ['spec.suspend', true],
      ['spec.jobTemplate.spec.template.spec.containers.0.image', 'registry.example/main:2.0'],
    ],
  },
  {
    name: 'Deployment',
    path: '/apis/apps/v1/namespaces/{namespace}/deployments',
    object: { metadata: { name: 'sample', labels }, spec: { replicas: 2, selector, template } },
    status: { observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 1, availableReplicas: 1 },
    created: [
      ...WORKLOAD_FAULTS,
      ['spec.replicas', -1],
      ['spec.replicas', undefined],
      ['spec.strategy', { type: 'Recreate' }],
      ['spec.strategy', { type: 'RollingUpdate' }],
      ['spec.strategy', { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 0 } }],
      ['spec.strategy', { type: 'RollingUpdate', rollingUpdate: { maxSurge: '50%' } }],
      ['spec.progressDeadlineSeconds', 0],
    ],
    updated: [
      ['spec.selector', { matchLabels: { app: 'other' } }],
      ['spec.replicas', 3],
    ],
  },
  {
    name: 'ReplicaSet',
    path: '/apis/apps/v1/namespaces/{namespace}/replicasets',
    object: { metadata: { name: 'sample', labels }, spec: { replicas: 2, selector, template } },
    status: { observedGeneration: 1, replicas: 2, readyReplicas: 1 },
    created: [...WORKLOAD_FAULTS.filter(([path]) => path !== 'spec.template'), ['spec.replicas', -1]],
    updated: [['spec.selector', { matchLabels: { app: 'other' } }]],
  },
  {
    name: 'DaemonSet',
    path: '/apis/apps/v1/namespaces/{namespace}/daemonsets',
    object: { metadata: { name: 'sample', labels }, spec: { selector, template } },
    status: { currentNumberScheduled: 2, desiredNumberScheduled: 3, numberMisscheduled: 0, numberReady: 1 },
    created: [
      ...WORKLOAD_FAULTS,
      ['spec.updateStrategy', { type: 'OnDelete' }],
      ['spec.updateStrategy', { type: 'RollingUpdate' }],
    ],
    updated: [['spec.selector', { matchLabels: { app: 'other' } }]],
  },
  {
    name: 'StatefulSet',
    path: '/apis/apps/v1/namespaces/{namespace}/statefulsets',
    object: {
      metadata: { name: 'sample', labels },
      spec: {
        serviceName: 'sample',
        replicas: 3,
        selector,
        template,
        volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: claim }],
      },
    },
    status: { replicas: 3, readyReplicas: 2, availableReplicas: 2, currentReplicas: 3, updatedReplicas: 3 },
    created: [
      ...WORKLOAD_FAULTS,
      ['spec.replicas', -1],
      ['spec.podManagementPolicy', 'Parallel'],
      ['spec.podManagementPolicy', 'Random'],
      ['spec.updateStrategy', { type: 'OnDelete' }],
      ['spec.persistentVolumeClaimRetentionPolicy', { whenScaled: 'Delete' }],
      ['spec.volumeClaimTemplates', undefined],
    ],
    updated: [
      ['spec.selector', { matchLabels: { app: 'other' } }],
      ['spec.serviceName', 'other'],
      ['spec.volumeClaimTemplates', undefined],
      ['spec.podManagementPolicy', 'Parallel'],
      ['spec.replicas', 4],
    ],
  },
  {
    name: 'Pod',
    path: '/api/v1/namespaces/{namespace}/pods',
    object: {
      metadata: {
        name: 'sample',
        ownerReferences: [
          {
            apiVersion: 'apps/v1',
            kind: 'ReplicaSet',
            name: 'sample',
            uid: '6b1f5a2e-9f3e-4b0e-8f6a-0d1c2b3a4f5e',
            controller: true,
            blockOwnerDeletion: true,
          },
        ],
      },
      spec: {
        containers: [{ ...container, resources: { requests: { cpu: '100m' }, limits: { cpu: '1', memory: '1Gi' } } }],
      },
    },
    created: [
      ['spec.containers', []],
      ['spec.containers.0.image', undefined],
      ['spec.restartPolicy', 'Sometimes'],
      ['metadata.ownerReferences.0.uid', ''],
      ['metadata.ownerReferences.0.kind', ''],
      ['metadata.ownerReferences.0.name', ''],
      ['spec.containers.0.image', 'registry.example/main'],
      ['spec.containers.0.resources', {}],
      ['spec.containers.0.resources', { limits: { cpu: '1', memory: '1Gi' } }],
      ['spec.tolerations', [{ operator: 'Exists' }]],
    ],
    updated: [
      ['spec.containers.0.image', 'registry.example/main:2.0'],
      ['metadata.labels', { a: 'b' }],
    ],
  },
  {
    name: 'Service',
    path: '/api/v1/namespaces/{namespace}/services',
    object: {
      metadata: { name: 'sample' },
      spec: { selector: labels, ports: [{ name: 'http', port: 80, targetPort: 8080 }], clusterIP: 'None' },
    },
    created: [
      ['spec.ports', [{ port: 0 }]],
      ['spec.ports', [{ port: 70000 }]],
      ['spec.ports', [{ port: 80 }, { port: 81 }]],
      ['spec.type', 'Somewhere'],
      ['spec.ports', [{ port: 80 }]],
    ],
    updated: [['spec.ports.0.port', 81]],
  },
  {
    name: 'NetworkPolicy',
    path: '/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies',
    object: {
      metadata: { name: 'sample', labels },
      spec: {
        podSelector: { matchLabels: labels, matchExpressions: [{ key: 'tier', operator: 'In', values: ['a', 'b'] }] },
        ingress: [{ from: [{ podSelector: selector }], ports: [{ protocol: 'TCP', port: 80 }] }],
        policyTypes: ['Ingress'],
      },
    },
    updated: [['spec.policyTypes', ['Ingress', 'Egress']]],
  },
  {
    name: 'Ingress',
    path: '/apis/networking.k8s.io/v1/namespaces/{namespace}/ingresses',
    object: {
      metadata: { name: 'sample' },
      spec: {
        ingressClassName: 'plain',
        tls: [{ hosts: ['a.example.com'], secretName: 'tls' }],
        rules: ['a', 'b', 'c', 'd'].map((host) => ({
          host: `${host}.example.com`,
          http: {
            paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } }],
          },
        })),
      },
    },
    status: { loadBalancer: { ingress: [{ ip: '192.0.2.10' }, { hostname: 'lb.example.com' }] } },
  },
  {
    name: 'IngressClass',
    path: '/apis/networking.k8s.io/v1/ingressclasses',
    object: {
      metadata: { name: 'sample' },
      spec: {
        controller: 'example.com/ingress',
        parameters: { apiGroup: 'k8s.example.com', kind: 'Settings', name: 'external', scope: 'Cluster' },
      },
    },
  },
  {
    name: 'EndpointSlice',
    path: '/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices',
    object: {
      metadata: { name: 'sample', labels: { 'kubernetes.io/service-name': 'web' } },
      addressType: 'IPv4',
      endpoints: [
        { addresses: ['192.0.2.1', '192.0.2.2'], conditions: { ready: true } },
        { addresses: ['192.0.2.3'], conditions: {} },
        { addresses: ['192.0.2.4'], conditions: {} },
      ],
      ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    },
  },
  {
    name: 'PodDisruptionBudget',
    path: '/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets',
    object: {
      metadata: { name: 'sample' },
      spec: { minAvailable: '50%', selector },
    },
  },
  {
    name: 'HorizontalPodAutoscaler',
    path: '/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers',
    object: {
      metadata: { name: 'sample' },
      spec: {
        scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' },
        minReplicas: 2,
        maxReplicas: 5,
        metrics: [
          { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 80 } } },
          { type: 'Pods', pods: { metric: { name: 'rate' }, target: { type: 'AverageValue', averageValue: '10' } } },
        ],
      },
    },
  },
  {
    name: 'PriorityClass',
    path: '/apis/scheduling.k8s.io/v1/priorityclasses',
    object: { metadata: { name: 'sample' }, value: 1000, description: 'important', preemptionPolicy: 'Never' },
    updated: [['description', 'more important']],
  },
  {
    name: 'ResourceQuota',
    path: '/api/v1/namespaces/{namespace}/resourcequotas',
    object: { metadata: { name: 'sample' }, spec: { hard: { pods: '10', 'limits.cpu': '4' } } },
    status: { hard: { pods: '10', 'limits.cpu': '4' }, used: { pods: '3', 'limits.cpu': '500m' } },
  },
  {
    name: 'LimitRange',
    path: '/api/v1/namespaces/{namespace}/limitranges',
    object: { metadata: { name: 'sample' }, spec: { limits: [{ type: 'Pod', max: { cpu: '2' } }] } },
  },
  {
    name: 'RuntimeClass',
    path: '/apis/node.k8s.io/v1/runtimeclasses',
    object: { metadata: { name: 'sample' }, handler: 'plain' },
  },
  {
    name: 'ControllerRevision',
    path: '/apis/apps/v1/namespaces/{namespace}/controllerrevisions',
    object: { metadata: { name: 'sample' }, data: { spec: { a: 1 } }, revision: 3 },
  },
  {
    name: 'Endpoints',
    path: '/api/v1/namespaces/{namespace}/endpoints',
    object: {
      metadata: { name: 'sample' },
      subsets: [{ addresses: [{ ip: '192.0.2.1' }, { ip: '192.0.2.2' }], ports: [{ port: 8080, protocol: 'TCP' }] }],
    },
  },
  {
    name: 'ValidatingAdmissionPolicyBinding',
    path: '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings',
    object: { metadata: { name: 'sample' }, spec: { policyName: 'rule', validationActions: ['Deny'] } },
  },
]
