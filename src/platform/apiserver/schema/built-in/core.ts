import {
  as,
  bytes,
  component,
  conditions,
  flag,
  int32,
  int64,
  intOrString,
  kindOf,
  list,
  listBy,
  map,
  object,
  objectReference,
  oneOf,
  open,
  quantity,
  setOf,
  stringMap,
  strings,
  text,
  time,
} from '../components.ts'
import { localReference } from './pod.ts'

const core = (kind: string): string => `io.k8s.api.core.v1.${kind}`

export const namespace = kindOf(core('Namespace'), 'A part of the cluster with names of its own.', {
  spec: component(
    core('NamespaceSpec'),
    object('What must happen before it may go.', { finalizers: strings('who must still act before it may go') }),
  ),
  status: component(
    core('NamespaceStatus'),
    object('Where it is in its life.', {
      phase: oneOf(['Active', 'Terminating'], 'Terminating while its content is removed'),
      conditions: conditions(core('NamespaceCondition'), 'how its removal is going'),
    }),
  ),
})

const taint = component(
  core('Taint'),
  object(
    'Keeps pods away that do not bear it.',
    {
      key: text('its name'),
      value: text('its value'),
      effect: oneOf(['NoExecute', 'NoSchedule', 'PreferNoSchedule'], 'what happens to pods that do not bear it'),
      timeAdded: time('when it was set'),
    },
    { required: ['key', 'effect'] },
  ),
)

const endpoint = object('A port.', { Port: int32('its number') }, { required: ['Port'] })

export const node = kindOf(core('Node'), 'A machine that runs pods.', {
  spec: component(
    core('NodeSpec'),
    object('How the node may be used.', {
      unschedulable: flag('whether new pods are kept away'),
      taints: list(taint, 'what keeps pods away that do not bear it'),
      podCIDR: text('addresses of its pods'),
      podCIDRs: setOf({ type: 'string' }, 'addresses of its pods, per family'),
      providerID: text('its name at the cloud provider'),
      externalID: text('no longer used'),
      configSource: open('no longer used'),
    }),
  ),
  status: component(
    core('NodeStatus'),
    object('What the node said of itself last.', {
      capacity: map(quantity, 'what it has'),
      allocatable: map(quantity, 'what pods may use of it'),
      conditions: conditions(core('NodeCondition'), 'statements on its state; Ready is the one that counts most', {
        lastHeartbeatTime: time('when it said so last'),
      }),
      addresses: listBy(
        ['type'],
        component(
          core('NodeAddress'),
          object(
            'One address.',
            { type: text('Hostname, InternalIP, ExternalIP, …'), address: text('the address') },
            { required: ['type', 'address'] },
          ),
        ),
        'under which it is reached',
      ),
      nodeInfo: component(
        core('NodeSystemInfo'),
        object('Its software.', {
          architecture: text('of its processor, such as amd64'),
          bootID: text('changes with every start'),
          containerRuntimeVersion: text('what runs its containers, such as containerd://2.0.0'),
          kernelVersion: text('version of its kernel'),
          kubeProxyVersion: text('no longer used'),
          kubeletVersion: text('version of its kubelet'),
          machineID: text('identity of the installation'),
          operatingSystem: text('linux or windows'),
          osImage: text('name of the distribution'),
          systemUUID: text('identity of the machine'),
          swap: object('Its swap space.', { capacity: int64('bytes') }),
        }),
      ),
      daemonEndpoints: object('Ports of its own services.', { kubeletEndpoint: as(endpoint, 'port of the kubelet') }),
      images: list(
        component(
          core('ContainerImage'),
          object('An image it holds.', {
            names: strings('names it is known by'),
            sizeBytes: int64('its size in bytes'),
          }),
        ),
        'images it holds',
      ),
      volumesAttached: list(
        component(
          core('AttachedVolume'),
          object(
            'A volume attached to it.',
            { name: text('name of the volume'), devicePath: text('its device') },
            { required: ['name', 'devicePath'] },
          ),
        ),
        'volumes attached to it',
      ),
      volumesInUse: strings('volumes in use on it'),
      runtimeHandlers: list(open('One way to run containers.'), 'ways it can run containers'),
      features: open('what its software can do'),
      declaredFeatures: strings('feature gates it declares'),
      config: open('no longer used'),
      phase: oneOf(['Pending', 'Running', 'Terminated'], 'no longer used'),
    }),
  ),
})

export const secret = kindOf(core('Secret'), 'Small data that is not for everyone.', {
  type: text('what it is for, such as Opaque or kubernetes.io/tls'),
  data: map(bytes('one value'), 'its values, base64'),
  stringData: stringMap('values to be written as plain text; they end in data and are never read back'),
  immutable: flag('whether its data can no longer be changed'),
})

export const configMap = kindOf(core('ConfigMap'), 'Settings for programs.', {
  data: stringMap('its values, as text'),
  binaryData: map(bytes('one value'), 'its values, base64'),
  immutable: flag('whether its data can no longer be changed'),
})

const eventSource = component(
  core('EventSource'),
  object('Who saw it.', { component: text('program that reported it'), host: text('node it runs on') }),
)

