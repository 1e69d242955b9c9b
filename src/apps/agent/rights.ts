import { isKubeError, type KubeClient, type RequestOptions } from '#kube'
import { type AgentRights, agentRightsText, EXECUTOR, OBSERVE } from '#model'

/** What the agent can do on its member, and why that is less than was chosen, or more. */
export interface HeldRights {
  readonly rights: AgentRights
  readonly fault?: string
  /** what is left of rights of before, and how it is taken away */
  readonly excess?: string
}

interface Attempt {
  readonly verb: string
  readonly group?: string
  readonly resource: string
  readonly namespace?: string
  readonly name?: string
}

/**
 * What was chosen, where the cluster grants it: what the hub is told is true.
 * @param as an agent that is a pod acts as the executor; another one as the user of its kubeconfig
 */
export async function heldRights(
  kube: Pick<KubeClient, 'request'>,
  wanted: AgentRights,
  { as, signal }: { readonly as: 'executor' | 'itself'; readonly signal: AbortSignal },
): Promise<HeldRights> {
  try {
    for (const attempt of attemptsOf(wanted, as))
      if (!(await isAllowed(kube, attempt, { signal }))) return lacking(wanted, attempt, as)
    if (wanted.kind !== 'namespaced') return { rights: wanted }
    const who = as === 'executor' ? { as: { user: EXECUTOR_USER } } : {}
    const isFull = await isAllowed(kube, EVERYTHING, { ...who, signal })
    return isFull ? { rights: { kind: 'full' }, excess: excessWords(wanted, as) } : { rights: wanted }
  } catch (error) {
    if (!isKubeError(error) || signal.aborted) throw error
    return {
      rights: OBSERVE,
      fault: `whether the cluster grants ${agentRightsText(wanted)} is not known: ${error.message}`,
    }
  }
}

const EVERYTHING: Attempt = { verb: '*', group: '*', resource: '*' }
const EXECUTOR_USER = `system:serviceaccount:${EXECUTOR.namespace}:${EXECUTOR.name}`

const excessWords = (wanted: AgentRights, as: 'executor' | 'itself'): string =>
  as === 'executor'
    ? `${agentRightsText(wanted)} was chosen, and the cluster still grants full: take it away with \`kubectl delete clusterrolebinding ${EXECUTOR.name}\`, and start the agent again`
    : `${agentRightsText(wanted)} was chosen, and the user of this kubeconfig may do everything: the hub is told full; take a kubeconfig of a user who may change these namespaces alone, and start the agent again`

function attemptsOf(wanted: AgentRights, as: 'executor' | 'itself'): readonly Attempt[] {
  if (wanted.kind === 'observe') return []
  if (as === 'executor') return [{ verb: 'impersonate', resource: 'serviceaccounts', ...EXECUTOR }]
  if (wanted.kind === 'full') return [EVERYTHING]
  return wanted.namespaces.flatMap((namespace) => [
    { verb: 'create', group: 'apps', resource: 'deployments', namespace },
    { verb: 'delete', resource: 'secrets', namespace },
  ])
}

function lacking(wanted: AgentRights, { verb, resource, namespace }: Attempt, as: 'executor' | 'itself'): HeldRights {
  const what = `${verb} ${resource}${namespace === undefined ? '' : ` in ${namespace}`}`
  const remedy =
    as === 'executor'
      ? 'apply what `clusterpulse connect NAME --rights … -o manifest` prints'
      : 'take a kubeconfig of somebody who may, or join with --rights observe'
  return { rights: OBSERVE, fault: `the cluster does not grant ${agentRightsText(wanted)}: not "${what}"; ${remedy}` }
}

async function isAllowed(
  kube: Pick<KubeClient, 'request'>,
  attempt: Attempt,
  { as, signal }: Pick<RequestOptions, 'as'> & { readonly signal: AbortSignal },
): Promise<boolean> {
  const body = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: { resourceAttributes: attempt },
  }
  const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
  const answer = await kube.request('POST', path, { body, contentType: 'application/json', ...(as && { as }), signal })
  return (answer as { status?: { allowed?: unknown } }).status?.allowed === true
}
