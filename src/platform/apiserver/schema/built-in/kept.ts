import { as, flag, kindOf, list, object, open, stringMap, strings, text } from '../components.ts'
import { podTemplate } from './pod.ts'

/*
 * Kinds that charts and `kubectl apply --prune` name and that nothing of ours reads: kept as they come. Only pods' templates
 * are known, because patches merge their lists by name; the other lists of these kinds are replaced as a whole.
 */

const spec = open('What is wanted.')
const status = open('What is.')
const template = as(podTemplate, 'the pods it makes')
const rest = { 'x-kubernetes-preserve-unknown-fields': true }

export const endpoints = kindOf('io.k8s.api.core.v1.Endpoints', 'Addresses behind a Service.', {
  subsets: list(open('Addresses with their ports.'), 'addresses that share ports'),
})
export const persistentVolume = kindOf('io.k8s.api.core.v1.PersistentVolume', 'A piece of storage.', { spec, status })
export const persistentVolumeClaim = kindOf('io.k8s.api.core.v1.PersistentVolumeClaim', 'A wish for storage.', {
  spec,
  status,
})
export const replicationController = kindOf(
  'io.k8s.api.core.v1.ReplicationController',
  'Keeps a number of equal pods running; Deployments took its place.',
  { spec: object('What shall run.', { template }, rest), status },
)
export const job = kindOf('io.k8s.api.batch.v1.Job', 'Runs pods until they succeed.', {
  spec: object('What shall run.', { template }, rest),
  status,
})
export const cronJob = kindOf('io.k8s.api.batch.v1.CronJob', 'Makes Jobs by the clock.', {
  spec: object(
    'When, and what.',
    { jobTemplate: object('The Jobs it makes.', { spec: object('What shall run.', { template }, rest) }, rest) },
    rest,
  ),
  status,
})
export const ingress = kindOf('io.k8s.api.networking.v1.Ingress', 'Lets requests from outside in.', { spec, status })
export const storageClass = kindOf('io.k8s.api.storage.v1.StorageClass', 'How claims get their storage.', {
  provisioner: text('who makes the volumes'),
  parameters: stringMap('what it is to know'),
  reclaimPolicy: text('what becomes of a volume without its claim'),
  volumeBindingMode: text('when a volume is made'),
  allowVolumeExpansion: flag('whether claims may grow'),
  mountOptions: strings('options of the mount'),
  allowedTopologies: list({ ...open('Labels of nodes.'), 'x-kubernetes-map-type': 'atomic' }, 'where volumes may be'),
})