const seriesFields = { count: int32('how often it was seen'), lastObservedTime: time('when it was seen last') }

export const event = kindOf(
  core('Event'),
  'Something that happened to an object, kept for a while.',
  {
    involvedObject: as(objectReference, 'what it happened to'),
    reason: text('one word what happened, for programs'),
    message: text('a sentence what happened, for people'),
    type: text('Normal or Warning'),
    action: text('what was done or failed'),
    count: int32('how often it was seen'),
    firstTimestamp: time('when it was seen first'),
    lastTimestamp: time('when it was seen last'),
    eventTime: time('when it was seen first, to the microsecond'),
    source: as(eventSource, 'who saw it'),
    series: component(core('EventSeries'), object('How often it was seen.', seriesFields)),
    related: as(objectReference, 'another object that plays a part'),
    reportingComponent: text('program that reported it'),
    reportingInstance: text('which of its instances'),
  },
  { required: ['involvedObject'] },
)

export const newEvent = kindOf(
  'io.k8s.api.events.v1.Event',
  'Something that happened to an object, kept for a while.',
  {
    regarding: as(objectReference, 'what it happened to'),
    reason: text('one word what happened, for programs'),
    note: text('a sentence what happened, for people'),
    type: text('Normal or Warning'),
    action: text('what was done or failed'),
    eventTime: time('when it was seen first'),
    series: component('io.k8s.api.events.v1.EventSeries', object('How often it was seen.', seriesFields)),
    related: as(objectReference, 'another object that plays a part'),
    reportingController: text('program that reported it'),
    reportingInstance: text('which of its instances'),
    deprecatedCount: int32('how often it was seen, as core/v1 says it'),
    deprecatedFirstTimestamp: time('when it was seen first, as core/v1 says it'),
    deprecatedLastTimestamp: time('when it was seen last, as core/v1 says it'),
    deprecatedSource: as(eventSource, 'who saw it, as core/v1 says it'),
  },
)

export const serviceAccount = kindOf(core('ServiceAccount'), 'An identity for programs.', {
  secrets: listBy(['name'], objectReference, 'secrets its pods may use'),
  imagePullSecrets: list(localReference, 'secrets for the registries of its images'),
  automountServiceAccountToken: flag('whether pods get its token'),
})

const servicePort = component(
  core('ServicePort'),
  object(
    'One port of a service.',
    {
      name: text('its name; needed where there are several'),
      port: int32('number clients use'),
      targetPort: as(intOrString, 'number or name of the port of the pods; default: port'),
      nodePort: int32('number on every node, if it is opened there'),
      protocol: oneOf(['SCTP', 'TCP', 'UDP'], 'transport; default TCP', { default: 'TCP' }),
      appProtocol: text('protocol spoken on it'),
    },
    { required: ['port'] },
  ),
)

export const service = kindOf(core('Service'), 'A name and address for a set of pods.', {
  spec: component(
    core('ServiceSpec'),
    object('Which pods, and how they are reached.', {
      selector: stringMap('labels of its pods', { 'x-kubernetes-map-type': 'atomic' }),
      ports: listBy(['port', 'protocol'], servicePort, 'its ports'),
      type: oneOf(['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'], 'from where it is reached', {
        default: 'ClusterIP',
      }),
      clusterIP: text('its address in the cluster; None for a headless one'),
      clusterIPs: strings('its addresses in the cluster, per family'),
      externalIPs: strings('addresses from outside that nodes accept for it'),
      externalName: text('name it stands for, with type ExternalName'),
      externalTrafficPolicy: oneOf(['Cluster', 'Local'], 'which nodes forward what comes from outside'),
      internalTrafficPolicy: oneOf(['Cluster', 'Local'], 'which pods get what comes from inside'),
      healthCheckNodePort: int32('port that tells whether a node has pods of it'),
      ipFamilies: strings('IPv4, IPv6'),
      ipFamilyPolicy: oneOf(['PreferDualStack', 'RequireDualStack', 'SingleStack'], 'how many families it has'),
      allocateLoadBalancerNodePorts: flag('whether a load balancer needs node ports'),
      loadBalancerClass: text('who provides its load balancer'),
      loadBalancerIP: text('no longer used'),
      loadBalancerSourceRanges: strings('addresses the load balancer lets in'),
      publishNotReadyAddresses: flag('whether pods count that are not ready'),
      sessionAffinity: oneOf(['ClientIP', 'None'], 'whether a client stays with its pod', { default: 'None' }),
      sessionAffinityConfig: open('how long a client stays with its pod'),
      trafficDistribution: text('which pods are preferred'),
    }),
  ),
  status: component(
    core('ServiceStatus'),
    object('What is known of its load balancer.', {
      loadBalancer: object('Its load balancer.', { ingress: list(open('One address of it.'), 'its addresses') }),
      conditions: conditions('io.k8s.apimachinery.pkg.apis.meta.v1.Condition', 'statements on its state', {
        observedGeneration: int64('generation this was said of'),
      }),
    }),
  ),
})
