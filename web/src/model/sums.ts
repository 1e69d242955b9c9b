import { type ClusterView, unfinishedPods } from '../contract.ts'
import { isHidden, type Load, loadOf, sumAmounts } from './cluster.ts'
import { isCurrent, type PartType, readAt } from './current.ts'

/** Over which clusters a sum is, and how old the oldest number in it is. A cluster that was never read is in none. */
export interface Basis {
  /** clusters that could be in it: without those from which it is kept for whoever looks */
  readonly of: number
  /** clusters that are in it */
  readonly counted: number
  /** of these: those whose number is what the last round read */
  readonly current: number
  /** by the collectors' clocks */
  readonly oldestAt: number
}

/** Some of it is of the past: a sum is as old as its oldest part. */
export const isPastSum = ({ counted, current }: Pick<Basis, 'counted' | 'current'>): boolean => current < counted

/** @returns null where no cluster is in it */
export function basisOf(
  clusters: readonly ClusterView[],
  type: PartType,
  now: number,
  tells: (cluster: ClusterView) => boolean,
): Basis | null {
  let [of, counted, current, oldestAt] = [0, 0, 0, Number.POSITIVE_INFINITY]
  const rowType = type === 'podSummary' || type === 'cluster' ? 'node' : type
  for (const cluster of clusters) {
    const at = readAt(cluster, type)
    if (!tells(cluster) || at === null) {
      if (!isHidden(cluster, rowType)) of++
      continue
    }
    of++
    counted++
    if (isCurrent(cluster, type, now)) current++
    oldestAt = Math.min(oldestAt, at)
  }
  return counted === 0 ? null : { of, counted, current, oldestAt }
}

export interface ShareSum extends Basis {
  readonly part: number
  readonly all: number
}

function shareSum(
  clusters: readonly ClusterView[],
  type: PartType,
  now: number,
  read: (cluster: ClusterView) => { readonly part: number; readonly all: number } | null,
): ShareSum | null {
  const basis = basisOf(clusters, type, now, (cluster) => read(cluster) !== null)
  if (!basis) return null
  let [part, all] = [0, 0]
  for (const cluster of clusters) {
    const one = read(cluster)
    part += one?.part ?? 0
    all += one?.all ?? 0
  }
  return { ...basis, part, all }
}

/** Nodes that are ready of all. */
export const sumNodes = (clusters: readonly ClusterView[], now: number): ShareSum | null =>
  shareSum(clusters, 'node', now, ({ nodes }) => nodes && { part: nodes.ready, all: nodes.total })

/** Pods that run of those that are not finished. */
export const sumPods = (clusters: readonly ClusterView[], now: number): ShareSum | null =>
  shareSum(clusters, 'podSummary', now, ({ pods }) => pods && { part: pods.running, all: unfinishedPods(pods) })

type Resource = 'cpuCores' | 'memoryBytes'

export interface LoadSum extends Basis {
  readonly amounts: ClusterView[Resource]
  readonly load: Load
  /** all clusters that tell a load of either kind */
  readonly loaded: number
  /** what is asked for in them, where the load is what is used in a part of them */
  readonly requestedRatio: number | null
}

/**
 * How full the fleet is: what is used within the clusters that measure it, all of them or not; what is asked for where none
 * does. One cluster that measures nothing must neither hide the use of the others nor count as unused.
 */
export function sumLoad(clusters: readonly ClusterView[], resource: Resource, now: number): LoadSum | null {
  const loaded = clusters.filter((cluster) => loadOf(cluster[resource]) !== null)
  const measured = loaded.filter((cluster) => cluster[resource].used !== null)
  const chosen = measured.length > 0 ? measured : loaded
  const basis = basisOf(chosen, 'node', now, () => true)
  const amounts = amountsOf(chosen, resource)
  const load = loadOf(amounts)
  if (!basis || !load) return null
  const isPart = measured.length > 0 && measured.length < loaded.length
  const asked = loaded.map((cluster) => cluster[resource]).filter(({ requested }) => requested !== null)
  const all = isPart && asked.length === loaded.length ? loadOf({ ...sumAmounts(asked), used: null }) : null
  return { ...basis, amounts, load, loaded: loaded.length, requestedRatio: all?.ratio ?? null }
}

/** A sum that lacks what one of the clusters asks for would look like less than is asked for. */
function amountsOf(clusters: readonly ClusterView[], resource: Resource): ClusterView[Resource] {
  const all = clusters.map((cluster) => cluster[resource])
  return { ...sumAmounts(all), ...(all.some(({ requested }) => requested === null) && { requested: null }) }
}
