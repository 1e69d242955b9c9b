import { isDeepStrictEqual } from 'node:util'
import {
  API_CLIENT_SIGNER,
  CLUSTER_LABEL,
  isMemberCluster,
  isReservedNamespace,
  judgeRequest,
  memberOfUser,
} from '#authority'
import { type CertificateRequestObject, denialIn, deny, STREAM_SIGNER } from '#certificates'
import { againAfter, done, type Informer, type Outcome, type Reconciler } from '#controller'
import { CLUSTER_SET_LABEL, DEFAULT_CLUSTER_SET } from '#kinds'
import { isKubeError, type KubeClient, KubeError, type KubeObject, type ObjectKey, type Resource } from '#kube'
import { type Clock, minutes, seconds } from '#model'
import type { Logger } from '#runtime'
import { isRevoked, revokedMs } from './certificate-life.ts'
import { nextToDelete } from './cleanup.ts'
import {
  clusterNamespaces,
  clusterRoleBindings,
  conditionOf,
  isJudged,
  type ManagedCluster,
  managedClusterAddOns,
  managedClusters,
  manifestWorks,
  monitored,
} from './objects.ts'
import { type Grant, labelsOf, rightsOf, sharedRoles } from './rights.ts'
import { keyOf, type SaidOf, say, versionOf } from './status.ts'
import { transportOf } from './transport.ts'
import { CONDITIONS, FINALIZERS, TRANSPORT } from './words.ts'

export interface MembershipOptions {
  readonly hub: KubeClient
  /** of the hub's own objects, such as ClusterConnections */
  readonly namespace: string
  readonly members: Pick<Informer<ManagedCluster>, 'get' | 'wrote'>
  /** those that belong to clusters */
  readonly namespaces: Pick<Informer<KubeObject>, 'get' | 'wrote'>
  /** what gives rights, by its resource; those of clusters, and the shared ones */
  readonly grants: (resource: Resource) => Pick<Informer<KubeObject>, 'get' | 'wrote'>
  readonly connections: Pick<Informer<KubeObject>, 'get' | 'wrote'>
  /** for certificates of a cluster */
  readonly requestsOf: (cluster: string) => readonly CertificateRequestObject[]
  /**
   * makes every certificate of a cluster worthless at the hub's API that was given so far; for a decision that was followed it does nothing.
   * Absent: the API knows no revocation
   */
  readonly revoke?: (of: { readonly cluster: string; readonly decidedMs?: number }) => Promise<void>
  /** how long a member that is away keeps what belongs to it, ms */
  readonly removalPatienceMs: number
  readonly clock: Clock
  readonly logger: Logger
}

const counted = (objects: readonly unknown[], what: string): string =>
  `${objects.length} ${what}${objects.length === 1 ? '' : 's'}`

const FIELD_MANAGER = 'clusterpulse-registration'
const LOOK_AGAIN_MS = seconds(2)
const FORCED_MS = 100
const NAMESPACE_ENDS_MS = seconds(10)

/**
 * Makes membership true: who is accepted gets a namespace, exactly the rights of its identity, and is monitored; who is denied
 * loses them at once; who is deleted leaves in order, with what belongs to it first and its rights last.
 */
export class MembershipReconciler implements Reconciler {
  readonly name = 'membership'
  readonly #options: MembershipOptions

  constructor(options: MembershipOptions) {
    this.#options = options
  }

