import type { KubeObject, Resource } from '#kube'
import type { AgentRights } from '#model'

export const AGENT_NAMESPACE = 'clusterpulse-system'
export const AGENT_NAME = 'clusterpulse-collector'
/** Where the agent of a member keeps its key and its certificate. */
export const IDENTITY_SECRET = 'clusterpulse-agent-identity'
/** The account in whose name an agent changes its member, where it may. */
export const EXECUTOR = 'clusterpulse-executor'

const RBAC = 'rbac.authorization.k8s.io'
const resource = (group: string, plural: string, kind: string, namespaced = true): Resource => ({
  ...{ group, version: 'v1', plural, kind, namespaced },
})
const secret = resource('', 'secrets', 'Secret')
const account = resource('', 'serviceaccounts', 'ServiceAccount')
const role = resource(RBAC, 'roles', 'Role')
const roleBinding = resource(RBAC, 'rolebindings', 'RoleBinding')
const clusterRoleBinding = resource(RBAC, 'clusterrolebindings', 'ClusterRoleBinding', false)

type Labelled = Pick<KubeObject['metadata'], 'labels' | 'annotations'>

/**
 * What the agent of a member has beside the others: a Secret for its identity, and the right to exactly that one. It changes nothing
 * itself; with more rights than `observe` it may act as an account that has them, and is nobody without that account.
 */
export function memberObjects(rights: AgentRights, metadata: Labelled) {
  const one = (of: Resource, name: string, body: object, inNamespace: string | undefined = AGENT_NAMESPACE) => ({
    step: of.plural,
    resource: of,
    object: {
      apiVersion: of.group === '' ? of.version : `${of.group}/${of.version}`,
      kind: of.kind,
      metadata: { name, ...(of.namespaced && { namespace: inNamespace }), ...metadata },
      ...body,
    },
  })
  const ref = (kind: 'Role' | 'ClusterRole', name: string) => ({ roleRef: { apiGroup: RBAC, kind, name } })
  const agent = { kind: 'ServiceAccount', name: AGENT_NAME, namespace: AGENT_NAMESPACE }
  const executor = { ...agent, name: EXECUTOR }
  const rules = [
    { apiGroups: [''], resources: ['secrets'], resourceNames: [IDENTITY_SECRET], verbs: ['get', 'patch'] },
    ...(rights.kind === 'observe'
      ? []
      : [{ apiGroups: [''], resources: ['serviceaccounts'], resourceNames: [EXECUTOR], verbs: ['impersonate'] }]),
  ]
  return [
    // Without data: applied again it leaves what the agent keeps there.
    one(secret, IDENTITY_SECRET, { type: 'Opaque' }),
    one(role, AGENT_NAME, { rules }),
    one(roleBinding, AGENT_NAME, { ...ref('Role', AGENT_NAME), subjects: [agent] }),
    ...(rights.kind === 'observe' ? [] : [one(account, EXECUTOR, {})]),
    ...(rights.kind === 'full'
      ? [one(clusterRoleBinding, EXECUTOR, { ...ref('ClusterRole', 'cluster-admin'), subjects: [executor] })]
      : []),
    // Not the namespaces themselves: they are people's, and would go with the agent's manifest.
    ...(rights.kind === 'namespaced' ? rights.namespaces : []).map((name) =>
      one(roleBinding, EXECUTOR, { ...ref('ClusterRole', 'admin'), subjects: [executor] }, name),
    ),
  ]
}
