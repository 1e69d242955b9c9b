import { Listeners } from '#runtime'
import {
  closeRedis,
  pipelined,
  type Redis,
  type RedisConnection,
  redisClient,
  redisUnavailable,
  scanKeys,
} from './redis.ts'

/** Where marks that processes share are kept. */
export interface RedisMarksOptions {
  readonly connection: RedisConnection
  /** begins every key */
  readonly prefix: string
  readonly channel: string
  /** the news that belongs to a key; default the key itself */
  readonly newsOf?: (key: string) => string
}

/**
 * Short-lived marks that several processes share, and the news of them. Who was not listening when a mark was set, because Redis
 * was away, is told of all marks when it is back: news may come twice, and are never missed.
 */
export class RedisMarks implements AsyncDisposable {
  readonly #redis: Redis
  readonly #news: Redis
  readonly #prefix: string
  readonly #channel: string
  readonly #newsOf: (key: string) => string
  readonly #listeners = new Listeners<[text: string]>()

  constructor({ connection, prefix, channel, newsOf = (key) => key }: RedisMarksOptions) {
    this.#prefix = prefix
    this.#newsOf = newsOf
    this.#channel = channel
    this.#redis = redisClient(connection, () => undefined)
    this.#news = redisClient(connection, () => undefined)
    this.#news.on('message', (_, text) => this.#listeners.tell(text))
    this.#news.on('ready', () => void this.#listen().catch(() => this.#news.disconnect(true)))
    this.#redis.on('ready', () => void this.#catchUp().catch(() => this.#redis.disconnect(true)))
    // Both come back by themselves; a first try that fails is one of many.
    for (const redis of [this.#redis, this.#news]) void redis.connect().catch(() => undefined)
  }

  /** @throws StoreUnavailableError */
  async set(key: string, ttlMs: number): Promise<void> {
    await pipelined(this.#redis, [['SET', this.#prefix + key, '1', 'PX', ttlMs]])
  }

  /** @throws StoreUnavailableError: whether it is marked is not known */
  async has(key: string): Promise<boolean> {
    return (await pipelined(this.#redis, [['EXISTS', this.#prefix + key]]))[0] === 1
  }

  /** How long it will still be marked, ms; undefined: it is not. @throws StoreUnavailableError */
  async leftMs(key: string): Promise<number | undefined> {
    const [left] = await pipelined(this.#redis, [['PTTL', this.#prefix + key]])
    return typeof left === 'number' && left >= 0 ? left : undefined
  }

  /** Takes a mark away. @returns whether this call did: of several at once, one. @throws StoreUnavailableError */
  async take(key: string): Promise<boolean> {
    return (await pipelined(this.#redis, [['DEL', this.#prefix + key]]))[0] === 1
  }

  /** @throws StoreUnavailableError */
  async publish(text: string): Promise<void> {
    await pipelined(this.#redis, [['PUBLISH', this.#channel, text]])
  }

  subscribe(listener: (text: string) => void): () => void {
    return this.#listeners.add(listener)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([closeRedis(this.#redis), closeRedis(this.#news)])
  }

  async #listen(): Promise<void> {
    await this.#news.subscribe(this.#channel).catch((error: unknown) => {
      throw redisUnavailable(error)
    })
    await this.#catchUp()
  }

  async #catchUp(): Promise<void> {
    if (this.#redis.status !== 'ready') return
    for await (const keys of scanKeys(this.#redis, `${this.#prefix}*`))
      for (const key of keys) this.#listeners.tell(this.#newsOf(key.slice(this.#prefix.length)))
  }
}
