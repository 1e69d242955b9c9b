import { API_CLIENT_SIGNER, judgeRequest, strangerIn } from '#authority'
import { AUTO_APPROVED, approve, type CertificateRequestObject, deny } from '#certificates'
import { done, type Informer, type Outcome, type Reconciler } from '#controller'
import { agentOf, REGISTER_GROUP } from '#kinds'
import type { KubeClient, ObjectKey } from '#kube'
import type { Clock } from '#model'
import type { Logger } from '#runtime'
import { conditionOf, type ManagedCluster, managedClusters } from './objects.ts'
import { keyOf, versionOf } from './status.ts'
import { ACCEPTED_AUTOMATICALLY, CONDITIONS } from './words.ts'

/** What is to be done about a request. All that is not decided here waits for a person. */
export type Approval =
  | { readonly kind: 'wait'; readonly why: string }
  /** a member renews its certificate: if it may, by an access review */
  | { readonly kind: 'renewal'; readonly cluster: string }
  /** somebody whose requests are approved without a person */
  | { readonly kind: 'automatic'; readonly cluster: string }
  /** an agent asks to be somebody else: whoever approves by the label of the cluster would not see it */
  | { readonly kind: 'denial'; readonly why: string }

/**
 * Decides about a request by what it is and who asks. A member renews its own; who is listed may bring in clusters that are
 * not members yet, and no other: a bootstrap credential is no way to the name of a member that lives.
 */
export function approvalOf(
  request: CertificateRequestObject,
  users: readonly string[],
  memberOf: (cluster: string) => ManagedCluster | undefined,
): Approval {
  const { conditions = [], certificate } = request.status ?? {}
  const isDecided = certificate !== undefined || conditions.some(({ type }) => type === 'Approved' || type === 'Denied')
  if (isDecided) return wait('it is decided')
  const judged = judgeRequest(request, [API_CLIENT_SIGNER])
  if (judged.kind === 'foreign') return wait('it is for another signer')
  const { username: name = '', groups = [] } = request.spec ?? {}
  const stranger = agentOf({ name, groups }) && strangerIn(request)
  if (stranger !== undefined) return { kind: 'denial', why: stranger }
  if (judged.kind === 'faulty') return wait(judged.message)
  const { cluster } = judged.member
  if (judged.isRenewal) return { kind: 'renewal', cluster }
  if (!users.includes(name)) return wait('a person decides')
  const member = memberOf(cluster)
  if (!member) return wait(`there is no ManagedCluster ${cluster}`)
  if (conditionOf(member, CONDITIONS.joined)?.status === 'True')
    return wait(`${cluster} is a member already: a person decides`)
  if (conditionOf(member, CONDITIONS.accepted)?.status === 'False')
    return wait(`${cluster} was denied: a person decides`)
  return { kind: 'automatic', cluster }
}

const wait = (why: string): Approval => ({ kind: 'wait', why })

export interface ApprovalOptions {
  readonly hub: KubeClient
  readonly requests: Pick<Informer<CertificateRequestObject>, 'get'>
  readonly members: Pick<Informer<ManagedCluster>, 'get'>
  /** whose requests are approved, and whose clusters are accepted once, without a person */
  readonly users: readonly string[]
  readonly clock: Clock
  readonly logger: Logger
}

/** Decides what needs no person: renewals of members, what listed users ask for, and agents that ask to be somebody else. */
export class ApprovalReconciler implements Reconciler {
  readonly name = 'certificate-approval'
  readonly #options: ApprovalOptions

  constructor(options: ApprovalOptions) {
    this.#options = options
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    const { hub, requests, members, users, clock, logger } = this.#options
    const request = requests.get(key)
    if (!request) return done
    const approval = approvalOf(request, users, (name) => members.get({ name }))
    if (approval.kind === 'wait') return done
    if (approval.kind === 'denial') {
      const said = { request: key.name, user: request.spec?.username, why: approval.why }
      logger.warn(said, 'a request was denied by rule: an agent asks to be somebody else')
      const message = `Denied by rule: ${approval.why}`
      await deny(hub, request, { reason: 'ClusterPulseDenied', message, at: clock.now(), signal })
      return done
    }
    const facts = { request: key.name, cluster: approval.cluster, user: request.spec?.username }
    if (approval.kind === 'renewal' && !(await this.#mayRenew(request, signal))) {
      logger.warn(facts, 'a certificate is not renewed: its member may not, as it is not accepted')
      return done
    }
    // First: a request that is approved is not looked at again.
    if (approval.kind === 'automatic') await this.#accept(approval.cluster, signal)
    const message = 'Auto approved by rule: the hub recognises the request'
    await approve(hub, request, { reason: AUTO_APPROVED, message, at: clock.now(), signal })
    logger.info(facts, approval.kind === 'renewal' ? 'a certificate is renewed' : 'a request was approved by rule')
    return done
  }

  async #mayRenew({ spec = {} }: CertificateRequestObject, signal: AbortSignal): Promise<boolean> {
    const { username: user = '', groups = [], extra = {} } = spec
    const resourceAttributes = {
      ...{ group: REGISTER_GROUP, resource: 'managedclusters', subresource: 'clientcertificates', verb: 'renew' },
    }
    const body = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: { user, groups, extra, resourceAttributes },
    }
    const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews'
    const answer = await this.#options.hub.request('POST', path, { body, contentType: 'application/json', signal })
    return (answer as { status?: { allowed?: unknown } }).status?.allowed === true
  }

  /** Once: who denies it later is not overruled. */
  async #accept(cluster: string, signal: AbortSignal): Promise<void> {
    const { hub, members, clock, logger } = this.#options
    const member = members.get({ name: cluster })
    if (!member || member.spec?.hubAcceptsClient || member.metadata.annotations?.[ACCEPTED_AUTOMATICALLY]) return
    const annotations = { [ACCEPTED_AUTOMATICALLY]: new Date(clock.now()).toISOString() }
    const patch = { metadata: { ...versionOf(member), annotations }, spec: { hubAcceptsClient: true } }
    await hub.patch(managedClusters, keyOf(member), patch, { kind: 'merge', signal })
    logger.info({ cluster }, 'a cluster was accepted by rule')
  }
}
