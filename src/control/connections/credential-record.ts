import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { KubeObject } from '#kube'
import { type ClusterName, isClusterName } from '#model'

/** One token an agent may show. The token itself is nowhere: it was given out once. */
export interface TokenRecord {
  /** names the token in logs and on the member; says nothing of it */
  readonly id: string
  /**
   * SHA-256 of the token, hex. A slow, salted hash protects what people choose and others can guess; these are 256 random
   * bits, which nobody finds by trying, and every stream of a reconnect storm is checked in microseconds.
   */
  readonly sha256: string
  /** ms since the Unix epoch */
  readonly createdAt: number
  /** ms since the Unix epoch; null: until it is revoked */
  readonly expiresAt: number | null
}

/** What the hub keeps of one cluster's agent: a Secret beside its ClusterConnection. */
export interface CredentialRecord {
  readonly cluster: ClusterName
  /** uid of the ClusterConnection it was made for: one that is deleted and made anew is another one */
  readonly owner: string
  /** newest first, at most MAX_TOKENS */
  readonly tokens: readonly TokenRecord[]
  /** fingerprints of client certificates that count no more: SHA-256, lower case hex without colons */
  readonly revokedCertificates: readonly string[]
}

/** Selects the Secrets of agents. Its value is the cluster, shortened where a label cannot hold it. */
export const CREDENTIAL_LABEL = 'clusterpulse.io/agent-credential'
const CLUSTER_ANNOTATION = 'clusterpulse.io/cluster'
const TOKENS_KEY = 'tokens'
const REVOKED_KEY = 'revoked-certificates'

/** During a rotation the old and the new one are both good; never more. */
export const MAX_TOKENS = 2
const MAX_REVOKED = 1000
const MAX_NAME = 253
const MAX_LABEL = 63

/** The Secret of a cluster's agent. */
export function credentialName(cluster: string): string {
  return shortened(`${cluster}-agent`, MAX_NAME)
}

/** Cut to `max` characters, with a hash in place of what is cut. */
function shortened(text: string, max: number): string {
  if (text.length <= max) return text
  const end = createHash('sha256').update(text).digest('hex').slice(0, 10)
  return `${text.slice(0, max - end.length - 1).replace(/[-.]+$/, '')}-${end}`
}

const TOKEN = /^cp_([a-z0-9][a-z0-9.-]{0,252})_([A-Za-z0-9_-]{43})$/

/** A new token and what is to be kept of it. */
export function newToken(
  cluster: ClusterName,
  now: number,
  ttlMs?: number,
): { readonly token: string; readonly record: TokenRecord } {
  const token = `cp_${cluster}_${randomBytes(32).toString('base64url')}`
  const record = {
    id: randomBytes(4).toString('hex'),
    sha256: hashOf(token).toString('hex'),
    createdAt: now,
    expiresAt: ttlMs === undefined ? null : now + ttlMs,
  }
  return { token, record }
}

/** The cluster a token of ours is for; undefined for any other text, such as a service account's. */
export function clusterOfToken(token: string): ClusterName | undefined {
  const [, cluster = ''] = TOKEN.exec(token) ?? []
  return isClusterName(cluster) ? cluster : undefined
}

