/** Objects that use much of what their kinds have, as the real API accepts them. */
export interface Sample {
  readonly kind: string
  readonly apiVersion: string
  /** path of the collection; `{namespace}` is filled in */
  readonly path: string
  readonly object: Readonly<Record<string, unknown>>
  /** written through the status subresource */
  readonly status?: Readonly<Record<string, unknown>>
}

/** A request of openssl for CN=sample, PEM in base64. */
const REQUEST = [
  'LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlITE1ITUNBUUF3RVRFUE1BMEdBMVVFQXd3R2MyRnRjR3hsTUZr',
  'd0V3WUhLb1pJemowQ0FRWUlLb1pJemowRApBUWNEUWdBRUh4Y1VmQ2k4Z21vQzNkMVBJbFUxSkxIUnQ2Z29selFQVGZhZUtWNnAx',
  'NENHVENWcUpvQmpuRWJKClJ2QTdVVDVROWZqc3Y3U0E4RWVyMFRlbHVzcVYwcUFBTUFvR0NDcUdTTTQ5QkFNQ0EwZ0FNRVVDSUho',
  'czFwanEKdzRaWGdTTld1WmJzMWFIelBhUWNrbUcwRC9LdWwrT0FvcHJCQWlFQTl3b0FrTWxYU3dYNjZSUloxSHY3UnhyUgplWVo2',
  'Z2puSXJkSVRzajlkZHpzPQotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K',
].join('')

const container = {
  name: 'web',
  image: 'registry.example/web:1.2',
  command: ['/bin/web'],
  args: ['--port', '8080', ''],
  workingDir: '/srv',
  ports: [{ name: 'http', containerPort: 8080, protocol: 'TCP' }],
  env: [
    { name: 'PLAIN', value: 'text with ünïcode' },
    { name: 'NODE', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'spec.nodeName' } } },
    { name: 'LIMIT', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor: '1m' } } },
    { name: 'SECRET', valueFrom: { secretKeyRef: { name: 'login', key: 'password', optional: false } } },
  ],
  envFrom: [{ prefix: 'CM_', configMapRef: { name: 'settings' } }],
  resources: { requests: { cpu: '250m', memory: '1Gi' }, limits: { cpu: '1', memory: '2Gi' } },
  volumeMounts: [{ name: 'data', mountPath: '/data', readOnly: true, subPath: 'a' }],
  livenessProbe: { httpGet: { path: '/healthz', port: 'http', scheme: 'HTTP' }, initialDelaySeconds: 5 },
  readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 3 },
  startupProbe: { exec: { command: ['true'] }, failureThreshold: 30 },
  lifecycle: { preStop: { exec: { command: ['stop'] } } },
  securityContext: {
    runAsUser: 0,
    runAsNonRoot: false,
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { add: ['NET_ADMIN'], drop: ['ALL'] },
    seccompProfile: { type: 'RuntimeDefault' },
  },
}

const podSpec = {
  initContainers: [{ name: 'init', image: 'init', restartPolicy: 'Always' }],
  containers: [container, { name: 'side', image: 'side' }],
  nodeSelector: { 'kubernetes.io/os': 'linux' },
  terminationGracePeriodSeconds: 0,
  tolerations: [
    { operator: 'Exists' },
    { key: 'a', operator: 'Equal', value: 'b', effect: 'NoExecute', tolerationSeconds: 0 },
  ],
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In', values: ['a', 'b'] }] }],
      },
    },
    podAntiAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [
        {
          weight: 1,
          podAffinityTerm: { labelSelector: { matchLabels: { app: 'web' } }, topologyKey: 'kubernetes.io/hostname' },
        },
      ],
    },
  },
  topologySpreadConstraints: [
    {
      maxSkew: 1,
      topologyKey: 'zone',
      whenUnsatisfiable: 'ScheduleAnyway',
      labelSelector: { matchExpressions: [{ key: 'app', operator: 'Exists' }] },
    },
  ],
  hostAliases: [{ ip: '10.0.0.1', hostnames: ['one', 'two'] }],
  imagePullSecrets: [{ name: 'pull' }],
  dnsPolicy: 'ClusterFirst',
  dnsConfig: { nameservers: ['1.1.1.1'], options: [{ name: 'ndots', value: '2' }, { name: 'edns0' }] },
  securityContext: { fsGroup: 0, supplementalGroups: [1, 2, 3], sysctls: [{ name: 'net.core.x', value: '1' }] },
  serviceAccountName: 'default',
  automountServiceAccountToken: false,
  enableServiceLinks: false,
  priority: 0,
  volumes: [
    { name: 'data', emptyDir: { medium: 'Memory', sizeLimit: '64Mi' } },
    { name: 'cm', configMap: { name: 'settings', items: [{ key: 'a', path: 'b', mode: 0 }], optional: true } },
    { name: 'secret', secret: { secretName: 'login', defaultMode: 256 } },
    { name: 'host', hostPath: { path: '/var', type: '' } },
    { name: 'claim', persistentVolumeClaim: { claimName: 'disk', readOnly: true } },
    {
      name: 'all',
      projected: {
        sources: [
          { serviceAccountToken: { audience: 'x', expirationSeconds: 3600, path: 'token' } },
          { configMap: { name: 'settings' } },
          { downwardAPI: { items: [{ path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } }] } },
        ],
      },
    },
    { name: 'csi', csi: { driver: 'd.example', volumeAttributes: { a: 'b' }, nodePublishSecretRef: { name: 's' } } },
  ],
}

