import type { ResourceName } from '#apiserver'

const resource = (group: string, version: string, plural: string): ResourceName => ({ group, version, plural })

/** The resources a simulated cluster holds. */
export const resources = {
  namespaces: resource('', 'v1', 'namespaces'),
  nodes: resource('', 'v1', 'nodes'),
  pods: resource('', 'v1', 'pods'),
  deployments: resource('apps', 'v1', 'deployments'),
  replicaSets: resource('apps', 'v1', 'replicasets'),
  statefulSets: resource('apps', 'v1', 'statefulsets'),
  daemonSets: resource('apps', 'v1', 'daemonsets'),
  cronJobs: resource('batch', 'v1', 'cronjobs'),
  jobs: resource('batch', 'v1', 'jobs'),
  services: resource('', 'v1', 'services'),
  events: resource('', 'v1', 'events'),
  claims: resource('', 'v1', 'persistentvolumeclaims'),
  volumes: resource('', 'v1', 'persistentvolumes'),
  crds: resource('apiextensions.k8s.io', 'v1', 'customresourcedefinitions'),
  subscriptions: resource('operators.coreos.com', 'v1alpha1', 'subscriptions'),
  csvs: resource('operators.coreos.com', 'v1alpha1', 'clusterserviceversions'),
  clusterVersions: resource('config.openshift.io', 'v1', 'clusterversions'),
  clusterOperators: resource('config.openshift.io', 'v1', 'clusteroperators'),
  routes: resource('route.openshift.io', 'v1', 'routes'),
} as const

export type WorldResource = keyof typeof resources
