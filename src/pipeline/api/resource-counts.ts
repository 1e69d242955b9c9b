import type { AccessView } from '#access'
import { documentTime, LISTED_KINDS, type ListName, type PodCounts } from '#model'
import { resourceNamed } from '#resources'
import type { VisibleCluster } from './views.ts'
import type { VisibleType, VisibleTypes } from './visible-types.ts'

/*
 * What the documented routes tell of the lists of pods, deployments, services, stateful sets and daemon sets: numbers of the rows
 * that may be seen. Rows that nobody read, or nobody reads any more, have no number.
 */
type Counts = Partial<Record<ListName, number>>

/** What the five lists say of one namespace, whose pods and deployments are counted elsewhere. */
export type CountsOf = (name: string, pods: PodCounts | null, deployments: number | null) => ResourceCounts

interface ResourceCounts {
  readonly resource_counts: Counts
  readonly total_resources: number
}

interface Asked {
  readonly types: VisibleTypes
  readonly accessView: AccessView
  readonly cluster: VisibleCluster
  /** ms since the Unix epoch */
  readonly now: number
}

export function resourceCounter(asked: Asked): CountsOf {
  const read = readTypes(asked)
  const services = read.find(({ source }) => source.id === 'services')
  const workloads = read.find(({ source }) => source.id === 'workloads')
  const counters: readonly (readonly [ListName, ReadonlyMap<string, number> | undefined])[] = [
    ['services', services && countByNamespace(services)],
    ['statefulsets', workloads && countByNamespace(workloads, 'StatefulSet')],
    ['daemonsets', workloads && countByNamespace(workloads, 'DaemonSet')],
  ]
  return (name, pods, deployments) => {
    const counts: Counts = {
      // The list has no pods that ended.
      ...(pods && { pods: pods.total - pods.succeeded - pods.failed }),
      ...(deployments !== null && { deployments }),
      ...Object.fromEntries(counters.flatMap(([list, counted]) => (counted ? [[list, counted.get(name) ?? 0]] : []))),
    }
    return { resource_counts: counts, total_resources: Object.values(counts).reduce((sum, count) => sum + count, 0) }
  }
}

/** When the lists were read last, and whether all of it; undefined where none was, or none may be seen. */
export function resourceCollection(asked: Asked) {
  const states = readTypes(asked).flatMap(({ state }) => state ?? [])
  if (states.length === 0) return undefined
  return {
    enabled: true,
    last_collection: documentTime(Math.max(...states.map(({ freshness }) => freshness?.observedAt ?? 0))),
    collection_time_ms: Math.max(...states.map(({ durationMs }) => durationMs)),
    truncated: states.some(({ truncated }) => truncated),
  }
}

function readTypes({ types, accessView, cluster, now }: Asked): readonly VisibleType[] {
  return LISTED_KINDS.flatMap((name) => {
    const kind = resourceNamed(name)
    const type = kind && types.on(accessView, cluster.state, kind)
    return type?.state?.freshness && type.staleAt > now ? [type] : []
  })
}

/** @param kind of several in one type, those alone */
function countByNamespace({ rows, places }: VisibleType, kind?: string): ReadonlyMap<string, number> {
  const kindAt = rows.column('kind')
  const counts = new Map<string, number>()
  const count = (place: number) => {
    if (kind !== undefined && kindAt?.(place) !== kind) return
    const namespace = rows.namespaceAt(place)
    counts.set(namespace, (counts.get(namespace) ?? 0) + 1)
  }
  if (places) places.forEach(count)
  else for (let place = 0; place < rows.size; place++) count(place)
  return counts
}
