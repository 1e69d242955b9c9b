import { memberOfUser } from '#authority'
import { ApiError } from './status.ts'
import { MASTERS, type User } from './user.ts'

/** How many watches one identity may have open at a time. Who may do everything has no bound, nor has this process. */
export interface WatchLimits {
  /** of all agents of one member together */
  readonly member: number
  /** of each other user or account */
  readonly other: number
}

/** An agent of Open Cluster Management has some twenty; its bootstrap account is shared by all clusters that ask. */
export const WATCH_LIMITS: WatchLimits = { member: 100, other: 1000 }

const RETRY_AFTER_S = 10

/** Counts open watches: each takes memory, and work with every change. */
export class WatchCounts {
  readonly #limits: WatchLimits
  readonly #open = new Map<string, number>()
  /** since the start */
  refused = 0

  constructor(limits: WatchLimits) {
    this.#limits = limits
  }

  /**
   * @returns to be called once when the watch is over
   * @throws ApiError TooManyRequests
   */
  open({ name, groups }: User): () => void {
    if (groups.includes(MASTERS)) return () => undefined
    const member = memberOfUser(name)
    const most = member ? this.#limits.member : this.#limits.other
    const key = member ? `member ${member.cluster}` : `user ${name}`
    const count = this.#open.get(key) ?? 0
    if (count >= most) {
      this.refused++
      throw new ApiError(
        'TooManyRequests',
        `${member ? `the agents of ${member.cluster} have` : `${name} has`} ${count} watches open, and may have ${most}: end some, or watch a whole kind by one`,
        { retryAfterSeconds: RETRY_AFTER_S },
      )
    }
    this.#open.set(key, count + 1)
    return () => {
      const left = (this.#open.get(key) ?? 1) - 1
      if (left > 0) this.#open.set(key, left)
      else this.#open.delete(key)
    }
  }
}
