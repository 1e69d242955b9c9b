import type { ClusterName } from '#model'
import { type Command, KeptKeys, pipelined, type Question, type Redis } from '#redis'
import { own } from './redis-keys.ts'
import { META } from './stored.ts'

/** Keys asked for in one look: about a hundred clusters of a hundred nodes. */
const KEYS_AT_ONCE = 20_000
/** Of single clusters. Series are of the past: what is lost of them is not in memory. */
const isWatched = (key: string) =>
  /^(clusterpulse:cluster|cluster|events):/.test(key) && !/:node:[^:]+:metrics$/.test(key)

/**
 * Notices what Redis lost of single clusters while the rest stayed: somebody deleted a key, or an entry of one. Keys of a large
 * fleet are looked at in turns.
 */
export class LostClusters {
  readonly #kept = new Map<ClusterName, KeptKeys>()
  readonly #redis: Redis
  #from = 0

  constructor(redis: Redis) {
    this.#redis = redis
  }

  /** Redis took these commands. @param isWhole they are all that it has of the cluster */
  taken(name: ClusterName, commands: readonly Command[], { isWhole, now }: { isWhole: boolean; now: number }): void {
    const kept = (isWhole ? undefined : this.#kept.get(name)) ?? new KeptKeys()
    kept.take(commands, now, isWatched)
    this.#kept.set(name, kept)
  }

  /** It is not known what Redis has of it, or that is nothing. */
  forget(name: ClusterName): void {
    this.#kept.delete(name)
  }

  /** @param names clusters that Redis should have as they are. @returns those of which something is missing */
  async among(names: readonly ClusterName[], now: number): Promise<Set<ClusterName>> {
    const lost = new Set<ClusterName>()
    const asked: (Question & { readonly name: ClusterName })[] = []
    for (const name of names) {
      asked.push({ name, command: ['SISMEMBER', own.clusters, name], count: 1 })
      asked.push({ name, command: ['SISMEMBER', 'clusters:all', name], count: 1 })
      asked.push({ name, command: ['HEXISTS', own.cluster(name), META], count: 1 })
    }
    let budget = KEYS_AT_ONCE
    let looked = 0
    for (; looked < names.length && budget > 0; looked++) {
      const name = names[(this.#from + looked) % names.length] as ClusterName // looked < length
      const { keys, questions } = this.#kept.get(name)?.questions(now) ?? { keys: 0, questions: [] }
      budget -= keys
      for (const question of questions) asked.push({ name, ...question })
    }
    this.#from = names.length === 0 ? 0 : (this.#from + looked) % names.length
    const answers = await pipelined(
      this.#redis,
      asked.map(({ command }) => command),
    )
    for (const [i, { name, count }] of asked.entries()) if (answers[i] !== count) lost.add(name)
    return lost
  }
}
