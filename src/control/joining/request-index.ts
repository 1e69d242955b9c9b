import { CLUSTER_LABEL } from '#authority'
import { Informer } from '#controller'
import type { KubeClient } from '#kube'
import type { Clock, MemberRequest, MemberRequestReader } from '#model'
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
  stateOf,
} from './certificate-request.ts'
import { type ManagedCluster, managedClusters } from './members.ts'

/** Requests for members' certificates that wait for a decision, followed by list and watch, for who shows them. */
export class RequestIndex implements MemberRequestReader, AsyncDisposable {
  readonly #requests: Informer<CertificateRequest>
  readonly #members: Informer<ManagedCluster>
  #version = 0
  #made: { readonly version: number; readonly requests: readonly MemberRequest[] } | undefined

  constructor({ hub, logger, clock }: { readonly hub: KubeClient; readonly logger: Logger; readonly clock: Clock }) {
    this.#requests = new Informer({
      ...{ kube: hub, resource: certificateRequests, labelSelector: CLUSTER_LABEL, logger, clock },
      where: ({ spec }) => MEMBER_SIGNERS.has(spec.signerName),
    })
    this.#requests.onChange(() => {
      this.#version++
    })
    this.#members = new Informer({ kube: hub, resource: managedClusters, logger, clock })
    this.#members.onChange((change) => {
      const now = change.kind === 'deleted' ? undefined : change.object
      const before = change.kind === 'added' ? undefined : change.previous
      if (askedBy(now) !== askedBy(before)) this.#version++
    })
  }

  /** Does not wait for the hub's API, which may be away for now. */
  start(): void {
    this.#requests.start()
    this.#members.start()
  }

  version(): number {
    return this.#version + (this.isKnown() ? 1 : 0)
  }

  isKnown(): boolean {
    return this.#requests.isSynced
  }

  requests(): readonly MemberRequest[] {
    const version = this.version()
    if (this.#made?.version !== version) {
      const waiting = this.#requests.list().filter((one) => stateOf(one).kind === 'pending')
      // One that breaks the rules can never be signed: it is not the cluster that asks.
      const asking = waiting.filter((one) => faultOf(one) === undefined)
      const shown = asking.map((one) => memberRequestOf(one, this.#members.get({ name: clusterOfRequest(one) })))
      this.#made = { version, requests: shown.sort(inOrder) }
    }
    return this.#made.requests
  }

  /** Who is to sign what waits of a cluster, each once. */
  signersOf(cluster: string): readonly string[] {
    const waiting = this.#requests.list().filter((one) => stateOf(one).kind === 'pending')
    const mine = waiting.filter((one) => clusterOfRequest(one) === cluster)
    return [...new Set(mine.map(({ spec }) => spec.signerName))]
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#requests.stop(), this.#members.stop()])
  }
}

const askedBy = (member: ManagedCluster | undefined): string | undefined =>
  member?.metadata.annotations?.[ASKED_ANNOTATION]

function memberRequestOf(request: CertificateRequest, member: ManagedCluster | undefined): MemberRequest {
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
  }
}

const inOrder = (a: MemberRequest, b: MemberRequest): number =>
  a.cluster === b.cluster ? (a.requestedAt ?? 0) - (b.requestedAt ?? 0) : a.cluster < b.cluster ? -1 : 1
