import { IconCirclesRelation } from '@tabler/icons-react'
import { type ReactNode, useCallback } from 'react'
import { useHub } from '../live/hooks.ts'
import { useRefresh } from '../live/refresh.ts'
import type { ChosenSet } from '../live/use-cluster-set.ts'
import { useSetName } from '../live/use-cluster-set.ts'
import { useFresh } from '../live/use-fresh.ts'
import { formatCount } from '../model/format.ts'
import { type Member, setsOfMembers } from '../model/members.ts'
import { setQuery } from '../router.tsx'
import { Empty, Failure, Skeleton } from './states.tsx'

const nothing = () => null

/**
 * Chooses a set of clusters, in the address. Nothing where there are no sets.
 * @param members those that the page lists, in place of clusters
 */
export function SetChoice({ members }: { members?: readonly Member[] }): ReactNode {
  const { client } = useHub()
  const chosen = useSetName()
  const [fresh, again] = useFresh(useCallback((signal: AbortSignal) => client.clusterSets(signal), [client]))
  useRefresh(nothing, again)
  const known = fresh.state === 'here' ? fresh.value.items : []
  const sets = members ? setsOfMembers(known, members) : known
  if (sets.length === 0 && chosen === '') return null
  return (
    <label className="select">
      <span>Set</span>
      <select value={chosen} onChange={({ target }) => setQuery({ set: target.value || null })}>
        <option value="">all clusters</option>
        {sets.map(({ name, count }) => (
          <option key={name} value={name}>
            {name} ({formatCount(count)})
          </option>
        ))}
        {chosen !== '' && !sets.some(({ name }) => name === chosen) && <option value={chosen}>{chosen}</option>}
      </select>
    </label>
  )
}

const AllClusters = (): ReactNode => (
  <button type="button" className="button" onClick={() => setQuery({ set: null })}>
    All clusters
  </button>
)

/** In the place of what is of a set that is not known, or is not there; null: it is known. */
export function insteadOfSet(set: ChosenSet): ReactNode {
  switch (set.state) {
    case 'waiting':
      return <Skeleton label={`Loading the clusters of set ${set.name}`} />
    case 'failed':
      return set.problem.code === 'set_not_found' ? (
        <Empty title={`There is no set ${set.name}, or you see no cluster of it`}>
          <AllClusters />
        </Empty>
      ) : (
        <Failure problem={set.problem} onRetry={set.again} title="The clusters of this set could not be loaded" />
      )
    default:
      return null
  }
}

/** A set without a cluster for whoever looks. */
export const EmptySet = ({ name }: { name: string }): ReactNode => (
  <Empty title={`No cluster is in set ${name}`} icon={<IconCirclesRelation size={30} aria-hidden="true" />}>
    <AllClusters />
  </Empty>
)
