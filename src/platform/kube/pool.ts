import { createHash } from 'node:crypto'
import { type Clock, minutes, seconds, steadyClock } from '#model'
import { Breaker, type BreakerOptions, type BreakerState } from './breaker.ts'
import { Client } from './client.ts'
import { orAborted } from './credentials.ts'
import { KubeError } from './errors.ts'
import { type KubeClientOptions, Transport } from './transport.ts'
import type { ClientLimits, ClusterAccess, KubeClient } from './types.ts'

const IDLE_MS = minutes(30)
const CHECK_MS = minutes(5)
const TEST_AFTER_IDLE_MS = minutes(1)
/** Together with a round's own test and the limit of a request this stays below a quarter of a minute. */
const TEST_TIMEOUT_MS = seconds(3)

/** What all clients of a pool have in common. */
export interface ClientPoolOptions extends Omit<KubeClientOptions, 'breaker'> {
  readonly breaker?: Omit<BreakerOptions, 'clock'>
}

/**
 * Clients by the name of their object, one per cluster.
 *
 * A client is renewed when address, CA or credentials change, and when it fails its test after a rest; the breaker stays
 * as long as the way to the cluster is the same, so a renewal does not forgive an unreachable cluster. A client lives until
 * its last user ends, whatever becomes of its place here; only the end of the pool ends those that are in use.
 */
export class ClientPool implements AsyncDisposable {
  readonly #clients = new Map<string, Entry>()
  /** without a place here, and perhaps in use still */
  readonly #retired = new Set<Client>()
  readonly #options: ClientPoolOptions
  readonly #clock: Clock
  readonly #closing = new AbortController()
  readonly #cleaning: Promise<void>

  constructor(options: ClientPoolOptions = {}) {
    this.#options = options
    this.#clock = options.clock ?? steadyClock
    this.#cleaning = this.#clean()
  }

  /** clients held now */
  get size(): number {
    return this.#clients.size
  }

  /**
   * The client for this key, tested if it rested for more than a minute. A new client is not tested: its first call tells.
   * @param key namespace/name of the connection, never a display name
   * @param limits over those of the pool
   * @throws KubeError `invalid` where the access cannot be used.
   */
  async get(key: string, access: ClusterAccess, limits: ClientLimits = {}, signal?: AbortSignal): Promise<KubeClient> {
    this.#closing.signal.throwIfAborted()
    signal?.throwIfAborted()
    const entry = this.#clients.get(key)
    if (!entry || entry.hash !== hashOf(access, limits)) return this.#open(key, access, limits)
    const rested = this.#clock.now() - entry.client.lastUsedAt > TEST_AFTER_IDLE_MS
    if (!rested && !entry.test) return entry.client
    // Those who come while it is tested wait for the same test.
    entry.test ??= this.#test(entry).finally(() => {
      entry.test = undefined
    })
    const works = await orAborted(entry.test, signal)
    if (works) return entry.client
    // Someone else who waited for the same test may have renewed it already.
    const now = this.#clients.get(key)
    return now && now !== entry && now.hash === entry.hash ? now.client : this.#open(key, access, limits)
  }

  /** Of the breaker in front of this key's cluster; undefined where there is no client. */
  breakerState(key: string): BreakerState | undefined {
    return this.#clients.get(key)?.breaker.state
  }

  /** Forgets a client and its breaker, as when its connection is deleted. */
  drop(key: string): void {
    const entry = this.#clients.get(key)
    this.#clients.delete(key)
    if (entry) this.#retire(entry.client)
  }

  #open(key: string, access: ClusterAccess, limits: ClientLimits): KubeClient {
    const old = this.#clients.get(key)
    const way = wayOf(access)
    const breaker = old?.way === way ? old.breaker : new Breaker({ ...this.#options.breaker, clock: this.#clock })
    const options: KubeClientOptions = { ...this.#options, ...limits, breaker, clock: this.#clock }
    const client = new Client(new Transport(access, options), options)
    this.#clients.set(key, { client, breaker, hash: hashOf(access, limits), way, test: undefined })
    if (old) this.#retire(old.client)
    return client
  }

  async #test(entry: Entry): Promise<boolean> {
    try {
      await entry.client.ping(AbortSignal.any([AbortSignal.timeout(TEST_TIMEOUT_MS), this.#closing.signal]))
      return true
    } catch {
      // Why it failed is for the first call of the renewed client to say, where someone can be told.
      return false
    }
  }

  async #clean(): Promise<void> {
    const { signal } = this.#closing
    for (;;) {
      await this.#clock.sleep(CHECK_MS, signal)
      if (signal.aborted) return
      for (const [key, { client }] of this.#clients) {
        if (this.#clock.now() - client.lastUsedAt < IDLE_MS) continue
        this.#clients.delete(key)
        this.#retire(client)
      }
      // Whoever rested for so long has ended.
      for (const client of this.#retired)
        if (this.#clock.now() - client.lastUsedAt >= IDLE_MS) this.#retired.delete(client)
    }
  }

  /** Rounds and watches may end on the old client; nobody waits for that but the end of the pool. */
  #retire(client: Client): void {
    client.retire()
    this.#retired.add(client)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#closing.signal.aborted) this.#closing.abort(new KubeError('closed', 'the pool of clients is closed'))
    await this.#cleaning
    const clients = [...this.#retired, ...[...this.#clients.values()].map(({ client }) => client)]
    this.#clients.clear()
    this.#retired.clear()
    await Promise.all(clients.map((client) => client[Symbol.asyncDispose]()))
  }
}

interface Entry {
  readonly client: Client
  readonly breaker: Breaker
  readonly hash: string
  readonly way: string
  test: Promise<boolean> | undefined
}

/** Of everything in the access, so that any change makes another client; a hash, as a key must not hold a secret. */
function hashOf(access: ClusterAccess, limits: ClientLimits): string {
  return createHash('sha256')
    .update(JSON.stringify([access, limits]))
    .digest('base64')
}

/** What decides whether the cluster can be reached, without who we are. */
function wayOf({ server, ca, verifyTls, tlsServerName, proxyUrl }: ClusterAccess): string {
  return JSON.stringify([server, ca, verifyTls, tlsServerName, proxyUrl])
}
