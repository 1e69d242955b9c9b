import { as, kindOf, list, object, open } from '../components.ts'
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
export const replicationController = kindOf(
  'io.k8s.api.core.v1.ReplicationController',
  'Keeps a number of equal pods running; Deployments took its place.',
  { spec: object('What shall run.', { template }, rest), status },
)
export const ingress = kindOf('io.k8s.api.networking.v1.Ingress', 'Lets requests from outside in.', { spec, status })
