import type { AccessView } from '#access'
import type { Clock, ClusterState } from '#model'
import type { Entity, UsageHistory } from '../history/history.ts'
import { type HistoryPoint, type HistoryQuery, historyQuery, pointsOf, timeTexts } from '../history/query.ts'
import { Items, type Member, Members } from '../json.ts'
import type { Kind, Pictures } from '../pictures.ts'
import type { Caller } from '../tokens.ts'

/** An answer that is none: the status, its word, and where it may be asked again when, s. */
export class Refusal extends Error {
  readonly status: number
  readonly retryAfterSeconds: number | undefined

  constructor(status: number, word: string, retryAfterSeconds?: number) {
    super(word)
    this.status = status
    this.retryAfterSeconds = retryAfterSeconds
  }
}

export const unauthorized = () => new Refusal(401, 'unauthorized')
export const forbidden = () => new Refusal(403, 'forbidden')
export const notFound = () => new Refusal(404, 'not found')
export const tooManyAnswers = () => new Refusal(429, 'too many large answers at once', 5)

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

type Series = readonly [name: string, points: readonly HistoryPoint[]]

/** What may be large is not made yet: it is as it is written. */
const headOf = ({ start, end, resolution }: HistoryQuery) => ({ start, end, resolution })

type Present = Pick<Asked, 'cluster' | 'view'>

/** The newest snapshot of one kind. */
export const snapshot = (parts: AnswerParts, asked: Present, kind: Kind) =>
  parts.pictures.snapshot(asked.cluster, asked.view, kind)

/** History of all nodes, and the newest snapshot of them. */
export function nodesHistory(parts: AnswerParts, present: Asked) {
  const asked = historyQuery(present.query, parts.clock.now())
  const series = new Members(seriesOf(parts.history, present.cluster, 'node', asked))
  return Members.of({ ...headOf(asked), series, ...parts.pictures.present(present.cluster, present.view, 'nodes') })
}

/** @throws Refusal where there is no such node, and never was one in the time that is kept */
export function nodeHistory({ history, clock }: AnswerParts, { cluster, view, query }: Asked, name: string) {
  if (name === '') throw new Refusal(400, 'bad request')
  const known = cluster && history.find(cluster.name, 'node', name)
  const isNode = () =>
    cluster && view.usage(cluster) && view.visible(cluster, 'node').some((node) => node.name === name)
  if (!known && !isNode()) throw notFound()
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
  return Members.of({
    ...headOf(asked),
    series: new Members(series),
    timestamp: pictures.timestamp(cluster, 'pods'),
    pods: new Items(podsOf(pictures.eachPod(cluster, view), namespace)),
  })
}

function* podsOf(pods: ReturnType<Pictures['eachPod']>, namespace: string | undefined) {
  for (const pod of pods) yield namespace === undefined || pod?.namespace === namespace ? pod : undefined
}

/** Percents of each cluster's totals. */
export function clustersHistory(
  { history, clock }: AnswerParts,
  clusters: readonly ClusterState[],
  query: URLSearchParams,
) {
  const asked = historyQuery(query, clock.now())
  const textOf = timeTexts()
  function* series(): Generator<Series | undefined> {
    for (const { name } of clusters) {
      const known = history.find(name, 'cluster', '')
      const points = known ? pointsOf(known, asked, false, textOf) : []
      yield points.length > 0 ? [name, points] : undefined
    }
  }
  return Members.of({ ...headOf(asked), series: new Members(series()) })
}

function* seriesOf(
  history: UsageHistory,
  cluster: ClusterState | undefined,
  entity: Entity,
  query: HistoryQuery,
  shows: (key: string) => boolean = () => true,
): Generator<Series | undefined> {
  if (!cluster) return
  const textOf = timeTexts()
  for (const one of history.each(cluster.name, entity, shows)) {
    const points = one ? pointsOf(one[1], query, entity === 'pod', textOf) : []
    yield one && points.length > 0 ? [one[0], points] : undefined
  }
}

/** A page of clusters, wrapped and not merged. */
export function fleetSnapshot(
  { pictures, clock }: AnswerParts,
  clusters: readonly ClusterState[],
  view: AccessView,
  { kind, next }: { readonly kind: Kind; readonly next: string | undefined },
) {
  let newest: string | undefined
  for (const cluster of clusters) {
    const timestamp = pictures.timestamp(cluster, kind)
    if (newest === undefined || Date.parse(timestamp) > Date.parse(newest)) newest = timestamp
  }
  function* each(): Generator<Member> {
    for (const cluster of clusters) {
      const list = new Items(pictures.each(cluster, view, kind))
      yield [cluster.name, Members.of({ ...pictures.fleetHead(cluster, kind), [kind]: list })]
    }
  }
  return Members.of({
    timestamp: newest ?? new Date(clock.now()).toISOString(),
    clusters: new Members(each()),
    ...(next !== undefined && { continue: next }),
  })
}
