/** A member of the hub, or a cluster that asks to be one, as lists show it. Times in ms since the Unix epoch. */
export interface MemberFacts {
  readonly name: string
  /** `pending` nobody decided; `denied`; `leaving` it is being deleted; an accepted one by what is known of it */
  readonly state: 'pending' | 'denied' | 'leaving' | 'available' | 'unavailable' | 'unknown'
  readonly accepted: boolean
  readonly joined: boolean
  /** True, False, Unknown; null: nothing was ever said */
  readonly available: string | null
  /** why, for programs and for people; '' where nothing was said */
  readonly reason: string
  readonly message: string
  /** since when it is so; null where nothing was said */
  readonly since: number | null
  readonly createdAt: number | null
  /** sets it is in, sorted */
  readonly sets: readonly string[]
  /** who speaks for it; null: nobody was accepted yet */
  readonly transport: 'stream' | 'api' | null
  readonly kubernetesVersion: string | null
  readonly clockSynced: boolean | null
  readonly taints: readonly string[]
  readonly claims: Readonly<Record<string, string>>
  readonly labels: Readonly<Record<string, string>>
}

/** Who is a member, from memory: no call waits. */
export interface MemberReader {
  /** sorted by name */
  members(): readonly MemberFacts[]
  /** rises with every change */
  version(): number
  /** false: the first list is not in */
  isKnown(): boolean
}
