import { timingSafeEqual } from 'node:crypto'
import { Informer } from '#controller'
import type { Peer, PeerCertificate, PeerVerifier, Presented, Verdict } from '#ingest'
import { isKubeError, type KubeClient, type KubeObject, type Resource, secrets } from '#kube'
import { type Clock, type ClusterName, FleetError, isClusterName, seconds, systemClock } from '#model'
import { type Logger, silentLogger } from '#runtime'
import { secretFacts } from './cluster-access.ts'
import { connectionResource } from './connection-resource.ts'
import {
  CREDENTIAL_LABEL,
  type CredentialRecord,
  clusterOfToken,
  credentialName,
  credentialOf,
  findToken,
  hashOf,
  isExpired,
  newToken,
  secretOf,
  type TokenRecord,
  withToken,
} from './credential-record.ts'
import { clusterOfCertificate, type NamedByCertificate } from './peer-certificate.ts'

/** What making and renewing credentials of agents needs. */
export interface AgentCredentialsOptions {
  /** the hub's own API, where ClusterConnections and Secrets are */
  readonly hub: KubeClient
  readonly namespace: string
  readonly clock?: Clock
  readonly logger?: Logger
  /**
   * A collector of the original shows the token the hub itself uses for the cluster. Default true: it is taken, for
   * connections in push mode. Then whoever reads that Secret can also speak for the cluster.
   */
  readonly acceptConnectionTokens?: boolean
  /** which clusters the hub accepts as members: their certificates count. Default: none */
  readonly members?: Membership
}

/** What of the members of this hub decides whose certificates count. */
export interface Membership {
  /** the hub handed out this certificate (SHA-256, hex), and accepts its cluster still */
  counts(cluster: ClusterName, fingerprint: string): boolean
  /** why it counts no more, with what helps; undefined: it counts */
  fault(cluster: ClusterName, fingerprint: string): string | undefined
  /** called when a cluster was accepted, or is no longer, or other certificates of it count; returns how to stop listening */
  onAccessChange(listener: (cluster: string) => void): () => void
}

const noMembers: Membership = { counts: () => false, fault: () => undefined, onAccessChange: () => () => undefined }

/** A token, in the clear for the only time. */
export interface IssuedToken {
  readonly cluster: ClusterName
  readonly token: string
  /** for logs; says nothing of the token */
  readonly id: string
  /** ms since the Unix epoch; null: until it is revoked */
  readonly expiresAt: number | null
}

/** There is no ClusterConnection of this name, so nobody may speak for it. */
export class UnknownConnectionError extends FleetError {
  override readonly name = 'UnknownConnectionError'
  readonly code = 'unknown_connection'
  readonly retryable = false

  constructor(cluster: string, namespace: string) {
    super(`there is no ClusterConnection ${namespace}/${cluster}; make one with collectionMode: push first`)
  }
}

/** A Secret that is not ours has the name ours would have. */
class CredentialNameTakenError extends FleetError {
  override readonly name = 'CredentialNameTakenError'
  readonly code = 'credential_name_taken'
  readonly retryable = false
}

/** What of a ClusterConnection decides who may speak for it and what is asked of it. */
export interface ConnectionLine extends KubeObject {
  readonly isPush: boolean
  /** Secret with the hub's own token, where it is in the hub's namespace */
  readonly secret: string | undefined
  readonly monitoring: { readonly interval?: number; readonly timeout?: number } | undefined
}

/** A Secret of the hub, as far as it proves who agents are. No secret is held: only hashes. */
interface SecretLine extends KubeObject {
  readonly credential: CredentialRecord | undefined
  /** of the hub's own token */
  readonly tokenHash: Buffer | undefined
}

const CONFLICT_ATTEMPTS = 5
/** After a write of ours: how long its arrival here is awaited, so that an agent may use the token at once. */
const SEEN_WITHIN_MS = seconds(5)
/** How late an expired credential may end its stream. */
const EXPIRY_CHECK_MS = seconds(2)
const MAX_CERTIFICATES = 10_000

