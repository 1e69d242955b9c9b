import { closeRedis, type Redis, type RedisConnection, redisClient, redisUnavailable } from '#redis'
import { type Fields, objectOf, timeIn } from './original-fields.ts'

/** One documented sample of a node; null: it is not said. `at`: ms since the Unix epoch. */
export interface NodeSample {
  readonly at: number
  readonly values: Readonly<Record<NodeSampleField, number | null>>
}

export const nodeSampleFields = [
  'cpu_usage',
  'memory_usage',
  'cpu_requested',
  'memory_requested',
  'pods_running',
  'pods_pending',
  'pods_total',
] as const
export type NodeSampleField = (typeof nodeSampleFields)[number]

/** The last hour of every node, as managers keep it beside the state: for who has no other history. */
export interface NodeSeries {
  /**
   * Newest first, at most `limit`; none where there is no series.
   * @throws StoreUnavailableError
   */
  newest(cluster: string, node: string, limit: number): Promise<readonly NodeSample[]>
}

/** No writer's sample is as long: longer ones stay in Redis. */
const LONGEST_SAMPLE = 4096

const NEWEST = `
local answer = {}
for _, sample in ipairs(redis.call('ZREVRANGE', KEYS[1], 0, ARGV[1] - 1)) do
  if #sample <= ${LONGEST_SAMPLE} then answer[#answer + 1] = sample end
end
return answer`

/** The documented key `cluster:<c>:node:<n>:metrics`, whoever writes it. */
export class RedisNodeSeries implements NodeSeries, AsyncDisposable {
  readonly #redis: Redis

  constructor(connection: RedisConnection) {
    this.#redis = redisClient(connection, () => undefined)
    this.#redis.connect().catch(() => undefined) // it goes on trying; who asks meanwhile is told
  }

  async newest(cluster: string, node: string, limit: number): Promise<readonly NodeSample[]> {
    let found: unknown
    try {
      found = await this.#redis.eval(NEWEST, 1, `cluster:${cluster}:node:${node}:metrics`, limit)
    } catch (error) {
      throw redisUnavailable(error)
    }
    return (found as readonly string[]).flatMap((text) => sampleOf(objectOf(text)) ?? [])
  }

  [Symbol.asyncDispose](): Promise<void> {
    return closeRedis(this.#redis)
  }
}

function sampleOf(document: Fields | undefined): NodeSample | undefined {
  const at = document ? timeIn(document, 'timestamp') : null
  if (!document || at === null) return undefined
  const values = nodeSampleFields.map((field) => [field, numberIn(document, field)] as const)
  return { at, values: Object.fromEntries(values) as NodeSample['values'] } // one of each field
}

function numberIn(document: Fields, field: string): number | null {
  const value = document[field]
  return typeof value === 'number' && Number.isFinite(value) ? value : null
}
