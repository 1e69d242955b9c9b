import type { AccessView } from '#access'
import { type ClusterState, clusterSetsOf, type LabelTest, type MemberReader, parseLabelSelector } from '#model'
import { Refusal } from './answers.ts'

const MAX_LIMIT = 10_000

/** Which clusters of the fleet are asked for; all that is given must match. */
export interface Selection {
  /** the same text means the same selection */
  readonly name: string
  matches(cluster: ClusterState): boolean
}

/** @throws Refusal with a sentence where it cannot be read */
export function selectionOf(query: URLSearchParams, members?: Pick<MemberReader, 'member'>): Selection {
  const names = query.get('clusters')?.split(',').filter(Boolean)
  const [selector, set] = [query.get('selector'), query.get('set') || undefined]
  const test = selector ? parseLabelSelector(selector) : ((() => true) satisfies LabelTest)
  if (typeof test === 'string') throw new Refusal(400, test)
  const wanted = names && new Set(names)
  return {
    name: JSON.stringify([names?.toSorted() ?? null, selector, set ?? null]),
    matches: (cluster) =>
      (wanted?.has(cluster.name) ?? true) &&
      test(cluster.connection?.labels ?? {}) &&
      (set === undefined || clusterSetsOf(cluster, members).includes(set)),
  }
}

/** Those the caller sees, by name. */
export const selected = (clusters: readonly ClusterState[], view: AccessView, selection: Selection) =>
  clusters.filter((cluster) => view.canSee(cluster) && selection.matches(cluster))

/** One page of them, and where the next begins. @throws Refusal where `limit` is no number of clusters */
export function pageOf(clusters: readonly ClusterState[], query: URLSearchParams) {
  const after = query.get('continue')
  const rest = after === null ? clusters : clusters.filter(({ name }) => name > after)
  const text = query.get('limit')
  if (text === null) return { clusters: rest, next: undefined }
  const limit = Number(text)
  if (!/^\d+$/.test(text) || limit < 1 || limit > MAX_LIMIT)
    throw new Refusal(400, `limit is a whole number from 1 to ${MAX_LIMIT}`)
  const page = rest.slice(0, limit)
  return { clusters: page, next: rest.length > limit ? page.at(-1)?.name : undefined }
}
