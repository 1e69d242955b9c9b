import type { ClusterView, Health, RowType } from '../contract.ts'

export type Need = Health | 'stale'

/** When the facts of a cluster were read: what its ages are counted from. null: never, so far. */
export const factsAt = (cluster: ClusterView): number | null => cluster.lastSyncAt

/** The hub says so, or time has passed since it last spoke. */
export function isStale(cluster: ClusterView, now: number): boolean {
  const since = cluster.lastSyncAt ?? cluster.checkedAt
  return cluster.stale || (since !== null && now >= since + cluster.staleAfterMs)
}

const order: readonly Need[] = ['unhealthy', 'degraded', 'unknown', 'stale', 'healthy']

/** What a person should hear first about this cluster. */
export function needOf(cluster: ClusterView, now: number): Need {
  return cluster.health === 'healthy' && isStale(cluster, now) ? 'stale' : cluster.health
}

/** 0 needs a person most. */
export const severityOf = (cluster: ClusterView, now: number): number => order.indexOf(needOf(cluster, now))

export const needWord: Readonly<Record<Need, string>> = {
  unhealthy: 'Unhealthy',
  degraded: 'Degraded',
  unknown: 'Unknown',
  stale: 'Stale',
  healthy: 'Healthy',
}

/** A number of this type that is null although the type was read is kept from whoever looks. */
export const isHidden = (cluster: ClusterView, type: RowType): boolean =>
  cluster.filtered && cluster.parts[type]?.freshness != null

/** What people call a cluster; its technical name beside, where that is another. */
export const clusterName = ({ name, displayName }: Pick<ClusterView, 'name' | 'displayName'>): string =>
  displayName && displayName !== name ? `${displayName} (${name})` : name

/**
 * What not every cluster has: it was read, or exists and is refused to us. What was never reached, since the cluster was not,
 * is not known to be there.
 */
export function isServed({ parts }: ClusterView, type: RowType): boolean {
  const part = parts[type]
  if (!part || part.outcome === 'absent') return false
  return part.outcome !== 'unreachable' || part.freshness !== null
}

type Amounts = ClusterView['cpuCores']

export interface Load {
  /** of what pods may use (allocatable, else capacity) */
  readonly ratio: number
  /** measured by the cluster's metrics, or the sum of what pods asked for */
  readonly basis: 'used' | 'requested'
  readonly amount: number
  readonly limit: number
}

/** How full: measured where measured, else as requested. null: neither is known. */
export function loadOf({ capacity, allocatable, requested, used }: Amounts): Load | null {
  const limit = allocatable ?? capacity
  const basis = used === null ? 'requested' : 'used'
  const amount = used ?? requested
  if (limit === null || limit <= 0 || amount === null) return null
  return { ratio: amount / limit, basis, amount, limit }
}

export function sumAmounts(all: readonly Amounts[]): Amounts {
  const sum = (key: keyof Amounts) => {
    const known = all.map((one) => one[key]).filter((value) => value !== null)
    return known.length === 0 ? null : known.reduce((total, value) => total + value, 0)
  }
  return { capacity: sum('capacity'), allocatable: sum('allocatable'), requested: sum('requested'), used: sum('used') }
}

/** What is not proved of the API of a cluster whose connection skips that. */
export const unverifiedText = ({ endpoint }: Pick<ClusterView, 'endpoint'>): string =>
  endpoint.startsWith('http:')
    ? 'Its API is read in plain HTTP: nothing is encrypted, and nothing proves who answers.'
    : 'The certificate of its API is not verified, by explicit choice.'

export interface HealthChange {
  readonly cluster: string
  readonly at: number
  readonly from: Health
  readonly to: Health
  /** policies hide a part of the cluster: its health of the past says only whether it answered */
  readonly filtered: boolean
}

/** A turn in words that continue a sentence with the cluster's name. */
export function turnText({ from, to, filtered }: HealthChange): string {
  if (!filtered) return `turned ${to}, was ${from}`
  if (to === 'unhealthy') return 'did not answer'
  if (to === 'unknown') return 'is not known to answer'
  return from === 'unhealthy' ? 'answered again' : 'answered'
}

/** The turns of health that are remembered, newest first. */
export function healthChanges(clusters: Iterable<ClusterView>, since: number): HealthChange[] {
  const changes: HealthChange[] = []
  for (const { name, heartbeats, earlier, filtered } of clusters) {
    for (const turn of earlier?.turns ?? []) if (turn.at >= since) changes.push({ cluster: name, ...turn, filtered })
    for (let index = 1; index < heartbeats.length; index++) {
      const [before, after] = [heartbeats[index - 1], heartbeats[index]]
      if (!before || !after || before.health === after.health || after.at < since) continue
      changes.push({ cluster: name, at: after.at, from: before.health, to: after.health, filtered })
    }
  }
  return changes.sort((a, b) => b.at - a.at)
}

/** Of how many clusters turns are remembered for less long, and for how long at least, ms since the Unix epoch. */
export function forgotten(clusters: readonly ClusterView[], since: number): { count: number; knownSince: number } {
  const times = clusters.flatMap(({ earlier }) => (earlier && earlier.knownSince > since ? [earlier.knownSince] : []))
  return { count: times.length, knownSince: Math.max(since, ...times) }
}
