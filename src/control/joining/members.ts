import type { Membership } from '#connections'
import { Informer } from '#controller'
import {
  ASKED_ANNOTATION,
  CERTIFICATE_LIFE_ANNOTATION,
  CERTIFICATES_ANNOTATION,
  certificateLifeIn,
  TRANSPORT_ANNOTATION,
} from '#kinds'
import type { KubeClient, KubeObject, Resource } from '#kube'
import type { Clock, ClusterName } from '#model'
import type { Logger } from '#runtime'
import { fingerprintOf, trustedIn } from './authorities.ts'

/** A member, or a cluster that asks to be one, as far as joining goes. */
export interface ManagedCluster extends KubeObject {
  readonly spec?: { readonly hubAcceptsClient?: boolean }
  /** of its conditions the one that tells of a decision */
  readonly status?: { readonly conditions?: readonly DecidedCondition[] }
}

interface DecidedCondition {
  readonly type: string
  readonly status: string
  readonly lastTransitionTime: string
}

/*
 * Which certificates of a member count on its stream: SHA-256, newest first, comma between. The hub writes it with each that it hands
 * out. A list of those that count ends all others, also those nobody remembers. Admission keeps it from everybody who may not accept the cluster.
 */
export { CERTIFICATES_ANNOTATION }

/** The one in use, the next, and room for renewals whose answer was lost. */
const MAX_CERTIFICATES = 4

export const certificatesOf = ({ metadata }: KubeObject): readonly string[] =>
  (metadata.annotations?.[CERTIFICATES_ANNOTATION] ?? '').split(',').filter((one) => /^[0-9a-f]{64}$/.test(one))

/**
 * Whether one of them still counts, as far as that can be told: the newest may be of an authority that was ended, or lost.
 * @param roots PEM of the authorities that the hub trusts; undefined: they are not known
 */
export function hasCertificate(member: KubeObject, roots: string | undefined): boolean {
  if (certificatesOf(member).length === 0) return false
  const issuer = certificateLifeIn(member.metadata.annotations?.[CERTIFICATE_LIFE_ANNOTATION])?.issuer
  const trusted = trustedIn(roots)
  return !issuer || !trusted || trusted.some((one) => fingerprintOf(one).startsWith(issuer))
}

/** In place of the list: none counts, and since when. */
export const revokedAt = (now: number): string => `revoked-${new Date(now).toISOString()}`

/** Whether its certificates were revoked, and none was handed out since. */
export const isRevoked = ({ metadata }: KubeObject): boolean =>
  metadata.annotations?.[CERTIFICATES_ANNOTATION]?.startsWith('revoked-') === true

/** Said of a cluster once somebody decided about it, whatever they said. */
const DECIDED = 'HubAcceptedManagedCluster'

/**
 * When it was decided that it is no member, ms since the Unix epoch.
 * @returns -Infinity: nobody decided anything; Infinity: it is or was one, and since when it is none the hub has not said yet
 */
export function denialTimeOf({ metadata, status }: ManagedCluster): number {
  const said = status?.conditions?.find(({ type }) => type === DECIDED)
  if (said?.status === 'False') return Date.parse(said.lastTransitionTime)
  const wasDecided = said !== undefined || metadata.annotations?.[CERTIFICATES_ANNOTATION] !== undefined
  return wasDecided ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY
}

/** The list with one more. */
export const withCertificate = (known: readonly string[], fingerprint: string): string =>
  [fingerprint, ...known.filter((one) => one !== fingerprint)].slice(0, MAX_CERTIFICATES).join()

const KEPT: ReadonlySet<string> = new Set([
  CERTIFICATES_ANNOTATION,
  ASKED_ANNOTATION,
  CERTIFICATE_LIFE_ANNOTATION,
  TRANSPORT_ANNOTATION,
])

export const managedClusters: Resource<ManagedCluster> = {
  group: 'cluster.open-cluster-management.io',
  version: 'v1',
  plural: 'managedclusters',
  kind: 'ManagedCluster',
  namespaced: false,
  fromJson: ({ metadata, spec, status }) => {
    const { name, uid, resourceVersion, creationTimestamp, deletionTimestamp, annotations } = metadata
    const kept = Object.entries(annotations ?? {}).filter(([name]) => KEPT.has(name))
    const { hubAcceptsClient } = (spec ?? {}) as { hubAcceptsClient?: unknown }
    const { conditions = [] } = (status ?? {}) as NonNullable<ManagedCluster['status']> // served under its schema
    const decided = conditions.find(({ type }) => type === DECIDED)
    return {
      metadata: {
        name,
        ...(uid && { uid }),
        ...(resourceVersion && { resourceVersion }),
        ...(creationTimestamp && { creationTimestamp }),
        ...(deletionTimestamp && { deletionTimestamp }),
        ...(kept.length > 0 && { annotations: Object.fromEntries(kept) }),
      },
      spec: { hubAcceptsClient: hubAcceptsClient === true },
      ...(decided && {
        status: {
          conditions: [{ type: DECIDED, status: decided.status, lastTransitionTime: decided.lastTransitionTime }],
        },
      }),
    }
  },
}

