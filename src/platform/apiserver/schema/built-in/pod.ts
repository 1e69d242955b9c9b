import type { Schema } from '../../types.ts'
import {
  as,
  component,
  conditions,
  flag,
  int32,
  int64,
  keyed,
  kindOf,
  labelSelector,
  list,
  listBy,
  map,
  object,
  objectMeta,
  oneOf,
  open,
  quantity,
  stringMap,
  strings,
  text,
  time,
} from '../components.ts'

const core = (kind: string): string => `io.k8s.api.core.v1.${kind}`

export const localReference = component(
  core('LocalObjectReference'),
  object('Names an object in the same namespace.', { name: text('its name') }, { 'x-kubernetes-map-type': 'atomic' }),
)

const resources = component(
  core('ResourceRequirements'),
  object('What a container asks for and may use.', {
    requests: map(quantity, 'what the scheduler sets aside; default: the limits'),
    limits: map(quantity, 'what it may use at most'),
    claims: keyed(
      ['name'],
      object(
        'Names a resource claim of the pod.',
        { name: text('its name'), request: text('one request in the claim') },
        { required: ['name'] },
      ),
      'devices it uses',
    ),
  }),
)

const port = component(
  core('ContainerPort'),
  object(
    'A port the container listens on.',
    {
      name: text('name that services may refer to'),
      containerPort: int32('number within the pod', { minimum: 1, maximum: 65535 }),
      hostPort: int32('number on the node, if it is opened there', { minimum: 0, maximum: 65535 }),
      hostIP: text('address of the node it is opened on'),
      protocol: oneOf(['SCTP', 'TCP', 'UDP'], 'transport; default TCP', { default: 'TCP' }),
    },
    { required: ['containerPort'] },
  ),
)

const env = component(
  core('EnvVar'),
  object(
    'One variable of the environment.',
    {
      name: text('its name'),
      value: text('its text; $(NAME) refers to others'),
      valueFrom: open('where its text comes from: a field, a ConfigMap, a Secret'),
    },
    { required: ['name'] },
  ),
)

const mount = component(
  core('VolumeMount'),
  object(
    'A volume as a container sees it.',
    {
      name: text('name of the volume'),
      mountPath: text('where it appears in the container'),
      subPath: text('folder of the volume that is mounted; default: all of it'),
      subPathExpr: text('as subPath, with variables'),
      readOnly: flag('whether it cannot be written'),
      recursiveReadOnly: text('whether mounts below are read-only too'),
      mountPropagation: oneOf(['Bidirectional', 'HostToContainer', 'None'], 'whether later mounts are passed on'),
    },
    { required: ['name', 'mountPath'] },
  ),
)

const probe = component(
  core('Probe'),
  object('A check that is repeated while the container runs.', {
    exec: open('command whose exit code tells'),
    httpGet: open('request whose answer tells'),
    tcpSocket: open('port that must accept a connection'),
    grpc: open('health service to ask'),
    initialDelaySeconds: int32('seconds before the first check'),
    timeoutSeconds: int32('seconds a check may take', { default: 1 }),
    periodSeconds: int32('seconds between checks', { default: 10 }),
    successThreshold: int32('successes in a row that count as good', { default: 1 }),
    failureThreshold: int32('failures in a row that count as bad', { default: 3 }),
    terminationGracePeriodSeconds: int64('seconds to end when the check fails'),
  }),
)

