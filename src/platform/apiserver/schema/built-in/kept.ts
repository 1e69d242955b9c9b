import {
  ATOMIC,
  as,
  flag,
  int32,
  int64,
  kindOf,
  list,
  listBy,
  object,
  oneOf,
  open,
  quantity,
  text,
} from '../components.ts'
import { podTemplate } from './pod.ts'

/*
 * Kinds that charts and works carry and that nothing of ours reads: kept as they come. Only pods' templates are known, because
 * patches merge their lists by name; the other lists of these kinds are replaced as a whole.
 */

const spec = open('What is wanted.')
const status = open('What is.')
const template = as(podTemplate, 'the pods it makes')
const rest = { 'x-kubernetes-preserve-unknown-fields': true }
const api = (kind: string): string => `io.k8s.api.${kind}`

export const endpoints = kindOf(api('core.v1.Endpoints'), 'Addresses behind a Service.', {
  subsets: list(open('Addresses with their ports.'), 'addresses that share ports'),
})
export const replicationController = kindOf(
  api('core.v1.ReplicationController'),
  'Keeps a number of equal pods running; Deployments took its place.',
  { spec: object('What shall run.', { template }, rest), status },
)
export const podTemplateObject = kindOf(api('core.v1.PodTemplate'), 'A pod that others make copies of.', { template })
export const resourceQuota = kindOf(api('core.v1.ResourceQuota'), 'How much a namespace may use.', { spec, status })
export const limitRange = kindOf(api('core.v1.LimitRange'), 'How much one object of a namespace may use.', { spec })

export const controllerRevision = kindOf(
  api('apps.v1.ControllerRevision'),
  'A former state of a workload.',
  { data: open('the state'), revision: int64('its number') },
  { required: ['revision'] },
)
export const horizontalPodAutoscaler = kindOf(
  api('autoscaling.v2.HorizontalPodAutoscaler'),
  'Changes the size of a workload by what is measured.',
  { spec, status },
)
export const podDisruptionBudget = kindOf(
  api('policy.v1.PodDisruptionBudget'),
  'How many pods may be missing on purpose.',
  { spec, status },
)

export const ingress = kindOf(api('networking.v1.Ingress'), 'Lets requests from outside in.', { spec, status })
export const ingressClass = kindOf(api('networking.v1.IngressClass'), 'Who serves Ingresses.', { spec })
export const networkPolicy = kindOf(api('networking.v1.NetworkPolicy'), 'Who may speak to which pods.', { spec })
export const endpointSlice = kindOf(
  api('discovery.v1.EndpointSlice'),
  'Some of the addresses behind a Service.',
  {
    addressType: oneOf(['FQDN', 'IPv4', 'IPv6'], 'what its addresses are'),
    endpoints: list(open('Addresses with what is known of them.'), 'addresses'),
    ports: list({ ...open('A port.'), ...ATOMIC }, 'ports of all of them'),
  },
  { required: ['addressType', 'endpoints'] },
)

export const priorityClass = kindOf(
  api('scheduling.v1.PriorityClass'),
  'How important pods are.',
  {
    value: int32('the higher, the more important'),
    globalDefault: flag('whether it counts for pods that name none'),
    description: text('for people'),
    preemptionPolicy: oneOf(['Never', 'PreemptLowerPriority'], 'whether such pods push others out', {
      default: 'PreemptLowerPriority',
    }),
  },
  { required: ['value'] },
)
export const runtimeClass = kindOf(
  api('node.v1.RuntimeClass'),
  'What runs containers.',
  {
    handler: text('its name in the settings of nodes'),
    overhead: open('what it takes beside the containers'),
    scheduling: open('nodes that have it'),
  },
  { required: ['handler'] },
)

export const csiDriver = kindOf(api('storage.v1.CSIDriver'), 'A driver of volumes.', { spec }, { required: ['spec'] })
export const csiNode = kindOf(api('storage.v1.CSINode'), 'Drivers on a node.', { spec }, { required: ['spec'] })
export const volumeAttachment = kindOf(
  api('storage.v1.VolumeAttachment'),
  'A volume at a node.',
  { spec, status },
  { required: ['spec'] },
)
export const csiStorageCapacity = kindOf(
  api('storage.v1.CSIStorageCapacity'),
  'How much a driver has left somewhere.',
  {
    nodeTopology: { ...open('where'), ...ATOMIC },
    storageClassName: text('class of the volumes'),
    capacity: as(quantity, 'how much'),
    maximumVolumeSize: as(quantity, 'of one volume'),
  },
  { required: ['storageClassName'] },
)

const webhooks = listBy(['name'], open('Who is asked, and about what.'), 'who is asked')
const registration = (kind: string): string => api(`admissionregistration.v1.${kind}`)
export const validatingWebhooks = kindOf(
  registration('ValidatingWebhookConfiguration'),
  'Who is asked whether a write may be.',
  { webhooks },
)
export const mutatingWebhooks = kindOf(
  registration('MutatingWebhookConfiguration'),
  'Who is asked to complete what is written.',
  { webhooks },
)
export const validatingPolicy = kindOf(
  registration('ValidatingAdmissionPolicy'),
  'Expressions that decide whether a write may be.',
  { spec, status },
)
export const validatingPolicyBinding = kindOf(
  registration('ValidatingAdmissionPolicyBinding'),
  'Where a ValidatingAdmissionPolicy counts.',
  { spec },
)

export const flowSchema = kindOf(api('flowcontrol.v1.FlowSchema'), 'Which requests wait in which queue.', {
  spec,
  status,
})
export const priorityLevel = kindOf(
  api('flowcontrol.v1.PriorityLevelConfiguration'),
  'A queue of requests, and its share.',
  { spec, status },
)
export const apiService = kindOf(
  'io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService',
  'Who serves a group of the API.',
  { spec, status },
)
