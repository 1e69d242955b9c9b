import { AUTHENTICATED, MASTERS, UNAUTHENTICATED } from '../user.ts'
import type { PolicyRule } from './rule.ts'

/** A ClusterRole that every cluster has, and the groups and users that hold it everywhere. */
export interface DefaultRole {
  readonly name: string
  readonly rules?: readonly PolicyRule[]
  /** collects the rules of roles with this label */
  readonly collects?: string
  /** the label by which another role collects it */
  readonly collectedBy?: string
  readonly groups?: readonly string[]
}

const READ = ['get', 'list', 'watch']
const WRITE = ['create', 'delete', 'deletecollection', 'patch', 'update']
const ALL = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']

const words = (text: string): string[] => text.split(/\s+/).filter(Boolean)
const on = (groups: string, resources: string, verbs: readonly string[]): PolicyRule => ({
  apiGroups: groups.split(','),
  resources: words(resources),
  verbs,
})
const getting = (...nonResourceURLs: string[]): PolicyRule => ({ nonResourceURLs, verbs: ['get'] })
const approving = (signer: string): PolicyRule => ({
  apiGroups: ['certificates.k8s.io'],
  resources: ['signers'],
  resourceNames: [signer],
  verbs: ['approve'],
})

const collectedBy = (role: string): string => `rbac.authorization.k8s.io/aggregate-to-${role}`

const VIEW: readonly PolicyRule[] = [
  on(
    '',
    `configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers
     replicationcontrollers/scale serviceaccounts services services/status`,
    READ,
  ),
  on(
    '',
    `bindings limitranges namespaces/status pods/log pods/status replicationcontrollers/status resourcequotas
     resourcequotas/status`,
    READ,
  ),
  on('', 'namespaces', READ),
  on(',events.k8s.io', 'events', READ),
  on('discovery.k8s.io', 'endpointslices', READ),
  on(
    'apps',
    `controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status replicasets
     replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status`,
    READ,
  ),
  on('autoscaling', 'horizontalpodautoscalers horizontalpodautoscalers/status', READ),
  on('batch', 'cronjobs cronjobs/status jobs jobs/status', READ),
  on(
    'extensions',
    `daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses ingresses/status
     networkpolicies replicasets replicasets/scale replicasets/status replicationcontrollers/scale`,
    READ,
  ),
  on('policy', 'poddisruptionbudgets poddisruptionbudgets/status', READ),
  on('networking.k8s.io', 'ingresses ingresses/status networkpolicies', READ),
  on('resource.k8s.io', 'resourceclaims resourceclaims/status resourceclaimtemplates', READ),
]

const EDIT: readonly PolicyRule[] = [
  on('', 'pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy', READ),
  on('', 'serviceaccounts', ['impersonate']),
  on('', 'pods pods/attach pods/exec pods/portforward pods/proxy', WRITE),
  on('', 'pods/eviction', ['create']),
  on(
    '',
    `configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets serviceaccounts
     services services/proxy`,
    WRITE,
  ),
  on('', 'serviceaccounts/token', ['create']),
  on(',events.k8s.io', 'events', WRITE),
  on(
    'apps',
    `daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale statefulsets
     statefulsets/scale`,
    WRITE,
  ),
  on('autoscaling', 'horizontalpodautoscalers', WRITE),
  on('batch', 'cronjobs jobs', WRITE),
  on(
    'extensions',
    `daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies replicasets
     replicasets/scale replicationcontrollers/scale`,
    WRITE,
  ),
  on('policy', 'poddisruptionbudgets', WRITE),
  on('networking.k8s.io', 'ingresses networkpolicies', WRITE),
  on('coordination.k8s.io', 'leases', ALL),
  on('resource.k8s.io', 'resourceclaims resourceclaimtemplates', WRITE),
]

const ADMIN: readonly PolicyRule[] = [
  on('authorization.k8s.io', 'localsubjectaccessreviews', ['create']),
  on('rbac.authorization.k8s.io', 'rolebindings roles', ALL),
]

const HEALTH = ['/healthz', '/livez', '/readyz']
const SIGNERS = ['kube-apiserver-client', 'kube-apiserver-client-kubelet', 'kubelet-serving', 'legacy-unknown']

/**
 * The ClusterRoles of every Kubernetes cluster that are about people, discovery and certificates, as its API server makes them
 * (1.35). Those of its own controllers, nodes and schedulers are left out: none of them runs here.
 */
export const defaultRoles: readonly DefaultRole[] = [
  {
    name: 'cluster-admin',
    rules: [on('*', '*', ['*']), { nonResourceURLs: ['*'], verbs: ['*'] }],
    groups: [MASTERS],
  },
  { name: 'admin', collects: collectedBy('admin') },
  { name: 'edit', collects: collectedBy('edit'), collectedBy: collectedBy('admin') },
  { name: 'view', collects: collectedBy('view'), collectedBy: collectedBy('edit') },
  { name: 'system:aggregate-to-admin', rules: ADMIN, collectedBy: collectedBy('admin') },
  { name: 'system:aggregate-to-edit', rules: EDIT, collectedBy: collectedBy('edit') },
  { name: 'system:aggregate-to-view', rules: VIEW, collectedBy: collectedBy('view') },
  {
    name: 'system:basic-user',
    rules: [
      on('authorization.k8s.io', 'selfsubjectaccessreviews selfsubjectrulesreviews', ['create']),
      on('authentication.k8s.io', 'selfsubjectreviews', ['create']),
    ],
    groups: [AUTHENTICATED],
  },
  {
    name: 'system:discovery',
    rules: [
      getting(
        ...['/api', '/api/*', '/apis', '/apis/*', '/healthz', '/livez'],
        ...['/openapi', '/openapi/*', '/readyz', '/version', '/version/'],
      ),
    ],
    groups: [AUTHENTICATED],
  },
  {
    name: 'system:public-info-viewer',
    rules: [getting(...HEALTH, '/version', '/version/')],
    groups: [AUTHENTICATED, UNAUTHENTICATED],
  },
  {
    name: 'system:monitoring',
    rules: [
      getting(...['/healthz', '/healthz/*', '/livez', '/livez/*', '/metrics', '/metrics/slis', '/readyz', '/readyz/*']),
      on('', 'nodes/metrics', ['get']),
    ],
    groups: ['system:monitoring'],
  },
  {
    name: 'system:service-account-issuer-discovery',
    rules: [
      getting(
        ...['/.well-known/openid-configuration', '/.well-known/openid-configuration/'],
        ...['/openid/v1/jwks', '/openid/v1/jwks/'],
      ),
    ],
    groups: ['system:serviceaccounts'],
  },
  {
    name: 'system:auth-delegator',
    rules: [
      on('authentication.k8s.io', 'tokenreviews', ['create']),
      on('authorization.k8s.io', 'subjectaccessreviews', ['create']),
    ],
  },
  ...SIGNERS.map((signer) => ({
    name: `system:certificates.k8s.io:${signer}-approver`,
    rules: [approving(`kubernetes.io/${signer}`)],
  })),
]