  async reconcile({ name }: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    const member = this.#options.members.get({ name })
    if (!member) {
      // It went without waiting for us.
      if (this.#hasRights(name)) await this.#options.revoke?.({ cluster: name })
      await this.#takeRights(name, [], signal)
      return done
    }
    // Before whatever may fail or wait: it decides who sees the cluster.
    await this.#carrySet(member, signal)
    const decidedMs = revokedMs(member)
    if (decidedMs !== undefined) await this.#options.revoke?.({ cluster: name, decidedMs })
    if (member.metadata.deletionTimestamp) return this.#leave(member, signal)
    const isAccepted = member.spec?.hubAcceptsClient === true
    const marked = await this.#mark(member, isAccepted, signal)
    return isAccepted ? this.#accept(marked, signal) : this.#refuse(marked, signal)
  }

  /** The set of who names none, and what must be done before an accepted one may go. */
  async #mark(member: ManagedCluster, isAccepted: boolean, signal: AbortSignal): Promise<ManagedCluster> {
    const { labels = {}, annotations = {}, finalizers = [] } = member.metadata
    const missing = isAccepted
      ? [FINALIZERS.rights, FINALIZERS.resources].filter((one) => !finalizers.includes(one))
      : []
    const patch = {
      ...(!labels[CLUSTER_SET_LABEL] && { labels: { [CLUSTER_SET_LABEL]: DEFAULT_CLUSTER_SET } }),
      ...(missing.length > 0 && { finalizers: [...finalizers, ...missing] }),
      ...(isAccepted && !annotations[TRANSPORT] && { annotations: { [TRANSPORT]: this.#transportOf(member) } }),
    }
    if (Object.keys(patch).length === 0) return member
    const metadata = { ...versionOf(member), ...patch }
    const { hub, members } = this.#options
    const marked = await hub.patch(managedClusters, keyOf(member), { metadata }, { kind: 'merge', signal })
    members.wrote(marked)
    return marked
  }

  #transportOf(member: ManagedCluster) {
    const { connections, namespace } = this.#options
    return transportOf(member, connections.get({ name: member.metadata.name, namespace }) !== undefined)
  }

  async #accept(member: ManagedCluster, signal: AbortSignal): Promise<Outcome> {
    const { logger } = this.#options
    const { name } = member.metadata
    // An API server knows no revocation: with rights, the very certificate that was revoked would count again.
    if (isRevoked(member) && this.#transportOf(member) === 'api') return this.#withhold(member, signal)
    const fault = await this.#namespace(name, signal)
    if (fault) {
      // Nothing of a former acceptance stays in a place where it cannot be.
      await this.#takeRights(name, [], signal)
      await this.#say(member, [{ type: CONDITIONS.accepted, status: 'False', reason: 'Error', message: fault }], signal)
      return againAfter(NAMESPACE_ENDS_MS)
    }
    const rights = rightsOf(name, true)
    const isLast = ({ resource }: Grant) => resource === clusterRoleBindings
    await Promise.all(
      [...sharedRoles, ...rights.filter((grant) => !isLast(grant))].map((grant) => this.#give(grant, signal)),
    )
    // Who may not do everything can bind a role of a cluster only when it is there.
    for (const grant of rights.filter(isLast)) await this.#give(grant, signal)
    // Who was revoked is to join anew first: until then there is no agent to wait for.
    if (this.#transportOf(member) === 'stream' && !isRevoked(member)) await this.#monitor(member, signal)
    const isNews = conditionOf(member, CONDITIONS.accepted)?.status !== 'True'
    await this.#say(member, [accepted], signal)
    if (isNews) logger.info({ cluster: name }, 'a cluster was accepted as a member')
    return done
  }

  async #withhold(member: ManagedCluster, signal: AbortSignal): Promise<Outcome> {
    const { name } = member.metadata
    const rights = rightsOf(name, false)
    for (const grant of rights) await this.#give(grant, signal)
    await this.#takeRights(name, rights, signal)
    await this.#say(member, [revoked], signal)
    return done
  }

  async #refuse(member: ManagedCluster, signal: AbortSignal): Promise<Outcome> {
    const { name } = member.metadata
    const isNews = conditionOf(member, CONDITIONS.accepted)?.status === 'True'
    // Its rights go first, whatever fails after that.
    const rights = isMemberCluster(name) ? rightsOf(name, false) : []
    for (const grant of rights) await this.#give(grant, signal)
    await this.#takeRights(name, rights, signal)
    if (!isJudged(member) && !isTurnedDown(member, this.#options.requestsOf(name))) return done
    await this.#forgetConnection(member, signal)
    await this.#say(member, [denied], signal)
    if (isNews) this.#options.logger.info({ cluster: name }, 'a member was denied: its rights are taken away')
    return done
  }

  /** Add-ons first, then works, each in their order; then rights. A member that is away cannot hold them for ever. */
  async #leave(member: ManagedCluster, signal: AbortSignal): Promise<Outcome> {
    const { hub, clock, logger } = this.#options
    const { name, finalizers = [] } = member.metadata
    const ours: readonly string[] = [FINALIZERS.rights, FINALIZERS.resources]
    if (!finalizers.some((one) => ours.includes(one))) return done
    // Who is denied while it leaves cleans up no more, and has no rights to.
    const isDenied = member.spec?.hubAcceptsClient !== true
    if (isDenied) {
      await this.#takeRights(name, [], signal)
      await this.#forgetConnection(member, signal)
    }
    const addOns = await this.#remaining(managedClusterAddOns, name, signal)
    const works = await this.#remaining(manifestWorks, name, signal)
    const [resource, turn] = addOns.length > 0 ? [managedClusterAddOns, addOns] : [manifestWorks, works]
    if (turn.length > 0) {
      const why = this.#whyNotWaitedFor(member)
      const force = why !== undefined
      for (const object of nextToDelete(turn)) await this.#delete(resource, object, force, signal)
      const next = force
        ? `${why}, so the hub does not wait for it, and what they applied there stays`
        : `${this.#waitsUntil(member)}; to wait no more: clusterpulse deny ${name}`
      const message = `${counted(addOns, 'add-on')} and ${counted(works, 'work')} are to be cleaned up on the member; ${next}`
      await this.#say(
        member,
        [{ type: CONDITIONS.deleting, status: 'False', reason: 'ResourceRemaining', message }],
        signal,
      )
      return againAfter(force ? FORCED_MS : LOOK_AGAIN_MS)
    }
    // A cluster that joins under its name later is another one.
    await this.#options.revoke?.({ cluster: name })
    for (const request of this.#options.requestsOf(name).filter((one) => isUndecided(one) && isMadeBy(one, name)))
      await deny(hub, request, { reason: 'ClusterPulseDetached', message: `${name} was detached`, signal })
    await this.#forgetConnection(member, signal)
    await this.#takeRights(name, [], signal)
    const kept = finalizers.filter((one) => !ours.includes(one))
    const left = await this.#say(member, kept.length > 0 ? [denied, heldBy(kept)] : [nothingLeft], signal)
    const metadata = { ...versionOf(left), finalizers: kept.length > 0 ? kept : null }
    await ifThere(hub.patch(managedClusters, { name }, { metadata }, { kind: 'merge', signal }))
    logger.info({ cluster: name, at: clock.now() }, 'a member left')
    return done
  }

  /**
   * Nobody is there to clean up: it is denied, never joined, or has not done so for as long as we wait. An agent of OCM that is here is
   * waited for as long as it takes; ours applies nothing, so that what holds back there is of another agent, which may have gone.
   */
  #whyNotWaitedFor(member: ManagedCluster): string | undefined {
    if (member.spec?.hubAcceptsClient !== true) return 'it is denied'
    if (conditionOf(member, CONDITIONS.joined)?.status !== 'True') return 'it never joined'
    const { isHere, untilMs } = this.#waiting(member)
    if (untilMs === undefined || this.#options.clock.now() < untilMs) return undefined
    return isHere ? 'its agent applies no works, and no other one cleaned up' : 'it is away'
  }

  /** How long that is waited for, in words. */
  #waitsUntil(member: ManagedCluster): string {
    const { isHere, untilMs } = this.#waiting(member)
    if (untilMs === undefined) return 'its agent is here, and is waited for as long as it takes'
    const until = `the hub waits for that until ${new Date(untilMs).toISOString().slice(0, 19)}Z, and lets go of them then`
    return isHere ? `its agent applies none, so that another one must: ${until}` : `it is away: ${until}`
  }

  /** @returns until when it is waited for, ms: from its deletion, or from when it went away after that; undefined: as long as it takes */
  #waiting(member: ManagedCluster): { readonly isHere: boolean; readonly untilMs: number | undefined } {
    const available = conditionOf(member, CONDITIONS.available)
    // One that tells of trouble of its cluster is here.
    const isHere = available?.status === 'True' || available?.status === 'False'
    if (isHere && this.#transportOf(member) === 'api') return { isHere, untilMs: undefined }
    const deletedMs = Date.parse(member.metadata.deletionTimestamp ?? '')
    const awayMs = isHere ? Number.NaN : Date.parse(available?.lastTransitionTime ?? '')
    const sinceMs = awayMs > deletedMs ? awayMs : deletedMs
    return { isHere, untilMs: sinceMs + this.#options.removalPatienceMs }
  }

  async #remaining(resource: Resource, namespace: string, signal: AbortSignal): Promise<readonly KubeObject[]> {
    try {
      return await this.#options.hub.listAll(resource, { namespace, signal })
    } catch (error) {
      if (isKubeError(error, 'not_found')) return [] // a kind that is not served has no objects
      throw error
    }
  }

  async #delete(resource: Resource, object: KubeObject, force: boolean, signal: AbortSignal): Promise<void> {
    const { hub } = this.#options
    const { deletionTimestamp, finalizers } = object.metadata
    if (!deletionTimestamp) await ifThere(hub.delete(resource, keyOf(object), signal))
    if (!force || !finalizers?.length) return
    await ifThere(hub.patch(resource, keyOf(object), { metadata: { finalizers: null } }, { kind: 'merge', signal }))
  }

  /** @returns why the cluster can have none */
  async #namespace(name: string, signal: AbortSignal): Promise<string | undefined> {
    const { hub, namespaces, namespace } = this.#options
    if (!isMemberCluster(name))
      return `${name} can be no member's name: use at most 63 lower-case letters, digits and -; join anew under such a name`
    if (name === namespace || isReservedNamespace(name))
      return `the namespace ${name} is not for a member; join anew under another name`
    const labels = labelsOf(name)
    let known = namespaces.get({ name })
    if (!known) {
      const object = { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } }
      try {
        namespaces.wrote(await hub.create(clusterNamespaces, object, signal))
        return undefined
      } catch (error) {
        if (!isKubeError(error, 'already_exists')) throw error
      }
      // It may be there under other labels.
      known = await hub.get(clusterNamespaces, { name }, signal)
      if (!known) throw new KubeError('conflict', `the namespace ${name} came and went`)
    }
    if (known.metadata.deletionTimestamp)
      return `the namespace ${name} is being deleted; it is made anew when that has ended. What holds it: kubectl get namespace ${name} -o yaml`
    if (known.metadata.labels?.[CLUSTER_LABEL] === name) return undefined
    await hub.patch(clusterNamespaces, { name }, { metadata: { labels } }, { kind: 'merge', signal })
    return undefined
  }

  /** Brings an object that gives rights to what it must be, whoever changed it. */
  async #give({ resource, object }: Grant, signal: AbortSignal): Promise<void> {
    const known = this.#options.grants(resource).get(keyOf(object))
    if (known && !known.metadata.deletionTimestamp && saysTheSame(known, object)) return
    const { hub, grants } = this.#options
    // Somebody deleted it, and it waits for us as it would where the member leaves: it goes, and is made anew.
    if (known?.metadata.deletionTimestamp && known.metadata.finalizers?.length)
      await ifThere(hub.patch(resource, keyOf(object), { metadata: { finalizers: null } }, { kind: 'merge', signal }))
    const how = { kind: 'apply', fieldManager: FIELD_MANAGER, force: true, signal } as const
    grants(resource).wrote(await hub.patch(resource, keyOf(object), object, how))
  }

  #hasRights(name: string): boolean {
    return rightsOf(name, true).some(({ resource, object }) => this.#options.grants(resource).get(keyOf(object)))
  }

  /** What a cluster has besides what it keeps. */
  async #takeRights(name: string, keeps: readonly Grant[], signal: AbortSignal): Promise<void> {
    const { hub, grants } = this.#options
    for (const { resource, object } of rightsOf(name, true).toReversed()) {
      const key = keyOf(object)
      if (keeps.some((kept) => kept.resource === resource && kept.object.metadata.name === key.name)) continue
      const known = grants(resource).get(key)
      // Another's of the same name, where the informers follow ours alone, is not ours to delete.
      if (!known || (resource.namespaced && known.metadata.namespace !== name)) continue
      if (known.metadata.finalizers?.length)
        await ifThere(hub.patch(resource, key, { metadata: { finalizers: null } }, { kind: 'merge', signal }))
      if (!known.metadata.deletionTimestamp) await ifThere(hub.delete(resource, key, signal))
    }
  }

  /**
   * The set of a member goes with it to the connection that it owns, for policies to select by; its other labels, which its agent
   * may write, do not.
   */
  async #carrySet({ metadata }: ManagedCluster, signal: AbortSignal): Promise<void> {
    const { hub, connections, namespace } = this.#options
    const key = { name: metadata.name, namespace }
    const known = connections.get(key)
    const set = metadata.labels?.[CLUSTER_SET_LABEL]
    if (!known || !isOwnedBy(known, metadata) || known.metadata.labels?.[CLUSTER_SET_LABEL] === set) return
    const patch = { metadata: { labels: { [CLUSTER_SET_LABEL]: set ?? null } } }
    await ifThere(hub.patch(monitored, key, patch, { kind: 'merge', signal }))
  }

  /** A member of ours is a cluster that is monitored like every other, as long as it is one. */
  async #monitor({ metadata }: ManagedCluster, signal: AbortSignal): Promise<void> {
    const { hub, connections, namespace, logger } = this.#options
    const { name, uid = '' } = metadata
    if (connections.get({ name, namespace })) return
    const set = metadata.labels?.[CLUSTER_SET_LABEL]
    const labels = { ...labelsOf(name), ...(set && { [CLUSTER_SET_LABEL]: set }) }
    const { group, version, kind } = monitored
    const owner = { apiVersion: 'cluster.open-cluster-management.io/v1', kind: 'ManagedCluster', name, uid }
    const object = {
      apiVersion: `${group}/${version}`,
      kind,
      metadata: { name, namespace, labels, ownerReferences: [owner] },
      spec: { collectionMode: 'push' },
    }
    try {
      connections.wrote(await hub.create(monitored, object, signal))
      logger.info({ cluster: name }, 'a member is monitored from now on')
    } catch (error) {
      if (!isKubeError(error, 'already_exists')) throw error
    }
  }

  /** The one that it owns; what a person declared stays. */
  async #forgetConnection({ metadata }: ManagedCluster, signal: AbortSignal): Promise<void> {
    const { hub, connections, namespace } = this.#options
    const { name } = metadata
    const known = connections.get({ name, namespace })
    if (known && isOwnedBy(known, metadata)) await ifThere(hub.delete(monitored, { name, namespace }, signal))
  }

  #say(member: ManagedCluster, said: readonly SaidOf[], signal: AbortSignal): Promise<ManagedCluster> {
    const { hub, members, clock } = this.#options
    return say(hub, managedClusters, member, { to: members, said, now: clock.now(), signal })
  }
}