const template = { metadata: { labels: { app: 'web' }, annotations: { note: '' } }, spec: podSpec }
const selector = { matchLabels: { app: 'web' } }

const meta = {
  name: 'sample',
  labels: { app: 'web', empty: '' },
  annotations: { 'example.com/text': 'line\nline "quoted" — ünïcode' },
  finalizers: ['example.com/keep'],
  ownerReferences: [
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      name: 'owner',
      uid: '6b1f5a2e-9f3e-4b0e-8f6a-0d1c2b3a4f5e',
      controller: true,
      blockOwnerDeletion: false,
    },
  ],
}

const at = '2026-01-02T03:04:05Z'

const secretRef = { name: 's', namespace: 'default' }

/** A persistent volume of each sort, some fields at nothing. */
const volumeSources = {
  csi: {
    driver: 'csi.example.com',
    volumeHandle: 'v-1',
    fsType: 'ext4',
    volumeAttributes: { a: 'b' },
    controllerPublishSecretRef: secretRef,
    nodeStageSecretRef: secretRef,
    nodePublishSecretRef: secretRef,
    controllerExpandSecretRef: secretRef,
    nodeExpandSecretRef: secretRef,
  },
  local: { path: '/mnt/a', fsType: 'xfs' },
  hostPath: { path: '/data', type: 'Directory' },
  nfs: { server: 'files.example', path: '/', readOnly: true },
  iscsi: {
    targetPortal: '10.0.0.1:3260',
    iqn: 'iqn.2026-01.example:a',
    lun: 0,
    iscsiInterface: 'default',
    portals: ['10.0.0.2'],
    secretRef,
    chapAuthSession: true,
    initiatorName: 'iqn.2026-01.example:b',
  },
  rbd: { monitors: ['m'], image: 'i', pool: 'rbd', user: 'admin', keyring: '/etc/k', secretRef },
  cephfs: { monitors: ['m'], path: '/', user: 'admin', secretFile: '/etc/s', secretRef },
  cinder: { volumeID: 'v', fsType: 'ext4', secretRef },
  fc: { targetWWNs: ['w'], lun: 0 },
  flexVolume: { driver: 'd/x', fsType: 'ext4', secretRef, options: { a: 'b' } },
  azureFile: { secretName: 's', shareName: 'a', secretNamespace: 'default' },
  azureDisk: {
    diskName: 'd',
    diskURI: 'https://x/d.vhd',
    cachingMode: 'None',
    fsType: 'ext4',
    readOnly: false,
    kind: 'Shared',
  },
  glusterfs: { endpoints: 'e', path: '/', endpointsNamespace: 'default' },
  gcePersistentDisk: { pdName: 'd', partition: 1 },
  awsElasticBlockStore: { volumeID: 'v', fsType: 'ext4' },
  vsphereVolume: { volumePath: '[ds] a.vmdk', fsType: 'ext4' },
  scaleIO: {
    gateway: 'g',
    system: 's',
    secretRef,
    storageMode: 'ThinProvisioned',
    volumeName: 'v',
    fsType: 'xfs',
  },
  storageos: { volumeName: 'v', volumeNamespace: 'n', secretRef: { name: 's', namespace: 'default' } },
  portworxVolume: { volumeID: 'v', fsType: 'ext4' },
  quobyte: { registry: 'r:7861', volume: 'v', user: 'u', group: 'g', tenant: 't' },
  flocker: { datasetName: 'd' },
  photonPersistentDisk: { pdID: 'p', fsType: 'ext4' },
}