/**
 * Who may speak for a cluster, from Secrets beside the ClusterConnections: hashes of tokens given out, revoked client
 * certificates, and (for collectors of the original) the connection's own token. Read by list and watch, so that a change
 * counts within moments in every process of the hub; decided from memory, so that a storm of agents costs the API nothing.
 */
export class AgentCredentials implements PeerVerifier, AsyncDisposable {
  /** every ClusterConnection of the namespace, as far as agents matter; filled once `start` has resolved */
  readonly connections: Informer<ConnectionLine>
  readonly #options: Required<AgentCredentialsOptions>
  readonly #secrets: Informer<SecretLine>
  readonly #listeners = new Set<(clusters?: ReadonlySet<string>) => void>()
  /** clusters whose credentials changed since the last word to the listeners; undefined: any may have */
  #news: Set<string> | undefined = new Set()
  readonly #stop = new AbortController()
  /** certificates in use, until when; bounded */
  readonly #certificates = new Map<string, number>()
  #tokenOwners: ReadonlyMap<string, readonly ClusterName[]> | undefined
  #telling: NodeJS.Immediate | undefined
  #checkedAt: number
  #expiry: Promise<void> | undefined
  readonly #unlisten: () => void

  constructor(options: AgentCredentialsOptions) {
    this.#options = {
      clock: systemClock,
      logger: silentLogger,
      acceptConnectionTokens: true,
      members: noMembers,
      ...options,
    }
    const { hub, namespace, logger, clock, acceptConnectionTokens } = this.#options
    this.#checkedAt = clock.now()
    const shared = { kube: hub, namespace, logger, clock }
    this.connections = new Informer<ConnectionLine>({
      ...shared,
      resource: connectionLines,
    })
    this.#secrets = new Informer<SecretLine>({
      ...shared,
      resource: secretLines,
      // Without the connections' own tokens nothing else of the namespace needs to be read.
      ...(!acceptConnectionTokens && { labelSelector: CREDENTIAL_LABEL }),
    })
    this.connections.onChange((change) => {
      const now = change.kind === 'deleted' ? undefined : change.object
      const before = change.kind === 'added' ? undefined : change.previous
      if (now && before && speakAlike(now, before)) return
      // Another connection may show the same token.
      this.#changed((now?.secret ?? before?.secret) === undefined ? change.key.name : undefined)
    })
    this.#unlisten = this.#options.members.onAccessChange((cluster) => this.#changed(cluster))
    this.#secrets.onChange((change) => {
      const now = change.kind === 'deleted' ? undefined : change.object
      const before = change.kind === 'added' ? undefined : change.previous
      for (const { cluster } of [now?.credential ?? [], before?.credential ?? []].flat()) this.#changed(cluster)
      if (!sameHash(now?.tokenHash, before?.tokenHash)) this.#changed()
    })
  }

  /** Begins to read; resolves when everything is known. Before that every peer is refused as unknown. */
  async start(signal?: AbortSignal): Promise<void> {
    this.connections.start()
    this.#secrets.start()
    await Promise.all([this.connections.synced(signal), this.#secrets.synced(signal)])
    this.#expiry ??= this.#watchExpiry()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    this.#unlisten()
    if (this.#telling) clearImmediate(this.#telling)
    await Promise.all([this.connections.stop(), this.#secrets.stop(), this.#expiry])
  }

  verify({ certificate, token }: Presented): Verdict {
    const named = certificate && clusterOfCertificate(certificate)
    if (certificate && named) return this.#verifyCertificate(named, certificate)
    if (!token) return { refused: 'no_credential' }
    const cluster = clusterOfToken(token)
    return cluster ? this.#verifyToken(cluster, token) : this.#verifyConnectionToken(token)
  }

  stillValid({ cluster, credential }: Peer): boolean {
    if (!this.#speaks(cluster)) return false
    const [kind, id = '', until = ''] = credential.split(':')
    const now = this.#options.clock.now()
    if (kind === 'certificate' || kind === 'member') {
      if (Number(until) <= now || this.#isRevoked(cluster, id)) return false
      return kind === 'certificate' || this.#options.members.counts(cluster, id)
    }
    if (kind === 'token') {
      return this.#tokens(cluster).some((token) => token.id === id && !isExpired(token, now))
    }
    return this.#owners().get(id)?.[0] === cluster
  }

  whyEnded({ cluster, credential }: Peer): string | undefined {
    const [kind, id = '', until = ''] = credential.split(':')
    const isMember = kind === 'member'
    const fault = isMember ? this.#options.members.fault(cluster, id) : undefined
    if (fault !== undefined) return fault
    const ended = 'the credential is no longer valid'
    const line = this.#connectionOf(cluster)
    if (!line) return `${ended}: there is no ClusterConnection ${cluster} on the hub any more`
    if (!line.isPush)
      return `${ended}: the hub reads ${cluster} itself, by its ClusterConnection in pull mode; stop this agent, or set collectionMode: push`
    if ((isMember || kind === 'certificate') && Number(until) <= this.#options.clock.now())
      return `${ended}: the certificate has expired`
    const remedy =
      kind === 'connection-token'
        ? `the Secret of ClusterConnection ${cluster} holds another token now`
        : `on the hub, \`clusterpulse connect ${cluster} --bearer-token\` prints another token`
    return `${ended}: it was revoked, or has expired; ${remedy}`
  }

  onChange(listener: (clusters?: ReadonlySet<string>) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** The record of a token of this cluster that is good now, to be compared with what a member holds. */
  check(cluster: ClusterName, token: string): TokenRecord | undefined {
    const record = findToken(this.#tokens(cluster), token)
    return record && !isExpired(record, this.#options.clock.now()) ? record : undefined
  }

  /**
   * Makes a token for the agent of a cluster. At most one older token stays good beside it: `inUse` where given, else the
   * newest. The token is returned only here; the hub keeps its hash.
   * @throws UnknownConnectionError where the cluster has no ClusterConnection
   * @throws KubeError where the hub's API does not take the Secret
   */
  async issue(
    cluster: ClusterName,
    options: { readonly ttlMs?: number; readonly inUse?: string; readonly signal?: AbortSignal } = {},
  ): Promise<IssuedToken> {
    return this.#issue(cluster, options)
  }

  /** As `issue`, and what was good before ends after `overlapMs` (default 24 h): time to put the new one in place. */
  async rotate(
    cluster: ClusterName,
    options: { readonly ttlMs?: number; readonly overlapMs?: number; readonly signal?: AbortSignal } = {},
  ): Promise<IssuedToken> {
    return this.#issue(cluster, { overlapMs: seconds(24 * 3600), ...options })
  }

  /**
   * Ends what a cluster's agent shows: everything it has, or the one credential named (`Peer.credential`). Streams end
   * within seconds; certificates stay revoked. A repeat is free.
   * @returns false where there was nothing to revoke
   */
  async revoke(cluster: ClusterName, credential?: string, signal?: AbortSignal): Promise<boolean> {
    const [kind, id = ''] = credential?.split(':') ?? []
    const key = this.#key(cluster)
    const isCertificate = kind === 'certificate' || kind === 'member'
    let isKnown = isCertificate
    await this.#retried(async () => {
      const known = await this.#options.hub.get(secrets, key, signal)
      const record = known && credentialOf(known)
      isKnown ||= record !== undefined
      if (isCertificate) {
        const connection = await this.#connection(cluster, signal)
        const base = record ?? emptyRecord(cluster, connection)
        const revoked = { ...base, revokedCertificates: [...new Set([...base.revokedCertificates, id])] }
        return this.#store(revoked, connection, known, signal)
      }
      if (!known || !record) return
      const tokens = kind === 'token' ? record.tokens.filter((token) => token.id !== id) : []
      if (tokens.length === 0 && record.revokedCertificates.length === 0) {
        return this.#options.hub.delete(secrets, key, signal).catch(ignoreMissing)
      }
      await this.#options.hub.replace(
        secrets,
        secretOf({ ...record, tokens }, ownerOf(known), key.namespace, known),
        signal,
      )
    })
    this.#options.logger.info(
      { cluster, ...(credential !== undefined && { credential }) },
      "an agent's credential is revoked",
    )
    return isKnown
  }

  async #issue(
    cluster: ClusterName,
    options: {
      readonly ttlMs?: number
      readonly inUse?: string
      readonly overlapMs?: number
      readonly signal?: AbortSignal
    },
  ): Promise<IssuedToken> {
    const { ttlMs, signal } = options
    const { hub, clock, logger } = this.#options
    const { token, record } = newToken(cluster, clock.now(), ttlMs)
    await this.#retried(async () => {
      const connection = await this.#connection(cluster, signal)
      const known = await hub.get(secrets, this.#key(cluster), signal)
      const empty = emptyRecord(cluster, connection)
      const before = (known && credentialOf(known)) ?? empty
      // Tokens of an earlier connection of this name are not carried over; revoked certificates stay revoked.
      const tokens = before.owner === empty.owner ? before.tokens : []
      await this.#store(
        { ...before, owner: empty.owner, tokens: withToken(tokens, record, clock.now(), options) },
        connection,
        known,
        signal,
      )
    })
    await this.#seen(cluster, record.id, signal)
    logger.info({ cluster, credential: record.id, expiresAt: record.expiresAt }, 'a token for an agent was issued')
    return { cluster, token, id: record.id, expiresAt: record.expiresAt }
  }

  async #store(record: CredentialRecord, connection: KubeObject, known: KubeObject | undefined, signal?: AbortSignal) {
    const { hub, namespace } = this.#options
    if (known && !credentialOf(known)) {
      throw new CredentialNameTakenError(
        `the Secret ${namespace}/${known.metadata.name} is not one of ours; give it another name, so that agents of ${record.cluster} can have theirs`,
      )
    }
    const secret = secretOf(record, connection, namespace, known)
    if (known) await hub.replace(secrets, secret, signal)
    else await hub.create(secrets, secret, signal)
  }

  /** Read, change, write; again where somebody else wrote in between. */
  async #retried(action: () => Promise<void>): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await action()
      } catch (error) {
        const raced =
          isKubeError(error, 'conflict') || isKubeError(error, 'already_exists') || isKubeError(error, 'not_found')
        if (!raced || attempt >= CONFLICT_ATTEMPTS) throw error
      }
    }
  }

  async #connection(cluster: ClusterName, signal?: AbortSignal): Promise<KubeObject> {
    const { hub, namespace } = this.#options
    const found = await hub.get(connectionResource, { name: cluster, namespace }, signal)
    if (!found || found.metadata.deletionTimestamp) throw new UnknownConnectionError(cluster, namespace)
    return found
  }

  async #seen(cluster: ClusterName, id: string, signal?: AbortSignal): Promise<void> {
    if (!this.#secrets.isSynced) return // a process that only issues
    const { clock } = this.#options
    const until = clock.now() + SEEN_WITHIN_MS
    while (clock.now() < until && !signal?.aborted) {
      if (this.#credential(cluster)?.tokens.some((token) => token.id === id)) return
      await clock.sleep(5, signal)
    }
  }

  #verifyCertificate({ cluster, as }: NamedByCertificate, { fingerprint, notAfter }: PeerCertificate): Verdict {
    const isMissed = as === 'member' && !this.#options.members.counts(cluster, fingerprint)
    if (isMissed || this.#isRevoked(cluster, fingerprint)) return { refused: 'revoked' }
    // A member has its certificate a moment before the connection that acceptance makes.
    if (!this.#connectionOf(cluster)) return { refused: as === 'member' ? 'not_yet' : 'unknown' }
    if (!this.#speaks(cluster)) return { refused: 'revoked' }
    if (notAfter <= this.#options.clock.now()) return { refused: 'expired' }
    if (this.#certificates.size < MAX_CERTIFICATES) this.#certificates.set(fingerprint, notAfter)
    const kind = as === 'member' ? 'member' : 'certificate'
    return { peer: { cluster, method: 'certificate', credential: `${kind}:${fingerprint}:${notAfter}` } }
  }

  #verifyToken(cluster: ClusterName, token: string): Verdict {
    const record = findToken(this.#tokens(cluster), token)
    // One answer for a cluster that is not there and a token that is wrong: guessing teaches nothing.
    if (!record) return { refused: 'unknown' }
    if (isExpired(record, this.#options.clock.now())) return { refused: 'expired' }
    if (!this.#speaks(cluster)) return { refused: 'revoked' }
    return { peer: { cluster, method: 'token', credential: `token:${record.id}` } }
  }

  #verifyConnectionToken(token: string): Verdict {
    const given = hashOf(token)
    const id = given.toString('hex')
    const [cluster, ...more] = this.#owners().get(id) ?? []
    if (!cluster) return { refused: 'unknown' }
    if (more.length > 0) {
      this.#options.logger.warn(
        { clusters: [cluster, ...more] },
        'connections share one token: it cannot tell which one speaks',
      )
      return { refused: 'unknown' }
    }
    const secret = this.#connectionOf(cluster)?.secret
    const kept = secret === undefined ? undefined : this.#secretLine(secret)?.tokenHash
    if (!kept || !timingSafeEqual(kept, given)) return { refused: 'unknown' }
    return { peer: { cluster, method: 'connection-token', credential: `connection-token:${id}` } }
  }

  /** Clusters by the hash of the hub's own token for them: of push connections only. Made when asked for after a change. */
  #owners(): ReadonlyMap<string, readonly ClusterName[]> {
    if (this.#tokenOwners) return this.#tokenOwners
    const owners = new Map<string, readonly ClusterName[]>()
    for (const { metadata, isPush, secret } of this.connections.list()) {
      if (!this.#options.acceptConnectionTokens || !isPush || metadata.deletionTimestamp || secret === undefined)
        continue
      const hash = this.#secretLine(secret)?.tokenHash?.toString('hex')
      if (hash === undefined || !isClusterName(metadata.name)) continue
      owners.set(hash, [...(owners.get(hash) ?? []), metadata.name])
    }
    this.#tokenOwners = owners
    return owners
  }

  /**
   * Other connections in push mode whose Secret holds the same token: a collector that shows it is let in for none of them, as
   * nothing tells which one speaks.
   */
  sharedWith(cluster: ClusterName): readonly ClusterName[] {
    const secret = this.#connectionOf(cluster)?.secret
    const hash = secret === undefined ? undefined : this.#secretLine(secret)?.tokenHash?.toString('hex')
    return (hash === undefined ? undefined : this.#owners().get(hash))?.filter((name) => name !== cluster) ?? []
  }

  #connectionOf(cluster: ClusterName): ConnectionLine | undefined {
    const line = this.connections.get({ name: cluster, namespace: this.#options.namespace })
    return line?.metadata.deletionTimestamp ? undefined : line
  }

  /** Its agent is wanted: in pull mode nobody else speaks for the cluster. */
  #speaks(cluster: ClusterName): boolean {
    return this.#connectionOf(cluster)?.isPush === true
  }

  #secretLine(name: string): SecretLine | undefined {
    return this.#secrets.get({ name, namespace: this.#options.namespace })
  }

  /** What is kept of the cluster's agent, whoever the connection is now. */
  #credential(cluster: ClusterName): CredentialRecord | undefined {
    const record = this.#secretLine(credentialName(cluster))?.credential
    return record?.cluster === cluster ? record : undefined
  }

  #isRevoked(cluster: ClusterName, fingerprint: string): boolean {
    return this.#credential(cluster)?.revokedCertificates.includes(fingerprint) === true
  }

  /** The tokens made for the connection as it is now. */
  #tokens(cluster: ClusterName): readonly TokenRecord[] {
    const record = this.#credential(cluster)
    const uid = this.#connectionOf(cluster)?.metadata.uid
    return record && uid !== undefined && record.owner === uid ? record.tokens : []
  }

  #key(cluster: ClusterName) {
    return { name: credentialName(cluster), namespace: this.#options.namespace }
  }

  /** Tells once for all changes that come together. @param cluster default: any */
  #changed(cluster?: string): void {
    this.#tokenOwners = undefined
    if (cluster === undefined) this.#news = undefined
    else this.#news?.add(cluster)
    if (this.#stop.signal.aborted) return
    this.#telling ??= setImmediate(() => {
      const news = this.#news
      this.#telling = undefined
      this.#news = new Set()
      this.#tell(news)
    })
  }

  #tell(clusters?: ReadonlySet<string>): void {
    for (const listener of this.#listeners) listener(clusters)
  }

  async #watchExpiry(): Promise<void> {
    const { clock } = this.#options
    const { signal } = this.#stop
    while (!signal.aborted) {
      await clock.sleep(EXPIRY_CHECK_MS, signal)
      if (!signal.aborted && this.#hasExpired(clock.now())) this.#tell()
    }
  }

  /** Whether anything that was good at the last look is not any more. */
  #hasExpired(now: number): boolean {
    const ended = (at: number | null) => at !== null && at > this.#checkedAt && at <= now
    let any = this.#secrets
      .list()
      .some(({ credential }) => credential?.tokens.some(({ expiresAt }) => ended(expiresAt)))
    for (const [fingerprint, notAfter] of this.#certificates) {
      if (notAfter > now) continue
      this.#certificates.delete(fingerprint)
      any = true
    }
    this.#checkedAt = now
    return any
  }
}

