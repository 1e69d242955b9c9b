import { DEFAULT_CLUSTER_SET } from '#kinds'
import { isKubeError, type KubeClient, type KubeObject, type Resource } from '#kube'
import { FleetError, minutes } from '#model'

const NAMESPACE = 'open-cluster-management'
const ACCOUNT = 'agent-registration-bootstrap'
/** Who asks with such a kubeconfig, as the hub's API calls it. */
export const BOOTSTRAP_USER = `system:serviceaccount:${NAMESPACE}:${ACCOUNT}`
const ROLE = 'open-cluster-management:bootstrap'

/** What OCM's own agents may do before they are members: ask, and look whether they were accepted. */
const RULES = [
  {
    apiGroups: ['certificates.k8s.io'],
    resources: ['certificatesigningrequests'],
    verbs: ['create', 'get', 'list', 'watch'],
  },
  {
    apiGroups: ['cluster.open-cluster-management.io'],
    resources: ['managedclusters'],
    verbs: ['get', 'list', 'watch', 'create', 'update'],
  },
  // Into the set of those that name none. Who could join every set could move every member, and so show it to others.
  {
    apiGroups: ['cluster.open-cluster-management.io'],
    resources: ['managedclustersets/join'],
    resourceNames: [DEFAULT_CLUSTER_SET],
    verbs: ['create'],
  },
  { apiGroups: [''], resources: ['configmaps'], verbs: ['get'] },
]

/** The hub's API did not give a token for the account. */
class BootstrapTokenError extends FleetError {
  override readonly name = 'BootstrapTokenError'
  readonly code = 'bootstrap_token'
  readonly retryable = true
}

export interface BootstrapOptions {
  readonly hub: KubeClient
  /** as members reach the hub's API */
  readonly server: string
  /** PEM of its CA; absent: the roots of their systems */
  readonly ca?: string
  readonly lifeMs?: number
}

/**
 * The kubeconfig that OCM's own registration agent begins with, shared by all clusters: with it a cluster may ask to join and
 * nothing more. Made anew with a token of its own at each call; the account and its rights stay.
 */
export async function bootstrapKubeconfig({
  hub,
  server,
  ca,
  lifeMs = minutes(60),
}: BootstrapOptions): Promise<string> {
  const meta = (name: string, namespace?: string) => ({
    name,
    ...(namespace !== undefined && { namespace }),
    labels: { 'app.kubernetes.io/part-of': 'clusterpulse' },
  })
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: ROLE }
  const subjects = [{ kind: 'ServiceAccount', name: ACCOUNT, namespace: NAMESPACE }]
  await ensure(hub, of('', 'namespaces', 'Namespace', false), { metadata: meta(NAMESPACE) })
  await ensure(hub, of('', 'serviceaccounts', 'ServiceAccount', true), { metadata: meta(ACCOUNT, NAMESPACE) })
  await ensure(hub, of(RBAC, 'clusterroles', 'ClusterRole', false), { metadata: meta(ROLE), rules: RULES })
  await ensure(hub, of(RBAC, 'clusterrolebindings', 'ClusterRoleBinding', false), {
    metadata: meta(ROLE),
    roleRef,
    subjects,
  })
  const token = await tokenOf(hub, lifeMs)
  return JSON.stringify(
    {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        {
          name: 'hub',
          cluster: {
            server,
            ...(ca !== undefined && { 'certificate-authority-data': Buffer.from(ca).toString('base64') }),
          },
        },
      ],
      users: [{ name: 'bootstrap', user: { token } }],
      contexts: [{ name: 'bootstrap', context: { cluster: 'hub', user: 'bootstrap', namespace: 'default' } }],
      'current-context': 'bootstrap',
    },
    null,
    2,
  )
}

async function tokenOf(hub: KubeClient, lifeMs: number): Promise<string> {
  const body = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { expirationSeconds: Math.round(lifeMs / 1000) },
  }
  const path = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/${ACCOUNT}/token`
  const answer = (await hub.request('POST', path, { body, contentType: 'application/json' })) as {
    readonly status?: { readonly token?: unknown }
  }
  const token = answer.status?.token
  if (typeof token === 'string' && token !== '') return token
  throw new BootstrapTokenError(`the hub's API gave no token for ${NAMESPACE}/${ACCOUNT}`)
}

const RBAC = 'rbac.authorization.k8s.io'
const of = (group: string, plural: string, kind: string, namespaced: boolean): Resource => ({
  ...{ group, version: 'v1', plural, kind, namespaced },
})

/** There, and as it should be: rights that somebody widened are narrow again. */
async function ensure(hub: KubeClient, resource: Resource, object: KubeObject): Promise<void> {
  const { group, version, kind } = resource
  const whole = { apiVersion: group === '' ? version : `${group}/${version}`, kind, ...object }
  const { name, namespace } = object.metadata
  const key = { name, ...(namespace !== undefined && { namespace }) }
  try {
    await hub.create(resource, whole)
  } catch (error) {
    if (!isKubeError(error, 'already_exists')) throw error
    if (object.rules) await hub.patch(resource, key, { rules: object.rules }, { kind: 'merge' })
  }
}
