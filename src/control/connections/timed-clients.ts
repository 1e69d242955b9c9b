import { type ClientLimits, ClientPool, type ClientPoolOptions, type ClusterAccess, type KubeClient } from '#kube'
import type { Clients } from './reconciler.ts'

/**
 * Client pools by the limit they put on every request: connections with the same `monitoring.timeout` share one, and one
 * timeout for all is the usual case. A connection whose timeout changes moves, and its old client closes when idle.
 */
export class TimedClients implements Clients, AsyncDisposable {
  readonly #options: Omit<ClientPoolOptions, 'timeoutMs'>
  readonly #pools = new Map<number, ClientPool>()

  /** @param options for every pool: breaker, rate, clock */
  constructor(options: Omit<ClientPoolOptions, 'timeoutMs'> = {}) {
    this.#options = options
  }

  /** The client of this connection, as its pool keeps it. */
  get(key: string, access: ClusterAccess, limits: ClientLimits, signal?: AbortSignal): Promise<KubeClient> {
    const timeoutMs = limits.timeoutMs ?? 30_000
    let pool = this.#pools.get(timeoutMs)
    if (!pool) {
      pool = new ClientPool({ ...this.#options, timeoutMs })
      this.#pools.set(timeoutMs, pool)
    }
    return pool.get(key, access, signal)
  }

  /** Closes the connection's clients and forgets their breakers. */
  async drop(key: string): Promise<void> {
    await Promise.all([...this.#pools.values()].map((pool) => pool.drop(key)))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#pools.values()].map((pool) => pool[Symbol.asyncDispose]()))
    this.#pools.clear()
  }
}