const { group, version, plural, kind } = connectionResource
const connectionLines: Resource<ConnectionLine> = {
  group,
  version,
  plural,
  kind,
  namespaced: true,
  fromJson: connectionLine,
}

const secretLines: Resource<SecretLine> = {
  group: secrets.group,
  version: secrets.version,
  plural: secrets.plural,
  kind: secrets.kind,
  namespaced: true,
  fromJson: secretLine,
}

function secretLine(object: KubeObject): SecretLine {
  const credential = credentialOf(object)
  const { metadata, access } = secretFacts(object)
  const token = credential ? undefined : access.token?.trim()
  return { metadata, credential, tokenHash: token ? hashOf(token) : undefined }
}

function connectionLine({ metadata, spec }: KubeObject): ConnectionLine {
  const { name, namespace, uid, resourceVersion, generation, deletionTimestamp } = metadata
  const { collectionMode, credentialsRef, monitoring } = (spec ?? {}) as {
    collectionMode?: unknown
    credentialsRef?: { name?: unknown; namespace?: unknown }
    monitoring?: ConnectionLine['monitoring']
  }
  const isHere = !credentialsRef?.namespace || credentialsRef.namespace === namespace
  return {
    metadata: {
      name,
      ...(namespace && { namespace }),
      ...(uid && { uid }),
      ...(resourceVersion && { resourceVersion }),
      ...(generation !== undefined && { generation }),
      ...(deletionTimestamp && { deletionTimestamp }),
    },
    isPush: collectionMode === 'push',
    secret: isHere && typeof credentialsRef?.name === 'string' ? credentialsRef.name : undefined,
    monitoring,
  }
}

const emptyRecord = (cluster: ClusterName, { metadata }: KubeObject): CredentialRecord => ({
  cluster,
  owner: metadata.uid ?? '',
  tokens: [],
  revokedCertificates: [],
})

/** The connection a stored Secret names as its owner. */
function ownerOf({ metadata }: KubeObject): Pick<KubeObject, 'apiVersion' | 'kind' | 'metadata'> {
  const [owner] = metadata.ownerReferences ?? []
  return {
    apiVersion: owner?.apiVersion ?? '',
    kind: owner?.kind ?? '',
    metadata: { name: owner?.name ?? '', uid: owner?.uid ?? '' },
  }
}

/** Whether the same may speak for the cluster by both. */
const speakAlike = (a: ConnectionLine, b: ConnectionLine): boolean =>
  a.isPush === b.isPush &&
  a.secret === b.secret &&
  a.metadata.uid === b.metadata.uid &&
  a.metadata.deletionTimestamp === b.metadata.deletionTimestamp

const sameHash = (a: Buffer | undefined, b: Buffer | undefined) => (a && b ? a.equals(b) : a === b)

function ignoreMissing(error: unknown): void {
  if (!isKubeError(error, 'not_found')) throw error
}
