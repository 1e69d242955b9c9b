import { closeRedis, pipelined, type Redis, type RedisConnection, redisClient } from '#redis'

/** A capped Redis stream: each entry one message with the field `entry`, JSON. */
export class RedisTrail implements AsyncDisposable {
  readonly #redis: Redis
  readonly #key: string
  readonly #maxEntries: number
  #opened: Promise<void> | undefined

  constructor({ connection, key, maxEntries }: { connection: RedisConnection; key: string; maxEntries: number }) {
    this.#redis = redisClient(connection, () => undefined)
    this.#key = key
    this.#maxEntries = maxEntries
  }

  /** @throws StoreUnavailableError */
  async add(entries: readonly object[]): Promise<void> {
    // The first entry opens the connection; afterwards it comes back by itself.
    this.#opened ??= this.#redis.connect()
    await this.#opened.catch(() => undefined)
    await pipelined(
      this.#redis,
      entries.map((entry) => ['XADD', this.#key, 'MAXLEN', '~', this.#maxEntries, '*', 'entry', JSON.stringify(entry)]),
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await closeRedis(this.#redis)
  }
}
