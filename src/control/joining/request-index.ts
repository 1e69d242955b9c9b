import { CLUSTER_LABEL } from '#authority'
import { Informer, lastingTrouble, type Troubled } from '#controller'
import type { KubeClient } from '#kube'
import {
  type Behind,
  type Clock,
  hubAway,
  type MemberDecision,
  type MemberRequest,
  type MemberRequestReader,
  type MissingDecision,
} from '#model'
import type { Logger } from '#runtime'
import { ASKED_ANNOTATION } from './askers.ts'
import {
  askerOf,
  type CertificateRequest,
  certificateRequests,
  clusterOfRequest,
  faultOf,
  keyOf,
  MEMBER_SIGNERS,
  missingOf,
  stateOf,
} from './certificate-request.ts'
import { denialTimeOf, type ManagedCluster, managedClusters } from './members.ts'

export interface RequestIndexOptions {
  readonly hub: KubeClient
  /** whether the hub's API answers; absent: its watches tell */
  readonly pulse?: Troubled
  readonly logger: Logger
  readonly clock: Clock
}

/**
 * Requests for members' certificates that wait for a decision, about them or about their cluster, followed by list and watch, for who
 * shows them. Those of a cluster that was deleted meanwhile wait for none: no decision could make them a member.
 */
export class RequestIndex implements MemberRequestReader, AsyncDisposable {
  readonly #requests: Informer<CertificateRequest>
  readonly #members: Informer<ManagedCluster>
  readonly #clock: Clock
  readonly #told: readonly Troubled[]
  #version = 0
  #wasBehind = false
  #made: { readonly version: number; readonly requests: readonly MemberRequest[] } | undefined

  constructor({ hub, logger, clock, pulse }: RequestIndexOptions) {
    this.#clock = clock
    this.#requests = new Informer({
      ...{ kube: hub, resource: certificateRequests, labelSelector: CLUSTER_LABEL, logger, clock },
      where: ({ spec }) => MEMBER_SIGNERS.has(spec.signerName),
    })
    this.#requests.onChange(() => {
      this.#version++
    })
    this.#members = new Informer({ kube: hub, resource: managedClusters, logger, clock })
    this.#told = [this.#requests, this.#members, ...(pulse ? [pulse] : [])]
    this.#members.onChange((change) => {
      const now = change.kind === 'deleted' ? undefined : change.object
      const before = change.kind === 'added' ? undefined : change.previous
      if (shownOf(now) !== shownOf(before)) this.#version++
    })
  }

  /** Does not wait for the hub's API, which may be away for now. */
  start(): void {
    this.#requests.start()
    this.#members.start()
  }

  version(): number {
    const isBehind = this.behind() !== undefined
    if (isBehind !== this.#wasBehind) this.#version++
    this.#wasBehind = isBehind
    return this.#version + (this.isKnown() ? 1 : 0)
  }

  isKnown(): boolean {
    return this.#requests.isSynced && this.#members.isSynced
  }

  behind(): Behind | undefined {
    return hubAway(lastingTrouble(this.#told, this.#clock))
  }

  requests(): readonly MemberRequest[] {
    const version = this.version()
    if (this.#made?.version !== version) {
      const shown = this.#requests.list().flatMap((one) => {
        const member = this.#members.get({ name: clusterOfRequest(one) })
        const missing = missingOf(one, member)
        // One that breaks the rules can never be signed: it is not the cluster that asks.
        return missing.length > 0 && faultOf(one) === undefined ? [memberRequestOf(one, member, missing)] : []
      })
      this.#made = { version, requests: shown.sort(inOrder) }
    }
    return this.#made.requests
  }

  /** Signers of the requests of a cluster that the decision would change, each once. */
  signersOf(cluster: string, decision: MemberDecision): readonly string[] {
    const member = this.#members.get({ name: cluster })
    const mine = this.#requests.list().filter((one) => clusterOfRequest(one) === cluster)
    // What is approved already is accepted without another look at it, and turned down by one.
    const changed = mine.filter(
      (one) => stateOf(one).kind === 'pending' || (decision !== 'accept' && missingOf(one, member).length > 0),
    )
    return [...new Set(changed.map(({ spec }) => spec.signerName))]
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#requests.stop(), this.#members.stop()])
  }
}

/** What of a cluster decides over what is shown of its requests. */
function shownOf(member: ManagedCluster | undefined): string | undefined {
  if (!member) return undefined
  const { uid, deletionTimestamp, annotations } = member.metadata
  const decided = `${member.spec?.hubAcceptsClient} ${denialTimeOf(member)}`
  return `${uid} ${deletionTimestamp} ${decided} ${annotations?.[ASKED_ANNOTATION]}`
}

function memberRequestOf(
  request: CertificateRequest,
  member: ManagedCluster | undefined,
  missing: readonly MissingDecision[],
): MemberRequest {
  const { name, creationTimestamp } = request.metadata
  const asker = askerOf(request, member)
  const requestedAt = Date.parse(creationTimestamp ?? '')
  return {
    name,
    cluster: clusterOfRequest(request),
    username: request.spec.username ?? '',
    address: asker?.address ?? '',
    key: keyOf(request) ?? '',
    agentVersion: asker?.version ?? '',
    requestedAt: Number.isNaN(requestedAt) ? null : requestedAt,
    missing,
  }
}

const inOrder = (a: MemberRequest, b: MemberRequest): number =>
  a.cluster === b.cluster ? (a.requestedAt ?? 0) - (b.requestedAt ?? 0) : a.cluster < b.cluster ? -1 : 1
