import { CLUSTER_LABEL } from '#authority'
import { Informer } from '#controller'
import type { KubeClient } from '#kube'
import type { Clock, MemberRequest, MemberRequestReader } from '#model'
import type { Logger } from '#runtime'
import {
  addressOf,
  type CertificateRequest,
  certificateRequests,
  clusterOfRequest,
  keyOf,
  MEMBER_SIGNERS,
  stateOf,
  VERSION_ANNOTATION,
} from './certificate-request.ts'

/** Requests for members' certificates that wait for a decision, followed by list and watch, for who shows them. */
export class RequestIndex implements MemberRequestReader, AsyncDisposable {
  readonly #requests: Informer<CertificateRequest>
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
  }

  /** Does not wait for the hub's API, which may be away for now. */
  start(): void {
    this.#requests.start()
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
      this.#made = { version, requests: waiting.map(memberRequestOf).sort(inOrder) }
    }
    return this.#made.requests
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#requests.stop()
  }
}

function memberRequestOf(request: CertificateRequest): MemberRequest {
  const { name, annotations = {}, creationTimestamp } = request.metadata
  const requestedAt = Date.parse(creationTimestamp ?? '')
  return {
    name,
    cluster: clusterOfRequest(request),
    username: request.spec.username ?? '',
    address: addressOf(request),
    key: keyOf(request) ?? '',
    agentVersion: annotations[VERSION_ANNOTATION] ?? '',
    requestedAt: Number.isNaN(requestedAt) ? null : requestedAt,
  }
}

const inOrder = (a: MemberRequest, b: MemberRequest): number =>
  a.cluster === b.cluster ? (a.requestedAt ?? 0) - (b.requestedAt ?? 0) : a.cluster < b.cluster ? -1 : 1