const isUndecided = ({ status }: CertificateRequestObject): boolean =>
  !status?.certificate && !status?.conditions?.length
/** What it asked as a member. Who asks to become one goes on asking. */
const isMadeBy = ({ spec }: CertificateRequestObject, cluster: string): boolean =>
  memberOfUser(spec?.username ?? '')?.cluster === cluster

/** Whether it was revoked, or all that it asked for was denied: of one that nobody ever accepted that is the decision on it. */
function isTurnedDown(member: ManagedCluster, requests: readonly CertificateRequestObject[]): boolean {
  if (isRevoked(member)) return true
  const since = Date.parse(member.metadata.creationTimestamp ?? '')
  // What was decided before it was made was decided about another one of its name; OCM's agent may ask before it makes it.
  const asked = requests.filter(
    (one) => !(decidedAt(one) < since) && judgeRequest(one, [API_CLIENT_SIGNER, STREAM_SIGNER]).kind === 'recognised',
  )
  return asked.length > 0 && asked.every((one) => denialIn(one) !== undefined)
}

/** When the last decision about it was written, ms since the Unix epoch; NaN: none was. */
function decidedAt({ status }: CertificateRequestObject): number {
  const times = (status?.conditions ?? []).map((one) => Date.parse(one.lastTransitionTime ?? one.lastUpdateTime ?? ''))
  return times.length > 0 ? Math.max(...times) : Number.NaN
}

