import type { ClusterView } from '../contract.ts'
import { isNear } from '../contract.ts'
import { type Need, needOf, needWord } from '../model/cluster.ts'
import { plural } from '../model/format.ts'
import { localHits } from './local.ts'

/** The pages of a cluster, by the words people ask for them with. */
const tabs = {
  nodes: 'nodes node',
  namespaces: 'namespaces namespace projects',
  deployments: 'deployments deployment workloads',
  operators: 'operators operator',
  events: 'events event changes',
  history: 'history metrics charts',
  types: 'types type rows',
} as const
export type ViewTab = keyof typeof tabs

export type ViewHit =
  | { readonly kind: 'tab'; readonly cluster: string; readonly tab: ViewTab }
  | { readonly kind: 'need'; readonly need: Need; readonly count: string }

const most = 4

/** Pages that the words name: those of a cluster (`gpu-lab nodes`), or the clusters of one health (`degraded`). */
export function viewHits(clusters: readonly ClusterView[], text: string, now: number): ViewHit[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const [only] = words
  if (words.length === 1 && only) return needHits(clusters, only, now)
  return words.flatMap((word, at): ViewHit[] => {
    const tab = tabOf(word)
    if (!tab) return []
    const rest = words.filter((_, other) => other !== at).join(' ')
    return localHits(clusters, rest, most).map(({ cluster }) => ({ kind: 'tab', cluster, tab }))
  })
}

const tabOf = (word: string): ViewTab | undefined =>
  (Object.keys(tabs) as ViewTab[]).find((tab) =>
    tabs[tab].split(' ').some((called) => (word.length >= 3 && called.startsWith(word)) || isNear(word, called)),
  )

function needHits(clusters: readonly ClusterView[], word: string, now: number): ViewHit[] {
  if (word.length < 3) return []
  return (Object.keys(needWord) as Need[])
    .filter((need) => need.startsWith(word) || (isNear(word, need) && !(word in needWord)))
    .map((need) => {
      const count = clusters.filter((cluster) => needOf(cluster, now) === need).length
      return { kind: 'need', need, count: plural(count, 'cluster') }
    })
}
