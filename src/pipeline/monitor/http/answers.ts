import type { AccessView } from '#access'
import type { Clock, ClusterState } from '#model'
import type { Entity, UsageHistory } from '../history/history.ts'
import { type HistoryPoint, type HistoryQuery, historyQuery, pointsOf } from '../history/query.ts'
import type { Kind, Pictures } from '../pictures.ts'
import type { Caller } from '../tokens.ts'

/** An answer that is none: the status, and its word. */
export class Refusal extends Error {
  readonly status: number

  constructor(status: number, word: string) {
    super(word)
    this.status = status
  }
}

export const unauthorized = () => new Refusal(401, 'unauthorized')
export const forbidden = () => new Refusal(403, 'forbidden')
export const notFound = () => new Refusal(404, 'not found')

export interface AnswerParts {
  readonly pictures: Pictures
  readonly history: UsageHistory
  readonly clock: Clock
}

/** Of one cluster: undefined where it is not known (yet). */
export interface Asked {
  readonly cluster: ClusterState | undefined
  readonly view: AccessView
  readonly caller: Caller
  readonly query: URLSearchParams
}

type Series = Readonly<Record<string, readonly HistoryPoint[]>>

const headOf = ({ start, end, resolution }: HistoryQuery) => ({ start, end, resolution })

/** History of all nodes, and the newest snapshot of them. */
export function nodesHistory({ pictures, history, clock }: AnswerParts, { cluster, view, query }: Asked) {
  const asked = historyQuery(query, clock.now())
  const series = seriesOf(history, cluster, 'node', asked)
  return { ...headOf(asked), series, ...pictures.nodeSnapshot(cluster, view) }
}

/** @throws Refusal where there is no such node, and never was one in the time that is kept */
export function nodeHistory({ history, clock, pictures }: AnswerParts, { cluster, view, query }: Asked, name: string) {
  if (name === '') throw new Refusal(400, 'bad request')
  const known = cluster && history.find(cluster.name, 'node', name)
  const isNode = cluster && pictures.nodes(cluster, view).some((node) => node.name === name)
  if (!known && !isNode) throw notFound()
  const asked = historyQuery(query, clock.now())
  return { ...headOf(asked), series: { [name]: known ? pointsOf(known, asked, false) : [] } }
}

/** History of the pods the caller sees, and the newest snapshot of them. @throws Refusal for a namespace that is not his */
export function podsHistory({ pictures, history, clock }: AnswerParts, { cluster, view, query }: Asked) {
  const namespace = query.get('namespace') || undefined
  if (namespace !== undefined && !pictures.showsNamespace(cluster, view, namespace)) throw forbidden()
  const asked = historyQuery(query, clock.now())
  const shows = cluster ? pictures.showsPast(cluster, view) : () => false
  const series = seriesOf(history, cluster, 'pod', asked, (key) => {
    const slash = key.indexOf('/')
    const [own, name] = [key.slice(0, slash), key.slice(slash + 1)]
    return (namespace === undefined || own === namespace) && shows(own, name)
  })
  const { timestamp, pods } = pictures.podSnapshot(cluster, view)
  const isAsked = (pod: { readonly namespace: string }) => namespace === undefined || pod.namespace === namespace
  return { ...headOf(asked), series, timestamp, pods: pods.filter(isAsked) }
}

/** Percents of each cluster's totals. */
export function clustersHistory(
  { history, clock }: AnswerParts,
  clusters: readonly ClusterState[],
  query: URLSearchParams,
) {
  const asked = historyQuery(query, clock.now())
  const series: Series = Object.fromEntries(
    clusters.flatMap(({ name }) => {
      const known = history.find(name, 'cluster', '')
      const points = known ? pointsOf(known, asked, false) : []
      return points.length > 0 ? [[name, points]] : []
    }),
  )
  return { ...headOf(asked), series }
}

function seriesOf(
  history: UsageHistory,
  cluster: ClusterState | undefined,
  entity: Entity,
  query: HistoryQuery,
  shows: (key: string) => boolean = () => true,
): Series {
  if (!cluster) return {}
  return Object.fromEntries(
    history.series(cluster.name, entity).flatMap(([key, series]) => {
      const points = shows(key) ? pointsOf(series, query, entity === 'pod') : []
      return points.length > 0 ? [[key, points]] : []
    }),
  )
}

/** A page of clusters, wrapped and not merged. */
export function fleetSnapshot(
  { pictures, clock }: AnswerParts,
  clusters: readonly ClusterState[],
  view: AccessView,
  { kind, next }: { readonly kind: Kind; readonly next: string | undefined },
) {
  const entries = clusters.map((cluster) => [cluster.name, pictures.fleetEntry(cluster, view, kind)] as const)
  const newest = entries.map(([, { timestamp }]) => timestamp).sort((a, b) => Date.parse(b) - Date.parse(a))[0]
  return {
    timestamp: newest ?? new Date(clock.now()).toISOString(),
    clusters: Object.fromEntries(entries),
    ...(next !== undefined && { continue: next }),
  }
}