const containerFields: Record<string, Schema> = {
  name: text('unique within the pod; cannot be changed'),
  image: text('image to run'),
  imagePullPolicy: oneOf(['Always', 'IfNotPresent', 'Never'], 'when the image is fetched'),
  command: strings('program; default: that of the image'),
  args: strings('arguments; default: those of the image'),
  workingDir: text('folder it starts in'),
  ports: {
    ...listBy(['containerPort', 'protocol'], port, 'ports it listens on'),
  },
  env: listBy(['name'], env, 'environment'),
  envFrom: list(open('A ConfigMap or Secret whose keys become variables.'), 'further environment'),
  resources: as(resources, 'what it asks for and may use', { default: {} }),
  resizePolicy: list(open('What happens when one resource is resized.'), 'how its resources may change while it runs'),
  volumeMounts: listBy(['mountPath'], mount, 'volumes it sees'),
  volumeDevices: listBy(
    ['devicePath'],
    object(
      'A block device as a container sees it.',
      { name: text('name of the volume'), devicePath: text('path') },
      { required: ['name', 'devicePath'] },
    ),
    'block devices it sees',
  ),
  livenessProbe: as(probe, 'restarts the container when it fails'),
  readinessProbe: as(probe, 'takes the pod out of services while it fails'),
  startupProbe: as(probe, 'holds the other checks back until it succeeds'),
  lifecycle: open('what is run after the start and before the stop'),
  securityContext: open('user, capabilities and other rights'),
  restartPolicy: text('Always marks an init container that keeps running'),
  restartPolicyRules: list(open('A rule for one sort of exit.'), 'when this container is started again'),
  terminationMessagePath: text('file whose content becomes the message of its end', {
    default: '/dev/termination-log',
  }),
  terminationMessagePolicy: oneOf(['FallbackToLogsOnError', 'File'], 'where the message of its end is taken from', {
    default: 'File',
  }),
  stdin: flag('whether it has a standard input'),
  stdinOnce: flag('whether the input is closed after the first client'),
  tty: flag('whether it has a terminal'),
}

const container = component(
  core('Container'),
  object('One program that runs in a pod.', containerFields, { required: ['name'] }),
)

const ephemeralContainer = component(
  core('EphemeralContainer'),
  object(
    'A container put into a running pod to look around.',
    { ...containerFields, targetContainerName: text('container whose processes it sees') },
    { required: ['name'] },
  ),
)

const VOLUME_SOURCES = [
  'awsElasticBlockStore', 'azureDisk', 'azureFile', 'cephfs', 'cinder', 'configMap', 'csi', 'downwardAPI', 'emptyDir',
  'ephemeral', 'fc', 'flexVolume', 'flocker', 'gcePersistentDisk', 'gitRepo', 'glusterfs', 'hostPath', 'image', 'iscsi',
  'nfs', 'persistentVolumeClaim', 'photonPersistentDisk', 'portworxVolume', 'projected', 'quobyte', 'rbd', 'scaleIO',
  'secret', 'storageos', 'vsphereVolume',
] // biome-ignore format: a list of words

const volume = component(
  core('Volume'),
  object(
    'Storage that containers of the pod can mount; exactly one source is given.',
    {
      name: text('name that mounts refer to'),
      ...Object.fromEntries(VOLUME_SOURCES.map((source) => [source, open(`content from ${source}`)])),
    },
    { required: ['name'] },
  ),
)

export const toleration = component(
  core('Toleration'),
  object('Lets a pod run on nodes with a matching taint.', {
    key: text('key of the taint; empty with Exists: every taint'),
    operator: oneOf(['Equal', 'Exists', 'Gt', 'Lt'], 'how the value is compared; default Equal'),
    value: text('value of the taint'),
    effect: oneOf(['NoExecute', 'NoSchedule', 'PreferNoSchedule'], 'effect of the taint; empty: all'),
    tolerationSeconds: int64('how long a NoExecute taint is borne; absent: for ever'),
  }),
)

const spread = component(
  core('TopologySpreadConstraint'),
  object(
    'How evenly pods lie over parts of the cluster.',
    {
      maxSkew: int32('greatest difference between two parts'),
      topologyKey: text('node label that tells the parts apart'),
      whenUnsatisfiable: oneOf(['DoNotSchedule', 'ScheduleAnyway'], 'what happens when it cannot be met'),
      labelSelector: as(labelSelector, 'pods that are counted'),
      matchLabelKeys: strings('pod labels that are added to the selector'),
      minDomains: int32('least number of parts'),
      nodeAffinityPolicy: oneOf(['Honor', 'Ignore'], 'whether affinity limits the nodes that count'),
      nodeTaintsPolicy: oneOf(['Honor', 'Ignore'], 'whether taints limit the nodes that count'),
    },
    { required: ['maxSkew', 'topologyKey', 'whenUnsatisfiable'] },
  ),
)