export const DEFAULT_REMOVAL_PATIENCE_MS = minutes(5)

const accepted: SaidOf = {
  type: CONDITIONS.accepted,
  status: 'True',
  reason: 'HubClusterAdminAccepted',
  message: 'Accepted by hub cluster admin',
}
const denied: SaidOf = {
  type: CONDITIONS.accepted,
  status: 'False',
  reason: 'HubClusterAdminDenied',
  message: 'Denied by hub cluster admin',
}
const revoked: SaidOf = {
  type: CONDITIONS.accepted,
  status: 'False',
  reason: 'Revoked',
  message: 'Its certificates were revoked: it is accepted once its agent has asked anew, and that was approved',
}
const heldBy = (finalizers: readonly string[]): SaidOf => ({
  type: CONDITIONS.deleting,
  status: 'False',
  reason: 'FinalizersRemaining',
  message: `It is no member any more. Others hold the object back by finalizers: ${finalizers.join(', ').slice(0, 512)}. Where nobody removes them, \`kubectl edit managedcluster\` does.`,
})
const nothingLeft: SaidOf = {
  type: CONDITIONS.deleting,
  status: 'True',
  reason: 'NoResource',
  message: 'No cleaned resource in cluster ns.',
}

/** Whether the stored object says all that the wanted one does; what else the server put there does not matter. */
function saysTheSame(stored: KubeObject, wanted: KubeObject): boolean {
  const { labels = {}, finalizers = [] } = wanted.metadata
  return (
    ['rules', 'subjects', 'roleRef'].every((field) => isDeepStrictEqual(stored[field], wanted[field])) &&
    Object.entries(labels).every(([label, value]) => stored.metadata.labels?.[label] === value) &&
    finalizers.every((finalizer) => stored.metadata.finalizers?.includes(finalizer))
  )
}

const isOwnedBy = ({ metadata }: KubeObject, { uid }: KubeObject['metadata']): boolean =>
  uid !== undefined && metadata.ownerReferences?.some((owner) => owner.uid === uid) === true

async function ifThere(call: Promise<unknown>): Promise<void> {
  try {
    await call
  } catch (error) {
    if (!isKubeError(error, 'not_found')) throw error
  }
}