export const samples: readonly Sample[] = [
  {
    kind: 'Pod',
    apiVersion: 'v1',
    path: '/api/v1/namespaces/{namespace}/pods',
    object: { metadata: meta, spec: { ...podSpec, priority: undefined } },
    status: {
      phase: 'Running',
      conditions: [
        { type: 'Ready', status: 'True', lastProbeTime: at, lastTransitionTime: at },
        { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: 'no nodes' },
      ],
      hostIP: '10.1.0.1',
      podIP: '10.2.0.3',
      podIPs: [{ ip: '10.2.0.3' }],
      startTime: at,
      qosClass: 'Burstable',
      containerStatuses: [
        {
          name: 'web',
          image: 'web',
          imageID: 'sha256:1',
          containerID: 'containerd://1',
          ready: false,
          started: false,
          restartCount: 3,
          state: { waiting: { reason: 'CrashLoopBackOff', message: 'again' } },
          lastState: { terminated: { exitCode: 0, signal: 9, reason: 'Error', startedAt: at, finishedAt: at } },
        },
        {
          name: 'side',
          image: 'side',
          imageID: '',
          ready: true,
          restartCount: 0,
          state: { running: { startedAt: at } },
          lastState: {},
        },
      ],
    },
  },
  {
    kind: 'Node',
    apiVersion: 'v1',
    path: '/api/v1/nodes',
    object: {
      metadata: { name: 'sample', labels: { zone: 'a' } },
      spec: {
        podCIDR: '10.2.0.0/24',
        podCIDRs: ['10.2.0.0/24'],
        providerID: 'cloud://1',
        unschedulable: true,
        taints: [{ key: 'a', value: 'b', effect: 'NoExecute', timeAdded: at }],
      },
    },
    status: {
      capacity: { cpu: '8', memory: '16Gi', pods: '110', 'example.com/gpu': '2' },
      allocatable: { cpu: '7500m', memory: '15Gi', pods: '110' },
      conditions: [
        {
          type: 'Ready',
          status: 'True',
          lastHeartbeatTime: at,
          lastTransitionTime: at,
          reason: 'KubeletReady',
          message: 'ok',
        },
      ],
      addresses: [
        { type: 'InternalIP', address: '10.1.0.1' },
        { type: 'Hostname', address: 'sample' },
      ],
      daemonEndpoints: { kubeletEndpoint: { Port: 10250 } },
      nodeInfo: {
        machineID: 'm',
        systemUUID: 'u',
        bootID: 'b',
        kernelVersion: '6.1',
        osImage: 'Linux',
        containerRuntimeVersion: 'containerd://2.0.0',
        kubeletVersion: 'v1.35.0',
        kubeProxyVersion: '',
        operatingSystem: 'linux',
        architecture: 'amd64',
      },
      images: [{ names: ['a@sha256:1', 'a:1'], sizeBytes: 123456789012 }],
      volumesInUse: ['v'],
      volumesAttached: [{ name: 'v', devicePath: '/dev/sdb' }],
    },
  },
  {
    kind: 'Namespace',
    apiVersion: 'v1',
    path: '/api/v1/namespaces',
    object: { metadata: { name: 'sample', labels: { team: 'a' } } },
  },
  {
    kind: 'Deployment',
    apiVersion: 'apps/v1',
    path: '/apis/apps/v1/namespaces/{namespace}/deployments',
    object: {
      metadata: meta,
      spec: {
        replicas: 0,
        selector,
        template: { ...template, spec: { ...podSpec, priority: undefined } },
        strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '50%', maxUnavailable: 0 } },
        minReadySeconds: 5,
        paused: true,
      },
    },
    status: {
      observedGeneration: 1,
      replicas: 2,
      updatedReplicas: 1,
      readyReplicas: 2,
      availableReplicas: 1,
      unavailableReplicas: 1,
      conditions: [
        {
          type: 'Available',
          status: 'True',
          reason: 'r',
          message: 'm',
          lastUpdateTime: at,
          lastTransitionTime: at,
        },
      ],
      collisionCount: 0,
    },
  },
  {
    kind: 'ReplicaSet',
    apiVersion: 'apps/v1',
    path: '/apis/apps/v1/namespaces/{namespace}/replicasets',
    object: { metadata: meta, spec: { replicas: 2, selector, template } },
    status: { replicas: 0, observedGeneration: 1 },
  },
  {
    kind: 'DaemonSet',
    apiVersion: 'apps/v1',
    path: '/apis/apps/v1/namespaces/{namespace}/daemonsets',
    object: { metadata: meta, spec: { selector, template, updateStrategy: { type: 'OnDelete' } } },
    status: { currentNumberScheduled: 1, desiredNumberScheduled: 2, numberMisscheduled: 0, numberReady: 0 },
  },
  {
    kind: 'StatefulSet',
    apiVersion: 'apps/v1',
    path: '/apis/apps/v1/namespaces/{namespace}/statefulsets',
    object: {
      metadata: meta,
      spec: { serviceName: 'web', replicas: 3, selector, template, podManagementPolicy: 'Parallel' },
    },
    status: { replicas: 3, readyReplicas: 2, currentRevision: 'a', updateRevision: 'b' },
  },
  {
    kind: 'Secret',
    apiVersion: 'v1',
    path: '/api/v1/namespaces/{namespace}/secrets',
    object: { metadata: meta, data: { binary: 'AAH/gA==', empty: '' }, type: 'example.com/kind', immutable: false },
  },
  {
    kind: 'ConfigMap',
    apiVersion: 'v1',
    path: '/api/v1/namespaces/{namespace}/configmaps',
    object: { metadata: meta, data: { text: 'a\nb', empty: '' }, binaryData: { raw: '/+8=' }, immutable: true },
  },
  {
    kind: 'Event',
    apiVersion: 'v1',
    path: '/api/v1/namespaces/{namespace}/events',
    object: {
      metadata: { name: 'sample' },
      involvedObject: { kind: 'Pod', namespace: '{namespace}', name: 'p', uid: 'u', fieldPath: 'spec.containers{web}' },
      reason: 'BackOff',
      message: 'again and again',
      source: { component: 'kubelet', host: 'n1' },
      firstTimestamp: at,
      lastTimestamp: at,
      eventTime: null,
      count: 7,
      type: 'Warning',
      reportingComponent: 'kubelet',
      reportingInstance: 'n1',
    },
  },
  {
    kind: 'Event',
    apiVersion: 'events.k8s.io/v1',
    path: '/apis/events.k8s.io/v1/namespaces/{namespace}/events',
    object: {
      metadata: { name: 'sample-new' },
      regarding: { kind: 'Pod', namespace: '{namespace}', name: 'p' },
      related: { kind: 'Node', name: 'n' },
      eventTime: '2026-01-02T03:04:05.678901Z',
      series: { count: 2, lastObservedTime: '2026-01-02T03:04:06.000001Z' },
      reason: 'Scheduled',
      action: 'Binding',
      note: 'done',
      type: 'Normal',
      reportingController: 'example.com/scheduler',
      reportingInstance: 's1',
    },
  },
  {
    kind: 'Lease',
    apiVersion: 'coordination.k8s.io/v1',
    path: '/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases',
    object: {
      metadata: meta,
      spec: {
        holderIdentity: 'me',
        leaseDurationSeconds: 15,
        acquireTime: '2026-01-02T03:04:05.000000Z',
        renewTime: '2026-01-02T03:04:05.123456Z',
        leaseTransitions: 0,
      },
    },
  },
  {
    kind: 'ServiceAccount',
    apiVersion: 'v1',
    path: '/api/v1/namespaces/{namespace}/serviceaccounts',
    object: {
      metadata: meta,
      secrets: [{ name: 's' }],
      imagePullSecrets: [{ name: 'p' }],
      automountServiceAccountToken: false,
    },
  },
  {
    kind: 'Service',
    apiVersion: 'v1',
    path: '/api/v1/namespaces/{namespace}/services',
    object: {
      metadata: meta,
      spec: {
        selector: { app: 'web' },
        ports: [
          { name: 'http', port: 80, targetPort: 'http', appProtocol: 'http' },
          { name: 'dns', port: 53, targetPort: 5353, protocol: 'UDP' },
        ],
        clusterIP: 'None',
        clusterIPs: ['None'],
        sessionAffinity: 'ClientIP',
        sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } },
        publishNotReadyAddresses: true,
      },
    },
    status: { loadBalancer: {} },
  },
  {
    kind: 'Job',
    apiVersion: 'batch/v1',
    path: '/apis/batch/v1/namespaces/{namespace}/jobs',
    object: {
      metadata: { name: 'sample' },
      spec: {
        template: {
          ...template,
          spec: { ...podSpec, initContainers: undefined, priority: undefined, restartPolicy: 'Never' },
        },
        manualSelector: true,
        selector,
        parallelism: 0,
        completions: 4,
        completionMode: 'Indexed',
        backoffLimitPerIndex: 1,
        maxFailedIndexes: 0,
        activeDeadlineSeconds: 600,
        ttlSecondsAfterFinished: 0,
        managedBy: 'example.com/controller',
        podFailurePolicy: {
          rules: [
            { action: 'FailIndex', onExitCodes: { containerName: 'web', operator: 'In', values: [1, 42] } },
            { action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget', status: 'True' }] },
          ],
        },
        successPolicy: { rules: [{ succeededIndexes: '0-2', succeededCount: 1 }] },
      },
    },
    status: {
      startTime: at,
      active: 1,
      ready: 0,
      terminating: 0,
      succeeded: 2,
      failed: 1,
      completedIndexes: '0,2',
      failedIndexes: '',
      uncountedTerminatedPods: { succeeded: ['u1'], failed: ['u2'] },
      conditions: [
        {
          type: 'Suspended',
          status: 'False',
          lastProbeTime: at,
          lastTransitionTime: at,
          reason: 'JobResumed',
          message: 'm',
        },
      ],
    },
  },
  {
    kind: 'CronJob',
    apiVersion: 'batch/v1',
    path: '/apis/batch/v1/namespaces/{namespace}/cronjobs',
    object: {
      metadata: meta,
      spec: {
        schedule: '*/5 * * * *',
        timeZone: 'Etc/UTC',
        startingDeadlineSeconds: 0,
        concurrencyPolicy: 'Forbid',
        suspend: true,
        successfulJobsHistoryLimit: 0,
        failedJobsHistoryLimit: 2,
        jobTemplate: {
          metadata: { labels: { app: 'web' } },
          spec: { template: { spec: { containers: [{ name: 'side', image: 'side' }], restartPolicy: 'OnFailure' } } },
        },
      },
    },
    status: {
      active: [{ apiVersion: 'batch/v1', kind: 'Job', namespace: '{namespace}', name: 'sample-1', uid: 'u' }],
      lastScheduleTime: at,
      lastSuccessfulTime: at,
    },
  },
  {
    kind: 'PersistentVolumeClaim',
    apiVersion: 'v1',
    path: '/api/v1/namespaces/{namespace}/persistentvolumeclaims',
    object: {
      metadata: meta,
      spec: {
        accessModes: ['ReadWriteOnce', 'ReadOnlyMany'],
        selector,
        resources: { requests: { storage: '10Gi' }, limits: { storage: '20Gi' } },
        volumeName: 'v1',
        storageClassName: '',
        volumeMode: 'Block',
        dataSourceRef: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'before' },
      },
    },
    status: {
      phase: 'Bound',
      accessModes: ['ReadWriteOnce'],
      capacity: { storage: '10Gi' },
      allocatedResources: { storage: '20Gi' },
      allocatedResourceStatuses: { storage: 'NodeResizePending' },
      conditions: [{ type: 'FileSystemResizePending', status: 'True', lastProbeTime: at, lastTransitionTime: at }],
      currentVolumeAttributesClassName: 'silver',
      modifyVolumeStatus: { targetVolumeAttributesClassName: 'gold', status: 'Pending' },
    },
  },
  ...Object.entries(volumeSources).map(([source, value], index) => ({
    kind: 'PersistentVolume',
    apiVersion: 'v1',
    path: '/api/v1/persistentvolumes',
    object: {
      metadata: { name: `sample-${index}` },
      spec: {
        capacity: { storage: '10Gi' },
        accessModes: ['ReadWriteOnce'],
        [source]: value,
        claimRef: { kind: 'PersistentVolumeClaim', namespace: 'default', name: 'c', uid: 'u', resourceVersion: '7' },
        storageClassName: 'fast',
        mountOptions: ['noatime'],
        volumeMode: 'Filesystem',
        nodeAffinity: {
          required: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In', values: ['a'] }] }] },
        },
      },
    },
    status: { phase: 'Released', reason: 'r', message: 'm' },
  })),
  {
    kind: 'StorageClass',
    apiVersion: 'storage.k8s.io/v1',
    path: '/apis/storage.k8s.io/v1/storageclasses',
    object: {
      metadata: { name: 'sample' },
      provisioner: 'csi.example.com',
      parameters: { type: 'ssd', empty: '' },
      reclaimPolicy: 'Retain',
      mountOptions: ['noatime'],
      allowVolumeExpansion: false,
      volumeBindingMode: 'WaitForFirstConsumer',
      allowedTopologies: [{ matchLabelExpressions: [{ key: 'zone', values: ['a', 'b'] }] }],
    },
  },
  {
    kind: 'CertificateSigningRequest',
    apiVersion: 'certificates.k8s.io/v1',
    path: '/apis/certificates.k8s.io/v1/certificatesigningrequests',
    object: {
      metadata: { name: 'sample' },
      spec: {
        request: REQUEST,
        signerName: 'example.com/nobody',
        usages: ['client auth', 'digital signature'],
        expirationSeconds: 7200,
      },
    },
    status: {
      conditions: [
        {
          type: 'Seen',
          status: 'Unknown',
          reason: 'Suite',
          message: 'said',
          lastUpdateTime: '2026-01-02T03:04:05Z',
          lastTransitionTime: '2026-01-02T03:04:05Z',
        },
      ],
    },
  },
  ...(['Role', 'ClusterRole'] as const).map((kind) => ({
    kind,
    apiVersion: 'rbac.authorization.k8s.io/v1',
    path: `/apis/rbac.authorization.k8s.io/v1/${kind === 'Role' ? 'namespaces/{namespace}/roles' : 'clusterroles'}`,
    object: {
      metadata: { name: 'sample' },
      rules: [
        { verbs: ['get', '*'], apiGroups: ['', 'apps'], resources: ['pods', 'pods/log'], resourceNames: ['a'] },
        ...(kind === 'Role' ? [] : [{ verbs: ['get'], nonResourceURLs: ['/healthz', '/x/*'] }]),
      ],
    },
  })),
  ...(['RoleBinding', 'ClusterRoleBinding'] as const).map((kind) => ({
    kind,
    apiVersion: 'rbac.authorization.k8s.io/v1',
    path: `/apis/rbac.authorization.k8s.io/v1/${kind === 'RoleBinding' ? 'namespaces/{namespace}/rolebindings' : 'clusterrolebindings'}`,
    object: {
      metadata: { name: 'sample' },
      subjects: [
        { kind: 'User', name: 'joe', apiGroup: 'rbac.authorization.k8s.io' },
        { kind: 'ServiceAccount', name: 'sa', namespace: 'default' },
      ],
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
    },
  })),
]