const named = (description: string) => object(description, { name: text('its name') }, { required: ['name'] })

const podSpec = component(
  core('PodSpec'),
  object(
    'What a pod runs, and where.',
    {
      containers: listBy(['name'], container, 'programs of the pod; at least one'),
      initContainers: listBy(['name'], container, 'programs that run, one after the other, before the others start'),
      ephemeralContainers: listBy(['name'], ephemeralContainer, 'programs put in later to look around'),
      volumes: listBy(['name'], volume, 'storage its containers can mount', 'merge,retainKeys'),
      nodeName: text('node it runs on; set by the scheduler'),
      nodeSelector: stringMap('labels its node must have', { 'x-kubernetes-map-type': 'atomic' }),
      affinity: open('nodes and pods it wants to be near to or far from'),
      tolerations: list(toleration, 'taints it bears'),
      topologySpreadConstraints: listBy(['topologyKey', 'whenUnsatisfiable'], spread, 'how its group is spread'),
      restartPolicy: oneOf(['Always', 'OnFailure', 'Never'], 'when ended containers are started again', {
        default: 'Always',
      }),
      terminationGracePeriodSeconds: int64('seconds it is given to end', { default: 30 }),
      activeDeadlineSeconds: int64('seconds it may run at all'),
      serviceAccountName: text('account its programs use towards the API'),
      serviceAccount: text('older name of serviceAccountName'),
      automountServiceAccountToken: flag('whether the token of the account is mounted'),
      imagePullSecrets: listBy(['name'], localReference, 'secrets for the registries of its images'),
      hostNetwork: flag('whether it uses the network of the node'),
      hostPID: flag('whether it sees the processes of the node'),
      hostIPC: flag('whether it shares memory with the node'),
      hostUsers: flag('whether it uses the user ids of the node'),
      hostname: text('host name within the pod'),
      hostnameOverride: text('host name within the pod, whatever else says'),
      subdomain: text('gives it a name of its own in DNS'),
      setHostnameAsFQDN: flag('whether the host name is the full one'),
      hostAliases: listBy(
        ['ip'],
        object('Names for an address.', { ip: text('address'), hostnames: strings('names') }, { required: ['ip'] }),
        'further lines of its hosts file',
      ),
      dnsPolicy: oneOf(['ClusterFirst', 'ClusterFirstWithHostNet', 'Default', 'None'], 'where names are looked up', {
        default: 'ClusterFirst',
      }),
      dnsConfig: open('further settings of name look-up'),
      enableServiceLinks: flag('whether services become variables of the environment'),
      priorityClassName: text('name of its importance'),
      priority: int32('its importance as a number'),
      preemptionPolicy: oneOf(['Never', 'PreemptLowerPriority'], 'whether it may push others out'),
      schedulerName: text('who places it', { default: 'default-scheduler' }),
      schedulingGates: listBy(['name'], named('What must go before the pod is placed.'), 'what holds the placing back'),
      readinessGates: list(
        object('A condition that must be true.', { conditionType: text('its type') }, { required: ['conditionType'] }),
        'conditions beside its containers that make it ready',
      ),
      runtimeClassName: text('how its containers are run'),
      overhead: map(quantity, 'what running the pod itself costs'),
      os: named('Operating system the pod needs.'),
      resources: as(resources, 'what the pod as a whole asks for and may use'),
      resourceClaims: listBy(
        ['name'],
        object(
          'Devices of the pod.',
          {
            name: text('name within the pod'),
            resourceClaimName: text('the claim'),
            resourceClaimTemplateName: text('a template for it'),
          },
          { required: ['name'] },
        ),
        'devices it uses',
        'merge,retainKeys',
      ),
      securityContext: { ...open('user, groups and other rights of all its containers'), default: {} },
      shareProcessNamespace: flag('whether its containers see each other’s processes'),
      workloadRef: open('the group of pods it is placed with'),
    },
    { required: ['containers'] },
  ),
)

