import { randomBytes, timingSafeEqual } from 'node:crypto'
import { isKubeError, type KubeClient, type KubeObject, secrets } from '#kube'
import type { Clock, ClusterName } from '#model'
import { sha256 } from './certificate-request.ts'

/** What the hub keeps of a join token: a Secret beside its ClusterConnections. The token itself is nowhere. */
interface TokenRecord {
  /** of the secret, hex */
  readonly sha256: string
  readonly cluster: string
  /** ms since the Unix epoch */
  readonly expiresAt: number
  /** whoever made it said yes ahead: a request with it needs no further approval */
  readonly isApproved?: boolean
  /** SHA-256 of the public key that spent it, hex: the same key may ask again, as after a crash */
  readonly usedBy?: string
  /** uid of the ManagedCluster that was asked for with it: where that is gone, so is what it was good for */
  readonly member?: string
}

/** A token that counts for a key, as it was read. */
export interface ShownToken {
  readonly record: TokenRecord
  readonly stored: KubeObject
}

/** Why a token does not count; said to whoever shows it, and in the audit trail. */
export type TokenFault = 'unknown' | 'expired' | 'used' | 'foreign'

/** With what helps. */
export function tokenFaultWords(fault: TokenFault, cluster: string): string {
  const anew = `\`clusterpulse connect ${cluster}\` on the hub prints a new one`
  switch (fault) {
    case 'unknown':
      return `the hub does not know this join token: it was revoked, is of another hub, or a day has passed since it expired; ${anew}`
    case 'expired':
      return `the join token has expired; ${anew} (--ttl 8h: for longer than an hour)`
    case 'used':
      return `the join token was used already, with another key, by another machine or with another folder on this one; ${anew}, and if it was no machine of yours, \`clusterpulse deny ${cluster}\` turns that one down`
    case 'foreign':
      return `the join token is for another cluster than ${cluster}; ${anew}`
  }
}

const LABEL = 'clusterpulse.io/join-token'
const RECORD_KEY = 'record'
/** A spent token is remembered, so that its second use is told from a guess. */
const KEPT_MS = 24 * 3_600_000
/** No token lives longer; an end that is further away was told by a clock that has been set back since. */
const LONGEST_LIFE_MS = 25 * 3_600_000
const CONFLICT_ATTEMPTS = 5
/** Between two looks for those that are to be forgotten: each reads all. */
const TIDY_EVERY_MS = 600_000

const hasEnded = ({ expiresAt }: TokenRecord, now: number): boolean =>
  expiresAt <= now || expiresAt > now + LONGEST_LIFE_MS

/** Tokens that let a machine ask for membership: of one cluster, for one key, for a while. */
export class JoinTokens {
  readonly #hub: KubeClient
  readonly #namespace: string
  readonly #clock: Clock
  #tidyAt = 0

  constructor({ hub, namespace, clock }: { hub: KubeClient; namespace: string; clock: Clock }) {
    this.#hub = hub
    this.#namespace = namespace
    this.#clock = clock
  }

