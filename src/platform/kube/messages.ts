import { message, objectMeta } from './projection.ts'

/*
 * What rows need of the protobuf of their objects, beside the kinds that share it: field numbers of the generated.proto files of
 * k8s.io/api. A column that reads a further field adds it here; a test compares both encodings.
 */

/** Conditions of any kind: type and status are 1 and 2, reason and message differ in their numbers. */
const conditions = (numbers: { readonly reason: number; readonly message: number }) =>
  [
    message({
      type: [1, 'word'],
      status: [2, 'word'],
      reason: [numbers.reason, 'word'],
      message: [numbers.message, 'word'],
    }),
  ] as const

const containerState = message({
  waiting: [1, message({ reason: [1, 'word'], message: [2, 'text'] })],
  // That it is there says that it runs.
  running: [2, message({ startedAt: [1, 'time'] })],
  terminated: [
    3,
    message({ exitCode: [1, 'int'], signal: [2, 'count'], reason: [3, 'word'], finishedAt: [6, 'time'] }),
  ],
})

const containerStatus = message({
  name: [1, 'word'],
  state: [2, containerState],
  lastState: [3, containerState],
  ready: [4, 'bool'],
  restartCount: [5, 'int'],
  started: [9, 'bool'],
})

const requirements = message({ requests: [2, 'quantities'] })
const container = message({ name: [1, 'word'], resources: [8, requirements], restartPolicy: [24, 'word'] })

export const podMessage = message({
  metadata: [1, objectMeta],
  spec: [
    2,
    message({
      containers: [2, [container]],
      nodeName: [10, 'word'],
      initContainers: [20, [container]],
      overhead: [32, 'quantities'],
      resources: [40, requirements],
    }),
  ],
  status: [
    3,
    message({
      phase: [1, 'word'],
      conditions: [2, conditions({ reason: 5, message: 6 })],
      message: [3, 'text'],
      reason: [4, 'word'],
      podIP: [6, 'text'],
      startTime: [7, 'time'],
      containerStatuses: [8, [containerStatus]],
      qosClass: [9, 'word'],
      initContainerStatuses: [10, [containerStatus]],
    }),
  ],
})

/** v1.PodTemplateSpec, of which rows tell the images. */
const template = message({ spec: [2, message({ containers: [2, [message({ image: [2, 'word'] })]] })] })

export const deploymentMessage = message({
  metadata: [1, objectMeta],
  spec: [2, message({ replicas: [1, 'int'], template: [3, template] })],
  status: [
    3,
    message({
      observedGeneration: [1, 'count'],
      replicas: [2, 'count'],
      updatedReplicas: [3, 'count'],
      availableReplicas: [4, 'count'],
      conditions: [6, conditions({ reason: 4, message: 5 })],
      readyReplicas: [7, 'count'],
    }),
  ],
})

export const statefulSetMessage = message({
  metadata: [1, objectMeta],
  spec: [2, message({ replicas: [1, 'int'], template: [3, template] })],
  status: [
    3,
    message({
      observedGeneration: [1, 'count'],
      replicas: [2, 'int'],
      readyReplicas: [3, 'count'],
      updatedReplicas: [5, 'count'],
      conditions: [10, conditions({ reason: 4, message: 5 })],
      availableReplicas: [11, 'int'],
    }),
  ],
})

export const daemonSetMessage = message({
  metadata: [1, objectMeta],
  spec: [2, message({ template: [2, template] })],
  status: [
    3,
    message({
      currentNumberScheduled: [1, 'int'],
      desiredNumberScheduled: [3, 'int'],
      numberReady: [4, 'int'],
      observedGeneration: [5, 'count'],
      updatedNumberScheduled: [6, 'count'],
      numberAvailable: [7, 'count'],
      conditions: [10, conditions({ reason: 4, message: 5 })],
    }),
  ],
})

const jobSpec = message({
  parallelism: [1, 'int'],
  completions: [2, 'int'],
  template: [6, template],
  suspend: [10, 'bool'],
})

export const jobMessage = message({
  metadata: [1, objectMeta],
  spec: [2, jobSpec],
  status: [
    3,
    message({
      conditions: [1, conditions({ reason: 5, message: 6 })],
      active: [4, 'count'],
      succeeded: [5, 'count'],
      failed: [6, 'count'],
    }),
  ],
})

export const cronJobMessage = message({
  metadata: [1, objectMeta],
  spec: [
    2,
    message({
      schedule: [1, 'word'],
      suspend: [4, 'bool'],
      jobTemplate: [5, message({ spec: [2, jobSpec] })],
    }),
  ],
  status: [3, message({ active: [1, [message({ name: [3, 'text'] })]], lastScheduleTime: [4, 'time'] })],
})

export const claimMessage = message({
  metadata: [1, objectMeta],
  spec: [
    2,
    message({
      accessModes: [1, ['text']],
      resources: [2, requirements],
      volumeName: [3, 'text'],
      storageClassName: [5, 'word'],
      volumeMode: [6, 'word'],
    }),
  ],
  status: [3, message({ phase: [1, 'word'], capacity: [3, 'quantities'] })],
})

export const volumeMessage = message({
  metadata: [1, objectMeta],
  spec: [
    2,
    message({
      capacity: [1, 'quantities'],
      persistentVolumeSource: [2, message({ csi: [22, message({ driver: [1, 'word'] })] })],
      accessModes: [3, ['text']],
      claimRef: [4, message({ namespace: [2, 'word'], name: [3, 'text'] })],
      persistentVolumeReclaimPolicy: [5, 'word'],
      storageClassName: [6, 'word'],
    }),
  ],
  status: [3, message({ phase: [1, 'word'], reason: [3, 'word'] })],
})

export const serviceMessage = message({
  metadata: [1, objectMeta],
  spec: [
    2,
    message({
      ports: [1, [message({ protocol: [2, 'word'], port: [3, 'int'], nodePort: [5, 'count'] })]],
      selector: [2, 'words'],
      clusterIP: [3, 'text'],
      type: [4, 'word'],
      externalIPs: [5, ['text']],
      externalName: [10, 'text'],
    }),
  ],
  status: [
    3,
    message({ loadBalancer: [1, message({ ingress: [1, [message({ ip: [1, 'text'], hostname: [2, 'text'] })]] })] }),
  ],
})

/** Where the kubelet of a node listens. */
export const kubeletMessage = message({
  metadata: [1, objectMeta],
  status: [
    3,
    message({
      addresses: [5, [message({ type: [1, 'word'], address: [2, 'text'] })]],
      daemonEndpoints: [6, message({ kubeletEndpoint: [1, message({ Port: [1, 'int'] })] })],
    }),
  ],
})

const eventSeries = message({ count: [1, 'count'], lastObservedTime: [2, 'time'] })

/** v1.Event. */
export const eventMessage = message({
  metadata: [1, objectMeta],
  involvedObject: [2, message({ kind: [1, 'word'], namespace: [2, 'word'], name: [3, 'text'] })],
  reason: [3, 'word'],
  message: [4, 'text'],
  source: [5, message({ component: [1, 'word'], host: [2, 'word'] })],
  firstTimestamp: [6, 'time'],
  lastTimestamp: [7, 'time'],
  count: [8, 'count'],
  type: [9, 'word'],
  eventTime: [10, 'time'],
  series: [11, eventSeries],
  reportingComponent: [14, 'word'],
  reportingInstance: [15, 'word'],
})