export const podTemplate = component(
  core('PodTemplateSpec'),
  object('A pod to be made.', {
    metadata: as(objectMeta, 'labels and annotations of the pod'),
    spec: as(podSpec, 'what the pod runs, and where'),
  }),
)

const state = component(
  core('ContainerState'),
  object('What a container does: one of the three.', {
    waiting: object('It has not started.', { reason: text('one word why'), message: text('a sentence why') }),
    running: object('It runs.', { startedAt: time('since when') }),
    terminated: object('It has ended.', {
      exitCode: int32('exit code of the program'),
      signal: int32('signal that ended it'),
      reason: text('one word why'),
      message: text('a sentence why'),
      startedAt: time('when it started'),
      finishedAt: time('when it ended'),
      containerID: text('the container that was'),
    }),
  }),
)

const containerStatus = component(
  core('ContainerStatus'),
  object(
    'How one container is doing.',
    {
      name: text('name of the container'),
      ready: flag('whether it passes its readiness check'),
      started: flag('whether it has passed its startup check'),
      restartCount: int32('how often it was started again'),
      image: text('image it runs'),
      imageID: text('exact identity of the image'),
      containerID: text('identity of the container, with the runtime before it'),
      state: as(state, 'what it does now'),
      lastState: as(state, 'how it ended last'),
      resources: as(resources, 'what it has now'),
      allocatedResources: map(quantity, 'what the node has set aside for it'),
      allocatedResourcesStatus: listBy(
        ['name'],
        { ...open('Health of one device.'), required: ['name'] },
        'health of its devices',
      ),
      volumeMounts: listBy(
        ['mountPath'],
        { ...open('A volume as mounted.'), required: ['mountPath'] },
        'volumes as mounted',
      ),
      user: open('user it runs as'),
      stopSignal: text('signal that asks it to end'),
    },
    { required: ['name'] },
  ),
)

const address = object('One address.', { ip: text('the address') }, { required: ['ip'] })

export const pod = kindOf(core('Pod'), 'Containers that run together on one node.', {
  spec: as(podSpec, 'what shall run'),
  status: component(
    core('PodStatus'),
    object('What was seen of the pod last.', {
      phase: oneOf(['Failed', 'Pending', 'Running', 'Succeeded', 'Unknown'], 'where it is in its life'),
      conditions: conditions(core('PodCondition'), 'statements on its state', {
        lastProbeTime: time('when it was looked at last'),
        observedGeneration: int64('generation this was said of'),
      }),
      message: text('a sentence why it is in this state'),
      reason: text('one word why it is in this state'),
      hostIP: text('address of its node'),
      hostIPs: list(address, 'addresses of its node', {
        'x-kubernetes-patch-strategy': 'merge',
        'x-kubernetes-patch-merge-key': 'ip',
      }),
      podIP: text('its address'),
      podIPs: listBy(['ip'], address, 'its addresses'),
      startTime: time('when its node took it over'),
      containerStatuses: list(containerStatus, 'how its containers are doing'),
      initContainerStatuses: list(containerStatus, 'how its init containers are doing'),
      ephemeralContainerStatuses: list(containerStatus, 'how its ephemeral containers are doing'),
      qosClass: oneOf(['BestEffort', 'Burstable', 'Guaranteed'], 'who goes first when the node runs short'),
      nominatedNodeName: text('node that makes room for it'),
      observedGeneration: int64('generation this was said of'),
      resize: text('state of a change of its resources'),
      resources: as(resources, 'what the pod as a whole has'),
      allocatedResources: map(quantity, 'what the node has set aside for the pod'),
      resourceClaimStatuses: listBy(
        ['name'],
        object(
          'State of one claim.',
          { name: text('name within the pod'), resourceClaimName: text('the claim') },
          { required: ['name'] },
        ),
        'claims made for it',
        'merge,retainKeys',
      ),
      extendedResourceClaimStatus: open('claim made for its extended resources'),
    }),
  ),
})
