import type { Clock } from '#model'
import { type Command, pipelined, type Redis, scanKeys } from '#redis'

type Alert = Readonly<Record<string, string>>

const REFRESH_MS = 10_000
const MAX_ALERTS = 10_000
const NONE: readonly Alert[] = []

/** The documented `alerts:<cluster>:<id>` hashes, read in the background every ten seconds by one scan for all clusters. */
export class AlertsReader {
  readonly #redis: Redis
  readonly #clock: Clock
  #alerts: ReadonlyMap<string, readonly Alert[]> = new Map()
  #readAt = Number.NEGATIVE_INFINITY

  constructor(redis: Redis, clock: Clock) {
    this.#redis = redis
    this.#clock = clock
  }

  of(cluster: string): readonly Alert[] {
    return this.#alerts.get(cluster) ?? NONE
  }

  /** Reads them again when they are old enough. @throws StoreUnavailableError */
  async refresh(): Promise<void> {
    if (this.#clock.now() - this.#readAt < REFRESH_MS) return
    const keys: string[] = []
    for await (const page of scanKeys(this.#redis, 'alerts:*')) {
      keys.push(...page)
      if (keys.length >= MAX_ALERTS) break
    }
    // Sorted: the order of a scan means nothing and changes. A key may come twice.
    const unique = [...new Set(keys)].sort().slice(0, MAX_ALERTS)
    const hashes = await pipelined(
      this.#redis,
      unique.map((key): Command => ['HGETALL', key]),
    )
    const alerts = new Map<string, Alert[]>()
    for (const [i, key] of unique.entries()) {
      const cluster = key.split(':')[1] ?? ''
      alerts.set(cluster, [...(alerts.get(cluster) ?? []), hashOf(hashes[i])])
    }
    this.#alerts = alerts
    this.#readAt = this.#clock.now()
  }
}

/** A hash as the raw reply of a pipeline has it: field, value, field, value. */
export function hashOf(reply: unknown): Record<string, string> {
  if (!Array.isArray(reply)) return { ...(reply as Record<string, string> | null) }
  const hash: Record<string, string> = {}
  for (let i = 0; i + 1 < reply.length; i += 2) hash[String(reply[i])] = String(reply[i + 1])
  return hash
}
