import type { ClusterName, ClusterState } from '#model'
import { type Command, pipelined, type Redis } from '#redis'
import type { Logger } from '#runtime'
import { difference } from './difference.ts'
import { hashOf } from './redis-alerts.ts'
import { own } from './redis-keys.ts'
import { damageLogger, decodeCluster, META } from './stored.ts'
import type { StoredRows } from './stored-rows.ts'

/** Hashes asked for at once. */
const CHUNK = 64

/** Fields of one cluster at one moment. */
interface ReadFields {
  /** undefined: the cluster is not there, or its hash is damaged */
  readonly version: number | undefined
  /** those that are there */
  readonly read: ReadonlyMap<string, string>
}

/** Reads single clusters again, for a follower who has an older state of them. */
export class ClusterReader {
  readonly #redis: Redis
  readonly #rows: StoredRows
  readonly #logger: Logger

  constructor(redis: Redis, rows: StoredRows, logger: Logger) {
    this.#redis = redis
    this.#rows = rows
    this.#logger = logger
  }

  /** @throws StoreUnavailableError */
  async fields(name: ClusterName, fields: readonly string[]): Promise<ReadFields> {
    const [reply] = await pipelined(this.#redis, [['HMGET', own.cluster(name), META, ...fields]])
    const [meta, ...texts] = reply as (string | null)[]
    const read = new Map(
      fields.flatMap((field, i) => (typeof texts[i] === 'string' ? [[field, texts[i]] as const] : [])),
    )
    return { version: versionIn(meta), read }
  }

  /** Every field of each. @throws StoreUnavailableError */
  async hashes(names: readonly ClusterName[]): Promise<Map<ClusterName, Readonly<Record<string, string>>>> {
    const hashes = new Map<ClusterName, Readonly<Record<string, string>>>()
    for (let from = 0; from < names.length; from += CHUNK) {
      const some = names.slice(from, from + CHUNK)
      const replies = await pipelined(
        this.#redis,
        some.map((name): Command => ['HGETALL', own.cluster(name)]),
      )
      for (const [i, name] of some.entries()) hashes.set(name, hashOf(replies[i]))
    }
    return hashes
  }

  /**
   * The state that a hash holds, with what is equal as it is in `known`.
   * @returns undefined where it cannot be read
   */
  state(
    name: ClusterName,
    hash: Readonly<Record<string, string>>,
    known: ClusterState | undefined,
  ): ClusterState | undefined {
    const options = { known: known?.tables, onDamage: damageLogger(name, this.#logger) }
    const state = decodeCluster(hash, this.#rows, options)
    return state && difference(known, state, 0, (came, shares) => this.#rows.keep(came, shares)).next
  }
}

function versionIn(meta: string | null | undefined): number | undefined {
  try {
    return (JSON.parse(meta ?? 'null') as { readonly version?: number } | null)?.version
  } catch {
    return undefined
  }
}