/** One that is not there yet, whose agent is ours. @param annotations besides */
export const managedClusterOf = (
  cluster: string,
  spec: { readonly hubAcceptsClient: boolean },
  annotations: Readonly<Record<string, string>> = {},
): ManagedCluster => ({
  apiVersion: `${managedClusters.group}/${managedClusters.version}`,
  kind: managedClusters.kind,
  metadata: { name: cluster, annotations: { [TRANSPORT_ANNOTATION]: 'stream', ...annotations } },
  spec,
})

/** What helps whose membership is over for good. */
export const joinAnew = (cluster: string): string =>
  `the cluster must join anew, with a new join token: \`clusterpulse connect ${cluster}\` on the hub prints it`

/** Whether a certificate was handed out after the newest one that is remembered. False where none is. */
export function isNewerThanKnown(member: ManagedCluster, issuedAt: number): boolean {
  const newest = certificateLifeIn(member.metadata.annotations?.[CERTIFICATE_LIFE_ANNOTATION])
  return certificatesOf(member).length > 0 && newest !== null && issuedAt > newest.from
}

/**
 * Why the agent of a member is refused whose newest certificate is of an authority that was ended, or lost, with what helps; undefined: it is not.
 * @param roots as for `hasCertificate`
 */
export function lostAuthority(member: ManagedCluster, roots: string | undefined): string | undefined {
  const { name } = member.metadata
  const isLost = certificatesOf(member).length > 0 && !hasCertificate(member, roots)
  return isLost ? `its certificate is of an authority that this hub no longer has; ${joinAnew(name)}` : undefined
}

/** Whether it is accepted, and by which certificates. */
const accessOf = ({ spec, metadata }: ManagedCluster): string =>
  `${spec?.hubAcceptsClient} ${metadata.annotations?.[CERTIFICATES_ANNOTATION]}`

/** Who is accepted as a member, followed by list and watch. Nobody is before the first list is in. */
export class Members implements Membership, AsyncDisposable {
  readonly #informer: Informer<ManagedCluster>

  constructor({ hub, logger, clock }: { hub: KubeClient; logger: Logger; clock: Clock }) {
    this.#informer = new Informer({ kube: hub, resource: managedClusters, logger, clock })
  }

  start(): void {
    this.#informer.start()
  }

  get isSynced(): boolean {
    return this.#informer.isSynced
  }

  /** Resolves when every member is known. @throws the signal's reason */
  synced(signal: AbortSignal): Promise<void> {
    return this.#informer.synced(signal)
  }

  get(cluster: string): ManagedCluster | undefined {
    return this.#informer.get({ name: cluster })
  }

  /** One that is being deleted is one until it is gone, so that what is left of it can be taken away. */
  isAccepted(cluster: ClusterName): boolean {
    return this.get(cluster)?.spec?.hubAcceptsClient === true
  }

  /** Whether the hub handed out this certificate and has not revoked it. @param fingerprint SHA-256, hex */
  counts(cluster: ClusterName, fingerprint: string): boolean {
    const member = this.get(cluster)
    return member?.spec?.hubAcceptsClient === true && certificatesOf(member).includes(fingerprint)
  }

  /**
   * Why a certificate that the hub's CA signed does not count, with what helps.
   * @param issuedAt ms since the Unix epoch, of one that may prove who asks for the next one: newer than all that the hub remembers, it was
   * handed out by this hub before an older copy of its objects was put back
   */
  fault(cluster: ClusterName, fingerprint: string, issuedAt = Number.NEGATIVE_INFINITY): string | undefined {
    const member = this.get(cluster)
    if (!member) return `the hub knows no ManagedCluster ${cluster} any more; ${joinAnew(cluster)}`
    if (member.metadata.deletionTimestamp)
      return `the ManagedCluster ${cluster} is being deleted on the hub; when it is gone ${joinAnew(cluster)}`
    // First, as nobody who accepts the cluster again makes it count again.
    if (isRevoked(member)) return `the certificate of this agent is revoked; ${joinAnew(cluster)}`
    const certificates = certificatesOf(member)
    if (certificates.length === 0 && !isNewerThanKnown(member, issuedAt))
      return `the hub has handed no certificate out to this ManagedCluster ${cluster}: this one is of a former one of that name; ${joinAnew(cluster)}`
    if (!certificates.includes(fingerprint) && !isNewerThanKnown(member, issuedAt))
      return `the hub knows ${cluster} by another certificate, as after another machine joined under that name; where this one is the right one, ${joinAnew(cluster)}`
    if (member.spec?.hubAcceptsClient !== true)
      return `the hub does not accept the cluster any more; \`clusterpulse accept ${cluster}\` on the hub lets it in again`
    return undefined
  }

  /** Takes what a write of ours was answered with: the next look knows it. */
  wrote(member: ManagedCluster): void {
    this.#informer.wrote(member)
  }

  /** When its certificates were revoked, as written; undefined: they were not, or others were handed out since. */
  revocation(cluster: ClusterName): string | undefined {
    const written = this.get(cluster)?.metadata.annotations?.[CERTIFICATES_ANNOTATION]
    return written?.startsWith('revoked-') ? written : undefined
  }

  /** Calls with every member that changed, however little. */
  onChange(listener: (cluster: string) => void): () => void {
    return this.#informer.onChange(({ key }) => listener(key.name))
  }

  onAccessChange(listener: (cluster: string) => void): () => void {
    return this.#informer.onChange((change) => {
      if (change.kind !== 'changed' || accessOf(change.object) !== accessOf(change.previous)) listener(change.key.name)
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#informer.stop()
  }
}