  /** @returns the secret, in the clear for the only time. @throws KubeError where the hub's API does not take the Secret */
  async issue(
    cluster: ClusterName,
    lifeMs: number,
    { isApproved = false, signal }: { readonly isApproved?: boolean; readonly signal?: AbortSignal } = {},
  ): Promise<string> {
    // Who may only make tokens leaves that to the hub, which tidies where one is spent.
    await this.#tidy(signal).catch((error: unknown) => {
      if (!isKubeError(error, 'forbidden')) throw error
    })
    const secret = randomBytes(32).toString('base64url')
    const digest = sha256(Buffer.from(secret))
    const expiresAt = this.#clock.now() + lifeMs
    const record: TokenRecord = { sha256: digest, cluster, expiresAt, ...(isApproved && { isApproved }) }
    await this.#hub.create(secrets, secretOf(record, this.#namespace), signal)
    return secret
  }

  /**
   * Looks whether a token counts for a key. One that this key has spent before counts as well, also after it expired: what was asked
   * with it may wait for a decision.
   * @throws KubeError where the hub's API cannot be asked
   */
  async look(
    secret: string,
    { cluster, key }: { readonly cluster: string; readonly key: string },
    signal: AbortSignal,
  ): Promise<ShownToken | TokenFault> {
    const digest = sha256(Buffer.from(secret))
    const stored = await this.#hub.get(secrets, { name: nameOf(digest), namespace: this.#namespace }, signal)
    const record = stored && recordIn(stored)
    if (!stored || !record || !isSame(record.sha256, digest)) return 'unknown'
    if (record.cluster !== cluster) return 'foreign'
    if (record.usedBy !== undefined && record.usedBy !== key) return 'used'
    if (record.usedBy === undefined && hasEnded(record, this.#clock.now())) return 'expired'
    return { record, stored }
  }

  /**
   * Spends it for the key, and for this ManagedCluster: where that is deleted the token is good for nothing any more.
   * @param member uid of it
   * @param seen as `look` found it
   * @throws KubeError where the hub's API does not take it
   */
  async spend(
    secret: string,
    { cluster, key, member }: { readonly cluster: string; readonly key: string; readonly member: string },
    seen: ShownToken,
    signal: AbortSignal,
  ): Promise<'spent' | TokenFault> {
    await this.#tidy(signal)
    for (let attempt = 1; ; attempt++) {
      const shown = attempt === 1 ? seen : await this.look(secret, { cluster, key }, signal)
      if (typeof shown === 'string') return shown
      const { record, stored } = shown
      if (record.usedBy !== undefined && record.member !== undefined) return 'spent'
      try {
        // The version it was read at: of two keys that come at once, one finds it used.
        await this.#hub.replace(secrets, secretOf({ ...record, usedBy: key, member }, this.#namespace, stored), signal)
        return 'spent'
      } catch (error) {
        const raced = isKubeError(error, 'conflict') || isKubeError(error, 'not_found')
        if (!raced || attempt >= CONFLICT_ATTEMPTS) throw error
      }
    }
  }

  /** Ends every token of a cluster. @returns how many there were */
  async revoke(cluster: ClusterName, signal?: AbortSignal): Promise<number> {
    const all = await this.#all(signal)
    const named = all.filter((stored) => recordIn(stored)?.cluster === cluster)
    for (const { metadata } of named) await this.#remove(metadata.name, signal)
    return named.length
  }

  async #tidy(signal?: AbortSignal): Promise<void> {
    const now = this.#clock.now()
    if (now < this.#tidyAt) return
    this.#tidyAt = now + TIDY_EVERY_MS
    const before = now - KEPT_MS
    for (const stored of await this.#all(signal)) {
      const record = recordIn(stored)
      if (record && record.expiresAt < before) await this.#remove(stored.metadata.name, signal)
    }
  }

  #all(signal?: AbortSignal): Promise<KubeObject[]> {
    const where = { namespace: this.#namespace, labelSelector: LABEL, ...(signal && { signal }) }
    return this.#hub.listAll(secrets, where)
  }

  async #remove(name: string, signal?: AbortSignal): Promise<void> {
    await this.#hub.delete(secrets, { name, namespace: this.#namespace }, signal).catch((error: unknown) => {
      if (!isKubeError(error, 'not_found')) throw error
    })
  }
}

const nameOf = (digest: string) => `join-token-${digest.slice(0, 16)}`

function secretOf(record: TokenRecord, namespace: string, known?: KubeObject): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'Opaque',
    metadata: {
      ...known?.metadata,
      name: nameOf(record.sha256),
      namespace,
      labels: { ...known?.metadata.labels, [LABEL]: record.cluster, 'app.kubernetes.io/part-of': 'clusterpulse' },
    },
    data: { [RECORD_KEY]: Buffer.from(JSON.stringify(record)).toString('base64') },
  }
}

/** undefined: it is none of ours */
function recordIn({ data }: KubeObject): TokenRecord | undefined {
  const text = (data as Readonly<Record<string, unknown>> | undefined)?.[RECORD_KEY]
  if (typeof text !== 'string') return undefined
  try {
    const record = JSON.parse(Buffer.from(text, 'base64').toString()) as Partial<TokenRecord> | null
    const { sha256: digest, cluster, expiresAt, isApproved, usedBy, member } = record ?? {}
    const isWhole = typeof digest === 'string' && typeof cluster === 'string' && typeof expiresAt === 'number'
    const areTexts = [usedBy, member].every((one) => one === undefined || typeof one === 'string')
    if (!isWhole || !areTexts) return undefined
    return {
      ...{ sha256: digest, cluster, expiresAt },
      ...(isApproved === true && { isApproved }),
      ...(usedBy !== undefined && { usedBy }),
      ...(member !== undefined && { member }),
    }
  } catch {
    return undefined // written by somebody else: it opens nothing
  }
}

function isSame(kept: string, given: string): boolean {
  const [a, b] = [Buffer.from(kept), Buffer.from(given)]
  return a.length === b.length && timingSafeEqual(a, b)
}