/** SHA-256, as stored. */
export function hashOf(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

/** The record this token belongs to, whether or not it has expired. Compares with every one, each in constant time. */
export function findToken(tokens: readonly TokenRecord[], token: string): TokenRecord | undefined {
  const given = hashOf(token)
  let found: TokenRecord | undefined
  for (const record of tokens) {
    const kept = Buffer.from(record.sha256, 'hex')
    if (kept.length === given.length && timingSafeEqual(kept, given)) found = record
  }
  return found
}

export const isExpired = ({ expiresAt }: Pick<TokenRecord, 'expiresAt'>, now: number): boolean =>
  expiresAt !== null && expiresAt <= now

/**
 * The tokens of a record once a new one is added: one other stays, the one in use where it is known, else the newest that
 * has not expired. Beyond `overlapMs` it does not live.
 */
export function withToken(
  tokens: readonly TokenRecord[],
  added: TokenRecord,
  now: number,
  { inUse, overlapMs }: { readonly inUse?: string; readonly overlapMs?: number } = {},
): readonly TokenRecord[] {
  const alive = tokens.filter((token) => !isExpired(token, now))
  const kept = [...alive.filter(({ id }) => id === inUse), ...alive.filter(({ id }) => id !== inUse)].slice(
    0,
    MAX_TOKENS - 1,
  )
  return [added, ...kept.map((token) => ({ ...token, expiresAt: sooner(token.expiresAt, overlapMs, now) }))]
}

function sooner(expiresAt: number | null, overlapMs: number | undefined, now: number): number | null {
  if (overlapMs === undefined) return expiresAt
  return Math.min(expiresAt ?? Number.POSITIVE_INFINITY, now + overlapMs)
}

/** Reads a Secret. @returns undefined where it is none of ours; tokens that cannot be read are no tokens. */
export function credentialOf({ metadata, data, stringData }: KubeObject): CredentialRecord | undefined {
  if (metadata.labels?.[CREDENTIAL_LABEL] === undefined) return undefined
  const cluster = metadata.annotations?.[CLUSTER_ANNOTATION] ?? metadata.labels[CREDENTIAL_LABEL]
  const [owner] = metadata.ownerReferences ?? []
  // Only the name that belongs to the cluster counts, so that two Secrets can never speak for one cluster.
  if (!isClusterName(cluster) || metadata.name !== credentialName(cluster)) return undefined
  const text = (key: string) => decoded(data, key) ?? plain(stringData, key) ?? ''
  return {
    cluster,
    owner: owner?.uid ?? '',
    tokens: tokensIn(text(TOKENS_KEY)),
    revokedCertificates: fingerprintsIn(text(REVOKED_KEY)),
  }
}

const decoded = (data: unknown, key: string) => {
  const value = plain(data, key)
  return value === undefined ? undefined : Buffer.from(value, 'base64').toString('utf8')
}

function plain(data: unknown, key: string): string | undefined {
  const value = (data as Readonly<Record<string, unknown>> | undefined)?.[key]
  return typeof value === 'string' ? value : undefined
}

function tokensIn(text: string): readonly TokenRecord[] {
  let list: unknown
  try {
    list = JSON.parse(text || '[]')
  } catch {
    return [] // written by somebody else: nothing in it can be a hash of a token we gave out
  }
  return Array.isArray(list) ? list.flatMap(tokenIn).slice(0, MAX_TOKENS) : []
}

function tokenIn(value: unknown): TokenRecord[] {
  const { id, sha256, created, expires } = (value ?? {}) as Readonly<Record<string, unknown>>
  const createdAt = typeof created === 'string' ? Date.parse(created) : Number.NaN
  const expiresAt = expires === undefined || expires === null ? null : Date.parse(String(expires))
  if (typeof id !== 'string' || typeof sha256 !== 'string' || !/^[0-9a-f]{64}$/.test(sha256)) return []
  // A date nobody can read must not make a token live for ever.
  if (expiresAt !== null && Number.isNaN(expiresAt)) return []
  return [{ id: id.slice(0, 64), sha256, createdAt: Number.isNaN(createdAt) ? 0 : createdAt, expiresAt }]
}

/** As people paste them: colons, capitals, commas and lines. */
function fingerprintsIn(text: string): readonly string[] {
  const found = text.split(/[\s,;]+/).map((entry) => entry.replaceAll(':', '').toLowerCase())
  return [...new Set(found.filter((entry) => /^[0-9a-f]{64}$/.test(entry)))].slice(0, MAX_REVOKED)
}

/** The Secret as it is to be stored. `known` keeps what others put on it. */
export function secretOf(
  record: CredentialRecord,
  connection: Pick<KubeObject, 'apiVersion' | 'kind' | 'metadata'>,
  namespace: string,
  known?: KubeObject,
): KubeObject {
  const tokens = record.tokens.map(({ id, sha256, createdAt, expiresAt }) => ({
    id,
    sha256,
    created: new Date(createdAt).toISOString(),
    ...(expiresAt !== null && { expires: new Date(expiresAt).toISOString() }),
  }))
  const encode = (text: string) => Buffer.from(text).toString('base64')
  const { apiVersion = '', kind = '', metadata } = connection
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'Opaque',
    metadata: {
      ...known?.metadata,
      name: credentialName(record.cluster),
      namespace,
      labels: {
        ...known?.metadata.labels,
        [CREDENTIAL_LABEL]: shortened(record.cluster, MAX_LABEL),
        'app.kubernetes.io/part-of': 'clusterpulse',
      },
      annotations: { ...known?.metadata.annotations, [CLUSTER_ANNOTATION]: record.cluster },
      ownerReferences: [{ apiVersion, kind, name: metadata.name, uid: record.owner }],
    },
    data: {
      [TOKENS_KEY]: encode(JSON.stringify(tokens)),
      ...(record.revokedCertificates.length > 0 && {
        [REVOKED_KEY]: encode(`${record.revokedCertificates.join('\n')}\n`),
      }),
    },
  }
}