/** Questions: created, answered and kept nowhere. */
export const reviews: readonly Sample[] = [
  {
    kind: 'SelfSubjectAccessReview',
    apiVersion: 'authorization.k8s.io/v1',
    path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
    object: { spec: { resourceAttributes: { namespace: 'default', verb: 'list', version: '*', resource: 'pods' } } },
  },
  {
    kind: 'SubjectAccessReview',
    apiVersion: 'authorization.k8s.io/v1',
    path: '/apis/authorization.k8s.io/v1/subjectaccessreviews',
    object: {
      spec: {
        nonResourceAttributes: { path: '/healthz', verb: 'get' },
        user: 'joe',
        groups: ['a', 'b'],
        extra: { scopes: ['x', 'y'] },
        uid: 'u',
      },
    },
  },
  {
    kind: 'SelfSubjectRulesReview',
    apiVersion: 'authorization.k8s.io/v1',
    path: '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews',
    object: { spec: { namespace: 'default' } },
  },
  {
    kind: 'TokenReview',
    apiVersion: 'authentication.k8s.io/v1',
    path: '/apis/authentication.k8s.io/v1/tokenreviews',
    object: { spec: { token: 'nobody-has-this', audiences: ['a'] } },
  },
  {
    kind: 'SelfSubjectReview',
    apiVersion: 'authentication.k8s.io/v1',
    path: '/apis/authentication.k8s.io/v1/selfsubjectreviews',
    object: {},
  },
]
