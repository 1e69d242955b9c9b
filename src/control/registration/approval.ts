import { LRUCache } from 'lru-cache'
import { API_CLIENT_SIGNER, CLUSTER_LABEL, judgeRequest, strangerIn } from '#authority'
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
  /** such a request was approved all the same, while nothing of ours answered, and signed: nobody can take that back */
  | { readonly kind: 'breach'; readonly why: string }

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
  const { username: name = '', groups = [] } = request.spec ?? {}
  const stranger = agentOf({ name, groups }) && strangerIn(request)
  const otherSigner = agentOf({ name, groups }) && otherSignerIn(request)
  const breach = stranger ?? otherSigner
  // One that was approved and not signed, as the hub's own signer leaves it, opens nothing.
  if (breach !== undefined && certificate !== undefined) return { kind: 'breach', why: breach }
  if (isDecided) return wait('it is decided')
  // To deny it we would need the right to approve nodes: who approves names the signer.
  if (otherSigner !== undefined) return wait(otherSigner)
  if (stranger !== undefined) return { kind: 'denial', why: stranger }
  const judged = judgeRequest(request, [API_CLIENT_SIGNER])
  if (judged.kind === 'foreign') return wait('it is for another signer')
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

/** Kubelets have signers of their own, whose certificates would make an agent a node. */
function otherSignerIn({ spec = {} }: CertificateRequestObject): string | undefined {
  const { signerName = '' } = spec
  if (!signerName.startsWith('kubernetes.io/') || signerName === API_CLIENT_SIGNER) return undefined
  return `it asks the signer ${signerName}: agents get no other certificate of Kubernetes than ${API_CLIENT_SIGNER}`
}

const wait = (why: string): Approval => ({ kind: 'wait', why })

/** What was done about a request without a person, for the audit trail. */
export interface RuleDecision {
  /** `approved_wrongly`: it was approved by a person, and must not have been */
  readonly act: 'request_approved' | 'request_denied' | 'approved_wrongly'
  /** name of the CertificateSigningRequest */
  readonly request: string
  /** who made it */
  readonly username: string
  /** by its label; '' where it has none */
  readonly cluster: string
  /** for people */
  readonly why: string
}

export interface ApprovalOptions {
  readonly hub: KubeClient
  readonly requests: Pick<Informer<CertificateRequestObject>, 'get'>
  readonly members: Pick<Informer<ManagedCluster>, 'get'>
  /** whose requests are approved, and whose clusters are accepted once, without a person */
  readonly users: readonly string[]
  /** told what was done; of what was approved wrongly once in each life of the process */
  readonly decided?: (decision: RuleDecision) => void
  readonly clock: Clock
  readonly logger: Logger
}

/** Decides what needs no person: renewals of members, what listed users ask for, and agents that ask to be somebody else. */
export class ApprovalReconciler implements Reconciler {
  readonly name = 'certificate-approval'
  readonly #options: ApprovalOptions
  readonly #breaches = new LRUCache<string, true>({ max: 10_000 })

  constructor(options: ApprovalOptions) {
    this.#options = options
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    const { hub, requests, members, users, clock, logger } = this.#options
    const request = requests.get(key)
    if (!request) return done
    const approval = approvalOf(request, users, (name) => members.get({ name }))
    if (approval.kind === 'wait') return done
    const decided = (act: RuleDecision['act'], why: string) => {
      const [username, cluster] = [request.spec?.username ?? '', request.metadata.labels?.[CLUSTER_LABEL] ?? '']
      this.#options.decided?.({ act, request: key.name, username, cluster, why })
    }
    if (approval.kind === 'breach') {
      const { uid = key.name } = request.metadata
      if (this.#breaches.has(uid)) return done
      this.#breaches.set(uid, true)
      const said = { request: key.name, user: request.spec?.username, why: approval.why }
      logger.error(
        said,
        'an agent that asks to be somebody else was approved, and the API server takes its certificate until that ends: take the rights of whom it names away, or replace the CA of clients',
      )
      decided('approved_wrongly', approval.why)
      return done
    }
    if (approval.kind === 'denial') {
      const said = { request: key.name, user: request.spec?.username, why: approval.why }
      const message = `Denied by rule: ${approval.why}`
      await deny(hub, request, { reason: 'ClusterPulseDenied', message, at: clock.now(), signal })
      logger.warn(said, 'a request was denied by rule: an agent asks to be somebody else')
      decided('request_denied', approval.why)
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
    const words = approval.kind === 'renewal' ? 'a certificate is renewed' : 'a request was approved by rule'
    logger.info(facts, words)
    decided('request_approved', words)
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
